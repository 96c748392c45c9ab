;; A stack of a quarter of a million activations with 300 locals each: recorded, its path built, and refused at once where values are asked for, by the limit.
(module (func $f (export "f")
  (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
  (call $f)))

;; $ afterimage record -o deep.aft --invoke f FILE
;; ! afterimage: locals-bounded.wat exhausted its stack; 0 host calls recorded in deep.aft (N)
;; = 134
;; $ afterimage build --lens full deep.aft
;; ! afterimage: path of 524,272 executed blocks in 761,922 bytes
;; ! afterimage: deep.aft: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; = 125
;; $ afterimage verify deep.aft
;; | sound: N, 11 chunks in 6 sections, 1 event
;; | whole path: 524,272 executed blocks, 1 path in 3 segments, compared with the end
;; | not followed: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage state --at end deep.aft
;; ! afterimage: the path of the run, in N
;; ! afterimage: deep.aft: a run whose open activations have more than 67,108,864 locals and operands together cannot be followed
;; = 125
;; $ afterimage why --trap deep.aft
;; | the run exhausted its stack at @0x21#524272 in f, with 524,272 activations on it: f at @0x21 called itself, 524,272 times; no branch led there, nor any value
;; |   ended at @0x21#524272 in f
;; |   … and 524,271 more
