//! Variables of the source at moments of a run: programs that rustc and clang make, and what their variables must hold.

mod common;

use std::process::{Command, Stdio};

use common::Sandbox;
use serde_json::Value;

const SOURCE: &str = r#"struct Pair {
    sum: u64,
    last: Option<i16>,
}

#[inline(never)]
fn collatz(mut n: u64, pair: &mut Pair) -> u32 {
    let mut steps = 0;
    while n != 1 {
        if n % 2 == 0 {
            n /= 2;
        } else {
            n = 3 * n + 1;
        }
        pair.sum += n;
        steps += 1;
    }
    pair.last = Some(steps as i16);
    steps
}

fn main() {
    let mut pair = Pair { sum: 0, last: None };
    let mut total = 0;
    for start in 1..=9 {
        total += collatz(start, &mut pair);
    }
    println!("{total} {} {:?}", pair.sum, pair.last);
}
"#;

/// Before `steps += 1`, for all numbers up to a last one: the number, how many steps there were, the sum.
fn expected(last: u64) -> Vec<(u64, u64, u64)> {
    let (mut all, mut sum) = (Vec::new(), 0);
    for start in 1..=last {
        let (mut n, mut steps) = (start, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            sum += n;
            all.push((n, steps, sum));
            steps += 1;
        }
    }
    all
}

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm");
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// The values of a variable, or why there is none.
fn values(sandbox: &Sandbox, place: &str, variable: &str) -> Vec<Result<String, String>> {
    let words =
        format!("values app.aft --at {place} --var {variable} --instances 1..100000 --format json");
    let found = json(sandbox, &words);
    assert_eq!(found["more"], 0);
    let rows = found["instances"].as_array().unwrap();
    assert_eq!(found["count"], rows.len());
    let value = |row: &Value| match row["value"].as_str() {
        Some(value) => Ok(value.to_owned()),
        None => Err(row["unavailable"].as_str().unwrap().to_owned()),
    };
    rows.iter().map(value).collect()
}

#[test]
fn variables_in_memory_have_the_values_that_the_program_computes() {
    let sandbox = recorded();
    let expected = expected(9);
    let texts = |of: fn(&(u64, u64, u64)) -> u64| {
        Vec::from_iter(expected.iter().map(|row| Ok(of(row).to_string())))
    };
    assert_eq!(values(&sandbox, "app.rs:16", "n"), texts(|row| row.0));
    assert_eq!(values(&sandbox, "app.rs:16", "steps"), texts(|row| row.1));
    assert_eq!(
        values(&sandbox, "app.rs:16", "pair->sum"),
        texts(|row| row.2)
    );
}

#[test]
fn the_stack_holds_what_the_callers_had() {
    let sandbox = recorded();
    // Nothing is added before the first call, and each call has the steps of those before.
    let mut total = 0;
    for call in 1..=9u64 {
        let words = format!("state app.aft --at collatz#{call} --frame 1 --format json");
        let state = json(&sandbox, &words);
        let frame = &state["frames"][0];
        assert_eq!(frame["number"], 1);
        assert_eq!(frame["function"], "app::main");
        let variables = frame["variables"].as_array().unwrap();
        let value = |name: &str| {
            let found = variables.iter().find(|v| v["name"] == name);
            found.unwrap()["value"].as_str().unwrap().to_owned()
        };
        assert_eq!(value("start"), call.to_string());
        assert_eq!(value("total"), total.to_string());
        let before: u64 = expected(call - 1).last().map_or(0, |row| row.2);
        assert!(
            value("pair").contains(&format!("sum = {before},")),
            "{}",
            value("pair")
        );
        total += expected(call).len() - expected(call - 1).len();
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let sandbox = recorded();
    let refused = |words: &str| {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(125), "{words}: {ran:?}");
        ran.stderr
    };
    let said = refused("values app.aft --at app.rs:16 --var stesp");
    assert!(said.contains("no variable stesp; there is steps"), "{said}");
    let said = refused("values app.aft --at app.rs:16 --var a[");
    assert!(said.contains("expected an integer"), "{said}");
    let said = refused("values app.aft --at app.rs:16#9999 --var n");
    assert!(said.contains("there is no execution 9,999"), "{said}");
    let said = refused("values app.aft --at app.rs:16:9 --var n");
    assert!(said.contains("names a column"), "{said}");
}

const OPTIMISED: &str = r#"__attribute__((export_name("mix"), noinline)) int mix(int n) {
  int total = 0;
  for (int i = 1; i <= n; i++) {
    total = total * 5 + i;
    if (total % 3 == 0)
      total ^= i << 4;
  }
  return total;
}
__attribute__((export_name("tree"), noinline)) int tree(int n) {
  if (n < 2)
    return n;
  int left = tree(n - 1);
  int right = tree(n - 2);
  return 3 * left - right;
}
"#;

/// Compiles a C program, if there is a compiler that can.
fn clang(sandbox: &Sandbox, level: &str) -> bool {
    let found = ["clang-19", "clang"].into_iter().find(|name| {
        let targets = Command::new(name)
            .arg("--print-targets")
            .stderr(Stdio::null())
            .output();
        targets.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("wasm32"))
    });
    let Some(clang) = found else {
        eprintln!("asleep: nothing here compiles C to WebAssembly");
        return false;
    };
    let source = sandbox.write("mix.c", OPTIMISED);
    let mut command = Command::new(clang);
    command.args(["--target=wasm32-wasi", "-nostdlib", "-g", "-Wl,--no-entry"]);
    command.arg(level).arg("-o").arg(sandbox.path("mix.wasm"));
    command.arg(source).status().unwrap().success()
}

#[test]
fn what_optimised_code_says_of_a_variable_is_right_or_optimised_out() {
    for level in ["-O0", "-O1", "-O2"] {
        let sandbox = Sandbox::new();
        if !clang(&sandbox, level) {
            return;
        }
        sandbox.ok("record --invoke mix -o app.aft mix.wasm 40");
        let (mut total, mut expected) = (0i32, Vec::new());
        for i in 1..=40 {
            total = total.wrapping_mul(5).wrapping_add(i);
            expected.push(total.to_string());
            if total % 3 == 0 {
                total ^= i << 4;
            }
        }
        let found = values(&sandbox, "mix.c:5", "total");
        if level == "-O0" {
            let found: Vec<String> = found.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected);
            continue;
        }
        // The compiler may have made several instructions of the line, so an arrival is of one of the rounds.
        for value in found {
            match value {
                Ok(value) => assert!(expected.contains(&value), "{level}: {value}"),
                Err(why) => assert!(why.contains("optimised out"), "{level}: {why}"),
            }
        }
    }
}

/// The arguments of all calls of `tree`, in order.
fn arguments(n: i32, all: &mut Vec<Result<String, String>>) {
    all.push(Ok(n.to_string()));
    if n >= 2 {
        arguments(n - 1, all);
        arguments(n - 2, all);
    }
}

#[test]
fn arguments_in_locals_have_the_values_that_the_program_passes() {
    for level in ["-O1", "-O2"] {
        let sandbox = Sandbox::new();
        if !clang(&sandbox, level) {
            return;
        }
        sandbox.ok("record --invoke tree -o app.aft mix.wasm 9");
        let mut expected = Vec::new();
        arguments(9, &mut expected);
        // The host's own argument is the first one.
        assert_eq!(values(&sandbox, "tree", "n"), expected, "{level}");
    }
}
