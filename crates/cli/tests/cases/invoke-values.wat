;; Arguments of every type.

(module
  (table $t 2 externref)
  (func (export "run") (param v128 f32 f64 externref funcref) (result i32 i64 v128 i32 i32)
    (table.set $t (i32.const 1) (local.get 3))
    (i32.reinterpret_f32 (local.get 1))
    (i64.reinterpret_f64 (local.get 2))
    (i32x4.add (local.get 0) (v128.const i32x4 1 1 1 1))
    (ref.is_null (table.get $t (i32.const 1)))
    (ref.is_null (local.get 4))))

;; $ afterimage record -o a.aft --invoke run FILE 0x00000004000000030000000200000001 -nan:0x1234 nan:0xfffffffffffff null null
;; | -8383948
;; | 9223372036854775807
;; | 0x00000005000000040000000300000002
;; | 1
;; | 1
;; ! afterimage: invoke-values.wat returned; 0 host calls recorded in a.aft (N)
;; $ afterimage verify a.aft
;; | sound: N, 5 chunks in 4 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage trace a.aft --level statement
;; |      t  function                  place      operator          effect
;; |      1  run                                  host              calls run(0x00000004000000030000000200000001, NaN (0xff801234), NaN (0x7fffffffffffffff), null, null)
;; |      1  run                       @0x34      table.set         1, null
;; |      1  run                       @0x38      i32.reinterpret_f32  = -8383948 (0xff801234)
;; |      1  run                       @0x3b      i64.reinterpret_f64  = 9223372036854775807 (0x7fffffffffffffff)
;; |      1  run                       @0x50      i32x4.add         = 0x00000005000000040000000300000002
;; |      1  run                       @0x55      table.get         = null
;; |      1  run                       @0x57      ref.is_null       = 1
;; |      1  run                       @0x5a      ref.is_null       = 1
;; |      1  run                       @0x5b      end               returns -8383948 (0xff801234), 9223372036854775807 (0x7fffffffffffffff), 0x00000005000000040000000300000002, 1, 1
;; | the run returned -8383948 (0xff801234), 9223372036854775807 (0x7fffffffffffffff), 0x00000005000000040000000300000002, 1, 1
;; ! afterimage: path of 1 executed blocks in 10 bytes
;; $ afterimage state a.aft --at end --format json
;; | {"schema":"afterimage/state/2","t":1,"length":N,"before":"block","open":1,"frames":[{"number":0,"function":{"index":0,"name":"run"},"entered_t":1,"t":1,"offset":48,"source":null,"inlined":[],"why":"the module has no debug information; compile it with -g","locals":[{"index":0,"type":"v128","parameter":true,"bits":"0x00000004000000030000000200000001","text":"0x00000004000000030000000200000001"},{"index":1,"type":"f32","parameter":true,"bits":"0xff801234","text":"NaN (0xff801234)"},{"index":2,"type":"f64","parameter":true,"bits":"0x7fffffffffffffff","text":"NaN (0x7fffffffffffffff)"},{"index":3,"type":"ref","parameter":true,"bits":"0x0","text":"null"},{"index":4,"type":"ref","parameter":true,"bits":"0x0","text":"null"}]}],"results":[{"type":"i32","bits":"0xff801234","text":"-8383948 (0xff801234)"},{"type":"i64","bits":"0x7fffffffffffffff","text":"9223372036854775807 (0x7fffffffffffffff)"},{"type":"v128","bits":"0x00000005000000040000000300000002","text":"0x00000005000000040000000300000002"},{"type":"i32","bits":"0x1","text":"1"},{"type":"i32","bits":"0x1","text":"1"}]}
;; ! afterimage: the path of the run, in N
;; $ afterimage record --force -o a.aft --invoke run FILE 1 1 1 1 null
;; ! afterimage: invoke-values.wat: run takes v128 f32 f64 externref funcref, but "1" is not of type externref: only null can be given
;; = 125
