//! Measures the cost, size and speed of control-flow traces. The results are compared with the
//! project's targets, and with the tables of Ball and Larus 1992 and of Zhang and Gupta 2001.

mod access;
mod branches;
pub(crate) mod columns;
mod extraction;
pub(crate) mod live;
pub(crate) mod memory;
mod papers;
mod prefix;
pub(crate) mod random;
mod raw;
mod recording;
mod scan;
pub(crate) mod scheme;
mod sizes;
mod speed;
pub(crate) mod subject;
mod summary;
mod tally;
mod tape;
mod traces;
mod words;

use anyhow::{Context, Result};
use serde::Serialize;

use self::scheme::{Prepared, SCHEMES, warm};
use self::subject::Subject;
use self::tape::Tape;
use crate::Arguments;
use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::publish::publish;

/// The measurements of one program.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    /// The number of executed blocks. Calls end blocks.
    blocks: u64,
    recording: recording::Recording,
    memory: memory::Memory,
    speed: speed::Speed,
    access: access::Access,
    sizes: sizes::Sizes,
    prefix: prefix::Prefix,
    traces: traces::Traces,
    extraction: extraction::Extraction,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    runs: usize,
    rows: Vec<Row>,
}

fn name(row: &Row) -> &str {
    &row.name
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut rows = Vec::new();
    for entry in entries(arguments)? {
        eprintln!("{} …", entry.name);
        rows.push(measure(&entry, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        runs: arguments.runs,
        rows,
    };
    let text = report(&results);
    publish(
        arguments.out.as_deref(),
        &results.machine.date,
        "paths",
        &text,
        &results,
    )
}

fn measure(entry: &Entry, arguments: &Arguments) -> Result<Row> {
    let stage = Progress::new();
    let subject = Subject::new(entry, arguments)?;
    stage.done("recorded, counted, path built");
    let plain = warm(&subject.bytes)?;
    let prepared: Vec<Prepared> = SCHEMES
        .iter()
        .map(|scheme| scheme.prepare(&subject.bytes, &subject.program, &subject.counts))
        .collect::<Result<_>>()?;
    stage.done("compiled");
    let recording = recording::measure(&subject, &plain, &prepared, arguments.runs)?;
    let memory = memory::measure(&arguments.corpus, entry, subject.folder.path())?;
    stage.done("runs timed");
    let speed = speed::measure(&subject, &prepared[0], arguments.runs)?;
    stage.done("compaction timed");
    let access = access::measure(&subject)?;
    stage.done("reading timed");
    let sizes = sizes::measure(&subject)?;
    let (traces, twpp, file) = traces::measure(&subject)?;
    stage.done("path traces collected");
    let tape = Tape::new(prefix::PATHS);
    let (extraction, tape) = extraction::measure(&subject, &twpp, &file, tape)?;
    drop((twpp, file));
    stage.done("path traces extracted");
    let prefix = prefix::measure(&subject, &tape)?;
    stage.done("others' forms made");
    Ok(Row {
        name: entry.name.clone(),
        blocks: subject.built.time,
        recording,
        memory,
        speed,
        access,
        sizes,
        prefix,
        traces,
        extraction,
    })
}

/// Reports how long the stages of a measurement take.
struct Progress(std::cell::Cell<std::time::Instant>);

impl Progress {
    fn new() -> Self {
        Self(std::cell::Cell::new(std::time::Instant::now()))
    }

    fn done(&self, what: &str) {
        let now = std::time::Instant::now();
        let seconds = now.duration_since(self.0.replace(now)).as_secs_f64();
        eprintln!("  {what} ({seconds:.1} s)");
    }
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let rows = &results.rows;
    let mut out = format!(
        "{}, {} cores, {} GiB, {}, {}; {} runs of each, in turn; medians, with the smallest and largest in brackets.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.engine,
        machine.date,
        results.runs,
    );
    out += &summary::report(rows);
    out += &papers::report(rows);
    out += &recording::report(rows);
    out += &speed::report(rows);
    out += &access::report(rows);
    out += &sizes::report(rows);
    out += &prefix::report(rows);
    out += &traces::report(rows);
    out += &extraction::report(rows);
    out += &recording::branches(rows);
    out
}
