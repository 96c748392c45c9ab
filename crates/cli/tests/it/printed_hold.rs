//! The output stored in the file agrees with following the run, and damage to it is found.

use afterimage_program::Program;
use afterimage_replay::values::verify_values;
use afterimage_trace::{Existing, Kind, TraceFile, TraceWriter};

use crate::common::Sandbox;

/// Prints `item 00` to `item 19`. Each call offers more bytes than the host takes at once. After
/// every fifth call, a word goes to standard error. One call uses a nonexistent descriptor, one
/// writes nothing, and one writes more than a recording must keep of one call.
const PRINTS: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 200)
  (data (i32.const 100) "item 00\n")
  (data (i32.const 112) "fifth\nhalf")
  (func $piece (param $at i32) (param $from i32) (param $length i32)
    (i32.store (local.get $at) (local.get $from))
    (i32.store offset=4 (local.get $at) (local.get $length)))
  (func (export "_start") (local $i i32)
    (call $piece (i32.const 0) (i32.const 100) (i32.const 8))
    (call $piece (i32.const 8) (i32.const 112) (i32.const 4))
    (call $piece (i32.const 16) (i32.const 110) (i32.const 1))
    (call $piece (i32.const 24) (i32.const 112) (i32.const 10))
    (call $piece (i32.const 32) (i32.const 65536) (i32.const 9000000))
    (loop $again
      (i32.store8 (i32.const 105) (i32.add (i32.const 48) (i32.div_u (local.get $i) (i32.const 10))))
      (i32.store8 (i32.const 106) (i32.add (i32.const 48) (i32.rem_u (local.get $i) (i32.const 10))))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 3) (i32.const 300)))
      (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 5)))
        (then (drop (call $write (i32.const 2) (i32.const 24) (i32.const 1) (i32.const 300)))))
      (br_if $again
        (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20))))
    (drop (call $write (i32.const 7) (i32.const 0) (i32.const 3) (i32.const 300)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 300)))
    (drop (call $write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 300)))
    (memory.fill (i32.const 65536) (i32.const 120) (i32.const 5))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 3) (i32.const 300)))))"#;

/// The number of lines of output before the excessive part.
const LINES: u64 = 20;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("app.wasm", PRINTS);
    let ran = sandbox.shell("$AFTERIMAGE record --lens full -o run.aft app.wasm > output 2> error");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    sandbox
}

/// Writes a file's sections again, without sections of some kind. `change` may change each chunk.
fn copy(
    sandbox: &Sandbox,
    to: &str,
    without: Option<Kind>,
    mut change: impl FnMut(Kind, usize, &mut Vec<u8>),
) {
    let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
    let out = TraceWriter::create(&sandbox.path(to), Existing::Replaced).unwrap();
    let mut position = 0;
    while let Some(mut section) = file.section(position) {
        position += 1;
        let kind = section.kind();
        if Some(kind) == without {
            continue;
        }
        let mut writer = Some(out.section(kind, None).unwrap());
        let chunks = section.chunks();
        for chunk in 0..chunks {
            section.advance().unwrap();
            let mut bytes = section.bytes().to_vec();
            change(kind, chunk, &mut bytes);
            if chunk + 1 == chunks {
                writer.take().unwrap().finish(section.first(), &bytes)
            } else {
                writer.as_mut().unwrap().put(section.first(), &bytes)
            }
            .unwrap();
        }
    }
    out.commit().unwrap();
}

#[test]
fn answers_are_the_same_without_what_was_kept() {
    let sandbox = recorded();
    copy(&sandbox, "old.aft", Some(Kind::PRINTED), |_, _, _| {});
    let has = |file: &str| {
        let file = TraceFile::open(&sandbox.path(file)).unwrap();
        file.last(Kind::PRINTED).is_some()
    };
    assert!(has("run.aft") && !has("old.aft"));
    let output = sandbox.read("output");
    let mut questions = Vec::new();
    for line in (1..=LINES + 3).step_by(3) {
        questions.push(format!("--stdout line:{line}"));
    }
    let (items, all) = (LINES * 8, output.len() as u64);
    assert!(all > items + 1_000_000, "{all}");
    let bytes = [
        0,
        5,
        6,
        7,
        8,
        93,
        items - 1,
        items,
        items + 1_000_000,
        all - 8,
        all - 2,
    ];
    for byte in bytes {
        questions.push(format!("--stdout {byte}"));
    }
    for error in [
        "0", "6", "13", "39", "line:2", "line:4", "line:5", "line:6", "40",
    ] {
        questions.push(format!("--stderr {error}"));
    }
    for question in questions {
        let ask = |file: &str| {
            let ran = sandbox.run(&format!("why {file} {question} --digit --format json"));
            let said = ran.stderr.replace(file, "FILE");
            (ran.code, ran.stdout, said)
        };
        let known = ask("run.aft");
        assert_eq!(known, ask("old.aft"), "{question}");
        let Some(byte) = question
            .strip_prefix("--stdout ")
            .and_then(|byte| byte.parse::<usize>().ok())
        else {
            continue;
        };
        let value = format!("\"value\":\"{}\"", output[byte]);
        assert!(known.1.contains(&value), "{question}: {}", known.1);
    }
}

#[test]
fn a_byte_is_named_by_its_line_and_column_or_by_a_text() {
    let sandbox = recorded();
    let output = sandbox.read("output");
    let starts = output
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n');
    let starts = Vec::from_iter(std::iter::once(0).chain(starts.map(|(at, _)| at + 1)));
    let last = starts.iter().rfind(|start| **start < output.len()).unwrap();
    let mut named = vec![
        ("line:last:1".to_owned(), *last),
        ("line:last:4".to_owned(), last + 3),
    ];
    for line in [1, 2, 7, 20] {
        for column in [1, 3, 8] {
            named.push((
                format!("line:{line}:{column}"),
                starts[line - 1] + column - 1,
            ));
        }
    }
    for text in [0..5, 5..7, 20..27, 100..113, 150..158] {
        let text = &output[text];
        let first = output.windows(text.len()).position(|part| part == text);
        // A text that ends with a number selects the number.
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let digits = text.iter().rev().take_while(is_digit).count();
        let number = if digits > 0 { text.len() - digits } else { 0 };
        let text = std::str::from_utf8(text).unwrap();
        named.push((format!("text:{text}"), first.unwrap() + number));
    }
    for (name, byte) in named {
        let ask = |byte: &str| {
            let words = ["why", "run.aft", "--stdout", byte, "--format", "json"];
            let ran = crate::common::ran(&mut sandbox.command(words));
            assert_eq!(ran.code, Some(0), "{byte}: {ran:?}");
            ran.stdout
        };
        assert_eq!(ask(&name), ask(&byte.to_string()), "{name}");
    }
    for (name, why) in [
        ("line:1:9", "the line has 8 bytes"),
        ("nowhere", "\"nowhere\""),
    ] {
        sandbox.refused(&format!("why run.aft --stdout {name}"), 125, &[why]);
    }
    for (name, why) in [("line:2:0", "from 1"), ("text:", "the text is empty")] {
        let ran = sandbox.run(&format!("why run.aft --stdout {name}"));
        assert!(ran.code == Some(125) && ran.stderr.contains(why), "{ran:?}");
    }
}

/// The checksums of the chunks are correct, so the reader and `verify` must detect the change.
#[test]
fn every_flipped_bit_is_found() {
    let sandbox = recorded();
    let module = sandbox.read("app.wasm");
    let program = Program::parse(&module).unwrap();
    let findings = |file: &str| {
        let file = TraceFile::open(&sandbox.path(file)).unwrap();
        let found = verify_values(&file, &program, &module, |_| {});
        found.unwrap().findings
    };
    assert_eq!(findings("run.aft"), Vec::<String>::new());
    let mut sizes = Vec::new();
    copy(&sandbox, "same.aft", None, |kind, _, bytes| {
        if kind == Kind::PRINTED {
            sizes.push(bytes.len());
        }
    });
    assert_eq!(findings("same.aft"), Vec::<String>::new());
    // There is one chunk, and the index.
    assert_eq!(sizes.len(), 2);
    let whys = ["line:3:1", "line:3"].map(|at| format!("why FILE --stdout {at}"));
    let of = |file: &str| whys.each_ref().map(|why| why.replace("FILE", file));
    let right = of("run.aft").map(|why| sandbox.ok(&why).stdout);
    let bad = of("bad.aft");
    for (number, size) in sizes.iter().enumerate() {
        // Flip all bits of non-text parts, and some bits of the text.
        let bits = (0..8 * size).filter(|bit| *bit < 160 || bit % 61 == 0);
        for bit in bits {
            copy(&sandbox, "bad.aft", None, |kind, chunk, bytes| {
                if kind == Kind::PRINTED && chunk == number {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
            let found = findings("bad.aft");
            assert!(!found.is_empty(), "chunk {number}, bit {bit}");
            if bit % 7 == 0 {
                for (why, right) in bad.iter().zip(&right) {
                    let ran = sandbox.run(why);
                    let same = ran.stdout.replace("bad.aft", "run.aft") == *right;
                    assert!(
                        ran.code == Some(125) || same,
                        "chunk {number}, bit {bit}: {ran:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn it_is_written_as_far_as_windows_reach() {
    let sandbox = recorded();
    let reaches = || {
        let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
        let found = afterimage_wet::FilePrinted::open(&file).unwrap();
        found.unwrap().length()
    };
    let all = reaches();
    sandbox.ok("build --lens full --again --window 20..30 run.aft");
    let part = reaches();
    assert!((30..all).contains(&part), "{part} of {all}");
    sandbox.ok("build --lens full --window 2..5 run.aft");
    assert_eq!(reaches(), part);
    sandbox.ok("build --lens full --window 40..50 run.aft");
    assert!((50..all).contains(&reaches()));
    sandbox.ok("verify run.aft");
}
