//! Tests runs that fill the ring between the guest and the consumer several times.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_placement::{Mode, PlanOptions, block_counts};
use afterimage_program::BlockKind;
use afterimage_record::{Cache, Interrupt, RecordOptions, count, trace_paths, verify_words};
use afterimage_testkit::modules::WANDERER;

use crate::harness::{Recording, invoke, progress, quiet, try_record, wat};
use crate::stored::Stored;

/// Counts blocks, hashes their whole sequence, and pauses now and then.
#[derive(Default)]
struct Mixed {
    nodes: Vec<(FuncId, Vec<BlockId>)>,
    counts: Vec<Vec<u64>>,
    sequence: u64,
    paths: u64,
    nap: Option<(u64, Duration)>,
}

impl Mixed {
    fn block(&mut self, function: FuncId, block: BlockId) {
        let (f, b) = (function.index(), block.index());
        if self.counts.len() <= f {
            self.counts.resize(f + 1, Vec::new());
        }
        if self.counts[f].len() <= b {
            self.counts[f].resize(b + 1, 0);
        }
        self.counts[f][b] += 1;
        let mixed = self.sequence ^ (f as u64) << 32 ^ b as u64;
        self.sequence = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn visit(&mut self, node: usize) {
        let function = self.nodes[node].0;
        for i in 0..self.nodes[node].1.len() {
            self.block(function, self.nodes[node].1[i]);
        }
    }
}

impl Sink for Mixed {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.nodes.push((path.function, path.blocks.to_vec()));
        NodeId::new(self.nodes.len() - 1)
    }

    fn path(&mut self, node: NodeId) {
        self.visit(node.index());
        self.paths += 1;
        if let Some((every, time)) = self.nap
            && self.paths.is_multiple_of(every)
        {
            std::thread::sleep(time);
        }
    }

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}

/// Checks that three ways give the same sequence, which has the profile's counts. The ways are
/// re-execution with a fast consumer, re-execution with a slow consumer, and live recording
/// compacted afterwards.
fn agree(bytes: &[u8], command: &afterimage_record::Command, least_words: u64) -> Mixed {
    let live = RecordOptions {
        paths: true,
        ..quiet()
    };
    let interrupt = Interrupt::default();
    let record = |options: &RecordOptions| try_record(bytes, command, options, &interrupt);
    let recording = record(&quiet()).unwrap_or_else(|error| panic!("{error}"));
    let program = &recording.program;
    let (cache, progress) = (Cache::none(), progress());
    let run = recording.run(&cache, &progress);
    let slow = Mixed {
        nap: Some((1 << 19, Duration::from_millis(2))),
        ..Mixed::default()
    };
    let traced = trace_paths(&run, None, Mixed::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(traced.bits > 64 * least_words, "{} bits", traced.bits);
    let quick = traced.sink;
    let slow = trace_paths(&run, None, slow).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(slow.sink.sequence, quick.sequence);

    let plan = PlanOptions::new(Mode::Quick);
    let counts = count(&run, &plan);
    let counts = counts.unwrap_or_else(|error| panic!("{error}")).counts;
    let expected = block_counts(program, &counts).expect("counts of the program");
    for (function, expected) in program.functions.iter().zip(expected) {
        let found = quick.counts.get(function.id.index());
        for ((block, data), expected) in function.cfg.blocks.iter().zip(expected) {
            // Other vertices contain no code.
            if data.kind != BlockKind::Code {
                continue;
            }
            let found = found.and_then(|f| f.get(block.index()));
            let found = found.copied().unwrap_or(0);
            assert_eq!(found, expected, "{:?}, {block:?}", function.id);
        }
    }

    let recording = record(&live).unwrap_or_else(|error| panic!("{error}"));
    let moments = verify_words(&recording.file, program, &recording.bytes).expect("sound words");
    assert!(
        moments.is_some_and(|found| found.moments > 2 * least_words / RING),
        "{moments:?}"
    );
    let path = Stored::of(&recording).path;
    let mut stored = Mixed::default();
    let mut cursor = path.cursor();
    let mut visit = cursor.seek(1).expect("a position");
    while let Some(at) = visit {
        let node = &path.nodes()[at.node];
        for &block in &node.blocks {
            stored.block(node.function, block);
        }
        visit = cursor.next().expect("a step");
    }
    assert_eq!(stored.sequence, quick.sequence);
    quick
}

/// The number of words in the ring's two halves.
const RING: u64 = 1 << 18;

#[test]
fn guests_that_wander() {
    const ROUNDS: u64 = 24_000_000;
    let command = invoke("wander", &[&ROUNDS.to_string()]);
    let mixed = agree(&wat(WANDERER), &command, 2 * RING);
    let mut state = 88_172_645_463_325_252u64;
    let mut odd = 0;
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        odd += state & 1;
    }
    let counts = &mixed.counts[0];
    assert!(counts.contains(&odd), "{odd} rounds were odd");
}

/// Nearly all words are full when an import writes its number, because a table with a thousand
/// functions makes it ten bits wide. So the host, not the guest, reaches the end of a half.
#[test]
fn hosts_that_write_the_last_word_of_a_half() {
    let others: String = (0..1022)
        .map(|i| format!("(func $f{i} (result i32) (i32.const {i}))"))
        .collect();
    let elements: String = (0..1022).map(|i| format!(" $f{i}")).collect();
    let text = format!(
        r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (memory (export "memory") 1)
          (table funcref (elem $yield{elements}))
          {others}
          (func (export "call") (param $rounds i32)
            (loop $again
              (drop (call_indirect (result i32) (i32.const 0)))
              (br_if $again (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))))"#
    );
    let mixed = agree(&wat(&text), &invoke("call", &["2600000"]), RING);
    assert!(mixed.paths >= 2_600_000);
}

/// The counts of a long run guide the placement of counters in the next run, which needs fewer
/// increments for the same counts.
#[test]
fn counts_that_are_kept_weigh_the_next_placement() {
    let mut saved = 0;
    for rare in 0..2 {
        // In each program, one of the arms is rare.
        let choice = format!(
            "(if (i32.eq (i32.const {rare}) (i32.eqz (i32.and (local.get $n) (i32.const 1023))))
              (then (local.set $sum (i32.add (local.get $sum) (i32.const 3))))
              (else (local.set $sum (i32.xor (local.get $sum) (i32.const 5)))))"
        );
        let text = format!(
            r#"(module (func (export "run") (param $n i32) (result i32) (local $sum i32)
              (loop $next
                {choice} {choice} {choice}
                (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
              (local.get $sum)))"#
        );
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::in_folder(folder.path());
        let recorded = |rounds| {
            let command = invoke("run", &[rounds]);
            let recording = try_record(&wat(&text), &command, &quiet(), &Interrupt::default());
            recording.unwrap_or_else(|error| panic!("{error}"))
        };
        let counted = |recording: &Recording, mode, cache: &Cache| {
            let plan = PlanOptions::new(mode);
            let found = count(&recording.run(cache, &progress()), &plan);
            found.unwrap_or_else(|error| panic!("{error}"))
        };
        let kept = || Vec::from_iter(std::fs::read_dir(folder.path().join("counts")));
        counted(&recorded("1000"), Mode::Program, &cache);
        let is_empty = kept().into_iter().flatten().next().is_none();
        assert!(is_empty, "the counts of a short run");
        let recording = recorded("9000000");
        let first = counted(&recording, Mode::Program, &cache);
        let second = counted(&recording, Mode::Program, &cache);
        assert_eq!(first.counts, second.counts);
        assert!(second.increments <= first.increments);
        saved += first.increments - second.increments;
        // Other modes are not weighted.
        let quick = counted(&recording, Mode::Quick, &cache);
        assert_eq!(quick, counted(&recording, Mode::Quick, &Cache::none()));
        // Damage only costs time.
        let file = kept().into_iter().flatten().next().expect("counts");
        let path = file.expect("counts").path();
        let sound = std::fs::read(&path).expect("counts");
        // The mode must not depend on the umask, because a file that others can write is not read.
        let mode = std::fs::metadata(&path).expect("counts").permissions();
        assert_eq!(mode.mode() & 0o077, 0);
        for length in [0, 10, sound.len() / 2] {
            std::fs::write(&path, &sound[..length]).expect("a file");
            let found = counted(&recording, Mode::Program, &cache);
            assert_eq!(first.counts, found.counts, "{length}");
        }
    }
    assert!(saved > 1 << 20, "{saved}");
}
