//! Measures the time and size of dynamic slices. This is the analogue of Zhang and Gupta 2005,
//! Table VIII.

use std::time::Instant;

use afterimage_analyses::slices::{Criterion, Follows, Reach, Slice, Want, backward};
use afterimage_ids::NodeId;
use afterimage_machine::{NodeCode, Observer};
use afterimage_replay::steps::{Run, recorded_checkpoints};
use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::corpus::{Entry, entries};
use crate::machine::Machine;
use crate::paths::columns::{Column, table};
use crate::paths::random::Random;
use crate::paths::subject::Subject;
use crate::publish::publish;
use crate::values::build;
use crate::values::follow::machine;
use crate::values::questions::Opened;

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: crate::Arguments,
    /// Trace the first N million statements of each run
    #[arg(long, value_name = "MILLIONS", default_value_t = 120)]
    statements: u64,
    /// The number of slices of each program
    #[arg(long, value_name = "N", default_value_t = 25)]
    slices: usize,
}

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// The number of traced statements.
    statements: u64,
    blocks: u64,
    /// Full slices of values computed in the last hundredth of the trace.
    full: Slices,
    /// Full slices of values computed anywhere.
    anywhere: Slices,
    /// Slices that follow only data dependences.
    data: Slices,
    /// Slices that follow neither control dependences nor addresses.
    thin: Slices,
}

/// The measurements of slices of one kind.
#[derive(Clone, Debug, Serialize)]
struct Slices {
    /// Wall-clock seconds for each slice.
    seconds: Vec<f64>,
    /// The number of executions of statements in each slice.
    executions: Vec<u64>,
    /// The number of statements in each slice.
    operators: Vec<usize>,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    /// The limit in millions of statements.
    statements: u64,
    slices: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(arguments: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for entry in entries(&arguments.common)? {
        eprintln!("{} …", entry.name);
        rows.push(measure(&entry, arguments).with_context(|| entry.name.clone())?);
    }
    let results = Results {
        machine: Machine::this(),
        statements: arguments.statements,
        slices: arguments.slices,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(
        arguments.common.out.as_deref(),
        date,
        "slices",
        &text,
        &results,
    )
}

/// An observer that counts statements.
#[derive(Default)]
struct Counted(u64);

impl Observer for Counted {
    const REGISTERS: bool = false;

    fn node(&mut self, _: NodeId, code: &NodeCode) {
        self.0 += code.insts.len() as u64;
    }
}

/// Returns the number of blocks at the beginning of the run that execute `most` statements, and the
/// number of statements that they execute. That number may exceed `most`, because the last path is
/// counted whole. A shorter run is counted completely.
fn extent(subject: &Subject, most: u64) -> Result<(u64, u64)> {
    let (mut machine, mut counted) = (machine(subject)?, Counted::default());
    let mut cursor = subject.path.cursor();
    let mut blocks = 0;
    while counted.0 < most
        && let Some(visit) = cursor.next()?
    {
        machine.step(visit.node, visit.length, &mut counted)?;
        blocks = visit.last();
    }
    Ok((blocks, counted.0))
}

fn measure(entry: &Entry, arguments: &Options) -> Result<Row> {
    let subject = Subject::new(entry, &arguments.common)?;
    let most = arguments.statements.saturating_mul(1_000_000);
    let (blocks, statements) = extent(&subject, most)?;
    build::measure(&subject, blocks)?;
    let opened = Opened::new(&subject)?;
    let mut random = Random::new();
    let full = Follows::ALL;
    let (data, thin) = (Follows::DATA, Follows::THIN);
    let last = blocks - blocks / 100..=blocks;
    let mut of = |follows, (first, last): (u64, u64)| {
        let mut slices = Slices {
            seconds: Vec::new(),
            executions: Vec::new(),
            operators: Vec::new(),
        };
        for _ in 0..arguments.slices {
            let criterion = criterion(&opened, &mut random, first, last)?;
            let start = Instant::now();
            let slice = slice(&opened, follows, criterion)?;
            slices.seconds.push(start.elapsed().as_secs_f64());
            slices.executions.push(slice.executions());
            slices.operators.push(slice.operators.len());
        }
        eprintln!("  {:.2} s on average", slices.mean_seconds());
        Ok::<_, anyhow::Error>(slices)
    };
    let end = (*last.start(), *last.end());
    Ok(Row {
        name: entry.name.clone(),
        statements,
        blocks,
        full: of(full, end)?,
        anywhere: of(full, (1, blocks))?,
        data: of(data, end)?,
        thin: of(thin, end)?,
    })
}

/// Returns a random instruction in one of the nodes between two times.
fn criterion(opened: &Opened<'_>, random: &mut Random, first: u64, last: u64) -> Result<Criterion> {
    let epochs = opened.epochs()?;
    let values = opened.values(&epochs)?;
    for _ in 0..10_000 {
        let time = first + random.up_to(last - first + 1) - 1;
        let Some(instance) = values.at(time)? else {
            continue;
        };
        let insts = values.compiled(instance.node)?.code.insts.len() as u64;
        if insts > 0 {
            let inst = random.up_to(insts) - 1;
            return Ok(Criterion {
                start: instance.time,
                wants: vec![Want::Inst(inst as usize)],
                reach: Reach::ALL,
            });
        }
    }
    bail!("no instruction is executed between t={first} and t={last}")
}

fn slice(opened: &Opened<'_>, follows: Follows, criterion: Criterion) -> Result<Slice> {
    let checkpoints = recorded_checkpoints(&opened.file, &opened.path)?;
    let run = Run {
        program: opened.program,
        module: opened.bytes,
        path: &opened.path,
        continuations: opened.continuations(),
        // The programs of the corpus end by themselves.
        stopped: None,
        checkpoints: checkpoints.as_ref(),
        snapshots: None,
        progress: &|_| {},
    };
    Ok(backward(run, opened.file.log()?, follows, vec![criterion])?)
}

impl Slices {
    fn mean_seconds(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len().max(1) as f64
    }

    fn worst_seconds(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    fn mean_executions(&self) -> f64 {
        self.executions.iter().sum::<u64>() as f64 / self.executions.len().max(1) as f64
    }

    fn mean_operators(&self) -> f64 {
        self.operators.iter().sum::<usize>() as f64 / self.operators.len().max(1) as f64
    }
}

fn report(results: &Results) -> String {
    let (machine, rows) = (&results.machine, &results.rows);
    let mut out = format!(
        "{}, {} cores, {} GiB, {}, {}; traced: the first {} million statements of each run; {} slices of each kind and program.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.engine,
        machine.date,
        results.statements,
        results.slices,
    );
    let millions = |n: f64| n / 1e6;
    out += &table(
        "Backward slices of random executions of instructions (2005, Table VIII; there 14.3 s after tier 1, 91 s after tier 2, traces of 114 to 139 million statements): elapsed seconds, mean and worst, on two threads. Full slices of executions in the last hundredth of the trace; full slices of executions anywhere in it; slices along data only; thin slices",
        rows,
        |row| &row.name,
        &[
            Column::fact("statements, millions", 1, |row: &Row| {
                millions(row.statements as f64)
            }),
            Column::cost("full, s", 2, |row: &Row| row.full.mean_seconds()),
            Column::cost("at most", 2, |row: &Row| row.full.worst_seconds()),
            Column::cost("anywhere", 2, |row: &Row| row.anywhere.mean_seconds()),
            Column::cost("data", 2, |row: &Row| row.data.mean_seconds()),
            Column::cost("thin", 2, |row: &Row| row.thin.mean_seconds()),
        ],
    );
    out += &table(
        "Mean size of these slices: executed statements in millions, and distinct statements",
        rows,
        |row| &row.name,
        &[
            Column::fact("full, M", 2, |row: &Row| {
                millions(row.full.mean_executions())
            }),
            Column::fact("statements", 0, |row: &Row| row.full.mean_operators()),
            Column::fact("data, M", 2, |row: &Row| {
                millions(row.data.mean_executions())
            }),
            Column::fact("statements", 0, |row: &Row| row.data.mean_operators()),
            Column::fact("thin, M", 2, |row: &Row| {
                millions(row.thin.mean_executions())
            }),
            Column::fact("statements", 0, |row: &Row| row.thin.mean_operators()),
        ],
    );
    out
}
