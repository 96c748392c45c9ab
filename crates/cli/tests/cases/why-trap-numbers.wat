;; A number that does not fit an integer, or is none, and the division that overflows.
(module
  (func (export "whole") (param $x f64) (result i32)
    (i32.trunc_f64_s (f64.add (local.get $x) (f64.const 1))))
  (func (export "divide") (param $x i32) (param $y i32) (result i32)
    (i32.div_s (i32.sub (local.get $x) (i32.const 1)) (local.get $y))))

;; $ afterimage record --lens full -q -o run.aft --invoke whole FILE 3e30
;; ! afterimage: why-trap-numbers.wat trapped: integer overflow; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: integer overflow at @0x40#1 in whole: the operand of i32.trunc_f64_s is 3e30, which
;; | comes from argument 1 of the host's call to whole, one step back
;; |   ended at @0x40#1 in whole
;; |   3e30 = 3e30 + 1.0                   @0x3f#1 in whole  t=1
;; |   argument 1 of the host's call to whole
;; $ afterimage record --force --lens full -q -o run.aft --invoke whole FILE nan
;; ! afterimage: why-trap-numbers.wat trapped: invalid conversion to integer; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: invalid conversion to integer at @0x40#1 in whole: the operand of i32.trunc_f64_s is NaN (0x7ff8000000000000), which
;; | comes from argument 1 of the host's call to whole, one step back
;; |   ended at @0x40#1 in whole
;; |   NaN (0x7ff8000000000000) = NaN (0x7ff8000000000000) + 1.0  @0x3f#1 in whole  t=1
;; |   argument 1 of the host's call to whole
;; $ afterimage record --force --lens full -q -o run.aft --invoke divide FILE -2147483647 -1
;; ! afterimage: why-trap-numbers.wat trapped: integer overflow; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: integer overflow at @0x4b#1 in divide, with right -1: the left of i32.div_s is -2147483648 (0x80000000), which
;; | comes from argument 1 of the host's call to divide, one step back
;; |   ended at @0x4b#1 in divide
;; |   -2147483648 (0x80000000) = -2147483647 (0x80000001) - 1  @0x48#1 in divide  t=1
;; |   argument 1 of the host's call to divide
;; $ afterimage record --force --lens full -q -o run.aft --invoke divide FILE 7 0
;; ! afterimage: why-trap-numbers.wat trapped: integer division by zero; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: integer division by zero at @0x4b#1 in divide: the divisor is 0, which
;; | comes from argument 2 of the host's call to divide
;; |   ended at @0x4b#1 in divide
;; |   argument 2 of the host's call to divide
