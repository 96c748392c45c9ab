//! Measures the size and time of histories of branch predictors and caches. This is the analogue of
//! Zhang and Gupta 2005, Table IV.

use std::path::PathBuf;

use afterimage_analyses::simulate::{SiteKind, Spec, Summary, Tally, simulate};
use afterimage_profile::stops;
use afterimage_program::OperatorIndex;
use afterimage_replay::Recording;
use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::publish::publish;
use crate::recorded::{self, timed};

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The folder for the results; without it, no results are kept
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Recordings with their paths
    #[arg(value_name = "FILE.aft", required = true)]
    recordings: Vec<PathBuf>,
    /// The branch predictor to simulate
    #[arg(long, default_value = "--branch-predictor gshare")]
    predictor: String,
    /// The caches to simulate
    #[arg(long, default_value = "--cache 32k,8,64 --cache2 1m,16,64")]
    caches: String,
}

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    instructions: u64,
    blocks: u64,
    branches: History,
    /// The history of loads and stores.
    accesses: History,
    loads: u64,
    stores: u64,
    /// Processor time of simulating both, including following the run.
    seconds: f64,
}

/// A history, with its size and the counts in it.
#[derive(Debug, Serialize)]
struct History {
    executions: u64,
    missed: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    predictor: String,
    caches: String,
    rows: Vec<Row>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for at in &options.recordings {
        eprintln!("{} …", at.display());
        rows.push(
            measure(&recorded::opened(at)?, options).with_context(|| at.display().to_string())?,
        );
    }
    let results = Results {
        machine: Machine::this(),
        predictor: options.predictor.clone(),
        caches: options.caches.clone(),
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(options.out.as_deref(), date, "histories", &text, &results)
}

fn measure(recorded: &Recording, options: &Options) -> Result<Row> {
    let spec = |text: &str| {
        text.parse::<Spec>()
            .map_err(|error| anyhow!("{text}: {error}"))
    };
    let specs = [spec(&options.predictor)?, spec(&options.caches)?];
    let end = recorded
        .file()
        .end()?
        .context("how the run ended was not recorded")?;
    let index = OperatorIndex::new(recorded.program(), recorded.bytes());
    let stops = stops(recorded.program(), &index, &end)?;
    let mut bytes = [0u64; 2];
    let (summaries, seconds) = timed(|| {
        let log = recorded.file().log()?;
        let summaries = simulate(recorded.run()?, log, &stops, &specs, &mut |of, _, epoch| {
            bytes[of] += epoch.len() as u64;
            Ok(())
        })?;
        Ok(summaries)
    })?;
    let sum = |summary: &Summary, of: fn(SiteKind) -> bool| summary.sum(of);
    let history = |tally: Tally, bytes| History {
        executions: tally.executions,
        missed: tally.missed,
        bytes,
    };
    let (branches, accesses) = (&summaries[0], &summaries[1]);
    Ok(Row {
        name: recorded::name(recorded),
        instructions: branches.instructions,
        blocks: branches.blocks,
        branches: history(sum(branches, |_| true), bytes[0]),
        accesses: history(sum(accesses, |_| true), bytes[1]),
        loads: sum(accesses, |kind| kind == SiteKind::Load).executions,
        stores: sum(accesses, |kind| {
            matches!(kind, SiteKind::Store | SiteKind::Bulk)
        })
        .executions,
        seconds,
    })
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; whole runs; seconds are the processor time of one thread and include following the run.\n\
         Simulated: {} and {}. The paper keeps one bit for each execution, uncompressed (9.46 MB for branches, 11.74 for loads, 5.81 for stores on average, of 647 million statements); the next column has the size kept here.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.date,
        results.predictor,
        results.caches,
    );
    let megabytes = |executions: u64| executions as f64 / 8e6;
    let bits = |history: &History| 8.0 * history.bytes as f64 / history.executions.max(1) as f64;
    let missed =
        |history: &History| 100.0 * history.missed as f64 / history.executions.max(1) as f64;
    out += &table(
        "Architecture-specific information (2005, Table IV): a bit for each execution, and what is kept",
        &results.rows,
        |row| &row.name,
        &[
            Column::fact("instructions, millions", 0, |row: &Row| {
                row.instructions as f64 / 1e6
            }),
            Column::fact("branches, MB as bits", 2, |row: &Row| {
                megabytes(row.branches.executions)
            }),
            Column::fact("loads, MB as bits", 2, |row: &Row| megabytes(row.loads)),
            Column::fact("stores, MB as bits", 2, |row: &Row| megabytes(row.stores)),
            Column::fact("mispredicted, %", 2, |row: &Row| missed(&row.branches)),
            Column::fact("missed, %", 2, |row: &Row| missed(&row.accesses)),
            Column::cost("branches kept, MB", 3, |row: &Row| {
                row.branches.bytes as f64 / 1e6
            }),
            Column::cost("loads and stores kept, MB", 3, |row: &Row| {
                row.accesses.bytes as f64 / 1e6
            }),
            Column::cost("bits a branch", 4, |row: &Row| bits(&row.branches)),
            Column::cost("bits an access", 4, |row: &Row| bits(&row.accesses)),
            Column::cost("s", 1, |row: &Row| row.seconds),
        ],
    );
    out
}
