//! Measures redundant loads and expressions, and the cost of queries for them, in comparison with
//! Zhang and Gupta 2001, section 4.

use std::path::PathBuf;

use afterimage_analyses::dataflow::{
    LastStep, PathRedundancy, RunCalls, path_expressions, path_redundancy,
};
use afterimage_analyses::redundancy::{Redundancy, expression_redundancy, load_redundancy};
use afterimage_replay::Recording;
use afterimage_replay::steps::AccessSite;
use anyhow::{Context, Result};
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
    /// Also find the redundancy by the path alone, for this many of the most redundant loads and
    /// expressions
    #[arg(long, value_name = "N", default_value_t = 20)]
    hottest: usize,
}

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    blocks: u64,
    instructions: u64,
    loads: RedundancyFigures,
    expressions: RedundancyFigures,
    /// Processor time to find the path traces and the dynamic call graph.
    collecting_seconds: f64,
}

/// The results for either loads or expressions.
#[derive(Debug, Serialize)]
struct RedundancyFigures {
    /// The number of distinct loads or expressions that were executed.
    operators: usize,
    executions: u64,
    redundant: u64,
    within: u64,
    /// Processor time, including following the run.
    seconds: f64,
    /// For the hottest loads or expressions: the numbers of all executions, of executions that are
    /// redundant in the same call, and of executions that are redundant by path.
    asked: u64,
    asked_within: u64,
    by_path: u64,
    queries: u64,
    scanned: u64,
    path_seconds: f64,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    hottest: usize,
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
        hottest: options.hottest,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(options.out.as_deref(), date, "redundancy", &text, &results)
}

fn measure(recorded: &Recording, options: &Options) -> Result<Row> {
    let (program, module) = (recorded.program(), recorded.bytes());
    let (calls, collecting_seconds) = timed(|| {
        let end = recorded.file().end()?;
        let last = match end {
            Some(end) => LastStep::of(program, module, &end)?,
            None => None,
        };
        Ok(RunCalls::of(recorded.path()?, last, &|_| {})?)
    })?;
    let loads = timed(|| Ok(load_redundancy(recorded.run()?, recorded.file().log()?)?))?;
    let instructions = loads.0.instructions;
    let loads = found(loads, options, |sites| {
        path_redundancy(&calls, program, module, sites, &|_| {})
    })?;
    let expressions = timed(|| {
        Ok(expression_redundancy(
            recorded.run()?,
            recorded.file().log()?,
        )?)
    })?;
    let expressions = found(expressions, options, |sites| {
        path_expressions(&calls, program, module, sites, &|_| {})
    })?;
    Ok(Row {
        name: recorded::name(recorded),
        blocks: recorded.path()?.length(),
        instructions,
        loads,
        expressions,
        collecting_seconds,
    })
}

fn found(
    (redundancy, seconds): (Redundancy, f64),
    options: &Options,
    by_path: impl FnOnce(&[AccessSite]) -> Vec<PathRedundancy>,
) -> Result<RedundancyFigures> {
    let mut operators = redundancy.operators;
    operators.sort_by_key(|operator| std::cmp::Reverse(operator.redundant));
    let hottest = &operators[..options.hottest.min(operators.len())];
    let mut sites = Vec::from_iter(hottest.iter().map(|operator| operator.site));
    sites.sort_unstable();
    let (answers, path_seconds) = timed(|| Ok(by_path(&sites)))?;
    let sum = |of: fn(&PathRedundancy) -> u64| answers.iter().map(of).sum();
    Ok(RedundancyFigures {
        operators: operators.len(),
        executions: operators.iter().map(|operator| operator.executions).sum(),
        redundant: operators.iter().map(|operator| operator.redundant).sum(),
        within: operators.iter().map(|operator| operator.within).sum(),
        seconds,
        asked: sum(|answer| answer.executions),
        asked_within: hottest.iter().map(|operator| operator.within).sum(),
        by_path: sum(|answer| answer.redundant),
        queries: sum(|answer| answer.queries),
        scanned: sum(|answer| answer.scanned),
        path_seconds,
    })
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; whole runs; seconds are the processor time of one thread and include following the run.\n",
        machine.processor, machine.cores, machine.memory_gib, machine.date,
    );
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let share = move |of: fn(&Row) -> (u64, u64)| {
        move |row: &Row| {
            let (part, whole) = of(row);
            percent(part, whole)
        }
    };
    let rows = &results.rows;
    out += &table(
        "Redundancy of all loads, by addresses, and of all expressions, by their operands' values",
        rows,
        |row| &row.name,
        &[
            Column::fact("statements, millions", 0, |row: &Row| {
                row.instructions as f64 / 1e6
            }),
            Column::fact("loads, millions", 1, |row: &Row| {
                row.loads.executions as f64 / 1e6
            }),
            Column::fact(
                "redundant, %",
                1,
                share(|row| (row.loads.redundant, row.loads.executions)),
            ),
            Column::fact(
                "in the same call, %",
                1,
                share(|row| (row.loads.within, row.loads.executions)),
            ),
            Column::cost("loads, s", 1, |row: &Row| row.loads.seconds),
            Column::fact("expressions, millions", 1, |row: &Row| {
                row.expressions.executions as f64 / 1e6
            }),
            Column::fact(
                "redundant, %",
                1,
                share(|row| (row.expressions.redundant, row.expressions.executions)),
            ),
            Column::cost("expressions, s", 1, |row: &Row| row.expressions.seconds),
        ],
    );
    for (what, of) in [
        (
            "loads",
            (|row| &row.loads) as fn(&Row) -> &RedundancyFigures,
        ),
        ("expressions", |row| &row.expressions),
    ] {
        let title = format!(
            "Queries for the {} {what} with the most redundant executions (2001, sections 4.2 and 4.3.1; the benchmark of paths has the sizes of their graphs, Table 6): executions asked about, redundant in the same call exactly and by the path alone, \
             queries ⟨timestamps, node⟩, executions answered by each query, steps gone through one by one where too little was regular",
            results.hottest
        );
        out += &table(
            &title,
            rows,
            |row| &row.name,
            &[
                Column::fact("path traces and calls, s", 1, |row: &Row| {
                    row.collecting_seconds
                }),
                Column::fact("executions, millions", 2, move |row: &Row| {
                    of(row).asked as f64 / 1e6
                }),
                Column::fact("same call, %", 1, move |row: &Row| {
                    percent(of(row).asked_within, of(row).asked)
                }),
                Column::fact("by path, %", 1, move |row: &Row| {
                    percent(of(row).by_path, of(row).asked)
                }),
                Column::fact("queries", 0, move |row: &Row| of(row).queries),
                Column::gain("executions a query", 1, move |row: &Row| {
                    of(row).asked as f64 / of(row).queries.max(1) as f64
                }),
                Column::fact("steps one by one, millions", 2, move |row: &Row| {
                    of(row).scanned as f64 / 1e6
                }),
                Column::cost("s", 2, move |row: &Row| of(row).path_seconds),
            ],
        );
    }
    out
}
