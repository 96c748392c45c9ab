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
;; $ afterimage why-not run.aft --at @0x46
;; $ afterimage why-not run.aft --at @0x46 --after 3
;; $ afterimage why-not run.aft --at later
;; $ afterimage why-not run.aft --at later --format json
;; $ afterimage why-not run.aft --at later --after 4
;; $ afterimage why run.aft --at @0x3e#2
;; $ afterimage slice run.aft --at end --address 0xfffffffffffffff8
;; $ afterimage slice run.aft --at end --address 0xfffc
;; $ afterimage slice run.aft --at @0x3e -o run.aft
