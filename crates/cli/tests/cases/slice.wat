;; Slices: a value through memory, a copy, a call and a loop; what is beside it is not in them.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\03\00\00\00")
  (func $double (param i32) (result i32) (i32.add (local.get 0) (local.get 0)))
  (func $sum (param $n i32) (result i32) (local $total i32)
    (loop $again
      (local.set $total (i32.add (local.get $total) (local.get $n)))
      (i32.store (i32.const 32) (local.get $total))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $total))
  (func $start (export "_start") (local $x i32) (local $beside i32)
    (local.set $beside (i32.mul (i32.load (i32.const 20)) (i32.const 7)))
    (local.set $x (call $sum (i32.load (i32.const 16))))
    (memory.copy (i32.const 40) (i32.const 32) (i32.const 4))
    (if (i32.gt_s (local.get $x) (i32.const 5))
      (then (i32.store (i32.const 44) (call $double (i32.load (i32.const 40))))))
    (drop (call $random (i32.const 64) (local.get $x)))
    (i32.store (i32.const 48) (i32.xor (i32.load (i32.const 44)) (i32.load8_u (i32.const 64))))
    (i32.store (i32.const 52) (local.get $beside))))
;; $ afterimage record -o run.aft FILE
;; ! afterimage: slice.wat returned; 1 host call recorded in run.aft (N)
;; $ afterimage slice run.aft --at @0xd8 --by statement
;; | what @0xd8#1, `i32.store` at t=12, depends on: 18 statements, 22 executions
;; | and 4 bytes of initial memory
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |     2   3  @0x87         br_if $again
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xa0         call $sum
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb2         i32.gt_s
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; |     1   1  @0xbe         i32.store
;; |     1   1  @0xc7         call $random
;; |     1   1  @0xce         i32.load
;; |     1   1  @0xd4         i32.load8_u
;; |     1   1  @0xd7         i32.xor
;; |     1   1  @0xd8         i32.store
;; ! afterimage: path of 12 executed blocks in 14 bytes
;; ! afterimage: values of 26 executed statements in 81 bytes (3.1154 a statement)
;; $ afterimage slice run.aft --at double --by statement
;; | what double#1, `i32.add` at t=9, depends on: 12 statements, 16 executions
;; | and 4 bytes of initial memory
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |     2   3  @0x87         br_if $again
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xa0         call $sum
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb2         i32.gt_s
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; $ afterimage slice run.aft --at double
;; | what double#1, `i32.add` at t=9, depends on: 12 statements, 16 executions
;; | and 4 bytes of initial memory
;; |
;; | Statements without a known line (--by statement lists them)
;; | statements  executions  function
;; |          1           1  double
;; |          4           8  sum
;; |          7           7  start
;; $ afterimage slice run.aft --at double --data-only --by statement
;; | what double#1, `i32.add` at t=9, depends on: 7 statements, 10 executions
;; | and 4 bytes of initial memory
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb9         i32.load
;; $ afterimage slice run.aft --at double --thin --by statement
;; | what double#1, `i32.add` at t=9, depends on: 7 statements, 10 executions
;; | and 4 bytes of initial memory
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb9         i32.load
;; $ afterimage slice run.aft --at double --control-only --by statement
;; | what double#1, `i32.add` at t=9, depends on: 3 statements, 3 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xbc         call $double
;; $ afterimage slice run.aft --at double --operand 1 --thin --format csv
;; | file,line,statements,sliced,executed,name
;; | ,,3,3,3,sum
;; | ,,3,1,1,start
;; $ afterimage slice run.aft --at double --operand 1 --thin --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 2,sum,3,118,,,3,3
;; | 2,sum,7,125,,,1,3
;; | 2,sum,10,132,,,2,3
;; | 3,start,6,157,,,1,1
;; | 3,start,12,170,,,1,1
;; | 3,start,19,185,,,1,1
;; $ afterimage slice run.aft --at double --chain
;; | what double#1, `i32.add` at t=9, depends on: 12 statements, 16 executions
;; | and 4 bytes of initial memory
;; |
;; | Statements without a known line (--by statement lists them)
;; | statements  executions  function
;; |          1           1  double
;; |          4           8  sum
;; |          7           7  start
;; |
;; | 12 at @0x6a#1 in double
;; | comes from a local that nothing wrote, which is 0, 7 steps back
;; |   12 = 6 + 6                          @0x6a#1 in double  t=9
;; |       6: afterimage why run.aft --at @0x6a#1 --operand right
;; |     ↑ loaded at @0xb9#1 in start ← copied at @0xaa#1 ← stored at @0x7d#3 in sum
;; |   6 = 5 + 1                           @0x76#3 in sum  t=5
;; |       1: afterimage why run.aft --at @0x76#3 --operand right
;; |   … this 2 more times, back to
;; |   3 = 0 + 3                           @0x76#1 in sum  t=3
;; |       3: afterimage why run.aft --at @0x76#1 --operand right
;; |   a local that nothing wrote, which is 0
;; $ afterimage slice run.aft --at double --chain --format json
;; ! afterimage: --chain writes only text; for other formats use afterimage why
;; = 125
;; $ afterimage slice run.aft --at sum --forward --by statement
;; | what depends on sum#1 (4 statements): 17 statements, 25 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     3   3  @0x7d         i32.store
;; |     3   3  @0x84         i32.sub
;; |     3   3  @0x87         br_if $again
;; |     1   1  @0x8a         local.get $total
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb2         i32.gt_s
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; |     1   1  @0xbe         i32.store
;; |     1   1  @0xc7         call $random
;; |     1   1  @0xce         i32.load
;; |     1   1  @0xd4         i32.load8_u
;; |     1   1  @0xd7         i32.xor
;; |     1   1  @0xd8         i32.store
;; $ afterimage slice run.aft --at double --chop sum#last --by statement
;; | how sum#last (4 statements) influenced double#1, `i32.add` at t=9: 10 statements, 14 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |     2   3  @0x87         br_if $again
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb2         i32.gt_s
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; $ afterimage slice run.aft --at sum#1 --chop double --by statement
;; | how double#1, `i32.add` at t=9 influenced sum#1 (4 statements): no executed statements
;; $ afterimage slice run.aft --at double --algorithm edges --by statement --limit 4
;; | what statements of double#1, `i32.add` at t=9, ever depended on: 12 statements, 20 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     3   3  @0x7d         i32.store
;; |     3   3  @0x84         i32.sub
;; | … 8 more statements: --limit N shows more
;; $ afterimage slice run.aft --at double --algorithm nodes --by statement
;; | what statements of double#1, `i32.add` at t=9, may depend on, by the code: 21 statements, 29 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     3   3  @0x7d         i32.store
;; |     3   3  @0x84         i32.sub
;; |     3   3  @0x87         br_if $again
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x93         i32.load
;; |     1   1  @0x98         i32.mul
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xa0         call $sum
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb2         i32.gt_s
;; |     1   1  @0xb3         if ;; label = @1
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; |     1   1  @0xbe         i32.store
;; |     1   1  @0xc7         call $random
;; |     1   1  @0xce         i32.load
;; |     1   1  @0xd4         i32.load8_u
;; |     1   1  @0xd7         i32.xor
;; |     1   1  @0xd8         i32.store
;; |     1   1  @0xdf         i32.store
;; $ afterimage slice run.aft --at double --depth 1 --by statement
;; | what double#1, `i32.add` at t=9, depends on directly: 3 statements, 3 executions
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbc         call $double
;; $ afterimage slice run.aft --at double --depth 2 --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 1,double,2,106,,,1,1
;; | 3,start,12,170,,,1,1
;; | 3,start,16,179,,,1,1
;; | 3,start,19,185,,,1,1
;; | 3,start,20,188,,,1,1
;; $ afterimage slice run.aft --at end --address 44..47 --depth 1 --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 3,start,21,190,,,1,1
;; $ afterimage slice run.aft --at sum --forward --depth 1 --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 2,sum,3,118,,,2,3
;; | 2,sum,7,125,,,2,3
;; | 2,sum,10,132,,,2,3
;; | 2,sum,12,135,,,2,3
;; $ afterimage slice run.aft --at double --thin --save doubled --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 1,double,2,106,,,1,1
;; | 2,sum,3,118,,,3,3
;; | 2,sum,7,125,,,1,3
;; | 2,sum,10,132,,,2,3
;; | 3,start,6,157,,,1,1
;; | 3,start,12,170,,,1,1
;; | 3,start,19,185,,,1,1
;; ! afterimage: kept as "doubled": 7 statements; show it again with: afterimage slice run.aft --saved doubled
;; $ afterimage slice run.aft --saved doubled
;; | what @0x6a (executed from t=9 on) depends on: 7 statements, 10 executions
;; | and 4 bytes of initial memory
;; |
;; | Statements without a known line (--by statement lists them)
;; | statements  executions  function
;; |          1           1  double
;; |          3           6  sum
;; |          3           3  start
;; $ afterimage slice run.aft --at double --thin --save doubled --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 1,double,2,106,,,1,1
;; | 2,sum,3,118,,,3,3
;; | 2,sum,7,125,,,1,3
;; | 2,sum,10,132,,,2,3
;; | 3,start,6,157,,,1,1
;; | 3,start,12,170,,,1,1
;; | 3,start,19,185,,,1,1
;; ! afterimage: kept as "doubled": 7 statements; show it again with: afterimage slice run.aft --saved doubled
;; $ afterimage slice run.aft --at double --save doubled
;; ! afterimage: run.aft: another slice is kept under the name "doubled": what @0x6a (executed from t=9 on) depends on; choose another name
;; = 125
;; $ afterimage slice run.aft --saved other
;; ! afterimage: run.aft: it has no slice "other"; its slices are: doubled
;; = 125
;; $ afterimage info run.aft
;; | program   slice.wat
;; | recorded  WHEN
;; | ending    returned
;; | boundary  1 host call in 3 events
;; | sha256    a21364f4583c2bf30cf8924f54acc7904c9397c42180f91e262002a9c3bef654
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    paths, full
;; | path      12 executed blocks in 1 segment: 56 bytes, 37.333 bits each
;; | values    26 executed statements from t=1 to t=12 in 1 epoch: 81 bytes, 3.115 bytes each
;; | slice "doubled": what @0x6a (executed from t=9 on) depends on: 7 statements, 10 executions
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 317 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage verify run.aft
;; | sound: N, 19 chunks in 12 sections, 3 events
;; | whole path: 12 executed blocks, 8 paths in 1 segment, compared with the end
;; | values of 26 executed statements from t=1 to t=12: the same when the run is followed again, without the engine
;; | slice "doubled", 10 executions: the same when it is computed again
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage slice run.aft --at end --address 44..47 --thin --by statement
;; | what 0x2c..0x2f at the end depends on: 8 statements, 11 executions
;; | and 4 bytes of initial memory
;; |
;; | double
;; | times  of  offset  line  text
;; |     1   1  @0x6a         i32.add
;; |
;; | sum
;; | times  of  offset  line  text
;; |     3   3  @0x76         i32.add
;; |     1   3  @0x7d         i32.store
;; |     2   3  @0x84         i32.sub
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; |     1   1  @0xaa         memory.copy
;; |     1   1  @0xb9         i32.load
;; |     1   1  @0xbe         i32.store
;; $ afterimage slice run.aft --at end --address 52..55 --thin --format json
;; | {"schema":"afterimage/slice/2","title":"what 0x34..0x37 at the end depends on","executions":3,"executed_lines":0,"initial_bytes":4,"lines":[],"statements":[{"function":{"index":3,"name":"start"},"op":1,"offset":147,"source":null,"sliced":1,"executed":1},{"function":{"index":3,"name":"start"},"op":3,"offset":152,"source":null,"sliced":1,"executed":1},{"function":{"index":3,"name":"start"},"op":36,"offset":223,"source":null,"sliced":1,"executed":1}]}
;; $ afterimage slice run.aft --at double --thin --format dot --by statement
;; | digraph slice {
;; |   label="what double#1, `i32.add` at t=9, depends on";
;; |   node [shape=box, fontname="monospace"];
;; |   n0 [label="double @0x6a "];
;; |   n1 [label="sum @0x76 "];
;; |   n2 [label="sum @0x7d "];
;; |   n3 [label="sum @0x84 "];
;; |   n4 [label="start @0x9d "];
;; |   n5 [label="start @0xaa "];
;; |   n6 [label="start @0xb9 "];
;; |   n0 -> n6;
;; |   n1 -> n3;
;; |   n1 -> n4;
;; |   n2 -> n1;
;; |   n3 -> n4;
;; |   n5 -> n2;
;; |   n6 -> n5;
;; | }
;; $ afterimage slice run.aft --at double --operand 3
;; ! afterimage: run.aft: `i32.add` has no operand 3; it has: left, right
;; = 125
;; $ afterimage slice run.aft --at sum#1 --operand left
;; ! afterimage: run.aft: 2 statements at sum#1 have an operand left; name one: @0x76 i32.add, @0x84 i32.sub
;; = 125
;; $ afterimage slice run.aft --at sum#1 --operand value --thin --by statement
;; | what operand value of sum#1, `i32.store` at t=3, depends on: 2 statements, 2 executions
;; | and 4 bytes of initial memory
;; |
;; | sum
;; | times  of  offset  line  text
;; |     1   3  @0x76         i32.add
;; |
;; | start
;; | times  of  offset  line  text
;; |     1   1  @0x9d         i32.load
;; $ afterimage slice run.aft --at sum#1 --operand index
;; ! afterimage: run.aft: no statement that was executed at sum#1 has an operand index; they have: address, condition, left, right, value
;; = 125
;; $ afterimage slice run.aft --at double#9
;; ! afterimage: run.aft: double was called once, so there is no #9; the last is #1
;; = 125
;; $ afterimage slice run.aft --at double --var x
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage slice run.aft --at double --algorithm edges --address 16
;; | what statements that made 0x10..0x17 before t=9 ever depended on: no executed statements
;; $ afterimage slice run.aft --at double --annotate --format json
;; ! afterimage: --annotate writes only text; --format html has the same files as a page
;; = 125
;; $ afterimage slice run.aft --at nothing
;; ! afterimage: run.aft: no function is called "nothing"
;; = 125
;; $ afterimage slice run.aft --at double --limit 3 --format csv
;; | file,line,statements,sliced,executed,name
;; | ,,1,1,1,double
;; | ,,4,3,3,sum
;; | ,,7,1,1,start
;; $ afterimage slice run.aft --at double --by line --format html
;; ! afterimage: --by selects the rows of a table, but --format html has whole files; leave it out
;; = 125
