//! The first line of `why`: how long a person waits for it, from starting the command.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use afterimage_ids::BlockId;
use afterimage_program::OperatorIndex;
use afterimage_query::why::{Printed, Stream};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;
use crate::publish::publish;
use crate::recorded::Recorded;
use crate::statistics::Sample;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Recordings with their values
    #[arg(value_name = "FILE.aft", required = true)]
    recordings: Vec<PathBuf>,
    /// Explain so many random bytes of what each printed, and so many random executions
    #[arg(long, value_name = "N", default_value_t = 10)]
    questions: usize,
    /// Ask each question so many times
    #[arg(long, value_name = "N", default_value_t = 7)]
    times: usize,
    /// The command that is timed [default: the one built beside this one]
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
    /// Where the results go; none are kept without it
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What was measured of one recording.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// How many blocks were executed.
    blocks: u64,
    printed: Vec<Question>,
    executed: Vec<Question>,
}

/// A question, as it was asked, and milliseconds until its answer's first line.
#[derive(Debug, Serialize)]
struct Question {
    asked: [String; 2],
    milliseconds: Sample,
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
        "{}: there is no such command; build it with: cargo build -p afterimage",
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
    let recorded = Recorded::open(at)?;
    let mut random = Random::new();
    let bytes = printed(&recorded)?;
    let ask = |next: &mut dyn FnMut() -> Result<[String; 2]>| {
        let mut questions = Vec::new();
        // Many statements have no value; these are refused, and another is asked about.
        for _ in 0..options.questions * 100 {
            if questions.len() == options.questions {
                break;
            }
            let asked = next()?;
            if first_line(command, at, &asked)?.is_some() {
                questions.push(asked);
            }
        }
        timed(command, at, questions, options.times)
    };
    Ok(Row {
        name: recorded.name.clone(),
        blocks: recorded.path.length(),
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

/// How many bytes the program printed.
fn printed(recorded: &Recorded) -> Result<u64> {
    let mut printed = Printed::new(&recorded.file, &recorded.program.imports)?;
    let mut bytes = 0;
    while let Some(put) = printed.next(&Stream::Output)? {
        bytes = put.before + put.bytes;
    }
    Ok(bytes)
}

/// A random execution of a statement: of a random one in the block that was executed at a random time.
fn execution(recorded: &Recorded, random: &mut Random) -> Result<String> {
    let (path, program) = (&recorded.path, &recorded.program);
    let index = OperatorIndex::new(program, &recorded.bytes);
    for _ in 0..10_000 {
        let time = random.up_to(path.length());
        let visit = path.cursor().seek(time)?.context("a time of the run")?;
        let node = &path.nodes()[visit.node];
        let Some(&block) = node.blocks.get((time - visit.start) as usize) else {
            continue;
        };
        let function = program.function(node.function).context("a function")?;
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

/// Where a block is in a node.
fn positions(blocks: &[BlockId], block: BlockId) -> Vec<u64> {
    let all = (0..).zip(blocks);
    all.filter_map(|(at, other)| (*other == block).then_some(at))
        .collect()
}

/// Asks each question several times, all of them in turn.
fn timed(
    command: &Path,
    at: &Path,
    questions: Vec<[String; 2]>,
    times: usize,
) -> Result<Vec<Question>> {
    let mut milliseconds = vec![Vec::new(); questions.len()];
    for _ in 0..times {
        for (asked, taken) in questions.iter().zip(&mut milliseconds) {
            let first = first_line(command, at, asked)?;
            taken.push(first.with_context(|| format!("{}: no answer", asked.join(" ")))?);
        }
    }
    let all = questions.into_iter().zip(milliseconds);
    Ok(all
        .map(|(asked, taken)| Question {
            asked,
            milliseconds: Sample::of(taken),
        })
        .collect())
}

/// How many milliseconds after the command was started its first line came; nothing if it refused. It is ended then.
fn first_line(command: &Path, at: &Path, asked: &[String; 2]) -> Result<Option<f64>> {
    let start = Instant::now();
    let mut child = Command::new(command)
        .arg("why")
        .arg(at)
        .args(asked)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| command.display().to_string())?;
    let mut line = String::new();
    let out = child.stdout.take().context("its output")?;
    let read = BufReader::new(out).read_line(&mut line);
    let taken = start.elapsed().as_secs_f64() * 1e3;
    // It may have ended by itself.
    let _ = child.kill();
    child.wait()?;
    Ok((read? > 0).then_some(taken))
}

fn report(results: &Results) -> String {
    let (machine, rows) = (&results.machine, &results.rows);
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; whole runs; {} random bytes of what each printed and {} random executions of statements with a value, each asked {} times.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.date,
        results.questions,
        results.questions,
        results.times,
    );
    let of = |questions: fn(&Row) -> &[Question], worst: bool| {
        move |row: &Row| {
            let medians = questions(row)
                .iter()
                .map(|question| question.milliseconds.median);
            match worst {
                true => medians.fold(f64::NAN, f64::max),
                false => Sample::of(medians.collect()).median,
            }
        }
    };
    let (printed, executed) = (
        (|row| &row.printed) as fn(&Row) -> &[Question],
        (|row| &row.executed) as fn(&Row) -> &[Question],
    );
    out += &table(
        "From starting `why` to its first line, milliseconds that pass, in the median of the times that a question is asked: the median of the questions, and the slowest of them",
        rows,
        |row| &row.name,
        &[
            Column::fact("blocks, millions", 0, |row: &Row| row.blocks as f64 / 1e6),
            Column::cost("printed bytes", 0, of(printed, false)),
            Column::cost("the slowest", 0, of(printed, true)),
            Column::cost("executions", 0, of(executed, false)),
            Column::cost("the slowest", 0, of(executed, true)),
        ],
    );
    out
}
