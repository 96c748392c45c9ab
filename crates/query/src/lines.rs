//! The counts of source lines.
//!
//! A line's count is the number of *arrivals* at it. An execution of an
//! instruction of line L is an arrival at L if the instruction that the same
//! activation executed before it is of another line or of none, or if there
//! is no such instruction, or if control came to it over a back edge or
//! through a vertex that executes nothing (the root of a function that begins with a
//! loop; the dispatch of an exception to its handler).
//!
//! An unconditional jump is nowhere: it is passed over. Compilers give the jump at the end of an arm the line of its `if`, and
//! the jump at the end of a loop the line of its `while`, and nobody who reads the source arrives there a second time. (It
//! is still an instruction of its line.) So control that passes a block of nothing but a jump comes, at the block behind it, from
//! where it was before.
//!
//! An edge that was taken leads to an arrival even if the run was stopped right before the
//! instruction that it leads to, or in jumps on the way.
//!
//! Every arrival happens at a fixed place: between two neighbours in a block,
//! or at a block's entry over a fixed edge. So the counts of operators and edges give
//! the number exactly: the sum of the counts of these places. A call on a line
//! and the rest of that line after it are one arrival; a loop on one line arrives once
//! per iteration; of a line's several copies (inlined, generic) all arrivals are added.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, EntityRef, FunctionCounts, OpId, SecondaryMap};
use afterimage_program::Function;

use crate::walk::code_blocks;
use crate::{Line, OperatorCount};

/// What happened on a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCount {
    /// Arrivals at the line.
    pub arrivals: u64,
    /// Instructions executed that come from the line.
    pub instructions: u64,
}

/// The first and the last line of a block that executes something; each may be unknown.
type Ends = Option<(Option<Line>, Option<Line>)>;

/// A fixed place where somebody arrives at a line whenever control comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// At an operator within a block.
    At(OpId),
    /// At the beginning of an activation.
    Entry,
    /// Over an edge.
    Over(EdgeId),
}

/// Adds the lines of one function to `lines`, those that never ran included.
/// `operators` is what [`Profile::operators`](crate::Profile::operators) gives for it.
/// O(operators + edges). `None` if a sum does not fit into 64 bits.
pub(crate) fn add_lines(
    function: &Function,
    counts: &FunctionCounts,
    operators: &[OperatorCount],
    lines: &mut HashMap<Line, LineCount>,
) -> Option<()> {
    for (line, arrival) in arrivals(function, operators) {
        let count = match arrival {
            Arrival::At(op) => operators[op.index()].count,
            Arrival::Entry => counts.entries,
            Arrival::Over(edge) => counts.edges[edge.index()],
        };
        let sum = &mut lines.entry(line).or_default().arrivals;
        *sum = sum.checked_add(count)?;
    }
    for operator in operators {
        let Some(line) = line_of(operator) else {
            continue;
        };
        let sum = &mut lines.entry(line).or_default().instructions;
        *sum = sum.checked_add(operator.count)?;
    }
    Some(())
}

/// All places of a function where somebody arrives at a line; within a block in the order of its operators. Of the operators,
/// their counts do not matter. O(operators + edges).
pub(crate) fn arrivals(function: &Function, operators: &[OperatorCount]) -> Vec<(Line, Arrival)> {
    let mut arrivals = Vec::new();
    let mut arrive = |line: Option<Line>, arrival| {
        arrivals.extend(line.map(|line| (line, arrival)));
    };
    let mut ends = SecondaryMap::<BlockId, Ends>::with_capacity(function.cfg.blocks.len());
    for (id, block) in code_blocks(function) {
        let operators = &operators[block.ops.start.index()..block.ops.end.index()];
        let mut steps = operators
            .iter()
            .filter(|operator| operator.instruction && !operator.jump);
        let Some(first) = steps.next().map(line_of) else {
            continue;
        };
        let mut last = first;
        for operator in steps {
            let line = line_of(operator);
            if line != last {
                arrive(line, Arrival::At(operator.op));
            }
            last = line;
        }
        ends[id] = Some((first, last));
    }
    let jumps = Jumps::of(function, operators);
    let (first_block, _) = jumps.behind(function.cfg.graph.root(), false);
    if let Some((first, _)) = first_block.and_then(|block| ends[block]) {
        arrive(first, Arrival::Entry);
    }
    for (edge, transfer) in function.cfg.edges.iter() {
        // What passes a block of nothing but a jump is counted where it comes from.
        if jumps.0[transfer.from].is_some() {
            continue;
        }
        let (target, back) = jumps.behind(transfer.to, transfer.back);
        let Some((first, _)) = target.and_then(|block| ends[block]) else {
            continue;
        };
        let same_line = ends[transfer.from].is_some_and(|(_, last)| last == first);
        if back || !same_line {
            arrive(first, Arrival::Over(edge));
        }
    }
    arrivals
}

/// For each block of nothing but a jump: the first block behind it that is none, and whether a back edge leads
/// there. No block: jumps lead round in a circle.
struct Jumps(SecondaryMap<BlockId, Option<(Option<BlockId>, bool)>>);

impl Jumps {
    /// O(operators + blocks): each block is followed once.
    fn of(function: &Function, operators: &[OperatorCount]) -> Self {
        let cfg = &function.cfg;
        let mut alone = SecondaryMap::<BlockId, bool>::with_capacity(cfg.blocks.len());
        for (id, block) in code_blocks(function) {
            let own = &operators[block.ops.start.index()..block.ops.end.index()];
            let mut instructions = own.iter().filter(|operator| operator.instruction);
            alone[id] = instructions.next().is_some_and(|first| first.jump)
                && instructions.next().is_none();
        }
        let mut behind = SecondaryMap::with_capacity(cfg.blocks.len());
        let mut path = Vec::new();
        let mut on_path = SecondaryMap::<BlockId, bool>::with_capacity(cfg.blocks.len());
        for (id, _) in code_blocks(function) {
            let mut at = id;
            let mut found = loop {
                if !alone[at] {
                    break (Some(at), false);
                }
                if let Some(known) = behind[at] {
                    break known;
                }
                let Some(&edge) = cfg.graph.out_edges(at).first().filter(|_| !on_path[at]) else {
                    break (None, false);
                };
                on_path[at] = true;
                path.push((at, cfg.edges[edge].back));
                at = cfg.graph.to(edge);
            };
            while let Some((block, back)) = path.pop() {
                found = (found.0, found.1 || back);
                behind[block] = Some(found);
            }
        }
        Self(behind)
    }

    /// Where control comes to from an edge into this block, and whether over a back edge.
    fn behind(&self, block: BlockId, back: bool) -> (Option<BlockId>, bool) {
        match self.0[block] {
            None => (Some(block), back),
            Some((target, more)) => (target, back || more),
        }
    }
}

pub(crate) fn line_of(operator: &OperatorCount) -> Option<Line> {
    operator.position.map(Line::from)
}
