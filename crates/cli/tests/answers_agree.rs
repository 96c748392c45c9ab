//! Every way to an answer leads to the same one.
//!
//! A run is kept in several files: with nothing but its path, so that it is followed from its beginning; with values and checkpoints as usual; with epochs and intervals so
//! short that most questions lead from one to another; and with other questions' answers added to that. Each question is put to all of them, as text and as JSON, and all must say
//! the same. What they say is compared with a naive reading of the run's whole trace, entry by entry.

mod common;
#[path = "common/generated.rs"]
mod generated;
#[path = "common/memory_programs.rs"]
mod memory_programs;
#[path = "common/recorded.rs"]
mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools;
use afterimage_trace::TraceWriter;
use afterimage_wet::checkpoint::CheckpointWriter;
use afterimage_wet::{EpochWriter, Index, LeftOut, Run};
use common::Sandbox;
use generated::{each_recording, each_recording_of, seeds};
use memory_programs::memory_program;
use recorded::Recorded;
use serde_json::{Value as Json, json};

/// More blocks would take long.
const MOST_BLOCKS: u64 = 20_000;

/// Files of one run. The first is followed from its beginning.
const FOLLOWED: &str = "followed.aft";
const USUAL: &str = "usual.aft";
const TINY: &str = "tiny.aft";
const MORE: &str = "more.aft";
const STORED: [&str; 3] = [USUAL, TINY, MORE];
const ALL: [&str; 4] = [FOLLOWED, USUAL, TINY, MORE];

/// Builds the values of a copy of a recording anew, with short epochs and intervals.
fn build_tiny(sandbox: &Sandbox, recorded: &Recorded, name: &str, epoch: usize, interval: u64) {
    let run = recorded.run(None);
    let run = Run {
        program: run.program,
        bytes: run.module,
        path: run.path,
        continuations: run.continuations,
        window: 1..=u64::MAX,
        left_out: &LeftOut::NOTHING,
        stopped: run.stopped,
        epoch,
    };
    let out = TraceWriter::append(&sandbox.path(name)).unwrap();
    let mut epochs = EpochWriter::new(&out).unwrap();
    let mut checkpoints = CheckpointWriter::new(&out).unwrap();
    let built = run.build_with_checkpoints(
        recorded.file.log().unwrap(),
        |before, epoch| epochs.put(before, &epoch),
        (interval, |vertex: &_| checkpoints.put(vertex)),
        |_| {},
    );
    let index = Index {
        anew: true,
        ..built.unwrap()
    };
    checkpoints.finish(index.nodes, interval).unwrap();
    epochs.finish(&out, &index).unwrap();
    out.commit().unwrap();
}

/// Makes the files of `run.aft`.
fn files(sandbox: &Sandbox, recorded: &Recorded, (epoch, interval): (usize, u64)) {
    let copy = |from: &str, to: &str| {
        fs::copy(sandbox.path(from), sandbox.path(to)).unwrap();
    };
    copy("run.aft", FOLLOWED);
    copy("run.aft", USUAL);
    sandbox.ok(&format!("build --lens full {USUAL}"));
    copy(USUAL, TINY);
    build_tiny(sandbox, recorded, TINY, epoch, interval);
    copy(TINY, MORE);
    sandbox.ok(&format!("profile {MORE}"));
    sandbox.ok(&format!("simulate --branch-predictor bimodal {MORE}"));
    // A program without memory has nothing to slice.
    sandbox.run(&format!(
        "slice --at end --address 0..15 --save kept {MORE}"
    ));
}

/// Puts a question, in which FILE is the file, to some files. What all of them say: the exit code, standard output and error.
#[track_caller]
fn asked(sandbox: &Sandbox, words: &str, names: &[&str]) -> (Option<i32>, String) {
    let mut said: Option<(Option<i32>, String, String)> = None;
    for name in names {
        // What is asked may build what it needs: the next question finds the file as it was.
        fs::copy(sandbox.path(name), sandbox.path("asked.aft")).unwrap();
        let ran = sandbox.run(&words.replace("FILE", "asked.aft"));
        assert!(!ran.stderr.contains("panicked"), "{words}: {}", ran.stderr);
        let refused = ran.code != Some(0);
        let error = if refused { ran.stderr } else { String::new() };
        let now = (ran.code, ran.stdout, error);
        match &said {
            None => said = Some(now),
            Some(before) => assert_eq!(before, &now, "{words}: {name} against {}", names[0]),
        }
    }
    let (code, out, _) = said.expect("a file");
    (code, out)
}

/// The same as text, whose content is not looked at further, and as JSON, line by line.
#[track_caller]
fn json(sandbox: &Sandbox, words: &str, names: &[&str]) -> Option<Vec<Json>> {
    let text = asked(sandbox, words, names);
    let (code, out) = asked(sandbox, &format!("{words} --format json"), names);
    assert_eq!(text.0, code, "{words}: text and JSON");
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    (code == Some(0)).then(|| lines.collect())
}

fn number(value: &Json) -> u64 {
    value.as_u64().expect("a number")
}

fn bits(value: &Json) -> u128 {
    let text = value["bits"].as_str().expect("bits");
    u128::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The bytes that an entry of a trace accesses in memory 0.
fn addresses(access: &Json) -> Range<u64> {
    if number(&access["memory"]) != 0 {
        return 0..0;
    }
    let first = number(&access["address"]);
    first..first + number(&access["bytes"])
}

/// What an entry reads, and what it writes.
fn touched(entry: &Json) -> [Range<u64>; 2] {
    let access = || addresses(&entry["access"]);
    match entry["kind"].as_str().expect("a kind") {
        "load" | "host read" => [access(), 0..0],
        "store" | "fill" | "init" | "host write" => [0..0, access()],
        "copy" => [addresses(&entry["from"]), access()],
        _ => [0..0, 0..0],
    }
}

/// The byte that an entry wrote to an address, if it says.
fn byte(entry: &Json, address: u64) -> Option<u8> {
    let at = (address - addresses(&entry["access"]).start) as usize;
    match entry["kind"].as_str()? {
        "store" => Some((bits(&entry["value"]) >> (8 * at)) as u8),
        "fill" => Some(number(&entry["byte"]) as u8),
        _ => {
            let digits = entry["contents"].as_str()?;
            u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()
        }
    }
}

/// A run as its whole trace tells it.
struct Naive {
    /// All steps, in order.
    steps: Vec<Json>,
    /// Those that access memory 0.
    accesses: Vec<Json>,
    /// What each of these reads and writes.
    ranges: Vec<[Range<u64>; 2]>,
    /// The addresses that were accessed.
    touched: BTreeSet<u64>,
    length: u64,
}

impl Naive {
    fn of(sandbox: &Sandbox, length: u64) -> Self {
        let (_, out) = asked(sandbox, "trace FILE --level statement --format json", &ALL);
        let all = out.lines().skip(1);
        let steps = Vec::from_iter(all.map(|line| serde_json::from_str::<Json>(line).unwrap()));
        let (_, out) = asked(sandbox, "trace FILE --level memory --format json", &ALL);
        let all = out.lines().skip(1);
        let own = all.map(|line| serde_json::from_str::<Json>(line).unwrap());
        let own = own.filter(|entry| entry["kind"] != "trap");
        let accesses = Vec::from_iter(own);
        let ranges = Vec::from_iter(accesses.iter().map(touched));
        let first_ones = ranges.iter().flatten().cloned();
        Self {
            touched: first_ones.flat_map(|range| range.take(64)).collect(),
            ranges,
            steps,
            accesses,
            length,
        }
    }

    /// The last entry before the one at a position that wrote a byte.
    fn writer(&self, address: u64, before: usize) -> Option<&Json> {
        let mut earlier = self.ranges[..before].iter();
        let at = earlier.rposition(|[_, written]| written.contains(&address));
        at.map(|at| &self.accesses[at])
    }

    /// The first entry from the one at a position on that reads a byte, or writes it.
    fn next(&self, address: u64, from: usize, which: usize) -> Option<&Json> {
        let mut later = self.ranges[from..].iter();
        let at = later.position(|ranges| ranges[which].contains(&address));
        at.map(|at| &self.accesses[from + at])
    }
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    runs: u64,
    bytes: u64,
    loads: u64,
    values: u64,
    states: u64,
}

/// What memory held, byte by byte.
fn memory(sandbox: &Sandbox, naive: &Naive, (at, before): (&str, usize), compared: &mut Compared) {
    let mut rest = naive.touched.clone();
    while let Some(first) = rest.pop_first() {
        let last = first + 60;
        rest = rest.split_off(&(last + 1));
        let words = format!("memory FILE --address {first}..{last} --at {at}");
        if rest.is_empty() {
            asked(sandbox, &words, &ALL);
        }
        let (code, out) = asked(sandbox, &format!("{words} --format json"), &ALL);
        if code != Some(0) {
            continue;
        }
        let answer: Json = serde_json::from_str(&out).unwrap();
        let contents = answer["contents"].as_str().expect("contents");
        let mut next = first;
        for part in answer["parts"].as_array().expect("parts") {
            let start = number(&part["address"]);
            assert_eq!(start, next, "{words}");
            next = start + number(&part["bytes"]);
            for address in start..next {
                let said = |key: &str| Some(&part[key]).filter(|entry| !entry.is_null());
                let writer = naive.writer(address, before);
                assert_eq!(said("written"), writer, "{words}: {address}, written");
                let reader = naive.next(address, before, 0);
                assert_eq!(said("next_read"), reader, "{words}: {address}, next read");
                let writing = naive.next(address, before, 1);
                let found = said("next_written");
                assert_eq!(found, writing, "{words}: {address}, next written");
                let place = 2 * (address - first) as usize;
                let held = u8::from_str_radix(&contents[place..place + 2], 16).unwrap();
                if let Some(byte) = writer.and_then(|entry| byte(entry, address)) {
                    assert_eq!(held, byte, "{words}: {address}, contents");
                }
                compared.bytes += 1;
            }
        }
        assert_eq!(next, last + 1, "{words}");
    }
}

/// Moments: as text, with the first access that comes after it.
fn moments(naive: &Naive, random: &mut SplitMix64) -> Vec<(String, usize)> {
    let mut moments = vec![("end".to_owned(), naive.accesses.len())];
    for _ in 0..2 {
        let time = 1 + random.below(naive.length as usize) as u64;
        let early = |entry: &Json| number(&entry["t"]) < time;
        moments.push((format!("t={time}"), naive.accesses.partition_point(early)));
    }
    if !naive.accesses.is_empty() {
        let at = random.below(naive.accesses.len());
        let entry = &naive.accesses[at];
        if entry["kind"] == "store" || entry["kind"] == "load" {
            let same = |other: &&Json| other["offset"] == entry["offset"];
            let number = naive.accesses[..=at].iter().filter(same).count();
            moments.push((format!("@{}#{number}", entry["offset"]), at));
        }
    }
    moments
}

/// The values of statements, by offset, in order.
fn values_of(naive: &Naive) -> BTreeMap<u64, Vec<&Json>> {
    let mut values: BTreeMap<u64, Vec<&Json>> = BTreeMap::new();
    for entry in &naive.steps {
        let kinds = ["value", "load", "store", "branch", "set global", "grow"];
        if kinds.iter().any(|kind| entry["kind"] == *kind) {
            let offset = number(&entry["offset"]);
            values.entry(offset).or_default().push(entry);
        }
    }
    values
}

fn values(sandbox: &Sandbox, naive: &Naive, compared: &mut Compared) {
    let functions = naive.steps.iter().map(|entry| number(&entry["function"]));
    let offsets = values_of(naive);
    for function in BTreeSet::from_iter(functions) {
        let words = format!("values FILE --at {function} --limit 100000");
        let Some(answer) = json(sandbox, &words, &STORED) else {
            continue;
        };
        for statement in answer[0]["statements"].as_array().expect("statements") {
            let offset = number(&statement["offset"]);
            let Some(expected) = offsets.get(&offset) else {
                continue;
            };
            let instances = statement["instances"].as_array().expect("instances");
            let done = instances.iter().filter(|one| one["trapped"] != json!(true));
            let found = Vec::from_iter(done);
            let trapped = instances.len() - found.len();
            assert_eq!(
                found.len(),
                expected.len(),
                "{words}: @{offset}, {trapped} trapped"
            );
            for (one, entry) in found.iter().zip(expected) {
                assert_eq!(one["time"], entry["t"], "{words}: @{offset}");
                let given = one["values"].as_array().expect("values");
                let last = given.last().expect("a value");
                assert_eq!(
                    bits(last),
                    bits(&entry["value"]),
                    "{words}: @{offset} {one}"
                );
                compared.values += 1;
            }
        }
    }
}

/// Who wrote what loads read: as dependences, and as the first links back.
fn loads(sandbox: &Sandbox, naive: &Naive, random: &mut SplitMix64, compared: &mut Compared) {
    let loads = (0..naive.accesses.len()).filter(|&at| naive.accesses[at]["kind"] == "load");
    let loads = Vec::from_iter(loads);
    for _ in 0..loads.len().min(4) {
        let at = loads[random.below(loads.len())];
        let entry = &naive.accesses[at];
        let same = |other: &&Json| other["offset"] == entry["offset"];
        let execution = naive.accesses[..=at].iter().filter(same).count();
        let place = format!("@{}#{execution}", entry["offset"]);
        let words = format!("addresses FILE --at {place}");
        json(sandbox, &words, &ALL);
        let words = format!(
            "values FILE --at @{} --instances t={}",
            entry["offset"], entry["t"]
        );
        json(sandbox, &words, &STORED);
        let words = format!("deps FILE --at {place} --data");
        let answer = json(sandbox, &words, &STORED).expect("dependences");
        let all = answer[0]["statements"][0]["dependences"].as_array();
        let all = all.expect("dependences").iter();
        let mut found = Vec::new();
        for one in all.filter(|one| one["role"] == "memory") {
            let count = one["bytes"]
                .as_u64()
                .unwrap_or_else(|| number(&entry["access"]["bytes"]));
            for _ in 0..count {
                found.push((one["offset"].as_u64(), one["time"].as_u64()));
            }
        }
        let writers = addresses(&entry["access"]).map(|address| naive.writer(address, at));
        let writers = Vec::from_iter(writers);
        let kinds = ["store", "fill"];
        let is_plain = |writer: &Option<&Json>| {
            writer.is_none_or(|writer| kinds.iter().any(|kind| writer["kind"] == *kind))
        };
        if writers.iter().all(is_plain) && entry["access"]["memory"] == json!(0) {
            let of = |writer: &Option<&Json>| {
                let number = |key: &str| writer.and_then(|writer| writer[key].as_u64());
                (number("offset"), number("t"))
            };
            assert_eq!(found, Vec::from_iter(writers.iter().map(of)), "{words}");
            let words = format!("why FILE --at {place} --steps 20");
            let answer = json(sandbox, &words, &STORED).expect("a way back");
            let moves = answer.get(1).and_then(|step| step["moves"].as_array());
            if let Some([load, store, ..]) = moves.map(Vec::as_slice)
                && load["how"] == "loaded"
                && store["how"] == "stored"
            {
                let times = Vec::from_iter(writers.iter().flatten().map(|writer| &writer["t"]));
                assert!(times.contains(&&store["place"]["time"]), "{words}: {store}");
            }
            compared.loads += 1;
        }
    }
}

/// Addresses and values that are listed by instruction.
fn lists(sandbox: &Sandbox, naive: &Naive) {
    for (words, kinds, key) in [
        (
            "addresses FILE --all --each",
            &["load", "store"][..],
            "addresses",
        ),
        ("values FILE --loads --each", &["load"], "values"),
    ] {
        let answer = json(sandbox, words, &ALL).expect("a list");
        let mut found: BTreeMap<u64, Vec<Json>> = BTreeMap::new();
        for row in &answer[1..] {
            let own = row[key].as_array().expect("a list").iter().cloned();
            found.entry(number(&row["offset"])).or_default().extend(own);
        }
        let mut expected: BTreeMap<u64, Vec<Json>> = BTreeMap::new();
        let own = naive.accesses.iter();
        for entry in own.filter(|entry| kinds.iter().any(|kind| entry["kind"] == *kind)) {
            let value = match key {
                "addresses" => entry["access"]["address"].clone(),
                _ => entry["value"]["bits"].clone(),
            };
            let of = expected.entry(number(&entry["offset"])).or_default();
            of.push(value);
        }
        assert_eq!(found, expected, "{words}");
    }
}

/// The stack and the globals.
fn states(sandbox: &Sandbox, naive: &Naive, at: &str, compared: &mut Compared) {
    let words = format!("state FILE --at {at} --globals --depth 1000");
    let Some(answer) = json(sandbox, &words, &STORED) else {
        return;
    };
    let time = number(&answer[0]["time"]);
    if answer[0]["before"] == "block" {
        for global in answer[0]["globals"].as_array().expect("globals") {
            let set = naive.steps.iter().rev().find(|entry| {
                entry["kind"] == "set global"
                    && entry["global"] == global["index"]
                    && number(&entry["t"]) < time
            });
            if let Some(set) = set {
                assert_eq!(bits(&set["value"]), bits(global), "{words}: {global}");
            }
        }
    }
    compared.states += 1;
}

fn compare(sandbox: &Sandbox, sizes: (usize, u64), compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    let length = recorded.path.length();
    if !(1..=MOST_BLOCKS).contains(&length) {
        return;
    }
    files(sandbox, &recorded, sizes);
    let naive = Naive::of(sandbox, length);
    let mut random = SplitMix64(length);
    for (at, before) in moments(&naive, &mut random) {
        memory(sandbox, &naive, (&at, before), compared);
        states(sandbox, &naive, &at, compared);
    }
    lists(sandbox, &naive);
    values(sandbox, &naive, compared);
    loads(sandbox, &naive, &mut random, compared);
    let (a, b) = (random.below(length as usize), random.below(length as usize));
    let (first, last) = (1 + a.min(b), 1 + a.max(b));
    for level in ["statement", "memory"] {
        let words = format!("trace FILE --level {level} --from t={first} --to t={last}");
        json(sandbox, &words, &ALL);
        json(sandbox, &format!("{words} --reverse"), &ALL);
        json(
            sandbox,
            &format!("trace FILE --level {level} --last 9"),
            &ALL,
        );
    }
    json(sandbox, "why FILE --trap", &STORED);
    compared.runs += 1;
}

#[test]
fn generated_programs_have_one_answer() {
    let mut compared = Compared::default();
    each_recording(seeds(10), 3, "paths", |sandbox| {
        compare(sandbox, (40, 11), &mut compared);
    });
    assert!(compared.runs > 0 && compared.values > 100, "{compared:?}");
}

#[test]
fn programs_that_use_memory_have_one_answer() {
    let mut compared = Compared::default();
    for seed in 0..seeds(2) {
        println!("seed {seed}");
        let module = wat::parse_str(memory_program(seed)).unwrap();
        each_recording_of(&module, 2, "paths", |sandbox| {
            compare(sandbox, (60, 23), &mut compared);
        });
    }
    assert!(compared.bytes > 100 && compared.loads > 0, "{compared:?}");
}

/// Stores of every kind, of values and to addresses that are constants which the same code uses again and again; the host; several entries, of which the first ones end deeper
/// than the last begins; exceptions; a loop that writes to nothing of it for many intervals.
const BY_HAND: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1 4)
  (tag $e (param i32))
  (global $g (mut i32) (i32.const 0))
  (data (i32.const 128) "from the module")
  (data $later "initialised later")
  (func $inner (i32.store (i32.const 8) (i32.const 8)) (global.set $g (i32.add (global.get $g) (i32.const 8))))
  (func $start (call $inner))
  (start $start)
  (func (export "_initialize") (call $start))
  (func $throws (param i32) (i32.store8 offset=4 (i32.const 12) (local.get 0)) (throw $e (i32.const 12)))
  (func $write (param $i i32)
    (i32.store (i32.const 16) (i32.add (i32.mul (local.get $i) (i32.const 3)) (i32.const 16)))
    (i32.store offset=4 (i32.const 16) (i32.add (local.get $i) (i32.const 16)))
    (i32.store offset=8 (i32.const 16) (i32.add (i32.load offset=8 (i32.const 16)) (local.get $i)))
    (i64.store offset=16 (i32.const 16) (i64.const 16))
    (i64.store32 offset=24 (i32.const 16) (i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 0x100000001)))
    (i32.store16 offset=28 (i32.const 16) (i32.const -3))
    (i32.store8 offset=30 (i32.const 16) (i32.const -3))
    (f64.store offset=32 (i32.const 16) (f64.const 16))
    (f32.store offset=40 (i32.const 16) (f32.const 16))
    (v128.store offset=48 (i32.const 16) (i32x4.splat (i32.const 16)))
    (v128.store16_lane offset=66 3 (i32.const 16) (i16x8.splat (i32.const 3)))
    (memory.fill (i32.const 100) (i32.const 3) (i32.const 7))
    (memory.copy (i32.const 110) (i32.const 16) (i32.const 9))
    (memory.init $later (i32.const 130) (i32.const 3) (i32.const 5)))
  (func (export "run") (param $n i32) (result i32) (local $i i32)
    (loop $again
      (call $write (local.get $i))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 5))))
    (drop (call $random (i32.const 150) (i32.const 8)))
    (drop (block (result i32) (try_table (result i32) (catch $e 0) (call $throws (i32.const 3)) (i32.const 3))))
    (local.set $i (i32.const 0))
    (loop $spin
      (i32.store offset=184 (i32.const 16) (i32.add (i32.mul (i32.load offset=184 (i32.const 16)) (i32.const 5)) (i32.const 3)))
      (br_if $spin (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 120))))
    (i32.div_u (i32.load (i32.const 16)) (i32.sub (local.get $n) (i32.const 3)))))"#;

#[test]
fn a_program_made_by_hand_has_one_answer() {
    let mut compared = Compared::default();
    let module = wat::parse_str(BY_HAND).unwrap();
    for words in ["4", "3"] {
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", &module);
        // The second one traps.
        sandbox.run(&format!("record --invoke run -o run.aft a.wasm {words}"));
        sandbox.ok("build --lens paths run.aft");
        let sizes = if words == "4" { (50, 5) } else { (400, 90) };
        compare(&sandbox, sizes, &mut compared);
    }
    assert_eq!(compared.runs, 2);
    assert!(compared.bytes > 500 && compared.loads > 3, "{compared:?}");
    assert!(compared.states > 3, "{compared:?}");
}

/// Variables in memory of every kind, some of which change in every call and some of which do not for long.
const SOURCE: &str = "\
static int table[8], sum, seldom;
static double half;
struct pair { int a; short b; };
static struct pair last;
static int twice(int x) { return x + x; }
static int step(int i) {
    int a = i, b = 0;
    table[i & 7] += a;
    struct pair own = { i, 3 };
    if (i == 5) seldom = i + 40;
    for (int k = 0; k < 3; k++) { b += k; sum ^= b; }
    own.b += b;
    last = own;
    half = half / 2 + a;
    b += twice(a); sum += b;
    return b;
}
int run(int n) {
    int all = 0;
    while (n-- > 0)
        all += step(n);
    return all;
}
";

/// The variables that are asked about, and whether `state` shows them as they are written here.
const VARIABLES: [(&str, bool); 10] = [
    ("a", true),
    ("b", true),
    ("i", true),
    ("own.b", false),
    ("sum", false),
    ("seldom", false),
    ("last.a", false),
    ("half", false),
    ("table[3]", false),
    ("own", true),
];

#[test]
fn variables_have_one_answer() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let sandbox = Sandbox::new();
    let source = sandbox.write("a.c", SOURCE);
    let out = sandbox.path("a.wasm");
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[source], &link, &out);
    sandbox.ok("record --invoke run -o run.aft a.wasm 7");
    sandbox.ok("build --lens paths run.aft");
    let recorded = Recorded::open(&sandbox);
    files(&sandbox, &recorded, (60, 25));
    let mut compared = 0;
    for line in [9, 12, 14, 15] {
        for (variable, is_shown) in VARIABLES {
            let words = format!("values FILE --at a.c:{line} --var {variable} --limit 1000");
            let answer = json(&sandbox, &words, &STORED).expect("values");
            let instances = answer[0]["instances"].as_array().expect("instances");
            assert_eq!(instances.len(), 7, "{words}");
            for number in [2, 6] {
                let one = &instances[number - 1];
                let at = format!("a.c:{line}#{number}");
                if is_shown {
                    let words = format!("state FILE --at {at} --depth 1");
                    let answer = json(&sandbox, &words, &STORED).expect("a state");
                    assert_eq!(answer[0]["time"], one["time"], "{words}");
                    let frame = &answer[0]["frames"][0];
                    let all = frame["variables"].as_array().expect("variables");
                    let found = all.iter().find(|found| found["name"] == variable);
                    let found = found.expect("the variable");
                    assert_eq!(found["value"], one["value"], "{words}: {variable}");
                }
                let words = format!("memory FILE --var {variable} --at {at}");
                let answer = json(&sandbox, &words, &ALL).expect("memory");
                let found = &answer[0]["variable"]["value"];
                assert_eq!(*found, one["value"], "{words}");
                assert_eq!(answer[0]["at"], one["time"], "{words}");
                if variable != "own" {
                    let words = format!("why FILE --var {variable} --at {at}");
                    let answer = json(&sandbox, &words, &STORED).expect("a way back");
                    assert_eq!(answer[0]["value"], one["value"], "{words}");
                }
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 2 * 4 * VARIABLES.len());
}
