;; Parts that begin exactly at the end: by a constant, which says nothing, or by what was computed.
(module
  (memory (export "memory") 1)
  (table 4 funcref)
  (data $text "abcde")
  ;; A segment that was dropped has no bytes: how many are asked for is what matters.
  (func (export "dropped") (param $length i32)
    data.drop $text
    (memory.init $text (i32.const 0) (i32.const 0) (local.get $length)))
  (func (export "table") (param $length i32)
    (table.fill (i32.const 4) (ref.null func) (local.get $length)))
  ;; Where it begins was computed, and happens to be the end.
  (func (export "computed") (param $from i32) (param $length i32)
    (memory.copy (i32.const 0) (i32.mul (local.get $from) (i32.const 16)) (local.get $length)))
  ;; Nothing was computed: where it begins says more than how long it is.
  (func (export "constant")
    (memory.copy (i32.const 0) (i32.const 65536) (i32.const 1)))
  ;; Of two that begin at the end the one that was computed.
  (func (export "both") (param $from i32)
    (memory.copy (i32.const 65536) (i32.mul (local.get $from) (i32.const 16)) (i32.const 1))))

;; $ afterimage record --lens full -q -o run.aft --invoke dropped FILE -- 3
;; ! afterimage: why-trap-ends.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x76#1 in dropped, with to 0 in 65,536 bytes, from 0 in 0 bytes: the length of memory.init is 3, which
;; | comes from argument 1 of the host's call to dropped
;; |   ended at @0x76#1 in dropped
;; |   argument 1 of the host's call to dropped
;; $ afterimage record --lens full -q --force -o run.aft --invoke table FILE -- 3
;; ! afterimage: why-trap-ends.wat trapped: table access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: table access out of bounds at @0x83#1 in table, with to 4 in 4 elements: the count of table.fill is 3, which
;; | comes from argument 1 of the host's call to table
;; |   ended at @0x83#1 in table
;; |   argument 1 of the host's call to table
;; $ afterimage record --lens full -q --force -o run.aft --invoke computed FILE -- 4096 3
;; ! afterimage: why-trap-ends.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x92#1 in computed, with to 0 in 65,536 bytes, length 3: the from of memory.copy is 65536 (0x10000) in 65,536 bytes, which
;; | comes from argument 1 of the host's call to computed, one step back
;; |   ended at @0x92#1 in computed
;; |   65536 (0x10000) = 4096 (0x1000) * 16  @0x8f#1 in computed  t=1
;; |   argument 1 of the host's call to computed
;; $ afterimage record --lens full -q --force -o run.aft --invoke constant FILE
;; ! afterimage: why-trap-ends.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xa1#1 in constant, with to 0 in 65,536 bytes, length 1: the from of memory.copy is 65536 (0x10000) in 65,536 bytes, which
;; | comes from the constant 65536 (0x10000) at @0xa1#1
;; |   ended at @0xa1#1 in constant
;; |   the constant 65536 (0x10000)        @0xa1#1 in constant  t=1
;; $ afterimage record --lens full -q --force -o run.aft --invoke both FILE -- 4096
;; ! afterimage: why-trap-ends.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0xb3#1 in both, with to 65536 (0x10000) in 65,536 bytes, length 1: the from of memory.copy is 65536 (0x10000) in 65,536 bytes, which
;; | comes from argument 1 of the host's call to both, one step back
;; |   ended at @0xb3#1 in both
;; |   65536 (0x10000) = 4096 (0x1000) * 16  @0xb0#1 in both  t=1
;; |   argument 1 of the host's call to both
