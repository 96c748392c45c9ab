//! Checks that a re-execution reports as written, in each stretch, exactly the lines and bytes that
//! the machine writes.

use std::collections::BTreeSet;

use afterimage_machine::{
    LINE, LineRun, Machine, Observer, Range, WATCHED, WatchedBytes, WrittenLines, stopped_before,
};
use afterimage_record::{Cache, Progress, Spacing, watch};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};

use tempfile::TempDir;

use super::follow::Path;
use super::{captured, stretches};
use crate::harness::{Recording, exact, invoke, quiet, wat};
use crate::stored::Stored;

/// Pairs of memory and line.
type Lines = BTreeSet<(u32, u64)>;

/// The machine's writes in a stretch.
#[derive(Default)]
struct Written {
    lines: Lines,
    /// The addresses written in the watched region.
    bytes: BTreeSet<u64>,
    /// The region's memory and start.
    watched: (u32, u64),
}

impl Written {
    fn mark(&mut self, range: Range) {
        if range.length > 0 {
            let last = range.address + range.length - 1;
            let lines = range.address / LINE..=last / LINE;
            self.lines.extend(lines.map(|line| (range.memory, line)));
            let (memory, first) = self.watched;
            if memory == range.memory {
                let bytes = range.address.max(first)..(last + 1).min(first + WATCHED);
                self.bytes.extend(bytes);
            }
        }
    }

    /// Takes everything written since the last call.
    fn take(&mut self) -> (Lines, BTreeSet<u64>) {
        (
            std::mem::take(&mut self.lines),
            std::mem::take(&mut self.bytes),
        )
    }
}

impl Observer for Written {
    const REGISTERS: bool = false;

    fn write(&mut self, _: usize, range: Range) {
        self.mark(range);
    }

    fn copy(&mut self, _: usize, _: Range, to: Range) {
        self.mark(to);
    }

    fn host_write(&mut self, range: Range) {
        self.mark(range);
    }
}

/// Returns the lines that the machine writes in each stretch, and the written bytes of a region.
/// Stretches end at `times`.
fn followed(
    recording: &Recording,
    path: &Path,
    times: &[u64],
    watched: (u32, u64),
) -> Vec<(Lines, BTreeSet<u64>)> {
    let log = recording.file.log().expect("a log");
    let mut machine = Machine::new(&recording.program, &recording.bytes, log).expect("a machine");
    path.define(&mut machine).expect("nodes");
    let mut times = times.iter().copied().peekable();
    let mut all = Vec::new();
    let mut written = Written {
        watched,
        ..Written::default()
    };
    for (position, &node) in path.visits.iter().enumerate() {
        while times.next_if_eq(&machine.time()).is_some() {
            all.push(written.take());
        }
        let end = &recording.recorded.end;
        let stopped = (position + 1 == path.visits.len())
            .then(|| stopped_before(&recording.program, &recording.bytes, end));
        let length = path.length(node);
        let done = match stopped.flatten() {
            Some(stopped) => machine.step_before(node, length, stopped, &mut written),
            None => machine.step(node, length, &mut written),
        };
        done.expect("a step");
    }
    while times.next_if_eq(&machine.time()).is_some() {
        all.push(written.take());
    }
    assert_eq!(times.next(), None, "the run is that long");
    all.push(written.take());
    all
}

fn lines(runs: &[LineRun]) -> Lines {
    let lines = runs.iter().flat_map(|run| {
        let first = u64::from(run.first);
        (first..first + u64::from(run.count)).map(|line| (run.memory, line))
    });
    let found = Lines::from_iter(lines);
    let count: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    assert_eq!(found.len() as u64, count, "each line once");
    assert!(runs.is_sorted());
    found
}

/// Compares the writes in each stretch, as stored in a file with added snapshots, with the machine.
/// If `watched`, also compares the written bytes of a region. Returns the machine's lines.
pub fn agree(recording: &Recording, path: &Path, folder: &TempDir, watched: bool) -> Vec<Lines> {
    let file = stretches::added(folder);
    let found = stretches::directory(&file, &recording.program);
    let summaries = found.directory.summaries.iter().skip(1);
    let times = Vec::from_iter(summaries.map(|summary| summary.before));
    let written = WrittenLines::open(&file).expect("lines").expect("lines");
    let (memory, address) = somewhere(&written);
    let region = (memory, WatchedBytes::region(address));
    let all = followed(recording, path, &times, region);
    let (all, bytes): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    if watched {
        watched_ones(recording, (region, address), written.clocks(), &bytes);
    }
    assert_eq!(written.stretches(), all.len());
    assert_eq!(written.clocks(), found.clocks);
    for (stretch, expected) in all.iter().enumerate() {
        let found = lines(&written.lines(stretch).expect("a stretch"));
        assert_eq!(
            found,
            *expected,
            "stretch {stretch}, {}",
            recording.ending()
        );
    }
    assert!(written.lines(all.len()).is_err());
    last_ones(&written, &all);
    forged(&file, all.len() as u64);
    all
}

/// Returns a memory and an address in a written line. If there is none, and sometimes even if there
/// is one, returns any address.
fn somewhere(written: &WrittenLines) -> (u32, u64) {
    let mut random = SplitMix64(written.stretches() as u64);
    let stretch = random.below(written.stretches());
    let runs = written.lines(stretch).expect("a stretch");
    let run = (!runs.is_empty()).then(|| runs[random.below(runs.len())]);
    let run = run.filter(|_| random.below(8) > 0);
    run.map_or((0, 7000), |run| {
        (
            run.memory,
            u64::from(run.first) * LINE + random.below(64) as u64,
        )
    })
}

/// Checks that watching a region finds the last stretch that wrote a byte of it, up to any stretch.
fn watched_ones(
    recording: &Recording,
    ((memory, first), address): ((u32, u64), u64),
    ends: &[u64],
    bytes: &[BTreeSet<u64>],
) {
    let mut random = SplitMix64(first);
    if recording.program.memories <= memory {
        return;
    }
    let ends = match random.below(2) {
        0 => ends,
        _ => &ends[..random.below(ends.len() + 1)],
    };
    let (cache, progress) = (Cache::none(), std::sync::Arc::new(|_| {}) as Progress);
    let run = recording.run(&cache, &progress);
    let found = watch(&run, ends, memory, address).expect("what is written");
    assert_eq!(found.stretches(), ends.len());
    assert!(found.has(memory, address) && !found.has(memory, first + WATCHED));
    for _ in 0..500 {
        let end = random.below(ends.len() + 1);
        let address = match random.below(2) {
            0 => first + random.below(WATCHED as usize) as u64,
            _ => first + (address + random.below(80) as u64) % WATCHED,
        };
        let expected = bytes[..end]
            .iter()
            .rposition(|bytes| bytes.contains(&address));
        let found = found.last_before(end, address);
        assert_eq!(found, expected, "{end}, {address}, {}", recording.ending());
    }
}

/// Checks that the last stretch that wrote a range is found from any stretch.
fn last_ones(written: &WrittenLines, all: &[Lines]) {
    let any = Vec::from_iter(all.iter().flatten().copied().take(5000));
    let mut random = SplitMix64(all.len() as u64);
    for _ in 0..100 {
        let (memory, line) = match any.len() {
            0 => (0, 7),
            count => any[random.below(count)],
        };
        let address = (line * LINE + random.below(200) as u64).saturating_sub(70);
        let length = random.below(150) as u64;
        let stretch = random.below(all.len() + 1);
        let touched = |lines: &Lines| {
            let mut bytes = address..address + length;
            bytes.any(|at| lines.contains(&(memory, at / LINE)))
        };
        let expected = all[..stretch].iter().rposition(touched);
        let found = written.last_before(stretch, memory, address, length);
        assert_eq!(found.expect("an answer"), expected);
    }
    assert!(written.last_before(all.len() + 1, 0, 0, 1).is_err());
    assert_eq!(written.last_before(0, 0, 0, u64::MAX).unwrap(), None);
}

/// Checks that forged bytes with correct checksums are either rejected or valid lines that differ.
fn forged(file: &TraceFile, seed: u64) {
    let mut section = file.last(Kind::WRITTEN).expect("lines");
    let mut original = Vec::new();
    while section.advance().expect("a chunk") {
        original.push(section.bytes().to_vec());
    }
    let mut random = SplitMix64(seed);
    for round in 0..8 {
        let mut chunks = original.clone();
        let last = chunks.len() - 1;
        // In every second round, change the index.
        let chosen = if round % 2 == 0 {
            last
        } else {
            random.below(last + 1)
        };
        let chunk = &mut chunks[chosen];
        if !chunk.is_empty() {
            let at = random.below(chunk.len());
            chunk[at] = random.below(256) as u8;
            if random.below(4) == 0 {
                chunk.truncate(at);
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("a.aft");
        let out = TraceWriter::create(&at, Existing::Kept).expect("a file");
        let mut section = out.section(Kind::WRITTEN, None).expect("a section");
        let index = chunks.pop().expect("an index");
        for chunk in chunks {
            section.put(0, &chunk).expect("a chunk");
        }
        section.finish(0, &index).expect("a chunk");
        out.commit().expect("a state");
        let bytes = std::fs::read(&at).expect("a file");
        let file = TraceFile::from_bytes(bytes).expect("a file");
        let Ok(Some(written)) = WrittenLines::open(&file) else {
            continue;
        };
        for stretch in 0..written.stretches().min(100) {
            let _ = written.lines(stretch);
            let _ = written.last_before(stretch, 0, 1000, 100);
        }
    }
}

/// Returns all operators that write a value to memory: their name, the operands after the address,
/// and the number of bytes written. For lane operators, the lane number precedes the operands.
fn operators() -> Vec<(String, String, u64)> {
    let mut all = Vec::new();
    let sizes = [
        ("i32.store", 4, "i32"),
        ("i32.store8", 1, "i32"),
        ("i32.store16", 2, "i32"),
        ("i64.store", 8, "i64"),
        ("i64.store8", 1, "i64"),
        ("i64.store16", 2, "i64"),
        ("i64.store32", 4, "i64"),
        ("f32.store", 4, "f32"),
        ("f64.store", 8, "f64"),
    ];
    for (name, size, ty) in sizes {
        all.push((name.to_owned(), format!("({ty}.const 3)"), size));
    }
    let vector = "(v128.const i64x2 1 2)";
    all.push(("v128.store".to_owned(), vector.to_owned(), 16));
    for size in [1, 2, 4, 8] {
        let name = format!("v128.store{}_lane", 8 * size);
        all.push((name, format!("1 {vector}"), size));
    }
    all
}

/// Returns all atomic operators that write a value to memory, in the same form.
fn atomics() -> Vec<(String, String, u64)> {
    let mut all = Vec::new();
    let places = [
        ("i32", "", "", 4),
        ("i32", "8", "_u", 1),
        ("i32", "16", "_u", 2),
        ("i64", "", "", 8),
        ("i64", "8", "_u", 1),
        ("i64", "16", "_u", 2),
        ("i64", "32", "_u", 4),
    ];
    for (ty, width, unsigned, size) in places {
        let one = format!("({ty}.const 1)");
        all.push((format!("{ty}.atomic.store{width}"), one.clone(), size));
        for operation in ["add", "sub", "and", "or", "xor", "xchg", "cmpxchg"] {
            let name = format!("{ty}.atomic.rmw{width}.{operation}{unsigned}");
            let values = match operation {
                "cmpxchg" => format!("{one} {one}"),
                _ => one.clone(),
            };
            all.push((name, values, size));
        }
    }
    all
}

#[test]
fn all_that_writes_memory_is_marked() {
    // The stop clock is polled at each place, so each operator has its own stretch.
    let mut body = String::new();
    let mut expected = Vec::new();
    let mut put = |memory: u32, text: &str, lines: &[u64]| {
        body += &format!("(call $poll (i32.const 1)) {text}\n");
        expected.push(Lines::from_iter(lines.iter().map(|&line| (memory, line))));
    };
    for memory in 0..3 {
        let ty = if memory == 1 { "i64" } else { "i32" };
        for (name, values, size) in operators() {
            // A write that ends at the end of a line, a write that crosses that end, and a write
            // whose address comes from the offset alone.
            for (base, offset) in [
                (640 - size, 0),
                (641 - size, 0),
                (128, 6),
                (70_000, 127 - size),
            ] {
                let text =
                    format!("({name} {memory} offset={offset} ({ty}.const {base}) {values})");
                // Lane immediates precede the operands.
                let text = match values.strip_prefix("1 ") {
                    Some(vector) => {
                        format!("({name} {memory} offset={offset} 1 ({ty}.const {base}) {vector})")
                    }
                    None => text,
                };
                let first = (base + offset) / 64;
                put(memory, &text, &[first, (base + offset + size - 1) / 64]);
            }
        }
        for (name, values, size) in atomics() {
            let drop = if name.contains("rmw") { "drop" } else { "" };
            let text = format!("({name} {memory} offset={size} ({ty}.const 632) {values}) {drop}");
            put(memory, &text, &[(632 + size) / 64]);
        }
        for length in [0, 1, 64, 65, 66, 200] {
            let (to, last) = (64 * 40 - 1, 64 * 40 + length - 2);
            let lines = match length {
                0 => Vec::new(),
                _ => Vec::from_iter(to / 64..=last / 64),
            };
            put(
                memory,
                &format!(
                    "(memory.fill {memory} ({ty}.const {to}) (i32.const 7) ({ty}.const {length}))"
                ),
                &lines,
            );
            put(
                memory,
                &format!(
                    "(memory.init {memory} $d ({ty}.const {to}) (i32.const 3) (i32.const {length}))"
                ),
                &lines,
            );
            for from in 0..3 {
                let (other, count) = match (ty, from) {
                    ("i64", 1) => ("i64", "i64"),
                    (_, 1) => ("i64", "i32"),
                    _ => ("i32", "i32"),
                };
                put(
                    memory,
                    &format!(
                        "(memory.copy {memory} {from} ({ty}.const {to}) ({other}.const 2500) ({count}.const {length}))"
                    ),
                    &lines,
                );
            }
        }
    }
    let text = format!(
        r#"(module (memory (export "memory") 2 9) (memory i64 2) (memory 2)
          (data $d "{}")
          (func $poll (param i32)
            (if (local.get 0) (then (call $poll (i32.sub (local.get 0) (i32.const 1))))))
          (func (export "run") {body}))"#,
        "x".repeat(300)
    );
    let recording = exact(&wat(&text), &invoke("run", &[]), &quiet());
    let path = Path::of(&Stored::of(&recording));
    let lines = |polls| {
        let (_, folder) = captured::taken(&recording, Spacing::polls(polls), false);
        agree(&recording, &path, &folder.expect("a file"), true)
    };
    let (some, all) = (lines(7), lines(1));
    let together = |all: &[Lines]| all.iter().flatten().copied().collect::<Lines>();
    assert_eq!(together(&some), together(&all));
    let found = Vec::from_iter(all.into_iter().filter(|lines| !lines.is_empty()));
    expected.retain(|lines| !lines.is_empty());
    assert!(expected.len() > 400);
    assert_eq!(found, expected);
}

#[test]
fn a_store_that_traps_marks_nothing() {
    // This write would cross the memory's end, as would a fill.
    for last in [
        "(i64.store (i32.const 65532) (i64.const 1))",
        "(memory.fill (i32.const 65000) (i32.const 1) (i32.const 537))",
        "(drop (i32.atomic.rmw.add (i32.const 65534) (i32.const 1)))",
        "(v128.store offset=4294967295 (i32.const 1) (v128.const i64x2 1 2))",
    ] {
        let text = format!(
            r#"(module (memory (export "memory") 1)
              (func (export "run") (i32.store (i32.const 64) (i32.const 1)) {last} (i32.store (i32.const 640) (i32.const 1))))"#
        );
        let recording = exact(&wat(&text), &invoke("run", &[]), &quiet());
        let path = Path::of(&Stored::of(&recording));
        let (_, folder) = captured::taken(&recording, Spacing::polls(u64::MAX), false);
        let all = agree(&recording, &path, &folder.expect("a file"), true);
        assert_eq!(all, [Lines::from([(0, 1)])]);
    }
}
