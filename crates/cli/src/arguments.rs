//! Arguments shared by several commands.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afterimage::Session;
use afterimage::grants::Grants;
use afterimage::launch::{LiveLens, RecordQuery};
use afterimage::rows::{Form, Rows};
use afterimage::settings::Settings;
use afterimage::sources::{Moved, SourcePaths};
use afterimage::trace::Bounds;
use afterimage_present::{Content, Format, Render, Style, render};
use afterimage_profile::CodeFilter;
use afterimage_profile::location::number;
use anyhow::{Context, Result, bail};

use crate::output::{Color, ToFile, write};

/// Defines the values of an option. Each value maps to the value of the same name in a library's
/// type.
macro_rules! choices {
    ($name:ident => $meaning:ty { $($(#[$attribute:meta])* $choice:ident),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        enum $name {
            $($(#[$attribute])* $choice),+
        }

        impl From<$name> for $meaning {
            fn from(choice: $name) -> Self {
                match choice {
                    $($name::$choice => Self::$choice),+
                }
            }
        }
    };
}
pub(crate) use choices;

/// Defines a command's `Format`, which contains some of the report formats.
macro_rules! formats {
    ($($choices:tt)+) => {
        $crate::arguments::choices!(Format => afterimage_present::Format { $($choices)+ });
    };
}
pub(crate) use formats;

/// Parses a number of entries, from 1.
pub(crate) fn entries(text: &str) -> Result<u64, &'static str> {
    let entries = number(text).filter(|&entries| entries > 0);
    entries.ok_or("give a number from 1 on")
}

/// Parses a number of rows, from 1.
pub(crate) fn rows(text: &str) -> Result<usize, &'static str> {
    let rows = usize::try_from(entries(text)?);
    rows.map_err(|_| "give a smaller number")
}

/// The destination of a report.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputArguments {
    /// Write the report to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// When to use color
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
}

/// The recording that a report is about, and the report's destination.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub to: OutputArguments,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    pub file: PathBuf,
}

/// Returns the arguments of a guest.
pub(crate) fn guest_arguments(args: &[OsString]) -> Result<Vec<String>> {
    let args = args.iter().map(|arg| {
        let text = arg.to_str().map(str::to_owned);
        text.with_context(|| format!("argument {arg:?}: not UTF-8, which WASI requires"))
    });
    args.collect()
}

/// Returns the first option that was given, or `None`.
pub(crate) fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(name, _)| *name)
}

/// The default number of lines of text on standard output.
const LINES: u64 = 100;

impl OutputArguments {
    /// Writes a report.
    pub(crate) fn show(&self, report: &impl Render, format: impl Into<Format>) -> Result<()> {
        let style = self.style();
        self.write(|out| Ok(render(out, report, format, style)?))
    }

    /// Writes text.
    pub(crate) fn write(&self, text: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        write(self.output.as_deref(), Content::Text, text)
    }

    /// Returns the destination of rows, and their maximum number. By default, text on standard
    /// output has at most [`LINES`] rows.
    pub(crate) fn rows(&self, form: impl Into<Form>, limit: Option<u64>) -> Rows<'_> {
        let form = form.into();
        let on_screen = form == Form::Text && self.output.is_none();
        Rows {
            output: Box::new(ToFile(self.output.as_deref())),
            form,
            style: self.style(),
            limit: limit.or(on_screen.then_some(LINES)),
        }
    }

    /// Returns the style of the report.
    pub(crate) fn style(&self) -> Style {
        self.color.style(self.output.as_deref())
    }
}

impl ReportArguments {
    /// Adds the recording's name to an error.
    pub(crate) fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.with_context(|| self.file.display().to_string())
    }
}

/// The code to show.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CodeArguments {
    /// Show your own code (mine), all code, or files that match a glob (src/**/*.c); the rest is
    /// folded into the lines that called it. A file .afterimage.toml here or in a parent folder can
    /// set it: code = "…" [default: mine, which leaves out standard libraries and registry
    /// packages]
    #[arg(long, value_name = "mine|all|GLOB")]
    code: Option<CodeFilter>,
}

impl CodeArguments {
    /// Whether the option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.code.is_some()
    }

    /// Opens a recording, after refusing wrong options. Also refuses a glob that matches no file of
    /// the recorded program.
    pub(crate) fn session(&self, open: impl FnOnce() -> Result<Session>) -> Result<Session> {
        let code = self.filter()?;
        let session = open()?.looking_at(code);
        session.check_code()?;
        Ok(session)
    }

    /// Returns the code to show: the requested code or, by default, the code in the user's
    /// settings.
    pub(crate) fn filter(&self) -> Result<CodeFilter> {
        match &self.code {
            Some(code) => Ok(code.clone()),
            None => Ok(Settings::read()?.code),
        }
    }
}

/// The locations of source files.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SourceArguments {
    /// Look in NEW for source files whose path in the debug information begins with OLD; may be
    /// repeated. A file .afterimage.toml here or in a parent folder can set it: source-path =
    /// ["OLD=NEW"]
    #[arg(long, value_name = "OLD=NEW")]
    source_path: Vec<Moved>,
}

impl SourceArguments {
    /// Whether the option was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.source_path.is_empty()
    }

    /// Returns the locations of source files: first the requested locations, then those in the
    /// user's settings.
    pub(crate) fn paths(&self) -> Result<SourcePaths> {
        Settings::read()?.source_paths(&self.source_path)
    }
}

/// The arguments of a report that shows source code: the recording, the code to show, and the
/// locations of sources.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ViewArguments {
    #[command(flatten)]
    pub code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    #[command(flatten)]
    pub report: ReportArguments,
}

impl ViewArguments {
    /// Opens the recording. Refuses wrong options first.
    pub(crate) fn session(&self, open: impl FnOnce(&Path) -> Result<Session>) -> Result<Session> {
        let sources = self.sources.paths()?;
        self.code
            .session(|| Ok(open(&self.report.file)?.reading(sources)))
    }
}

/// A stretch of a run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StretchArguments {
    /// Begin here [default: start]
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End here; this block or statement is included [default: end]
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    pub to: Option<String>,
}

impl StretchArguments {
    pub(crate) fn bounds(&self) -> Bounds {
        let (from, to) = (self.from.clone(), self.to.clone());
        Bounds { from, to }
    }
}

/// The permissions and limits of a guest.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Running the program")]
pub(crate) struct RunArguments {
    /// Grant the guest a folder, under the same name or another; may be repeated
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<String>,
    /// Set an environment variable for the guest; without =V, pass on your own value; may be
    /// repeated
    #[arg(long, value_name = "K[=V]")]
    pub env: Vec<String>,
    /// Read the guest's standard input from this file [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Call this exported function instead of _start. ARGS are its arguments: numbers (42, -0x2a,
    /// 1.5, nan:0x1), 0x… for the 128 bits of a v128, or null for a reference
    #[arg(long, value_name = "EXPORT")]
    pub invoke: Option<String>,
    /// Seed for the guest's random numbers; give two runs the same seed to compare them [default: a
    /// seed from the system]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop the guest after this many seconds; its compilation has the same limit, but at least one
    /// second
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub timeout: Option<f64>,
    /// Record without the stop clock: slightly faster, but a run stopped from outside cannot be
    /// repeated
    #[arg(long, conflicts_with = "timeout")]
    pub no_clock: bool,
    /// Stack size of the guest, in KiB
    #[arg(long, value_name = "KIB", default_value_t = DEFAULT_STACK)]
    pub stack: usize,
}

const DEFAULT_STACK: usize = afterimage_record::RECORD_STACK / 1024;

impl RunArguments {
    /// Returns the task for the recorder, from these options and arguments.
    pub(crate) fn query(&self, program: &Path, args: &[String]) -> Result<RecordQuery> {
        let grants = Grants {
            dirs: &self.dir,
            env: &self.env,
            stdin: self.stdin.as_deref(),
            invoke: self.invoke.as_deref(),
        };
        Ok(RecordQuery {
            command: grants.command(program, args)?,
            lens: LiveLens::Nothing,
            no_clock: self.no_clock,
            timeout: self.limit()?,
            stack: self.stack_bytes()?,
            seed: self.seed,
            output_to_stderr: false,
        })
    }

    /// Returns the options that were given, each with its value.
    fn options(&self) -> Vec<(&'static str, Option<OsString>)> {
        let stack = Some(self.stack).filter(|stack| *stack != DEFAULT_STACK);
        let dirs = self.dir.iter().map(|dir| ("--dir", Some(dir.into())));
        let env = self.env.iter().map(|set| ("--env", Some(set.into())));
        let others = [
            ("--stdin", self.stdin.clone().map(OsString::from)),
            ("--invoke", self.invoke.clone().map(OsString::from)),
            ("--seed", self.seed.map(|seed| seed.to_string().into())),
            (
                "--timeout",
                self.timeout.map(|limit| limit.to_string().into()),
            ),
            ("--stack", stack.map(|stack| stack.to_string().into())),
        ];
        let others = others.into_iter().filter(|(_, value)| value.is_some());
        let clock = self.no_clock.then_some(("--no-clock", None));
        dirs.chain(env).chain(others).chain(clock).collect()
    }

    /// Returns the given options as words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let options = self.options().into_iter();
        let words = options.flat_map(|(name, value)| [Some(name.into()), value]);
        words.flatten().collect()
    }

    /// Returns the first option that was given, or `None`.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.options().first().map(|(name, _)| *name)
    }

    /// Returns the time limit.
    fn limit(&self) -> Result<Option<Duration>> {
        self.timeout
            .map(|seconds| match Duration::try_from_secs_f64(seconds) {
                Ok(limit) if !limit.is_zero() => Ok(limit),
                _ => bail!("--timeout {seconds}: give a positive number of seconds"),
            })
            .transpose()
    }

    /// Returns the stack in bytes.
    fn stack_bytes(&self) -> Result<usize> {
        if !(16..=64 << 10).contains(&self.stack) {
            bail!("--stack {}: give between 16 and 65536 KiB", self.stack);
        }
        Ok(self.stack << 10)
    }
}
