//! Tests guests with every kind of ending, several frames deep.

use std::time::Duration;

use afterimage_record::{HostFunction, Interrupt, RecordError, RecordOptions};
use afterimage_trace::{Ending, Interrupter, TrapCode};

use super::agree;
use super::cases::record_run;
use super::exported::export_all;
use crate::harness::{Recording, invoke, quiet, start, try_record, wat};

fn traps(text: &str, args: &[&str], expected: TrapCode) -> Recording {
    println!("{text}");
    let recording = record_run(text, args, &quiet());
    let ending = recording.ending();
    assert!(
        matches!(ending, Ending::Trapped { code, .. } if *code == expected),
        "{ending}"
    );
    recording.check();
    agree(&recording);
    recording
}

#[test]
fn operators_trap_in_the_middle_of_a_block() {
    use TrapCode::{
        BadConversionToInteger, BadSignature, DivisionByZero, IndirectCallToNull, IntegerOverflow,
        MemoryOutOfBounds, NullReference, TableOutOfBounds, Unreachable,
    };
    let operators = [
        ("(unreachable)", Unreachable, "0"),
        ("(if (local.get $x) (then (unreachable)))", Unreachable, "1"),
        (
            "(block $b (br_if $b (local.get $x)) (unreachable))",
            Unreachable,
            "0",
        ),
        (
            "(drop (i32.div_s (i32.const 0x80000000) (local.get $x)))",
            IntegerOverflow,
            "-1",
        ),
        (
            "(drop (i64.div_u (i64.const 7) (i64.extend_i32_s (local.get $x))))",
            DivisionByZero,
            "0",
        ),
        (
            "(drop (i32.rem_s (i32.const 7) (local.get $x)))",
            DivisionByZero,
            "0",
        ),
        (
            "(drop (i32.trunc_f32_s (f32.const nan)))",
            BadConversionToInteger,
            "0",
        ),
        (
            "(drop (i64.trunc_f64_u (f64.const -2)))",
            IntegerOverflow,
            "0",
        ),
        (
            "(drop (i64.load offset=65530 (local.get $x)))",
            MemoryOutOfBounds,
            "0",
        ),
        (
            "(drop (i32.load8_s (local.get $x)))",
            MemoryOutOfBounds,
            "65536",
        ),
        (
            "(drop (i64.load $second offset=0xfffffffffffffff0 (i64.extend_i32_s (local.get $x))))",
            MemoryOutOfBounds,
            "100",
        ),
        (
            "(i32.store16 $second (i64.extend_i32_u (local.get $x)) (local.get $x))",
            MemoryOutOfBounds,
            "-9",
        ),
        (
            "(i32.store offset=4 (local.get $x) (local.get $x))",
            MemoryOutOfBounds,
            "65529",
        ),
        (
            "(drop (v128.load (local.get $x)))",
            MemoryOutOfBounds,
            "65521",
        ),
        (
            "(v128.store16_lane 3 (local.get $x) (v128.const i64x2 1 2))",
            MemoryOutOfBounds,
            "65535",
        ),
        (
            "(memory.fill (local.get $x) (i32.const 1) (i32.const 65536))",
            MemoryOutOfBounds,
            "1",
        ),
        (
            "(memory.fill (local.get $x) (i32.const 1) (i32.const 0))",
            MemoryOutOfBounds,
            "65537",
        ),
        (
            "(memory.copy $first $second (local.get $x) (i64.const 65535) (i32.const 2))",
            MemoryOutOfBounds,
            "0",
        ),
        (
            "(memory.copy (local.get $x) (i32.const 0) (i32.const 2))",
            MemoryOutOfBounds,
            "65535",
        ),
        (
            "(memory.init $three (local.get $x) (i32.const 2) (i32.const 2))",
            MemoryOutOfBounds,
            "0",
        ),
        (
            "(memory.init $three (local.get $x) (i32.const 2) (i32.const 1))",
            MemoryOutOfBounds,
            "65536",
        ),
        (
            "(data.drop $three) (memory.init $three (local.get $x) (i32.const 0) (i32.const 1))",
            MemoryOutOfBounds,
            "0",
        ),
        (
            "(drop (table.get $t (local.get $x)))",
            TableOutOfBounds,
            "4",
        ),
        (
            "(table.set $t (local.get $x) (ref.null func))",
            TableOutOfBounds,
            "4",
        ),
        (
            "(table.fill $t (local.get $x) (ref.null func) (i32.const 2))",
            TableOutOfBounds,
            "3",
        ),
        (
            "(table.copy $t $t (local.get $x) (i32.const 0) (i32.const 1))",
            TableOutOfBounds,
            "4",
        ),
        (
            "(table.init $t $elements (local.get $x) (i32.const 0) (i32.const 3))",
            TableOutOfBounds,
            "0",
        ),
        (
            "(elem.drop $elements) (table.init $t $elements (local.get $x) (i32.const 0) (i32.const 1))",
            TableOutOfBounds,
            "0",
        ),
        (
            "(call_indirect $t (type $none) (local.get $x))",
            IndirectCallToNull,
            "0",
        ),
        (
            "(call_indirect $t (type $none) (local.get $x))",
            BadSignature,
            "1",
        ),
        (
            "(call_indirect $t (type $none) (local.get $x))",
            TableOutOfBounds,
            "77",
        ),
        (
            "(return_call_indirect $t (type $none) (local.get $x))",
            IndirectCallToNull,
            "0",
        ),
        (
            "(return_call_indirect $t (type $none) (local.get $x))",
            BadSignature,
            "1",
        ),
        (
            "(return_call_indirect $t (type $none) (local.get $x))",
            TableOutOfBounds,
            "-1",
        ),
        // The engine merges each of these statements, or a part of it, into one instruction.
        (
            "(drop (i32.add (i32.const 5) (i32.load (local.get $x))))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(global.set $g (i32.add (i32.load (local.get $x)) (global.get $g)))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(global.set $g (i32.add (i32.add (i32.load (local.get $x)) (i32.const 5)) (i32.const 7)))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(i32.store (local.get $x) (i32.sub (i32.load (local.get $x)) (i32.const 9)))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(i32.store (i32.const 24) (local.get $x)) (i32.store (i32.const 32) (i32.add (i32.const 5) (i32.load (i32.load (i32.const 24)))))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(if (i32.load (local.get $x)) (then (global.set $g (i32.const 7))))",
            MemoryOutOfBounds,
            "-4093",
        ),
        (
            "(global.set $g (i32.trunc_f64_s (f64.sqrt (f64.load (local.get $x)))))",
            MemoryOutOfBounds,
            "-4093",
        ),
        ("(throw_ref (ref.null exn))", NullReference, "0"),
        (
            "(block $h (try_table (catch_all $h) (throw_ref (ref.null exn))))",
            NullReference,
            "0",
        ),
    ];
    for (operator, code, argument) in operators {
        let text = format!(
            r#"(module
              (type $none (func))
              (memory $first 1 1)
              (memory $second i64 1 1)
              (table $t 4 4 funcref)
              (elem $elements func $other $none)
              (elem (table $t) (i32.const 1) func $other $none)
              (data $three "abc")
              (global $g (mut i32) (i32.const 0))
              (func $other (param i32) (result i32) (local.get 0))
              (func $none)
              (func $trap (param $x i32)
                (global.set $g (i32.const 1))
                (i32.store (i32.const 8) (i32.const 42))
                {operator}
                (global.set $g (i32.const 2)))
              (func $down (param $n i32) (param $x i32)
                (if (local.get $n)
                  (then
                    (call $down (i32.sub (local.get $n) (i32.const 1)) (local.get $x))
                    (call $none))
                  (else
                    (call_indirect $t (type $none) (i32.const 2))
                    (call $trap (local.get $x)))))
              (func (export "run") (param $x i32)
                (call $down (i32.const 2) (local.get $x))))"#
        );
        let recording = traps(&text, &[argument], code);
        assert_eq!(recording.recorded.end.frames.len(), 5, "{operator}");
    }
}

#[test]
fn runs_exit_and_throw() {
    let bodies = [
        "(call $exit (local.get $n))",
        "(call_indirect (type $taker) (local.get $n) (i32.const 0))",
        "(return_call $exit (local.get $n))",
        "(return_call_indirect (type $taker) (local.get $n) (i32.const 0))",
        "(drop (call $yield)) (loop $l (call $exit (i32.const 3)) (br $l))",
        "(throw $t (local.get $n) (i64.const 4))",
        "(block $h (result exnref)
           (try_table (catch_all_ref $h) (throw $t (local.get $n) (i64.const 4))) unreachable)
         (global.set $g (i32.const 5)) (throw_ref)",
        "(block $h (try_table (catch $u $h) (throw $t (local.get $n) (i64.const 4))))",
    ];
    for body in bodies {
        let text = format!(
            r#"(module
              (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
              (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
              (memory (export "memory") 1)
              (type $taker (func (param i32)))
              (tag $t (param i32 i64)) (tag $u)
              (global $g (mut i32) (i32.const 0))
              (table funcref (elem $exit $leaf))
              (func $leaf (param i32) (i32.store (i32.const 4) (local.get 0)))
              (func $deep (param $n i32) (global.set $g (i32.const 2)) {body})
              (func $down (param $n i32)
                (call_indirect (type $taker) (local.get $n) (i32.const 1))
                (if (local.get $n)
                  (then (call $down (i32.sub (local.get $n) (i32.const 1))))
                  (else (call $deep (i32.const 5))))
                (call $leaf (local.get $n)))
              (func $hop (param $n i32) (return_call $down (local.get $n)))
              (func (export "_start") (call $hop (i32.const 6))))"#
        );
        println!("{body}");
        let bytes = export_all(&wat(&text));
        let recording = try_record(&bytes, &start(), &quiet(), &Interrupt::new()).unwrap();
        let ending = recording.ending();
        let throws = matches!(ending, Ending::Exception { .. });
        assert!(
            throws || matches!(ending, Ending::Exited { .. }),
            "{ending}"
        );
        agree(&recording);
    }
}

#[test]
fn stacks_are_exhausted_by_every_way_to_recur() {
    let bodies = [
        // A function that calls itself, directly and through a table.
        "(func $f (export \"run\") (call $f))",
        "(type $v (func)) (table funcref (elem $f)) (func $f (export \"run\") (call_indirect (type $v) (i32.const 0)))",
        // The same functions, each with an effect.
        "(func $f (export \"run\") (i32.store (i32.const 0) (i32.const 1)) (call $f))",
        r#"(type $v (func)) (table funcref (elem $f))
           (func $f (export "run")
             (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
             (call_indirect (type $v) (i32.const 0)))"#,
        // Two functions with frames of different sizes.
        "(func $f (export \"run\") (call $g) (call $g)) (func $g (param) (call $f))",
        // The function that overflows is a leaf, which is called and returns many times on the way
        // down.
        r#"(global $n (mut i32) (i32.const 0))
           (func $leaf (param f64 f64) (result f64) (f64.add (local.get 0) (f64.sqrt (local.get 1))))
           (func $f (export "run") (local $i i32)
             (loop $l
               (drop (call $leaf (f64.const 1) (f64.convert_i32_s (global.get $n))))
               (local.set $i (i32.add (local.get $i) (i32.const 1)))
               (br_if $l (i32.lt_u (local.get $i) (i32.const 5))))
             (global.set $n (i32.add (global.get $n) (i32.const 1)))
             (call $f)
             (drop (call $leaf (f64.const 1) (f64.const 2))))"#,
        // Branching recursion, in which most activations return.
        r#"(func $f (export "run") (call $g (i32.const 3)) (call $f))
           (func $g (param i32)
             (if (local.get 0) (then
               (call $g (i32.sub (local.get 0) (i32.const 1)))
               (call $g (i32.sub (local.get 0) (i32.const 1))))))"#,
        // Handlers on the way catch nothing, because an exhausted stack is no exception.
        r#"(tag $t)
           (func $f (export "run")
             (block $h (try_table (catch_all $h) (call $f) (throw $t)))
             (call $f))"#,
        // A tail call calls the function whose frame does not fit, so the caller is no longer on
        // the stack.
        r#"(func $f (export "run") (local f64 f64 f64 f64 f64 f64) (call $hop (i32.const 1)))
           (func $hop (param i32) (return_call $land (local.get 0) (i64.const 1) (i64.const 2) (i64.const 3)
              (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8) (i64.const 9)))
           (func $land (param i32 i64 i64 i64 i64 i64 i64 i64 i64 i64)
             (call $f) (call $hop (i32.wrap_i64 (i64.add (local.get 1) (i64.add (local.get 9) (local.get 8))))))"#,
        r#"(func $f (export "run") (call $hop))
           (func $hop (return_call $f))"#,
        r#"(type $v (func)) (table funcref (elem $f))
           (func $f (export "run") (call $hop))
           (func $hop (return_call_indirect (type $v) (i32.const 0)))"#,
    ];
    for body in bodies {
        println!("{body}");
        let options = RecordOptions {
            stack: 64 << 10,
            ..quiet()
        };
        let recording = record_run(&format!("(module (memory 1) {body})"), &[], &options);
        assert_eq!(recording.ending(), &Ending::StackOverflow);
        recording.check();
        agree(&recording);
    }
}

/// Guests that never end and count their steps.
const ENDLESS: &[&str] = &[
    "(func (export \"run\") (loop $l (call $count) (br $l)))",
    r#"(func (export "run") (local $i i64)
         (loop $l
           (i64.store (i32.const 0) (local.get $i))
           (global.set $g (local.get $i))
           (local.set $i (i64.add (local.get $i) (i64.const 1)))
           (br $l)))"#,
    // The block in which the guest is stopped would return or trap if executed.
    r#"(func (export "run") (param $n i32) (local $i i64)
         (loop $l
           (i64.store (i32.const 0) (local.get $i))
           (global.set $g (local.get $i))
           (local.set $i (i64.add (local.get $i) (i64.const 1)))
           (br_if $l (i64.lt_u (local.get $i) (i64.const 1000000000000)))))"#,
    r#"(func $f (export "run") (call $count) (call $down (i32.const 12)) (return_call $f))
       (func $down (param i32)
         (call $count)
         (if (local.get 0) (then
           (call $down (i32.sub (local.get 0) (i32.const 1)))
           (call $down (i32.sub (local.get 0) (i32.const 1))))))"#,
    "(func $f (export \"run\") (global.set $g (i64.add (global.get $g) (i64.const 3))) (return_call $f))",
    r#"(tag $t (param i32))
       (func $throw (param i32) (if (i32.and (local.get 0) (i32.const 3)) (then (throw $t (local.get 0)))))
       (func (export "run") (local $i i32)
         (loop $l
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (i32.store (i32.const 0) (local.get $i))
           (block $h (result i32)
             (try_table (catch $t $h) (call $throw (local.get $i)))
             (br $l))
           (drop)
           (br $l)))"#,
    // An exception is caught by reference again and again.
    r#"(tag $t (param i32))
       (func $throw (param i32) (throw $t (local.get 0)))
       (func (export "run") (local $i i32)
         (loop $l
           (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (block $h (result i32 exnref)
             (try_table (catch_ref $t $h) (call $throw (local.get $i)))
             (br $l))
           (drop) (drop)
           (br $l)))"#,
];

/// Runs an endless guest. Returns `None` if it was stopped during compilation.
fn endless(body: &str, options: &RecordOptions, interrupt: &Interrupt) -> Option<Recording> {
    let text = format!(
        r#"(module (memory (export "memory") 1)
          (global $g (mut i64) (i64.const 0))
          (func $count (global.set $g (i64.add (global.get $g) (i64.const 1))))
          {body})"#
    );
    let bytes = export_all(&wat(&text));
    let args: &[&str] = if body.contains("(param $n i32)") {
        &["0"]
    } else {
        &[]
    };
    let recording = match try_record(&bytes, &invoke("run", args), options, interrupt) {
        Err(RecordError::Interrupted) => return None,
        recorded => recorded.unwrap(),
    };
    let ending = recording.ending();
    assert!(matches!(ending, Ending::Interrupted { .. }), "{ending}");
    Some(recording)
}

#[test]
fn endless_runs_are_stopped() {
    for body in ENDLESS {
        println!("{body}");
        let options = RecordOptions {
            timeout: Some(Duration::from_millis(2)),
            ..quiet()
        };
        if let Some(recording) = endless(body, &options, &Interrupt::new()) {
            agree(&recording);
        }
        let interrupt = Interrupt::new();
        interrupt.stop(Interrupter::CtrlC);
        if let Some(recording) = endless(body, &quiet(), &interrupt) {
            agree(&recording);
        }
    }
}

#[test]
fn a_host_call_is_stopped() {
    let body = r#"
      (func (export "run")
        (call $count)
        (i64.store (i32.const 256) (i64.const 7))
        (i64.store (i32.const 280) (i64.const 3600000000000))
        (drop (call $poll (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 1024)))
        (call $count))"#;
    let text = format!(
        r#"(module
          (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          (global $g (mut i64) (i64.const 0))
          (func $count (global.set $g (i64.add (global.get $g) (i64.const 1))))
          {body})"#
    );
    let options = RecordOptions {
        timeout: Some(Duration::from_millis(30)),
        ..quiet()
    };
    let recording = record_run(&text, &[], &options);
    let ending = recording.ending();
    assert!(matches!(ending, Ending::Interrupted { .. }), "{ending}");
    agree(&recording);
}

#[test]
fn the_host_fails() {
    let text = r#"(module
      (import "env" "fill" (func $fill (param i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "run") (param $n i32) (local $i i32)
        (loop $again
          (i32.store (i32.const 8) (call $fill (local.get $i)))
          (br_if $again (i32.lt_u
            (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))))"#;
    let fill = HostFunction::new("env", "fill", |memory, args| {
        let [afterimage_trace::RawValue::I32(value)] = *args else {
            return Err("other arguments".to_owned());
        };
        if value == 9 {
            return Err("nine is too much".to_owned());
        }
        memory[100 + value as usize] = 1;
        Ok(args.to_vec())
    });
    let options = RecordOptions {
        functions: vec![fill],
        ..quiet()
    };
    let recording = record_run(text, &["12"], &options);
    let ending = recording.ending();
    assert!(matches!(ending, Ending::HostError { .. }), "{ending}");
    agree(&recording);
}

#[test]
fn start_functions_end_the_run() {
    for (body, overflows) in [
        ("unreachable", false),
        ("(drop (i32.load (i32.const -1)))", false),
        ("(throw $t)", false),
        ("(call $begin)", true),
    ] {
        let text = format!(
            r#"(module (memory 1) (tag $t)
              (func $begin (i32.store (i32.const 0) (i32.const 1)) {body})
              (func (export "run"))
              (start $begin))"#
        );
        let options = RecordOptions {
            stack: 64 << 10,
            ..quiet()
        };
        let recording = record_run(&text, &[], &options);
        let ending = recording.ending();
        assert_eq!(ending == &Ending::StackOverflow, overflows, "{ending}");
        assert_ne!(ending, &Ending::Returned);
        agree(&recording);
    }
}

/// The operator that takes a load's value may be moved out of a loop and merged with the load. The
/// trap is then reported in a block that does not contain the load, or the other way round.
#[test]
fn loads_that_were_moved_trap_where_they_are() {
    for (inside, outside) in [
        ("(i32.add (local.get $v) (local.get $n))", ""),
        ("(i32.add (local.get $v) (i32.const 77))", ""),
        (
            "(i32.add (i32.load (local.get $x)) (local.get $n))",
            "(drop (i32.load (i32.const 12)))",
        ),
        (
            "(i32.sub (i32.mul (local.get $v) (local.get $v)) (local.get $n))",
            "(drop (i32.load (i32.const 12)))",
        ),
    ] {
        let text = format!(
            r#"(module (memory 1)
              (func (export "run") (param $x i32) (param $n i32) (local $v i32) (local $i i32)
                {outside}
                (local.set $v (i32.load (local.get $x)))
                (loop $l
                  (drop (i32.load (i32.const 8)))
                  (i32.store (i32.const 16) {inside})
                  (br_if $l (i32.lt_u
                    (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 9))))))"#
        );
        let recording = record_run(&text, &["-4093", "5"], &quiet());
        assert!(recording.recorded.uncertain.is_none(), "{inside}");
        agree(&recording);
    }
}

#[test]
fn loads_of_large_functions_trap() {
    let filler = "(drop (i32.const 0))".repeat(360_000);
    let operators = [
        // The trap is reported at a load after another load in its block, at the operator that
        // takes a load's value, or nowhere.
        "(drop (i32.load (local.get $x)))",
        "(drop (i32.add (i32.const 5) (i32.load (local.get $x))))",
        "(global.set $g (i32.add (i32.add (i32.load (local.get $x)) (i32.const 5)) (i32.const 7)))",
    ];
    for operator in operators {
        let text = format!(
            r#"(module (memory 1) (global $g (mut i32) (i32.const 0))
              (func (export "run") (param $x i32)
                {filler}
                (drop (i32.load (i32.const 8)))
                {operator}))"#
        );
        let recording = record_run(&text, &["-4093"], &quiet());
        assert!(recording.recorded.uncertain.is_none(), "{operator}");
        agree(&recording);
    }
}
