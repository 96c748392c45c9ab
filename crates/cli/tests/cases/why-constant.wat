;; A constant that a branch chose, and one that nothing chose.
(module
  (func $grade (param $points i32) (result i32)
    (local $grade i32)
    (if (i32.gt_s (local.get $points) (i32.const 90))
      (then (local.set $grade (i32.const 1)))
      (else (local.set $grade (i32.const 2))))
    (local.get $grade))
  (func (export "_start")
    (local $sum i32)
    (local.set $sum (i32.add (call $grade (i32.const 95)) (call $grade (i32.const 70))))
    (drop (i32.mul (local.get $sum) (i32.const 3)))
    (if (i32.gt_s (local.get $sum) (i32.const 2))
      (then (local.set $sum (i32.const 40)))
      (else (local.set $sum (i32.const 50))))
    (drop (i32.sub (local.get $sum) (i32.const 7)))))

;; $ afterimage record --lens full -o run.aft FILE
;; ! afterimage: path of 11 executed blocks in 13 bytes
;; ! afterimage: values of 9 executed statements in 1 bytes (0.1111 a statement)
;; ! afterimage: why-constant.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage why run.aft --at @0x55 --operand left
;; | 3 (left of i32.mul at @0x55#1 in _start)
;; | comes from the constant 1 at @0x33#1, one step back
;; |   3 = 1 + 2                           @0x4e#1 in _start  t=9
;; |       2: afterimage why run.aft --at @0x4e#1 --operand right
;; |   the constant 1                      @0x33#1 in grade  t=3
;; |       led there by the branch at @0x31#1 in grade, on 1: afterimage why run.aft --at @0x31#1
;; $ afterimage why run.aft --at @0x55 --operand right
;; | 3 (right of i32.mul at @0x55#1 in _start)
;; | comes from the constant 3 at @0x55#1
;; |   the constant 3                      @0x55#1 in _start  t=9
;; $ afterimage why run.aft --at @0x55 --format json
;; | {"schema":"afterimage/why/2","about":"9 at @0x55#1 in _start","value":"9","at":"@0x55#1"}
;; | {"step":"computed","value":"9","typed":{"type":"i32","bits":"0x9","as_number":9,"text":"9"},"operands":[{"role":"left","value":"3","typed":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"constant":false,"followed":true},{"role":"right","value":"3","typed":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"constant":true,"followed":false}],"place":{"function":{"index":1,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.mul","at":"@0x55#1","t":9}}
;; | {"step":"computed","value":"3","typed":{"type":"i32","bits":"0x3","as_number":3,"text":"3"},"operands":[{"role":"left","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"constant":true,"followed":true},{"role":"right","value":"2","typed":{"type":"i32","bits":"0x2","as_number":2,"text":"2"},"constant":true,"followed":false}],"place":{"function":{"index":1,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0x4e#1","t":9}}
;; | {"step":"end","kind":"constant","what":"the constant 1","file":null,"offset":null,"bytes":Nnull,"place":{"function":{"index":0,"name":"grade"},"source":null,"around":null,"text":null,"operator":"i32.const","at":"@0x33#1","t":3},"read":null,"led":{"place":{"function":{"index":0,"name":"grade"},"source":null,"around":null,"text":null,"operator":"if","at":"@0x31#1","t":2},"value":"1"},"remark":null}
;; $ afterimage why run.aft --at @0x55 --format dot
;; | digraph why {
;; |   node [shape=box, fontname="monospace"];
;; |   n0 [label="9 at @0x55#1 in _start", penwidth=3];
;; |   n1 [label="9 = 3 * 3\l@0x55#1 in _start  t=9\l"];
;; |   n0 -> n1;
;; |   n2 [label="3 = 1 + 2\l@0x4e#1 in _start  t=9\l"];
;; |   n1 -> n2;
;; |   n3 [label="the constant 1\lled there by if at @0x31#1 in grade on 1\l@0x33#1 in grade  t=3\l", shape=ellipse];
;; |   n2 -> n3;
;; | }
;; $ afterimage why run.aft --at @0x6c
;; | 33 at @0x6c#1 in _start
;; | comes from the constant 40 at @0x5e#1, one step back
;; |   33 = 40 - 7                         @0x6c#1 in _start  t=11
;; |   the constant 40                     @0x5e#1 in _start  t=10
;; |       led there by the branch at @0x5c#1 in _start, on 1: afterimage why run.aft --at @0x5c#1
