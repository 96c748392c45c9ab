//! Forged recordings: other content under right checksums. If `verify` calls one sound, every question has the answer that it has
//! of the file as it was made.
//!
//! `AFTERIMAGE_FORGED=10000 cargo test -p afterimage --test forged -- --nocapture` forges that many, from another seed with `AFTERIMAGE_SEED`.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;

use afterimage_trace::{Kind, TraceFile, TraceWriter};
use common::Sandbox;

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

/// One of every kind of question.
const QUESTIONS: [&str; 22] = [
    "profile FILE --by edge --format csv",
    "trace FILE --limit all",
    "trace FILE --level memory --limit all --format json",
    "trace FILE --level statement --reverse --limit all",
    "paths FILE --format json",
    "calls FILE",
    "values FILE --at sum",
    "addresses FILE --all --each",
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
    "redundancy FILE --format csv",
    "simulate FILE --branch-predictor bimodal --by instruction --format csv",
    "info FILE --format json",
];

/// A section: its kind, its name, its chunks, each with how many items come before it.
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

/// Writes them with right checksums.
fn write(sandbox: &Sandbox, name: &str, sections: &[Section]) {
    let path = sandbox.path(name);
    let _ = std::fs::remove_file(&path);
    let out = TraceWriter::create(&path, false).unwrap();
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

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

/// Changes something that is derived from the module and the log, and says what.
fn forge(numbers: &mut Numbers, sections: &mut Vec<Section>, others: &[Section]) -> String {
    let given = [Kind::META, Kind::MODULE, Kind::LOG];
    let derived = (0..sections.len()).filter(|&at| !given.contains(&sections[at].kind));
    let derived = Vec::from_iter(derived);
    let at = derived[numbers.below(derived.len())];
    let Section { kind, chunks, .. } = &mut sections[at];
    let kind = *kind;
    let chunk = numbers.below(chunks.len());
    let (first, bytes) = &mut chunks[chunk];
    let byte = numbers.below(bytes.len());
    let how = match numbers.below(12) {
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
        5 if !bytes.is_empty() => {
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
        8 if chunks.len() > 1 => {
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
        // Without an end, a recording is one that was cut off, and says so.
        _ if kind == Kind::END => return forge(numbers, sections, others),
        _ => {
            sections.remove(at);
            "the section is not there"
        }
    };
    format!("{kind}, chunk {chunk}, byte {byte}: {how}")
}

fn recorded(sandbox: &Sandbox, name: &str, text: &str) -> Vec<Section> {
    sandbox.wasm(&format!("{name}.wasm"), text);
    let file = format!("{name}.aft");
    sandbox.run(&format!("record {name}.wasm"));
    for command in [
        "profile FILE",
        "build --lens full FILE",
        "simulate FILE --branch-predictor bimodal",
        "slice FILE --at sum --save kept",
    ] {
        sandbox.ok(&command.replace("FILE", &file));
    }
    sections(&TraceFile::open(&sandbox.path(&file)).unwrap())
}

/// The answers, in which how a file is stored is no part.
fn answers(sandbox: &Sandbox, file: &str) -> Vec<(Option<i32>, String)> {
    let ask = |question: &&str| {
        let ran = sandbox.run(&question.replace("FILE", file));
        let mut out = ran.stdout.replace(file, "FILE");
        if question.contains("--saved") {
            // The question in words is what the user wrote, as the name is: it follows from nothing.
            out = out.split_once('\n').unwrap_or_default().1.to_owned();
        }
        if question.starts_with("info") {
            let told: serde_json::Value = serde_json::from_str(&out).unwrap_or_default();
            // What of a file says what was run, and how it ended.
            // Not the stop clock: of a run that nobody stopped, no other answer rests on it, and nothing else in the file tells it.
            let parts = ["ending", "frames", "frames_total", "events", "host_calls"];
            out = parts.map(|part| told[part].to_string()).join("\n");
        }
        (ran.code, out)
    };
    QUESTIONS.iter().map(ask).collect()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |given| given.parse().unwrap())
}

#[test]
fn what_verify_calls_sound_gives_the_right_answers() {
    let sandbox = Sandbox::new();
    let other = PROGRAM.replace("\\07\\00", "\\09\\00");
    let others = recorded(&sandbox, "other", &other);
    let sound = recorded(&sandbox, "run", PROGRAM);
    write(&sandbox, "fresh.aft", &sound);
    sandbox.ok("verify fresh.aft");
    let right = answers(&sandbox, "fresh.aft");
    for (question, (code, out)) in QUESTIONS.iter().zip(&right) {
        assert!(
            *code == Some(0) && !out.is_empty(),
            "{question}: {code:?} {out}"
        );
    }
    let mut numbers = Numbers(number("AFTERIMAGE_SEED", 0x9e37_79b9_7f4a_7c15) | 1);
    let (mut accepted, mut wrong) = (BTreeMap::new(), String::new());
    for run in 0..number("AFTERIMAGE_FORGED", 40) {
        let mut forged = sound.clone();
        // With less beside it, less is compared with what is forged.
        let kept = [u16::MAX, Kind::COUNTS.0, Kind::PATH_INDEX.0][numbers.below(3)];
        forged.retain(|section| section.kind.0 <= kept);
        let what = forge(&mut numbers, &mut forged, &others);
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
        *accepted
            .entry(what.split(',').next().unwrap().to_owned())
            .or_insert(0) += 1;
        let found = answers(&sandbox, "forged.aft");
        for ((question, right), found) in QUESTIONS.iter().zip(&right).zip(&found) {
            // What is not there may be refused.
            if found != right && found.0 == Some(0) {
                let _ = writeln!(
                    wrong,
                    "{run}: {what}: {question}\n{}\ninstead of\n{}",
                    found.1, right.1
                );
            }
        }
    }
    println!("called sound, by what was forged: {accepted:?}");
    assert!(wrong.is_empty(), "{wrong}");
}
