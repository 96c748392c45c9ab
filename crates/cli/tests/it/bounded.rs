//! No command takes memory out of proportion to the memory that the guest touches.
//!
//! The system reports the peak of a command's memory while it runs. Each guest here once made a
//! command take many times its own memory. The command tracked a range of memory byte by byte, or
//! wrote memory that had only grown, or wrote each activation's locals.

use std::process::Stdio;
use std::time::Duration;

use crate::common::Sandbox;

const MIB: u64 = 1 << 20;
/// The memory that a command may take in addition to the guest's memory, for itself, its buffers
/// and caches. The peaks of equal runs differ by about 80 MiB, because the allocator keeps a varying
/// part of what was freed.
const OWN: u64 = 640 * MIB;

/// Returns the peak so far, or `None` if the system does not report it.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib = line.split_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(kib << 10)
}

/// Runs a command. Returns its exit code, its output, and the most memory observed.
fn measured(sandbox: &Sandbox, words: &str) -> (Option<i32>, String, u64) {
    let errors = sandbox.path("errors.txt");
    let mut child = sandbox
        .command(words.split_whitespace())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let mut most = 0;
    let code = loop {
        most = most.max(peak(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    (code, std::fs::read_to_string(errors).unwrap(), most)
}

/// The questions for every recording.
const COMMANDS: &[&str] = &[
    // These questions use snapshots, because there are no values yet.
    "state --at 50% run.aft",
    "build --lens full run.aft",
    "info --sizes run.aft",
    "verify run.aft",
    "profile run.aft",
    "profile --mode slow run.aft",
    "profile --format html run.aft",
    "profile run.aft run.aft --compare run.aft",
    "trace --level call --limit 5 run.aft",
    "trace --level statement --limit 5 --from 50% run.aft",
    "values --at 0 run.aft",
    "trace --level memory --limit 5 --from 50% run.aft",
    "values --loads run.aft",
    "memory --address 0x7ffffff..0x8000010 run.aft",
    "memory --address 4096..4104 --at 50% run.aft",
    "state --at end run.aft",
    "state --at 50% run.aft",
    "addresses --all run.aft",
    "slice --address 4096 --at end run.aft",
    "slice --forward --at _start#1 run.aft",
    "slice --chop _start#1 --address 4096 --at end run.aft",
    "deps --at _start#1 --depth 3 run.aft",
    "simulate --cache 32768,8,64 --branch-predictor bimodal run.aft",
    "redundancy run.aft",
    "redundancy --expressions run.aft",
    "match run.aft run.aft",
    "diff run.aft run.aft",
    "export --format collapsed run.aft",
];

/// Asks all questions about a guest that touches this amount of memory.
fn bounded(name: &str, text: &str, touched: u64) {
    bounded_in(COMMANDS, name, text, touched);
}

fn bounded_in(commands: &[&str], name: &str, text: &str, touched: u64) {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", text);
    if peak(std::process::id()).is_none() {
        println!("SKIPPED: this system does not tell how much memory a process takes");
        return;
    }
    for words in std::iter::once(&"record -o run.aft a.wasm").chain(commands) {
        let (code, errors, most) = measured(&sandbox, words);
        println!("{name}: {words}: {} MiB", most / MIB);
        assert_eq!(code, Some(0), "{name}: afterimage {words}: {errors}");
        // A command about two recordings may use the memory of two guests.
        let guests = words.matches("run.aft").count() as u64;
        assert!(
            most <= guests * touched + OWN,
            "{name}: afterimage {words} took {} MiB",
            most / MIB
        );
    }
}

#[test]
fn one_fill_of_much_memory_is_one_range() {
    let text = r#"(module (memory (export "memory") 4096) (func (export "_start")
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 0xfffffff))))"#;
    bounded("fill", text, 256 * MIB);
}

#[test]
fn memory_that_only_grew_is_not_there() {
    let text = r#"(module (memory (export "memory") 1) (func (export "_start")
        (block $full (loop $more
            (br_if $full (i32.eq (memory.grow (i32.const 16)) (i32.const -1)))
            (br $more)))
        (i32.store (i32.const 0xf0000000) (i32.const 7))))"#;
    bounded("grow", text, 0);
}

#[test]
fn what_is_copied_at_once_is_one_range() {
    let text = r#"(module (memory (export "memory") 4096) (data (i32.const 0xffffff0) "the last bytes")
        (func (export "_start")
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x8000000))
        (memory.copy (i32.const 0x8000000) (i32.const 7) (i32.const 0x7ff0000))))"#;
    bounded("copy", text, 256 * MIB);
}

/// A way to write memory in small pieces. The data about a byte may take more memory than the byte.
struct OneByOne {
    name: &'static str,
    /// A store to the address in local `$at`.
    store: &'static str,
    /// The number of bytes from one store to the next.
    step: u32,
    /// The number of pages that are written.
    pages: u64,
}

const BYTE: &str = "i32.store8 (local.get $at) (local.get $at)";
const WORD: &str = "i64.store (local.get $at) (i64.extend_i32_u (local.get $at))";

impl OneByOne {
    fn bounded(&self, commands: &[&str]) {
        let Self {
            name,
            store,
            step,
            pages,
        } = self;
        let end = pages << 16;
        let text = format!(
            r#"(module (memory (export "memory") 4096) (func (export "_start") (local $at i32) (local $sum i32)
            (loop $next
                ({store})
                (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const {step}))) (i32.const {end}))))
            (local.set $at (i32.const 0))
            (loop $again
                (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $at))))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const {step}))) (i32.const {end}))))
            (i32.store (i32.const 4096) (local.get $sum))))"#
        );
        bounded_in(commands, name, &text, end);
    }
}

#[test]
fn a_byte_of_each_line_is_not_told_apart_for_ever() {
    OneByOne {
        name: "lines",
        store: BYTE,
        step: 64,
        pages: 2048,
    }
    .bounded(COMMANDS);
}

#[test]
fn words_that_are_written_one_by_one_are_not_told_apart_for_ever() {
    // Leave out the slowest questions. The other tests ask them about fewer written bytes.
    let long = ["slice --forward", "slice --chop", "match"];
    let is_short = |words: &&str| !long.iter().any(|long| words.starts_with(long));
    let commands = COMMANDS.iter().copied().filter(is_short);
    OneByOne {
        name: "words",
        store: WORD,
        step: 8,
        pages: 512,
    }
    .bounded(&Vec::from_iter(commands));
}

#[test]
fn bytes_that_are_written_one_by_one_are_not_told_apart_for_ever() {
    OneByOne {
        name: "bytes",
        store: BYTE,
        step: 1,
        pages: 64,
    }
    .bounded(COMMANDS);
}

/// Among the slow cases, this one takes the most memory.
#[test]
fn most_of_memory_that_is_written_one_by_one_is_not_told_apart_for_ever() {
    let some = &[
        "build --lens full run.aft",
        "slice --address 4096 --at end run.aft",
    ];
    OneByOne {
        name: "most lines",
        store: BYTE,
        step: 64,
        pages: 3072,
    }
    .bounded(some);
    OneByOne {
        name: "most words",
        store: WORD,
        step: 8,
        pages: 3072,
    }
    .bounded(some);
}

#[test]
fn what_is_kept_of_memories_is_kept_of_all_together() {
    let memories = "(memory 80)".repeat(49);
    let stores = Vec::from_iter(
        (0..50).map(|memory| format!("(i32.store8 {memory} (local.get $at) (local.get $at))")),
    );
    let text = format!(
        r#"(module (memory (export "memory") 4096) {memories} (func (export "_start") (local $at i32)
        (loop $next
            {}
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 256))) (i32.const 0x500000))))))"#,
        stores.concat()
    );
    bounded("memories", &text, 50 * 5 * MIB);
}

#[test]
fn tables_and_segments_are_copied_as_ranges() {
    let text = format!(
        r#"(module (memory (export "memory") 4096) (table $t 4000000 9000000 funcref) (table $u 900000 funcref)
        (data $d "{}") (elem $e func {})
        (func (export "_start") (local $i i32)
            (table.fill $t (i32.const 0) (ref.func $f) (i32.const 4000000))
            (table.copy $u $t (i32.const 0) (i32.const 100) (i32.const 900000))
            (drop (table.grow $t (ref.null func) (i32.const 900000)))
            (table.init $t $e (i32.const 777) (i32.const 0) (i32.const 10000))
            (loop $next
                (memory.init $d (i32.mul (local.get $i) (i32.const 400000)) (i32.const 0) (i32.const 400000))
                (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
            (call_indirect $u (i32.const 899999))) (func $f))"#,
        "ab".repeat(200_000),
        "$f ".repeat(10_000)
    );
    // In the engine, a table element takes eight bytes.
    bounded("tables", &text, 40 * MIB + 8 * 5_800_000);
}

#[test]
fn a_byte_of_each_page_costs_not_more_than_the_page() {
    let text = r#"(module (memory (export "memory") 4096) (func (export "_start") (local $at i32)
        (loop $next
            (i32.store8 (local.get $at) (local.get $at))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4096))) (i32.const 0x10000000))))))"#;
    bounded("sparse", text, 256 * MIB);
}

/// The engine has a table of blocks for each value that a label carries.
#[test]
fn results_of_many_blocks_are_not_each_known_in_all_blocks() {
    let block = "(local.set $sum (block (result i32) (br_if 0 (local.get $sum) (i32.load (i32.const 0))) (drop) (i32.const 3)))";
    let text = format!(
        r#"(module (memory (export "memory") 4096) (func (export "_start") (local $sum i32)
        {} (i32.store (i32.const 4096) (local.get $sum))))"#,
        block.repeat(12_000)
    );
    bounded("results", &text, 0);
}
