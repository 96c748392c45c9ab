;; A stack of 230,000 activations with 300 locals each: recorded, its path built, and refused at once where values are asked for, by the limit.
(module (global $left (mut i32) (i32.const 230000)) (func $f (export "f")
  (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
  (global.set $left (i32.sub (global.get $left) (i32.const 1)))
  (if (i32.eqz (global.get $left)) (then (unreachable)))
  (call $f)))

;; $ afterimage record -o deep.aft --invoke f FILE
;; ! afterimage: locals-bounded.wat trapped: unreachable executed; 0 host calls recorded in deep.aft (N)
;; = 134
;; $ afterimage build --lens full deep.aft
;; ! afterimage: path of 460,000 executed blocks in 22 bytes
;; ! afterimage: deep.aft: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; = 125
;; $ afterimage verify deep.aft
;; | sound: N, 8 chunks in 6 sections, 1 event
;; | whole path: 460,000 executed blocks, 2 paths in 1 segment, compared with the end
;; | not followed: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage state --at end deep.aft
;; ! afterimage: the path of the run, in N
;; ! afterimage: deep.aft: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; = 125
;; $ afterimage why --trap deep.aft
;; ! afterimage: deep.aft: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; = 125
