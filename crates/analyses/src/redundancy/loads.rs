//! Computes the exact redundancy of loads over the whole run from their addresses.

use std::rc::Rc;

use afterimage_ids::FuncId;
use afterimage_machine::{Caller, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::answer::Redundancy;
use super::places::{OfNode, Places};
use super::shadow::MOST_PLACES;
use super::tracker::Tracker;
use afterimage_replay::steps::{Follower, Run, StepsError, is_access};

/// Follows a run and finds how redundant its loads are.
///
/// Time is linear in the run. Memory is linear in the memory that the guest touches. The first 16
/// MiB need eight bytes per byte. The records of the rest are packed, and take less space if
/// accesses are regular.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn load_redundancy<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Redundancy, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut places = Places::new(is_access, run.path.nodes().len());
    let mut follower = Follower::new(run, log)?;
    let mut watch = Watch {
        places: Rc::default(),
        tracker: Tracker::new(u32::MAX),
    };
    let mut instructions = 0;
    while let Some(visit) = follower.advance()? {
        let code = &follower.machine.codes()[visit.node];
        watch.places = match places.known(visit.node) {
            Some(known) => Rc::clone(known),
            None => {
                let added = places.add(visit.node, code);
                let added = added.ok_or(StepsError::Sites(MOST_PLACES))?;
                watch.tracker.places(places.all.len());
                added
            }
        };
        instructions += code.insts.len() as u64;
        watch.tracker.path();
        follower.execute(visit, &mut watch)?;
    }
    Ok(Redundancy {
        operators: watch.tracker.finish(&places.all),
        instructions,
    })
}

struct Watch {
    places: Rc<OfNode>,
    tracker: Tracker,
}

impl Observer for Watch {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        if let Some(place) = self.places.get(inst) {
            self.tracker.load(place, range);
        }
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        match self.places.get(inst) {
            Some(place) => self.tracker.store(place, range),
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
