;; A start function and a reactor's _initialize that end deeper than the invoked export begins: its outermost call was made by nobody in the guest.
(module
  (memory 1)
  (func $ctors (i32.store (i32.const 8) (i32.const 7)))
  (func $deeper (call $ctors))
  (func $start (call $deeper))
  (start $start)
  (func (export "_initialize") (call $ctors))
  (func $use (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "get") (param i32) (result i32) (call $use (local.get 0)))
  (func (export "tail") (param i32) (result i32) (return_call $use (local.get 0)))
  (func (export "crash") (param i32) (result i32) (i32.div_u (i32.const 1) (i32.sub (call $use (local.get 0)) (i32.const 7))))
)

;; $ afterimage record -o get.aft --lens full --invoke get FILE 8
;; | 7
;; ! afterimage: path of 7 executed blocks in 19 bytes
;; ! afterimage: values of 3 executed statements in 26 bytes (8.6667 a statement)
;; ! afterimage: entries.wat returned; 0 host calls recorded in get.aft (N)
;; $ afterimage state --at end get.aft
;; | before the block at t=7 of 7
;; | #0 use(8)  @0x6a  t=7
;; |     the module has no debug information; compile it with -g
;; |     local 0 = 8  (i32, parameter)
;; | #1 get(8)  @0x74  t=6
;; |     local 0 = 8  (i32, parameter)
;; | the run then returned 7
;; $ afterimage state --at start get.aft
;; | before the block at t=1 of 7
;; | #0 start()  @0x60  t=1
;; |     the module has no debug information; compile it with -g
;; $ afterimage verify get.aft
;; | sound: N, 18 chunks in 11 sections, 6 events
;; | whole path: 7 executed blocks, 6 paths in 1 segment, compared with the end
;; | values of 3 executed statements from t=1 to t=7: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record -o tail.aft --lens full --invoke tail FILE 8
;; | 7
;; ! afterimage: path of 7 executed blocks in 19 bytes
;; ! afterimage: values of 3 executed statements in 26 bytes (8.6667 a statement)
;; ! afterimage: entries.wat returned; 0 host calls recorded in tail.aft (N)
;; $ afterimage state --at end --format json tail.aft
;; | {"schema":"afterimage/state/2","t":7,"length":N,"before":"block","open":1,"frames":[{"number":0,"function":{"index":4,"name":"use"},"entered_t":7,"t":7,"offset":106,"source":null,"inlined":[],"why":"the module has no debug information; compile it with -g","locals":[{"index":0,"type":"i32","parameter":true,"bits":"0x8","text":"8"}]}],"results":[{"type":"i32","bits":"0x7","text":"7"}]}
;; $ afterimage record -o crash.aft --lens full --invoke crash FILE 8
;; ! afterimage: path of 8 executed blocks in 19 bytes
;; ! afterimage: values of 4 executed statements in 37 bytes (9.2500 a statement)
;; ! afterimage: entries.wat trapped: integer division by zero; 0 host calls recorded in crash.aft (N)
;; = 134
;; $ afterimage state --at end crash.aft
;; | before @0x89, in the block at t=8 of 8
;; | #0 crash(8)  @0x89  t=8
;; |     the module has no debug information; compile it with -g
;; |     local 0 = 8  (i32, parameter)
;; $ afterimage why --trap crash.aft
;; | the run trapped: integer division by zero at @0x89#1 in crash: the divisor is 0, which
;; | comes from the constant 7 at @0x55#2, 3 steps back
;; |   ended at @0x89#1 in crash
;; |   0 = 7 - 7                           @0x88#1 in crash  t=8
;; |     ↑ loaded at @0x6c#1 in use ← stored at @0x55#2 in ctors
;; |   the constant 7                      @0x55#2 in ctors  t=5
;; $ afterimage verify crash.aft
;; | sound: N, 18 chunks in 11 sections, 5 events
;; | whole path: 8 executed blocks, 7 paths in 1 segment, compared with the end
;; | values of 4 executed statements from t=1 to t=8: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
