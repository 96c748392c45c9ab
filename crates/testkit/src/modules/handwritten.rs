//! Contains small modules, each for one feature. Every export named `run…` takes only `i32`s, or
//! nothing, and returns at most one `i32`.

/// The modules, as pairs of name and text.
pub const HANDWRITTEN: &[(&str, &str)] = &[
    ("fibonacci", FIBONACCI),
    ("collatz", COLLATZ),
    ("sieve", SIEVE),
    ("interpreter", INTERPRETER),
    ("exceptions", EXCEPTIONS),
    ("tail_calls", TAIL_CALLS),
    ("traps", TRAPS),
    ("multi_value", MULTI_VALUE),
];

/// Recursion. Most blocks run while several activations are open.
const FIBONACCI: &str = r#"(module
  (func $fib (export "run") (param $n i32) (result i32)
    (if (i32.lt_u (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add
      (call $fib (i32.sub (local.get $n) (i32.const 1)))
      (call $fib (i32.sub (local.get $n) (i32.const 2))))))"#;

/// A loop with an unpredictable number of iterations.
const COLLATZ: &str = r#"(module
  (func $collatz (export "run") (param $n i32) (result i32)
    (local $steps i32)
    (loop $again
      (if (i32.gt_u (local.get $n) (i32.const 1))
        (then
          (local.set $steps (i32.add (local.get $steps) (i32.const 1)))
          (if (i32.and (local.get $n) (i32.const 1))
            (then (local.set $n
              (i32.add (i32.mul (local.get $n) (i32.const 3)) (i32.const 1))))
            (else (local.set $n (i32.shr_u (local.get $n) (i32.const 1)))))
          (br $again))))
    (local.get $steps)))"#;

/// Nested loops over memory that count the primes below n.
const SIEVE: &str = r#"(module
  (memory 1)
  (func $sieve (export "run") (param $n i32) (result i32)
    (local $i i32) (local $j i32) (local $primes i32)
    (local.set $i (i32.const 2))
    (block $done
      (loop $outer
        (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
        (if (i32.eqz (i32.load8_u (local.get $i)))
          (then
            (local.set $primes (i32.add (local.get $primes) (i32.const 1)))
            (local.set $j (i32.mul (local.get $i) (local.get $i)))
            (block $marked
              (loop $inner
                (br_if $marked (i32.ge_u (local.get $j) (local.get $n)))
                (i32.store8 (local.get $j) (i32.const 1))
                (local.set $j (i32.add (local.get $j) (local.get $i)))
                (br $inner)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $outer)))
    (local.get $primes)))"#;

/// `br_table` with repeated targets, one of them a loop label. Bytes 0 to 3 are instructions.
const INTERPRETER: &str = r#"(module
  (memory 1)
  (data (i32.const 0) "\00\01\00\00\02\01\07\00\03")
  (func $run (export "run") (result i32)
    (local $pc i32) (local $acc i32)
    (loop $next
      (block $stop (block $double (block $skip (block $increment
        (i32.load8_u (local.get $pc))
        (local.set $pc (i32.add (local.get $pc) (i32.const 1)))
        (br_table $increment $skip $double $stop $next $next $next $skip))
        (local.set $acc (i32.add (local.get $acc) (i32.const 1)))
        (br $next))
        (local.set $pc (i32.add (local.get $pc) (i32.const 1)))
        (br $next))
        (local.set $acc (i32.mul (local.get $acc) (i32.const 2)))
        (br $next)))
    (local.get $acc)))"#;

/// Exceptions that are caught, passed on, caught by reference and rethrown, and not caught.
const EXCEPTIONS: &str = r#"(module
  (tag $odd (param i32))
  (tag $big)
  (func $check (param $n i32)
    (if (i32.gt_u (local.get $n) (i32.const 100)) (then (throw $big)))
    (if (i32.and (local.get $n) (i32.const 1)) (then (throw $odd (local.get $n)))))
  (func $again (param $n i32)
    (block $caught (result exnref)
      (try_table (catch_all_ref $caught)
        (call $check (local.get $n)))
      (return))
    throw_ref)
  (func (export "run") (param $n i32) (result i32)
    (local $sum i32)
    (loop $count
      (block $next
        (block $odd (result i32)
          (try_table (catch $odd $odd)
            (call $again (local.get $n))
            (call $check (i32.const 2)))
          (br $next))
        (local.set $sum (i32.add (local.get $sum))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $count (i32.gt_s (local.get $n) (i32.const 0))))
    (local.get $sum))
  (func (export "run_missed") (result i32)
    (block $odd (result i32)
      (try_table (result i32) (catch $odd $odd)
        (call $check (i32.const 200))
        (i32.const 0)))))"#;

/// Two functions that call each other without growing the stack, one of them through a table.
const TAIL_CALLS: &str = r#"(module
  (type $step (func (param i32) (result i32)))
  (table funcref (elem $even $odd))
  (func $even (export "run") (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
    (return_call $odd (i32.sub (local.get $n) (i32.const 1))))
  (func $odd (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (return_call_indirect (type $step)
      (i32.sub (local.get $n) (i32.const 1)) (i32.const 0))))"#;

/// Several kinds of traps, a few frames down. The parameter selects the kind.
const TRAPS: &str = r#"(module
  (memory 1)
  (table 1 funcref)
  (type $none (func))
  (func $trap (param $kind i32)
    (block $default (block $table (block $memory (block $divide (block $unreachable
      (br_table $unreachable $divide $memory $table $default (local.get $kind)))
      unreachable)
      (drop (i32.div_u (i32.const 1) (i32.const 0))) (return))
      (drop (i32.load (i32.const -1))) (return))
      (call_indirect (type $none) (i32.const 0)) (return)))
  (func $down (param $kind i32) (param $depth i32)
    (if (local.get $depth)
      (then (call $down (local.get $kind) (i32.sub (local.get $depth) (i32.const 1))))
      (else (call $trap (local.get $kind)))))
  (func (export "run") (param $kind i32)
    (call $down (local.get $kind) (i32.const 3))
    (call $down (local.get $kind) (i32.const 0)))
  (func $forever (export "run_overflow") (call $forever)))"#;

/// Blocks and loops with parameters and several results, and branches that carry values.
const MULTI_VALUE: &str = r#"(module
  (func $swap (param i32 i32) (result i32 i32) (local.get 1) (local.get 0))
  (func (export "run") (param $n i32) (result i32)
    (i32.const 0) (i32.const 1)
    (loop $again (param i32 i32) (result i32 i32)
      (call $swap)
      (block $keep (param i32 i32) (result i32 i32)
        (br_if $keep (i32.and (local.get $n) (i32.const 3)))
        (i32.add (i32.const 5)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (i32.gt_s (local.get $n) (i32.const 0))))
    (i32.mul (i32.const 100)) i32.add))"#;

/// A module with an export `wander` that takes one of two branches at random, as many times as its
/// argument says but at least once. The choice is bit 0 of the states of Marsaglia's xorshift (13,
/// 7, 17), starting from 88172645463325252. `wander` returns the number of ones.
pub const WANDERER: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "wander") (param $rounds i32) (result i32) (local $state i64) (local $odd i32)
    (local.set $state (i64.const 88172645463325252))
    (loop $again
      (local.set $state (i64.xor (local.get $state) (i64.shl (local.get $state) (i64.const 13))))
      (local.set $state (i64.xor (local.get $state) (i64.shr_u (local.get $state) (i64.const 7))))
      (local.set $state (i64.xor (local.get $state) (i64.shl (local.get $state) (i64.const 17))))
      (if (i32.wrap_i64 (i64.and (local.get $state) (i64.const 1)))
        (then (local.set $odd (i32.add (local.get $odd) (i32.const 1)))))
      (br_if $again (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1)))))
    (local.get $odd)))"#;
