;; What is in a table was put there, element by element; how large a table or a memory is follows from how it grew.
(module
  (type $u (func (param i32) (result i32)))
  (memory 1 4)
  (table $t 4 10 funcref)
  (elem (table $t) (i32.const 0) func $inc)
  (elem $late func $dec $inc)
  (func $inc (type $u) (i32.add (local.get 0) (i32.const 1)))
  (func $dec (type $u) (i32.sub (local.get 0) (i32.const 1)))
  (func (export "_start")
    (table.set $t (i32.const 1) (ref.func $dec))
    (table.init $t $late (i32.const 2) (i32.const 0) (i32.const 2))
    (elem.drop $late)
    (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 3))
    (drop (table.grow $t (ref.func $inc) (i32.const 2)))
    (drop (call_indirect $t (type $u) (i32.const 7) (i32.const 0)))
    (drop (call_indirect $t (type $u) (i32.const 7) (i32.const 3)))
    (drop (call_indirect $t (type $u) (i32.const 7) (i32.const 5)))
    (table.fill $t (i32.const 4) (table.get $t (i32.const 1)) (i32.const 2))
    (drop (table.size $t))
    (drop (memory.size))
    (drop (memory.grow (i32.const 1)))
    (drop (memory.grow (i32.const 9)))
    (drop (memory.size))
    (table.set $t (i32.const 0) (ref.null func))
    (drop (call_indirect $t (type $u) (i32.const 7) (i32.const 0)))))

;; $ afterimage record --lens full -q -o run.aft FILE
;; ! afterimage: deps-table.wat trapped: indirect call to null; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage deps run.aft --at _start --data
;; | #1 t=1  @0x5b table.set $t  in _start
;; |   index  1       ← constant
;; |   value  func 1  ← constant
;; |
;; | #1 t=1  @0x63 table.init $late  in _start
;; |   to      2  ← constant
;; |   from    0  ← constant
;; |   length  2  ← constant
;; |
;; | #1 t=1  @0x67 elem.drop $late  in _start
;; |   it depends on no data: it has no operands and reads nothing
;; |
;; | #1 t=1  @0x70 table.copy  in _start
;; |   to                    0  ← constant
;; |   from                  1  ← constant
;; |   length                3  ← constant
;; |   element                  ← t=1  @0x5b table.set $t  in _start
;; |   element (2 elements)     ← t=1  @0x63 table.init $late  in _start
;; |
;; | #1 t=1  @0x78 table.grow $t  in _start = 4
;; |   value  func 0  ← constant
;; |   count  2       ← constant
;; |   size      N     ← the module: nothing wrote it before
;; |
;; | #1 t=1  @0x80 call_indirect (type $u)  in _start = 6
;; |   argument  7  ← constant
;; |   index     0  ← constant
;; |   element      ← t=1  @0x70 table.copy  in _start
;; |
;; | #1 t=3  @0x88 call_indirect (type $u)  in _start = 8
;; |   argument  7  ← constant
;; |   index     3  ← constant
;; |   element      ← t=1  @0x63 table.init $late  in _start
;; |
;; | #1 t=5  @0x90 call_indirect (type $u)  in _start = 8
;; |   argument  7  ← constant
;; |   index     5  ← constant
;; |   element      ← t=1  @0x78 table.grow $t  in _start
;; |
;; | #1 t=7  @0x98 table.get $t  in _start = func 1
;; |   index    1  ← constant
;; |   element     ← t=1  @0x70 table.copy  in _start
;; |
;; | #1 t=7  @0x9c table.fill $t  in _start
;; |   to     4       ← constant
;; |   value  func 1  ← t=7  @0x98 table.get $t  in _start
;; |   count  2       ← constant
;; |
;; | #1 t=7  @0x9f table.size $t  in _start = 6
;; |   size    ← t=1  @0x78 table.grow $t  in _start
;; |
;; | #1 t=7  @0xa3 memory.size  in _start = 1
;; |   size    ← the module: nothing wrote it before
;; |
;; | #1 t=7  @0xa8 memory.grow  in _start = 1
;; |   pages  1  ← constant
;; |   size      N← the module: nothing wrote it before
;; |
;; | #1 t=7  @0xad memory.grow  in _start = -1
;; |   pages  9  ← constant
;; |   size      N← t=7  @0xa8 memory.grow  in _start
;; |
;; | #1 t=7  @0xb0 memory.size  in _start = 2
;; |   size    ← t=7  @0xad memory.grow  in _start
;; |
;; | #1 t=7  @0xb7 table.set $t  in _start
;; |   index  0     ← constant
;; |   value  null  ← constant
;; |
;; | #1 t=7  @0xbd call_indirect (type $u)  in _start  trapped (indirect call to null)
;; |   argument  7  ← constant
;; |   index     0  ← constant
;; |   element      ← t=7  @0xb7 table.set $t  in _start
;; $ afterimage deps run.aft --at _start --forward --data
;; | #1 t=1  @0x5b table.set $t  in _start
;; |   element  → t=1  @0x70 table.copy  in _start
;; |
;; | #1 t=1  @0x63 table.init $late  in _start
;; |   element (2 elements)  → t=1  @0x70 table.copy  in _start
;; |   element               → t=3  @0x88 call_indirect (type $u)  in _start = 8
;; |
;; | #1 t=1  @0x67 elem.drop $late  in _start
;; |   nothing uses its result
;; |
;; | #1 t=1  @0x70 table.copy  in _start
;; |   element  → t=1  @0x80 call_indirect (type $u)  in _start = 6
;; |   element  → t=7  @0x98 table.get $t  in _start = func 1
;; |
;; | #1 t=1  @0x78 table.grow $t  in _start = 4
;; |   element  → t=5  @0x90 call_indirect (type $u)  in _start = 8
;; |   size     → t=7  @0x9f table.size $t  in _start = 6
;; |
;; | #1 t=1  @0x80 call_indirect (type $u)  in _start = 6
;; |   nothing uses its result
;; |
;; | #1 t=3  @0x88 call_indirect (type $u)  in _start = 8
;; |   nothing uses its result
;; |
;; | #1 t=5  @0x90 call_indirect (type $u)  in _start = 8
;; |   nothing uses its result
;; |
;; | #1 t=7  @0x98 table.get $t  in _start = func 1
;; |   value  → t=7  @0x9c table.fill $t  in _start
;; |
;; | #1 t=7  @0x9c table.fill $t  in _start
;; |   nothing uses its result
;; |
;; | #1 t=7  @0x9f table.size $t  in _start = 6
;; |   nothing uses its result
;; |
;; | #1 t=7  @0xa3 memory.size  in _start = 1
;; |   nothing uses its result
;; |
;; | #1 t=7  @0xa8 memory.grow  in _start = 1
;; |   size  → t=7  @0xad memory.grow  in _start = -1
;; |
;; | #1 t=7  @0xad memory.grow  in _start = -1
;; |   size  → t=7  @0xb0 memory.size  in _start = 2
;; |
;; | #1 t=7  @0xb0 memory.size  in _start = 2
;; |   nothing uses its result
;; |
;; | #1 t=7  @0xb7 table.set $t  in _start
;; |   element  → t=7  @0xbd call_indirect (type $u)  in _start  trapped (indirect call to null)
;; |
;; | #1 t=7  @0xbd call_indirect (type $u)  in _start  trapped (indirect call to null)
;; |   nothing depends on it: it trapped and gave no value
;; $ afterimage deps run.aft --at @0x70 --data --format json
;; | {"schema":"afterimage/deps/2","at":"@0x70","direction":"backward","along":"data","statements":[{"function":{"index":2,"name":"_start"},"operator":"table.copy","offset":112,"source":null,"t":1,"number":1,"values":[],"dependences":[{"role":"to","value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"from":"constant"},{"role":"from","value":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"from":"constant"},{"role":"length","value":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"from":"constant"},{"role":"element","elements":1,"from":"operator","function":{"index":2,"name":"_start"},"operator":"table.set $t","offset":91,"source":null,"t":1},{"role":"element","elements":2,"from":"operator","function":{"index":2,"name":"_start"},"operator":"table.init $late","offset":99,"source":null,"t":1}]}]}
;; $ afterimage deps run.aft --at @0xbd --forward
;; | #1 t=7  @0xbd call_indirect (type $u)  in _start  trapped (indirect call to null)
;; |   nothing depends on it: it trapped and gave no value
