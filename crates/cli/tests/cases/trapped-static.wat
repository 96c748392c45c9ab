;; The offset alone is beyond the memory's maximum, so the engine compiles the load to a bare trap, and makes one conditional trap of that and the branch
;; before it.

(module
  (memory 1 1)
  (func (export "t") (param i32)
    (if (local.get 0) (then (nop)))
    (drop (i64.load offset=65536 (local.get 0)))))

;; $ afterimage record -o a.aft --invoke t FILE 0
;; ! afterimage: trapped-static.wat trapped: memory access out of bounds; 0 host calls recorded in a.aft (N)
;; = 134
;; $ afterimage info a.aft
;; | program   trapped-static.wat
;; | invoked   t 0
;; | recorded  WHEN
;; | ending    trapped: memory access out of bounds
;; |           in t at @0x2d
;; | boundary  0 host calls in 1 event
;; | sha256    2d2dc77a7a10879d75c5966b9035c17d02a37730865bc8fbb3107b6965930565
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   1 argument
;; |   the module, 52 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile a.aft --by block
;; | ran 4 instructions in 2 blocks; 1 of 1 function executed; the run ended inside 1 call
;; |
;; | share  instructions  count  offset  block   end     source  function
;; | 50.0%             2      1    0x25  block0  branch  -       t
;; | 50.0%             2      1    0x2b  block2  return  -       t
;; |  0.0%             0      0    0x29  block1  fall    -       t
;; $ afterimage trace a.aft
;; |      t  depth  block     offset      function
;; |      1      0  block0    0x25        t
;; |      2      0  block2    0x2b        t
;; | the run trapped: memory access out of bounds
;; ! afterimage: path of 2 executed blocks in 10 bytes
;; $ afterimage why a.aft --trap
;; | the run trapped: memory access out of bounds at @0x2d#1 in t: the base address of i64.load is 0, with 65,536 added, which
;; | comes from argument 1 of the host's call to t
;; |   ended at @0x2d#1 in t
;; |   argument 1 of the host's call to t
;; ! afterimage: values of 1 executed statements in 23 bytes (23.0000 a statement)
;; $ afterimage verify a.aft
;; | sound: N, 18 chunks in 12 sections, 1 event
;; | whole path: 2 executed blocks, 1 path in 1 segment, compared with the counts and the end
;; | values of 1 executed statement from t=1 to t=2: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
