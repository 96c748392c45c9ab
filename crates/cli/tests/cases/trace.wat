;; main goes round a loop three times and calls f, which calls itself.
(module
  (func $main (export "main") (local $i i32)
    (local.set $i (i32.const 3))
    (loop $again
      (drop (call $f (local.get $i)))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    nop)
  (func $f (param $n i32) (result i32)
    (if (result i32) (i32.le_s (local.get $n) (i32.const 1))
      (then (i32.const 1))
      (else (i32.add (i32.const 1) (call $f (i32.sub (local.get $n) (i32.const 1)))))))
  (func $idle))

;; $ afterimage record --invoke main -o run.aft FILE
;; ! afterimage: trace.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage trace run.aft
;; |      t  depth  block     offset      function
;; |      1      0  block0    0x2a        main
;; |      2      0  block1    0x30        main
;; |      3      1  block0    0x43          f
;; |      4      1  block2    0x4d          f
;; |      5      2  block0    0x43            f
;; |      6      2  block2    0x4d            f
;; |      7      3  block0    0x43              f
;; |      8      3  block1    0x4a              f
;; |      9      2  block3    0x56            f
;; |     10      1  block3    0x56          f
;; |     11      0  block2    0x34        main
;; |     12      0  block1    0x30        main
;; |     13      1  block0    0x43          f
;; |     14      1  block2    0x4d          f
;; |     15      2  block0    0x43            f
;; |     16      2  block1    0x4a            f
;; |     17      1  block3    0x56          f
;; |     18      0  block2    0x34        main
;; |     19      0  block1    0x30        main
;; |     20      1  block0    0x43          f
;; |     21      1  block1    0x4a          f
;; |     22      0  block2    0x34        main
;; |     23      0  block3    0x3f        main
;; | the run returned
;; ! afterimage: path of 23 executed blocks in 16 bytes
;; $ afterimage trace run.aft --from 3 --limit 4
;; |      t  depth  block     offset      function
;; |      3      1  block0    0x43        f
;; |      4      1  block2    0x4d        f
;; |      5      2  block0    0x43          f
;; |      6      2  block2    0x4d          f
;; | … and 17 more: continue with --from 7, or --limit all
;; $ afterimage trace run.aft --from 20% --reverse
;; |      t  depth  block     offset      function
;; |      4      1  block2    0x4d        f
;; |      3      1  block0    0x43        f
;; |      2      0  block1    0x30        main
;; |      1      0  block0    0x2a        main
;; $ afterimage trace run.aft --from 4 --to 2 --reverse
;; |      t  depth  block     offset      function
;; |      4      1  block2    0x4d        f
;; |      3      1  block0    0x43        f
;; |      2      0  block1    0x30        main
;; $ afterimage trace run.aft --to 22 --reverse
;; |      t  depth  block     offset      function
;; |     23      0  block3    0x3f        main
;; |     22      0  block2    0x34        main
;; $ afterimage trace run.aft --from 9 --reverse --limit 2
;; |      t  depth  block     offset      function
;; |      9      2  block3    0x56        f
;; |      8      3  block1    0x4a          f
;; | … and 7 more: continue with --from 7, or --limit all
;; $ afterimage trace run.aft --from 2 --to 4 --reverse
;; ! afterimage: run.aft: the stretch is empty: --reverse goes back from --from to --to, but --from is t=2, which is before --to, t=4: exchange them
;; = 125
;; $ afterimage trace run.aft --last 3 --reverse
;; |      t  depth  block     offset      function
;; |     23      0  block3    0x3f        main
;; |     22      0  block2    0x34        main
;; |     21      1  block1    0x4a          f
;; $ afterimage trace run.aft --function main --from f#2
;; |      t  depth  block     offset      function
;; |     11      0  block2    0x34        main
;; |     12      0  block1    0x30        main
;; |     18      0  block2    0x34        main
;; |     19      0  block1    0x30        main
;; |     22      0  block2    0x34        main
;; |     23      0  block3    0x3f        main
;; $ afterimage trace run.aft --level path
;; |      t  depth  offset      function                        path
;; |      1      0  0x2a        main                            0
;; |      2      0  0x30        main                            1
;; |      3      1  0x43          f                             0.2
;; |      5      2  0x43            f                           0.2
;; |      7      3  0x43              f                         0.1
;; |      9      2  0x56            f                           3
;; |     10      1  0x56          f                             3
;; |     11      0  0x34        main                            2
;; |     12      0  0x30        main                            1
;; |     13      1  0x43          f                             0.2
;; |     15      2  0x43            f                           0.1
;; |     17      1  0x56          f                             3
;; |     18      0  0x34        main                            2
;; |     19      0  0x30        main                            1
;; |     20      1  0x43          f                             0.1
;; |     22      0  0x34        main                            2.3
;; | the run returned
;; $ afterimage trace run.aft --level path --function f --last 2
;; |      t  depth  offset      function                        path
;; |     17      1  0x56        f                               3
;; |     20      1  0x43        f                               0.1
;; $ afterimage trace run.aft --level call
;; |      t   blocks  depth  called at               function
;; |      1      23       0                          main
;; |      3       8       1  0x30 block1               f
;; |      5       5       2  0x4d block2                 f
;; |      7       2       3  0x4d block2                   f
;; |     13       5       1  0x30 block1               f
;; |     15       2       2  0x4d block2                 f
;; |     20       2       1  0x30 block1               f
;; | the run returned
;; $ afterimage trace run.aft --level call --from f#3 --depth 1
;; |      t   blocks  depth  called at               function
;; |      1        …      0  (open before)           main
;; |      3        …      1  (open before)             f
;; |      5        …      2  (open before)               f
;; |      7       2       3  0x4d block2                   f
;; |     13       5       1  0x30 block1               f
;; |     15       2       2  0x4d block2                 f
;; |     20       2       1  0x30 block1               f
;; | the run returned
;; $ afterimage trace run.aft --level call --function f --reverse --limit 2
;; |      t   blocks  depth  called at               function
;; |     20       2       1  0x30 block1             f#6
;; |     15       2       2  0x4d block2             f#5
;; | … and 4 more: continue with --from 13, or --limit all
;; $ afterimage trace run.aft --from f#last --to end --format json
;; | {"schema":"afterimage/trace/2","level":"block","first":20,"last":23,"length":N,"reverse":false,"function":null}
;; | {"t":20,"depth":1,"function":{"index":1,"name":"f"},"block":0,"offset":67,"source":null}
;; | {"t":21,"depth":1,"function":{"index":1,"name":"f"},"block":1,"offset":74,"source":null}
;; | {"t":22,"depth":0,"function":{"index":0,"name":"main"},"block":2,"offset":52,"source":null}
;; | {"t":23,"depth":0,"function":{"index":0,"name":"main"},"block":3,"offset":63,"source":null}
;; $ afterimage trace run.aft --from f#last --to f#last --format json --level call
;; | {"schema":"afterimage/trace/2","level":"call","first":20,"last":20,"length":N,"reverse":false,"function":null}
;; | {"t":20,"end_t":21,"blocks":2,"depth":1,"function":{"index":1,"name":"f"},"from":{"function":{"index":0,"name":"main"},"block":1,"source":null}}
;; $ afterimage trace run.aft --to 5 --format json --level path
;; | {"schema":"afterimage/trace/2","level":"path","first":1,"last":5,"length":N,"reverse":false,"function":null}
;; | {"t":1,"depth":0,"function":{"index":0,"name":"main"},"path":[0],"source":null}
;; | {"t":2,"depth":0,"function":{"index":0,"name":"main"},"path":[1],"source":null}
;; | {"t":3,"depth":1,"function":{"index":1,"name":"f"},"path":[0,2],"source":null}
;; | {"t":5,"depth":2,"function":{"index":1,"name":"f"},"path":[0,2],"source":null}
;; $ afterimage calls run.aft
;; | 7 calls to 2 functions in 23 blocks
;; |
;; |  share  inclusive  self  calls  callers  callees  function
;; | 100.0%         23     8      1        1        1  main
;; |  65.2%         15    15      6        2        1  f
;; $ afterimage calls run.aft --function f
;; | f: 6 calls, 15 blocks of its own, 15 with everything that it calls (65.2% of the run)
;; |
;; | calls  inclusive  self  called by
;; |     3         15     8  main
;; |     3          0     7  f
;; |
;; | calls  inclusive  self  calls
;; |     3          0     7  f
;; $ afterimage calls run.aft --function f --call 3
;; | f#3: from t=7 to t=8, 2 blocks
;; |
;; | depth       t  called at               function
;; |     3       7  0x4d block2             f
;; |     2       5  0x4d block2             f
;; |     1       3  0x30 block1             f
;; |     0       1  (host)                  main
;; $ afterimage calls run.aft --function f --call last --format json
;; | {"schema":"afterimage/call/2","call":6,"stack":[{"t":20,"end_t":21,"blocks":2,"depth":1,"function":{"index":1,"name":"f"},"from":{"function":{"index":0,"name":"main"},"block":1,"source":null}},{"t":1,"end_t":23,"blocks":23,"depth":0,"function":{"index":0,"name":"main"},"from":null}]}
;; $ afterimage calls run.aft --format json
;; | {"schema":"afterimage/calls/2","blocks":23,"functions":[{"function":{"index":0,"name":"main"},"calls":1,"own":8,"inclusive":23},{"function":{"index":1,"name":"f"},"calls":6,"own":15,"inclusive":15}],"edges":[{"caller":null,"callee":{"index":0,"name":"main"},"calls":1,"own":8,"inclusive":23},{"caller":{"index":0,"name":"main"},"callee":{"index":1,"name":"f"},"calls":3,"own":8,"inclusive":15},{"caller":{"index":1,"name":"f"},"callee":{"index":1,"name":"f"},"calls":3,"own":7,"inclusive":0}]}
;; $ afterimage calls run.aft --format csv
;; | caller,caller_name,callee,callee_name,calls,own,inclusive
;; | ,,0,main,1,8,23
;; | 0,main,1,f,3,8,15
;; | 1,f,1,f,3,7,0
;; $ afterimage calls run.aft --function main --format csv
;; | caller,caller_name,callee,callee_name,calls,own,inclusive
;; | ,,0,main,1,8,23
;; | 0,main,1,f,3,8,15
;; $ afterimage calls run.aft --function f --call 3 --format csv
;; ! afterimage: run.aft: a call cannot be written as csv: choose --format text or json
;; = 125
;; $ afterimage trace run.aft --from 0
;; ! afterimage: run.aft: --from 0: the run has 23 blocks, from t=1 to t=23; there is no 0; the nearest is t=1
;; = 125
;; $ afterimage trace run.aft --from t=1000
;; ! afterimage: run.aft: --from t=1000: the run has 23 blocks, from t=1 to t=23; there is no t=1000; the nearest is t=23
;; = 125
;; $ afterimage trace run.aft --to -1000
;; ! afterimage: run.aft: --to -1000: the run has 23 blocks, from t=1 to t=23; there is no -1000; the nearest is t=1
;; = 125
;; $ afterimage trace run.aft --from 101%
;; ! afterimage: run.aft: --from 101%: "101%" is not a share of the run: write 0% to 100%, with at most nine decimals
;; = 125
;; $ afterimage trace run.aft --from 5 --to 4
;; ! afterimage: run.aft: the stretch is empty: --from is t=5, which is after --to, t=4
;; = 125
;; $ afterimage trace run.aft --from ff#1
;; ! afterimage: run.aft: --from ff#1: no function is called "ff"; did you mean f?
;; = 125
;; $ afterimage trace run.aft --from f#99
;; ! afterimage: run.aft: --from f#99: f was called 6 times, so there is no #99; the last is #6
;; = 125
;; $ afterimage trace run.aft --from idle
;; ! afterimage: run.aft: --from idle: idle was never called
;; = 125
;; $ afterimage trace run.aft --from f.c:12#1
;; ! afterimage: run.aft: --from f.c:12#1: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage trace run.aft --function idle
;; ! afterimage: run.aft: idle was never called
;; = 125
;; $ afterimage trace run.aft --function f --to 2
;; ! afterimage: run.aft: f executes nothing from t=1 to t=2; the nearest time is t=3
;; = 125
;; $ afterimage trace run.aft --last 0
;; ! error: invalid value '0' for '--last <N>': give a number from 1 on
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage trace run.aft --level call --reverse
;; |      t   blocks  depth  called at               function
;; |     20       2       1  0x30 block1               f
;; |     15       2       2  0x4d block2                 f
;; |     13       5       1  0x30 block1               f
;; |      7       2       3  0x4d block2                   f
;; |      5       5       2  0x4d block2                 f
;; |      3       8       1  0x30 block1               f
;; |      1      23       0                          main
;; $ afterimage trace run.aft --depth 2
;; ! afterimage: --depth limits a tree of calls: use it with --level call, and without --function
;; = 125
;; $ afterimage trace run.aft --limit none
;; ! error: invalid value 'none' for '--limit <N|all>': give a number from 1 on, or all
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage calls run.aft --function idle
;; | idle was never called
;; $ afterimage calls run.aft --function g
;; ! afterimage: run.aft: no function is called "g"; did you mean f?
;; = 125
;; $ afterimage calls run.aft --function f --call 0
;; ! error: invalid value '0' for '--call <K|last>': write a number of at least 1, or last
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage calls run.aft --function f --call 7
;; ! afterimage: run.aft: f: it was called 6 times, so there is no call 7; the last is call 6
;; = 125
;; $ afterimage calls run.aft --function idle --call 1
;; ! afterimage: run.aft: idle was never called
;; = 125
;; $ afterimage calls run.aft --function f --call first
;; ! error: invalid value 'first' for '--call <K|last>': write a number of at least 1, or last
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage trace FILE
;; ! afterimage: trace.wat is not a recording; make one with: afterimage record trace.wat
;; = 125
