;; What is caught by its tag was let run by the call that threw, not by one that returned; and the call let the handler run, not what follows it otherwise.
(module
  (tag $t (param i32))
  (func $mid (param $x i32) (if (i32.gt_s (local.get $x) (i32.const 2)) (then (throw $t (local.get $x)))))
  (func (export "_start") (local $i i32) (local $c i32) (local $d i32)
    (loop $l
      (block $done
        (block $h (result i32)
          (try_table (catch $t $h) (call $mid (local.get $i)) (local.set $d (i32.add (local.get $d) (i32.const 100))))
          (br $done))
        (local.set $c (i32.mul (i32.const 10))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_s (local.get $i) (i32.const 5))))
    (drop (i32.add (local.get $c) (local.get $d)))))

;; $ afterimage record --lens full -q -o run.aft deps-catch.wat
;; $ afterimage deps run.aft --at @0x5c#1
;; | #1 t=17  @0x5c i32.mul  in _start = 30
;; |   left     3   ← t=13  @0x64 i32.add  in _start
;; |   right    10  ← constant
;; |   control      ← t=14  @0x4c call $mid  in _start
;; |   control      ← t=16  @0x36 throw $t  in mid
;; |   moved        ← t=15  @0x32 if ;; label = @1  in mid
;; |   moved        ← t=13  @0x6c br_if $l  in _start
;; $ afterimage deps run.aft --at @0x64#4 --control
;; | #4 t=18  @0x64 i32.add  in _start = 4
;; |   control    ← t=14  @0x4c call $mid  in _start
;; |   control    ← t=16  @0x36 throw $t  in mid
;; $ afterimage deps run.aft --at @0x4c#4 --forward --control
;; | #4 t=14  @0x4c call $mid  in _start
;; |   control  → t=15  @0x2d..@0x32, 2 statements  in mid
;; |   control  → t=17  @0x5a..@0x5d, 1 statement  in _start
;; |   control  → t=18  @0x60..@0x6c, 3 statements  in _start
;; $ afterimage deps run.aft --at @0x4c#3 --forward --control
;; | #3 t=10  @0x4c call $mid  in _start
;; |   control  → t=11  @0x2d..@0x32, 2 statements  in mid
;; |   control  → t=12  @0x4e..@0x57, 2 statements  in _start
;; |   control  → t=13  @0x60..@0x6c, 3 statements  in _start
;; $ afterimage slice run.aft --at @0x5c#1 --format dot
;; | digraph slice {
;; |   label="what @0x5c#1, `i32.mul` at t=17, depends on";
;; |   node [shape=box, fontname="monospace"];
;; |   n0 [label="mid"];
;; |   n1 [label="_start"];
;; |   n0 -> n1;
;; |   n0 -> n1 [style=dashed];
;; |   n1 -> n0 [style=dashed];
;; | }
