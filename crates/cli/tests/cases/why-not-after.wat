;; Why not after a moment: the branch that ends the moment's own block counts, and so does what is behind the moment in that block.
(module
  (func $step (param $i i32)
    (drop (i32.add (local.get $i) (i32.const 10)))
    (drop (i32.mul (local.get $i) (i32.const 11)))
    (if (i32.eq (local.get $i) (i32.const 3))
      (then (drop (i32.sub (local.get $i) (i32.const 12))))))
  (func (export "_start") (local $i i32)
    (loop $next
      (call $step (local.tee $i (i32.add (local.get $i) (i32.const 1))))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 5))))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 17 executed blocks in 17 bytes
;; ! afterimage: values of 36 executed statements in 1 bytes (0.0278 a statement)
;; ! afterimage: why-not-after.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage why-not run.aft --at step+0x18 --after step#4
;; | step+0x18 was not executed after t=13 (it was executed once before, the last time at t=10):
;; |   the branch at @0x39#4 in step was executed 2 times (5 times in the whole run) and never led towards step+0x18
;; |   the first time after that, it left the function
;; | what decided it, 0 (@0x39#4; only a value other than 0 leads towards step+0x18), comes from a local that nothing wrote, which is 0, 5 steps back
;; |   0 = 4 == 3                          @0x38#4 in step  t=13
;; |   4 = 3 + 1                           @0x4d#4 in _start  t=12
;; |   … this 3 more times, back to
;; |   1 = 0 + 1                           @0x4d#1 in _start  t=2
;; |   a local that nothing wrote, which is 0
;; $ afterimage why-not run.aft --at step+0x18 --after step#4 --format json
;; | {"schema":"afterimage/why-not/2","at":"step+0x18","after":13,"before":{"arrivals":false,"times":1,"t":10},"cause":{"kind":"branch","place":{"function":{"index":0,"name":"step"},"source":null,"around":null,"text":null,"operator":"if","at":"@0x39#4","t":13},"times":2,"executions":5,"value":"0","needs":"nonzero","went":{"kind":"left"},"through":[]},"why":[{"step":"computed","value":"0","typed":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"operands":[{"role":"left","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"constant":false,"followed":true},{"role":"right","value":"3","typed":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"constant":true,"followed":false}],"place":{"function":{"index":0,"name":"step"},"source":null,"around":null,"text":null,"operator":"i32.eq","at":"@0x38#4","t":13}},{"step":"computed","value":"4","typed":{"type":"i32","bits":"0x4","as_number":4,"text":"4"},"operands":[{"role":"left","value":"3","typed":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"constant":false,"followed":true},{"role":"right","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"constant":true,"followed":false}],"place":{"function":{"index":1,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0x4d#4","t":12}},{"step":"again","steps":1,"times":3,"back":{"step":"computed","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"operands":[{"role":"left","value":"0","typed":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"constant":false,"followed":true},{"role":"right","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"constant":true,"followed":false}],"place":{"function":{"index":1,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0x4d#1","t":2}}},{"step":"end","kind":"zero","what":"a local that nothing wrote, which is 0","file":null,"offset":null,"bytes":Nnull,"place":null,"read":null,"led":null,"remark":null}],"steps":5,"others":[]}
;; $ afterimage why-not run.aft --at step+0x18 --after step#2
;; ! afterimage: run.aft: step+0x18 was executed once after t=6, at t=10; to ask why it did not run after that: --after 10
;; = 125
;; $ afterimage why-not run.aft --at step+0x18 --after t=16
;; | step+0x18 was not executed after t=16 (it was executed once before, the last time at t=10):
;; |   the branch at @0x39#5 in step was executed once (5 times in the whole run) and never led towards step+0x18
;; |   the first time after that, it left the function
;; | what decided it, 0 (@0x39#5; only a value other than 0 leads towards step+0x18), comes from a local that nothing wrote, which is 0, 6 steps back
;; |   0 = 5 == 3                          @0x38#5 in step  t=16
;; |   5 = 4 + 1                           @0x4d#5 in _start  t=15
;; |   … this 4 more times, back to
;; |   1 = 0 + 1                           @0x4d#1 in _start  t=2
;; |   a local that nothing wrote, which is 0
;; $ afterimage why-not run.aft --at step+0x6 --after step+0x1#5
;; ! afterimage: run.aft: step+0x6 was executed once from t=16 on, at t=16; to ask why it did not run after that: --after 16
;; = 125
;; $ afterimage why-not run.aft --at step+0x1 --after step+0x6#5
;; | step+0x1 was not executed after t=16 (it was executed 5 times before, the last time at t=16):
;; |   the branch at @0x57#5 in _start was executed once (5 times in the whole run) and never led towards step+0x1
;; |   the first time after that, the run ended
;; |   so call at @0x50 in _start was not executed; it would have called the function
;; | what decided it, 0 (@0x57#5; only a value other than 0 leads towards step+0x1), comes from a local that nothing wrote, which is 0, 6 steps back
;; |   0 = 5 < 5                           @0x56#5 in _start  t=17
;; |   5 = 4 + 1                           @0x4d#5 in _start  t=15
;; |   … this 4 more times, back to
;; |   1 = 0 + 1                           @0x4d#1 in _start  t=2
;; |   a local that nothing wrote, which is 0
