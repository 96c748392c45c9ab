//! `afterimage state`

use afterimage::Session;
use afterimage::ended::{self, results, stood};
use afterimage::steps::follow;
use afterimage_ids::FuncId;
use afterimage_present::{StateView, render};
use afterimage_profile::{Source, SourceLine};
use afterimage_program::{Names, Program, SourceMap, demangle};
use afterimage_replay::paths::At;
use afterimage_replay::state::{
    Activation, Bodies, Call, Contents, DebugError, Followed, Frame, Globals, Halt, Limits, Local,
    Moment, Recorded, StateReport, Variables, calls, follow_to, globals, locals, variables,
    wasm_globals,
};
use afterimage_replay::steps::Operators;
use afterimage_replay::values::RecordedValues;
use afterimage_trace::Ending;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, formats};
use crate::exit::Exit;
use crate::input;
use crate::lens::{self, traced_whole};
use crate::output::write;

/// Show the call stack at a moment, and what the variables of each function hold
///
/// Shown is the state right before the place is executed: of a line before its first instruction, of a function behind its prologue, as in other
/// debuggers, of a time before its block; of functions that wait for a call, the state before the call. Variables are those of the source, if the
/// program has debug information (-g), otherwise the locals of WebAssembly. What is in memory is known by following the run from the last checkpoint
/// before the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Moments:
  123456, t=123456    the block that was executed as the 123456th
  start, -1000        the first block, the 1000th from the end
  end                 where the run ended: before what trapped, called the host and did not return, or came next; after a return before the last block
  50%                 half of the run
  main#3, main#last   the third call of main, the last (without #: the first)
  main+0              its very first operator: parameters may not be in their places yet
  file.c:42#3         the third time that line 42 was arrived at
  @0x1f3#3, f+0x2a    the third time that this operator was executed, the first

Examples:
  afterimage state app.aft --at parser.c:42#7
  afterimage state app.aft --at end --depth 3
  afterimage state app.aft --at 50% --frame 2
  afterimage state app.aft --at parse#last --globals --format json")]
pub(crate) struct Arguments {
    /// The moment
    #[arg(long, value_name = "MOMENT", allow_hyphen_values = true)]
    at: String,
    /// How many functions of the call stack, from the innermost one
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = depth)]
    depth: usize,
    /// Only this function of the call stack, counted from the innermost one, which is 0
    #[arg(long, value_name = "N", conflicts_with = "depth")]
    frame: Option<usize>,
    /// Also show the globals
    #[arg(long)]
    globals: bool,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

formats!(Text, Json);

fn depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 shows nothing; give a number from 1 on".to_owned()),
        Ok(depth) => Ok(depth),
        Err(_) => Err("give a number from 1 on".to_owned()),
    }
}

/// How many global variables of the source are shown.
const GLOBALS: usize = 200;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    input::ended(&arguments.report.file)?;
    let traced = traced_whole(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let At { time, op } = match stood(traced, &arguments.at)? {
        Some(stood) => stood,
        None => traced.positions(&names, &source)?.moment(&arguments.at)?,
    };
    let values = lens::values(traced)?;
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let most = match arguments.frame {
        Some(frame) => frame.saturating_add(1),
        None => arguments.depth,
    };
    let (stack, open) = calls(&values, time, most)?;
    if let Some(frame) = arguments.frame
        && frame >= open
    {
        bail!("--frame {frame}: {open} functions are open at t={time}, numbered from 0");
    }
    let scene = Scene {
        arguments,
        length: traced.path()?.length(),
        program: &loaded.program,
        names: &names,
        operators: Operators::new(&loaded.program, &loaded.bytes, &source),
        source: &source,
        bodies: &bodies,
        values: &values,
        variables: Variables::open(&loaded.bytes),
        innermost: Activation::at(&values, &bodies, time, op)?,
        within: op.is_some(),
        stack,
        open,
    };
    let report = scene.told(traced)?;
    // Where the run stood when it ended is shown, unless it returned.
    let results = match arguments.at.trim() {
        "end" => results(traced.file())?,
        _ => None,
    };
    let report = &report;
    let view = StateView { report, results };
    write(arguments.report.output.as_deref(), false, |out| {
        render(out, &view, arguments.format, arguments.report.style())?;
        let results = view.results.as_deref();
        if let Some(results) = results.filter(|results| !results.is_empty())
            && arguments.format == Format::Text
        {
            let ending = ended::ending(&Ending::Returned, Some(results));
            writeln!(out, "the run then {ending}")?;
        }
        Ok(())
    })
}

/// What is known of the program and of the moment.
struct Scene<'s, 'a> {
    arguments: &'s Arguments,
    length: u64,
    program: &'a Program,
    names: &'s Names,
    operators: Operators<'s>,
    source: &'s SourceMap<'a>,
    bodies: &'s Bodies<'a>,
    values: &'s RecordedValues<'a>,
    variables: Result<Variables<'a>, DebugError>,
    /// The activation that executes at the moment.
    innermost: Activation<'a>,
    /// The moment is within a block.
    within: bool,
    stack: Vec<Call>,
    open: usize,
}

impl<'a> Scene<'_, 'a> {
    /// The report: by the trace alone if that is enough, otherwise by following the run to the moment.
    fn told(&self, traced: &Session) -> Result<StateReport> {
        let recorded = Recorded::new(self.values);
        if let Some(report) = self.report(&recorded, &recorded, &|| recorded.is_enough())? {
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
        follow(traced, |run, log| {
            Ok(follow_to(run, log, &[halt], |_, first_result, paused| {
                let contents = Followed {
                    paused,
                    first_result,
                    instance: self.innermost.instance,
                    recorded: &recorded,
                };
                let report = self.report(&contents, &recorded, &|| true);
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
    fn report(
        &self,
        contents: &dyn Contents,
        recorded: &Recorded<'_, 'a>,
        is_enough: &dyn Fn() -> bool,
    ) -> Result<Option<StateReport>> {
        let arguments = self.arguments;
        let mut report = StateReport {
            time: self.innermost.time,
            before: self.within.then_some(self.innermost.offset),
            length: self.length,
            frames: Vec::new(),
            open: self.open,
            globals: None,
        };
        if arguments.globals {
            report.globals = Some(self.globals(contents)?);
        }
        for (number, call) in self.stack.iter().enumerate() {
            if !is_enough() {
                return Ok(None);
            }
            if arguments.frame.is_none_or(|frame| frame == number) {
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
                outer = Activation::at_call(self.values, self.bodies, call.time)?;
                &outer
            }
        };
        let entry = Activation::at_block(self.values, self.bodies, call.entered)?;
        let name = |function: FuncId| self.names.function(function).to_owned();
        let moment = Moment {
            activation,
            contents,
            entry: Some(&entry),
            program: self.program,
            name: &name,
        };
        let written = |local| activation.written(self.values, self.bodies, call.entered, local);
        let found = match &self.variables {
            Ok(known) => variables(known, &moment, &Limits::default(), written)?,
            Err(error) => Err(error.clone()),
        };
        let shown = found.map_err(|error| error.to_string());
        let own = match shown {
            Ok(_) => Vec::new(),
            Err(_) => self.locals(activation, contents),
        };
        let mut inlined = self.source.inlined_frames(activation.offset);
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
        let place = self.operators.get(activation.function, activation.op)?;
        let position = place.and_then(|place| place.position);
        Ok(position.map(|position| self.source.line(position)))
    }

    fn locals(&self, activation: &Activation<'_>, contents: &dyn Contents) -> Vec<Local> {
        let all = locals(self.program, activation, contents);
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
        let module = wasm_globals(self.program, contents).into_iter();
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
            activation: &self.innermost,
            contents,
            entry: None,
            program: self.program,
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
