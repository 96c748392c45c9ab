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
;; | … and more: go on with --from @0x11c#1, or --limit all
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
;; $ afterimage trace run.aft --level statement --reverse --to 13 --limit 3
;; |      t  function                  place      operator          effect
;; |     13  _start                    @0x10a     host return       fd_write = 0
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     13  _start                    @0x10a     host read         0x10, 3 bytes by fd_write: "hi\n"
;; | … and more: see them with --limit N, or --limit all
;; $ afterimage trace run.aft --level memory --reverse --from 13 --format json
;; | {"first":13,"function":null,"last":14,"length":N,"level":"memory","reverse":true,"schema":"afterimage/trace/1"}
;; | {"access":{"address":512,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":281,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x0","text":"0","type":"i32"}}
;; | {"access":{"address":260,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":272,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x3","text":"3","type":"i32"}}
;; | {"access":{"address":260,"bytes":N,"memory":0},"callee":0,"callee_name":"fd_write","contents":"03000000","function":2,"kind":"host write","name":"_start","offset":266,"operator":"call","source":null,"t":13}
;; | {"access":{"address":16,"bytes":N,"memory":0},"callee":0,"callee_name":"fd_write","contents":"68690a","function":2,"kind":"host read","name":"_start","offset":266,"operator":"call","source":null,"t":13}
;; | {"access":{"address":32,"bytes":N,"memory":0},"callee":0,"callee_name":"fd_write","contents":"1000000003000000","function":2,"kind":"host read","name":"_start","offset":266,"operator":"call","source":null,"t":13}
;; | {"access":{"address":32,"bytes":N,"memory":0},"function":2,"kind":"store","name":"_start","offset":254,"operator":"i64.store","source":null,"t":13,"value":{"bits":"0x300000010","text":"12884901904 (0x300000010)","type":"i64"}}
;; | {"access":{"address":264,"bytes":N,"memory":0},"contents":"636465","function":2,"kind":"init","name":"_start","offset":237,"offset_in_segment":2,"operator":"memory.init","segment":1,"source":null,"t":13}
;; | {"access":{"address":260,"bytes":N,"memory":0},"byte":255,"function":2,"kind":"fill","name":"_start","offset":227,"operator":"memory.fill","source":null,"t":13}
;; | {"access":{"address":256,"bytes":N,"memory":0},"contents":"00000000010000000400000009000000","from":{"address":64,"bytes":N,"memory":0},"function":2,"kind":"copy","name":"_start","offset":215,"operator":"memory.copy","source":null,"t":13}
;; | {"access":{"address":129,"bytes":N,"memory":0},"function":2,"kind":"store","name":"_start","offset":204,"operator":"i32.store8","source":null,"t":13,"value":{"bits":"0xff","text":"255","type":"i32"}}
;; | {"access":{"address":128,"bytes":N,"memory":0},"function":2,"kind":"store","name":"_start","offset":195,"operator":"f64.store","source":null,"t":13,"value":{"bits":"0x3ff8000000000000","text":"1.5","type":"f64"}}
;; $ afterimage trace run.aft --level statement --last 2 --format json
;; | {"first":1,"function":null,"last":14,"length":N,"level":"statement","reverse":false,"schema":"afterimage/trace/1"}
;; | {"access":{"address":512,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":281,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x0","text":"0","type":"i32"}}
;; | {"function":2,"kind":"trap","name":"_start","offset":284,"operator":"i32.div_u","source":null,"t":14,"trap":"integer division by zero"}
;; $ afterimage trace run.aft --level memory --last 4 --format json
;; | {"first":1,"function":null,"last":14,"length":N,"level":"memory","reverse":false,"schema":"afterimage/trace/1"}
;; | {"access":{"address":16,"bytes":N,"memory":0},"callee":0,"callee_name":"fd_write","contents":"68690a","function":2,"kind":"host read","name":"_start","offset":266,"operator":"call","source":null,"t":13}
;; | {"access":{"address":260,"bytes":N,"memory":0},"callee":0,"callee_name":"fd_write","contents":"03000000","function":2,"kind":"host write","name":"_start","offset":266,"operator":"call","source":null,"t":13}
;; | {"access":{"address":260,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":272,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x3","text":"3","type":"i32"}}
;; | {"access":{"address":512,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":281,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x0","text":"0","type":"i32"}}
;; $ afterimage memory run.aft --address 0x100..0x10f
;; | memory 0 at the end of the run: 131,072 bytes in all
;; | 0x00000100  00 00 00 00 03 00 00 00 63 64 65 00 09 00 00 00  ........cde.....
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; |   as i64: 12884901888 (0x300000000)
;; |   as f64: 6.365987373e-314
;; | 0x100..0x103, 4 bytes
;; |   written       t=13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x104..0x107, 4 bytes
;; |   written       t=13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x108..0x10a, 3 bytes
;; |   written       t=13  _start                    @0xed      memory.init       0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |   next read     never
;; |   next written  never
;; | 0x10b..0x10f, 5 bytes
;; |   written       t=13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
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
;; |   written       t=13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |   next read     never
;; |   next written  never
;; | 0x108..0x10a, 3 bytes
;; |   written       t=13  _start                    @0xed      memory.init       0x108, 3 bytes <- data 1 from 0x2: "cde"
;; |   next read     never
;; |   next written  never
;; | 0x10b..0x10b, 1 byte
;; |   written       t=13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |   next read     never
;; |   next written  never
;; $ afterimage memory run.aft --address 0x40..0x43 --at sum
;; | memory 0 when t=7 begins: 65,536 bytes in all
;; | 0x00000040  00 00 00 00                                      ....
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; | 0x40..0x43, 4 bytes
;; |   written       t=2  _start                    @0xa1      i32.store         0x40, 4 bytes <- 0
;; |   next read     t=11  sum                       @0x82      i32.load          0x40, 4 bytes = 0
;; |   next written  never
;; $ afterimage memory run.aft --address 128 --at start
;; | memory 0 when t=1 begins: 65,536 bytes in all
;; | 0x00000080  00 00 00 00 00 00 00 00                          ........
;; |   as i32: 0 (0x0)
;; |   as f32: 0.0
;; |   as i64: 0 (0x0)
;; |   as f64: 0.0
;; | 0x80..0x87, 8 bytes
;; |   written       never: as the module has it, or zero
;; |   next read     never
;; |   next written  t=13  _start                    @0xc3      f64.store         0x80, 8 bytes <- 1.5
;; $ afterimage memory run.aft --address 0x104..0x107 --all
;; |      t  function                  place      operator          effect
;; |     13  _start                    @0xd7      memory.copy       0x100, 16 bytes <- 0x40, 16 bytes: 00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00
;; |     13  _start                    @0xe3      memory.fill       0x104, 4 bytes <- 0xff
;; |     13  _start                    @0x10a     host write        0x104, 4 bytes by fd_write: 03 00 00 00
;; |     14  _start                    @0x110     i32.load          0x104, 4 bytes = 3
;; $ afterimage memory run.aft --address 0x104..0x107 --at 10 --format json
;; | {"address":260,"at":10,"contents":"00000000","memory":0,"parts":[{"address":260,"bytes":N,"next_read":{"access":{"address":260,"bytes":N,"memory":0},"function":2,"kind":"load","name":"_start","offset":272,"operator":"i32.load","source":null,"t":14,"value":{"bits":"0x3","text":"3","type":"i32"}},"next_written":{"access":{"address":256,"bytes":N,"memory":0},"contents":"00000000010000000400000009000000","from":{"address":64,"bytes":N,"memory":0},"function":2,"kind":"copy","name":"_start","offset":215,"operator":"memory.copy","source":null,"t":13},"written":null}],"schema":"afterimage/memory/1","size":65536}
;; $ afterimage memory run.aft --address 0x1ffff..0x20000
;; ! afterimage: run.aft: memory 0 has 131072 bytes at that time, from 0x0 to 0x1ffff: there is nothing at 0x20000
;; = 125
;; $ afterimage memory run.aft --address 0x10000 --at 3
;; ! afterimage: run.aft: memory 0 has 65536 bytes at that time, from 0x0 to 0xffff: there is nothing at 0x10000
;; = 125
;; $ afterimage memory run.aft --address 0x40 --memory 1
;; ! afterimage: run.aft: the program has no memory 1; it has 1, counted from 0
;; = 125
;; $ afterimage memory run.aft --address 0x
;; ! error: invalid value '0x' for '--address <A[..B]>': "0x" is no address: write 0x1040, or decimal digits
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
;; ! afterimage: run.aft: what is at sum was executed 4 times, so there is no execution 9; the last is 4
;; = 125
;; $ afterimage addresses run.aft --at sum --instances t=1
;; | @0x82 i32.load    in sum
;; |           #1  t=8               0x4c -4 x 4
;; $ afterimage addresses run.aft --at @0x82#2 --format json
;; | {"instructions":[{"function":1,"name":"sum","offset":130,"operator":"i32.load","source":null}],"schema":"afterimage/addresses/1"}
;; | {"address":72,"bytes":N,"instruction":0,"memory":0,"number":2,"t":9}
;; $ afterimage addresses run.aft --all --format json
;; | {"bound":4096,"schema":"afterimage/address-stats/1"}
;; | {"accesses":4,"addresses":4,"bytes":N,"function":1,"largest":76,"memory":0,"name":"sum","offset":130,"operator":"i32.load","smallest":64,"source":null,"stride":-4,"stride_times":3,"strides":1}
;; | {"accesses":4,"addresses":4,"bytes":N,"function":2,"largest":76,"memory":0,"name":"_start","offset":161,"operator":"i32.store","smallest":64,"source":null,"stride":4,"stride_times":3,"strides":1}
;; | {"accesses":1,"addresses":1,"bytes":N,"function":2,"largest":128,"memory":0,"name":"_start","offset":195,"operator":"f64.store","smallest":128,"source":null,"stride":null,"stride_times":null,"strides":0}
;; | {"accesses":1,"addresses":1,"bytes":N,"function":2,"largest":129,"memory":0,"name":"_start","offset":204,"operator":"i32.store8","smallest":129,"source":null,"stride":null,"stride_times":null,"strides":0}
;; | {"accesses":1,"addresses":1,"bytes":N,"function":2,"largest":32,"memory":0,"name":"_start","offset":254,"operator":"i64.store","smallest":32,"source":null,"stride":null,"stride_times":null,"strides":0}
;; | {"accesses":1,"addresses":1,"bytes":N,"function":2,"largest":260,"memory":0,"name":"_start","offset":272,"operator":"i32.load","smallest":260,"source":null,"stride":null,"stride_times":null,"strides":0}
;; | {"accesses":1,"addresses":1,"bytes":N,"function":2,"largest":512,"memory":0,"name":"_start","offset":281,"operator":"i32.load","smallest":512,"source":null,"stride":null,"stride_times":null,"strides":0}
;; $ afterimage build --lens paths --again --exclude sum run.aft
;; ! afterimage: path of 14 executed blocks in 13 bytes, without sum
;; $ afterimage trace run.aft --level statement
;; ! afterimage: the path in run.aft lacks sum: what follows counts only what is there, and numbers calls as in the whole run; exact counts of all: afterimage profile run.aft
;; ! afterimage: run.aft: the path lacks sum, and this needs all of it; build the whole path with: afterimage build --lens paths --again run.aft
;; = 125
