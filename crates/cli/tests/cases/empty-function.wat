;; A function without operators runs: its place is taken by every command that asks about the run.
(module
  (func $empty)
  (func (export "f") (call $empty) (call $empty)))

;; $ afterimage record -o f.aft --lens full --invoke f FILE
;; ! afterimage: path of 4 executed blocks in 13 bytes
;; ! afterimage: values of 0 executed statements in 1 bytes (1.0000 a statement)
;; ! afterimage: empty-function.wat returned; 0 host calls recorded in f.aft (N)
;; $ afterimage trace --from empty f.aft
;; |      t  depth  block     offset      function
;; |      2      1  block0    0x1f        empty
;; |      3      0  block1    0x24        f
;; |      4      1  block0    0x1f          empty
;; | the run returned
;; $ afterimage trace --from @0x1f#2 f.aft
;; |      t  depth  block     offset      function
;; |      4      1  block0    0x1f        empty
;; | the run returned
;; $ afterimage state --at @0x1f#2 f.aft
;; | before @0x1f, in the block at t=4 of 4
;; | #0 empty()  @0x1f  t=4
;; |     the module has no debug information; compile it with -g
;; | #1 f()  @0x24  t=3
;; $ afterimage why-not --at @0x1f f.aft
;; ! afterimage: f.aft: @0x1f was executed 2 times, first at t=2, last at t=4
;; = 125
