//! Shows a run line by line, with the variables that changed.

mod bytes;
mod finished;
mod globals;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::slice;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_present::{LineEntry, PresentError};
use afterimage_profile::{Folded, Line, Source};
use afterimage_program::{Location, SourceMap, demangle};
use afterimage_replay::state::{
    Activation, Bodies, DebugError, Halt, Limits, Moment, OnMachine, Standing, follow_to,
};
use afterimage_replay::steps::{
    Enter, LineStep, LineSteps, Opened, Paused, Run, WantedLines, Within, activation_of,
};
use afterimage_replay::values::Bits;
use afterimage_replay::whole_path::{At, FileSegments, Positions, Prologue, Window};
use afterimage_trace::LogReader;
use anyhow::{Context, Result, bail};

use self::finished::{Scenes, Seen, StepEnd, StepEnds};
use self::globals::GlobalValues;
use crate::monitor::Note;
use crate::named::{NamedProgram, calls_within};

/// The maximum number of lines to find before following the run to them.
const AT_ONCE: usize = 1024;

/// The limits of printed values. Pointers are followed once, because their targets may change while
/// the pointers do not.
const LIMITS: Limits = Limits {
    pointers: 1,
    ..Limits::DEFAULT
};

/// The lines of a stretch, with the variables that changed.
pub(crate) struct Lines<'l, 'p> {
    program: NamedProgram<'p>,
    positions: &'l Positions<'p, FileSegments>,
    run: Run<'l, FileSegments>,
    folded: &'l Folded<'l>,
    wanted: WantedLines,
    /// The program's variables, or why there are none. `None` if no variables are wanted.
    scenes: Option<Result<Scenes<'l, 'p>, DebugError>>,
    bodies: Bodies<'p>,
    /// The arguments of activations, by the time at which each activation began.
    given: RefCell<HashMap<u64, Option<Box<[Bits]>>>>,
    prologues: RefCell<HashMap<FuncId, Prologue>>,
    ends: StepEnds,
    steps: Steps<'l>,
    found: VecDeque<LineEntry>,
    /// Whether the user was informed about the variables that are left out.
    said: Cell<bool>,
}

/// The source of the steps.
enum Steps<'l> {
    Path(Box<LineSteps<'l, FileSegments>>),
    /// The steps are already known.
    Kept(VecDeque<LineStep>),
}

/// A step, with its activation.
#[derive(Clone)]
struct ActivationStep {
    step: LineStep,
    entered: u64,
    /// The moment at which to read the variables. This is the moment of the step, but not before
    /// the end of the function's prologue.
    at: (u64, Option<OpId>),
    /// The end of the activation's previous step, if the changes since that step are wanted.
    end: Option<StepEnd>,
}

impl ActivationStep {
    fn key(&self) -> ((u64, Option<OpId>), u64, Option<OpId>) {
        (self.at, self.step.time, self.step.op)
    }
}

impl<'l, 'p> Lines<'l, 'p> {
    /// Finds the requested lines, or only the `last` of them.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub(crate) fn new(
        (program, positions): (NamedProgram<'p>, &'l Positions<'p, FileSegments>),
        run: Run<'l, FileSegments>,
        folded: &'l Folded<'l>,
        wanted: WantedLines,
        last: Option<usize>,
    ) -> Result<Self> {
        let stop = program.session.stops()?.first().copied();
        let steps = match last {
            None => Steps::Path(Box::new(LineSteps::new(run, folded, stop, wanted)?)),
            Some(last) => {
                let backwards = WantedLines {
                    reverse: true,
                    ..wanted
                };
                let mut all = LineSteps::new(run, folded, stop, backwards)?;
                let mut kept = VecDeque::new();
                while kept.len() < last
                    && let Some(step) = all.next()?
                {
                    if wanted.reverse {
                        kept.push_back(step)
                    } else {
                        kept.push_front(step)
                    }
                }
                Steps::Kept(kept)
            }
        };
        let scenes = |known| Scenes::new(known, (program.source, folded), LIMITS);
        Ok(Self {
            scenes: Some(program.session.variables().map(scenes)),
            bodies: Bodies::new(program.session.program(), program.session.bytes()),
            given: RefCell::default(),
            program,
            positions,
            prologues: RefCell::default(),
            ends: StepEnds::default(),
            run,
            folded,
            wanted,
            steps,
            found: VecDeque::new(),
            said: Cell::default(),
        })
    }

    /// Leaves out the variables. Then the run is not followed.
    pub(crate) fn without_variables(self) -> Self {
        Self {
            scenes: None,
            ..self
        }
    }

    /// Returns the next line, or `None` at the end. Looks for at most `most` lines at once.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<LineEntry>> {
        if let Some(entry) = self.found.pop_front() {
            return Ok(Some(entry));
        }
        let mut chunk = Vec::new();
        while chunk.len() < most.clamp(1, AT_ONCE)
            && let Some(step) = self.next_step()?
        {
            chunk.push(step);
        }
        if self.wanted.reverse {
            chunk.reverse();
        }
        let mut entries = self.entries(&chunk)?;
        if self.wanted.reverse {
            entries.reverse();
        }
        self.found = entries.into();
        Ok(self.found.pop_front())
    }

    fn next_step(&mut self) -> Result<Option<LineStep>> {
        Ok(match &mut self.steps {
            Steps::Path(steps) => steps.next()?,
            Steps::Kept(kept) => kept.pop_front(),
        })
    }

    /// Makes the entries of some steps, which are in chronological order.
    fn entries(&self, steps: &[LineStep]) -> Result<Vec<LineEntry>> {
        // The moments include each step and the previous step of its activation.
        let mut moments: Vec<ActivationStep> = Vec::new();
        let mut pairs = Vec::new();
        let mut latest: HashMap<u64, ActivationStep> = HashMap::new();
        for &step in steps {
            let activation = activation_of(self.run.path, &step)?;
            let entered = activation
                .context("a line is outside of all calls")?
                .entered;
            let mut stood = self.with_activation(step, entered)?;
            let before = match latest.get(&entered) {
                Some(before) => Some(before.clone()),
                None => {
                    let before = self.before(&stood)?;
                    moments.extend(before.clone());
                    before
                }
            };
            if before.is_some() && matches!(self.scenes, Some(Ok(_))) {
                stood.end = self.ends.before(self.run, self.folded, &step)?;
            }
            moments.push(stood.clone());
            latest.insert(entered, stood.clone());
            pairs.push((stood, before));
        }
        moments.sort_by_key(ActivationStep::key);
        let mut globals = match &self.scenes {
            Some(Ok(scenes)) => {
                GlobalValues::new(scenes.known, self.program.session.code(), LIMITS).ok()
            }
            Some(Err(_)) | None => None,
        };
        let states = match &self.scenes {
            None => Vec::new(),
            Some(Ok(scenes)) => self.states(scenes, &moments, globals.as_mut())?,
            Some(Err(why)) => moments.iter().map(|_| Err(why.to_string())).collect(),
        };
        if let Some(left_out) = globals.as_ref().and_then(GlobalValues::left_out)
            && !self.said.replace(true)
        {
            let session = self.program.session;
            session
                .monitor()
                .note(session.at(), &Note::Remark(left_out));
        }
        let state = |stood: &ActivationStep| {
            let found = moments.binary_search_by_key(&stood.key(), ActivationStep::key);
            let known = found
                .ok()
                .and_then(|found| Some((found, states.get(found)?)));
            known.context("the state at a line is missing")
        };
        let entry = |(stood, before): (ActivationStep, Option<ActivationStep>)| {
            let ActivationStep { step, entered, .. } = stood;
            let changed = || -> Result<_> {
                let finished = match &before {
                    Some(before) => Some((before, state(before)?)),
                    None => None,
                };
                Ok(match (state(&stood)?, finished) {
                    ((at, Ok(now)), Some((finished, (earlier, Ok(before)))))
                        if let Some(Ok(scenes)) = &self.scenes =>
                    {
                        let mut all = now.changed(before, (finished.step.line, step.line), scenes);
                        let globals = globals.as_ref();
                        all.extend(globals.iter().flat_map(|it| it.changed(at, earlier)));
                        Ok(all)
                    }
                    ((_, Ok(now)), _) => Ok(now.begun()),
                    ((_, Err(why)), _) => Err(why.clone()),
                })
            };
            let changed = self.scenes.is_some().then(changed).transpose()?;
            let offset = match step.op {
                Some(op) => self.program.operators.get(step.function, op)?,
                None => None,
            };
            let offset = offset.map(|found| found.offset);
            let at = Location {
                file: step.line.file,
                line: step.line.number,
                column: 0,
            };
            Ok(LineEntry {
                time: step.time,
                op: step.op,
                offset,
                function: step.function,
                name: self.program.names.function(step.function).to_owned(),
                inlined: offset.and_then(|offset| self.inlined(offset, step.line)),
                line: self.folded.line(at),
                depth: step.depth,
                entered,
                begins: before.is_none(),
                changed,
            })
        };
        pairs.into_iter().map(entry).collect()
    }

    fn with_activation(&self, step: LineStep, entered: u64) -> Result<ActivationStep> {
        let function = step.function;
        let known = self.prologues.borrow().get(&function).copied();
        let prologue = match known {
            Some(known) => known,
            None => {
                let found = self.positions.prologue(function)?;
                *self.prologues.borrow_mut().entry(function).or_insert(found)
            }
        };
        let At { time, op } = prologue.behind(entered);
        let at = (step.time, step.op).max((time, op));
        Ok(ActivationStep {
            step,
            entered,
            at,
            end: None,
        })
    }

    /// Returns the previous step of an activation.
    fn before(&self, stood: &ActivationStep) -> Result<Option<ActivationStep>> {
        let &ActivationStep { step, entered, .. } = stood;
        let window = Window {
            first: entered,
            last: step.time,
        };
        let wanted = WantedLines {
            window,
            within: Within::default(),
            reverse: true,
            enter: Enter::Nothing,
            function: None,
        };
        let stop = self.program.session.stops()?.first().copied();
        let mut all = LineSteps::new(self.run, self.folded, stop, wanted)?;
        let mut is_passed = false;
        while let Some(found) = all.next()? {
            if is_passed || (found.time, found.op) < (step.time, step.op) {
                return self.with_activation(found, entered).map(Some);
            }
            // Several lines may be reached at the same operator.
            is_passed = found.line == step.line && found.op == step.op;
        }
        Ok(None)
    }

    /// Reads the variables at some moments, in chronological order.
    fn states(
        &self,
        scenes: &Scenes<'_, '_>,
        moments: &[ActivationStep],
        mut globals: Option<&mut GlobalValues<'_>>,
    ) -> Result<Vec<Result<Seen, String>>> {
        let path = self.run.path;
        let mut activations = Vec::new();
        for &ActivationStep { at: (time, op), .. } in moments {
            activations.push(Activation::on_path(path, &self.bodies, time, op)?);
        }
        let halt = |activation: &Activation<'_>| Halt {
            start: activation.instance.time,
            instructions: activation.instructions(),
        };
        let halts = Vec::from_iter(activations.iter().map(halt));
        let name = |function: FuncId| self.program.names.function(function).to_owned();
        let unreached = || Err("the run ended before this line".to_owned());
        let mut states = Vec::from_iter(moments.iter().map(|_| unreached()));
        let mut failed = None;
        follow_to(
            self.run,
            self.log()?,
            &halts,
            |number, first_result, paused| {
                let mut show = || -> Result<_> {
                    let activation = &activations[number];
                    let ActivationStep { entered, end, .. } = &moments[number];
                    let entered = *entered;
                    let entry = Activation::beginning(&self.bodies, activation.function, entered)?;
                    let standing = Standing::of(Opened {
                        entered,
                        called: activation.time,
                    });
                    let contents = OnMachine {
                        paused,
                        first_result,
                        standing: &standing,
                        arguments: &|entered| self.arguments(activation.function, entered),
                        at_call: &|_, _| None,
                        lacks: Cell::new(false),
                    };
                    let moment = Moment {
                        activation,
                        contents: &contents,
                        entry: Some(&entry),
                        program: self.program.session.program(),
                        name: &name,
                    };
                    if let Some(globals) = &mut globals {
                        globals.look(number, &moment);
                    }
                    let written = |local| activation.written(path, &self.bodies, local);
                    let seen = scenes.look(&moment, end.as_ref(), written)?;
                    Ok(seen.map_err(|error| error.to_string()))
                };
                match show() {
                    Ok(state) => states[number] = state,
                    Err(error) => failed = failed.take().or(Some(error)),
                }
            },
        )?;
        match failed {
            Some(error) => Err(error),
            None => Ok(states),
        }
    }

    /// Among the functions inlined at an operator, returns the function that contains the line of a
    /// step at the operator.
    fn inlined(&self, offset: OrigOffset, line: Line) -> Option<String> {
        let mut frames = self.program.source.inlined_frames(offset);
        frames.drain(..calls_within(&frames, line));
        frames.pop();
        let shown = frames.into_iter().find(|frame| {
            let at = frame.location;
            at.is_some_and(|at| self.folded.shows(at.file))
        });
        let raw = shown?.function?;
        Some(demangle(&raw).unwrap_or(raw))
    }

    /// Returns the arguments of an activation.
    fn arguments(&self, function: FuncId, entered: u64) -> Option<Box<[Bits]>> {
        if let Some(known) = self.given.borrow().get(&entered) {
            return known.clone();
        }
        let program = self.program.session.program();
        let ty = program
            .function(function)
            .and_then(|of| program.types.get(of.ty));
        let count = ty.map_or(0, |ty| ty.params.len());
        let halt = Halt {
            start: entered,
            instructions: 0,
        };
        let mut found = None;
        let show = |_, _, paused: &Paused<'_>| {
            let inside = paused.inside;
            let high = inside.high.iter().copied().chain(std::iter::repeat(0));
            found = Some(inside.low.iter().copied().zip(high).take(count).collect());
        };
        let log = self.log().ok()?;
        // If this fails, values that depend on the arguments are missing.
        let _ = follow_to(self.run, log, slice::from_ref(&halt), show);
        self.given.borrow_mut().insert(entered, found.clone());
        found
    }

    fn log(&self) -> Result<LogReader> {
        Ok(self.program.session.file().log()?)
    }
}

/// Refuses a program without lines.
///
/// # Errors
/// Returns an error if the program has no line table.
pub(crate) fn check(source: &SourceMap<'_>) -> Result<()> {
    if source.rows().is_empty() {
        bail!("--level line: {}", source.missing());
    }
    Ok(())
}

/// Wraps an error for `present`.
pub(crate) fn unreadable(error: anyhow::Error) -> PresentError {
    PresentError::Path(error.into())
}
