;; An if without else: the edge around it is there only in the graph.

(module
  (func $f (export "f") (param $x i32) (result i32) (local $y i32)
    (if (local.get $x)
      (then (local.set $y (i32.const 5))))
    (if (local.get $y)
      (then (local.set $y (i32.add (local.get $y) (i32.const 1)))))
    (local.get $y)))

;; $ afterimage cfg FILE --function 0
;; | func0 f: 6 blocks, 7 edges
;; | block0: op0..op2 0x22..0x26 branch
;; |   edge0: block1 then op1
;; |   edge1: block2 else op1
;; | block1: op2..op4 0x26..0x2a fall
;; |   edge2: block2 fall op3
;; | block2: op5..op7 0x2b..0x2f branch
;; |   edge3: block3 then op6
;; |   edge4: block4 else op6
;; | block3: op7..op11 0x2f..0x36 fall
;; |   edge5: block4 fall op10
;; | block4: op12..op13 0x37..0x39 return
;; |   edge6: block5 fall op12
;; | block5: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 3 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 1))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $f (;0;) (type 0) (param $x i32) (result i32)
;; |     (local $y i32)
;; |     local.get $x
;; |     if ;; label = @1
;; |       i32.const 5
;; |       local.set $y
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=136
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=136
;; |     else
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=128
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=128
;; |     end
;; |     local.get $y
;; |     if ;; label = @1
;; |       local.get $y
;; |       i32.const 1
;; |       i32.add
;; |       local.set $y
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=144
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=144
;; |     end
;; |     local.get $y
;; |   )
;; |   (func (;1;) (type 0) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=152
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=152
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
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\efUh\1c*\a6\df\fds=\e8\faI>\bfq\97\fb\b1{vG\1d:\8c\cb\eeS\f9\80\10\5c\03\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
