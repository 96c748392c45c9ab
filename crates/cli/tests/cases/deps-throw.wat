;; What is caught was made where it was thrown, or before, however many calls are between; a reference stands for all that the exception carries.
(module
  (tag $two (param i32 i64))
  (tag $one (param i32))
  (func $deep (param $x i32)
    (throw $two (i32.add (local.get $x) (i32.const 1)) (i64.extend_i32_u (local.get $x))))
  (func $between (param $x i32) (call $deep (local.get $x)))
  (func $again (param $x i32) (local $e exnref)
    (block $h (result exnref)
      (try_table (catch_all_ref $h) (call $between (local.get $x)))
      unreachable)
    (local.set $e)
    (throw_ref (local.get $e)))
  (func $own (param $x i32) (result i32)
    (try_table (result i32) (catch $one 0)
      (throw $one (i32.mul (local.get $x) (i32.const 3)))))
  (func (export "_start") (local $a i32) (local $b i64)
    (block $h (result i32 i64)
      (try_table (catch $two $h) (call $between (i32.const 4)))
      unreachable)
    (local.set $b)
    (local.set $a)
    (drop (i64.add (i64.extend_i32_u (local.get $a)) (local.get $b)))
    (block $h2 (result i32 i64)
      (try_table (catch $two $h2) (call $again (i32.const 6)))
      unreachable)
    (drop (i64.eqz))
    (drop (i32.eqz))
    (drop (i32.eqz (call $own (local.get $a))))))

;; $ afterimage record --lens full -q -o run.aft deps-throw.wat
;; $ afterimage deps run.aft --at @0x9a
;; | #1 t=4  @0x9a i64.add  in _start = 9
;; |   left     5  ← t=4  @0x97 i64.extend_i32_u  in _start
;; |   right    4  ← t=3  @0x48 i64.extend_i32_u  in deep
;; |   control     ← t=1  @0x8c call $between  in _start
;; |   control     ← t=3  @0x49 throw $two  in deep
;; $ afterimage deps run.aft --at @0xab --data --depth 3
;; | #1 t=9  @0xab i64.eqz  in _start = 0
;; |   operand  6  ← t=8  @0x69 throw_ref  in again
;; |     exception  reference 0  ← t=7  @0x49 throw $two  in deep
;; |       carried  7  ← t=7  @0x45 i32.add  in deep
;; |       carried  6  ← t=7  @0x48 i64.extend_i32_u  in deep
;; $ afterimage deps run.aft --at @0xb3 --data
;; | #1 t=11  @0xb3 i32.eqz  in _start = 0
;; |   operand  15  ← t=10  @0x77 i32.mul  in own
;; $ afterimage deps run.aft --at @0x69
;; | #1 t=8  @0x69 throw_ref  in again
;; |   exception  reference 0  ← t=7  @0x49 throw $two  in deep
;; |   control                 ← t=5  @0x60 call $between  in again
;; |   control                 ← t=7  @0x49 throw $two  in deep
;; $ afterimage deps run.aft --at @0x45#1 --forward
;; | #1 t=3  @0x45 i32.add  in deep = 5
;; |   carried   → t=3  @0x49 throw $two  in deep
;; |   operand   → t=4  @0x97 i64.extend_i32_u  in _start = 5
;; |   argument  → t=9  @0xb1 call $own  in _start = 15
;; |   left      → t=10  @0x77 i32.mul  in own = 15
;; $ afterimage deps run.aft --at @0x77 --forward
;; | #1 t=10  @0x77 i32.mul  in own = 15
;; |   carried  → t=10  @0x78 throw $one  in own
;; |   operand  → t=11  @0xb3 i32.eqz  in _start = 0
;; $ afterimage deps run.aft --at @0x49#1 --forward
;; | #1 t=3  @0x49 throw $two  in deep
;; |   control  → t=4  @0x91..@0xa6, 3 statements  in _start
;; $ afterimage deps run.aft --at @0x49#2 --forward
;; | #2 t=7  @0x49 throw $two  in deep
;; |   exception  → t=8  @0x69 throw_ref  in again
;; |   control    → t=8  @0x65..@0x69, 1 statement  in again
;; $ afterimage deps run.aft --at @0x49#2 --forward --format json
;; | {"schema":"afterimage/deps/2","at":"@0x49#2","direction":"forward","along":"both","statements":[{"function":{"index":0,"name":"deep"},"operator":"throw $two","offset":73,"source":null,"t":7,"number":2,"values":[],"uses":[{"role":"exception","to":"operator","function":{"index":2,"name":"again"},"operator":"throw_ref","offset":105,"source":null,"t":8,"values":[]},{"role":"control","to":"block","t":8,"function":{"index":2,"name":"again"},"offset":101,"last_offset":105,"source":null,"statements":1}],"more":0}]}
;; $ afterimage deps run.aft --at @0x69 --forward
;; | #1 t=8  @0x69 throw_ref  in again
;; |   operand  → t=9  @0xab i64.eqz  in _start = 0
;; |   operand  → t=9  @0xad i32.eqz  in _start = 0
;; |   control  → t=9  @0xab..@0xb1, 3 statements  in _start
;; $ afterimage why run.aft --at @0xb3
;; | 0 at @0xb3#1 in _start
;; | comes from the constant 4 at @0x8a#1, 3 steps back
;; |   0 = 15 == 0                         @0xb3#1 in _start  t=11
;; |   15 = 5 * 3                          @0x77#1 in own  t=10
;; |   5 = 4 + 1                           @0x45#1 in deep  t=3
;; |   the constant 4                      @0x8a#1 in _start  t=1
;; $ afterimage why run.aft --at @0xab
;; | 0 at @0xab#1 in _start
;; | comes from an exception that was thrown at @0x69#1, one step back
;; |   0 = 6 == 0                          @0xab#1 in _start  t=9
;; |   an exception that was thrown        @0x69#1 in again  t=8
