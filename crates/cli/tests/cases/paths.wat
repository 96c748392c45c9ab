;; The program of Zhang and Gupta's Figures 1 to 7 (2001): main goes round a loop five times and calls f each time; f
;; goes round a loop three times, always on the one side or always on the other.
(module
  (func $main (export "main") (local $i i32)
    (local.set $i (i32.const 5))
    (loop $again
      (block (br 0))
      (call $f (i32.and (local.get $i) (i32.const 1)))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1))))))
  (func $f (param $side i32) (local $j i32)
    (local.set $j (i32.const 3))
    (loop $again
      (if (local.get $side)
        (then (block (br 0)) (block (br 0)) nop)
        (else (block (br 0)) (block (br 0)) nop))
      (br_if $again (local.tee $j (i32.sub (local.get $j) (i32.const 1)))))
    (call $g))
  (func $g)
  (func $idle))

;; $ afterimage record --invoke main -o run.aft FILE
;; $ afterimage build --lens paths run.aft
;; $ afterimage cfg run.aft --function main
;; $ afterimage cfg run.aft --function f
;; $ afterimage paths run.aft
;; $ afterimage paths run.aft --sort traces --top 1
;; $ afterimage paths run.aft --function main
;; $ afterimage paths run.aft --function f
;; $ afterimage paths run.aft --function f --form dbb
;; $ afterimage paths run.aft --function f --form twpp
;; $ afterimage paths run.aft --function main --form twpp
;; $ afterimage paths run.aft --function idle
;; $ afterimage paths run.aft --hot
;; $ afterimage paths run.aft --hot --function g
