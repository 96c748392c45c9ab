;; Where a trace of statements goes on, to the statement; and functions that only return in a stretch.
(module
  (tag $e (param i32))
  (func $leaf)
  (func $by-call (result i32) (i32.const 5) (call $leaf))
  (func $by-catch (result i32) (block (result i32) (try_table (catch $e 0) (throw $e (i32.const 7))) (unreachable)))
  (func $loop (param i32) (result i32)
    (loop (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if 0 (i32.gt_s (local.get 0) (i32.const 0))))
    (local.get 0))
  (func (export "f") (result i32)
    (i32.add (i32.add (call $by-call) (call $by-catch)) (call $loop (i32.const 3)))))

;; $ afterimage record -q --invoke f -o run.aft FILE
;; $ afterimage build --lens full run.aft
;; $ afterimage trace run.aft --level statement
;; $ afterimage trace run.aft --level statement --function loop --limit 4
;; $ afterimage trace run.aft --level statement --limit 3 --reverse
;; $ afterimage trace run.aft --level statement --function by-call
;; $ afterimage trace run.aft --level statement --function by-call --from leaf#1
;; $ afterimage trace run.aft --level statement --function by-call --from leaf#1 --to leaf#1
;; $ afterimage trace run.aft --level statement --function by-catch --from 5
;; $ afterimage trace run.aft --function by-call --from leaf#1
;; $ afterimage trace run.aft --level statement --function leaf --from loop#1
