//! The call stack at a moment, and what its variables hold.

use afterimage_ids::FuncId;
use afterimage_present::StateView;
use afterimage_profile::{Source, SourceLine};
use afterimage_program::demangle;
use afterimage_replay::paths::At;
use afterimage_replay::state::{
    Activation, Bodies, Call, Contents, DebugError, Followed, Frame, Globals, Halt, Limits, Local,
    Moment, Recorded, StateReport, Variables, calls, follow_to, globals, locals, variables,
    wasm_globals,
};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::ended::{results, stood};
use crate::explain::Scene;
use crate::steps::follow;

/// What was the state at a moment?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateQuery {
    /// The moment: `parser.c:42#7`, `main#last`, `t=123456`, `50%`, `end`.
    pub at: String,
    /// How many activations, from the innermost one.
    pub depth: usize,
    /// Only this activation, counted from the innermost one, which is 0.
    pub frame: Option<usize>,
    /// The globals, too.
    pub globals: bool,
}

/// How many global variables of the source are shown.
const GLOBALS: usize = 200;

impl StateQuery {
    /// So many activations are shown if nothing else is asked for.
    pub const DEPTH: usize = 10;

    /// The innermost activations at a moment.
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
        let At { time, op } = match stood(traced, &self.at)? {
            Some(stood) => stood,
            None => {
                let positions = traced.positions(scene.names, scene.source())?;
                positions.moment(&self.at)?
            }
        };
        let bodies = Bodies::new(&loaded.program, &loaded.bytes);
        let most = match self.frame {
            Some(frame) => frame.saturating_add(1),
            None => self.depth,
        };
        let (stack, open) = calls(values, time, most)?;
        if let Some(frame) = self.frame
            && frame >= open
        {
            bail!("--frame {frame}: {open} functions are open at t={time}, numbered from 0");
        }
        let asked = Asked {
            query: self,
            scene,
            bodies: &bodies,
            variables: Variables::open(&loaded.bytes),
            innermost: Activation::at(values, &bodies, time, op)?,
            within: op.is_some(),
            stack,
            open,
        };
        Ok(StateView {
            report: asked.report()?,
            // Where the run stood when it ended is shown, unless it returned.
            results: match self.at.trim() {
                "end" => results(traced.file())?,
                _ => None,
            },
        })
    }
}

/// A moment that is asked about.
struct Asked<'s, 'a> {
    query: &'s StateQuery,
    scene: &'s Scene<'s, 'a>,
    bodies: &'s Bodies<'a>,
    variables: Result<Variables<'a>, DebugError>,
    /// The activation that executes at the moment.
    innermost: Activation<'a>,
    /// The moment is within a block.
    within: bool,
    stack: Vec<Call>,
    open: usize,
}

impl<'a> Asked<'_, 'a> {
    /// The report: by the trace alone if that is enough, otherwise by following the run to the moment.
    fn report(&self) -> Result<StateReport> {
        let recorded = Recorded::new(self.scene.values);
        if let Some(report) = self.of_contents(&recorded, &recorded, &|| recorded.is_enough())? {
            return Ok(report);
        }
        // What the trace does not have of one that waits for a call is nowhere else.
        if let Some(error) = recorded.failure()
            && self.stack.len() > 1
        {
            return Err(error.into());
        }
        let halt = Halt {
            start: self.innermost.instance.time,
            instructions: self.innermost.instructions(),
        };
        let mut found = None;
        follow(self.scene.traced, |run, log| {
            Ok(follow_to(run, log, &[halt], |_, first_result, paused| {
                let contents = Followed {
                    paused,
                    first_result,
                    instance: self.innermost.instance,
                    recorded: &recorded,
                };
                let report = self.of_contents(&contents, &recorded, &|| true);
                found = Some(match recorded.failure() {
                    Some(error) => Err(error.into()),
                    None => report,
                });
            })?)
        })?;
        let found = found.context("the run ended before this moment")?;
        found?.context("the run ended before this moment")
    }

    /// `None` as soon as it is seen that what is known is not enough.
    fn of_contents(
        &self,
        contents: &dyn Contents,
        recorded: &Recorded<'_, 'a>,
        is_enough: &dyn Fn() -> bool,
    ) -> Result<Option<StateReport>> {
        let query = self.query;
        let mut report = StateReport {
            time: self.innermost.time,
            before: self.within.then_some(self.innermost.offset),
            length: self.scene.values.path().length(),
            frames: Vec::new(),
            open: self.open,
            globals: None,
        };
        if query.globals {
            report.globals = Some(self.globals(contents)?);
        }
        for (number, call) in self.stack.iter().enumerate() {
            if !is_enough() {
                return Ok(None);
            }
            if query.frame.is_none_or(|frame| frame == number) {
                let (before, _) = recorded.outside();
                let mut frame = self.frame(number, call, contents)?;
                let (after, why) = recorded.outside();
                frame.outside = (after > before).then_some(why);
                report.frames.push(frame);
            }
        }
        Ok(is_enough().then_some(report))
    }

    fn frame(&self, number: usize, call: &Call, contents: &dyn Contents) -> Result<Frame> {
        let outer;
        let activation = match number {
            0 => &self.innermost,
            _ => {
                outer = Activation::at_call(self.scene.values, self.bodies, call.time)?;
                &outer
            }
        };
        let entry = Activation::at_block(self.scene.values, self.bodies, call.entered)?;
        let name = |function: FuncId| self.scene.names.function(function).to_owned();
        let moment = Moment {
            activation,
            contents,
            entry: Some(&entry),
            program: self.scene.traced.program(),
            name: &name,
        };
        let written =
            |local| activation.written(self.scene.values, self.bodies, call.entered, local);
        let found = match &self.variables {
            Ok(known) => variables(known, &moment, &Limits::default(), written)?,
            Err(error) => Err(error.clone()),
        };
        let shown = found.map_err(|error| error.to_string());
        let own = match shown {
            Ok(_) => Vec::new(),
            Err(_) => self.locals(activation, contents),
        };
        let mut inlined = self.scene.source().inlined_frames(activation.offset);
        inlined.pop();
        let inlined = inlined.into_iter().filter_map(|frame| frame.function);
        let inlined = inlined.map(|raw| demangle(&raw).unwrap_or(raw));
        Ok(Frame {
            number,
            function: call.function,
            name: name(call.function),
            entered: call.entered,
            time: call.time,
            offset: activation.offset,
            line: self.line(activation)?,
            inlined: inlined.collect(),
            variables: shown,
            locals: own,
            outside: None,
        })
    }

    fn line(&self, activation: &Activation<'_>) -> Result<Option<SourceLine>> {
        let position = self.scene.position(activation.function, activation.op)?;
        Ok(position.map(|position| self.scene.source().line(position)))
    }

    fn locals(&self, activation: &Activation<'_>, contents: &dyn Contents) -> Vec<Local> {
        let all = locals(self.scene.traced.program(), activation, contents);
        let named = |index| self.scene.names.local(activation.function, index);
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
        let module = wasm_globals(self.scene.traced.program(), contents).into_iter();
        let module = (0..).zip(module).map(|(index, (ty, value))| Local {
            index,
            name: None,
            ty,
            parameter: false,
            value,
        });
        found.module = module.collect();
        let name = |function: FuncId| self.scene.names.function(function).to_owned();
        let moment = Moment {
            activation: &self.innermost,
            contents,
            entry: None,
            program: self.scene.traced.program(),
            name: &name,
        };
        if let Ok(known) = &self.variables {
            let (shown, all) = globals(known, &moment, &Limits::default(), GLOBALS)?;
            found.more = all - shown.len();
            found.source = shown;
        }
        Ok(found)
    }
}
