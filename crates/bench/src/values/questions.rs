//! Measures questions about single executions, and compares the answers with the machine's.

use std::time::Instant;

use afterimage_program::Program;
use afterimage_replay::values::{
    Controllers, Execution, Executions, RecordedValues, dependences, recorded_epochs,
    recorded_values,
};
use afterimage_replay::whole_path::{RecordedPath, recorded_path};
use afterimage_trace::TraceFile;
use afterimage_wet::FileEpochs;
use afterimage_wpp::Continuation;
use anyhow::{Context, Result, ensure};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::observed::Sample as Computed;
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;

/// The number of questions about a file that was just opened.
const COLD: usize = 20;

/// The times of one kind of question, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    pub median: f64,
    pub most: f64,
    pub worst: f64,
    asked: usize,
}

impl Times {
    /// Summarises times that are given in seconds.
    pub(super) fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let position = (seconds.len() as f64 * share) as usize;
            let value = seconds.get(position).or(seconds.last());
            value.map_or(f64::NAN, |value| value * 1e6)
        };
        Self {
            median: at(0.5),
            most: at(0.99),
            worst: at(1.0),
            asked: seconds.len(),
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Questions {
    /// The times to open the file, its path and its values.
    pub open: Times,
    /// The times to find a value of a random execution of a random statement, in a file that was
    /// just opened.
    pub cold: Times,
    /// The times to find a value in an open file, each statement for the first time.
    pub first: Times,
    /// The times to find a value in an open file with the statement's executions already counted,
    /// for another part of the samples.
    pub warm: Times,
    /// The times to find direct data dependences.
    pub data: Times,
    /// The times to find the decision that caused an execution.
    pub control: Times,
    /// The number of values compared with the machine's. All were equal.
    compared: usize,
}

/// A file, opened for questions.
pub(crate) struct Opened<'a> {
    pub file: TraceFile,
    pub program: &'a Program,
    pub bytes: &'a [u8],
    pub path: RecordedPath,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(subject: &'a Subject) -> Result<Self> {
        let file = TraceFile::open(&subject.folder.path().join("run.aft"))?;
        let path = recorded_path(&file, &subject.program)?.context("the recording has no path")?;
        Ok(Self {
            file,
            program: &subject.program,
            bytes: &subject.bytes,
            path,
        })
    }

    pub(crate) fn continuations(&self) -> &[Continuation] {
        &self.path.segments().directory().continuations
    }

    pub(crate) fn epochs(&self) -> Result<FileEpochs> {
        recorded_epochs(&self.file, &self.path)?.context("the recording has no values")
    }

    pub(crate) fn values<'b>(&'b self, epochs: &'b FileEpochs) -> Result<RecordedValues<'b>> {
        Ok(recorded_values(
            self.program,
            self.bytes,
            &self.path,
            epochs,
        )?)
    }
}

pub(crate) fn measure(subject: &Subject, samples: &[Computed]) -> Result<Questions> {
    ensure!(!samples.is_empty(), "no statement gives a value");
    let opened = Opened::new(subject)?;
    let epochs = opened.epochs()?;
    let values = opened.values(&epochs)?;
    let (mut first, mut warm) = (Vec::new(), Vec::new());
    let (mut data, mut control) = (Vec::new(), Vec::new());
    let controllers = Controllers::new(&subject.program);
    let mut known = FxHashMap::default();
    let mut numbers = Vec::with_capacity(samples.len());
    for sample in samples {
        let start = Instant::now();
        let key = (sample.function, sample.op);
        let is_known = known.contains_key(&key);
        if !is_known {
            known.insert(key, executions(&values, subject, sample)?);
        }
        let counted = start.elapsed().as_secs_f64();
        let executions = &known[&key];
        let number = executions.by(block_of(subject, sample)?)?;
        numbers.push(number);
        let start = Instant::now();
        // Each sample gets only one timed question, so that no question benefits from another.
        if numbers.len().is_multiple_of(2) {
            let execution = executions.get(&values, number)?;
            let execution = execution.context("an execution was not found")?;
            dependences(&values, &execution)?;
            data.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            controllers.of_execution(&values, &execution)?;
            control.push(start.elapsed().as_secs_f64());
            ask(&values, executions, number, sample)?;
        } else {
            ask(&values, executions, number, sample)?;
            let seconds = start.elapsed().as_secs_f64();
            if is_known {
                warm.push(seconds)
            } else {
                first.push(counted + seconds)
            }
        }
    }
    let (mut open, mut cold) = (Vec::new(), Vec::new());
    for i in 0..COLD {
        let chosen = i * samples.len() / COLD;
        let start = Instant::now();
        let opened = Opened::new(subject)?;
        let epochs = opened.epochs()?;
        let values = opened.values(&epochs)?;
        open.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let sample = &samples[chosen];
        let executions = executions(&values, subject, sample)?;
        ask(&values, &executions, numbers[chosen], sample)?;
        cold.push(start.elapsed().as_secs_f64());
    }
    Ok(Questions {
        open: Times::of(open),
        cold: Times::of(cold),
        first: Times::of(first),
        warm: Times::of(warm),
        data: Times::of(data),
        control: Times::of(control),
        compared: samples.len() + COLD,
    })
}

fn executions<'a>(
    values: &RecordedValues<'a>,
    subject: &'a Subject,
    sample: &Computed,
) -> Result<Executions<'a>> {
    let program = &subject.program;
    Ok(Executions::of(values, program, sample.function, sample.op)?)
}

/// Returns the time of the block with the statement.
fn block_of(subject: &Subject, sample: &Computed) -> Result<u64> {
    let function = subject.program.function(sample.function);
    let block = function.and_then(|function| function.block_of(sample.op));
    let mut blocks = subject.path.nodes()[sample.node].blocks.iter();
    let position = blocks.position(|&other| Some(other) == block);
    let position = position.context("a statement is outside of its node")?;
    Ok(sample.time + position as u64)
}

/// Looks up the value of an execution, which must equal the machine's.
fn ask<'a>(
    values: &RecordedValues<'a>,
    executions: &Executions<'a>,
    number: u64,
    sample: &Computed,
) -> Result<Execution> {
    let execution = executions.get(values, number)?;
    let execution = execution.context("an execution was not found")?;
    let code = values.compiled(execution.instance.node)?;
    let register = code.code.first_result() + sample.inst as u32;
    let found = values.value(execution.instance, register)?;
    let instance = execution.instance;
    ensure!(
        (instance.node, instance.number, instance.time)
            == (sample.node, sample.number, sample.time),
        "{instance:?} is not the execution of {sample:?}"
    );
    ensure!(
        found == (sample.low, sample.high),
        "{sample:?} is stored as {found:x?}"
    );
    Ok(execution)
}

pub(crate) fn report(rows: &[Row]) -> String {
    type Of = fn(&Questions) -> &Times;
    let kinds: [(&str, Of); 5] = [
        ("first", |q| &q.first),
        ("warm", |q| &q.warm),
        ("data", |q| &q.data),
        ("control", |q| &q.control),
        ("cold", |q| &q.cold),
    ];
    let mut columns = vec![Column::cost("open ms", 1, |row: &Row| {
        row.questions.open.median / 1e3
    })];
    for (title, of) in kinds {
        columns.push(Column::cost(title, 1, move |row: &Row| {
            of(&row.questions).median
        }));
        columns.push(Column::cost(
            format!("{title} 99 %"),
            0,
            move |row: &Row| of(&row.questions).most,
        ));
    }
    columns.push(Column::fact("compared", 0, |row: &Row| {
        row.questions.compared as u64
    }));
    table(
        "Questions, in microseconds, median and 99th percentile. The value of a random execution of a random statement, whose executions have to be counted first, or have already been counted (warm). The direct data dependences of a random execution with the operands' values, with its number known and its statement's executions counted; then the decision that caused the execution. A value in a file just opened (cold). Opening is in milliseconds. Every value was compared with the machine's",
        rows,
        name,
        &columns,
    )
}
