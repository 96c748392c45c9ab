;; _start writes four squares, copies, fills and initialises memory, sums the squares up, and asks the host for something.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hi\n")
  (data $passive "abcdef")
  (global $total (mut i32) (i32.const 0))
  (func $sum (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=64 (i32.shl (local.get $n) (i32.const 2)))))
      (br_if $again (local.get $n)))
    (local.get $sum))
  (func (export "_start") (local $i i32)
    (loop $again
      (i32.store offset=64 (i32.shl (local.get $i) (i32.const 2)) (i32.mul (local.get $i) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 4))))
    (global.set $total (call $sum (i32.const 4)))
    (f64.store (i32.const 128) (f64.const 1.5))
    (i32.store8 (i32.const 129) (i32.const 0x1ff))
    (memory.copy (i32.const 256) (i32.const 64) (i32.const 16))
    (memory.fill (i32.const 260) (i32.const 255) (i32.const 4))
    (memory.init $passive (i32.const 264) (i32.const 2) (i32.const 3))
    (drop (memory.grow (i32.const 1)))
    (i64.store (i32.const 32) (i64.const 0x300000010))
    (drop (call $fd_write (i32.const 1) (i32.const 32) (i32.const 1) (i32.const 260)))
    (drop (i32.load (i32.const 260)))
    (drop (i32.div_u (i32.const 1) (i32.load (i32.const 512))))))

;; $ afterimage record -o run.aft FILE
;; | hi
;; ! afterimage: steps.wat trapped: integer division by zero; 1 host call recorded in run.aft (N)
;; = 134
;; $ afterimage trace run.aft --level statement --limit all
;; |      t  function                  place      operator          effect
;; |      1  _start                               host              calls _start()
;; |      2  _start                    @0x9b      i32.shl           = 0
;; |      2  _start                    @0xa0      i32.mul           = 0
;; |      2  _start                    @0xa1      i32.store         0x40, 4 bytes <- 0
;; |      2  _start                    @0xa8      i32.add           = 1
;; |      2  _start                    @0xad      i32.lt_u          = 1
;; |      2  _start                    @0xae      br_if             on 1
;; |      3  _start                    @0x9b      i32.shl           = 4
;; |      3  _start                    @0xa0      i32.mul           = 1
;; |      3  _start                    @0xa1      i32.store         0x44, 4 bytes <- 1
;; |      3  _start                    @0xa8      i32.add           = 2
;; |      3  _start                    @0xad      i32.lt_u          = 1
;; |      3  _start                    @0xae      br_if             on 1
;; |      4  _start                    @0x9b      i32.shl           = 8
;; |      4  _start                    @0xa0      i32.mul           = 4
;; |      4  _start                    @0xa1      i32.store         0x48, 4 bytes <- 4
;; |      4  _start                    @0xa8      i32.add           = 3
;; |      4  _start                    @0xad      i32.lt_u          = 1
;; |      4  _start                    @0xae      br_if             on 1
;; |      5  _start                    @0x9b      i32.shl           = 12
;; |      5  _start                    @0xa0      i32.mul           = 9
;; |      5  _start                    @0xa1      i32.store         0x4c, 4 bytes <- 9
;; |      5  _start                    @0xa8      i32.add           = 4
;; |      5  _start                    @0xad      i32.lt_u          = 0
;; |      5  _start                    @0xae      br_if             on 0
;; |      6  _start                    @0xb3      call              sum(4)
;; |      8  sum                       @0x78      i32.sub           = 3
;; |      8  sum                       @0x81      i32.shl           = 12
;; |      8  sum                       @0x82      i32.load          0x4c, 4 bytes = 9
;; |      8  sum                       @0x85      i32.add           = 9
;; |      8  sum                       @0x8a      br_if             on 3
;; |      9  sum                       @0x78      i32.sub           = 2
;; |      9  sum                       @0x81      i32.shl           = 8
;; |      9  sum                       @0x82      i32.load          0x48, 4 bytes = 4
;; |      9  sum                       @0x85      i32.add           = 13
;; |      9  sum                       @0x8a      br_if             on 2
;; |     10  sum                       @0x78      i32.sub           = 1
;; |     10  sum                       @0x81      i32.shl           = 4
;; |     10  sum                       @0x82      i32.load          0x44, 4 bytes = 1
;; |     10  sum                       @0x85      i32.add           = 14
;; |     10  sum                       @0x8a      br_if             on 1
;; |     11  sum                       @0x78      i32.sub           = 0
;; |     11  sum                       @0x81      i32.shl           = 0
;; |     11  sum                       @0x82      i32.load          0x40, 4 bytes = 0
;; |     11  sum                       @0x85      i32.add           = 14
;; |     11  sum                       @0x8a      br_if             on 0
;; |     12  sum                       @0x8f      end               returns 14
;; |     13  _start                    @0xb5      global.set        global 0 <- 14
;; |     13  _start                    @0xc3      f64.store         0x80, 8 bytes <- 1.5
;; |     13  _start                    @0xcc      i32.store8        0x81, 1 byte <- 255
;; |     13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |     13  _start                    @0xe3      memory.fill       0x104, 4 bytes <- 0xff
;; |     13  _start                    @0xed      memory.init       0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |     13  _start                    @0xf3      memory.grow       memory 0 by 1 page = 1
;; |     13  _start                    @0xfe      i64.store         0x20, 8 bytes <- 12884901904 (0x300000010)
;; |     13  _start                    @0x10a     call              fd_write(1, 32, 1, 260)
;; |     13  _start                    @0x10a     host read         0x20, 8 bytes by fd_write: 10 00 00 00 03 00 00 00
;; |     13  _start                    @0x10a     host read         0x10, 3 bytes by fd_write: "hi\n"
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     13  _start                    @0x10a     host return       fd_write = 0
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; |     14  _start                    @0x11c     i32.div_u         traps: integer division by zero
;; | the run trapped: integer division by zero
;; ! afterimage: path of 14 executed blocks in 14 bytes
;; $ afterimage trace run.aft --level memory --limit all
;; |      t  function                  place      operator          effect
;; |      2  _start                    @0xa1      i32.store         0x40, 4 bytes <- 0
;; |      3  _start                    @0xa1      i32.store         0x44, 4 bytes <- 1
;; |      4  _start                    @0xa1      i32.store         0x48, 4 bytes <- 4
;; |      5  _start                    @0xa1      i32.store         0x4c, 4 bytes <- 9
;; |      8  sum                       @0x82      i32.load          0x4c, 4 bytes = 9
;; |      9  sum                       @0x82      i32.load          0x48, 4 bytes = 4
;; |     10  sum                       @0x82      i32.load          0x44, 4 bytes = 1
;; |     11  sum                       @0x82      i32.load          0x40, 4 bytes = 0
;; |     13  _start                    @0xc3      f64.store         0x80, 8 bytes <- 1.5
;; |     13  _start                    @0xcc      i32.store8        0x81, 1 byte <- 255
;; |     13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |     13  _start                    @0xe3      memory.fill       0x104, 4 bytes <- 0xff
;; |     13  _start                    @0xed      memory.init       0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |     13  _start                    @0xfe      i64.store         0x20, 8 bytes <- 12884901904 (0x300000010)
;; |     13  _start                    @0x10a     host read         0x20, 8 bytes by fd_write: 10 00 00 00 03 00 00 00
;; |     13  _start                    @0x10a     host read         0x10, 3 bytes by fd_write: "hi\n"
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; | the run trapped: integer division by zero
;; $ afterimage trace run.aft --level memory --last 3
;; |      t  function                  place      operator          effect
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; | the run trapped: integer division by zero
;; $ afterimage trace run.aft --level statement --function sum --last 4
;; |      t  function                  place      operator          effect
;; |     11  sum                       @0x82      i32.load          0x40, 4 bytes = 0
;; |     11  sum                       @0x85      i32.add           = 14
;; |     11  sum                       @0x8a      br_if             on 0
;; |     12  sum                       @0x8f      end               returns 14
;; $ afterimage trace run.aft --level statement --from end --limit 2
;; |      t  function                  place      operator          effect
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; | … and more: continue with --from @0x11c#1, or --limit all
;; $ afterimage trace run.aft --level memory --reverse
;; |      t  function                  place      operator          effect
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     13  _start                    @0x10a     host read         0x10, 3 bytes by fd_write: "hi\n"
;; |     13  _start                    @0x10a     host read         0x20, 8 bytes by fd_write: 10 00 00 00 03 00 00 00
;; |     13  _start                    @0xfe      i64.store         0x20, 8 bytes <- 12884901904 (0x300000010)
;; |     13  _start                    @0xed      memory.init       0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |     13  _start                    @0xe3      memory.fill       0x104, 4 bytes <- 0xff
;; |     13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |     13  _start                    @0xcc      i32.store8        0x81, 1 byte <- 255
;; |     13  _start                    @0xc3      f64.store         0x80, 8 bytes <- 1.5
;; |     11  sum                       @0x82      i32.load          0x40, 4 bytes = 0
;; |     10  sum                       @0x82      i32.load          0x44, 4 bytes = 1
;; |      9  sum                       @0x82      i32.load          0x48, 4 bytes = 4
;; |      8  sum                       @0x82      i32.load          0x4c, 4 bytes = 9
;; |      5  _start                    @0xa1      i32.store         0x4c, 4 bytes <- 9
;; |      4  _start                    @0xa1      i32.store         0x48, 4 bytes <- 4
;; |      3  _start                    @0xa1      i32.store         0x44, 4 bytes <- 1
;; |      2  _start                    @0xa1      i32.store         0x40, 4 bytes <- 0
;; $ afterimage trace run.aft --level statement --reverse --last 3
;; |      t  function                  place      operator          effect
;; |     14  _start                    @0x11c     i32.div_u         traps: integer division by zero
;; |     14  _start                    @0x119     i32.load          0x200, 4 bytes = 0
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; $ afterimage trace run.aft --level statement --reverse --from 13 --limit 3
;; |      t  function                  place      operator          effect
;; |     13  _start                    @0x10a     host return       fd_write = 0
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     13  _start                    @0x10a     host read         0x10, 3 bytes by fd_write: "hi\n"
;; | … and more: see them with --limit N, or --limit all
;; $ afterimage trace run.aft --level memory --reverse --to 13 --format json
;; | {"schema":"afterimage/trace/2","level":"memory","first":13,"last":14,"length":N,"reverse":true,"function":null}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":281,"source":null,"kind":"load","access":{"memory":0,"address":512,"bytes":N},"value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"}}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":272,"source":null,"kind":"load","access":{"memory":0,"address":260,"bytes":N},"value":{"type":"i32","bits":"0x3","as_number":3,"text":"3"}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"call","offset":266,"source":null,"contents":"03000000","kind":"host write","callee":{"index":0,"name":"fd_write"},"access":{"memory":0,"address":260,"bytes":N}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"call","offset":266,"source":null,"contents":"68690a","kind":"host read","callee":{"index":0,"name":"fd_write"},"access":{"memory":0,"address":16,"bytes":N}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"call","offset":266,"source":null,"contents":"1000000003000000","kind":"host read","callee":{"index":0,"name":"fd_write"},"access":{"memory":0,"address":32,"bytes":N}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"i64.store","offset":254,"source":null,"kind":"store","access":{"memory":0,"address":32,"bytes":N},"value":{"type":"i64","bits":"0x300000010","as_number":12884901904,"text":"12884901904 (0x300000010)"}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"memory.init","offset":237,"source":null,"contents":"636465","kind":"init","access":{"memory":0,"address":264,"bytes":N},"segment":1,"offset_in_segment":2}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"memory.fill","offset":227,"source":null,"kind":"fill","access":{"memory":0,"address":260,"bytes":N},"byte":255}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"memory.copy","offset":215,"source":null,"contents":"00000000010000000400000009000000","kind":"copy","access":{"memory":0,"address":256,"bytes":N},"from":{"memory":0,"address":64,"bytes":N}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"i32.store8","offset":204,"source":null,"kind":"store","access":{"memory":0,"address":129,"bytes":N},"value":{"type":"i32","bits":"0xff","as_number":255,"text":"255"}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"f64.store","offset":195,"source":null,"kind":"store","access":{"memory":0,"address":128,"bytes":N},"value":{"type":"f64","bits":"0x3ff8000000000000","as_number":1.5,"text":"1.5"}}
;; $ afterimage trace run.aft --level statement --last 2 --format json
;; | {"schema":"afterimage/trace/2","level":"statement","first":1,"last":14,"length":N,"reverse":false,"function":null}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":281,"source":null,"kind":"load","access":{"memory":0,"address":512,"bytes":N},"value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"}}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.div_u","offset":284,"source":null,"kind":"trap","trap":"integer division by zero"}
;; $ afterimage trace run.aft --level memory --last 4 --format json
;; | {"schema":"afterimage/trace/2","level":"memory","first":1,"last":14,"length":N,"reverse":false,"function":null}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"call","offset":266,"source":null,"contents":"68690a","kind":"host read","callee":{"index":0,"name":"fd_write"},"access":{"memory":0,"address":16,"bytes":N}}
;; | {"t":13,"function":{"index":2,"name":"_start"},"operator":"call","offset":266,"source":null,"contents":"03000000","kind":"host write","callee":{"index":0,"name":"fd_write"},"access":{"memory":0,"address":260,"bytes":N}}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":272,"source":null,"kind":"load","access":{"memory":0,"address":260,"bytes":N},"value":{"type":"i32","bits":"0x3","as_number":3,"text":"3"}}
;; | {"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":281,"source":null,"kind":"load","access":{"memory":0,"address":512,"bytes":N},"value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"}}
;; $ afterimage memory run.aft --address 0x100..0x10f
;; | memory 0 at the end of the run: 131,072 bytes in all
;; | 0x00000100  00 00 00 00 03 00 00 00 63 64 65 00 09 00 00 00  ........cde.....
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; |   as i64: 12884901888 (0x300000000)
;; |   as f64: 6.365987373e-314
;; | 0x100..0x103, 4 bytes
;; |   written       t=13  @0xd7 in _start: 0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x104..0x107, 4 bytes
;; |   written       t=13  @0x10a in _start: host write 0x104, 4 bytes by fd_write: 03 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x108..0x10a, 3 bytes
;; |   written       t=13  @0xed in _start: 0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |   next read     never
;; |   next written  never
;; | 0x10b..0x10f, 5 bytes
;; |   written       t=13  @0xd7 in _start: 0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |   next read     never
;; |   next written  never
;; $ afterimage memory run.aft --address 0x104 --at end
;; | memory 0 at the end of the run: 131,072 bytes in all
;; | 0x00000104  03 00 00 00 63 64 65 00                          ....cde.
;; |   as i32: 3 (0x3)
;; |   as f32: 4e-45
;; |   as i64: 28539349012316163 (0x65646300000003)
;; |   as f64: 9.519816349192703e-307
;; | 0x104..0x107, 4 bytes
;; |   written       t=13  @0x10a in _start: host write 0x104, 4 bytes by fd_write: 03 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x108..0x10a, 3 bytes
;; |   written       t=13  @0xed in _start: 0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |   next read     never
;; |   next written  never
;; | 0x10b..0x10b, 1 byte
;; |   written       t=13  @0xd7 in _start: 0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |   next read     never
;; |   next written  never
;; $ afterimage memory run.aft --address 0x40..0x43 --at sum
;; | memory 0 when t=7 begins: 65,536 bytes in all
;; | 0x00000040  00 00 00 00                                      ....
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; | 0x40..0x43, 4 bytes
;; |   written       t=2  @0xa1 in _start: 0x40, 4 bytes <- 0
;; |   next read     t=11  @0x82 in sum: 0x40, 4 bytes = 0
;; |   next written  never
;; $ afterimage memory run.aft --address 128 --at start
;; | memory 0 when t=1 begins: 65,536 bytes in all
;; | 0x00000080  00 00 00 00 00 00 00 00                          ........
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; |   as i64: 0 (0x0)
;; |   as f64: 0.0
;; | 0x80..0x87, 8 bytes
;; |   written       never: it is the module's initial value, or zero
;; |   next read     never
;; |   next written  t=13  @0xc3 in _start: 0x80, 8 bytes <- 1.5
;; $ afterimage memory run.aft --address 0x104..0x107 --all
;; |      t  function                  place      operator          effect
;; |     13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |     13  _start                    @0xe3      memory.fill       0x104, 4 bytes <- 0xff
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; $ afterimage memory run.aft --address 0x104..0x107 --at 10 --format json
;; | {"schema":"afterimage/memory/2","memory":0,"address":260,"size":65536,"t":10,"contents":"00000000","parts":[{"address":260,"bytes":N,"written":null,"next_read":{"t":14,"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":272,"source":null,"kind":"load","access":{"memory":0,"address":260,"bytes":N},"value":{"type":"i32","bits":"0x3","as_number":3,"text":"3"}},"next_written":{"t":13,"function":{"index":2,"name":"_start"},"operator":"memory.copy","offset":215,"source":null,"contents":"00000000010000000400000009000000","kind":"copy","access":{"memory":0,"address":256,"bytes":N},"from":{"memory":0,"address":64,"bytes":N}}}]}
;; $ afterimage memory run.aft --address 0x1ffff..0x20000
;; ! afterimage: run.aft: 0x20000 is outside memory 0, which has 131,072 bytes at that time (0x0 to 0x1ffff)
;; = 125
;; $ afterimage memory run.aft --address 0x10000 --at 3
;; ! afterimage: run.aft: 0x10000 is outside memory 0, which has 65,536 bytes at that time (0x0 to 0xffff)
;; = 125
;; $ afterimage memory run.aft --address 0x40 --memory 1
;; ! afterimage: run.aft: the program has no memory 1; it has 1, counted from 0
;; = 125
;; $ afterimage memory run.aft --address 0x
;; ! error: invalid value '0x' for '--address <A[..B]>': "0x" is not an address: write 0x1040, or decimal digits
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage memory run.aft --address 5..4
;; ! error: invalid value '5..4' for '--address <A[..B]>': the second address is before the first
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage memory run.aft --address 0x40 --at 500
;; ! afterimage: run.aft: --at 500: the run has 14 blocks, from t=1 to t=14; there is no 500; the nearest is t=14
;; = 125
;; $ afterimage addresses run.aft --all
;; | offset  operator    accesses  addresses  smallest  largest  stride  times  source  function
;; | 0x82    i32.load           4          4      0x40     0x4c      -4      3          sum
;; | 0xa1    i32.store          4          4      0x40     0x4c      +4      3          _start
;; | 0xc3    f64.store          1          1      0x80     0x80       -                 _start
;; | 0xcc    i32.store8         1          1      0x81     0x81       -                 _start
;; | 0xfe    i64.store          1          1      0x20     0x20       -                 _start
;; | 0x110   i32.load           1          1     0x104    0x104       -                 _start
;; | 0x119   i32.load           1          1     0x200    0x200       -                 _start
;; | 7 instructions, 13 accesses
;; $ afterimage addresses run.aft --at 1
;; | @0x82 i32.load    in sum
;; |           #1  t=8               0x4c -4 x 4
;; $ afterimage addresses run.aft --at 1+0xa
;; ! afterimage: run.aft: there is no load or store at 1+0xa; the nearest is i32.load at @0x82
;; = 125
;; $ afterimage addresses run.aft --at sum --stats
;; | offset  operator  accesses  addresses  smallest  largest  stride  times  source  function
;; | 0x82    i32.load         4          4      0x40     0x4c      -4      3          sum
;; | 1 instruction, 4 accesses
;; $ afterimage addresses run.aft --at sum --instances 2..3
;; | @0x82 i32.load    in sum
;; |           #2  t=9               0x48 -4 x 2
;; $ afterimage addresses run.aft --at sum --instances last
;; | @0x82 i32.load    in sum
;; |           #4  t=11              0x40
;; $ afterimage addresses run.aft --at sum --instances 9
;; ! afterimage: run.aft: sum was executed 4 times, so there is no execution 9; the last is 4
;; = 125
;; $ afterimage addresses run.aft --at sum --instances t=1
;; | @0x82 i32.load    in sum
;; |           #1  t=8               0x4c -4 x 4
;; $ afterimage addresses run.aft --at @0x82#2 --format json
;; | {"schema":"afterimage/addresses/2","instructions":[{"function":{"index":1,"name":"sum"},"operator":"i32.load","offset":130,"source":null}]}
;; | {"instruction":0,"number":2,"t":9,"memory":0,"address":72,"bytes":N}
;; $ afterimage addresses run.aft --all --format json
;; | {"schema":"afterimage/address-stats/2","bound":4096}
;; | {"function":{"index":1,"name":"sum"},"operator":"i32.load","offset":130,"source":null,"accesses":4,"memory":0,"bytes":N,"addresses":4,"smallest":64,"largest":76,"strides":1,"stride":-4,"stride_times":3}
;; | {"function":{"index":2,"name":"_start"},"operator":"i32.store","offset":161,"source":null,"accesses":4,"memory":0,"bytes":N,"addresses":4,"smallest":64,"largest":76,"strides":1,"stride":4,"stride_times":3}
;; | {"function":{"index":2,"name":"_start"},"operator":"f64.store","offset":195,"source":null,"accesses":1,"memory":0,"bytes":N,"addresses":1,"smallest":128,"largest":128,"strides":0,"stride":null,"stride_times":null}
;; | {"function":{"index":2,"name":"_start"},"operator":"i32.store8","offset":204,"source":null,"accesses":1,"memory":0,"bytes":N,"addresses":1,"smallest":129,"largest":129,"strides":0,"stride":null,"stride_times":null}
;; | {"function":{"index":2,"name":"_start"},"operator":"i64.store","offset":254,"source":null,"accesses":1,"memory":0,"bytes":N,"addresses":1,"smallest":32,"largest":32,"strides":0,"stride":null,"stride_times":null}
;; | {"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":272,"source":null,"accesses":1,"memory":0,"bytes":N,"addresses":1,"smallest":260,"largest":260,"strides":0,"stride":null,"stride_times":null}
;; | {"function":{"index":2,"name":"_start"},"operator":"i32.load","offset":281,"source":null,"accesses":1,"memory":0,"bytes":N,"addresses":1,"smallest":512,"largest":512,"strides":0,"stride":null,"stride_times":null}
;; $ afterimage build --lens paths --again --exclude sum run.aft
;; ! afterimage: path of 14 executed blocks in 13 bytes, without sum
;; $ afterimage trace run.aft --level statement
;; ! afterimage: the path in run.aft lacks sum: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: the path lacks sum, but this question needs all of it; build the whole path with: afterimage build --lens paths --again run.aft
;; = 125
