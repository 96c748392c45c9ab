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
;; | {"at":"3","schema":"afterimage/values/1","statements":[{"executions":1,"function":"_start","instances":[{"number":1,"time":1,"values":[{"bits":"0x7","role":"argument","text":"7","type":"i32"},{"bits":"0xffffffffffffffff","role":"argument","text":"-1","type":"i64"}]}],"line":"","more":0,"offset":102,"operator":"call $log"},{"executions":1,"function":"_start","instances":[{"number":1,"time":5,"values":[{"bits":"0x5","role":"argument","text":"5","type":"i32"}]}],"line":"","more":0,"offset":108,"operator":"call $throws"},{"executions":1,"function":"_start","instances":[{"number":1,"time":8,"values":[{"bits":"0xff","role":"byte","text":"255","type":"i32"}],"written":{"address":16,"bytes":N,"memory":0}}],"line":"","more":0,"offset":117,"operator":"memory.fill"},{"executions":1,"function":"_start","instances":[{"number":1,"time":8,"values":[{"bits":"0x1","role":"index","text":"1","type":"i32"},{"bits":"0x0","role":"value","text":"null","type":"ref"}]}],"line":"","more":0,"offset":124,"operator":"table.set $some"},{"executions":1,"function":"_start","instances":[{"number":1,"read":{"address":16,"bytes":N,"memory":0},"time":8,"values":[{"bits":"0xffffffff","role":"","text":"-1","type":"i32"}]}],"line":"","more":0,"offset":130,"operator":"i32.load8_s"},{"executions":1,"function":"_start","instances":[{"number":1,"time":8,"values":[{"bits":"0xffff","role":"stored","text":"65535 (0xffff)","type":"i32"}],"written":{"address":32,"bytes":N,"memory":0}}],"line":"","more":0,"offset":133,"operator":"i32.store16 offset=2"},{"executions":1,"function":"_start","instances":[{"number":1,"read":{"address":16,"bytes":N,"memory":0},"time":8,"trapped":"memory access out of bounds","values":[],"written":{"address":65530,"bytes":N,"memory":0}}],"line":"","more":0,"offset":144,"operator":"memory.copy"},{"executions":0,"function":"_start","instances":[],"line":"","more":0,"offset":148,"operator":"call $nothing"}]}
;; $ afterimage deps run.aft --at 3+0x1 --forward
;; ! afterimage: run.aft: 3+0x1 only moves a value, or is a constant: it is no statement; the nearest statement is at @0x66
;; = 125
;; $ afterimage trace run.aft --level memory
;; |      t  function                  place      operator          effect
;; |      8  _start                    @0x75      memory.fill       0x10, 4 bytes <- 0xff
;; |      8  _start                    @0x82      i32.load8_s       0x10, 1 byte = -1
;; |      8  _start                    @0x85      i32.store16       0x20, 2 bytes <- 65535 (0xffff)
;; |      8  _start                    @0x90      memory.copy       traps: memory access out of bounds: 0xfffa, 8 bytes <- 0x10, 8 bytes
;; | the run trapped: memory access out of bounds
;; $ afterimage trace run.aft --level memory --last 1 --format json
;; | {"schema":"afterimage/trace/1","level":"memory","first":1,"last":8,"length":N,"reverse":false,"function":null}
;; | {"t":8,"function":3,"name":"_start","operator":"memory.copy","offset":144,"source":null,"kind":"trap","trap":"memory access out of bounds","tried":{"kind":"copy","access":{"memory":0,"address":65530,"bytes":N},"from":{"memory":0,"address":16,"bytes":N}}}
