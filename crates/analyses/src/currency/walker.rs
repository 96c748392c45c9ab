//! Walks over a run, from one call that both runs make to the next.

use std::collections::HashMap;
use std::error::Error;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_program::{BlockEnd, Callee};
use afterimage_wpp::{Cursor, Segments, Visit, WholePath};

use super::parts::LineParts;
use super::{CurrencyError, Part, Stop, Trail, Unit, Version};
use afterimage_replay::whole_path::ArrivalTimes;

/// An open activation.
struct Frame {
    entered: u64,
    /// The last node that the activation executed.
    before: Option<NodeId>,
    /// The last stop in the activation.
    stop: Option<u32>,
    /// Whether the activation has arrived at the line but has not yet executed any of its code.
    fresh: bool,
    /// The innermost activation that exists in both runs.
    activation: u64,
}

/// The facts about a node that the walk needs.
#[derive(Clone, Copy)]
struct NodeFacts {
    function: FuncId,
    /// Whether the node begins an activation.
    begins: bool,
    /// The function that this node enters, if both runs call it.
    enters: Option<u32>,
    /// The host function that this node calls at its end, if both runs call it.
    calls: Option<u32>,
    /// Whether the node's function has code of the line.
    looks: bool,
    /// Whether the node itself has code of the line.
    has_parts: bool,
}

/// The number of nodes to walk between reports of progress.
const STEPS: u32 = 1 << 16;

/// A walk over a run that records the events at the line.
pub(super) struct Walker<'w, 'a, S: Segments> {
    path: &'w WholePath<S>,
    cursor: Cursor<'w, S>,
    arrivals: &'w ArrivalTimes<'a, S>,
    parts: &'w LineParts,
    nodes: Vec<NodeFacts>,
    frames: Vec<Frame>,
    /// The number of common calls passed so far.
    segment: u64,
    /// The first node of a call that [`next`](Self::next) has returned. The node has not been
    /// examined yet.
    pending: Option<Visit>,
    /// The host function that the last examined node calls at its end.
    host: Option<u32>,
    /// For each column, its part in the current block.
    seen: HashMap<u32, u32>,
    /// The largest permitted size of the trail.
    most: usize,
    /// Receives the block that the walk has reached.
    progress: &'w dyn Fn(u64),
    steps: u32,
    pub trail: Trail,
}

impl<'w, 'a, S: Segments> Walker<'w, 'a, S>
where
    S::Error: Error + 'static,
{
    pub(super) fn new(
        version: &Version<'w, 'a, S>,
        parts: &'w LineParts,
        anchor: impl Fn(FuncId) -> Option<u32>,
        most: usize,
        progress: &'w dyn Fn(u64),
    ) -> Self {
        let Version {
            path,
            program,
            arrivals,
            ..
        } = *version;
        let nodes = path.nodes().values().map(|node| {
            let begins = node.blocks.first() == Some(&BlockId::from_u32(0));
            let code = program.function(node.function);
            let last = node.blocks.last();
            let end = code
                .zip(last)
                .and_then(|(code, last)| code.cfg.blocks.get(*last));
            let calls = match end.map(|block| &block.end) {
                Some(BlockEnd::Call(Callee::Direct(callee)))
                    if program.function(*callee).is_none() =>
                {
                    anchor(*callee)
                }
                _ => None,
            };
            let mut blocks = node.blocks.iter();
            NodeFacts {
                function: node.function,
                begins,
                enters: anchor(node.function).filter(|_| begins),
                calls,
                looks: parts.has(node.function),
                has_parts: blocks.any(|block| !parts.of(node.function, *block).is_empty()),
            }
        });
        Self {
            nodes: nodes.collect(),
            path,
            cursor: path.cursor(),
            arrivals,
            parts,
            frames: Vec::new(),
            segment: 0,
            pending: None,
            host: None,
            most,
            progress,
            steps: 0,
            seen: HashMap::new(),
            trail: Trail::default(),
        }
    }

    /// Continues to the next call that both runs make. Returns `None` at the end of the run.
    pub(super) fn next(&mut self) -> Result<Option<u32>, CurrencyError<S::Error>> {
        loop {
            if let Some(call) = self.host.take() {
                self.segment += 1;
                return Ok(Some(call));
            }
            let visit = match self.pending.take() {
                Some(visit) => visit,
                None => {
                    let Some(visit) = self.cursor.next()? else {
                        return Ok(None);
                    };
                    self.steps = self.steps.wrapping_add(1);
                    if self.steps.is_multiple_of(STEPS) {
                        (self.progress)(visit.start);
                    }
                    if let Some(call) = self.enter(visit)? {
                        self.pending = Some(visit);
                        return Ok(Some(call));
                    }
                    visit
                }
            };
            if self.nodes[visit.node.as_u32() as usize].looks {
                self.look(visit)?;
            }
            if let Some(frame) = self.frames.last_mut() {
                frame.before = Some(visit.node);
            }
            self.host = self.nodes[visit.node.as_u32() as usize].calls;
        }
    }

    /// Updates the open activations. Returns the function that the node enters, if both runs call
    /// it.
    fn enter(&mut self, visit: Visit) -> Result<Option<u32>, CurrencyError<S::Error>> {
        let known = self.nodes[visit.node.as_u32() as usize];
        let damaged = || CurrencyError::Damaged(visit.start);
        let depth = self.cursor.depth();
        let outer = depth.checked_sub(usize::from(known.begins));
        let outer = outer.ok_or_else(damaged)?;
        if self.frames.len() < outer {
            return Err(damaged());
        }
        self.frames.truncate(outer);
        if !known.begins {
            return Ok(None);
        }
        let around = self.frames.last().map_or(0, |frame| frame.activation);
        self.segment += u64::from(known.enters.is_some());
        self.frames.push(Frame {
            entered: visit.start,
            before: None,
            stop: None,
            fresh: false,
            activation: known.enters.map_or(around, |_| self.segment),
        });
        Ok(known.enters)
    }

    /// Looks for code of the line in an execution.
    fn look(&mut self, visit: Visit) -> Result<(), CurrencyError<S::Error>> {
        let node = &self.path.nodes()[visit.node];
        let known = self.nodes[visit.node.as_u32() as usize];
        let frame = self.frames.last_mut();
        let frame = frame.ok_or(CurrencyError::Damaged(visit.start))?;
        let joining = self.arrivals.joining(frame.before, visit.node);
        let mut inside = self.arrivals.inside(visit.node);
        if joining == 0 && inside.is_empty() && !known.has_parts {
            return Ok(());
        }
        let trail = &mut self.trail;
        for (position, &block) in node.blocks.iter().enumerate() {
            let count = inside.partition_point(|&at| at == position as u64);
            inside = &inside[count..];
            let mut within = self.arrivals.operators(known.function, block);
            let over = count.saturating_sub(within.len()) as u64;
            frame.fresh |= over > 0 || position == 0 && joining > 0;
            let time = visit.start + position as u64;
            self.seen.clear();
            for begin in self.parts.of(known.function, block) {
                let passed = within.partition_point(|&op| op <= begin.op);
                frame.fresh |= passed > 0;
                within = &within[passed..];
                let executed = |trail: &mut Trail, unit, stop| {
                    trail.of_stops.push((stop, trail.parts.len() as u32));
                    trail.parts.push(Part {
                        unit,
                        segment: self.segment,
                        activation: frame.activation,
                        stop,
                        time,
                        op: begin.op,
                        is_test: begin.is_test,
                    });
                };
                if frame.fresh {
                    let stop = trail.stops.len() as u32;
                    trail.stops.push(Stop {
                        time,
                        op: begin.op,
                        function: known.function,
                        entered: frame.entered,
                    });
                    executed(trail, Unit::Arrival, stop);
                    frame.stop = Some(stop);
                    frame.fresh = false;
                }
                let Some(stop) = frame.stop else { continue };
                if let Some(name) = begin.name {
                    executed(trail, Unit::Operator(begin.column, name), stop);
                }
                if let Some(matched) = begin.matched {
                    executed(trail, Unit::Matched(matched), stop);
                }
                match self.seen.get(&begin.column) {
                    _ if !begin.column_counts => {}
                    Some(&part) => trail.of_stops.push((stop, part)),
                    None => {
                        let part = trail.parts.len() as u32;
                        self.seen.insert(begin.column, part);
                        executed(trail, Unit::Column(begin.column), stop);
                    }
                }
            }
            if trail.size() > self.most {
                return Err(CurrencyError::TooMany(self.most));
            }
        }
        Ok(())
    }

    /// Ends the walk before the run ends.
    pub(super) fn cut(&mut self) {
        self.trail.is_cut = true;
        let open = self.frames.iter().map(|frame| frame.activation);
        self.trail.open = open.collect();
        self.trail.open.dedup();
    }

    pub(super) fn finish(mut self) -> Trail {
        self.trail.of_stops.sort_unstable();
        self.trail.of_stops.dedup();
        self.trail
    }
}
