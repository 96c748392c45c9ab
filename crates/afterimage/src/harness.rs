//! Runs the tests of a crate one by one, and keeps the recordings of failing tests.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use anyhow::{Error, Result, bail};

use crate::files;
use crate::libtest::{self, Ended, HarnessArguments, TestRun};
use crate::monitor::Monitor;
use crate::text::pasted;

/// The exit code of `record` if its time limit ended the run.
pub const TIMED_OUT: i32 = 124;

/// Whether a program is a Rust test program.
///
/// # Errors
/// Returns an error if the program cannot be read.
pub fn is_libtest(program: &Path, monitor: &dyn Monitor) -> Result<bool> {
    let loaded = files::program(program)?;
    let source = loaded.source_map(monitor);
    let names = loaded.names(&source);
    let mut functions = names.functions();
    Ok(functions.any(|function| names.function(function).starts_with("test::test_main")))
}

/// Records, explains and prints on behalf of a [`Harness`].
pub trait Runner {
    /// Records the program with these arguments, and captures its output.
    fn record(&self, recording: &Path, args: &[String]) -> Result<Output>;

    /// Explains in a few words what killed a test.
    fn explain(&self, recording: &Path) -> Result<String>;

    /// Prints text to the user.
    fn print(&self, text: &str) -> Result<()>;
}

/// A test program built with Rust's libtest.
pub struct Harness<'t> {
    /// The path of the test program.
    pub program: &'t Path,
    /// The prefix of the names of the test recordings.
    pub stem: &'t str,
    /// The folder for these recordings.
    pub folder: &'t Path,
    /// Records the tests, explains failures and prints.
    pub runner: &'t dyn Runner,
}

impl Harness<'_> {
    /// Runs the tests that the arguments select, and prints what libtest would print. Returns
    /// `false` if a test failed.
    ///
    /// # Errors
    /// Returns an error if the arguments are unknown, or nothing can be recorded or printed.
    pub fn run(&self, args: &[String]) -> Result<bool> {
        let begun = Instant::now();
        let asked = HarnessArguments::of(args).map_err(Error::msg)?;
        let all = self.list(&[])?;
        let tests = self.list(&asked.selection)?;
        self.runner.print(&libtest::heading(tests.len()))?;
        let mut ran = Vec::new();
        for test in &tests {
            let one = self.test(test, &asked.ignored())?;
            if asked.streams {
                self.runner.print(&one.said)?;
            }
            self.runner.print(&one.line(&asked))?;
            ran.push(one);
        }
        let filtered_out = all.len().saturating_sub(tests.len());
        self.runner.print(&libtest::summary(
            &ran,
            filtered_out,
            begun.elapsed(),
            &asked,
        ))?;
        Ok(!ran.iter().any(TestRun::is_failure))
    }

    /// Lists the tests that the filters select.
    fn list(&self, filters: &[String]) -> Result<Vec<String>> {
        let recording = self.folder.join(format!("{}.list.aft", self.stem));
        let args = ["--list", "--format", "terse"].map(str::to_owned);
        let args = Vec::from_iter(filters.iter().cloned().chain(args));
        let listed = self.runner.record(&recording, &args)?;
        let _ = fs::remove_file(&recording);
        if !listed.status.success() {
            let why = String::from_utf8_lossy(&listed.stderr);
            bail!(
                "{}: its tests cannot be listed: {why}",
                self.program.display()
            );
        }
        Ok(libtest::listed(&String::from_utf8_lossy(&listed.stdout)))
    }

    /// Runs a test. Keeps its recording if the test fails.
    fn test(&self, test: &str, ignored: &[String]) -> Result<TestRun> {
        let name = test.replace("::", ".");
        let is_plain = |sign: char| sign.is_alphanumeric() || matches!(sign, '.' | '_' | '-');
        let name = name.replace(|sign| !is_plain(sign), "_");
        let recording = self.folder.join(format!("{}.{name}.aft", self.stem));
        // Output captured by libtest would be lost in a panic.
        let args = [test, "--exact", "--nocapture"].map(str::to_owned);
        let args = Vec::from_iter(args.into_iter().chain(ignored.iter().cloned()));
        let ran = self.runner.record(&recording, &args)?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        let mut said = libtest::said(&printed, test);
        // Leave out the recorder's own message.
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
            should_panic: libtest::should_panic(&printed, test),
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
                _ => self.runner.explain(&recording)?,
            };
            run.explanation = format!("recording: {}\n{why}", recording.display());
        } else {
            let _ = fs::remove_file(&recording);
        }
        Ok(run)
    }
}
