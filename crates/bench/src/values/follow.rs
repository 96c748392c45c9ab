//! Measures the extraction of whole traces. Control flow comes from the path, and values of loads
//! and addresses from following the run on the machine.

use std::time::Instant;

use afterimage_ids::NodeId;
use afterimage_machine::{Machine, NodeCode, Observer, Range};
use anyhow::{Result, ensure};
use serde::Serialize;

use super::facts::Facts;
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::subject::Subject;

/// The capacity of a buffer of timestamps.
const TIMES: usize = 1 << 14;
/// The number of values of one instruction that are collected before use.
const COLUMN: usize = 256;

/// Speeds in megabytes (10⁶) per second, with 4 bytes for each time, value and address, as the
/// paper counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Follow {
    /// The speed of writing the time of every statement into a buffer.
    pub forward: f64,
    pub backward: f64,
    /// The speed of walking over every statement, node by node, without writing its time.
    walk_forward: f64,
    walk_backward: f64,
    /// The speed of extracting the values of all loads, instruction by instruction.
    pub loads: f64,
    /// The speed of extracting the addresses of all loads and stores, instruction by instruction.
    pub addresses: f64,
    /// The speed of following the run alone, in millions of statements per second.
    machine: f64,
}

/// Creates a machine at the beginning of the run, with all nodes compiled.
pub(crate) fn machine(subject: &Subject) -> Result<Machine<'_>> {
    let mut machine = Machine::new(&subject.program, &subject.bytes, subject.file.log()?)?;
    let continuations = &subject.path.segments().directory().continuations;
    for (node, continuation) in subject.path.nodes().values().zip(continuations) {
        machine.define(node.function, &node.blocks, continuation.next)?;
    }
    Ok(machine)
}

pub(crate) fn measure(subject: &Subject, facts: &Facts, blocks: u64) -> Result<Follow> {
    let (forward, written) = control(subject, facts, blocks, true, true)?;
    let (backward, back) = control(subject, facts, blocks, false, true)?;
    ensure!(
        written == back,
        "{written} statements forward, {back} backward"
    );
    let (walk_forward, _) = control(subject, facts, blocks, true, false)?;
    let (walk_backward, _) = control(subject, facts, blocks, false, false)?;
    let (seconds, _) = follow(subject, blocks, &mut ())?;
    let mut loads = Loads(Columns::new(facts));
    let (of_loads, _) = follow(subject, blocks, &mut loads)?;
    let mut addresses = Addresses(Columns::new(facts));
    let (of_addresses, _) = follow(subject, blocks, &mut addresses)?;
    let rate = |count: u64, seconds: f64| 4.0 * count as f64 / 1e6 / seconds;
    Ok(Follow {
        forward: rate(written, forward),
        backward: rate(back, backward),
        walk_forward: rate(written, walk_forward),
        walk_backward: rate(written, walk_backward),
        loads: rate(loads.0.count, of_loads),
        addresses: rate(addresses.0.count, of_addresses),
        machine: written as f64 / 1e6 / seconds,
    })
}

/// Walks over the path. Returns the seconds, and the number of statements passed. With `write`,
/// stores the time of each statement in a buffer.
fn control(
    subject: &Subject,
    facts: &Facts,
    blocks: u64,
    forward: bool,
    write: bool,
) -> Result<(f64, u64)> {
    let statements = Vec::from_iter(facts.nodes.values().map(|of| of.totals.statements as usize));
    let mut times = vec![0u32; TIMES];
    let (mut at, mut count) = (0, 0);
    let mut cursor = subject.path.cursor();
    let start = Instant::now();
    let mut visit = if forward {
        cursor.seek(0)?;
        cursor.next()?
    } else {
        cursor.seek(blocks)?
    };
    while let Some(here) = visit {
        if here.start > blocks {
            break;
        }
        let of_node = statements[afterimage_ids::EntityRef::index(here.node)];
        count += of_node as u64;
        let mut left = if write { of_node } else { 0 };
        while left > 0 {
            let part = left.min(TIMES - at);
            times[at..at + part].fill(here.start as u32);
            left -= part;
            at = (at + part) % TIMES;
        }
        visit = if forward {
            cursor.next()?
        } else {
            cursor.previous()?
        };
    }
    let seconds = start.elapsed().as_secs_f64();
    std::hint::black_box(&times);
    Ok((seconds, count))
}

/// Follows the run. Returns the seconds, and the number of blocks.
fn follow<O: Observer>(subject: &Subject, blocks: u64, observer: &mut O) -> Result<(f64, u64)> {
    let mut machine = machine(subject)?;
    let mut cursor = subject.path.cursor();
    let start = Instant::now();
    while let Some(visit) = cursor.next()? {
        if visit.start > blocks {
            break;
        }
        machine.step(visit.node, visit.length, observer)?;
    }
    Ok((start.elapsed().as_secs_f64(), machine.time()))
}

/// The values of one instruction that were collected and not yet used.
struct Collected {
    numbers: [u64; COLUMN],
    count: usize,
}

impl Collected {
    #[inline]
    fn push(&mut self, number: u64) {
        self.numbers[self.count] = number;
        self.count += 1;
        if self.count == COLUMN {
            std::hint::black_box(&self.numbers);
            self.count = 0;
        }
    }
}

/// The collected numbers, in a column for each instruction that accesses memory.
struct Columns<'a> {
    facts: &'a Facts,
    /// The column of each instruction in the current node.
    of_node: &'a [u32],
    columns: Vec<Collected>,
    count: u64,
}

impl<'a> Columns<'a> {
    fn new(facts: &'a Facts) -> Self {
        let mut columns = Vec::new();
        columns.resize_with(facts.accesses, || Collected {
            numbers: [0; COLUMN],
            count: 0,
        });
        Self {
            facts,
            of_node: &[],
            columns,
            count: 0,
        }
    }

    #[inline]
    fn node(&mut self, node: NodeId) {
        self.of_node = &self.facts.nodes[node].accesses;
    }

    #[inline]
    fn push(&mut self, inst: usize, number: u64) {
        let column = self.of_node[inst];
        if column > 0 {
            self.columns[column as usize].push(number);
            self.count += 1;
        }
    }
}

struct Loads<'a>(Columns<'a>);

impl Observer for Loads<'_> {
    const REGISTERS: bool = false;

    #[inline]
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.0.node(node);
    }

    #[inline]
    fn loaded(&mut self, inst: usize, (value, _): (u64, u64)) {
        self.0.push(inst, value);
    }
}

struct Addresses<'a>(Columns<'a>);

impl Observer for Addresses<'_> {
    const REGISTERS: bool = false;

    #[inline]
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.0.node(node);
    }

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        self.0.push(inst, range.address);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.0.push(inst, range.address);
    }
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "Extracting whole traces, in megabytes per second with 4 bytes per number. Control flow: the time of every statement written into a buffer, forward and backward, and the walk without writing. Values of all loads, and addresses of all loads and stores, by instruction: following the run from its beginning. The last column is following alone, in millions of statements per second",
        rows,
        name,
        &[
            Column::gain("forward", 0, |row: &Row| row.follow.forward),
            Column::gain("backward", 0, |row: &Row| row.follow.backward),
            Column::gain("walk", 0, |row: &Row| row.follow.walk_forward),
            Column::gain("walk back", 0, |row: &Row| row.follow.walk_backward),
            Column::gain("load values", 0, |row: &Row| row.follow.loads),
            Column::gain("addresses", 0, |row: &Row| row.follow.addresses),
            Column::gain("follow M/s", 0, |row: &Row| row.follow.machine),
        ],
    )
}
