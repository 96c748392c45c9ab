;; A function without operators runs: its place is taken by every command that asks about the run.
(module
  (func $empty)
  (func (export "f") (call $empty) (call $empty)))

;; $ afterimage record -o f.aft --lens full --invoke f FILE
;; $ afterimage trace --from empty f.aft
;; $ afterimage trace --from @0x20#2 f.aft
;; $ afterimage state --at @0x20#2 f.aft
;; $ afterimage why-not --at @0x20 f.aft
