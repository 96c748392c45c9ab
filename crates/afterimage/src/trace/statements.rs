//! Shows executed statements, and accesses to memory.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::mem;

use afterimage_present::{
    CodeOf, FoldedSteps, PresentError, StepScene, TraceHead, step_rows, steps_binary, steps_text,
};
use afterimage_profile::OwnFunctions;
use afterimage_replay::steps::{
    MachineError, ReverseSteps, Run, Step, Steps, StepsError, Wanted, last_steps,
};
use afterimage_replay::whole_path::{Visits, Window};
use anyhow::Result;

use super::{Rest, Shown, Target, TraceQuery, ending};
use crate::Session;
use crate::own::OwnLines;
use crate::steps::follow;

/// Steps of library code are left out if the next block of shown code is at least this far away.
const FAR: u64 = 1 << 16;
/// The number of blocks right before shown code whose steps are read even so, to show the last.
const BEFORE_SHOWN: u64 = 64;

/// Returns the time of the first block of shown code between two times, or the time after them.
fn next_shown(
    session: &Session,
    own: &OwnFunctions<'_>,
    (first, last): (u64, u64),
) -> Result<u64, Box<dyn Error + Send + Sync>> {
    if first > last {
        return Ok(last + 1);
    }
    let functions = session.program().functions.iter().map(|f| f.id);
    let shown = functions.filter(|f| own.shows(*f)).collect();
    let path = session.path().map_err(Box::new)?;
    let mut visits = Visits::new(path, Window { first, last }, false, None)?;
    visits.keep_only(shown)?;
    let next = visits.next_visit()?;
    Ok(next.map_or(last + 1, |visit| visit.start.max(first)))
}

impl TraceQuery {
    /// Writes the steps of the wanted part of the run.
    pub(super) fn statements(
        &self,
        shown: Shown<'_, '_>,
        wanted: Wanted,
        telling: impl FnOnce(&mut dyn FnMut(Target<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let unreadable = |error| PresentError::Path(Box::new(error));
        let (traced, limit) = (shown.program.session, self.limit);
        let Shown {
            program,
            positions,
            stretch,
            ..
        } = shown;
        let scene = &StepScene {
            own: shown.own,
            ..program.scene(shown.style)
        };
        let lines = (program.own.folded, program.names);
        let lines = OwnLines::new(traced, traced.path()?, lines);
        let code = |step: &Step| lines.of_step(program.operators, step, false);
        let code = shown.own.map(|own| (own, &code as &CodeOf<'_>));
        let snapshots = traced.snapshots()?;
        follow(traced, |run, log| {
            // Checkpoints restore less memory than snapshots.
            let run = match run.checkpoints {
                Some(_) => run,
                None => Run { snapshots, ..run },
            };
            let mut rows = VecDeque::new();
            let mut kept;
            let streamed = RefCell::new(None);
            let mut backwards;
            let mut next: Box<dyn FnMut() -> Result<Option<Step>, PresentError>>;
            if let (Some(last), Some((own, code))) = (self.last, code) {
                rows = Self::last_rows(traced, run, wanted, own, (last, code))?;
                if self.reverse {
                    rows.make_contiguous().reverse();
                }
                next = Box::new(|| Ok(None));
            } else if let Some(last) = self.last {
                kept = last_steps(run, log, wanted, last as usize)?;
                next = if self.reverse {
                    Box::new(|| Ok(kept.pop_back()))
                } else {
                    Box::new(|| Ok(kept.pop_front()))
                };
            } else if self.reverse {
                let log = || {
                    traced
                        .file()
                        .log()
                        .map_err(|error| StepsError::from(MachineError::from(error)))
                };
                backwards = ReverseSteps::new(run, log, wanted)?;
                next = Box::new(|| backwards.next().map_err(unreadable));
            } else {
                streamed.replace(Some(Steps::new(run, log, wanted)?));
                next = Box::new(|| match &mut *streamed.borrow_mut() {
                    Some(steps) => steps.next().map_err(unreadable),
                    None => Ok(None),
                });
            }
            let mut skip = |time: u64| {
                let (Some(own), true) = (shown.own, streamed.borrow().is_some()) else {
                    return Ok(None);
                };
                let all = wanted.window;
                let until =
                    next_shown(traced, own, (time + 1, all.last)).map_err(PresentError::Path)?;
                let first = until.saturating_sub(BEFORE_SHOWN);
                if first <= time + FAR {
                    return Ok(None);
                }
                let window = Window { first, ..all };
                let log = traced
                    .file()
                    .log()
                    .map_err(|error| unreadable(StepsError::from(MachineError::from(error))))?;
                let steps = Steps::new(run, log, Wanted { window, ..wanted });
                streamed.replace(Some(steps.map_err(unreadable)?));
                Ok(Some(until - 1))
            };
            let (level, length) = (wanted.level, traced.path()?.length());
            telling(&mut |to| {
                match to {
                    Target::Bin(out) => steps_binary(out, scene, &mut next, level, stretch, limit)?,
                    Target::Rows(to) => {
                        let head = TraceHead::of_steps(scene, level, stretch, length);
                        step_rows(to, head, scene, &mut next, limit)?
                    }
                    Target::Text(out) => {
                        let mut first = None;
                        let mut next = || {
                            let step = next()?;
                            if let Some(Step { time, op, .. }) = step {
                                first.get_or_insert((time, op));
                            }
                            Ok(step)
                        };
                        let mut rows = FoldedSteps::new(&mut next, code.map(|(_, code)| code))
                            .after(mem::take(&mut rows))
                            .skipping(&mut skip);
                        let level = (level, stretch.window.last);
                        let next = steps_text(out, scene, &mut rows, level, limit)?;
                        let Some(Step {
                            time, function, op, ..
                        }) = next
                        else {
                            return ending(out, traced, stretch, None);
                        };
                        let exact = op.map(|op| positions.written(function, op, time));
                        let exact = exact.transpose()?.flatten();
                        let goes_on = first.is_none_or(|(begun, operator)| {
                            begun != time || exact.is_some() && operator != op
                        });
                        if goes_on {
                            let next = exact.unwrap_or_else(|| time.to_string());
                            ending(out, traced, stretch, Some(Rest { next, count: None }))?;
                        } else {
                            // A continuation from this position would show the same lines again.
                            writeln!(out, "… and more: see them with --limit N, or --limit all")?;
                        }
                    }
                }
                Ok(())
            })
        })
    }
}
