//! Rewriting a whole module: sections are copied as they are, except where something is added.
//!
//! Everything added is appended (types, functions, the probes' memory, exports, a data segment), so no
//! index of the original changes. Debug sections are left out, because they would be
//! wrong; source lines come from the original module.

use std::ops::Range;

use afterimage_ids::{EntityRef, FuncId, OpId, OrigOffset};
use afterimage_placement::Plan;
use afterimage_program::{BlockEnd, Program};
use wasm_encoder::{
    BranchHint, BranchHints, ConstExpr, Encode, GlobalType, Instruction, MemArg, Section as _,
};
use wasmparser::{ExternalKind, FunctionBody, MemoryType, Parser, Payload, ValType};

use crate::actions::{Actions, Step, site_name};
use crate::body::{Context, rewrite_body};
use crate::captures::{CaptureSite, Captures};
use crate::carry::Carriers;
use crate::clock::MayPoll;
use crate::layout::{
    CALLED, CLOCK_AT, COUNT_AT, ENTRIES_AT, HEADER, LABEL, LAYOUT_VERSION, LIMIT_AT, Layout,
    MEMORY_EXPORT, RUNNING_AT, SNAPSHOT_EXPORT, START_EXPORT, TAKEN_EXPORT, VERSION_AT,
};
use crate::map::{BodyMap, OffsetMap, OriginalPlace, Run};
use crate::marks::{Marking, Marks};
use crate::paths::{self, PathPlaces, PathProbes};
use crate::types::{TypePool, val_type};
use crate::{RewriteError, clock};

/// Where a run can be stopped at an armed moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// At the entry of a function, before anything counts it.
    Entry(FuncId),
    /// Right before a call: its function, its ordinal and its offset in the original module.
    Call(FuncId, OpId, OrigOffset),
}

/// What a rewritten module is for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Add the stop clock: polls at loop headers and at entries, so that no run goes on without polls.
    pub clock: bool,
    /// Add calls of whoever makes snapshots, where the clock polls. The caller puts the host's functions into the table [`SNAPSHOT_EXPORT`] before it runs
    /// the module, and says when in the memory's word at [`SNAPSHOT_AT`](crate::SNAPSHOT_AT). The module exports what snapshots hold: see [`inner_export`].
    pub snapshots: Option<Snapshots>,
    /// Mark what is written to memory.
    pub marks: Option<Marking>,
    /// Arm a place: it stops the run at a moment that the memory's words name.
    pub armed: Option<Armed>,
    /// Keep the engine from making one instruction of a load and what takes its value, and from leaving out a store to what another one overwrites, so
    /// that a trap is reported where it happened: between these offsets, which are in one function.
    pub apart: Option<Range<OrigOffset>>,
    /// What large functions get for the engine's sake. It takes nothing from what a module does.
    pub large: Large,
    /// Export the start function instead of starting it, so that the caller can prepare the memory first.
    pub export_start: bool,
    /// Make a module for engines that know nothing of afterimage.
    pub external: Option<External>,
}

/// Who looks at the activations when a snapshot is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// The engine's debugger, under which a module that writes its path must tell where a half of the ring is full.
    Debugged,
    /// They capture themselves. See [`can_capture`](crate::can_capture).
    Captured,
    /// Nobody, and nothing is exported: what is called only learns that the run has come there.
    Cuts,
}

/// What of the original a module with snapshots exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A memory.
    Memory,
    /// A table.
    Table,
    /// A global.
    Global,
    /// A function that a table may hold.
    Function,
}

/// The name under which a module with snapshots exports one of the original's memories, tables, globals, or functions that a table may hold.
pub fn inner_export(kind: Inner, index: u32) -> String {
    let kind = match kind {
        Inner::Memory => "memory",
        Inner::Table => "table",
        Inner::Global => "global",
        Inner::Function => "function",
    };
    format!("{INNER}{kind}.{index}")
}

/// How these names begin.
const INNER: &str = "afterimage.inner.";

/// What large functions get so that the engine compiles them in time and in memory.
#[derive(Clone, Debug)]
pub struct Large {
    /// Functions with so many branches that the engine takes the square of their number for what their joins merge: they get hinges.
    pub hinged: Vec<FuncId>,
    /// How many branches they have between two of these.
    pub interval: u32,
    /// Values that a function's labels carry, times its blocks, from which on these values go through locals.
    pub carried: u64,
}

impl Default for Large {
    fn default() -> Self {
        Self {
            hinged: Vec::new(),
            // A prime, so that hinges are not at the same place of each round of a pattern.
            interval: 31,
            // 64 MiB of the engine's tables.
            carried: 1 << 24,
        }
    }
}

/// What a module for other engines says about itself in its probes' memory.
#[derive(Clone, Copy, Debug)]
pub struct External {
    /// The plan's mode, as the caller numbers it.
    pub mode: u16,
    /// Flags, as the caller defines them.
    pub flags: u16,
    /// Digest of the original module and the plan.
    pub digest: [u8; 32],
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default)]
pub enum Probes<'a> {
    /// Nothing.
    #[default]
    None,
    /// Counts.
    Counters(&'a Plan),
    /// The path.
    Paths(PathProbes<'a>),
}

impl<'a> From<Option<&'a Plan>> for Probes<'a> {
    fn from(plan: Option<&'a Plan>) -> Self {
        plan.map_or(Probes::None, Probes::Counters)
    }
}

/// A rewritten module.
#[derive(Debug)]
pub struct Rewritten {
    /// The module's bytes.
    pub module: Vec<u8>,
    /// From offsets in it back to the original.
    pub map: OffsetMap,
    /// Where the counters are.
    pub layout: Layout,
    /// Where the marks of each memory begin in the probes' memory, if what is written is marked.
    pub marks: Vec<u64>,
    /// Where activations capture themselves, by number.
    pub sites: Vec<CaptureSite>,
    /// How many probes count.
    pub probes: u64,
    /// The functions whose frames hold something else than the program's: those with what the engine needs of large ones. Ascending.
    pub reshaped: Vec<FuncId>,
}

/// Rewrites a module so that it measures something. O(module size).
///
/// `bytes` must be those that `program` was parsed from.
pub fn rewrite<'a>(
    bytes: &[u8],
    program: &Program,
    probes: impl Into<Probes<'a>>,
    options: &Options,
) -> Result<Rewritten, RewriteError> {
    let measured = probes.into();
    let plan = match measured {
        Probes::Counters(plan) => Some(plan),
        _ => None,
    };
    let path_probes = match measured {
        Probes::Paths(probes) => Some(probes),
        _ => None,
    };
    if let Some(probes) = &path_probes {
        probes.check()?;
    }
    let facts = Facts::read(bytes)?;
    if facts.export_names.iter().any(|n| {
        [MEMORY_EXPORT, START_EXPORT, SNAPSHOT_EXPORT, TAKEN_EXPORT].contains(&n.as_str())
            || paths::EXPORTS.contains(&n.as_str())
            || n.starts_with(INNER)
    }) {
        return Err(RewriteError::NameTaken(MEMORY_EXPORT.to_owned()));
    }
    let mut layout = Layout {
        counters: plan.map_or(0, |p| p.counters),
        entry_counters: if options.external.is_some() {
            program.exports.len() as u32
        } else {
            0
        },
        half: path_probes.map_or(0, |p| p.half),
        marks: 0,
        captured: 0,
    };
    let marks = options.marks;
    let marks = marks.map(|marking| Marks::new(layout.marks_at(), &facts.memories, marking));
    let marks = marks.transpose()?;
    layout.marks = marks.as_ref().map_or(0, |marks| marks.bytes);
    let starts = marks.as_ref().map(|marks| marks.starts.clone());
    let mut types = TypePool::new(program);
    let mut probes = 0u64;
    let clocked = options.clock.then(|| clock::polling_functions(program));

    // Bodies first: they may add types, which stand before them in the module.
    let mut code = Vec::new();
    let mut bodies = Vec::with_capacity(program.functions.len());
    let wrappers = if options.external.is_some() {
        program.exports.len()
    } else {
        0
    };
    let path_places = path_probes.map(|_| PathPlaces::new(program));
    ((program.functions.len() + wrappers) as u32).encode(&mut code);
    let mut context = Context {
        program,
        bytes,
        tags: &facts.tags,
        tables64: &facts.tables64,
        layout,
        memory: program.memories,
        external: options.external.is_some(),
        path_places,
        path_in_memory: false,
        hinges: None,
        carriers: None,
        snapshots: options
            .snapshots
            .map(|_| (types.intern(&[], &[]), program.tables)),
        tells_full: options.snapshots == Some(Snapshots::Debugged),
        captures: clocked
            .as_ref()
            .filter(|_| options.snapshots == Some(Snapshots::Captured))
            .map(|clocked| {
                let path = path_places.map_or(0, |places| places.exports().len());
                let taken = (program.globals.len() + path) as u32;
                let ty = types.intern(&[ValType::I32], &[]);
                Captures::new(taken, ty, MayPoll::new(program, clocked))
            }),
        types: &mut types,
        apart: options.apart.clone(),
        marks,
    };
    let mut blocks = program.functions.iter().flat_map(|f| f.cfg.blocks.values());
    let tail_calls = blocks.any(|block| matches!(block.end, BlockEnd::TailCall(_)));
    let mut reshaped = Vec::new();
    for (i, function) in program.functions.iter().enumerate() {
        let mut actions = Actions::default();
        match options.armed {
            Some(Armed::Entry(id)) if id == function.id => {
                actions.entry.push(Step::Armed(OriginalPlace::Prologue));
            }
            _ => {}
        }
        if let Some(clocked) = &clocked {
            clock::add_polls(function, clocked[i], &mut actions);
        }
        if let Some(plan) = plan {
            for probe in &plan.functions[i].probes {
                if !actions.add(&function.cfg, probe.site, Step::Count(probe.counter)) {
                    return Err(RewriteError::NoSuchSite {
                        function: function.id.as_u32(),
                        site: site_name(probe.site),
                    });
                }
            }
            probes += plan.functions[i].probes.len() as u64;
        }
        if options.external.is_none() {
            let range = function.body.start.0 as usize..function.body.end.0 as usize;
            let reader = wasmparser::BinaryReader::new(&bytes[range.clone()], range.start);
            context.carriers = Carriers::of(
                context.types,
                &FunctionBody::new(reader),
                function,
                options.large.carried,
            )?;
        }
        let hinged = options.large.hinged.contains(&function.id);
        context.hinges = hinged.then_some(options.large.interval);
        if let Some(path_probes) = path_probes {
            context.path_in_memory = hinged || path_probes.in_memory == Some(function.id);
            probes += paths::add(path_probes.plan, i, function, &mut actions)?;
        }
        if hinged || context.carriers.is_some() {
            reshaped.push(function.id);
        } else if let Some(clocked) = clocked.as_ref().filter(|_| options.snapshots.is_some()) {
            // Who enters a function in place of another one is not told from who calls it.
            clock::add_snapshots(function, clocked[i] && !tail_calls, &mut actions);
        }
        // Behind all else: whoever is stopped at a call has done what the block counts and writes.
        if let Some(Armed::Call(id, op, offset)) = options.armed
            && id == function.id
        {
            actions.before(op, Step::Armed(OriginalPlace::Operator(offset)));
        }
        if options.external.is_none() {
            actions.keep_traps_apart(function);
        }
        let apart = options.apart.as_ref();
        let apart = apart.is_some_and(|loads| {
            function.body.start < loads.end && loads.start < function.body.end
        });
        let host_calls = context.external && !program.imports.is_empty();
        let (body, map) = if actions.is_empty()
            && !host_calls
            && !apart
            && !hinged
            && context.carriers.is_none()
            && context.marks.is_none()
            && context.captures.is_none()
        {
            let range = function.body.start.0 as usize..function.body.end.0 as usize;
            let run = Run {
                new: 0,
                orig: function.body.start.0,
                len: range.len() as u32,
            };
            (
                bytes[range].to_vec(),
                BodyMap {
                    runs: vec![run],
                    ..BodyMap::default()
                },
            )
        } else {
            rewrite_body(&mut context, function, &actions)?
        };
        let size =
            u32::try_from(body.len()).map_err(|_| RewriteError::TooLarge("function body"))?;
        size.encode(&mut code);
        let start =
            u32::try_from(code.len()).map_err(|_| RewriteError::TooLarge("code section"))?;
        code.extend_from_slice(&body);
        bodies.push((start, start + size, map));
    }
    let taken = context.captures.as_ref().map(|captures| captures.taken);
    let mut sites = Vec::new();
    if let Some(captures) = context.captures {
        layout.captured = captures.bytes;
        sites = captures.sites;
    }
    for (i, (_, callee)) in program.exports.iter().enumerate().take(wrappers) {
        let (params, _) = types.function(program, *callee);
        let body = export_wrapper(
            params.len() as u32,
            *callee,
            program.memories,
            layout,
            i as u32,
        );
        body.encode(&mut code);
    }

    let hints = branch_hints(program, &bodies);
    let mut out = Assembler::new(bytes, program, options, layout, &types, code, hints);
    out.path_places = path_places;
    out.taken = taken;
    out.run()?;
    for body in &mut bodies {
        body.0 += out.code_at;
        body.1 += out.code_at;
    }
    let map = OffsetMap {
        first: program.imports.len() as u32,
        bodies,
    };
    Ok(Rewritten {
        module: out.out,
        map,
        layout,
        marks: starts.unwrap_or_default(),
        sites,
        probes,
        reshaped,
    })
}

/// The custom section of branch hints; the original's would name other offsets.
const HINTS: &str = "metadata.code.branch_hint";

/// Tells the engine which branches of ours are hardly ever taken.
fn branch_hints(program: &Program, bodies: &[(u32, u32, BodyMap)]) -> Option<BranchHints> {
    let mut hints = BranchHints::new();
    let mut any = false;
    for (function, (_, _, map)) in program.functions.iter().zip(bodies) {
        if !map.unlikely.is_empty() {
            any = true;
            let unlikely = map.unlikely.iter().map(|&at| BranchHint {
                branch_func_offset: at,
                branch_hint_value: 0,
            });
            hints.function_hints(function.id.as_u32(), unlikely);
        }
    }
    any.then_some(hints)
}

/// What the sections before the code say that `Program` does not keep.
#[derive(Default)]
struct Facts {
    tags: Vec<u32>,
    tables64: Vec<bool>,
    memories: Vec<MemoryType>,
    export_names: Vec<String>,
}

impl Facts {
    fn read(bytes: &[u8]) -> Result<Self, RewriteError> {
        let mut facts = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::TagSection(tags) => {
                    for tag in tags {
                        facts.tags.push(tag?.func_type_idx);
                    }
                }
                Payload::TableSection(tables) => {
                    for table in tables {
                        facts.tables64.push(table?.ty.table64);
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        facts.memories.push(memory?);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        facts.export_names.push(export?.name.to_owned());
                    }
                }
                Payload::CodeSectionStart { .. } => break,
                _ => {}
            }
        }
        Ok(facts)
    }
}

/// A function that counts an activation started from outside, and calls the exported function.
fn export_wrapper(
    params: u32,
    callee: FuncId,
    memory: u32,
    layout: Layout,
    i: u32,
) -> wasm_encoder::Function {
    let mut body = wasm_encoder::Function::new([]);
    let entry = MemArg {
        offset: layout.entry_address(i),
        align: 3,
        memory_index: memory,
    };
    let running = MemArg {
        offset: RUNNING_AT,
        align: 2,
        memory_index: memory,
    };
    let add_running = |body: &mut wasm_encoder::Function, by: i32| {
        body.instruction(&Instruction::I32Const(0));
        body.instruction(&Instruction::I32Const(0));
        body.instruction(&Instruction::I32Load(running));
        body.instruction(&Instruction::I32Const(by));
        body.instruction(&Instruction::I32Add);
        body.instruction(&Instruction::I32Store(running));
    };
    body.instruction(&Instruction::I32Const(0));
    body.instruction(&Instruction::I32Const(0));
    body.instruction(&Instruction::I64Load(entry));
    body.instruction(&Instruction::I64Const(1));
    body.instruction(&Instruction::I64Add);
    body.instruction(&Instruction::I64Store(entry));
    add_running(&mut body, 1);
    for p in 0..params {
        body.instruction(&Instruction::LocalGet(p));
    }
    body.instruction(&Instruction::Call(callee.as_u32()));
    add_running(&mut body, -1);
    body.instruction(&Instruction::End);
    body
}

/// The global that counts snapshots.
fn counter_global(out: &mut Vec<u8>) {
    GlobalType {
        val_type: wasm_encoder::ValType::I32,
        mutable: true,
        shared: false,
    }
    .encode(out);
    ConstExpr::i32_const(0).encode(out);
}

/// Puts the sections together, in the order that the format asks for.
struct Assembler<'a> {
    bytes: &'a [u8],
    program: &'a Program,
    options: &'a Options,
    layout: Layout,
    path_places: Option<PathPlaces>,
    /// The global that counts snapshots, if activations capture themselves.
    taken: Option<u32>,
    types: &'a TypePool,
    code: Vec<u8>,
    hints: Option<BranchHints>,
    out: Vec<u8>,
    /// Where the code section's contents begin in the output.
    code_at: u32,
    done: Added,
}

/// Which of the sections that get an addition have been written.
#[derive(Default)]
struct Added {
    types: bool,
    functions: bool,
    tables: bool,
    memory: bool,
    globals: bool,
    exports: bool,
    elements: bool,
    code: bool,
    data: bool,
}

const TYPE: u8 = 1;
const FUNCTION: u8 = 3;
const TABLE: u8 = 4;
const MEMORY: u8 = 5;
const GLOBAL: u8 = 6;
const EXPORT: u8 = 7;
const START: u8 = 8;
const ELEMENT: u8 = 9;
const DATA_COUNT: u8 = 12;
const CODE: u8 = 10;
const DATA: u8 = 11;
const CUSTOM: u8 = 0;

/// Sections in the order in which they stand in a module.
const ORDER: [u8; 13] = [
    TYPE, 2, FUNCTION, TABLE, MEMORY, 13, GLOBAL, EXPORT, START, ELEMENT, DATA_COUNT, CODE, DATA,
];

fn rank(id: u8) -> usize {
    ORDER.iter().position(|&o| o == id).unwrap_or(ORDER.len())
}

impl<'a> Assembler<'a> {
    fn new(
        bytes: &'a [u8],
        program: &'a Program,
        options: &'a Options,
        layout: Layout,
        types: &'a TypePool,
        code: Vec<u8>,
        hints: Option<BranchHints>,
    ) -> Self {
        Self {
            bytes,
            program,
            options,
            layout,
            path_places: None,
            taken: None,
            types,
            out: Vec::with_capacity(bytes.len() + code.len() / 4),
            code,
            hints,
            code_at: 0,
            done: Added::default(),
        }
    }

    fn run(&mut self) -> Result<(), RewriteError> {
        let bytes = self.bytes;
        self.out
            .extend_from_slice(bytes.get(..8).unwrap_or_default());
        let sections = Parser::new(0).parse_all(bytes);
        let known = sections.filter_map(|payload| payload.ok()?.as_section());
        let known = known
            .filter(|&(id, _)| id != CUSTOM)
            .map(|(_, range)| range.end);
        let last = known.max().unwrap_or(0);
        let mut reader = wasmparser::BinaryReader::new(bytes.get(8..).unwrap_or_default(), 8);
        while !reader.eof() {
            let id = reader.read_u8()?;
            let size = reader.read_var_u32()? as usize;
            let start = reader.original_position();
            let contents = reader.read_bytes(size)?;
            if id == CUSTOM {
                // The name section and others follow all that they are about.
                if start > last {
                    self.add_missing_before(u8::MAX);
                }
                let mut custom = wasmparser::BinaryReader::new(contents, start);
                let name = custom.read_string()?;
                let moved = ["sourceMappingURL", "external_debug_info", HINTS];
                if !name.starts_with(".debug_") && !moved.contains(&name) {
                    self.section(CUSTOM, contents);
                }
                continue;
            }
            self.add_missing_before(id);
            self.add_or_copy(id, contents, start)?;
        }
        self.add_missing_before(u8::MAX);
        Ok(())
    }

    fn section(&mut self, id: u8, contents: &[u8]) {
        self.out.push(id);
        (contents.len() as u32).encode(&mut self.out);
        self.out.extend_from_slice(contents);
    }

    /// Sections that the original lacks, but that something is added to, if they stand before `id`.
    fn add_missing_before(&mut self, id: u8) {
        let rank_of = rank(id);
        for missing in [
            TYPE, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, ELEMENT, CODE, DATA,
        ] {
            if rank(missing) < rank_of {
                // An empty section of the original: nothing but a count of zero.
                let wanted = match missing {
                    TYPE => !self.done.types && !self.types.added().is_empty(),
                    FUNCTION => !self.done.functions && self.options.external.is_some(),
                    TABLE => !self.done.tables && self.options.snapshots.is_some(),
                    GLOBAL => {
                        !self.done.globals && (self.path_places.is_some() || self.taken.is_some())
                    }
                    MEMORY => !self.done.memory,
                    EXPORT => !self.done.exports,
                    ELEMENT => !self.done.elements && !self.undeclared().is_empty(),
                    CODE => !self.done.code && self.options.external.is_some(),
                    _ => !self.done.data,
                };
                if wanted {
                    self.extend(missing, 0, &[]);
                }
            }
        }
    }

    fn add_or_copy(&mut self, id: u8, contents: &[u8], start: usize) -> Result<(), RewriteError> {
        match id {
            TYPE | FUNCTION | TABLE | MEMORY | GLOBAL | EXPORT | ELEMENT | CODE | DATA => {
                let mut reader = wasmparser::BinaryReader::new(contents, start);
                let count = reader.read_var_u32()?;
                let entries = &contents[reader.original_position() - start..];
                self.extend(id, count, entries);
            }
            DATA_COUNT => {
                let mut reader = wasmparser::BinaryReader::new(contents, start);
                let mut changed = Vec::new();
                (reader.read_var_u32()? + 1).encode(&mut changed);
                self.section(DATA_COUNT, &changed);
            }
            START if self.options.export_start => {}
            _ => self.section(id, contents),
        }
        Ok(())
    }

    /// Writes a section with the original's entries and ours after them.
    fn extend(&mut self, id: u8, count: u32, entries: &[u8]) {
        let mut contents = Vec::with_capacity(entries.len() + 64);
        let mut added = Vec::new();
        let mut more = 0u32;
        match id {
            TYPE => {
                self.done.types = true;
                for (params, results) in self.types.added() {
                    more += 1;
                    added.push(0x60);
                    for list in [params, results] {
                        (list.len() as u32).encode(&mut added);
                        for &ty in list {
                            // Types came from the module, or passed this conversion when a block was made of them.
                            if let Ok(ty) = val_type(ty) {
                                ty.encode(&mut added);
                            }
                        }
                    }
                }
            }
            FUNCTION => {
                self.done.functions = true;
                if self.options.external.is_some() {
                    for (_, callee) in &self.program.exports {
                        more += 1;
                        self.type_of(*callee).encode(&mut added);
                    }
                }
            }
            TABLE => {
                self.done.tables = true;
                if self.options.snapshots.is_some() {
                    more = 1;
                    wasm_encoder::TableType {
                        element_type: wasm_encoder::RefType::FUNCREF,
                        table64: false,
                        minimum: CALLED,
                        maximum: Some(CALLED),
                        shared: false,
                    }
                    .encode(&mut added);
                }
            }
            GLOBAL => {
                self.done.globals = true;
                if self.path_places.is_some() {
                    more = paths::globals(&mut added);
                }
                if self.taken.is_some() {
                    more += 1;
                    counter_global(&mut added);
                }
            }
            MEMORY => {
                self.done.memory = true;
                more = 1;
                wasm_encoder::MemoryType {
                    minimum: self.layout.pages(),
                    maximum: Some(self.layout.pages()),
                    memory64: false,
                    shared: false,
                    page_size_log2: None,
                }
                .encode(&mut added);
            }
            EXPORT => {
                self.done.exports = true;
                self.exports(count, entries);
                return;
            }
            ELEMENT => {
                self.done.elements = true;
                let functions = self.undeclared();
                if !functions.is_empty() {
                    more = 1;
                    // A declarative segment of function indices.
                    added.extend([3, 0]);
                    (functions.len() as u32).encode(&mut added);
                    for function in functions {
                        function.as_u32().encode(&mut added);
                    }
                }
            }
            CODE => {
                self.done.code = true;
                if let Some(hints) = self.hints.take() {
                    hints.append_to(&mut self.out);
                }
                let code = std::mem::take(&mut self.code);
                self.section(CODE, &code);
                self.code_at = (self.out.len() - code.len()) as u32;
                return;
            }
            _ => {
                self.done.data = true;
                more = 1;
                self.data_segment(&mut added);
            }
        }
        (count + more).encode(&mut contents);
        contents.extend_from_slice(entries);
        contents.extend_from_slice(&added);
        self.section(id, &contents);
    }

    /// The functions that `ref.func` may name only because they were exported: now their wrappers are.
    fn undeclared(&self) -> Vec<FuncId> {
        if self.options.external.is_none() {
            return Vec::new();
        }
        let exported = self.program.exports.iter().map(|(_, function)| *function);
        let mut functions =
            Vec::from_iter(exported.filter(|&f| self.program.address_taken.contains(f)));
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    fn type_of(&self, id: FuncId) -> u32 {
        let i = id.as_u32() as usize;
        let imports = &self.program.imports;
        let ty = imports.get(i).map_or_else(
            || self.program.functions[i - imports.len()].ty,
            |import| import.ty,
        );
        ty.index() as u32
    }

    fn exports(&mut self, count: u32, entries: &[u8]) {
        let mut contents = Vec::with_capacity(entries.len() + 64);
        let start = if self.options.export_start {
            self.program.start
        } else {
            None
        };
        let of_paths = self.path_places.map(|places| places.exports());
        let of_paths = of_paths.as_ref().map_or(&[][..], |exports| exports);
        let snapshots = self.options.snapshots.is_some();
        let inner = match self.options.snapshots {
            Some(Snapshots::Debugged | Snapshots::Captured) => self.inner(),
            Some(Snapshots::Cuts) | None => Vec::new(),
        };
        let added = 1
            + u32::from(snapshots)
            + u32::from(start.is_some())
            + u32::from(self.taken.is_some())
            + (of_paths.len() + inner.len()) as u32;
        (count + added).encode(&mut contents);
        if self.options.external.is_some() {
            // Each exported function is exported through its wrapper.
            let wrapper = (self.program.imports.len() + self.program.functions.len()) as u32;
            let mut reader = wasmparser::BinaryReader::new(entries, 0);
            let mut functions = 0;
            while let Ok(export) = reader.read::<wasmparser::Export<'_>>() {
                export.name.encode(&mut contents);
                let (kind, index) = match export.kind {
                    ExternalKind::Func => {
                        functions += 1;
                        (0, wrapper + functions - 1)
                    }
                    ExternalKind::Table => (1, export.index),
                    ExternalKind::Memory => (2, export.index),
                    ExternalKind::Global => (3, export.index),
                    _ => (4, export.index),
                };
                contents.push(kind);
                index.encode(&mut contents);
            }
        } else {
            contents.extend_from_slice(entries);
        }
        MEMORY_EXPORT.encode(&mut contents);
        contents.push(2);
        self.program.memories.encode(&mut contents);
        for (kind, index) in inner {
            inner_export(kind, index).as_str().encode(&mut contents);
            contents.push(match kind {
                Inner::Function => 0,
                Inner::Table => 1,
                Inner::Memory => 2,
                Inner::Global => 3,
            });
            index.encode(&mut contents);
        }
        if let Some(taken) = self.taken {
            TAKEN_EXPORT.encode(&mut contents);
            contents.push(3);
            taken.encode(&mut contents);
        }
        if snapshots {
            SNAPSHOT_EXPORT.encode(&mut contents);
            contents.push(1);
            self.program.tables.encode(&mut contents);
        }
        for (name, index) in of_paths {
            name.encode(&mut contents);
            contents.push(3);
            index.encode(&mut contents);
        }
        if let Some(start) = start {
            START_EXPORT.encode(&mut contents);
            contents.push(0);
            start.as_u32().encode(&mut contents);
        }
        self.section(EXPORT, &contents);
    }

    /// What of the original is exported for snapshots.
    fn inner(&self) -> Vec<(Inner, u32)> {
        let program = self.program;
        let all = [
            (Inner::Memory, program.memories),
            (Inner::Table, program.tables),
            (Inner::Global, program.globals.len() as u32),
        ];
        let all = all.into_iter();
        let all = all.flat_map(|(kind, count)| (0..count).map(move |index| (kind, index)));
        let functions = (program.imports.len() + program.functions.len()) as u32;
        let functions = (0..functions).filter(|&index| {
            let id = FuncId::from_u32(index);
            program.address_taken.contains(id)
        });
        let functions = functions.map(|index| (Inner::Function, index));
        all.chain(functions).collect()
    }

    /// The first bytes of the probes' memory.
    fn data_segment(&self, out: &mut Vec<u8>) {
        let mut header = vec![0u8; HEADER as usize];
        let mut put = |at: u64, bytes: &[u8]| {
            header[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        };
        put(0, &LABEL);
        put(VERSION_AT, &LAYOUT_VERSION.to_le_bytes());
        if let Some(external) = &self.options.external {
            put(VERSION_AT + 4, &external.mode.to_le_bytes());
            put(VERSION_AT + 6, &external.flags.to_le_bytes());
            put(VERSION_AT + 8, &external.digest);
        }
        put(COUNT_AT, &u64::from(self.layout.counters).to_le_bytes());
        put(CLOCK_AT, &0u64.to_le_bytes());
        put(LIMIT_AT, &u64::MAX.to_le_bytes());
        put(
            ENTRIES_AT,
            &u64::from(self.layout.entry_counters).to_le_bytes(),
        );
        2u32.encode(out);
        self.program.memories.encode(out);
        Instruction::I32Const(0).encode(out);
        Instruction::End.encode(out);
        header.as_slice().encode(out);
    }
}
