//! Measures only the cost of a path that is written while the program runs. This is the part of the
//! benchmark to repeat when only the recorder has changed.

use anyhow::{Context, Result};
use serde::Serialize;

use super::columns::{Column, table};
use super::recording::{Live, measure_live};
use super::scheme::{SCHEMES, warm};
use super::subject::Subject;
use crate::Arguments;
use crate::corpus::entries;
use crate::machine::Machine;
use crate::publish::publish;
use crate::table::Table;

#[derive(Serialize)]
struct Row {
    name: String,
    blocks: u64,
    live: Live,
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
        let row = || -> Result<Row> {
            let subject = Subject::new(&entry, arguments)?;
            let plain = warm(&subject.bytes)?;
            let scheme = SCHEMES[0].prepare(&subject.bytes, &subject.program, &subject.counts)?;
            Ok(Row {
                live: measure_live(&subject, &plain, &scheme, arguments.runs)?,
                blocks: subject.built.time,
                name: entry.name.clone(),
            })
        };
        rows.push(row().with_context(|| entry.name.clone())?);
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
        "live",
        &text,
        &results,
    )
}

fn columns<'a>() -> Vec<(&'static str, Column<'a, Row>)> {
    let cost = |title: &str, of: fn(&Row) -> crate::statistics::Sample| Column::cost(title, 3, of);
    vec![
        (
            "1.30, worst 1.6",
            cost("probes, processor time of the guest", |row| {
                row.live.dropped_cpu
            }),
        ),
        (
            "",
            cost("only words in a file, elapsed time", |row| {
                row.live.kept_wall
            }),
        ),
        (
            "1.6",
            cost("a file that can be searched, elapsed time", |row| {
                row.live.sought_wall
            }),
        ),
        (
            "",
            cost("the same, processor time of the guest", |row| {
                row.live.sought_cpu
            }),
        ),
    ]
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let rows = &results.rows;
    let mut targets = Table::new(&[
        "ratio to the plain program",
        "must",
        "geometric mean",
        "worst",
    ]);
    for (must, column) in columns() {
        targets.row(vec![
            column.title.clone(),
            must.to_owned(),
            column.mean(rows),
            column.worst(rows),
        ]);
    }
    let mut all = vec![
        Column::fact("Mblocks", 0, |row: &Row| row.blocks as f64 / 1e6),
        Column::fact("plain s", 3, |row: &Row| row.live.plain_seconds.median),
    ];
    all.extend(columns().into_iter().map(|(_, column)| column));
    format!(
        "{}, {} cores, {} GiB, {}, {}; {} runs of each, in turn; medians, with the smallest and largest in brackets.\n\n{}{}",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.engine,
        machine.date,
        results.runs,
        targets.markdown(),
        table("Paths written live", rows, name, &all),
    )
}
