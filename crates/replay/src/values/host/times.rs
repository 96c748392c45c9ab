//! Finds the times at which the guest called the host.

use afterimage_ids::NodeId;
use afterimage_machine::Observer;
use afterimage_program::{BlockEnd, Callee};
use afterimage_wpp::Occurrences;

use super::{HostReads, HostReadsError};
use crate::steps::{Follower, Run};
use crate::whole_path::FileSegments;

/// The times at which the guest called the host, in order. These are the times of the blocks that
/// end with the calls.
pub(super) enum CallTimes<'a> {
    /// All calls occur at the ends of nodes that call an import, so executions of these nodes are
    /// counted.
    Counted(Occurrences<'a, FileSegments>),
    /// Some imports are called through tables, so the run was followed to find the calls.
    Followed(Vec<u64>),
}

impl<'a> CallTimes<'a> {
    /// Finds the call times. O(nodes of the path), unless imports are called through tables.
    pub fn new(of: &HostReads<'_, 'a>) -> Result<Self, HostReadsError> {
        let run = of.run;
        let (mut direct, mut indirect) = (Vec::new(), false);
        for (id, node) in run.path.nodes() {
            let function = run.program.function(node.function);
            let last = node.blocks.last();
            let block = function.zip(last).and_then(|(f, &b)| f.cfg.blocks.get(b));
            let end = block.map(|block| block.end);
            let Some(BlockEnd::Call(callee) | BlockEnd::TailCall(callee)) = end else {
                continue;
            };
            match callee {
                Callee::Direct(callee) if run.program.function(callee).is_none() => {
                    direct.push((id, node.length() - 1));
                }
                Callee::Direct(_) => {}
                Callee::Indirect { .. } => indirect = true,
            }
        }
        let is_direct = |node: NodeId| direct.iter().any(|&(id, _)| id == node);
        let last = run.path.cursor().seek(run.path.length())?;
        let last = last.filter(|last| is_direct(last.node));
        let counted = run.path.executions(direct)?;
        // Each of these executions made a call, except perhaps the last node of the run.
        let before = counted.count() - u64::from(last.is_some());
        let calls = of.host()?.by_guest();
        let all = match last {
            _ if calls == before => true,
            Some(last) if calls == before + 1 => {
                !indirect
                    || matches!(of.values.at(last.start)?, Some(at) if of.values.host_call(at).is_ok_and(|call| call.is_some()))
            }
            _ => false,
        };
        if all {
            Ok(Self::Counted(counted))
        } else {
            of.follow_calls().map(Self::Followed)
        }
    }

    /// Returns the time of the guest's call with this number, from 1.
    pub fn get(&self, of_guest: u64) -> Result<Option<u64>, HostReadsError> {
        Ok(match self {
            Self::Counted(all) => all.select(of_guest)?.map(|found| found.time),
            Self::Followed(times) => {
                let position = of_guest.checked_sub(1);
                let position = position.and_then(|at| usize::try_from(at).ok());
                position.and_then(|at| times.get(at)).copied()
            }
        })
    }

    /// Returns the number of calls that the guest makes before a block.
    pub fn before(&self, time: u64) -> Result<u64, HostReadsError> {
        Ok(match self {
            Self::Counted(all) => all.rank(time.saturating_sub(1))?,
            Self::Followed(times) => times.partition_point(|&call| call < time) as u64,
        })
    }
}

/// An observer that counts host calls.
#[derive(Default)]
struct Calls(u64);

impl Observer for Calls {
    const REGISTERS: bool = false;

    fn host_call(&mut self) {
        self.0 += 1;
    }
}

impl HostReads<'_, '_> {
    /// Returns the times of all calls, by following the run.
    fn follow_calls(&self) -> Result<Vec<u64>, HostReadsError> {
        let run = Run {
            checkpoints: None,
            ..self.run
        };
        let host = self.host()?;
        let mut follower = Follower::new(run, self.file.log()?)?;
        let (mut calls, mut times) = (Calls::default(), Vec::new());
        while let Some(visit) = follower.advance()? {
            let before = calls.0;
            follower.execute(visit, &mut calls)?;
            let made = (before + 1..=calls.0).filter(|&call| host.of_guest(call).is_some());
            times.extend(made.map(|_| visit.last()));
        }
        Ok(times)
    }
}
