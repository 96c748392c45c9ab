//! Tests runs that end by an exhausted stack or by a stop from outside. Neither the guest nor the
//! log states such an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afterimage_ids::{EntityRef, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_placement::{Mode, PlanOptions};
use afterimage_record::{
    Cache, Interrupt, Progress, RecordError, RecordOptions, RecordedRun, check, count, trace_paths,
};
use afterimage_trace::{Ending, Interrupter};

use crate::harness::{exact, invoke, progress, quiet, start, try_record, wat};

fn small_stack() -> RecordOptions {
    RecordOptions {
        stack: 64 << 10,
        ..quiet()
    }
}

/// Between two polls, a function with a large frame is entered 600 times before a deeper call to it
/// overflows the stack.
#[test]
fn the_overflow_is_told_from_many_entries_before_it() {
    let each = |text: &dyn Fn(usize) -> String| (0..60).map(text).collect::<String>();
    let text = format!(
        r#"(module (memory 1) (func $leaf)
          (func $h (local {}) {} (call $leaf) {})
          (func $g (call $h))
          (func $f (export "run") (local $i i32)
            (loop $l
              (call $h) (call $h) (call $h) (call $h) (call $h) (call $h)
              (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
            (call $g) (call $f) (call $h)))"#,
        "i64 ".repeat(60),
        each(&|i| format!("(local.set {i} (i64.load offset={} (i32.const 0)))", 8 * i)),
        each(&|i| format!("(i64.store offset={} (i32.const 0) (local.get {i}))", 8 * i)),
    );
    let bytes = wat(&text);
    let mut behind_many = 0;
    for stack in 64..72 {
        let options = RecordOptions {
            stack: stack << 10,
            ..quiet()
        };
        let recording =
            try_record(&bytes, &invoke("run", &[]), &options, &Interrupt::new()).unwrap();
        assert_eq!(recording.ending(), &Ending::StackOverflow);
        let edges = recording.count(PlanOptions::new(Mode::Edges)).unwrap();
        assert_eq!(
            recording.count(PlanOptions::new(Mode::Program)).unwrap(),
            edges
        );
        let caller = recording.recorded.end.frames[1].function;
        behind_many += u32::from(caller.as_u32() == 2);
    }
    assert!(
        behind_many > 0,
        "some of the stacks end in the call from the deeper caller"
    );
}

#[test]
fn the_usual_stack_is_exhausted() {
    let text = r#"(module (func $f (export "run") (param $unused i32) (result i32)
        (i32.add (call $f (i32.const 1)) (local.get 0))))"#;
    let recording = exact(&wat(text), &invoke("run", &["1"]), &quiet());
    assert_eq!(recording.ending(), &Ending::StackOverflow);
    assert!(recording.recorded.end.frames.len() > 10_000);
}

#[test]
fn a_start_function_exhausts_the_stack() {
    let text = "(module (func $f (call $f)) (func (export \"run\")) (start $f))";
    let recording = exact(&wat(text), &invoke("run", &[]), &small_stack());
    assert_eq!(recording.ending(), &Ending::StackOverflow);
}

/// Loops of several shapes, stopped at arbitrary moments.
const ENDLESS: &[&str] = &[
    "(func (export \"run\") (loop $l (br $l)))",
    r#"(func $leaf (param i32) (result i32) (i32.and (local.get 0) (i32.const 7)))
       (func (export "run") (local $i i32)
         (loop $l
           (block $b
             (br_if $b (call $leaf (local.get $i)))
             (local.set $i (i32.add (local.get $i) (i32.const 3))))
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br $l)))"#,
    // Nested loops in a function that is called again and again. None of these loops runs for long.
    r#"(func $inner (param $n i32) (local $j i32)
         (loop $l
           (br_if 1 (i32.gt_u (local.get $j) (local.get $n)))
           (local.set $j (i32.add (local.get $j) (i32.const 1)))
           (br $l)))
       (func (export "run") (local $i i32)
         (loop $outer
           (call $inner (i32.and (local.get $i) (i32.const 15)))
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br $outer)))"#,
    // A program without loops.
    r#"(func $f (export "run") (call $down (i32.const 12)) (return_call $f))
       (func $down (param i32)
         (if (local.get 0) (then
           (call $down (i32.sub (local.get 0) (i32.const 1)))
           (call $down (i32.sub (local.get 0) (i32.const 1))))))"#,
    "(func $f (export \"run\") (return_call $f))",
    // Blocks whose only exit may trap or throw, so they are counted at their beginning, at the
    // polls.
    r#"(type $v (func)) (table funcref (elem $f))
       (func $f (export "run") (return_call_indirect (type $v) (i32.const 0)))"#,
    r#"(tag $t)
       (func (export "run") (loop $l (try_table (catch $t $l) (throw $t))))"#,
    r#"(tag $t (param i32))
       (func $throw (param i32) (if (i32.and (local.get 0) (i32.const 3)) (then (throw $t (local.get 0)))))
       (func (export "run") (local $i i32)
         (loop $l
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (block $h (result i32)
             (try_table (catch $t $h) (call $throw (local.get $i)))
             (br $l))
           (drop)
           (br $l)))"#,
];

#[test]
fn endless_runs_are_stopped() {
    for (i, body) in ENDLESS.iter().enumerate() {
        println!("{body}");
        let counts = [Mode::Quick, Mode::Program, Mode::Edges][i % 3];
        let options = RecordOptions {
            timeout: Some(Duration::from_millis(2)),
            counts: Some(PlanOptions::new(counts)),
            ..quiet()
        };
        let recording = exact(
            &wat(&format!("(module {body})")),
            &invoke("run", &[]),
            &options,
        );
        assert_eq!(
            recording.ending(),
            &Ending::Interrupted {
                by: Interrupter::Timeout
            }
        );
    }
}

#[test]
fn a_run_that_was_stopped_before_it_began() {
    for body in ENDLESS {
        let interrupt = Interrupt::new();
        interrupt.stop(Interrupter::CtrlC);
        interrupt.stop(Interrupter::Terminate);
        let bytes = wat(&format!("(module {body})"));
        let recorded = try_record(&bytes, &invoke("run", &[]), &quiet(), &interrupt);
        let recording = match recorded {
            // The run was stopped during compilation.
            Err(RecordError::Interrupted) => continue,
            recorded => recorded.unwrap(),
        };
        assert_eq!(
            recording.ending(),
            &Ending::Interrupted {
                by: Interrupter::CtrlC
            }
        );
        recording.check();
    }
}

/// Without the clock, the moment of a stop is lost. So the counts are those of the live run, if it
/// counted.
#[test]
fn without_a_clock_nothing_is_guessed() {
    let bytes = wat("(module (func $f (export \"run\") (call $f)))");
    let options = RecordOptions {
        clock: false,
        counts: Some(PlanOptions::new(Mode::Quick)),
        ..small_stack()
    };
    let recording = try_record(&bytes, &invoke("run", &[]), &options, &Interrupt::new()).unwrap();
    assert_eq!(recording.ending(), &Ending::StackOverflow);
    let refused = check(&recording.run(&afterimage_record::Cache::none(), &progress()));
    assert!(
        matches!(refused, Err(RecordError::NoClock(_))),
        "{refused:?}"
    );
    let counts = &recording.recorded.counts.as_ref().unwrap().counts.functions[0];
    let entered = recording.recorded.end.frames.len() as u64 - 1;
    assert_eq!(
        (counts.entries, counts.open.iter().map(|o| o.1).sum::<u64>()),
        (entered, entered)
    );
}

/// A guest that sleeps five frames deep. The guest waits for one moment, or for the earlier of two
/// moments. The host handles these cases differently.
#[test]
fn sleeps_are_stopped() {
    for moments in [1, 2] {
        for clock in [true, false] {
            let text = format!(
                r#"(module
                  (import "wasi_snapshot_preview1" "poll_oneoff"
                    (func $poll (param i32 i32 i32 i32) (result i32)))
                  (memory (export "memory") 1)
                  (func $moment (param $at i32) (param $nanoseconds i64)
                    (i64.store (local.get $at) (i64.const 7))
                    (i32.store offset=16 (local.get $at) (i32.const 1))
                    (i64.store offset=24 (local.get $at) (local.get $nanoseconds)))
                  (func $sleep (param $nanoseconds i64)
                    (call $moment (i32.const 256) (local.get $nanoseconds))
                    (call $moment (i32.const 304) (i64.const 7200000000000))
                    (if (call $poll (i32.const 256) (i32.const 512) (i32.const {moments}) (i32.const 1024))
                      (then unreachable))
                    (if (i32.ne (i32.load (i32.const 1024)) (i32.const 1)) (then unreachable))
                    (if (i64.ne (i64.load (i32.const 512)) (i64.const 7)) (then unreachable)))
                  (func $down (param $n i32)
                    (if (local.get $n)
                      (then (call $down (i32.sub (local.get $n) (i32.const 1))))
                      (else (call $sleep (i64.const 3600000000000)))))
                  (func (export "_start")
                    (call $sleep (i64.const 1000))
                    (call $sleep (i64.const 12000000))
                    (call $down (i32.const 4))))"#
            );
            let options = RecordOptions {
                clock,
                check_effects: true,
                timeout: Some(Duration::from_millis(100)),
                ..quiet()
            };
            let recording = exact(&wat(&text), &start(), &options);
            assert_eq!(
                recording.ending(),
                &Ending::Interrupted {
                    by: Interrupter::Timeout
                }
            );
            assert_eq!(recording.recorded.end.frames.len(), 7);
        }
    }
}

/// Cancels counting and tracing at the first report of progress. The rest of the run must not be
/// executed.
#[test]
fn a_build_that_has_begun_ends_when_it_is_cancelled() {
    let bytes = wat(r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (memory (export "memory") 1)
          (func (export "run") (local $i i32)
            (loop $l
              (drop (call $yield))
              (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000))))))"#);
    let recording =
        try_record(&bytes, &invoke("run", &[]), &quiet(), &Interrupt::new()).expect("a recording");
    let cache = Cache::none();
    let quick = PlanOptions::new(Mode::Quick);
    type Build<'b> = &'b dyn Fn(&RecordedRun<'_>) -> Result<(), RecordError>;
    let builds: [Build<'_>; 3] = [
        &|run| count(run, &quick).map(drop),
        &|run| trace_paths(run, None, Nowhere(0)).map(drop),
        &|run| check(run),
    ];
    for build in builds {
        let (cancel, signs) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (cancelling, counting) = (Arc::clone(&cancel), Arc::clone(&signs));
        let progress: Progress = Arc::new(move |_| {
            cancelling.store(true, Ordering::SeqCst);
            counting.fetch_add(1, Ordering::SeqCst);
            // The thread that stops the guest checks every 20 ms whether to stop it.
            std::thread::sleep(Duration::from_millis(50));
        });
        let error = build(&RecordedRun {
            cancel: Some(&cancel),
            ..recording.run(&cache, &progress)
        });
        let error = error.expect_err("a build that was cancelled");
        assert!(matches!(error, RecordError::Interrupted), "{error}");
        // The whole run reports its progress nearly two hundred times.
        let signs = signs.load(Ordering::SeqCst);
        assert!(signs < 100, "{signs} signs of progress");
        let again = build(&recording.run(&cache, &crate::harness::progress()));
        again.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A sink that drops a path and numbers its nodes.
struct Nowhere(usize);

impl Sink for Nowhere {
    fn define(&mut self, _: ExecutedPath<'_>) -> NodeId {
        self.0 += 1;
        NodeId::new(self.0 - 1)
    }

    fn path(&mut self, _: NodeId) {}

    fn enter(&mut self, _: FuncId) {}

    fn leave(&mut self) {}
}
