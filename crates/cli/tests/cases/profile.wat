;; A program that prints, and every report on it.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\06\00\00\00")
  (data (i32.const 16) "hello\n")
  (func $print (result i32)
    (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
  (func $never (drop (call $print)))
  (func $main (export "_start") (local $i i32)
    (loop $again
      (drop (call $print))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 3))))
    (if (i32.gt_u (local.get $i) (i32.const 5)) (then (call $never)))
    (call $proc_exit (i32.const 3))))

;; $ afterimage record FILE
;; | hello
;; | hello
;; | hello
;; ! afterimage: profile.wat exited with code 3; 4 host calls recorded in profile.aft (N)
;; = 3
;; $ afterimage info profile.aft
;; | program   profile.wat
;; | recorded  WHEN
;; | ending    exited with code 3
;; |           in main at @0xc0
;; | boundary  4 host calls in 5 events
;; | sha256    1c29f5619e95a853d11a3cdd73d0e37095173fbf7f826320bfe746e355292669
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   18 bytes written to standard output
;; |   the module, 293 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage info profile.aft --format json
;; | {"schema":"afterimage/info/2","program":"profile.wat","args":[],"invoke":null,"dirs":[],"env":[],"module_sha256":"1c29f5619e95a853d11a3cdd73d0e37095173fbf7f826320bfe746e355292669","recorded_unix":N,"engine":"wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic","tool_version":"0.1.0","ending":"exited with code 3","results":null,"running":false,"frames":[{"function":{"index":4,"name":"main"},"offset":192,"source":null,"times":1}],"frames_total":1,"clock":0,"events":5,"host_calls":4,"lenses":[],"path_words":false,"path":null,"values":[],"checkpoints":null,"simulations":[],"slices":[],"disclosed":{"without_inputs":false,"traffic":[{"stream":"stdout","path":null,"read_bytes":0,"written_bytes":18}],"module_bytes":293,"debug_bytes":0,"debug_paths":0,"debug_folders":[],"sources":null},"length":N,"ignored_bytes":0,"sections":[{"kind":"META","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":357,"chunks":1},{"kind":"MODULE","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":293,"chunks":1},{"kind":"LOG","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":119,"chunks":2},{"kind":"END","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":13,"chunks":1}],"streams":null,"problems":[]}
;; $ afterimage profile profile.aft
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; | 29.4%            15       3      3  -       print
;; |  0.0%             0       0      0  -       never
;; $ afterimage info profile.aft --format json
;; | {"schema":"afterimage/info/2","program":"profile.wat","args":[],"invoke":null,"dirs":[],"env":[],"module_sha256":"1c29f5619e95a853d11a3cdd73d0e37095173fbf7f826320bfe746e355292669","recorded_unix":N,"engine":"wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic","tool_version":"0.1.0","ending":"exited with code 3","results":null,"running":false,"frames":[{"function":{"index":4,"name":"main"},"offset":192,"source":null,"times":1}],"frames_total":1,"clock":0,"events":5,"host_calls":4,"lenses":["counts"],"path_words":false,"path":null,"values":[],"checkpoints":null,"simulations":[],"slices":[],"disclosed":{"without_inputs":false,"traffic":[{"stream":"stdout","path":null,"read_bytes":0,"written_bytes":18}],"module_bytes":293,"debug_bytes":0,"debug_paths":0,"debug_folders":[],"sources":null},"length":N,"ignored_bytes":0,"sections":[{"kind":"META","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":357,"chunks":1},{"kind":"MODULE","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":293,"chunks":1},{"kind":"LOG","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":119,"chunks":2},{"kind":"END","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":13,"chunks":1},{"kind":"COUNTS","name":null,"window":null,"replaced":false,"stored_bytes":N,"raw_bytes":33,"chunks":1}],"streams":null,"problems":[]}
;; $ afterimage profile profile.aft --by line
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | no source line is known: the module has no debug information; compile it with -g
;; $ afterimage profile profile.aft --by block
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 52.9%            27      3    0xa4  block2  branch      -       main
;; | 29.4%            15      3    0x8b  block0  call func0  -       print
;; |  7.8%             4      1    0xb4  block3  branch      -       main
;; |  5.9%             3      3    0xa2  block1  call func2  -       main
;; |  3.9%             2      1    0xbe  block5  call func1  -       main
;; |  0.0%             0      1    0xa0  block0  fall        -       main
;; |  0.0%             0      0    0x98  block0  call func2  -       never
;; |  0.0%             0      0    0x9a  block1  return      -       never
;; |  0.0%             0      0    0xbb  block4  call func3  -       main
;; $ afterimage profile profile.aft --by edge
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | count  offset  edge   from    to      kind         source  function
;; |     3    0x93  edge0  block0  block1  call return  -       print
;; |     3    0xa2  edge1  block1  block2  call return  -       main
;; |     2    0xb1  edge3  block2  block1  taken, back  -       main
;; |     1       -  edge0  block0  block1  fall         -       main
;; |     1    0xb1  edge2  block2  block3  not taken    -       main
;; |     1    0xb9  edge5  block3  block5  else         -       main
;; |     0    0x98  edge0  block0  block1  call return  -       never
;; |     0    0x9a  edge1  block1  block2  fall         -       never
;; |     0    0xb9  edge4  block3  block4  then         -       main
;; |     0    0xbb  edge6  block4  block5  call return  -       main
;; |     0    0xc0  edge7  block5  block6  call return  -       main
;; $ afterimage profile profile.aft --by instruction --limit 5
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  count  offset  instruction     source  function
;; |  5.9%      3    0x8b  i32.const 1     -       print
;; |  5.9%      3    0x8d  i32.const 0     -       print
;; |  5.9%      3    0x8f  i32.const 1     -       print
;; |  5.9%      3    0x91  i32.const 8     -       print
;; |  5.9%      3    0x93  call $fd_write  -       print
;; | … and 19 more instructions
;; $ afterimage profile profile.aft --sort name
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; |  0.0%             0       0      0  -       never
;; | 29.4%            15       3      3  -       print
;; $ afterimage profile profile.aft --function main --by block
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 52.9%            27      3    0xa4  block2  branch      -       main
;; |  7.8%             4      1    0xb4  block3  branch      -       main
;; |  5.9%             3      3    0xa2  block1  call func2  -       main
;; |  3.9%             2      1    0xbe  block5  call func1  -       main
;; |  0.0%             0      1    0xa0  block0  fall        -       main
;; |  0.0%             0      0    0xbb  block4  call func3  -       main
;; $ afterimage profile profile.aft --annotate
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | main: 1 call (70.6% of all instructions)
;; |     -     0xa0      loop $again
;; |     3     0xa2        call $print
;; |     3     0xa4        drop
;; |     3     0xa5        local.get $i
;; |     3     0xa7        i32.const 1
;; |     3     0xa9        i32.add
;; |     3     0xaa        local.set $i
;; |     3     0xac        local.get $i
;; |     3     0xae        i32.const 3
;; |     3     0xb0        i32.lt_u
;; |     3     0xb1        br_if $again
;; |     -     0xb3      end
;; |     1     0xb4      local.get $i
;; |     1     0xb6      i32.const 5
;; |     1     0xb8      i32.gt_u
;; |     1     0xb9      if ;; label = @1
;; | #####     0xbb        call $never
;; |     -     0xbd      end
;; |     1     0xbe      i32.const 3
;; |     1     0xc0      call $proc_exit
;; |     -     0xc2    )
;; |
;; | print: 3 calls (29.4% of all instructions)
;; |     3     0x8b      i32.const 1
;; |     3     0x8d      i32.const 0
;; |     3     0x8f      i32.const 1
;; |     3     0x91      i32.const 8
;; |     3     0x93      call $fd_write
;; |     -     0x95    )
;; $ afterimage profile profile.aft --annotate --function print
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | print: 3 calls (29.4% of all instructions)
;; |     3     0x8b      i32.const 1
;; |     3     0x8d      i32.const 0
;; |     3     0x8f      i32.const 1
;; |     3     0x91      i32.const 8
;; |     3     0x93      call $fd_write
;; |     -     0x95    )
;; $ afterimage profile profile.aft --format csv
;; | function,name,offset,entries,blocks,instructions,file,line,column
;; | 2,print,138,3,3,15,,,
;; | 3,never,151,0,0,0,,,
;; | 4,main,157,1,9,36,,,
;; $ afterimage profile profile.aft --format csv --by edge --limit 2
;; | function,name,edge,from,to,kind,back,offset,count,file,line,column
;; | 2,print,0,0,1,call return,false,147,3,,,
;; | 4,main,1,1,2,call return,false,162,3,,,
;; $ afterimage profile profile.aft --format csv --by instruction
;; | function,name,block,op,offset,text,count,file,line,column
;; | 2,print,0,0,139,i32.const 1,3,,,
;; | 2,print,0,1,141,i32.const 0,3,,,
;; | 2,print,0,2,143,i32.const 1,3,,,
;; | 2,print,0,3,145,i32.const 8,3,,,
;; | 2,print,0,4,147,call $fd_write,3,,,
;; | 3,never,0,0,152,call $print,0,,,
;; | 3,never,1,1,154,drop,0,,,
;; | 4,main,1,1,162,call $print,3,,,
;; | 4,main,2,2,164,drop,3,,,
;; | 4,main,2,3,165,local.get $i,3,,,
;; | 4,main,2,4,167,i32.const 1,3,,,
;; | 4,main,2,5,169,i32.add,3,,,
;; | 4,main,2,6,170,local.set $i,3,,,
;; | 4,main,2,7,172,local.get $i,3,,,
;; | 4,main,2,8,174,i32.const 3,3,,,
;; | 4,main,2,9,176,i32.lt_u,3,,,
;; | 4,main,2,10,177,br_if $again,3,,,
;; | 4,main,3,12,180,local.get $i,1,,,
;; | 4,main,3,13,182,i32.const 5,1,,,
;; | 4,main,3,14,184,i32.gt_u,1,,,
;; | 4,main,3,15,185,if ;; label = @1,1,,,
;; | 4,main,4,16,187,call $never,0,,,
;; | 4,main,5,18,190,i32.const 3,1,,,
;; | 4,main,5,19,192,call $proc_exit,1,,,
;; $ afterimage profile profile.aft --format json
;; | {"schema":"afterimage/profile/2","by":"function","sort":"program","totals":{"instructions":51,"blocks":12,"entries":4,"functions":3,"executed_functions":2,"open":1},"available":3,"complete":true,"rows":[{"function":{"index":2,"name":"print","raw_name":"print"},"offset":138,"entries":3,"blocks":3,"instructions":15,"source":null},{"function":{"index":3,"name":"never","raw_name":"never"},"offset":151,"entries":0,"blocks":0,"instructions":0,"source":null},{"function":{"index":4,"name":"main","raw_name":"main"},"offset":157,"entries":1,"blocks":9,"instructions":36,"source":null}]}
;; $ afterimage profile profile.aft --format json --by edge --limit 1
;; | {"schema":"afterimage/profile/2","by":"edge","sort":"instructions","totals":{"instructions":51,"blocks":12,"entries":4,"functions":3,"executed_functions":2,"open":1},"available":11,"complete":false,"rows":[{"function":{"index":2,"name":"print"},"edge":0,"from":0,"to":1,"kind":"call return","back":false,"offset":147,"count":3,"source":null}]}
;; $ afterimage profile profile.aft --format dot
;; | // Calls that ran in this execution, and how often.
;; | digraph {
;; |   rankdir=LR;
;; |   node [shape=box];
;; |   f0 [label="fd_write\nimported", style=dashed];
;; |   f1 [label="proc_exit\nimported", style=dashed];
;; |   f2 [label="print\n3 calls\n15 instructions"];
;; |   f4 [label="main\n1 call\n36 instructions"];
;; |   f2 -> f0 [label="3"];
;; |   f4 -> f1 [label="1"];
;; |   f4 -> f2 [label="3"];
;; | }
;; $ afterimage profile profile.aft --format dot --function main
;; | digraph {
;; |   label="main";
;; |   node [shape=box];
;; |   0 [label="block0\nop0..op0 0xa0..0xa0 fall\n1", shape=box, style=filled, fillcolor="0.03 0.30 1.0"];
;; |   1 [label="block1\nop1..op2 0xa2..0xa4 call func2\n3", shape=box, style=filled, fillcolor="0.03 0.60 1.0"];
;; |   2 [label="block2\nop2..op11 0xa4..0xb3 branch\n3", shape=box, style=filled, fillcolor="0.03 0.60 1.0"];
;; |   3 [label="block3\nop12..op16 0xb4..0xbb branch\n1", shape=box, style=filled, fillcolor="0.03 0.30 1.0"];
;; |   4 [label="block4\nop16..op17 0xbb..0xbd call func3\n0", shape=box, color=gray, fontcolor=gray];
;; |   5 [label="block5\nop18..op20 0xbe..0xc2 call func1\n1", shape=box, style=filled, fillcolor="0.03 0.30 1.0"];
;; |   6 [label="block6\nexit\n1", shape=doublecircle];
;; |   0 -> 1 [label="fall 1"];
;; |   1 -> 2 [label="call return 3"];
;; |   2 -> 3 [label="not taken 1"];
;; |   2 -> 1 [label="taken 2", style=dashed];
;; |   3 -> 4 [label="then 0", color=gray, fontcolor=gray];
;; |   3 -> 5 [label="else 1"];
;; |   4 -> 5 [label="call return 0", color=gray, fontcolor=gray];
;; |   5 -> 6 [label="call return 0", color=gray, fontcolor=gray];
;; | }
;; $ afterimage profile profile.aft --format callgrind
;; | # callgrind format
;; | version: 1
;; | creator: afterimage
;; | # Calls are left out: their total costs do not follow from counts; afterimage export --format callgrind has them.
;; | positions: line
;; | event: Instr : executed WebAssembly instructions
;; | events: Instr
;; | summary: 51
;; |
;; | fl=(1) ???
;; | fn=(1) print
;; | 0 15
;; |
;; | fl=(1)
;; | fn=(2) main
;; | 0 36
;; |
;; | totals: 51
;; ! afterimage: without calls, because they do not follow from counts; with calls: afterimage export profile.aft --format callgrind
;; $ afterimage profile profile.aft --format lcov
;; ! afterimage: profile.aft: this format needs source lines: the module has no debug information; compile it with -g, or choose another format
;; = 125
;; $ afterimage profile profile.aft --mode quick
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; | 29.4%            15       3      3  -       print
;; |  0.0%             0       0      0  -       never
;; $ afterimage profile profile.aft --mode slow
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; | 29.4%            15       3      3  -       print
;; |  0.0%             0       0      0  -       never
;; ! afterimage: the counters of all 9 blocks agree with the derived counts
;; $ afterimage profile profile.aft --weights profile.aft
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; | 29.4%            15       3      3  -       print
;; |  0.0%             0       0      0  -       never
;; $ afterimage profile FILE
;; | ran 51 instructions in 12 blocks; 2 of 3 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  blocks  calls  source  function
;; | 70.6%            36       9      1  -       main
;; | 29.4%            15       3      3  -       print
;; |  0.0%             0       0      0  -       never
;; ! hello
;; ! hello
;; ! hello
;; ! afterimage: profile.wat exited with code 3
;; $ afterimage verify profile.aft
;; | sound: N, 6 chunks in 5 sections, 5 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage verify profile.aft --format json
;; | {"schema":"afterimage/verify/2","sound":true,"bytes":N,"chunks":6,"sections":5,"events":5,"ended":true,"ignored_bytes":0,"path":null,"values":null,"repeats":true,"findings":[]}
;; $ afterimage verify profile.aft --no-execute
;; | sound: N, 6 chunks in 5 sections, 5 events
;; | not re-executed
