//! `afterimage state`

use std::cell::RefCell;

use afterimage_ids::FuncId;
use afterimage_present::{state_json, state_text};
use afterimage_program::{Names, Program, SourceMap};
use afterimage_query::paths::Places;
use afterimage_query::state::{
    Activation, Bodies, Call, Contents, DebugError, Frame, Globals, Halt, Limits, Local, Moment,
    Recorded, State, StateReport, Variables, calls, follow_to, globals, locals, variables,
    wasm_globals,
};
use afterimage_query::values::RecordedValues;
use anyhow::{Context, Result, bail};

use crate::arguments::ReportArguments;
use crate::exit::Exit;
use crate::lens::{Traced, traced};
use crate::output::write;
use crate::places::line_of;
use crate::steps::follow;

/// Show the call stack at a moment, and what the variables of each function hold
///
/// A moment is a block: shown is the state before the block is executed; of functions that wait for a call, the state before the call. Variables
/// are those of the source, if the program has debug information (-g), otherwise the locals of WebAssembly. What is in memory is known by
/// following the run from the last checkpoint before the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Moments:
  123456, t=123456    the block that was executed as the 123456th
  start, end, -1000   the first block, the last, the 1000th from the end
  50%                 half of the run
  main#3, main#last   the third call of main, the last (without #: the first)
  file.c:42#3         the third time that line 42 was arrived at
  @0x1f3#3, f+0x2a    the block with this operator, when it was executed

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
    let traced = traced(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

/// Why what is in memory is not known.
#[derive(Default)]
struct Failure(RefCell<Option<anyhow::Error>>);

fn answer(arguments: &Arguments, traced: &Traced) -> Result<()> {
    let loaded = &traced.loaded;
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let time = traced.positions(&names, &source).time(&arguments.at)?;
    let epochs = traced.epochs(&arguments.report.file)?;
    let values = traced.values(&epochs)?;
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
    let innermost = Activation::at_block(&values, &bodies, time)?;
    let halt = Halt {
        start: innermost.instance.time,
        instructions: innermost.instructions(),
    };
    let failure = Failure::default();
    let state = || failure.note(memory(traced, halt));
    let contents = Recorded::new(&values, &state);
    let scene = Scene {
        program: &loaded.program,
        names: &names,
        source: &source,
        places: Places::new(&loaded.program, &loaded.bytes, &source),
        bodies: &bodies,
        values: &values,
        contents: &contents,
        variables: Variables::open(&loaded.bytes),
    };
    let mut report = StateReport {
        time,
        length: traced.path.length(),
        frames: Vec::new(),
        open,
        globals: None,
    };
    for (number, call) in stack.iter().enumerate() {
        if arguments.frame.is_none_or(|frame| frame == number) {
            report.frames.push(scene.frame(number, call)?);
        }
    }
    if arguments.globals {
        report.globals = Some(scene.globals(&innermost)?);
    }
    if let Some(error) = failure.0.take() {
        return Err(error);
    }
    if let Some(error) = contents.failure() {
        return Err(error.into());
    }
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => state_text(out, &report)?,
            Format::Json => state_json(out, &report)?,
        }
        Ok(())
    })
}

impl Failure {
    fn note<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Ok(found) => Some(found),
            Err(error) => {
                self.0.replace(Some(error));
                None
            }
        }
    }
}

/// Memories, tables and globals at a moment.
fn memory(traced: &Traced, halt: Halt) -> Result<State> {
    follow(traced, |run, log| {
        let mut found = None;
        follow_to(run, log, &[halt], |_, _, inside| {
            found = Some(inside.state.clone());
        })?;
        found.context("the run ended before this moment")
    })
}

/// What is known of the program and of the moment.
struct Scene<'s, 'a> {
    program: &'a Program,
    names: &'s Names,
    source: &'s SourceMap<'a>,
    places: Places<'s>,
    bodies: &'s Bodies<'a>,
    values: &'s RecordedValues<'a>,
    contents: &'s Recorded<'s, 'a>,
    variables: Result<Variables<'a>, DebugError>,
}

impl Scene<'_, '_> {
    fn frame(&self, number: usize, call: &Call) -> Result<Frame> {
        let activation = match number {
            0 => Activation::at_block(self.values, self.bodies, call.time)?,
            _ => Activation::at_call(self.values, self.bodies, call.time)?,
        };
        let entry = Activation::at_block(self.values, self.bodies, call.entered)?;
        let name = |function: FuncId| self.names.function(function).to_owned();
        let moment = Moment {
            activation: &activation,
            contents: self.contents,
            entry: Some(&entry),
            program: self.program,
            name: &name,
        };
        let found = match &self.variables {
            Ok(known) => variables(known, &moment, &Limits::default()),
            Err(error) => Err(error.clone()),
        };
        let shown = found.map_err(|error| error.to_string());
        let own = match shown {
            Ok(_) => Vec::new(),
            Err(_) => self.locals(&activation),
        };
        let mut inlined = self.source.inlined_frames(activation.offset);
        inlined.pop();
        let inlined = inlined.into_iter().filter_map(|frame| frame.function);
        Ok(Frame {
            number,
            function: call.function,
            name: name(call.function),
            entered: call.entered,
            time: call.time,
            offset: activation.offset,
            line: line_of(&self.places, self.source, activation.offset),
            inlined: inlined.collect(),
            variables: shown,
            locals: own,
        })
    }

    fn locals(&self, activation: &Activation<'_>) -> Vec<Local> {
        let all = locals(self.program, activation, self.contents);
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

    fn globals(&self, innermost: &Activation<'_>) -> Result<Globals> {
        let mut found = Globals::default();
        let Some(state) = self.contents.state() else {
            return Ok(found);
        };
        let module = wasm_globals(self.program, state).into_iter();
        let module = (0..).zip(module).map(|(index, (ty, bits))| Local {
            index,
            name: None,
            ty,
            parameter: false,
            value: Some(bits),
        });
        found.module = module.collect();
        let name = |function: FuncId| self.names.function(function).to_owned();
        let moment = Moment {
            activation: innermost,
            contents: self.contents,
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
