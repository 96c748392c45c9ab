//! Answers from checkpoints agree with following the run from its beginning.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use afterimage_analyses::slices::{
    Criterion, Follows, Reach, Slice, Want, backward, chop, forward,
};
use afterimage_replay::state::{Halt, follow_to};
use afterimage_replay::steps::{
    At, CountedValue, ExecutionRange, FileCheckpoints, LastWrite, LastWrites, Level, Range, Step,
    Steps, Wanted, Within, WriteIndex, count_values, last_steps, memory_at, recorded_checkpoints,
};
use afterimage_replay::values::{
    Executions, RecordedValues, Types, recorded_epochs, recorded_values,
};
use afterimage_replay::whole_path::{At as Moment, FileSegments, Window};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::{TraceFile, TraceWriter};
use afterimage_wet::checkpoint::{CheckpointWriter, Vertex};
use afterimage_wet::{LeftOut, Run as Build};

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 6;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

impl Recorded {
    /// Builds the vertices of a window.
    fn build(&self, window: RangeInclusive<u64>, interval: u64) -> (Vec<Vertex>, u32) {
        let run = self.run_from(None);
        let build = Build {
            program: run.program,
            bytes: run.module,
            path: run.path,
            continuations: run.continuations,
            window,
            left_out: &LeftOut::NOTHING,
            stopped: run.stopped,
            epoch: Build::<FileSegments>::EPOCH,
        };
        let mut vertices = Vec::new();
        let record = |vertex: &Vertex| {
            vertices.push(vertex.clone());
            Ok::<_, Infallible>(())
        };
        let log = self.file().log().unwrap();
        let built = build.build_with_checkpoints(log, |_, _| Ok(()), (interval, record), |_| {});
        let nodes = built.unwrap().nodes;
        (vertices, nodes)
    }
}

/// Writes vertices to a file, and opens the usable vertices.
fn write(
    sandbox: &Sandbox,
    (nodes, interval): (u32, u64),
    windows: &[Vec<Vertex>],
) -> Option<FileCheckpoints> {
    let copy = sandbox.path("checkpoints.aft");
    std::fs::copy(sandbox.path("run.aft"), &copy).unwrap();
    let out = TraceWriter::append(&copy).unwrap();
    for vertices in windows {
        let mut writer = CheckpointWriter::new(&out).unwrap();
        for vertex in vertices {
            writer.put(vertex).unwrap();
        }
        writer.finish(nodes, interval).unwrap();
    }
    out.commit().unwrap();
    let file = TraceFile::open(&copy).unwrap();
    let recorded = Recorded::open(sandbox);
    let found = recorded_checkpoints(&file, recorded.path().unwrap()).unwrap();
    if let Some(found) = &found {
        for vertex in windows.iter().flatten() {
            let there = found.has(vertex).unwrap() == Some(true);
            assert!(there || windows.len() == 2, "a vertex is lost");
        }
    }
    std::fs::remove_file(&copy).unwrap();
    found
}

fn all(length: u64, level: Level) -> Wanted {
    Wanted {
        level,
        window: Window {
            first: 1,
            last: length,
        },
        within: Within::default(),
        function: None,
        range: None,
    }
}

fn steps(recorded: &Recorded, from: Option<&FileCheckpoints>, wanted: Wanted) -> Vec<Step> {
    let log = recorded.file().log().unwrap();
    let mut steps = Steps::new(recorded.run_from(from), log, wanted).unwrap();
    std::iter::from_fn(|| steps.next().unwrap()).collect()
}

/// Returns the state at some moments as text.
fn states(recorded: &Recorded, from: Option<&FileCheckpoints>, halts: &[Halt]) -> Vec<String> {
    let mut shown = Vec::new();
    let log = recorded.file().log().unwrap();
    follow_to(
        recorded.run_from(from),
        log,
        halts,
        |position, _, paused| {
            let state = paused.inside.state;
            let mut text = format!(
                "{position}: {:?}",
                state.globals.iter().map(|g| g.0).fold(0, u64::wrapping_add)
            );
            for (memory, number) in state.memories.iter().zip(0..) {
                // Read memory in one piece, and in pieces that begin and end inside lines.
                let mut bytes = vec![0; memory.bytes.len()];
                assert!(paused.memory(number, 0, &mut bytes).unwrap());
                for (piece, start) in bytes.chunks(1009).zip((0..).step_by(1009)).skip(3) {
                    let mut again = vec![0; piece.len()];
                    assert!(paused.memory(number, start, &mut again).unwrap());
                    assert_eq!(piece, again);
                }
                let end = bytes.len() as u64;
                assert!(!paused.memory(number, end, &mut [0]).unwrap());
                let checksum = bytes.iter().fold(7u64, |sum, &byte| {
                    sum.wrapping_mul(31).wrapping_add(u64::from(byte))
                });
                write!(text, " {} {checksum}", memory.bytes.len()).unwrap();
            }
            for table in &state.tables {
                write!(text, " {:?}", table.elements).unwrap();
            }
            shown.push(text);
        },
    )
    .unwrap();
    shown
}

/// Computes slices backward and forward, and between the first and the last criterion.
fn slices(
    recorded: &Recorded,
    from: Option<&FileCheckpoints>,
    criteria: &[Criterion],
) -> [Slice; 3] {
    let (log, run) = (|| recorded.file().log().unwrap(), recorded.run_from(from));
    let (first, last) = (criteria[0].clone(), criteria[criteria.len() - 1].clone());
    [
        backward(run, log(), Follows::ALL, criteria.to_vec()).unwrap(),
        forward(run, log(), Follows::ALL, criteria.to_vec()).unwrap(),
        chop(run, [log(), log()], Follows::ALL, vec![first], vec![last]).unwrap(),
    ]
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    answers: u64,
    written: u64,
    counted: u64,
}

fn compare(sandbox: &Sandbox, interval: u64, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    let length = recorded.path().unwrap().length();
    if !(1..=MOST_BLOCKS).contains(&length) {
        return;
    }
    let (whole, nodes) = recorded.build(1..=length, interval);
    let thirds = [
        1..=length / 3,
        length / 3 + 1..=length / 2,
        length / 2 + 1..=u64::MAX,
    ];
    let windows = thirds.map(|window| {
        if window.is_empty() {
            Vec::new()
        } else {
            recorded.build(window, interval).0
        }
    });
    // A node that begins in one window and ends in the next window is in both.
    let mut joined = windows.concat();
    joined.dedup();
    assert_eq!(joined, whole, "windows are other than the whole");
    let some = [windows[0].clone(), windows[1].clone()];
    let parts = [&windows[..], &some, &[whole][..]];
    for windows in parts {
        let found = write(sandbox, (nodes, interval), windows);
        if let Some(checkpoints) = &found {
            answers(&recorded, checkpoints, compared);
        }
    }
    compared.runs += 1;
}

/// Compares answers from checkpoints with answers from the beginning of the run.
fn answers(recorded: &Recorded, checkpoints: &FileCheckpoints, compared: &mut Compared) {
    let length = recorded.path().unwrap().length();
    let from = Some(checkpoints);
    let mut random = SplitMix64(length);
    let mut time = || 1 + random.below(length as usize) as u64;
    let references = steps(recorded, None, all(length, Level::Memory));
    for level in [Level::Statement, Level::Memory] {
        let (a, b) = (time(), time());
        let window = Window {
            first: a.min(b),
            last: a.max(b),
        };
        let wanted = Wanted {
            window,
            ..all(length, level)
        };
        let expected = steps(recorded, None, wanted);
        assert_eq!(steps(recorded, from, wanted), expected, "{window:?}");
        let log = || recorded.file().log().unwrap();
        let expected = last_steps(recorded.run_from(None), log(), wanted, 9).unwrap();
        let found = last_steps(recorded.run_from(from), log(), wanted, 9).unwrap();
        assert_eq!(found, expected, "the last ones of {window:?}");
    }
    let mut cursor = recorded.path().unwrap().cursor();
    let mut halts = Vec::new();
    for _ in 0..6 {
        let visit = cursor.seek(time()).unwrap().expect("a node");
        let instructions = (visit.start % 4) as usize;
        halts.push(Halt {
            start: visit.start,
            instructions: if visit.last() == length {
                0
            } else {
                instructions.min(1)
            },
        });
    }
    halts.sort_unstable();
    halts.dedup();
    assert_eq!(
        states(recorded, from, &halts),
        states(recorded, None, &halts)
    );
    let criteria = halts.iter().map(|halt| Criterion {
        start: halt.start,
        wants: vec![Want::Block(0)],
        reach: Reach::ALL,
    });
    let criteria = Vec::from_iter(criteria);
    for pair in criteria.chunks(2) {
        assert_eq!(
            slices(recorded, from, pair),
            slices(recorded, None, pair),
            "{pair:?}"
        );
    }
    let epochs = recorded_epochs(recorded.file(), recorded.path().unwrap()).unwrap();
    let epochs = epochs.expect("values");
    let (program, module) = (recorded.program(), recorded.bytes());
    let values = recorded_values(program, module, recorded.path().unwrap(), &epochs).unwrap();
    compared.counted += assert_counts(recorded, &values);
    let mut writes = [None, Some(&values)].map(|values| {
        let log = recorded.file().log().unwrap();
        LastWrites::new(recorded.run_from(from), log, checkpoints, values).unwrap()
    });
    for _ in 0..12 {
        let at = match time() {
            at if at % 7 == 0 => At::End,
            at if at % 3 == 0 && !references.is_empty() => {
                let step = &references[at as usize % references.len()];
                let (time, op) = (step.time, step.op);
                At::Before(Moment { time, op })
            }
            time => At::Before(Moment { time, op: None }),
        };
        let touched = references.get(time() as usize % references.len().max(1));
        let touched = touched.and_then(|step| step.what.written().or(step.what.read()));
        let range = match touched.filter(|range| range.length > 0) {
            Some(range) if time() % 3 == 0 => Range {
                address: range.address & !7,
                length: 24,
                ..range
            },
            Some(range) => Range {
                length: range.length.min(300),
                ..range
            },
            None => continue,
        };
        let answer = |from, index| {
            let log = recorded.file().log().unwrap();
            memory_at(recorded.run_from(from), log, index, range, at)
        };
        match (
            answer(None, WriteIndex::None),
            answer(from, WriteIndex::None),
        ) {
            (Ok(expected), Ok(found)) => {
                assert_eq!(found, expected, "{range:?} at {at:?}");
                let found = answer(from, WriteIndex::Values(&values)).unwrap();
                assert_eq!(found, expected, "{range:?} at {at:?}, with values");
                let time = match at {
                    At::Before(Moment { time, op: None }) => Some(time),
                    At::Before(_) => None,
                    At::End => Some(length + 1),
                };
                let asked = time.map(|time| (time, &expected.parts));
                for (time, part) in asked
                    .into_iter()
                    .flat_map(|(time, parts)| parts.iter().map(move |part| (time, part)))
                {
                    let written = part.written.step().map(|step| LastWrite {
                        time: step.time,
                        function: step.function,
                        op: step.op,
                        range: step.what.written().expect("a write"),
                    });
                    let address = part.range.address + part.range.length - 1;
                    for writes in &mut writes {
                        let found = writes.before(range.memory, address, time).unwrap();
                        assert_eq!(found, written, "{address} before {time}");
                    }
                }
                let parts = expected.parts.iter();
                compared.written +=
                    parts.filter(|part| part.written.step().is_some()).count() as u64;
            }
            (Err(expected), Err(found)) => assert_eq!(found.to_string(), expected.to_string()),
            (expected, found) => panic!("{expected:?}, but with checkpoints {found:?}"),
        }
        compared.answers += 1;
    }
}

/// Checks that values counted by following the run equal values looked up one by one. Returns the
/// number of statements compared.
fn assert_counts<'a>(recorded: &'a Recorded, values: &RecordedValues<'a>) -> u64 {
    let (program, module) = (recorded.program(), recorded.bytes());
    let types = Types::new(program, module);
    let (mut asked, mut expected) = (Vec::new(), Vec::new());
    for function in program.functions.iter().map(|function| function.id) {
        let Some(ssa) = types.statements(function) else {
            continue;
        };
        for statement in ssa.statements.values() {
            let op = statement.op;
            let all = Executions::of(values, program, function, op).unwrap();
            let count = all.count();
            if count == 0 || count > 300 {
                continue;
            }
            let first = match op.as_u32() % 3 {
                0 => 1 + count / 3,
                _ => 1,
            };
            let mut counts = BTreeMap::new();
            for number in first..=count {
                let execution = all.get(values, number).unwrap().unwrap();
                for value in types.results_of(values, &execution, op).unwrap() {
                    let counted = counts.entry(value.bits).or_insert(CountedValue {
                        value,
                        times: 0,
                        first: number,
                    });
                    counted.times += 1;
                }
            }
            expected.push(Vec::from_iter(counts.into_values()));
            let executions = (first, count);
            asked.push(ExecutionRange {
                function,
                op,
                executions,
            });
        }
    }
    let log = recorded.file().log().unwrap();
    let found = count_values(recorded.run_from(None), log, &asked).unwrap();
    let mut compared = 0;
    for ((found, expected), asked) in found.into_iter().zip(expected).zip(asked) {
        if let Some(found) = found {
            assert_eq!(found, expected, "{asked:?}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn checkpoints_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "full", |sandbox| {
        for interval in [3, 40, 700] {
            compare(sandbox, interval, &mut compared);
        }
    });
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
    assert!(compared.counted > 50, "few counts: {}", compared.counted);
}

/// A program with memory that the host writes, in parts and as a whole. The memory is also grown,
/// copied, filled and set byte by byte. Tables and segments change, and a recursion is deep at many
/// checkpoints. Pages are filled, copied, initialised by the host or read as a whole, and then in
/// part.
const BUSY: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1 8)
  (table $t 4 funcref)
  (elem (i32.const 0) $add $xor)
  (elem $passive func $add $xor $add)
  (data (i32.const 100) "begins like this")
  (data $late "0123456789abcdefghij")
  (global $g (mut i32) (i32.const 5))
  (global $w (mut i64) (i64.const 0))
  (type $two (func (param i32 i32) (result i32)))
  (func $add (type $two) (i32.add (local.get 0) (local.get 1)))
  (func $xor (type $two) (i32.xor (local.get 0) (local.get 1)))
  (func $deep (param $n i32) (result i32) (local $keep i64)
    (local.set $keep (i64.mul (i64.extend_i32_u (local.get $n)) (i64.const 0x100000001)))
    (i32.store8 offset=3000 (local.get $n) (local.get $n))
    (if (result i32) (local.get $n)
      (then (i32.add (i32.load8_u offset=2999 (local.get $n))
                     (i32.add (i32.wrap_i64 (local.get $keep))
                              (call $deep (i32.sub (local.get $n) (i32.const 1))))))
      (else (i32.const 0))))
  (func (export "_start") (local $i i32) (local $at i32)
    (loop $again
      (drop (call $random (i32.add (i32.const 1022) (local.get $i)) (i32.and (local.get $i) (i32.const 31))))
      (drop (call $random (i32.const 2048) (i32.const 8)))
      (i32.store16 (i32.const 2050) (local.get $i))
      (local.set $at (i32.add (i32.mul (local.get $i) (i32.const 13)) (i32.const 4000)))
      (i64.store offset=1 (local.get $at) (i64.load (i32.add (i32.const 1020) (local.get $i))))
      (memory.copy (i32.add (local.get $at) (i32.const 5)) (i32.const 1024) (i32.const 19))
      (if (i32.eqz (i32.and (local.get $i) (i32.const 7)))
        (then
          (memory.fill (i32.add (i32.const 9000) (local.get $i)) (local.get $i) (i32.const 70))
          (memory.init $late (i32.add (i32.const 200) (local.get $i)) (i32.const 2) (i32.const 11))
          (table.set $t (i32.const 2) (table.get $t (i32.and (local.get $i) (i32.const 1))))
          (drop (memory.grow (i32.const 1)))
          (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (local.get $i))
          (drop (table.grow $t (table.get $t (i32.const 1)) (i32.const 1)))
          (memory.fill (i32.const 16384) (local.get $i) (i32.const 12288))
          (memory.copy (i32.const 32768) (i32.const 2000) (i32.const 12288))
          (memory.copy (i32.const 40960) (i32.const 16384) (i32.const 8192))
          (memory.copy (i32.const 16500) (i32.const 16384) (i32.const 8192))
          (drop (call $random (i32.const 49152) (i32.const 8192)))
          (i32.store8 (i32.add (i32.const 41000) (i32.mul (local.get $i) (i32.const 70))) (local.get $i))
          (i64.store (i32.add (i32.const 49152) (i32.mul (local.get $i) (i32.const 80))) (i64.const -1))
          (global.set $w (i64.add (global.get $w) (i64.load (local.get $at))))))
      (if (i32.eq (local.get $i) (i32.const 57))
        (then (data.drop $late) (elem.drop $passive) (unreachable)))
      (global.set $g (call_indirect $t (type $two) (global.get $g) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
      (i32.store8 (i32.const 3500) (call $deep (i32.and (local.get $i) (i32.const 15))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 60))))))"#;

#[test]
fn checkpoints_of_busy_memory_hold() {
    let mut compared = Compared::default();
    // Test the program with and without a trap in the middle.
    let calm = BUSY.replace("(unreachable)", "(nop)");
    for text in [BUSY.to_owned(), calm] {
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", wat::parse_str(&text).unwrap());
        sandbox.run("record -o run.aft a.wasm");
        sandbox.ok("build --lens full run.aft");
        for interval in [1, 30, 100, 1000] {
            compare(&sandbox, interval, &mut compared);
        }
    }
    assert!(
        compared.runs == 8 && compared.answers > 150,
        "{}",
        compared.answers
    );
    assert!(compared.written > 50, "{}", compared.written);
}
