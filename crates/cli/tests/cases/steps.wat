;; _start writes four squares, copies, fills and initialises memory, sums the squares up, and asks the host for something.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hi\n")
  (data $passive "abcdef")
  (global $total (mut i32) (i32.const 0))
  (func $sum (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=64 (i32.shl (local.get $n) (i32.const 2)))))
      (br_if $again (local.get $n)))
    (local.get $sum))
  (func (export "_start") (local $i i32)
    (loop $again
      (i32.store offset=64 (i32.shl (local.get $i) (i32.const 2)) (i32.mul (local.get $i) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4))))
    (global.set $total (call $sum (i32.const 4)))
    (f64.store (i32.const 128) (f64.const 1.5))
    (i32.store8 (i32.const 129) (i32.const 0x1ff))
    (memory.copy (i32.const 256) (i32.const 64) (i32.const 16))
    (memory.fill (i32.const 260) (i32.const 255) (i32.const 4))
    (memory.init $passive (i32.const 264) (i32.const 2) (i32.const 3))
    (drop (memory.grow (i32.const 1)))
    (i64.store (i32.const 32) (i64.const 0x300000010))
    (drop (call $fd_write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 260)))
    (drop (i32.load (i32.const 260)))
    (drop (i32.div_u (i32.const 1) (i32.load (i32.const 512))))))

;; $ afterimage record -o run.aft FILE
;; $ afterimage trace run.aft --level statement --limit all
;; $ afterimage trace run.aft --level memory --limit all
;; $ afterimage trace run.aft --level memory --last 3
;; $ afterimage trace run.aft --level statement --function sum --last 4
;; $ afterimage trace run.aft --level statement --from end --limit 2
;; $ afterimage trace run.aft --level memory --reverse
;; $ afterimage trace run.aft --level statement --last 2 --format json
;; $ afterimage trace run.aft --level memory --last 4 --format json
;; $ afterimage memory run.aft --address 0x100..0x10f
;; $ afterimage memory run.aft --address 0x40..0x43 --at sum
;; $ afterimage memory run.aft --address 128 --at start
;; $ afterimage memory run.aft --address 0x104..0x107 --all
;; $ afterimage memory run.aft --address 0x104..0x107 --at 10 --format json
;; $ afterimage memory run.aft --address 0x1ffff..0x20000
;; $ afterimage memory run.aft --address 0x10000 --at 3
;; $ afterimage memory run.aft --address 0x40 --memory 1
;; $ afterimage memory run.aft --address 0x
;; $ afterimage memory run.aft --address 5..4
;; $ afterimage memory run.aft --address 0x40 --at 500
;; $ afterimage addresses run.aft --all
;; $ afterimage addresses run.aft --at 1
;; $ afterimage addresses run.aft --at 1+0xb
;; $ afterimage addresses run.aft --at sum --stats
;; $ afterimage addresses run.aft --at sum --instances 2..3
;; $ afterimage addresses run.aft --at sum --instances last
;; $ afterimage addresses run.aft --at sum --instances 9
;; $ afterimage addresses run.aft --at sum --instances t=1
;; $ afterimage addresses run.aft --at sum#2 --format json
;; $ afterimage addresses run.aft --all --format json
;; $ afterimage build --lens paths --again --exclude sum run.aft
;; $ afterimage trace run.aft --level statement
