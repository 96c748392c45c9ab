//! Finds the number of executions and the position of each operator.

use std::collections::HashSet;

use afterimage_ids::{BlockId, EntityRef, OpId, OrigOffset, SecondaryMap};
use afterimage_program::{Block, BlockKind, Function, Location};

use crate::body::Decoded;
use crate::{FunctionProfile, Line, ProfileError, Source};

/// An operator in a function's body, with its number of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorCount {
    /// The operator's ordinal in the body.
    pub op: OpId,
    /// The operator's offset in the original module.
    pub offset: OrigOffset,
    /// Whether the operator is an instruction rather than a marker of the block structure.
    pub instruction: bool,
    /// Whether control passes over the operator. This holds for a jump (`br`) without a line, or on
    /// a line with other code.
    pub passed: bool,
    /// The block to which the operator belongs, or `None` in code that cannot be reached.
    pub block: Option<BlockId>,
    /// The number of executions, including an execution that trapped. For a marker, this is the
    /// number of times that control passed the marker.
    pub count: u64,
    /// The operator's source position. Compilers give no position to code that they merged or
    /// invented. An instruction of such code takes the position of the last earlier instruction
    /// with a position, if all paths between the two instructions agree on the line. Otherwise, the
    /// instruction has no position. Markers have no position. A jump back in a loop without a
    /// condition (`while (1) {`) also counts as code without a position.
    pub position: Option<Location>,
}

impl OperatorCount {
    /// Whether executing the operator can be an arrival at a line, as [`lines`](crate::lines)
    /// defines arrivals.
    pub fn is_step(&self) -> bool {
        self.instruction && !self.passed
    }
}

/// Returns the number of instructions that a function executed. This is the sum of each block's
/// executions times its instructions, less the instructions that open activations did not reach.
pub fn instructions(
    function: &Function,
    body: &[Decoded],
    blocks: &SecondaryMap<BlockId, u64>,
    stops: &[(BlockId, OpId)],
) -> Result<u64, ProfileError> {
    let overflow = || ProfileError::Overflow {
        function: function.id,
    };
    let in_range = |from: usize, to: usize| -> u64 {
        let ops = body.get(from..to).unwrap_or_default();
        ops.iter().filter(|op| op.instruction).count() as u64
    };
    let mut sum = 0u64;
    for (id, block) in code_blocks(function) {
        let length = in_range(block.ops.start.index(), block.ops.end.index());
        sum = blocks[id]
            .checked_mul(length)
            .and_then(|n| sum.checked_add(n))
            .ok_or_else(overflow)?;
    }
    let mut known = None;
    for &stop in stops {
        // Deep recursion lists the same stop many times.
        let missed = match known {
            Some((same, missed)) if same == stop => missed,
            _ => in_range(stop.1.index(), function.cfg.blocks[stop.0].ops.end.index()),
        };
        known = Some((stop, missed));
        sum = sum.checked_sub(missed).ok_or_else(overflow)?;
    }
    Ok(sum)
}

/// Writes all operators of a body into `into`, in order.
pub fn operators(
    function: &Function,
    body: &[Decoded],
    profile: &FunctionProfile,
    source: &dyn Source,
    into: &mut Vec<OperatorCount>,
) {
    positions(function, body, source, into);
    let mut stops = profile.stops.as_slice();
    for (id, block) in code_blocks(function) {
        let here = stops.partition_point(|stop| stop.0 <= id);
        let (mut own, rest) = stops.split_at(here);
        stops = rest;
        let mut count = profile.blocks[id];
        for operator in &mut into[block.ops.start.index()..block.ops.end.index()] {
            let ended = own.partition_point(|stop| stop.1 <= operator.op);
            count -= ended as u64;
            own = &own[ended..];
            operator.block = Some(id);
            operator.count = count;
        }
    }
}

/// Writes all operators of a body into `into`, in order, with only their positions. O(operators +
/// edges).
pub fn positions(
    function: &Function,
    body: &[Decoded],
    source: &dyn Source,
    into: &mut Vec<OperatorCount>,
) {
    into.clear();
    into.extend(body.iter().enumerate().map(|(i, op)| OperatorCount {
        op: OpId::new(i),
        offset: op.offset,
        instruction: op.instruction,
        passed: op.jump,
        block: None,
        count: 0,
        position: source.locate(op.offset).filter(|_| op.instruction),
    }));
    settle_jumps(function, into);
    let before = before_blocks(function, into);
    let mut blocks = code_blocks(function)
        .filter(|(_, block)| !block.ops.is_empty())
        .peekable();
    let mut known = None;
    for (at, operator) in into.iter_mut().enumerate() {
        if let Some((id, _)) = blocks.next_if(|(_, block)| block.ops.start.index() == at) {
            known = match before[id] {
                Before::At(location) => Some(location),
                Before::Unknown | Before::Apart => None,
            };
        }
        if operator.instruction {
            known = operator.position.or(known);
            operator.position = known;
        }
    }
}

/// Decides which jumps control passes over. Initially, all jumps are marked as passed over. A jump
/// that is its line's only code in the function (`break;`, `goto end;`) is a step like any other
/// instruction. If all jumps on a line lead back to code of a later line, the line is the head of a
/// loop without a condition. Nothing is executed at this head, and the jumps lose their position.
/// O(operators).
fn settle_jumps(function: &Function, operators: &mut [OperatorCount]) {
    let cfg = &function.cfg;
    let (mut jumps, mut with_code, mut last) = (Vec::new(), HashSet::new(), None);
    for (id, block) in code_blocks(function) {
        for operator in &operators[block.ops.start.index()..block.ops.end.index()] {
            let Some(line) = operator.position.map(Line::from) else {
                continue;
            };
            if operator.passed {
                jumps.push((id, operator.op, line));
            } else if last.replace(line) != Some(line) {
                with_code.insert(line);
            }
        }
    }
    jumps.retain(|(_, _, line)| !with_code.contains(line));
    let heads_loop = |block: BlockId, line: Line| {
        let [edge] = *cfg.graph.out_edges(block) else {
            return false;
        };
        let target = &cfg.blocks[cfg.graph.to(edge)].ops;
        let mut target = operators[target.start.index()..target.end.index()].iter();
        let first = target
            .find_map(|operator| operator.position)
            .map(Line::from);
        let is_later =
            first.is_some_and(|first| first.file == line.file && first.number > line.number);
        cfg.edges[edge].back && is_later
    };
    let others = jumps
        .iter()
        .filter(|(block, _, line)| !heads_loop(*block, *line));
    let lone: HashSet<Line> = others.map(|(_, _, line)| *line).collect();
    for (_, op, line) in jumps {
        let operator = &mut operators[op.index()];
        if lone.contains(&line) {
            operator.passed = false
        } else {
            operator.position = None
        }
    }
}

/// The position of the last earlier instruction with a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// No path to this point has been found.
    #[default]
    Unknown,
    At(Location),
    /// There is no such position, or it depends on the path taken.
    Apart,
}

impl Before {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, one) | (one, Self::Unknown) => one,
            (Self::At(a), Self::At(b)) if a == b => self,
            // If only the line agrees, the column is dropped.
            (Self::At(a), Self::At(b)) if (a.file, a.line) == (b.file, b.line) => {
                Self::At(Location { column: 0, ..a })
            }
            _ => Self::Apart,
        }
    }
}

/// Finds the position of the last instruction before each block. Each position changes at most
/// three times.
fn before_blocks(
    function: &Function,
    operators: &[OperatorCount],
) -> SecondaryMap<BlockId, Before> {
    let cfg = &function.cfg;
    let mut before: SecondaryMap<BlockId, Before> = SecondaryMap::new();
    before[cfg.graph.root()] = Before::Apart;
    let last = |block: &Block| {
        let own = &operators[block.ops.start.index()..block.ops.end.index()];
        own.iter().rev().find_map(|operator| operator.position)
    };
    let mut open = vec![cfg.graph.root()];
    while let Some(id) = open.pop() {
        let behind = match last(&cfg.blocks[id]) {
            Some(location) => Before::At(location),
            None => before[id],
        };
        for next in cfg.graph.successors(id) {
            let all = before[next].or(behind);
            if all != before[next] {
                before[next] = all;
                open.push(next);
            }
        }
    }
    before
}

/// Returns the basic blocks of a function, in layout order.
pub fn code_blocks(function: &Function) -> impl Iterator<Item = (BlockId, &Block)> {
    function
        .cfg
        .blocks
        .iter()
        .filter(|(_, block)| block.kind == BlockKind::Code)
}
