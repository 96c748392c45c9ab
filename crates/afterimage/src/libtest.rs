//! Reads the arguments and the output of libtest, Rust's test harness, and writes output in its
//! form.

use std::fmt::Write as _;
use std::time::Duration;

/// The options that the user of `cargo test` passes to a harness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarnessArguments {
    /// The names and options that select tests, unchanged.
    pub selection: Vec<String>,
    /// `--nocapture`: show a test's output while it runs.
    pub streams: bool,
    /// `--show-output`: show the output of passing tests at the end.
    pub shows_output: bool,
    /// `--quiet`: one character per test.
    pub is_quiet: bool,
}

/// The end of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    /// The test was ignored. The text is the reason, as libtest prints it after the word "ignored".
    Ignored(String),
    Failed,
    /// The test ended the process, so its result is unknown.
    Exited,
}

impl HarnessArguments {
    /// Separates options that select tests from options for the output.
    ///
    /// # Errors
    /// Returns an error if only libtest itself can write the requested form of output.
    pub fn of(args: &[String]) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            let mut value = || value.or_else(|| args.next().map(String::as_str));
            match name {
                "--nocapture" | "--no-capture" => asked.streams = true,
                "--show-output" => asked.shows_output = true,
                "--quiet" | "-q" => asked.is_quiet = true,
                // These options have no effect: tests run one after another, without colours.
                "--test-threads" | "--color" => drop(value()),
                "--report-time" => {}
                "--format" => match value() {
                    Some("pretty") => {}
                    Some("terse") => asked.is_quiet = true,
                    other => {
                        let other = other.unwrap_or_default();
                        return Err(format!(
                            "--format {other}: only pretty and terse are supported"
                        ));
                    }
                },
                // These options take a value, which must not be read as a filter.
                "--skip" | "--logfile" | "--shuffle-seed" => {
                    asked.selection.push(arg.clone());
                    if !arg.contains('=') {
                        asked.selection.extend(value().map(str::to_owned));
                    }
                }
                _ => asked.selection.push(arg.clone()),
            }
        }
        Ok(asked)
    }

    /// Returns the options that make ignored tests run.
    pub fn ignored(&self) -> Vec<String> {
        let options = self.selection.iter();
        let options = options.filter(|arg| arg.ends_with("ignored"));
        options.cloned().collect()
    }
}

/// A test that was executed in a separate run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    pub test: String,
    /// Whether the test passes by panicking.
    pub should_panic: bool,
    pub ended: Ended,
    /// The output of the test.
    pub said: String,
    /// For a failing test, where its recording is and why it failed.
    pub explanation: String,
}

impl TestRun {
    /// Returns the line, or the single character, that libtest prints when a test has ended.
    pub fn line(&self, asked: &HarnessArguments) -> String {
        let (sign, how) = match &self.ended {
            Ended::Passed => (".", "ok".to_owned()),
            Ended::Ignored(why) => ("i", format!("ignored{why}")),
            Ended::Failed | Ended::Exited => ("F", "FAILED".to_owned()),
        };
        if asked.is_quiet {
            sign.to_owned()
        } else {
            let kind = if self.should_panic { SHOULD_PANIC } else { "" };
            format!("test {}{kind} ... {how}\n", self.test)
        }
    }

    /// Whether the test failed.
    pub fn is_failure(&self) -> bool {
        matches!(self.ended, Ended::Failed | Ended::Exited)
    }
}

/// Returns the line before the first test.
pub fn heading(tests: usize) -> String {
    let tests = match tests {
        1 => "1 test".to_owned(),
        tests => format!("{tests} tests"),
    };
    format!("\nrunning {tests}\n")
}

/// The words after the name of a test that passes by panicking.
const SHOULD_PANIC: &str = " - should panic";

/// Returns the lines that libtest prints after the last test: the output of tests that passed, if
/// requested, the output of tests that failed, and the result.
pub fn summary(
    ran: &[TestRun],
    filtered_out: usize,
    took: Duration,
    asked: &HarnessArguments,
) -> String {
    let of = |wanted: fn(&TestRun) -> bool| Vec::from_iter(ran.iter().filter(|run| wanted(run)));
    let passed = of(|run| run.ended == Ended::Passed);
    let ignored = of(|run| matches!(run.ended, Ended::Ignored(_)));
    let failed = of(TestRun::is_failure);
    let mut text = String::new();
    if asked.is_quiet {
        text.push('\n');
    }
    let spoke = passed.iter().copied().filter(|run| !run.said.is_empty());
    // With --nocapture, the output was shown while the tests ran.
    if asked.shows_output && !asked.streams {
        let parts = |run: &TestRun| format!("\n---- {} stdout ----\n{}", run.test, run.said);
        text += &section("successes", &Vec::from_iter(spoke), parts);
    }
    text += &section("failures", &failed, |run| {
        let said = if asked.streams { "" } else { &run.said };
        format!("\n---- {} ----\n{said}{}", run.test, run.explanation)
    });
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\ntest result: {result}. {} passed; {} failed; {} ignored; 0 measured; {filtered_out} filtered out; finished in {:.2}s\n\n",
        passed.len(),
        failed.len(),
        ignored.len(),
        took.as_secs_f64()
    );
    text
}

/// Returns a section with a part for each test, followed by the names of the tests.
fn section(title: &str, tests: &[&TestRun], part: impl Fn(&TestRun) -> String) -> String {
    if tests.is_empty() {
        return String::new();
    }
    let parts = String::from_iter(tests.iter().map(|run| part(run)));
    let names = String::from_iter(tests.iter().map(|run| format!("    {}\n", run.test)));
    format!("\n{title}:\n{parts}\n{title}:\n{names}")
}

/// Parses the tests in the output of `--list --format terse`.
pub fn listed(printed: &str) -> Vec<String> {
    let tests = printed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

/// Determines how a single test ended, from its output and the success of the process.
pub fn ended(printed: &str, test: &str, is_success: bool) -> Ended {
    let result = printed.rsplit_once("\ntest result: ").map(|(_, text)| text);
    match result {
        _ if !is_success => Ended::Failed,
        None => Ended::Exited,
        Some(result) if result.contains(" 0 passed; 0 failed; 1 ignored;") => {
            let after = after(printed, test).unwrap_or_default();
            let line = after.lines().next().unwrap_or_default();
            let reason = line.strip_prefix("ignored").unwrap_or_default();
            Ended::Ignored(reason.to_owned())
        }
        Some(_) => Ended::Passed,
    }
}

/// Returns the output of a single test, without what libtest prints around it.
pub fn said(printed: &str, test: &str) -> String {
    let after = after(printed, test).unwrap_or(printed);
    let end = after.rfind("\ntest result: ").unwrap_or(after.len());
    let said = after[..end].trim_end();
    // The verdict follows the output on the same line. A test that did not pass has no verdict.
    let has_passed = after[end..].starts_with("\ntest result: ok");
    // If a test failed without ending the process, libtest also prints a list of failures.
    let has_failed = after[end..].starts_with("\ntest result: FAILED");
    let said = match has_passed {
        true => said.strip_suffix("ok").unwrap_or(said),
        false => match said.rfind("FAILED\n\nfailures:\n") {
            Some(verdict) if has_failed => &said[..verdict],
            _ => said,
        },
    };
    let said = said.trim_end();
    match said {
        said if said.is_empty() || said.starts_with("ignored") && !said.contains('\n') => {
            String::new()
        }
        said => format!("{said}\n"),
    }
}

/// Whether the output of a test shows that the test passes by panicking.
pub fn should_panic(printed: &str, test: &str) -> bool {
    printed.contains(&format!("test {test}{SHOULD_PANIC} ... "))
}

/// Returns the text printed after a test's name.
fn after<'p>(printed: &'p str, test: &str) -> Option<&'p str> {
    ["", SHOULD_PANIC].iter().find_map(|kind| {
        let name = format!("test {test}{kind} ... ");
        printed.split_once(&name).map(|(_, after)| after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<HarnessArguments, String> {
        HarnessArguments::of(&Vec::from_iter(args.iter().map(|arg| (*arg).to_owned())))
    }

    #[test]
    fn the_list_of_failures_is_no_output_of_the_test() {
        let printed = "\nrunning 1 test\nabout to fail\ntest tests::fails ... FAILED\n\nfailures:\n\n\
            ---- tests::fails stdout ----\nError: the test returned a termination value\n\n\n\
            failures:\n    tests::fails\n\ntest result: FAILED. 0 passed; 1 failed;";
        assert_eq!(said(printed, "tests::fails"), "");
        let printed = printed.replace("... FAILED", "... half: FAILED\nFAILED");
        assert_eq!(said(&printed, "tests::fails"), "half: FAILED\n");
    }

    #[test]
    fn filters_are_told_from_ways_of_showing() {
        let all = [
            "parser::",
            "--nocapture",
            "--test-threads",
            "1",
            "--skip",
            "slow",
            "--format=pretty",
            "--color",
            "always",
            "--ignored",
        ];
        let found = parsed(&all).unwrap();
        assert_eq!(found.selection, ["parser::", "--skip", "slow", "--ignored"]);
        assert_eq!(found.ignored(), ["--ignored"]);
        assert!(found.streams && !found.is_quiet && !found.shows_output);
        assert!(
            parsed(&["--format", "terse", "--show-output"])
                .unwrap()
                .is_quiet
        );
        let refused = parsed(&["--format", "json"]).unwrap_err();
        assert!(refused.contains("--format json"), "{refused}");
    }

    #[test]
    fn what_a_test_said_is_between_the_words_of_libtest() {
        let printed = "\nrunning 1 test\ntest a::b ... hello\nyou\nok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n\n";
        assert_eq!(said(printed, "a::b"), "hello\nyou\n");
        assert_eq!(ended(printed, "a::b", true), Ended::Passed);
        assert_eq!(ended(printed, "a::b", false), Ended::Failed);
        let quiet = "\nrunning 1 test\ntest a::b ... ok\n\ntest result: ok. 1 passed\n\n";
        assert_eq!(said(quiet, "a::b"), "");
        let cut = "\nrunning 1 test\ntest a::b ... hello\n";
        assert_eq!(said(cut, "a::b"), "hello\n");
        let cut = "\nrunning 1 test\ntest a::b ... about to look\n";
        assert_eq!(said(cut, "a::b"), "about to look\n");
        assert_eq!(ended(cut, "a::b", true), Ended::Exited);
    }

    #[test]
    fn a_summary_is_as_that_of_libtest() {
        let run = |test: &str, ended, said: &str, explanation: &str| TestRun {
            test: test.to_owned(),
            should_panic: test == "c",
            ended,
            said: said.to_owned(),
            explanation: explanation.to_owned(),
        };
        let ran = [
            run("a", Ended::Passed, "hello\n", ""),
            run("b", Ended::Failed, "said\n", "recording: b.aft\n"),
            run("c", Ended::Ignored(", slow".to_owned()), "", ""),
        ];
        let mut asked = HarnessArguments {
            shows_output: true,
            ..HarnessArguments::default()
        };
        let lines = Vec::from_iter(ran.iter().map(|run| run.line(&asked)));
        let expected = [
            "test a ... ok\n",
            "test b ... FAILED\n",
            "test c - should panic ... ignored, slow\n",
        ];
        assert_eq!(lines, expected);
        let result = "\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.50s\n\n";
        let failures = "\nfailures:\n\n---- b ----\nsaid\nrecording: b.aft\n\nfailures:\n    b\n";
        let successes = "\nsuccesses:\n\n---- a stdout ----\nhello\n\nsuccesses:\n    a\n";
        let took = Duration::from_millis(1500);
        let found = summary(&ran, 4, took, &asked);
        assert_eq!(found, format!("{successes}{failures}{result}"));
        asked = HarnessArguments {
            is_quiet: true,
            ..HarnessArguments::default()
        };
        assert_eq!(ran[1].line(&asked), "F");
        assert_eq!(
            summary(&ran, 4, took, &asked),
            format!("\n{failures}{result}")
        );
        assert_eq!(heading(1), "\nrunning 1 test\n");
    }

    #[test]
    fn reasons_of_ignored_tests_are_kept() {
        let end = "\n\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured\n\n";
        let printed = format!("\nrunning 1 test\ntest a ... ignored, takes an hour{end}");
        let ignored = |why: &str| Ended::Ignored(why.to_owned());
        assert_eq!(ended(&printed, "a", true), ignored(", takes an hour"));
        assert_eq!(said(&printed, "a"), "");
        let printed = format!("\nrunning 1 test\ntest a - should panic ... ignored{end}");
        assert_eq!(ended(&printed, "a", true), ignored(""));
        assert!(should_panic(&printed, "a") && !should_panic(&printed, "b"));
        assert_eq!(listed("a::b: test\nc: bench\n\n"), ["a::b"]);
    }
}
