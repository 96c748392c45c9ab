;; Targets of br_table: one that is shared, one that no other edge enters, and the default.

(module
  (func $f (export "f") (param $x i32) (result i32)
    (block $default
      (block $shared
        (br_if $shared (i32.gt_s (local.get $x) (i32.const 100)))
        (block $own
          (br_table $own $shared $default $shared $default (local.get $x)))
        (return (i32.const 1)))
      (return (i32.const 2)))
    (i32.const 3)))

;; $ afterimage cfg FILE --function 0
;; | func0 f: 6 blocks, 8 edges
;; | block0: op2..op6 0x24..0x2c branch
;; |   edge0: block1 not taken op5
;; |   edge1: block3 taken op5
;; | block1: op7..op9 0x2e..0x37 table
;; |   edge2: block2 table 0 op8
;; |   edge3: block3 table 1 op8
;; |   edge4: block4 table 2 op8
;; | block2: op10..op12 0x38..0x3b return
;; |   edge5: block5 return op11
;; | block3: op13..op15 0x3c..0x3f return
;; |   edge6: block5 return op14
;; | block4: op16..op17 0x40..0x42 return
;; |   edge7: block5 fall op16
;; | block5: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 4 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (type (;1;) (func (param i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 1))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $f (;0;) (type 0) (param $x i32) (result i32)
;; |     block $default
;; |       block $shared
;; |         local.get $x
;; |         i32.const 100
;; |         i32.gt_s
;; |         if $own
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=128
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=128
;; |           br $shared
;; |         end
;; |         block ;; label = @3
;; |           local.get $x
;; |           block (type 1) (param i32) ;; label = @4
;; |             br_table 1 (;@3;) 0 (;@4;) $default 0 (;@4;) $default
;; |           end
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=136
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=136
;; |           br $shared
;; |         end
;; |         i32.const 1
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=144
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=144
;; |         return
;; |       end
;; |       i32.const 2
;; |       return
;; |     end
;; |     i32.const 3
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=152
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=152
;; |   )
;; |   (func (;1;) (type 0) (param i32) (result i32)
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
;; |     call $f
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\d0\1d\c3;\e0\fc\e2O$\e3\ed%\96R~Zz%\c0\e86}\b7X\8c\e1\f9\91\ea\98@\f0\04\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
