;; Handlers of a try_table, and a call that an exception leaves.

(module
  (tag $negative (param i32))
  (func $f (param $x i32) (result i32)
    (if (i32.lt_s (local.get $x) (i32.const 0)) (then (throw $negative (local.get $x))))
    (local.get $x))
  (func $g (export "g") (param $x i32) (result i32)
    (block $caught (result i32)
      (block $other
        (try_table (result i32) (catch $negative $caught) (catch_all $other)
          (call $f (local.get $x)))
        (return))
      (i32.const -1)))
  (func $h (export "h") (param $x i32) (result i32)
    (i32.add (call $g (local.get $x)) (call $f (local.get $x)))))

;; $ afterimage cfg FILE --function 0
;; | func0 f: 5 blocks, 5 edges
;; | block0: op0..op4 0x2f..0x36 branch
;; |   edge0: block1 then op3
;; |   edge1: block2 else op3
;; | block1: op4..op6 0x36..0x3a throw
;; |   edge2: block3 throw op5
;; | block2: op7..op8 0x3b..0x3d return
;; |   edge3: block4 fall op7
;; | block3: dispatch of the function
;; |   edge4: block4 unwind
;; | block4: exit
;; $ afterimage instrument FILE -o out.wasm
;; ! afterimage: wrote out.wasm with 7 counters; read them from the exported memory "afterimage.counters"
;; $ wat out.wasm
;; | (module
;; |   (type (;0;) (func (param i32)))
;; |   (type (;1;) (func (param i32) (result i32)))
;; |   (memory (;0;) 1 1)
;; |   (tag $negative (;0;) (type 0) (param i32))
;; |   (export "g" (func 3))
;; |   (export "h" (func 4))
;; |   (export "afterimage.counters" (memory 0))
;; |   (func $f (;0;) (type 1) (param $x i32) (result i32)
;; |     block (result exnref) ;; label = @1
;; |       try_table (result i32) (catch_all_ref 0 (;@1;)) ;; label = @2
;; |         local.get $x
;; |         i32.const 0
;; |         i32.lt_s
;; |         if ;; label = @3
;; |           local.get $x
;; |           throw $negative
;; |         end
;; |         local.get $x
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=128
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=128
;; |       end
;; |       return
;; |     end
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=136
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=136
;; |     throw_ref
;; |   )
;; |   (func $g (;1;) (type 1) (param $x i32) (result i32)
;; |     block $caught (result i32)
;; |       block $other
;; |         block (result i32) ;; label = @3
;; |           block (result i32) ;; label = @4
;; |             try_table (result i32) (catch $negative 0 (;@4;)) (catch_all $other) ;; label = @5
;; |               local.get $x
;; |               call $f
;; |             end
;; |             br 1 (;@3;)
;; |           end
;; |           i32.const 0
;; |           i32.const 0
;; |           i64.load offset=152
;; |           i64.const 1
;; |           i64.add
;; |           i64.store offset=152
;; |           br $caught
;; |         end
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=144
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=144
;; |         return
;; |       end
;; |       i32.const 0
;; |       i32.const 0
;; |       i64.load offset=160
;; |       i64.const 1
;; |       i64.add
;; |       i64.store offset=160
;; |       i32.const -1
;; |     end
;; |   )
;; |   (func $h (;2;) (type 1) (param $x i32) (result i32)
;; |     block (result exnref) ;; label = @1
;; |       try_table (result i32) (catch_all_ref 0 (;@1;)) ;; label = @2
;; |         local.get $x
;; |         call $g
;; |         local.get $x
;; |         call $f
;; |         i32.add
;; |         i32.const 0
;; |         i32.const 0
;; |         i64.load offset=168
;; |         i64.const 1
;; |         i64.add
;; |         i64.store offset=168
;; |       end
;; |       return
;; |     end
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=176
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=176
;; |     throw_ref
;; |   )
;; |   (func (;3;) (type 1) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=184
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=184
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const 1
;; |     i32.add
;; |     i32.store offset=72
;; |     local.get 0
;; |     call $g
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (func (;4;) (type 1) (param i32) (result i32)
;; |     i32.const 0
;; |     i32.const 0
;; |     i64.load offset=192
;; |     i64.const 1
;; |     i64.add
;; |     i64.store offset=192
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const 1
;; |     i32.add
;; |     i32.store offset=72
;; |     local.get 0
;; |     call $h
;; |     i32.const 0
;; |     i32.const 0
;; |     i32.load offset=72
;; |     i32.const -1
;; |     i32.add
;; |     i32.store offset=72
;; |   )
;; |   (data (;0;) (i32.const 0) "aftcount\01\00\00\00\01\00\00\00\dc\ad\b2Ku)\08\b4r\df\b9\da\b1(\1bV`\d4\a0\90R55Q\bf3d\0d\b2T\d9\85\07\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; | )
;; $ afterimage cfg FILE --function g
;; | func1 g: 5 blocks, 6 edges
;; | block0: op3..op5 0x4c..0x50 call func0
;; |   edge0: block1 call return op4
;; |   edge1: block3 call throw op4
;; | block1: op6..op7 0x51..0x52 return
;; |   edge2: block4 return op6
;; | block2: op8..op9 0x53..0x55 return
;; |   edge3: block4 fall op8
;; | block3: dispatch of op2
;; |   edge4: block4 catch 0 op2
;; |   edge5: block2 catch 1 op2
;; | block4: exit
;; $ afterimage cfg FILE --function h
;; | func2 h: 5 blocks, 5 edges
;; | block0: op0..op2 0x59..0x5d call func1
;; |   edge0: block1 call return op1
;; | block1: op2..op4 0x5d..0x61 call func0
;; |   edge1: block2 call return op3
;; |   edge2: block3 call throw op3
;; | block2: op4..op5 0x61..0x62 return
;; |   edge3: block4 fall op4
;; | block3: dispatch of the function
;; |   edge4: block4 unwind
;; | block4: exit
;; $ afterimage record -o a.aft --invoke h FILE 5
;; | 10
;; ! afterimage: instrument-exceptions.wat returned; 0 host calls recorded in a.aft (N)
;; $ afterimage profile a.aft --by edge
;; | ran 18 instructions in 9 blocks; 3 of 3 functions executed
;; |
;; | count  offset  edge   from    to      kind         source  function
;; |     2    0x34  edge1  block0  block2  else         -       f
;; |     2    0x3b  edge3  block2  block4  fall         -       f
;; |     1    0x4e  edge0  block0  block1  call return  -       g
;; |     1    0x51  edge2  block1  block4  return       -       g
;; |     1    0x5b  edge0  block0  block1  call return  -       h
;; |     1    0x5f  edge1  block1  block2  call return  -       h
;; |     1    0x61  edge3  block2  block4  fall         -       h
;; |     0    0x34  edge0  block0  block1  then         -       f
;; |     0    0x38  edge2  block1  block3  throw        -       f
;; |     0       -  edge4  block3  block4  unwind       -       f
;; |     0    0x4e  edge1  block0  block3  call throw   -       g
;; |     0    0x53  edge3  block2  block4  fall         -       g
;; |     0    0x44  edge4  block3  block4  catch 0      -       g
;; |     0    0x44  edge5  block3  block2  catch 1      -       g
;; |     0    0x5f  edge2  block1  block3  call throw   -       h
;; |     0       -  edge4  block3  block4  unwind       -       h
;; $ afterimage record -o b.aft --invoke h FILE -5
;; ! afterimage: instrument-exceptions.wat threw an exception that nothing caught; 0 host calls recorded in b.aft (N)
;; = 134
;; $ afterimage profile b.aft --by edge
;; | ran 18 instructions in 7 blocks; 3 of 3 functions executed
;; |
;; | count  offset  edge   from    to      kind         source  function
;; |     2    0x34  edge0  block0  block1  then         -       f
;; |     2    0x38  edge2  block1  block3  throw        -       f
;; |     2       -  edge4  block3  block4  unwind       -       f
;; |     1    0x4e  edge1  block0  block3  call throw   -       g
;; |     1    0x44  edge4  block3  block4  catch 0      -       g
;; |     1    0x5b  edge0  block0  block1  call return  -       h
;; |     1    0x5f  edge2  block1  block3  call throw   -       h
;; |     1       -  edge4  block3  block4  unwind       -       h
;; |     0    0x34  edge1  block0  block2  else         -       f
;; |     0    0x3b  edge3  block2  block4  fall         -       f
;; |     0    0x4e  edge0  block0  block1  call return  -       g
;; |     0    0x51  edge2  block1  block4  return       -       g
;; |     0    0x53  edge3  block2  block4  fall         -       g
;; |     0    0x44  edge5  block3  block2  catch 1      -       g
;; |     0    0x5f  edge1  block1  block2  call return  -       h
;; |     0    0x61  edge3  block2  block4  fall         -       h
;; $ afterimage verify b.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
