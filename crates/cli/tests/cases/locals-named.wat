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
;; $ afterimage values run.aft --at sum --var n
;; $ afterimage values run.aft --at @0x5b --var $total
;; $ afterimage values run.aft --at @0x5b --var total --stats
;; $ afterimage values run.aft --at @0x5b --var n --histogram --format json
;; $ afterimage state run.aft --at @0x5b#3
;; $ afterimage why run.aft --at @0x5b#3 --var total
;; $ afterimage slice run.aft --at @0x5b#3 --var total --by statement
;; $ afterimage memory run.aft --at @0x5b#3 --var total
;; $ afterimage values run.aft --at sum --var nosuch
;; $ afterimage why run.aft --at sum#1 --var nosuch
;; $ afterimage currency run.aft --unoptimised run.aft --at sum --var n
