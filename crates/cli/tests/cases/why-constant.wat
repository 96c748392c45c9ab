;; A constant that a branch chose, and one that nothing chose.
(module
  (func $grade (param $points i32) (result i32)
    (local $grade i32)
    (if (i32.gt_s (local.get $points) (i32.const 90))
      (then (local.set $grade (i32.const 1)))
      (else (local.set $grade (i32.const 2))))
    (local.get $grade))
  (func (export "_start")
    (local $sum i32)
    (local.set $sum (i32.add (call $grade (i32.const 95)) (call $grade (i32.const 70))))
    (drop (i32.mul (local.get $sum) (i32.const 3)))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: why-constant.wat returned; 0 host calls recorded in run.aft (N)
;; ! afterimage: path of 9 executed blocks in 13 bytes
;; ! afterimage: values of 6 executed statements in 1 bytes (0.1667 a statement)
;; $ afterimage why run.aft --at _start --operand left
;; | 3 (left of i32.mul at @0x55#1 in _start)
;; | comes from the constant 1 at @0x33#1, one step back
;; |   3 = 1 + 2                           @0x4e#1 in _start  t=9
;; |       2: afterimage why run.aft --at @0x4e#1 --operand right
;; |   the constant 1                      @0x33#1 in grade  t=3
;; |       led there by if at @0x31#1 in grade, on 1: afterimage why run.aft --at @0x31#1
;; $ afterimage why run.aft --at _start --operand right
;; | 3 (right of i32.mul at @0x55#1 in _start)
;; | comes from the constant 3 at @0x55#1
;; |   the constant 3                      @0x55#1 in _start  t=9
