;; What was copied comes from where it was read, however it is computed where to and how much.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 200) "hello world\n")
  (func (export "run") (param $n i32) (local $to i32)
    (local.set $to (i32.add (i32.const 1000) (local.get $n)))
    (memory.copy (local.get $to) (i32.const 200) (i32.add (local.get $n) (i32.const 3)))
    (i32.store (i32.const 500) (local.get $to))
    (i32.store (i32.const 504) (i32.const 12))
    (drop (call $write (i32.const 1) (i32.const 500) (i32.const 1) (i32.const 520))))
  ;; A table of bytes: what is read was chosen.
  (func (export "table") (param $n i32)
    (memory.copy (i32.const 1000) (i32.add (i32.const 200) (local.get $n)) (i32.const 1))
    (i32.store (i32.const 500) (i32.const 1000))
    (i32.store (i32.const 504) (i32.const 1))
    (drop (call $write (i32.const 1) (i32.const 500) (i32.const 1) (i32.const 520)))))

;; $ afterimage record --lens full -q -o run.aft --invoke run FILE -- 9
;; | hello world
;; $ afterimage why run.aft --stdout 3
;; | byte 3 of standard output, 'l' in "hello world"
;; | comes from initial memory: data segment 0, byte 3, one step back
;; |     ↑ copied at @0x79#1 in run
;; |   initial memory: data segment 0, byte 3
;; |       from there on it holds "lo world\n"
;; $ afterimage record --lens full -q --force -o run.aft --invoke table FILE -- 6
;; | w
;; $ afterimage why run.aft --stdout 0
;; | byte 0 of standard output, 'w' in "w"
;; | comes from argument 1 of the host's call to table, 2 steps back
;; |    = table[206]                       @0xa8#1 in table  t=1
;; |   206 = 200 + 6                       @0xa5#1 in table  t=1
;; |   argument 1 of the host's call to table
