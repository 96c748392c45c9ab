;; Along control, data, or both, many steps; what the host gave is named, and what it took is gone into; what trapped gave nothing.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $twice (param $n i32) (result i32)
    (if (result i32) (i32.gt_s (local.get $n) (i32.const 1))
      (then (call $once (i32.sub (local.get $n) (i32.const 1))))
      (else (i32.const 5))))
  (func $once (param $n i32) (result i32)
    (if (i32.and (local.get $n) (i32.const 1)) (then (return (i32.mul (local.get $n) (i32.const 3)))))
    (i32.const 0))
  (func (export "_start") (local $x i32)
    (local.set $x (i32.add (i32.const 40) (i32.const 2)))
    (i32.store (i32.const 8) (call $random_get (local.get $x) (i32.const 0)))
    (if (i32.eqz (i32.load (i32.const 8))) (then
      (if (i32.eq (local.get $x) (i32.const 42)) (then
        (i32.store (i32.const 12) (call $twice (i32.const 2)))))))
    (drop (i32.div_u (i32.load (i32.const 12)) (i32.load (i32.const 8))))))

;; $ afterimage record --lens full -q -o run.aft FILE
;; ! afterimage: deps-depth.wat trapped: integer division by zero; 1 host call recorded in run.aft
;; = 134
;; $ afterimage deps run.aft --at @0xb6 --control --depth 5
;; | #1 t=9  @0xb6 i32.store  in _start = 3
;; |   control    ← t=3  @0xae if ;; label = @2  in _start
;; |     control    ← t=2  @0xa7 if ;; label = @1  in _start
;; |       control    ← the host's call
;; $ afterimage deps run.aft --at @0xb6 --data --depth 5
;; | #1 t=9  @0xb6 i32.store  in _start = 3
;; |   address  12  ← constant
;; |   value    3   ← t=8  @0x85 i32.mul  in once
;; |     left   1  ← t=6  @0x70 i32.sub  in twice
;; |       left   2  ← constant
;; |       right  1  ← constant
;; |     right  3  ← constant
;; $ afterimage deps run.aft --at @0xb6 --depth 5
;; | #1 t=9  @0xb6 i32.store  in _start = 3
;; |   address  12  ← constant
;; |   value    3   ← t=8  @0x85 i32.mul  in once
;; |     left     1  ← t=6  @0x70 i32.sub  in twice
;; |       left     2  ← constant
;; |       right    1  ← constant
;; |       control     ← t=5  @0x6a if (result i32) ;; label = @1  in twice
;; |         condition  1  ← t=5  @0x69 i32.gt_s  in twice
;; |           left     2  ← constant
;; |           right    1  ← constant
;; |           control     ← t=4  @0xb4 call $twice  in _start
;; |           moved       ← t=3  @0xae if ;; label = @2  in _start
;; |         control       ← t=4  @0xb4 call $twice  in _start
;; |           control    ← t=3  @0xae if ;; label = @2  in _start
;; |       moved       ← t=3  @0xae if ;; label = @2  in _start
;; |         condition  1  ← t=3  @0xad i32.eq  in _start
;; |           left     42  ← t=1  @0x93 i32.add  in _start
;; |           right    42  ← constant
;; |           control      ← t=2  @0xa7 if ;; label = @1  in _start
;; |         control       ← t=2  @0xa7 if ;; label = @1  in _start
;; |           condition  1  ← t=2  @0xa6 i32.eqz  in _start
;; |           control       ← the host's call
;; |     right    3  ← constant
;; |     control     ← t=7  @0x7f if ;; label = @1  in once
;; |       condition  1  ← t=7  @0x7e i32.and  in once
;; |         left     1  ← t=6  @0x70 i32.sub  in twice
;; |         right    1  ← constant
;; |         control     ← t=6  @0x71 call $once  in twice
;; |           control    ← t=5  @0x6a if (result i32) ;; label = @1  in twice
;; |       control       ← t=6  @0x71 call $once  in twice
;; |   control      ← t=3  @0xae if ;; label = @2  in _start
;; $ afterimage deps run.aft --at @0xa7 --control --forward --depth 9
;; | #1 t=2  @0xa7 if ;; label = @1  in _start = 1
;; |   control  → t=3  @0xa9..@0xae, 2 statements  in _start
;; |     control  → t=4  @0xb0..@0xb4, 1 statement  in _start
;; |       control  → t=5  @0x65..@0x6a, 2 statements  in twice
;; |         control  → t=6  @0x6c..@0x71, 2 statements  in twice
;; |           control  → t=7  @0x7a..@0x7f, 2 statements  in once
;; |             control  → t=8  @0x81..@0x86, 2 statements  in once
;; |     control  → t=9  @0xb6..@0xb6, 1 statement  in _start
;; $ afterimage deps run.aft --at @0x93 --data --forward --depth 9
;; | #1 t=1  @0x93 i32.add  in _start = 42
;; |   argument  → t=1  @0x9c call $random_get  in _start = 0
;; |     value  → t=2  @0x9e i32.store  in _start = 0
;; |       memory  → t=2  @0xa3 i32.load  in _start = 0
;; |         operand  → t=2  @0xa6 i32.eqz  in _start = 1
;; |           condition  → t=2  @0xa7 if ;; label = @1  in _start = 1
;; |       memory  → t=10  @0xc2 i32.load  in _start = 0
;; |         right  → t=10  @0xc5 i32.div_u  in _start  trapped (integer division by zero)
;; |   left      → t=3  @0xad i32.eq  in _start = 1
;; |     condition  → t=3  @0xae if ;; label = @2  in _start = 1
;; $ afterimage deps run.aft --at @0x93 --forward --depth 9
;; | #1 t=1  @0x93 i32.add  in _start = 42
;; |   argument  → t=1  @0x9c call $random_get  in _start = 0
;; |     value  → t=2  @0x9e i32.store  in _start = 0
;; |       memory  → t=2  @0xa3 i32.load  in _start = 0
;; |         operand  → t=2  @0xa6 i32.eqz  in _start = 1
;; |           condition  → t=2  @0xa7 if ;; label = @1  in _start = 1
;; |             control  → t=3  @0xa9..@0xae, 2 statements  in _start
;; |               condition  → t=3  @0xae if ;; label = @2  in _start = 1
;; |                 control  → t=4  @0xb0..@0xb4, 1 statement  in _start
;; |                   control  → t=5  @0x65..@0x6a, 2 statements  in twice
;; |                 control  → t=9  @0xb6..@0xb6, 1 statement  in _start
;; |                   memory  → t=10  @0xbd i32.load  in _start = 3
;; |       memory  → t=10  @0xc2 i32.load  in _start = 0
;; |         right  → t=10  @0xc5 i32.div_u  in _start  trapped (integer division by zero)
;; |   left      → t=3  @0xad i32.eq  in _start = 1
;; $ afterimage deps run.aft --at @0xc5 --data --depth 9
;; | #1 t=10  @0xc5 i32.div_u  in _start  trapped (integer division by zero)
;; |   left   3  ← t=10  @0xbd i32.load  in _start
;; |     address  12  ← constant
;; |     memory       ← t=9  @0xb6 i32.store  in _start
;; |       address  12  ← constant
;; |       value    3   ← t=8  @0x85 i32.mul  in once
;; |         left   1  ← t=6  @0x70 i32.sub  in twice
;; |           left   2  ← constant
;; |           right  1  ← constant
;; |         right  3  ← constant
;; |   right  0  ← t=10  @0xc2 i32.load  in _start
;; |     address  8  ← constant
;; |     memory      ← t=2  @0x9e i32.store  in _start
;; |       address  8  ← constant
;; |       value    0  ← t=1  @0x9c call $random_get  in _start: what the host's wasi_snapshot_preview1.random_get returned, call 1
;; |         argument  42  ← t=1  @0x93 i32.add  in _start
;; |           left   40  ← constant
;; |           right  2   ← constant
;; |         argument  0   ← constant
;; $ afterimage deps run.aft --at @0xc5 --forward --format json
;; | {"schema":"afterimage/deps/2","at":"@0xc5","direction":"forward","along":"both","statements":[{"function":{"index":3,"name":"_start"},"operator":"i32.div_u","offset":197,"source":null,"t":10,"number":1,"values":[],"trapped":"integer division by zero","uses":[],"more":0}]}
;; $ afterimage deps run.aft --at @0x9e --data --format json
;; | {"schema":"afterimage/deps/2","at":"@0x9e","direction":"backward","along":"data","statements":[{"function":{"index":3,"name":"_start"},"operator":"i32.store","offset":158,"source":null,"t":2,"number":1,"values":[{"type":"i32","bits":"0x0","as_number":0,"text":"0"}],"dependences":[{"role":"address","value":{"type":"i32","bits":"0x8","as_number":8,"text":"8"},"from":"constant"},{"role":"value","value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"from":"host","import":"wasi_snapshot_preview1.random_get","call":1,"result":1,"function":{"index":3,"name":"_start"},"operator":"call $random_get","offset":156,"source":null,"t":1}]}]}
