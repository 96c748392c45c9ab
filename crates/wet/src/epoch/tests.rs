//! Tests that reading an epoch returns the collected data.

use std::sync::Arc;

use afterimage_ids::{EntityRef, NodeId};
use afterimage_testkit::modules::SplitMix64;

use super::{Blocks, Epoch, Execution, Writer};
use crate::build::{
    Buffers, Column, Copies, Executions, Label, Numbers, Pattern, Room, Run, SiteOf as Site,
};
use crate::def::Piece;

const NODES: usize = 6;
const INPUTS: u32 = 8;
const WRITES: u32 = 3;

/// Returns nodes that all have the same numbers of inputs and writes.
fn numbers() -> Arc<Numbers> {
    let nodes = || (0..NODES).map(NodeId::new);
    let outside = Site {
        node: NodeId::new(0),
        write: 0,
    };
    let sites = nodes().flat_map(|node| (0..WRITES).map(move |write| Site { node, write }));
    Arc::new(Numbers {
        first: crate::def::Origin::Initial,
        sites: [outside, outside].into_iter().chain(sites).collect(),
        inputs: (0..NODES as u32).map(|node| node * INPUTS).collect(),
    })
}

/// Returns the place of a site's first byte, or of a later byte.
fn place(random: &mut SplitMix64) -> u32 {
    let site = random.below(2 + NODES * WRITES as usize) as u32;
    match site {
        0 | 1 => site << 4,
        _ => site << 4 | random.below(9) as u32,
    }
}

fn few_or_many(random: &mut SplitMix64) -> u64 {
    1 + match random.below(4) {
        0 => random.below(3000) as u64,
        _ => random.below(40) as u64,
    }
}

/// Returns an execution of a node that was executed `count` times.
fn execution(random: &mut SplitMix64, steady: bool, count: u64) -> u64 {
    let age = if steady { 1 } else { random.below(100) as u64 };
    count.saturating_sub(age)
}

/// Returns a column's labels.
fn labels_of(column: &Column, buffers: &Buffers) -> Vec<Label> {
    let mut labels = Vec::new();
    buffers.labels.each(column, |label| labels.push(label));
    labels
}

fn labels(random: &mut SplitMix64, column: &mut Column, buffers: &mut Buffers) {
    column.first = 1 + random.below(1000) as u64;
    let one = random.below(2) == 0;
    let choices = (0..1 + random.below(4)).map(|_| match random.below(3) {
        0 if !one => {
            let parts =
                (0..2 + random.below(4)).map(|_| (1 + random.below(4) as u8, place(random)));
            let parts = Vec::from_iter(parts);
            buffers.patterns.number(&parts)
        }
        _ => place(random),
    });
    let choices = Vec::from_iter(choices);
    let steady = random.below(2) == 0;
    let mut room = Room::default();
    for i in 0..few_or_many(random) {
        let pattern = choices[random.below(choices.len())];
        let count = 5000 + column.first + i;
        let first = execution(random, steady, count);
        let label = Label {
            pattern,
            execution: first,
            age: count - first,
        };
        let chunks = &mut column.chunks;
        buffers.labels.push(label, &mut room, chunks);
        let others = match buffers.patterns.get(pattern) {
            Pattern::One(_) => 0,
            Pattern::Parts(parts) => parts.len() - 1,
        };
        if column.parts.len() < others {
            column.parts.resize(others, Executions::default());
        }
        for part in &mut column.parts[..others] {
            part.push(execution(random, steady, count), count);
        }
    }
    column.end = room.filled();
}

fn ascending(random: &mut SplitMix64) -> Vec<u64> {
    let mut last = 0;
    let steps = (0..few_or_many(random)).map(|_| 1 + random.below(3) as u64);
    let steps = Vec::from_iter(steps);
    Vec::from_iter(steps.into_iter().map(|step| {
        last += step;
        last
    }))
}

fn column(random: &mut SplitMix64, input: u32, buffers: &mut Buffers) -> Column {
    let mut column = Column {
        input,
        ..Column::default()
    };
    let what = 1 + random.below(7);
    if what & 1 != 0 {
        labels(random, &mut column, buffers);
    }
    if what & 2 != 0 {
        column.far_at = ascending(random);
        let nodes = 1 + random.below(3);
        for &at in &column.far_at {
            column.far_nodes.push(random.below(nodes) as u32);
            let count = at + 7;
            column.far.push(execution(random, false, count), count);
        }
    }
    if what & 4 != 0 {
        column.cut_at = ascending(random);
        let vectors = random.below(2) == 0;
        for _ in 0..column.cut_at.len() {
            column.cut.push(random.next());
            if vectors {
                column.cut_high.push(random.next());
            }
        }
    }
    column
}

fn copies(random: &mut SplitMix64, site: u32) -> Copies {
    let mut copies = Copies {
        site,
        at: ascending(random),
        ..Copies::default()
    };
    for _ in 0..copies.at.len() {
        let count = random.below(4);
        copies.counts.push(count as u64);
        copies.runs.extend((0..count).map(|_| Run {
            length: 1 + random.below(8) as u64,
            count: 1 + random.below(5) as u64,
            place: random.below(2 + NODES * WRITES as usize) as u32 * 16,
            execution: random.below(1000) as u64,
            step: random.below(2) as u64,
        }));
    }
    copies
}

/// Makes some data of every kind. It cannot be cloned, so it is created twice from the same seed.
fn buffers(seed: u64) -> Buffers {
    let random = &mut SplitMix64(seed);
    let mut buffers = Buffers::default();
    for input in 0..NODES as u32 * INPUTS {
        if random.below(2) == 0 {
            let column = column(random, input, &mut buffers);
            buffers.columns.push(column);
        }
    }
    // Shuffle the order of first occurrence.
    for i in (1..buffers.columns.len()).rev() {
        buffers.columns.swap(i, random.below(i + 1));
    }
    for site in 2..2 + NODES as u32 * WRITES {
        if random.below(3) == 0 {
            buffers.copies.push(copies(random, site));
        }
    }
    buffers
}

/// Returns whether an execution has this number or this distance back.
fn is(execution: Execution, (number, ago): (u64, u64)) -> bool {
    match execution {
        Execution::Ago(found) => found == ago,
        Execution::Number(found) => found == number,
    }
}

fn at(executions: &Executions, place: usize) -> (u64, u64) {
    (executions.absolute[place], executions.ages[place])
}

#[test]
fn the_bytes_do_not_depend_on_how_many_threads_there_are() {
    let numbers = numbers();
    for seed in 0..12 {
        let by = |threads| {
            let mut writer = Writer::with_threads(Arc::clone(&numbers), threads);
            (writer.encode(&mut buffers(seed)), writer.sizes)
        };
        let alone = by(1);
        for threads in [2, 3, 16] {
            assert_eq!(by(threads), alone);
        }
    }
}

#[test]
fn epochs_tell_what_was_collected() {
    let numbers = numbers();
    for seed in 0..12 {
        let plain = buffers(seed);
        let bytes = Writer::new(Arc::clone(&numbers)).encode(&mut buffers(seed));
        let epoch = Epoch::open(bytes).expect("an epoch");
        let blocks = Blocks::default();
        let mut told = vec![false; NODES * INPUTS as usize];
        for column in &plain.columns {
            same(&epoch, &blocks, &numbers, &plain, column);
            told[column.input as usize] = true;
        }
        for (input, told) in told.into_iter().enumerate() {
            let (node, input) = numbers.of_input(input as u32);
            let found = epoch.input(node, input).expect("a directory");
            assert_eq!(found.is_some(), told);
        }
        for copies in &plain.copies {
            same_copies(&epoch, &blocks, &numbers, copies);
        }
    }
}

fn same(epoch: &Epoch, blocks: &Blocks, numbers: &Numbers, plain: &Buffers, column: &Column) {
    let (node, input) = numbers.of_input(column.input);
    let view = epoch.input(node, input).expect("sound").expect("an input");
    let stored = labels_of(column, plain);
    assert_eq!(view.labels.is_some(), !stored.is_empty());
    assert_eq!(view.far.is_some(), !column.far_at.is_empty());
    assert_eq!(view.cuts.is_some(), !column.cut_at.is_empty());
    if let Some(labels) = &view.labels {
        let mut places = vec![0; column.parts.len()];
        for (execution, label) in (column.first..).zip(&stored) {
            let found = labels
                .at(execution, blocks)
                .expect("sound")
                .expect("a label");
            let one;
            let parts = match plain.patterns.get(label.pattern) {
                Pattern::Parts(parts) => parts,
                Pattern::One(place) => {
                    one = [(0, place)];
                    &one
                }
            };
            assert_eq!(found.len(), parts.len());
            for (i, (&(length, place), (piece, execution))) in parts.iter().zip(found).enumerate() {
                let origin = numbers.origin(place);
                assert_eq!(piece, Piece { length, origin });
                let Some(i) = i.checked_sub(1) else {
                    assert!(is(execution, (label.execution, label.age)));
                    continue;
                };
                assert!(is(execution, at(&column.parts[i], places[i])));
                places[i] += 1;
            }
        }
        let last = column.first + stored.len() as u64;
        for outside in [0, column.first - 1, last, u64::MAX] {
            assert!(labels.at(outside, blocks).expect("sound").is_none());
        }
    }
    let longest = column.far_at.iter().chain(&column.cut_at).max();
    for execution in 0..longest.map_or(0, |longest| longest + 3) {
        if let Some(far) = &view.far {
            let found = far.at(execution, blocks).expect("sound");
            let place = column.far_at.partition_point(|&at| at <= execution);
            let Some(place) = place.checked_sub(1) else {
                assert!(found.is_none());
                continue;
            };
            let (node, definition, from) = found.expect("a definition");
            assert_eq!(node.as_u32(), column.far_nodes[place]);
            assert_eq!(from, column.far_at[place]);
            assert!(is(definition, at(&column.far, place)));
        }
        if let Some(cuts) = &view.cuts {
            let place = column.cut_at.binary_search(&execution).ok();
            let high = |place| column.cut_high.get(place).copied().unwrap_or(0);
            let expected = place.map(|place| (column.cut[place], high(place)));
            assert_eq!(cuts.at(execution, blocks).expect("sound"), expected);
        }
    }
}

fn same_copies(epoch: &Epoch, blocks: &Blocks, numbers: &Numbers, copies: &Copies) {
    let site = numbers.sites[copies.site as usize];
    let view = epoch.copies(site.node, site.write as usize);
    let view = view.expect("sound").expect("copies");
    let mut runs = copies.runs.iter();
    for (&at, &count) in copies.at.iter().zip(&copies.counts) {
        let mut bytes = Vec::new();
        for run in runs.by_ref().take(count as usize) {
            for element in 0..run.count {
                let execution = run.execution + run.step * element;
                let origin = numbers.origin(run.place);
                bytes.extend((0..run.length).map(|i| (origin.at(i), execution)));
            }
        }
        for (offset, &byte) in (0..).zip(&bytes) {
            assert_eq!(view.at(at, offset, blocks), Ok(Some(byte)));
        }
        let end = bytes.len() as u64;
        assert_eq!(view.at(at, end, blocks), Ok(None));
    }
    assert_eq!(view.at(0, 0, blocks), Ok(None));
}
