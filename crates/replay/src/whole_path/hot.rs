//! Hot paths, which are the executed Ball–Larus paths with their numbers of executions.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, SecondaryMap};
use afterimage_program::Program;
use afterimage_wpp::{Continuation, PathError, Segments, WholePath};

use afterimage_profile::body::decode;
use afterimage_profile::{Line, ProfileError, Source, Stop, walk};

/// A path that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotPath {
    /// The path's node in the whole path.
    pub node: NodeId,
    /// The function that executed the path.
    pub function: FuncId,
    /// The blocks of the path, in order.
    pub blocks: Box<[BlockId]>,
    /// The place where the path's activation continues.
    pub then: Continuation,
    /// The number of executions.
    pub count: u64,
    /// The number of blocks executed in all executions of the path.
    pub executed: u64,
    /// The number of instructions executed in all executions of the path.
    pub instructions: u64,
    /// The source lines of the path's code, ascending.
    pub lines: Vec<Line>,
}

/// The hot paths of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotPaths {
    /// The paths, the hottest first.
    pub rows: Vec<HotPath>,
    /// The number of distinct executed paths.
    pub paths: u64,
    /// The number of executions of paths.
    pub executions: u64,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The number of paths that [`Listed::shows`] left out of the rows.
    pub left_out: u64,
}

/// The paths to list.
#[derive(Clone, Copy)]
pub struct Listed<'a> {
    /// Counts only the paths of this function.
    pub function: Option<FuncId>,
    /// Selects the functions to list. The paths of all functions are counted.
    pub shows: &'a dyn Fn(FuncId) -> bool,
    /// The largest number of rows.
    pub top: Option<usize>,
}

/// The reason why hot paths cannot be found. `E` is the reason why a segment cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum HotError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// The program's bodies cannot be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A path belongs to a function that the program does not have.
    #[error("the path names {0}, which the program does not define")]
    NoFunction(FuncId),
    /// The numbers overflow, which happens only in a damaged file.
    #[error("the path is longer than any run can be")]
    TooMany,
}

fn add<E>(a: u64, b: u64) -> Result<u64, HotError<E>> {
    a.checked_add(b).ok_or(HotError::TooMany)
}

/// A program with its graphs, the bytes from which it was parsed, and the source positions of its
/// code.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// The parsed program, with its graphs.
    pub program: &'a Program,
    /// The bytes from which the program was parsed.
    pub module: &'a [u8],
    /// The source positions of the program's code.
    pub source: &'a dyn Source,
}

impl HotPaths {
    /// Returns the `top` paths with the most executed instructions, for one function or all. The
    /// sums are over all paths of these functions. `stops` lists the places of the open activations
    /// at the end of the run, after which no code was executed. `continuations` contains the place
    /// where each node's activation continues.
    ///
    /// Takes time linear in the number of nodes and segments, and in the bodies of executed
    /// functions. Opens one segment.
    ///
    /// # Errors
    /// Returns an error if the path or a body cannot be read, or the path does not match the body.
    pub fn of<S: Segments>(
        path: &WholePath<S>,
        continuations: &[Continuation],
        code: Code<'_>,
        stops: &[Stop],
        listed: Listed<'_>,
    ) -> Result<Self, HotError<S::Error>> {
        let Code {
            program, module, ..
        } = code;
        let mut counts: SecondaryMap<NodeId, u64> = SecondaryMap::new();
        for summary in path.segments().summaries() {
            for &(node, count) in &summary.node_counts {
                counts[node] = add(counts[node], count)?;
            }
        }
        let wanted = |of: FuncId| listed.function.is_none_or(|function| function == of);
        let executed = path
            .nodes()
            .iter()
            .filter(|&(id, node)| counts[id] > 0 && node.left_out == 0 && wanted(node.function));
        let mut order: Vec<_> = executed.map(|(id, node)| (node.function, id)).collect();
        order.sort_unstable();
        let mut hot = Self::default();
        let mut body = Vec::new();
        let missed = missed(path, program, module, stops)?;
        // This pair contains the current function, and the number of instructions in each of its
        // blocks.
        let mut lengths: (Option<FuncId>, SecondaryMap<BlockId, u64>) = Default::default();
        for (function, id) in order {
            if lengths.0 != Some(function) {
                let defined = program.function(function);
                let defined = defined.ok_or(HotError::NoFunction(function))?;
                decode(program, module, defined, &mut body)?;
                lengths = (Some(function), SecondaryMap::new());
                for (block, code) in walk::code_blocks(defined) {
                    let ops = body.get(code.ops.start.index()..code.ops.end.index());
                    let ops = ops.unwrap_or_default().iter();
                    lengths.1[block] = ops.filter(|op| op.instruction).count() as u64;
                }
            }
            let node = &path.nodes()[id];
            let once: u64 = node.blocks.iter().map(|&block| lengths.1[block]).sum();
            let cut = missed.filter(|&(at, _)| at == id).map_or(0, |(_, ops)| ops);
            let times = |length| counts[id].checked_mul(length).ok_or(HotError::TooMany);
            let row = HotPath {
                node: id,
                function,
                blocks: node.blocks.clone(),
                then: continuations.get(id.index()).copied().unwrap_or_default(),
                count: counts[id],
                executed: times(node.length())?,
                // The block in which the run ended belongs to this path.
                instructions: times(once)? - cut,
                lines: Vec::new(),
            };
            hot.paths += 1;
            hot.executions = add(hot.executions, row.count)?;
            hot.blocks = add(hot.blocks, row.executed)?;
            hot.instructions = add(hot.instructions, row.instructions)?;
            hot.rows.push(row);
        }
        hot.rows.retain(|row| (listed.shows)(row.function));
        hot.left_out = hot.paths - hot.rows.len() as u64;
        hot.rows
            .sort_by_key(|row| Reverse((row.instructions, row.executed)));
        hot.rows.truncate(listed.top.unwrap_or(usize::MAX));
        hot.add_lines(code)?;
        Ok(hot)
    }

    fn add_lines(&mut self, code: Code<'_>) -> Result<(), ProfileError> {
        let Code {
            program,
            module,
            source,
        } = code;
        if source.files().is_empty() {
            return Ok(());
        }
        let mut order: Vec<_> = (0..self.rows.len()).collect();
        order.sort_by_key(|&row| self.rows[row].function);
        let (mut body, mut operators, mut known) = (Vec::new(), Vec::new(), None);
        for row in order {
            let row = &mut self.rows[row];
            let Some(function) = program.function(row.function) else {
                continue;
            };
            if known != Some(row.function) {
                decode(program, module, function, &mut body)?;
                walk::positions(function, &body, source, &mut operators);
                known = Some(row.function);
            }
            let ops = row.blocks.iter().flat_map(|&block| {
                let ops = &function.cfg.blocks[block].ops;
                &operators[ops.start.index()..ops.end.index()]
            });
            let lines: BTreeSet<Line> = ops.filter_map(|op| op.position.map(Line::from)).collect();
            row.lines = lines.into_iter().collect();
        }
        Ok(())
    }
}

/// If the run ended in the last block of a path, returns the path executed last, and the number of
/// instructions of this block that were not executed.
///
/// All other open activations wait for calls, which end their blocks.
fn missed<S: Segments>(
    path: &WholePath<S>,
    program: &Program,
    module: &[u8],
    stops: &[Stop],
) -> Result<Option<(NodeId, u64)>, HotError<S::Error>> {
    if stops.is_empty() {
        return Ok(None);
    }
    let Some(visit) = path.cursor().seek(path.length())? else {
        return Ok(None);
    };
    let node = &path.nodes()[visit.node];
    let own =
        |stop: &&Stop| stop.function == node.function && node.blocks.last() == Some(&stop.block);
    // If the block has several stops, all except the innermost activation's stop come after a call.
    let Some(stop) = stops.iter().filter(own).min_by_key(|stop| stop.next) else {
        return Ok(None);
    };
    let function = program.function(stop.function);
    let function = function.ok_or(HotError::NoFunction(stop.function))?;
    let mut body = Vec::new();
    decode(program, module, function, &mut body)?;
    let end = function.cfg.blocks[stop.block].ops.end;
    let left = body.get(stop.next.index()..end.index()).unwrap_or_default();
    let left = left.iter().filter(|op| op.instruction).count() as u64;
    Ok(Some((visit.node, left)))
}
