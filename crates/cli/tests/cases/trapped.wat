;; The last statement of a run traps: a store with an offset, beyond the end of memory, in the third execution.
(module
  (memory (export "memory") 1)
  (func $put (param $at i32)
    (i32.store16 offset=100 (local.get $at) (i32.const 0x12345)))
  (func (export "_start")
    (call $put (i32.const 0))
    (call $put (i32.const 65434))
    (call $put (i32.const 65435))))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: trapped.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 6 executed blocks in 13 bytes
;; ! afterimage: values of 2 executed statements in 12 bytes (6.0000 a statement)
;; $ afterimage values run.aft --at put
;; | @0x3c i32.store16 offset=100  in put: executed 3 times
;; |           #1  t=2              stored 9029 (0x2345) to 0x64, 2 bytes
;; |           #2  t=4              stored 9029 (0x2345) to 0xfffe, 2 bytes
;; |           #3  t=6              trapped (memory access out of bounds): value 9029 (0x2345) to 0xffff, 2 bytes
;; $ afterimage values run.aft --at put#last
;; | @0x3c i32.store16 offset=100  in put: executed 3 times
;; |           #3  t=6              trapped (memory access out of bounds): value 9029 (0x2345) to 0xffff, 2 bytes
;; $ afterimage values run.aft --at put --instances 2..3 --format json
;; | {"schema":"afterimage/values/2","at":"put","statements":[{"function":{"index":0,"name":"put"},"offset":60,"operator":"i32.store16 offset=100","source":null,"executions":3,"instances":[{"number":2,"t":4,"values":[{"role":"stored","type":"i32","bits":"0x2345","as_number":9029,"text":"9029 (0x2345)"}],"written":{"memory":0,"address":65534,"bytes":N}},{"number":3,"t":6,"values":[{"role":"value","type":"i32","bits":"0x2345","as_number":9029,"text":"9029 (0x2345)"}],"written":{"memory":0,"address":65535,"bytes":N},"trapped":"memory access out of bounds"}],"more":1}]}
;; $ afterimage values run.aft --at put --histogram
;; | @0x3c i32.store16 offset=100  in put: executed 3 times
;; |      2 times  9029 (0x2345)
;; |         once  trapped (memory access out of bounds)
;; $ afterimage deps run.aft --at put#3
;; | #3 t=6  @0x3c i32.store16 offset=100  in put  trapped (memory access out of bounds)
;; |   base address  65435 (0xff9b)   ← constant
;; |   value         74565 (0x12345)  ← constant
;; |   control                        ← t=5  @0x50 call $put  in _start
;; $ afterimage deps run.aft --at put#2
;; | #2 t=4  @0x3c i32.store16 offset=100  in put = 9029 (0x2345)
;; |   base address  65434 (0xff9a)   ← constant
;; |   value         74565 (0x12345)  ← constant
;; |   control                        ← t=3  @0x4a call $put  in _start
;; $ afterimage addresses run.aft --at put
;; | @0x3c i32.store16    in put
;; |           #1  t=2               0x64 +65434 x 2
;; |           #3  t=6               0xffff, 2 bytes: trapped (memory access out of bounds)
;; $ afterimage addresses run.aft --at put#3
;; | @0x3c i32.store16    in put
;; |           #3  t=6               0xffff, 2 bytes: trapped (memory access out of bounds)
;; $ afterimage addresses run.aft --at put --instances 4
;; ! afterimage: run.aft: put was executed 3 times, so there is no execution 4; the last is 3
;; = 125
;; $ afterimage addresses run.aft --at put --instances last --format json
;; | {"schema":"afterimage/addresses/2","instructions":[{"function":{"index":0,"name":"put"},"operator":"i32.store16","offset":60,"source":null}]}
;; | {"instruction":0,"number":3,"t":6,"memory":0,"address":65535,"bytes":N,"trapped":"memory access out of bounds"}
;; $ afterimage addresses run.aft --at put --instances t=4
;; | @0x3c i32.store16    in put
;; |           #2  t=4               0xfffe
;; |           #3  t=6               0xffff, 2 bytes: trapped (memory access out of bounds)
;; $ afterimage addresses run.aft --all
;; | offset  operator     accesses  addresses  smallest  largest  stride  times  source  function
;; | 0x3c    i32.store16         2          2      0x64   0xfffe  +65434      1          put
;; | 1 instruction, 2 accesses
;; | not included: i32.store16 at @0x3c in put trapped (memory access out of bounds): 0xffff, 2 bytes
;; $ afterimage addresses run.aft --all --format json
;; | {"schema":"afterimage/address-stats/2","bound":4096,"trapped":{"function":{"index":0,"name":"put"},"operator":"i32.store16","offset":60,"source":null,"access":{"memory":0,"address":65535,"bytes":N},"why":"memory access out of bounds"}}
;; | {"function":{"index":0,"name":"put"},"operator":"i32.store16","offset":60,"source":null,"accesses":2,"memory":0,"bytes":N,"addresses":2,"smallest":100,"largest":65534,"strides":1,"stride":65434,"stride_times":1}
;; $ afterimage trace run.aft --level statement --last 3
;; |      t  function                  place      operator          effect
;; |      4  put                       @0x3f      end               returns
;; |      5  _start                    @0x50      call              put(65435 (0xff9b))
;; |      6  put                       @0x3c      i32.store16       traps: memory access out of bounds: 0xffff, 2 bytes <- 9029 (0x2345)
;; | the run trapped: memory access out of bounds
;; $ afterimage trace run.aft --level memory
;; |      t  function                  place      operator          effect
;; |      2  put                       @0x3c      i32.store16       0x64, 2 bytes <- 9029 (0x2345)
;; |      4  put                       @0x3c      i32.store16       0xfffe, 2 bytes <- 9029 (0x2345)
;; |      6  put                       @0x3c      i32.store16       traps: memory access out of bounds: 0xffff, 2 bytes <- 9029 (0x2345)
;; | the run trapped: memory access out of bounds
;; $ afterimage trace run.aft --level memory --last 1 --format json
;; | {"schema":"afterimage/trace/2","level":"memory","first":1,"last":6,"length":N,"reverse":false,"function":null}
;; | {"t":6,"function":{"index":0,"name":"put"},"operator":"i32.store16","offset":60,"source":null,"kind":"trap","trap":"memory access out of bounds","tried":{"kind":"store","access":{"memory":0,"address":65535,"bytes":N},"value":{"type":"i32","bits":"0x2345","as_number":9029,"text":"9029 (0x2345)"}}}
;; $ afterimage memory run.aft --address 0xfffe..0xffff --all
;; |      t  function                  place      operator          effect
;; |      4  put                       @0x3c      i32.store16       0xfffe, 2 bytes <- 9029 (0x2345)
;; $ afterimage values run.aft --at 1
;; | @0x44 call $put  in _start: executed once
;; |           #1  t=1              argument 0
;; |
;; | @0x4a call $put  in _start: executed once
;; |           #1  t=3              argument 65434 (0xff9a)
;; |
;; | @0x50 call $put  in _start: executed once
;; |           #1  t=5              argument 65435 (0xff9b)
