//! Generates the questions about a recording. They cover the commands that read a recording, in
//! their main forms, for places that the run executed and for some that it did not.

use super::recordings::Recording;
use crate::tool;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// The arguments after `afterimage`.
pub type Question = Vec<String>;

/// The numbers of functions and of lines to ask about in each recording.
const FUNCTIONS: usize = 2;
const LINES: usize = 3;

/// The subjects of questions.
struct Subjects {
    functions: Vec<String>,
    /// Executed lines, as `file.c:42`.
    lines: Vec<String>,
    /// Lines that were not executed.
    never: Vec<String>,
    /// Source variables in some of the executed lines.
    variables: Vec<String>,
}

/// Returns the questions about `recording`. They compare it with other recordings in `all`.
///
/// # Errors
/// Returns an error if afterimage cannot be run, or prints no profile.
pub fn about(
    program: &Path,
    folder: &Path,
    recording: &Recording,
    all: &[Recording],
) -> Result<Vec<Question>> {
    let file = format!("{}.aft", recording.name);
    let subjects = subjects(program, folder, &file)?;
    let mut asked = Asked {
        file,
        list: Vec::new(),
    };
    of_the_run(&mut asked);
    for function in &subjects.functions {
        of_a_function(&mut asked, function);
    }
    for line in &subjects.lines {
        of_a_place(&mut asked, line);
    }
    // For modules without lines, the questions are about functions instead.
    if subjects.lines.is_empty() {
        for function in &subjects.functions {
            of_a_place(&mut asked, function);
        }
    }
    for (line, variable) in subjects.lines.iter().zip(&subjects.variables) {
        of_a_variable(&mut asked, line, variable);
    }
    for line in &subjects.never {
        for format in ["text", "json"] {
            asked.ask(&["why-not", "--at", line, "--format", format]);
        }
        asked.ask(&["values", "--at", line]);
    }
    for pair in pairs(recording.name, all) {
        of_two(&mut asked, &pair, &subjects);
    }
    Ok(asked.list)
}

/// Questions about one recording.
struct Asked {
    file: String,
    list: Vec<Question>,
}

impl Asked {
    fn ask(&mut self, words: &[&str]) {
        let words = words.iter().map(|&word| word.to_owned());
        self.list.push(words.chain([self.file.clone()]).collect());
    }

    /// Asks the question in text and in JSON.
    fn ask_both(&mut self, words: &[&str]) {
        self.ask(words);
        let format = ["--format", "json"];
        self.ask(&[words, &format].concat());
    }
}

fn of_the_run(asked: &mut Asked) {
    for by in ["function", "line", "block", "edge", "instruction"] {
        asked.ask(&["profile", "--by", by, "--limit", "40"]);
        asked.ask(&["profile", "--by", by, "--limit", "40", "--format", "json"]);
        asked.ask(&["profile", "--by", by, "--limit", "40", "--format", "csv"]);
    }
    for format in ["lcov", "callgrind", "dot"] {
        asked.ask(&["profile", "--format", format]);
    }
    for mode in ["quick", "slow", "program"] {
        asked.ask(&["profile", "--mode", mode, "--sort", "name"]);
    }
    for level in ["block", "path", "call", "statement", "memory"] {
        for stretch in [
            &["--limit", "30"][..],
            &["--from", "50%", "--limit", "20"],
            &["--last", "20"],
            &["--reverse", "--from", "60%", "--limit", "20"],
        ] {
            asked.ask_both(&[&["trace", "--level", level], stretch].concat());
        }
    }
    for words in [&["calls"][..], &["paths"], &["paths", "--hot"]] {
        asked.ask_both(words);
    }
    for sort in ["blocks", "traces", "program"] {
        asked.ask(&["paths", "--sort", sort]);
    }
    for moment in ["start", "10%", "50%", "90%", "-10", "end"] {
        asked.ask_both(&["state", "--at", moment]);
        asked.ask(&["state", "--at", moment, "--globals", "--depth", "2"]);
    }
    for address in ["8", "16", "64..71", "0x400..0x40f"] {
        asked.ask_both(&["memory", "--address", address]);
        asked.ask_both(&["memory", "--address", address, "--at", "50%"]);
        asked.ask_both(&["memory", "--address", address, "--all", "--limit", "20"]);
    }
    asked.ask_both(&["values", "--loads", "--limit", "20"]);
    asked.ask_both(&["values", "--loads", "--each", "--limit", "20"]);
    asked.ask_both(&["addresses", "--all", "--limit", "20"]);
    asked.ask_both(&["addresses", "--all", "--each", "--limit", "20"]);
    for byte in ["0", "5", "line:1", "line:2"] {
        asked.ask_both(&["why", "--stdout", byte]);
    }
    asked.ask_both(&["why", "--stderr", "0"]);
    asked.ask_both(&["why", "--trap"]);
    asked.ask_both(&["slice", "--trap", "--limit", "30"]);
    asked.ask_both(&["redundancy"]);
    asked.ask_both(&["redundancy", "--expressions"]);
    asked.ask(&["redundancy", "--format", "csv"]);
    let cache = ["--cache", "1k,2,32", "--cache2", "4k,4,32"];
    for predictor in ["bimodal", "gshare", "tage"] {
        let words = [
            "simulate",
            "--branch-predictor",
            predictor,
            "--by",
            "function",
        ];
        asked.ask_both(&[&words[..], &cache].concat());
    }
    asked.ask_both(&["simulate", "--worst"]);
    for format in ["perfetto", "firefox", "collapsed", "dot"] {
        asked.ask(&["export", "--format", format, "--min", "1%"]);
    }
    asked.ask_both(&["info"]);
    asked.ask_both(&["verify"]);
}

fn of_a_function(asked: &mut Asked, function: &str) {
    asked.ask_both(&["calls", "--function", function]);
    asked.ask_both(&["calls", "--function", function, "--call", "last"]);
    for form in ["blocks", "dbb", "twpp"] {
        asked.ask_both(&["paths", "--function", function, "--form", form]);
    }
    asked.ask(&["profile", "--annotate", "--function", function]);
    asked.ask_both(&["cfg", "--function", function, "--counters", "quick"]);
    asked.ask_both(&["cfg", "--function", function, "--dynamic", "--call", "last"]);
    asked.ask(&["cfg", "--function", function, "--format", "dot"]);
    let first = format!("{function}#1");
    asked.ask_both(&[
        "trace", "--level", "call", "--from", &first, "--depth", "2", "--limit", "15",
    ]);
    asked.ask(&["redundancy", "--function", function, "--paths", "2"]);
}

fn of_a_place(asked: &mut Asked, place: &str) {
    let first = format!("{place}#1");
    let last = format!("{place}#last");
    asked.ask_both(&["values", "--at", place, "--limit", "5"]);
    asked.ask(&["values", "--at", place, "--stats"]);
    asked.ask(&["values", "--at", &last]);
    asked.ask(&["values", "--at", place, "--histogram"]);
    asked.ask_both(&["addresses", "--at", place, "--limit", "10"]);
    asked.ask(&["addresses", "--at", place, "--stats"]);
    asked.ask_both(&["deps", "--at", &first]);
    asked.ask_both(&["deps", "--at", &last, "--depth", "3"]);
    asked.ask_both(&["deps", "--at", &first, "--forward"]);
    asked.ask_both(&["slice", "--at", &last, "--limit", "30"]);
    asked.ask(&["slice", "--at", &last, "--by", "statement", "--limit", "30"]);
    asked.ask(&["slice", "--at", &last, "--thin"]);
    asked.ask(&["slice", "--at", &first, "--forward", "--limit", "30"]);
    for algorithm in ["nodes", "edges"] {
        asked.ask(&[
            "slice",
            "--at",
            &last,
            "--algorithm",
            algorithm,
            "--limit",
            "30",
        ]);
    }
    asked.ask_both(&["why", "--at", &last]);
    asked.ask(&["why", "--at", &last, "--format", "dot"]);
    asked.ask_both(&["state", "--at", &last]);
    asked.ask(&["why-not", "--at", place]);
    asked.ask(&["why-not", "--at", place, "--after", &last]);
    let available = format!("available:{place}");
    asked.ask_both(&["dataflow", "--fact", &available]);
    asked.ask(&[
        "trace",
        "--level",
        "statement",
        "--from",
        &last,
        "--limit",
        "12",
    ]);
    asked.ask(&["trace", "--from", &last, "--reverse", "--limit", "12"]);
}

fn of_a_variable(asked: &mut Asked, line: &str, variable: &str) {
    let last = format!("{line}#last");
    asked.ask_both(&["values", "--at", line, "--var", variable]);
    asked.ask_both(&["memory", "--var", variable, "--at", &last]);
    asked.ask(&["memory", "--var", variable, "--at", &last, "--all"]);
    asked.ask_both(&["why", "--at", &last, "--var", variable]);
    asked.ask(&["slice", "--at", &last, "--var", variable, "--limit", "30"]);
}

/// Returns the recordings with which to compare a recording.
fn pairs(name: &str, all: &[Recording]) -> Vec<String> {
    let others = all.iter().map(|one| one.name);
    let of_one_source =
        others.filter(|other| *other != name && other.split('-').next() == name.split('-').next());
    of_one_source.map(|other| format!("{other}.aft")).collect()
}

fn of_two(asked: &mut Asked, other: &str, subjects: &Subjects) {
    for format in ["text", "json"] {
        asked.ask(&["diff", "--format", format, other]);
        asked.ask(&["match", "--format", format, "--limit", "20", other]);
    }
    asked.ask(&["diff", "--slice", other]);
    asked.ask(&["match", "--check", other]);
    asked.ask(&["diff", "--format", "csv", "--pass", other, "--fail"]);
    for line in &subjects.lines {
        asked.ask_both(&["currency", "--unoptimised", other, "--at", line]);
    }
}

fn subjects(program: &Path, folder: &Path, file: &str) -> Result<Subjects> {
    let rows = |by: &str| -> Result<Vec<Value>> {
        let output = tool::start(program)
            .args(["profile", "--by", by, "--format", "json", file])
            .current_dir(folder)
            .output()
            .context("cannot run afterimage")?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{file}: afterimage profile prints no JSON"))?;
        Ok(report["rows"].as_array().cloned().unwrap_or_default())
    };
    let functions = rows("function")?;
    let lines = rows("line")?;
    // Our own files have names without folders.
    let ours = |row: &Value| {
        let file = row["source"]["file"].as_str()?;
        let own = file.strip_prefix("./").unwrap_or(file);
        let line = row["source"]["line"].as_u64()?;
        (!own.contains('/')).then(|| format!("{own}:{line}"))
    };
    let executed = |row: &&Value| row["count"].as_u64() > Some(0);
    let lines_of = |wanted: bool| -> Vec<String> {
        let rows = lines.iter().filter(|row| executed(row) == wanted);
        rows.filter_map(ours).collect()
    };
    let mut called: Vec<_> = functions
        .iter()
        .filter(|row| row["entries"].as_u64() > Some(0))
        .filter(|row| ours(row).is_some() || row["source"].is_null())
        .filter_map(|row| row["function"]["name"].as_str().map(str::to_owned))
        .collect();
    called.truncate(FUNCTIONS);
    let lines = spread(lines_of(true), LINES);
    let variables = variables(program, folder, file, &lines)?;
    Ok(Subjects {
        functions: called,
        never: spread(lines_of(false), LINES),
        variables,
        lines,
    })
}

/// Returns a variable for each line, which is the first that `state` shows in the innermost
/// function there.
fn variables(program: &Path, folder: &Path, file: &str, lines: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for line in lines {
        let output = tool::start(program)
            .args([
                "state", "--format", "json", "--frame", "0", "--at", line, file,
            ])
            .current_dir(folder)
            .output()
            .context("cannot run afterimage")?;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let variables = &report["frames"][0]["variables"];
        let name = variables[0]["name"].as_str();
        names.push(name.unwrap_or("no_such_variable").to_owned());
    }
    Ok(names)
}

/// Returns at most `most` elements of a list, from all parts of it.
fn spread(list: Vec<String>, most: usize) -> Vec<String> {
    let step = list.len().div_ceil(most).max(1);
    list.into_iter().step_by(step).collect()
}
