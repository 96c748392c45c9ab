;; A division traps in the third call. The slice begins at its operands and at the decisions that led to it. A store that follows was not executed.
(module
  (memory (export "memory") 1)
  (func $share (param $among i32) (result i32)
    (i32.div_u (i32.const 10) (local.get $among)))
  (func (export "_start") (local $among i32) (local $sum i32)
    (local.set $among (i32.load (i32.const 16)))
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (call $share (local.get $among))))
      (i32.store (i32.const 8) (local.get $sum))
      (local.set $among (i32.sub (local.get $among) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $sum) (i32.const 1000)))))
  (data (i32.const 16) "\02"))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: slice-trap.wat trapped: integer division by zero; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage slice run.aft --trap --by statement
;; | what `i32.div_u` at @0x3b in share, t=9, where the run ended (integer division by zero), depends on: 7 statements, 15 executions
;; | and 4 bytes of initial memory
;; |
;; | share
;; | times  of  offset  line  text
;; |     3   3  @0x3b         i32.div_u
;; |
;; | _start
;; | times  of  offset  line  text
;; |     1   1  @0x43         i32.load
;; |     3   3  @0x4e         call $share
;; |     2   2  @0x50         i32.add
;; |     2   2  @0x5e         i32.sub
;; |     2   2  @0x66         i32.lt_u
;; |     2   2  @0x67         br_if $again
;; ! afterimage: path of 9 executed blocks in 14 bytes
;; ! afterimage: values of 13 executed statements in 25 bytes (1.9231 a statement)
;; $ afterimage slice run.aft --trap --thin --by statement
;; | what `i32.div_u` at @0x3b in share, t=9, where the run ended (integer division by zero), depends on: 3 statements, 4 executions
;; | and 4 bytes of initial memory
;; |
;; | share
;; | times  of  offset  line  text
;; |     1   3  @0x3b         i32.div_u
;; |
;; | _start
;; | times  of  offset  line  text
;; |     1   1  @0x43         i32.load
;; |     2   2  @0x5e         i32.sub
;; $ afterimage slice run.aft --trap --data-only --depth 2 --by statement
;; | what `i32.div_u` at @0x3b in share, t=9, where the run ended (integer division by zero), depends on over at most 2 dependences: 2 statements, 3 executions
;; |
;; | share
;; | times  of  offset  line  text
;; |     1   3  @0x3b         i32.div_u
;; |
;; | _start
;; | times  of  offset  line  text
;; |     2   2  @0x5e         i32.sub
;; $ afterimage slice run.aft --at share#last --by statement
;; | what share#last, `i32.div_u` at t=9, depends on: 7 statements, 15 executions
;; | and 4 bytes of initial memory
;; |
;; | share
;; | times  of  offset  line  text
;; |     3   3  @0x3b         i32.div_u
;; |
;; | _start
;; | times  of  offset  line  text
;; |     1   1  @0x43         i32.load
;; |     3   3  @0x4e         call $share
;; |     2   2  @0x50         i32.add
;; |     2   2  @0x5e         i32.sub
;; |     2   2  @0x66         i32.lt_u
;; |     2   2  @0x67         br_if $again
;; $ afterimage slice run.aft --at @0x43#1 --forward --by statement
;; | what depends on @0x43#1, `i32.load` at t=1: 8 statements, 17 executions
;; |
;; | share
;; | times  of  offset  line  text
;; |     3   3  @0x3b         i32.div_u
;; |
;; | _start
;; | times  of  offset  line  text
;; |     1   1  @0x43         i32.load
;; |     3   3  @0x4e         call $share
;; |     2   2  @0x50         i32.add
;; |     2   2  @0x57         i32.store
;; |     2   2  @0x5e         i32.sub
;; |     2   2  @0x66         i32.lt_u
;; |     2   2  @0x67         br_if $again
;; $ afterimage slice run.aft --trap --at share
;; ! error: the argument '--trap' cannot be used with '--at <PLACE#K>'
;; !
;; ! Usage: afterimage slice [OPTIONS] --at <PLACE#K> <FILE.aft>
;; !        afterimage slice [OPTIONS] --trap <FILE.aft>
;; !        afterimage slice [OPTIONS] --saved <NAME> <FILE.aft>
;; !
;; ! For more information, try '--help'.
;; = 125
