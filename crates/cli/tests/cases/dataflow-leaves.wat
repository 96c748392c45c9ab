;; An expression of nine leaves, one more than are kept apart.
(module (memory 1) (func $start (export "_start") (local $n i32) (i32.store (i32.const 0) (i32.add (i32.add (i32.add (i32.add (i32.add (i32.add (i32.add (i32.add (local.get $n) (i32.load (i32.const 100))) (i32.load (i32.const 108))) (i32.load (i32.const 116))) (i32.load (i32.const 124))) (i32.load (i32.const 132))) (i32.load (i32.const 140))) (i32.load (i32.const 148))) (i32.load (i32.const 156))))))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: dataflow-leaves.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage dataflow run.aft --fact available:@0x65
;; | @0x65 i32.add  in start: its result is already available: never; executed once in 1 call
;; | times          decided by                  executions
;; |     1  100.0%  ended by    @0x62 i32.load  all
;; | 1 query on 1 path trace
;; ! afterimage: path of 1 executed blocks in 10 bytes
