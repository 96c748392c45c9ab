;; main walks through 64 words, twice, and sums up those that are odd; then it copies half of them. The branch goes by turns.
(module
  (memory (export "memory") 1)
  (table funcref (elem $sum))
  (type $t (func (param i32) (result i32)))
  (func $fill (local $i i32)
    (loop $again
      (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $i))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 64)))))
  (func $sum (param $i i32) (result i32) (local $sum i32) (local $word i32)
    (loop $again
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (local.set $word (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (if (i32.and (local.get $word) (i32.const 1))
        (then (local.set $sum (i32.add (local.get $sum) (local.get $word)))))
      (br_if $again (local.get $i)))
    (local.get $sum))
  (func (export "main") (result i32)
    (call $fill)
    (drop (call_indirect (type $t) (i32.const 64) (i32.const 0)))
    (memory.copy (i32.const 256) (i32.const 0) (i32.const 128))
    (call $sum (i32.const 64))))
;; $ afterimage record --invoke main -o run.aft FILE
;; | 1024
;; ! afterimage: simulate.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage simulate run.aft --no-save
;; | 5 of 193 accesses (2.6%) miss a cache of 32 KiB (8 ways, lines of 64 bytes), and 5 (2.6%) also miss a second level of 1 MiB (16 ways, lines of 64 bytes)
;; |
;; |                 executed  missed    rate  both levels    rate
;; | loads                128       0    0.0%            0    0.0%
;; | stores                64       4    6.3%            4    6.3%
;; | bulk operators         1       1  100.0%            1  100.0%
;; | 196 lines touched; first level: 6 read, 0 written back; second level: 6 read, 0 written back
;; | for linear memory only: locals, globals and the operand stack count as registers, and accesses by the host are left out
;; |
;; | of all  executed  missed    rate  both levels    rate  function
;; |  80.0%        64       4    6.3%            4    6.3%  fill
;; |  20.0%         1       1  100.0%            1  100.0%  main
;; |
;; | a TAGE predictor of 7 tables of 1,024 entries and histories of 5 to 130 mispredicts 13 of 321 branches (4.0%), 4.40 per 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320            12    3.8%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted    rate  function
;; |  76.9%       256            10    3.9%  sum
;; |  15.4%        64             2    3.1%  fill
;; |   7.7%         1             1  100.0%  main
;; ! afterimage: path of 392 executed blocks in 22 bytes
;; $ afterimage simulate run.aft --cache 128,2,16
;; | 41 of 193 accesses (21.2%) miss a cache of 128 bytes (2 ways, lines of 16 bytes)
;; |
;; |                 executed  missed    rate
;; | loads                128      24   18.8%
;; | stores                64      16   25.0%
;; | bulk operators         1       1  100.0%
;; | 208 lines touched; first level: 48 read, 24 written back
;; | for linear memory only: locals, globals and the operand stack count as registers, and accesses by the host are left out
;; |
;; | of all  executed  missed    rate  function
;; |  58.5%       128      24   18.8%  sum
;; |  39.0%        64      16   25.0%  fill
;; |   2.4%         1       1  100.0%  main
;; ! afterimage: --cache 128,2,16: history of 193 executions in 91 bytes (3.7720 bits each)
;; $ afterimage simulate run.aft --cache 128,2,16 --cache2 1k,4,32 --by instruction
;; | 41 of 193 accesses (21.2%) miss a cache of 128 bytes (2 ways, lines of 16 bytes), and 9 (4.7%) also miss a second level of 1 KiB (4 ways, lines of 32 bytes)
;; |
;; |                 executed  missed    rate  both levels    rate
;; | loads                128      24   18.8%            0    0.0%
;; | stores                64      16   25.0%            8   12.5%
;; | bulk operators         1       1  100.0%            1  100.0%
;; | 208 lines touched; first level: 48 read, 24 written back; second level: 12 read, 0 written back
;; | for linear memory only: locals, globals and the operand stack count as registers, and accesses by the host are left out
;; |
;; | of all  executed  missed    rate  both levels    rate  offset  operator     source  function
;; |  58.5%       128      24   18.8%            0    0.0%  @0x7b   i32.load             sum
;; |  39.0%        64      16   25.0%            8   12.5%  @0x57   i32.store            fill
;; |   2.4%         1       1  100.0%            1  100.0%  @0xac   memory.copy          main
;; ! afterimage: --cache 128,2,16 --cache2 1024,4,32: history of 193 executions in 143 bytes (5.9275 bits each)
;; $ afterimage simulate run.aft --branch-predictor bimodal --branch-predictor gshare:bits=8,history=6 --by instruction --limit 2
;; | a bimodal predictor of 4,096 counters mispredicts 134 of 321 branches (41.7%), 45.32 per 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320           133   41.6%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted    rate  offset  operator  source  function
;; |  95.5%       128           128  100.0%  @0x85   if                sum
;; |   2.2%       128             3    2.3%  @0x91   br_if             sum
;; | … and more: see them with --limit N
;; |
;; | a gshare predictor of 256 counters and a history of 6 mispredicts 20 of 321 branches (6.2%), 6.76 per 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320            19    5.9%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted   rate  offset  operator  source  function
;; |  40.0%        64             8  12.5%  @0x65   br_if             fill
;; |  35.0%       128             7   5.5%  @0x91   br_if             sum
;; | … and more: see them with --limit N
;; ! afterimage: --branch-predictor bimodal:bits=12,targets=9: history of 321 executions in 154 bytes (3.8380 bits each)
;; ! afterimage: --branch-predictor gshare:bits=8,history=6,targets=9: history of 321 executions in 177 bytes (4.4112 bits each)
;; $ afterimage simulate run.aft --cache 128,2,16 --branch-predictor tage --no-save --format json
;; | {"schema":"afterimage/simulate/2","simulation":"--cache 128,2,16","blocks":392,"instructions":2957,"executions":193,"missed":41,"lines":{"touched":208,"first_read":48,"first_written_back":24}}
;; | {"function":{"index":1,"name":"sum"},"executions":128,"missed":24}
;; | {"function":{"index":0,"name":"fill"},"executions":64,"missed":16}
;; | {"function":{"index":2,"name":"main"},"executions":1,"missed":1}
;; | {"schema":"afterimage/simulate/2","simulation":"--branch-predictor tage:base=13,bits=10,tables=7,tag=11,min=5,max=130,targets=9","blocks":392,"instructions":2957,"executions":321,"missed":13}
;; | {"function":{"index":1,"name":"sum"},"executions":256,"missed":10}
;; | {"function":{"index":0,"name":"fill"},"executions":64,"missed":2}
;; | {"function":{"index":2,"name":"main"},"executions":1,"missed":1}
;; $ afterimage simulate run.aft --cache 1k,full,64 --cache2 1m,16,64 --no-save --by instruction --format csv
;; | simulation,function,name,kind,operator,offset,file,line,executions,missed,missed_second
;; | "'--cache 1024,full,64 --cache2 1048576,16,64",0,fill,store,i32.store,87,,,64,4,4
;; | "'--cache 1024,full,64 --cache2 1048576,16,64",2,main,bulk,memory.copy,172,,,1,1,1
;; | "'--cache 1024,full,64 --cache2 1048576,16,64",1,sum,load,i32.load,123,,,128,0,0
;; $ afterimage simulate run.aft --cache 128,2,16 --by instruction --limit 1 --format csv
;; | simulation,function,name,kind,operator,offset,file,line,executions,missed,missed_second
;; | "'--cache 128,2,16",1,sum,load,i32.load,123,,,128,24,
;; $ afterimage simulate run.aft --at sum --cache 128,2,16 --cache2 1k,4,32
;; | @0x7b i32.load    in sum
;; | 24 of 128 executions missed (18.8%), 0 both: --cache 128,2,16 --cache2 1024,4,32
;; |             #1  hit 32
;; |            #33  missed 1, hit 3 x 24
;; $ afterimage simulate run.aft --at @0x85 --limit 3
;; | @0x85 if    in sum
;; | 128 of 128 executions mispredicted (100.0%): --branch-predictor bimodal:bits=12,targets=9
;; |             #1  mispredicted 128
;; |
;; | @0x85 if    in sum
;; | 4 of 128 executions mispredicted (3.1%): --branch-predictor gshare:bits=8,history=6,targets=9
;; |             #1  mispredicted 1, predicted 1
;; |             #3  mispredicted 1, predicted 61
;; |            #65  mispredicted 1, predicted 1
;; | … and more: see them with --limit N
;; $ afterimage simulate run.aft --at fill --branch-predictor gshare:bits=8,history=6
;; | @0x65 br_if    in fill
;; | 8 of 64 executions mispredicted (12.5%): --branch-predictor gshare:bits=8,history=6,targets=9
;; |             #1  mispredicted 7, predicted 56
;; |            #64  mispredicted 1
;; $ afterimage simulate run.aft --at fill --branch-predictor gshare:bits=8,history=6 --format json
;; | {"schema":"afterimage/simulate-history/2","simulation":"--branch-predictor gshare:bits=8,history=6,targets=9","function":{"index":0,"name":"fill"},"operator":"br_if","offset":101,"source":null,"kind":"branch","executions":64,"missed":8}
;; | {"first":1,"executions":7,"outcome":"missed"}
;; | {"first":8,"executions":56,"outcome":"hit"}
;; | {"first":64,"executions":1,"outcome":"missed"}
;; $ afterimage simulate run.aft --at fill --branch-predictor gshare:bits=8,history=6 --format csv
;; | simulation,offset,first,executions,outcome
;; | "'--branch-predictor gshare:bits=8,history=6,targets=9",101,1,7,missed
;; | "'--branch-predictor gshare:bits=8,history=6,targets=9",101,8,56,hit
;; | "'--branch-predictor gshare:bits=8,history=6,targets=9",101,64,1,missed
;; $ afterimage simulate run.aft --at @0x7b#35 --limit 3 --cache 128,2,16
;; | @0x7b i32.load    in sum
;; | execution 35 hit the first level
;; | the last one before that missed is #33; the next one is #37
;; | 24 of 128 executions missed (18.8%): --cache 128,2,16
;; $ afterimage simulate run.aft --at @0x7b#33 --cache 128,2,16
;; | @0x7b i32.load    in sum
;; | execution 33 missed, the 1st of 24 that missed
;; | none before missed; the next one is #37
;; | 24 of 128 executions missed (18.8%): --cache 128,2,16
;; $ afterimage simulate run.aft --at fill#last
;; ! afterimage: run.aft: --at fill#last: only instructions have histories, and this is a line or a function: leave out the # to list its instructions, then add it to one of them
;; = 125
;; $ afterimage simulate run.aft --at @0x65#last
;; | @0x65 br_if    in fill
;; | execution 64 was mispredicted, the 2nd of 2 that were mispredicted
;; | the last one before that was mispredicted is #1; none after was mispredicted
;; | 2 of 64 executions mispredicted (3.1%): --branch-predictor bimodal:bits=12,targets=9
;; |
;; | @0x65 br_if    in fill
;; | execution 64 was mispredicted, the 8th of 8 that were mispredicted
;; | the last one before that was mispredicted is #7; none after was mispredicted
;; | 8 of 64 executions mispredicted (12.5%): --branch-predictor gshare:bits=8,history=6,targets=9
;; $ afterimage simulate run.aft --at @0x7b#129
;; ! afterimage: run.aft: @0x7b#129 was executed 128 times: there is no execution 129
;; = 125
;; $ afterimage simulate run.aft --at @0x7e --cache 128,2,16
;; ! afterimage: run.aft: no load or store at @0x7e was ever executed; see those that were with --by instruction
;; = 125
;; $ afterimage simulate run.aft --worst --cache 128,2,16
;; | one load has 58.5% of all misses: --cache 128,2,16
;; |
;; | @0x7b i32.load    in sum
;; |   24 of 128 executions missed (18.8%): 58.5% of all
;; |   afterimage slice run.aft --at @0x7b#125 --operand 1
;; ! afterimage: to see what computed addresses and conditions, build the values: afterimage build --lens full run.aft
;; $ afterimage build --lens full run.aft
;; ! afterimage: values of 1,153 executed statements in 137 bytes (0.1188 a statement)
;; $ afterimage simulate run.aft --worst --cache 128,2,16 --branch-predictor gshare:bits=8,history=6 --limit 2
;; | one load has 58.5% of all misses: --cache 128,2,16
;; |
;; | @0x7b i32.load    in sum
;; |   24 of 128 executions missed (18.8%): 58.5% of all
;; |   address from @0x7a i32.shl    in sum
;; |   afterimage slice run.aft --at @0x7b#125 --operand 1
;; |
;; | 2 branch sites have 75.0% of all misses: --branch-predictor gshare:bits=8,history=6,targets=9
;; |
;; | @0x65 br_if    in fill
;; |   8 of 64 executions mispredicted (12.5%): 40.0% of all
;; |   decided by @0x64 i32.lt_u    in fill
;; |   afterimage slice run.aft --at @0x65#64 --operand 1
;; |
;; | @0x91 br_if    in sum
;; |   7 of 128 executions mispredicted (5.5%): 35.0% of all
;; |   decided by @0x73 i32.sub    in sum
;; |   afterimage slice run.aft --at @0x91#128 --operand 1
;; $ afterimage simulate run.aft --worst --cache 128,2,16 --format json
;; | {"schema":"afterimage/simulate-worst/2","simulation":"--cache 128,2,16","executions":193,"missed":41}
;; | {"function":{"index":1,"name":"sum"},"operator":"i32.load","offset":123,"source":null,"executions":128,"missed":24,"sample":[33,37,45,49,57,61,69,73,81,85,93,97,105,109,117,125],"producers":[{"from":"operator","function":{"index":1,"name":"sum"},"operator":"i32.shl","offset":122,"source":null,"misses":16}],"command":"afterimage slice run.aft --at @0x7b#125 --operand 1"}
;; $ afterimage slice run.aft --at @0x7b#125 --operand 1 --by statement
;; | what operand 1 of @0x7b#125, `i32.load` at t=382, depends on: 4 statements, 123 executions
;; |
;; | sum
;; | times   of  offset  line  text
;; |    61  128  @0x73         i32.sub
;; |     1  128  @0x7a         i32.shl
;; |    60  128  @0x91         br_if $again
;; |
;; | main
;; | times  of  offset  line  text
;; |     1   1  @0xb3         call $sum
;; $ afterimage info run.aft
;; | program   simulate.wat
;; | invoked   main
;; | recorded  WHEN
;; | ending    returned
;; | result    1024
;; | boundary  0 host calls in 2 events
;; | sha256    ab5fd0a6883b9aed32953ce72f2067c830476505ea276f443d6b790cc6debc8c
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    paths, full
;; | path      392 executed blocks in 1 segment: 76 bytes, 1.551 bits each
;; | values    1,153 executed statements from t=1 to t=392 in 1 epoch: 137 bytes, 0.119 bytes each
;; | simulated --cache 128,2,16: 193 executions, 41 missed: 91 bytes, 3.772 bits each
;; | simulated --cache 128,2,16 --cache2 1024,4,32: 193 executions, 41 missed: 143 bytes, 5.927 bits each
;; | simulated --branch-predictor bimodal:bits=12,targets=9: 321 executions, 134 missed: 154 bytes, 3.838 bits each
;; | simulated --branch-predictor gshare:bits=8,history=6,targets=9: 321 executions, 20 missed: 177 bytes, 4.411 bits each
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 254 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage verify run.aft
;; | sound: N, 26 chunks in 15 sections, 2 events
;; | whole path: 392 executed blocks, 10 paths in 1 segment, compared with the end
;; | values of 1,153 executed statements from t=1 to t=392: the same when the run is followed again, without the engine
;; | history of 193 executions, --cache 128,2,16: the same when it is simulated again
;; | history of 193 executions, --cache 128,2,16 --cache2 1024,4,32: the same when it is simulated again
;; | history of 321 executions, --branch-predictor bimodal:bits=12,targets=9: the same when it is simulated again
;; | history of 321 executions, --branch-predictor gshare:bits=8,history=6,targets=9: the same when it is simulated again
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage simulate run.aft --cache 128,3,16
;; ! error: invalid value '128,3,16' for '--cache <SIZE,WAYS,LINE>': cache "128,3,16": 8 lines in sets of 3 give a number of sets that is not a power of two; change the size or the ways
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage simulate run.aft --cache 1k,2,64 --cache2 128,2,16
;; ! afterimage: the second level 128,2,16 is smaller than the first, 1024,2,64, or has shorter lines; swap them
;; = 125
;; $ afterimage simulate run.aft --cache2 1k,2,64
;; ! error: simulate needs --cache SIZE,WAYS,LINE; for example: afterimage simulate app.aft --cache 32k,8,64 --cache2 1m,16,64 --by function
;; = 125
;; $ afterimage simulate run.aft --branch-predictor perceptron
;; ! error: invalid value 'perceptron' for '--branch-predictor <PREDICTOR>': there is no branch predictor "perceptron": choose bimodal, gshare or tage
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage simulate run.aft --no-save
;; | 5 of 193 accesses (2.6%) miss a cache of 32 KiB (8 ways, lines of 64 bytes), and 5 (2.6%) also miss a second level of 1 MiB (16 ways, lines of 64 bytes)
;; |
;; |                 executed  missed    rate  both levels    rate
;; | loads                128       0    0.0%            0    0.0%
;; | stores                64       4    6.3%            4    6.3%
;; | bulk operators         1       1  100.0%            1  100.0%
;; | 196 lines touched; first level: 6 read, 0 written back; second level: 6 read, 0 written back
;; | for linear memory only: locals, globals and the operand stack count as registers, and accesses by the host are left out
;; |
;; | of all  executed  missed    rate  both levels    rate  function
;; |  80.0%        64       4    6.3%            4    6.3%  fill
;; |  20.0%         1       1  100.0%            1  100.0%  main
;; |
;; | a TAGE predictor of 7 tables of 1,024 entries and histories of 5 to 130 mispredicts 13 of 321 branches (4.0%), 4.40 per 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320            12    3.8%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted    rate  function
;; |  76.9%       256            10    3.9%  sum
;; |  15.4%        64             2    3.1%  fill
;; |   7.7%         1             1  100.0%  main
;; $ afterimage simulate run.aft --at fill --limit 3 --format csv
;; ! afterimage: run.aft: --limit only shortens the text of --at; the other formats have the whole history
;; = 125
