;; Calls that go too deep for the stack that a compiler keeps in memory: below 0.
(module
  (memory (export "memory") 1)
  (global $stack (mut i32) (i32.const 40000))
  (func $keeps (param $n i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
    (i32.store (global.get $stack) (local.get $n))
    (call $keeps (i32.sub (local.get $n) (i32.const 1)))
    (global.set $stack (i32.add (global.get $stack) (i32.const 16))))
  (func (export "memory_stack") (param $n i32) (call $keeps (local.get $n))))

;; $ afterimage record --lens full -q -o run.aft --invoke memory_stack FILE -- 1
;; ! afterimage: why-trap-deep.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap --steps 3
;; | the run trapped: memory access out of bounds at @0x4e#2501 in keeps, with 2,502 activations on the stack: keeps at @0x56 called itself, 2,500 times; the address of i32.store is 0xfffffff0, which
;; | goes further back than the 3 steps followed
;; |   ended at @0x4e#2501 in keeps
;; |   called at @0x56#2500 in keeps
;; |   … and 2,500 more
;; |     ↑ read at @0x4a#2501 in keeps ← written at @0x48#2501
;; |   -16 = 0 - 16                        @0x47#2501 in keeps  t=2,502
;; |   … stopped after 3 steps, before the beginning
;; |       to continue from here, ask why about @0x47#2501; its --steps N goes further
