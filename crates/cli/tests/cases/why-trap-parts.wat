;; Parts of no length, parts of which two are too short, addresses that seem to have a sign, references to nothing, and constants that an exception carries.
(module
  (memory (export "memory") 1)
  (tag $odd (param i32))
  (func (export "copies") (param $to i32) (param $from i32) (param $length i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $length)))
  ;; Both parts are too short, and only where one begins was computed.
  (func (export "both") (param $from i32)
    (memory.copy (i32.const 65530) (i32.add (local.get $from) (i32.const 1)) (i32.const 100)))
  (func (export "loads") (param $at i32) (result i32)
    (i32.load (i32.sub (local.get $at) (i32.const 8))))
  (func (export "nothing") (local $exception exnref)
    (throw_ref (local.get $exception)))
  (func (export "constant")
    (block $caught (result exnref)
      (try_table (catch_all_ref $caught) (throw $odd (i32.const 77)))
      (return))
    (throw_ref))
  (func (export "computed") (param $x i32)
    (block $caught (result exnref)
      (try_table (catch_all_ref $caught) (throw $odd (i32.mul (local.get $x) (i32.const 7))))
      (return))
    (throw_ref)))

;; $ afterimage record --lens full -q -o run.aft --invoke copies FILE -- 65536 70000 0
;; ! afterimage: why-trap-parts.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x7f#1 in copies, with to 65536 (0x10000) in 65,536 bytes, length 0: the from of memory.copy is 70000 (0x11170) in 65,536 bytes, which
;; | comes from argument 2 of the host's call to copies
;; |   ended at @0x7f#1 in copies
;; |   argument 2 of the host's call to copies
;; $ afterimage record --lens full -q --force -o run.aft --invoke both FILE -- 65529
;; ! afterimage: why-trap-parts.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x92#1 in both, with to 65530 (0xfffa) in 65,536 bytes, length 100: the from of memory.copy is 65530 (0xfffa) in 65,536 bytes, which
;; | comes from argument 1 of the host's call to both, one step back
;; |   ended at @0x92#1 in both
;; |   65530 (0xfffa) = 65529 (0xfff9) + 1  @0x8e#1 in both  t=1
;; |   argument 1 of the host's call to both
;; $ afterimage record --lens full -q --force -o run.aft --invoke loads FILE -- 4
;; ! afterimage: why-trap-parts.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x9e#1 in loads: the address of i32.load is 0xfffffffc, which
;; | comes from argument 1 of the host's call to loads, one step back
;; |   ended at @0x9e#1 in loads
;; |   -4 = 4 - 8                          @0x9d#1 in loads  t=1
;; |   argument 1 of the host's call to loads
;; $ afterimage record --lens full -q --force -o run.aft --invoke copies FILE -- -4 0 8
;; ! afterimage: why-trap-parts.wat trapped: memory access out of bounds; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: memory access out of bounds at @0x7f#1 in copies, with from 0 in 65,536 bytes, length 8: the to of memory.copy is 0xfffffffc in 65,536 bytes, which
;; | comes from argument 1 of the host's call to copies
;; |   ended at @0x7f#1 in copies
;; |   argument 1 of the host's call to copies
;; $ afterimage slice run.aft --at copies#1 --operand nonsense
;; ! afterimage: run.aft: `memory.copy` has no operand nonsense; it has: to, from, length
;; = 125
;; $ afterimage record --lens full -q --force -o run.aft --invoke nothing FILE
;; ! afterimage: why-trap-parts.wat trapped: null reference; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run trapped: null reference at @0xa8#1 in nothing: the exception of throw_ref is null, which
;; | comes from a local that nothing wrote, which is null
;; |   ended at @0xa8#1 in nothing
;; |   a local that nothing wrote, which is null
;; $ afterimage record --lens full -q --force -o run.aft --invoke constant FILE
;; ! afterimage: why-trap-parts.wat threw an exception that nothing caught; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run threw an exception that nothing caught at @0xbb#1 in constant: it rethrew an exception, which
;; | comes from the constant 77 at @0xb3#1
;; |   ended at @0xbb#1 in constant
;; |   the constant 77                     @0xb3#1 in constant  t=1
;; $ afterimage record --lens full -q --force -o run.aft --invoke computed FILE -- 6
;; ! afterimage: why-trap-parts.wat threw an exception that nothing caught; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage slice run.aft --trap --by statement
;; | what `throw_ref` at @0xd0 in computed, t=2, where the run ended (threw an exception that nothing caught), depends on: 2 statements, 2 executions
;; |
;; | computed
;; | times  of  offset  line  text
;; |     1   1  @0xca         i32.mul
;; |     1   1  @0xd0         throw_ref
