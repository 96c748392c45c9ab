//! Rewrites a whole module. Sections are copied unchanged, except where something is added.
//!
//! All additions are appended, so no index of the original changes. They are types, functions, the
//! probes' memory, exports and a data segment. Debug sections are left out, because they would be
//! wrong. Source lines come from the original module.

use std::ops::Range;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_placement::Plan;
use afterimage_program::{BlockEnd, Program};
use wasm_encoder::{BranchHint, BranchHints, Encode, Instruction, MemArg};
use wasmparser::{FunctionBody, MemoryType, Parser, Payload, ValType};

use crate::actions::{Actions, Step, site_name};
use crate::body::{Context, rewrite_body};
use crate::captures::{CaptureSite, Captures};
use crate::carry::Carriers;
use crate::clock::MayPoll;
use crate::layout::{
    Layout, MEMORY_EXPORT, RUNNING_AT, SNAPSHOT_EXPORT, START_EXPORT, TAKEN_EXPORT,
};
use crate::map::{BodyMap, OffsetMap, OriginalPlace, Run};
use crate::marks::{Marking, Marks};
use crate::path_probes::{self, PathPlaces, PathProbes};
use crate::sections::{Assembler, Rewriting};
use crate::types::TypePool;
use crate::{RewriteError, clock};

/// The places where a run can be stopped at an armed moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// At the entry of a function, before a counter counts the entry.
    Entry(FuncId),
    /// Right before a call, given by its function, its ordinal and its offset in the original
    /// module.
    Call(FuncId, OpId, OrigOffset),
}

/// The additions to a rewritten module, apart from probes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to add the stop clock. It polls at loop headers and at entries of functions, so that
    /// no run continues without polls.
    pub clock: bool,
    /// The way to take snapshots, if they are taken. Adds calls to the host's snapshot function
    /// where the clock polls. Before running the module, the caller puts the host's functions into
    /// the table [`SNAPSHOT_EXPORT`]. The caller also sets the time of the next snapshot in the
    /// word at [`SNAPSHOT_AT`](crate::SNAPSHOT_AT) of the memory. The module exports the state that
    /// snapshots contain; see [`inner_export`].
    pub snapshots: Option<Snapshots>,
    /// The way to mark written memory, if it is marked.
    pub marks: Option<Marking>,
    /// The place to arm, if there is one. The run stops there at the moment that words in the
    /// probes' memory specify.
    pub armed: Option<Armed>,
    /// Offsets in one function between which traps are to be reported exactly where they happened.
    /// Between them, the engine can neither merge a load with the operator that uses its value, nor
    /// drop a store that another store overwrites.
    pub apart: Option<Range<OrigOffset>>,
    /// Changes to large functions for the engine's sake. They do not affect the module's behaviour.
    pub large: Large,
    /// Whether to export the start function instead of starting it, so that the caller can prepare
    /// the memory first.
    pub export_start: bool,
    /// The header of the probes' memory, if the module is for engines without afterimage.
    pub external: Option<External>,
}

/// The way in which activations are captured when a snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// The engine's debugger captures activations. A module that writes its path must then report
    /// when a half of the ring is full.
    Debugged,
    /// Activations capture themselves. See [`can_capture`](crate::can_capture).
    Captured,
    /// Activations are not captured, and nothing is exported. The called function learns only that
    /// the run has reached the place.
    Cuts,
}

/// The parts of the original that a module with snapshots exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A memory.
    Memory,
    /// A table.
    Table,
    /// A global.
    Global,
    /// A function that a table may contain.
    Function,
}

/// Returns the name under which a module with snapshots exports a memory, table or global of the
/// original, or a function that a table may contain.
pub fn inner_export(kind: Inner, index: u32) -> String {
    let kind = match kind {
        Inner::Memory => "memory",
        Inner::Table => "table",
        Inner::Global => "global",
        Inner::Function => "function",
    };
    format!("{INNER}{kind}.{index}")
}

/// The prefix of the names that [`inner_export`] returns.
const INNER: &str = "afterimage.inner.";

/// Changes to large functions, so that the engine compiles them in reasonable time and memory.
#[derive(Clone, Debug)]
pub struct Large {
    /// The functions that get hinges. In these, merging the values of many joins would take the
    /// engine quadratic time.
    pub hinged: Vec<FuncId>,
    /// The number of branches between two hinges.
    pub interval: u32,
    /// The threshold above which values carried by labels go through locals. It is compared with
    /// the number of a function's carried values times the number of its blocks.
    pub carried: u64,
}

impl Default for Large {
    fn default() -> Self {
        Self {
            hinged: Vec::new(),
            // A prime number, so that hinges fall on different places of a repeated pattern.
            interval: 31,
            // This corresponds to 64 MiB of the engine's tables.
            carried: 1 << 24,
        }
    }
}

/// The header for the probes' memory of a module for other engines.
#[derive(Clone, Copy, Debug)]
pub struct External {
    /// The plan's mode, as the caller numbers it.
    pub mode: u16,
    /// The flags, as the caller defines them.
    pub flags: u16,
    /// The digest of the original module and the plan.
    pub digest: [u8; 32],
}

/// The measurements that the probes take.
#[derive(Clone, Copy, Debug, Default)]
pub enum Probes<'a> {
    /// No measurements.
    #[default]
    None,
    /// The counters of a plan.
    Counters(&'a Plan),
    /// The path, according to a plan.
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
    /// The bytes of the rewritten module.
    pub module: Vec<u8>,
    /// The map from offsets in the rewritten module to the original.
    pub map: OffsetMap,
    /// The layout of the probes' memory.
    pub layout: Layout,
    /// The address of each memory's marks in the probes' memory, if written memory is marked.
    pub marks: Vec<u64>,
    /// The sites where activations capture themselves, by number.
    pub sites: Vec<CaptureSite>,
    /// The number of counting probes.
    pub probes: u64,
    /// The functions that were changed for the engine, so that their frames differ from the
    /// program's. They ascend.
    pub reshaped: Vec<FuncId>,
}

/// Rewrites a module so that it takes the given measurements. Time: O(module size).
///
/// `program` must have been parsed from `bytes`.
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
            || path_probes::EXPORTS.contains(&n.as_str())
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

    // Rewrite the bodies first, because they may add types, which precede them in the module.
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
            probes += path_probes::add(path_probes.plan, i, function, &mut actions)?;
        }
        if hinged || context.carriers.is_some() {
            reshaped.push(function.id);
        } else if let Some(clocked) = clocked.as_ref().filter(|_| options.snapshots.is_some()) {
            // If there are tail calls, the stack does not show that a tail call has replaced an
            // activation.
            clock::add_snapshots(function, clocked[i] && !tail_calls, &mut actions);
        }
        // This step comes last, because a run that stops at a call has already counted the block
        // and written its part of the path.
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
    let rewriting = Rewriting {
        layout,
        types: &types,
        code,
        hints,
    };
    let mut out = Assembler::new(bytes, program, options, rewriting);
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

/// The custom section with branch hints. The original's section would contain wrong offsets, so it
/// is not copied.
pub(crate) const HINTS: &str = "metadata.code.branch_hint";

/// Returns hints that tell the engine which added branches are hardly ever taken.
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

/// Facts that `Program` does not keep, from the sections before the code.
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

/// Returns a function that counts an activation started from outside, and then calls the exported
/// function.
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
