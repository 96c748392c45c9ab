//! Counts source lines, by the definition that all commands share.
//!
//! A line's count is the number of *arrivals* at it. An execution of an instruction of line L is an
//! arrival at L in these cases:
//! - the previous instruction of the same activation belongs to a different line or to no line, or
//!   there is no such instruction;
//! - control came around a loop that can iterate without leaving L, over a back edge on a cycle of
//!   blocks that belong entirely to L. A loop of library code that takes its line from the user's
//!   code into which it was inlined is not such a loop;
//! - control came through a vertex that executes nothing, which is the root of a function that
//!   begins with a loop, or an exception's dispatch to its handler.
//!
//! So control arrives at `while (*p) p++;`, written on one line, once per iteration. If the body of
//! a loop is on later lines, control arrives at its `for (…; …; i++)` once. It arrives again
//! after each execution of the body. If a loop can iterate both with and without leaving its line,
//! both kinds of arrivals count.
//!
//! A jump (`br`) is passed over if its line has other code in the function. Compilers give the jump
//! at the end of an arm the line of its `if`, and the jump at the end of a loop the line of its
//! `while`. A reader of the source does not arrive there a second time. However, the jump counts as
//! an instruction of its line. If control passes through a block with only such a jump, it arrives
//! at the next block as if it came from the block before the jump. If a line has only jumps
//! (`break;`, `continue;`, `goto end;`, `} else {`), they are its code, and executing any of them
//! is an arrival. The exception is the head of a loop without a condition, `while (1) {` or
//! `for (;;) {`. A line whose only code is jumps back to code of a later line has no code and no
//! count. `OperatorCount::position` and `OperatorCount::passed` contain the results of these rules.
//!
//! If all calls on a line were inlined, the line may have no instruction of its own in a function.
//! The instructions of the inlined calls then count as code of this line, in addition to their own
//! lines. Control arrives at the line when it goes to such an instruction from an instruction
//! outside the line's inlined calls. It then also arrives at the lines of nested inlined calls of
//! this kind, and at the instruction's own line, if the debug information gives one. An optimiser
//! may mix the code of an inlined call with other code, so control may arrive several times during
//! one call. [`CallLines`] finds these lines.
//!
//! `gcov` counts in the same way, with four exceptions. It counts blocks, not arrivals. If a block
//! returns to a line, for example after call arguments on separate lines, `gcov` counts the line
//! once. It counts jumps to the next instruction, which WebAssembly does not have, so `do {` has a
//! count there. It counts an entry into a line through any of the line's blocks, even a block with
//! only a jump. It counts a loop that stays on its line by subtracting all entries from outside.
//!
//! A taken edge counts as an arrival even if the run stopped right before the instruction at the
//! edge's end, or during jumps on the way.
//!
//! Every arrival happens at a fixed place, which is between two neighbouring operators of a block,
//! or at a block's entry over a fixed edge. The counts of operators and edges determine the counts
//! of these places. So the number of arrivals, which is their sum, is exact. A call on a line and
//! the rest of that line after it are one arrival. If a line has several copies (inlined, generic),
//! their arrivals are added.

use std::collections::{HashMap, HashSet};

use afterimage_graph::{Adjacency, Components};
use afterimage_ids::{BlockId, EdgeId, EntityRef, FunctionCounts, OpId, SecondaryMap};
use afterimage_program::Function;

use crate::walk::code_blocks;
use crate::{Line, OperatorCount, Source};

/// The counts of a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCount {
    /// The number of arrivals at the line.
    pub arrivals: u64,
    /// The number of executed instructions that come from the line.
    pub instructions: u64,
}

/// The first and the last line of a block that executes something. Each may be unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    first: Option<Line>,
    last: Option<Line>,
    /// Whether all code in between belongs to the same line.
    is_one: bool,
    /// The first and the last operator.
    ops: [OpId; 2],
}

/// A fixed place at which control arrives at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At an operator within a block.
    At(OpId),
    /// At the beginning of an activation.
    Entry,
    /// Over an edge.
    Over(EdgeId),
}

/// The lines of a function whose only code there is inlined calls.
#[derive(Debug, Default)]
pub struct CallLines {
    /// The distinct lists of lines, each with the outermost call's line first.
    lists: Vec<Vec<Line>>,
    /// The index of each operator's list, if any operator has a list.
    lists_of: Vec<u32>,
}

impl CallLines {
    /// Finds the lines. `operators` are all operators of a function with their positions, and
    /// `source` is the source map that provided the positions. O(operators · depth +
    /// inlined calls).
    pub fn of(operators: &[OperatorCount], source: &dyn Source) -> Self {
        let Some(first) = operators.first() else {
            return Self::default();
        };
        let mut calls = source.inlined_calls(first.offset);
        if calls.is_empty() {
            return Self::default();
        }
        let steps = operators.iter().filter(|operator| operator.is_step());
        let with_code: HashSet<Line> = steps.filter_map(line_of).collect();
        calls.retain(|code| !with_code.contains(&Line::from(code.call)));
        if calls.is_empty() {
            return Self::default();
        }
        // The remaining stretches of each depth that do not end before the current operator.
        let mut depths = Vec::from_iter(calls.chunk_by(|a, b| a.depth == b.depth));
        let mut lists = vec![Vec::new()];
        let mut known = HashMap::from([(Vec::new(), 0)]);
        let mut lists_of = Vec::with_capacity(operators.len());
        let mut here = Vec::new();
        for operator in operators {
            here.clear();
            for ahead in &mut depths {
                while let [code, rest @ ..] = *ahead
                    && code.range.end <= operator.offset
                {
                    *ahead = rest;
                }
                if let [code, ..] = *ahead
                    && code.range.contains(&operator.offset)
                    && !here.contains(&Line::from(code.call))
                {
                    here.push(Line::from(code.call));
                }
            }
            let index = match known.get(&here) {
                Some(&index) => index,
                None => {
                    // A body has fewer than 2³² operators.
                    let index = lists.len() as u32;
                    lists.push(here.clone());
                    known.insert(here.clone(), index);
                    index
                }
            };
            lists_of.push(index);
        }
        Self { lists, lists_of }
    }

    /// Returns the lines that have only inlined calls, one of which contains this operator. The
    /// line of the outermost call is first.
    pub fn at(&self, op: OpId) -> &[Line] {
        let list = self.lists_of.get(op.index());
        list.map_or(&[], |&list| &self.lists[list as usize])
    }

    /// Returns the lines at which control arrives when it comes to an operator from another.
    fn entered(&self, from: Option<OpId>, to: OpId) -> &[Line] {
        let left = from.map_or(&[][..], |from| self.at(from));
        let lines = self.at(to);
        let first = lines.iter().position(|line| !left.contains(line));
        &lines[first.unwrap_or(lines.len())..]
    }
}

/// Adds the lines of one function to `lines`, including lines that never ran. Without `counts`, adds
/// no arrivals. `operators` is the
/// result of [`Profile::operators`](crate::Profile::operators) for the function, and `source` is
/// the source map that provided their positions. Returns `None` if a sum does not fit into 64 bits.
/// O(operators + edges).
pub fn add_lines(
    function: &Function,
    counts: Option<&FunctionCounts>,
    (operators, source): (&[OperatorCount], &dyn Source),
    lines: &mut HashMap<Line, LineCount>,
) -> Option<()> {
    let calls = CallLines::of(operators, source);
    for (line, arrival) in arrivals(function, (operators, source), &calls) {
        let count = counts.map_or(0, |counts| match arrival {
            Arrival::At(op) => operators[op.index()].count,
            Arrival::Entry => counts.entries,
            Arrival::Over(edge) => counts.edges[edge.index()],
        });
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

/// Returns all places of a function where control arrives at a line. Within a block, they are in
/// the order of its operators. At the same place, lines of inlined calls come first, and the
/// outermost call is the first of them. Ignores the operators' counts. O(operators + edges).
pub fn arrivals(
    function: &Function,
    (operators, source): (&[OperatorCount], &dyn Source),
    calls: &CallLines,
) -> Vec<(Line, Arrival)> {
    let mut arrivals = Vec::new();
    let mut arrive = |line: Option<Line>, arrival| {
        arrivals.extend(line.map(|line| (line, arrival)));
    };
    let has_line = |op: OpId| {
        source
            .shows_own_line(operators[op.index()].offset)
            .is_some()
    };
    let mut ends = SecondaryMap::<BlockId, Option<Ends>>::with_capacity(function.cfg.blocks.len());
    for (id, block) in code_blocks(function) {
        let operators = &operators[block.ops.start.index()..block.ops.end.index()];
        let mut steps = operators.iter().filter(|operator| operator.is_step());
        let Some(begin) = steps.next() else {
            continue;
        };
        let first = line_of(begin);
        let (mut last, mut is_one, mut before) = (first, true, begin.op);
        for operator in steps {
            let line = line_of(operator);
            let entered = calls.entered(Some(before), operator.op);
            for &call in entered {
                arrive(Some(call), Arrival::At(operator.op));
            }
            before = operator.op;
            if line != last || !entered.is_empty() && has_line(operator.op) {
                arrive(line, Arrival::At(operator.op));
            }
            is_one &= line == last;
            last = line;
        }
        ends[id] = Some(Ends {
            first,
            last,
            is_one,
            ops: [begin.op, before],
        });
    }
    let jumps = Jumps::of(function, operators);
    let (first_block, _) = jumps.behind(function.cfg.graph.root(), false);
    if let Some(ends) = first_block.and_then(|block| ends[block]) {
        for &call in calls.entered(None, ends.ops[0]) {
            arrive(Some(call), Arrival::Entry);
        }
        arrive(ends.first, Arrival::Entry);
    }
    // These edges lead from a line to the same line. The last field is whether the edge is an
    // arrival if it is on a cycle of such edges.
    let mut staying = Vec::new();
    for (edge, transfer) in function.cfg.edges.iter() {
        // A passage through a block with only a jump is counted at the edge into that block.
        if jumps.0[transfer.from].is_some() {
            continue;
        }
        let (Some(target), back) = jumps.behind(transfer.to, transfer.back) else {
            continue;
        };
        let Some(to) = ends[target] else {
            continue;
        };
        let from = ends[transfer.from];
        let entered = calls.entered(from.map(|from| from.ops[1]), to.ops[0]);
        for &call in entered {
            arrive(Some(call), Arrival::Over(edge));
        }
        let enters = !entered.is_empty() && has_line(to.ops[0]);
        match from.filter(|from| from.last == to.first) {
            Some(from) => {
                if from.is_one && to.is_one {
                    let back = back && !enters;
                    staying.push((edge, transfer.from, target, back));
                }
                if enters {
                    arrive(to.first, Arrival::Over(edge));
                }
            }
            None => arrive(to.first, Arrival::Over(edge)),
        }
    }
    if staying.iter().any(|(.., back)| *back) {
        let pairs = staying
            .iter()
            .map(|(_, from, to, _)| (from.index(), to.index()));
        let rounds = Components::compute(&Adjacency::new(function.cfg.blocks.len(), pairs));
        let is_round =
            |from: BlockId, to: BlockId| rounds.of(from.index()) == rounds.of(to.index());
        let looping = staying
            .iter()
            .filter(|(_, from, to, _)| is_round(*from, *to));
        let looping: HashSet<BlockId> = looping.flat_map(|&(_, from, to, _)| [from, to]).collect();
        // The loops with operators that have a shown line, and those with operators that do not.
        let (mut shown, mut hidden) = (HashSet::new(), HashSet::new());
        for block in looping {
            let ops = &function.cfg.blocks[block].ops;
            let ops = &operators[ops.start.index()..ops.end.index()];
            for operator in ops.iter().filter(|operator| operator.is_step()) {
                match source.shows_own_line(operator.offset) {
                    Some(true) => drop(shown.insert(rounds.of(block.index()))),
                    Some(false) => drop(hidden.insert(rounds.of(block.index()))),
                    None => {}
                }
            }
        }
        for (edge, from, to, back) in staying {
            let round = rounds.of(to.index());
            let is_hidden = hidden.contains(&round) && !shown.contains(&round);
            if back && is_round(from, to) && !is_hidden {
                arrive(ends[to].and_then(|to| to.first), Arrival::Over(edge));
            }
        }
    }
    arrivals
}

/// For each block that contains only a jump to be passed over, the first later block with other
/// code, and whether a back edge leads there. If the jumps form a cycle, there is no later block
/// with other code.
struct Jumps(SecondaryMap<BlockId, Option<(Option<BlockId>, bool)>>);

impl Jumps {
    /// Finds the blocks that contain only a jump. O(operators + blocks), because each block is
    /// followed once.
    fn of(function: &Function, operators: &[OperatorCount]) -> Self {
        let cfg = &function.cfg;
        let mut alone = SecondaryMap::<BlockId, bool>::with_capacity(cfg.blocks.len());
        for (id, block) in code_blocks(function) {
            let own = &operators[block.ops.start.index()..block.ops.end.index()];
            let mut instructions = own.iter().filter(|operator| operator.instruction);
            alone[id] = instructions.next().is_some_and(|first| first.passed)
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

    /// Returns the block at which control arrives over an edge into this block, and whether any
    /// edge on the path to that block is a back edge.
    fn behind(&self, block: BlockId, back: bool) -> (Option<BlockId>, bool) {
        match self.0[block] {
            None => (Some(block), back),
            Some((target, more)) => (target, back || more),
        }
    }
}

/// Returns the line to which an operator belongs.
pub fn line_of(operator: &OperatorCount) -> Option<Line> {
    operator.position.map(Line::from)
}
