//! Steps in one direction, without the steps of long library code.

use std::cell::RefCell;

use afterimage_present::PresentError;
use afterimage_profile::OwnFunctions;
use afterimage_replay::steps::{MachineError, ReverseSteps, Run, Step, Steps, StepsError, Wanted};
use afterimage_replay::whole_path::{FileSegments, PathFileError, Visits, Window};
use afterimage_trace::LogReader;

use crate::Session;
use crate::rows::next_of;

/// Steps of library code are left out if the next block of shown code is at least this far away.
const FAR: u64 = 1 << 16;
/// The number of blocks right before shown code whose steps are always read, to show the last of
/// these steps.
const BEFORE_SHOWN: u64 = 64;

/// Opens the log of a run.
type OpenLog<'s> = dyn FnMut() -> Result<LogReader, StepsError<PathFileError>> + 's;

/// The steps of a part of a run, in one direction.
pub(super) struct SkippingSteps<'s> {
    session: &'s Session,
    run: Run<'s, FileSegments>,
    wanted: Wanted,
    reverse: bool,
    /// The shown functions. If absent, all are shown.
    own: Option<&'s OwnFunctions<'s>>,
    steps: RefCell<Way<'s>>,
}

enum Way<'s> {
    Forward(Box<Steps<'s, FileSegments>>),
    Reverse(Box<ReverseSteps<'s, FileSegments, Box<OpenLog<'s>>>>),
}

impl<'s> SkippingSteps<'s> {
    /// Begins at the first step of the wanted part, or at its last step if the direction is
    /// reversed.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(
        session: &'s Session,
        own: Option<&'s OwnFunctions<'s>>,
        run: Run<'s, FileSegments>,
        (wanted, reverse): (Wanted, bool),
    ) -> Result<Self, PresentError> {
        Ok(Self {
            session,
            run,
            wanted,
            reverse,
            own,
            steps: RefCell::new(Way::new(session, run, (wanted, reverse))?),
        })
    }

    /// Returns the next step, or `None` after the last one.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn next(&self) -> Result<Option<Step>, PresentError> {
        match &mut *self.steps.borrow_mut() {
            Way::Forward(steps) => next_of(steps.next()),
            Way::Reverse(steps) => next_of(steps.next()),
        }
    }

    /// Leaves out the steps beyond `time` if library code executes for long from there. The next
    /// steps are those right before the library code ends, in this direction. Returns the last time
    /// at which the library code executes a block, or `None` if nothing was left out.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn skip(&self, time: u64) -> Result<Option<u64>, PresentError> {
        let Some(own) = self.own else {
            return Ok(None);
        };
        let all = self.wanted.window;
        let (end, window) = if self.reverse {
            let window = Window {
                last: time - 1,
                ..all
            };
            let end = self.shown(own, window)?.map_or(all.first, |time| time + 1);
            let last = end.saturating_add(BEFORE_SHOWN);
            (end, Window { last, ..all })
        } else {
            let window = Window {
                first: time + 1,
                ..all
            };
            let end = self.shown(own, window)?.map_or(all.last, |time| time - 1);
            let first = end.saturating_sub(BEFORE_SHOWN);
            (end, Window { first, ..all })
        };
        if end.abs_diff(time) <= FAR {
            return Ok(None);
        }
        let wanted = Wanted {
            window,
            ..self.wanted
        };
        let steps = Way::new(self.session, self.run, (wanted, self.reverse))?;
        self.steps.replace(steps);
        Ok(Some(end))
    }

    /// Returns the time of the first block of shown code in a window, in this direction.
    fn shown(&self, own: &OwnFunctions<'_>, window: Window) -> Result<Option<u64>, PresentError> {
        if window.first > window.last {
            return Ok(None);
        }
        let functions = self.session.program().functions.iter().map(|f| f.id);
        let shown = functions.filter(|f| own.shows(*f)).collect();
        let path = next_of(self.session.path())?;
        let mut visits = next_of(Visits::new(path, window, self.reverse, None))?;
        next_of(visits.keep_only(shown))?;
        let visit = next_of(visits.next_visit())?;
        Ok(visit.map(|visit| match self.reverse {
            true => visit.last().min(window.last),
            false => visit.start.max(window.first),
        }))
    }
}

impl<'s> Way<'s> {
    fn new(
        session: &'s Session,
        run: Run<'s, FileSegments>,
        (wanted, reverse): (Wanted, bool),
    ) -> Result<Self, PresentError> {
        let mut log: Box<OpenLog<'s>> = Box::new(|| {
            let log = session.file().log();
            log.map_err(|error| MachineError::from(error).into())
        });
        Ok(if reverse {
            Self::Reverse(Box::new(next_of(ReverseSteps::new(run, log, wanted))?))
        } else {
            Self::Forward(Box::new(next_of(Steps::new(run, next_of(log())?, wanted))?))
        })
    }
}
