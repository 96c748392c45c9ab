;; A loop back edge, and a loop entered from two places.

(module
  (func $f (export "f") (param $n i32) (result i32) (local $sum i32)
    (loop $outer
      (loop $inner
        (local.set $sum (i32.add (local.get $sum) (local.get $n)))
        (br_if $inner (i32.and (local.get $sum) (i32.const 1))))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))

;; $ afterimage cfg FILE --function 0
;; | func0 f: 5 blocks, 6 edges
;; | block0: op0..op0 0x22..0x22 fall
;; |   edge0: block1 fall
;; | block1: op2..op10 0x26..0x34 branch
;; |   edge1: block2 not taken op9
;; |   edge2: block1 taken op9 back
;; | block2: op11..op16 0x35..0x3e branch
;; |   edge3: block3 not taken op15
;; |   edge4: block1 taken op15 back
;; | block3: op17..op18 0x3f..0x41 return
;; |   edge5: block4 fall op17
;; | block4: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 3 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 1))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $f (;0;) (type 0) (param $n i32) (result i32)
;; |     (local $sum i32)
;; |     loop $outer
;; |       loop $inner
;; |         local.get $sum
;; |         local.get $n
;; |         i32.add
;; |         local.set $sum
;; |         local.get $sum
;; |         i32.const 1
;; |         i32.and
;; |         if ;; label = @3
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=128
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=128
;; |           br $inner
;; |         end
;; |       end
;; |       local.get $n
;; |       i32.const 1
;; |       i32.sub
;; |       local.tee $n
;; |       if ;; label = @2
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=136
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=136
;; |         br $outer
;; |       end
;; |     end
;; |     local.get $sum
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=144
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=144
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
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\22?\ad\aa\d1\03\df\b1g(\01N\cf\92\a3R\b84\8e!\a8}\ed+\810\a1\14\e3C\a3x\03\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
