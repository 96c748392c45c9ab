;; Locals that the name section names, in a module without debug information: every command that takes a variable finds them.
(module
  (memory (export "memory") 1)
  (func $sum (param $n i32) (result i64) (local $total i64)
    (loop $next
      (local.set $total (i64.add (local.get $total) (i64.extend_i32_u (local.get $n))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (local.get $total))
  (func (export "_start")
    (drop (call $sum (i32.const 3)))
    (drop (call $sum (i32.const 1)))))

;; $ afterimage record -q -o run.aft FILE
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 11 executed blocks in 14 bytes
;; ! afterimage: values of 16 executed statements in 1 bytes (0.0625 a statement)
;; $ afterimage values run.aft --at sum --var n
;; | n (i32) at sum: called 2 times
;; |           #1  t=2              3
;; |           #2  t=8              1
;; $ afterimage values run.aft --at @0x40 --var $total
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage values run.aft --at @0x40 --var total --stats
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage values run.aft --at @0x40 --var n --histogram --format json
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage state run.aft --at @0x40#3
;; ! afterimage: run.aft: the operator at 0x5b was executed once, so there is no #3; the last is #1
;; = 125
;; $ afterimage why run.aft --at @0x40#3 --var total
;; ! afterimage: run.aft: the operator at 0x5b was executed once, so there is no #3; the last is #1
;; = 125
;; $ afterimage slice run.aft --at @0x40#3 --var total --by statement
;; ! afterimage: run.aft: --at @0x40#3: the operator at 0x5b was executed once, so there is no #3; the last is #1
;; = 125
;; $ afterimage memory run.aft --at @0x40#3 --var total
;; ! afterimage: run.aft: --at @0x40#3: the operator at 0x5b was executed once, so there is no #3; the last is #1
;; = 125
;; $ afterimage values run.aft --at sum --var nosuch
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage why run.aft --at sum#1 --var nosuch
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage currency run.aft --unoptimised run.aft --at sum --var n
;; ! afterimage: run.aft and run.aft are recordings of the same program: record a version without optimisation, too, on the same input
;; = 125
