;; Locals that the name section names, in a module without debug information: every command that takes a variable finds them.
(module
  (memory (export "memory") 1)
  (func $sum (param $n i32) (result i64) (local $total i64)
    (loop $next
      (local.set $total (i64.add (local.get $total) (i64.extend_i32_u (local.get $n))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (local.get $total))
  (func (export "_start")
    (drop (call $sum (i32.const 3)))
    (drop (call $sum (i32.const 1)))))

;; $ afterimage record -q -o run.aft FILE
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 11 executed blocks in 14 bytes
;; ! afterimage: values of 16 executed statements in 1 bytes (0.0625 a statement)
;; $ afterimage values run.aft --at sum --var n
;; | n (i32) at sum: called 2 times
;; |           #1  t=2              3
;; |           #2  t=8              1
;; $ afterimage values run.aft --at @0x40 --var $total
;; | $total (i64) at @0x40: executed 4 times
;; |           #1  t=3              0
;; |           #2  t=4              3
;; |           #3  t=5              5
;; |           #4  t=9              0
;; $ afterimage values run.aft --at @0x40 --var total --stats
;; | total (i64) at @0x40: executed 4 times
;; |     3 different values, from 0 (first #1) to 5 (first #3); most often 0 (2 times)
;; $ afterimage values run.aft --at @0x40 --var n --histogram --format json
;; | {"schema":"afterimage/variable/2","variable":"n","at":"@0x40","count":4,"stats":[{"type":"i32","different":3,"smallest":"1","smallest_first":3,"largest":"3","largest_first":1,"most":"1","most_times":2}],"counts":[{"type":"i32","value":"1","bits":"0x1","times":2},{"type":"i32","value":"2","bits":"0x2","times":1},{"type":"i32","value":"3","bits":"0x3","times":1}],"missing":[],"more":0}
;; $ afterimage state run.aft --at @0x40#3
;; | before @0x40, in the block at t=5 of 11
;; | #0 sum(1)  @0x40  t=5
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 1  (i32, parameter)
;; |     local 1 $total = 5  (i64)
;; | #1 _start()  @0x56  t=1
;; $ afterimage why run.aft --at @0x40#3 --var total
;; | total is 5 before @0x40#3 in sum at t=5, which
;; | comes from the constant 3 at @0x54#1, 3 steps back
;; |   5 = 3 + 2                           @0x40#2 in sum  t=4
;; |       2: afterimage why run.aft --at @0x40#2 --operand right
;; |   3 = 0 + 3                           @0x40#1 in sum  t=3
;; |       0: afterimage why run.aft --at @0x40#1 --operand left
;; |   the constant 3                      @0x54#1 in _start  t=1
;; $ afterimage slice run.aft --at @0x40#3 --var total --by statement
;; | what total = 5 before @0x40#3, t=5, depends on: 5 statements, 7 executions
;; |
;; | sum
;; | times  of  offset  line  text
;; |     2   4  @0x3f         i64.extend_i32_u
;; |     2   4  @0x40         i64.add
;; |     1   4  @0x47         i32.sub
;; |     1   4  @0x4c         br_if $next
;; |
;; | _start
;; | times  of  offset  line  text
;; |     1   1  @0x56         call $sum
;; $ afterimage memory run.aft --at @0x40#3 --var total
;; ! afterimage: run.aft: total is local 1 of sum at t=5, not in memory; see its values with: afterimage values run.aft --at @0x40#3 --var total
;; = 125
;; $ afterimage values run.aft --at sum --var nosuch
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage why run.aft --at sum#1 --var nosuch
;; ! afterimage: run.aft: the module has no debug information; compile it with -g
;; = 125
;; $ afterimage currency run.aft --unoptimised run.aft --at sum --var n
;; ! afterimage: run.aft and run.aft are recordings of the same program: also record a version without optimisation, on the same input
;; = 125
