//! Reports the call stack at a moment, and the values of its variables.

use std::cell::{Cell, OnceCell};

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{LastOwn, StateView, grouped};
use afterimage_profile::{Folded, OwnFunctions, Source};
use afterimage_program::{Location, Names, SourceMap, demangle};
use afterimage_replay::state::{
    Activation, Bodies, Call, Contents, DebugError, Followed, Frame, Globals, Guess, Halt,
    InlinedCall, Limits, Local, Moment, OnMachine, Recorded, Standing, StateError, StateReport,
    Variables, Written, calls, follow_standing, follow_to, globals, locals, variables,
    wasm_globals,
};
use afterimage_replay::steps::Paused;
use afterimage_replay::values::RecordedValues;
use afterimage_replay::whole_path::{At, PathFileError, Places, Visits, Window, time_of};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::early::{Early, Failure, early};
use crate::ended::{place_of_end, results};
use crate::explain::Scene;
use crate::named::{calls_ahead, frames_around};
use crate::source::is_library;
use crate::steps::follow;

/// Asks for the state at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateQuery {
    /// The moment: `parser.c:42#7`, `main#last`, `t=123456`, `50%`, `end`.
    pub at: String,
    /// The number of activations of the user's own code to show, from the innermost.
    pub depth: usize,
    /// The only activation to show, counted from 0 for the innermost. `None` means all.
    pub frame: Option<usize>,
    /// Whether to include the global variables.
    pub globals: bool,
}

/// The maximum number of library calls that a stack shows in addition to the user's own calls.
const LIBRARY: usize = 256;

/// The maximum number of global variables of the source to show.
const GLOBALS: usize = 200;

impl StateQuery {
    /// The default number of activations.
    pub const DEPTH: usize = 10;

    /// Creates a query about the innermost activations at a moment.
    pub fn new(at: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            depth: Self::DEPTH,
            frame: None,
            globals: false,
        }
    }

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<StateView> {
        let (traced, values) = (scene.traced, scene.values);
        let loaded = traced.module();
        let at = match place_of_end(traced, &self.at)? {
            Some(end) => end,
            None => {
                let positions = traced.positions(scene.names, scene.source())?;
                positions.moment(&self.at)?
            }
        };
        // Following the run once is faster than reading each variable from stretches.
        let followed = early(traced, |early| self.report_early(traced, early, at))?;
        if let Some(report) = followed {
            return self.view(traced, report);
        }
        let At { time, op } = at;
        let bodies = Bodies::new(&loaded.program, &loaded.bytes);
        let (stack, open) = calls(values, time, self.most())?;
        self.check_frame(open, time)?;
        let innermost = Activation::at(values, &bodies, time, op)?;
        let by_values = ByValues {
            values,
            bodies: &bodies,
        };
        let asked = StateContext {
            query: self,
            session: traced,
            names: scene.names,
            source: scene.source(),
            folded: scene.folded(),
            position: &|function, op| scene.position(function, op),
            length: values.path().length(),
            activations: &by_values,
            variables: &traced.variables(),
            innermost: &innermost,
            within: op.is_some(),
            ahead: self.ahead(traced, (scene.names, scene.source()), op, &innermost),
            stack,
            open,
        };
        let report = by_values.report(scene, &asked)?;
        self.view(traced, report)
    }

    /// Whether the moment is a time, which is known without the path.
    pub fn is_at_time(&self) -> bool {
        let found = time_of::<PathFileError>(&self.at, u64::MAX >> 1);
        found.is_ok_and(|time| time.is_some())
    }

    /// Answers from the snapshots of a recording, without its path and values. Returns `None` if
    /// the recording has no snapshots, or they do not suffice for the question.
    pub(crate) fn answer_early(&self, session: &Session) -> Result<Option<StateView>> {
        early(session, |early| {
            let length = early.length();
            let Some(time) = time_of::<PathFileError>(&self.at, length)? else {
                return Ok(None);
            };
            let op = match self.at.trim() {
                "end" => session.final_operator()?.map(|(_, op)| op),
                _ => None,
            };
            let report = self.report_early(session, early, At { time, op })?;
            report.map(|report| self.view(session, report)).transpose()
        })
    }

    fn report_early(
        &self,
        session: &Session,
        early: &Early<'_>,
        At { time, op }: At,
    ) -> Result<Option<StateReport>> {
        let source = session.source_map();
        let names = session.program_names();
        let folded = session.folded(source);
        let (program, bytes) = (session.program(), session.bytes());
        let bodies = Bodies::new(program, bytes);
        let known = OnceCell::new();
        let position = |function, op| {
            let operators = known.get_or_init(|| session.operators());
            let found = operators.get(function, op)?;
            Ok(found.and_then(|found| found.position))
        };
        let (path, _) = early.stretch_to(time)?;
        let innermost = Activation::on_path(&path, &bodies, time, op)?;
        let halt = Halt {
            start: innermost.instance.time,
            instructions: innermost.instructions(),
        };
        let failure = Failure::default();
        let arguments = |entered| failure.keep(early.arguments(&bodies, entered)).flatten();
        let at_call = |activation: &Activation<'_>, variable| {
            let (time, op) = (activation.time, activation.op);
            // If this fails, the question is answered from the values.
            let found = early.variable_before(&bodies, (time, op), variable);
            found.ok().flatten()
        };
        let variables = session.variables();
        let found = early.on(path, |run, log| {
            let show = |standing: Standing, first_result, paused: &Paused<'_>| {
                let open = standing.open.len();
                self.check_frame(open, time)?;
                let by_stretches = ByStretches {
                    early,
                    bodies: &bodies,
                    standing: &standing,
                    failure: &failure,
                };
                let contents = OnMachine {
                    paused,
                    first_result,
                    standing: &standing,
                    arguments: &arguments,
                    at_call: &at_call,
                    lacks: Cell::new(false),
                };
                let asked = StateContext {
                    query: self,
                    session,
                    names,
                    source,
                    folded: &folded,
                    position: &position,
                    length: early.length(),
                    activations: &by_stretches,
                    variables: &variables,
                    innermost: &innermost,
                    within: op.is_some(),
                    ahead: self.ahead(session, (names, source), op, &innermost),
                    stack: standing.calls(&innermost, self.most()),
                    open,
                };
                let outside = || (0, String::new());
                asked.of_contents(&contents, &outside, &|| !contents.lacks.get())
            };
            Ok(follow_standing(run, log, halt, show)?)
        })?;
        failure.report()?;
        found.transpose().map(Option::flatten)
    }

    /// Returns the number of inlined calls that the innermost activation is about to enter.
    fn ahead(
        &self,
        session: &Session,
        (names, source): (&Names, &SourceMap<'_>),
        op: Option<OpId>,
        innermost: &Activation<'_>,
    ) -> usize {
        op.map_or(0, |_| {
            let resolver = session.resolver(names, source);
            calls_ahead(&resolver, source, &self.at, innermost.offset)
        })
    }

    /// Returns the number of activations that the answer needs.
    fn most(&self) -> usize {
        match self.frame {
            Some(frame) => frame.saturating_add(1),
            None => self.depth.saturating_add(LIBRARY),
        }
    }

    fn check_frame(&self, open: usize, time: u64) -> Result<()> {
        match self.frame {
            Some(frame) if frame >= open => {
                bail!(
                    "--frame {frame}: {open} functions are active at t={}, numbered from 0",
                    grouped(time)
                )
            }
            _ => Ok(()),
        }
    }

    fn view(&self, session: &Session, report: StateReport) -> Result<StateView> {
        let no_own = self.frame.is_none() && report.frames.iter().all(|frame| frame.library);
        let before = no_own.then(|| last_own(session, report.time)).transpose()?;
        Ok(StateView {
            report,
            before,
            // At the end of the run, show the results of the invoked function.
            results: match self.at.trim() {
                "end" => results(session.file())?,
                _ => None,
            },
        })
    }
}

/// Returns the last line of the user's own code before a time, if the path exists.
fn last_own(session: &Session, time: u64) -> Result<LastOwn> {
    let Ok(path) = session.path() else {
        return Ok(LastOwn(None));
    };
    let source = session.source_map();
    let names = session.program_names();
    let folded = session.folded(source);
    let program = session.program();
    let own = OwnFunctions::new(&folded, program, names);
    let places = Places::new(program, session.bytes(), &folded);
    let window = Window {
        first: 1,
        last: time.min(path.length()),
    };
    let functions = program.functions.iter().map(|function| function.id);
    let mut visits = Visits::new(path, window, true, None)?;
    visits.keep_only(functions.filter(|function| own.shows(*function)).collect())?;
    while let Some(visit) = visits.next_visit()? {
        let node = &path.nodes()[visit.node];
        for at in window.part(visit).rev() {
            let Some(&block) = node.blocks.get(at as usize) else {
                continue;
            };
            let place = places.block(node.function, block)?;
            if let Some(position) = place.and_then(|place| place.end.or(place.position)) {
                return Ok(LastOwn(Some((folded.line(position), visit.start + at))));
            }
        }
    }
    Ok(LastOwn(None))
}

/// Finds the activations that are open at a moment.
trait Activations<'a> {
    /// Returns an activation that waits for a call, at the moment before the call. `number` is its
    /// position, from 0 for the innermost.
    fn outer(&self, number: usize, call: &Call) -> Result<Activation<'a>>;

    /// Returns an activation at its beginning.
    fn entry(&self, call: &Call) -> Result<Activation<'a>>;

    /// Returns the last write to a local since the activation began.
    fn written(
        &self,
        activation: &Activation<'a>,
        local: u32,
    ) -> Result<Option<Written>, StateError>;
}

/// Activations from the whole execution trace.
struct ByValues<'s, 'a> {
    values: &'s RecordedValues<'a>,
    bodies: &'s Bodies<'a>,
}

impl<'s, 'a: 's> Activations<'s> for ByValues<'_, 'a> {
    fn outer(&self, _: usize, call: &Call) -> Result<Activation<'s>> {
        Ok(Activation::at_call(self.values, self.bodies, call.time)?)
    }

    fn entry(&self, call: &Call) -> Result<Activation<'s>> {
        Ok(Activation::at_block(
            self.values,
            self.bodies,
            call.entered,
        )?)
    }

    fn written(
        &self,
        activation: &Activation<'s>,
        local: u32,
    ) -> Result<Option<Written>, StateError> {
        activation.written(self.values.path(), self.bodies, local)
    }
}

/// Activations from stretches of the path that are followed from snapshots.
struct ByStretches<'s, 'a> {
    early: &'s Early<'s>,
    bodies: &'s Bodies<'a>,
    standing: &'s Standing,
    failure: &'s Failure,
}

impl ByStretches<'_, '_> {
    /// Returns the depth of an activation, counted from the outermost.
    fn depth(&self, number: usize) -> usize {
        self.standing.open.len() - 1 - number
    }
}

impl<'s, 'a: 's> Activations<'s> for ByStretches<'_, 'a> {
    fn outer(&self, number: usize, call: &Call) -> Result<Activation<'s>> {
        let waits = self.standing.waiting.get(self.depth(number));
        let waits = waits.context("an activation does not wait for a call")?;
        let (function, block) = (waits.function, waits.block);
        Ok(Activation::waiting(
            self.bodies,
            function,
            block,
            call.time,
        )?)
    }

    fn entry(&self, call: &Call) -> Result<Activation<'s>> {
        Ok(Activation::beginning(
            self.bodies,
            call.function,
            call.entered,
        )?)
    }

    fn written(
        &self,
        activation: &Activation<'s>,
        local: u32,
    ) -> Result<Option<Written>, StateError> {
        // If the path cannot be read, `failure` reports the error.
        let path = self.failure.keep(self.early.path());
        let path = path.ok_or(StateError::NoMoment(activation.time))?;
        activation.written(path, self.bodies, local)
    }
}

impl<'a> ByValues<'_, 'a> {
    /// Returns the report. Takes it from the trace alone if that suffices, and otherwise follows
    /// the run to the moment.
    fn report(&self, scene: &Scene<'_, 'a>, asked: &StateContext<'_, '_>) -> Result<StateReport> {
        let recorded = Recorded::new(self.values);
        let outside = || recorded.outside();
        // If the run must be followed anyway, do not look up locals in the trace first.
        if !asked.will_need_memory()? {
            let is_enough = || recorded.is_enough();
            if let Some(report) = asked.of_contents(&recorded, &outside, &is_enough)? {
                return Ok(report);
            }
            // The trace is the only source for values of waiting activations.
            if let Some(error) = recorded.failure()
                && asked.stack.len() > 1
            {
                return Err(error.into());
            }
        }
        let halt = Halt {
            start: asked.innermost.instance.time,
            instructions: asked.innermost.instructions(),
        };
        let mut found = None;
        follow(scene.traced, |run, log| {
            Ok(follow_to(run, log, &[halt], |_, first_result, paused| {
                let contents = Followed {
                    paused,
                    first_result,
                    instance: asked.innermost.instance,
                    recorded: &recorded,
                };
                let report = asked.of_contents(&contents, &outside, &|| true);
                found = Some(match recorded.failure() {
                    Some(error) => Err(error.into()),
                    None => report,
                });
            })?)
        })?;
        let found = found.context("the run ended before this moment")?;
        found?.context("the run ended before this moment")
    }
}

/// The context of a state question: the moment, and the data about it. `Variables` is invariant
/// over its lifetime, so the context has a second lifetime.
struct StateContext<'s, 'v> {
    query: &'s StateQuery,
    session: &'s Session,
    names: &'s Names,
    source: &'s SourceMap<'s>,
    folded: &'s Folded<'s>,
    /// The source position of an operator.
    position: &'s dyn Fn(FuncId, OpId) -> Result<Option<Location>>,
    /// The number of blocks that the run executed.
    length: u64,
    activations: &'s dyn Activations<'s>,
    variables: &'s Result<&'v Variables<'v>, DebugError>,
    /// The activation that is executed at the moment.
    innermost: &'s Activation<'s>,
    /// Whether the moment is within a block.
    within: bool,
    /// The number of inlined calls that the innermost activation is about to enter.
    ahead: usize,
    stack: Vec<Call>,
    open: usize,
}

impl StateContext<'_, '_> {
    /// Makes the report from `contents`. Returns `None` as soon as these prove insufficient.
    fn of_contents(
        &self,
        contents: &dyn Contents,
        outside: &dyn Fn() -> (u64, String),
        is_enough: &dyn Fn() -> bool,
    ) -> Result<Option<StateReport>> {
        let query = self.query;
        let mut report = StateReport {
            time: self.innermost.time,
            before: self.within.then_some(self.innermost.offset),
            length: self.length,
            frames: Vec::new(),
            open: self.open,
            globals: None,
        };
        if query.globals {
            report.globals = Some(self.globals(contents)?);
        }
        let mut own = 0;
        for (number, call) in self.stack.iter().enumerate() {
            if !is_enough() {
                return Ok(None);
            }
            if query.frame.is_none() && own == query.depth {
                break;
            }
            if query.frame.is_none_or(|frame| frame == number) {
                let (before, _) = outside();
                let mut frame = self.frame(number, call, contents)?;
                let (after, why) = outside();
                frame.outside = (after > before).then_some(why);
                own += usize::from(!frame.library);
                report.frames.push(frame);
            }
        }
        Ok(is_enough().then_some(report))
    }

    /// Whether the answer probably needs memory, judged by the innermost activation.
    fn will_need_memory(&self) -> Result<bool> {
        let guess = Guess::default();
        if self.query.globals {
            return Ok(true);
        }
        if let Some(innermost) = self.stack.first() {
            self.frame(0, innermost, &guess)?;
        }
        Ok(guess.needs_memory())
    }

    fn frame(&self, number: usize, call: &Call, contents: &dyn Contents) -> Result<Frame> {
        let outer;
        let activation = match number {
            0 => self.innermost,
            _ => {
                outer = self.activations.outer(number, call)?;
                &outer
            }
        };
        let entry = self.activations.entry(call)?;
        let name = |function: FuncId| self.names.function(function).to_owned();
        let moment = Moment {
            activation,
            contents,
            entry: Some(&entry),
            program: self.session.program(),
            name: &name,
        };
        let ahead = if number == 0 { self.ahead } else { 0 };
        let mut within = frames_around(self.source, activation.offset, ahead);
        let position = match within.first() {
            Some(frame) if ahead > 0 => frame.location,
            _ => (self.position)(activation.function, activation.op)?,
        };
        let library = is_library(
            self.folded,
            activation.offset,
            (self.names.function(activation.function), position),
        );
        let around = position.filter(|at| !self.folded.shows(at.file));
        let outer = within.iter().skip(1).filter_map(|frame| frame.location);
        let around = around.and_then(|_| outer.clone().find(|at| self.folded.shows(at.file)));
        let whole = within.pop();
        let line = position.map(|position| self.source.line(position));
        let line_at = |inner: usize, at: Option<Location>| match inner {
            0 => line.clone(),
            _ => at.map(|at| self.source.line(at)),
        };
        let open_calls = within.len();
        let own_line = line_at(open_calls, whole.and_then(|own| own.location));
        let inlined = within.into_iter().enumerate().map(|(inner, call)| {
            let raw = call.function.unwrap_or_default();
            let shown = call.location.is_some_and(|at| self.folded.shows(at.file));
            InlinedCall {
                name: demangle(&raw).unwrap_or(raw),
                line: line_at(inner, call.location),
                library: !shown && self.query.frame.is_none(),
            }
        });
        let inlined = inlined.collect();
        // A library call is shown as the line that made it, unless the user asked for the call
        // itself.
        let is_told = !library || number == 0 || self.query.frame.is_some();
        let activations = self.activations;
        let written = |local| activations.written(activation, local);
        let found = match self.variables {
            _ if !is_told => Ok(Vec::new()),
            Ok(known) => {
                let mut found = variables(known, &moment, &Limits::default(), written)?;
                if ahead > 0
                    && let Ok(shown) = &mut found
                {
                    // Expressions still find the variables of calls that are not entered yet. So a
                    // variable stays marked as hidden if one of those variables hides it.
                    shown.retain(|variable| variable.calls as usize <= open_calls);
                }
                found
            }
            Err(error) => Err(error.clone()),
        };
        let shown = found.map_err(|error| error.to_string());
        let own = match shown {
            Ok(_) => Vec::new(),
            Err(_) => self.locals(activation, contents),
        };
        Ok(Frame {
            number,
            function: call.function,
            name: name(call.function),
            entered: call.entered,
            time: call.time,
            offset: activation.offset,
            line,
            inlined,
            own_line,
            variables: shown,
            locals: own,
            around: around.map(|at| self.source.line(at)),
            library,
            outside: None,
        })
    }

    fn locals(&self, activation: &Activation<'_>, contents: &dyn Contents) -> Vec<Local> {
        let all = locals(self.session.program(), activation, contents);
        let named = |index| self.names.local(activation.function, index);
        (0..)
            .zip(all)
            .map(|(index, (ty, parameter, value))| Local {
                index,
                name: named(index).map(str::to_owned),
                ty,
                parameter,
                value,
            })
            .collect()
    }

    fn globals(&self, contents: &dyn Contents) -> Result<Globals> {
        let mut found = Globals::default();
        let module = wasm_globals(self.session.program(), contents).into_iter();
        let module = (0..).zip(module).map(|(index, (ty, value))| Local {
            index,
            name: None,
            ty,
            parameter: false,
            value,
        });
        found.module = module.collect();
        let name = |function: FuncId| self.names.function(function).to_owned();
        let moment = Moment {
            activation: self.innermost,
            contents,
            entry: None,
            program: self.session.program(),
            name: &name,
        };
        if let Ok(known) = self.variables {
            let (shown, all) = globals(known, &moment, &Limits::default(), GLOBALS)?;
            found.more = all - shown.len();
            found.source = shown;
        }
        Ok(found)
    }
}
