;; Of what is done to a part of a memory or a table it is found by the sizes which operand is to blame.
(module
  (memory (export "memory") 1)
  (data $text "abcde")
  (table $some 4 funcref)
  (elem $functions func $one $one)
  (func $one)
  (func (export "fill") (param $length i32)
    (memory.fill (i32.const 10) (i32.const 7) (i32.mul (local.get $length) (i32.const 2))))
  (func (export "copy") (param $to i32) (param $from i32) (param $length i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $length)))
  (func (export "move") (param $from i32)
    (memory.copy (i32.const 10) (i32.add (local.get $from) (i32.const 1)) (i32.const 100)))
  (func (export "grown") (param $length i32)
    (drop (memory.grow (i32.const 1)))
    (memory.copy (i32.const 65536) (i32.const 65540) (local.get $length)))
  (func (export "init") (param $from i32) (param $length i32)
    (memory.init $text (i32.const 0) (local.get $from) (local.get $length)))
  (func (export "elements") (param $to i32) (param $from i32) (param $length i32)
    (table.copy $some $some (local.get $to) (local.get $from) (local.get $length)))
  (func (export "functions") (param $from i32) (param $length i32)
    (table.init $some $functions (i32.const 1) (local.get $from) (local.get $length)))
  (func (export "null") (param $to i32) (param $length i32)
    (table.fill $some (local.get $to) (ref.null func) (local.get $length))))

;; $ afterimage record --lens full -q -o run.aft --invoke fill FILE 35000
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x9e#1 in fill, with to 10 in 65,536 bytes: the length of memory.fill is 70000 (0x11170), which
;; | comes from argument 1 of the host's call to fill, one step back
;; |   ended at @0x9e#1 in fill
;; |   70000 (0x11170) = 35000 (0x88b8) * 2  @0x9d#1 in fill  t=1
;; |   argument 1 of the host's call to fill
;; $ afterimage record --force --lens full -q -o run.aft --invoke copy FILE 70000 0 5
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xaa#1 in copy, with from 0 in 65,536 bytes, length 5: the to of memory.copy is 70000 (0x11170) in 65,536 bytes, which
;; | comes from argument 1 of the host's call to copy
;; |   ended at @0xaa#1 in copy
;; |   argument 1 of the host's call to copy
;; $ afterimage record --force --lens full -q -o run.aft --invoke copy FILE 0 70000 5
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xaa#1 in copy, with to 0 in 65,536 bytes, length 5: the from of memory.copy is 70000 (0x11170) in 65,536 bytes, which
;; | comes from argument 2 of the host's call to copy
;; |   ended at @0xaa#1 in copy
;; |   argument 2 of the host's call to copy
;; $ afterimage record --force --lens full -q -o run.aft --invoke copy FILE 10 20 70000
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xaa#1 in copy, with to 10 in 65,536 bytes, from 20 in 65,536 bytes: the length of memory.copy is 70000 (0x11170), which
;; | comes from argument 3 of the host's call to copy
;; |   ended at @0xaa#1 in copy
;; |   argument 3 of the host's call to copy
;; $ afterimage record --force --lens full -q -o run.aft --invoke move FILE 65529
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xbb#1 in move, with to 10 in 65,536 bytes, length 100: the from of memory.copy is 65530 (0xfffa) in 65,536 bytes, which
;; | comes from argument 1 of the host's call to move, one step back
;; |   ended at @0xbb#1 in move
;; |   65530 (0xfffa) = 65529 (0xfff9) + 1  @0xb7#1 in move  t=1
;; |   argument 1 of the host's call to move
;; $ afterimage record --force --lens full -q -o run.aft --invoke grown FILE 196608
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xd1#1 in grown, with to 65536 (0x10000) in 131,072 bytes, from 65540 (0x10004) in 131,072 bytes: the length of memory.copy is 196608 (0x30000), which
;; | comes from argument 1 of the host's call to grown
;; |   ended at @0xd1#1 in grown
;; |   argument 1 of the host's call to grown
;; $ afterimage record --force --lens full -q -o run.aft --invoke init FILE 6 1
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xde#1 in init, with to 0 in 65,536 bytes, length 1: the from of memory.init is 6 in 5 bytes, which
;; | comes from argument 1 of the host's call to init
;; |   ended at @0xde#1 in init
;; |   argument 1 of the host's call to init
;; $ afterimage record --force --lens full -q -o run.aft --invoke init FILE 2 4
;; ! afterimage: why-trap-bounds.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xde#1 in init, with to 0 in 65,536 bytes, from 2 in 5 bytes: the length of memory.init is 4, which
;; | comes from argument 2 of the host's call to init
;; |   ended at @0xde#1 in init
;; |   argument 2 of the host's call to init
;; $ afterimage record --force --lens full -q -o run.aft --invoke elements FILE 4 0 1
;; ! afterimage: why-trap-bounds.wat trapped: table access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: table access out of bounds at @0xeb#1 in elements, with from 0 in 4 elements, length 1: the to of table.copy is 4 in 4 elements, which
;; | comes from argument 1 of the host's call to elements
;; |   ended at @0xeb#1 in elements
;; |   argument 1 of the host's call to elements
;; $ afterimage record --force --lens full -q -o run.aft --invoke elements FILE 1 1 4
;; ! afterimage: why-trap-bounds.wat trapped: table access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: table access out of bounds at @0xeb#1 in elements, with to 1 in 4 elements, from 1 in 4 elements: the length of table.copy is 4, which
;; | comes from argument 3 of the host's call to elements
;; |   ended at @0xeb#1 in elements
;; |   argument 3 of the host's call to elements
;; $ afterimage record --force --lens full -q -o run.aft --invoke functions FILE 1 2
;; ! afterimage: why-trap-bounds.wat trapped: table access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: table access out of bounds at @0xf8#1 in functions, with to 1 in 4 elements, from 1 in 2 elements: the length of table.init is 2, which
;; | comes from argument 2 of the host's call to functions
;; |   ended at @0xf8#1 in functions
;; |   argument 2 of the host's call to functions
;; $ afterimage record --force --lens full -q -o run.aft --invoke null FILE 3 2
;; ! afterimage: why-trap-bounds.wat trapped: table access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: table access out of bounds at @0x105#1 in null, with to 3 in 4 elements: the count of table.fill is 2, which
;; | comes from argument 2 of the host's call to null
;; |   ended at @0x105#1 in null
;; |   argument 2 of the host's call to null
