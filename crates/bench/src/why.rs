//! Measures how long a user waits for the first two lines of `why`, from the start of the command.
//! The second line names the origin of the value.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use afterimage_analyses::why::{Printed, Stream};
use afterimage_ids::BlockId;
use afterimage_program::OperatorIndex;
use afterimage_replay::Recording;
use anyhow::{Context, Result, bail, ensure};
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
    /// Recordings with their values
    #[arg(value_name = "FILE.aft", required = true)]
    recordings: Vec<PathBuf>,
    /// Explain this many random bytes of each program's output, and this many random executions
    #[arg(long, value_name = "N", default_value_t = 10)]
    questions: usize,
    /// Ask each question this many times
    #[arg(long, value_name = "N", default_value_t = 7)]
    times: usize,
    /// The command that is timed [default: the command built beside this program]
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// The folder for the results; without it, no results are kept
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// The measurements of one recording.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// The number of executed blocks.
    blocks: u64,
    printed: Vec<Question>,
    executed: Vec<Question>,
}

/// A question as asked, and the milliseconds until the first line of its answer.
#[derive(Debug, Serialize)]
struct Question {
    asked: [String; 2],
    milliseconds: Sample,
    /// The milliseconds until the second line.
    origin: Sample,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    questions: usize,
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
    let mut rows = Vec::new();
    for at in &options.recordings {
        eprintln!("{} …", at.display());
        rows.push(measure(at, &command, options).with_context(|| at.display().to_string())?);
    }
    let results = Results {
        machine: Machine::this(),
        questions: options.questions,
        times: options.times,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(options.out.as_deref(), date, "why", &text, &results)
}

fn measure(at: &Path, command: &Path, options: &Options) -> Result<Row> {
    let recorded = recorded::opened(at)?;
    let mut random = Random::new();
    let bytes = printed(&recorded)?;
    let ask = |next: &mut dyn FnMut() -> Result<[String; 2]>| {
        let mut questions = Vec::new();
        // Many statements have no value. The command refuses them, and another statement is tried.
        for _ in 0..options.questions * 100 {
            if questions.len() == options.questions {
                break;
            }
            let asked = next()?;
            if lines(command, at, &asked)?.is_some() {
                questions.push(asked);
            }
        }
        timed(command, at, questions, options.times)
    };
    Ok(Row {
        name: recorded::name(&recorded),
        blocks: recorded.path()?.length(),
        printed: match bytes {
            0 => Vec::new(),
            _ => ask(&mut || {
                let byte = random.up_to(bytes) - 1;
                Ok(["--stdout".into(), byte.to_string()])
            })?,
        },
        executed: ask(&mut || Ok(["--at".into(), execution(&recorded, &mut random)?]))?,
    })
}

/// Returns the number of bytes that the program printed.
fn printed(recorded: &Recording) -> Result<u64> {
    let mut printed = Printed::new(recorded.file(), &recorded.program().imports)?;
    let mut bytes = 0;
    while let Some(put) = printed.next(&Stream::Output)? {
        bytes = put.before + put.bytes;
    }
    Ok(bytes)
}

/// Chooses a random statement in the block executed at a random time.
fn execution(recorded: &Recording, random: &mut Random) -> Result<String> {
    let (path, program) = (recorded.path()?, recorded.program());
    let index = OperatorIndex::new(program, recorded.bytes());
    for _ in 0..10_000 {
        let time = random.up_to(path.length());
        let visit = path
            .cursor()
            .seek(time)?
            .context("a random time is outside the run")?;
        let node = &path.nodes()[visit.node];
        let Some(&block) = node.blocks.get((time - visit.start) as usize) else {
            continue;
        };
        let function = program
            .function(node.function)
            .context("a function is not in the program")?;
        let ops = &function.cfg.blocks[block].ops;
        let many = ops.end.as_u32() - ops.start.as_u32();
        if many == 0 {
            continue;
        }
        let op = ops.start.as_u32() as usize + random.up_to(u64::from(many)) as usize - 1;
        let offset = index.offsets(function)[op];
        let same = path
            .nodes()
            .iter()
            .filter(|(_, other)| other.function == node.function);
        let executions = path.executions_of_each(same.filter_map(|(id, other)| {
            let positions = positions(&other.blocks, block);
            (!positions.is_empty()).then_some((id, positions))
        }))?;
        let number = executions.rank(time)?;
        return Ok(format!("@{:#x}#{number}", offset.0));
    }
    bail!("no statement was executed")
}

/// Returns the positions of a block in a node.
fn positions(blocks: &[BlockId], block: BlockId) -> Vec<u64> {
    let all = (0..).zip(blocks);
    all.filter_map(|(at, other)| (*other == block).then_some(at))
        .collect()
}

/// Asks all questions in turn, several times.
fn timed(
    command: &Path,
    at: &Path,
    questions: Vec<[String; 2]>,
    times: usize,
) -> Result<Vec<Question>> {
    let mut milliseconds = vec![[const { Vec::new() }; 2]; questions.len()];
    for _ in 0..times {
        for (asked, taken) in questions.iter().zip(&mut milliseconds) {
            let came = lines(command, at, asked)?;
            let came = came.with_context(|| format!("{}: no answer", asked.join(" ")))?;
            for (taken, came) in taken.iter_mut().zip(came) {
                taken.push(came);
            }
        }
    }
    let all = questions.into_iter().zip(milliseconds);
    Ok(all
        .map(|(asked, [first, second])| Question {
            asked,
            milliseconds: Sample::of(first),
            origin: Sample::of(second),
        })
        .collect())
}

/// Returns the milliseconds from the start of the command to its first and second lines. Returns
/// `None` if the command refused to answer. Kills the command after its second line.
fn lines(command: &Path, at: &Path, asked: &[String; 2]) -> Result<Option<[f64; 2]>> {
    let start = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "afterimage itself")]
    let mut child = Command::new(command)
        .arg("why")
        .arg(at)
        .args(asked)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| command.display().to_string())?;
    let mut out = BufReader::new(
        child
            .stdout
            .take()
            .context("the process has no standard output")?,
    );
    let mut line = String::new();
    let mut next = || {
        let read = out.read_line(&mut line);
        (read, start.elapsed().as_secs_f64() * 1e3)
    };
    let [(read, first), (rest, second)] = [next(), next()];
    // The command may have ended by itself.
    let _ = child.kill();
    child.wait()?;
    rest?;
    Ok((read? > 0).then_some([first, second]))
}

fn report(results: &Results) -> String {
    let (machine, rows) = (&results.machine, &results.rows);
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; whole runs; {} random printed bytes and {} random executions of statements with a value for each program, each asked {} times.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.date,
        results.questions,
        results.questions,
        results.times,
    );
    type Questions = fn(&Row) -> &[Question];
    type Line = fn(&Question) -> &Sample;
    let of = |questions: Questions, line: Line, worst: bool| {
        move |row: &Row| {
            let medians = questions(row).iter().map(|question| line(question).median);
            if worst {
                medians.fold(f64::NAN, f64::max)
            } else {
                Sample::of(medians.collect()).median
            }
        }
    };
    let (printed, executed): (Questions, Questions) = (|row| &row.printed, |row| &row.executed);
    let lines: [(&str, Line); 2] = [
        ("its first line", |question| &question.milliseconds),
        (
            "its second line, which names the origin of the value",
            |question| &question.origin,
        ),
    ];
    for (what, line) in lines {
        out += &table(
            &format!(
                "Elapsed milliseconds from the start of `why` to {what}. Each question counts with its median; shown are the median question and the slowest"
            ),
            rows,
            |row| &row.name,
            &[
                Column::fact("blocks, millions", 0, |row: &Row| row.blocks as f64 / 1e6),
                Column::cost("printed bytes", 0, of(printed, line, false)),
                Column::cost("the slowest", 0, of(printed, line, true)),
                Column::cost("executions", 0, of(executed, line, false)),
                Column::cost("the slowest", 0, of(executed, line, true)),
            ],
        );
    }
    out
}
