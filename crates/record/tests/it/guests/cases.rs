//! Tests handwritten guests whose runs return.

use afterimage_record::{HostFunction, Interrupt, RecordOptions};
use afterimage_testkit::modules::HANDWRITTEN;
use afterimage_trace::{Ending, RawValue};

use super::agree;
use super::exported::export_all;
use crate::harness::{Recording, invoke, quiet, start, try_record, wat};

/// A guest, and the arguments of its export `run`.
pub struct Case {
    pub name: &'static str,
    pub text: &'static str,
    pub args: &'static [&'static str],
}

/// Records a run of `run`.
pub fn record_run(text: &str, args: &[&str], options: &RecordOptions) -> Recording {
    let bytes = export_all(&wat(text));
    let recorded = try_record(&bytes, &invoke("run", args), options, &Interrupt::new());
    recorded.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn record_case(case: &Case) -> Recording {
    let recording = record_run(case.text, case.args, &quiet());
    assert_eq!(recording.ending(), &Ending::Returned, "{}", case.name);
    recording
}

#[test]
fn handwritten_guests() {
    for case in CASES {
        println!("{}", case.name);
        agree(&record_case(case));
    }
}

#[test]
fn modules_of_the_testkit() {
    for (name, export, args) in [
        ("fibonacci", "run", "9"),
        ("collatz", "run", "27"),
        ("sieve", "run", "200"),
        ("interpreter", "run", ""),
        ("exceptions", "run", "9"),
        ("exceptions", "run", "110"),
        ("exceptions", "run_missed", ""),
        ("tail_calls", "run", "41"),
        ("multi_value", "run", "23"),
    ] {
        println!("{name} {export} {args}");
        let (_, text) = HANDWRITTEN.iter().find(|m| m.0 == name).unwrap();
        let args: Vec<&str> = args.split_whitespace().collect();
        let bytes = export_all(&wat(text));
        let recorded = try_record(&bytes, &invoke(export, &args), &quiet(), &Interrupt::new());
        let recording = recorded.unwrap();
        let threw = matches!(recording.ending(), Ending::Exception { .. });
        assert_eq!(threw, name == "exceptions" && args != ["9"], "{name}");
        recording.check();
        agree(&recording);
    }
}

#[test]
fn start_functions_and_reactors() {
    for text in [
        // The start function calls the host and is called again.
        r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (memory (export "memory") 1)
          (global $n (mut i32) (i32.const 0))
          (func $begin
            (drop (call $yield))
            (global.set $n (i32.add (global.get $n) (i32.const 1))))
          (func (export "_initialize") (call $begin))
          (func (export "run") (result i32) (call $begin) (global.get $n))
          (start $begin))"#,
        // The initialised or invoked function is an import.
        r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (memory (export "memory") 1)
          (export "run" (func $yield))
          (func $begin (i32.store (i32.const 0) (i32.const 7)))
          (start $begin))"#,
        r#"(module
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (import "env" "nothing" (func $nothing))
          (memory (export "memory") 1)
          (export "_initialize" (func $nothing))
          (func (export "run") (i32.store (i32.const 0) (i32.const 7))))"#,
    ] {
        let options = RecordOptions {
            functions: vec![HostFunction::new("env", "nothing", |_, _| Ok(Vec::new()))],
            ..quiet()
        };
        agree(&record_run(text, &[], &options));
    }
}

/// Tests a host that fills and reads memory and returns several values, with calls to it of every
/// kind.
#[test]
fn the_host_is_called() {
    let text = r#"(module
      (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (import "env" "twist" (func $twist (param i64 i32) (result i32 i64)))
      (memory (export "memory") 1)
      (type $two (func (param i32 i32) (result i32)))
      (table funcref (elem $random $sizes))
      (global $sum (mut i64) (i64.const 0))
      (data (i32.const 16) "text\n")
      (func $tail (param i32 i32) (result i32) (return_call $random (local.get 0) (local.get 1)))
      (func $tail_indirect (param i32 i32) (result i32)
        (return_call_indirect (type $two) (local.get 0) (local.get 1) (i32.const 0)))
      (func $passed_on (param i64 i32) (result i32 i64) (call $twist (local.get 0) (local.get 1)))
      (func (export "run") (result i32 i64)
        (drop (call $random (i32.const 100) (i32.const 40)))
        (drop (call $tail (i32.const 200) (i32.const 9)))
        (drop (call $tail_indirect (i32.const 300) (i32.const 3)))
        (drop (call_indirect (type $two) (i32.const 400) (i32.const 404) (i32.const 1)))
        (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 408)))
        (drop (call $args (i32.const 500) (i32.const 600)))
        (i32.store (i32.const 0) (i32.const 16))
        (i32.store (i32.const 4) (i32.const 5))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (global.set $sum (i64.add (i64.load (i32.const 100)) (i64.load (i32.const 408))))
        (drop (drop (call $passed_on (i64.const 3) (i32.const 4))))
        (call $passed_on (global.get $sum) (i32.load (i32.const 300)))))"#;
    let twist = HostFunction::new("env", "twist", |memory, args| {
        let [RawValue::I64(a), RawValue::I32(b)] = *args else {
            return Err("other arguments".to_owned());
        };
        memory[1000] = b as u8;
        Ok(vec![RawValue::I32(a as i32), RawValue::I64(i64::from(b))])
    });
    let options = RecordOptions {
        functions: vec![twist],
        check_effects: true,
        ..quiet()
    };
    let recording = record_run(text, &[], &options);
    assert_eq!(recording.ending(), &Ending::Returned);
    agree(&recording);
    let hello = r#"(module
      (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start") (drop (call $sizes (i32.const 8) (i32.const 12)))))"#;
    let recording = try_record(&wat(hello), &start(), &quiet(), &Interrupt::new());
    agree(&recording.unwrap());
}

/// Catches so many exceptions by reference that unreachable exceptions must be freed.
#[test]
fn exceptions_that_nothing_refers_to_are_forgotten() {
    let text = r#"(module
      (tag $t (param i32))
      (global $kept (mut exnref) (ref.null exn))
      (table $t 4 exnref)
      (func $throw (param i32) (throw $t (local.get 0)))
      (func $catch (param $n i32) (result exnref) (local $e exnref)
        (block $h (result i32 exnref)
          (try_table (catch_ref $t $h) (call $throw (local.get $n)))
          unreachable)
        (local.set $e) (drop) (local.get $e))
      (func $payload (param $e exnref) (result i32)
        (block $h (result i32)
          (try_table (catch $t $h) (throw_ref (local.get $e)))
          unreachable))
      (func (export "run") (param $n i32) (result i32) (local $i i32) (local $e exnref)
        (global.set $kept (call $catch (i32.const 70)))
        (table.set $t (i32.const 1) (call $catch (i32.const 71)))
        (local.set $e (call $catch (i32.const 72)))
        (loop $l
          (drop (call $catch (local.get $i)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
        (i32.add (call $payload (global.get $kept))
          (i32.add (call $payload (table.get $t (i32.const 1))) (call $payload (local.get $e))))))"#;
    let recording = record_run(text, &["5000"], &quiet());
    let sum = RawValue::I32(70 + 71 + 72);
    assert_eq!(recording.recorded.results, [sum], "{}", recording.ending());
    agree(&recording);
}

pub const CASES: &[Case] = &[
    // One iteration uses only the old value, and another only the new value. So the operator counts
    // as two executions, although no instruction is needed twice.
    Case {
        name: "exchanges",
        args: &["3"],
        text: r#"(module
          (memory 1)
          (func (export "run") (param $n i32) (result i32) (local $i i32) (local $old i32) (local $sum i32)
            (i32.store (i32.const 8) (i32.const 40))
            (loop $l
              (local.set $old (i32.atomic.rmw.xchg (i32.const 8) (local.get $i)))
              (local.set $sum (select (local.get $old) (local.get $sum) (i32.eqz (local.get $i))))
              (local.set $old (i32.atomic.rmw.cmpxchg (i32.const 16) (local.get $i) (i32.add (local.get $i) (i32.const 1))))
              (local.set $sum (select (local.get $sum) (local.get $old) (local.get $i)))
              (drop (i32.atomic.rmw16.add_u (i32.const 24) (local.get $i)))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
            (i32.add (i32.add (i32.load (i32.const 8)) (i32.load (i32.const 16)))
              (i32.add (local.get $sum) (i32.load16_u (i32.const 24))))))"#,
    },
    Case {
        name: "atomics",
        args: &["-77"],
        text: r#"(module
          (memory 1)
          (data (i32.const 0) "\80\91\a2\b3\c4\d5\e6\f7\7f\60\51\42\33\24\15\06\01\02\03\04")
          (global $sum (mut i64) (i64.const 0))
          (func $add (param i64)
            (global.set $sum (i64.add (i64.rotl (global.get $sum) (i64.const 7)) (local.get 0))))
          (func (export "run") (param $n i32) (result i64)
            (atomic.fence)
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.add_u offset=8 (i32.const 9) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.sub_u offset=8 (i32.const 17) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.and_u offset=8 (i32.const 25) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.or_u offset=8 (i32.const 33) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.xor_u offset=8 (i32.const 41) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.xchg_u offset=8 (i32.const 49) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.cmpxchg_u (i32.const 57) (i32.atomic.load8_u (i32.const 57)) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw8.cmpxchg_u (i32.const 57) (local.get $n) (i32.const 0x81828384))))
            (i32.atomic.store8 offset=4 (i32.const 60) (i32.const 0x81828384))
            (call $add (i64.extend_i32_u (i32.atomic.load8_u (i32.const 65))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.add_u offset=8 (i32.const 74) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.sub_u offset=8 (i32.const 82) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.and_u offset=8 (i32.const 90) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.or_u offset=8 (i32.const 2) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.xor_u offset=8 (i32.const 10) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.xchg_u offset=8 (i32.const 18) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.cmpxchg_u (i32.const 26) (i32.atomic.load16_u (i32.const 26)) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw16.cmpxchg_u (i32.const 26) (local.get $n) (i32.const 0x81828384))))
            (i32.atomic.store16 offset=4 (i32.const 52) (i32.const 0x81828384))
            (call $add (i64.extend_i32_u (i32.atomic.load16_u (i32.const 34))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.add offset=8 (i32.const 44) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.sub offset=8 (i32.const 52) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.and offset=8 (i32.const 60) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.or offset=8 (i32.const 68) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.xor offset=8 (i32.const 76) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.xchg offset=8 (i32.const 84) (local.get $n))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.cmpxchg (i32.const 92) (i32.atomic.load (i32.const 92)) (i32.const 0x81828384))))
            (call $add (i64.extend_i32_u (i32.atomic.rmw.cmpxchg (i32.const 92) (local.get $n) (i32.const 0x81828384))))
            (i32.atomic.store offset=4 (i32.const 44) (i32.const 0x81828384))
            (call $add (i64.extend_i32_u (i32.atomic.load (i32.const 4))))
            (call $add (i64.atomic.rmw8.add_u offset=8 (i32.const 9) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw8.sub_u offset=8 (i32.const 17) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw8.and_u offset=8 (i32.const 25) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw8.or_u offset=8 (i32.const 33) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw8.xor_u offset=8 (i32.const 41) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw8.xchg_u offset=8 (i32.const 49) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw8.cmpxchg_u (i32.const 57) (i64.atomic.load8_u (i32.const 57)) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw8.cmpxchg_u (i32.const 57) (i64.extend_i32_s (local.get $n)) (i64.const 0x8182838485868788)))
            (i64.atomic.store8 offset=4 (i32.const 36) (i64.const 0x8182838485868788))
            (call $add (i64.atomic.load8_u (i32.const 65)))
            (call $add (i64.atomic.rmw16.add_u offset=8 (i32.const 74) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw16.sub_u offset=8 (i32.const 82) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw16.and_u offset=8 (i32.const 90) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw16.or_u offset=8 (i32.const 2) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw16.xor_u offset=8 (i32.const 10) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw16.xchg_u offset=8 (i32.const 18) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw16.cmpxchg_u (i32.const 26) (i64.atomic.load16_u (i32.const 26)) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw16.cmpxchg_u (i32.const 26) (i64.extend_i32_s (local.get $n)) (i64.const 0x8182838485868788)))
            (i64.atomic.store16 offset=4 (i32.const 28) (i64.const 0x8182838485868788))
            (call $add (i64.atomic.load16_u (i32.const 34)))
            (call $add (i64.atomic.rmw32.add_u offset=8 (i32.const 44) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw32.sub_u offset=8 (i32.const 52) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw32.and_u offset=8 (i32.const 60) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw32.or_u offset=8 (i32.const 68) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw32.xor_u offset=8 (i32.const 76) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw32.xchg_u offset=8 (i32.const 84) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw32.cmpxchg_u (i32.const 92) (i64.atomic.load32_u (i32.const 92)) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw32.cmpxchg_u (i32.const 92) (i64.extend_i32_s (local.get $n)) (i64.const 0x8182838485868788)))
            (i64.atomic.store32 offset=4 (i32.const 20) (i64.const 0x8182838485868788))
            (call $add (i64.atomic.load32_u (i32.const 4)))
            (call $add (i64.atomic.rmw.add offset=8 (i32.const 8) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw.sub offset=8 (i32.const 16) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw.and offset=8 (i32.const 24) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw.or offset=8 (i32.const 32) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw.xor offset=8 (i32.const 40) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw.xchg offset=8 (i32.const 48) (i64.extend_i32_s (local.get $n))))
            (call $add (i64.atomic.rmw.cmpxchg (i32.const 56) (i64.atomic.load (i32.const 56)) (i64.const 0x8182838485868788)))
            (call $add (i64.atomic.rmw.cmpxchg (i32.const 56) (i64.extend_i32_s (local.get $n)) (i64.const 0x8182838485868788)))
            (i64.atomic.store offset=4 (i32.const 12) (i64.const 0x8182838485868788))
            (call $add (i64.atomic.load (i32.const 64)))
            (global.get $sum)))"#,
    },
    Case {
        name: "memory",
        args: &["5"],
        text: r#"(module
          (memory $a 1 3)
          (memory $b i64 1 2)
          (data (memory $a) (i32.const 0) "\80\91\a2\b3\c4\d5\e6\f7\7f\60\51\42\33\24\15\06")
          (data (memory $b) (i64.const 8) "active")
          (data $passive "passive bytes")
          (global $sum (mut i64) (i64.const 0))
          (func $add (param i64)
            (global.set $sum (i64.add (i64.rotl (global.get $sum) (i64.const 7)) (local.get 0))))
          (func (export "run") (param $n i32) (result i64)
            (call $add (i64.load offset=1 (local.get $n)))
            (call $add (i64.load32_u (local.get $n))) (call $add (i64.load32_s (i32.const 1)))
            (call $add (i64.load16_u (local.get $n))) (call $add (i64.load16_s (i32.const 1)))
            (call $add (i64.load8_u (local.get $n))) (call $add (i64.load8_s (i32.const 1)))
            (call $add (i64.extend_i32_s (i32.load (i32.const 2))))
            (call $add (i64.extend_i32_u (i32.load8_s (i32.const 1))))
            (call $add (i64.extend_i32_u (i32.load8_u (i32.const 1))))
            (call $add (i64.extend_i32_u (i32.load16_s (i32.const 1))))
            (call $add (i64.extend_i32_u (i32.load16_u (i32.const 1))))
            (call $add (i64.reinterpret_f64 (f64.load (i32.const 3))))
            (call $add (i64.extend_i32_u (i32.reinterpret_f32 (f32.load (i32.const 3)))))
            (i64.store $b offset=100 (i64.const 1) (global.get $sum))
            (i64.store32 $b (i64.const 200) (global.get $sum))
            (i64.store16 $b (i64.const 300) (global.get $sum))
            (i64.store8 $b (i64.const 400) (global.get $sum))
            (i32.store (i32.const 100) (i32.wrap_i64 (global.get $sum)))
            (i32.store16 (i32.const 200) (i32.wrap_i64 (global.get $sum)))
            (i32.store8 (i32.const 300) (i32.wrap_i64 (global.get $sum)))
            (f64.store (i32.const 400) (f64.const -0.5)) (f32.store (i32.const 408) (f32.const nan))
            (memory.copy $a $a (i32.const 5) (i32.const 1) (i32.const 12))
            (memory.copy $a $a (i32.const 1) (i32.const 3) (i32.const 12))
            (memory.copy $a $b (i32.const 500) (i64.const 8) (i32.const 6))
            (memory.copy $b $a (i64.const 600) (i32.const 0) (i32.const 32))
            (memory.copy $b $b (i64.const 65536) (i64.const 0) (i64.const 0))
            (memory.fill $a (i32.const 700) (i32.const 0x1ab) (i32.const 9))
            (memory.fill $b (i64.const 700) (i32.const 3) (i64.const 9))
            (memory.init $a $passive (i32.const 800) (i32.const 2) (i32.const 7))
            (data.drop $passive)
            (memory.init $a $passive (i32.const 800) (i32.const 0) (i32.const 0))
            (call $add (i64.extend_i32_u (memory.grow $a (i32.const 0))))
            (call $add (i64.extend_i32_u (memory.grow $a (i32.const 1))))
            (call $add (i64.extend_i32_u (memory.grow $a (i32.const 5))))
            (call $add (i64.extend_i32_u (memory.grow $a (i32.const -1))))
            (call $add (memory.grow $b (i64.const 1))) (call $add (memory.grow $b (i64.const 1)))
            (call $add (memory.grow $b (i64.const -1)))
            (call $add (i64.extend_i32_u (memory.size $a))) (call $add (memory.size $b))
            (i32.store offset=65532 (i32.const 65536) (i32.const -1))
            (global.get $sum)))"#,
    },
    Case {
        name: "tables",
        args: &["2"],
        text: r#"(module
          (type $f (func (param i32) (result i32)))
          (table $a 8 12 funcref)
          (table $b i64 4 6 funcref)
          (table $e 3 externref)
          (table $full 3 funcref)
          (elem (table $full) (i32.const 0) func $one $two)
          (elem (table $a) (i32.const 1) func $one $two $three)
          (elem $passive func $three $two $one)
          (elem $expressions funcref (ref.func $one) (ref.null func) (ref.func $two))
          (elem declare func $hidden)
          (global $g (mut funcref) (ref.func $three))
          (func $one (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
          (func $two (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
          (func $three (param i32) (result i32) (i32.sub (local.get 0) (i32.const 3)))
          (func $hidden (param i32) (result i32) (i32.xor (local.get 0) (i32.const 64)))
          (func (export "run") (param $n i32) (result i32)
            (table.init $a $passive (i32.const 4) (i32.const 0) (i32.const 2))
            (table.init $b $expressions (i64.const 0) (i32.const 0) (i32.const 3))
            (elem.drop $passive) (elem.drop $expressions)
            (table.init $a $passive (i32.const 0) (i32.const 0) (i32.const 0))
            (table.copy $a $a (i32.const 2) (i32.const 1) (i32.const 4))
            (table.copy $a $a (i32.const 0) (i32.const 1) (i32.const 4))
            (table.copy $a $b (i32.const 6) (i64.const 0) (i32.const 1))
            (table.copy $b $a (i64.const 2) (i32.const 4) (i32.const 2))
            (table.set $a (i32.const 7) (ref.func $hidden))
            (table.set $a (i32.const 1) (table.get $full (i32.const 1)))
            (local.set $n (i32.add (local.get $n) (table.grow $a (global.get $g) (i32.const 2))))
            (local.set $n (i32.add (local.get $n) (table.grow $a (ref.null func) (i32.const 50))))
            (local.set $n (i32.add (local.get $n) (table.grow $a (ref.null func) (i32.const 0))))
            (local.set $n (i32.add (local.get $n) (i32.wrap_i64 (table.grow $b (ref.func $two) (i64.const 1)))))
            (local.set $n (i32.add (local.get $n) (i32.wrap_i64 (table.grow $b (ref.func $two) (i64.const 9)))))
            (table.fill $a (i32.const 8) (ref.func $one) (i32.const 1))
            (table.fill $b (i64.const 1) (ref.func $three) (i64.const 1))
            (local.set $n (i32.add (local.get $n) (table.size $a)))
            (local.set $n (i32.add (local.get $n) (i32.wrap_i64 (table.size $b))))
            (local.set $n (i32.add (local.get $n) (ref.is_null (table.get $e (i32.const 1)))))
            (local.set $n (i32.add (local.get $n) (ref.is_null (global.get $g))))
            (local.set $n (call_indirect $a (type $f) (local.get $n) (i32.const 0)))
            (local.set $n (call_indirect $a (type $f) (local.get $n) (i32.const 1)))
            (local.set $n (call_indirect $a (type $f) (local.get $n) (i32.const 7)))
            (local.set $n (call_indirect $a (type $f) (local.get $n) (i32.const 9)))
            (return_call_indirect $b (type $f) (local.get $n) (i64.const 1))))"#,
    },
    Case {
        name: "vectors that only pass through",
        args: &[],
        text: r#"(module
          (memory 1)
          (global $a (mut v128) (v128.const i64x2 1 2))
          (global $b (mut v128) (v128.const i64x2 3 0))
          (func $global_to_global (global.set $b (global.get $a)))
          (func $global_to_memory (v128.store (i32.const 32) (global.get $a)))
          (func $returned (result v128) (global.get $a))
          (func $tail_called (result v128) (return_call $returned))
          (func $given (param v128 v128) (result v128) (local.get 1))
          (func $called (global.set $b (call $given (global.get $b) (global.get $a))))
          (tag $t (param i32 v128))
          (func $thrown (throw $t (i32.const 3) (global.get $a)))
          (func $caught (result v128)
            (block $h (result i32 v128) (try_table (catch $t $h) (call $thrown)) unreachable)
            (global.set $b) (drop) (global.get $b))
          (func $dropped (drop (global.get $a)) (drop (call $returned)))
          (func $selected (param $x i32) (result v128)
            (select (v128.const i64x2 7 0) (v128.const i64x2 9 0) (local.get $x)))
          (func $selected_typed (param $x i32) (result v128)
            (select (result v128) (global.get $a) (v128.const i64x2 9 0) (local.get $x)))
          (func $mixed (param $x i32) (result i64)
            (select (i64.const 7) (i64.const 9) (local.get $x)))
          (func $both (param $x i32) (result v128)
            (i64.store (i32.const 200) (select (i64.const 7) (i64.const 0) (local.get $x)))
            (select (v128.const i64x2 7 0) (v128.const i64x2 0 0) (local.get $x)))
          (func $store_at (param $at i32) (param $v v128) (v128.store (local.get $at) (local.get $v)))
          (func (export "run")
            (call $global_to_global) (call $store_at (i32.const 0) (global.get $b))
            (call $global_to_memory)
            (global.set $a (v128.const i64x2 -1 -2))
            (call $store_at (i32.const 64) (call $tail_called))
            (call $called) (call $dropped)
            (call $store_at (i32.const 80) (call $caught))
            (v128.store (i32.const 96) (v128.const i64x2 -1 -1))
            (call $store_at (i32.const 112) (call $selected (i32.const 1)))
            (call $store_at (i32.const 128) (call $selected (i32.const 0)))
            (call $store_at (i32.const 144) (call $selected_typed (i32.const 1)))
            (i64.store (i32.const 160) (call $mixed (i32.const 0)))
            (call $store_at (i32.const 176) (call $both (i32.const 1)))
            (call $store_at (i32.const 192) (call $both (i32.const 0)))))"#,
    },
    Case {
        name: "vectors",
        args: &["3"],
        text: r#"(module
          (memory $m 1) (memory $n i64 1)
          (data (i32.const 0) "\80\91\a2\b3\c4\d5\e6\f7\7f\60\51\42\33\24\15\06\99\88")
          (global $at (mut i32) (i32.const 256))
          (func $keep (param v128)
            (v128.store (global.get $at) (local.get 0))
            (global.set $at (i32.add (global.get $at) (i32.const 16))))
          (func $swap (param v128 v128) (result v128 v128) (local.get 1) (local.get 0))
          (func $loop (param $x i32) (param $a v128) (param $b v128) (result v128) (local $t v128)
            (loop $l
              (local.set $t (local.get $a)) (local.set $a (local.get $b)) (local.set $b (local.get $t))
              (local.set $a (i8x16.add (local.get $a) (i8x16.splat (local.get $x))))
              (br_if $l (local.tee $x (i32.sub (local.get $x) (i32.const 1)))))
            (local.get $a))
          (func (export "run") (param $x i32) (local $v v128) (local $w v128)
            (local.set $v (v128.load offset=1 (local.get $x)))
            (call $keep (local.get $v)) (call $keep (local.get $w))
            (call $keep (v128.load8x8_s (i32.const 1))) (call $keep (v128.load8x8_u (i32.const 1)))
            (call $keep (v128.load16x4_s (i32.const 1))) (call $keep (v128.load16x4_u (i32.const 1)))
            (call $keep (v128.load32x2_s (i32.const 1))) (call $keep (v128.load32x2_u (i32.const 1)))
            (call $keep (v128.load8_splat (i32.const 1))) (call $keep (v128.load16_splat (i32.const 1)))
            (call $keep (v128.load32_splat (i32.const 1))) (call $keep (v128.load64_splat (i32.const 1)))
            (call $keep (v128.load32_zero (i32.const 1))) (call $keep (v128.load64_zero (i32.const 1)))
            (call $keep (v128.load8_lane 15 (i32.const 1) (local.get $v)))
            (call $keep (v128.load16_lane 5 (i32.const 1) (local.get $v)))
            (call $keep (v128.load32_lane 3 (i32.const 1) (local.get $v)))
            (call $keep (v128.load64_lane 1 (i32.const 1) (local.get $v)))
            (v128.store $n offset=7 (i64.const 9) (local.get $v))
            (v128.store8_lane 15 (i32.const 201) (local.get $v))
            (v128.store16_lane 7 (i32.const 203) (local.get $v))
            (v128.store32_lane 3 (i32.const 207) (local.get $v))
            (v128.store64_lane 1 (i32.const 211) (local.get $v))
            (call $keep (i8x16.shuffle 0 17 2 19 4 21 6 23 8 25 10 27 12 29 14 31
              (local.get $v) (v128.const i64x2 5 6)))
            (call $keep (v128.bitselect (local.get $v) (v128.const i64x2 5 6) (v128.const i64x2 0x0f0f0f 0xffff)))
            (call $keep (f32x4.relaxed_madd (local.get $v) (local.get $v) (v128.const f32x4 1 2 3 4)))
            (call $keep (i32x4.replace_lane 2 (local.get $v) (i32x4.extract_lane 1 (local.get $v))))
            (call $keep (i16x8.splat (i8x16.bitmask (local.get $v))))
            (call $keep (select (local.get $v) (local.get $w) (local.get $x)))
            (call $keep (select (local.get $w) (v128.not (local.get $v)) (i32.const 0)))
            (call $keep (if (result v128) (v128.any_true (local.get $w))
              (then (local.get $v)) (else (v128.const i64x2 1 1))))
            (call $swap (local.get $v) (v128.const i64x2 8 9)) (call $keep) (call $keep)
            (call $keep (call $loop (local.get $x) (local.get $v) (v128.const i64x2 3 4)))))"#,
    },
    Case {
        name: "exceptions",
        args: &["4"],
        text: r#"(module
          (tag $a (param i32)) (tag $b (param i64 i32)) (tag $c)
          (global $log (mut i64) (i64.const 0))
          (func $note (param i32)
            (global.set $log (i64.add (i64.mul (global.get $log) (i64.const 31))
              (i64.extend_i32_u (local.get 0)))))
          (func $throw (param $k i32)
            (block $none (block $c (block $b (block $a
              (br_table $a $b $c $none (local.get $k)))
              (throw $a (i32.const 11)))
              (throw $b (i64.const 7) (i32.const 8)))
              (throw $c)))
          ;; The slots below a handler keep what they had, also if it was put there in the throwing block.
          (func $below (param $k i32) (result i32)
            (i32.const 1000)
            (block $h (result i32)
              (try_table (result i32) (catch $a $h)
                (i32.add (local.get $k) (i32.const 5))
                (throw $a (i32.const 6))))
            (i32.add))
          (func $below_all (param $k i32) (result i32)
            (i32.mul (local.get $k) (i32.const 3)) (i32.const 77)
            (block $h (try_table (catch_all $h) (i32.const 9) (throw $c)))
            (i32.add))
          (func $below_again (param $k i32) (result i32) (local $e exnref)
            (local.set $e (call $reference))
            (i32.mul (local.get $k) (i32.const 3))
            (block $h (try_table (catch_all $h) (throw_ref (local.get $e))))
            (i32.const 1) (i32.add))
          (func $below_call (param $k i32) (result i32)
            (i32.mul (local.get $k) (i32.const 5))
            (block $h (result i32)
              (try_table (result i32) (catch $a $h)
                (i32.const 55) (call $throw (i32.const 0))))
            (i32.add))
          (func $reference (result exnref)
            (block $h (result exnref) (try_table (catch_all_ref $h) (throw $c)) unreachable))
          ;; A handler that is the function's own label, of every kind.
          (func $own (param $k i32) (result i32)
            (try_table (catch $a 0) (call $throw (local.get $k)))
            (i32.const 1))
          (func $own_throws (result i32)
            (try_table (catch $a 0) (throw $a (i32.const 12)))
            (i32.const 1))
          (func $own_two (result i64 i32)
            (try_table (catch $b 0) (call $throw (i32.const 1)))
            (i64.const 1) (i32.const 2))
          (func $own_none (param $k i32)
            (try_table (catch_all 0) (call $throw (local.get $k)))
            (call $note (i32.const 100)))
          (func $own_reference (param $k i32) (result exnref)
            (try_table (catch_all_ref 0) (call $throw (local.get $k)))
            (ref.null exn))
          (func $own_at_the_end (param $k i32)
            (call $own_none (local.get $k)))
          (func $again (param $k i32)
            (throw_ref (call $own_reference (local.get $k))))
          (func $loops (param $k i32)
            (loop $l
              (br_if 1 (i32.eqz (local.get $k)))
              (local.set $k (i32.sub (local.get $k) (i32.const 1)))
              (try_table (catch $c $l) (catch_all $l)
                (call $throw (local.get $k)))))
          (func $nested (param $k i32)
            (block $outer (block $inner (result i32)
              (try_table (catch_all $outer)
                (try_table (catch $a $inner)
                  (call $throw (local.get $k))
                  (call $note (i32.const 1))
                  (throw $c)))
              unreachable)
              (call $note)))
          (func (export "run") (param $n i32) (result i64) (local $i i32)
            (call $note (call $below (local.get $n)))
            (call $note (call $below_all (local.get $n)))
            (call $note (call $below_again (local.get $n)))
            (call $note (call $below_call (local.get $n)))
            (call $note (call $own_throws))
            (call $own_two) (call $note) (drop)
            (loop $l
              (if (i32.ne (local.get $i) (i32.const 1)) (then
                (if (i32.ne (local.get $i) (i32.const 2)) (then
                  (call $note (call $own (local.get $i)))))))
              (call $own_none (local.get $i))
              (call $own_at_the_end (local.get $i))
              (call $note (ref.is_null (call $own_reference (local.get $i))))
              (block $h (try_table (catch_all $h)
                (call $again (i32.and (local.get $i) (i32.const 1)))))
              (call $loops (local.get $i))
              (call $nested (local.get $i))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
            (global.get $log)))"#,
    },
    Case {
        name: "control",
        args: &["9"],
        text: r#"(module
          (memory 1)
          (type $v (func (result i32 i64)))
          (table funcref (elem $pair))
          (func $pair (result i32 i64) (i32.const 6) (i64.const 7))
          (func $triple (result i32 i32 i64) (i32.const 5) (call $pair))
          (func $under (param i32) (result i32 i32 i64)
            (local.get 0) (call_indirect (type $v) (i32.const 0)))
          ;; Variables change places.
          (func $fibonacci (param $n i32) (result i64) (local $a i64) (local $b i64) (local $t i64)
            (local.set $b (i64.const 1))
            (loop $l
              (local.set $t (i64.add (local.get $a) (local.get $b)))
              (local.set $a (local.get $b)) (local.set $b (local.get $t))
              (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (local.get $a))
          (func $rotate (param $n i32) (result i32 i32 i32) (local $x i32) (local $y i32) (local $z i32)
            (i32.const 1) (i32.const 2) (i32.const 3)
            (loop $l (param i32 i32 i32) (result i32 i32 i32)
              (local.set $z) (local.set $y) (local.set $x)
              (local.get $z) (local.get $x) (local.get $y)
              (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
          (func $exchange (param $a i32) (param $b i32) (param $n i32) (result i32) (local $t i32)
            (loop $l
              (local.set $t (local.get $a)) (local.set $a (local.get $b)) (local.set $b (local.get $t))
              (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (i32.sub (local.get $a) (local.get $b)))
          (func $carried (param $n i32) (result i32)
            (i32.const 50)
            (block $out (result i32)
              (i32.const 60) (i32.const 70)
              (block $two (result i32) (block $one (result i32)
                (i32.const 80) (i32.const 90) (local.get $n)
                (br_table $one $two $one $out $two $out (local.get $n)))
                (i32.const 3) (i32.add) (br $two))
              (i32.add) (i32.add))
            (i32.sub))
          (func $select (param $n i32) (result i32)
            (select (i32.const 3) (i32.const 4) (i32.and (local.get $n) (i32.const 1)))
            (select (result i32) (i32.const 5) (local.get $n) (i32.and (local.get $n) (i32.const 2)))
            (i32.add))
          (func $nothing (param $n i32)
            (if (local.get $n) (then))
            (block $b (br_if $b (local.get $n)))
            (block $b (br_table $b $b (local.get $n)))
            (nop))
          (func $switch (param $n i32) (result i32)
            (block $c (block $b (block $a
              (br_table $a $b $a $c $b $c (local.get $n)))
              (return (i32.const 1)))
              (return (i32.const 2)))
            (i32.const 3))
          (func $dead (result i32)
            (block $b (br $b) (drop (i32.const 1)) (unreachable))
            (return (i32.const 8)) (i32.const 9))
          ;; Branches drop what is above their labels, also where these end with the function.
          (func $dropped (result i32)
            (i32.const 10) (block (i32.const 11) (i64.const 12) (br 0)))
          (func $dropped_if (param $n i32) (result i32)
            (i32.const 20)
            (block (result i32) (i32.const 21) (i32.const 22) (br_if 0 (local.get $n)) (drop))
            (drop))
          (func $dropped_by_a_table (param $n i32) (result i32)
            (i32.const 30) (block (i32.const 31) (br_table 0 0 (local.get $n))))
          (func $early (param $n i32) (result i32 i64)
            (i32.const 1) (i64.const 2)
            (br_if 0 (i32.const 3) (i64.const 4) (i32.and (local.get $n) (i32.const 1)))
            (drop) (drop) (drop) (drop) (call $pair))
          (func $count (param $n i32) (param $sum i64) (result i64)
            (if (i32.eqz (local.get $n)) (then (return (local.get $sum))))
            (return_call $count (i32.sub (local.get $n) (i32.const 1))
              (i64.add (local.get $sum) (i64.extend_i32_u (local.get $n)))))
          (func (export "run") (param $n i32) (result i64) (local $i i32) (local $s i64)
            (local.set $s (call $fibonacci (local.get $n)))
            (local.get $s) (call $rotate (local.get $n)) (i32.add) (i32.mul)
            (i64.extend_i32_s) (i64.add) (local.set $s)
            (loop $l
              (call $nothing (local.get $i))
              (i64.mul (local.get $s) (i64.const 33))
              (call $carried (local.get $i)) (call $select (local.get $i)) (i32.xor)
              (call $switch (local.get $i)) (i32.add)
              (call $exchange (i32.const 7) (local.get $n) (i32.add (local.get $i) (i32.const 1))) (i32.add)
              (i64.extend_i32_s) (i64.add) (local.set $s)
              (call $early (local.get $i)) (drop) (drop)
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
            (call $triple) (drop) (drop) (drop)
            (call $under (local.get $n)) (drop) (i32.add) (drop)
            (call $dropped) (call $dropped_if (local.get $n)) (i32.mul)
            (call $dropped_if (i32.const 0)) (i32.add)
            (call $dropped_by_a_table (local.get $n)) (i32.mul)
            (i64.extend_i32_s) (i64.add (local.get $s)) (local.set $s)
            (drop (call $dead))
            (call $count (local.get $n) (local.get $s))))"#,
    },
];
