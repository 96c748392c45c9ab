;; What was left out of a path on purpose: calls keep the numbers of the whole run, and what cannot be told is refused.
(module
  (func $main (export "main") (local $i i32)
    (local.set $i (i32.const 6))
    (loop $again
      (call $step (i32.and (local.get $i) (i32.const 1)))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $leaf))
  (func $step (param $deep i32)
    (if (local.get $deep) (then (call $leaf)))
    nop)
  (func $leaf (block (br 0)))
  (func $idle))

;; $ afterimage record --invoke main -o run.aft FILE
;; ! afterimage: filters.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage trace run.aft --level call
;; |      t   blocks  depth  called at               function
;; |      1      33       0                          main
;; |      3       2       1  0x30 block1               step
;; |      7       4       1  0x30 block1               step
;; |      9       1       2  0x4a block1                 leaf
;; |     13       2       1  0x30 block1               step
;; |     17       4       1  0x30 block1               step
;; |     19       1       2  0x4a block1                 leaf
;; |     23       2       1  0x30 block1               step
;; |     27       4       1  0x30 block1               step
;; |     29       1       2  0x4a block1                 leaf
;; |     33       1       1  0x41 block3               leaf
;; | the run returned
;; ! afterimage: path of 33 executed blocks in 20 bytes
;; $ afterimage trace run.aft --level call --reverse
;; |      t   blocks  depth  called at               function
;; |     33       1       1  0x41 block3               leaf
;; |     29       1       2  0x4a block1                 leaf
;; |     27       4       1  0x30 block1               step
;; |     23       2       1  0x30 block1               step
;; |     19       1       2  0x4a block1                 leaf
;; |     17       4       1  0x30 block1               step
;; |     13       2       1  0x30 block1               step
;; |      9       1       2  0x4a block1                 leaf
;; |      7       4       1  0x30 block1               step
;; |      3       2       1  0x30 block1               step
;; |      1      33       0                          main
;; $ afterimage trace run.aft --level call --last 3
;; |      t   blocks  depth  called at               function
;; |      1        …      0  (open before)           main
;; |     27       4       1  0x30 block1               step
;; |     29       1       2  0x4a block1                 leaf
;; |     33       1       1  0x41 block3               leaf
;; | the run returned
;; $ afterimage trace run.aft --level call --last 3 --depth 2
;; |      t   blocks  depth  called at               function
;; |      1        …      0  (open before)           main
;; |     23       2       1  0x30 block1               step
;; |     27       4       1  0x30 block1               step
;; |     33       1       1  0x41 block3               leaf
;; | the run returned
;; $ afterimage trace run.aft --level call --reverse --to leaf#2 --limit 2
;; |      t   blocks  depth  called at               function
;; |     33       1       1  0x41 block3               leaf
;; |     29       1       2  0x4a block1                 leaf
;; | … and more: continue with --from 27, or --limit all
;; $ afterimage paths run.aft --find leaf:0<step:2
;; | leaf:0<step:2 occurs 3 times in 4 calls to leaf
;; |
;; | from t  to t  in call  begun at t
;; |      9    10        1           9
;; |     19    20        2          19
;; |     29    30        3          29
;; $ afterimage paths run.aft --find main:1>step:0.1>leaf:0<step:2<main:2
;; | main:1>step:0.1>leaf:0<step:2<main:2 occurs 3 times in 1 call to main
;; |
;; | from t  to t  in call  begun at t
;; |      6    11        1           1
;; |     16    21        1           1
;; |     26    31        1           1
;; $ afterimage paths run.aft --find leaf:0<main:4
;; ! afterimage: run.aft: vertex 4 of main is not code: nothing is executed there
;; = 125
;; $ afterimage paths run.aft --find step:2<main:2 --limit 1 --format json
;; | {"schema":"afterimage/paths/2","of":"occurrences","totals":{"pattern":[{"function":{"index":1,"name":"step"},"blocks":[2]},{"function":{"index":0,"name":"main"},"blocks":[2],"returned":true}],"count":6,"calls":6},"available":6,"complete":false,"rows":[{"t":4,"end_t":5,"call":1,"entered_t":3}]}
;; $ afterimage paths run.aft --find leaf:0<step:0
;; ! afterimage: run.aft: no call in step continues with its block 0, so nothing returns there
;; = 125
;; $ afterimage paths run.aft --find main:1>step:0<main:2
;; ! afterimage: run.aft: block 0 of step cannot end a call; only block 2 can
;; = 125
;; $ afterimage paths run.aft --find step:0>leaf:0<main:2
;; ! afterimage: run.aft: block 0 of step does not call leaf: it calls nothing
;; = 125
;; $ afterimage paths run.aft --find step:1>leaf:0<main:2
;; ! afterimage: run.aft: in the pattern, step calls leaf, so leaf cannot return to main
;; = 125
;; $ afterimage cfg run.aft --function leaf --dynamic --call last
;; | leaf, call 4 of 4, begun at t=33: 1 block in 1 step
;; |
;; | times  node  timestamps
;; |     1  0     {1}
;; $ afterimage cfg run.aft --function leaf --dynamic --call 5
;; ! afterimage: run.aft: leaf: it was called 4 times, so there is no call 5; the last is call 4
;; = 125
;; $ afterimage trace run.aft --from 1,000
;; ! afterimage: run.aft: --from 1,000: the run has 33 blocks, from t=1 to t=33; there is no 1,000; the nearest is t=33
;; = 125
;; $ afterimage trace run.aft --from 1,00
;; ! afterimage: run.aft: --from 1,00: "1,00" is not a time: write a number of executed blocks, from t=1 to t=33
;; = 125
;; $ afterimage trace run.aft --from mian
;; ! afterimage: run.aft: --from mian: no function is called "mian"; did you mean main?
;; = 125
;; $ afterimage build --lens paths --again --include leaf run.aft
;; ! afterimage: path of 33 executed blocks in 20 bytes, without functions other than leaf
;; $ afterimage trace run.aft
;; |      t  depth  block     offset      function
;; |      1  … 8 blocks were left out
;; |      9      2  block0    0x53        leaf
;; |     10  … 9 blocks were left out
;; |     19      2  block0    0x53        leaf
;; |     20  … 9 blocks were left out
;; |     29      2  block0    0x53        leaf
;; |     30  … 3 blocks were left out
;; |     33      1  block0    0x53        leaf
;; | the run returned
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --level call --function step
;; |      t   blocks  depth  called at               function
;; |      7       4       1                          step#2
;; |     17       4       1                          step#4
;; |     27       4       1                          step#6
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --from step#5 --to step#5
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: --from step#5: step: call 5 was left out when the path was built, and the nearest kept call is 4
;; = 125
;; $ afterimage trace run.aft --from step#4
;; |      t  depth  block     offset      function
;; |     17  … 2 blocks were left out
;; |     19      2  block0    0x53        leaf
;; |     20  … 9 blocks were left out
;; |     29      2  block0    0x53        leaf
;; |     30  … 3 blocks were left out
;; |     33      1  block0    0x53        leaf
;; | the run returned
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --from step#7
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: --from step#7: step: it was called 6 times, so there is no call 7; the last is call 6
;; = 125
;; $ afterimage trace run.aft --from step#last
;; |      t  depth  block     offset      function
;; |     27  … 2 blocks were left out
;; |     29      2  block0    0x53        leaf
;; |     30  … 3 blocks were left out
;; |     33      1  block0    0x53        leaf
;; | the run returned
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --from leaf#last
;; |      t  depth  block     offset      function
;; |     33      1  block0    0x53        leaf
;; | the run returned
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --level call --reverse
;; |      t   blocks  depth  called at               function
;; |     33       1       1                            leaf
;; |     29       1       2                              leaf
;; |     27       4       1                            step
;; |     19       1       2                              leaf
;; |     17       4       1                            step
;; |      9       1       2                              leaf
;; |      7       4       1                            step
;; |      1      33       0                          main
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage calls run.aft --function step --call 3
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: step: call 3 was left out when the path was built, and the nearest kept call is 2
;; = 125
;; $ afterimage calls run.aft --function step --call 2
;; | step#2: from t=7 to t=10, 4 blocks
;; |
;; | depth       t  called at               function
;; |     1       7  (left out)              step
;; |     0       1  (host)                  main
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage cfg run.aft --function step --dynamic --call 1
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: step: call 1 was left out when the path was built, and the nearest kept call is 2
;; = 125
;; $ afterimage paths run.aft --find leaf:0
;; | leaf:0 occurs 4 times in 4 calls to leaf
;; |
;; | from t  to t  in call  begun at t
;; |      9     9        1           9
;; |     19    19        2          19
;; |     29    29        3          29
;; |     33    33        4          33
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage paths run.aft --find step:1>leaf:0
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; ! afterimage: run.aft: blocks of step were left out when the path was built; build the whole path with `afterimage build --lens paths --again`
;; = 125
;; $ afterimage export run.aft --format collapsed
;; | main;[left out] 20
;; | main;step;[left out] 9
;; | main;step;leaf 3
;; | main;leaf 1
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage export run.aft --format perfetto
;; | {"displayTimeUnit":"ms","otherData":{"calls_deeper_are_merged":256,"calls_shorter_are_merged":1,"clock":"executed basic blocks; 1 block is shown as 1 microsecond","first_block":1,"last_block":33,"program":"filters.wat","tool":"afterimage"},"traceEvents":[
;; | {"args":{"name":"filters.wat"},"name":"process_name","ph":"M","pid":1,"tid":1},
;; | {"args":{"name":"executed basic blocks; 1 block is shown as 1 microsecond"},"name":"thread_name","ph":"M","pid":1,"tid":1},
;; | {"ph":"B","pid":1,"tid":1,"ts":0,"name":"main"},
;; | {"ph":"X","pid":1,"tid":1,"ts":0,"dur":6,"name":"… left out when the path was built","args":{"calls":0,"blocks":6,"left_out":6}},
;; | {"ph":"B","pid":1,"tid":1,"ts":6,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":6,"dur":2,"name":"… left out when the path was built","args":{"calls":0,"blocks":2,"left_out":2}},
;; | {"ph":"B","pid":1,"tid":1,"ts":8,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":9,"name":"leaf"},
;; | {"ph":"X","pid":1,"tid":1,"ts":9,"dur":1,"name":"… left out when the path was built","args":{"calls":0,"blocks":1,"left_out":1}},
;; | {"ph":"E","pid":1,"tid":1,"ts":10,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":10,"dur":6,"name":"… left out when the path was built","args":{"calls":0,"blocks":6,"left_out":6}},
;; | {"ph":"B","pid":1,"tid":1,"ts":16,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":16,"dur":2,"name":"… left out when the path was built","args":{"calls":0,"blocks":2,"left_out":2}},
;; | {"ph":"B","pid":1,"tid":1,"ts":18,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":19,"name":"leaf"},
;; | {"ph":"X","pid":1,"tid":1,"ts":19,"dur":1,"name":"… left out when the path was built","args":{"calls":0,"blocks":1,"left_out":1}},
;; | {"ph":"E","pid":1,"tid":1,"ts":20,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":20,"dur":6,"name":"… left out when the path was built","args":{"calls":0,"blocks":6,"left_out":6}},
;; | {"ph":"B","pid":1,"tid":1,"ts":26,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":26,"dur":2,"name":"… left out when the path was built","args":{"calls":0,"blocks":2,"left_out":2}},
;; | {"ph":"B","pid":1,"tid":1,"ts":28,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":29,"name":"leaf"},
;; | {"ph":"X","pid":1,"tid":1,"ts":29,"dur":1,"name":"… left out when the path was built","args":{"calls":0,"blocks":1,"left_out":1}},
;; | {"ph":"E","pid":1,"tid":1,"ts":30,"name":"step"},
;; | {"ph":"X","pid":1,"tid":1,"ts":30,"dur":2,"name":"… left out when the path was built","args":{"calls":0,"blocks":2,"left_out":2}},
;; | {"ph":"B","pid":1,"tid":1,"ts":32,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":33,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":33,"name":"main"}
;; | ]}
;; ! afterimage: the path in run.aft lacks functions other than leaf: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage build --lens paths --again --window 9..15 run.aft
;; ! afterimage: path of 33 executed blocks in 19 bytes, without what is outside 9..15
;; $ afterimage trace run.aft
;; |      t  depth  block     offset      function
;; |      1  … 8 blocks were left out
;; |      9      2  block0    0x53        leaf
;; |     10      1  block2    0x4d        step
;; |     11      0  block2    0x37        main
;; |     12      0  block1    0x30        main
;; |     13      1  block0    0x46          step
;; |     14      1  block2    0x4d          step
;; |     15      0  block2    0x37        main
;; |     16  … 18 blocks were left out
;; | the run returned
;; ! afterimage: the path in run.aft lacks what is outside 9..15: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --level path
;; |      t  depth  offset      function                        path
;; |      1  … 8 blocks were left out
;; |      9      2  0x53        leaf                            0
;; |     10      1  0x4d        step                            2
;; |     11      0  0x37        main                            2
;; |     12      0  0x30        main                            1
;; |     13      1  0x46          step                          0
;; |     14      1  0x4d          step                          2
;; |     15      0  0x37        main                            2
;; |     16  … 18 blocks were left out
;; | the run returned
;; ! afterimage: the path in run.aft lacks what is outside 9..15: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage trace run.aft --level call --function step
;; |      t   blocks  depth  called at               function
;; |      7       4       1                          step#2
;; |     13       2       1  0x30 block1             step#3
;; ! afterimage: the path in run.aft lacks what is outside 9..15: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
;; $ afterimage calls run.aft --function step --call 3
;; | step#3: from t=13 to t=14, 2 blocks
;; |
;; | depth       t  called at               function
;; |     1      13  0x30 block1             step
;; |     0       1  (host)                  main
;; ! afterimage: the path in run.aft lacks what is outside 9..15: only the rest is counted, but calls are numbered as in the whole run; for exact counts of everything: afterimage profile run.aft
