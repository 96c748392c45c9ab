//! `afterimage profile`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage::files::{self, Kind, Loaded};
use afterimage::instrument::read_dump;
use afterimage::sources::{SourceFiles, SourcePaths};
use afterimage::without_lines;
use afterimage::{CounterPlacement, Counting, Reason, Session, SessionError};
use afterimage_ids::Counts;
use afterimage_present::export::{callgrind, lcov, pprof};
use afterimage_present::{Annotation, annotate, calls_dot, cfg_dot, csv, json, text};
use afterimage_profile::{By, Options, Profile, Report, Scope, Sort, Stop};
use afterimage_program::SourceMap;
use afterimage_trace::TraceWriter;
use anyhow::{Context, Result, bail};

use crate::arguments::{CodeArguments, RunArguments, SourceArguments};
use crate::exit::Exit;
use crate::lens;
use crate::output::{Color, pasted, say, say_not_at_hand, write};
use crate::progress::Terminal;
use crate::record::{Live, execute, has_clock};
use crate::signals::{Watch, leave_scratch};

/// Count how often functions, lines, blocks and edges ran
///
/// Counts are exact, down to single instructions. Given a recording, the counts are made by re-executing it, once, and kept in the file. Given a program, it is
/// recorded to a temporary file first; its standard output then goes to standard error.
///
/// Exits with 0 when the report is there, however the guest ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage profile app.aft
  afterimage profile app.aft --annotate
  afterimage profile --by line --top 20 app.wasm input.txt
  afterimage profile app.aft --format callgrind -o callgrind.out
  callgrind_annotate callgrind.out")]
pub(crate) struct Arguments {
    /// What has a row [default: function]
    #[arg(long, help_heading = "Report")]
    by: Option<ByArgument>,
    /// The order of the rows [default: instructions for text, program otherwise]
    #[arg(long, help_heading = "Report")]
    sort: Option<SortArgument>,
    /// Only the first N rows [default: 25 for text, all otherwise]
    #[arg(long, value_name = "N", help_heading = "Report")]
    top: Option<usize>,
    /// Only this function, by index, name or demangled name; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    function: Vec<String>,
    /// Show source lines with counts beside them; where there is no source at hand, WebAssembly text
    #[arg(long, conflicts_with_all = ["by", "sort", "top"], help_heading = "Report")]
    annotate: bool,
    /// The format of the report
    #[arg(long, default_value = "text", help_heading = "Report")]
    format: Format,
    /// Where the report goes [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    output: Option<PathBuf>,
    /// When to use color
    #[arg(
        long,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Report"
    )]
    color: Color,
    /// Where counters are placed, which changes no count [default: program, or feedback with --weights]; program uses the counts of an earlier long run of the program that the cache has
    #[arg(long, help_heading = "Counting")]
    mode: Option<ModeArgument>,
    /// An earlier recording of the same program, whose counts say where counters are cheap
    #[arg(long, value_name = "FILE.aft", help_heading = "Counting")]
    weights: Option<PathBuf>,
    /// Count nothing, but read the counters that a module made by `afterimage instrument` left in another engine
    #[arg(long, value_name = "DUMP", conflicts_with_all = ["mode", "weights"], help_heading = "Counting")]
    counters: Option<PathBuf>,
    /// A recording, or a program to record first
    #[arg(value_name = "FILE.aft|PROGRAM")]
    file: PathBuf,
    /// Arguments for the guest; write -- before the first one if it begins with a dash
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_negative_numbers = true
    )]
    args: Vec<String>,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    // Last, because its heading would hold for all that follows.
    #[command(flatten)]
    run: RunArguments,
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
enum ModeArgument {
    /// In each function where its counters are executed least
    Quick,
    /// As program, and then in every block, as a check on the derived counts
    Slow,
    /// As the counts of an earlier run suggest
    Feedback,
    /// Over the whole program at once, which needs fewest
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
    sources: Arc<SourceFiles>,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    check(&arguments)?;
    let path = &arguments.file;
    let paths = arguments.sources.paths()?;
    let counted = match (&arguments.counters, files::kind(path)?) {
        (Some(dump), Kind::Program) => {
            guest_wanted(&arguments, "--counters reads what was counted elsewhere")?;
            let loaded = files::program(path)?;
            let read = read_dump(dump, files::open(dump)?, path, &loaded)?;
            Counted {
                loaded,
                counts: read.counts,
                stops: read.stops,
                note: read.note,
                sources: Arc::new(SourceFiles::new(path, paths.clone())),
            }
        }
        (Some(_), Kind::Recording) => bail!(
            "{}: with --counters, name the program that was instrumented, not a recording",
            path.display()
        ),
        (None, Kind::Recording) => {
            guest_wanted(&arguments, &format!("{} is a recording", path.display()))?;
            of_recording(path, &paths, &arguments)?
        }
        (None, Kind::Program) => {
            let loaded = files::program(path)?;
            let watch = Watch::start(has_clock(&arguments.run, Live::Nothing))?;
            let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
            leave_scratch(folder.path().to_owned());
            let recording = folder.path().join("run.aft");
            let out = TraceWriter::create(&recording, false)
                .context("cannot make a temporary recording")?;
            let recorded = execute(
                &loaded,
                &arguments.run,
                &arguments.args,
                Live::Nothing,
                true,
                watch,
                &out,
            )?;
            drop(out);
            if Exit::of_guest(&recorded.end) != Exit::Success {
                say(format_args!("{} {}", path.display(), recorded.end.ending));
            }
            of_recording(&recording, &paths, &arguments)?
        }
    };
    report(&arguments, &counted)?;
    // The annotated source lists them itself.
    if !arguments.annotate {
        say_not_at_hand(&paths, &arguments.code.filter()?);
    }
    Ok(Exit::Success)
}

/// Refuses options that would have no effect.
fn check(arguments: &Arguments) -> Result<()> {
    let table = [
        ("--by", arguments.by.is_some()),
        ("--sort", arguments.sort.is_some()),
        ("--top", arguments.top.is_some()),
    ];
    let refused = match arguments.format {
        Format::Text => None,
        _ if arguments.annotate => Some("--annotate"),
        Format::Json | Format::Csv => None,
        Format::Lcov | Format::Callgrind | Format::Pprof | Format::Dot => {
            table.into_iter().find(|o| o.1).map(|o| o.0)
        }
    };
    match refused {
        Some("--annotate") => bail!("--annotate writes text, and not with another --format"),
        Some(option) => {
            bail!("{option} has no meaning here: the format says what is in a report of this kind")
        }
        None => Ok(()),
    }
}

/// Refuses what is meant for a guest where none will run.
fn guest_wanted(arguments: &Arguments, why: &str) -> Result<()> {
    match (arguments.run.given(), arguments.args.first()) {
        (Some(option), _) => bail!("{why}, so nothing runs that {option} could be for"),
        (None, Some(argument)) if is_recording(argument) => bail!(
            "profile takes one recording, and {argument} is another; to compare them: afterimage diff {} {}",
            pasted(&arguments.file),
            pasted(Path::new(argument))
        ),
        (None, Some(argument)) => {
            bail!("{why}, so nothing runs that the argument {argument:?} could be for")
        }
        (None, None) => Ok(()),
    }
}

fn is_recording(argument: &str) -> bool {
    matches!(files::kind(Path::new(argument)), Ok(Kind::Recording))
}

/// The user may know the recording by the name of the program, beside which its sources are then.
fn of_recording(path: &Path, paths: &SourcePaths, arguments: &Arguments) -> Result<Counted> {
    let name = &arguments.file;
    let session = lens::session(path)?.reading(paths.clone());
    let sources = match path == name {
        true => Arc::clone(session.sources()),
        false => Arc::new(SourceFiles::new(name, paths.clone())),
    };
    let failed = |why| SessionError {
        at: name.clone(),
        why,
    };
    let counts = arguments.counts(&session);
    let counts = counts.map_err(|error| match error.downcast::<SessionError>() {
        Ok(error) => failed(error.why).into(),
        Err(error) => error,
    })?;
    let Some(counts) = counts else {
        files::ended(path)?;
        return Err(failed(Box::new(Reason::NoCounts)).into());
    };
    let stops = session
        .stops()
        .with_context(|| name.display().to_string())?;
    Ok(Counted {
        loaded: Loaded::of(&session),
        counts,
        stops: stops.to_vec(),
        note: None,
        sources,
    })
}

impl Arguments {
    /// The counts of a recording: those that it has, unless it is said how to count.
    fn counts(&self, session: &Session) -> Result<Option<Counts>> {
        let placement = match (self.mode, &self.weights) {
            (None, None) => return Ok(session.ensure_counts()?),
            (Some(ModeArgument::Feedback), None) => {
                bail!("--mode feedback needs the counts of an earlier run: --weights FILE.aft")
            }
            (None | Some(ModeArgument::Feedback), Some(_)) => CounterPlacement::Feedback,
            (Some(ModeArgument::Quick), _) => CounterPlacement::Quick,
            (Some(ModeArgument::Slow), _) => CounterPlacement::Checked,
            (Some(ModeArgument::Program), _) => CounterPlacement::Program,
        };
        let earlier = self.weights.as_deref().map(files::recording).transpose()?;
        let weights = self.weights.as_deref().zip(earlier.as_ref());
        Ok(session.count(&Counting { placement, weights })?)
    }
}

fn report(arguments: &Arguments, counted: &Counted) -> Result<()> {
    let Counted {
        loaded,
        counts,
        stops,
        sources,
        ..
    } = counted;
    let source: SourceMap<'_> = loaded.source_map_with(&Terminal, Arc::clone(sources));
    let names = loaded.names(&source);
    let profile = Profile::new(
        &loaded.program,
        &loaded.bytes,
        counts,
        stops,
        &names,
        &source,
    );
    let profile = profile.with_context(|| {
        arguments
            .counters
            .as_ref()
            .unwrap_or(&arguments.file)
            .display()
            .to_string()
    })?;
    let functions = arguments
        .function
        .iter()
        .map(|name| names.find(name, &source))
        .collect::<Result<Vec<_>, _>>();
    let functions = functions.with_context(|| arguments.file.display().to_string())?;
    for &id in &functions {
        if loaded.program.function(id).is_none() {
            bail!(
                "{}: {} is imported, so nothing of it is counted; see its callers",
                arguments.file.display(),
                names.function(id)
            );
        }
    }
    let scope = if functions.is_empty() {
        Scope::All
    } else {
        Scope::Only(functions.clone())
    };
    let for_people = arguments.format == Format::Text;
    let sort = arguments.sort.map(|sort| match sort {
        SortArgument::Instructions => Sort::Instructions,
        SortArgument::Count => Sort::Count,
        SortArgument::Name => Sort::Name,
        SortArgument::Program => Sort::Program,
    });
    let options = Options {
        by: match arguments.by.unwrap_or(ByArgument::Function) {
            ByArgument::Function => By::Function,
            ByArgument::Line => By::Line,
            ByArgument::Block => By::Block,
            ByArgument::Edge => By::Edge,
            ByArgument::Instruction => By::Instruction,
        },
        sort: sort.or(for_people.then_some(Sort::Instructions)),
        top: arguments.top.or(for_people.then_some(TEXT_ROWS)),
        scope: scope.clone(),
        // Formats for programs are complete, and so is a report about named functions.
        code: match for_people && functions.is_empty() || arguments.code.is_given() {
            true => Some(arguments.code.filter()?),
            false => None,
        },
    };
    let out = arguments.output.as_deref();
    let style = arguments.color.style(out);
    let note = counted.note.as_deref();
    if let Some(note) = note {
        if !matches!(arguments.format, Format::Text | Format::Json) {
            bail!("{note}; this format cannot say so: choose --format text or json");
        }
        say(note);
    }
    if matches!(arguments.by, Some(ByArgument::Line)) || arguments.format == Format::Lcov {
        without_lines(&arguments.file, &profile, &scope, &source)
            .into_iter()
            .for_each(say);
    }
    let binary = arguments.format == Format::Pprof;
    let render = |out: &mut dyn Write| -> Result<()> {
        if let (Some(note), Format::Text) = (note, arguments.format) {
            writeln!(out, "{note}")?;
        }
        match arguments.format {
            Format::Text if arguments.annotate => {
                let annotation = Annotation {
                    scope,
                    listings: if functions.is_empty() {
                        3
                    } else {
                        functions.len()
                    },
                };
                annotate(out, &profile, &annotation, &**sources, style)?;
            }
            Format::Text => text(
                out,
                &profile,
                &Report::new(&profile, &options)?,
                &**sources,
                style,
            )?,
            Format::Json => json(out, &profile, &Report::new(&profile, &options)?, note)?,
            Format::Csv => csv(out, &profile, &Report::new(&profile, &options)?)?,
            Format::Lcov => lcov(out, &profile, &scope, options.code.as_ref())?,
            Format::Callgrind => callgrind(out, &profile, &scope)?,
            Format::Pprof => pprof(out, &profile, &scope)?,
            Format::Dot => match functions.as_slice() {
                [] => calls_dot(out, &profile, &scope)?,
                [one] => cfg_dot(out, &profile, *one)?,
                _ => bail!("--format dot draws the call graph, or the graph of one function"),
            },
        }
        Ok(())
    };
    write(out, binary, |out| {
        render(out).with_context(|| arguments.file.display().to_string())
    })
}
