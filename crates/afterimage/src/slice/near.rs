//! Finds the lines of the user's own code on which an execution depends, nearest first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use afterimage_analyses::slices::{self, Nearby, SliceAbout, SliceAlong, Through, Visibility};
use afterimage_ids::{BlockId, Counts, FuncId, FunctionCounts, OpId};
use afterimage_present::document::objects::Position;
use afterimage_profile::{Source, block_counts};
use afterimage_program::{EdgeKind, FileId, Function, Location};
use afterimage_replay::steps::{OperatorPlace, Operators};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::start::SliceStart;
use crate::explain::Scene;

/// Asks for the nearest lines of the user's own code on which some executions depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearQuery {
    /// The executions: `parser.c:42#7`, `@0x1f3#last`. Executions without a slice are skipped,
    /// unless none has a slice.
    pub at: Vec<String>,
    /// Whether to also start at the operator that killed the program, and at its operands.
    pub trap: bool,
    /// The number of lines after which the search ends.
    pub enough: usize,
    /// The number of lines whose nearest executions are named. Naming an execution requires
    /// counting, which takes time.
    pub named: usize,
}

/// A line on which an execution depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLine {
    /// The position of the line.
    pub source: Position,
    /// The nearest execution of the line, as `@0x1f3#7`. Only for the first
    /// [`named`](NearQuery::named) lines.
    pub at: Option<String>,
    /// The distance of the line: the total length of the dependences in between. Data dependences
    /// are the shortest.
    pub distance: u32,
    /// The kind of the shortest chain of dependences: `values`, `addresses` if the chain contains
    /// an address of a read or write, or `control` if it contains a branch or call.
    pub through: &'static str,
}

/// The lines nearest to some executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearLines {
    /// The lines, the nearest first.
    pub lines: Vec<NearLine>,
    /// Whether there may be further lines, because enough were found or 30,000 executions were
    /// examined.
    pub cut: bool,
    /// The executed lines of the functions of these lines. `None` if the run's counts are unknown.
    pub ran: Option<Ran>,
}

/// The executed lines of some functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ran {
    /// The lines of the user's own code with an execution in one of the functions, by file.
    pub lines: BTreeMap<String, BTreeSet<u32>>,
    /// The lines with an executed branch that always went in the same direction. Code that such a
    /// branch skipped leaves no dependence.
    pub one_way: Vec<Position>,
}

/// The maximum number of executions to examine.
const EXECUTIONS: usize = 30_000;

impl NearQuery {
    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<NearLines> {
        let session = scene.traced;
        let (mut criteria, mut refused) = (Vec::new(), None);
        let trap = self.trap.then_some(SliceAbout::Trap).into_iter();
        let statements = self.at.iter().cloned();
        let statements = statements.map(|at| SliceAbout::Statement { at });
        for about in trap.chain(statements) {
            match SliceStart::find(scene, &about, SliceAlong::Thin) {
                Ok(start) => criteria.extend(start.taken.into_iter().chain(start.criteria)),
                Err(error) => refused = Some(error),
            }
        }
        if let Some(refused) = refused.filter(|_| criteria.is_empty()) {
            return Err(refused);
        }
        let operators = session.operators();
        let mut origins = HashMap::new();
        let mut failed = None;
        let mut place = |function: FuncId, op: OpId| {
            let name = scene.names.function(function);
            let all = match operators.of(function) {
                Ok(all) => all,
                Err(error) => {
                    failed = Some(error);
                    return Visibility::Elsewhere;
                }
            };
            let Some(operator) = all.get(op.as_u32() as usize) else {
                return Visibility::Elsewhere;
            };
            let is_frame = |_: &FuncId| lowers_stack(&all);
            let is_frame = *origins.entry(function).or_insert_with_key(is_frame) == Some(op);
            if is_frame || allocates(name) && !operator.name.starts_with("memory.") {
                return Visibility::Origin;
            }
            let own = |at: &Location| scene.folded().shows(at.file);
            let around = || scene.folded().around(operator.offset).into_iter().next();
            match operator.position.filter(own).or_else(around) {
                Some(Location { file, line, .. }) => Visibility::Line((file, line)),
                None => Visibility::Elsewhere,
            }
        };
        let found = slices::nearest(
            &scene.host,
            session.bytes(),
            &criteria,
            &mut place,
            (self.enough, EXECUTIONS),
        )?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        // A recording without an end has no counts.
        let counts = session.ensure_counts().ok().flatten();
        let ran = counts.map(|counts| ran(scene, &operators, &found.lines, &counts));
        let described = |(index, one): (usize, Nearby<(FileId, u32)>)| {
            let (file, line) = one.line;
            let at = match index < self.named {
                true => Some(scene.named(one.spot)?),
                false => None,
            };
            Ok(NearLine {
                at,
                source: Position::line(&scene.source().files()[file.0 as usize], line),
                distance: one.distance,
                through: match one.through {
                    Through::Values => "values",
                    Through::Addresses => "addresses",
                    Through::Control => "control",
                },
            })
        };
        let lines = found.lines.into_iter().enumerate().map(described);
        Ok(NearLines {
            lines: lines.collect::<Result<_>>()?,
            cut: found.cut,
            ran: ran.transpose()?,
        })
    }
}

/// Returns the executed lines of the functions of some lines. The functions of the first lines come
/// first.
fn ran(
    scene: &Scene<'_, '_>,
    operators: &Operators<'_>,
    lines: &[Nearby<(FileId, u32)>],
    counts: &Counts,
) -> Result<Ran> {
    let functions = &scene.traced.program().functions;
    let functions: HashMap<_, _> = functions
        .iter()
        .zip(&counts.functions)
        .map(|(function, counts)| (function.id, (function, counts)))
        .collect();
    let (mut executed, mut one_way, mut known) = (HashSet::new(), Vec::new(), HashSet::new());
    for one in lines {
        let (id, ..) = one.spot;
        if known.insert(id)
            && let Some(&(function, counts)) = functions.get(&id)
        {
            let all = operators.of(id)?;
            let line = |op: OpId| {
                let at = all.get(op.as_u32() as usize)?.position?;
                scene.folded().shows(at.file).then_some((at.file, at.line))
            };
            let blocks = block_counts(function, counts)?;
            let blocks = function.cfg.blocks.iter().filter(|(id, _)| blocks[*id] > 0);
            let ops =
                blocks.flat_map(|(_, block)| block.ops.start.as_u32()..block.ops.end.as_u32());
            executed.extend(ops.filter_map(|op| line(OpId::from_u32(op))));
            one_way.extend(one_way_branches(function, counts).filter_map(line));
        }
    }
    let file = |file: FileId| scene.source().files()[file.0 as usize].as_str();
    let mut ran = Ran::default();
    for (at, line) in executed {
        ran.lines
            .entry(file(at).to_owned())
            .or_default()
            .insert(line);
    }
    let one_way = one_way.into_iter();
    ran.one_way = one_way
        .map(|(at, line)| Position::line(file(at), line))
        .collect();
    Ok(ran)
}

/// Returns the executed branches that always went in the same direction.
fn one_way_branches(function: &Function, counts: &FunctionCounts) -> impl Iterator<Item = OpId> {
    let mut branches: BTreeMap<BlockId, (OpId, Vec<bool>)> = BTreeMap::new();
    for ((_, edge), count) in function.cfg.edges.iter().zip(&counts.edges) {
        use EdgeKind::{Else, NotTaken, Table, Taken, Then};
        let is_choice = matches!(edge.kind, Taken | NotTaken | Then | Else | Table(_));
        if let Some(op) = edge.op.filter(|_| is_choice) {
            let (_, taken) = branches.entry(edge.from).or_insert((op, Vec::new()));
            taken.push(*count > 0);
        }
    }
    branches.into_values().filter_map(|(op, taken)| {
        let ways = taken.iter().filter(|taken| **taken).count();
        (taken.len() > 1 && ways == 1).then_some(op)
    })
}

/// Finds the operator that makes room for a function's frame by lowering the stack pointer, which
/// compilers keep in a global.
fn lowers_stack(operators: &[OperatorPlace]) -> Option<OpId> {
    const BEGINNING: usize = 12;
    let begin = &operators[..operators.len().min(BEGINNING)];
    let reads = begin
        .iter()
        .position(|one| one.name.starts_with("global.get"))?;
    let lowers = begin
        .iter()
        .skip(reads)
        .position(|one| one.name.starts_with("i32.sub"))?;
    Some(OpId::from_u32((reads + lowers) as u32))
}

/// Whether a function of the C, C++ or Rust library allocates or frees memory. The data at an
/// allocated address do not depend on the address.
fn allocates(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "dlmalloc",
        "dlcalloc",
        "dlrealloc",
        "dlfree",
        "aligned_alloc",
        "posix_memalign",
        "internal_memalign",
        "dispose_chunk",
        "sbrk",
        "try_realloc_chunk",
        "memalign",
        "dlmemalign",
    ];
    NAMES.contains(&name)
        || name.starts_with("operator new")
        || name.starts_with("__rustc::__r")
        || name.starts_with("__rust_")
}
