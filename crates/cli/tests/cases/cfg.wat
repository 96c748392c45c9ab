;; The graph of a function in each format.
(module
  (import "env" "log" (func $log (param i32)))
  (func $collatz (export "collatz") (param $n i64) (result i32) (local $steps i32)
    (block $done
      (loop $again
        (br_if $done (i64.le_u (local.get $n) (i64.const 1)))
        (local.set $n
          (if (result i64) (i64.eqz (i64.and (local.get $n) (i64.const 1)))
            (then (i64.shr_u (local.get $n) (i64.const 1)))
            (else (i64.add (i64.mul (local.get $n) (i64.const 3)) (i64.const 1)))))
        (local.set $steps (i32.add (local.get $steps) (i32.const 1)))
        (br $again)))
    (call $log (local.get $steps))
    (local.get $steps)))

;; $ afterimage cfg FILE --function collatz
;; | func1 collatz: 9 blocks, 10 edges
;; | block0: op0..op0 0x39..0x39 fall
;; |   edge0: block1 fall
;; | block1: op2..op6 0x3d..0x44 branch
;; |   edge1: block2 not taken op5
;; |   edge2: block6 taken op5
;; | block2: op6..op11 0x44..0x4c branch
;; |   edge3: block3 then op10
;; |   edge4: block4 else op10
;; | block3: op11..op14 0x4c..0x51 fall
;; |   edge5: block5 fall op13
;; | block4: op15..op20 0x52..0x5a fall
;; |   edge6: block5 fall op19
;; | block5: op21..op27 0x5b..0x66 jump
;; |   edge7: block1 jump op26 back
;; | block6: op29..op31 0x68..0x6c call func0
;; |   edge8: block7 call return op30
;; | block7: op31..op32 0x6c..0x6e return
;; |   edge9: block8 fall op31
;; | block8: exit
;; $ afterimage cfg FILE --function 1 --format dot
;; | digraph {
;; |   label="collatz";
;; |   node [shape=box];
;; |   0 [label="block0\nop0..op0 0x39..0x39 fall", shape=box];
;; |   1 [label="block1\nop2..op6 0x3d..0x44 branch", shape=box];
;; |   2 [label="block2\nop6..op11 0x44..0x4c branch", shape=box];
;; |   3 [label="block3\nop11..op14 0x4c..0x51 fall", shape=box];
;; |   4 [label="block4\nop15..op20 0x52..0x5a fall", shape=box];
;; |   5 [label="block5\nop21..op27 0x5b..0x66 jump", shape=box];
;; |   6 [label="block6\nop29..op31 0x68..0x6c call func0", shape=box];
;; |   7 [label="block7\nop31..op32 0x6c..0x6e return", shape=box];
;; |   8 [label="block8\nexit", shape=doublecircle];
;; |   0 -> 1 [label="edge0 fall"];
;; |   1 -> 2 [label="edge1 not taken"];
;; |   1 -> 6 [label="edge2 taken"];
;; |   2 -> 3 [label="edge3 then"];
;; |   2 -> 4 [label="edge4 else"];
;; |   3 -> 5 [label="edge5 fall"];
;; |   4 -> 5 [label="edge6 fall"];
;; |   5 -> 1 [label="edge7 jump", style=dashed];
;; |   6 -> 7 [label="edge8 call return"];
;; |   7 -> 8 [label="edge9 fall"];
;; | }
;; $ afterimage cfg FILE --function func[1] --format json
;; | {"schema":"afterimage/cfg/2","function":{"index":1,"name":"collatz"},"root":0,"exit":8,"blocks":[{"block":0,"kind":"code","first_op":0,"end_op":0,"offset":57,"end":"fall"},{"block":1,"kind":"code","first_op":2,"end_op":6,"offset":61,"end":"branch"},{"block":2,"kind":"code","first_op":6,"end_op":11,"offset":68,"end":"branch"},{"block":3,"kind":"code","first_op":11,"end_op":14,"offset":76,"end":"fall"},{"block":4,"kind":"code","first_op":15,"end_op":20,"offset":82,"end":"fall"},{"block":5,"kind":"code","first_op":21,"end_op":27,"offset":91,"end":"jump"},{"block":6,"kind":"code","first_op":29,"end_op":31,"offset":104,"end":"call func0"},{"block":7,"kind":"code","first_op":31,"end_op":32,"offset":108,"end":"return"},{"block":8,"kind":"exit","first_op":32,"end_op":32,"offset":111,"end":"exit"}],"edges":[{"edge":0,"from":0,"to":1,"kind":"fall","back":false,"op":null},{"edge":1,"from":1,"to":2,"kind":"not taken","back":false,"op":5},{"edge":2,"from":1,"to":6,"kind":"taken","back":false,"op":5},{"edge":3,"from":2,"to":3,"kind":"then","back":false,"op":10},{"edge":4,"from":2,"to":4,"kind":"else","back":false,"op":10},{"edge":5,"from":3,"to":5,"kind":"fall","back":false,"op":13},{"edge":6,"from":4,"to":5,"kind":"fall","back":false,"op":19},{"edge":7,"from":5,"to":1,"kind":"jump","back":true,"op":26},{"edge":8,"from":6,"to":7,"kind":"call return","back":false,"op":30},{"edge":9,"from":7,"to":8,"kind":"fall","back":false,"op":31}]}
;; $ afterimage cfg FILE --function colatz
;; ! afterimage: cfg.wat: no function is called "colatz"; did you mean collatz?
;; = 125
;; $ afterimage cfg FILE --function log
;; ! afterimage: cfg.wat: log is imported, so it has no graph
;; = 125
;; $ afterimage cfg FILE --function 2
;; ! afterimage: cfg.wat: there is no function 2; the last is 1
;; = 125
;; $ afterimage cfg FILE
;; ! error: cfg needs --function F; for example: afterimage cfg app.wasm --function main
;; = 125
;; $ afterimage cfg --counters quick FILE --function collatz
;; | func1 collatz: 9 blocks, 10 edges
;; | block0: op0..op0 0x39..0x39 fall
;; |   edge0: block1 fall
;; | block1: op2..op6 0x3d..0x44 branch
;; |   edge1: block2 not taken op5
;; |   edge2: block6 taken op5
;; | block2: op6..op11 0x44..0x4c branch
;; |   edge3: block3 then op10
;; |   edge4: block4 else op10
;; | block3: op11..op14 0x4c..0x51 fall
;; |   edge5: block5 fall op13
;; | block4: op15..op20 0x52..0x5a fall
;; |   edge6: block5 fall op19
;; | block5: op21..op27 0x5b..0x66 jump
;; |   edge7: block1 jump op26 back
;; | block6: op29..op31 0x68..0x6c call func0
;; |   edge8: block7 call return op30
;; | block7: op31..op32 0x6c..0x6e return
;; |   edge9: block8 fall op31
;; | block8: exit
;; | counter0: edge5
;; | counter1: edge6
;; | counter2: edge9
;; $ afterimage cfg --counters slow FILE --function collatz
;; | func1 collatz: 9 blocks, 10 edges
;; | block0: op0..op0 0x39..0x39 fall
;; |   edge0: block1 fall
;; | block1: op2..op6 0x3d..0x44 branch
;; |   edge1: block2 not taken op5
;; |   edge2: block6 taken op5
;; | block2: op6..op11 0x44..0x4c branch
;; |   edge3: block3 then op10
;; |   edge4: block4 else op10
;; | block3: op11..op14 0x4c..0x51 fall
;; |   edge5: block5 fall op13
;; | block4: op15..op20 0x52..0x5a fall
;; |   edge6: block5 fall op19
;; | block5: op21..op27 0x5b..0x66 jump
;; |   edge7: block1 jump op26 back
;; | block6: op29..op31 0x68..0x6c call func0
;; |   edge8: block7 call return op30
;; | block7: op31..op32 0x6c..0x6e return
;; |   edge9: block8 fall op31
;; | block8: exit
;; | counter0: block0
;; | counter1: block1
;; | counter2: block2
;; | counter3: block3
;; | counter4: block4
;; | counter5: block5
;; | counter6: block6
;; | counter7: block7
;; $ afterimage cfg --counters program --format json FILE --function collatz
;; | {"schema":"afterimage/cfg/2","function":{"index":1,"name":"collatz"},"root":0,"exit":8,"blocks":[{"block":0,"kind":"code","first_op":0,"end_op":0,"offset":57,"end":"fall"},{"block":1,"kind":"code","first_op":2,"end_op":6,"offset":61,"end":"branch"},{"block":2,"kind":"code","first_op":6,"end_op":11,"offset":68,"end":"branch"},{"block":3,"kind":"code","first_op":11,"end_op":14,"offset":76,"end":"fall"},{"block":4,"kind":"code","first_op":15,"end_op":20,"offset":82,"end":"fall"},{"block":5,"kind":"code","first_op":21,"end_op":27,"offset":91,"end":"jump"},{"block":6,"kind":"code","first_op":29,"end_op":31,"offset":104,"end":"call func0"},{"block":7,"kind":"code","first_op":31,"end_op":32,"offset":108,"end":"return"},{"block":8,"kind":"exit","first_op":32,"end_op":32,"offset":111,"end":"exit"}],"edges":[{"edge":0,"from":0,"to":1,"kind":"fall","back":false,"op":null},{"edge":1,"from":1,"to":2,"kind":"not taken","back":false,"op":5},{"edge":2,"from":1,"to":6,"kind":"taken","back":false,"op":5},{"edge":3,"from":2,"to":3,"kind":"then","back":false,"op":10},{"edge":4,"from":2,"to":4,"kind":"else","back":false,"op":10},{"edge":5,"from":3,"to":5,"kind":"fall","back":false,"op":13},{"edge":6,"from":4,"to":5,"kind":"fall","back":false,"op":19},{"edge":7,"from":5,"to":1,"kind":"jump","back":true,"op":26},{"edge":8,"from":6,"to":7,"kind":"call return","back":false,"op":30},{"edge":9,"from":7,"to":8,"kind":"fall","back":false,"op":31}],"counters":[{"counter":0,"edge":5},{"counter":1,"edge":6}]}
