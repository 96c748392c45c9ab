;; A loop that depends on its own end only, in a function that was not called; and a loop that the run was past.
(module
  (func $loops (param i32)
    (loop $again
      (drop (i32.add (i32.const 5) (i32.const 6)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func $maybe (param i32)
    (if (local.get 0) (then (call $loops (i32.const 3)))))
  (func (export "_start") (local $i i32)
    (call $maybe (i32.const 0))
    (loop $next
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))
    (drop (i32.add (i32.const 7) (local.get $i)))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 6 executed blocks in 14 bytes
;; ! afterimage: values of 11 executed statements in 1 bytes (0.0909 a statement)
;; ! afterimage: why-not-loop.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage why-not run.aft --at loops+0x5
;; | loops+0x5 was never executed:
;; |   the branch at @0x40#1 in maybe was executed once and never led towards loops+0x5
;; |   the last time, it left the function
;; |   so call at @0x44 in maybe was not executed; it would have called the function
;; | what decided it, 0 (@0x40#1; only a value other than 0 leads towards loops+0x5), comes from the constant 0 at @0x4c#1
;; |   the constant 0                      @0x4c#1 in _start  t=1
;; $ afterimage why-not run.aft --at loops
;; | loops was never executed:
;; |   the branch at @0x40#1 in maybe was executed once and never led towards loops
;; |   the last time, it left the function
;; |   so call at @0x44 in maybe was not executed; it would have called the function
;; | what decided it, 0 (@0x40#1; only a value other than 0 leads towards loops), comes from the constant 0 at @0x4c#1
;; |   the constant 0                      @0x4c#1 in _start  t=1
