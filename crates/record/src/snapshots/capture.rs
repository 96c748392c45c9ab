//! Captures the state of the machine during a run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use afterimage_ids::FuncId;
use afterimage_machine::{ChangedTable, GlobalBits, LINE, MachineError, Page, SNAPSHOT_PAGE};
use afterimage_program::Program;
use afterimage_rewrite::{
    CAPTURED, CLOCK_AT, CaptureSite, HALF_FULL, Inner, MEMORY_EXPORT, Rewritten, SNAPSHOT_AT,
    SNAPSHOT_EXPORT, TAKE_SNAPSHOT, TAKEN_EXPORT, UNWIND_AT, inner_export,
};
use afterimage_trace::LogPlace;
use wasmtime::{
    AsContextMut, Caller, Func, Global, Instance, Memory, Ref, Store, StoreContextMut, Table, Val,
    WasmBacktrace,
};

use super::{ChangedPage, Spacing};
use crate::RecordError;
use crate::whole_path::{HasPaths, PathHost};

/// The size of a memory page in snapshots, in bytes.
const PAGE: usize = SNAPSHOT_PAGE as usize;
/// The largest number of pages that a run with snapshots may write. The collector of snapshots
/// keeps the newest copy of each.
const MOST_PAGES: usize = (128 << 20) / PAGE;

/// The maximum number of captured locals and operands, which take 256 MiB.
const MOST_SLOTS: usize = 1 << 24;

/// The state of the engine at a cut of the path, in terms of the rewritten module.
pub(crate) struct Captured {
    /// The reading of the stop clock.
    pub(super) clock: u64,
    /// The function of each activation and its offset in the rewritten module, innermost first.
    pub(super) calls: Vec<(FuncId, u32)>,
    /// The lines of memory written since the last cut.
    pub(crate) lines: Vec<Lines>,
    /// The rest of the state, if this cut is a snapshot.
    pub(super) state: Option<CapturedState>,
    /// A token that exists until the consumer has read this state.
    pub(super) waits: Option<Arc<()>>,
}

impl Captured {
    /// Marks the state as unread until it is dropped.
    pub(crate) fn waits(&mut self, waiting: &Arc<()>) {
        self.waits = Some(Arc::clone(waiting));
    }

    /// Whether this is a snapshot.
    pub(crate) fn is_snapshot(&self) -> bool {
        self.state.is_some()
    }
}

/// Written lines of a page, as the memory, the page, and a bit for each line.
pub(crate) type Lines = (u32, u64, u64);

/// The state that a snapshot adds to a cut.
pub(super) struct CapturedState {
    pub(super) log: LogPlace,
    /// The locals and operands of each activation, innermost first.
    pub(super) held: Vec<Arc<Activation>>,
    pub(super) globals: Vec<GlobalBits>,
    pub(super) tables: Vec<ChangedTable>,
    /// The size of each memory in bytes.
    pub(super) memories: Vec<u64>,
    pub(super) pages: Vec<ChangedPage>,
}

/// A waiting activation, shared by one or more snapshots.
#[derive(Debug)]
pub(super) struct Activation {
    pub function: FuncId,
    held: OnceLock<Held>,
}

impl Activation {
    fn new(function: FuncId) -> Self {
        Self {
            function,
            held: OnceLock::new(),
        }
    }

    /// Returns the activation's locals and operands, once it has captured them.
    pub(super) fn held(&self) -> Option<&Held> {
        self.held.get()
    }
}

/// The locals and operands of an activation. The debugger may show more of both than the program
/// has, because the rewriter adds some.
#[derive(Debug)]
pub(super) struct Held {
    pub locals: Vec<GlobalBits>,
    pub operands: Vec<GlobalBits>,
}

/// The activations in snapshots that have not yet captured themselves.
pub(crate) struct Waiting {
    sites: Vec<CaptureSite>,
    /// The address in the probes' memory where these activations capture themselves.
    at: u64,
    taken: Option<Global>,
    /// The number of snapshots so far.
    count: i32,
    /// The maximum number of locals and operands that an activation of each function captures.
    largest: HashMap<FuncId, usize>,
    /// An upper bound on the total number of locals and operands that the waiting activations of
    /// all snapshots so far capture.
    slots: usize,
    /// The activations, outermost first.
    open: Vec<Arc<Activation>>,
    /// The reading of the stop clock at the last snapshot.
    last: u64,
    /// Whether to end all activations at the last snapshot.
    leaving: bool,
}

impl Waiting {
    pub(crate) fn new(rewritten: &Rewritten) -> Self {
        let mut largest = HashMap::new();
        for site in &rewritten.sites {
            let most: &mut usize = largest.entry(site.function).or_default();
            *most = site.slots().max(*most);
        }
        Self {
            sites: rewritten.sites.clone(),
            largest,
            at: rewritten.layout.captured_at(),
            taken: None,
            count: 0,
            slots: 0,
            open: Vec::new(),
            last: 0,
            leaving: false,
        }
    }
}

/// Store data of a run that takes snapshots.
pub(crate) trait HasSnapshots: HasPaths {
    /// Returns this instance's collector of snapshots, if there is one.
    fn snapshots(&mut self) -> Option<&mut Capturing>;
    /// Returns the current place in the log.
    fn place(&self) -> LogPlace;
}

/// The collector of one instance's snapshots.
pub(crate) struct Capturing {
    spacing: Spacing,
    /// The factor that currently multiplies the distance between snapshots.
    apart: Arc<AtomicU64>,
    /// Functions whose frames differ from the program's, in ascending order.
    reshaped: Arc<[FuncId]>,
    /// The address of each memory's marks in the probes' memory.
    marks: Arc<[u64]>,
    /// Ranges written by the host and not yet marked, each as memory, address and length.
    wrote: Vec<(u32, u64, u64)>,
    /// The functions that a table may contain.
    addressed: Arc<[u32]>,
    /// The numbers of memories, tables and globals.
    counts: (u32, u32, u32),
    places: Option<Places>,
    /// The initial contents of the tables, as the engine's pointers.
    tables: Vec<Vec<usize>>,
    /// Maps the engine's pointers to functions. It is filled once a table element changes.
    functions: HashMap<usize, u32>,
    /// The pages written since the last snapshot.
    written: BTreeSet<Page>,
    /// The pages written before the last snapshot.
    known: HashSet<Page>,
    /// The reading of the stop clock at the last snapshot, and the time that the snapshot took.
    last: (u64, Duration),
    /// The guest's running time since the last snapshot, without waits for the consumer.
    ran: Duration,
    /// The moment at which the guest resumed after the last cut, and the stop clock's reading at
    /// that moment.
    cut: (Instant, u64),
    /// The activations that have not yet captured themselves, or `None` if the debugger shows them.
    waiting: Option<Waiting>,
}

/// The parts of an instance that a snapshot reads.
#[derive(Clone)]
struct Places {
    instance: Instance,
    probes: Memory,
    memories: Arc<[Memory]>,
    tables: Arc<[Table]>,
    globals: Arc<[Global]>,
}

impl Places {
    fn find<T: 'static>(
        store: &mut Store<T>,
        instance: &Instance,
        probes: Memory,
        (memories, tables, globals): (u32, u32, u32),
    ) -> Option<Self> {
        let memories = (0..memories)
            .map(|i| instance.get_memory(&mut *store, &inner_export(Inner::Memory, i)));
        let memories = memories.collect::<Option<_>>()?;
        let tables =
            (0..tables).map(|i| instance.get_table(&mut *store, &inner_export(Inner::Table, i)));
        let tables = tables.collect::<Option<_>>()?;
        let globals =
            (0..globals).map(|i| instance.get_global(&mut *store, &inner_export(Inner::Global, i)));
        Some(Self {
            instance: *instance,
            probes,
            memories,
            tables,
            globals: globals.collect::<Option<_>>()?,
        })
    }
}

impl Capturing {
    pub(crate) fn new(
        program: &Program,
        rewritten: &Rewritten,
        (spacing, apart): (Spacing, Arc<AtomicU64>),
        waiting: Option<Waiting>,
    ) -> Self {
        let functions = program.imports.len() + program.functions.len();
        let addressed = (0..functions as u32)
            .filter(|&index| program.address_taken.contains(FuncId::from_u32(index)));
        Self {
            spacing,
            apart,
            reshaped: rewritten.reshaped[..].into(),
            marks: rewritten.marks[..].into(),
            wrote: Vec::new(),
            addressed: addressed.collect(),
            counts: (
                program.memories,
                program.tables,
                program.globals.len() as u32,
            ),
            places: None,
            tables: vec![Vec::new(); program.tables as usize],
            functions: HashMap::new(),
            written: BTreeSet::new(),
            known: HashSet::new(),
            last: (0, Duration::ZERO),
            ran: Duration::ZERO,
            cut: (Instant::now(), 0),
            waiting,
        }
    }

    /// Whether a snapshot is due.
    fn is_due(&self, clock: u64) -> bool {
        let apart = self.apart.load(Ordering::Relaxed);
        match self.spacing {
            Spacing::Polls { snapshots, .. } => {
                clock - self.last.0 >= snapshots.saturating_mul(apart)
            }
            Spacing::Time { snapshots, .. } => {
                let apart = u32::try_from(apart).unwrap_or(u32::MAX);
                self.ran >= snapshots.max(5 * self.last.1).saturating_mul(apart)
            }
        }
    }

    /// Returns the clock of the next cut. `cost` is the time that this cut took, or `None` if the
    /// path could not be cut here.
    fn next_cut(&mut self, begun: Instant, clock: u64, cost: Option<Duration>) -> u64 {
        match (self.spacing, cost) {
            (Spacing::Polls { cuts, .. }, _) => clock.saturating_add(cuts),
            (Spacing::Time { .. }, None) => clock + 1,
            (Spacing::Time { cuts, .. }, Some(cost)) => {
                let (before, polls) = (begun - self.cut.0, clock - self.cut.1);
                self.cut = (Instant::now(), clock);
                let rate = polls.max(1) as f64 / before.as_secs_f64().max(1e-6);
                let wanted = rate * cuts.max(5 * cost).as_secs_f64();
                let most = 8 * polls.max(FIRST);
                // In a long run, the cuts are further apart.
                clock + (wanted as u64).clamp(1, most).max(clock / MOST_CUTS)
            }
        }
    }

    /// Creates a collector that takes no snapshots, but ends all activations at the last snapshot
    /// of an earlier instance.
    pub(crate) fn again(program: &Program, rewritten: &Rewritten, waiting: Waiting) -> Self {
        let (snapshots, cuts) = (waiting.last, waiting.last);
        let spacing = Spacing::Polls { snapshots, cuts };
        let waiting = Waiting {
            leaving: true,
            ..waiting
        };
        let apart = Arc::new(AtomicU64::new(1));
        Self::new(program, rewritten, (spacing, apart), Some(waiting))
    }

    /// Records a range that the host writes.
    pub(crate) fn wrote(&mut self, memory: u32, address: u64, length: u64) {
        self.wrote.push((memory, address, length));
    }

    /// Marks the ranges that the host has written.
    pub(crate) fn host_wrote<T: HasSnapshots>(
        mut store: StoreContextMut<'_, T>,
    ) -> Result<(), RecordError> {
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(());
        };
        if own.wrote.is_empty() {
            return Ok(());
        }
        let (wrote, starts) = (std::mem::take(&mut own.wrote), Arc::clone(&own.marks));
        let probes = own.places.as_ref().map(|places| places.probes);
        let marks = probes.ok_or(RecordError::NoCounters)?;
        let marks = marks.data_mut(&mut store);
        for (memory, address, length) in wrote {
            let Some(last) = length.checked_sub(1) else {
                continue;
            };
            let start = starts.get(memory as usize).ok_or(RecordError::NoMemory)?;
            let line = |address: u64| (start + address / LINE) as usize;
            let lines = marks.get_mut(line(address)..=line(address + last));
            lines.ok_or(RecordError::NoMemory)?.fill(1);
        }
        Ok(())
    }

    /// Sends the lines of memory written since the last cut, at the end of the run.
    pub(crate) fn finish<T: HasSnapshots + 'static>(
        store: &mut Store<T>,
    ) -> Result<(), RecordError> {
        let own = store.data_mut().snapshots();
        if own.is_none_or(|own| own.waiting.as_ref().is_some_and(|waiting| waiting.leaving)) {
            return Ok(());
        }
        let lines = take_marks(store)?;
        let paths = store.data_mut().paths().ok_or(RecordError::NoCounters)?;
        Ok(paths.wrote(lines)?)
    }

    /// Whether all activations have ended.
    pub(crate) fn has_left(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| waiting.leaving && waiting.open.is_empty())
    }

    /// Returns the activations that have not yet captured themselves, if there are any.
    pub(crate) fn waiting(self) -> Option<Waiting> {
        self.waiting.filter(|waiting| !waiting.open.is_empty())
    }

    /// Connects the probes of an instance that has not yet run.
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
        let captured = Func::wrap(
            &mut *store,
            |caller: Caller<'_, T>, site: u32| -> wasmtime::Result<()> {
                Ok(captured(caller, site)?)
            },
        );
        let functions = [
            (TAKE_SNAPSHOT, capture),
            (HALF_FULL, full),
            (CAPTURED, captured),
        ];
        for (place, host) in functions {
            let set = table.set(&mut *store, place, Ref::Func(Some(host)));
            set.map_err(|_| RecordError::NoCounters)?;
        }
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(());
        };
        let counts = own.counts;
        let taken = instance.get_global(&mut *store, TAKEN_EXPORT);
        let places = Places::find(store, instance, probes, counts);
        let places = places.ok_or(RecordError::NoCounters)?;
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(());
        };
        own.places = Some(places);
        if let Some(waiting) = &mut own.waiting {
            (waiting.taken, waiting.count) = (taken, 0);
        }
        own.cut = (Instant::now(), 0);
        let first = match own.spacing {
            Spacing::Polls { cuts, .. } => cuts,
            Spacing::Time { .. } => FIRST,
        };
        // Snapshots contain only the table elements that change after this point.
        for table in 0..own_tables(store) {
            let began = pointers(store, table)?.unwrap_or_default();
            if let Some(own) = store.data_mut().snapshots() {
                own.tables[table] = began;
            }
        }
        write(probes, store, SNAPSHOT_AT, first)
    }
}

/// The number of polls before the first cut, while their rate is unknown.
const FIRST: u64 = 1 << 7;

/// The distance between two cuts is at least the clock divided by this number. So the number of
/// cuts grows only with the logarithm of the run's length.
const MOST_CUTS: u64 = 1 << 12;

pub(crate) fn write(
    probes: Memory,
    store: &mut impl AsContextMut,
    address: u64,
    value: u64,
) -> Result<(), RecordError> {
    let written = probes.write(store, address as usize, &value.to_le_bytes());
    written.map_err(|_| RecordError::NoCounters)
}

/// Cuts the path. Takes a snapshot if one is due and the state can be captured here.
fn capture<T: HasSnapshots + 'static>(mut caller: Caller<'_, T>) -> wasmtime::Result<()> {
    let begun = Instant::now();
    let Some(own) = caller.data_mut().snapshots() else {
        return Ok(());
    };
    let Some(places) = own.places.clone() else {
        return Ok(());
    };
    let probes = places.probes;
    if own.waiting.as_ref().is_some_and(|waiting| waiting.leaving) {
        write(probes, &mut caller, SNAPSHOT_AT, u64::MAX)?;
        write(probes, &mut caller, UNWIND_AT, 1)?;
        let calls = called_frames(&mut caller).ok_or_else(misfit)?;
        waiting_frames(&mut caller, 0, &calls)?;
        return Ok(());
    }
    own.ran += begun - own.cut.0;
    let clock = word(probes, &mut caller, CLOCK_AT)?;
    let own = caller.data_mut().snapshots();
    let is_due = own.is_some_and(|own| own.is_due(clock));
    let mut cost = None;
    if let Some(calls) = called_frames(&mut caller) {
        let lines = take_marks(&mut caller)?;
        let state = if is_due {
            captured_state(&mut caller, &places, (clock, &calls))?
        } else {
            None
        };
        let captured = Captured {
            clock,
            calls,
            lines,
            state,
            waits: None,
        };
        // The time is measured here, because the steps that follow may wait for the consumer.
        let took = begun.elapsed();
        cost = Some(took);
        let made = captured.is_snapshot();
        PathHost::cut(caller.as_context_mut(), captured)?;
        if let Some(own) = caller.data_mut().snapshots().filter(|_| made) {
            (own.last, own.ran) = ((clock, took), Duration::ZERO);
        }
    }
    let own = caller.data_mut().snapshots();
    let next = own.map_or(u64::MAX, |own| own.next_cut(begun, clock, cost));
    write(probes, &mut caller, SNAPSHOT_AT, next)?;
    Ok(())
}

/// Captures the state for a snapshot. Returns `None` if the state contains references, which cannot
/// be stored, or too many activations.
fn captured_state<T: HasSnapshots + 'static>(
    caller: &mut Caller<'_, T>,
    places: &Places,
    (clock, calls): (u64, &[(FuncId, u32)]),
) -> wasmtime::Result<Option<CapturedState>> {
    let globals = places.globals.iter();
    let globals = globals.map(|global| bits(&global.get(&mut *caller)));
    let globals = globals.collect::<Option<Vec<_>>>();
    let (Some(globals), Some(tables)) = (globals, changed_tables(caller)?) else {
        return Ok(None);
    };
    let own = caller.data_mut().snapshots();
    let held = if own.is_some_and(|own| own.waiting.is_some()) {
        waiting_frames(caller, clock, calls)?
    } else {
        shown_frames(caller, calls)?
    };
    let Some(held) = held else {
        return Ok(None);
    };
    let (memories, pages) = written_pages(caller, places)?;
    Ok(Some(CapturedState {
        log: caller.data().place(),
        held,
        globals,
        tables,
        memories,
        pages,
    }))
}

fn misfit() -> RecordError {
    RecordError::Snapshot(MachineError::Checkpoint)
}

/// Returns the debugger's view of all activations, innermost first. Returns `None` if some
/// activations are not the program's or contain references.
fn shown_frames<T: HasSnapshots + 'static>(
    caller: &mut Caller<'_, T>,
    calls: &[(FuncId, u32)],
) -> wasmtime::Result<Option<Vec<Arc<Activation>>>> {
    let mut next = caller.debug_exit_frames().next();
    let mut shown = Vec::with_capacity(calls.len());
    let all = |values: Vec<Val>| values.iter().map(bits).collect::<Option<Vec<_>>>();
    // The debugger shows the place after each call, so the places come from the backtrace.
    for &(function, _) in calls {
        let Some(frame) = next.take() else {
            return Ok(None);
        };
        let mut locals = Vec::new();
        for i in 0..frame.num_locals(&mut *caller)? {
            locals.push(frame.local(&mut *caller, i)?);
        }
        let mut operands = Vec::new();
        for i in 0..frame.num_stacks(&mut *caller)? {
            operands.push(frame.stack(&mut *caller, i)?);
        }
        let (Some(locals), Some(operands)) = (all(locals), all(operands)) else {
            return Ok(None);
        };
        let held = Held { locals, operands }.into();
        shown.push(Arc::new(Activation { function, held }));
        next = frame.parent(&mut *caller)?;
    }
    Ok(next.is_none().then_some(shown))
}

/// Returns the function and place in the rewritten module of each activation, innermost first.
/// Returns `None` if one of the activations is not the program's.
fn called_frames<T: HasSnapshots + 'static>(
    caller: &mut Caller<'_, T>,
) -> Option<Vec<(FuncId, u32)>> {
    let calls = WasmBacktrace::force_capture(&*caller);
    let reshaped = Arc::clone(&caller.data_mut().snapshots()?.reshaped);
    let places = calls.frames().iter().map(|call| {
        let id = FuncId::from_u32(call.func_index());
        let offset = u32::try_from(call.module_offset()?).ok()?;
        reshaped.binary_search(&id).is_err().then_some((id, offset))
    });
    places.collect()
}

/// Returns all activations, innermost first. Each activation captures itself when its call returns.
/// Returns `None` if the activations would capture too much. No snapshot is then taken here.
fn waiting_frames<T: HasSnapshots + 'static>(
    caller: &mut Caller<'_, T>,
    clock: u64,
    calls: &[(FuncId, u32)],
) -> Result<Option<Vec<Arc<Activation>>>, RecordError> {
    let own = caller.data_mut().snapshots();
    let waiting = own.and_then(|own| own.waiting.as_mut());
    let waiting = waiting.ok_or(RecordError::NoCounters)?;
    // The activations that have waited since an earlier snapshot are the outermost.
    let known = waiting.open.len();
    if known > calls.len() {
        return Err(misfit());
    }
    let outermost_first = calls.iter().rev();
    let new = outermost_first.skip(known).map(|(function, _)| *function);
    let slots = new.clone().map(|function| waiting.largest.get(&function));
    let slots = waiting.slots + slots.flatten().sum::<usize>();
    if slots > MOST_SLOTS {
        return Ok(None);
    }
    waiting.slots = slots;
    let new = new.map(|function| Arc::new(Activation::new(function)));
    waiting.open.extend(new);
    waiting.count += 1;
    if !waiting.leaving {
        waiting.last = clock;
    }
    let held = waiting.open.iter().rev().map(Arc::clone).collect();
    let (taken, count) = (waiting.taken, waiting.count);
    let taken = taken.ok_or(RecordError::NoCounters)?;
    let set = taken.set(caller, Val::I32(count));
    set.map_err(|_| RecordError::NoCounters)?;
    Ok(Some(held))
}

/// Stores the capture of the innermost waiting activation.
fn captured<T: HasSnapshots + 'static>(
    mut caller: Caller<'_, T>,
    site: u32,
) -> Result<(), RecordError> {
    let own = caller.data_mut().snapshots();
    let own = own.ok_or(RecordError::NoCounters)?;
    let probes = own.places.as_ref().map(|places| places.probes);
    let probes = probes.ok_or(RecordError::NoCounters)?;
    let waiting = own.waiting.as_mut().ok_or(RecordError::NoCounters)?;
    let site = *waiting.sites.get(site as usize).ok_or_else(misfit)?;
    let activation = waiting.open.pop().ok_or_else(misfit)?;
    let (at, bytes) = (waiting.at as usize, site.slots() * site.stride() as usize);
    let slots = probes.data(&caller).get(at..at + bytes);
    let slots = slots.ok_or(RecordError::NoCounters)?;
    let word = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks();
        words.first().map_or(0, |word| u64::from_le_bytes(*word))
    };
    let slots = slots.chunks_exact(site.stride() as usize);
    let mut locals = Vec::from_iter(slots.map(|slot| (word(slot), word(&slot[8..]))));
    let operands = locals.split_off(site.locals as usize);
    let held = Held { locals, operands };
    if activation.function != site.function || activation.held.set(held).is_err() {
        return Err(misfit());
    }
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

/// Returns a value's bits, or `None` for a non-null reference.
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

/// Returns the lines written since the previous call of this function, and clears their marks.
/// Time: O(lines of all memories).
fn take_marks<T: HasSnapshots + 'static>(
    store: &mut impl AsContextMut<Data = T>,
) -> Result<Vec<Lines>, RecordError> {
    let mut store = store.as_context_mut();
    let Some(own) = store.data_mut().snapshots() else {
        return Ok(Vec::new());
    };
    let Some(places) = own.places.clone() else {
        return Ok(Vec::new());
    };
    let starts = Arc::clone(&own.marks);
    let mut lines = Vec::new();
    for ((number, memory), start) in (0..).zip(&*places.memories).zip(&*starts) {
        let count = memory.data_size(&store) / LINE as usize;
        let marks = places
            .probes
            .data_mut(&mut store)
            .get_mut(*start as usize..);
        let marks = marks.and_then(|marks| marks.get_mut(..count));
        let marks = marks.ok_or(RecordError::NoMemory)?;
        for (page, marks) in (0..).zip(marks.chunks_mut(PAGE / LINE as usize)) {
            if marks.iter().fold(0, |any, mark| any | mark) == 0 {
                continue;
            }
            let bits = (0..).zip(&*marks);
            let bits = bits.fold(0, |bits, (i, mark)| bits | u64::from(*mark) << i);
            lines.push((number, page, bits));
            marks.fill(0);
        }
    }
    if let Some(own) = store.data_mut().snapshots() {
        let pages = lines.iter().map(|&(memory, page, _)| (memory, page));
        own.written.extend(pages);
    }
    Ok(lines)
}

/// Returns the sizes of the memories and copies of the pages written since the last snapshot. Time:
/// O(pages returned).
fn written_pages<T: HasSnapshots + 'static>(
    caller: &mut Caller<'_, T>,
    places: &Places,
) -> Result<(Vec<u64>, Vec<ChangedPage>), RecordError> {
    let own = caller.data_mut().snapshots();
    let own = own.ok_or(RecordError::NoCounters)?;
    let written = std::mem::take(&mut own.written);
    own.known.extend(&written);
    if own.known.len() > MOST_PAGES {
        return Err(RecordError::NoSnapshots(
            "writes more than 128 MiB of memory",
        ));
    }
    let memories = places.memories.iter();
    let sizes = memories.map(|memory| memory.data_size(&*caller) as u64);
    let sizes = sizes.collect();
    let mut pages = Vec::with_capacity(written.len());
    for (memory, page) in written {
        let bytes = places.memories[memory as usize].data(&*caller);
        let bytes = bytes.get(page as usize * PAGE..(page as usize + 1) * PAGE);
        let bytes = bytes.ok_or(RecordError::NoMemory)?;
        pages.push(((memory, page), bytes.into()));
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

/// Returns a table's elements as the engine's pointers, 0 for null. Returns `None` if it contains
/// references other than functions.
fn pointers<T: HasSnapshots + 'static>(
    store: &mut impl AsContextMut<Data = T>,
    table: usize,
) -> Result<Option<Vec<usize>>, RecordError> {
    let mut store = store.as_context_mut();
    let places = store.data_mut().snapshots();
    let places = places.and_then(|own| own.places.as_ref());
    let found = places.and_then(|places| places.tables.get(table).copied());
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

/// Returns the changed elements of the tables, or `None` if they are unknown. Time: O(elements).
fn changed_tables<T: HasSnapshots + 'static>(
    store: &mut impl AsContextMut<Data = T>,
) -> Result<Option<Vec<ChangedTable>>, RecordError> {
    let mut store = store.as_context_mut();
    let mut all = Vec::new();
    for table in 0..own_tables(&mut store) {
        let Some(now) = pointers(&mut store, table)? else {
            return Ok(None);
        };
        let Some(own) = store.data_mut().snapshots() else {
            return Ok(None);
        };
        let Some(instance) = own.places.as_ref().map(|places| places.instance) else {
            return Ok(None);
        };
        let addressed = Arc::clone(&own.addressed);
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
                for &index in &*addressed {
                    let name = inner_export(Inner::Function, index);
                    if let Some(function) = instance.get_func(&mut store, &name) {
                        functions.insert(function.to_raw(&mut store).addr(), index);
                    }
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
