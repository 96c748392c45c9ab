//! `afterimage runner`

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::input;
use crate::output::write;
use crate::record;

/// Record what Cargo runs: a program, or each failing test
///
/// Cargo calls it if CARGO_TARGET_WASM32_WASIP1_RUNNER="afterimage runner" is in the environment. `cargo run` records the program. `cargo test` runs each test by itself, because WebAssembly ends at the first panic, and keeps the recordings of those that fail: under each stands its name and what `afterimage why --trap` says first. Filters and --nocapture are those of `cargo test`; so is the summary.
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
  The program's own; of tests 101 if one failed, as cargo expects."
)]
pub(crate) struct Arguments {
    /// Where recordings go [default: a folder `afterimage` beside the program]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// The program, as Cargo names it, and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    guest: Vec<OsString>,
    // Last, because its heading would hold for all that follows.
    #[command(flatten)]
    run: RunArguments,
}

/// Options of libtest that control how it runs or shows tests, and whether a value follows.
const OWN: [(&str, bool); 9] = [
    ("--nocapture", false),
    ("--no-capture", false),
    ("--show-output", false),
    ("--quiet", false),
    ("-q", false),
    ("--test-threads", true),
    ("--format", true),
    ("--color", true),
    ("--report-time", false),
];

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
    record::run(record::Arguments::of(
        program,
        &args,
        recording,
        arguments.run,
    ))
}

/// Whether a program is the tests of a crate.
fn is_libtest(program: &Path) -> Result<bool> {
    let loaded = input::program(program)?;
    let source = loaded.source_map();
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

/// How a test ended.
enum Ended {
    Passed,
    Ignored,
    Failed { recording: PathBuf, said: String },
}

impl Tests<'_> {
    fn run(&self, args: &[String]) -> Result<Exit> {
        let begun = Instant::now();
        let (filters, own) = apart(args);
        let shown = own.iter().any(|arg| arg.starts_with("--no"));
        let all = self.list(&[])?;
        let tests = self.list(&filters)?;
        let ignored = filters.iter().filter(|arg| arg.ends_with("ignored"));
        let ignored = Vec::from_iter(ignored.cloned());
        let (mut passed, mut left_out, mut failed) = (0, 0, Vec::new());
        line(&format!("\nrunning {}", count(tests.len())))?;
        for test in &tests {
            let (ended, said) = self.test(test, &ignored)?;
            if shown {
                text(&said)?;
            }
            let how = match ended {
                Ended::Passed => {
                    passed += 1;
                    "ok"
                }
                Ended::Ignored => {
                    left_out += 1;
                    "ignored"
                }
                Ended::Failed { recording, said } => {
                    failed.push((test, recording, said));
                    "FAILED"
                }
            };
            line(&format!("test {test} ... {how}"))?;
        }
        if !failed.is_empty() {
            line("\nfailures:")?;
            for (test, recording, said) in &failed {
                line(&format!("\n---- {test} ----"))?;
                text(said)?;
                line(&format!("recording: {}", recording.display()))?;
                text(&explained(recording)?)?;
            }
            line("\nfailures:")?;
            for (test, ..) in &failed {
                line(&format!("    {test}"))?;
            }
        }
        let result = if failed.is_empty() { "ok" } else { "FAILED" };
        let filtered = all.len().saturating_sub(tests.len());
        line(&format!(
            "\ntest result: {result}. {passed} passed; {} failed; {left_out} ignored; 0 measured; {filtered} filtered out; finished in {:.2}s\n",
            failed.len(),
            begun.elapsed().as_secs_f64()
        ))?;
        Ok(match failed.is_empty() {
            true => Exit::Success,
            // As libtest.
            false => Exit::Guest(101),
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
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(tests.map(str::to_owned).collect())
    }

    /// Runs a test: how it ended, and what it said.
    fn test(&self, test: &str, ignored: &[String]) -> Result<(Ended, String)> {
        let name = test.replace("::", ".");
        let is_plain = |sign: char| sign.is_alphanumeric() || matches!(sign, '.' | '_' | '-');
        let name = name.replace(|sign| !is_plain(sign), "_");
        let recording = self.folder.join(format!("{}.{name}.aft", self.stem));
        // What libtest captured would be lost with a panic.
        let args = [test, "--exact", "--nocapture"].map(str::to_owned);
        let args = Vec::from_iter(args.into_iter().chain(ignored.iter().cloned()));
        let ran = self.record(&recording, &args)?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        let mut said = said(&printed, test);
        // The recorder's own message is left out.
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        let errors = errors
            .lines()
            .filter(|line| !line.starts_with("afterimage: "));
        errors.for_each(|line| said += &format!("{line}\n"));
        if !ran.status.success() {
            if ran.status.code() == Some(TIMED_OUT) {
                said += "stopped by --timeout\n";
            }
            let kept = said.clone();
            return Ok((
                Ended::Failed {
                    recording,
                    said: kept,
                },
                said,
            ));
        }
        let _ = fs::remove_file(&recording);
        match printed.contains(" 0 passed; 0 failed; 1 ignored;") {
            true => Ok((Ended::Ignored, said)),
            false => Ok((Ended::Passed, said)),
        }
    }

    /// Records the program with these arguments. What it prints is kept.
    fn record(&self, recording: &Path, args: &[String]) -> Result<Output> {
        let mut command = this()?;
        command.args(["record", "--quiet", "--force", "-o"]);
        command.arg(recording).args(self.run.words());
        command.arg(self.program).arg("--").args(args);
        let output = command.stdin(Stdio::null()).output();
        output.with_context(|| format!("cannot record {}", self.program.display()))
    }
}

/// Separates what selects tests from what controls how they are shown.
fn apart(args: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut filters, mut own) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let name = arg.split('=').next().unwrap_or(arg);
        match OWN.iter().find(|(option, _)| *option == name) {
            Some((_, has_value)) => {
                own.push(arg.clone());
                if *has_value && !arg.contains('=') {
                    own.extend(args.next().cloned());
                }
            }
            None => filters.push(arg.clone()),
        }
    }
    (filters, own)
}

/// What a test printed, without what libtest says around it.
fn said(printed: &str, test: &str) -> String {
    let begin = format!("test {test} ... ");
    let after = printed
        .split_once(&begin)
        .map_or(printed, |(_, after)| after);
    let end = after.rfind("\ntest result: ").unwrap_or(after.len());
    let said = after[..end].trim_end();
    let said = said.strip_suffix("ok").unwrap_or(said).trim_end();
    match said {
        "" | "ignored" => String::new(),
        said => format!("{said}\n"),
    }
}

/// What killed a test, in few words.
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

/// The exit code of what `--timeout` ended.
const TIMED_OUT: i32 = 124;

#[expect(
    clippy::disallowed_methods,
    reason = "it is this program, in the user's own environment"
)]
fn this() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    Ok(Command::new(program))
}

fn count(tests: usize) -> String {
    match tests {
        1 => "1 test".to_owned(),
        tests => format!("{tests} tests"),
    }
}

fn line(text: &str) -> Result<()> {
    write(None, false, |out| Ok(writeln!(out, "{text}")?))
}

fn text(text: &str) -> Result<()> {
    write(None, false, |out| Ok(write!(out, "{text}")?))
}

#[cfg(test)]
mod tests {
    use super::{apart, said};

    #[test]
    fn filters_are_told_from_ways_of_showing() {
        let args = [
            "parser::",
            "--nocapture",
            "--test-threads",
            "1",
            "--skip",
            "slow",
            "--format=pretty",
        ];
        let (filters, own) = apart(&args.map(str::to_owned));
        assert_eq!(filters, ["parser::", "--skip", "slow"]);
        assert_eq!(
            own,
            ["--nocapture", "--test-threads", "1", "--format=pretty"]
        );
    }

    #[test]
    fn what_a_test_said_is_between_the_words_of_libtest() {
        let printed = "\nrunning 1 test\ntest a::b ... hello\nyou\nok\n\ntest result: ok. 1 passed; 0 failed\n\n";
        assert_eq!(said(printed, "a::b"), "hello\nyou\n");
        let quiet = "\nrunning 1 test\ntest a::b ... ok\n\ntest result: ok. 1 passed\n\n";
        assert_eq!(said(quiet, "a::b"), "");
        assert_eq!(
            said("\nrunning 1 test\ntest a::b ... hello\n", "a::b"),
            "hello\n"
        );
    }
}
