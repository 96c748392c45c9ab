;; The taken edge of a br_if that carries a value has to be counted, because the other edge joins others.

(module
  (func $f (export "f") (param $x i32) (result i32)
    (block $out (result i32)
      (loop $again (result i32)
        (br_if $out (i32.const 7) (local.get $x))
        (drop)
        (br_if $again (local.tee $x (i32.sub (local.get $x) (i32.const 1))))
        (i32.const 9)))))

;; $ afterimage cfg FILE --function 0
;; | func0 f: 5 blocks, 6 edges
;; | block0: op0..op0 0x20..0x20 fall
;; |   edge0: block1 fall
;; | block1: op2..op5 0x24..0x2a branch
;; |   edge1: block2 not taken op4
;; |   edge2: block4 taken op4
;; | block2: op5..op11 0x2a..0x34 branch
;; |   edge3: block3 not taken op10
;; |   edge4: block1 taken op10 back
;; | block3: op11..op12 0x34..0x36 return
;; |   edge5: block4 fall op11
;; | block4: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 3 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (export "f" (func 1))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $f (;0;) (type 0) (param $x i32) (result i32)
;; |     block $out (result i32)
;; |       loop $again (result i32)
;; |         i32.const 7
;; |         local.get $x
;; |         if (type 0) (param i32) (result i32) ;; label = @3
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=128
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=128
;; |           br $out
;; |         end
;; |         drop
;; |         local.get $x
;; |         i32.const 1
;; |         i32.sub
;; |         local.tee $x
;; |         if ;; label = @3
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=136
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=136
;; |           br $again
;; |         end
;; |         i32.const 9
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=144
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=144
;; |       end
;; |     end
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
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00Q\c4\92\0b\f1y\95\b6\ccmoT7\fd\eam7\cf\a0oP\09\d1q\f4\a1B\81\f5\0d\c6h\03\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
