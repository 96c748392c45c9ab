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
;; $ afterimage simulate run.aft --cache 128,2,16
;; | 41 of 193 accesses (21.2%) miss a cache of 128 bytes (2 ways, lines of 16 bytes)
;; |
;; |                 executed  missed    rate
;; | loads                128      24   18.8%
;; | stores                64      16   25.0%
;; | bulk operators         1       1  100.0%
;; | 208 lines touched; first level: 48 read, 24 written back
;; | of linear memory only: locals, globals and the operand stack are taken for registers, and what the host accesses is left out
;; |
;; | of all  executed  missed    rate  function
;; |  58.5%       128      24   18.8%  sum
;; |  39.0%        64      16   25.0%  fill
;; |   2.4%         1       1  100.0%  main
;; ! afterimage: path of 392 executed blocks in 22 bytes
;; $ afterimage simulate run.aft --cache 128,2,16 --cache2 1k,4,32 --by instruction
;; | 41 of 193 accesses (21.2%) miss a cache of 128 bytes (2 ways, lines of 16 bytes), and 9 (4.7%) one of 1 KiB (4 ways, lines of 32 bytes) behind it
;; |
;; |                 executed  missed    rate  second level, too    rate
;; | loads                128      24   18.8%                  0    0.0%
;; | stores                64      16   25.0%                  8   12.5%
;; | bulk operators         1       1  100.0%                  1  100.0%
;; | 208 lines touched; first level: 48 read, 24 written back; second level: 12 read, 0 written back
;; | of linear memory only: locals, globals and the operand stack are taken for registers, and what the host accesses is left out
;; |
;; | of all  executed  missed    rate  second, too    rate  offset  operator     source  function
;; |  58.5%       128      24   18.8%            0    0.0%  @0x7b   i32.load             sum
;; |  39.0%        64      16   25.0%            8   12.5%  @0x57   i32.store            fill
;; |   2.4%         1       1  100.0%            1  100.0%  @0xac   memory.copy          main
;; $ afterimage simulate run.aft --branch-predictor bimodal --branch-predictor gshare:bits=8,history=6 --by instruction --top 2
;; | a bimodal predictor of 4,096 counters mispredicts 134 of 321 branches (41.7%), 45.32 for 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320           133   41.6%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted    rate  offset  operator  source  function
;; |  95.5%       128           128  100.0%  @0x85   if                sum
;; |   2.2%       128             3    2.3%  @0x91   br_if             sum
;; | … and more: see them with --top N
;; |
;; | a gshare predictor of 256 counters and a history of 6 mispredicts 20 of 321 branches (6.2%), 6.76 for 1,000 instructions
;; |
;; |                       executed  mispredicted    rate
;; | conditional branches       320            19    5.9%
;; | indirect calls               1             1  100.0%
;; |
;; | of all  executed  mispredicted   rate  offset  operator  source  function
;; |  40.0%        64             8  12.5%  @0x65   br_if             fill
;; |  35.0%       128             7   5.5%  @0x91   br_if             sum
;; | … and more: see them with --top N
;; $ afterimage simulate run.aft --cache 128,2,16 --branch-predictor tage --format json
;; | {"blocks":392,"executions":193,"instructions":2957,"lines":{"first_read":48,"first_written_back":24,"touched":208},"missed":41,"schema":"afterimage/simulate/1","simulation":"--cache 128,2,16"}
;; | {"executions":128,"function":1,"missed":24,"name":"sum"}
;; | {"executions":64,"function":0,"missed":16,"name":"fill"}
;; | {"executions":1,"function":2,"missed":1,"name":"main"}
;; | {"blocks":392,"executions":321,"instructions":2957,"missed":13,"schema":"afterimage/simulate/1","simulation":"--branch-predictor tage:base=13,bits=10,tables=7,tag=11,min=5,max=130,targets=9"}
;; | {"executions":256,"function":1,"missed":10,"name":"sum"}
;; | {"executions":64,"function":0,"missed":2,"name":"fill"}
;; | {"executions":1,"function":2,"missed":1,"name":"main"}
;; $ afterimage simulate run.aft --cache 1k,full,64 --cache2 1m,16,64 --by instruction --format csv
;; | simulation,function,name,kind,operator,offset,file,line,executions,missed,missed_second
;; | "--cache 1024,full,64 --cache2 1048576,16,64",0,fill,store,i32.store,87,,,64,4,4
;; | "--cache 1024,full,64 --cache2 1048576,16,64",2,main,bulk,memory.copy,172,,,1,1,1
;; | "--cache 1024,full,64 --cache2 1048576,16,64",1,sum,load,i32.load,123,,,128,0,0
;; $ afterimage simulate run.aft
;; ! afterimage: nothing is to be simulated: give --cache SIZE,WAYS,LINE or --branch-predictor PREDICTOR, such as --cache 32k,8,64 --branch-predictor gshare
;; = 125
;; $ afterimage simulate run.aft --cache 128,3,16
;; ! error: invalid value '128,3,16' for '--cache <SIZE,WAYS,LINE>': cache "128,3,16": 8 lines in sets of 3 are no power of two of sets; change the size or the ways
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage simulate run.aft --cache 1k,2,64 --cache2 128,2,16
;; ! afterimage: the second level 128,2,16 is smaller than the first, 1024,2,64, or has shorter lines; exchange them
;; = 125
;; $ afterimage simulate run.aft --cache2 1k,2,64
;; ! error: the following required arguments were not provided:
;; !   --cache <SIZE,WAYS,LINE>
;; !
;; ! Usage: afterimage simulate --cache <SIZE,WAYS,LINE> --cache2 <SIZE,WAYS,LINE> <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage simulate run.aft --branch-predictor perceptron
;; ! error: invalid value 'perceptron' for '--branch-predictor <PREDICTOR>': there is no branch predictor "perceptron": bimodal, gshare and tage can be simulated
;; !
;; ! For more information, try '--help'.
;; = 125
