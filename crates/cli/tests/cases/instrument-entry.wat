;; A function without branches is counted at its entry, or not at all where its callers tell.

(module
  (func $helper (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func $f (export "f") (param i32) (result i32)
    (call $helper (call $helper (local.get 0)))))

;; $ afterimage cfg FILE --function 0
;; | func0 helper: 2 blocks, 1 edge
;; | block0: op0..op3 0x21..0x26 return
;; |   edge0: block1 fall op2
;; | block1: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 2 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 2))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $helper (;0;) (type 0) (param i32) (result i32)
;; |     local.get 0
;; |     i32.const 1
;; |     i32.add
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=128
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=128
;; |   )
;; |   (func $f (;1;) (type 0) (param i32) (result i32)
;; |     local.get 0
;; |     call $helper
;; |     call $helper
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=136
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=136
;; |   )
;; |   (func (;2;) (type 0) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=144
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=144
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const 1
;; |     i32.add
;; |     i32.store offset=72
;; |     local.get 0
;; |     call $f
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\a7y\86\82\a6\c4\14\bd\99\a3\d3F(\1f)\84(\84Y\c1\93e\0e\cbX\80t+U:\dd'\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
;; $ afterimage instrument FILE -o out.wasm --mode program
;; ! afterimage: wrote out.wasm with 0 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 2))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $helper (;0;) (type 0) (param i32) (result i32)
;; |     local.get 0
;; |     i32.const 1
;; |     i32.add
;; |   )
;; |   (func $f (;1;) (type 0) (param i32) (result i32)
;; |     local.get 0
;; |     call $helper
;; |     call $helper
;; |   )
;; |   (func (;2;) (type 0) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=128
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=128
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const 1
;; |     i32.add
;; |     i32.store offset=72
;; |     local.get 0
;; |     call $f
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\02\00\00\00\98z\a5\e5gN*\fa\10\91\02\0b!\d4*\0fy\a6\d5qw\fd\b3\8a\85\bf\d8\dc>\e8\a7\ca\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
