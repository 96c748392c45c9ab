;; Each way for a run to end: its exit code, what `info` says, and that the counts are exact up to there.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (tag $boom (param i32))
  (table 1 funcref)
  (type $none (func))
  (func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (local.get 0))))
  (func $leave (param $code i32) (if (local.get $code) (then (call $proc_exit (local.get $code)))))
  (func (export "return"))
  (func (export "exit") (param i32) (call $leave (local.get 0)) (call $proc_exit (i32.const 0)))
  (func (export "unreachable") (if (i32.const 1) (then (unreachable))))
  (func (export "divide") (drop (i32.div_u (i32.const 1) (i32.const 0))))
  (func (export "load") (drop (i32.load (i32.const -4))))
  (func (export "indirect") (call_indirect (type $none) (i32.const 0)))
  (func (export "throw") (throw $boom (i32.const 1)))
  (func (export "overflow") (drop (call $deep (i32.const 0))))
  (func (export "spin") (loop $again (br $again)))
  (func (export "numbers") (param i32 i64 f32 f64) (result i32 i64 f32 f64)
    (local.get 0) (local.get 1) (local.get 2) (local.get 3)))

;; $ afterimage record --force --invoke return FILE
;; ! afterimage: endings.wat returned; 0 host calls recorded in endings.aft (N)
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   return
;; | recorded  WHEN
;; | ending    returned
;; | boundary  0 host calls in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage record --force --invoke exit FILE 0
;; ! afterimage: endings.wat exited with code 0; 1 host call recorded in endings.aft (N)
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   exit 0
;; | recorded  WHEN
;; | ending    exited with code 0
;; |           in exit at @0x11e
;; | boundary  1 host call in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   1 argument
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function exit --function leave
;; | ran 6 instructions in 3 blocks; 2 of 12 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 33.3%             2      1   0x109  block0  branch      -       leave
;; |  0.0%             0      0   0x10d  block1  call func1  -       leave
;; | 33.3%             2      1   0x118  block0  call func3  -       exit
;; | 33.3%             2      1   0x11c  block1  call func1  -       exit
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke exit FILE 3
;; ! afterimage: endings.wat exited with code 3; 1 host call recorded in endings.aft (N)
;; = 3
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   exit 3
;; | recorded  WHEN
;; | ending    exited with code 3
;; |           in leave at @0x10f
;; |           in exit at @0x11a
;; | boundary  1 host call in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   1 argument
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function exit --function leave
;; | ran 6 instructions in 3 blocks; 2 of 12 functions executed; the run ended inside 2 calls
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 33.3%             2      1   0x109  block0  branch      -       leave
;; | 33.3%             2      1   0x10d  block1  call func1  -       leave
;; | 33.3%             2      1   0x118  block0  call func3  -       exit
;; |  0.0%             0      0   0x11c  block1  call func1  -       exit
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke exit FILE 255
;; ! afterimage: endings.wat exited with code 255; 1 host call recorded in endings.aft (N)
;; = 255
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   exit 255
;; | recorded  WHEN
;; | ending    exited with code 255
;; |           in leave at @0x10f
;; |           in exit at @0x11a
;; | boundary  1 host call in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   1 argument
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function exit --function leave
;; | ran 6 instructions in 3 blocks; 2 of 12 functions executed; the run ended inside 2 calls
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 33.3%             2      1   0x109  block0  branch      -       leave
;; | 33.3%             2      1   0x10d  block1  call func1  -       leave
;; | 33.3%             2      1   0x118  block0  call func3  -       exit
;; |  0.0%             0      0   0x11c  block1  call func1  -       exit
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke exit FILE 256
;; ! afterimage: endings.wat exited with code 256; 1 host call recorded in endings.aft (N)
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   exit 256
;; | recorded  WHEN
;; | ending    exited with code 256
;; |           in leave at @0x10f
;; |           in exit at @0x11a
;; | boundary  1 host call in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   1 argument
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function exit --function leave
;; | ran 6 instructions in 3 blocks; 2 of 12 functions executed; the run ended inside 2 calls
;; |
;; | share  instructions  count  offset  block   end         source  function
;; | 33.3%             2      1   0x109  block0  branch      -       leave
;; | 33.3%             2      1   0x10d  block1  call func1  -       leave
;; | 33.3%             2      1   0x118  block0  call func3  -       exit
;; |  0.0%             0      0   0x11c  block1  call func1  -       exit
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke unreachable FILE
;; ! afterimage: endings.wat trapped: unreachable executed; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   unreachable
;; | recorded  WHEN
;; | ending    trapped: unreachable executed
;; |           in unreachable at @0x127
;; | boundary  0 host calls in 1 event
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function unreachable
;; | ran 3 instructions in 2 blocks; 1 of 12 functions executed; the run ended inside 1 call
;; |
;; | share  instructions  count  offset  block   end          source  function
;; | 66.7%             2      1   0x123  block0  branch       -       unreachable
;; | 33.3%             1      1   0x127  block1  unreachable  -       unreachable
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke divide FILE
;; ! afterimage: endings.wat trapped: integer division by zero; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   divide
;; | recorded  WHEN
;; | ending    trapped: integer division by zero
;; |           in divide at @0x130
;; | boundary  0 host calls in 1 event
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function divide
;; | ran 3 instructions in 1 block; 1 of 12 functions executed; the run ended inside 1 call
;; |
;; |  share  instructions  count  offset  block   end     source  function
;; | 100.0%             3      1   0x12c  block0  return  -       divide
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke load FILE
;; ! afterimage: endings.wat trapped: memory access out of bounds; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   load
;; | recorded  WHEN
;; | ending    trapped: memory access out of bounds
;; |           in load at @0x137
;; | boundary  0 host calls in 1 event
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function load
;; | ran 2 instructions in 1 block; 1 of 12 functions executed; the run ended inside 1 call
;; |
;; |  share  instructions  count  offset  block   end     source  function
;; | 100.0%             2      1   0x135  block0  return  -       load
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke indirect FILE
;; ! afterimage: endings.wat trapped: indirect call to null; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   indirect
;; | recorded  WHEN
;; | ending    trapped: indirect call to null
;; |           in indirect at @0x140
;; | boundary  0 host calls in 1 event
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function indirect
;; | ran 2 instructions in 1 block; 1 of 12 functions executed; the run ended inside 1 call
;; |
;; |  share  instructions  count  offset  block   end                source  function
;; | 100.0%             2      1   0x13e  block0  call table0 type0  -       indirect
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke throw FILE
;; ! afterimage: endings.wat threw an exception that nothing caught; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   throw
;; | recorded  WHEN
;; | ending    threw an exception that nothing caught
;; | boundary  0 host calls in 2 events
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage profile endings.aft --by block --sort program --function throw
;; | ran 2 instructions in 1 block; 1 of 12 functions executed
;; |
;; |  share  instructions  count  offset  block   end    source  function
;; | 100.0%             2      1   0x146  block0  throw  -       throw
;; $ afterimage verify endings.aft
;; | sound: N, 6 chunks in 5 sections, 2 events
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke overflow --stack 64 FILE
;; ! afterimage: endings.wat exhausted its stack; 0 host calls recorded in endings.aft (N)
;; = 134
;; $ afterimage verify endings.aft
;; | sound: N, 5 chunks in 4 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --quiet --invoke spin --timeout 0.05 FILE
;; ! afterimage: endings.wat was stopped by the time limit; 0 host calls recorded in endings.aft (N)
;; = 124
;; $ afterimage info endings.aft
;; | program   endings.wat
;; | invoked   spin
;; | recorded  WHEN
;; | ending    was stopped by the time limit
;; |           in spin at @0x157
;; | boundary  0 host calls in 1 event
;; | sha256    e3c7f0a686ce796e2656ffbac58398a1c481eb437a5623b363c28605dd441182
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    none yet
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 443 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage verify endings.aft
;; | sound: N, 5 chunks in 4 sections, 1 event
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage record --force --invoke numbers FILE 4294967295 0x10 1.5 -0.1
;; | -1
;; | 16
;; | 1.5
;; | -0.1
;; ! afterimage: endings.wat returned; 0 host calls recorded in endings.aft (N)
;; $ afterimage record --force --invoke numbers FILE 1 2 3
;; ! afterimage: endings.wat: numbers takes i32 i64 f32 f64, but 3 given
;; = 125
;; $ afterimage record --force --invoke numbers FILE 1 2 3 four
;; ! afterimage: endings.wat: numbers takes i32 i64 f32 f64, but "four" is not of type f64
;; = 125
;; $ afterimage record --force --invoke nothing FILE
;; ! afterimage: endings.wat: the program exports no function "nothing"; name one of these with --invoke: return, exit, unreachable, divide, load, indirect, throw, overflow, spin, numbers
;; = 126
;; $ afterimage record --force FILE
;; ! afterimage: endings.wat: the program exports no function "_start"; name one of these with --invoke: return, exit, unreachable, divide, load, indirect, throw, overflow, spin, numbers
;; = 126
