//! Finds the readers of memory and globals.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use afterimage_ids::NodeId;
use afterimage_wpp::Segments;
use rustc_hash::FxHashSet;

use crate::epoch::{Candidate, Mention, Mentions, Sought, Target};
use crate::trace::{Epochs, Failure, Instance, Span, TraceError, WholeTrace};

/// An execution of an instruction that reads the written data, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadBy {
    /// The time of the first block of the node.
    pub time: u64,
    /// The instruction's position in the node.
    pub inst: usize,
    /// The node that contains the instruction.
    pub node: NodeId,
    /// The number of bytes that the instruction reads from the written data, or 0 if all its bytes
    /// come from there.
    pub length: u64,
}

/// The number of blocks examined first.
const NEAR: u64 = 1 << 12;
/// In stretches of up to this many blocks, a walk along the path finds the executed nodes.
const WALKED: u64 = 1 << 16;
/// The approximate number of uses found together.
const MANY: usize = 1 << 12;
/// Up to this many candidates are examined individually.
const FEW: usize = 16;
/// The number of epochs whose mentions are cached.
const MOST_EPOCHS: usize = 8;

/// The executions that read written data, in order of time.
///
/// The search examines stretches of the run in order, beginning with short stretches. In each
/// stretch, it examines only the labels of inputs that name the write, in O(labels), one block at a
/// time. It computes the execution that an age denotes only where that execution may match. If an
/// epoch does not name the write, only its directory is read. At most one epoch and a few thousand
/// uses are in memory.
pub struct Readers<'t, 'a, S: Segments, E> {
    trace: &'t WholeTrace<'a, S, E>,
    /// The write to search for, and the execution of its node.
    sought: Option<(Target, u64)>,
    /// Nodes that begin before this time have been examined.
    at: u64,
    /// The number of blocks to examine next.
    width: u64,
    found: VecDeque<ReadBy>,
    /// The stretches without stored data so far.
    unknown: Vec<RangeInclusive<u64>>,
}

/// Executions of a node, ascending, with the number of bytes that each reads.
type Executions = Vec<(u64, u64)>;

/// A stretch of the run, in one epoch.
#[derive(Clone, Copy)]
struct Stretch {
    span: Span,
    first: u64,
    last: u64,
}

impl Stretch {
    /// Whether the epoch covers no node that begins after the stretch.
    fn ends(&self) -> bool {
        self.span.ends && self.last == self.span.last
    }
}

impl<'t, 'a, S: Segments, E: Epochs> Readers<'t, 'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    pub(super) fn new(
        trace: &'t WholeTrace<'a, S, E>,
        instance: Instance,
        sought: Option<(Target, u64)>,
    ) -> Self {
        Self {
            trace,
            sought,
            at: instance.time,
            width: NEAR,
            found: VecDeque::new(),
            unknown: Vec::new(),
        }
    }

    /// Returns the next reader.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, which iterators cannot"
    )]
    pub fn next(&mut self) -> Result<Option<ReadBy>, Failure<S, E>> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Ok(Some(found));
            }
            if !self.look()? {
                return Ok(None);
            }
        }
    }

    /// Returns the number of remaining readers. Does not move the iterator. This is faster than
    /// calling [`next`](Self::next) to the end, because it does not determine the readers' times.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn count(&mut self) -> Result<u64, Failure<S, E>> {
        let mut count = self.found.len() as u64;
        let (mut at, Some((target, number))) = (self.at, self.sought) else {
            return Ok(count);
        };
        while let Some(stretch) = self.stretch(at, u64::MAX) {
            for (_, executions) in self.search(stretch, target, number)? {
                count += executions.len() as u64;
            }
            let Some(next) = stretch.last.checked_add(1) else {
                break;
            };
            at = next;
        }
        Ok(count)
    }

    /// Moves to the first reader in a node that begins at block `time` or later.
    pub fn go(&mut self, time: u64) {
        self.found.clear();
        self.at = time;
    }

    /// Returns the stretches without stored data, from the definition to the end of the search.
    pub fn unknown(&self) -> &[RangeInclusive<u64>] {
        &self.unknown
    }

    /// Returns the next stretch to examine, of at most `width` blocks. Records stretches without
    /// stored data.
    fn stretch(&mut self, at: u64, width: u64) -> Option<Stretch> {
        let epochs = self.trace.epochs;
        let length = self.trace.path.length();
        if at > length {
            return None;
        }
        let mut first = at;
        let span = match epochs.span(at) {
            Some(span) => span,
            None => {
                let next = epochs.next_known(at).filter(|&next| next <= length);
                let gap = at..=next.map_or(length, |next| next - 1);
                if self
                    .unknown
                    .last()
                    .is_none_or(|last| last.end() < gap.start())
                {
                    self.unknown.push(gap);
                }
                first = next?;
                epochs.span(first)?
            }
        };
        let last = span.last.min(first.saturating_add(width - 1));
        Some(Stretch { span, first, last })
    }

    /// Examines the next stretch. Returns `false` if there was none.
    fn look(&mut self) -> Result<bool, Failure<S, E>> {
        let Some((target, number)) = self.sought else {
            return Ok(false);
        };
        let Some(stretch) = self.stretch(self.at, self.width) else {
            self.at = u64::MAX;
            return Ok(false);
        };
        let found = self.search(stretch, target, number)?;
        let count: usize = found.iter().map(|(_, executions)| executions.len()).sum();
        if count > MANY && stretch.last > stretch.first {
            self.width = (stretch.last - stretch.first).div_ceil(2);
            self.at = stretch.first;
            return Ok(true);
        }
        let mut reads = Vec::with_capacity(count);
        for (place, executions) in found {
            let compiled = self.trace.compiled(place.node())?;
            let model = &compiled.model;
            let inst = match place {
                Mention::Input(_, input) => {
                    let read = input.checked_sub(model.variables.len());
                    let read = read.and_then(|read| model.reads.get(read));
                    read.map(|read| read.inst)
                }
                Mention::Copy(_, write) => model.writes.get(write).map(|write| write.inst),
            };
            let inst = inst.ok_or(TraceError::Damaged("a read that does not exist"))? as usize;
            for (execution, length) in executions {
                let instance = self.trace.instance(place.node(), execution)?;
                let missing = TraceError::Damaged("an execution that does not exist");
                reads.push(ReadBy {
                    time: instance.ok_or(missing)?.time,
                    inst,
                    node: place.node(),
                    length,
                });
            }
        }
        // The sort is stable, so pieces of one read stay in order.
        reads.sort_by_key(|read| (read.time, read.inst));
        self.found.extend(reads);
        self.at = stretch.last.saturating_add(1);
        if count < MANY / 4 {
            self.width = self.width.saturating_mul(4);
        }
        Ok(true)
    }

    /// Returns the reads of the data in a stretch. Each input or copy has its executions, in order,
    /// and the number of bytes that each reads.
    fn search(
        &self,
        stretch: Stretch,
        target: Target,
        number: u64,
    ) -> Result<Vec<(Mention, Executions)>, Failure<S, E>> {
        let trace = self.trace;
        let mut found = Vec::new();
        let mentions = trace.mentions(stretch.span.position)?;
        let Some(places) = mentions.get(&target) else {
            return Ok(found);
        };
        let executed = if stretch.last - stretch.first < WALKED {
            Some(self.executed(stretch, places)?)
        } else {
            None
        };
        let epoch = trace.epochs.lend(stretch.span.position);
        let epoch = epoch.map_err(TraceError::Epoch)?;
        for &place in places {
            let node = place.node();
            if executed
                .as_ref()
                .is_some_and(|nodes| !nodes.contains(&node))
            {
                continue;
            }
            let executions = match place {
                Mention::Input(node, input) => {
                    let column = epoch.input(node, input)?;
                    let labels = column.as_ref().and_then(|column| column.labels.as_ref());
                    let Some(labels) = labels else { continue };
                    let sought = self.sought_in(stretch, node, target, number)?;
                    let mut candidates = Vec::new();
                    let range = self.executions(stretch, node, stretch.ends())?;
                    labels.candidates(range, &sought, &mut candidates)?;
                    if !candidates.is_empty() && stretch.ends() {
                        let range = self.executions(stretch, node, false)?;
                        candidates.retain(|found| range.contains(&found.execution));
                    }
                    let (certain, others): (Vec<_>, Vec<_>) = candidates
                        .into_iter()
                        .partition(|found| sought.certain(labels.ages(found.piece)));
                    let mut all = certain;
                    all.extend(self.refine(node, &sought, others)?);
                    all.sort_by_key(|found| (found.execution, found.piece));
                    let all = all.iter().map(|found| (found.execution, found.length));
                    Vec::from_iter(all)
                }
                Mention::Copy(node, write) => {
                    let Some(copies) = epoch.copies(node, write)? else {
                        continue;
                    };
                    let mut copied = Vec::new();
                    let range = self.executions(stretch, node, stretch.ends())?;
                    copies.copied(range, target, number, &mut copied)?;
                    if !copied.is_empty() && stretch.ends() {
                        let range = self.executions(stretch, node, false)?;
                        copied.retain(|(execution, _)| range.contains(execution));
                    }
                    copied
                }
            };
            if !executions.is_empty() {
                found.push((place, executions));
            }
        }
        Ok(found)
    }

    /// Returns the nodes of these inputs and copies that are executed in a stretch.
    fn executed(
        &self,
        stretch: Stretch,
        places: &[Mention],
    ) -> Result<FxHashSet<NodeId>, Failure<S, E>> {
        let wanted = FxHashSet::from_iter(places.iter().map(|place| place.node()));
        let mut executed = FxHashSet::default();
        let mut cursor = self.trace.path.cursor();
        let mut visit = cursor.seek(stretch.first).map_err(TraceError::Path)?;
        while let Some(at) = visit.filter(|visit| visit.start <= stretch.last) {
            if wanted.contains(&at.node) {
                executed.insert(at.node);
            }
            if executed.len() == wanted.len() {
                break;
            }
            visit = cursor.next().map_err(TraceError::Path)?;
        }
        Ok(executed)
    }

    /// Returns the executions of a node that begin in a stretch. If `roughly`, all executions are
    /// returned, because that is faster.
    fn executions(
        &self,
        stretch: Stretch,
        node: NodeId,
        roughly: bool,
    ) -> Result<Range<u64>, Failure<S, E>> {
        if roughly {
            return Ok(0..u64::MAX);
        }
        let counted = self.trace.counted(node)?;
        let rank = |time| counted.rank(time).map_err(TraceError::Path);
        Ok(rank(stretch.first - 1)? + 1..rank(stretch.last)? + 1)
    }

    /// Returns the labels to search for in a node.
    fn sought_in(
        &self,
        stretch: Stretch,
        node: NodeId,
        target: Target,
        number: u64,
    ) -> Result<Sought, Failure<S, E>> {
        let mut sought = Sought {
            target,
            number,
            itself: false,
            ages: (0, 0),
        };
        if let Target::Write { node: writer, .. } = target {
            sought.itself = writer == node;
            if !sought.itself {
                let counted = self.trace.counted(writer)?;
                let age = |time| {
                    let count = counted.rank(time).map_err(TraceError::Path)?;
                    Ok::<_, Failure<S, E>>(count.saturating_sub(number))
                };
                sought.ages = (age(stretch.first)?, age(stretch.last)?);
            }
        }
        Ok(sought)
    }

    /// Keeps the candidates that name the execution sought.
    fn refine(
        &self,
        node: NodeId,
        sought: &Sought,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Failure<S, E>> {
        let Target::Write { node: writer, .. } = sought.target else {
            return Ok(candidates);
        };
        let (readers, writers) = (self.trace.counted(node)?, self.trace.counted(writer)?);
        // Returns the age of the execution sought when an execution of the reading node begins.
        let age = |execution| {
            let begun = readers.select(execution).map_err(TraceError::Path)?;
            let begun = begun.ok_or(TraceError::Damaged("an execution that does not exist"))?;
            let count = writers.rank(begun.time).map_err(TraceError::Path)?;
            Ok::<_, Failure<S, E>>(count.checked_sub(sought.number))
        };
        let mut found = Vec::new();
        // Ages grow with executions. The loop splits the candidates until a part is certain to
        // match, is certain not to match, or is small.
        let mut work = vec![(candidates, sought.ages)];
        while let Some((mut part, (low, high))) = work.pop() {
            part.retain(|candidate| (low..=high).contains(&candidate.age));
            if low == high {
                found.append(&mut part);
            } else if part.len() <= FEW {
                for candidate in part {
                    if age(candidate.execution)? == Some(candidate.age) {
                        found.push(candidate);
                    }
                }
            } else {
                let later = part.split_off(part.len() / 2);
                let between = age(later[0].execution)?.unwrap_or(low);
                work.push((later, (between, high)));
                work.push((part, (low, between)));
            }
        }
        Ok(found)
    }
}

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the mentions in an epoch.
    fn mentions(&self, position: usize) -> Result<Rc<Mentions>, Failure<S, E>> {
        if let Some(known) = self.mentions.borrow().get(&position) {
            return Ok(Rc::clone(known));
        }
        let epoch = self.epochs.lend(position).map_err(TraceError::Epoch)?;
        let found = Rc::new(epoch.mentions()?);
        let mut mentions = self.mentions.borrow_mut();
        if mentions.len() >= MOST_EPOCHS {
            mentions.clear();
        }
        mentions.insert(position, Rc::clone(&found));
        Ok(found)
    }
}
