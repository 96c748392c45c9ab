//! Forged recordings have changed contents and correct checksums. A forged recording that `verify`
//! calls sound must answer every question like the original file.
//!
//! META, MODULE and LOG are the recording itself. With other contents, it is a different recording.
//! All other data follow from them and are forged: bits, bytes, chunks, sections, names and their
//! order. A forgery has one or several changes, in files of the same run that were made in several
//! ways. First, every byte of every section is changed once for each seed, as far as the number of
//! forgeries allows. Then changes are random.
//!
//! `cargo xtask forge` makes ten thousand forgeries. So does `AFTERIMAGE_FORGED=10000 cargo test
//! --workspace --test it forged:: -- --nocapture`; `AFTERIMAGE_SEED` sets another seed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use afterimage::{Session, Snapshotting};
use afterimage_program::Program;
use afterimage_record::{Cache, Command, Interrupt, Launch, RecordOptions, Spacing, record};
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};
use serde_json::{Value, json};

use crate::common::Sandbox;
use crate::common::recorded::Recorded;
use crate::common::tiny::build_tiny;

/// Loops, memory, copies, globals, calls through a table, a host call, and a trap.
const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\07\00\00\00")
  (data (i32.const 200) "\d0\00\00\00\06\00\00\00hello\n")
  (global $count (mut i32) (i32.const 3))
  (table funcref (elem $double))
  (type $unary (func (param i32) (result i32)))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $sum (param $n i32) (result i32) (local $total i32)
    (loop $again
      (local.set $total (i32.add (local.get $total) (local.get $n)))
      (i32.store (i32.const 32) (local.get $total))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $total))
  (func $start (export "_start") (local $x i32)
    (drop (call $random (i32.const 64) (i32.const 4)))
    (local.set $x (call $sum (i32.load (i32.const 16))))
    (drop (call $write (i32.const 1) (i32.const 200) (i32.const 1) (i32.const 232)))
    (memory.copy (i32.const 40) (i32.const 32) (i32.const 4))
    (i32.store8 (i32.const 41) (i32.const 1))
    (local.set $x (i32.add (call $sum (i32.const 5)) (i32.load (i32.const 40))))
    (global.set $count (i32.add (global.get $count) (local.get $x)))
    (drop (call_indirect (type $unary) (global.get $count) (i32.const 0)))
    (drop (i32.add (i32.load (i32.const 64)) (i32.load (i32.const 32))))
    (drop (i32.div_s (local.get $x) (i32.load (i32.const 100))))))"#;

/// One question of every kind.
const QUESTIONS: [&str; 24] = [
    "profile FILE --by edge --format csv",
    "trace FILE --limit all",
    "trace FILE --level memory --limit all --format json",
    "trace FILE --level statement --reverse --limit all",
    "paths FILE --format json",
    "calls FILE",
    "values FILE --at sum",
    "addresses FILE --all --each",
    "values FILE --loads --each",
    "deps FILE --at sum#last",
    "deps FILE --at sum#2 --forward",
    "memory FILE --address 0x20..0x2f",
    "memory FILE --address 0x28 --at end",
    "state FILE --at end --globals",
    "state FILE --at sum#2 --globals",
    "why FILE --trap",
    "why FILE --at sum#last",
    "why FILE --stdout 0",
    "slice FILE --saved kept",
    "slice FILE --at sum#2 --by statement --format csv",
    "slice FILE --saved kept --by statement --format json",
    "state FILE --at t=14 --globals --format json",
    "redundancy FILE --format csv",
    "simulate FILE --branch-predictor bimodal --by instruction --format csv",
];

/// Questions that stretches of the run answer from snapshots, before anything is built.
const EARLY: [&str; 5] = [
    "state --at 80% --globals",
    "why --trap",
    "why --stdout 0",
    "deps --at sum#last --depth 5",
    "values --at sum#2",
];

/// A section: its kind, its name, and its chunks, each with the number of items before it.
#[derive(Clone)]
struct Section {
    kind: Kind,
    name: Option<String>,
    chunks: Vec<(u64, Vec<u8>)>,
}

fn sections(file: &TraceFile) -> Vec<Section> {
    let mut found = Vec::new();
    for position in 0.. {
        let Some(mut section) = file.section(position) else {
            break;
        };
        let name = section.name().unwrap().map(str::to_owned);
        let mut chunks = Vec::new();
        while section.advance().unwrap() {
            chunks.push((section.first(), section.bytes().to_vec()));
        }
        found.push(Section {
            kind: section.kind(),
            name,
            chunks,
        });
    }
    found
}

/// Writes sections with correct checksums.
fn write(sandbox: &Sandbox, name: &str, sections: &[Section]) {
    let path = sandbox.path(name);
    let _ = fs::remove_file(&path);
    let out = TraceWriter::create(&path, Existing::Kept).unwrap();
    for Section { kind, name, chunks } in sections {
        let mut section = out.section(*kind, name.as_deref()).unwrap();
        let (last, before) = chunks.split_last().unwrap();
        for (first, bytes) in before {
            section.put(*first, bytes).unwrap();
        }
        section.finish(last.0, &last.1).unwrap();
    }
    out.commit().unwrap();
}

/// Returns a run that was cut off after some words of its path. Only the words and the log contain
/// data about it. The program runs longer than usual, because a word is written only when it is
/// full.
fn cut_off(sandbox: &Sandbox, name: &str, text: &str) -> Vec<Section> {
    let bytes = wat::parse_str(longer_run(text)).unwrap();
    let program = Arc::new(Program::parse(&bytes).unwrap());
    let command = Command {
        name: "guest".to_owned(),
        ..Command::default()
    };
    let options = RecordOptions {
        silent: true,
        paths: true,
        ..RecordOptions::default()
    };
    let whole = sandbox.path(&format!("whole-{name}.aft"));
    let out = TraceWriter::create(&whole, Existing::Kept).unwrap();
    let (cache, interrupt) = (Cache::none(), Interrupt::default());
    let launch = Launch {
        bytes: &bytes,
        program: &program,
        command: &command,
        options: &options,
        cache: &cache,
        interrupt: &interrupt,
    };
    record(launch, &out).unwrap();
    drop(out);
    let mut all = sections(&TraceFile::open(&whole).unwrap());
    all.retain(|section| ![Kind::END, Kind::COUNTS].contains(&section.kind));
    let words = all
        .iter_mut()
        .find(|section| section.kind == Kind::PATH_WORDS);
    let words = &mut words.expect("words").chunks;
    // The last word, which was not full, has a chunk of its own.
    let last = words.iter().rposition(|(_, bytes)| !bytes.is_empty());
    words.truncate(last.unwrap_or_default());
    assert!(words.iter().any(|(_, bytes)| bytes.len() > 2 * 8));
    write(sandbox, "run.aft", &all);
    sandbox.ok("build --lens full run.aft");
    sandbox.ok("simulate run.aft --branch-predictor bimodal");
    sandbox.ok("slice run.aft --at sum --save kept");
    sections(&TraceFile::open(&sandbox.path("run.aft")).unwrap())
}

/// The given data, from which the rest follows.
const GIVEN: [Kind; 3] = [Kind::META, Kind::MODULE, Kind::LOG];

/// A file of the run, with its derived data made in some way.
struct Made {
    sections: Vec<Section>,
    /// The sections of another run.
    others: Vec<Section>,
    right: Vec<Answer>,
}

/// A question's exit code and output; for a missing part of `info`, nothing.
type Answer = (Option<i32>, String);

/// A generator that gives the same numbers in each run of the test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

/// A name that no section has.
const OTHER: &str = "other";

/// Changes one of the derived bytes. `place` counts through all sections and chunks. Returns `None`
/// beyond the last byte.
fn change(numbers: &mut Numbers, sections: &mut [Section], mut place: usize) -> Option<String> {
    for Section { kind, chunks, .. } in sections {
        if GIVEN.contains(kind) {
            continue;
        }
        for (chunk, (_, bytes)) in chunks.iter_mut().enumerate() {
            let Some(byte) = bytes.get_mut(place) else {
                place -= bytes.len();
                continue;
            };
            let how = match numbers.below(4) {
                0 => byte.wrapping_add(1),
                1 => byte.wrapping_sub(1),
                2 => *byte ^ 0x80,
                _ => *byte ^ (1 << numbers.below(8)),
            };
            let what = format!("{kind}, chunk {chunk}, byte {place}: {how} for {byte}");
            *byte = how;
            return Some(what);
        }
    }
    None
}

/// Changes something derived from the module and the log, and describes the change.
fn forge(numbers: &mut Numbers, sections: &mut Vec<Section>, others: &[Section]) -> String {
    let derived = (0..sections.len()).filter(|&at| !GIVEN.contains(&sections[at].kind));
    let derived = Vec::from_iter(derived);
    if derived.is_empty() {
        return "nothing is left".to_owned();
    }
    let at = derived[numbers.below(derived.len())];
    let other = derived[numbers.below(derived.len())];
    let Section { kind, name, chunks } = &mut sections[at];
    let kind = *kind;
    let chunk = numbers.below(chunks.len());
    let (first, bytes) = &mut chunks[chunk];
    // Words that end earlier belong to a run that was cut off earlier.
    let is_live = kind == Kind::PATH_WORDS;
    // Most of the important data is at the beginning, or at the end.
    let near = bytes.len().min(12);
    let byte = match numbers.below(3) {
        0 => numbers.below(near),
        1 => bytes.len() - near + numbers.below(near),
        _ => numbers.below(bytes.len()),
    };
    let how = match numbers.below(16) {
        0..=2 if !bytes.is_empty() => {
            bytes[byte] ^= 1 << numbers.below(8);
            "a bit"
        }
        3 if !bytes.is_empty() => {
            bytes[byte] = bytes[byte].wrapping_add(1);
            "one more"
        }
        4 if bytes.len() > 1 => {
            let other = numbers.below(bytes.len());
            bytes.swap(byte, other);
            "two bytes exchanged"
        }
        5 if !bytes.is_empty() && !is_live => {
            bytes.remove(byte);
            "a byte less"
        }
        6 => {
            bytes.insert(byte, numbers.below(256) as u8);
            "a byte more"
        }
        7 => {
            *first = first.saturating_add(1);
            "one item more before it"
        }
        8 if chunks.len() > 1 && !is_live => {
            chunks.remove(chunk);
            "a chunk less"
        }
        9 => {
            let again = chunks[chunk].clone();
            chunks.insert(chunk, again);
            "a chunk twice"
        }
        10 => match others.iter().find(|other| other.kind == kind) {
            Some(other) => {
                chunks.clone_from(&other.chunks);
                "that of another run"
            }
            None => return forge(numbers, sections, others),
        },
        // There is only one end.
        11 if kind != Kind::END => match others.iter().find(|other| other.kind == kind) {
            Some(other) => {
                let place = at + numbers.below(2);
                sections.insert(place, other.clone());
                "with that of another run"
            }
            None => return forge(numbers, sections, others),
        },
        12 => {
            sections.swap(at, other);
            "exchanged with another section"
        }
        13 if name.is_some() => {
            *name = Some(OTHER.to_owned());
            "under another name"
        }
        14 if chunks[chunk].0 > 0 => {
            chunks[chunk].0 -= 1;
            "one item less before it"
        }
        // Without an end, a recording counts as cut off, and says so.
        _ if kind == Kind::END || is_live => return forge(numbers, sections, others),
        _ => {
            sections.remove(at);
            "the section is not there"
        }
    };
    format!("{kind}, chunk {chunk}, byte {byte}: {how}")
}

/// Makes a recording, and files of its run. One file has all data built as usual. One has short
/// epochs and intervals, and counts from another mode. One has two windows, one of them without a
/// function. In the last, the path lacks a function.
fn recorded(sandbox: &Sandbox, name: &str, text: &str) -> Vec<Vec<Section>> {
    sandbox.wasm(&format!("{name}.wasm"), text);
    let plain = sandbox.path(&format!("plain-{name}.aft"));
    sandbox.run(&format!("record --force {name}.wasm"));
    fs::rename(sandbox.path(&format!("{name}.aft")), &plain).unwrap();
    let commands: [&[&str]; 4] = [
        &["profile FILE", "build --lens full FILE"],
        &["build --lens paths FILE"],
        &[
            "build --lens full --window 9..15 FILE",
            "build --lens full --window 1..8 FILE",
            "build --lens full --window 16..23 FILE",
        ],
        &["build --lens paths --exclude double FILE", "profile FILE"],
    ];
    let made = commands.iter().enumerate().map(|(way, commands)| {
        let file = "run.aft";
        fs::copy(&plain, sandbox.path(file)).unwrap();
        for command in *commands {
            sandbox.ok(&command.replace("FILE", file));
        }
        if way == 1 {
            build_tiny(sandbox, &Recorded::open(sandbox), file, (12, 9));
        }
        if way < 3 {
            sandbox.ok(&format!("simulate {file} --branch-predictor bimodal"));
            sandbox.ok(&format!("slice {file} --at sum --save kept"));
        }
        sections(&TraceFile::open(&sandbox.path(file)).unwrap())
    });
    let mut all = Vec::from_iter(made);
    all.push(cut_off(sandbox, name, text));
    all.push(with_snapshots(sandbox, name, text));
    all
}

/// Returns a longer run, with snapshots of a re-execution and no other derived data.
fn with_snapshots(sandbox: &Sandbox, name: &str, text: &str) -> Vec<Section> {
    let longer = format!("longer-{name}");
    sandbox.wasm(&format!("{longer}.wasm"), &longer_run(text));
    sandbox.run(&format!("record --force {longer}.wasm"));
    let at = sandbox.path(&format!("{longer}.aft"));
    let session = Session::open(&at).unwrap();
    let every = Snapshotting::Executed(Spacing::polls(1));
    assert!(session.ensure_snapshots(every).unwrap());
    drop(session);
    let all = sections(&TraceFile::open(&at).unwrap());
    let snapshots = all.iter().find(|one| one.kind == Kind::SNAPSHOTS);
    assert!(snapshots.unwrap().chunks.len() > 1);
    all
}

/// Returns the program with more numbers to sum up.
fn longer_run(text: &str) -> String {
    text.replacen("\\00\\00\\00", "\\01\\00\\00", 1)
}

/// The parts of `info` that follow from the module and the log.
const TOLD: [&str; 12] = [
    "/ending",
    "/results",
    "/frames",
    "/frames_total",
    "/clock",
    "/events",
    "/host_calls",
    "/path/blocks",
    "/path/nodes",
    "/path/left_out",
    "/checkpoints/last",
    "/slices",
];

/// Returns the answers, without details of how the file is stored.
fn answers(sandbox: &Sandbox, file: &str) -> Vec<Answer> {
    let ask = |question: &&str| {
        let ran = sandbox.run(&question.replace("FILE", file));
        assert!(!ran.stderr.contains("panicked"), "{question}: {ran:?}");
        (ran.code, ran.stdout.replace(file, "FILE"))
    };
    // Ask about a copy in which nothing is built, so that snapshots answer.
    fs::copy(sandbox.path(file), sandbox.path("early.aft")).unwrap();
    let early = EARLY.map(|question| {
        let ran = sandbox.run(&format!("{question} early.aft"));
        assert!(!ran.stderr.contains("panicked"), "{question}: {ran:?}");
        (ran.code, ran.stdout.replace("early.aft", "FILE"))
    });
    let mut all = Vec::from_iter(QUESTIONS.iter().map(ask));
    let (code, told) = ask(&"info FILE --format json");
    let mut told: Value = serde_json::from_str(&told).unwrap_or_default();
    let is_there = |part: &&Value| !part.is_null() && **part != json!([]);
    // The names of slices do not follow from the recording.
    for slice in told["slices"].as_array_mut().into_iter().flatten() {
        slice["slice"].take();
    }
    all.extend(TOLD.iter().map(|part| {
        let part = told.pointer(part).filter(is_there);
        (
            code.filter(|_| part.is_some()),
            part.map(ToString::to_string).unwrap_or_default(),
        )
    }));
    all.extend(early);
    all
}

/// Whether an answer reports that it covers only a part of the run.
fn is_partial((_, answer): &Answer) -> bool {
    let words = [
        "outside the part with stored values",
        "values were kept only from",
        "no values were kept there",
    ];
    words.iter().any(|words| answer.contains(words))
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |given| given.parse().unwrap())
}

/// Returns a copy of the document for each change of one number, word or list.
fn changed(document: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let with = |all: &mut Vec<Value>, part: Vec<Value>, put: &dyn Fn(Value) -> Value| {
        all.extend(part.into_iter().map(put));
    };
    match document {
        Value::Null => all.extend([json!(1), json!([])]),
        Value::Bool(it) => all.push(json!(!it)),
        Value::Number(it) => {
            let it = it.as_u64().unwrap();
            let others = [it.wrapping_add(1), it.wrapping_sub(1), it ^ 2, 0, u64::MAX];
            all.extend(
                others
                    .into_iter()
                    .filter(|&other| other != it)
                    .map(Value::from),
            );
        }
        Value::String(it) => all.extend(
            ["nodes", "edges", "full", "end", "other"]
                .into_iter()
                .filter(|other| other != it)
                .map(Value::from),
        ),
        Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate() {
                let put = |part| {
                    let mut parts = parts.clone();
                    parts[at] = part;
                    Value::Array(parts)
                };
                with(&mut all, changed(part), &put);
                let mut less = parts.clone();
                less.remove(at);
                let mut more = parts.clone();
                more.insert(at, part.clone());
                all.extend([Value::Array(less), Value::Array(more)]);
            }
            all.push(json!([]));
        }
        Value::Object(parts) => {
            for (name, part) in parts {
                let put = |part| {
                    let mut parts = parts.clone();
                    parts.insert(name.clone(), part);
                    Value::Object(parts)
                };
                with(&mut all, changed(part), &put);
            }
        }
    }
    all.retain(|other| other != document);
    all
}

/// All data of a kept slice are compared with their source, so no reader prints a forged word.
#[test]
fn no_field_of_a_kept_slice_is_believed() {
    let sandbox = Sandbox::new();
    sandbox.wasm("run.wasm", PROGRAM);
    sandbox.run("record --force run.wasm");
    let kept = [
        "--at sum#last",
        "--at sum#2 --thin",
        "--trap --data-only",
        "--at sum#1 --forward",
        "--at end --chop sum#2 --address 0x20..0x23",
        "--at end --address 0x28..0x2b --depth 2",
        "--at sum#last --algorithm edges",
        "--at sum#last --algorithm nodes --control-only",
    ];
    for (number, slice) in kept.into_iter().enumerate() {
        sandbox.ok(&format!("slice run.aft {slice} --save kept{number}"));
    }
    let sound = sections(&TraceFile::open(&sandbox.path("run.aft")).unwrap());
    let ask = |file: &str, number: usize| {
        let shown = format!("slice {file} --saved kept{number} --format json");
        let info = sandbox.run(&format!("info {file} --format json"));
        let info: Value = serde_json::from_str(&info.stdout).unwrap_or_default();
        let graph = sandbox.run(&format!("slice {file} --saved kept{number} --format dot"));
        let shown = sandbox.run(&shown);
        (
            shown.code,
            shown.stdout,
            graph.stdout,
            info["slices"].clone(),
        )
    };
    let (mut forged, mut same, mut believed) = (0, 0, String::new());
    for (number, slice) in kept.into_iter().enumerate() {
        let name = format!("kept{number}");
        let right = ask("run.aft", number);
        assert_eq!(right.0, Some(0), "{slice}");
        let at = sound
            .iter()
            .position(|section| section.name.as_ref() == Some(&name));
        let at = at.unwrap();
        let stored: Value = serde_json::from_slice(&sound[at].chunks[0].1).unwrap();
        // Only the question itself determines which bytes it is about, and when; which dependences
        // are followed; and whether an instruction's result is a statement or a variable.
        let is_other = |other: &Value, part: &str| other[part] != stored[part];
        let of_bytes = stored["operators"] == json!([]);
        let is_one = stored["criteria"].as_array().unwrap().len() == 1;
        // Test every other change, and the remaining changes for the next slice, because testing
        // all of them takes minutes.
        let some = (0..).zip(changed(&stored));
        for (_, other) in some.filter(|(at, _)| (at + number) % 2 == 0) {
            if of_bytes && is_other(&other, "criteria")
                || is_other(&other, "follows")
                || is_one && other["operators"] == json!([])
            {
                continue;
            }
            let mut sections = sound.clone();
            sections[at].chunks[0].1 = serde_json::to_vec(&other).unwrap();
            write(&sandbox, "forged.aft", &sections);
            forged += 1;
            if sandbox.run("verify forged.aft").code != Some(0) {
                continue;
            }
            same += 1;
            if ask("forged.aft", number) != right {
                let _ = writeln!(believed, "{slice}: {other}");
            }
        }
    }
    println!("{forged} forged, of which {same} say the same");
    assert!(believed.is_empty(), "{believed}");
}

#[test]
fn what_verify_calls_sound_gives_the_right_answers() {
    let sandbox = Sandbox::new();
    let other = PROGRAM.replace("\\07\\00", "\\09\\00");
    let others = recorded(&sandbox, "other", &other);
    let sound = recorded(&sandbox, "run", PROGRAM);
    let made = sound.into_iter().zip(others).map(|(sections, others)| {
        write(&sandbox, "fresh.aft", &sections);
        sandbox.ok("verify fresh.aft");
        Made {
            right: answers(&sandbox, "fresh.aft"),
            sections,
            others,
        }
    });
    let made = Vec::from_iter(made);
    let questions = Vec::from_iter(QUESTIONS.iter().chain(&TOLD).chain(&EARLY));
    for (question, (code, out)) in QUESTIONS.iter().zip(&made[0].right) {
        assert!(
            *code == Some(0) && !out.is_empty(),
            "{question}: {code:?} {out}"
        );
    }
    let seed = number("AFTERIMAGE_SEED", 0x9e37_79b9_7f4a_7c15);
    let mut numbers = Numbers(seed.wrapping_mul(2) | 1);
    let (mut accepted, mut wrong) = (BTreeMap::new(), String::new());
    let mut forged_ones = BTreeMap::new();
    let runs = number("AFTERIMAGE_FORGED", 40);
    // Half of the forgeries change all bytes in order, if there are enough, beginning at a byte
    // that depends on the seed.
    let (mut place, mut way) = (numbers.below(500), numbers.below(made.len()));
    for run in 0..runs {
        let in_order = match run % 2 {
            0 => {
                let mut forged = made[way].sections.clone();
                let what = change(&mut numbers, &mut forged, place);
                place += 1;
                if what.is_none() {
                    (place, way) = (0, (way + 1) % made.len());
                }
                what.map(|what| (forged, what, way))
            }
            _ => None,
        };
        let (forged, what, way) = in_order.unwrap_or_else(|| {
            let way = numbers.below(made.len());
            let mut forged = made[way].sections.clone();
            // Remove some derived data, so that there is less with which to compare a forgery.
            let kept = [u16::MAX, Kind::COUNTS.0, Kind::PATH_INDEX.0][numbers.below(3)];
            forged.retain(|section| section.kind.0 <= kept);
            let times = [1, 1, 2, 3][numbers.below(4)];
            let what = (0..times).map(|_| forge(&mut numbers, &mut forged, &made[way].others));
            let what = Vec::from_iter(what);
            (forged, what.join("; "), way)
        });
        let kind = what.split(',').next().unwrap().to_owned();
        *forged_ones.entry(kind.clone()).or_insert(0) += 1;
        write(&sandbox, "forged.aft", &forged);
        let verified = sandbox.run("verify forged.aft");
        assert!(
            matches!(verified.code, Some(0 | 1 | 125)),
            "{what}: {verified:?}"
        );
        assert!(
            !verified.stderr.contains("panicked"),
            "{what}: {verified:?}"
        );
        if verified.code != Some(0) {
            continue;
        }
        *accepted.entry(kind).or_insert(0) += 1;
        let found = answers(&sandbox, "forged.aft");
        for (question, found) in found.iter().enumerate() {
            // Missing data may be refused, or built as usual.
            let known = made.iter().any(|made| made.right[question] == *found);
            if !known && found.0 == Some(0) && !is_partial(found) {
                let right = &made[way].right[question];
                let _ = writeln!(
                    wrong,
                    "{run}: way {way}: {what}: {}\n{}\ninstead of\n{}",
                    questions[question], found.1, right.1
                );
            }
        }
    }
    println!("forged: {forged_ones:?}\ncalled sound, by what was forged: {accepted:?}");
    assert!(wrong.is_empty(), "{wrong}");
}
