;; Two executions of one program: it counts its arguments, goes another way for an odd number, and prints what it computed.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\07\00\00\00")
  (data (i32.const 96) "is \3f ok\n")
  (func $digit (param $n i32)
    (i32.store8 (i32.const 99) (i32.add (i32.const 48) (local.get $n))))
  (func $work (param $n i32) (result i32) (local $sum i32)
    (if (i32.and (local.get $n) (i32.const 1))
      (then (local.set $sum (i32.mul (local.get $n) (i32.const 2))))
      (else (local.set $sum (i32.add (local.get $n) (i32.const 3)))))
    (local.get $sum))
  (func $start (export "_start")
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (call $digit (call $work (i32.load (i32.const 0))))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 80)))))

;; $ afterimage record -o a.aft FILE
;; | is 2 ok
;; ! afterimage: diff.wat returned; 2 host calls recorded in a.aft (N)
;; $ afterimage record -o b.aft FILE x
;; | is 5 ok
;; ! afterimage: diff.wat returned; 2 host calls recorded in b.aft (N)
;; $ afterimage record -o c.aft FILE x y
;; | is 6 ok
;; ! afterimage: diff.wat returned; 2 host calls recorded in c.aft (N)
;; $ afterimage record -o d.aft FILE x y
;; | is 6 ok
;; ! afterimage: diff.wat returned; 2 host calls recorded in d.aft (N)
;; $ afterimage diff c.aft d.aft
;; | c.aft and d.aft are the same execution: 9 blocks, every value, address and host call
;; ! afterimage: path of 9 executed blocks in 14 bytes
;; ! afterimage: path of 9 executed blocks in 14 bytes
;; $ afterimage diff a.aft b.aft
;; | a.aft and b.aft first differ at t=1, @0xc7 in start: sizes wrote different bytes
;; |   a.aft  start                     @0xc7      host write        0x0, 4 bytes by sizes: 01 00 00 00
;; |   b.aft  start                     @0xc7      host write        0x0, 4 bytes by sizes: 02 00 00 00
;; |   from byte 0 on:
;; |   a.aft  "\001\000\000\000"
;; |   b.aft  "\002\000\000\000"
;; |
;; | control diverges at t=4, after @0xac in work
;; |   a.aft  continues at @0xae in work, block1
;; |   b.aft  continues at @0xb6 in work, block2
;; |   called from @0xcf in start
;; |   what differs in the block before:
;; |   a.aft  work                      @0xab      i32.and           = 1
;; |   b.aft  work                      @0xab      i32.and           = 0
;; |   a.aft  work                      @0xac      if                on 1
;; |   b.aft  work                      @0xac      if                on 0
;; |
;; | standard output differs from byte 3 on, in line 1
;; |   a.aft  "is 2 ok"  at t=8
;; |   b.aft  "is 5 ok"  at t=8
;; |
;; | questions to ask next
;; |   afterimage why a.aft --at @0xac#1
;; |   afterimage why b.aft --at @0xac#1
;; |   afterimage slice a.aft --at @0xac#1
;; |   afterimage slice b.aft --at @0xac#1
;; |   afterimage why a.aft --stdout 3
;; |   afterimage why b.aft --stdout 3
;; ! afterimage: path of 9 executed blocks in 14 bytes
;; ! afterimage: path of 9 executed blocks in 14 bytes
;; $ afterimage diff a.aft c.aft
;; | a.aft and c.aft first differ at t=1, @0xc7 in start: sizes wrote different bytes
;; |   a.aft  start                     @0xc7      host write        0x0, 4 bytes by sizes: 01 00 00 00
;; |   c.aft  start                     @0xc7      host write        0x0, 4 bytes by sizes: 03 00 00 00
;; |   from byte 0 on:
;; |   a.aft  "\001\000\000\000"
;; |   c.aft  "\003\000\000\000"
;; |
;; | control takes the same path in both, through 9 blocks
;; |
;; | standard output differs from byte 3 on, in line 1
;; |   a.aft  "is 2 ok"  at t=8
;; |   c.aft  "is 6 ok"  at t=8
;; |
;; | questions to ask next
;; |   afterimage slice a.aft --at @0xc7#1 --forward
;; |   afterimage slice c.aft --at @0xc7#1 --forward
;; |   afterimage why a.aft --stdout 3
;; |   afterimage why c.aft --stdout 3
;; $ afterimage diff a.aft c.aft --format json
;; | {"schema":"afterimage/diff/2","a":{"file":"a.aft","length":N},"b":{"file":"c.aft","length":N},"alike":null,"same":false,"endings":null,"first":{"number":1,"a":{"t":1,"function":{"index":4,"name":"start"},"operator":"call","offset":199,"source":null,"contents":"01000000","kind":"host write","callee":{"index":0,"name":"sizes"},"access":{"memory":0,"address":0,"bytes":N}},"b":{"t":1,"function":{"index":4,"name":"start"},"operator":"call","offset":199,"source":null,"contents":"03000000","kind":"host write","callee":{"index":0,"name":"sizes"},"access":{"memory":0,"address":0,"bytes":N}},"bytes":N{"offset":0,"a":[1,0,0,0],"b":[3,0,0,0]},"calls":[]},"control":null,"outputs":[{"descriptor":1,"offset":3,"output_line":1,"before":[105,115,32],"a":{"bytes":N[50,32,111,107],"t":8,"function":{"index":4,"name":"start"},"at":"@0xdd"},"b":{"bytes":N[54,32,111,107],"t":8,"function":{"index":4,"name":"start"},"at":"@0xdd"}}],"lines":null,"more_lines":0,"questions":["afterimage slice a.aft --at @0xc7#1 --forward","afterimage slice c.aft --at @0xc7#1 --forward","afterimage why a.aft --stdout 3","afterimage why c.aft --stdout 3"]}
;; $ afterimage diff a.aft FILE
;; ! afterimage: diff.wat is not a recording; make one with: afterimage record diff.wat
;; = 125
;; $ afterimage diff a.aft b.aft --pass c.aft
;; ! afterimage: give either two recordings to compare, or --pass and --fail to rank their differences
;; = 125
;; $ afterimage diff --pass c.aft
;; ! afterimage: give --pass and --fail together: correct executions with --pass, failing executions with --fail
;; = 125
