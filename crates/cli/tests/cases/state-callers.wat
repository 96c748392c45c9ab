;; Arguments that the host gave are known in callers, too, whether or not anybody read them before.
(module
  (memory (export "memory") 1)
  (func $write (param $i i32)
    (i32.store (i32.const 16) (local.get $i)))
  (func (export "run") (param $n i32) (param $unread i64) (result i32) (local $i i32)
    (loop $again
      (call $write (local.get $i))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))
    (i32.sub (local.get $n) (i32.const 3))))
;; $ afterimage record -q -o run.aft --invoke run FILE 4 -5
;; | 1
;; $ afterimage state run.aft --at write#2
;; | before the block at t=6 of 11
;; | #0 write(1)  @0x36  t=6
;; |     the module has no debug information; compile it with -g
;; |     local 0 $i = 1  (i32, parameter)
;; | #1 run(4, -5)  @0x46  t=5
;; |     local 0 $n = 4  (i32, parameter)
;; |     local 1 $unread = -5  (i64, parameter)
;; |     local 2 $i = 1  (i32)
;; ! afterimage: path of 11 executed blocks in 15 bytes
;; ! afterimage: values of 13 executed statements in 12 bytes (0.9231 a statement)
;; $ afterimage state run.aft --at write#3 --frame 1
;; | before the block at t=9 of 11
;; | #1 run(4, -5)  @0x46  t=8
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 4  (i32, parameter)
;; |     local 1 $unread = -5  (i64, parameter)
;; |     local 2 $i = 2  (i32)
