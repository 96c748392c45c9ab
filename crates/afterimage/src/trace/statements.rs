//! Shows executed statements, and accesses to memory.

use std::collections::VecDeque;
use std::mem;

use afterimage_present::{
    CodeOf, FoldedSteps, PresentError, StepScene, TraceHead, step_rows, steps_binary, steps_text,
};
use afterimage_replay::steps::{Run, Step, Wanted, last_steps};
use anyhow::Result;

use super::skip::SkippingSteps;
use super::{Rest, Shown, Target, TraceQuery, ending};
use crate::own::OwnLines;
use crate::steps::follow;

impl TraceQuery {
    /// Writes the steps of the wanted part of the run.
    pub(super) fn statements(
        &self,
        shown: Shown<'_, '_>,
        wanted: Wanted,
        telling: impl FnOnce(&mut dyn FnMut(Target<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
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
            // Prefer checkpoints, because they restore less memory than snapshots.
            let run = match run.checkpoints {
                Some(_) => run,
                None => Run { snapshots, ..run },
            };
            let mut rows = VecDeque::new();
            let mut kept;
            let (mut read, mut reading) = (None, None::<&SkippingSteps<'_>>);
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
            } else {
                let wanted = (wanted, self.reverse);
                let steps = read.insert(SkippingSteps::new(traced, shown.own, run, wanted)?);
                let steps = &*steps;
                next = Box::new(|| steps.next());
                reading = Some(steps);
            }
            let mut skip = |time| reading.map_or(Ok(None), |steps| steps.skip(time));
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
