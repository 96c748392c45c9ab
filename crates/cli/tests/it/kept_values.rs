//! Tests values of a part of a run: of windows, between marks, and of some functions. Stored values
//! are the same as without a filter. Questions about other values are refused.

use serde_json::Value;

use crate::common::Sandbox;

/// Three times, `main` lets `twice` fill an array and `sum` add it up. Both call `mix`.
const PROGRAM: &str = r#"(module
  (memory (export "memory") 1)
  (global $seed (mut i32) (i32.const 7))
  (func $main (export "main") (local $i i32) (local $all i32)
    (loop $again
      (call $fill (local.get $i))
      (local.set $all (i32.add (local.get $all) (call $sum)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))
    (i32.store (i32.const 100) (local.get $all)))
  (func $fill (param $round i32) (local $at i32)
    (loop $again
      (i32.store (local.get $at) (call $mix (i32.add (local.get $at) (local.get $round))))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 32)))))
  (func $sum (result i32) (local $at i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 32))))
    (call $mix (local.get $sum)))
  (func $mix (param $x i32) (result i32)
    (global.set $seed (i32.add (i32.mul (global.get $seed) (i32.const 5)) (local.get $x)))
    (i32.xor (global.get $seed) (i32.const 0x55)))
  (func $idle))"#;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app.wat", PROGRAM);
    sandbox.ok("record --invoke main --lens paths -o app.aft app.wat");
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Returns all values of the statements of a function.
fn values(sandbox: &Sandbox, file: &str, function: &str) -> Value {
    let words = format!("values {file} --at {function} --instances 1..1000 --format json");
    json(sandbox, &words)["statements"].clone()
}

fn copy(sandbox: &Sandbox, name: &str) {
    sandbox.write(name, sandbox.read("app.aft"));
}

const FUNCTIONS: [&str; 4] = ["main", "fill", "sum", "mix"];

#[test]
fn functions_that_are_kept_have_the_values_of_the_whole_run() {
    let sandbox = recorded();
    copy(&sandbox, "whole.aft");
    sandbox.ok("build --lens full whole.aft");
    for left_out in FUNCTIONS {
        copy(&sandbox, "part.aft");
        let built = sandbox.ok(&format!("build --lens full --exclude {left_out} part.aft"));
        assert!(
            built.stderr.contains(&format!("without {left_out}")),
            "{built:?}"
        );
        for function in FUNCTIONS.into_iter().filter(|name| *name != left_out) {
            let part = values(&sandbox, "part.aft", function);
            let whole = values(&sandbox, "whole.aft", function);
            let (part, whole) = (part.as_array().unwrap(), whole.as_array().unwrap());
            assert_eq!(part.len(), whole.len());
            for (part, whole) in part.iter().zip(whole) {
                let operator = part["operator"].as_str().unwrap();
                if part["refused"].is_string() && operator.starts_with("call") {
                    // The result of a call belongs to the function that returns it.
                    assert!(["sum", "mix"].contains(&left_out), "{part}");
                    continue;
                }
                assert_eq!(part, whole, "{function} without {left_out}");
            }
        }
        sandbox.refused(
            &format!("values part.aft --at {left_out}"),
            125,
            &[
                &format!("{left_out} was left out: values were kept without {left_out}"),
                "from t=1 to",
                "--again",
            ],
        );
        let verified = sandbox.ok("verify part.aft");
        assert!(verified.stdout.contains("sound"), "{verified:?}");
        // If a left-out function wrote the bytes that are read, `deps` still names the store.
        if left_out == "fill" {
            let statements = values(&sandbox, "part.aft", "sum");
            let mut statements = statements.as_array().unwrap().iter();
            let load = statements
                .find(|found| found["operator"].as_str().unwrap().starts_with("i32.load"));
            let load = load.unwrap()["offset"].as_u64().unwrap();
            let deps = sandbox.ok(&format!("deps part.aft --at @{load:#x}#3 --data --depth 4"));
            assert!(deps.stdout.contains("i32.store  in fill"), "{deps:?}");
            assert!(
                deps.stdout
                    .contains(", without fill, but this question needs a value"),
                "{deps:?}"
            );
        }
    }
}

#[test]
fn all_windows_of_a_file_are_of_the_same_functions() {
    let sandbox = recorded();
    sandbox.ok("build --lens full --include sum --window 1..40 app.aft");
    let info = sandbox.ok("info app.aft").stdout;
    assert!(info.contains("without functions other than sum"), "{info}");
    // The recording already has these values.
    let again = sandbox.ok("build --lens full --include sum --window 10..20 app.aft");
    assert!(again.stderr.contains("already"), "{again:?}");
    sandbox.refused(
        "build --lens full --window 41..50 app.aft",
        125,
        &[
            "without functions other than sum",
            "of all functions",
            "--again",
        ],
    );
    let more = sandbox.ok("build --lens full --include sum --window 41..60 app.aft");
    assert!(more.stderr.contains("from t=41 to t=60"), "{more:?}");
    sandbox.ok("build --lens full --again app.aft");
    assert!(
        !sandbox
            .ok("info app.aft")
            .stdout
            .contains("without functions")
    );
    // All values include the requested values.
    let again = sandbox.ok("build --lens full --exclude mix app.aft");
    assert!(again.stderr.contains("already"), "{again:?}");
}

#[test]
fn marks_are_windows() {
    let sandbox = recorded();
    let built = sandbox.ok("build --lens full --start sum#2 --stop sum#3 app.aft");
    let info = json(&sandbox, "info app.aft --format json");
    let (first, last) = (&info["values"][0]["first"], &info["values"][0]["last"]);
    let said = format!("from t={first} to t={last}");
    assert!(built.stderr.contains(&said), "{built:?}");
    sandbox.ok("values app.aft --at sum#2");
    sandbox.refused(
        "build --lens full --start sum#9 app.aft --again",
        125,
        &["--start sum#9", "3 times"],
    );
    sandbox.refused(
        "build --lens full --start sum#3 --stop sum#1 app.aft --again",
        125,
        &["nothing is left between"],
    );
}

/// Returns the same windows by times, by positions, and with other options.
fn windows(length: u64, calls: [u64; 2]) -> Vec<(String, &'static str, Option<&'static str>)> {
    let half = length / 2;
    let (from, to) = (length - 4, length - 1);
    let [second, third] = calls;
    vec![
        (format!("{half}..{length}"), "50%..end", None),
        (format!("{from}..{to}"), "-5..-2", None),
        ("1..7".to_owned(), "start..t=7", None),
        (
            format!("{second}..{third}"),
            "sum#2..sum#3",
            Some("--start sum#2 --stop sum#3"),
        ),
        (
            format!("{second}..{length}"),
            "sum#2..-1",
            Some("--start sum#2"),
        ),
    ]
}

#[test]
fn windows_are_between_positions() {
    let sandbox = recorded();
    sandbox.ok("record --invoke main -o bare.aft app.wat");
    let length = json(&sandbox, "info app.aft --format json")["path"]["blocks"].clone();
    let length = length.as_u64().unwrap();
    let calls = [2, 3].map(|number| {
        let words = format!("calls app.aft --function sum --call {number} --format json");
        json(&sandbox, &words)["stack"][0]["t"].as_u64().unwrap()
    });
    for (times, positions, marks) in windows(length, calls) {
        let mut known: Option<(Value, String)> = None;
        let options = [format!("--window {times}"), format!("--window {positions}")];
        for option in options.iter().map(String::as_str).chain(marks) {
            copy(&sandbox, "full.aft");
            sandbox.ok(&format!("build --lens full {option} full.aft"));
            let values = json(&sandbox, "info full.aft --format json")["values"].clone();
            // Without a path, the number of blocks is counted.
            sandbox.write("paths.aft", sandbox.read("bare.aft"));
            sandbox.ok(&format!("build --lens paths {option} paths.aft"));
            let path = sandbox.ok("trace paths.aft").stdout;
            let words = format!("--invoke main --lens paths {option} -o live.aft app.wat");
            sandbox.ok(&format!("record --force {words}"));
            assert_eq!(sandbox.ok("trace live.aft").stdout, path, "{option}");
            assert!(path.contains("blocks were left out"), "{option}: {path}");
            match &known {
                None => known = Some((values, path)),
                Some(known) => assert_eq!(*known, (values, path), "{option}"),
            }
        }
    }
}

#[test]
fn a_window_that_is_none_is_refused() {
    let sandbox = recorded();
    sandbox.ok("record --invoke main -o bare.aft app.wat");
    for (window, why) in [
        ("7", "write two positions"),
        ("7..", "write two positions"),
        ("9..7", "the end must not be before the beginning"),
        ("end..start", "the end must not be before the beginning"),
        ("0..7", "times are numbered from 1"),
        ("101%..end", "101%"),
        ("nobody#2..end", "nobody"),
        ("-900..end", "-900"),
    ] {
        for words in ["build --lens full app.aft", "build --lens paths bare.aft"] {
            let words = format!("{words} --window {window}");
            sandbox.refused(&words, 125, &[&format!("--window {window}"), why]);
        }
    }
    // Before the run, only the syntax of a window that depends on its length can be checked.
    sandbox.refused(
        "record --invoke main --lens paths --window 50..x% -o no.aft app.wat",
        125,
        &["--window 50..x%"],
    );
    sandbox.refused(
        "build --lens paths --start sum#1 --window sum#2..end bare.aft",
        125,
        &["--window sum#2..end and --start both name a place"],
    );
}

#[test]
fn a_window_beyond_the_run_is_refused_with_its_length() {
    let sandbox = recorded();
    sandbox.ok("build --lens full app.aft");
    let length = json(&sandbox, "info app.aft --format json")["path"]["blocks"].clone();
    let run = format!("the run has {length} blocks, from t=1 to t={length}");
    for again in ["", "--again"] {
        for window in ["5000..6000", "1..5000"] {
            let words = format!("build --lens full --window {window} {again} app.aft");
            sandbox.refused(&words, 125, &[window, &run]);
        }
    }
    // The run ended before the end of the window, so only its existing part is kept.
    let ran = sandbox.ok("record --invoke main --lens full --window 10..5000 -o cut.aft app.wat");
    let said = format!("from t=10 to t={length}");
    assert!(ran.stderr.contains(&said), "{ran:?}");
    let ran = sandbox.ok("record --invoke main --lens full --window 5000..6000 -o no.aft app.wat");
    assert!(
        ran.stderr.contains(&run) && ran.stderr.contains("no values were added"),
        "{ran:?}"
    );
    let ran = sandbox.ok("record --invoke main --lens full --exclude mix -o few.aft app.wat");
    assert!(ran.stderr.contains("without mix"), "{ran:?}");
    sandbox.refused(
        "record --invoke main --window 1..2 -o none.aft app.wat",
        125,
        &["--window", "--lens full"],
    );
    sandbox.refused(
        "record --invoke main --lens full --exclude nobody -o none.aft app.wat",
        125,
        &["--exclude nobody"],
    );
}

#[test]
fn a_path_that_lacks_something_has_no_values_and_the_remedy_is_right() {
    let sandbox = recorded();
    sandbox.ok("build --lens full app.aft");
    sandbox.ok("build --lens paths --again --exclude mix app.aft");
    for words in [
        "build --lens full app.aft",
        "build --lens full --again app.aft",
        "values app.aft --at sum",
        "memory app.aft --address 0",
    ] {
        sandbox.refused(
            words,
            125,
            &[
                "the path lacks mix",
                "afterimage build --lens paths --again app.aft",
            ],
        );
    }
    sandbox.ok("build --lens paths --again app.aft");
    // The values belong to the current path again.
    let again = sandbox.ok("build --lens full app.aft");
    assert!(again.stderr.contains("already"), "{again:?}");
    sandbox.ok("values app.aft --at sum");
}
