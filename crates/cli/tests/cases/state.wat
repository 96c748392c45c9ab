;; The call stack and what is in it: recursion, a tail call, an indirect call, globals, a trap in the middle of a block.
(module
  (memory (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (global $wide i64 (i64.const 1311768467463790320))
  (type $unary (func (param i32) (result i32)))
  (table funcref (elem $last))
  (func $last (type $unary) (local $v v128) (local $f f64)
    (local.set $f (f64.div (f64.const 1) (f64.convert_i32_s (local.get 0))))
    (local.set $v (i32x4.splat (local.get 0)))
    (i32.store (i32.const 8) (local.get 0))
    (if (i32.eqz (local.get 0)) (then (unreachable)))
    (i32.div_s (i32.const 12) (local.get 0)))
  (func $hop (param $x i32) (param $y i64) (result i32)
    (return_call_indirect (type $unary) (i32.add (local.get $x) (i32.wrap_i64 (local.get $y))) (i32.const 0)))
  (func $down (param $n i32) (result i32) (local $twice i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (local.set $twice (i32.mul (local.get $n) (i32.const 2)))
    (if (result i32) (local.get $n)
      (then (i32.add (local.get $twice) (call $down (i32.sub (local.get $n) (i32.const 1)))))
      (else (call $hop (local.get $twice) (i64.const 3)))))
  (func (export "_start") (local $r i32)
    (local.set $r (call $down (i32.const 3)))
    (drop (call $last (i32.const 0)))))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: state.wat trapped: unreachable executed; 0 host calls recorded in run.aft (N)
;; = 134
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 18 executed blocks in 18 bytes
;; ! afterimage: values of 41 executed statements in 38 bytes (0.9268 a statement)
;; $ afterimage state run.aft --at last
;; | before the block at t=11 of 18
;; | #0 last(3)  @0x6a  t=11
;; |     the module has no debug information; compile it with -g
;; |     local 0 = 3  (i32, parameter)
;; |     local 1 $v = 0x00000000000000000000000000000000  (v128)
;; |     local 2 $f = 0.0  (f64)
;; | #1 down(0)  @0xc6  t=9
;; |     local 0 $n = 0  (i32, parameter)
;; |     local 1 $twice = 0  (i32)
;; | #2 down(1)  @0xbe  t=7
;; |     local 0 $n = 1  (i32, parameter)
;; |     local 1 $twice = 2  (i32)
;; | #3 down(2)  @0xbe  t=5
;; |     local 0 $n = 2  (i32, parameter)
;; |     local 1 $twice = 4  (i32)
;; | #4 down(3)  @0xbe  t=3
;; |     local 0 $n = 3  (i32, parameter)
;; |     local 1 $twice = 6  (i32)
;; | #5 _start()  @0xd0  t=1
;; |     local 0 $r = 0  (i32)
;; $ afterimage state run.aft --at down#last --depth 2
;; | before the block at t=8 of 18
;; | #0 down(0)  @0xa5  t=8
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 0  (i32, parameter)
;; |     local 1 $twice = 0  (i32)
;; | #1 down(1)  @0xbe  t=7
;; |     local 0 $n = 1  (i32, parameter)
;; |     local 1 $twice = 2  (i32)
;; | … and 3 more: --depth N
;; $ afterimage state run.aft --at down#last --frame 3
;; | before the block at t=8 of 18
;; | #3 down(3)  @0xbe  t=3
;; |     the module has no debug information; compile it with -g
;; |     local 0 $n = 3  (i32, parameter)
;; |     local 1 $twice = 6  (i32)
;; $ afterimage state run.aft --at down#last --frame 5
;; ! afterimage: run.aft: --frame 5: 5 functions are active at t=8, numbered from 0
;; = 125
;; $ afterimage state run.aft --at end --globals
;; | before @0x8b, in the block at t=18 of 18
;; | #0 last(0)  @0x8b  t=18
;; |     the module has no debug information; compile it with -g
;; |     local 0 = 0  (i32, parameter)
;; |     local 1 $v = 0x00000000000000000000000000000000  (v128)
;; |     local 2 $f = inf  (f64)
;; | #1 _start()  @0xd6  t=16
;; |     local 0 $r = 16  (i32)
;; | globals
;; |     global 0 = 4  (i32)
;; |     global 1 = 1311768467463790320 (0x123456789abcdef0)  (i64)
;; $ afterimage state run.aft --at start
;; | before the block at t=1 of 18
;; | #0 _start()  @0xce  t=1
;; |     the module has no debug information; compile it with -g
;; |     local 0 $r = 0  (i32)
;; $ afterimage state run.aft --at hop --depth 1 --globals --format json
;; | {"schema":"afterimage/state/2","t":10,"length":N,"before":"block","open":6,"frames":[{"number":0,"function":{"index":1,"name":"hop"},"entered_t":10,"t":10,"offset":149,"source":null,"inlined":[],"why":"the module has no debug information; compile it with -g","locals":[{"index":0,"type":"i32","parameter":true,"name":"x","bits":"0x0","text":"0"},{"index":1,"type":"i64","parameter":true,"name":"y","bits":"0x3","text":"3"}]}],"globals":[{"index":0,"type":"i32","parameter":false,"bits":"0x4","text":"4"},{"index":1,"type":"i64","parameter":false,"bits":"0x123456789abcdef0","text":"1311768467463790320 (0x123456789abcdef0)"}],"variables":[],"more":0}
;; $ afterimage state run.aft --at 0
;; ! afterimage: run.aft: the run has 18 blocks, from t=1 to t=18; there is no 0; the nearest is t=1
;; = 125
;; $ afterimage state run.aft --at down#5
;; ! afterimage: run.aft: down was called 4 times, so there is no #5; the last is #4
;; = 125
;; $ afterimage state run.aft --at doun
;; ! afterimage: run.aft: no function is called "doun"; did you mean down?
;; = 125
;; $ afterimage state run.aft --at end --depth 0
;; ! error: invalid value '0' for '--depth <N>': --depth 0 shows nothing; give a number from 1 on
;; !
;; ! For more information, try '--help'.
;; = 125
;; $ afterimage values run.aft --at down --var n
;; | n (i32) at down: called 4 times
;; |           #1  t=2              3
;; |           #2  t=4              2
;; |           #3  t=6              1
;; |           #4  t=8              0
;; $ afterimage values run.aft --at down --var n->
;; ! afterimage: run.aft: --var n->: expected the name of a member at character 3 of the expression; write a name, p->next, s.member, a[3] or *p
;; = 125
;; $ afterimage values run.aft --at down --var n --stats
;; | n (i32) at down: called 4 times
;; |     4 different values, from 0 (first #4) to 3 (first #1); each once
