//! Measures the size, speed and use of whole execution traces. The results are compared with the
//! project's targets, and with the tables and figures of Zhang and Gupta 2005.

pub(crate) mod build;
pub(crate) mod building;
mod dependences;
mod facts;
pub(crate) mod follow;
mod last;
pub(crate) mod memory;
mod observed;
mod papers;
pub(crate) mod questions;
mod shadow;
mod sizes;
mod summary;
mod tier2;
mod variables;

use std::time::Instant;

use afterimage_wet::fingerprint;
use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::paths::subject::Subject;
use crate::publish::publish;

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: crate::Arguments,
    /// Trace only the first N million blocks of each run [default: the whole run]
    #[arg(long, value_name = "MILLIONS")]
    blocks: Option<u64>,
}

impl Options {
    /// Returns the last traced block.
    fn last(&self) -> u64 {
        self.blocks
            .map_or(u64::MAX, |n| n.saturating_mul(1_000_000))
    }
}

/// The measurements of one program.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    /// The number of blocks of the run.
    run_blocks: u64,
    /// The number of traced blocks, from the first.
    blocks: u64,
    built: build::Built,
    /// Seconds of the plain program.
    plain_seconds: f64,
    facts: facts::Totals,
    sizes: sizes::Sizes,
    dependences: dependences::Dependences,
    tier2: tier2::Tier2,
    memory: memory::Memory,
    follow: follow::Follow,
    questions: questions::Questions,
    last_writes: last::LastWriters,
    /// The number of statements executed until the end of each epoch.
    epoch_ends: Vec<u64>,
}

impl Row {
    /// Returns the number of executed statements, as the machine counts them.
    fn statements(&self) -> f64 {
        self.facts.statements as f64
    }
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    /// The limit in millions of blocks; `None` for whole runs.
    blocks: Option<u64>,
    rows: Vec<Row>,
}

fn name(row: &Row) -> &str {
    &row.name
}

pub(crate) fn run(arguments: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for entry in entries(&arguments.common)? {
        eprintln!("{} …", entry.name);
        rows.push(measure(&entry, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        blocks: arguments.blocks,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(
        arguments.common.out.as_deref(),
        date,
        "values",
        &text,
        &results,
    )
}

fn measure(entry: &Entry, arguments: &Options) -> Result<Row> {
    let mut last = Instant::now();
    let mut stage = |what: &str| {
        eprintln!("  {what} ({:.1} s)", last.elapsed().as_secs_f64());
        last = Instant::now();
    };
    let subject = Subject::new(entry, &arguments.common)?;
    stage("recorded, path built");
    let last_block = arguments.last();
    let plain_seconds = build::plain_seconds(&subject)?;
    let (built, index) = build::measure(&subject, last_block)?;
    stage("whole execution trace built");
    let facts = facts::Facts::of(&subject)?;
    let observed = observed::observe(&subject, &facts, &built, index.length)?;
    let totals = facts.totals(&observed);
    ensure!(
        totals.statements == index.statements,
        "the builder counts {} statements, the observer {}",
        index.statements,
        totals.statements
    );
    stage("followed and counted");
    let opened = questions::Opened::new(&subject)?;
    let epochs = opened.epochs()?;
    ensure!(
        index.nodes == fingerprint(opened.path.nodes(), opened.continuations()),
        "the trace in the file is of another path"
    );
    let dependences = dependences::measure(&epochs, &observed, &totals, &index)?;
    let tier2 = tier2::measure(&epochs)?;
    stage("streams compared");
    let sizes = sizes::measure(&subject, &built, &index, &observed)?;
    let memory = memory::measure(&subject, last_block, &observed)?;
    stage("memory measured");
    let follow = follow::measure(&subject, &facts, index.length)?;
    stage("traces extracted");
    let questions = questions::measure(&subject, &observed.samples)?;
    let last_writes = last::measure(&subject, &opened, index.length)?;
    stage("questions asked and compared");
    Ok(Row {
        name: entry.name.clone(),
        run_blocks: subject.built.time,
        blocks: index.length,
        built,
        plain_seconds,
        facts: totals,
        sizes,
        dependences,
        tier2,
        memory,
        follow,
        questions,
        last_writes,
        // The first epoch begins with the run.
        epoch_ends: observed.statements[1.min(observed.statements.len())..].to_vec(),
    })
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let rows = &results.rows;
    let window = match results.blocks {
        Some(millions) => format!(
            "traced: the first {millions} million blocks of each run; the path's bytes in proportion, the log's as far as it was read"
        ),
        None => "traced: whole runs".to_owned(),
    };
    let mut out = format!(
        "{}, {} cores, {} GiB, {}, {}; {window}.\n",
        machine.processor, machine.cores, machine.memory_gib, machine.engine, machine.date,
    );
    out += &summary::report(rows);
    out += &papers::report(rows);
    out += &sizes::report(rows);
    out += &facts::report(rows);
    out += &dependences::report(rows);
    out += &tier2::report(rows);
    out += &build::report(rows);
    out += &memory::report(rows);
    out += &follow::report(rows);
    out += &questions::report(rows);
    out += &last::report(rows);
    out
}
