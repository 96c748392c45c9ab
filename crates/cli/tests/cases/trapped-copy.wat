;; What trapped copies memory. What else has no value is shown by what it was given.
(module
  (memory (export "memory") 1)
  (tag $odd (param i32))
  (table $some 2 funcref)
  (func $log (param i32 i64))
  (func $nothing)
  (func $throws (param $x i32)
    (block $caught (result i32)
      (try_table (catch $odd $caught)
        (throw $odd (local.get $x)))
      (i32.const 0))
    (drop))
  (func (export "_start")
    (call $log (i32.const 7) (i64.const -1))
    (call $nothing)
    (call $throws (i32.const 5))
    (memory.fill (i32.const 16) (i32.const 0x1ff) (i32.const 4))
    (table.set $some (i32.const 1) (ref.null func))
    (i32.store16 offset=2 (i32.const 30) (i32.load8_s (i32.const 16)))
    (memory.copy (i32.const 65530) (i32.const 16) (i32.const 8))
    (call $nothing)))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: trapped-copy.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage values run.aft --at 3
;; | @0x66 call $log  in _start: executed once
;; |           #1  t=1              argument 7, argument -1
;; |
;; | @0x6c call $throws  in _start: executed once
;; |           #1  t=5              argument 5
;; |
;; | @0x75 memory.fill  in _start: executed once
;; |           #1  t=8              byte 255 to 0x10, 4 bytes
;; |
;; | @0x7c table.set $some  in _start: executed once
;; |           #1  t=8              index 1, value null
;; |
;; | @0x82 i32.load8_s  in _start: executed once
;; |           #1  t=8              -1 from 0x10, 1 byte
;; |
;; | @0x85 i32.store16 offset=2  in _start: executed once
;; |           #1  t=8              stored 65535 (0xffff) to 0x20, 2 bytes
;; |
;; | @0x90 memory.copy  in _start: executed once
;; |           #1  t=8              trapped (memory access out of bounds): from 0x10, 8 bytes to 0xfffa, 8 bytes
;; |
;; | @0x94 call $nothing  in _start: never executed
;; ! afterimage: path of 8 executed blocks in 14 bytes
;; ! afterimage: values of 4 executed statements in 44 bytes (11.0000 a statement)
;; $ afterimage values run.aft --at 2
;; | @0x58 throw $odd  in throws: executed once
;; |           #1  t=6              carried 5
;; $ afterimage values run.aft --at 3 --format json
;; | {"schema":"afterimage/values/2","at":"3","statements":[{"function":{"index":3,"name":"_start"},"offset":102,"operator":"call $log","source":null,"executions":1,"instances":[{"number":1,"t":1,"values":[{"role":"argument","type":"i32","bits":"0x7","as_number":7,"text":"7"},{"role":"argument","type":"i64","bits":"0xffffffffffffffff","as_number":-1,"text":"-1"}]}],"more":0},{"function":{"index":3,"name":"_start"},"offset":108,"operator":"call $throws","source":null,"executions":1,"instances":[{"number":1,"t":5,"values":[{"role":"argument","type":"i32","bits":"0x5","as_number":5,"text":"5"}]}],"more":0},{"function":{"index":3,"name":"_start"},"offset":117,"operator":"memory.fill","source":null,"executions":1,"instances":[{"number":1,"t":8,"values":[{"role":"byte","type":"i32","bits":"0xff","as_number":255,"text":"255"}],"written":{"memory":0,"address":16,"bytes":N}}],"more":0},{"function":{"index":3,"name":"_start"},"offset":124,"operator":"table.set $some","source":null,"executions":1,"instances":[{"number":1,"t":8,"values":[{"role":"index","type":"i32","bits":"0x1","as_number":1,"text":"1"},{"role":"value","type":"ref","bits":"0x0","text":"null"}]}],"more":0},{"function":{"index":3,"name":"_start"},"offset":130,"operator":"i32.load8_s","source":null,"executions":1,"instances":[{"number":1,"t":8,"values":[{"role":"","type":"i32","bits":"0xffffffff","as_number":-1,"text":"-1"}],"read":{"memory":0,"address":16,"bytes":N}}],"more":0},{"function":{"index":3,"name":"_start"},"offset":133,"operator":"i32.store16 offset=2","source":null,"executions":1,"instances":[{"number":1,"t":8,"values":[{"role":"stored","type":"i32","bits":"0xffff","as_number":65535,"text":"65535 (0xffff)"}],"written":{"memory":0,"address":32,"bytes":N}}],"more":0},{"function":{"index":3,"name":"_start"},"offset":144,"operator":"memory.copy","source":null,"executions":1,"instances":[{"number":1,"t":8,"values":[],"read":{"memory":0,"address":16,"bytes":N},"written":{"memory":0,"address":65530,"bytes":N},"trapped":"memory access out of bounds"}],"more":0},{"function":{"index":3,"name":"_start"},"offset":148,"operator":"call $nothing","source":null,"executions":0,"instances":[],"more":0}]}
;; $ afterimage deps run.aft --at 3+0x1 --forward
;; ! afterimage: run.aft: 3+0x1 has no statement: it only moves values, makes constants or jumps; ask about the statement at @0x66
;; = 125
;; $ afterimage trace run.aft --level memory
;; |      t  function                  place      operator          effect
;; |      8  _start                    @0x75      memory.fill       0x10, 4 bytes <- 0xff
;; |      8  _start                    @0x82      i32.load8_s       0x10, 1 byte = -1
;; |      8  _start                    @0x85      i32.store16       0x20, 2 bytes <- 65535 (0xffff)
;; |      8  _start                    @0x90      memory.copy       traps: memory access out of bounds: 0xfffa, 8 bytes <- 0x10, 8 bytes
;; | the run trapped: memory access out of bounds
;; $ afterimage trace run.aft --level memory --last 1 --format json
;; | {"schema":"afterimage/trace/2","level":"memory","first":1,"last":8,"length":N,"reverse":false,"function":null}
;; | {"t":8,"function":{"index":3,"name":"_start"},"operator":"memory.copy","offset":144,"source":null,"kind":"trap","trap":"memory access out of bounds","tried":{"kind":"copy","access":{"memory":0,"address":65530,"bytes":N},"from":{"memory":0,"address":16,"bytes":N}}}
