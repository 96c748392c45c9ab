;; Bytes from the module, a store, a fill and the host, overlapping, that are put out; in between some are written again.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "the module's ")
  (func $put (param $at i32) (param $length i32)
    (i64.store (i32.const 0)
      (i64.or (i64.extend_i32_u (local.get $at))
        (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32))))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12))))
  (func (export "_start")
    (i64.store (i32.const 77) (i64.const 0x6465726f7473))  ;; "stored" and two zeros
    (memory.fill (i32.const 83) (i32.const 46) (i32.const 3))
    (drop (call $args_get (i32.const 100) (i32.const 120)))
    (i32.store8 (i32.const 86) (i32.const 10))
    (call $put (i32.const 70) (i32.const 17))
    (i32.store8 (i32.const 77) (i32.const 83))
    (call $put (i32.const 70) (i32.const 17))
    (call $put (i32.load (i32.const 104)) (i32.const 5))
    (call $put (i32.const 86) (i32.const 1))))

;; $ afterimage record --lens full -o run.aft FILE hello
;; | dule's stored...
;; | dule's Stored...
;; | hello
;; ! afterimage: path of 13 executed blocks in 15 bytes
;; ! afterimage: values of 25 executed statements in 38 bytes (1.5200 a statement)
;; ! afterimage: deps-host.wat returned; 5 host calls recorded in run.aft (N)
;; $ afterimage deps run.aft --at put+0x18#1
;; | #1 t=3  @0xa3 call $fd_write  in put = 0
;; |   argument           1                        ← constant
;; |   argument           0                        ← constant
;; |   argument           1                        ← constant
;; |   argument           12                       ← constant
;; |   memory 0x0..0x7    46 00 00 00 11 00 00 00  ← t=3  @0x98 i64.store  in put
;; |   memory 0x46..0x4c  "dule's "                ← the module: nothing wrote it before
;; |   memory 0x4d..0x52  "stored"                 ← t=1  @0xb4 i64.store  in _start
;; |   memory 0x53..0x55  "..."                    ← t=1  @0xbe memory.fill  in _start
;; |   memory 0x56        "\n"                     ← t=2  @0xcf i32.store8  in _start
;; |   control                                     ← t=2  @0xd7 call $put  in _start
;; $ afterimage deps run.aft --at @0xa3#2 --data --limit 3
;; | #2 t=6  @0xa3 call $fd_write  in put = 0
;; |   argument           1                        ← constant
;; |   argument           0                        ← constant
;; |   argument           1                        ← constant
;; |   argument           12                       ← constant
;; |   memory 0x0..0x7    46 00 00 00 11 00 00 00  ← t=6  @0x98 i64.store  in put
;; |   memory 0x46..0x4c  "dule's "                ← the module: nothing wrote it before
;; |   memory 0x4d        "S"                      ← t=5  @0xdf i32.store8  in _start
;; |   memory 0x4e..0x52  "tored"                  ← t=1  @0xb4 i64.store  in _start
;; |   memory 0x53..0x55  "..."                    ← t=1  @0xbe memory.fill  in _start
;; |   memory 0x56        "\n"                     ← t=2  @0xcf i32.store8  in _start
;; $ afterimage deps run.aft --at @0xa3#3 --data --format json
;; | {"schema":"afterimage/deps/2","at":"@0xa3#3","direction":"backward","along":"data","statements":[{"function":{"index":2,"name":"put"},"operator":"call $fd_write","offset":163,"source":null,"t":9,"number":3,"values":[{"type":"i32","bits":"0x0","as_number":0,"text":"0"}],"dependences":[{"role":"argument","value":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"from":"constant"},{"role":"argument","value":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"from":"constant"},{"role":"argument","value":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"from":"constant"},{"role":"argument","value":{"type":"i32","bits":"0xc","as_number":12,"text":"12"},"from":"constant"},{"role":"memory","read":{"memory":0,"address":0,"bytes":N},"contents":"8600000005000000","from":"operator","function":{"index":2,"name":"put"},"operator":"i64.store","offset":152,"source":null,"t":9},{"role":"memory","read":{"memory":0,"address":134,"bytes":N},"contents":"68656c6c6f","from":"host","import":"wasi_snapshot_preview1.args_get","call":1,"function":{"index":3,"name":"_start"},"operator":"call $args_get","offset":199,"source":null,"t":1}]}]}
;; $ afterimage deps run.aft --at @0xb4 --forward
;; | #1 t=1  @0xb4 i64.store  in _start = 110386874381427 (0x6465726f7473)
;; |   memory 0x4d..0x52  → t=3  @0xa3 call $fd_write  in put = 0
;; |   memory 0x4e..0x52  → t=6  @0xa3 call $fd_write  in put = 0
;; $ afterimage deps run.aft --at @0xbe --forward --limit 1
;; | #1 t=1  @0xbe memory.fill  in _start
;; |   memory 0x53..0x55  → t=3  @0xa3 call $fd_write  in put = 0
;; |   … 1 more: --limit N
;; $ afterimage deps run.aft --at @0xc7 --forward --data
;; | #1 t=1  @0xc7 call $args_get  in _start = 0
;; |   memory             → t=8  @0xec i32.load  in _start = 134
;; |   memory 0x86..0x8a  → t=9  @0xa3 call $fd_write  in put = 0
;; $ afterimage deps run.aft --at @0xdf --forward --data --format json
;; | {"schema":"afterimage/deps/2","at":"@0xdf","direction":"forward","along":"data","statements":[{"function":{"index":3,"name":"_start"},"operator":"i32.store8","offset":223,"source":null,"t":5,"number":1,"values":[{"type":"i32","bits":"0x53","as_number":83,"text":"83"}],"uses":[{"role":"memory","to":"operator","function":{"index":2,"name":"put"},"operator":"call $fd_write","offset":163,"source":null,"t":6,"values":[{"type":"i32","bits":"0x0","as_number":0,"text":"0"}],"bytes":N,"read":{"memory":0,"address":77,"bytes":N}}],"more":0}]}
;; $ afterimage deps run.aft --at @0x98#1 --forward --data --depth 2
;; | #1 t=3  @0x98 i64.store  in put = 73014444102 (0x1100000046)
;; |   memory 0x0..0x7  → t=3  @0xa3 call $fd_write  in put = 0
