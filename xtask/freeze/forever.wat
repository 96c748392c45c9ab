;; Runs until it is stopped. The recording beside it was stopped once, so that it always ends at the same moment.
(module
  (memory (export "memory") 1)
  (global $rounds (mut i64) (i64.const 0))
  (func $step (param $x i32) (result i32)
    (i32.xor (i32.shl (local.get $x) (i32.const 1)) (i32.shr_u (local.get $x) (i32.const 3))))
  (func (export "_start") (local $x i32)
    (local.set $x (i32.const 12345))
    (loop $again
      (local.set $x (call $step (local.get $x)))
      (i32.store (i32.and (local.get $x) (i32.const 0xfffc)) (local.get $x))
      (global.set $rounds (i64.add (global.get $rounds) (i64.const 1)))
      (br $again))))
