;; Tail calls, a br_table, floats, and a division that traps.
(module
  (memory (export "memory") 1)
  (func $even (param $n i32) (param $acc f64) (result f64)
    (if (i32.eqz (local.get $n)) (then (return (local.get $acc))))
    (return_call $odd (i32.sub (local.get $n) (i32.const 1)) (f64.mul (local.get $acc) (f64.const 1.25))))
  (func $odd (param $n i32) (param $acc f64) (result f64)
    (if (i32.eqz (local.get $n)) (then (return (local.get $acc))))
    (return_call $even (i32.sub (local.get $n) (i32.const 1)) (f64.add (local.get $acc) (f64.const -0.5))))
  (func $choose (param $k i32) (result i32)
    (block $c (block $b (block $a (br_table $a $b $c (local.get $k)))
      (return (i32.const 10))) (return (i32.const 20)))
    (i32.const 0))
  (func (export "_start") (local $i i32)
    (loop $again
      (f64.store (i32.const 8) (call $even (local.get $i) (f64.const 2)))
      (i32.store (i32.const 16) (i32.div_u (i32.const 100) (call $choose (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $again))))
