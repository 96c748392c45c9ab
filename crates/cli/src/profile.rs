//! `afterimage profile`

use std::io::Write;
use std::path::{Path, PathBuf};

use afterimage_ids::Counts;
use afterimage_placement::{Mode, PlanOptions};
use afterimage_present::{Annotation, annotate, callgrind, calls_dot, cfg_dot, csv, json, lcov, pprof, text};
use afterimage_program::{OperatorIndex, SourceMap};
use afterimage_query::{By, Options, Profile, Report, Scope, Sort, Stop, stops};
use afterimage_record::{Cache, CountOptions, check_blocks, count};
use afterimage_trace::{CountsLens, End, TraceFile, TraceWriter};
use anyhow::{Context, Result, anyhow, bail};

use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::input::{self, Kind, Loaded};
use crate::instrument;
use crate::output::{Color, SourceFiles, write};
use crate::progress::Bar;
use crate::record::execute;

/// Count exactly how often everything ran: functions, source lines, blocks, edges, instructions
///
/// Given a recording, the counts are made by re-executing it, once, and kept in the file. Given a program, it is
/// recorded to a temporary file first; its standard output then goes to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage profile app.aft
  afterimage profile app.aft --annotate
  afterimage profile --by line --top 20 app.wasm input.txt
  afterimage profile app.aft --format callgrind -o callgrind.out && callgrind_annotate callgrind.out")]
pub(crate) struct Arguments {
    /// What has a row
    #[arg(long, default_value = "function")]
    by: ByArgument,
    /// The order of the rows [default: most instructions first as text, the order of the program otherwise]
    #[arg(long)]
    sort: Option<SortArgument>,
    /// Only so many rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only this function, by index, name or demangled name; may be repeated
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Source lines with counts beside them; where the source is not at hand, WebAssembly text
    #[arg(long)]
    annotate: bool,
    /// How counters are placed: per function (quick), in every block as a check on the derived counts (slow), by the
    /// counts of an earlier run (feedback), or over the whole program
    #[arg(long)]
    mode: Option<ModeArgument>,
    /// An earlier recording of the same program, whose counts say where counters are cheap
    #[arg(long, value_name = "FILE.aft")]
    weights: Option<PathBuf>,
    /// The format of the report
    #[arg(long, default_value = "text")]
    format: Format,
    /// Where the report goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// When to use color
    #[arg(long, default_value = "auto")]
    color: Color,
    /// The counters of a module made by `afterimage instrument`, as another engine left them
    #[arg(long, value_name = "DUMP")]
    counters: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
    /// A recording, or a program to record first
    #[arg(value_name = "FILE.aft|PROGRAM")]
    file: PathBuf,
    /// Arguments for the guest
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ByArgument {
    Function,
    Line,
    Block,
    Edge,
    Instruction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SortArgument {
    /// Most executed instructions first
    Instructions,
    /// Most executions first
    Count,
    /// By name
    Name,
    /// In the order of the program
    Program,
}

/// How counters are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeArgument {
    Quick,
    Slow,
    Feedback,
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Lcov,
    Callgrind,
    Pprof,
    Dot,
}

/// Rows that text shows if nothing else is asked for.
const TEXT_ROWS: usize = 25;

/// Exact counts, and where the run stood when it ended.
struct Counted {
    loaded: Loaded,
    counts: Counts,
    stops: Vec<Stop>,
    /// What a reader should know about how exact this is.
    note: Option<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let mut exit = Exit::Success;
    let counted = match (&arguments.counters, input::kind(&arguments.file)?) {
        (Some(dump), Kind::Program) => {
            let loaded = input::program(&arguments.file)?;
            let read = instrument::read_dump(dump, &loaded)?;
            Counted { loaded, counts: read.counts, stops: Vec::new(), note: read.note }
        }
        (Some(_), Kind::Recording) => bail!("--counters: name the program that was instrumented, not a recording"),
        (None, Kind::Recording) => {
            if !arguments.args.is_empty() {
                bail!("{} is a recording, so there is no guest to hand arguments to", arguments.file.display());
            }
            of_recording(&arguments.file, &arguments)?
        }
        (None, Kind::Program) => {
            let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
            let path = folder.path().join("run.aft");
            let loaded = input::program(&arguments.file)?;
            let out = TraceWriter::create(&path, false).context("cannot make a temporary recording")?;
            let recorded = execute(&loaded, &arguments.run, &arguments.args, None, true, &out)?;
            drop(out);
            exit = Exit::of_guest(&recorded.end);
            if exit != Exit::Success {
                eprintln!("afterimage: {} {}", arguments.file.display(), recorded.end.ending);
            }
            of_recording(&path, &arguments)?
        }
    };
    if let Some(note) = &counted.note {
        eprintln!("afterimage: {note}");
    }
    report(&arguments, &counted)?;
    // The report was asked for and is there; how the guest ended was said above.
    let _ = exit;
    Ok(Exit::Success)
}

fn of_recording(path: &Path, arguments: &Arguments) -> Result<Counted> {
    let file = input::recording(path)?;
    let loaded = input::recorded_program(path, &file)?;
    let Some(end) = file.end()? else {
        bail!("{}: the recording was cut off before its end was written, so exact counts cannot be made; record the program again", path.display());
    };
    let lens = match (file.counts()?, arguments.mode, &arguments.weights) {
        (Some(lens), None, None) => lens,
        _ => make(path, &file, &loaded, &end, arguments)?,
    };
    let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
    let stops = stops(&loaded.program, &index, &end)?;
    Ok(Counted { loaded, counts: lens.counts, stops, note: None })
}

/// Makes the counts and keeps them in the file.
fn make(path: &Path, file: &TraceFile, loaded: &Loaded, end: &End, arguments: &Arguments) -> Result<CountsLens> {
    let mode = arguments.mode.unwrap_or(match arguments.weights {
        Some(_) => ModeArgument::Feedback,
        None => ModeArgument::Program,
    });
    let earlier = match &arguments.weights {
        Some(weights) => Some(feedback(weights, file)?),
        None if mode == ModeArgument::Feedback => {
            bail!("--mode feedback needs the counts of an earlier run: --weights FILE.aft")
        }
        None => None,
    };
    let plan = PlanOptions {
        feedback: earlier.as_ref(),
        ..PlanOptions::new(match mode {
            ModeArgument::Quick => Mode::Quick,
            ModeArgument::Feedback => Mode::Feedback,
            ModeArgument::Slow | ModeArgument::Program => Mode::Program,
        })
    };
    let bar = Bar::start("counting", Some(end.events));
    let options = CountOptions { plan, registers: true };
    let cache = Cache::of_user();
    let lens = count(file, &loaded.bytes, &loaded.program, &options, &cache, &bar.progress());
    let lens = lens.with_context(|| path.display().to_string())?;
    drop(bar);
    if mode == ModeArgument::Slow {
        let bar = Bar::start("checking every block", Some(end.events));
        let checked = check_blocks(file, &loaded.bytes, &loaded.program, &lens.counts, &cache, &bar.progress())?;
        drop(bar);
        eprintln!("afterimage: a counter in each of {checked} blocks agrees with the derived counts");
    }
    if file.counts()?.is_none() {
        let kept = TraceWriter::append(path).and_then(|out| {
            out.counts(&lens)?;
            out.commit()
        });
        if let Err(error) = kept {
            eprintln!("afterimage: the counts are not kept in {}: {error}", path.display());
        }
    }
    Ok(lens)
}

fn feedback(path: &Path, of: &TraceFile) -> Result<Counts> {
    let file = input::recording(path)?;
    if file.meta()?.module_sha256 != of.meta()?.module_sha256 {
        bail!("--weights {}: this is a recording of another program", path.display());
    }
    let lens = file.counts()?.ok_or_else(|| {
        anyhow!("--weights {0}: this recording has no counts yet; make them with: afterimage profile {0}", path.display())
    })?;
    Ok(lens.counts)
}

fn report(arguments: &Arguments, counted: &Counted) -> Result<()> {
    let Counted { loaded, counts, stops, .. } = counted;
    let source: SourceMap<'_> = loaded.source_map();
    let names = loaded.names(&source);
    let profile = Profile::new(&loaded.program, &loaded.bytes, counts, stops, &names, &source)?;
    let functions = arguments.function.iter().map(|name| names.find(name)).collect::<Result<Vec<_>, _>>()?;
    let scope = if functions.is_empty() { Scope::All } else { Scope::Only(functions.clone()) };
    let for_people = arguments.format == Format::Text;
    let sort = arguments.sort.map(|sort| match sort {
        SortArgument::Instructions => Sort::Instructions,
        SortArgument::Count => Sort::Count,
        SortArgument::Name => Sort::Name,
        SortArgument::Program => Sort::Program,
    });
    let options = Options {
        by: match arguments.by {
            ByArgument::Function => By::Function,
            ByArgument::Line => By::Line,
            ByArgument::Block => By::Block,
            ByArgument::Edge => By::Edge,
            ByArgument::Instruction => By::Instruction,
        },
        sort: sort.or(for_people.then_some(Sort::Instructions)),
        top: arguments.top.or(for_people.then_some(TEXT_ROWS)),
        scope: scope.clone(),
    };
    let out = arguments.output.as_deref();
    let style = arguments.color.style(out);
    write(out, arguments.format == Format::Pprof, |out: &mut dyn Write| {
        match arguments.format {
            Format::Text if arguments.annotate => {
                let annotation = Annotation { scope, listings: if functions.is_empty() { 3 } else { functions.len() } };
                annotate(out, &profile, &annotation, &SourceFiles, style)?;
            }
            Format::Text => text(out, &profile, &Report::new(&profile, &options)?, &SourceFiles, style)?,
            Format::Json => json(out, &profile, &Report::new(&profile, &options)?)?,
            Format::Csv => csv(out, &profile, &Report::new(&profile, &options)?)?,
            Format::Lcov => lcov(out, &profile, &scope)?,
            Format::Callgrind => callgrind(out, &profile, &scope)?,
            Format::Pprof => pprof(out, &profile, &scope)?,
            Format::Dot => match functions.as_slice() {
                [] => calls_dot(out, &profile, &scope)?,
                [one] => cfg_dot(out, &profile, *one)?,
                _ => bail!("--format dot draws the call graph, or the graph of one function"),
            },
        }
        Ok(())
    })
}
