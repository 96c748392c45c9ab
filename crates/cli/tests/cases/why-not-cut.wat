;; A division traps before the call and the branch of its block, the third time: these were executed twice. Control enters a loop where there is no operator.
(module
  (memory (export "memory") 1)
  (func $never (drop (i32.clz (i32.const 1))))
  (func $later (drop (i32.ctz (i32.const 1))))
  (func $share (param $among i32)
    (i32.store (i32.const 8) (i32.div_u (i32.const 10) (local.get $among)))
    (if (i32.eqz (local.get $among)) (then (call $never))))
  (func $loops (param $i i32)
    (loop $again
      (call $share (local.get $i))
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (br_if $again (i32.const 1)))
    (call $later))
  (func (export "_start")
    (call $loops (i32.const 2))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 10 executed blocks in 16 bytes
;; ! afterimage: values of 12 executed statements in 12 bytes (1.0000 a statement)
;; ! afterimage: why-not-cut.wat trapped: integer division by zero; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage why-not run.aft --at never
;; | never was never executed:
;; |   the branch at @0x54#2 in share was executed 2 times and never led towards never
;; |   the last time, it left the function
;; |   so call at @0x56 in share was not executed; it would have called the function
;; | what decided it, 0 (@0x54#2; only a value other than 0 leads towards never), comes from the constant 2 at @0x73#1, 2 steps back
;; |   0 = 1 == 0                          @0x53#2 in share  t=7
;; |   1 = 2 - 1                           @0x66#1 in loops  t=5
;; |   the constant 2                      @0x73#1 in _start  t=1
;; $ afterimage why-not run.aft --at never --after 5
;; | never was not executed after t=5 (it was never executed before, either):
;; |   the branch at @0x54#2 in share was executed once (2 times in the whole run) and never led towards never
;; |   the first time after that, it left the function
;; |   so call at @0x56 in share was not executed; it would have called the function
;; | what decided it, 0 (@0x54#2; only a value other than 0 leads towards never), comes from the constant 2 at @0x73#1, 2 steps back
;; |   0 = 1 == 0                          @0x53#2 in share  t=7
;; |   1 = 2 - 1                           @0x66#1 in loops  t=5
;; |   the constant 2                      @0x73#1 in _start  t=1
;; $ afterimage why-not run.aft --at never --after 8
;; | never was not executed after t=8 (it was never executed before, either):
;; |   the run trapped: integer division by zero at @0x4d in share, at t=10, before reaching it
;; |   so the branch at @0x54 in share was not executed
;; |   so call at @0x56 in share was not executed; it would have called the function
;; $ afterimage why-not run.aft --at later
;; | later was never executed:
;; |   the run trapped: integer division by zero at @0x4d in share, at t=10, when loops was in its call at @0x60, at t=9; to get there, it would have had to continue from loops, which was entered once, the last time at t=2
;; |   so call at @0x6e in loops was not executed; it would have called the function
