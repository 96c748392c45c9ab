//! Checks that stops at memory accesses match a list of all accesses of the run.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use afterimage::Session;
use afterimage::debugger::{Access, Debugger, Direction, Position, StopAt, with_debugger};
use afterimage_replay::steps::{Range, Steps, Wanted};
use anyhow::Result;

use crate::programs::{Random, recorded_program, recording};

/// A program that copies, fills and initialises memory, in two memories, and makes the host read
/// and write.
const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (memory $other 1)
  (data $text "0123456789")
  (func $round (param $i i32)
    (i32.store8 (local.get $i) (local.get $i))
    (memory.copy (i32.const 16) (local.get $i) (i32.const 9))
    (memory.fill (i32.const 20) (local.get $i) (i32.const 3))
    (memory.init $text (i32.const 28) (i32.const 2) (i32.const 5))
    (memory.copy $other 0 (i32.const 12) (i32.const 18) (i32.const 6))
    (i32.store $other (i32.const 40) (i32.load $other (i32.const 14)))
    (drop (call $random (i32.const 24) (i32.const 4)))
    (i32.store (i32.const 64) (i32.const 28))
    (i32.store (i32.const 68) (i32.const 5))
    (drop (call $write (i32.const 2) (i32.const 64) (i32.const 1) (i32.const 72)))
    (i64.store (i32.const 8) (i64.load (i32.const 13))))
  (func (export "_start") (local $i i32)
    (loop $again
      (call $round (local.get $i))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))))"#;

/// An access: its place, and the bytes read and written.
type Listed = (Position, Option<Range>, Option<Range>);

/// Follows the whole run, and returns all accesses to memory.
fn all_accesses(debugger: &Debugger<'_>) -> Result<Vec<Listed>> {
    let session = debugger.session();
    let mut run = session.run()?;
    run.snapshots = session.run_from_checkpoints()?.snapshots;
    let mut steps = Steps::new(run, session.file().log()?, Wanted::ALL)?;
    let mut all = Vec::new();
    while let Some(step) = steps.next()? {
        let (read, written) = (step.what.read(), step.what.written());
        if let Some(op) = step.op
            && (read.is_some() || written.is_some())
        {
            let at = Position {
                ahead: 0,
                time: step.time,
                op: op.as_u32(),
            };
            all.push((at, read, written));
        }
    }
    Ok(all)
}

fn shares(a: Option<Range>, b: Range) -> bool {
    let bytes = |range: Range| range.address..range.address + range.length;
    a.is_some_and(|a| a.memory == b.memory && bytes(a).any(|byte| bytes(b).contains(&byte)))
}

#[derive(Debug, Default)]
struct Compared {
    stops: BTreeMap<&'static str, usize>,
    none: usize,
}

/// Compares the stops at accesses to some ranges, starting from several positions.
fn compare(debugger: &Debugger<'_>, ranges: usize, all: &mut Compared) -> Result<()> {
    let listed = all_accesses(debugger)?;
    let mut random = Random(3);
    let begin = debugger.first()?;
    let end = debugger.last()?;
    for _ in 0..ranges {
        let (_, read, written) = listed[random.below(listed.len() as u64) as usize];
        let near = read.or(written).expect("an access");
        let range = Range {
            address: (near.address + random.below(5)).saturating_sub(2),
            length: 1 + random.below(12),
            ..near
        };
        for (access, name) in [
            (Access::Read, "read"),
            (Access::Write, "write"),
            (Access::ReadWrite, "readWrite"),
        ] {
            let is_it = |&(at, read, written): &Listed| {
                let reads = access != Access::Write && shares(read, range);
                let writes = access != Access::Read && shares(written, range);
                (reads || writes).then_some(at)
            };
            let mut expected = Vec::from_iter(listed.iter().filter_map(is_it));
            expected.dedup();
            let at = StopAt::Memory {
                access,
                memory: range.memory,
                address: range.address,
                bytes: range.length,
            };
            let point = debugger.stop_point(&at, None, None)?;
            let mut starts = vec![begin, end];
            for _ in 0..4 {
                let time = 1 + random.below(debugger.length());
                starts.push(debugger.position(&format!("t={time}"))?);
            }
            // Also start right before some of the accesses.
            for _ in 0..4.min(expected.len()) {
                starts.push(expected[random.below(expected.len() as u64) as usize]);
            }
            for from in starts {
                let stop = |direction| debugger.run_to(from, &[&point], direction, None);
                let next = expected.iter().find(|at| **at >= from);
                let after = next.map(|at| debugger.step_operator(*at, Direction::Forward));
                let after = after.transpose()?.flatten();
                let found = stop(Direction::Forward)?.at;
                assert_eq!(found, after, "{name} {range:?} after {from:?}");
                let before = expected.iter().rfind(|at| **at < from).copied();
                let found = stop(Direction::Backward)?.at;
                assert_eq!(found, before, "{name} {range:?} before {from:?}");
                for is_some in [after.is_some(), before.is_some()] {
                    if is_some {
                        *all.stops.entry(name).or_default() += 1;
                    } else {
                        all.none += 1;
                    }
                }
            }
            // Pass all accesses, in both directions.
            if expected.len() < 100 {
                let passed = |from, to| debugger.passed(&point, (from, to), usize::MAX);
                let before = Vec::from_iter(
                    expected
                        .iter()
                        .copied()
                        .filter(|at| *at >= begin && *at < end),
                );
                let mut back = passed(end, begin)?;
                back.reverse();
                assert_eq!(back, before, "{name} {range:?}");
                assert_eq!(passed(begin, end)?.len(), before.len(), "{name} {range:?}");
            }
        }
    }
    Ok(())
}

fn holds(at: &std::path::Path, is_stretched: bool, ranges: usize) {
    let session = Session::open(at).unwrap();
    let mut all = Compared::default();
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        assert_eq!(debugger.session().writers().is_some(), is_stretched);
        compare(debugger, ranges, &mut all)
    })
    .unwrap();
    println!("{all:?}");
    assert!(
        all.stops.len() == 3 && all.stops.values().all(|&of| of > 30),
        "{all:?}"
    );
    assert!(all.none > 5, "{all:?}");
}

#[test]
fn of_a_run_with_values() {
    let folder = tempfile::tempdir().unwrap();
    holds(&recording(&folder, "0", &["20"]), false, 10);
}

#[test]
fn of_a_long_run_that_is_followed_from_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    holds(&recording(&folder, "0", &["20000"]), true, 6);
}

#[test]
fn of_copies_fills_and_the_host() {
    let folder = tempfile::tempdir().unwrap();
    holds(&recorded_program(&folder, PROGRAM), false, 20);
}
