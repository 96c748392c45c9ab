;; An exception that nothing caught: its functions are left when the run has ended, so the throw is found on the path.
(module
  (memory (export "memory") 1)
  (tag $odd (param i32))
  (tag $other (param i32))
  (tag $none)
  (func $throws (param $x i32)
    (throw $odd (i32.mul (local.get $x) (i32.const 7))))
  ;; Looks whether the exception is another one.
  (func $looks (param $x i32)
    (block $caught (result i32)
      (try_table (catch $other $caught)
        (call $throws (local.get $x)))
      (i32.const 0))
    (drop))
  ;; Catches it, does something, and throws it again.
  (func $passes (param $x i32)
    (block $caught (result exnref)
      (try_table (catch_all_ref $caught)
        (call $looks (local.get $x)))
      (return))
    (i32.store (i32.const 4) (i32.const 1))
    (throw_ref))
  (func (export "thrown")
    (i32.store (i32.const 0) (i32.const 6))
    (call $looks (i32.load (i32.const 0))))
  (func (export "again")
    (i32.store (i32.const 0) (i32.const 6))
    (call $passes (i32.load (i32.const 0))))
  (func (export "empty") (param $x i32)
    (if (i32.gt_s (local.get $x) (i32.const 5)) (then (throw $none)))))

;; $ afterimage record --lens full -q -o run.aft --invoke thrown FILE
;; ! afterimage: why-thrown.wat threw an exception that nothing caught; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run threw an exception that nothing caught at @0x58#1 in throws: the value it carries is 42, which
;; | comes from the constant 6 at @0x8e#1, 3 steps back
;; |   ended at @0x58#1 in throws
;; |   called at @0x67#1 in looks
;; |   called at @0x96#1 in thrown
;; |   42 = 6 * 7                          @0x57#1 in throws  t=3
;; |     ↑ loaded at @0x93#1 in thrown ← stored at @0x8e#1
;; |   the constant 6                      @0x8e#1 in thrown  t=1
;; $ afterimage slice run.aft --trap --by statement
;; | what `throw` at @0x58 in throws, t=3, where the run ended (threw an exception that nothing caught), depends on: 6 statements, 6 executions
;; |
;; | throws
;; | times  of  offset  line  text
;; |     1   1  @0x57         i32.mul
;; |     1   1  @0x58         throw $odd
;; |
;; | looks
;; | times  of  offset  line  text
;; |     1   1  @0x67         call $throws
;; |
;; | thrown
;; | times  of  offset  line  text
;; |     1   1  @0x8e         i32.store
;; |     1   1  @0x93         i32.load
;; |     1   1  @0x96         call $looks
;; $ afterimage slice run.aft --trap --thin --depth 1 --by statement
;; | what `throw` at @0x58 in throws, t=3, where the run ended (threw an exception that nothing caught), depends on directly: 2 statements, 2 executions
;; |
;; | throws
;; | times  of  offset  line  text
;; |     1   1  @0x57         i32.mul
;; |     1   1  @0x58         throw $odd
;; $ afterimage record --force --lens full -q -o run.aft --invoke again FILE
;; ! afterimage: why-thrown.wat threw an exception that nothing caught; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run threw an exception that nothing caught at @0x86#1 in passes: it rethrew an exception, which
;; | comes from the constant 6 at @0x9f#1, 3 steps back
;; |   ended at @0x86#1 in passes
;; |       led there by call at @0x7a#1 in passes, on 6: afterimage why run.aft --at @0x7a#1
;; |   called at @0xa7#1 in again
;; |   42 = 6 * 7                          @0x57#1 in throws  t=4
;; |     ↑ loaded at @0xa4#1 in again ← stored at @0x9f#1
;; |   the constant 6                      @0x9f#1 in again  t=1
;; $ afterimage slice run.aft --trap --data-only --by statement
;; | what `throw_ref` at @0x86 in passes, t=5, where the run ended (threw an exception that nothing caught), depends on: 4 statements, 4 executions
;; |
;; | throws
;; | times  of  offset  line  text
;; |     1   1  @0x57         i32.mul
;; |
;; | passes
;; | times  of  offset  line  text
;; |     1   1  @0x86         throw_ref
;; |
;; | again
;; | times  of  offset  line  text
;; |     1   1  @0x9f         i32.store
;; |     1   1  @0xa4         i32.load
;; $ afterimage record --force --lens full -q -o run.aft --invoke empty FILE 9
;; ! afterimage: why-thrown.wat threw an exception that nothing caught; 0 host calls recorded in run.aft
;; = 134
;; $ afterimage why run.aft --trap
;; | the run threw an exception that nothing caught at @0xb3#1 in empty: the branch at @0xb1#1 in empty led there, decided by 1, which
;; | comes from argument 1 of the host's call to empty, one step back
;; |   ended at @0xb3#1 in empty
;; |       led there by the branch at @0xb1#1 in empty, on 1, followed below
;; |   1 = 9 > 5                           @0xb0#1 in empty  t=1
;; |   argument 1 of the host's call to empty
;; $ afterimage slice run.aft --trap --by statement
;; | what `throw` at @0xb3 in empty, t=2, where the run ended (threw an exception that nothing caught), depends on: 3 statements, 3 executions
;; |
;; | empty
;; | times  of  offset  line  text
;; |     1   1  @0xb0         i32.gt_s
;; |     1   1  @0xb1         if ;; label = @1
;; |     1   1  @0xb3         throw $none
