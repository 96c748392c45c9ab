//! Finds the last write to a byte.

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId};
use afterimage_machine::{NodeEnd, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wet::checkpoint::CheckpointError;
use afterimage_wet::checkpoint::{FileCheckpoints, Site, SiteAddresses};
use afterimage_wet::{
    ComputedValues, EpochFileError, FileEpochs, TraceError, WholeTrace, WriteTo, write_to,
};
use afterimage_wpp::{Cursor, Segments, Visit};

use super::step::overlap;
use super::{Level, Run, Step, Steps, StepsError, Wanted, What, Within};
use crate::whole_path::Window;

/// The last write to a byte of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWrite {
    /// The time of the block that wrote the byte.
    pub time: u64,
    /// The function whose code wrote the byte.
    pub function: FuncId,
    /// The operator that wrote the byte, or that called the host function that wrote the byte. This
    /// is `None` if the host called that function itself.
    pub op: Option<OpId>,
    /// All bytes that the write changed.
    pub range: Range,
}

/// The reason why the last write cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum LastWriteError<E: std::error::Error + 'static> {
    /// The run cannot be followed, or its checkpoints cannot be read.
    #[error(transparent)]
    Steps(#[from] StepsError<E>),
    /// The whole execution trace cannot be read.
    #[error(transparent)]
    Values(TraceError<E, EpochFileError>),
}

/// Finds the last writes to bytes, with the index of checkpoints.
///
/// The index gives the execution of the node that wrote, unless a later execution in the same
/// interval also wrote the byte. In that case, the search goes back along the path, over the
/// executions of the nodes that wrote the byte's word in the interval. Many of these nodes always
/// write to the same address. For the other nodes, the address comes from the whole execution
/// trace, if values are available. If this search fails or would take a long time, the run is
/// followed through the interval. The time does not depend on the length of the run.
pub struct LastWrites<'a, 'v, S: Segments> {
    run: Run<'a, S>,
    checkpoints: &'a FileCheckpoints,
    values: Option<&'v WholeTrace<'v, S, FileEpochs>>,
    cursor: Cursor<'a, S>,
    steps: Steps<'a, S>,
    /// Whether the host may call exported imports. If so, it may also write outside of the guest's
    /// calls.
    host_calls_itself: bool,
    /// For each node, whether the search looks for its executions.
    marked: Vec<bool>,
}

/// The largest number of executions whose addresses are computed for one answer.
const MOST: u32 = 32;

/// The result of searching back along the path.
enum Search {
    Found(LastWrite),
    /// The byte was not written.
    Nothing,
    /// The path does not show whether the byte was written.
    Unknown,
}

impl<'a, 'v, S: Segments> LastWrites<'a, 'v, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates a search in a run with this log.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(
        run: Run<'a, S>,
        log: LogReader,
        checkpoints: &'a FileCheckpoints,
        values: Option<&'v WholeTrace<'v, S, FileEpochs>>,
    ) -> Result<Self, StepsError<S::Error>> {
        let wanted = Wanted {
            level: Level::Memory,
            window: Window {
                first: 1,
                last: run.path.length(),
            },
            within: Within::default(),
            function: None,
            range: None,
        };
        let imported = |(_, function): &(String, FuncId)| run.program.function(*function).is_none();
        Ok(Self {
            steps: Steps::before(run, log, wanted)?,
            cursor: run.path.cursor(),
            host_calls_itself: run.program.exports.iter().any(imported),
            marked: vec![false; run.path.nodes().len()],
            run,
            checkpoints,
            values,
        })
    }

    /// Returns the last write to a byte before the block at `time` is executed. Returns `None` if
    /// nothing has written the byte, so it still has its initial value.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed, or the stored data is damaged.
    pub fn before(
        &mut self,
        memory: u32,
        address: u64,
        time: u64,
    ) -> Result<Option<LastWrite>, LastWriteError<S::Error>> {
        let checkpoints = self.checkpoints;
        let byte = Range {
            memory,
            address,
            length: 1,
        };
        let here = checkpoints.interval_at(time).map_err(StepsError::from)?;
        let here = match here {
            Some(here) => here,
            None => {
                // After the last checkpoint, the run must be followed.
                let last = checkpoints.intervals().saturating_sub(1);
                if checkpoints.end() < self.run.path.length()
                    && let Some(found) = self.follow(last, byte, time)?
                {
                    return Ok(Some(found));
                }
                last + 1
            }
        };
        if here < checkpoints.intervals() {
            let written = checkpoints.last_write_in(memory, address, here);
            if let Some(start) = written.map_err(StepsError::from)? {
                let visit = self.visit(start)?;
                if visit.last() < time {
                    return self.tell(here, byte, visit).map(Some);
                }
                let found = match self.search(here, byte, time)? {
                    Search::Found(found) => Some(found),
                    Search::Nothing => None,
                    Search::Unknown => self.follow(here, byte, time)?,
                };
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        let found = checkpoints.last_write(memory, address, here);
        match found.map_err(StepsError::from)? {
            None => Ok(None),
            Some((interval, start)) => {
                let visit = self.visit(start)?;
                self.tell(interval, byte, visit).map(Some)
            }
        }
    }

    /// Returns the step of a write that has been found, with its value from the whole execution
    /// trace. Returns `None` if the trace lacks the value, or the write is not a store.
    pub(super) fn step(
        &mut self,
        write: &LastWrite,
    ) -> Result<Option<Step>, LastWriteError<S::Error>> {
        let visit = self.cursor.seek(write.time).map_err(StepsError::from)?;
        let (Some(values), Some(visit), Some(op)) = (self.values, visit, write.op) else {
            return Ok(None);
        };
        let plan = self.steps.plan(visit.node)?;
        let insts = &self.steps.follower.machine.codes()[visit.node].insts;
        // An atomic operator reads before it writes.
        let Some(inst) = insts.iter().rposition(|inst| inst.op == op) else {
            return Ok(None);
        };
        let bits = || match values.at(visit.start)? {
            Some(instance) => values.stored(instance, inst),
            None => Ok(None),
        };
        let bits = match bits() {
            Err(TraceError::Outside { .. }) => None,
            found => found.map_err(LastWriteError::Values)?,
        };
        let value = bits.map(|bits| plan.items[plan.of_inst[inst] as usize].stored(bits));
        Ok(value.map(|value| Step {
            time: write.time,
            function: write.function,
            op: write.op,
            what: What::Store(write.range, value),
            bytes: None,
        }))
    }

    /// Returns the execution of a node that begins with a block.
    fn visit(&mut self, start: u64) -> Result<Visit, StepsError<S::Error>> {
        let visit = self.cursor.seek(start)?;
        let damaged = CheckpointError::Damaged("the time of a write");
        Ok(visit.filter(|visit| visit.start == start).ok_or(damaged)?)
    }

    /// Returns the last write to a byte in an interval. The execution `visit` of a node made the
    /// write.
    fn tell(
        &mut self,
        interval: u64,
        byte: Range,
        visit: Visit,
    ) -> Result<LastWrite, LastWriteError<S::Error>> {
        let by_host = self.by_host(interval, byte, visit)?;
        if let Some(found) = by_host {
            return Ok(found);
        }
        if let Some(found) = self.by_site(interval, byte, visit)? {
            return Ok(found);
        }
        if let Some(found) = self.by_values(byte, visit)? {
            return Ok(found);
        }
        let found = self.follow(interval, byte, visit.last() + 1)?;
        let damaged = CheckpointError::Damaged("a write by an execution that does not write there");
        found.ok_or_else(|| StepsError::from(damaged).into())
    }

    /// Returns the last write to a byte, if the host made it.
    fn by_host(
        &self,
        interval: u64,
        byte: Range,
        visit: Visit,
    ) -> Result<Option<LastWrite>, StepsError<S::Error>> {
        if self.host_calls_itself {
            return Ok(None);
        }
        let (memory, address) = (byte.memory, byte.address);
        let found = self.checkpoints.host_write(memory, address, interval)?;
        Ok(found.and_then(|(address, length)| {
            let range = Range {
                address,
                length,
                ..byte
            };
            written(self.run, visit, None, range)
        }))
    }

    /// Returns the last write to a byte, if the index of write sites determines it. Returns `None`
    /// if several sites of the node wrote the word in the interval, and the last site wrote to
    /// different addresses.
    fn by_site(
        &mut self,
        interval: u64,
        byte: Range,
        visit: Visit,
    ) -> Result<Option<LastWrite>, StepsError<S::Error>> {
        // The last node may not have reached its end.
        if self.host_calls_itself || visit.last() == self.run.path.length() {
            return Ok(None);
        }
        let sites = self
            .checkpoints
            .sites(byte.memory, byte.address, interval)?;
        let mut own = sites.iter().rev().filter(|site| site.node == visit.node);
        let (Some(last), others) = (own.next(), own.count()) else {
            return Ok(None);
        };
        let Some(write) = self.write(last)? else {
            return Ok(None);
        };
        // Either this site or another site of the node wrote the byte.
        let address = match last.place {
            SiteAddresses::Always(address) => address,
            SiteAddresses::Aligned if others == 0 => byte.address - byte.address % write.length,
            _ => return Ok(None),
        };
        let range = Range {
            address,
            length: write.length,
            ..byte
        };
        let found = overlap(range, byte).then_some(write.op);
        Ok(found.and_then(|op| written(self.run, visit, Some(op), range)))
    }

    /// Returns the operator of a site, and the number of bytes that it writes. Returns `None` if
    /// that number varies, or the host writes.
    fn write(&mut self, site: &Site) -> Result<Option<SiteWrite>, StepsError<S::Error>> {
        let damaged = || CheckpointError::Damaged("a site that does not write");
        let Some(write) = site.write else {
            return Ok(None);
        };
        self.steps.follower.compile(site.node)?;
        let code = &self.steps.follower.machine.codes()[site.node];
        let insts = code.insts.iter().enumerate();
        let mut writes = insts.filter_map(|(at, inst)| Some((at, inst.op, write_to(inst.code)?)));
        let (inst, op, to) = writes.nth(write as usize).ok_or_else(damaged)?;
        Ok(match to {
            WriteTo::Memory(length) => Some(SiteWrite {
                op,
                inst,
                length: length.into(),
            }),
            _ => None,
        })
    }

    /// Goes back along the path from `time` to the beginning of its interval. The index shows only
    /// that the byte was written at that time or later in the interval.
    fn search(
        &mut self,
        interval: u64,
        byte: Range,
        time: u64,
    ) -> Result<Search, LastWriteError<S::Error>> {
        if self.host_calls_itself || time > self.run.path.length() {
            return Ok(Search::Unknown);
        }
        let sites = self.checkpoints.sites(byte.memory, byte.address, interval);
        let sites = sites.map_err(StepsError::from)?;
        if sites.is_empty() {
            return Ok(Search::Unknown);
        }
        let mut candidates = Vec::with_capacity(sites.len());
        for site in sites {
            let write = self.write(&site)?;
            candidates.push((site, write));
        }
        let mark = |marked: &mut Vec<bool>, to| {
            for (site, _) in &candidates {
                if let Some(mark) = marked.get_mut(site.node.index()) {
                    *mark = to;
                }
            }
        };
        mark(&mut self.marked, true);
        let found = self.go_back(interval, byte, time, &candidates);
        mark(&mut self.marked, false);
        found
    }

    fn go_back(
        &mut self,
        interval: u64,
        byte: Range,
        time: u64,
        candidates: &[(Site, Option<SiteWrite>)],
    ) -> Result<Search, LastWriteError<S::Error>> {
        let (before, _) = self.checkpoints.times(interval).map_err(StepsError::from)?;
        let (mut computed, mut known) = (0, ComputedValues::default());
        let mut at = self.cursor.seek(time).map_err(StepsError::from)?;
        while let Some(visit) = at.filter(|visit| visit.start > before) {
            if visit.start < time && self.marked[visit.node.index()] {
                let own = candidates.iter().rev();
                for (site, write) in own.filter(|(site, _)| site.node == visit.node) {
                    let Some(write) = write else {
                        return Ok(Search::Unknown);
                    };
                    let address = match site.place {
                        SiteAddresses::Always(address) => address,
                        _ if computed == MOST => return Ok(Search::Unknown),
                        _ => match self.address(visit, write, &mut known)? {
                            Some(address) => address,
                            None => return Ok(Search::Unknown),
                        },
                    };
                    computed += u32::from(!matches!(site.place, SiteAddresses::Always(_)));
                    let range = Range {
                        address,
                        length: write.length,
                        ..byte
                    };
                    if !overlap(range, byte) {
                        continue;
                    }
                    let found = written(self.run, visit, Some(write.op), range);
                    if let Some(found) = found.filter(|found| found.time < time) {
                        return Ok(Search::Found(found));
                    }
                }
            }
            at = self.cursor.previous().map_err(StepsError::from)?;
        }
        Ok(Search::Nothing)
    }

    /// Returns the address to which an execution of a node wrote, from the whole execution trace,
    /// or `None` if the trace does not cover the execution.
    fn address(
        &self,
        visit: Visit,
        write: &SiteWrite,
        known: &mut ComputedValues,
    ) -> Result<Option<u64>, LastWriteError<S::Error>> {
        let Some(values) = self.values else {
            return Ok(None);
        };
        let mut value = || {
            let Some(instance) = values.at(visit.start)? else {
                return Ok(None);
            };
            let written = values.range_written_knowing(instance, write.inst, known)?;
            Ok(written.map(|range| range.address))
        };
        match value() {
            Err(TraceError::Outside { .. }) => Ok(None),
            found => found.map_err(LastWriteError::Values),
        }
    }

    /// Returns the last write to a byte, from the whole execution trace, or `None` if the trace
    /// lacks the write.
    fn by_values(
        &self,
        byte: Range,
        visit: Visit,
    ) -> Result<Option<LastWrite>, LastWriteError<S::Error>> {
        let Some(values) = self.values else {
            return Ok(None);
        };
        // The last node may not have reached its end.
        if visit.last() == self.run.path.length() {
            return Ok(None);
        }
        match self.ask(values, byte, visit) {
            Ok(found) => Ok(found),
            Err(TraceError::Outside { .. }) => Ok(None),
            Err(error) => Err(LastWriteError::Values(error)),
        }
    }

    fn ask(
        &self,
        values: &WholeTrace<'v, S, FileEpochs>,
        byte: Range,
        visit: Visit,
    ) -> Result<Option<LastWrite>, TraceError<S::Error, EpochFileError>> {
        let compiled = values.compiled(visit.node)?;
        // The host acts after the node's instructions.
        if matches!(
            compiled.code.end,
            NodeEnd::Call { .. } | NodeEnd::TailCall { .. }
        ) && self.host_calls_itself
        {
            return Ok(None);
        }
        let Some(instance) = values.at(visit.start)? else {
            return Ok(None);
        };
        for write in compiled.model.writes.iter().rev() {
            let inst = &compiled.code.insts[write.inst as usize];
            if u32::from(inst.memory) != byte.memory {
                continue;
            }
            let range = values.range_written(instance, write.inst as usize)?;
            if let Some(range) = range.filter(|&range| overlap(range, byte)) {
                return Ok(written(self.run, visit, Some(inst.op), range));
            }
        }
        Ok(None)
    }

    /// Returns the last write to a byte in an interval before `time`, found by following the run
    /// through the interval.
    fn follow(
        &mut self,
        interval: u64,
        byte: Range,
        time: u64,
    ) -> Result<Option<LastWrite>, StepsError<S::Error>> {
        let follower = &mut self.steps.follower;
        follower.go_to(self.checkpoints, interval)?;
        if self.host_calls_itself {
            return self.follow_steps(byte, time);
        }
        let mut watch = Watch {
            byte,
            writes: Vec::new(),
        };
        let mut last = None;
        while let Some(visit) = follower.advance()?
            && visit.start < time
        {
            follower.execute(visit, &mut watch)?;
            if watch.writes.is_empty() {
                continue;
            }
            let insts = &follower.machine.codes()[visit.node].insts;
            let writes = watch.writes.drain(..).rev();
            let mut writes = writes.filter_map(|(inst, range)| {
                let op = inst.map(|inst| insts[inst].op);
                written(self.run, visit, op, range)
            });
            last = writes.find(|write| write.time < time).or(last);
        }
        Ok(last)
    }

    /// Returns the last write to a byte before `time`, found by following the run from its current
    /// position, step by step.
    fn follow_steps(
        &mut self,
        byte: Range,
        time: u64,
    ) -> Result<Option<LastWrite>, StepsError<S::Error>> {
        let steps = &mut self.steps;
        steps.want(Wanted {
            level: Level::Memory,
            window: Window {
                first: 1,
                last: time.saturating_sub(1),
            },
            within: Within::default(),
            function: None,
            range: Some(byte),
        });
        let mut last: Option<Step> = None;
        while let Some(visit) = steps.follower.advance()?
            && visit.start < time
        {
            steps.execute(visit)?;
            let writes = |step: &Step| {
                step.what
                    .written()
                    .is_some_and(|range| overlap(range, byte))
            };
            last = steps.taken().filter(writes).last().or(last);
        }
        Ok(last.and_then(|step| {
            Some(LastWrite {
                time: step.time,
                function: step.function,
                op: step.op,
                range: step.what.written()?,
            })
        }))
    }
}

/// A site that always writes the same number of bytes.
#[derive(Clone, Copy)]
struct SiteWrite {
    op: OpId,
    /// The position of the site's instruction in the node. The registers differ between the code of
    /// the follower and the code of the whole execution trace.
    inst: usize,
    length: u64,
}

/// Returns the write of an operator in an execution of a node. Without an operator, returns the
/// write of the host function that the node called.
fn written<S: Segments>(
    run: Run<'_, S>,
    visit: Visit,
    op: Option<OpId>,
    range: Range,
) -> Option<LastWrite> {
    let node = &run.path.nodes()[visit.node];
    let cfg = &run.program.function(node.function)?.cfg;
    let ops_of = |block: &BlockId| cfg.blocks.get(*block).map(|block| block.ops.clone());
    let (time, op) = match op {
        Some(op) => {
            let mut blocks = (visit.start..).zip(&node.blocks);
            let has_it = |block| ops_of(block).is_some_and(|ops| ops.contains(&op));
            (blocks.find(|&(_, block)| has_it(block))?.0, op)
        }
        // The call is the last operator of the node's last block.
        None => {
            let end = ops_of(node.blocks.last()?)?.end.as_u32();
            (visit.last(), OpId::from_u32(end.checked_sub(1)?))
        }
    };
    Some(LastWrite {
        time,
        function: node.function,
        op: Some(op),
        range,
    })
}

/// Records the writes to a byte.
struct Watch {
    byte: Range,
    /// The instructions, or `None` for the host, with the ranges that they wrote.
    writes: Vec<(Option<usize>, Range)>,
}

impl Watch {
    #[inline]
    fn note(&mut self, inst: Option<usize>, range: Range) {
        if overlap(range, self.byte) {
            self.writes.push((inst, range));
        }
    }
}

impl Observer for Watch {
    const REGISTERS: bool = false;

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.note(Some(inst), range);
    }

    fn copy(&mut self, inst: usize, _: Range, to: Range) {
        self.note(Some(inst), to);
    }

    fn host_write(&mut self, range: Range) {
        self.note(None, range);
    }
}
