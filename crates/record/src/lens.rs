//! Implements the counts lens, which re-executes a recording to compute its exact counts.

use afterimage_ids::{Counts, EntityRef, FuncId};
use afterimage_placement::{
    Mode, OpenFrame, Plan, PlanOptions, RunFacts, block_counts, measured_blocks, plan, solve,
};
use afterimage_program::{BlockEnd, Callee, OperatorIndex, Program};
use afterimage_rewrite::{
    Armed, CLOCK_AT, Marking, Options, OriginalPlace, Probes, Rewritten, Snapshots, rewrite,
};
use afterimage_trace::{CountsLens, End, Ending, Event, MAX_MEMORY, Standing};

use crate::RecordError;
use crate::deep::Treatment;
use crate::ending::{Activation, Outcome, frames, not_entered, open_frames};
use crate::engine::{REPLAY_STACK, Settings, engine};
use crate::live::word;
use crate::replay::{Observers, Replayed, Source, Stop, replay, unless_cancelled};
use crate::snapshots::Capturing;
use crate::weights::{self, weighted_plan};
use crate::whole_path::{PathHost, RecordedRun};
use wasmtime::Engine;

/// The maximum number of entries to try, between two polls, in the search for the entry that
/// overflowed the stack.
const OVERFLOW_TRIES: u64 = 256;

/// Computes the exact counts of a recorded execution.
///
/// # Errors
/// Returns an error if the recording cannot be repeated exactly, or the counts are not determined.
pub fn count(run: &RecordedRun<'_>, options: &PlanOptions<'_>) -> Result<CountsLens, RecordError> {
    let RecordedRun {
        bytes,
        program,
        cache,
        ..
    } = *run;
    let job = Job::open(*run)?;
    let the_plan = weighted_plan(program, bytes, options, cache)?;
    let (replayed, standing) = job.repeat(Some(&the_plan))?;
    let open = open_frames(program, &job.index, &replayed.outcome, &standing)?;
    let Repeated {
        counters,
        entered,
        calls,
        ..
    } = replayed;
    let course = Course {
        entered: &entered,
        calls,
        open,
        not_entered: not_entered(&standing),
    };
    let lens = solve_counts(program, &the_plan, &counters, course)?;
    weights::keep(cache, bytes, &lens);
    Ok(lens)
}

/// Re-executes a recording without counting, and checks that it behaves the same.
///
/// # Errors
/// Returns the errors of [`count`].
pub fn check(run: &RecordedRun<'_>) -> Result<(), RecordError> {
    Job::open(*run)?.repeat(None).map(|_| ())
}

/// Re-executes a recording with a counter in every block, and compares each counter with the
/// counts. Returns the number of blocks compared.
///
/// # Errors
/// Returns the errors of [`count`], and [`RecordError::BlockDiffers`].
pub fn check_blocks(run: &RecordedRun<'_>, counts: &Counts) -> Result<u64, RecordError> {
    let program = run.program;
    let job = Job::open(*run)?;
    let the_plan = plan(program, &PlanOptions::new(Mode::Slow))?;
    let (repeated, _) = job.repeat(Some(&the_plan))?;
    let measured = measured_blocks(program, &the_plan, &repeated.counters)?;
    let derived = block_counts(program, counts)?;
    let mut compared = 0;
    for (function, (measured, derived)) in
        program.functions.iter().zip(measured.iter().zip(&derived))
    {
        for (block, (measured, derived)) in measured.iter().zip(derived).enumerate() {
            let Some(measured) = measured else { continue };
            if measured != derived {
                return Err(RecordError::BlockDiffers {
                    function: function.id.as_u32(),
                    block: block as u32,
                    measured: *measured,
                    derived: *derived,
                });
            }
            compared += 1;
        }
    }
    Ok(compared)
}

/// A re-execution that ended like the recording.
pub(crate) struct Repeated {
    pub outcome: Outcome,
    pub counters: Vec<u64>,
    pub entered: Vec<FuncId>,
    pub calls: Vec<u64>,
    /// The number of entries of the armed function that were skipped.
    pub skip: u64,
}

/// A recording to re-execute.
pub(crate) struct Job<'a> {
    run: RecordedRun<'a>,
    pub(crate) program: &'a Program,
    pub(crate) index: OperatorIndex<'a>,
    pub(crate) end: End,
    treatment: Treatment,
}

/// The options for repeating a run.
pub(crate) struct Repeat<'a> {
    pub probes: Probes<'a>,
    /// The number of entries of the armed function to skip.
    pub skip: u64,
    /// The kind of snapshots to take, or `None` to take none. With snapshots, written memory is
    /// marked, too.
    pub snapshots: Option<Snapshots>,
}

impl<'a> Repeat<'a> {
    /// Repeats the run with these probes, without snapshots.
    pub(crate) fn of(probes: Probes<'a>) -> Self {
        Self {
            probes,
            skip: 0,
            snapshots: None,
        }
    }
}

/// One attempt to repeat a run with a module, up to a stop.
pub(crate) type Attempt<'x> =
    dyn FnMut(&Job<'_>, &Engine, &Rewritten, Stop) -> Result<Replayed, RecordError> + 'x;

impl<'a> Job<'a> {
    /// Reads how the recording ended. Fails if it was cut off, because then it cannot be repeated.
    pub(crate) fn open(run: RecordedRun<'a>) -> Result<Self, RecordError> {
        let program = run.program;
        Ok(Self {
            run,
            program,
            index: OperatorIndex::new(program, run.bytes),
            end: run.file.end()?.ok_or(RecordError::Cut)?,
            treatment: Treatment::of(program),
        })
    }

    /// Repeats the run once, on its own thread.
    pub(crate) fn replay(
        &self,
        engine: &Engine,
        rewritten: &Rewritten,
        stop: Stop,
        paths: Option<PathHost>,
        snapshots: Option<Capturing>,
    ) -> Result<Replayed, RecordError> {
        let progress = self.run.progress;
        let counts_polls = self.run.cancel.is_some() && self.end.clock.is_some();
        let polls = counts_polls.then_some(progress);
        unless_cancelled(self.run.cancel, polls, |interrupt| {
            let source = Source {
                cache: self.run.cache,
                program: self.program,
                file: self.run.file,
                progress: (!counts_polls).then_some(progress),
                interrupt,
            };
            let observers = Observers {
                paths,
                snapshots,
                watching: None,
            };
            replay(engine, &source, rewritten, stop, observers)
        })
    }

    /// Re-executes up to the end of the recording.
    pub(crate) fn repeat(
        &self,
        the_plan: Option<&Plan>,
    ) -> Result<(Repeated, Vec<Activation>), RecordError> {
        let repeat = Repeat::of(the_plan.into());
        self.repeat_with(repeat, &mut |job, engine, rewritten, stop| {
            job.replay(engine, rewritten, stop, None, None)
        })
    }

    /// Re-executes the run, several times if needed. Only the results of the last attempt are
    /// valid.
    pub(crate) fn repeat_with(
        &self,
        repeat: Repeat<'_>,
        attempt: &mut Attempt<'_>,
    ) -> Result<(Repeated, Vec<Activation>), RecordError> {
        let Repeat {
            probes,
            skip,
            snapshots,
        } = repeat;
        let engine = engine(Settings {
            optimised: self.treatment.optimised,
            debugger: snapshots == Some(Snapshots::Debugged),
            ..Settings::with_stack(REPLAY_STACK)
        })?;
        let mut options = Options {
            large: self.treatment.large.clone(),
            export_start: true,
            snapshots,
            marks: snapshots.map(|_| Marking::Lines { most: MAX_MEMORY }),
            clock: snapshots.is_some(),
            ..Options::default()
        };
        let mut stop = self.stop(&mut options, skip)?;
        // If nobody stopped the run, only this comparison checks the stop clock.
        let clock = match (probes, stop) {
            (Probes::None, Stop::Never) => self.end.clock,
            _ => None,
        };
        options.clock |= clock.is_some() || self.run.cancel.is_some();
        loop {
            let rewritten = rewrite(self.run.bytes, self.program, probes, &options)?;
            let replayed = attempt(self, &engine, &rewritten, stop);
            // If the run was cancelled, a consumer of its output may also have failed. Ignore that
            // error.
            if self.run.is_cancelled() {
                return Err(RecordError::Interrupted);
            }
            let Replayed {
                outcome,
                memory,
                calls,
                entered,
                ..
            } = replayed?;
            let trapped = self.end.frames.first();
            let trapped = trapped.filter(|_| matches!(self.end.ending, Ending::Trapped { .. }));
            let mut standing =
                outcome.standing(self.program, &self.index, &rewritten.map, trapped)?;
            if let (Some(Armed::Call(function, _, offset)), Some(top)) =
                (options.armed, self.end.frames.first())
                && outcome.is_unreachable()
                && standing.first()
                    == Some(&Activation {
                        function,
                        place: OriginalPlace::Operator(offset),
                    })
            {
                // The run stopped just before the call that overflowed the stack.
                standing.insert(
                    0,
                    Activation {
                        function: top.function,
                        place: OriginalPlace::Prologue,
                    },
                );
            }
            let same_stack = frames(self.program, &standing)? == self.end.frames;
            if let Stop::AtEntry { clock, skip } = stop
                && !same_stack
            {
                // Since the last poll, the function was also entered while the stack still had
                // room.
                if skip == OVERFLOW_TRIES || matches!(outcome, Outcome::Returned) {
                    return Err(RecordError::OverflowNotFound);
                }
                stop = Stop::AtEntry {
                    clock,
                    skip: skip + 1,
                };
                continue;
            }
            let by = match self.end.ending {
                Ending::Interrupted { by } => Some(by),
                _ => None,
            };
            let ending = outcome.ending(&standing, by);
            if ending != self.end.ending || !same_stack {
                let what = if ending == self.end.ending {
                    "it ended with a different stack".to_owned()
                } else {
                    format!(
                        "the guest {ending}; in the recording it {}",
                        self.end.ending
                    )
                };
                return Err(RecordError::Diverged {
                    event: self.end.events,
                    what,
                });
            }
            let found = word(&memory, CLOCK_AT);
            if let Some(said) = clock.filter(|said| *said != found) {
                return Err(RecordError::Clock { said, found });
            }
            let counters = rewritten
                .layout
                .counters(&memory)
                .ok_or(RecordError::NoCounters)?;
            return Ok((
                Repeated {
                    outcome,
                    counters,
                    entered,
                    calls,
                    skip: match stop {
                        Stop::AtEntry { skip, .. } => skip,
                        _ => 0,
                    },
                },
                standing,
            ));
        }
    }

    /// Determines where to stop the re-execution, and sets the instrumentation options that the
    /// stop needs.
    fn stop(&self, options: &mut Options, skip: u64) -> Result<Stop, RecordError> {
        let asynchronous = matches!(
            self.end.ending,
            Ending::Interrupted { .. } | Ending::StackOverflow
        );
        if !asynchronous || self.ended_in_host_call()? {
            return Ok(Stop::Never);
        }
        let Some(clock) = self.end.clock else {
            return Err(RecordError::NoClock(self.end.ending.to_string()));
        };
        options.clock = true;
        Ok(match (&self.end.ending, self.end.frames.first()) {
            (Ending::StackOverflow, Some(top)) => {
                options.armed = Some(self.armed(top.function));
                Stop::AtEntry { clock, skip }
            }
            _ => Stop::AtPoll(clock),
        })
    }

    /// Determines where to wait for this function's overflow. If the call that overflowed names the
    /// function, the place is that call. Otherwise, the place is the function's entry, which other
    /// calls and tail calls may also reach.
    fn armed(&self, overflowed: FuncId) -> Armed {
        let call = || {
            let caller = self
                .end
                .frames
                .get(1)
                .filter(|frame| frame.standing == Standing::At)?;
            let (function, op) = self.index.find(caller.offset)?;
            let cfg = &self.program.function(function)?.cfg;
            let block = self.program.function(function)?.block_of(op)?;
            let direct = cfg.blocks[block].end == BlockEnd::Call(Callee::Direct(overflowed));
            let at_end = cfg.blocks[block].ops.end.as_u32() == op.as_u32() + 1;
            (direct && at_end).then_some(Armed::Call(function, op, caller.offset))
        };
        call().unwrap_or(Armed::Entry(overflowed))
    }

    fn ended_in_host_call(&self) -> Result<bool, RecordError> {
        let mut last = None;
        for event in self.run.file.log()? {
            last = Some(event?);
        }
        Ok(matches!(last, Some(Event::HostStop { .. })))
    }
}

/// Facts about a run that cannot be derived from its counters.
pub(crate) struct Course<'e> {
    /// The functions that the host called, one for each call.
    pub entered: &'e [FuncId],
    /// The number of calls to each import.
    pub calls: Vec<u64>,
    /// The activations that were open at the end.
    pub open: Vec<OpenFrame>,
    /// The functions that the run was about to enter when it ended.
    pub not_entered: Vec<FuncId>,
}

/// Computes the counts from a plan's counters and facts about the run.
pub(crate) fn solve_counts(
    program: &Program,
    the_plan: &Plan,
    counters: &[u64],
    course: Course<'_>,
) -> Result<CountsLens, RecordError> {
    let Course {
        entered,
        mut calls,
        open,
        not_entered,
    } = course;
    let mut entries = std::collections::BTreeMap::new();
    for &function in entered {
        match calls.get_mut(function.index()) {
            // The program exports this import, so the host called its own function, not a function
            // of the program.
            Some(calls) => {
                *calls = calls.checked_sub(1).ok_or_else(|| RecordError::Diverged {
                    event: 0,
                    what: "the host called an import that was never called".to_owned(),
                })?;
            }
            None => *entries.entry(function).or_insert(0) += 1,
        }
    }
    let host_entries = entries.into_iter().collect();
    let facts = RunFacts {
        host_entries,
        import_calls: Some(calls),
        open,
        not_entered,
    };
    let counts: Counts = solve(program, the_plan, counters, &facts)?;
    Ok(CountsLens {
        counts,
        mode: the_plan.mode.to_string(),
        counters: u64::from(the_plan.counters),
        increments: counters.iter().sum(),
    })
}
