;; Partial redundancy, as in Morel and Renvoise's paper: on one side a + b was computed before, on the other not. Then a times 3, which changes only when a does, but
;; has the same value more often than that: where a is set to what it was.
(module
  (memory 1)
  (func $f (param $a i32) (param $b i32) (param $which i32) (result i32)
    (if (local.get $which)
      (then (i32.store (i32.const 0) (i32.add (local.get $a) (local.get $b)))))
    (i32.mul (i32.add (local.get $a) (local.get $b)) (i32.const 2)))
  (func $g (param $n i32) (result i32) (local $i i32) (local $a i32) (local $sum i32)
    (loop $again
      (if (i32.lt_u (i32.and (local.get $i) (i32.const 3)) (i32.const 1))
        (then (local.set $a (i32.load (i32.const 0)))))
      (local.set $sum (i32.add (local.get $sum) (i32.mul (local.get $a) (i32.const 3))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "main") (result i32) (local $i i32)
    (loop $again
      (drop (call $f (local.get $i) (i32.const 4) (i32.and (local.get $i) (i32.const 1))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))
    (call $g (i32.const 40))))

;; $ afterimage record --invoke main -o run.aft FILE
;; | 1560
;; ! afterimage: redundancy-expressions.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage redundancy run.aft --expressions --paths 3
;; | 44 of 295 executions of 12 expressions (14.9%) recomputed a result that the same expression had already given in the same call
;; |
;; | expression            executed  redundant         by path         mostly from            source  function
;; | @0x6b       i32.mul         40         39  97.5%        0   0.0%  itself         100.0%          g
;; | @0x48       i32.add         10          5  50.0%        5  50.0%  @0x3f i32.add  100.0%          f
;; | @0x3f       i32.add          5          0   0.0%        0   0.0%  -                              f
;; | @0x4b       i32.mul         10          0   0.0%        0   0.0%  -                              f
;; | @0x57       i32.and         40          0   0.0%        0   0.0%  -                              g
;; | @0x5a       i32.lt_u        40          0   0.0%        0   0.0%  -                              g
;; | @0x6c       i32.add         40          0   0.0%        0   0.0%  -                              g
;; | @0x73       i32.add         40          0   0.0%        0   0.0%  -                              g
;; | @0x78       i32.lt_u        40          0   0.0%        0   0.0%  -                              g
;; | @0x8d       i32.and         10          0   0.0%        0   0.0%  -                              main
;; | @0x95       i32.add         10          0   0.0%        0   0.0%  -                              main
;; | @0x9a       i32.lt_u        10          0   0.0%        0   0.0%  -                              main
;; |
;; | @0x6b i32.mul  in g: redundant in all 3 paths that executed it
;; | times         in path  redundant there  from    in path
;; |    19  48.7%  1.3               always  itself  1.3
;; |    10  25.6%  1.3               always  itself  1.2.3
;; |     9  23.1%  1.2.3            9 of 10  itself  1.3
;; | … and 1 way
;; |
;; | @0x48 i32.add  in f: redundant in 1 of the 2 paths that executed it
;; | times          in path  redundant there  from           in path
;; |     5  100.0%  0.1.2             always  @0x3f i32.add  the same execution of it
;; ! afterimage: path of 139 executed blocks in 24 bytes
;; $ afterimage redundancy run.aft --expressions --function f --exact-only
;; | 5 of 25 executions of 3 expressions of f (20.0%) recomputed a result that the same expression had already given in the same call
;; |
;; | expression           executed  redundant         mostly from            source  function
;; | @0x48       i32.add        10          5  50.0%  @0x3f i32.add  100.0%          f
;; | @0x3f       i32.add         5          0   0.0%  -                              f
;; | @0x4b       i32.mul        10          0   0.0%  -                              f
;; |
;; | --paths N shows the paths that made these redundant
;; $ afterimage redundancy run.aft --expressions --function f --limit 1 --paths 1 --format json
;; | {"schema":"afterimage/redundancy/2","expressions":3,"executions":25,"redundant":5,"instructions":410,"entries":[{"function":{"index":0,"name":"f"},"operator":"i32.add","offset":72,"source":null,"executions":10,"redundant":5,"by_path":{"redundant":5,"queries":3,"sources":[{"function":{"index":0,"name":"f"},"operator":"i32.add","offset":63,"source":null,"times":5}]},"sources":[{"function":{"index":0,"name":"f"},"operator":"i32.add","offset":63,"source":null,"store":false,"times":5}],"all_ways":1,"ways":[{"times":5,"same_execution":true,"path":{"blocks":[0,1,2],"lines":[]},"from":{"function":{"index":0,"name":"f"},"operator":"i32.add","offset":63,"source":null,"path":{"blocks":[0,1,2],"lines":[]}},"executions_in_path":5,"redundant_in_path":5}]}]}
;; $ afterimage redundancy run.aft --expressions --function f --format csv
;; | function,name,offset,operator,file,line,executions,redundant,same_call,by_path,source_function,source_offset,source_operator,source_times
;; | 0,f,72,i32.add,,,10,5,5,5,0,63,i32.add,5
;; | 0,f,63,i32.add,,,5,0,0,0,,,,
;; | 0,f,75,i32.mul,,,10,0,0,0,,,,
;; $ afterimage redundancy run.aft --expressions --loads
;; ! error: the argument '--expressions' cannot be used with '--loads'
;; !
;; ! Usage: afterimage redundancy --expressions <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
