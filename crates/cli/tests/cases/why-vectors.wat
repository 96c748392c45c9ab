;; Bytes that go through vectors: only the ones that are asked about are followed.
(module
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    (loop $next
      (i32.store8 offset=400 (local.get $i) (i32.mul (local.get $i) (local.get $i)))
      (br_if $next (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 16))))
    (v128.store (i32.const 540) (v128.load (i32.const 401)))
    (drop (i32.load8_u (i32.const 544)))
    (drop (i32x4.extract_lane 1 (v128.load (i32.const 400))))
    (v128.store (i32.const 560) (i8x16.shuffle 3 2 1 0 4 5 6 7 8 9 10 11 12 13 14 15
      (v128.load (i32.const 400)) (v128.load (i32.const 400))))
    (drop (i32.load8_u (i32.const 560)))
    (v128.store (i32.const 580)
      (i16x8.replace_lane 2 (v128.load (i32.const 400)) (i32.const 0x0807)))
    (drop (i32.load8_u (i32.const 585)))
    (drop (i32.load8_u (i32.const 587)))
    (v128.store16_lane 3 (i32.const 600) (v128.load (i32.const 400)))
    (drop (i32.load8_u (i32.const 601)))
    (i32.store8 (i32.const 620) (i32.load (i32.const 400)))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 18 executed blocks in 13 bytes
;; ! afterimage: values of 100 executed statements in 161 bytes (1.6100 a statement)
;; ! afterimage: why-vectors.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage why run.aft --at @0x60 --steps 9
;; | 25 at @0x60#1 in _start
;; | goes further back than the 9 steps followed
;; |     ↑ loaded at @0x60#1 in _start ← stored at @0x59#1 ← loaded at @0x55#1 ← stored at @0x3e#6
;; |   25 = 5 * 5                          @0x3d#6 in _start  t=7
;; |       5: afterimage why run.aft --at @0x3d#6 --operand right
;; |   5 = 4 + 1                           @0x46#5 in _start  t=6
;; |   … this 3 more times, back to
;; |   2 = 1 + 1                           @0x46#2 in _start  t=3
;; |   … stopped after 9 steps, before the beginning
;; |       to continue from here, ask why about @0x46#2; its --steps N goes further
;; $ afterimage why run.aft --at @0x6b --steps 9
;; | 824449296 (0x31241910) at @0x6b#1 in _start
;; | comes from a local that nothing wrote, which is 0, 8 steps back
;; |     ↑ moved between lanes at @0x6b#1 in _start ← loaded at @0x67#1 ← stored at @0x3e#5
;; |       with 3 other parts: afterimage deps run.aft --at @0x67#1 --data
;; |   16 = 4 * 4                          @0x3d#5 in _start  t=6
;; |       4: afterimage why run.aft --at @0x3d#5 --operand right
;; |   4 = 3 + 1                           @0x46#4 in _start  t=5
;; |   … this 3 more times, back to
;; |   1 = 0 + 1                           @0x46#1 in _start  t=2
;; |   a local that nothing wrote, which is 0
;; $ afterimage why run.aft --at @0x99 --steps 9
;; | 9 at @0x99#1 in _start
;; | comes from a local that nothing wrote, which is 0, 9 steps back
;; |     ↑ loaded at @0x99#1 in _start ← stored at @0x92#1 ← moved between lanes at @0x80#1 ← loaded at @0x75#1 ← stored at @0x3e#4
;; |   9 = 3 * 3                           @0x3d#4 in _start  t=5
;; |       3: afterimage why run.aft --at @0x3d#4 --operand right
;; |   3 = 2 + 1                           @0x46#3 in _start  t=4
;; |   … this 2 more times, back to
;; |   1 = 0 + 1                           @0x46#1 in _start  t=2
;; |   a local that nothing wrote, which is 0
;; $ afterimage why run.aft --at @0xb4 --steps 9
;; | 8 at @0xb4#1 in _start
;; | comes from the constant 2055 at @0xaa#1, 3 steps back
;; |     ↑ loaded at @0xb4#1 in _start ← stored at @0xad#1 ← moved between lanes at @0xaa#1
;; |   the constant 2055                   @0xaa#1 in _start  t=18
;; $ afterimage why run.aft --at @0xbb --steps 9
;; | 49 at @0xbb#1 in _start
;; | goes further back than the 9 steps followed
;; |     ↑ loaded at @0xbb#1 in _start ← stored at @0xad#1 ← moved between lanes at @0xaa#1 ← loaded at @0xa3#1 ← stored at @0x3e#8
;; |   49 = 7 * 7                          @0x3d#8 in _start  t=9
;; |       7: afterimage why run.aft --at @0x3d#8 --operand right
;; |   7 = 6 + 1                           @0x46#7 in _start  t=8
;; |   … this 2 more times, back to
;; |   5 = 4 + 1                           @0x46#5 in _start  t=6
;; |   … stopped after 9 steps, before the beginning
;; |       to continue from here, ask why about @0x46#5; its --steps N goes further
;; $ afterimage why run.aft --at @0xd1 --steps 9
;; | 49 at @0xd1#1 in _start
;; | goes further back than the 9 steps followed
;; |     ↑ loaded at @0xd1#1 in _start ← stored at @0xc9#1 ← loaded at @0xc5#1 ← stored at @0x3e#8
;; |   49 = 7 * 7                          @0x3d#8 in _start  t=9
;; |       7: afterimage why run.aft --at @0x3d#8 --operand right
;; |   7 = 6 + 1                           @0x46#7 in _start  t=8
;; |   … this 3 more times, back to
;; |   4 = 3 + 1                           @0x46#4 in _start  t=5
;; |   … stopped after 9 steps, before the beginning
;; |       to continue from here, ask why about @0x46#4; its --steps N goes further
;; $ afterimage why run.aft --at @0xde --steps 9
;; | 0, stored at @0xde#1 in _start,
;; | comes from a local that nothing wrote, which is 0, 4 steps back
;; |     ↑ stored at @0xde#1 in _start ← loaded at @0xdb#1 ← stored at @0x3e#1
;; |   0 = 0 * 0                           @0x3d#1 in _start  t=2
;; |       0: afterimage why run.aft --at @0x3d#1 --operand right
;; |   a local that nothing wrote, which is 0
