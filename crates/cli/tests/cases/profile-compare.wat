;; A program whose work grows with its argument: several runs added up, and one compared with another.
(module
  (func $linear (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func $quadratic (param $n i32) (local $i i32)
    (local.set $i (local.get $n))
    (loop $again
      (call $linear (local.get $n))
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (br_if $again (local.get $i))))
  (func $late nop)
  (func $never nop)
  (func (export "run") (param $n i32)
    (call $quadratic (local.get $n))
    (if (i32.ge_u (local.get $n) (i32.const 20)) (then (call $late)))))

;; $ afterimage record -o half.aft --invoke run FILE 10
;; ! afterimage: profile-compare.wat returned; 0 host calls recorded in half.aft (N)
;; $ afterimage record -o full.aft --invoke run FILE 20
;; ! afterimage: profile-compare.wat returned; 0 host calls recorded in full.aft (N)
;; $ afterimage profile half.aft full.aft
;; | ran 3,258 instructions in 598 blocks over 2 runs; 4 of 5 functions executed
;; |
;; | share  instructions  blocks  calls  source  function
;; | 92.1%         3,000     530     30  -       linear
;; |  7.5%           244      62      2  -       quadratic
;; |  0.4%            13       5      2  -       run
;; | <0.1%             1       1      1  -       late
;; |  0.0%             0       0      0  -       never
;; $ afterimage profile half.aft full.aft --by edge --limit 3
;; | ran 3,258 instructions in 598 blocks over 2 runs; 4 of 5 functions executed
;; |
;; | count  offset  edge   from    to      kind         source  function
;; |   470    0x33  edge2  block1  block1  taken, back  -       linear
;; |    30       -  edge0  block0  block1  fall         -       linear
;; |    30    0x33  edge1  block1  block2  not taken    -       linear
;; | … and 10 more edges
;; $ afterimage profile half.aft full.aft --format json --limit 1
;; | {"schema":"afterimage/profile/2","by":"function","sort":"instructions","totals":{"runs":2,"instructions":3258,"blocks":598,"entries":35,"functions":5,"executed_functions":4,"open":0},"available":5,"complete":false,"rows":[{"function":{"index":0,"name":"linear","raw_name":"linear"},"offset":39,"entries":30,"blocks":530,"instructions":3000,"source":null}]}
;; $ afterimage profile half.aft half.aft --format csv
;; | function,name,offset,entries,blocks,instructions,file,line,column
;; | 0,linear,39,20,220,1200,,,
;; | 1,quadratic,56,2,42,164,,,
;; | 2,late,83,0,0,0,,,
;; | 3,never,87,0,0,0,,,
;; | 4,run,91,2,4,12,,,
;; ! afterimage: half.aft: given more than once; its counts are added each time
;; $ afterimage profile half.aft --compare full.aft
;; | A  half.aft: ran 688 instructions in 133 blocks; 3 of 5 functions executed
;; | B  full.aft: ran 2,570 instructions in 465 blocks; 4 of 5 functions executed
;; | B executed 3.74 times the instructions of A
;; |
;; |   A      B   B/A  share of B  calls A  calls B  source  function
;; |   0      1   new       <0.1%        0        1  -       late
;; | 600  2,400  4.00       93.4%       10       20  -       linear
;; |  82    162  1.98        6.3%        1        1  -       quadratic
;; |   6      7  1.17        0.3%        1        1  -       run
;; | 1 function ran in neither
;; $ afterimage profile half.aft --compare full.aft --sort program --limit 2
;; | A  half.aft: ran 688 instructions in 133 blocks; 3 of 5 functions executed
;; | B  full.aft: ran 2,570 instructions in 465 blocks; 4 of 5 functions executed
;; | B executed 3.74 times the instructions of A
;; |
;; |   A      B   B/A  share of B  calls A  calls B  source  function
;; | 600  2,400  4.00       93.4%       10       20  -       linear
;; |  82    162  1.98        6.3%        1        1  -       quadratic
;; | … and 2 more functions: --limit N
;; | 1 function ran in neither
;; $ afterimage profile half.aft --compare full.aft --format csv
;; | name,instructions_a,instructions_b,ratio,entries_a,entries_b,function_a,function_b,file,line,column
;; | late,0,1,,0,1,2,2,,,
;; | linear,600,2400,4,10,20,0,0,,,
;; | quadratic,82,162,1.975609756097561,1,1,1,1,,,
;; | run,6,7,1.1666666666666667,1,1,4,4,,,
;; $ afterimage profile half.aft --compare full.aft --format json --limit 1
;; | {"schema":"afterimage/compare/2","by":"function","sort":"ratio","a":{"name":"half.aft","totals":{"instructions":688,"blocks":133,"entries":12,"functions":5,"executed_functions":3,"open":0}},"b":{"name":"full.aft","totals":{"instructions":2570,"blocks":465,"entries":23,"functions":5,"executed_functions":4,"open":0}},"by_name":false,"available":4,"complete":false,"never":1,"unnamed":0,"rows":[{"name":"late","a":{"index":2,"entries":0,"instructions":0},"b":{"index":2,"entries":1,"instructions":1},"ratio":null,"source":null}]}
;; $ afterimage profile half.aft --compare full.aft --by line
;; | A  half.aft: ran 688 instructions in 133 blocks; 3 of 5 functions executed
;; | B  full.aft: ran 2,570 instructions in 465 blocks; 4 of 5 functions executed
;; | B executed 3.74 times the instructions of A
;; |
;; | no source line is known: the module has no debug information; compile it with -g
;; $ afterimage profile half.aft --compare full.aft --by edge
;; ! afterimage: --compare works for functions and lines: choose --by function or --by line
;; = 125
;; $ afterimage profile half.aft --compare full.aft --annotate
;; ! error: the argument '--compare <B.aft>' cannot be used with '--annotate'
;; !
;; ! Usage: afterimage profile --compare <B.aft> <FILE.aft|PROGRAM> [ARGS]...
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage profile half.aft --compare full.aft --format pprof
;; ! afterimage: --compare cannot write pprof: choose --format text, json or csv
;; = 125
;; $ afterimage profile half.aft --compare half.aft --function quadratic
;; | A  half.aft: ran 688 instructions in 133 blocks; 3 of 5 functions executed
;; | B  half.aft: ran 688 instructions in 133 blocks; 3 of 5 functions executed
;; | B executed 1.00 times the instructions of A
;; |
;; |  A   B   B/A  share of B  calls A  calls B  source  function
;; | 82  82  1.00       11.9%        1        1  -       quadratic
;; ! afterimage: half.aft: compared with itself
