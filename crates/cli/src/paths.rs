//! `afterimage paths`

use std::io::Write;

use afterimage::Session;
use afterimage::path::numbering;
use afterimage_ids::FuncId;
use afterimage_present::{
    PathNames, PathsJson, PresentError, TraceForm, Whole, found_text, hot_text, paths_json,
    trace_counts_text, traces_text,
};
use afterimage_program::SourceMap;
use afterimage_replay::paths::{
    Code, CountOrder, HotPaths, RecordedPath, TraceCounts, Traces, occurrences, pattern,
};
use anyhow::{Context, Result, bail};

use crate::arguments::ReportArguments;
use crate::exit::Exit;
use crate::lens::finished;
use crate::output::write;

/// Show which paths the run took: each function's unique path traces, hot paths, where a path occurs
///
/// A path trace is the sequence of blocks that one call of a function executes itself. Blocks have the numbers
/// that `afterimage cfg` shows. Times count executed blocks from 1, over the whole run.
///
/// The path of the run is built when it is first needed, by re-executing the recording.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage paths app.aft
  afterimage paths app.aft --function main
  afterimage paths app.aft --function main --form twpp
  afterimage paths app.aft --hot
  afterimage paths app.aft --find 2.3.4 --function main
  afterimage paths app.aft --find 'main:2.3>f:0.1'
  afterimage paths app.aft --find 'f:8.9<main:4'
  afterimage paths app.aft --find 'main:3>f:0.9<main:4'

2.3.4 finds where the function executes blocks 2, 3 and 4. In a path over
several functions, > is a call and < a return: main:2.3>f:0.1 finds where
main executes 2 and 3 and then calls f, which begins with 0 and 1.")]
pub(crate) struct Arguments {
    /// Only this function, by index, name or demangled name: its path traces, hot paths, or blocks to be found
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// Hot paths: acyclic stretches (Ball and Larus), with counts, shares and source lines
    #[arg(long, conflicts_with = "find")]
    hot: bool,
    /// Where these blocks are executed one after the other, whatever is called between them; `>` is a call, `<` a return
    #[arg(long, value_name = "2.3.4")]
    find: Option<String>,
    /// How the path traces of a function are written [default: blocks]
    #[arg(long, requires = "function", conflicts_with_all = ["hot", "find"])]
    form: Option<Form>,
    /// Write long traces as a whole
    #[arg(long, requires = "function", conflicts_with_all = ["hot", "find"])]
    whole: bool,
    /// The order of the functions [default: calls]
    #[arg(long, conflicts_with_all = ["function", "hot", "find"])]
    sort: Option<Order>,
    /// Only the first N functions, traces, paths or occurrences [default: 25 for text; for JSON all, but 1000 occurrences]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// Sequences of blocks
    Blocks,
    /// Sequences of dynamic basic blocks, and the dictionaries that say what these stand for
    Dbb,
    /// When each dynamic basic block is executed: steps l, l:h or l:h:s
    Twpp,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Order {
    /// Most calls first
    Calls,
    /// Most executed blocks first
    Blocks,
    /// Most unique path traces first
    Traces,
    /// In the order of the program
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Rows that text shows if nothing else is asked for.
const TEXT_ROWS: usize = 25;
/// Occurrences that JSON shows if nothing else is asked for: there may be billions.
const JSON_OCCURRENCES: usize = 1000;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = finished(&arguments.report.file)?;
    answer(&arguments, &session).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, session: &Session) -> Result<()> {
    let recording = session;
    let loaded = recording.module();
    let source = recording.source_map();
    let names = loaded.names(&source);
    // What is asked for is understood before anything is built for it.
    let function = match &arguments.function {
        None => None,
        Some(function) => Some(names.find(function)?),
    };
    let wanted = match &arguments.find {
        None => None,
        Some(text) => Some(pattern(text, function, &loaded.program, &names)?),
    };
    if let Some(function) = function
        && loaded.program.function(function).is_none()
    {
        bail!("{} is imported: it has no paths", names.function(function));
    }
    let path = session.ensure_path()?;
    let shown = PathNames {
        names: &names,
        source: &source,
        left_out: &path.segments().directory().left_out,
    };
    let text = arguments.format == Format::Text;
    let top = arguments.top.or(text.then_some(TEXT_ROWS));
    let style = arguments.report.style();
    let output = |report: &dyn Fn(&mut dyn Write) -> Result<(), PresentError>| {
        write(arguments.report.output.as_deref(), false, |out| {
            Ok(report(out)?)
        })
    };
    if let Some(pattern) = wanted {
        let most = top.unwrap_or(JSON_OCCURRENCES);
        let found = occurrences(path, pattern, most, &numbering(path), &names)?;
        return output(&|out| {
            if text {
                found_text(out, &found, shown, style)
            } else {
                paths_json(out, PathsJson::Found(&found), shown)
            }
        });
    }
    if arguments.hot {
        let hot = hot(recording, &source, path, function, top)?;
        return output(&|out| {
            if text {
                hot_text(out, &hot, shown, style)
            } else {
                paths_json(out, PathsJson::Hot(&hot), shown)
            }
        });
    }
    if let Some(function) = function {
        let traces = Traces::of(path, function)?;
        let form = match arguments.form {
            None | Some(Form::Blocks) => TraceForm::Blocks,
            Some(Form::Dbb) => TraceForm::Dynamic,
            Some(Form::Twpp) => TraceForm::Timestamped,
        };
        let whole = if arguments.whole {
            Whole::All
        } else {
            Whole::Beginning
        };
        return output(&|out| {
            if text {
                traces_text(out, &traces, shown, form, whole, top, style)
            } else {
                paths_json(out, PathsJson::Traces(&traces, top), shown)
            }
        });
    }
    let order = match arguments.sort {
        None | Some(Order::Calls) => CountOrder::Calls,
        Some(Order::Blocks) => CountOrder::Blocks,
        Some(Order::Traces) => CountOrder::Paths,
        Some(Order::Program) => CountOrder::Program,
    };
    let counts = TraceCounts::of(path, order, top)?;
    output(&|out| {
        if text {
            trace_counts_text(out, &counts, shown, style)
        } else {
            paths_json(out, PathsJson::Counts(&counts), shown)
        }
    })
}

fn hot(
    recording: &Session,
    source: &SourceMap<'_>,
    path: &RecordedPath,
    function: Option<FuncId>,
    top: Option<usize>,
) -> Result<HotPaths> {
    if recording.file().end()?.is_none() {
        bail!("the recording was cut off before its end was written; record the program again");
    }
    let code = Code {
        program: recording.program(),
        module: recording.bytes(),
        source,
    };
    let continuations = &path.segments().directory().continuations;
    let stops = recording.stops()?;
    Ok(HotPaths::of(
        path,
        continuations,
        code,
        stops,
        function,
        top,
    )?)
}
