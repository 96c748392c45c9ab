//! Snapshots of a re-execution: how the machine stands at some moments, from which a run can be followed without what was before.
//!
//! The rewritten module calls us where it polls the stop clock, at the beginning of a block at which paths begin, when it is time for a snapshot. The engine's
//! debugger shows the locals and operands of all activations. They are those of the program: the rewriter adds locals behind the program's own, and leaves the operand stack as it was.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afterimage_ids::{BlockId, EntityRef, FuncId, InstrOffset, OpId};
use afterimage_machine::{
    Body, ChangedTable, GlobalBits, MachineError, Next, Opened, Page, SNAPSHOT_PAGE, Snapshot,
};

use afterimage_paths::{Boundary, Cuts, FinalFrame, PathPlan};
use afterimage_program::{BlockEnd, Callee, Function, OperatorIndex, Program};
use afterimage_rewrite::{
    CLOCK_AT, HALF_FULL, MEMORY_EXPORT, OffsetMap, OriginalPlace, PathProbes, Probes, SNAPSHOT_AT,
    SNAPSHOT_EXPORT, TAKE_SNAPSHOT, TracePlan,
};
use afterimage_trace::{Ending, Kind, LogPlace, TraceWriter};
use wasmparser::{BinaryReader, Catch, FunctionBody, Operator};
use wasmtime::{AsContextMut, Caller, Func, Instance, Memory, Ref, Store, Val, WasmBacktrace};

use crate::RecordError;
use crate::lens::{Job, Repeat};
use crate::paths::{
    HALF_WORDS, HasPaths, PathHost, Producer, RecordedRun, SnapshotFn, WordWriter, ends_inside,
    recorded_finish,
};

/// Bytes of a page of memory, as snapshots keep it.
const PAGE: usize = SNAPSHOT_PAGE as usize;
/// Bytes of a page by which memories grow.
const WASM_PAGE: u64 = 65536;
/// So many pages are compared with what they were at most: they are kept here, and twice that where snapshots are collected.
const MOST_PAGES: usize = (128 << 20) / PAGE;

/// A page that nobody wrote.
const ZEROS: [u8; PAGE] = [0; PAGE];

/// A page of a memory, and what it holds.
pub type ChangedPage = (Page, Box<[u8]>);

/// A snapshot that was made.
#[derive(Debug)]
pub struct Taken {
    /// What the stop clock shows.
    pub clock: u64,
    /// How the machine stands.
    pub snapshot: Snapshot,
    /// When its activations began, the outermost first.
    pub opened: Vec<Opened>,
    /// The pages of memories that changed since the snapshot before.
    pub pages: Vec<ChangedPage>,
}

/// How far apart snapshots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// So many polls of the stop clock.
    Polls(u64),
    /// About so long, in the re-execution; or twenty times as long as a snapshot takes, if that is longer.
    Time(Duration),
}

/// What the debugger shows, before the program is asked what it means.
pub(crate) struct Captured {
    /// What the stop clock shows.
    clock: u64,
    log: LogPlace,
    /// The innermost first.
    frames: Vec<CapturedFrame>,
    globals: Vec<GlobalBits>,
    tables: Vec<ChangedTable>,
    /// How many bytes each memory has.
    memories: Vec<u64>,
    pages: Vec<ChangedPage>,
    /// Held until this was read.
    waits: Option<Arc<()>>,
}

impl Captured {
    /// It waits to be read.
    pub(crate) fn waits(&mut self, waiting: &Arc<()>) {
        self.waits = Some(Arc::clone(waiting));
    }
}

struct CapturedFrame {
    /// In the rewritten module.
    offset: u32,
    /// More may follow than the program's.
    locals: Vec<GlobalBits>,
    /// More may lie on it than the program's.
    operands: Vec<GlobalBits>,
}

/// Adds the words of a run's path to a file, by re-executing it, and tells of the snapshots that are made meanwhile, in order. The caller commits.
///
/// # Errors
/// If the recording cannot be repeated exactly, the file cannot be written, or `tell` fails.
pub fn build_snapshots(
    run: &RecordedRun<'_>,
    spacing: Spacing,
    out: &TraceWriter,
    mut tell: impl FnMut(Taken) -> Result<(), RecordError> + Send,
) -> Result<(), RecordError> {
    let program = run.program;
    let job = Job::open(run.file, run.bytes, program, run.cache, run.progress)?;
    let plan = PathPlan::new(program, None, Cuts::default())?;
    let probes = PathProbes {
        plan: TracePlan::Paths(&plan),
        in_memory: ends_inside(&job.end),
        half: HALF_WORDS,
    };
    // A stack overflow may take several attempts to find: who is told shall hear of one only.
    let skip = match job.end.ending {
        Ending::StackOverflow => job.repeat(None)?.0.skip,
        _ => 0,
    };
    let repeat = Repeat {
        probes: Probes::Paths(probes),
        skip,
        snapshots: true,
        debugger: true,
    };
    if let Some(what) = unseen(program, run.bytes) {
        return Err(RecordError::NoSnapshots(what));
    }
    let index = OperatorIndex::new(program, run.bytes);
    let finish = recorded_finish(program, &index, &job.end)?;
    let mut stretches = None;
    let mut tell: Option<&mut SnapshotFn<'_>> = Some(&mut tell);
    job.repeat_with(repeat, &mut |job, engine, rewritten, stop| {
        let tell = tell.take().ok_or(RecordError::OverflowNotFound)?;
        let reader = Reader {
            program,
            bytes: run.bytes,
            index: &index,
            map: &rewritten.map,
            bodies: HashMap::new(),
            pages: Vec::new(),
        };
        let words = WordWriter::repeating(out, &plan, reader, tell)?;
        let (producer, messages) = Producer::new(HALF_WORDS);
        let host = PathHost::new(producer, plan.entry_ids().clone()).unguarded();
        let capturing = Capturing::new(program, &rewritten.reshaped, spacing);
        std::thread::scope(|scope| {
            let finish = &finish;
            let consumer = scope.spawn(move || words.write_stretches(messages, finish));
            let replayed = job.replay(engine, rewritten, stop, Some(host), Some(capturing), None);
            // Its reason is the better one: the guest only learns that it is gone.
            match consumer.join() {
                Ok(written) => {
                    stretches = Some(written?);
                    replayed
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    })?;
    if let Some(directory) = stretches {
        out.whole(Kind::STRETCHES, None, &directory.encode())?;
    }
    Ok(())
}

/// Operators, beyond which a function takes the engine hundreds of megabytes to compile for its debugger.
const LARGEST: u32 = 50_000;

/// The sum of operators times locals of all functions, beyond which the engine takes minutes to compile them for its debugger: twice that of SQLite.
const MOST: u64 = 32_000_000;

/// Why no snapshots can be made of a program, if that is so: because it does what no debugger shows afterwards, or is too large for the debugger.
fn unseen(program: &Program, bytes: &[u8]) -> Option<&'static str> {
    let functions = program.functions.iter();
    if functions
        .clone()
        .any(|function| function.operators > LARGEST)
    {
        return Some("has a function too large for the engine's debugger");
    }
    let cost: u64 = functions
        .map(|function| locals(program, bytes, function) * u64::from(function.operators))
        .sum();
    if cost > MOST {
        return Some("is too large for the engine's debugger");
    }
    let functions = program.functions.iter();
    let mut all = functions.flat_map(|function| program.operators(bytes, function));
    all.find_map(|(_, _, operator)| match operator {
        Operator::DataDrop { .. } | Operator::ElemDrop { .. } => Some("drops segments"),
        Operator::TryTable { try_table } => {
            let by_reference =
                |catch: &Catch| matches!(catch, Catch::OneRef { .. } | Catch::AllRef { .. });
            let any = try_table.catches.iter().any(by_reference);
            any.then_some("catches exceptions by reference")
        }
        _ => None,
    })
}

/// How many locals a function has.
fn locals(program: &Program, bytes: &[u8], function: &Function) -> u64 {
    let parameters = program
        .types
        .get(function.ty)
        .map_or(0, |ty| ty.params.len());
    let body = function.body.start.0 as usize..function.body.end.0 as usize;
    let reader = BinaryReader::new(bytes.get(body).unwrap_or_default(), 0);
    let groups = FunctionBody::new(reader).get_locals_reader();
    let groups = groups.into_iter().flatten().filter_map(Result::ok);
    parameters as u64 + groups.map(|(count, _)| u64::from(count)).sum::<u64>()
}

/// What captured states mean.
pub(crate) struct Reader<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    index: &'a OperatorIndex<'a>,
    map: &'a OffsetMap,
    bodies: HashMap<FuncId, Body<'a>>,
    /// The pages of those that were no snapshots.
    pages: Vec<ChangedPage>,
}

impl<'a> Reader<'a> {
    /// The program that is executed.
    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    /// The snapshot, but for its time, and where the path is then. `None` where the host has called a function and nothing was executed.
    pub(crate) fn read(
        &mut self,
        captured: Captured,
    ) -> Result<Option<(Taken, Boundary)>, RecordError> {
        let Captured {
            clock,
            log,
            frames,
            globals,
            tables,
            memories,
            mut pages,
            waits: _waits,
        } = captured;
        self.pages.append(&mut pages);
        let mut open = Vec::with_capacity(frames.len());
        for frame in frames.into_iter().rev() {
            let (function, block) = self.place(frame.offset)?;
            open.push((function, block, frame));
        }
        let Some((function, block, _)) = open.last() else {
            return Ok(None);
        };
        let (function, header) = (*function, *block);
        let entered = self.body(function)?.function.cfg.graph.root() == header;
        let mut arguments = Vec::new();
        if entered {
            let parameters = parameters(self.program, Callee::Direct(function));
            let entered = open.pop();
            arguments.extend(entered.into_iter().flat_map(|(_, _, frame)| frame.locals));
            arguments.truncate(parameters);
        }
        if open.is_empty() {
            return Ok(None);
        }
        let (mut registers, mut high) = (Vec::new(), Vec::new());
        let (mut waiting, mut activations) = (Vec::new(), Vec::new());
        for (number, (function, block, frame)) in open.iter().enumerate() {
            let (function, block) = (*function, *block);
            let is_active = number + 1 == open.len() && !entered;
            let (locals, operands) = self.live(function, (!is_active).then_some(block), block)?;
            let fits = || RecordError::Snapshot(MachineError::Checkpoint);
            let locals = frame.locals.get(..locals).ok_or_else(fits)?;
            let operands = frame.operands.get(..operands).ok_or_else(fits)?;
            let all = || locals.iter().chain(operands);
            registers.extend(all().map(|bits| bits.0));
            if self.body(function)?.wide {
                high.extend(all().map(|bits| bits.1));
            }
            activations.push((function, (!is_active).then_some(block)));
            if !is_active {
                waiting.push(FinalFrame { function, block });
            }
        }
        let next = if entered {
            let tail = false;
            Next::Enter { function, tail }
        } else {
            Next::Block(header)
        };
        let snapshot = Snapshot {
            time: 0,
            log,
            next,
            arguments,
            frames: activations,
            registers,
            high,
            globals,
            pages: memories.iter().map(|bytes| bytes / WASM_PAGE).collect(),
            tables,
            data: Vec::new(),
            elements: Vec::new(),
            exceptions: Vec::new(),
            made: 0,
            room: 0,
        };
        let taken = Taken {
            clock,
            snapshot,
            opened: Vec::new(),
            pages: std::mem::take(&mut self.pages),
        };
        let boundary = Boundary {
            waiting,
            function,
            header: (!entered).then_some(header),
        };
        Ok(Some((taken, boundary)))
    }

    /// The block that an offset of the rewritten module is in.
    fn place(&self, offset: u32) -> Result<(FuncId, BlockId), RecordError> {
        let offset = InstrOffset(offset);
        let unknown = || RecordError::UnknownPlace(offset.to_string());
        let (id, place) = self.map.lookup(offset).ok_or_else(unknown)?;
        let block = match place {
            OriginalPlace::Poll(block) => Some(block),
            OriginalPlace::Operator(offset) => self.index.find(offset).and_then(|(_, op)| {
                let function = self.program.function(id)?;
                function.block_of(op)
            }),
            _ => None,
        };
        Ok((id, block.ok_or_else(unknown)?))
    }

    fn body(&mut self, id: FuncId) -> Result<&Body<'a>, RecordError> {
        match self.bodies.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let unknown = || RecordError::UnknownPlace(format!("function {}", id.index()));
                let function = self.program.function(id).ok_or_else(unknown)?;
                let body = Body::read(self.program, self.bytes, function)?;
                Ok(place.insert(body))
            }
        }
    }

    /// How many locals and slots of the operand stack of an activation can still be read: one that waits for the call of a block, or is about to execute it.
    fn live(
        &mut self,
        function: FuncId,
        call: Option<BlockId>,
        block: BlockId,
    ) -> Result<(usize, usize), RecordError> {
        let misfit = || RecordError::Snapshot(MachineError::Checkpoint);
        let program = self.program;
        let body = self.body(function)?;
        let locals = body.slots.locals.len();
        let Some(call) = call else {
            let slots = body.slots.at_start.get(block).ok_or_else(misfit)?;
            return Ok((locals, slots.len()));
        };
        let block = body.function.cfg.blocks.get(call).ok_or_else(misfit)?;
        let BlockEnd::Call(callee) = block.end else {
            return Err(misfit());
        };
        let op = OpId::new(block.ops.end.index().saturating_sub(1));
        let height = body.slots.heights.get(op).copied().ok_or_else(misfit)?;
        let taken =
            parameters(program, callee) + usize::from(matches!(callee, Callee::Indirect { .. }));
        let below = (height as usize).checked_sub(taken).ok_or_else(misfit)?;
        Ok((locals, below))
    }
}

/// How many parameters what is called has.
fn parameters(program: &Program, callee: Callee) -> usize {
    let ty = match callee {
        Callee::Direct(function) => match program.function(function) {
            Some(function) => Some(function.ty),
            None => program
                .imports
                .get(function.index())
                .map(|import| import.ty),
        },
        Callee::Indirect { ty, .. } => Some(ty),
    };
    let ty = ty.and_then(|ty| program.types.get(ty));
    ty.map_or(0, |ty| ty.params.len())
}

/// A store's data of a run of which snapshots are made.
pub(crate) trait HasSnapshots: HasPaths {
    /// What makes them.
    fn snapshots(&mut self) -> Option<&mut Capturing>;
    /// Where its log goes on.
    fn place(&self) -> LogPlace;
}

/// What makes snapshots of one instance.
pub(crate) struct Capturing {
    spacing: Spacing,
    /// Functions whose frames are not the program's. Ascending.
    reshaped: Arc<[FuncId]>,
    /// How many functions are imported, and memories and globals there are.
    imports: usize,
    memories: u32,
    globals: u32,
    places: Option<(Instance, Memory)>,
    /// What the tables began with, as the engine's pointers.
    tables: Vec<Vec<usize>>,
    /// Which functions pointers are, once something in a table is another one than at first.
    functions: HashMap<usize, u32>,
    /// The pages of memories as they were at the last snapshot, if that is not zeros.
    before: HashMap<(u32, u64), Box<[u8]>>,
    /// When the last one was made, and what the clock showed.
    last: (Instant, u64),
}

impl Capturing {
    pub(crate) fn new(program: &Program, reshaped: &[FuncId], spacing: Spacing) -> Self {
        Self {
            spacing,
            reshaped: reshaped.into(),
            imports: program.imports.len(),
            memories: program.memories,
            globals: program.globals.len() as u32,
            places: None,
            tables: vec![Vec::new(); program.tables as usize],
            functions: HashMap::new(),
            before: HashMap::new(),
            last: (Instant::now(), 0),
        }
    }

    /// Connects an instance, before it is run.
    pub(crate) fn connect<T: HasSnapshots + 'static>(
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Result<(), RecordError> {
        if store.data_mut().snapshots().is_none() {
            return Ok(());
        }
        let table = instance.get_table(&mut *store, SNAPSHOT_EXPORT);
        let probes = instance.get_memory(&mut *store, MEMORY_EXPORT);
        let (Some(table), Some(probes)) = (table, probes) else {
            return Err(RecordError::NoCounters);
        };
        let capture = Func::wrap(&mut *store, |caller: Caller<'_, T>| capture(caller));
        let full = Func::wrap(
            &mut *store,
            |mut caller: Caller<'_, T>| -> wasmtime::Result<()> {
                Ok(PathHost::half_is_full(caller.as_context_mut())?)
            },
        );
        for (place, host) in [(TAKE_SNAPSHOT, capture), (HALF_FULL, full)] {
            let set = table.set(&mut *store, place, Ref::Func(Some(host)));
            set.map_err(|_| RecordError::NoCounters)?;
        }
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(());
        };
        own.places = Some((*instance, probes));
        own.last = (Instant::now(), 0);
        let first = match own.spacing {
            Spacing::Polls(polls) => polls,
            Spacing::Time(_) => FIRST,
        };
        // What memories and tables begin with is not told.
        changed_pages(store)?;
        for table in 0..own_tables(store) {
            let began = pointers(store, *instance, table)?.unwrap_or_default();
            if let Some(own) = store.data_mut().snapshots() {
                own.tables[table] = began;
            }
        }
        write(probes, store, SNAPSHOT_AT, first)
    }
}

/// Polls before the first snapshot, if it is not known yet how long they take.
const FIRST: u64 = 1 << 12;

pub(crate) fn write(
    probes: Memory,
    store: &mut impl AsContextMut,
    address: u64,
    value: u64,
) -> Result<(), RecordError> {
    let written = probes.write(store, address as usize, &value.to_le_bytes());
    written.map_err(|_| RecordError::NoCounters)
}

/// Makes a snapshot, if the machine stands as one can.
fn capture<T: HasSnapshots + 'static>(mut caller: Caller<'_, T>) -> wasmtime::Result<()> {
    let begun = Instant::now();
    let Some(own) = caller.data_mut().snapshots() else {
        return Ok(());
    };
    let (reshaped, imports) = (Arc::clone(&own.reshaped), own.imports);
    let Some((instance, probes)) = own.places else {
        return Ok(());
    };
    let mut frames = Vec::new();
    // The debugger's frames stand behind their calls.
    let calls = WasmBacktrace::force_capture(&caller);
    let mut calls = calls.frames().iter();
    let mut next = caller.debug_exit_frames().next();
    let mut fits = true;
    while let Some(frame) = next.take().filter(|_| fits) {
        let function = frame.wasm_function_index_and_pc(&mut caller)?;
        let call = calls.next();
        let (Some((function, _)), Some(call)) = (function, call) else {
            fits = false;
            break;
        };
        let id = FuncId::new(imports + function.as_u32() as usize);
        let offset = call.module_offset().and_then(|at| u32::try_from(at).ok());
        let offset = offset.filter(|_| call.func_index() == id.as_u32());
        fits &= offset.is_some() && reshaped.binary_search(&id).is_err();
        let mut locals = Vec::new();
        for i in 0..frame.num_locals(&mut caller)? {
            let value = frame.local(&mut caller, i)?;
            locals.push(bits(&value).unwrap_or_else(|| {
                fits = false;
                (0, 0)
            }));
        }
        let mut operands = Vec::new();
        for i in 0..frame.num_stacks(&mut caller)? {
            let value = frame.stack(&mut caller, i)?;
            operands.push(bits(&value).unwrap_or_else(|| {
                fits = false;
                (0, 0)
            }));
        }
        frames.push(CapturedFrame {
            offset: offset.unwrap_or_default(),
            locals,
            operands,
        });
        next = frame.parent(&mut caller)?;
    }
    let globals = caller.data_mut().snapshots().map_or(0, |own| own.globals);
    let mut values = Vec::with_capacity(globals as usize);
    for i in 0..globals {
        let global = instance.debug_global(&mut caller, i);
        let value = global.map(|global| global.get(&mut caller));
        values.push(value.as_ref().and_then(bits).unwrap_or_else(|| {
            fits = false;
            (0, 0)
        }));
    }
    let tables = changed_tables(&mut caller, instance)?;
    fits &= tables.is_some();
    let tables = tables.unwrap_or_default();
    let clock = word(probes, &mut caller, CLOCK_AT)?;
    if fits {
        let (memories, pages) = changed_pages(&mut caller)?;
        let log = caller.data().place();
        let captured = Captured {
            clock,
            log,
            frames,
            globals: values,
            tables,
            memories,
            pages,
            waits: None,
        };
        PathHost::cut(caller.as_context_mut(), captured)?;
    }
    let Some(own) = caller.data_mut().snapshots() else {
        return Ok(());
    };
    let next = match (own.spacing, fits) {
        (Spacing::Polls(polls), _) => clock + polls,
        (Spacing::Time(_), false) => clock + 1,
        (Spacing::Time(wanted), true) => {
            let wanted = wanted.max(20 * begun.elapsed());
            let (before, polls) = (begun - own.last.0, clock - own.last.1);
            own.last = (Instant::now(), clock);
            let rate = polls.max(1) as f64 / before.as_secs_f64().max(1e-6);
            clock + ((rate * wanted.as_secs_f64()) as u64).clamp(1, 8 * polls.max(FIRST))
        }
    };
    write(probes, &mut caller, SNAPSHOT_AT, next)?;
    Ok(())
}

pub(crate) fn word(
    probes: Memory,
    store: &mut impl AsContextMut,
    address: u64,
) -> Result<u64, RecordError> {
    let mut bytes = [0; 8];
    let read = probes.read(store, address as usize, &mut bytes);
    read.map_err(|_| RecordError::NoCounters)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A value; `None` if it is a reference that is not null.
fn bits(value: &Val) -> Option<GlobalBits> {
    Some(match value {
        Val::I32(value) => (u64::from(*value as u32), 0),
        Val::I64(value) => (*value as u64, 0),
        Val::F32(value) => (u64::from(*value), 0),
        Val::F64(value) => (*value, 0),
        Val::V128(value) => {
            let value = value.as_u128();
            (value as u64, (value >> 64) as u64)
        }
        Val::FuncRef(None) | Val::ExternRef(None) | Val::AnyRef(None) | Val::ExnRef(None) => (0, 0),
        _ => return None,
    })
}

/// The sizes of memories, and those of their pages that are not as they were when this was asked last. O(bytes of memories).
fn changed_pages<T: HasSnapshots + 'static>(
    store: &mut impl AsContextMut<Data = T>,
) -> Result<(Vec<u64>, Vec<ChangedPage>), RecordError> {
    let mut store = store.as_context_mut();
    let Some(own) = store.data_mut().snapshots() else {
        return Ok(Default::default());
    };
    let (count, places) = (own.memories, own.places);
    let mut before = std::mem::take(&mut own.before);
    let Some((instance, _)) = places else {
        return Ok(Default::default());
    };
    let (mut sizes, mut pages) = (Vec::new(), Vec::new());
    for memory in 0..count {
        let Some(found) = instance.debug_memory(&mut store, memory) else {
            return Err(RecordError::NoMemory);
        };
        let bytes = found.data(&store);
        sizes.push(bytes.len() as u64);
        for (number, bytes) in (0..).zip(bytes.chunks(PAGE)) {
            let has_room = before.len() <= MOST_PAGES;
            let known = before.get_mut(&(memory, number));
            let same = match &known {
                Some(known) => known[..] == *bytes,
                None => *bytes == ZEROS[..bytes.len()],
            };
            if !same && has_room {
                let bytes: Box<[u8]> = bytes.into();
                match known {
                    Some(known) => known.clone_from(&bytes),
                    None => drop(before.insert((memory, number), bytes.clone())),
                }
                pages.push(((memory, number), bytes));
            }
        }
    }
    if before.len() > MOST_PAGES {
        return Err(RecordError::NoSnapshots(
            "has more than 128 MiB of memory in use",
        ));
    }
    if let Some(own) = store.data_mut().snapshots() {
        own.before = before;
    }
    Ok((sizes, pages))
}

fn own_tables<T: HasSnapshots + 'static>(store: &mut impl AsContextMut<Data = T>) -> usize {
    let mut store = store.as_context_mut();
    store
        .data_mut()
        .snapshots()
        .map_or(0, |own| own.tables.len())
}

/// What a table holds, as the engine's pointers, 0 for null; `None` if it holds other references than to functions.
fn pointers<T: 'static>(
    store: &mut impl AsContextMut<Data = T>,
    instance: Instance,
    table: usize,
) -> Result<Option<Vec<usize>>, RecordError> {
    let mut store = store.as_context_mut();
    let found = instance.debug_table(&mut store, table as u32);
    let found = found.ok_or(RecordError::NoCounters)?;
    let mut all = Vec::new();
    for i in 0..found.size(&store) {
        all.push(match found.get(&mut store, i) {
            Some(Ref::Func(Some(function))) => function.to_raw(&mut store).addr(),
            Some(Ref::Func(None) | Ref::Extern(None) | Ref::Any(None) | Ref::Exn(None)) => 0,
            _ => return Ok(None),
        });
    }
    Ok(Some(all))
}

/// What the tables hold that is another than at first. `None` if that is unknown. O(elements).
fn changed_tables<T: HasSnapshots + 'static>(
    store: &mut impl AsContextMut<Data = T>,
    instance: Instance,
) -> Result<Option<Vec<ChangedTable>>, RecordError> {
    let mut store = store.as_context_mut();
    let mut all = Vec::new();
    for table in 0..own_tables(&mut store) {
        let Some(now) = pointers(&mut store, instance, table)? else {
            return Ok(None);
        };
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(None);
        };
        let first = std::mem::take(&mut own.tables[table]);
        let mut functions = std::mem::take(&mut own.functions);
        let mut elements: Vec<(u64, u64, u64)> = Vec::new();
        let mut known = true;
        let began = first.iter().copied().chain(std::iter::repeat(0));
        for (position, (&pointer, began)) in (0..).zip(now.iter().zip(began)) {
            if pointer == began {
                continue;
            }
            if functions.is_empty() {
                for index in 0.. {
                    let Some(function) = instance.debug_function(&mut store, index) else {
                        break;
                    };
                    functions.insert(function.to_raw(&mut store).addr(), index);
                }
            }
            let element = match (pointer, functions.get(&pointer)) {
                (0, _) => 0,
                (_, Some(&index)) => u64::from(index) + 1,
                (_, None) => {
                    known = false;
                    break;
                }
            };
            match elements.last_mut() {
                Some((from, count, of)) if *of == element && *from + *count == position => {
                    *count += 1;
                }
                _ => elements.push((position, 1, element)),
            }
        }
        if let Some(own) = store.data_mut().snapshots() {
            (own.tables[table], own.functions) = (first, functions);
        }
        if !known {
            return Ok(None);
        }
        all.push(ChangedTable {
            length: now.len() as u64,
            elements,
        });
    }
    Ok(Some(all))
}
