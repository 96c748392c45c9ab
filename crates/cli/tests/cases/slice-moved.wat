;; A branch that only chooses which constant a variable gets, or which result a function gives, is in the slice of what uses that.
(module
  (memory (export "memory") 1)
  (data (i32.const 100) "\30")
  (func $grade (param $points i32) (result i32)
    (if (i32.ge_u (local.get $points) (i32.const 90)) (then (return (i32.const 5))))
    (if (i32.ge_u (local.get $points) (i32.const 40)) (then (return (i32.const 4))))
    (i32.const 3))
  (func (export "run") (local $x i32) (local $beside i32)
    (local.set $beside (i32.mul (i32.load (i32.const 104)) (i32.const 3)))
    (if (i32.and (i32.load8_u (i32.const 100)) (i32.const 16))
      (then (local.set $x (i32.const 11)))
      (else (local.set $x (i32.const 22))))
    (i32.store (i32.const 0) (local.get $x))
    (i32.store (i32.const 4) (call $grade (i32.load8_u (i32.const 100))))
    (i32.store (i32.const 8) (local.get $beside))))

;; $ afterimage record --invoke run -o run.aft FILE
;; ! afterimage: slice-moved.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage slice run.aft --at end --address 0..3 --by statement
;; | what 0x0..0x3 at the end depends on: 4 statements, 4 executions
;; | and 1 byte of initial memory
;; |
;; | run
;; | times  of  offset  line  text
;; |     1   1  @0x60         i32.load8_u
;; |     1   1  @0x65         i32.and
;; |     1   1  @0x66         if ;; label = @1
;; |     1   1  @0x76         i32.store
;; ! afterimage: path of 7 executed blocks in 12 bytes
;; ! afterimage: values of 13 executed statements in 40 bytes (3.0769 a statement)
;; $ afterimage slice run.aft --at end --address 4..7 --by statement
;; | what 0x4..0x7 at the end depends on: 7 statements, 7 executions
;; | and 1 byte of initial memory
;; |
;; | grade
;; | times  of  offset  line  text
;; |     1   1  @0x39         i32.ge_u
;; |     1   1  @0x3a         if ;; label = @1
;; |     1   1  @0x44         i32.ge_u
;; |     1   1  @0x45         if ;; label = @1
;; |
;; | run
;; | times  of  offset  line  text
;; |     1   1  @0x7e         i32.load8_u
;; |     1   1  @0x81         call $grade
;; |     1   1  @0x83         i32.store
;; $ afterimage slice run.aft --at end --address 4..7 --by statement --data-only
;; | what 0x4..0x7 at the end depends on: 1 statement, 1 execution
;; |
;; | run
;; | times  of  offset  line  text
;; |     1   1  @0x83         i32.store
;; $ afterimage slice run.aft --at end --address 0..3 --by statement --depth 2
;; | what 0x0..0x3 at the end depends on over at most 2 dependences: 2 statements, 2 executions
;; |
;; | run
;; | times  of  offset  line  text
;; |     1   1  @0x66         if ;; label = @1
;; |     1   1  @0x76         i32.store
