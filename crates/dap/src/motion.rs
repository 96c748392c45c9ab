//! Moves the run, and tells the client where it stopped.

use std::io::Write;

use afterimage::debugger::{Direction, Interrupted, Position, RunTo, Step};
use afterimage_present::grouped;
use anyhow::Result;
use serde_json::{Value, json};

use crate::client::Category;
use crate::debuggee::{Debuggee, THREAD, sentence};
use crate::protocol::GotoTargets;

/// A movement of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Motion {
    /// To the next or the previous breakpoint.
    Run(Direction),
    Step(Step, Direction),
    /// To the next or the previous operator of WebAssembly.
    Operator(Direction),
    To(Position),
    /// No motion: the run stops where it is, which is its beginning or the configured moment.
    Entry,
}

/// The place where the run stopped.
struct Stopped {
    at: Position,
    reason: &'static str,
    description: String,
    breakpoints: Vec<u64>,
}

impl<W: Write + Send + 'static> Debuggee<'_, '_, W> {
    /// Returns the first motion, after the client has finished its set-up.
    pub(crate) fn begin(&mut self) -> Motion {
        if std::mem::replace(&mut self.is_running, true)
            || self.launch.stop_on_entry
            || self.launch.goto.is_some()
        {
            return Motion::Entry;
        }
        Motion::Run(Direction::Forward)
    }

    /// Performs the motion, and tells the client where the run stopped.
    pub(crate) fn go(&mut self, motion: Motion) {
        let before = self.at;
        let stopped = self.gone(motion).unwrap_or_else(|error| {
            let interrupted = self.client.is_interrupted();
            if !interrupted {
                let text = format!("afterimage: {}\n", sentence(&error));
                self.client.output(Category::Stderr, &text);
            }
            Stopped {
                at: before,
                reason: "pause",
                description: match error.downcast_ref() {
                    Some(Interrupted { looked_at }) if interrupted && *looked_at > 0 => format!(
                        "Interrupted after {} executions were tested: the position has not changed",
                        grouped(*looked_at)
                    ),
                    _ if interrupted => "Interrupted: the position has not changed".to_owned(),
                    _ => sentence(&error),
                },
                breakpoints: Vec::new(),
            }
        });
        self.moved_to(stopped.at);
        if stopped.reason == "exception" {
            self.exception = Some(stopped.description.clone());
        }
        let mut body = json!({
            "reason": stopped.reason,
            "description": stopped.description,
            "threadId": THREAD,
            "allThreadsStopped": true,
        });
        if stopped.reason == "exception" {
            body["text"] = stopped.description.into();
        }
        if !stopped.breakpoints.is_empty() {
            body["hitBreakpointIds"] = stopped.breakpoints.into();
        }
        self.client.event("stopped", body);
    }

    fn gone(&mut self, motion: Motion) -> Result<Stopped> {
        let from = self.at;
        let stopped = |at, reason, description: &str| Stopped {
            at,
            reason,
            description: description.to_owned(),
            breakpoints: Vec::new(),
        };
        match motion {
            Motion::Entry => Ok(stopped(from, "entry", "The recording is open")),
            Motion::To(at) => Ok(stopped(at, "goto", "Went there")),
            Motion::Run(direction) => {
                let found = self.points.run_to(self.debugger, from, direction, None)?;
                self.tell_looked_at(&found);
                match found.at {
                    Some(at) => self.hit(from, at, &found),
                    None => self.end(from, direction),
                }
            }
            Motion::Operator(direction) => match self.debugger.step_operator(from, direction)? {
                Some(at) => Ok(stopped(at, "step", "")),
                None => self.end(from, direction),
            },
            Motion::Step(step, direction) => {
                let target = self.debugger.step(from, step, direction)?;
                let found = self.points.run_to(self.debugger, from, direction, target)?;
                match (found.at, target) {
                    (Some(at), target) if Some(at) != target => self.hit(from, at, &found),
                    (_, Some(at)) => {
                        self.log(from, at)?;
                        Ok(stopped(at, "step", ""))
                    }
                    (_, None) => self.end(from, direction),
                }
            }
        }
    }

    fn hit(&self, from: Position, at: Position, found: &RunTo) -> Result<Stopped> {
        self.log(from, at)?;
        let (reason, breakpoints) = self.points.hit(&found.points);
        Ok(Stopped {
            at,
            reason,
            description: self.points.description(self.debugger, at, &found.points)?,
            breakpoints,
        })
    }

    /// Tells the client the number of executions at which conditions were tested, if the run did
    /// not stop or a condition had no value.
    fn tell_looked_at(&self, found: &RunTo) {
        if found.looked_at == 0 || found.at.is_some() && found.unknown == 0 {
            return;
        }
        let mut text = match found.at {
            Some(_) => format!("tested {} executions", grouped(found.looked_at)),
            None => format!(
                "no condition holds: tested {} executions",
                grouped(found.looked_at)
            ),
        };
        if let Some(why) = &found.why_unknown {
            text += &format!(
                "; at {} of them it had no value: {why}",
                grouped(found.unknown)
            );
        }
        self.client.output(Category::Console, &format!("{text}\n"));
    }

    /// Stops at the end of the run or, going backward, at its beginning.
    fn end(&self, from: Position, direction: Direction) -> Result<Stopped> {
        let debugger = self.debugger;
        let trap = debugger.session().trap()?;
        let (at, reason, description) = match (direction, trap) {
            (Direction::Backward, _) => {
                let text = "The recording begins here".to_owned();
                (debugger.first()?.min(from), "entry", text)
            }
            (Direction::Forward, Some(trap)) if self.points.stops_at_traps() => {
                (debugger.last()?, "exception", trap.why)
            }
            (Direction::Forward, _) => {
                let end = debugger.session().file().end()?;
                let ending = end.map_or("was cut off".to_owned(), |end| end.ending.to_string());
                let text = format!("The recording ends here: the program {ending}");
                (debugger.last()?, "pause", text)
            }
        };
        let at = match direction {
            Direction::Forward => at.max(from),
            Direction::Backward => at,
        };
        self.log(from, at)?;
        Ok(Stopped {
            at,
            reason,
            description,
            breakpoints: Vec::new(),
        })
    }

    /// Sends the messages of log points between two positions.
    fn log(&self, from: Position, to: Position) -> Result<()> {
        for line in self.points.logged(self.debugger, from, to)? {
            self.client.output(Category::Console, &line);
        }
        Ok(())
    }

    /// Returns the executions of a line that a client may go to.
    pub(crate) fn goto_targets(&mut self, wanted: &GotoTargets) -> Result<Value> {
        let path = self.file_of(&wanted.source)?;
        let line = self.numbering.number_of(wanted.line)?;
        let moments = self.debugger.moments(&path, line, self.at)?;
        self.targets.clear();
        let mut targets = Vec::new();
        for moment in moments {
            self.targets.push(moment.at);
            targets.push(json!({
                "id": self.targets.len(),
                "label": format!("#{} of {} ({})", grouped(moment.number), grouped(moment.count), moment.which),
                "line": self.numbering.line(moment.line),
            }));
        }
        Ok(json!({ "targets": targets }))
    }
}
