//! Implements `afterimage profile`.

use std::path::{Path, PathBuf};

use afterimage::compared::compare;
use afterimage::counted::{Counted, Profiled, nothing_runs, recordings, refuse_without_effect};
use afterimage::files::{self, Kind};
use afterimage::launch::RecordQuery;
use afterimage::{CounterPlacement, Counting, ProfileQuery, Session};
use afterimage_present::{Content, ProfileView, render};
use afterimage_profile::{By, CodeFilter, Sort};
use afterimage_trace::{Existing, TraceWriter};
use anyhow::{Context, Result, bail};
use clap::ArgMatches;

use crate::arguments::{
    CodeArguments, OutputArguments, RunArguments, SourceArguments, StretchArguments, choices,
    formats,
};
use crate::exit::Exit;
use crate::lens;
use crate::output::{pasted, say, say_not_at_hand, write};
use crate::progress::Terminal;
use crate::record::execute;
use crate::signals::{Watch, leave_scratch};

/// Count how often functions, lines, blocks and edges ran
///
/// Counts are exact, down to single instructions. Afterimage re-executes a recording once to count,
/// and keeps the counts in the file. A program is first recorded to a temporary file; its standard
/// output then goes to standard error.
///
/// The counts of several recordings of one program are added up. With --compare, each row shows the
/// counts of A (the recordings named first), the counts of B, and the ratio B/A. If B's input is
/// twice as large, B/A is 2 where the program is linear, and 4 where it is quadratic.
///
/// Exits with 0 once the report is written, no matter how the guest ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage profile app.aft
  afterimage profile app.aft --annotate --path 'src/**'
  afterimage profile --by line --limit 20 app.wasm input.txt
  afterimage profile run1.aft run2.aft run3.aft --format lcov -o app.info
  afterimage profile app.aft --format html -o coverage.html
  afterimage profile half.aft --compare full.aft
  afterimage profile app.aft --format callgrind -o callgrind.out
  callgrind_annotate callgrind.out")]
pub(crate) struct Arguments {
    /// Kind of rows [default: function]
    #[arg(long, help_heading = "Report")]
    by: Option<ByArgument>,
    /// Order of the rows [default: instructions for text, program otherwise; with --compare,
    /// greatest B/A first]
    #[arg(long, help_heading = "Report")]
    sort: Option<SortArgument>,
    /// Show only the first N rows [default: 25 for text, all otherwise]
    #[arg(
        long = "limit",
        alias = "top",
        value_name = "N",
        help_heading = "Report"
    )]
    top: Option<usize>,
    /// Show only this function, by index, name or demangled name; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    function: Vec<String>,
    /// Show only source files whose path, or an end of it, matches a glob: 'src/**'
    #[arg(
        long,
        value_name = "GLOB",
        conflicts_with = "code",
        help_heading = "Report"
    )]
    path: Option<CodeFilter>,
    /// Show source lines with their counts, or WebAssembly text where the source is not found
    #[arg(long, conflicts_with_all = ["by", "sort", "top"], help_heading = "Report")]
    annotate: bool,
    #[command(flatten, next_help_heading = "Report")]
    stretch: StretchArguments,
    /// Also show the counts of this recording, B, and the ratio B/A; functions of another program
    /// are matched by name. May be repeated: counts are added up
    #[arg(
        long,
        value_name = "B.aft",
        conflicts_with = "annotate",
        help_heading = "Report"
    )]
    compare: Vec<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", help_heading = "Report")]
    format: Format,
    #[command(flatten, next_help_heading = "Report")]
    to: OutputArguments,
    /// Placement of counters, which does not affect the counts [default: program, or feedback with
    /// --weights]; program uses the counts of an earlier long run of the program if the cache has
    /// them
    #[arg(long, help_heading = "Counting")]
    mode: Option<ModeArgument>,
    /// An earlier recording of the same program, whose counts show where counters are cheap
    #[arg(long, value_name = "FILE.aft", help_heading = "Counting")]
    weights: Option<PathBuf>,
    /// Do not count; read the counters that a module from `afterimage instrument` left in another
    /// engine
    #[arg(long, value_name = "DUMP", conflicts_with_all = ["mode", "weights"], help_heading = "Counting")]
    counters: Option<PathBuf>,
    /// A recording, or a program to record first
    #[arg(value_name = "FILE.aft|PROGRAM")]
    file: PathBuf,
    /// More recordings; or, for a program, the guest's arguments: write -- before the first if it
    /// begins with a dash
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
    // These come last, because their heading would apply to all options after them.
    #[command(flatten)]
    run: RunArguments,
}

choices! { ByArgument => By {
    Function, Line, Block, Edge, Instruction,
}}

choices! { SortArgument => Sort {
    /// Most executed instructions first
    Instructions,
    /// Most executions first
    Count,
    /// By name
    Name,
    /// In program order
    Program,
}}

choices! { ModeArgument => CounterPlacement {
    /// In each function, on the edges that are executed least
    Quick,
    /// Like program, and also in every block, to check the derived counts
    #[value(name = "slow")]
    Checked,
    /// Where counters are cheap, judged by the counts of an earlier run
    Feedback,
    /// Over the whole program at once, which needs the fewest counters
    Program,
}}

formats! {
    Text,
    Json,
    Csv,
    Lcov,
    /// Without calls; `export --format callgrind` adds them, with their inclusive cost
    Callgrind,
    /// Without callers; `export --format pprof` adds them
    Pprof,
    Dot,
    /// A page with all source files and their counts
    Html,
}

/// Parses options anywhere among recordings. All words after a program belong to the guest.
pub(crate) fn among_recordings(
    command: clap::Command,
    matches: ArgMatches,
) -> clap::error::Result<ArgMatches> {
    let profile = matches.subcommand_matches("profile");
    let file = profile.and_then(|matches| matches.get_one::<PathBuf>("file"));
    if !file.is_some_and(|file| is_recording(file)) {
        return Ok(matches);
    }
    let anywhere = |args: clap::Arg| args.trailing_var_arg(false);
    let command = command.mut_subcommand("profile", |profile| profile.mut_arg("args", anywhere));
    command.try_get_matches()
}

fn is_recording(file: &Path) -> bool {
    matches!(files::kind(file), Ok(Kind::Recording))
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let given = [
        ("--by", arguments.by.is_some()),
        ("--sort", arguments.sort.is_some()),
        ("--limit", arguments.top.is_some()),
    ];
    refuse_without_effect(arguments.format.into(), arguments.annotate, &given)?;
    let query = arguments.query()?;
    if !arguments.compare.is_empty() {
        query.refuse_comparison(arguments.format.into())?;
    }
    if query.is_bound() {
        arguments.refuse_format_of_range()?;
    }
    let path = &arguments.file;
    let paths = arguments.sources.paths()?;
    let open = |at: &Path| Ok(lens::session(at)?.reading(paths.clone()));
    let counted = match (&arguments.counters, files::kind(path)?) {
        (Some(dump), Kind::Program) => {
            let why = "--counters reads counts from elsewhere";
            arguments.refuse_guest(why)?;
            nothing_runs(why, arguments.args.first())?;
            Counted::of_dump(dump, path, paths.clone())?
        }
        (Some(_), Kind::Recording) => bail!(
            "{}: with --counters, name the program that was instrumented, not a recording",
            path.display()
        ),
        (None, Kind::Recording) => {
            arguments.refuse_guest(&format!("{} is a recording", path.display()))?;
            let all = recordings(path, &arguments.args)?;
            let whole = query.whole().filter(|_| arguments.has_whole_lines());
            match (&*all, query.is_bound()) {
                ([_], true) => arguments.in_range(&open(path)?, &query)?,
                (_, true) => {
                    bail!("--from and --to choose a stretch of one run: name only one recording")
                }
                _ => arguments.counting(|counting| Counted::of_all(all, open, counting, whole))?,
            }
        }
        (None, Kind::Program) => {
            let loaded = files::program(path)?;
            let run = RecordQuery {
                output_to_stderr: true,
                ..arguments.run.query(path, &arguments.args)?
            };
            let watch = Watch::start(run.has_clock())?;
            let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
            leave_scratch(folder.path().to_owned());
            let recording = folder.path().join("run.aft");
            let out = TraceWriter::create(&recording, Existing::Kept)
                .context("cannot make a temporary recording")?;
            let recorded = execute(&loaded, &run, watch, &out)?;
            drop(out);
            if Exit::of_guest(&recorded.end) != Exit::Success {
                say(format_args!("{} {}", path.display(), recorded.end.ending));
            }
            let session = open(&recording)?;
            let whole = query.whole().filter(|_| arguments.has_whole_lines());
            arguments
                .in_range(&session, &query)?
                .with_whole_lines(&session, whole)
        }
    };
    if arguments.compare.is_empty() {
        counted.ask(&Terminal, |profiled| arguments.report(profiled))?
    } else {
        arguments.compare_with(&counted, open)?
    }
    // Annotated source lists these functions itself, and lcov leaves them out.
    if !arguments.annotate && arguments.format != Format::Lcov {
        say_not_at_hand(&paths, &arguments.filter()?);
    }
    Ok(Exit::Success)
}

impl Arguments {
    /// Refuses options for a guest if no guest will run.
    fn refuse_guest(&self, why: &str) -> Result<()> {
        if let Some(option) = self.run.given() {
            bail!("{why}, so no program runs and {option} has no use");
        }
        Ok(())
    }

    /// Refuses formats that need counts which a stretch of the run does not have.
    fn refuse_format_of_range(&self) -> Result<()> {
        if self.counters.is_some() {
            bail!("--counters has no order in time: leave out --from and --to");
        }
        match self.format {
            Format::Text | Format::Json | Format::Csv => Ok(()),
            Format::Callgrind | Format::Pprof => bail!(
                "the counts of a stretch have this format only with calls: afterimage export --from … --to …"
            ),
            Format::Lcov | Format::Dot | Format::Html => bail!(
                "this format needs the counts of edges, which a stretch of the run does not have: \
                 choose --format text, json or csv, or leave out --from and --to"
            ),
        }
    }

    /// Counts a run, or the stretch of it that the options choose.
    fn in_range(&self, session: &Session, query: &ProfileQuery) -> Result<Counted> {
        let counted = self.counting(|counting| Counted::of(session, &self.file, counting))?;
        counted.in_range(session, query, self.annotate)
    }

    /// Passes the requested placement of counters to `ask`. `None` means the counts that are stored
    /// in a recording.
    fn counting<R>(&self, ask: impl FnOnce(Option<&Counting<'_>>) -> Result<R>) -> Result<R> {
        let placement = match (self.mode, &self.weights) {
            (None, None) => return ask(None),
            (Some(ModeArgument::Feedback), None) => {
                bail!(
                    "--mode feedback needs the counts of an earlier run: give them with \
                    --weights FILE.aft"
                )
            }
            (mode, _) => mode.map_or(CounterPlacement::Feedback, CounterPlacement::from),
        };
        let earlier = self.weights.as_deref().map(files::recording).transpose()?;
        let weights = self.weights.as_deref().zip(earlier.as_ref());
        ask(Some(&Counting { placement, weights }))
    }

    /// Returns the code to show.
    fn filter(&self) -> Result<CodeFilter> {
        match &self.path {
            Some(path) => Ok(path.clone()),
            None => self.code.filter(),
        }
    }

    /// Whether lines also show their cost including library code.
    fn has_whole_lines(&self) -> bool {
        let has_rows = matches!(self.format, Format::Text | Format::Json | Format::Csv);
        has_rows && !self.annotate && self.compare.is_empty()
    }

    fn query(&self) -> Result<ProfileQuery> {
        let for_people = self.format == Format::Text;
        // Formats for programs are complete, and so is a table about named functions.
        let is_filtered = for_people && self.function.is_empty()
            || self.format == Format::Html
            || self.code.is_given()
            || self.path.is_some();
        let query = ProfileQuery {
            by: self.by.map(By::from).unwrap_or_default(),
            sort: self.sort.map(Sort::from),
            top: self.top,
            functions: self.function.clone(),
            code: is_filtered.then(|| self.filter()).transpose()?,
            bounds: self.stretch.bounds(),
        };
        Ok(if for_people {
            query.for_people()
        } else {
            query
        })
    }

    /// Compares the recordings named by `--compare` with `a`.
    fn compare_with(&self, a: &Counted, open: impl Fn(&Path) -> Result<Session>) -> Result<()> {
        let b = self.compare.iter().map(PathBuf::as_path);
        let b = self.counting(|counting| Counted::of_all(b, open, counting, None))?;
        let query = ProfileQuery {
            sort: self.sort.map(Sort::from),
            ..self.query()?
        };
        compare([a, &b], &query, a.sources(), &Terminal, |view| {
            self.to.show(view, self.format)
        })
    }

    fn report(&self, profiled: &Profiled<'_>) -> Result<()> {
        let options = self.query()?.options(profiled)?;
        profiled.check_code(&self.filter()?)?;
        let (out, style) = (self.to.output.as_deref(), self.to.style());
        profiled.refuse_format(self.format.into())?;
        profiled.note().into_iter().for_each(say);
        if self.by == Some(ByArgument::Line) || matches!(self.format, Format::Lcov | Format::Html) {
            let without = profiled.without_lines(&options.scope);
            without.into_iter().for_each(say);
        }
        let about = || self.file.display().to_string();
        let content = match self.format {
            Format::Pprof => Content::Binary,
            _ => Content::Text,
        };
        let view = ProfileView {
            profile: &profiled.profile,
            options,
            annotated: self.annotate,
            note: profiled.note(),
            title: profiled.title(),
            sources: profiled.sources(),
        };
        write(out, content, |out| {
            render(out, &view, self.format, style).with_context(about)
        })?;
        if let Format::Callgrind | Format::Pprof = self.format {
            let format = match self.format {
                Format::Callgrind => "callgrind",
                _ => "pprof",
            };
            let file = match is_recording(&self.file) {
                true => pasted(&self.file),
                false => "FILE.aft".to_owned(),
            };
            say(format_args!(
                "without calls, because they do not follow from counts; with calls: afterimage \
                 export {file} --format {format}"
            ));
        }
        if self.format == Format::Lcov {
            let files = view.files().with_context(about)?;
            let left_out = profiled.sources().left_out(&files);
            left_out.into_iter().for_each(say);
        }
        Ok(())
    }
}
