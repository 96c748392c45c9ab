//! Calls, returns and stretches of `trace --level statement` agree with a naive recorder, the
//! engine and the whole trace.

#[path = "../../../record/tests/it/play.rs"]
mod play;

use std::sync::Arc;

use afterimage_ids::FuncId;
use afterimage_program::Program;
use afterimage_replay::steps::{
    Level, ReverseSteps, Step, Steps, Wanted, What, Within, last_steps,
};
use afterimage_replay::whole_path::Window;
use afterimage_testkit::naive_trace::{Finish, Observation, Observed, Observer, Stop, instrument};
use afterimage_testkit::tools;
use afterimage_trace::{Ending, RawValue};
use play::play;
use serde_json::Value as Json;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, each_recording_of, seeds};
use crate::common::memory_programs::memory_program;
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 12;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

/// A program with functions that return without executing anything after a call or a throw, in
/// every way. It also has tail calls to functions and to the host, recursion, and several entries.
const RETURNS: &str = r#"(module
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (tag $e (param i32))
  (memory (export "memory") 1)
  (table funcref (elem $leaf $yield $by-call))
  (type $gives (func (result i32)))
  (global $n (mut i32) (i32.const 0))
  (func $leaf (type $gives) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
  (func $nothing)
  (func $by-call (type $gives) (i32.const 5) (call $nothing))
  (func $passes (result i32) (call $by-call))
  (func $pair (result i32 i64) (i32.const 7) (i64.const 9) (call $nothing))
  (func $by-loop (result i32) (loop (result i32) (i32.const 6) (call $nothing)))
  (func $by-host (result i32) (call $yield))
  (func $by-branch (param i32) (result i32)
    (block (result i32) (br_if 0 (call $leaf) (local.get 0)) (drop) (call $passes)))
  (func $early (param i32) (result i32)
    (if (local.get 0) (then (return (call $leaf))))
    (call $passes))
  (func $by-catch (result i32)
    (block (result i32) (try_table (catch $e 0) (throw $e (i32.const 7))) (unreachable)))
  (func $own-label (result i32) (try_table (result i32) (catch $e 0) (throw $e (i32.const 8))))
  (func $throws (param i32) (if (local.get 0) (then (call $throws (i32.sub (local.get 0) (i32.const 1))))) (throw $e (local.get 0)))
  (func $from-afar (result i32) (try_table (result i32) (catch $e 0) (call $throws (i32.const 3)) (unreachable)))
  (func $with-event (result i32) (call $nothing) (i32.const 8))
  (func $tail (result i32) (return_call $passes))
  (func $tail-host (result i32) (return_call $yield))
  (func $tail-table (param i32) (result i32) (return_call_indirect (type $gives) (local.get 0)))
  (func $down (param i32) (result i32)
    (if (result i32) (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 3))))
  (func $start (drop (call $passes)))
  (func (export "_initialize") (call $start))
  (func $all (result i32) (local $sum i32)
    (local.set $sum (i32.add (i32.add (call $by-call) (call $passes)) (i32.add (call $by-loop) (call $by-host))))
    (local.set $sum (i32.add (local.get $sum) (i32.add (call $by-branch (i32.const 0)) (call $by-branch (i32.const 1)))))
    (local.set $sum (i32.add (local.get $sum) (i32.add (call $early (i32.const 0)) (call $early (i32.const 1)))))
    (local.set $sum (i32.add (local.get $sum) (i32.add (call $by-catch) (call $own-label))))
    (local.set $sum (i32.add (local.get $sum) (i32.add (call $from-afar) (call $with-event))))
    (local.set $sum (i32.add (local.get $sum) (i32.add (call $tail) (call $tail-host))))
    (local.set $sum (i32.add (local.get $sum) (call $tail-table (i32.const 0))))
    (local.set $sum (i32.add (local.get $sum) (call $tail-table (i32.const 1))))
    (local.set $sum (i32.add (local.get $sum) (call $tail-table (i32.const 2))))
    (local.set $sum (i32.add (local.get $sum) (call $down (i32.const 5))))
    (call $pair)
    (drop)
    (drop)
    (local.get $sum))
  (func (export "all") (result i32) (call $all))
  (func (export "pair") (result i32 i64) (call $pair))
  (func (export "caught") (result i32) (call $own-label))
  (func (export "host") (result i32) (call $by-host))
  (func (export "tail") (result i32) (return_call $passes))
  (func (export "hosted") (result i32) (return_call $yield))
  (func (export "uncaught") (result i32) (call $throws (i32.const 2)) (i32.const 1))
  (func (export "deep") (result i32) (i32.div_u (call $down (i32.const 4)) (i32.sub (call $down (i32.const 2)) (i32.const 3)))))"#;

const EXPORTS: usize = 9;

fn steps(recorded: &Recorded, wanted: Wanted) -> Vec<Step> {
    let mut steps = Steps::new(
        recorded.run_from(None),
        recorded.file().log().unwrap(),
        wanted,
    )
    .unwrap();
    std::iter::from_fn(|| steps.next().unwrap()).collect()
}

fn all(recorded: &Recorded) -> Wanted {
    Wanted {
        window: Window {
            first: 1,
            last: recorded.path().unwrap().length(),
        },
        ..Wanted::ALL
    }
}

/// Returns a naive recorder's observation of a run, and the engine's results of the last host call.
fn observed(recorded: &Recorded) -> (Observation, Option<Vec<RawValue>>) {
    let program: Arc<Program> = Arc::new(Program::parse(recorded.bytes()).unwrap());
    let traced = instrument(recorded.bytes(), &program);
    // The player keeps the program on another thread.
    let kept: &'static Program = Box::leak(Box::new(Program::parse(recorded.bytes()).unwrap()));
    let module = traced.module.clone();
    let observer = Observer::new(kept, Box::leak(Box::new(traced)), Stop::Never);
    let (played, observer) = play(&module, &program, recorded.file(), Some(observer));
    let returned = played.finish == Finish::Returned;
    let observation = observer.unwrap().finish(played.finish).unwrap();
    let results = played.results.last().cloned();
    (observation, results.filter(|_| returned))
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    returns: u64,
    results: u64,
}

/// Whether the recording can be followed and is short.
fn usable(recorded: &Recorded) -> bool {
    (1..=MOST_BLOCKS).contains(&recorded.path().unwrap().length())
}

fn compare(sandbox: &Sandbox, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    let ending = recorded.file().end().unwrap().map(|end| end.ending);
    if !usable(&recorded) || matches!(ending, None | Some(Ending::StackOverflow)) {
        return;
    }
    let (naive, results) = observed(&recorded);
    let all = steps(&recorded, all(&recorded));
    let returns = all
        .iter()
        .filter(|step| matches!(step.what, What::Return(_)));
    let found = Vec::from_iter(returns.clone().map(|step| (step.time, step.function)));
    assert_eq!(found, naive.returns, "returns");
    // Exactly the called functions begin activations, unless the run ended at a call.
    let entered = naive.trace.iter().filter_map(|observed| match observed {
        Observed::Enter(function) => Some(*function),
        Observed::Block(_) | Observed::Leave => None,
    });
    let defined = |function: &FuncId| recorded.program().function(*function).is_some();
    let called = all.iter().filter_map(|step| match step.what {
        What::Call { callee, .. } => Some(callee).filter(defined),
        _ => None,
    });
    assert!(called.eq(entered), "calls");
    // The host received the results of the last function to return.
    let last = all.iter().rev().find_map(|step| match &step.what {
        What::Return(values) | What::HostReturn(_, values) => Some(values),
        _ => None,
    });
    if let Some(results) = results {
        let last = last.expect("a return");
        assert_eq!(last.len(), results.len());
        for (value, result) in last.iter().zip(&results) {
            let (low, high) = value.bits;
            let same = match *result {
                RawValue::I32(v) => low as u32 == v as u32,
                RawValue::I64(v) => low == v as u64,
                RawValue::F32(bits) => low as u32 == bits,
                RawValue::F64(bits) => low == bits,
                RawValue::V128(bits) => bits == u128::from(low) | u128::from(high) << 64,
                RawValue::NullRef => low == 0,
                RawValue::OpaqueRef => low != 0,
            };
            assert!(same, "{value:?} is not {result:?}");
        }
        let info: Json =
            serde_json::from_str(&sandbox.ok("info --format json run.aft").stdout).unwrap();
        let shown = info["results"].as_array().expect("results");
        assert_eq!(shown.len(), results.len());
        compared.results += 1;
    }
    for function in returns.map(|step| step.function).take(40) {
        let own = all.iter().filter(|step| step.function == function);
        let wanted = Wanted {
            function: Some(function),
            ..self::all(&recorded)
        };
        assert!(steps(&recorded, wanted).iter().eq(own), "{function:?}");
    }
    compared.returns += found.len() as u64;
    compared.runs += 1;
}

#[test]
fn returns_of_generated_programs_are_those_of_a_naive_recorder() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    for seed in 0..seeds(SEEDS) {
        println!("memory, seed {seed}");
        let module = wat::parse_str(memory_program(seed)).unwrap();
        each_recording_of(&module, 2, "paths", |sandbox| {
            compare(sandbox, &mut compared);
        });
    }
    assert!(compared.runs >= 2 * seeds(SEEDS), "{} runs", compared.runs);
    assert!(compared.returns > 50, "{} returns", compared.returns);
    assert!(compared.results > 0);
}

#[test]
fn returns_without_a_block_of_their_own_are_there() {
    let mut compared = Compared::default();
    let module = wat::parse_str(RETURNS).unwrap();
    each_recording_of(&module, EXPORTS, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    assert_eq!(compared.runs, EXPORTS as u64 - 1, "all but _initialize");
    assert!(compared.returns > 60, "{} returns", compared.returns);
    assert!(compared.results > 5);
}

/// Stretches that begin and end inside blocks are parts of the whole trace, in both directions and
/// from the end.
#[test]
fn stretches_begin_and_end_at_the_statement() {
    let mut stretches = 0;
    let mut compare = |sandbox: &Sandbox| {
        let recorded = Recorded::open(sandbox);
        if !usable(&recorded) {
            return;
        }
        for level in [Level::Statement, Level::Memory] {
            let wanted = Wanted {
                level,
                ..all(&recorded)
            };
            let all = steps(&recorded, wanted);
            let places = Vec::from_iter((0..all.len()).filter(|&at| {
                let step = &all[at];
                step.op.is_some() && !matches!(step.what, What::Return(_))
            }));
            for pair in places.chunks(2 + places.len() / 6) {
                let (first, last) = (pair[0], pair[pair.len() - 1]);
                let place = |at: usize| Some((all[at].time, all[at].op.unwrap()));
                let same = |at: usize| move |&other: &usize| place(other) == place(at);
                let begin = places.iter().copied().find(same(first)).unwrap();
                let end = (last..all.len()).filter(|&at| all[at].op.is_some());
                let end = end.take_while(same(last)).last().unwrap();
                let wanted = Wanted {
                    window: Window {
                        first: all[first].time,
                        last: all[last].time,
                    },
                    within: Within {
                        from: place(first),
                        to: place(last),
                    },
                    ..wanted
                };
                let expected = &all[begin..=end];
                assert_eq!(steps(&recorded, wanted), expected);
                let log = || Ok(recorded.file().log().unwrap());
                let mut reverse = ReverseSteps::new(recorded.run_from(None), log, wanted).unwrap();
                let reverse = std::iter::from_fn(|| reverse.next().unwrap());
                assert!(reverse.eq(expected.iter().rev().cloned()));
                for count in [1, 5] {
                    let log = recorded.file().log().unwrap();
                    let found = last_steps(recorded.run_from(None), log, wanted, count);
                    let tail = &expected[expected.len().saturating_sub(count)..];
                    assert!(found.unwrap().iter().eq(tail), "the last {count}");
                }
                stretches += 1;
            }
        }
    };
    each_recording(seeds(SEEDS), 2, "paths", &mut compare);
    for seed in 0..seeds(SEEDS) / 3 {
        println!("memory, seed {seed}");
        let module = wat::parse_str(memory_program(seed)).unwrap();
        each_recording_of(&module, 2, "paths", &mut compare);
    }
    assert!(stretches > 50, "{stretches} stretches");
}

/// A program with several statements on a line, in one or several blocks, with calls, a loop and
/// jumps.
const SOURCE: &str = "\
static int table[8], sum;
static int twice(int x) {
    return x + x;
}
static int step(int i) {
    int a = i, b = 0; table[i & 7] += a;
    for (int k = 0; k < 3; k++) { b += k; sum ^= b; }
    if (a & 1)
        goto odd;
    b += twice(a); sum += b;
    return b;
odd:
    sum -= twice(b);
    return a;
}
int run(int n) {
    int all = 0;
    while (n-- > 0)
        all += step(n);
    return all;
}
";

/// Compiles the source, if there is a suitable compiler.
fn compiled(sandbox: &Sandbox) -> bool {
    let Some(clang) = tools::clang() else {
        return false;
    };
    let source = sandbox.write("a.c", SOURCE);
    let out = sandbox.path("a.wasm");
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[source], &link, &out);
    true
}

fn lines(sandbox: &Sandbox, words: &str) -> Vec<String> {
    let out = sandbox.ok(&format!("trace run.aft --format json {words}"));
    // The first line is the head.
    out.stdout.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn stretches_of_lines_begin_and_end_at_the_line() {
    let sandbox = Sandbox::new();
    if !compiled(&sandbox) {
        return;
    }
    sandbox.ok("record --lens full --invoke run -o run.aft a.wasm 6");
    let line_of = |entry: &str| {
        let entry: Json = serde_json::from_str(entry).unwrap();
        entry["source"]["line"].as_u64()
    };
    let mut compared = 0;
    for level in ["statement", "memory"] {
        let all = lines(&sandbox, &format!("--level {level}"));
        for line in 1..=SOURCE.lines().count() as u64 {
            for number in [1, 2, 5, 6, 17] {
                let place = format!("a.c:{line}#{number}");
                let words = format!("trace run.aft --level {level} --from {place}");
                if sandbox.run(&words).code != Some(0) {
                    break;
                }
                let from = lines(&sandbox, &format!("--level {level} --from {place}"));
                let to = lines(
                    &sandbox,
                    &format!("--level {level} --from {place} --reverse"),
                );
                let until = lines(&sandbox, &format!("--level {level} --to {place}"));
                assert!(all.ends_with(&from), "{place}");
                assert!(all.starts_with(&until), "{place}");
                assert!(to.iter().rev().eq(&until), "{place}");
                if level == "statement" {
                    assert_eq!(line_of(&from[0]), Some(line), "{place}");
                    assert_eq!(line_of(&to[0]), Some(line), "{place}");
                    assert_eq!(from[0], to[0], "{place}");
                    assert_eq!(from.len() + until.len(), all.len() + 1, "{place}");
                    compared += 1;
                } else {
                    assert_eq!(
                        from.len() + until.len(),
                        all.len()
                            + usize::from(
                                from.first().is_some_and(|first| to.first() == Some(first))
                            )
                    );
                }
            }
        }
    }
    assert!(compared > 30, "{compared} places");
}
