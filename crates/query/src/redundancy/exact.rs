//! Redundancy by addresses: exact, over the whole run.

use std::rc::Rc;

use afterimage_ids::FuncId;
use afterimage_machine::{Caller, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::shadow::MOST_SITES;
use super::tracker::Tracker;
use crate::steps::{AccessSite, Follower, NodeSites, Plans, Run, SiteTable, StepsError, is_access};

/// How many executions of a load were redundant.
///
/// An execution is redundant if an earlier load or store of a single value covered all bytes that it reads, and since then none of them was written: by a store, a bulk
/// operation or the host. Its source is the latest such access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRedundancy {
    /// The load.
    pub site: AccessSite,
    /// How often it was executed. Once at least; one that traps is no execution.
    pub executions: u64,
    /// How often it was redundant.
    pub redundant: u64,
    /// How often the source had been executed since the load's own activation began, by it or by what it called: what can be removed without looking at
    /// callers.
    pub within: u64,
    /// Where from: those that were so most often first.
    pub sources: Vec<LoadSource>,
}

/// A load or store from which another load had its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSource {
    /// The load or store.
    pub site: AccessSite,
    /// Whether it is a store.
    pub is_store: bool,
    /// How often.
    pub times: u64,
}

/// The redundancy of all loads of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redundancy {
    /// The loads that were executed, in the order of the program.
    pub loads: Vec<LoadRedundancy>,
    /// How many instructions the run executed, as the machine counts them: moves and constants are none.
    pub instructions: u64,
}

/// Finds how redundant the loads of a run are, by following it. Time is linear in the run, memory in the memory that the guest touches: eight times that, and more where
/// the same bytes are accessed in pieces of different sizes.
///
/// # Errors
/// If the run cannot be followed.
pub fn load_redundancy<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Redundancy, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let nodes = run.path.nodes();
    let mut table = SiteTable::of_all(is_access, nodes.len());
    let mut follower = Follower::new(run, log)?;
    let mut plans = Plans::new(run);
    let mut watch = Watch {
        sites: Rc::default(),
        tracker: Tracker::new(run.program.memories as usize, u32::MAX),
        instructions: 0,
    };
    while let Some(visit) = follower.next()? {
        watch.sites = match table.known(visit.node) {
            Some(known) => known,
            None => {
                let plan = plans.of(visit.node, &follower)?;
                let code = &follower.machine.codes()[visit.node];
                let sites = table.add(visit.node, code, &plan);
                if table.sites.len() > MOST_SITES as usize {
                    return Err(StepsError::Sites(MOST_SITES));
                }
                watch.tracker.sites(table.sites.len());
                sites
            }
        };
        watch.instructions += follower.machine.codes()[visit.node].insts.len() as u64;
        follower.execute(visit, &mut watch)?;
    }
    let loads = watch.tracker.finish(&table.sites);
    Ok(Redundancy {
        loads,
        instructions: watch.instructions,
    })
}

struct Watch {
    sites: Rc<NodeSites>,
    tracker: Tracker,
    instructions: u64,
}

impl Observer for Watch {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        if let Some((site, _)) = self.sites.get(inst) {
            self.tracker.load(site, range);
        }
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        match self.sites.get(inst) {
            Some((site, _)) => self.tracker.store(site, range),
            None => self.tracker.written(range),
        }
    }

    fn fill(&mut self, _inst: usize, range: Range) {
        self.tracker.written(range);
    }

    fn copy(&mut self, _inst: usize, _from: Range, to: Range) {
        self.tracker.written(to);
    }

    fn host_write(&mut self, range: Range) {
        self.tracker.written(range);
    }

    #[inline]
    fn enter(&mut self, _function: FuncId, _by: Caller) {
        self.tracker.enter();
    }

    #[inline]
    fn leave(&mut self, _results: Option<(u32, u32)>) {
        self.tracker.leave();
    }
}
