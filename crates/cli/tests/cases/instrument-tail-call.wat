;; return_call leaves the frame: what it does is counted before.

(module
  (func $even (export "even") (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
    (return_call $odd (i32.sub (local.get $n) (i32.const 1))))
  (func $odd (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (return_call $even (i32.sub (local.get $n) (i32.const 1)))))

;; $ afterimage cfg FILE --function 0
;; | func0 even: 4 blocks, 4 edges
;; | block0: op0..op3 0x24..0x29 branch
;; |   edge0: block1 then op2
;; |   edge1: block2 else op2
;; | block1: op3..op5 0x29..0x2c return
;; |   edge2: block3 return op4
;; | block2: op6..op10 0x2d..0x34 tail call func1
;; |   edge3: block3 return op9
;; | block3: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 4 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "even" (func 2))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $even (;0;) (type 0) (param $n i32) (result i32)
;; |     local.get $n
;; |     i32.eqz
;; |     if ;; label = @1
;; |       i32.const 1
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=128
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=128
;; |       return
;; |     end
;; |     local.get $n
;; |     i32.const 1
;; |     i32.sub
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=136
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=136
;; |     return_call $odd
;; |   )
;; |   (func $odd (;1;) (type 0) (param $n i32) (result i32)
;; |     local.get $n
;; |     i32.eqz
;; |     if ;; label = @1
;; |       i32.const 0
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=144
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=144
;; |       return
;; |     end
;; |     local.get $n
;; |     i32.const 1
;; |     i32.sub
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=152
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=152
;; |     return_call $even
;; |   )
;; |   (func (;2;) (type 0) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=160
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=160
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const 1
;; |     i32.add
;; |     i32.store offset=72
;; |     local.get 0
;; |     call $even
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\b2\f9\9e\d3~\c0\f0\c7\b7y\d5\99fw\ac\c2F@\93\d2_c\b9\80,\043g\8c\ac\c3C\04\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
