//! Implements `afterimage record`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage::files::{self, Loaded};
use afterimage::launch::{self, Existing, LiveLens, RecordQuery};
use afterimage::recorded::{literal, remark};
use afterimage::sources::{Embedding, SourceFiles};
use afterimage_present::{counted, size};
use afterimage_record::{RecordError, Recorded, Repeating};
use afterimage_trace::{Ending, Interrupter, TraceWriter};
use anyhow::{Context, Result, bail};
use clap::Args as _;

use crate::arguments::{RunArguments, SourceArguments, guest_arguments};
use crate::build;
use crate::exit::{Exit, Failed};
use crate::filters::FilterArguments;
use crate::output::{be_quiet, pasted, print, say, tell};
use crate::progress::{Bar, Terminal};
use crate::signals::{Watch, leave_last_words};

/// Run a program and record the run
///
/// You can later ask about everything that the program did. The guest's standard output and error
/// pass through unchanged, and its exit code becomes ours. The guest has no network, and only the
/// folders and variables that you grant. Ctrl-C and --timeout stop only the guest; the recording
/// then contains exactly the run up to that moment. A second Ctrl-C, at least a third of a second
/// later, ends everything at once.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "afterimage record [OPTIONS] PROGRAM [--] [ARGS]...",
    after_long_help = "\
Examples:
  afterimage record app.wasm input.txt
  afterimage record --dir data::/data --env LANG=C app.wasm --verbose
  afterimage record --invoke fib math.wat 30
  afterimage record --lens full --window 1_000_000..2_000_000 app.wasm

Exit codes:
  The guest's own; 134 if it trapped or left an exception uncaught,
  124 after --timeout, 130 after Ctrl-C, 143 after SIGTERM or SIGHUP;
  125 if afterimage failed or was called incorrectly, 126 if the program cannot
  be run, 127 if it does not exist."
)]
pub(crate) struct Arguments {
    /// Write the recording to this file [default: PROGRAM's stem with .aft, in the current folder]
    #[arg(short, long, value_name = "OUT.aft")]
    output: Option<PathBuf>,
    /// Overwrite an existing recording
    ///
    /// While the program runs, the new recording is beside the old one, as OUT.aft.PID.part. If
    /// afterimage is killed, both files stay. The .part file is then a recording that was cut off.
    /// Every command can read it; try `afterimage info`. You may delete it.
    #[arg(long)]
    force: bool,
    /// Build this lens during the run, not later by re-execution
    #[arg(long, value_name = "LENS")]
    lens: Option<Lens>,
    /// Embed the source files under this folder that the debug information names, so that reports
    /// show them on other machines; may be repeated
    ///
    /// The files are listed before the program runs, and no other file is read. A symbolic link
    /// that leads out of the folders is not followed.
    #[arg(long, value_name = "ROOT")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    source_path: SourceArguments,
    /// Print nothing if all goes well
    #[arg(short, long)]
    quiet: bool,
    /// A .wasm or .wat file, followed by the guest's arguments, which are passed on unchanged
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    guest: Vec<OsString>,
    // These come last, because their headings would apply to all options after them.
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    run: RunArguments,
}

impl Arguments {
    /// Makes the arguments for recording a program. The output file is overwritten.
    pub(crate) fn of(program: &Path, args: &[String], output: PathBuf, run: RunArguments) -> Self {
        let guest = [program.into(), "--".into()].into_iter();
        Self {
            output: Some(output),
            force: true,
            lens: None,
            sources: Vec::new(),
            source_path: SourceArguments::default(),
            quiet: true,
            guest: guest.chain(args.iter().map(OsString::from)).collect(),
            filters: FilterArguments::default(),
            run,
        }
    }

    /// Returns the sources to embed, if there are any.
    fn embedding(&self, loaded: &Loaded) -> Result<Option<Embedding>> {
        if self.sources.is_empty() {
            if self.source_path.is_given() {
                bail!("--source-path needs --sources, because only that embeds files");
            }
            return Ok(None);
        }
        let files = SourceFiles::new(&loaded.path, self.source_path.paths()?);
        let files = Arc::new(files);
        let source = loaded.source_map_with(&Terminal, Arc::clone(&files));
        Embedding::choose(&self.sources, &source, &files).map(Some)
    }
}

/// The lenses that can be built during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lens {
    /// Exact execution counts
    Counts,
    /// The whole path: which blocks ran, in order
    Paths,
    /// The whole execution trace: also every value, address and dependence. The path is written
    /// during the run, and the rest is built afterwards
    Full,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (program, args) = arguments.guest.split_first().context("name a program")?;
    let program = Path::new(program);
    let args = guest_arguments(after_dashes(args))?;
    let loaded = files::program(program)?;
    arguments.filters.check(&loaded)?;
    if let (Some(option), None | Some(Lens::Counts)) = (arguments.filters.given(), arguments.lens) {
        bail!(
            "{option} selects what to keep of the path or values, so it needs --lens paths or \
             --lens full"
        );
    }
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => {
            let stem = program.file_stem().context("name the recording with -o")?;
            PathBuf::from(stem).with_extension("aft")
        }
    };
    if files::are_same(&path, program) {
        bail!(
            "{} is the program itself; choose another name with -o",
            path.display()
        );
    }
    let embedding = arguments.embedding(&loaded)?;
    let query = RecordQuery {
        lens: match arguments.lens {
            None => LiveLens::Nothing,
            Some(Lens::Counts) => LiveLens::Counts,
            Some(Lens::Paths | Lens::Full) => LiveLens::Path,
        },
        ..arguments.run.query(&loaded.path, &args)?
    };
    if let Some(embedding) = &embedding
        && !arguments.quiet
    {
        let lines = embedding.lines(&path, program);
        lines.into_iter().for_each(say);
    }
    // Watch before the file exists, so that no signal leaves a file without an end.
    let watch = Watch::start(query.has_clock())?;
    let existing = if arguments.force {
        Existing::Replaced
    } else {
        Existing::Kept
    };
    let out = launch::create(&path, existing)?;
    if let Some(embedding) = &embedding {
        match embedding.write(&out) {
            Ok(left_out) => left_out.into_iter().for_each(say),
            Err(error) => {
                let _ = out.discard();
                return Err(error.context(path.display().to_string()));
            }
        }
    }
    let recorded = match execute(&loaded, &query, watch, &out) {
        Ok(recorded) => recorded,
        Err(error) => {
            // Nothing ran, or the result is unusable, so remove the partial file. However, keep a
            // file that could not be written to its end.
            let is_write = |cause: &_| matches!(cause, RecordError::Trace(_));
            if !error
                .chain()
                .filter_map(|cause| cause.downcast_ref())
                .any(is_write)
            {
                let _ = out.discard();
            }
            return Err(error);
        }
    };
    if arguments.run.invoke.is_some() {
        print(|out| {
            for result in &recorded.results {
                writeln!(out, "{}", literal(result))?;
            }
            Ok(())
        })?;
    }
    // In quiet mode, only failures are reported.
    if arguments.quiet
        && let Ending::Returned | Ending::Exited { .. } = recorded.end.ending
    {
        be_quiet();
    }
    let calls: u64 = recorded.end.host_call_counts.iter().sum();
    let tell_recorded = |size: &str| {
        tell(format_args!(
            "{} {}; {} recorded in {}{size}",
            program.display(),
            recorded.end.ending,
            counted(calls, "host call"),
            path.display(),
        ));
    };
    let in_bytes = || {
        let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
        format!(" ({})", size(bytes))
    };
    let makes_path = query.lens == LiveLens::Path;
    if !makes_path {
        tell_recorded(&in_bytes());
    } else if arguments.quiet {
        tell_recorded("");
    }
    if arguments.quiet {
        be_quiet();
    }
    if makes_path {
        drop(out);
        let lens = match arguments.lens {
            Some(Lens::Full) => "full",
            _ => "paths",
        };
        leave_last_words(format!(
            "{} {}; {}: making the path was interrupted, but the recording is complete; make \
             what it lacks with: afterimage build --lens {lens} {}",
            program.display(),
            recorded.end.ending,
            path.display(),
            pasted(&path)
        ));
        let made = match arguments.lens {
            // Values need the whole path, even if only a part of the values is kept.
            Some(Lens::Full) => build::compact(&path, &FilterArguments::default())
                .and_then(|()| build::follow(&path, &arguments.filters)),
            _ => build::compact(&path, &arguments.filters),
        };
        // Building the path drops the words from which it was made, so the size is known only now.
        if !arguments.quiet {
            tell_recorded(&in_bytes());
        }
        made?;
    }
    Ok(Exit::of_guest(&recorded.end))
}

/// Returns the guest's arguments: everything after the program, except a `--` right after it.
/// Reports an option that may have been meant for us.
fn after_dashes(args: &[OsString]) -> &[OsString] {
    if let Some(args) = args.strip_prefix(&[OsString::from("--")]) {
        return args;
    }
    let mut ours = args.iter().take_while(|arg| *arg != "--");
    if let Some(option) = ours.find(|arg| is_own_option(arg)) {
        say(format_args!(
            "{} comes after the program, so the guest gets it; put options of \
             afterimage before the program (or -- right after the program, if you mean the guest)",
            option.display()
        ));
    }
    args
}

/// Whether a word would be one of our options if it came before the program. A short option with
/// its value, such as `-ofile`, does not count, because it may also be something else.
fn is_own_option(word: &OsStr) -> bool {
    let Some(name) = word.to_str().and_then(|word| word.split('=').next()) else {
        return false;
    };
    let command = Arguments::augment_args(clap::Command::new("record"));
    command.get_arguments().any(|option| {
        let short = option.get_short().map(String::from);
        let long = option.get_long();
        match name.strip_prefix("--") {
            Some(name) => Some(name) == long,
            None => name
                .strip_prefix('-')
                .is_some_and(|name| Some(name) == short.as_deref()),
        }
    })
}

/// Runs the guest and records the run. Reports any uncertainty about how the run ended.
pub(crate) fn execute(
    loaded: &Loaded,
    query: &RecordQuery,
    watch: Watch,
    out: &TraceWriter,
) -> Result<Recorded> {
    let interrupt = watch.interrupt().clone();
    let repeating = Repeating(Arc::new(|events| {
        Bar::of_events("looking for the operator that trapped", events).into_progress()
    }));
    let recorded = query.run(loaded, &interrupt, repeating, out);
    drop(watch);
    match recorded {
        Ok(recorded) => {
            if let Some(uncertain) = &recorded.uncertain {
                let what = remark(uncertain, interrupt.requested());
                say(format_args!("{}: {what}", loaded.path.display()));
            }
            Ok(recorded)
        }
        Err(error) => {
            let exit = match error.downcast_ref() {
                Some(error) if error.is_of_program() => Exit::CannotRun,
                Some(RecordError::Interrupted | RecordError::CompileTimeout) => {
                    stopped_by(interrupt.requested())
                }
                _ => Exit::Failure,
            };
            Err(Failed { exit, error }.into())
        }
    }
}

/// Returns the exit code of a recorder that was stopped before the guest began.
fn stopped_by(by: Option<Interrupter>) -> Exit {
    match by {
        Some(Interrupter::Timeout) => Exit::TimedOut,
        Some(Interrupter::Terminate) => Exit::Terminated,
        Some(Interrupter::CtrlC) | None => Exit::Interrupted,
    }
}
