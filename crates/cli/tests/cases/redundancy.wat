;; The loop of Zhang and Gupta 2001, Figure 9: X is loaded in each iteration; 60 of 100 load it again, and the other 40 store to it. Then $twice
;; loads what its caller did.
(module
  (memory 1)
  (func $loop (param $x i32) (local $i i32)
    (loop $again
      (drop (i32.load (local.get $x)))
      (if (i32.lt_u (local.get $i) (i32.const 60))
        (then (drop (i32.load (local.get $x))))
        (else (i32.store (local.get $x) (local.get $i))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100)))))
  (func $twice (param $y i32) (result i32)
    (i32.add (i32.load8_u (local.get $y)) (i32.load8_u offset=4 (local.get $y))))
  (func (export "main") (result i32)
    (call $loop (i32.const 64))
    (drop (i64.load (i32.const 64)))
    (memory.fill (i32.const 68) (i32.const 7) (i32.const 1))
    (call $twice (i32.const 64))))
;; $ afterimage record --invoke main -o run.aft FILE
;; | 106
;; ! afterimage: redundancy.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage redundancy run.aft
;; | 160 of 163 executions of 5 loads (98.2%) read what was already available; 159 (97.5%) thanks to an access in the same call
;; |
;; | load                executed  redundant          same call          by path          mostly from             source  function
;; | @0x38  i32.load          100         99   99.0%         99   99.0%       99   99.0%  @0x45 i32.load   60.6%          loop
;; | @0x45  i32.load           60         60  100.0%         60  100.0%       60  100.0%  @0x38 i32.load  100.0%          loop
;; | @0x65  i32.load8_u         1          1  100.0%          0    0.0%        0    0.0%  @0x79 i64.load  100.0%          twice
;; | @0x6a  i32.load8_u         1          0    0.0%          0    0.0%        0    0.0%  -                               twice
;; | @0x79  i64.load            1          0    0.0%          0    0.0%        0    0.0%  -                               main
;; |
;; | --paths N shows the paths that made these redundant
;; ! afterimage: path of 304 executed blocks in 20 bytes
;; $ afterimage redundancy run.aft --function loop --paths 2
;; | 159 of 160 executions of 2 loads of loop (99.4%) read what was already available; 159 (99.4%) thanks to an access in the same call
;; |
;; | load             executed  redundant          same call          by path          mostly from             source  function
;; | @0x38  i32.load       100         99   99.0%         99   99.0%       99   99.0%  @0x45 i32.load   60.6%          loop
;; | @0x45  i32.load        60         60  100.0%         60  100.0%       60  100.0%  @0x38 i32.load  100.0%          loop
;; |
;; | @0x38 i32.load  in loop: redundant in all 3 paths that executed it
;; | times         in path  redundant there  from             in path
;; |    59  59.6%  1.2.4           59 of 60  @0x45 i32.load   1.2.4
;; |    38  38.4%  1.3.4             always  @0x4e i32.store  1.3.4
;; | … and 2 ways
;; |
;; | @0x45 i32.load  in loop: redundant in the only path that executed it
;; | times          in path  redundant there  from            in path
;; |    60  100.0%  1.2.4             always  @0x38 i32.load  the same execution of it
;; $ afterimage redundancy run.aft --function twice --exact-only
;; | 1 of 2 executions of 2 loads of twice (50.0%) read what was already available; 0 (0.0%) thanks to an access in the same call
;; |
;; | load                executed  redundant          same call        mostly from             source  function
;; | @0x65  i32.load8_u         1          1  100.0%          0  0.0%  @0x79 i64.load  100.0%          twice
;; | @0x6a  i32.load8_u         1          0    0.0%          0  0.0%  -                               twice
;; |
;; | --paths N shows the paths that made these redundant
;; $ afterimage redundancy run.aft --function main --format csv
;; | function,name,offset,operator,file,line,executions,redundant,same_call,by_path,source_function,source_offset,source_operator,source_times
;; | 2,main,121,i64.load,,,1,0,0,0,,,,
;; $ afterimage redundancy run.aft --limit 1 --format json
;; | {"schema":"afterimage/redundancy/2","loads":5,"executions":163,"redundant":160,"same_call":159,"instructions":705,"entries":[{"function":{"index":0,"name":"loop"},"operator":"i32.load","offset":56,"source":null,"executions":100,"redundant":99,"same_call":99,"by_path":{"redundant":99,"queries":3,"sources":[{"function":{"index":0,"name":"loop"},"operator":"i32.load","offset":69,"source":null,"times":60},{"function":{"index":0,"name":"loop"},"operator":"i32.store","offset":78,"source":null,"times":39}]},"sources":[{"function":{"index":0,"name":"loop"},"operator":"i32.load","offset":69,"source":null,"store":false,"times":60},{"function":{"index":0,"name":"loop"},"operator":"i32.store","offset":78,"source":null,"store":true,"times":39}]}]}
;; $ afterimage redundancy run.aft --function nothing
;; ! afterimage: run.aft: no function is called "nothing"
;; = 125
;; $ afterimage redundancy run.aft --limit 0
;; ! error: invalid value '0' for '--limit <N>': give a number from 1 on
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage redundancy run.aft --paths 2 --format csv
;; ! afterimage: --paths works for text and JSON; csv has one row for each load or operator
;; = 125
