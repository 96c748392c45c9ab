;; What stands behind where the run ended never ran: in the same block, in its function, in whoever called. And reports replace no recording.
(module
  (memory (export "memory") 1)
  (func $share (param $among i32) (result i32)
    (i32.store (i32.const 8) (i32.div_u (i32.const 10) (local.get $among)))
    (i32.mul (local.get $among) (i32.const 3)))
  (func $later (drop (i32.clz (i32.const 1))))
  (func (export "_start")
    (drop (call $share (i32.const 5)))
    (drop (call $share (i32.const 0)))
    (call $later)))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 4 executed blocks in 13 bytes
;; ! afterimage: values of 3 executed statements in 12 bytes (4.0000 a statement)
;; ! afterimage: why-not-ended.wat trapped: integer division by zero; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage why-not run.aft --at @0x46
;; ! afterimage: run.aft: @0x46 was executed once, at t=2; to ask why it did not run after that: --after 2
;; = 125
;; $ afterimage why-not run.aft --at @0x46 --after 3
;; | @0x46 was not executed after t=3 (it was executed once before, the last time at t=2):
;; |   the run trapped: integer division by zero at @0x3e in share, at t=4, before reaching it
;; $ afterimage why-not run.aft --at later
;; | later was never executed:
;; |   the run trapped: integer division by zero at @0x3e in share, at t=4, when _start was in its call at @0x58, at t=3; to get there, it would have had to continue from call at @0x53 in _start, which was executed once, the last time at t=1
;; |   so call at @0x5b in _start was not executed; it would have called the function
;; $ afterimage why-not run.aft --at later --format json
;; | {"schema":"afterimage/why-not/2","at":"later","after":0,"before":null,"cause":{"kind":"ended","place":{"function":{"index":2,"name":"_start"},"source":null,"around":null,"text":null,"operator":"call","at":"@0x53","t":1},"entered":false,"times":1,"stood":{"ending":"trapped: integer division by zero","place":{"function":{"index":0,"name":"share"},"source":null,"around":null,"text":null,"operator":"i32.div_u","at":"@0x3e","t":4},"call":{"function":{"index":2,"name":"_start"},"source":null,"around":null,"text":null,"operator":"call","at":"@0x58","t":3}},"through":[{"how":"call","place":{"function":{"index":2,"name":"_start"},"source":null,"around":null,"text":null,"operator":"call","at":"@0x5b","t":0}}]},"why":[],"steps":0,"others":[]}
;; $ afterimage why-not run.aft --at later --after 4
;; ! afterimage: run.aft: later was not executed after t=4 (it was never executed before, either): the run ended at t=4
;; = 125
;; $ afterimage why run.aft --at @0x3e#2
;; ! afterimage: run.aft: the run ended at @0x3e#2 before the statement gave a value; see: afterimage why run.aft --trap
;; = 125
;; $ afterimage slice run.aft --at end --address 0xfffffffffffffff8
;; ! afterimage: run.aft: 0xfffffffffffffff8 is outside memory 0, which has 65,536 bytes at that time (0x0 to 0xffff)
;; = 125
;; $ afterimage slice run.aft --at end --address 0xfffc
;; ! afterimage: run.aft: 0x10000 is outside memory 0, which has 65,536 bytes at that time (0x0 to 0xffff)
;; = 125
;; $ afterimage slice run.aft --at @0x3e -o run.aft
;; ! afterimage: run.aft is a recording, which no report may replace; name another file with -o
;; = 125
