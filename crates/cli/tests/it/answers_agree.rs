//! Every way of computing an answer gives the same answer.
//!
//! A run is stored in several files. One file has only its path, so the run is followed from its
//! beginning. One has values and checkpoints as usual. In another, epochs and intervals are so
//! short that most questions span several. Others contain the answers to other questions, or values
//! that were built window by window. All files must give the same answer to each question, as text
//! and as JSON. The answers are compared with a naive reading of the run's whole trace, entry by
//! entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools;
use serde_json::{Value as Json, json};

use crate::common::Sandbox;
use crate::common::generated::{each_recording, each_recording_of, seeds};
use crate::common::memory_programs::memory_program;
use crate::common::recorded::Recorded;
use crate::common::tiny::build_tiny;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

/// Files of one run. The first is followed from its beginning.
const FOLLOWED: &str = "followed.aft";
const USUAL: &str = "usual.aft";
const TINY: &str = "tiny.aft";
const MORE: &str = "more.aft";
const WINDOWS: &str = "windows.aft";
/// The file with values of only a part of the run. Its answers are the same, or less complete.
const PART: &str = "part.aft";
const STORED: [&str; 4] = [USUAL, TINY, MORE, WINDOWS];
const ALL: [&str; 5] = [FOLLOWED, USUAL, TINY, MORE, WINDOWS];

/// Makes the files of `run.aft`.
fn files(sandbox: &Sandbox, recorded: &Recorded, sizes: (usize, u64)) {
    let copy = |from: &str, to: &str| {
        fs::copy(sandbox.path(from), sandbox.path(to)).unwrap();
    };
    copy("run.aft", FOLLOWED);
    copy("run.aft", USUAL);
    sandbox.ok(&format!("build --lens full {USUAL}"));
    copy(USUAL, TINY);
    build_tiny(sandbox, recorded, TINY, sizes);
    copy(TINY, MORE);
    sandbox.ok(&format!("profile {MORE}"));
    sandbox.ok(&format!("simulate --branch-predictor bimodal {MORE}"));
    // A program without memory has nothing to slice.
    sandbox.run(&format!(
        "slice --at end --address 0..15 --save kept {MORE}"
    ));
    let length = recorded.path().unwrap().length();
    let (first, last) = part(length);
    for name in [WINDOWS, PART] {
        copy("run.aft", name);
    }
    for (from, to) in [(first, last), (1, first - 1), (last + 1, length)] {
        if from <= to {
            sandbox.ok(&format!(
                "build --lens full --window {from}..{to} {WINDOWS}"
            ));
        }
    }
    sandbox.ok(&format!(
        "build --lens full --window {first}..{last} {PART}"
    ));
    for name in ALL.into_iter().chain([PART]) {
        sandbox.ok(&format!("verify --no-execute {name}"));
    }
    for name in [TINY, WINDOWS] {
        sandbox.ok(&format!("verify {name}"));
    }
}

/// Returns the times for which [`PART`] has values.
fn part(length: u64) -> (u64, u64) {
    (1 + length / 3, (2 * length).div_ceil(3))
}

/// Asks a question about some files; FILE in `words` stands for the file. Returns their common
/// answer: the exit code, standard output and standard error.
#[track_caller]
fn asked(sandbox: &Sandbox, words: &str, names: &[&str]) -> (Option<i32>, String) {
    let mut said: Option<(Option<i32>, String, String)> = None;
    for name in names {
        // A question may build data, so ask about a copy, to leave the file unchanged for the next
        // question.
        fs::copy(sandbox.path(name), sandbox.path("asked.aft")).unwrap();
        let ran = sandbox.run(&words.replace("FILE", "asked.aft"));
        assert!(!ran.stderr.contains("panicked"), "{words}: {}", ran.stderr);
        let refused = ran.code != Some(0);
        let error = if refused { ran.stderr } else { String::new() };
        // All the files are sound.
        assert!(!error.contains("damaged"), "{words}: {name}: {error}");
        let now = (ran.code, ran.stdout, error);
        match &said {
            None => said = Some(now),
            Some(before) => assert_eq!(before, &now, "{words}: {name} against {}", names[0]),
        }
    }
    let (code, out, _) = said.expect("a file");
    (code, out)
}

/// Runs a command as text, whose content is not checked further, and as JSON. Returns the JSON,
/// line by line.
#[track_caller]
fn json(sandbox: &Sandbox, words: &str, names: &[&str]) -> Option<Vec<Json>> {
    let text = asked(sandbox, words, names);
    let (code, out) = asked(sandbox, &format!("{words} --format json"), names);
    assert_eq!(text.0, code, "{words}: text and JSON");
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    (code == Some(0)).then(|| lines.collect())
}

/// Asks a question about the file with a part of the run. It must answer like the others, or report
/// missing data. Returns whether it answered.
#[track_caller]
fn partly(sandbox: &Sandbox, words: &str) -> bool {
    let words = format!("{words} --format json");
    let (code, whole) = asked(sandbox, &words, &[USUAL]);
    let (of_part, found) = asked(sandbox, &words, &[PART]);
    if of_part != Some(0) {
        return false;
    }
    assert_eq!(code, Some(0), "{words}: {PART} answers: {found}");
    let is_cut = found.contains(r#""kind":"unknown""#);
    for (found, whole) in found.lines().zip(whole.lines()) {
        let [found, whole]: [Json; 2] =
            [found, whole].map(|line| serde_json::from_str(line).unwrap());
        // A chain that leaves the kept part ends there, and so do folded steps.
        if is_cut && (found["step"] == "again" || found["step"] == "end") {
            break;
        }
        is_part(&found, &whole, &words);
    }
    true
}

/// Checks that an answer equals the whole answer wherever it does not report missing data.
#[track_caller]
fn is_part(found: &Json, whole: &Json, words: &str) {
    match (found, whole) {
        (Json::Object(found), Json::Object(whole)) => {
            let lacks = ["outside", "unknown", "refused"]
                .iter()
                .any(|key| found.contains_key(*key));
            for (key, value) in found {
                match (value, whole.get(key)) {
                    (Json::Array(some), Some(Json::Array(all)))
                        if lacks && some.len() != all.len() =>
                    {
                        for one in some.iter().filter(|_| key != "unknown") {
                            assert!(all.contains(one), "{words}: {one}");
                        }
                    }
                    (value, Some(other)) => is_part(value, other, words),
                    (_, None) => assert!(lacks, "{words}: {key}"),
                }
            }
        }
        (Json::Array(some), Json::Array(all)) => {
            assert_eq!(some.len(), all.len(), "{words}: {found} of {whole}");
            for (one, other) in some.iter().zip(all) {
                is_part(one, other, words);
            }
        }
        _ => assert_eq!(found, whole, "{words}"),
    }
}

fn number(value: &Json) -> u64 {
    value.as_u64().expect("a number")
}

fn bits(value: &Json) -> u128 {
    let text = value["bits"].as_str().expect("bits");
    u128::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Returns the bytes that an entry of a trace accesses in memory 0.
fn addresses(access: &Json) -> Range<u64> {
    if number(&access["memory"]) != 0 {
        return 0..0;
    }
    let first = number(&access["address"]);
    first..first + number(&access["bytes"])
}

/// Returns the ranges that an entry reads and writes.
fn touched(entry: &Json) -> [Range<u64>; 2] {
    let access = || addresses(&entry["access"]);
    match entry["kind"].as_str().expect("a kind") {
        "load" | "host read" => [access(), 0..0],
        "store" | "fill" | "init" | "host write" => [0..0, access()],
        "copy" => [addresses(&entry["from"]), access()],
        _ => [0..0, 0..0],
    }
}

/// Returns the byte that an entry wrote to an address, if the entry contains it.
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

/// A run, represented by its whole trace.
struct Naive {
    /// All steps, in order.
    steps: Vec<Json>,
    /// The steps that access memory 0.
    accesses: Vec<Json>,
    /// The ranges that each of these steps reads and writes.
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

    /// Returns the last entry before a position that wrote a byte.
    fn writer(&self, address: u64, before: usize) -> Option<&Json> {
        let mut earlier = self.ranges[..before].iter();
        let at = earlier.rposition(|[_, written]| written.contains(&address));
        at.map(|at| &self.accesses[at])
    }

    /// Returns the first entry from a position on that reads a byte, or writes it.
    fn next(&self, address: u64, from: usize, which: usize) -> Option<&Json> {
        let mut later = self.ranges[from..].iter();
        let at = later.position(|ranges| ranges[which].contains(&address));
        at.map(|at| &self.accesses[from + at])
    }
}

/// The amount of data compared.
#[derive(Debug, Default)]
struct Compared {
    runs: u64,
    bytes: u64,
    loads: u64,
    values: u64,
    states: u64,
    uses: u64,
}

/// Compares the contents of memory, byte by byte.
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
        partly(sandbox, &words);
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

/// Returns moments as text, each with the position of the first access after it.
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

/// Returns the values of statements by offset, in order.
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
    let functions = naive
        .steps
        .iter()
        .map(|entry| number(&entry["function"]["index"]));
    let offsets = values_of(naive);
    for function in BTreeSet::from_iter(functions) {
        let words = format!("values FILE --at {function} --limit 100000");
        let Some(answer) = json(sandbox, &words, &STORED) else {
            continue;
        };
        partly(sandbox, &words);
        text_agrees(sandbox, &words, &answer[0]);
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
                assert_eq!(one["t"], entry["t"], "{words}: @{offset}");
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

/// Checks the writers of loaded data in the answers of `deps` and in the first links of `why`.
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
                found.push((one["offset"].as_u64(), one["t"].as_u64()));
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
                assert!(times.contains(&&store["place"]["t"]), "{words}: {store}");
            }
            compared.loads += 1;
        }
    }
}

/// Compares the readers of a store's data, and checks that users depend on it.
fn uses(sandbox: &Sandbox, naive: &Naive, random: &mut SplitMix64, compared: &mut Compared) {
    let stores = (0..naive.accesses.len()).filter(|&at| naive.accesses[at]["kind"] == "store");
    let stores = Vec::from_iter(stores);
    for _ in 0..stores.len().min(4) {
        let at = stores[random.below(stores.len())];
        let entry = &naive.accesses[at];
        let same = |other: &&Json| other["offset"] == entry["offset"];
        let execution = naive.accesses[..=at].iter().filter(same).count();
        let words = format!(
            "deps FILE --at @{}#{execution} --forward --data --limit 100000",
            entry["offset"]
        );
        let answer = json(sandbox, &words, &STORED).expect("uses");
        partly(sandbox, &words);
        if number(&entry["access"]["memory"]) != 0 {
            continue;
        }
        let mut left = BTreeSet::from_iter(addresses(&entry["access"]));
        let mut expected = BTreeMap::new();
        for (later, [read, written]) in naive.accesses.iter().zip(&naive.ranges).skip(at + 1) {
            let bytes = left.range(read.clone()).count() as u64;
            if bytes > 0 && later["kind"] == "load" {
                expected.insert((number(&later["t"]), number(&later["offset"])), bytes);
            }
            left.retain(|address| !written.contains(address));
            if left.is_empty() {
                break;
            }
        }
        let statement = &answer[0]["statements"][0];
        let all = statement["uses"].as_array().expect("uses").iter();
        let own = all.filter(|one| {
            let name = one["operator"].as_str().unwrap_or_default();
            one["role"] == "memory" && name.contains(".load")
        });
        let found = own.map(|one| {
            let place = (number(&one["t"]), number(&one["offset"]));
            (place, one["bytes"].as_u64().unwrap_or(1))
        });
        let found = BTreeMap::from_iter(found);
        let places = |of: &BTreeMap<(u64, u64), u64>| Vec::from_iter(of.keys().copied());
        assert_eq!(places(&found), places(&expected), "{words}");
        compared.uses += 1;
    }
    // Backward and forward dependences must be the same.
    let values = values_of(naive);
    let all = Vec::from_iter(values.iter().flat_map(|(offset, of)| {
        let numbered = of.iter().enumerate();
        numbered.map(|(number, entry)| (*offset, number + 1, &entry["t"]))
    }));
    for _ in 0..all.len().min(4) {
        let (offset, execution, time) = all[random.below(all.len())];
        let place = format!("@{offset}#{execution}");
        let words = format!("deps FILE --at {place} --forward --data --limit 100000");
        partly(sandbox, &words);
        partly(sandbox, &format!("deps FILE --at {place}"));
        partly(sandbox, &format!("why FILE --at {place} --steps 20"));
        partly(
            sandbox,
            &format!("values FILE --at @{offset} --limit 100000"),
        );
        let Some(answer) = json(sandbox, &words, &STORED) else {
            continue;
        };
        let uses = answer[0]["statements"][0]["uses"].as_array().cloned();
        for one in uses.unwrap_or_default().iter().take(3) {
            let Some(of_user) = one["offset"].as_u64().and_then(|at| values.get(&at)) else {
                continue;
            };
            let number = of_user.iter().position(|entry| entry["t"] == one["t"]);
            let Some(number) = number else {
                continue;
            };
            let words = format!("deps FILE --at @{}#{} --data", one["offset"], number + 1);
            let back = json(sandbox, &words, &STORED).expect("dependences");
            let all = back[0]["statements"][0]["dependences"].as_array();
            let mut all = all.expect("dependences").iter();
            let is_it = |from: &Json| from["offset"] == offset && from["t"] == *time;
            assert!(all.any(is_it), "{words}: nothing of {place}, t={time}");
            compared.uses += 1;
        }
    }
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().expect("a cell").push(c),
        }
    }
    cells
}

/// Compares the numbers of executions according to the counts, the values and the trace. Also
/// compares the tables as JSON and as CSV.
fn counts(sandbox: &Sandbox, naive: &Naive) {
    let words = "profile FILE --by instruction --format json";
    let (code, out) = asked(sandbox, words, &ALL);
    assert_eq!(code, Some(0), "{words}");
    let answer: Json = serde_json::from_str(&out).unwrap();
    let rows = answer["rows"].as_array().expect("rows");
    let found = rows
        .iter()
        .map(|row| (number(&row["offset"]), number(&row["count"])));
    let found = BTreeMap::from_iter(found);
    let traps = naive.steps.iter().filter(|entry| entry["kind"] == "trap");
    let traps = BTreeSet::from_iter(traps.map(|entry| entry["offset"].as_u64()));
    for (offset, of) in values_of(naive) {
        let trapped = u64::from(traps.contains(&Some(offset)));
        let expected = of.len() as u64;
        let count = found.get(&offset).copied().unwrap_or(0);
        assert!(
            (expected..=expected + trapped).contains(&count),
            "@{offset}: {count} by the profile, {expected} by the trace"
        );
    }
    let words = "profile FILE --by instruction --format csv";
    let (_, out) = asked(sandbox, words, &ALL);
    let mut table = out.lines().map(cells);
    let head = table.next().expect("a head");
    let column = |name: &str| head.iter().position(|one| one == name).expect("a column");
    let (offset, count) = (column("offset"), column("count"));
    let of_table = table.map(|row| {
        let number = |at: usize| row[at].parse::<u64>().unwrap();
        (number(offset), number(count))
    });
    assert_eq!(BTreeMap::from_iter(of_table), found, "{words}");
}

/// Checks that the text has the numbers, times and values of the JSON, in the same order.
#[track_caller]
fn text_agrees(sandbox: &Sandbox, words: &str, answer: &Json) {
    let (_, text) = asked(sandbox, words, &[USUAL]);
    let text = text.replace(',', "");
    let mut lines = text.lines();
    for statement in answer["statements"].as_array().expect("statements") {
        let head = format!("@0x{:x} ", number(&statement["offset"]));
        assert!(lines.any(|line| line.starts_with(&head)), "{words}: {head}");
        for one in statement["instances"].as_array().expect("instances") {
            let (number, time) = (&one["number"], &one["t"]);
            let is_it = |line: &&str| {
                let mut parts = line.split_whitespace();
                parts.next() == Some(&format!("#{number}"))
                    && parts.next() == Some(&format!("t={time}"))
            };
            let line = lines.find(is_it);
            let line = line.unwrap_or_else(|| panic!("{words}: no #{number} t={time}\n{text}"));
            for value in one["values"].as_array().expect("values") {
                let value = value["text"].as_str().expect("a text").replace(',', "");
                assert!(line.contains(&value), "{words}: {value} in {line}");
            }
        }
    }
}

/// Compares the addresses and values that are listed by instruction.
fn lists(sandbox: &Sandbox, naive: &Naive) {
    for (words, kinds, key) in [
        (
            "addresses FILE --all --each",
            &["load", "store"][..],
            "addresses",
        ),
        ("values FILE --loads --each", &["load"], "bits"),
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

/// Compares the stack and the globals.
fn states(sandbox: &Sandbox, naive: &Naive, at: &str, compared: &mut Compared) {
    let words = format!("state FILE --at {at} --globals --depth 1000");
    let Some(answer) = json(sandbox, &words, &STORED) else {
        return;
    };
    partly(sandbox, &words);
    let time = number(&answer[0]["t"]);
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
    let length = recorded.path().unwrap().length();
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
    counts(sandbox, &naive);
    uses(sandbox, &naive, &mut random, compared);
    values(sandbox, &naive, compared);
    loads(sandbox, &naive, &mut random, compared);
    let (a, b) = (random.below(length as usize), random.below(length as usize));
    let (first, last) = (1 + a.min(b), 1 + a.max(b));
    for level in ["statement", "memory"] {
        let words = format!("trace FILE --level {level} --from t={first} --to t={last}");
        json(sandbox, &words, &ALL);
        let words = format!("trace FILE --level {level} --from t={last} --to t={first} --reverse");
        json(sandbox, &words, &ALL);
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
    each_recording(seeds(6), 3, "paths", |sandbox| {
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
    assert!(compared.uses > 3, "{compared:?}");
}

/// A program with stores of every kind, whose values and addresses are constants reused by the same
/// code. It has host calls and exceptions. The host enters it several times, and the first entries
/// end at a greater depth than the last entry begins. A loop does not write to any of this memory
/// for many intervals.
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
        // The second run traps.
        sandbox.run(&format!("record --invoke run -o run.aft a.wasm {words}"));
        sandbox.ok("build --lens paths run.aft");
        let sizes = if words == "4" { (50, 5) } else { (400, 90) };
        compare(&sandbox, sizes, &mut compared);
    }
    assert_eq!(compared.runs, 2);
    assert!(compared.bytes > 500 && compared.loads > 3, "{compared:?}");
    assert!(compared.states > 3, "{compared:?}");
}

/// Variables of every kind in memory. Some change in every call, and some stay unchanged for a long
/// time.
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

/// The variables in the questions, and whether `state` shows them in this notation.
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
                    assert_eq!(answer[0]["t"], one["t"], "{words}");
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
                assert_eq!(answer[0]["t"], one["t"], "{words}");
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
