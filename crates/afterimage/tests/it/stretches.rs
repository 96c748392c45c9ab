//! Checks that a stretch that is built alone gives the same answers as the whole execution trace.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use afterimage::present::{SEARCHED, WhyEntry};
use afterimage::values::ValuesQuery;
use afterimage::{
    AddressesQuery, DepsQuery, MemoryBytes, MemoryQuery, QuestionError, Session, SliceAbout,
    SliceQuery, Snapshotting, StateQuery, WhyAbout, WhyQuery,
};
use afterimage_ids::NodeId;
use afterimage_machine::{Code, Range};
use afterimage_record::Spacing;
use afterimage_replay::steps::{At, MemoryAnswer, NearestAccess, WriteIndex, memory_at};
use afterimage_replay::values::{Instance, RecordedValues};
use afterimage_replay::whole_path::At as Moment;
use afterimage_testkit::modules::SplitMix64;
use afterimage_wet::{Epochs, Reading, Writer};

use crate::snapshots::{copied, each_run_with, each_tree, one_run};

/// Returns a writer without its node number, which may differ.
fn told(writer: Writer) -> (u64, u64, usize, u8) {
    match writer {
        Writer::Initial => (0, 0, 0, 0),
        Writer::Host { call } => (0, call, 0, 0),
        Writer::Write {
            instance,
            inst,
            offset,
        } => (instance.time, instance.number, inst, offset),
    }
}

/// Returns readings byte by byte, because their division into parts does not matter.
fn bytes(
    values: &RecordedValues<'_>,
    readings: &[Reading],
    length: u64,
) -> Vec<(u64, u64, usize, u8)> {
    let mut all = Vec::new();
    for reading in readings {
        let count = if readings.len() == 1 {
            length.max(1)
        } else {
            reading.length
        };
        let steps = match reading.writer {
            Writer::Write { instance, inst, .. } => {
                let compiled = values.compiled(instance.node).unwrap();
                matches!(
                    compiled.code.insts[inst].code,
                    Code::Store(_) | Code::StoreVector(_)
                )
            }
            _ => false,
        };
        all.extend((0..count).map(|i| {
            let (time, number, inst, offset) = told(reading.writer);
            (time, number, inst, offset + if steps { i as u8 } else { 0 })
        }));
    }
    all
}

/// Compares everything that both report about an execution.
fn same(full: &RecordedValues<'_>, alone: &RecordedValues<'_>, [a, b]: [Instance; 2]) -> usize {
    assert_eq!((a.time, a.number), (b.time, b.number));
    let (of_full, of_alone) = (
        full.compiled(a.node).unwrap(),
        alone.compiled(b.node).unwrap(),
    );
    assert_eq!(of_full.code.insts.len(), of_alone.code.insts.len());
    let about = |what: &str| format!("{what} of t={}, execution {}", a.time, a.number);
    let code = &of_full.code;
    for &variable in &of_full.model.variables {
        let known = full.value(a, variable).map_err(|error| error.to_string());
        let found = alone.value(b, variable).map_err(|error| error.to_string());
        assert_eq!(found, known, "{}", about("a variable"));
        let of = |values: &RecordedValues<'_>, at| {
            let (_, at, register) = values.source_at(at, variable).unwrap();
            (at.time, at.number, register)
        };
        assert_eq!(of(alone, b), of(full, a), "{}", about("a source"));
    }
    for (position, inst) in code.insts.iter().enumerate() {
        let register = code.first_result() + position as u32;
        let known = full.value(a, register).map_err(|error| error.to_string());
        let found = alone.value(b, register).map_err(|error| error.to_string());
        assert_eq!(found, known, "{}", about("a value"));
        let length = match inst.code {
            Code::Load(load) => u64::from(load.bytes),
            Code::LoadVector(load) => load.bytes() as u64,
            _ => 0,
        };
        let (known, found) = (full.reading(a, position), alone.reading(b, position));
        if let (Ok(known), Ok(found)) = (&known, &found) {
            let (known, found) = (bytes(full, known, length), bytes(alone, found, length));
            assert_eq!(found, known, "{}", about("a reading"));
        }
        assert_eq!(found.is_ok(), known.is_ok(), "{}", about("a reading"));
        let (known, found) = (
            full.copied(a, position).unwrap(),
            alone.copied(b, position).unwrap(),
        );
        // Compare some of the bytes, at any beginning and end.
        let writers = |readings: &[Reading]| {
            let each = readings.iter().flat_map(|reading| {
                let (time, number, inst, _) = told(reading.writer);
                (0..reading.length).map(move |_| (time, number, inst))
            });
            Vec::from_iter(each)
        };
        let all = writers(&known);
        let third = all.len() / 3;
        for part in [third..all.len(), 0..third, third..2 * third] {
            let within = part.start as u64..part.end as u64;
            let found = [
                full.copied_within(a, position, within.clone()).unwrap(),
                alone.copied_within(b, position, within).unwrap(),
            ];
            for found in found {
                assert_eq!(
                    writers(&found),
                    all[part.clone()],
                    "{}",
                    about("a part of a copy")
                );
            }
        }
        let (known, found) = (bytes(full, &known, 0), bytes(alone, &found, 0));
        if known.len() > 1 {
            assert_eq!(found, known, "{}", about("a copy"));
        }
    }
    let (known, found) = (full.host_call(a).unwrap(), alone.host_call(b).unwrap());
    assert_eq!(found, known, "{}", about("a host call"));
    code.insts.len()
}

/// Compares the answers to questions about some executions of operators. Returns the number of
/// comparisons.
fn same_answers(
    [full, alone]: [&Session; 2],
    visits: &[(u64, NodeId)],
    (seed, questions): (u64, usize),
) -> usize {
    let (values, mut random) = (full.values().unwrap(), SplitMix64(seed));
    let mut asked = 0;
    for _ in 0..questions {
        let (start, node) = visits[random.below(visits.len())];
        let compiled = values.compiled(node).unwrap();
        let code = &compiled.code;
        if code.insts.is_empty() {
            continue;
        }
        let op = code.insts[random.below(code.insts.len())].op;
        let source = full.source_map();
        let names = full.module().names(source);
        let positions = full.positions(&names, source).unwrap();
        let node = &full.path().unwrap().nodes()[node];
        let function = full.program().function(node.function).unwrap();
        let block = function.block_of(op);
        let within = node.blocks.iter().position(|&one| Some(one) == block);
        let time = start + within.unwrap() as u64;
        let at = positions.written(node.function, op, time).unwrap().unwrap();
        let shown =
            |answer: Result<String, QuestionError>| answer.map_err(|error| error.to_string());
        let about = |at: &str| {
            let at = at.to_owned();
            WhyQuery::new(WhyAbout::Statement { at, operand: None })
        };
        let bytes = MemoryBytes::Range {
            memory: 0,
            address: random.below(2500) as u64,
            bytes: 1 + random.below(200) as u64,
        };
        let moment = [Some(at.clone()), None][random.below(3) / 2].clone();
        let about_memory = MemoryQuery { bytes, at: moment };
        nearest_accesses(full, alone, &about_memory, time);
        let json = |session: &Session| {
            let memory = session.memory(&about_memory);
            let memory = memory.map(|found| serde_json::to_string(&found).unwrap());
            let why = session
                .why(&about(&at))
                .map(|found| serde_json::to_string(&found).unwrap());
            let deps = DepsQuery {
                depth: 3,
                ..DepsQuery::new(&at)
            };
            let deps = session
                .deps(&deps)
                .map(|found| serde_json::to_string(&found).unwrap());
            let values = session.statement_values(&ValuesQuery::new(&at));
            let values = values.map(|found| format!("{found:?}"));
            let state = session.state(&StateQuery::new(&at));
            let state = state.map(|found| format!("{:?}", found.report));
            let addresses = session.addresses(&AddressesQuery {
                at: at.clone(),
                instances: None,
                limit: None,
            });
            let addresses = addresses.map(|found| serde_json::to_string(&found).unwrap());
            let about = SliceAbout::Statement { at: at.clone() };
            let slice = session.slice(&SliceQuery {
                depth: Some(3),
                ..SliceQuery::new(about)
            });
            let slice = slice.map(|found| serde_json::to_string(&found).unwrap());
            [why, deps, values, state, memory, addresses, slice].map(shown)
        };
        let (known, found) = (json(full), json(alone));
        for (known, found) in known.into_iter().zip(found) {
            let named = |text: String| text.replace("stretches.aft", "full.aft");
            assert_eq!(found.map(named).map_err(named), known, "{at}");
            asked += 1;
        }
    }
    asked
}

/// Checks a chain that needs too many stretches. It begins like the whole chain and says that it
/// continues, or all values are needed.
fn begun_alike(full: &Session, few: &Session, visits: &[(u64, NodeId)]) {
    let mut random = SplitMix64(11);
    for _ in 0..QUESTIONS {
        let (time, node) = visits[random.below(visits.len())];
        let node = &full.path().unwrap().nodes()[node];
        let function = full.program().function(node.function).unwrap();
        let op = function.cfg.blocks[node.blocks[0]].ops.start;
        let source = full.source_map();
        let names = full.module().names(source);
        let positions = full.positions(&names, source).unwrap();
        let Some(at) = positions.written(node.function, op, time).unwrap() else {
            continue;
        };
        let query = WhyQuery::new(WhyAbout::Statement { at, operand: None });
        let (Ok(known), Ok(found)) = (full.why(&query), few.why(&query)) else {
            continue;
        };
        let entry = |entry: &WhyEntry| serde_json::to_string(entry).unwrap();
        let is_cut =
            |entry: &WhyEntry| matches!(entry, WhyEntry::End(end) if end.kind == "stopped");
        let (of_known, of_found) = (&known.entries, &found.entries);
        match of_found.last() {
            Some(last) if is_cut(last) && !of_known.last().is_some_and(is_cut) => {
                assert!(entry(last).contains("--lens full"), "{query:?}");
                let moves = |entries: &[WhyEntry]| match entries.first() {
                    Some(WhyEntry::Moved { moves, .. }) => {
                        Some(serde_json::to_string(moves).unwrap())
                    }
                    _ => None,
                };
                match (moves(of_found), moves(of_known)) {
                    // The chain may be cut between two moves of a step.
                    (Some(found), Some(known)) => {
                        assert!(known.starts_with(found.trim_end_matches(']')), "{query:?}");
                    }
                    _ if of_found.len() == 1 => {}
                    _ => assert_eq!(entry(&of_found[0]), entry(&of_known[0]), "{query:?}"),
                }
            }
            // The chains may follow different operands.
            Some(WhyEntry::End(end)) if end.kind == SEARCHED => {}
            _ => assert_eq!(of_found.len(), of_known.len(), "{query:?}"),
        }
    }
}

/// Checks that a limited search finds the right accesses, and reports correctly what it did not
/// search.
fn nearest_accesses(full: &Session, alone: &Session, query: &MemoryQuery, time: u64) {
    let &MemoryBytes::Range {
        memory,
        address,
        bytes,
    } = &query.bytes
    else {
        return;
    };
    let range = Range {
        memory,
        address,
        length: bytes,
    };
    let at = At::Before(Moment { time, op: None });
    let log = |session: &Session| session.file().log();
    let run = full.run_from_checkpoints().unwrap();
    let known = memory_at(run, log(full).unwrap(), WriteIndex::None, range, at);
    let Ok(known) = known else {
        return;
    };
    // Compare byte by byte.
    let each = |answer: &MemoryAnswer| {
        let parts = answer.parts.iter();
        let all = parts.flat_map(|part| {
            let accesses = [&part.written, &part.read_next, &part.written_next].map(Clone::clone);
            (0..part.range.length).map(move |_| accesses.clone())
        });
        Vec::from_iter(all)
    };
    let run = alone.run_from_checkpoints().unwrap();
    for most in [0, 100, 2000] {
        let index = WriteIndex::Stretches {
            writers: alone.writers().unwrap(),
            log: &|| log(alone),
            most,
        };
        let found = memory_at(run, log(alone).unwrap(), index, range, at).unwrap();
        assert_eq!(found.bytes, known.bytes);
        for (found, known) in each(&found).iter().zip(each(&known)) {
            for (direction, (found, known)) in found.iter().zip(&known).enumerate() {
                match (found, known.step()) {
                    (NearestAccess::Beyond(_), None) => {}
                    (NearestAccess::Beyond(beyond), Some(step)) if direction == 0 => {
                        assert!(step.time < *beyond, "{step:?} before {beyond}");
                    }
                    (NearestAccess::Beyond(beyond), Some(step)) => {
                        assert!(step.time > *beyond, "{step:?} after {beyond}");
                    }
                    _ => assert_eq!(found, known, "{direction}, {most}"),
                }
            }
        }
    }
}

/// The number of executions of operators in the questions.
const QUESTIONS: usize = 12;

/// The number of executions if only one stretch stays in memory. Each answer then takes far longer.
const AGAIN: usize = 10;

/// The number of stretches that were dropped from memory.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The maximum number of executions of nodes to compare in one run.
const MOST: usize = 1000;

/// The approximate number of stretches of a run.
const STRETCHES: u64 = 40;

fn agree(at: &Path) -> usize {
    let at = copied(at, "stretches.aft");
    let session = Session::open(&at).unwrap();
    let end = session.file().end().unwrap().expect("an end");
    let cuts = 1 + end.clock.unwrap_or(0) / STRETCHES;
    let snapshots = 3 * cuts;
    let spacing = Spacing::Polls { snapshots, cuts };
    if !session
        .ensure_snapshots(Snapshotting::Executed(spacing))
        .unwrap()
    {
        return 0;
    }
    let alone = session.on_stretches(1).unwrap().expect("stretches");
    let full = Session::open(&copied(&at, "full.aft")).unwrap();
    let path = full.ensure_path().unwrap();
    assert_eq!(alone.path().unwrap().length(), path.length());
    full.ensure_values(&false.into()).unwrap();
    let (of_full, of_alone) = (full.values().unwrap(), alone.values().unwrap());
    let mut cursor = path.cursor();
    let few = session.on_stretches(8).unwrap().expect("stretches");
    let mut compared = 0;
    let mut visits = Vec::new();
    while let Some(visit) = cursor.next().unwrap() {
        visits.push((visit.start, visit.node));
    }
    compared += same_answers([&full, &alone], &visits, (7, QUESTIONS));
    begun_alike(&full, &few, &visits);
    // Begin at the end, so that stretches are built in a different order from their execution.
    let every = 1 + visits.len() / MOST;
    for &(start, _) in visits.iter().rev().step_by(every) {
        let a = of_full.at(start).unwrap().expect("an execution");
        let b = of_alone.at(start).unwrap().expect("an execution");
        compared += same(&of_full, &of_alone, [a, b]);
    }
    // With one stretch in memory, an answer about two stretches builds them again and again.
    let one = session.on_stretches(1).unwrap().expect("stretches");
    let epochs = one.epochs().unwrap();
    epochs.keep(0);
    compared += same_answers([&full, &one], &visits, (13, AGAIN));
    let (of_one, mut random) = (one.values().unwrap(), SplitMix64(17));
    for _ in 0..AGAIN {
        let (start, _) = visits[random.below(visits.len())];
        let a = of_full.at(start).unwrap().expect("an execution");
        let b = of_one.at(start).unwrap().expect("an execution");
        compared += same(&of_full, &of_one, [a, b]);
    }
    let in_memory = (0..epochs.before().len()).filter(|&at| epochs.has(at));
    assert!(in_memory.count() <= 1);
    DROPPED.fetch_add(epochs.dropped(), Ordering::Relaxed);
    compared
}

/// A program that reads variables long after their last write. The writes are in a call, before a
/// loop, in some of its iterations, and in waiting activations, also of the same function.
const LOOPS: &str = r#"(module
  (memory (export "memory") 1)
  (global $kept (mut i32) (i32.const 3))
  (func $given (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.mul (local.get $n) (local.get $i))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 90))))
    (local.get $sum))
  (func $deep (param $left i32) (param $n i32) (result i32)
    (local $own i32) (local $i i32) (local $got i32)
    (local.set $own (i32.mul (local.get $left) (i32.const 5)))
    (if (i32.eqz (local.get $left)) (then (return (i32.const 1))))
    (local.set $got (call $given (local.get $left)))
    (loop $l
      (i32.store (i32.mul (local.get $i) (i32.const 4)) (i32.add (local.get $own) (local.get $got)))
      (if (i32.eq (local.get $i) (i32.const 150)) (then
        (local.set $got (call $deep (i32.sub (local.get $left) (i32.const 1)) (local.get $n)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300))))
    (global.set $kept (local.get $got))
    (i32.add (local.get $own) (i32.load (i32.const 40))))
  (func (export "run") (param $n i32) (result i32)
    (local $before i32) (local $given i32) (local $i i32) (local $rare i32)
    (local.set $before (i32.add (local.get $n) (i32.const 1)))
    (local.set $given (call $given (local.get $n)))
    (loop $l
      (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 700))) (then
        (local.set $rare (call $deep (i32.const 4) (local.get $before)))))
      (i32.store offset=2000 (i32.and (local.get $i) (i32.const 1020))
        (i32.add (i32.add (local.get $before) (local.get $given))
          (i32.add (local.get $rare) (global.get $kept))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3000))))
    (i32.add (local.get $before) (local.get $given))))"#;

#[test]
fn each_value_and_dependence_is_that_of_the_whole_execution_trace() {
    let mut compared = 0;
    each_run_with(12, |_| 19, |at| compared += agree(at));
    one_run(LOOPS, &["7"], |at| compared += agree(at));
    each_tree(64, |_, at| compared += agree(at));
    assert!(compared > 10_000, "{compared}");
    let dropped = DROPPED.load(Ordering::Relaxed);
    assert!(dropped > 1000, "{dropped}");
}
