//! Checks that a tampered recording or path no longer fits, and that the machine reports the time
//! of the mismatch.

use std::collections::BTreeSet;

use afterimage_ids::{BlockId, EntityRef, FuncId, ImportId, NodeId};
use afterimage_machine::{Machine, MachineError};
use afterimage_trace::{Event, Existing, RawValue, TraceFile, TraceWriter};

use super::follow::{Path, follow};
use crate::guests::record_run;
use crate::harness::{Recording, quiet};
use crate::stored::Stored;

/// A guest whose result depends on everything that the host returns, writes, reads and grants.
const GUEST: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1 4)
  (table $t 1 3 funcref)
  (type $step (func (param i64) (result i64)))
  (elem (table $t) (i32.const 0) func $odd)
  (global $sum (mut i64) (i64.const 1))
  (func $odd (param i64) (result i64) (i64.add (local.get 0) (i64.const 1)))
  (func $mix (param $bits i64)
    (global.set $sum (i64.add (i64.mul (global.get $sum) (i64.const 31)) (local.get $bits)))
    (if (i64.eqz (i64.and (global.get $sum) (i64.const 1)))
      (then (global.set $sum (call_indirect (type $step) (global.get $sum) (i32.const 0))))))
  (func $round (param $n i32)
    (call $mix (i64.extend_i32_u (call $random (i32.const 64) (i32.const 8))))
    (call $mix (i64.load (i32.const 64)))
    (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 8))
    (i32.store offset=8 (i32.const 0) (i32.const -1))
    (call $mix (i64.extend_i32_u (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8))))
    (call $mix (i64.extend_i32_u (i32.load (i32.const 8))))
    (call $mix (i64.extend_i32_u (call $yield)))
    (call $mix (i64.extend_i32_u (memory.grow (local.get $n))))
    (call $mix (i64.extend_i32_u (table.grow $t (ref.null func) (local.get $n)))))
  (func (export "run") (param $n i32) (result i64)
    (loop $l
      (call $round (local.get $n))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (global.get $sum)))"#;

fn recording() -> (Recording, Path) {
    let recording = record_run(GUEST, &["3"], &quiet());
    let path = Path::of(&Stored::of(&recording));
    follow(&recording.file, &recording, &path).expect("a recording that was not tampered with");
    (recording, path)
}

fn events(recording: &Recording) -> Vec<Event> {
    let log = recording.file.log().expect("a log");
    log.map(|event| event.expect("an event")).collect()
}

/// Returns a file with this log.
fn file_of(events: &[Event]) -> TraceFile {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    let writer = TraceWriter::create(&at, Existing::Kept).expect("a writer");
    let mut log = writer.log().expect("a log");
    events
        .iter()
        .for_each(|event| log.event(event).expect("an event"));
    log.finish().expect("an end");
    writer.commit().expect("a commit");
    crate::harness::open(&at)
}

/// Returns the time of the mismatch.
fn when(error: &MachineError) -> u64 {
    match *error {
        MachineError::Diverged { time, .. }
        | MachineError::Boundary { time, .. }
        | MachineError::Trapped { time, .. } => time,
        ref other => panic!("{other} has no time"),
    }
}

fn other(value: &mut RawValue) {
    *value = match *value {
        RawValue::I32(value) => RawValue::I32(value ^ 1),
        RawValue::I64(value) => RawValue::I64(value ^ 1 << 40),
        _ => RawValue::F32(1),
    };
}

/// Returns every altered form of an event.
fn changed(event: &Event) -> Vec<Event> {
    let mut all = Vec::new();
    let mut change = |change: &dyn Fn(&mut Event) -> bool| {
        let mut event = event.clone();
        if change(&mut event) {
            all.push(event);
        }
    };
    for i in 0..4 {
        change(&|event| match event {
            Event::Enter { args, .. } | Event::HostCall { args, .. } => {
                args.get_mut(i).map(other).is_some()
            }
            Event::Leave { results } => results.get_mut(i).map(other).is_some(),
            _ => false,
        });
    }
    change(&|event| match event {
        Event::Enter { args: list, .. }
        | Event::HostCall { results: list, .. }
        | Event::Leave { results: list } => list.pop().is_some(),
        _ => false,
    });
    change(&|event| match event {
        Event::Enter { args: list, .. }
        | Event::HostCall { results: list, .. }
        | Event::Leave { results: list } => {
            list.push(RawValue::I32(0));
            true
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { results, .. } => results.get_mut(0).map(other).is_some(),
        Event::MemoryGrow { granted } | Event::TableGrow { granted } => {
            *granted = !*granted;
            true
        }
        Event::Enter { function, .. } => {
            *function = FuncId::new(function.index() + 1);
            true
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { import, .. } => {
            *import = ImportId::new((import.index() + 1) % 3);
            true
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { writes, .. } => {
            let byte = writes.get_mut(0).and_then(|write| write.bytes.last_mut());
            byte.map(|byte| *byte ^= 1).is_some()
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { writes, .. } => {
            let address = writes.get_mut(0).map(|write| &mut write.address);
            address.map(|address| *address += 1).is_some()
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { writes, .. } => {
            let address = writes.get_mut(0).map(|write| &mut write.address);
            address.map(|address| *address = u64::MAX - 1).is_some()
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { writes, .. } => writes.pop().is_some(),
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { reads, .. } => {
            let length = reads.get_mut(0).map(|read| &mut read.length);
            length.map(|length| *length = 1 << 40).is_some()
        }
        _ => false,
    });
    change(&|event| match event {
        Event::HostCall { read_digest, .. } => {
            *read_digest ^= 1;
            true
        }
        _ => false,
    });
    all
}

#[test]
fn a_log_that_was_changed_does_not_fit() {
    let (recording, path) = recording();
    let events = events(&recording);
    let mut tried = 0;
    let mut reasons = BTreeSet::new();
    let mut refused = |log: &[Event], i: usize, what: &str| {
        let outcome = follow(&file_of(log), &recording, &path).map(|_| ());
        let Err(error) = outcome else {
            panic!("{what} number {i}, {:?}, and nobody saw it", events[i]);
        };
        assert!((1..=path.time()).contains(&when(&error)), "{error}");
        reasons.insert(
            error
                .to_string()
                .split_once(": ")
                .map(|(_, why)| why.to_owned()),
        );
        tried += 1;
    };
    for (i, event) in events.iter().enumerate() {
        for changed in changed(event) {
            let mut log = events.clone();
            log[i] = changed;
            refused(&log, i, "changed");
        }
        let last = i + 1 == events.len();
        if !last {
            let mut log = events.clone();
            log.remove(i);
            refused(&log, i, "without");
            let mut log = events.clone();
            log.insert(i, event.clone());
            refused(&log, i, "twice");
            if *event != events[i + 1] {
                let mut log = events.clone();
                log.swap(i, i + 1);
                refused(&log, i, "later");
            }
        }
    }
    assert!(tried > 100 && reasons.len() >= 10, "{tried}: {reasons:?}");
}

/// A log that ends early belongs to a recording that was cut off. The machine follows the run as
/// far as the log goes.
#[test]
fn a_log_that_was_cut_is_followed_to_its_end() {
    let (recording, path) = recording();
    let events = events(&recording);
    let mut latest = 0;
    for i in 0..events.len() - 1 {
        let error = follow(&file_of(&events[..i]), &recording, &path).map(|_| ());
        let time = when(&error.expect_err("the path continues"));
        assert!((latest.max(1)..=path.time()).contains(&time), "{i}: {time}");
        latest = time;
    }
    assert!(latest > path.time() / 2);
}

#[test]
fn a_path_that_was_changed_does_not_fit() {
    let (recording, mut path) = recording();
    let truth = path.visits.clone();
    let nodes = path.directory.nodes.len();
    let mut tried = 0;
    let mut refused = |visits: Vec<NodeId>, what: &str| {
        if truth.starts_with(&visits) {
            return;
        }
        path.visits = visits;
        let outcome = follow(&recording.file, &recording, &path).map(|_| ());
        let Err(error) = outcome else {
            panic!("{what}, and nobody saw it");
        };
        assert!((1..=path.time()).contains(&when(&error)), "{error}");
        tried += 1;
    };
    for i in 0..truth.len() {
        let mut visits = truth.clone();
        visits.remove(i);
        refused(visits, &format!("without visit {i}"));
        let mut visits = truth.clone();
        visits.insert(i, truth[i]);
        refused(visits, &format!("visit {i} twice"));
        for node in (0..nodes).map(NodeId::new).filter(|&node| node != truth[i]) {
            let mut visits = truth.clone();
            visits[i] = node;
            refused(visits, &format!("{node} for visit {i}"));
        }
    }
    let unknown = NodeId::new(nodes);
    refused([&truth[..], &[unknown]].concat(), "a node that is none");
    refused([&truth[..], &truth[..]].concat(), "the run twice");
    assert!(tried > 500, "{tried}");
}

#[test]
fn nodes_that_were_changed_do_not_fit() {
    let (recording, path) = recording();
    let truth = path.directory;
    let visits = path.visits;
    let mut tried = 0;
    for (id, node) in truth.nodes.iter() {
        if !visits.contains(&id) {
            continue;
        }
        let function = recording
            .program
            .function(node.function)
            .expect("a function");
        let blocks = function.cfg.blocks.len();
        for at in 0..node.blocks.len() {
            for other in (0..=blocks).map(BlockId::new) {
                if other == node.blocks[at] {
                    continue;
                }
                let mut directory = truth.clone();
                directory.nodes[id].blocks[at] = other;
                let visits = visits.clone();
                let path = Path { directory, visits };
                let outcome = follow(&recording.file, &recording, &path).map(|_| ());
                match outcome.expect_err("another block") {
                    MachineError::NoPath { function, .. } => assert_eq!(function, node.function),
                    error => assert!((1..=path.time()).contains(&when(&error)), "{error}"),
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
}

#[test]
fn nothing_follows_the_end() {
    let (recording, path) = recording();
    let log = recording.file.log().expect("a log");
    let mut machine = Machine::new(&recording.program, &recording.bytes, log).expect("a machine");
    path.define(&mut machine).expect("nodes");
    for &node in &path.visits {
        machine
            .step(node, path.length(node), &mut ())
            .expect("a step");
    }
    let state = format!("{:?}", machine.state.globals);
    for &node in path.visits.iter().rev() {
        let error = machine.step(node, path.length(node), &mut ());
        assert_eq!(when(&error.expect_err("the end")), path.time() + 1);
    }
    assert_eq!(machine.time(), path.time());
    assert_eq!(format!("{:?}", machine.state.globals), state);
}

/// The caller decides the length of a node.
#[test]
fn time_does_not_overflow() {
    let (recording, path) = recording();
    let log = recording.file.log().expect("a log");
    let mut machine = Machine::new(&recording.program, &recording.bytes, log).expect("a machine");
    path.define(&mut machine).expect("nodes");
    let steps = path
        .visits
        .iter()
        .map(|&node| machine.step(node, u64::MAX / 2, &mut ()));
    let outcomes = Vec::from_iter(steps);
    assert!(outcomes[..2].iter().all(Result::is_ok) && outcomes[2..].iter().all(Result::is_err));
    assert_eq!(machine.time(), u64::MAX - 1);
}
