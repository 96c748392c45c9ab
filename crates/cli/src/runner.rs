//! `afterimage runner`

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use afterimage::files;
use afterimage::libtest::{self, Ended, HarnessArguments, TestRun};
use anyhow::{Context, Result, anyhow};

use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::output::{pasted, write};
use crate::progress::Terminal;
use crate::record;

/// Record what Cargo runs: a program, or each failing test
///
/// Cargo uses it if CARGO_TARGET_WASM32_WASIP1_RUNNER="afterimage runner" is in the environment.
/// `cargo run` records the program. `cargo test` runs each test separately, because a WebAssembly
/// program ends at its first panic. It keeps the recordings of failing tests, and below each
/// failure prints the recording's name and the first lines of `afterimage why --trap`. Filters,
/// --nocapture and the summary are those of `cargo test`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "afterimage runner [OPTIONS] PROGRAM [ARGS]...",
    after_help = "\
Examples:
  export CARGO_TARGET_WASM32_WASIP1_RUNNER='afterimage runner'
  cargo test --target wasm32-wasip1
  cargo test --target wasm32-wasip1 parser:: -- --nocapture
  cargo run --target wasm32-wasip1 -- input.txt

Exit codes:
  The program's own; for tests 101 if one failed, as cargo expects."
)]
pub(crate) struct Arguments {
    /// Put recordings into this folder [default: a folder `afterimage` beside the program]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// The program and its arguments, as Cargo passes them
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    guest: Vec<OsString>,
    // Last, because its heading would apply to all options after it.
    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (program, args) = arguments.guest.split_first().context("name a program")?;
    let program = Path::new(program);
    let args = args.iter().map(|arg| {
        let text = arg.to_str().map(str::to_owned);
        text.ok_or_else(|| anyhow!("argument {}: not UTF-8", arg.display()))
    });
    let args = args.collect::<Result<Vec<_>>>()?;
    let stem = program.file_stem().context("name a program")?;
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => program.with_file_name("afterimage"),
    };
    let cannot = || format!("cannot make the folder {}", folder.display());
    fs::create_dir_all(&folder).with_context(cannot)?;
    let is_harness = !args.iter().any(|arg| arg == "--bench" || arg == "--list");
    if is_harness && is_libtest(program)? {
        let tests = Tests {
            program,
            stem: &stem.to_string_lossy(),
            folder: &folder,
            run: &arguments.run,
        };
        return tests.run(&args);
    }
    let recording = folder.join(stem).with_extension("aft");
    let query = record::Arguments::of(program, &args, recording.clone(), arguments.run);
    let exit = record::run(query)?;
    // A list of tests needs no explanation.
    if !is_harness && exit == Exit::Success && is_libtest(program)? {
        let _ = fs::remove_file(&recording);
    }
    Ok(exit)
}

/// Whether a program is the test harness of a crate.
fn is_libtest(program: &Path) -> Result<bool> {
    let loaded = files::program(program)?;
    let source = loaded.source_map(&Terminal);
    let names = loaded.names(&source);
    let mut functions = names.functions();
    Ok(functions.any(|function| names.function(function).starts_with("test::test_main")))
}

/// The tests of a crate.
struct Tests<'t> {
    program: &'t Path,
    stem: &'t str,
    folder: &'t Path,
    run: &'t RunArguments,
}

impl Tests<'_> {
    fn run(&self, args: &[String]) -> Result<Exit> {
        let begun = Instant::now();
        let asked = HarnessArguments::of(args).map_err(anyhow::Error::msg)?;
        let all = self.list(&[])?;
        let tests = self.list(&asked.selection)?;
        text(&libtest::heading(tests.len()))?;
        let mut ran = Vec::new();
        for test in &tests {
            let one = self.test(test, &asked.ignored())?;
            if asked.streams {
                text(&one.said)?;
            }
            text(&one.line(&asked))?;
            ran.push(one);
        }
        let filtered_out = all.len().saturating_sub(tests.len());
        text(&libtest::summary(
            &ran,
            filtered_out,
            begun.elapsed(),
            &asked,
        ))?;
        Ok(match ran.iter().any(TestRun::is_failure) {
            false => Exit::Success,
            // As libtest.
            true => Exit::Guest(101),
        })
    }

    /// Lists the tests that the filters select.
    fn list(&self, filters: &[String]) -> Result<Vec<String>> {
        let recording = self.folder.join(format!("{}.list.aft", self.stem));
        let args = ["--list", "--format", "terse"].map(str::to_owned);
        let args = Vec::from_iter(filters.iter().cloned().chain(args));
        let listed = self.record(&recording, &args)?;
        let _ = fs::remove_file(&recording);
        if !listed.status.success() {
            let why = String::from_utf8_lossy(&listed.stderr);
            anyhow::bail!(
                "{}: its tests cannot be listed: {why}",
                self.program.display()
            );
        }
        Ok(libtest::listed(&String::from_utf8_lossy(&listed.stdout)))
    }

    /// Runs a test. The recording of a failing test stays.
    fn test(&self, test: &str, ignored: &[String]) -> Result<TestRun> {
        let name = test.replace("::", ".");
        let is_plain = |sign: char| sign.is_alphanumeric() || matches!(sign, '.' | '_' | '-');
        let name = name.replace(|sign| !is_plain(sign), "_");
        let recording = self.folder.join(format!("{}.{name}.aft", self.stem));
        // Output captured by libtest would be lost in a panic.
        let args = [test, "--exact", "--nocapture"].map(str::to_owned);
        let args = Vec::from_iter(args.into_iter().chain(ignored.iter().cloned()));
        let ran = self.record(&recording, &args)?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        let mut said = libtest::said(&printed, test);
        // The recorder's own message is left out.
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        for line in errors
            .lines()
            .filter(|line| !line.starts_with("afterimage: "))
        {
            said += &format!("{line}\n");
        }
        if ran.status.code() == Some(TIMED_OUT) {
            said += "stopped by --timeout\n";
        }
        let mut run = TestRun {
            test: test.to_owned(),
            ended: libtest::ended(&printed, test, ran.status.success()),
            said,
            explanation: String::new(),
        };
        if run.is_failure() {
            let why = match run.ended {
                Ended::Exited => format!(
                    "the test ended the process before the test was over; see: afterimage trace \
                     --level call --last 20 {}\n",
                    pasted(&recording)
                ),
                _ => explained(&recording)?,
            };
            run.explanation = format!("recording: {}\n{why}", recording.display());
        } else {
            let _ = fs::remove_file(&recording);
        }
        Ok(run)
    }

    /// Records the program with these arguments, and captures its output.
    fn record(&self, recording: &Path, args: &[String]) -> Result<Output> {
        let mut command = this()?;
        command.args(["record", "--quiet", "--force", "-o"]);
        command.arg(recording).args(self.run.words());
        command.arg(self.program).arg("--").args(args);
        let output = command.stdin(Stdio::null()).output();
        output.with_context(|| format!("cannot record {}", self.program.display()))
    }
}

/// Explains in a few words what killed a test.
fn explained(recording: &Path) -> Result<String> {
    let asked = this()?.args(["why", "--trap"]).arg(recording).output();
    let asked = asked.with_context(|| format!("cannot ask about {}", recording.display()))?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    Ok(said
        .lines()
        .take(1)
        .map(|line| format!("{line}\n"))
        .collect())
}

/// The exit code if `--timeout` ended the run.
const TIMED_OUT: i32 = 124;

#[expect(
    clippy::disallowed_methods,
    reason = "it is this program, in the user's own environment"
)]
fn this() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Ok(Command::new(program))
}

fn text(text: &str) -> Result<()> {
    write(None, false, |out| Ok(write!(out, "{text}")?))
}
