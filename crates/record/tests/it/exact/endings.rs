//! Tests handwritten executions, with some for every kind of synchronous ending.

use afterimage_placement::{Mode, PlanOptions, SplitCost, plan};
use afterimage_record::Interrupt;
use afterimage_testkit::modules::HANDWRITTEN;
use afterimage_trace::{Ending, TrapCode};

use crate::harness::{Recording, exact, invoke, quiet, start, try_record, wat};
use crate::random::{self, ENDINGS};

/// Records a call to `run` and checks everything.
fn run(text: &str, args: &[&str]) -> Recording {
    exact(&wat(text), &invoke("run", args), &quiet())
}

/// Records a call to `run` that traps, and checks everything.
fn traps(text: &str, args: &[&str], expected: TrapCode) -> Recording {
    let recording = run(text, args);
    let ending = recording.ending();
    assert!(
        matches!(ending, Ending::Trapped { code, .. } if *code == expected),
        "{ending:?}\n{text}"
    );
    recording
}

#[test]
fn traps_some_frames_down() {
    let (_, text) = HANDWRITTEN.iter().find(|m| m.0 == "traps").unwrap();
    traps(text, &["0"], TrapCode::Unreachable);
    traps(text, &["1"], TrapCode::DivisionByZero);
    traps(text, &["2"], TrapCode::MemoryOutOfBounds);
    traps(text, &["3"], TrapCode::IndirectCallToNull);
}

/// The engine turns a branch to `unreachable` into one conditional trap, and reports it at the
/// branch.
#[test]
fn unreachable_behind_conditional_branches() {
    let bodies = [
        "(if (local.get $x) (then unreachable))",
        "(if (local.get $x) (then) (else unreachable))",
        "(block $b (br_if $b (local.get $x)) unreachable)",
        "(block $b (br_if $b (i32.eqz (local.get $x))) (return)) unreachable",
        "(block $b (br_if $b (local.get $x)) (return)) unreachable",
        "(loop $l (if (i32.gt_u (local.get $x) (i32.const 5)) (then unreachable))
           (local.set $x (i32.add (local.get $x) (i32.const 1))) (br $l))",
        "(block $a (block $b (block $c (br_table $a $b $c (local.get $x)))
           unreachable) (return)) unreachable",
        "(if (local.get $x) (then unreachable) (else unreachable))",
        "(block $b (br_if $b (local.get $x)) unreachable) unreachable",
        "(if (local.get $x) (then (global.set $g (i32.const 1)) unreachable) (else unreachable))",
        "(if (local.get $x) (then unreachable) (else (global.set $g (i32.const 1)) unreachable))",
        "(if (local.get $x) (then (drop (i32.const 1)) unreachable) (else (call $nothing) unreachable))",
        "(if (local.get $x) (then (call $nothing) unreachable) (else (local.set $x (i32.const 3)) unreachable))",
        "(block $b (br_if $b (local.get $x)) (br_if $b (i32.eqz (local.get $x))) (return)) unreachable",
        "(block $b (br_if $b (i32.const 1)) unreachable) unreachable",
        "(block $b (br_if $b (i32.const 0)) unreachable) unreachable",
        "(if (i32.const 1) (then unreachable))",
        "(block $b (block $c (br_if $c (local.get $x)) (br $b)) (br $b)) unreachable",
        "(drop (block $b (result i32) (i32.const 4) (br_if $b (local.get $x)) unreachable)) unreachable",
    ];
    for body in bodies {
        for x in ["0", "1", "2"] {
            let text = format!(
                r#"(module
                  (global $g (mut i32) (i32.const 0))
                  (func $nothing)
                  (func $trap (param $x i32) {body})
                  (func $down (param $x i32) (call $trap (local.get $x)) (call $nothing))
                  (func (export "run") (param $x i32)
                    (call $down (local.get $x)) (call $down (i32.const 0)) (call $down (i32.const 1))))"#
            );
            println!("{body} {x}");
            run(&text, &[x]);
        }
    }
}

const EXIT: &str = r#"
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (type $taker (func (param i32)))
  (table funcref (elem $exit $leaf))
  (func $leaf (param i32))"#;

#[test]
fn exits_from_any_depth() {
    let bodies = [
        "(call $exit (local.get $n))",
        "(call_indirect (type $taker) (local.get $n) (i32.const 0))",
        "(return_call $exit (local.get $n))",
        "(return_call_indirect (type $taker) (local.get $n) (i32.const 0))",
        "(call $leaf (i32.const 1)) (drop (call $yield)) (loop $l (call $exit (i32.const 3)) (br $l))",
    ];
    for body in bodies {
        let text = format!(
            r#"(module {EXIT}
              (func $deep (param $n i32) {body})
              (func $down (param $n i32)
                (call_indirect (type $taker) (local.get $n) (i32.const 1))
                (if (local.get $n)
                  (then (call $down (i32.sub (local.get $n) (i32.const 1))))
                  (else (call $deep (i32.const 5))))
                (call $leaf (local.get $n)))
              (func $hop (param $n i32) (return_call $down (local.get $n)))
              (func (export "_start") (call $hop (i32.const 6))))"#
        );
        let recording = exact(&wat(&text), &start(), &quiet());
        assert!(
            matches!(recording.ending(), Ending::Exited { .. }),
            "{body}"
        );
    }
}

#[test]
fn exceptions_pass_handlers_at_several_depths() {
    let text = r#"(module
      (tag $a (param i32)) (tag $b (param i64 i32)) (tag $c)
      (type $thrower (func (param i32)))
      (table funcref (elem $throw $middle))
      (global $caught (export "caught") (mut i32) (i32.const 0))
      (func $note (param i32)
        (global.set $caught (i32.add (i32.mul (global.get $caught) (i32.const 10)) (local.get 0))))
      (func $throw (param $k i32)
        (block $none (block $c (block $b (block $a
          (br_table $a $b $c $none (local.get $k)))
          (throw $a (i32.const 11)))
          (throw $b (i64.const 7) (i32.const 8)))
          (throw $c)))
      (func $middle (param $k i32)
        (block $h (result i32)
          (try_table (result i32) (catch $a $h)
            (call_indirect (type $thrower) (local.get $k) (i32.const 0))
            (i32.const 0)))
        call $note)
      (func $outer (param $k i32)
        (local $e exnref)
        (block $all_ref (result exnref)
          (block $b_values (result i64 i32)
            (try_table (catch $b $b_values)
              (try_table (catch_all_ref $all_ref)
                (try_table
                  (call $note (i32.const 1))
                  (call_indirect (type $thrower) (local.get $k) (i32.const 1))
                  (return_call $note (i32.const 2))))
              (unreachable))
            (unreachable))
          (call $note)
          (drop)
          (return))
        (local.set $e)
        (call $note (i32.const 3))
        (throw_ref (local.get $e)))
      (func $catch_all (param $k i32)
        (block $done
          (try_table (catch $c $done) (catch_all $done)
            (call $outer (local.get $k)))
          (call $note (i32.const 4))))
      (func (export "run") (param $k i32) (param $catch i32) (local $i i32)
        (loop $again
          (call $catch_all (local.get $i))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 5))))
        (if (local.get $catch)
          (then (call $catch_all (local.get $k)))
          (else (call $outer (local.get $k))))))"#;
    for kind in ["0", "1", "2", "3"] {
        run(text, &[kind, "1"]);
        let recording = run(text, &[kind, "0"]);
        let threw = matches!(recording.ending(), Ending::Exception { .. });
        assert_eq!(
            threw,
            kind == "1" || kind == "2",
            "{:?}",
            recording.ending()
        );
    }
}

/// Tests handlers that share a target, handlers at the function's own label, and a handler at a
/// loop.
#[test]
fn handlers_lead_anywhere() {
    let text = r#"(module
      (tag $a) (tag $b) (tag $c (param i32))
      (func $throw (param $k i32)
        (if (i32.eq (local.get $k) (i32.const 1)) (then (throw $a)))
        (if (i32.eq (local.get $k) (i32.const 2)) (then (throw $b)))
        (if (i32.eq (local.get $k) (i32.const 3)) (then (throw $c (i32.const 9)))))
      (func $shared (param $k i32)
        (block $h
          (try_table (catch $a $h) (catch $b $h) (catch $a $h)
            (call $throw (local.get $k)))
          (call $throw (i32.const 0))))
      (func $own (param $k i32) (result i32)
        (try_table (catch $c 0)
          (call $throw (local.get $k)))
        (i32.const 1))
      (func $own_nothing (param $k i32)
        (try_table (catch_all 0)
          (call $throw (local.get $k))))
      (func $looped (param $k i32)
        (loop $l
          (br_if 1 (i32.eqz (local.get $k)))
          (local.set $k (i32.sub (local.get $k) (i32.const 1)))
          (try_table (catch $a $l) (catch_all $l)
            (call $throw (local.get $k))
            (call $throw (i32.add (local.get $k) (i32.const 1))))))
      (func $inside (param $k i32)
        (block $h
          (try_table (catch_all $h)
            (if (local.get $k) (then (throw $a)))
            (throw $c (i32.const 1)))))
      (func (export "run") (param $k i32) (result i32) (local $i i32)
        (loop $l
          (call $shared (i32.rem_u (local.get $i) (i32.const 3)))
          (drop (call $own (i32.mul (i32.const 3) (i32.and (local.get $i) (i32.const 1)))))
          (call $own_nothing (local.get $i))
          (call $looped (local.get $i))
          (call $inside (i32.and (local.get $i) (i32.const 1)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get $i) (i32.const 7))))
        (call $shared (local.get $k))
        (call $own (local.get $k))))"#;
    for kind in ["0", "1", "2", "3"] {
        run(text, &[kind]);
    }
}

/// A tail call inside a `try_table` leaves the handler. An exception from the callee does not reach
/// it.
#[test]
fn tail_calls_leave_handlers_behind() {
    let text = r#"(module
      (tag $a)
      (type $none (func))
      (table funcref (elem $throw))
      (func $throw (throw $a))
      (func $direct
        (block $h (try_table (catch_all $h) (return_call $throw))))
      (func $indirect
        (block $h (try_table (catch_all $h) (return_call_indirect (type $none) (i32.const 0)))))
      (func $caught (param $k i32)
        (block $h
          (try_table (catch $a $h)
            (if (local.get $k) (then (call $direct)) (else (call $indirect))))
          unreachable))
      (func (export "run") (param $k i32)
        (call $caught (i32.const 0))
        (call $caught (i32.const 1))
        (if (local.get $k) (then (return_call $direct)))
        (call $indirect)))"#;
    for kind in ["0", "1"] {
        assert!(matches!(
            run(text, &[kind]).ending(),
            Ending::Exception { .. }
        ));
    }
}

#[test]
fn growth_that_fails() {
    let text = r#"(module
      (memory (export "memory") 1 3)
      (memory $wide i64 0 2)
      (table $t (export "table") 1 4 funcref)
      (func $grow (param $by i32) (result i32)
        (i32.add
          (i32.add (memory.grow (local.get $by)) (i32.wrap_i64 (memory.grow $wide (i64.extend_i32_u (local.get $by)))))
          (table.grow $t (ref.null func) (local.get $by))))
      (func (export "run") (param $n i32) (result i32) (local $sum i32)
        (loop $l
          (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (call $grow (local.get $n))))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $l (i32.gt_s (local.get $n) (i32.const -4))))
        (local.get $sum)))"#;
    for n in ["0", "2", "5"] {
        assert_eq!(run(text, &[n]).ending(), &Ending::Returned);
    }
    // The last event is a refused growth, directly before a trap.
    let text = r#"(module (memory 1 1)
      (func $f (drop (memory.grow (i32.const 1))) (drop (i32.div_u (i32.const 1) (memory.size)))
        (drop (memory.grow (i32.const 70000))) unreachable)
      (func (export "run") (call $f)))"#;
    traps(text, &[], TrapCode::Unreachable);
}

#[test]
fn start_functions() {
    let text = |body: &str| {
        format!(
            r#"(module {EXIT}
              (global $started (export "started") (mut i32) (i32.const 0))
              (func $begin
                (drop (call $yield))
                (global.set $started (i32.add (global.get $started) (i32.const 1)))
                (call $more (i32.const 2)))
              (func $more (param $n i32)
                (if (local.get $n)
                  (then (call $more (i32.sub (local.get $n) (i32.const 1))))
                  (else {body})))
              (func (export "_initialize") (drop (call $yield)) (call $leaf (i32.const 1)))
              (func (export "_start") (drop (call $yield)) (call $leaf (i32.const 1)))
              (func (export "run") (param i32) (result i32) (call $leaf (i32.const 2)) (i32.const 5))
              (start $begin))"#
        )
    };
    for (body, returns) in [
        ("(nop)", true),
        ("unreachable", false),
        ("(call $exit (i32.const 9))", false),
        ("(drop (i32.load (i32.const -1)))", false),
    ] {
        for command in [start(), invoke("run", &["3"]), invoke("_initialize", &[])] {
            let recording = exact(&wat(&text(body)), &command, &quiet());
            assert_eq!(recording.ending() == &Ending::Returned, returns, "{body}");
        }
    }
    // The start function is also an export, or is itself invoked.
    let text = r#"(module
      (func $run (export "run"))
      (start $run))"#;
    run(text, &[]);
}

#[test]
fn reactors_are_initialised_first() {
    let text = r#"(module
      (global $ready (mut i32) (i32.const 0))
      (func (export "_initialize") (global.set $ready (i32.const 1)))
      (func (export "run") (param i64 f32 f64) (result i32 f32)
        (if (i32.eqz (global.get $ready)) (then unreachable))
        (global.get $ready) (local.get 1)))"#;
    let recording = run(text, &["-7", "1.5", "nan"]);
    assert_eq!(recording.ending(), &Ending::Returned);
    assert_eq!(recording.recorded.results.len(), 2);
}

#[test]
fn functions_without_a_way_out_and_empty_ones() {
    let text = r#"(module
      (func $empty)
      (func $endless (loop $l (call $empty) (br $l)))
      (func $never (unreachable))
      (func $dead (return) (call $endless) (loop $l (br $l)))
      (func (export "run") (param $x i32) (result i32)
        (call $empty) (call $dead)
        (if (i32.eq (local.get $x) (i32.const 1)) (then (call $never)))
        (if (i32.eq (local.get $x) (i32.const 2)) (then (return (i32.const 3))))
        (loop (result i32) (i32.const 4))))"#;
    for x in ["0", "1", "2"] {
        run(text, &[x]);
    }
}

/// An export may be an import. The host then calls its own function.
#[test]
fn an_import_is_invoked() {
    let text = r#"(module
      (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
      (memory (export "memory") 1)
      (export "run" (func $yield))
      (func (export "other") (drop (call $yield))))"#;
    run(text, &[]);
}

/// Different placements of counters give the same counts.
#[test]
fn placements_differ_and_counts_do_not() {
    let mut different = 0;
    for seed in 0..6 {
        let (_, code) = ENDINGS[seed % ENDINGS.len()];
        let text = random::program(9000 + seed as u64, code);
        let bytes = wat(&text);
        let recording = try_record(&bytes, &start(), &quiet(), &Interrupt::new()).unwrap();
        let program = PlanOptions::new(Mode::Program);
        let truth = recording.count(PlanOptions::new(Mode::Edges)).unwrap();
        let dear = SplitCost {
            taken: 100.0,
            else_arm: 100.0,
            table: 100.0,
            call_throw: 100.0,
            catch: 100.0,
        };
        let free = SplitCost::FREE;
        let mut plans = Vec::new();
        for options in [
            PlanOptions::new(Mode::Quick),
            PlanOptions {
                split_cost: dear,
                ..PlanOptions::new(Mode::Quick)
            },
            PlanOptions {
                split_cost: free,
                ..PlanOptions::new(Mode::Quick)
            },
            PlanOptions {
                feedback: Some(&truth),
                ..PlanOptions::new(Mode::Feedback)
            },
            program,
            PlanOptions {
                feedback: Some(&truth),
                ..program
            },
            PlanOptions {
                host_counts_import_calls: false,
                ..program
            },
            PlanOptions {
                host_uses_references: true,
                ..program
            },
        ] {
            assert_eq!(recording.count(options).unwrap(), truth, "{options:?}");
            let plan = plan(&recording.program, &options).unwrap();
            if !plans.contains(&plan.functions) {
                plans.push(plan.functions);
            }
        }
        different += plans.len();
    }
    assert!(different >= 30, "{different} different placements");
}
