;; Two functions call each other until the stack is exhausted.
(module
  (memory (export "memory") 1)
  (global $depth (mut i32) (i32.const 0))
  (func $down (param $n i32) (result i32)
    (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
    (i32.store (i32.const 8) (local.get $n))
    (i32.add (call $up (i32.add (local.get $n) (i32.const 2))) (i32.const 1)))
  (func $up (param $n i32) (result i32)
    (i32.sub (call $down (i32.xor (local.get $n) (i32.const 1))) (i32.const 1)))
  (func (export "_start") (drop (call $down (i32.const 0)))))
