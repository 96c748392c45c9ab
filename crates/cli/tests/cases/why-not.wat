;; What did not run: behind a branch, in a function whose call is behind one, in one that a table could have called, behind a call that does not return.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (table 2 funcref)
  (elem (i32.const 0) $one $two)
  (type $get (func (result i32)))
  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (func $report (param $n i32)
    (i32.store (i32.const 8) (i32.mul (local.get $n) (i32.const 3))))
  (func $check (param $n i32)
    (if (i32.gt_s (local.get $n) (i32.const 10))
      (then (call $report (local.get $n)))))
  (func $forgotten (drop (i32.load (i32.const 0))))
  (func $leave
    (call $proc_exit (i32.const 0))
    (i32.store (i32.const 4) (i32.const 1)))
  (func (export "unused") (i32.store (i32.const 4) (i32.const 2)))
  (func (export "_start")
    (local $i i32)
    (loop $next
      (call $check (local.get $i))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 10))))
    (i32.store (i32.const 0) (call_indirect (type $get) (i32.and (local.get $i) (i32.const 1))))
    (call $leave)))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 14 executed blocks in 19 bytes
;; ! afterimage: values of 17 executed statements in 12 bytes (0.7059 a statement)
;; ! afterimage: why-not.wat exited with code 0; 1 host call recorded in run.aft (N)
;; $ afterimage why-not run.aft --at report+0x8
;; | report+0x8 was never executed:
;; |   the branch at @0x9b#3 in check was executed 3 times and never led towards report+0x8
;; |   the last time, it left the function
;; |   so call at @0x9f in check was not executed; it would have called the function
;; | what decided it, 0 (@0x9b#3; only a value other than 0 leads towards report+0x8), comes from a local that nothing wrote, which is 0, 3 steps back
;; |   0 = 8 > 10                          @0x9a#3 in check  t=9
;; |   8 = 4 + 4                           @0xd2#2 in _start  t=7
;; |   4 = 0 + 4                           @0xd2#1 in _start  t=4
;; |   a local that nothing wrote, which is 0
;; $ afterimage why-not run.aft --at two
;; | two was never executed:
;; |   call_indirect at @0xe4#1 in _start was executed once and never called two
;; |   the last time, it called one, through index 0
;; | what decided it, 0 (@0xe4#1), comes from a local that nothing wrote, which is 0, 4 steps back
;; |   0 = 12 & 1                          @0xe3#1 in _start  t=11
;; |   12 = 8 + 4                          @0xd2#3 in _start  t=10
;; |   … this 2 more times, back to
;; |   4 = 0 + 4                           @0xd2#1 in _start  t=4
;; |   a local that nothing wrote, which is 0
;; $ afterimage why-not run.aft --at forgotten
;; | forgotten was never executed:
;; |   nothing in the program calls forgotten
;; $ afterimage why-not run.aft --at unused
;; | unused was never executed:
;; |   only the host could have called unused
;; $ afterimage why-not run.aft --at leave+0x9
;; | leave+0x9 was never executed:
;; |   the run exited with code 0 at @0xb0 in leave, at t=14; to get there, it would have had to continue from call at @0xb0 in leave, which was executed once, the last time at t=14
;; $ afterimage why-not run.aft --at check
;; ! afterimage: run.aft: check was executed 3 times, first at t=3, last at t=9; to ask why it did not run after that: --after 9
;; = 125
;; $ afterimage why-not run.aft --at check --after t=12
;; | check was not executed after t=12 (it was executed 3 times before, the last time at t=9):
;; |   only the host could have called _start after that
;; |   so call at @0xcc in _start was not executed; it would have called the function
;; $ afterimage why-not run.aft --at check#1
;; ! afterimage: run.aft: --at check#1: leave out the number of the execution; to ask about a part of the run, use --after
;; = 125
;; $ afterimage why-not run.aft --at report --format json
;; | {"schema":"afterimage/why-not/2","at":"report","after":0,"before":null,"cause":{"kind":"branch","place":{"function":{"index":4,"name":"check"},"source":null,"around":null,"text":null,"operator":"if","at":"@0x9b#3","t":9},"times":3,"executions":3,"value":"0","needs":"nonzero","went":{"kind":"left"},"through":[{"how":"call","place":{"function":{"index":4,"name":"check"},"source":null,"around":null,"text":null,"operator":"call","at":"@0x9f","t":0}}]},"why":[{"step":"computed","value":"0","typed":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"operands":[{"role":"left","value":"8","typed":{"type":"i32","bits":"0x8","as_number":8,"text":"8"},"constant":false,"followed":true},{"role":"right","value":"10","typed":{"type":"i32","bits":"0xa","as_number":10,"text":"10"},"constant":true,"followed":false}],"place":{"function":{"index":4,"name":"check"},"source":null,"around":null,"text":null,"operator":"i32.gt_s","at":"@0x9a#3","t":9}},{"step":"computed","value":"8","typed":{"type":"i32","bits":"0x8","as_number":8,"text":"8"},"operands":[{"role":"left","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"constant":false,"followed":true},{"role":"right","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"constant":true,"followed":false}],"place":{"function":{"index":8,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0xd2#2","t":7}},{"step":"computed","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"operands":[{"role":"left","value":"0","typed":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"constant":false,"followed":true},{"role":"right","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"constant":true,"followed":false}],"place":{"function":{"index":8,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0xd2#1","t":4}},{"step":"end","kind":"zero","what":"a local that nothing wrote, which is 0","file":null,"offset":null,"bytes":Nnull,"place":null,"read":null,"led":null,"remark":null}],"steps":3,"others":[]}
;; $ afterimage why run.aft --trap
;; | the run exited with code 0 at @0xb0#1 in leave: the exit code is 0, which
;; | comes from the constant 0 at @0xb0#1
;; |   ended at @0xb0#1 in leave
;; |   called at @0xea#1 in _start
;; |   the constant 0                      @0xb0#1 in leave  t=14
