;; What cannot return was called to end the run: what decided is the branch in whoever called it.
(module
  (memory (export "memory") 1)
  (func $abort (unreachable))
  (func $fail (param i32)
    (if (local.get 0) (then (i32.store (i32.const 0) (i32.const 1))))
    (if (i32.load (i32.const 0)) (then (call $abort) (unreachable)))
    (unreachable))
  (func $check (param i32 i32) (result i32)
    (if (i32.ge_u (local.get 0) (local.get 1)) (then (call $fail (i32.const 1)) (unreachable)))
    (local.get 0))
  (func (export "_start")
    (i32.store (i32.const 4) (i32.const 27))
    (if (i32.lt_u (i32.load (i32.const 4)) (i32.const 3)) (then (call $abort)))
    (drop (call $check (i32.load (i32.const 4)) (i32.const 3)))
    (drop (call $check (i32.const 0) (i32.const 3))))
  (func (export "plain") (unreachable)))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 9 executed blocks in 13 bytes
;; ! afterimage: values of 11 executed statements in 43 bytes (3.9091 a statement)
;; ! afterimage: why-trap.wat trapped: unreachable executed; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: unreachable executed at @0x47#1 in abort: the branch at @0x6b#1 in check led there, decided by 1, which
;; | comes from the constant 27 at @0x7c#1, 3 steps back
;; |   ended at @0x47#1 in abort
;; |   called at @0x5e#1 in fail
;; |       led there by the branch at @0x5c#1 in fail, on 1: afterimage why run.aft --at @0x5c#1
;; |   called at @0x6f#1 in check
;; |       led there by the branch at @0x6b#1 in check, on 1, followed below
;; |   called at @0x93#1 in _start
;; |   1 = 27 >= 3                         @0x6a#1 in check  t=3
;; |     ↑ loaded at @0x8e#1 in _start ← stored at @0x7c#1
;; |   the constant 27                     @0x7c#1 in _start  t=1
;; $ afterimage record --lens full -o plain.aft --invoke plain FILE
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; ! afterimage: values of 0 executed statements in 1 bytes (1.0000 a statement)
;; ! afterimage: why-trap.wat trapped: unreachable executed; 0 host calls recorded in plain.aft (N)
;; = 134
;; $ afterimage why plain.aft --trap
;; | the run trapped: unreachable executed at @0xa0#1 in plain: neither a branch nor a value led there
;; |   ended at @0xa0#1 in plain
;; $ afterimage why plain.aft
;; | the run trapped: unreachable executed at @0xa0#1 in plain: neither a branch nor a value led there
;; |   ended at @0xa0#1 in plain
;; $ afterimage why plain.aft --trap --stdout 3
;; ! error: the argument '--trap' cannot be used with '--stdout <BYTE|TEXT>'
;; !
;; ! Usage: afterimage why [OPTIONS] <FILE.aft>
;; !        afterimage why [OPTIONS] --at <PLACE#K> <FILE.aft>
;; !        afterimage why [OPTIONS] <--stdout|--stderr> <BYTE|TEXT> <FILE.aft>
;; !        afterimage why [OPTIONS] --trap <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage why plain.aft --trap --format json
;; | {"schema":"afterimage/why/2","about":"the run trapped: unreachable executed at @0xa0#1 in plain: neither a branch nor a value led there","value":"","at":"@0xa0#1"}
;; | {"step":"led","frames":[{"place":{"function":{"index":4,"name":"plain"},"source":null,"around":null,"text":null,"operator":"unreachable","at":"@0xa0#1","t":1},"branch":null,"own":false}],"more":0}
