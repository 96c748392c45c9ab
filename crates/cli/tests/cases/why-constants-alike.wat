;; Constants that stand several times in their function, or in that of the caller; and of two that came from elsewhere the one that a branch chose, or that was returned.
(module
  (memory (export "memory") 1)
  (func $status (param $n i32) (result i32)
    (if (i32.gt_u (local.get $n) (i32.const 3))
      (then
        (drop (i32.add (local.get $n) (i32.const -4)))
        (return (i32.const -4))))
    (i32.const 0))
  (func $put (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func $seven (param i32) (result i32)
    (if (result i32) (local.get 0) (then (i32.const 7)) (else (i32.const 8))))
  (func $minus (result i32) (i32.const -1))
  (func $add (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "_start")
    (i32.store (i32.const 8) (call $status (i32.load (i32.const 1000))))
    (call $put (i32.const 12) (i32.const 12))
    (i32.store (i32.const 16) (call $add (i32.const 4) (call $seven (i32.const 1))))
    (i32.store (i32.const 20) (call $add (i32.const 4) (call $minus)))
    (i32.store (i32.const 24) (i32.add (call $seven (i32.const 5)) (call $seven (i32.const 0)))))
  (data (i32.const 1000) "\05\00\00\00"))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 21 executed blocks in 19 bytes
;; ! afterimage: values of 15 executed statements in 14 bytes (0.9333 a statement)
;; ! afterimage: why-constants-alike.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage why run.aft --at _start#last
;; | 15, stored at @0xba#1 in _start,
;; | comes from the constant 7 at @0x6e#2, 2 steps back
;; |     ↑ stored at @0xba#1 in _start
;; |   15 = 7 + 8                          @0xb9#1 in _start  t=21
;; |       8: afterimage why run.aft --at @0xb9#1 --operand right
;; |   the constant 7                      @0x6e#2 in seven  t=17
;; |       led there by the branch at @0x6c#2 in seven, on 5: afterimage why run.aft --at @0x6c#2
;; $ afterimage why run.aft --at @0x8e
;; | -4, stored at @0x8e#1 in _start,
;; | comes from the constant -4 at @0x57#1, one step back
;; |     ↑ stored at @0x8e#1 in _start
;; |   the constant -4                     @0x57#1 in status  t=3
;; |       led there by the branch at @0x4f#1 in status, on 1: afterimage why run.aft --at @0x4f#1
;; $ afterimage why run.aft --at @0x8e --format json
;; | {"schema":"afterimage/why/2","about":"-4, stored at @0x8e#1 in _start","value":"-4","at":"@0x8e#1"}
;; | {"step":"moved","moves":[{"how":"stored","what":"memory 0x8..0xb","memory":{"memory":0,"address":8,"bytes":N},"value":"-4","typed":{"type":"i32","bits":"0xfffffffc","as_number":-4,"text":"-4"},"place":{"function":{"index":5,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.store","at":"@0x8e#1","t":4},"besides":0}],"more":0}
;; | {"step":"end","kind":"constant","what":"the constant -4","file":null,"offset":null,"bytes":Nnull,"place":{"function":{"index":0,"name":"status"},"source":null,"around":null,"text":null,"operator":"i32.const","at":"@0x57#1","t":3},"read":null,"led":{"place":{"function":{"index":0,"name":"status"},"source":null,"around":null,"text":null,"operator":"if","at":"@0x4f#1","t":2},"value":"1"},"remark":null}
;; $ afterimage why run.aft --at put
;; | 12, stored at @0x64#1 in put,
;; | comes from the constant 12 at @0x93#1, one step back
;; |     ↑ stored at @0x64#1 in put
;; |   the constant 12                     @0x93#1 in _start  t=4
;; $ afterimage why run.aft --at @0xa1
;; | 11, stored at @0xa1#1 in _start,
;; | comes from the constant 7 at @0x6e#1, 2 steps back
;; |     ↑ stored at @0xa1#1 in _start
;; |   11 = 4 + 7                          @0x80#1 in add  t=10
;; |       4: afterimage why run.aft --at @0x80#1 --operand left
;; |   the constant 7                      @0x6e#1 in seven  t=8
;; |       led there by the branch at @0x6c#1 in seven, on 1: afterimage why run.aft --at @0x6c#1
;; $ afterimage why run.aft --at @0xac
;; | 3, stored at @0xac#1 in _start,
;; | comes from the constant -1 at @0x77#1, 2 steps back
;; |     ↑ stored at @0xac#1 in _start
;; |   3 = 4 + -1                          @0x80#2 in add  t=14
;; |       4: afterimage why run.aft --at @0x80#2 --operand left
;; |   the constant -1                     @0x77#1 in minus  t=12
;; $ afterimage why run.aft --at 50%
;; ! afterimage: run.aft: 50% is a moment of the run, not a statement: name a place, such as file.c:42#3 or func; for a variable at a moment use why --var or slice --var, for memory slice --address
;; = 125
