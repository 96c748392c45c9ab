//! Checks that the engine's snapshots equal the machine's states, bit for bit.

use afterimage_ids::FuncId;
use afterimage_machine::{Caller, GlobalBits, Machine, Next, Observer, Opened, Snapshot};
use afterimage_record::{
    Cache, ChangedPage, Interrupt, RecordError, Spacing, Taken, build_debugged, build_snapshots,
};
use afterimage_trace::{Event, TraceWriter};

use tempfile::TempDir;

use super::follow::Path;
use super::stretches;
use crate::harness::{Recording, exact, invoke, progress, quiet, try_record, wat};
use crate::stored::Stored;

/// The maximum number of snapshots compared per run.
const MOST: usize = 200;
/// The approximate number of snapshots of a long run. Deep stacks make each snapshot expensive.
const SNAPSHOTS: u64 = 200;
/// The approximate number of stretches of a long run.
const STRETCHES: u64 = 1000;

/// A completed snapshot.
#[derive(Debug, PartialEq)]
pub struct Made {
    pub clock: u64,
    pub opened: Vec<Opened>,
    pub pages: Vec<ChangedPage>,
    pub snapshot: Snapshot,
}

/// The size in bytes up to which the debugger is checked, too. Compiling a program for the debugger
/// takes long.
const SMALL: usize = 1 << 15;

/// Takes the snapshots of a recording, as close together as possible. For a small program, checks
/// that the debugger shows the same.
pub fn all(recording: &Recording) -> (Vec<Made>, Option<TempDir>) {
    let polls = recording.recorded.end.clock.unwrap_or(0);
    let spacing = || Spacing::Polls {
        snapshots: 1 + polls / SNAPSHOTS,
        cuts: 1 + polls / STRETCHES,
    };
    let (made, folder) = taken(recording, spacing(), false);
    if recording.bytes.len() <= SMALL {
        let (shown, _) = taken(recording, spacing(), true);
        if !shown.is_empty() {
            assert!(made == shown, "{}", recording.ending());
        }
    }
    (made, folder)
}

/// Takes the snapshots of a recording, and adds the written memory to `a.aft` in the returned
/// folder. Returns nothing if snapshots of the program are impossible.
pub fn taken(
    recording: &Recording,
    spacing: Spacing,
    debugged: bool,
) -> (Vec<Made>, Option<TempDir>) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    std::fs::write(&at, &recording.whole).expect("a copy");
    let out = TraceWriter::append(&at).expect("a writer");
    let (cache, progress) = (Cache::none(), progress());
    let mut all = Vec::new();
    let run = recording.run(&cache, &progress);
    let tell = |taken: Taken| {
        all.push(taken);
        Ok(1)
    };
    let made = match debugged {
        true => build_debugged(&run, spacing, &out, tell),
        false => build_snapshots(&run, spacing, &out, tell),
    };
    match made {
        Ok(()) => {
            out.commit().expect("a commit");
            let complete = |mut taken: Taken| Made {
                clock: taken.clock,
                opened: std::mem::take(&mut taken.opened),
                pages: std::mem::take(&mut taken.pages),
                snapshot: taken.complete().expect("a complete snapshot"),
            };
            (all.into_iter().map(complete).collect(), Some(folder))
        }
        Err(RecordError::NoSnapshots(_)) => (Vec::new(), None),
        Err(error) => panic!("snapshots: {error}, {}", recording.ending()),
    }
}

/// The times at which the open activations began and called.
#[derive(Default)]
struct OpenTimes {
    open: Vec<Opened>,
    /// The number of blocks before the current node, and the number of its own blocks.
    time: u64,
    length: u64,
}

impl Observer for OpenTimes {
    const REGISTERS: bool = false;

    fn called(&mut self, _: FuncId, _: &[GlobalBits]) {
        if let Some(caller) = self.open.last_mut() {
            caller.called = self.time + self.length;
        }
    }

    fn enter(&mut self, _: FuncId, _: Caller) {
        let entered = self.time + 1;
        let called = entered;
        self.open.push(Opened { entered, called });
    }

    fn leave(&mut self, _: Option<(u32, u32)>) {
        self.open.pop();
    }
}

/// Compares snapshots of a recording with the machine, and returns their number.
pub fn agree(recording: &Recording, path: &Path, taken: Vec<Made>) -> usize {
    let log = recording.file.log().expect("a log");
    let mut machine = Machine::new(&recording.program, &recording.bytes, log).expect("a machine");
    path.define(&mut machine).expect("nodes");
    let mut memories = Vec::from_iter(machine.state.memories.iter().map(|m| m.bytes.to_vec()));
    let mut visits = path.visits.iter().copied();
    let (mut last, mut count) = (0, 0);
    let mut activations = OpenTimes::default();
    let mut clock = None;
    for taken in taken.into_iter().take(MOST) {
        assert!(clock < Some(taken.clock), "clocks ascend");
        clock = Some(taken.clock);
        let Made {
            snapshot,
            opened,
            pages,
            ..
        } = taken;
        assert!(snapshot.time >= last);
        count += 1;
        last = snapshot.time;
        while machine.time() < snapshot.time {
            let node = visits.next().expect("a node");
            activations.length = path.length(node);
            let done = machine.step(node, activations.length, &mut activations);
            done.expect("a step");
            activations.time += activations.length;
        }
        let own = machine
            .snapshot()
            .expect("a program")
            .expect("a moment of the run");
        let mut expected = activations.open.clone();
        if let (Next::Block(_), Some(active)) = (snapshot.next, expected.last_mut()) {
            active.called = active.entered;
        }
        assert_eq!(opened, expected, "after {last} blocks");
        // The engine may have logged growth of the memory for its exceptions. The machine skips
        // these events when it reads the next event.
        let (log, room) = (own.log, own.room);
        assert!(log.events <= snapshot.log.events);
        let skipped = recording.file.log().expect("a log");
        let skipped = skipped.skip(log.events as usize);
        for event in skipped.take((snapshot.log.events - log.events) as usize) {
            let event = event.expect("an event");
            assert!(matches!(event, Event::MemoryGrow { .. }), "{event:?}");
        }
        let snapshot = Snapshot {
            log,
            room,
            ..snapshot
        };
        assert_eq!(snapshot, own, "after {last} blocks");
        for (memory, size) in memories.iter_mut().zip(&own.pages) {
            memory.resize(*size as usize * 65536, 0);
        }
        for ((memory, page), bytes) in pages {
            let at = page as usize * 4096;
            memories[memory as usize][at..at + bytes.len()].copy_from_slice(&bytes);
        }
        for (memory, known) in machine.state.memories.iter().zip(&memories) {
            assert!(
                memory.bytes[..] == known[..],
                "a memory after {last} blocks"
            );
        }
    }
    count
}

#[test]
fn snapshots_are_made_in_loops_and_recursion_with_all_that_waits() {
    let text = r#"(module
      (memory (export "memory") 1)
      (global $g (mut i64) (i64.const 7))
      (func $fac (param $n i32) (result i64) (local $v v128)
        (local.set $v (i32x4.splat (local.get $n)))
        (if (i32.eqz (local.get $n)) (then (return (i64.const 1))))
        (i64.store (i32.mul (local.get $n) (i32.const 4096)) (i64.extend_i32_u (local.get $n)))
        (i64.mul (i64.extend_i32_u (i32x4.extract_lane 1 (local.get $v)))
          (call $fac (i32.sub (local.get $n) (i32.const 1)))))
      (func (export "run") (result i64) (local $i i32) (local $sum f64)
        (loop $l
          (global.set $g (call $fac (i32.const 9)))
          (local.set $sum (f64.add (local.get $sum) (f64.const 0.5)))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))
        (global.get $g)))"#;
    assert_eq!(compared(text), MOST);
}

/// Compares a program's snapshots at each poll with the debugger's and with the machine, and
/// returns their number.
fn compared(text: &str) -> usize {
    let recording = exact(&wat(text), &invoke("run", &[]), &quiet());
    let path = Path::of(&Stored::of(&recording));
    let [made, shown] = [false, true].map(|debugged| {
        let (taken, _) = taken(&recording, Spacing::polls(1), debugged);
        taken
    });
    assert!(made == shown);
    agree(&recording, &path, made)
}

/// Code in which operands of each type stay on the stack while blocks, loops and conditions
/// execute, below their parameters and results.
const OPERANDS: &str = r#"
      (func $f (param $n i32) (result i32 i64)
        (if (local.get $n) (then (drop (call $f (i32.sub (local.get $n) (i32.const 1)))) (drop)))
        (local.get $n) (i64.extend_i32_u (local.get $n)))
      (func $g (param $i i32) (result i32) (local $t i64) (local $j i32)
        (i32.add
          (i32.mul (local.get $i) (i32.const 3))
          (block (result i32)
            (f32.const 1.5) (f64.convert_i32_u (local.get $i))
            VECTOR
            (i64.const -1)
            (loop $l (param i64) (result i32)
              (local.set $t)
              (i32.const 77)
              (call $f (i32.const 3))
              (local.set $t (i64.add (local.get $t)))
              (i32.add)
              (if (param i32) (result i32) (i32.eqz (local.get $i))
                (then (call $f (i32.const 2)) (drop) (i32.add))
                (else (i32.const 5) (drop)))
              (br_if $l (local.get $t) (i32.eq (local.tee $i (i32.sub (local.get $i) (i32.const 1))) (i32.const 1)))
              (drop))
            (local.set $i)
            LANE
            (i32.trunc_f64_u)
            (local.set $j)
            (drop)
            (i32.add (local.get $i) (local.get $j)))))
      (func (export "run") (result i32) (local $i i32) (local $sum i32)
        (loop $l
          (local.set $sum (i32.add (local.get $sum) (call $g (i32.const 2))))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300))))
        (local.get $sum))"#;

#[test]
fn operands_outside_of_open_blocks_are_captured() {
    let vector = (
        "(i32x4.splat (local.get $i))",
        "(i32x4.extract_lane 2) (drop)",
    );
    for (vector, lane) in [("", ""), vector] {
        let functions = OPERANDS.replace("VECTOR", vector).replace("LANE", lane);
        assert_eq!(compared(&format!("(module {functions})")), MOST);
    }
}

#[test]
fn snapshots_are_made_while_halves_of_the_ring_are_exchanged() {
    // One bit for each of twelve million iterations makes more words than half of the ring holds.
    let text = r#"(module
      (func (export "run") (result i32) (local $i i32) (local $x i32) (local $n i32)
        (local.set $x (i32.const 12345))
        (loop $l
          (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1664525)) (i32.const 1013904223)))
          (if (i32.lt_s (local.get $x) (i32.const 0)) (then (local.set $n (i32.add (local.get $n) (i32.const 1)))))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12000000))))
        (local.get $n)))"#;
    let command = invoke("run", &[]);
    let recording = try_record(&wat(text), &command, &quiet(), &Interrupt::new());
    let recording = recording.unwrap();
    let stored = Stored::of(&recording);
    let (taken, folder) = taken(&recording, Spacing::polls(10_000), false);
    stretches::agree(&recording, &folder.expect("a file"), &stored);
    assert!(agree(&recording, &Path::of(&stored), taken) > 5);
}

#[test]
fn snapshots_to_come_are_as_far_apart_as_the_answer_says() {
    let text = r#"(module
      (func $poll (param $n i32)
        (if (local.get $n) (then (call $poll (i32.sub (local.get $n) (i32.const 1))))))
      (func (export "run") (call $poll (i32.const 4000))))"#;
    let recording = exact(&wat(text), &invoke("run", &[]), &quiet());
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("a.aft");
    std::fs::write(&at, &recording.whole).expect("a copy");
    let out = TraceWriter::append(&at).expect("a writer");
    let (cache, progress) = (Cache::none(), progress());
    let mut clocks = Vec::new();
    let tell = |taken: Taken| {
        clocks.push(taken.clock);
        Ok(if clocks.len() > 10 { 8 } else { 1 })
    };
    let run = recording.run(&cache, &progress);
    build_snapshots(&run, Spacing::polls(2), &out, tell).expect("snapshots");
    let gaps = Vec::from_iter(clocks.windows(2).map(|pair| pair[1] - pair[0]));
    assert_eq!(gaps.first(), Some(&2));
    assert_eq!(gaps.last(), Some(&16));
    assert!(gaps.is_sorted());
}
