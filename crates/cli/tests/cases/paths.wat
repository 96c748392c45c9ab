;; The program of Zhang and Gupta's Figures 1 to 7 (2001): main goes round a loop five times and calls f each time; f
;; goes round a loop three times, always on the one side or always on the other.
(module
  (func $main (export "main") (local $i i32)
    (local.set $i (i32.const 5))
    (loop $again
      (block (br 0))
      (call $f (i32.and (local.get $i) (i32.const 1)))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    nop)
  (func $f (param $side i32) (local $j i32)
    (local.set $j (i32.const 3))
    (loop $again
      (if (local.get $side)
        (then (block (br 0)) (block (br 0)) nop)
        (else (block (br 0)) (block (br 0)) nop))
      (br_if $again (local.tee $j (i32.sub (local.get $j) (i32.const 1)))))
    (call $g))
  (func $g)
  (func $idle))

;; $ afterimage record --invoke main -o run.aft FILE
;; ! afterimage: paths.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage build --lens paths run.aft
;; ! afterimage: path of 107 executed blocks in 20 bytes
;; $ afterimage cfg run.aft --function main
;; | func0 main: 6 blocks, 6 edges
;; | block0: op0..op2 0x2a..0x2e fall
;; |   edge0: block1 fall op1
;; | block1: op4..op5 0x32..0x34 jump
;; |   edge1: block2 jump op4
;; | block2: op6..op10 0x35..0x3c call func1
;; |   edge2: block3 call return op9
;; | block3: op10..op15 0x3c..0x45 branch
;; |   edge3: block4 not taken op14
;; |   edge4: block1 taken op14 back
;; | block4: op16..op17 0x46..0x47 return
;; |   edge5: block5 fall op16
;; | block5: exit
;; $ afterimage cfg run.aft --function f
;; | func1 f: 11 blocks, 12 edges
;; | block0: op0..op2 0x4c..0x50 fall
;; |   edge0: block1 fall op1
;; | block1: op3..op5 0x52..0x56 branch
;; |   edge1: block2 then op4
;; |   edge2: block5 else op4
;; | block2: op6..op7 0x58..0x5a jump
;; |   edge3: block3 jump op6
;; | block3: op9..op10 0x5d..0x5f jump
;; |   edge4: block4 jump op9
;; | block4: op11..op12 0x60..0x61 fall
;; |   edge5: block8 fall op11
;; | block5: op14..op15 0x64..0x66 jump
;; |   edge6: block6 jump op14
;; | block6: op17..op18 0x69..0x6b jump
;; |   edge7: block7 jump op17
;; | block7: op19..op20 0x6c..0x6d fall
;; |   edge8: block8 fall op19
;; | block8: op21..op26 0x6e..0x77 branch
;; |   edge9: block9 not taken op25
;; |   edge10: block1 taken op25 back
;; | block9: op27..op28 0x78..0x7a call func2
;; |   edge11: block10 call return op27
;; | block10: exit
;; $ afterimage paths run.aft
;; | 11 calls to 3 functions took 4 unique path traces and executed 107 blocks
;; |
;; | calls  traces  blocks  share  function
;; |     5       2      85  79.4%  f
;; |     5       1       5   4.7%  g
;; |     1       1      17  15.9%  main
;; $ afterimage paths run.aft --sort traces --limit 1
;; | 11 calls to 3 functions took 4 unique path traces and executed 107 blocks
;; |
;; | calls  traces  blocks  share  function
;; |     5       2      85  79.4%  f
;; | … and 2 more functions
;; $ afterimage paths run.aft --function main
;; | main: 1 call took 1 unique path trace and executed 17 blocks
;; |
;; | trace 1: 1 call (100.0%), 17 blocks
;; |   0.(1.2.3)×5.4
;; $ afterimage paths run.aft --function f
;; | f: 5 calls took 2 unique path traces and executed 85 blocks
;; |
;; | trace 1: 3 calls (60.0%), 17 blocks
;; |   0.(1.2.3.4.8)×3.9
;; |
;; | trace 2: 2 calls (40.0%), 17 blocks
;; |   0.(1.5.6.7.8)×3.9
;; $ afterimage paths run.aft --function f --form dbb
;; | f: 5 calls took 2 unique path traces and executed 85 blocks
;; | the traces use 1 sequence of dynamic basic blocks and 2 dictionaries
;; |
;; | trace 1: 3 calls (60.0%), 17 blocks
;; |   0.1×3.9
;; |   1 ↦ 1.2.3.4.8
;; |
;; | trace 2: 2 calls (40.0%), 17 blocks
;; |   0.1×3.9
;; |   1 ↦ 1.5.6.7.8
;; $ afterimage paths run.aft --function f --form twpp
;; | f: 5 calls took 2 unique path traces and executed 85 blocks
;; | the traces use 1 sequence of dynamic basic blocks and 2 dictionaries
;; |
;; | trace 1: 3 calls (60.0%), 17 blocks
;; |   0 → {1}
;; |   1 → {2:4}
;; |   9 → {5}
;; |   1 ↦ 1.2.3.4.8
;; |
;; | trace 2: 2 calls (40.0%), 17 blocks
;; |   0 → {1}
;; |   1 → {2:4}
;; |   9 → {5}
;; |   1 ↦ 1.5.6.7.8
;; $ afterimage paths run.aft --function main --form twpp
;; | main: 1 call took 1 unique path trace and executed 17 blocks
;; | the traces use 1 sequence of dynamic basic blocks and 1 dictionary
;; |
;; | trace 1: 1 call (100.0%), 17 blocks
;; |   0 → {1}
;; |   1 → {2:6}
;; |   4 → {7}
;; |   1 ↦ 1.2.3
;; $ afterimage paths run.aft --function idle
;; | idle was never called
;; $ afterimage paths run.aft --hot
;; | 10 different paths were executed, 36 times in all: 107 blocks, 218 instructions
;; |
;; | instr.  blocks  count  path         then       source  function
;; |  27.5%   28.0%      6  1.2.3.4.8    1          -       f
;; |  18.3%   18.7%      4  1.5.6.7.8    1          -       f
;; |  15.1%   16.8%      3  1.2.3.4.8.9  call, end  -       f
;; |  11.5%    9.3%      5  1.2          call, 3    -       main
;; |  10.1%   11.2%      2  1.5.6.7.8.9  call, end  -       f
;; |   9.2%    3.7%      4  3            1          -       main
;; |   4.6%    4.7%      5  0            1          -       f
;; |   2.8%    1.9%      1  3.4          end        -       main
;; |   0.9%    0.9%      1  0            1          -       main
;; |   0.0%    4.7%      5  0            end        -       g
;; $ afterimage paths run.aft --hot --function g
;; | 1 different path was executed, 5 times in all: 5 blocks, 0 instructions
;; |
;; | instr.  blocks  count  path  then  source  function
;; |   0.0%  100.0%      5  0     end   -       g
;; $ afterimage paths run.aft --function f --find 8.1
;; | f:8.1 occurs 10 times in 5 calls to f
;; |
;; | from t  to t  in call  begun at t
;; |      9    10        1           4
;; |     14    15        1           4
;; |     30    31        2          25
;; |     35    36        2          25
;; |     51    52        3          46
;; |     56    57        3          46
;; |     72    73        4          67
;; |     77    78        4          67
;; |     93    94        5          88
;; |     98    99        5          88
;; $ afterimage paths run.aft --function f --find 4.8.1.2
;; | f:4.8.1.2 occurs 6 times in 5 calls to f
;; |
;; | from t  to t  in call  begun at t
;; |      8    11        1           4
;; |     13    16        1           4
;; |     50    53        3          46
;; |     55    58        3          46
;; |     92    95        5          88
;; |     97   100        5          88
;; $ afterimage paths run.aft --find main:1.2.3.4
;; | main:1.2.3.4 occurs 1 time in 1 call to main
;; |
;; | from t  to t  in call  begun at t
;; |     86   107        1           1
;; $ afterimage paths run.aft --find main:2>f:0.1.5
;; | main:2>f:0.1.5 occurs 2 times in 1 call to main
;; |
;; | from t  to t  in call  begun at t
;; |     24    27        1           1
;; |     66    69        1           1
;; $ afterimage paths run.aft --find main:2.3>f:0
;; ! afterimage: run.aft: block 3 of main does not call f: it calls nothing
;; = 125
;; $ afterimage paths run.aft --find f:0.1.2>main:0
;; ! afterimage: run.aft: block 2 of f does not call main: it calls nothing
;; = 125
;; $ afterimage paths run.aft --find main:2>f:1
;; ! afterimage: run.aft: f begins with block 0, so no call begins with block 1
;; = 125
;; $ afterimage paths run.aft --find main:2.4
;; ! afterimage: run.aft: in main, block 4 never follows block 2, which is followed by 3
;; = 125
;; $ afterimage paths run.aft --find main:2.40
;; ! afterimage: run.aft: main has no block 40: its blocks are 0 to 4
;; = 125
;; $ afterimage paths run.aft --find 2.3
;; ! afterimage: run.aft: "2.3" does not name the function of these blocks: name it with --function or as in main:2.3
;; = 125
;; $ afterimage paths run.aft --find main:2;3
;; ! afterimage: run.aft: "main:2;3" is not a sequence of blocks: write numbers with dots between them, as in 2.3.4, main:2.3, main:2.3>f:0.1 for a call, or f:0.1<main:4 for a return
;; = 125
;; $ afterimage paths run.aft --find g:0 --limit 2 --format json
;; | {"schema":"afterimage/paths/2","of":"occurrences","totals":{"pattern":[{"function":{"index":2,"name":"g"},"blocks":[0]}],"count":5,"calls":5},"available":5,"complete":false,"rows":[{"t":21,"end_t":21,"call":1,"entered_t":21},{"t":42,"end_t":42,"call":2,"entered_t":42}]}
;; $ afterimage paths run.aft --format json
;; | {"schema":"afterimage/paths/2","of":"functions","totals":{"functions":3,"calls":11,"traces":4,"blocks":107,"open":0},"available":3,"complete":true,"rows":[{"function":{"index":1,"name":"f"},"calls":5,"traces":2,"blocks":85,"open":0},{"function":{"index":2,"name":"g"},"calls":5,"traces":1,"blocks":5,"open":0},{"function":{"index":0,"name":"main"},"calls":1,"traces":1,"blocks":17,"open":0}]}
;; $ afterimage paths run.aft --function f --format json
;; | {"schema":"afterimage/paths/2","of":"traces","totals":{"function":{"index":1,"name":"f"},"calls":5,"traces":2,"blocks":85,"open":0,"sequences":1,"dictionaries":2},"available":2,"complete":true,"rows":[{"trace":1,"calls":3,"open":0,"length":N,"steps":5,"blocks":[0,1,2,3,4,8,1,2,3,4,8,1,2,3,4,8,9],"dictionary":[[1,2,3,4,8]],"timestamps":[{"block":0,"at":[[1]]},{"block":1,"at":[[2,4]]},{"block":9,"at":[[5]]}]},{"trace":2,"calls":2,"open":0,"length":N,"steps":5,"blocks":[0,1,5,6,7,8,1,5,6,7,8,1,5,6,7,8,9],"dictionary":[[1,5,6,7,8]],"timestamps":[{"block":0,"at":[[1]]},{"block":1,"at":[[2,4]]},{"block":9,"at":[[5]]}]}]}
;; $ afterimage paths run.aft --hot --limit 1 --format json
;; | {"schema":"afterimage/paths/2","of":"hot","totals":{"paths":10,"executions":36,"blocks":107,"instructions":218},"available":10,"complete":false,"rows":[{"node":3,"function":{"index":1,"name":"f"},"blocks":[1,2,3,4,8],"calls":false,"next":1,"count":6,"executed_blocks":30,"instructions":60,"lines":[]}]}
;; $ afterimage paths run.aft --function ff
;; ! afterimage: run.aft: no function is called "ff"; did you mean f?
;; = 125
;; $ afterimage paths FILE
;; ! afterimage: paths.wat is not a recording; make one with: afterimage record paths.wat
;; = 125
;; $ afterimage cfg run.aft --function main --dynamic
;; | main, call 1 of 1, begun at t=1: 17 blocks in 7 steps
;; |
;; | times  node   timestamps
;; |     1  0      {1}
;; |     5  1.2.3  {2:6}
;; |     1  4      {7}
;; |
;; | times  from  to
;; |     1     0  1
;; |     4     1  1
;; |     1     1  4
;; $ afterimage cfg run.aft --function f --dynamic --call 5
;; | f, call 5 of 5, begun at t=88: 17 blocks in 5 steps
;; |
;; | times  node       timestamps
;; |     1  0          {1}
;; |     3  1.2.3.4.8  {2:4}
;; |     1  9          {5}
;; |
;; | times  from  to
;; |     1     0  1
;; |     2     1  1
;; |     1     1  9
;; |
;; | not executed: 3 blocks: 5 6 7
;; $ afterimage cfg run.aft --function f --dynamic --trace 1 --nodes blocks
;; | f, path trace 1 of 2, taken by 3 calls: 17 blocks
;; |
;; | times  node  timestamps
;; |     1  0     {1}
;; |     3  1     {2:12:5}
;; |     3  2     {3:13:5}
;; |     3  3     {4:14:5}
;; |     3  4     {5:15:5}
;; |     3  8     {6:16:5}
;; |     1  9     {17}
;; |
;; | times  from  to
;; |     1     0  1
;; |     3     1  2
;; |     3     2  3
;; |     3     3  4
;; |     3     4  8
;; |     2     8  1
;; |     1     8  9
;; |
;; | not executed: 3 blocks: 5 6 7
;; $ afterimage cfg run.aft --function f --dynamic --format dot
;; | digraph {
;; |   label="f, call 1 of 5, begun at t=4: 17 blocks in 5 steps";
;; |   node [shape=box];
;; |   n0 [label="0\n{1}", style=filled, fillcolor="0.03 0.15 1.0"];
;; |   n1 [label="1.2.3.4.8\n{2:4}", style=filled, fillcolor="0.03 0.15 1.0"];
;; |   n2 [label="9\n{5}", style=filled, fillcolor="0.03 0.15 1.0"];
;; |   n0 -> n1 [label="1"];
;; |   n1 -> n1 [label="2"];
;; |   n1 -> n2 [label="1"];
;; |   b5 [label="5", color=gray, fontcolor=gray, style=dashed];
;; |   b6 [label="6", color=gray, fontcolor=gray, style=dashed];
;; |   b7 [label="7", color=gray, fontcolor=gray, style=dashed];
;; |   n1 -> b5 [color=gray, fontcolor=gray, style=dashed];
;; |   b5 -> b6 [color=gray, fontcolor=gray, style=dashed];
;; |   b6 -> b7 [color=gray, fontcolor=gray, style=dashed];
;; |   b7 -> n1 [color=gray, fontcolor=gray, style=dashed];
;; | }
;; $ afterimage cfg run.aft --function f --dynamic --format json
;; | {"schema":"afterimage/dynamic-cfg/2","function":{"index":1,"name":"f"},"call":{"number":1,"of":5,"entered_t":4,"returned":true},"blocks":17,"steps":5,"nodes":[{"blocks":[0],"count":1,"timestamps":[[1]]},{"blocks":[1,2,3,4,8],"count":3,"timestamps":[[2,4]]},{"blocks":[9],"count":1,"timestamps":[[5]]}],"edges":[{"from":0,"to":1,"count":1},{"from":1,"to":1,"count":2},{"from":1,"to":2,"count":1}],"not_executed":[5,6,7]}
;; $ afterimage cfg run.aft --function f --dynamic --call 6
;; ! afterimage: run.aft: f: it was called 5 times, so there is no call 6; the last is call 5
;; = 125
;; $ afterimage cfg run.aft --function f --dynamic --trace 3
;; ! afterimage: run.aft: f: there is no path trace 3: the function has 2, numbered from 1, the most frequent first
;; = 125
;; $ afterimage cfg run.aft --function idle --dynamic
;; ! afterimage: run.aft: idle was never called
;; = 125
;; $ afterimage cfg FILE --function f --dynamic
;; ! afterimage: paths.wat: --dynamic shows what a call did, so it needs a recording; make one with: afterimage record paths.wat
;; = 125
