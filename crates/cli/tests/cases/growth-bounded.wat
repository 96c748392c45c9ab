;; Tables and memories grow to what a recording may have, and not beyond: -1 when the program runs, when it is run again by the engine, and when it is followed without it.
;; One of the growths does not even fit 64 bits, and the engine does not ask about that.
(module
  (table $t 1 funcref)
  (table $wide i64 1 funcref)
  (memory (export "memory") 1)
  (memory $large i64 1)
  (elem declare func $run)
  (func $run (export "run") (result i32 i32 i32 i64 i64 i64)
    (table.grow $t (ref.null func) (i32.const 4000000000))
    (table.grow $t (ref.func $run) (i32.const 9000000))
    (table.grow $t (ref.null func) (i32.const 2000000))
    (table.grow $wide (ref.null func) (i64.const -1))
    (memory.grow $large (i64.const 300000))
    (memory.grow $large (i64.const 200000)))
)

;; $ afterimage record -o run.aft --lens full --invoke run FILE
;; | -1
;; | 1
;; | -1
;; | -1
;; | -1
;; | 1
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; ! afterimage: values of 6 executed statements in 71 bytes (11.8333 a statement)
;; ! afterimage: growth-bounded.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage verify run.aft
;; | sound: N, 17 chunks in 11 sections, 8 events
;; | whole path: 1 executed block, 1 path in 1 segment, compared with the end
;; | values of 6 executed statements from t=1 to t=1: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage profile --mode slow run.aft
;; | ran 16 instructions in 1 block; 1 of 1 function executed
;; |
;; |  share  instructions  blocks  calls  source  function
;; | 100.0%            16       1      1  -       run
;; ! afterimage: the counter of the block agrees with the derived counts
;; $ afterimage state --at end run.aft
;; | before the block at t=1 of 1
;; | #0 run()  @0x46  t=1
;; |     the module has no debug information; compile it with -g
;; | the run then returned -1, 1, -1, -1, -1, 1
