//! Finds the users of tables' elements, and of the sizes of tables and memories.

use std::collections::VecDeque;
use std::rc::Rc;

use afterimage_ids::NodeId;
use afterimage_wpp::Segments;

use super::Definition;
use crate::trace::places::{Ranges, Sites, TableOrSize, length, sets, taken_by};
use crate::trace::{Epochs, Failure, Instance, TraceError, WholeTrace};

/// A use of elements or of a size by an instruction, or by the call at the end of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBy {
    /// The time of the first block of the node.
    pub time: u64,
    /// The node that contains the use.
    pub node: NodeId,
    /// The position of the instruction, or `None` for the call at the node's end. If the run ends
    /// after the node's last instruction, the call is reported even if it was not attempted.
    pub inst: Option<usize>,
    /// The place from which the value is read.
    pub place: TableOrSize,
    /// The number of adjacent elements, or 0 for a size.
    pub elements: u64,
}

/// The executions that used a value after it was written to a table or as a size, in order of time.
///
/// Walks along the executions that write or read the same table or size, until all written
/// positions have been written again. Takes time linear in these executions. For elements, the walk
/// also computes the operands of the instructions.
pub struct Takers<'t, 'a, S: Segments, E> {
    trace: &'t WholeTrace<'a, S, E>,
    definition: Option<(Instance, usize)>,
    ways: Vec<Way<'a, S>>,
}

/// The walk for one table or size.
struct Way<'a, S: Segments> {
    place: TableOrSize,
    sites: Rc<Sites<'a, S>>,
    /// The positions that have not been set again.
    live: Ranges,
    /// The first block of the node examined last.
    at: u64,
    found: VecDeque<TakenBy>,
}

impl<S: Segments> Clone for Way<'_, S> {
    fn clone(&self) -> Self {
        Self {
            place: self.place,
            sites: Rc::clone(&self.sites),
            live: self.live.clone(),
            at: self.at,
            found: self.found.clone(),
        }
    }
}

impl<S: Segments, E> Clone for Takers<'_, '_, S, E> {
    fn clone(&self) -> Self {
        Self {
            trace: self.trace,
            definition: self.definition,
            ways: self.ways.clone(),
        }
    }
}

impl<'t, 'a, S: Segments, E: Epochs> Takers<'t, 'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    pub(super) fn new(
        trace: &'t WholeTrace<'a, S, E>,
        definition: Definition,
    ) -> Result<Self, Failure<S, E>> {
        let definition = match definition {
            Definition::Result { instance, inst } | Definition::Write { instance, inst } => {
                Some((instance, inst))
            }
            Definition::After { .. } => None,
        };
        let mut takers = Self {
            trace,
            definition,
            ways: Vec::new(),
        };
        takers.begin()?;
        Ok(takers)
    }

    fn begin(&mut self) -> Result<(), Failure<S, E>> {
        self.ways.clear();
        let Some((instance, inst)) = self.definition else {
            return Ok(());
        };
        let trace = self.trace;
        let compiled = trace.compiled(instance.node)?;
        let one = compiled.code.insts.get(inst);
        let one = one.ok_or(TraceError::Damaged("an instruction that does not exist"))?;
        for place in sets(one) {
            match trace.executed(instance, inst) {
                Err(TraceError::NotExecuted) => return Ok(()),
                executed => executed?,
            }
            let mut way = Way {
                place,
                sites: trace.sites(place)?,
                live: Ranges::new(trace.range_set(instance, &compiled, inst, place)?),
                at: instance.time,
                found: VecDeque::new(),
            };
            way.pass(trace, instance, inst + 1)?;
            self.ways.push(way);
        }
        Ok(())
    }

    /// Returns the next use.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, which iterators cannot"
    )]
    pub fn next(&mut self) -> Result<Option<TakenBy>, Failure<S, E>> {
        let order = |found: &TakenBy| (found.time, found.inst.unwrap_or(usize::MAX));
        let mut first: Option<(_, usize)> = None;
        for (i, way) in self.ways.iter_mut().enumerate() {
            if let Some(found) = way.peek(self.trace)?
                && first.is_none_or(|(least, _)| order(&found) < least)
            {
                first = Some((order(&found), i));
            }
        }
        Ok(first.and_then(|(_, i)| self.ways[i].found.pop_front()))
    }

    /// Starts over at the first use in a node that begins at block `time` or later.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn go(&mut self, time: u64) -> Result<(), Failure<S, E>> {
        if time == u64::MAX {
            self.ways.clear();
            return Ok(());
        }
        self.begin()?;
        for way in &mut self.ways {
            while way.peek(self.trace)?.is_some_and(|found| found.time < time) {
                way.found.pop_front();
            }
        }
        Ok(())
    }
}

impl<'a, S: Segments> Way<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    fn peek<E: Epochs>(
        &mut self,
        trace: &WholeTrace<'a, S, E>,
    ) -> Result<Option<TakenBy>, Failure<S, E>> {
        while self.found.is_empty() && !self.live.is_empty() {
            let next = self.sites.touching.next_after(self.at);
            let Some(next) = next.map_err(TraceError::Path)? else {
                self.live = Ranges::default();
                break;
            };
            self.at = next.time;
            let (instance, _) = trace.node_at(next.time)?;
            self.pass(trace, instance, 0)?;
        }
        Ok(self.found.front().copied())
    }

    /// Moves past an execution of a node, from one of its instructions on.
    fn pass<E: Epochs>(
        &mut self,
        trace: &WholeTrace<'a, S, E>,
        instance: Instance,
        from: usize,
    ) -> Result<(), Failure<S, E>> {
        let compiled = trace.compiled(instance.node)?;
        let insts = compiled.code.insts.len();
        let stopped = trace.stopped(instance)?;
        let executed = stopped.map_or(insts, |executed| insts.min(executed as usize));
        let end = (executed == insts).then_some(None);
        for inst in (from..executed).map(Some).chain(end) {
            if taken_by(&compiled.code, inst) == Some(self.place) {
                let range = trace.range_taken(instance, &compiled, inst, self.place)?;
                let parts = self.live.within(&range).into_iter();
                self.found.extend(parts.map(|part| TakenBy {
                    time: instance.time,
                    node: instance.node,
                    inst,
                    place: self.place,
                    elements: length(self.place, &part),
                }));
            }
            let Some(inst) = inst else {
                continue;
            };
            if sets(&compiled.code.insts[inst]).any(|place| place == self.place) {
                let range = trace.range_set(instance, &compiled, inst, self.place)?;
                self.live.remove(&range);
            }
        }
        Ok(())
    }
}
