;; Which bits of a value are gone back from: none that a mask left out, the sign where it was extended, all of what a float was computed from, and what cannot reach so far up.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\00\01\00\00\10\00\00\00")
  ;; Of these four bytes the second is masked out, and the first is zero.
  (func $gap
    (i32.store8 (i32.const 521) (i32.load8_u (i32.const 257)))
    (i32.store8 (i32.const 523) (i32.load8_u (i32.const 259)))
    (drop (i32.and (i32.load (i32.const 520)) (i32.const 0xff0000ff))))
  ;; The bits above the byte are its sign, which comes from byte 2.
  (func $sign
    (i32.store8 (i32.const 530)
      (i32.or
        (i32.and (i32.load8_u (i32.const 257)) (i32.const 1))
        (i32.and (i32.shl (i32.load8_u (i32.const 258)) (i32.const 7)) (i32.const 0x80))))
    (drop (i32.and (i32.load8_s (i32.const 530)) (i32.const 0x700))))
  ;; The product has 16 bits at most: what is above comes from byte 3.
  (func $product
    (i32.store (i32.const 540)
      (i32.or
        (i32.mul (i32.load8_u (i32.const 256)) (i32.const 160))
        (i32.shl (i32.load8_u (i32.const 259)) (i32.const 16))))
    (drop (i32.shr_u (i32.load (i32.const 540)) (i32.const 16))))
  ;; The lowest byte of a sum of floats depends on all of them.
  (func $float
    (i32.store (i32.const 604) (i32.load (i32.const 256)))
    (f64.store (i32.const 552) (f64.add (f64.load (i32.const 600)) (f64.const 1e-9)))
    (drop (i32.load8_u (i32.const 552))))
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $gap) (call $sign) (call $product) (call $float)))

;; $ afterimage record -q --lens full -o run.aft --stdin FILE FILE
;; $ afterimage why run.aft --at @0x85
;; | 1459617792 (0x57000000) at @0x85#1 in gap
;; | comes from byte 3 of standard input, 'W', 4 steps back
;; |   1459617792 (0x57000000) = 1459632896 (0x57003b00) & -16776961 (0xff0000ff)  @0x85#1 in gap  t=3
;; |     ↑ loaded at @0x7d#1 in gap ← stored at @0x77#1 ← loaded at @0x74#1
;; |       with another part: afterimage deps run.aft --at @0x7d#1 --data
;; |   byte 3 of standard input, 'W'
;; |       fd_read provided it in host call 1, at t=1
;; $ afterimage why run.aft --at @0xb0
;; | 0 at @0xb0#1 in sign
;; | comes from byte 2 of standard input, ' ', 7 steps back
;; |   0 = 1 & 1792                        @0xb0#1 in sign  t=5
;; |     ↑ loaded at @0xaa#1 in sign ← stored at @0xa4#1
;; |   1 = 1 | 0                           @0xa3#1 in sign  t=5
;; |       1: afterimage why run.aft --at @0xa3#1 --operand left
;; |   0 = 4096 (0x1000) & 128             @0xa2#1 in sign  t=5
;; |   4096 (0x1000) = 32 << 7             @0x9e#1 in sign  t=5
;; |     ↑ loaded at @0x99#1 in sign
;; |   byte 2 of standard input, ' '
;; |       fd_read provided it in host call 1, at t=1
;; $ afterimage why run.aft --at @0xd7
;; | 87 at @0xd7#1 in product
;; | comes from byte 3 of standard input, 'W', 6 steps back
;; |   87 = 5711072 (0x5724e0) >> 16       @0xd7#1 in product  t=7
;; |     ↑ loaded at @0xd2#1 in product ← stored at @0xcc#1
;; |   5711072 (0x5724e0) = 9440 (0x24e0) | 5701632 (0x570000)  @0xcb#1 in product  t=7
;; |       9440 (0x24e0): afterimage why run.aft --at @0xcb#1 --operand left
;; |   5701632 (0x570000) = 87 << 16       @0xca#1 in product  t=7
;; |     ↑ loaded at @0xc5#1 in product
;; |   byte 3 of standard input, 'W'
;; |       fd_read provided it in host call 1, at t=1
;; $ afterimage why run.aft --at @0x101
;; | 0 at @0x101#1 in float
;; | comes from bytes 0..3 of standard input, 6 steps back
;; |     ↑ loaded at @0x101#1 in float ← stored at @0xfb#1
;; |   4.879367848549325e111 = 4.879367848549325e111 + 1e-9  @0xfa#1 in float  t=9
;; |     ↑ loaded at @0xee#1 in float ← stored at @0xe5#1 ← loaded at @0xe2#1
;; |       with another part: afterimage deps run.aft --at @0xee#1 --data
;; |   bytes 0..3 of standard input
;; |       fd_read provided it in host call 1, at t=1
