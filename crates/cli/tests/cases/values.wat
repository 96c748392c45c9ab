;; Values and what they depend on: loops, memory, copies, globals, calls both ways, a run that traps.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\07\00\00\00")
  (global $count (mut i32) (i32.const 3))
  (table funcref (elem $double))
  (type $unary (func (param i32) (result i32)))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $sum (param $n i32) (result i32) (local $total i32)
    (loop $again
      (local.set $total (i32.add (local.get $total) (local.get $n)))
      (i32.store (i32.const 32) (local.get $total))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $total))
  (func $start (export "_start") (local $x i32)
    (local.set $x (call $sum (i32.load (i32.const 16))))
    (memory.copy (i32.const 40) (i32.const 32) (i32.const 4))
    (i32.store8 (i32.const 41) (i32.const 1))
    (local.set $x (i32.add (local.get $x) (i32.load (i32.const 40))))
    (global.set $count (i32.add (global.get $count) (local.get $x)))
    (drop (call_indirect (type $unary) (global.get $count) (i32.const 0)))
    (drop (call $random (i32.const 64) (i32.const 4)))
    (drop (f32.div (f32.const 1) (f32.convert_i32_s (local.get $x))))
    (drop (i32.div_s (local.get $x) (i32.load (i32.const 100))))
    (drop (i32.add (local.get $x) (i32.const 1)))))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: values.wat trapped: integer division by zero; 1 host call recorded in run.aft (N)
;; = 134
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 14 executed blocks in 16 bytes
;; ! afterimage: values of 41 executed statements in 79 bytes (1.9268 a statement)
;; $ afterimage build --lens full run.aft
;; ! afterimage: run.aft already has these values; --again builds them again
;; $ afterimage values run.aft --at sum
;; | @0x90 i32.add  in sum: executed 7 times
;; |           #1  t=3              7
;; |           #2  t=4              13
;; |           #3  t=5              18
;; |           #4  t=6              22
;; |           #5  t=7              25
;; |           #6  t=8              27
;; |           #7  t=9              28
;; |
;; | @0x97 i32.store  in sum: executed 7 times
;; |           #1  t=3              stored 7 to 0x20, 4 bytes
;; |           #2  t=4              stored 13 to 0x20, 4 bytes
;; |           #3  t=5              stored 18 to 0x20, 4 bytes
;; |           #4  t=6              stored 22 to 0x20, 4 bytes
;; |           #5  t=7              stored 25 to 0x20, 4 bytes
;; |           #6  t=8              stored 27 to 0x20, 4 bytes
;; |           #7  t=9              stored 28 to 0x20, 4 bytes
;; |
;; | @0x9e i32.sub  in sum: executed 7 times
;; |           #1  t=3              6
;; |           #2  t=4              5
;; |           #3  t=5              4
;; |           #4  t=6              3
;; |           #5  t=7              2
;; |           #6  t=8              1
;; |           #7  t=9              0
;; |
;; | @0xa1 br_if $again  in sum: executed 7 times
;; |           #1  t=3              decided by 6
;; |           #2  t=4              decided by 5
;; |           #3  t=5              decided by 4
;; |           #4  t=6              decided by 3
;; |           #5  t=7              decided by 2
;; |           #6  t=8              decided by 1
;; |           #7  t=9              decided by 0
;; $ afterimage values run.aft --at sum+0x9 --instances 3..4
;; | @0x90 i32.add  in sum: executed 7 times
;; |           #3  t=5              18
;; |           #4  t=6              22
;; $ afterimage values run.aft --at sum+0x9 --histogram --limit 2
;; | @0x90 i32.add  in sum: executed 7 times
;; |         once  7
;; |         once  13
;; |            …  5 more values: --limit N
;; $ afterimage values run.aft --at sum+0x9 --stats
;; | @0x90 i32.add  in sum: executed 7 times
;; |     7 different values, from 7 (first #1) to 28 (first #7); each once
;; $ afterimage values run.aft --at sum+0x9#last --format json
;; | {"schema":"afterimage/values/2","at":"sum+0x9#last","statements":[{"function":{"index":2,"name":"sum"},"offset":144,"operator":"i32.add","source":null,"executions":7,"instances":[{"number":7,"t":9,"values":[{"role":"","type":"i32","bits":"0x1c","as_number":28,"text":"28"}]}],"more":6}]}
;; $ afterimage values run.aft --at sum+0x9#9
;; ! afterimage: run.aft: the statement at @0x90 was executed 7 times: there is no execution 9
;; = 125
;; $ afterimage values run.aft --at sum+0x7
;; ! afterimage: run.aft: sum+0x7 has no statement: it only moves values, makes constants or jumps; ask about the statement at @0x90
;; = 125
;; $ afterimage values run.aft
;; ! error: values needs --at PLACE or --loads; for example: afterimage values app.aft --at parser.c:42
;; = 125
;; $ afterimage addresses run.aft
;; ! error: addresses needs --at PLACE or --all; for example: afterimage addresses app.aft --all
;; = 125
;; $ afterimage memory run.aft
;; ! error: memory needs --address A[..B] or --var NAME; for example: afterimage memory app.aft --address 0x1040
;; = 125
;; $ afterimage values run.aft --at random_get
;; ! afterimage: run.aft: no function is called "random_get"
;; = 125
;; $ afterimage values run.aft --at start
;; | @0xad i32.load  in start: executed once
;; |           #1  t=1              7 from 0x10, 4 bytes
;; |
;; | @0xb0 call $sum  in start: executed once
;; |           #1  t=1              argument 7, returned 28
;; |
;; | @0xba memory.copy  in start: executed once
;; |           #1  t=11             from 0x20, 4 bytes to 0x28, 4 bytes
;; |
;; | @0xc2 i32.store8  in start: executed once
;; |           #1  t=11             stored 1 to 0x29, 1 byte
;; |
;; | @0xc9 i32.load  in start: executed once
;; |           #1  t=11             284 from 0x28, 4 bytes
;; |
;; | @0xcc i32.add  in start: executed once
;; |           #1  t=11             312
;; |
;; | @0xcf global.get $count  in start: executed once
;; |           #1  t=11             3
;; |
;; | @0xd3 i32.add  in start: executed once
;; |           #1  t=11             315
;; |
;; | @0xd4 global.set $count  in start: executed once
;; |           #1  t=11             set 315
;; |
;; | @0xd6 global.get $count  in start: executed once
;; |           #1  t=11             315
;; |
;; | @0xda call_indirect (type $unary)  in start: executed once
;; |           #1  t=11             argument 315, index 0, returned 630
;; |
;; | @0xe3 call $random  in start: executed once
;; |           #1  t=13             argument 64, argument 4, returned 0
;; |
;; | @0xed f32.convert_i32_s  in start: executed once
;; |           #1  t=14             312.0
;; |
;; | @0xee f32.div  in start: executed once
;; |           #1  t=14             0.0032051282
;; |
;; | @0xf5 i32.load  in start: executed once
;; |           #1  t=14             0 from 0x64, 4 bytes
;; |
;; | @0xf8 i32.div_s  in start: executed once
;; |           #1  t=14             trapped (integer division by zero): left 312, right 0
;; |
;; | @0xfe i32.add  in start: never executed
;; $ afterimage deps run.aft --at sum+0x9#3
;; | #3 t=5  @0x90 i32.add  in sum = 18
;; |   left     13  ← t=4  @0x90 i32.add  in sum
;; |   right    5   ← t=4  @0x9e i32.sub  in sum
;; |   control      ← t=4  @0xa1 br_if $again  in sum
;; $ afterimage deps run.aft --at sum+0x9#3 --depth 3
;; | #3 t=5  @0x90 i32.add  in sum = 18
;; |   left     13  ← t=4  @0x90 i32.add  in sum
;; |     left     7  ← t=3  @0x90 i32.add  in sum
;; |       left     0  ← a local that nothing wrote
;; |       right    7  ← t=1  @0xad i32.load  in start
;; |       control     ← t=1  @0xb0 call $sum  in start
;; |     right    6  ← t=3  @0x9e i32.sub  in sum
;; |       left     7  ← t=1  @0xad i32.load  in start
;; |       right    1  ← constant
;; |       control     ← t=1  @0xb0 call $sum  in start
;; |     control     ← t=3  @0xa1 br_if $again  in sum
;; |       condition  6  ← t=3  @0x9e i32.sub  in sum
;; |       control       ← t=1  @0xb0 call $sum  in start
;; |   right    5   ← t=4  @0x9e i32.sub  in sum
;; |     left     6  ← t=3  @0x9e i32.sub  in sum
;; |     right    1  ← constant
;; |     control     ← t=3  @0xa1 br_if $again  in sum
;; |   control      ← t=4  @0xa1 br_if $again  in sum
;; |     condition  5  ← t=4  @0x9e i32.sub  in sum
;; |     control       ← t=3  @0xa1 br_if $again  in sum
;; $ afterimage deps run.aft --at start --data
;; | #1 t=1  @0xad i32.load  in start = 7
;; |   address  16  ← constant
;; |   memory       ← the module: nothing wrote it before
;; |
;; | #1 t=1  @0xb0 call $sum  in start = 28
;; |   argument  7  ← t=1  @0xad i32.load  in start
;; |
;; | #1 t=11  @0xba memory.copy  in start
;; |   to                40  ← constant
;; |   from              32  ← constant
;; |   length            4   ← constant
;; |   memory (4 bytes)      ← t=9  @0x97 i32.store  in sum
;; |
;; | #1 t=11  @0xc2 i32.store8  in start = 1
;; |   address  41  ← constant
;; |   value    1   ← constant
;; |
;; | #1 t=11  @0xc9 i32.load  in start = 284
;; |   address           40  ← constant
;; |   memory (1 byte)       ← t=11  @0xba memory.copy  in start
;; |   memory (1 byte)       ← t=11  @0xc2 i32.store8  in start
;; |   memory (2 bytes)      ← t=11  @0xba memory.copy  in start
;; |
;; | #1 t=11  @0xcc i32.add  in start = 312
;; |   left   28   ← t=9  @0x90 i32.add  in sum
;; |   right  284  ← t=11  @0xc9 i32.load  in start
;; |
;; | #1 t=11  @0xcf global.get $count  in start = 3
;; |   global    ← the module: nothing wrote it before
;; |
;; | #1 t=11  @0xd3 i32.add  in start = 315
;; |   left   3    ← t=11  @0xcf global.get $count  in start
;; |   right  312  ← t=11  @0xcc i32.add  in start
;; |
;; | #1 t=11  @0xd4 global.set $count  in start = 315
;; |   value  315  ← t=11  @0xd3 i32.add  in start
;; |
;; | #1 t=11  @0xd6 global.get $count  in start = 315
;; |   global    ← t=11  @0xd4 global.set $count  in start
;; |
;; | #1 t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   argument  315  ← t=11  @0xd6 global.get $count  in start
;; |   index     0    ← constant
;; |   element        ← the module: nothing wrote it before
;; |
;; | #1 t=13  @0xe3 call $random  in start = 0
;; |   argument  64  ← constant
;; |   argument  4   ← constant
;; |
;; | #1 t=14  @0xed f32.convert_i32_s  in start = 312.0
;; |   operand  312  ← t=11  @0xcc i32.add  in start
;; |
;; | #1 t=14  @0xee f32.div  in start = 0.0032051282
;; |   left   1.0    ← constant
;; |   right  312.0  ← t=14  @0xed f32.convert_i32_s  in start
;; |
;; | #1 t=14  @0xf5 i32.load  in start = 0
;; |   address  100  ← constant
;; |   memory        ← the module: nothing wrote it before
;; |
;; | #1 t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |   left   312  ← t=11  @0xcc i32.add  in start
;; |   right  0    ← t=14  @0xf5 i32.load  in start
;; $ afterimage deps run.aft --at sum+0x9#3 --format json
;; | {"schema":"afterimage/deps/2","at":"sum+0x9#3","direction":"backward","along":"both","statements":[{"function":{"index":2,"name":"sum"},"operator":"i32.add","offset":144,"source":null,"t":5,"number":3,"values":[{"type":"i32","bits":"0x12","as_number":18,"text":"18"}],"dependences":[{"role":"left","value":{"type":"i32","bits":"0xd","as_number":13,"text":"13"},"from":"operator","function":{"index":2,"name":"sum"},"operator":"i32.add","offset":144,"source":null,"t":4},{"role":"right","value":{"type":"i32","bits":"0x5","as_number":5,"text":"5"},"from":"operator","function":{"index":2,"name":"sum"},"operator":"i32.sub","offset":158,"source":null,"t":4},{"role":"control","from":"branch","function":{"index":2,"name":"sum"},"operator":"br_if $again","offset":161,"source":null,"t":4}]}]}
;; $ afterimage deps run.aft --at sum+0x9#3 --forward
;; | #3 t=5  @0x90 i32.add  in sum = 18
;; |   value  → t=5  @0x97 i32.store  in sum = 18
;; |   left   → t=6  @0x90 i32.add  in sum = 22
;; $ afterimage deps run.aft --at sum+0x9#3 --forward --depth 3
;; | #3 t=5  @0x90 i32.add  in sum = 18
;; |   value  → t=5  @0x97 i32.store  in sum = 18
;; |   left   → t=6  @0x90 i32.add  in sum = 22
;; |     value  → t=6  @0x97 i32.store  in sum = 22
;; |     left   → t=7  @0x90 i32.add  in sum = 25
;; |       value  → t=7  @0x97 i32.store  in sum = 25
;; |       left   → t=8  @0x90 i32.add  in sum = 27
;; $ afterimage deps run.aft --at sum+0x9#7 --forward
;; | #7 t=9  @0x90 i32.add  in sum = 28
;; |   value   → t=9  @0x97 i32.store  in sum = 28
;; |   result  → t=10  @0xa4 local.get $total  in sum
;; |   left    → t=11  @0xcc i32.add  in start = 312
;; $ afterimage deps run.aft --at start --forward
;; | #1 t=1  @0xad i32.load  in start = 7
;; |   argument  → t=1  @0xb0 call $sum  in start = 28
;; |   right     → t=3  @0x90 i32.add  in sum = 7
;; |   left      → t=3  @0x9e i32.sub  in sum = 6
;; |
;; | #1 t=1  @0xb0 call $sum  in start = 28
;; |   left     → t=11  @0xcc i32.add  in start = 312
;; |   control  → t=2  a block without operators  in sum
;; |   control  → t=3  @0x8c..@0xa1, 4 statements  in sum
;; |   control  → t=10  @0xa4..@0xa4, 0 statements  in sum
;; |
;; | #1 t=11  @0xba memory.copy  in start
;; |   memory (1 byte)   → t=11  @0xc9 i32.load  in start = 284
;; |   memory (2 bytes)  → t=11  @0xc9 i32.load  in start = 284
;; |
;; | #1 t=11  @0xc2 i32.store8  in start = 1
;; |   memory (1 byte)  → t=11  @0xc9 i32.load  in start = 284
;; |
;; | #1 t=11  @0xc9 i32.load  in start = 284
;; |   right  → t=11  @0xcc i32.add  in start = 312
;; |
;; | #1 t=11  @0xcc i32.add  in start = 312
;; |   right    → t=11  @0xd3 i32.add  in start = 315
;; |   operand  → t=14  @0xed f32.convert_i32_s  in start = 312.0
;; |   left     → t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |
;; | #1 t=11  @0xcf global.get $count  in start = 3
;; |   left  → t=11  @0xd3 i32.add  in start = 315
;; |
;; | #1 t=11  @0xd3 i32.add  in start = 315
;; |   value  → t=11  @0xd4 global.set $count  in start = 315
;; |
;; | #1 t=11  @0xd4 global.set $count  in start = 315
;; |   global  → t=11  @0xd6 global.get $count  in start = 315
;; |
;; | #1 t=11  @0xd6 global.get $count  in start = 315
;; |   argument  → t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   left      → t=12  @0x84 i32.add  in double = 630
;; |   right     → t=12  @0x84 i32.add  in double = 630
;; |
;; | #1 t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   control  → t=12  @0x80..@0x84, 1 statement  in double
;; |
;; | #1 t=13  @0xe3 call $random  in start = 0
;; |   nothing in the program depends on it
;; |
;; | #1 t=14  @0xed f32.convert_i32_s  in start = 312.0
;; |   right  → t=14  @0xee f32.div  in start = 0.0032051282
;; |
;; | #1 t=14  @0xee f32.div  in start = 0.0032051282
;; |   nothing in the program depends on it
;; |
;; | #1 t=14  @0xf5 i32.load  in start = 0
;; |   right  → t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |
;; | #1 t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |   nothing depends on it: it trapped and gave no value
;; $ afterimage deps run.aft --at start --forward --limit 1
;; | #1 t=1  @0xad i32.load  in start = 7
;; |   argument  → t=1  @0xb0 call $sum  in start = 28
;; |   … 2 more: --limit N
;; |
;; | #1 t=1  @0xb0 call $sum  in start = 28
;; |   left     → t=11  @0xcc i32.add  in start = 312
;; |   control  → t=2  a block without operators  in sum
;; |   … 2 more: --limit N
;; |
;; | #1 t=11  @0xba memory.copy  in start
;; |   memory (1 byte)  → t=11  @0xc9 i32.load  in start = 284
;; |   … 1 more: --limit N
;; |
;; | #1 t=11  @0xc2 i32.store8  in start = 1
;; |   memory (1 byte)  → t=11  @0xc9 i32.load  in start = 284
;; |
;; | #1 t=11  @0xc9 i32.load  in start = 284
;; |   right  → t=11  @0xcc i32.add  in start = 312
;; |
;; | #1 t=11  @0xcc i32.add  in start = 312
;; |   right  → t=11  @0xd3 i32.add  in start = 315
;; |   … 2 more: --limit N
;; |
;; | #1 t=11  @0xcf global.get $count  in start = 3
;; |   left  → t=11  @0xd3 i32.add  in start = 315
;; |
;; | #1 t=11  @0xd3 i32.add  in start = 315
;; |   value  → t=11  @0xd4 global.set $count  in start = 315
;; |
;; | #1 t=11  @0xd4 global.set $count  in start = 315
;; |   global  → t=11  @0xd6 global.get $count  in start = 315
;; |
;; | #1 t=11  @0xd6 global.get $count  in start = 315
;; |   argument  → t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   … 2 more: --limit N
;; |
;; | #1 t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   control  → t=12  @0x80..@0x84, 1 statement  in double
;; |
;; | #1 t=13  @0xe3 call $random  in start = 0
;; |   nothing in the program depends on it
;; |
;; | #1 t=14  @0xed f32.convert_i32_s  in start = 312.0
;; |   right  → t=14  @0xee f32.div  in start = 0.0032051282
;; |
;; | #1 t=14  @0xee f32.div  in start = 0.0032051282
;; |   nothing in the program depends on it
;; |
;; | #1 t=14  @0xf5 i32.load  in start = 0
;; |   right  → t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |
;; | #1 t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |   nothing depends on it: it trapped and gave no value
;; $ afterimage deps run.aft --at start --forward --control
;; | #1 t=1  @0xb0 call $sum  in start = 28
;; |   control  → t=2  a block without operators  in sum
;; |   control  → t=3  @0x8c..@0xa1, 4 statements  in sum
;; |   control  → t=10  @0xa4..@0xa4, 0 statements  in sum
;; |
;; | #1 t=11  @0xda call_indirect (type $unary)  in start = 630
;; |   control  → t=12  @0x80..@0x84, 1 statement  in double
;; $ afterimage deps run.aft --at sum --forward --control
;; | #1 t=3  @0xa1 br_if $again  in sum = 6
;; |   control  → t=4  @0x8c..@0xa1, 4 statements  in sum
;; $ afterimage deps run.aft --at sum+0x9#3 --forward --format json
;; | {"schema":"afterimage/deps/2","at":"sum+0x9#3","direction":"forward","along":"both","statements":[{"function":{"index":2,"name":"sum"},"operator":"i32.add","offset":144,"source":null,"t":5,"number":3,"values":[{"type":"i32","bits":"0x12","as_number":18,"text":"18"}],"uses":[{"role":"value","to":"operator","function":{"index":2,"name":"sum"},"operator":"i32.store","offset":151,"source":null,"t":5,"values":[{"type":"i32","bits":"0x12","as_number":18,"text":"18"}]},{"role":"left","to":"operator","function":{"index":2,"name":"sum"},"operator":"i32.add","offset":144,"source":null,"t":6,"values":[{"type":"i32","bits":"0x16","as_number":22,"text":"22"}]}],"more":0}]}
;; $ afterimage deps run.aft --at sum+0x9#9 --forward
;; ! afterimage: run.aft: the statement at @0x90 was executed 7 times: there is no execution 9
;; = 125
;; $ afterimage deps run.aft --at sum#9 --forward
;; ! afterimage: run.aft: sum was called once, so there is no #9; the last is #1
;; = 125
;; $ afterimage deps run.aft --at sum+0x9#3 --forward --backward
;; ! error: the argument '--forward' cannot be used with '--backward'
;; !
;; ! Usage: afterimage deps --at <PLACE#K> --forward <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage deps run.aft --at start+0x58 --forward
;; ! afterimage: run.aft: start+0x58 has no statement: it only moves values, makes constants or jumps; ask about the statement at @0xfe
;; = 125
;; $ afterimage values run.aft --loads
;; | offset  operator  loads  values  smallest  largest  most often  times  source  function
;; | 0xad    i32.load      1       1         7        7           7      1          start
;; | 0xc9    i32.load      1       1       284      284         284      1          start
;; | 0xf5    i32.load      1       1         0        0           0      1          start
;; | 3 instructions, 3 loads
;; $ afterimage values run.aft --loads --limit 2
;; | offset  operator  loads  values  smallest  largest  most often  times  source  function
;; | 0xad    i32.load      1       1         7        7           7      1          start
;; | 0xc9    i32.load      1       1       284      284         284      1          start
;; | 3 instructions, 3 loads
;; | … and more: see them with --limit N, or -o FILE
;; $ afterimage values run.aft --loads --format json
;; | {"schema":"afterimage/load-values/2","bound":4096}
;; | {"function":{"index":3,"name":"start"},"operator":"i32.load","offset":173,"source":null,"loads":1,"values":1,"type":"i32","smallest":{"bits":"0x7","text":"7"},"largest":{"bits":"0x7","text":"7"},"most":{"bits":"0x7","text":"7"},"most_times":1}
;; | {"function":{"index":3,"name":"start"},"operator":"i32.load","offset":201,"source":null,"loads":1,"values":1,"type":"i32","smallest":{"bits":"0x11c","text":"284"},"largest":{"bits":"0x11c","text":"284"},"most":{"bits":"0x11c","text":"284"},"most_times":1}
;; | {"function":{"index":3,"name":"start"},"operator":"i32.load","offset":245,"source":null,"loads":1,"values":1,"type":"i32","smallest":{"bits":"0x0","text":"0"},"largest":{"bits":"0x0","text":"0"},"most":{"bits":"0x0","text":"0"},"most_times":1}
;; $ afterimage values run.aft --loads --each
;; | @0xad i32.load #1: 7
;; | @0xc9 i32.load #1: 284
;; | @0xf5 i32.load #1: 0
;; $ afterimage values run.aft --loads --each --format json --limit 2
;; | {"schema":"afterimage/loaded/2"}
;; | {"function":{"index":3,"name":"start"},"offset":173,"type":"i32","first":1,"bits":["0x7"]}
;; | {"function":{"index":3,"name":"start"},"offset":201,"type":"i32","first":1,"bits":["0x11c"]}
;; $ afterimage values run.aft --loads --format bin
;; ! afterimage: --format bin works only with --loads --each
;; = 125
;; $ afterimage values run.aft --loads --at sum
;; ! error: the argument '--loads' cannot be used with '--at <PLACE>'
;; !
;; ! Usage: afterimage values <--at <PLACE>|--loads> <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage values run.aft
;; ! error: values needs --at PLACE or --loads; for example: afterimage values app.aft --at parser.c:42
;; = 125
;; $ afterimage addresses run.aft --all --limit 2
;; | offset  operator   accesses  addresses  smallest  largest  stride  times  source  function
;; | 0x97    i32.store         7          1      0x20     0x20      +0      6          sum
;; | 0xad    i32.load          1          1      0x10     0x10       -                 start
;; | 5 instructions, 11 accesses
;; | … and more: see them with --limit N, or -o FILE
;; $ afterimage build --lens full --again --window 4..6 run.aft
;; ! afterimage: values of 12 executed statements from t=4 to t=6 in 23 bytes (1.9167 a statement)
;; $ afterimage values run.aft --at sum+0x9
;; | @0x90 i32.add  in sum: executed 7 times
;; |           #2  t=4              13
;; |           #3  t=5              18
;; |           #4  t=6              22
;; |            …  4 outside the part with stored values, from t=4 to t=6; to build the rest: afterimage build --lens full run.aft
;; $ afterimage values run.aft --at sum+0x9 --stats
;; | @0x90 i32.add  in sum: executed 7 times
;; |     3 different values, from 13 (first #2) to 22 (first #4); each once
;; |            …  4 outside the part with stored values, from t=4 to t=6; to build the rest: afterimage build --lens full run.aft
;; $ afterimage values run.aft --at sum+0x9 --histogram --format json
;; | {"schema":"afterimage/values/2","at":"sum+0x9","statements":[{"function":{"index":2,"name":"sum"},"offset":144,"operator":"i32.add","source":null,"executions":7,"counts":[{"value":{"role":"","type":"i32","bits":"0xd","as_number":13,"text":"13"},"times":1,"first":2},{"value":{"role":"","type":"i32","bits":"0x12","as_number":18,"text":"18"},"times":1,"first":3},{"value":{"role":"","type":"i32","bits":"0x16","as_number":22,"text":"22"},"times":1,"first":4}],"more":0,"outside":4}]}
;; $ afterimage values run.aft --at sum+0x9 --instances 1..3
;; | @0x90 i32.add  in sum: executed 7 times
;; |           #2  t=4              13
;; |           #3  t=5              18
;; |            …  1 outside the part with stored values, from t=4 to t=6; to build the rest: afterimage build --lens full run.aft
;; $ afterimage values run.aft --at sum+0x9#7
;; ! afterimage: run.aft: values were kept only from t=4 to t=6, but this question needs a value at t=9; to build the rest: afterimage build --lens full
;; = 125
;; $ afterimage state run.aft --at t=5
;; | before the block at t=5 of 14
;; | #0 sum(5)  @0x8c  t=5
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 5  (i32, parameter)
;; |     local 1 $total = 13  (i32)
;; | #1 start()  @0xb0  t=1
;; |     local 0 $x = 0  (i32)
;; $ afterimage state run.aft --at t=3
;; | before the block at t=3 of 14
;; | #0 sum(7)  @0x8c  t=3
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 7  (i32, parameter)
;; |     local 1 $total = 0  (i32)
;; | #1 start()  @0xb0  t=1
;; |     local 0 $x = 0  (i32)
;; $ afterimage deps run.aft --at sum --forward
;; ! afterimage: run.aft: values were kept only from t=4 to t=6, but this question needs a value at t=3; to build the rest: afterimage build --lens full
;; = 125
;; $ afterimage deps run.aft --at start --forward
;; | #1 t=11  @0xba memory.copy  in start
;; |   ? reads from t=11 to t=14 are unknown: no values were kept there
;; |
;; | #1 t=11  @0xc2 i32.store8  in start = 1
;; |   ? reads from t=11 to t=14 are unknown: no values were kept there
;; |
;; | #1 t=14  @0xf8 i32.div_s  in start  trapped (integer division by zero)
;; |   nothing depends on it: it trapped and gave no value
;; $ afterimage build --lens full --window 4..6 run.aft
;; ! afterimage: run.aft already has these values; --again builds them again
;; $ afterimage build --lens full --window 2..9 run.aft
;; ! afterimage: values of 28 executed statements from t=2 to t=10 in 12 bytes (0.4286 a statement)
;; $ afterimage values run.aft --at sum+0x9
;; | @0x90 i32.add  in sum: executed 7 times
;; |           #1  t=3              7
;; |           #2  t=4              13
;; |           #3  t=5              18
;; |           #4  t=6              22
;; |           #5  t=7              25
;; |           #6  t=8              27
;; |           #7  t=9              28
;; $ afterimage info run.aft
;; | program   values.wat
;; | recorded  WHEN
;; | ending    trapped: integer division by zero
;; |           in start at @0xf8
;; | boundary  1 host call in 2 events
;; | sha256    08d8c1d80fd765466aaa64a9bbdf3e4de9702d5f5f6c3a6076ee1a4515447037
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    paths, full
;; | path      14 executed blocks in 1 segment: 57 bytes, 32.571 bits each
;; | values    28 executed statements from t=2 to t=10 in 1 epoch: 12 bytes, 0.429 bytes each
;; | values    12 executed statements from t=4 to t=6 in 1 epoch: 23 bytes, 1.917 bytes each
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 359 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage build --lens full --exclude sum run.aft
;; ! afterimage: run.aft: the recording already has values of all functions, and these would be without sum; all windows must have the same functions: build the values again with --again
;; = 125
;; $ afterimage build --lens full --again --window 400..600 run.aft
;; ! afterimage: run.aft: --window 400..600 is after the end: the run has 14 blocks, from t=1 to t=14
;; = 125
;; $ afterimage verify --no-execute run.aft
;; | sound: N, 30 chunks in 20 sections, 2 events
;; | whole path: 14 executed blocks, 8 paths in 1 segment, compared with the end
;; | not re-executed
