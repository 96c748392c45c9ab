//! Measures how long a user waits for the first answer about a bare recording, in whole commands,
//! and how large the file is afterwards.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use afterimage::Session;
use afterimage_analyses::why::{Printed, Stream};
use afterimage_machine::{LINE, WrittenLines};
use afterimage_record::{Cache, Progress, RecordedRun, watch};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use wasmparser::Operator;

use crate::Arguments;
use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;
use crate::paths::scheme::warm;
use crate::publish::publish;
use crate::statistics::Sample;

/// The seconds allowed for starting the command and reading the module.
const BESIDES: f64 = 0.5;

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// The number of executed blocks.
    blocks: u64,
    /// Wall-clock time of the plain program in seconds.
    plain: Sample,
    /// Wall-clock time of recording the program in seconds.
    record: Sample,
    /// Seconds for the first question, before any code is in the cache.
    uncached: f64,
    /// Seconds to compile the code that watches bytes, which some questions need.
    watching: f64,
    answers: Vec<Answer>,
    /// The size of the recording in bytes before any question, and the largest size after two
    /// questions of a kind.
    bytes: [u64; 2],
}

/// A question as written, with the time of its answer.
#[derive(Debug, Serialize)]
struct Answer {
    asked: Vec<String>,
    /// Seconds of the plain program, measured just before the question.
    plain: f64,
    /// Seconds until the answer, for a recording without earlier questions but with cached code.
    first: f64,
    /// Seconds until the answer to a second question of the kind, which uses existing data but
    /// needs different stretches.
    later: f64,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    runs: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let command = std::env::current_exe()?.with_file_name("afterimage");
    ensure!(
        command.is_file(),
        "{}: there is no such command; build it with: cargo build -p afterimage-cli",
        command.display()
    );
    let mut rows = Vec::new();
    for entry in entries(arguments)? {
        eprintln!("{} …", entry.name);
        rows.push(measure(&entry, &command, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        runs: arguments.runs,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(arguments.out.as_deref(), date, "first", &text, &results)
}

/// Runs the command line and returns wall-clock seconds.
fn timed(command: &Path, cache: &Path, arguments: &[OsString]) -> Result<f64> {
    let start = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "afterimage itself")]
    let ran = Command::new(command)
        .args(arguments)
        .env("AFTERIMAGE_CACHE", cache)
        .stdin(Stdio::null())
        .output()?;
    let taken = start.elapsed().as_secs_f64();
    let told = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{arguments:?}: {told}");
    Ok(taken)
}

fn measure(entry: &Entry, command: &Path, arguments: &Arguments) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    let bare = folder.path().join("bare.aft");
    let bytes = entry.module(&arguments.corpus)?;
    let compiled = warm(&bytes)?;
    let (mut plain, mut record) = (Vec::new(), Vec::new());
    let mut recording: Vec<OsString> = ["record", "--force", "--quiet", "-o"]
        .map(OsString::from)
        .into();
    recording.push(bare.clone().into());
    recording.extend(entry.words(&arguments.corpus));
    // Fills the cache with the compiled module.
    timed(command, &cache, &recording)?;
    let run_plain = || -> Result<f64> {
        let start = Instant::now();
        compiled.run(&entry.command(&arguments.corpus))?;
        Ok(start.elapsed().as_secs_f64())
    };
    for _ in 0..arguments.runs {
        plain.push(run_plain()?);
        record.push(timed(command, &cache, &recording)?);
    }
    let asked = folder.path().join("asked.aft");
    let ask = |question: &[String]| {
        let file = std::iter::once(asked.clone().into_os_string());
        let mut all = Vec::from_iter(question[..1].iter().map(OsString::from));
        all.extend(file);
        all.extend(question[1..].iter().map(OsString::from));
        timed(command, &cache, &all)
    };
    let fresh = || fs::copy(&bare, &asked).map(drop);
    fresh()?;
    let end = ["state", "--at", "end"].map(str::to_owned);
    let uncached = ask(&end)?;
    let watching = compile_watching(&asked, &cache)?;
    let (questions, blocks) = questions(&asked)?;
    let mut answers = Vec::new();
    let mut largest = 0;
    for [first, later] in questions {
        fresh()?;
        let answer = Answer {
            plain: run_plain()?,
            first: ask(&first)?,
            later: ask(&later)?,
            asked: first,
        };
        largest = largest.max(fs::metadata(&asked)?.len());
        answers.push(answer);
    }
    Ok(Row {
        name: entry.name.clone(),
        blocks,
        plain: Sample::of(plain),
        record: Sample::of(record),
        uncached,
        watching,
        answers,
        bytes: [fs::metadata(&bare)?.len(), largest],
    })
}

/// Measures the seconds to compile the code that watches bytes, and to execute a little of that
/// code. The recording has snapshots.
fn compile_watching(at: &Path, cache: &Path) -> Result<f64> {
    let session = Session::open(at)?;
    let file = session.file();
    let start = Instant::now();
    if let Some(lines) = WrittenLines::open(file)?
        && let Some(first) = lines.clocks().get(..1)
    {
        let run = RecordedRun {
            file,
            bytes: session.bytes(),
            program: session.program(),
            cache: &Cache::in_folder(cache),
            progress: &(Arc::new(|_| {}) as Progress),
            cancel: None,
        };
        watch(&run, first, 0, 0)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Returns pairs of questions of the same kind, and the number of executed blocks. The recording
/// has snapshots.
fn questions(at: &Path) -> Result<(Vec<[Vec<String>; 2]>, u64)> {
    let session = Session::open(at)?;
    let stretched = session.on_stretches(1)?;
    let known = stretched.as_ref().unwrap_or(&session);
    known.ensure_path()?;
    let length = known.path()?.length();
    let mut random = Random::new();
    let words = |parts: &[&str]| Vec::from_iter(parts.iter().map(|part| (*part).to_owned()));
    let mut all = vec![
        [
            words(&["state", "--at", "end"]),
            words(&["state", "--at", "25%"]),
        ],
        [
            words(&["state", "--at", "50%"]),
            words(&["state", "--at", "75%"]),
        ],
        [
            words(&["trace", "--last", "50", "--level", "statement"]),
            words(&["trace", "--last", "60", "--level", "statement"]),
        ],
    ];
    // Finds bytes that the run writes.
    let mut written = || -> Result<Option<String>> {
        let Some(writers) = known.writers() else {
            return Ok(None);
        };
        for _ in 0..1000 {
            // Memory may grow, but bytes written early still exist later.
            let stretch = random.up_to(writers.stretches() as u64 / 2) - 1;
            let runs = writers.lines().lines(stretch as usize)?;
            if runs.is_empty() {
                continue;
            }
            let run = runs[(random.up_to(runs.len() as u64) - 1) as usize];
            if run.memory == 0 {
                let line = u64::from(run.first) + random.up_to(run.count.into()) - 1;
                return Ok(Some((line * LINE + 8 * random.up_to(8) - 8).to_string()));
            }
        }
        Ok(None)
    };
    if let Some((first, later)) = written()?.zip(written()?) {
        all.push([
            words(&["memory", "--at", "50%", "--address", &first]),
            words(&["memory", "--at", "75%", "--address", &later]),
        ]);
    }
    let mut printed = Printed::new(session.file(), &session.program().imports)?;
    let mut bytes = 0;
    while let Some(put) = printed.next(&Stream::Output)? {
        bytes = put.before + put.bytes;
    }
    if bytes > 1 {
        let mut byte = || (random.up_to(bytes) - 1).to_string();
        all.push([(); 2].map(|()| words(&["why", "--stdout", &byte()])));
    }
    let mut place = || -> Result<String> {
        let source = known.source_map();
        let names = known.module().names(source);
        let positions = known.positions(&names, source)?;
        for _ in 0..1000 {
            let time = random.up_to(length);
            let visit = known
                .path()?
                .cursor()
                .seek(time)?
                .context("a time is not in the run")?;
            let node = &known.path()?.nodes()[visit.node];
            let block = node.blocks[(time - visit.start) as usize];
            let function = session.program().function(node.function);
            let function = function.context("a function is not in the program")?;
            let ops = &function.cfg.blocks[block].ops;
            let mut operators = known.program().operators(known.bytes(), function);
            let load = operators.find(|(op, _, operator)| {
                ops.contains(op)
                    && matches!(
                        operator,
                        Operator::I32Load { .. }
                            | Operator::I32Load8U { .. }
                            | Operator::I64Load { .. }
                    )
            });
            let Some((op, ..)) = load else {
                continue;
            };
            if let Some(found) = positions.written(node.function, op, time)? {
                return Ok(found);
            }
        }
        bail!("no statement was executed")
    };
    for kind in ["values", "deps", "why", "state"] {
        let pair = [place()?, place()?];
        all.push(pair.map(|place| words(&[kind, "--at", &place])));
    }
    Ok((all, length))
}

fn report(results: &Results) -> String {
    let (machine, rows) = (&results.machine, &results.rows);
    let mut out = format!(
        "{}, {} cores, {} GiB, {}, {}; whole runs; the plain program and recording it {} times in turn, medians; each question is asked once, about a fresh copy of the recording, right after a run of the plain program, with compiled code in the cache.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.engine,
        machine.date,
        results.runs,
    );
    let kinds = [
        "state --at",
        "memory --at",
        "trace --last",
        "why --stdout",
        "values --at",
        "deps --at",
        "why --at",
    ];
    let of = |kind: &'static str, seconds: fn(&Answer) -> f64| {
        move |row: &Row| {
            let own = row
                .answers
                .iter()
                .filter(|answer| answer.asked.join(" ").starts_with(kind));
            own.map(seconds).fold(f64::NAN, f64::max)
        }
    };
    let mut columns = vec![
        Column::fact("blocks, millions", 0, |row: &Row| row.blocks as f64 / 1e6),
        Column::fact("plain, s", 2, |row: &Row| row.plain.median),
        Column::cost("record", 2, |row: &Row| {
            row.record.median / row.plain.median
        }),
        Column::fact("very first, without cached code, s", 1, |row: &Row| {
            row.uncached
        }),
        Column::fact("compiling code that watches bytes, s", 1, |row: &Row| {
            row.watching
        }),
    ];
    columns.extend(kinds.map(|kind| {
        let first = of(kind, |answer| (answer.first - BESIDES) / answer.plain);
        Column::cost(kind, 1, move |row: &Row| first(row))
    }));
    columns.push(Column::fact("file before, MB", 1, |row: &Row| {
        row.bytes[0] as f64 / 1e6
    }));
    columns.push(Column::fact("and after, MB", 1, |row: &Row| {
        row.bytes[1] as f64 / 1e6
    }));
    out += &table(
        "The first answer about a bare recording: elapsed time less half a second, as a ratio to the plain program; the slowest of several such questions",
        rows,
        |row| &row.name,
        &columns,
    );
    let later = kinds.map(|kind| {
        let later = of(kind, |answer| answer.later);
        Column::cost(kind, 2, later)
    });
    out += &table(
        "The next question of that kind, about a different place: elapsed seconds",
        rows,
        |row| &row.name,
        &later,
    );
    out
}
