//! Tests guests with difficult dependences: distant definitions, exceptions and long chains.

use super::follow::agree;
use crate::guests::record_run;
use crate::harness::quiet;
use crate::stored::Stored;

fn check(text: &str, args: &[&str]) {
    let recording = record_run(text, args, &quiet());
    let ending = recording.ending();
    assert_eq!(ending, &afterimage_trace::Ending::Returned, "{text}");
    agree(&recording, &Stored::of(&recording));
}

/// Variables are searched for 64 nodes back. Definitions further away are stored. These guests
/// cross the boundary in both directions, in consecutive and in nested activations.
#[test]
fn definitions_at_the_boundary() {
    check(
        r#"(module
          (func $f (param $n i32) (param $x i32) (result i32) (local $i i32) (local $zero i32)
            (loop $l
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
            (i32.add (local.get $x) (local.get $zero)))
          (func $deep (param $n i32) (param $x i32) (result i32) (local $i i32)
            (local.set $x (i32.mul (local.get $x) (i32.const 3)))
            (loop $l
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
            (if (i32.gt_u (local.get $n) (i32.const 57))
              (then (drop (call $deep (i32.sub (local.get $n) (i32.const 1)) (local.get $n)))))
            (i32.add (local.get $x) (i32.const 1)))
          (func (export "run") (param $k i32) (result i32) (local $sum i32)
            (loop $l
              (local.set $sum (i32.add (local.get $sum)
                (call $f (local.get $k) (i32.mul (local.get $k) (i32.const 3)))))
              (local.set $k (i32.sub (local.get $k) (i32.const 1)))
              (br_if $l (i32.gt_u (local.get $k) (i32.const 57))))
            (i32.add (local.get $sum) (call $deep (i32.const 69) (local.get $sum)))))"#,
        &["72"],
    );
}

#[test]
fn exceptions_and_the_stack_below() {
    let text = r#"(module
      (tag $t (param i32)) (tag $u (param i32 i64))
      (global $g (mut i32) (i32.const 0))
      (func $id (param i32) (result i32) (local.get 0))
      (func $maybe (param i32) (result i32)
        (if (i32.and (local.get 0) (i32.const 1)) (then (throw $t (i32.add (local.get 0) (i32.const 40)))))
        (local.get 0))
      ;; The handler gets what is caught where the stack held something else.
      (func $over (param i32) (result i32)
        (i32.mul (call $id (i32.const 9))
          (block $h (result i32)
            (try_table (result i32) (catch $t $h)
              (i32.add (call $id (i32.const 5)) (call $maybe (local.get 0)))))))
      ;; The node that throws did not write what lies below.
      (func $loops (param i32) (result i32) (local $i i32)
        (i32.mul (call $id (i32.const 11))
          (block $h (result i32)
            (try_table (result i32) (catch $t $h)
              (i32.add (call $id (i32.const 6))
                (loop $l (result i32)
                  (local.set $i (i32.add (local.get $i) (i32.const 1)))
                  (br_if $l (i32.lt_u (local.get $i) (i32.const 70)))
                  (call $maybe (local.get 0))))))))
      ;; Both ways lead to the same place.
      (func $same (param i32) (result i32)
        (block $h (result i32)
          (try_table (result i32) (catch $t $h) (call $maybe (local.get 0)))))
      ;; Long after it was caught.
      (func $later (param i32) (result i32) (local $i i32)
        (block $h (result i32)
          (try_table (result i32) (catch $t $h) (call $maybe (local.get 0))))
        (loop $l
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get $i) (i32.const 80))))
        (global.set $g (local.get $i)))
      ;; The function's own label handles it.
      (func $own (param i32) (result i32)
        (try_table (result i32) (catch $t 0) (call $maybe (local.get 0))))
      (func $own_throw (param i32) (result i32 i64)
        (try_table (result i32 i64) (catch $u 0) (throw $u (local.get 0) (i64.const 77))))
      (func $own_deep (param i32) (result i32 i64)
        (try_table (result i32 i64) (catch $u 0) (call $down (local.get 0) (i32.const 4))))
      (func $down (param i32 i32) (result i32 i64)
        (if (local.get 1) (then (drop (drop (call $down (local.get 0) (i32.sub (local.get 1) (i32.const 1)))))))
        (throw $u (local.get 0) (i64.extend_i32_u (local.get 0))))
      (func $passes_on (param i32) (result i32) (call $own (local.get 0)))
      (func $passes_deep (param i32) (result i32 i64) (call $own_deep (local.get 0)))
      (func $passes_by_tail (param i32) (result i32 i64) (return_call $own_deep (local.get 0)))
      (func $again (param i32) (result i32) (local $e exnref)
        (block $h (result i32 exnref)
          (try_table (catch_ref $t $h) (return (call $maybe (local.get 0))))
          unreachable)
        (local.set $e) (drop)
        (try_table (result i32) (catch $t 0) (throw_ref (local.get $e))))
      (func (export "run") (param $n i32) (result i32) (local $sum i32)
        (loop $l
          (local.set $sum (i32.add (local.get $sum) (i32.add (call $over (local.get $n)) (call $loops (local.get $n)))))
          (local.set $sum (i32.add (local.get $sum) (i32.add (call $same (local.get $n)) (call $own (local.get $n)))))
          (local.set $sum (i32.add (local.get $sum) (i32.add (call $passes_on (local.get $n)) (call $again (local.get $n)))))
          (local.set $sum (i32.add (local.get $sum) (call $later (local.get $n))))
          (call $own_throw (local.get $n)) (i32.wrap_i64) (i32.add) (local.get $sum) (i32.add) (local.set $sum)
          (drop (drop (call $passes_deep (local.get $n))))
          (drop (drop (call $passes_by_tail (local.get $n))))
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br_if $l (local.get $n)))
        (local.get $sum)))"#;
    check(text, &["7"]);
}

#[test]
fn results_through_activations() {
    check(
        r#"(module
          (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
          (memory (export "memory") 1)
          (type $none (func (result i32)))
          (table funcref (elem $yield $leaf))
          (func $leaf (result i32) (i32.const 12))
          (func $id (param i32) (result i32) (local.get 0))
          (func $two (param i32) (result i32 i32) (local.get 0) (call $id (i32.const 3)))
          (func $h (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
          (func $g (param i32) (result i32) (return_call $h (call $id (local.get 0))))
          (func $c (param i32) (result i32) (call $g (local.get 0)))
          (func $t (param i32) (result i32) (return_call $c (local.get 0)))
          (func $host (result i32) (return_call $yield))
          (func $hosts (result i32) (call $host))
          (func $indirect (param i32) (result i32) (return_call_indirect (type $none) (local.get 0)))
          (func $parity (param i32 i32) (result i32)
            (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
            (return_call $parity (i32.sub (local.get 0) (i32.const 1)) (i32.xor (local.get 1) (i32.const 1))))
          (func (export "run") (param $x i32) (result i32)
            (i32.add (i32.add (call $two (local.get $x)))
              (i32.add (i32.add (call $c (local.get $x)) (call $t (local.get $x)))
                (i32.add (i32.add (call $hosts) (call $indirect (i32.const 0)))
                  (i32.add (call $indirect (i32.const 1)) (call $parity (i32.const 301) (i32.const 0))))))))"#,
        &["5"],
    );
}

/// Tests values that are connected by thousands of steps, so that the builder must store some in
/// between.
#[test]
fn chains() {
    for body in [
        // A list in copied memory.
        r#"(loop $l
             (i32.store (i32.shl (local.get $i) (i32.const 2)) (i32.shl (i32.add (local.get $i) (i32.const 1)) (i32.const 2)))
             (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
           (memory.copy (i32.const 32768) (i32.const 0) (i32.const 32768))
           (loop $m
             (local.set $p (i32.load offset=32768 (local.get $p)))
             (br_if $m (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
           (i64.extend_i32_u (local.get $p))"#,
        // Copy the copies again, one step further each time, with overlap.
        r#"(i64.store (i32.const 0) (i64.const 0x1122334455667788))
           (memory.fill (i32.const 12) (i32.const 7) (i32.const 9))
           (memory.init $d (i32.const 20) (i32.const 2) (i32.const 5))
           (loop $l
             (memory.copy (i32.add (local.get $i) (i32.const 1)) (local.get $i) (i32.const 30))
             (i32.store8 (local.get $i) (local.get $i))
             (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 400))))
           (memory.copy $b $a (i64.const 100) (i32.const 390) (i32.const 64))
           (memory.copy $a $b (i32.const 5000) (i64.const 90) (i32.const 70))
           (i64.add (i64.load (i32.const 401)) (i64.add (i64.load $b (i64.const 111)) (i64.load (i32.const 5031))))"#,
        // Lanes that are kept.
        r#"(loop $l
             (i32.store8 (local.get $i) (local.get $i))
             (local.set $v (v128.load8_lane 3 (local.get $i) (local.get $v)))
             (local.set $v (i8x16.shuffle 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 (local.get $v) (local.get $v)))
             (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
           (v128.store (i32.const 9000) (local.get $v))
           (i64.add (i64.load offset=3 (i32.const 9000)) (i64x2.extract_lane 1 (local.get $v)))"#,
        // Values that flow through memory and globals.
        r#"(loop $l
             (i64.store (i32.const 4090) (i64.add (i64.load (i32.const 4090)) (global.get $g)))
             (global.set $g (i64.rotl (i64.load (i32.const 4092)) (i64.const 3)))
             (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
           (i64.load (i32.const 4091))"#,
    ] {
        let text = format!(
            r#"(module (memory $a 1) (memory $b i64 1) (data $d "abcdefgh")
              (global $g (mut i64) (i64.const 5))
              (func (export "run") (param $n i32) (result i64) (local $i i32) (local $p i32) (local $v v128)
                {body}))"#
        );
        check(&text, &["3000"]);
    }
}

#[test]
fn the_host_passes_many_arguments() {
    let names = (0..70).map(|i| format!("(param $p{i} i32)"));
    let text = format!(
        "(module (func (export \"run\") {} (result i32) (i32.add (local.get $p69) (local.get $p3))))",
        names.collect::<String>()
    );
    let arguments = Vec::from_iter((0..70).map(|i| i.to_string()));
    check(&text, &Vec::from_iter(arguments.iter().map(String::as_str)));
}
