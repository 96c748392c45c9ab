;; Bytes of the input that are moved, added up, and looked up in a table; a loop that counts; an argument.
(module
  (import "wasi_snapshot_preview1" "fd_read"
    (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data $table (i32.const 64) "0123456789abcdef")
  (global $kept (mut i32) (i32.const 5))
  (func $get (param $length i32)
    (i32.store (i32.const 0) (i32.const 100))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $twice (param $n i32) (result i32)
    (i32.mul (local.get $n) (i32.const 2)))
  (func (export "_start")
    (local $i i32) (local $sum i32)
    (drop (call $args_get (i32.const 200) (i32.const 220)))
    (call $get (i32.const 3))
    (call $get (i32.const 5))
    (memory.copy (i32.const 300) (i32.const 100) (i32.const 5))
    (loop $next
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 40))))
    (global.set $kept (i32.load8_u offset=300 (i32.const 1)))
    (local.set $sum (i32.add (local.get $i) (call $twice (global.get $kept))))
    (i32.store8 (i32.const 400)
      (i32.load8_u offset=64 (i32.and (local.get $sum) (i32.const 15))))
    (i32.store (i32.const 404) (i32.add (i32.load8_u (i32.const 400)) (i32.load (i32.const 8))))
    (drop (i32.mul (local.get $i) (local.get $i)))
    (drop (i32.load8_u (i32.add (i32.load (i32.const 204)) (i32.const 1))))))

;; $ afterimage record --lens full --stdin FILE -o run.aft FILE one
;; ! afterimage: path of 51 executed blocks in 18 bytes
;; ! afterimage: values of 141 executed statements in 103 bytes (0.7305 a statement)
;; ! afterimage: why.wat returned; 3 host calls recorded in run.aft (N)
;; $ afterimage why run.aft --at @0x10a
;; | 97, stored at @0x10a#1 in _start,
;; | comes from byte 4 of standard input, 'y', 9 steps back
;; |     ↑ stored at @0x10a#1 in _start
;; |   97 = table[10]                      @0x107#1 in _start  t=51
;; |   10 = 282 & 15                       @0x106#1 in _start  t=51
;; |   282 = 40 + 242                      @0xfc#1 in _start  t=51
;; |       40: afterimage why run.aft --at @0xfc#1 --operand left
;; |   242 = 121 * 2                       @0xba#1 in twice  t=50
;; |     ↑ read at @0xf8#1 in _start ← written at @0xf4#1 ← loaded at @0xf0#1 ← copied at @0xd9#1
;; |   byte 4 of standard input, 'y'
;; |       fd_read provided it in host call 3, at t=6
;; $ afterimage why run.aft --at @0x11c
;; | 102, stored at @0x11c#1 in _start,
;; | comes from byte 4 of standard input, 'y', 12 steps back
;; |     ↑ stored at @0x11c#1 in _start
;; |   102 = 97 + 5                        @0x11b#1 in _start  t=51
;; |       5: afterimage why run.aft --at @0x11b#1 --operand right
;; |     ↑ loaded at @0x113#1 in _start ← stored at @0x10a#1
;; |   97 = table[10]                      @0x107#1 in _start  t=51
;; |   10 = 282 & 15                       @0x106#1 in _start  t=51
;; |   282 = 40 + 242                      @0xfc#1 in _start  t=51
;; |       40: afterimage why run.aft --at @0xfc#1 --operand left
;; |   242 = 121 * 2                       @0xba#1 in twice  t=50
;; |     ↑ read at @0xf8#1 in _start ← written at @0xf4#1 ← loaded at @0xf0#1 ← copied at @0xd9#1
;; |   byte 4 of standard input, 'y'
;; |       fd_read provided it in host call 3, at t=6
;; $ afterimage why run.aft --at @0x123
;; | 1600 at @0x123#1 in _start
;; | comes from a local that nothing wrote, which is 0, 41 steps back
;; |   1600 = 40 * 40                      @0x123#1 in _start  t=51
;; |       40: afterimage why run.aft --at @0x123#1 --operand right
;; |   40 = 39 + 1                         @0xe3#40 in _start  t=48
;; |   … this 39 more times, back to
;; |   1 = 0 + 1                           @0xe3#1 in _start  t=9
;; |   a local that nothing wrote, which is 0
;; $ afterimage why run.aft --at @0x12e
;; | 110 at @0x12e#1 in _start
;; | comes from byte 1 of argument 1 of the program, "one", 'n', one step back
;; |     ↑ loaded at @0x12e#1 in _start
;; |   byte 1 of argument 1 of the program, "one", 'n'
;; |       why that address: afterimage why run.aft --at @0x12e#1 --operand address
;; $ afterimage why run.aft --at @0xd9
;; | what memory.copy wrote at @0xd9#1 in _start
;; | comes from bytes 3..7 of standard input, one step back
;; |     ↑ copied at @0xd9#1 in _start
;; |   bytes 3..7 of standard input
;; |       fd_read provided it in host call 3, at t=6
;; $ afterimage why run.aft --at @0xb0#2
;; | 0, given by the call at @0xb0#2 in get,
;; | comes from what the host's wasi_snapshot_preview1.fd_read returned, called at t=6
;; |   what the host's wasi_snapshot_preview1.fd_read returned, called at t=6
;; $ afterimage why run.aft --at @0x11b --operand right
;; | 5 (right of i32.add at @0x11b#1 in _start)
;; | comes from the length of a read of standard input, as wasi_snapshot_preview1.fd_read reported, one step back
;; |     ↑ loaded at @0x118#1 in _start
;; |   the length of a read of standard input, as wasi_snapshot_preview1.fd_read reported
;; $ afterimage why run.aft --at @0xe3#30 --steps 10
;; | 30 at @0xe3#30 in _start
;; | goes further back than the 10 steps followed
;; |   30 = 29 + 1                         @0xe3#30 in _start  t=38
;; |   … this 9 more times, back to
;; |   21 = 20 + 1                         @0xe3#21 in _start  t=29
;; |   … stopped after 10 steps, before the beginning
;; |       to continue from here, ask why about @0xe3#21; its --steps N goes further
;; $ afterimage why run.aft --at @0xe3#30 --format json
;; | {"schema":"afterimage/why/2","about":"30 at @0xe3#30 in _start","value":"30","at":"@0xe3#30"}
;; | {"step":"computed","value":"30","typed":{"type":"i32","bits":"0x1e","as_number":30,"text":"30"},"operands":[{"role":"left","value":"29","typed":{"type":"i32","bits":"0x1d","as_number":29,"text":"29"},"constant":false,"followed":true},{"role":"right","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"constant":true,"followed":false}],"place":{"function":{"index":4,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0xe3#30","t":38}}
;; | {"step":"again","steps":1,"times":29,"back":{"step":"computed","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"operands":[{"role":"left","value":"0","typed":{"type":"i32","bits":"0x0","as_number":0,"text":"0"},"constant":false,"followed":true},{"role":"right","value":"1","typed":{"type":"i32","bits":"0x1","as_number":1,"text":"1"},"constant":true,"followed":false}],"place":{"function":{"index":4,"name":"_start"},"source":null,"around":null,"text":null,"operator":"i32.add","at":"@0xe3#1","t":9}}}
;; | {"step":"end","kind":"zero","what":"a local that nothing wrote, which is 0","file":null,"offset":null,"bytes":Nnull,"place":null,"read":null,"led":null,"remark":null}
;; $ afterimage why run.aft --at @0xe3#30 --steps 10 --format dot
;; | digraph why {
;; |   node [shape=box, fontname="monospace"];
;; |   n0 [label="30 at @0xe3#30 in _start", penwidth=3];
;; |   n1 [label="30 = 29 + 1\l@0xe3#30 in _start  t=38\l"];
;; |   n0 -> n1;
;; |   n2 [label="21 = 20 + 1\l@0xe3#21 in _start  t=29\l"];
;; |   n1 -> n2 [label="this step 9 more times", style=dotted];
;; |   n3 [label="… stopped after 10 steps, before the beginning\lto continue from here, ask why about @0xe3#21; its --steps N goes further\l", shape=ellipse];
;; |   n2 -> n3;
;; | }
;; $ afterimage why run.aft --at @0x10a --format dot
;; | digraph why {
;; |   node [shape=box, fontname="monospace"];
;; |   n0 [label="97, stored at @0x10a#1 in _start", penwidth=3];
;; |   n1 [label="97 = table[10]\l@0x107#1 in _start  t=51\l"];
;; |   n0 -> n1 [label="stored at @0x10a#1 in _start"];
;; |   n2 [label="10 = 282 & 15\l@0x106#1 in _start  t=51\l"];
;; |   n1 -> n2;
;; |   n3 [label="282 = 40 + 242\l@0xfc#1 in _start  t=51\l"];
;; |   n2 -> n3;
;; |   n3_0 [label="left 40", style=dashed];
;; |   n3 -> n3_0 [style=dashed];
;; |   n4 [label="242 = 121 * 2\l@0xba#1 in twice  t=50\l"];
;; |   n3 -> n4;
;; |   n5 [label="byte 4 of standard input, 'y'\lfd_read provided it in host call 3, at t=6\l", shape=ellipse];
;; |   n4 -> n5 [label="read at @0xf8#1 in _start\lwritten at @0xf4#1 in _start\lloaded at @0xf0#1 in _start\lcopied at @0xd9#1 in _start\l"];
;; | }
;; $ afterimage why run.aft --at @0xe3#30 --steps 10 --format csv
;; | step,what,value,times,function,name,file,line,column,operator,at,t
;; | computed,29 + 1,30,1,4,_start,,,,i32.add,'@0xe3#30,38
;; | again,1 step,,9,,,,,,,,
;; | computed,20 + 1,21,1,4,_start,,,,i32.add,'@0xe3#21,29
;; | stopped,"… stopped after 10 steps, before the beginning",,1,,,,,,,,
;; $ afterimage why run.aft --at @0x10a --format csv
;; | step,what,value,times,function,name,file,line,column,operator,at,t
;; | stored,memory 0x190,97,1,4,_start,,,,i32.store8,'@0x10a#1,51
;; | looked up,table[10],97,1,4,_start,,,,i32.load8_u,'@0x107#1,51
;; | computed,282 & 15,10,1,4,_start,,,,i32.and,'@0x106#1,51
;; | computed,40 + 242,282,1,4,_start,,,,i32.add,'@0xfc#1,51
;; | computed,121 * 2,242,1,3,twice,,,,i32.mul,'@0xba#1,50
;; | read,global 0,121,1,4,_start,,,,global.get,'@0xf8#1,49
;; | written,global 0,121,1,4,_start,,,,global.set,'@0xf4#1,49
;; | loaded,memory 0x12d,121,1,4,_start,,,,i32.load8_u,'@0xf0#1,49
;; | copied,memory 0x65,,1,4,_start,,,,memory.copy,'@0xd9#1,8
;; | input,"byte 4 of standard input, 'y'",,1,,,,,,,,
;; $ afterimage why run.aft --at @0xe3#41
;; ! afterimage: run.aft: the statement at @0xe3 was executed 40 times: there is no execution 41
;; = 125
;; $ afterimage why run.aft --at @0x11b --operand middle
;; ! afterimage: run.aft: i32.add has no operand middle; it has: left, right
;; = 125
