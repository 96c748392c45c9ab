//! Measures how long a user waits for conditions over all executions of a place, for steps by line,
//! and for states. Each measurement covers a whole command about a recording with values.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;
use crate::publish::publish;
use crate::recorded;
use crate::statistics::Sample;

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A recording with its values
    #[arg(value_name = "FILE.aft")]
    recording: PathBuf,
    /// A place that is executed often, such as file.c:42
    #[arg(long, value_name = "PLACE")]
    at: String,
    /// A condition about variables at the place
    #[arg(long = "where", value_name = "CONDITION")]
    condition: String,
    /// Step and show the state at this many random executions of the place
    #[arg(long, value_name = "N", default_value_t = 10)]
    questions: usize,
    /// Ask each question this many times
    #[arg(long, value_name = "N", default_value_t = 5)]
    times: usize,
    /// The command that is timed [default: the command built beside this program]
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// The folder for the results; without it, no results are kept
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// A kind of question, with the median number of milliseconds until the command has ended, for each
/// question.
#[derive(Debug, Serialize)]
struct Row {
    asked: String,
    milliseconds: Sample,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    program: String,
    at: String,
    condition: String,
    executions: u64,
    times: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let command = match &options.command {
        Some(command) => command.clone(),
        None => std::env::current_exe()?.with_file_name("afterimage"),
    };
    ensure!(
        command.is_file(),
        "{}: there is no such command; build it with: cargo build -p afterimage-cli",
        command.display()
    );
    let recording = recorded::opened(&options.recording)?;
    let asker = Asker {
        command: &command,
        at: &options.recording,
        times: options.times,
    };
    let holds = ["values", "--at", &options.at, "--where", &options.condition];
    let holds = |more: &[&'static str]| {
        let words = holds.iter().copied().chain(more.iter().copied());
        Vec::from_iter(words.map(str::to_owned))
    };
    let told = asker.once(&holds(&["--count", "--format", "json"]))?;
    let told: serde_json::Value = serde_json::from_str(&told)?;
    let executions = told["count"]
        .as_u64()
        .context("the answer has no field count")?;
    ensure!(executions > 0, "{}: never executed", options.at);
    let mut random = Random::new();
    let mut chosen = || format!("{}#{}", options.at, random.up_to(executions));
    let places = Vec::from_iter((0..options.questions).map(|_| chosen()));
    let of_places = |words: fn(&str) -> Vec<String>| places.iter().map(|at| words(at)).collect();
    let rows = vec![
        asker.row("--where, all executions", vec![holds(&["--count"])])?,
        asker.row("--where, the first time", vec![holds(&["--first"])])?,
        asker.row("a step by line", of_places(|at| step(at, false)))?,
        asker.row("a step back by line", of_places(|at| step(at, true)))?,
        asker.row("a state", of_places(|at| words(&["state", "--at", at])))?,
    ];
    let results = Results {
        machine: Machine::this(),
        program: recorded::name(&recording),
        at: options.at.clone(),
        condition: options.condition.clone(),
        executions,
        times: options.times,
        rows,
    };
    let date = &results.machine.date;
    publish(
        options.out.as_deref(),
        date,
        "moments",
        &report(&results),
        &results,
    )
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn step(at: &str, back: bool) -> Vec<String> {
    let line = ["trace", "--level", "line", "--limit", "1", "--from", at];
    let back: &[&str] = if back { &["--reverse"] } else { &[] };
    words(&[&line, back].concat())
}

/// The data for asking questions about a recording.
struct Asker<'a> {
    command: &'a Path,
    at: &'a Path,
    times: usize,
}

impl Asker<'_> {
    fn once(&self, words: &[String]) -> Result<String> {
        #[expect(clippy::disallowed_methods, reason = "afterimage itself")]
        let output = Command::new(self.command)
            .args(words)
            .arg(self.at)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .with_context(|| self.command.display().to_string())?;
        ensure!(output.status.success(), "no answer: {}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Asks questions of a kind in turn, several times each. The first time that a question is
    /// asked does not count, because the command then reads the needed data.
    fn row(&self, asked: &str, questions: Vec<Vec<String>>) -> Result<Row> {
        let mut taken = vec![Vec::new(); questions.len()];
        for time in 0..=self.times {
            for (words, taken) in questions.iter().zip(&mut taken) {
                let start = Instant::now();
                self.once(words)?;
                if time > 0 {
                    taken.push(start.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        let medians = taken.into_iter().map(|taken| Sample::of(taken).median);
        Ok(Row {
            asked: asked.to_owned(),
            milliseconds: Sample::of(medians.collect()),
        })
    }
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; {} at {}, executed {} times; condition: {}; each question asked {} times, as a whole command, values built.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.date,
        results.program,
        results.at,
        results.executions,
        results.condition,
        results.times,
    );
    out += &table(
        "Elapsed milliseconds: the median of the questions of a kind, the fastest and the slowest",
        &results.rows,
        |row| &row.asked,
        &[
            Column::fact("median", 0, |row: &Row| row.milliseconds.median),
            Column::fact("least", 0, |row: &Row| row.milliseconds.min),
            Column::fact("most", 0, |row: &Row| row.milliseconds.max),
        ],
    );
    out
}
