;; The smallest number divided by -1: what was computed is followed, not the constant.
(module
  (func (export "right") (param $n i32)
    (drop (i32.div_s (i32.const -2147483648) (i32.sub (local.get $n) (i32.const 5))))))

;; $ afterimage record --lens full -q -o run.aft --invoke right FILE -- 4
;; ! afterimage: why-trap-minus.wat trapped: integer overflow; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: integer overflow at @0x2e#1 in right, with left -2147483648 (0x80000000): the divisor is -1, which
;; | comes from argument 1 of the host's call to right, one step back
;; |   ended at @0x2e#1 in right
;; |   -1 = 4 - 5                          @0x2d#1 in right  t=1
;; |   argument 1 of the host's call to right
