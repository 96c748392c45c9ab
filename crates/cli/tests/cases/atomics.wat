;; Atomic operators on memory that nobody shares, each kind once.

(module
  (memory 1)
  (data (i32.const 8) "\05\00\00\00\ff\00\00\00")
  (func (export "run") (param $at i32) (result i32)
    (atomic.fence)
    (i32.atomic.store offset=8 (local.get $at) (i32.const 7))
    (drop (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))
    (drop (i32.atomic.rmw8.xchg_u (i32.const 12) (i32.const 0x1ff)))
    (drop (i64.atomic.rmw32.cmpxchg_u (i32.const 8) (i64.const 0xff00000008) (i64.const 9)))
    (drop (i32.atomic.rmw.cmpxchg (i32.const 8) (i32.const 5) (i32.const 6)))
    (drop (memory.atomic.notify (i32.const 8) (i32.const 1)))
    (i32.add (i32.atomic.load (i32.const 8)) (i32.atomic.load8_u offset=4 (i32.const 8))))
  (func (export "wait") (result i32)
    (memory.atomic.wait32 (i32.const 8) (i32.const 5) (i64.const -1)))
  (func (export "unaligned") (param $at i32) (result i64)
    (if (local.get $at) (then (nop)))
    (i64.atomic.rmw.or (local.get $at) (i64.const 1)))
  (func (export "beyond") (result i32)
    (memory.atomic.notify offset=65536 (i32.const 0) (i32.const 1))))

;; $ afterimage record -o a.aft --invoke run FILE 0
;; | 264
;; ! afterimage: atomics.wat returned; 0 host calls recorded in a.aft (N)
;; $ afterimage trace a.aft --level statement
;; |      t  function                  place      operator          effect
;; |      1  run                                  host              calls run(0)
;; |      1  run                       @0x56      i32.atomic.store  0x8, 4 bytes <- 7
;; |      1  run                       @0x5e      i32.atomic.rmw.add  0x8, 4 bytes = 7
;; |      1  run                       @0x68      i32.atomic.rmw8.xchg_u  0xc, 1 byte = 255
;; |      1  run                       @0x78      i64.atomic.rmw32.cmpxchg_u  0x8, 4 bytes = 8
;; |      1  run                       @0x83      i32.atomic.rmw.cmpxchg  0x8, 4 bytes = 9
;; |      1  run                       @0x8c      memory.atomic.notify  8
;; |      1  run                       @0x93      i32.atomic.load   0x8, 4 bytes = 9
;; |      1  run                       @0x99      i32.atomic.load8_u  0xc, 1 byte = 255
;; |      1  run                       @0x9d      i32.add           = 264
;; |      1  run                       @0x9e      end               returns 264
;; | the run returned 264
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; $ afterimage verify a.aft
;; | sound: N, 8 chunks in 6 sections, 2 events
;; | whole path: 1 executed block, 1 path in 1 segment, compared with the end
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage build --lens full a.aft
;; ! afterimage: values of 26 executed statements in 69 bytes (2.6538 a statement)
;; $ afterimage memory a.aft --address 8..11
;; | memory 0 at the end of the run: 65,536 bytes in all
;; | 0x00000008  09 00 00 00                                      ....
;; |   as i32: 9 (0x9)
;; |   as f32: 1.3e-44
;; | 0x8..0xb, 4 bytes
;; |   written       t=1  @0x83 in run: 0x8, 4 bytes <- 9
;; |   next read     never
;; |   next written  never
;; $ afterimage deps a.aft --at @0x5e
;; | #1 t=1  @0x5e i32.atomic.rmw.add  in run = 7
;; |   address  8  ← constant
;; |   value    1  ← constant
;; |   memory      ← t=1  @0x56 i32.atomic.store offset=8  in run
;; |   control     ← the host's call
;; $ afterimage deps a.aft --at @0x78
;; | #1 t=1  @0x78 i64.atomic.rmw32.cmpxchg_u  in run = 8
;; |   address      8                             ← constant
;; |   expected     1095216660488 (0xff00000008)  ← constant
;; |   replacement  9                             ← constant
;; |   memory                                     ← t=1  @0x5e i32.atomic.rmw.add  in run
;; |   control                                    ← the host's call
;; $ afterimage values a.aft --at run
;; | @0x56 i32.atomic.store offset=8  in run: executed once
;; |           #1  t=1              stored 7 to 0x8, 4 bytes
;; |
;; | @0x5e i32.atomic.rmw.add  in run: executed once
;; |           #1  t=1              7 from 0x8, 4 bytes
;; |
;; | @0x68 i32.atomic.rmw8.xchg_u  in run: executed once
;; |           #1  t=1              255 from 0xc, 1 byte
;; |
;; | @0x78 i64.atomic.rmw32.cmpxchg_u  in run: executed once
;; |           #1  t=1              8 from 0x8, 4 bytes
;; |
;; | @0x83 i32.atomic.rmw.cmpxchg  in run: executed once
;; |           #1  t=1              9 from 0x8, 4 bytes
;; |
;; | @0x8c memory.atomic.notify  in run: executed once
;; |           #1  t=1              0
;; |
;; | @0x93 i32.atomic.load  in run: executed once
;; |           #1  t=1              9 from 0x8, 4 bytes
;; |
;; | @0x99 i32.atomic.load8_u offset=4  in run: executed once
;; |           #1  t=1              255 from 0xc, 1 byte
;; |
;; | @0x9d i32.add  in run: executed once
;; |           #1  t=1              264
;; $ afterimage addresses a.aft --at run
;; | @0x56 i32.atomic.store    in run
;; | @0x5e i32.atomic.rmw.add    in run
;; | @0x68 i32.atomic.rmw8.xchg_u    in run
;; | @0x78 i64.atomic.rmw32.cmpxchg_u    in run
;; | @0x83 i32.atomic.rmw.cmpxchg    in run
;; | @0x93 i32.atomic.load    in run
;; | @0x99 i32.atomic.load8_u    in run
;; | @0x56 i32.atomic.store                    #1  t=1               0x8
;; | @0x5e i32.atomic.rmw.add                  #1  t=1               0x8 +0 x 2
;; | @0x68 i32.atomic.rmw8.xchg_u              #1  t=1               0xc +0 x 2
;; | @0x78 i64.atomic.rmw32.cmpxchg_u          #1  t=1               0x8 +0 x 2
;; | @0x83 i32.atomic.rmw.cmpxchg              #1  t=1               0x8 +0 x 2
;; | @0x93 i32.atomic.load                     #1  t=1               0x8
;; | @0x99 i32.atomic.load8_u                  #1  t=1               0xc
;; $ afterimage why a.aft --at run
;; | 264 at @0x9d#1 in run
;; | comes from the constant 9 at @0x78#1, 7 steps back
;; |   264 = 9 + 255                       @0x9d#1 in run  t=1
;; |       255: afterimage why a.aft --at @0x9d#1 --operand right
;; |     ↑ loaded at @0x93#1 in run ← stored at @0x83#1 ← selected at @0x83#1 ← loaded at @0x83#1 ← stored at @0x78#1 ← selected at @0x78#1
;; |       the second of two: afterimage why a.aft --at @0x83#1 --operand condition
;; |       the first of two: afterimage why a.aft --at @0x78#1 --operand condition
;; |   the constant 9                      @0x78#1 in run  t=1
;; $ afterimage slice a.aft --at run --by statement
;; | what run#1 (9 statements) depends on: 9 statements, 9 executions
;; | and 1 byte of initial memory
;; |
;; | run
;; | times  of  offset  line  text
;; |     1   1  @0x56         i32.atomic.store offset=8
;; |     1   1  @0x5e         i32.atomic.rmw.add
;; |     1   1  @0x68         i32.atomic.rmw8.xchg_u
;; |     1   1  @0x78         i64.atomic.rmw32.cmpxchg_u
;; |     1   1  @0x83         i32.atomic.rmw.cmpxchg
;; |     1   1  @0x8c         memory.atomic.notify
;; |     1   1  @0x93         i32.atomic.load
;; |     1   1  @0x99         i32.atomic.load8_u offset=4
;; |     1   1  @0x9d         i32.add
;; $ afterimage record --force -o a.aft --invoke wait FILE
;; ! afterimage: atomics.wat trapped: atomic wait on non-shared memory; 0 host calls recorded in a.aft (N)
;; = 134
;; $ afterimage why a.aft --trap
;; | the run trapped: atomic wait on non-shared memory at @0xa7#1 in wait: the address of memory.atomic.wait32 is 8, which
;; | comes from the constant 8 at @0xa7#1
;; |   ended at @0xa7#1 in wait
;; |   the constant 8                      @0xa7#1 in wait  t=1
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; ! afterimage: values of 1 executed statements in 12 bytes (12.0000 a statement)
;; $ afterimage verify a.aft
;; | sound: N, 17 chunks in 11 sections, 1 event
;; | whole path: 1 executed block, 1 path in 1 segment, compared with the end
;; | values of 1 executed statement from t=1 to t=1: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force -o a.aft --invoke unaligned FILE 12
;; ! afterimage: atomics.wat trapped: unaligned atomic; 0 host calls recorded in a.aft (N)
;; = 134
;; $ afterimage why a.aft --trap
;; | the run trapped: unaligned atomic at @0xb8#1 in unaligned: the address of i64.atomic.rmw.or is 12, which
;; | comes from argument 1 of the host's call to unaligned
;; |   ended at @0xb8#1 in unaligned
;; |   argument 1 of the host's call to unaligned
;; ! afterimage: path of 3 executed blocks in 10 bytes
;; ! afterimage: values of 1 executed statements in 23 bytes (23.0000 a statement)
;; $ afterimage verify a.aft
;; | sound: N, 17 chunks in 11 sections, 1 event
;; | whole path: 3 executed blocks, 1 path in 1 segment, compared with the end
;; | values of 1 executed statement from t=1 to t=3: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force -o a.aft --invoke beyond FILE
;; ! afterimage: atomics.wat trapped: memory access out of bounds; 0 host calls recorded in a.aft (N)
;; = 134
;; $ afterimage why a.aft --trap
;; | the run trapped: memory access out of bounds at @0xc3#1 in beyond: the base address of memory.atomic.notify is 0, with 65,536 added, which
;; | comes from the constant 0 at @0xc3#1
;; |   ended at @0xc3#1 in beyond
;; |   the constant 0                      @0xc3#1 in beyond  t=1
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; ! afterimage: values of 1 executed statements in 12 bytes (12.0000 a statement)
;; $ afterimage verify a.aft
;; | sound: N, 17 chunks in 11 sections, 1 event
;; | whole path: 1 executed block, 1 path in 1 segment, compared with the end
;; | values of 1 executed statement from t=1 to t=1: the same when the run is followed again, without the engine
;; | re-executed: the same calls, the same results, the same ending
