//! Reports a slice by statement and by source line.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::error::Error;

use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset};
use afterimage_program::Program;
use afterimage_slice::{Operator, Slice};
use afterimage_wpp::{Segments, WholePath};

use afterimage_profile::{Line, ProfileError};
use afterimage_replay::steps::Operators;

/// A slice, counted for a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceCounts {
    /// The operators in the slice, by function and position.
    pub operators: Vec<SlicedOperator>,
    /// The source lines of these operators, by file and number.
    pub lines: Vec<SlicedLine>,
    /// The number of executions of operators in the slice.
    pub executions: u64,
    /// The number of lines that the run executed, wholly or in part.
    pub executed_lines: usize,
    /// The number of bytes of initial memory on which the slice depends. The module sets these
    /// bytes, or they are zero.
    pub initial: u64,
}

/// An operator of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicedOperator {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator.
    pub op: OpId,
    /// The operator's offset in the module.
    pub offset: OrigOffset,
    /// The operator's source line.
    pub line: Option<Line>,
    /// The number of the operator's executions in the slice.
    pub sliced: u64,
    /// The total number of the operator's executions.
    pub executed: u64,
}

/// A source line of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicedLine {
    /// The file and number of the line.
    pub line: Line,
    /// The number of the line's operators in the slice.
    pub operators: usize,
    /// The largest number of executions that any one operator of the line has in the slice.
    pub sliced: u64,
    /// The total number of executions of that operator.
    pub executed: u64,
}

impl SliceCounts {
    /// Counts a slice of the run with this path. Takes time linear in the path's nodes and in the
    /// operators of the executed functions.
    ///
    /// # Errors
    /// Returns an error if the module does not match the program.
    pub fn new<S: Segments>(
        slice: &Slice,
        program: &Program,
        path: &WholePath<S>,
        operators: &Operators<'_>,
    ) -> Result<Self, ProfileError>
    where
        S::Error: Error + 'static,
    {
        let blocks = executed_blocks(path);
        let executed = |function: FuncId, op: OpId| {
            let block = program.function(function).and_then(|f| f.block_of(op));
            let count = block.and_then(|block| blocks.get(&(function, block)));
            count.copied().unwrap_or(0)
        };
        let mut found = Vec::new();
        let mut lines: BTreeMap<Line, SlicedLine> = BTreeMap::new();
        for (&(function, op), &sliced) in &slice.operators {
            let Some(place) = operators.get(function, op)? else {
                continue;
            };
            let one = SlicedOperator {
                function,
                op,
                offset: place.offset,
                line: place.position.map(Line::from),
                sliced,
                executed: executed(function, op),
            };
            if let Some(line) = one.line {
                let known = lines.entry(line).or_insert(SlicedLine {
                    line,
                    operators: 0,
                    sliced: 0,
                    executed: 0,
                });
                known.operators += 1;
                if (one.sliced, one.executed) > (known.sliced, known.executed) {
                    (known.sliced, known.executed) = (one.sliced, one.executed);
                }
            }
            found.push(one);
        }
        Ok(Self {
            operators: found,
            lines: lines.into_values().collect(),
            executions: slice.executions(),
            executed_lines: executed_lines(program, &blocks, operators)?,
            initial: slice.initial.iter().map(|range| range.length).sum(),
        })
    }
}

/// Returns the number of executions of each operator in the whole run.
pub(super) fn executions<S: Segments>(
    operators: &BTreeSet<Operator>,
    program: &Program,
    path: &WholePath<S>,
) -> BTreeMap<Operator, u64>
where
    S::Error: Error + 'static,
{
    let blocks = executed_blocks(path);
    let count = |&(function, op): &Operator| {
        let block = program.function(function).and_then(|f| f.block_of(op));
        let count = block.and_then(|block| blocks.get(&(function, block)));
        ((function, op), count.copied().unwrap_or(0))
    };
    operators.iter().map(count).collect()
}

/// Returns the number of executions of each block.
fn executed_blocks<S: Segments>(path: &WholePath<S>) -> HashMap<(FuncId, BlockId), u64> {
    let mut nodes: HashMap<_, u64> = HashMap::new();
    for summary in path.segments().summaries() {
        for &(node, count) in &summary.node_counts {
            *nodes.entry(node).or_default() += count;
        }
    }
    let mut blocks: HashMap<_, u64> = HashMap::new();
    for (id, count) in nodes {
        if let Some(node) = path.nodes().get(id) {
            for &block in &node.blocks {
                *blocks.entry((node.function, block)).or_default() += count;
            }
        }
    }
    blocks
}

/// Returns the number of lines with an operator in an executed block.
fn executed_lines(
    program: &Program,
    blocks: &HashMap<(FuncId, BlockId), u64>,
    operators: &Operators<'_>,
) -> Result<usize, ProfileError> {
    let mut lines = HashSet::new();
    for &(function, block) in blocks.keys() {
        let all = operators.of(function)?;
        let known = program.function(function);
        let Some(block) = known.and_then(|function| function.cfg.blocks.get(block)) else {
            continue;
        };
        let own = all.get(block.ops.start.as_u32() as usize..block.ops.end.as_u32() as usize);
        let positions = own.into_iter().flatten().filter_map(|op| op.position);
        lines.extend(positions.map(Line::from));
    }
    Ok(lines.len())
}
