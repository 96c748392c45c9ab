;; Two executions of one program that end otherwise: one traps, exits with another code, or is stopped. And one that prints something else.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\05\00\00\00")
  (data (i32.const 96) "is ? ")
  (func (export "divide") (param $by i32) (result i32)
    (i32.div_u (i32.const 100) (local.get $by)))
  (func (export "exit") (param $code i32)
    (call $proc_exit (local.get $code)))
  (func (export "tell") (param $to i32) (param $digit i32)
    (i32.store8 (i32.const 99) (i32.add (i32.const 48) (local.get $digit)))
    (drop (call $write (local.get $to) (i32.const 64) (i32.const 1) (i32.const 80)))))

;; $ afterimage record --lens paths -q -o five.aft --invoke divide FILE 5
;; | 20
;; $ afterimage record --lens paths -q -o zero.aft --invoke divide FILE 0
;; ! afterimage: diff-endings.wat trapped: integer division by zero; 0 host calls recorded in zero.aft
;; = 134
;; $ afterimage diff five.aft zero.aft
;; | five.aft returned; zero.aft trapped: integer division by zero
;; | five.aft and zero.aft first differ at t=1, divide: called with different arguments
;; |   five.aft  divide                               host              calls divide(5)
;; |   zero.aft  divide                               host              calls divide(0)
;; |
;; | control takes the same path in both, through 1 block
;; |
;; | questions to ask next
;; |   afterimage why zero.aft --trap
;; $ afterimage diff zero.aft five.aft --format json
;; | {"schema":"afterimage/diff/2","a":{"file":"zero.aft","length":N},"b":{"file":"five.aft","length":N},"alike":null,"same":false,"endings":{"a":"trapped: integer division by zero","b":"returned"},"first":{"number":1,"a":{"t":1,"function":{"index":2,"name":"divide"},"operator":null,"offset":null,"source":null,"kind":"call","callee":{"index":2,"name":"divide"},"values":[{"type":"i32","bits":"0x0","as_number":0,"text":"0"}]},"b":{"t":1,"function":{"index":2,"name":"divide"},"operator":null,"offset":null,"source":null,"kind":"call","callee":{"index":2,"name":"divide"},"values":[{"type":"i32","bits":"0x5","as_number":5,"text":"5"}]},"bytes":Nnull,"calls":[]},"control":null,"outputs":[],"lines":null,"more_lines":0,"questions":["afterimage why zero.aft --trap"]}
;; $ afterimage diff zero.aft zero.aft
;; | zero.aft and zero.aft are the same execution: 1 block, every value, address and host call
;; $ afterimage match five.aft zero.aft
;; | of 0 statements that zero.aft executed, 0 (0.0%) correspond to a statement of five.aft; function names were a hint
;; |
;; | no corresponding statements behave differently
;; ! afterimage: the runs ended differently: five.aft returned; zero.aft trapped: integer division by zero
;; $ afterimage record --lens paths -q -o exit0.aft --invoke exit FILE 0
;; $ afterimage record --lens paths -q -o exit3.aft --invoke exit FILE 3
;; = 3
;; $ afterimage diff exit0.aft exit3.aft
;; | exit0.aft exited with code 0; exit3.aft exited with code 3
;; | exit0.aft and exit3.aft first differ at t=1, exit: called with different arguments
;; |   exit0.aft  exit                                 host              calls exit(0)
;; |   exit3.aft  exit                                 host              calls exit(3)
;; |
;; | control takes the same path in both, through 1 block
;; |
;; | questions to ask next
;; |   afterimage why exit3.aft --trap
;; $ afterimage why exit3.aft --trap
;; | the run exited with code 3 at @0xa7#1 in exit: the exit code is 3, which
;; | comes from argument 1 of the host's call to exit
;; |   ended at @0xa7#1 in exit
;; |   argument 1 of the host's call to exit
;; ! afterimage: values of 0 executed statements in 23 bytes (23.0000 a statement)
;; $ afterimage record --lens paths -q -o two.aft --invoke tell FILE 1 2
;; | is 2
;; $ afterimage record --lens paths -q -o six.aft --invoke tell FILE 1 6
;; | is 6
;; $ afterimage diff two.aft six.aft
;; | two.aft and six.aft first differ at t=1, tell: called with different arguments
;; |   two.aft  tell                                 host              calls tell(1, 2)
;; |   six.aft  tell                                 host              calls tell(1, 6)
;; |
;; | control takes the same path in both, through 2 blocks
;; |
;; | standard output differs from byte 3 on, in line 1
;; |   two.aft  "is 2 "  at t=1
;; |   six.aft  "is 6 "  at t=1
;; |
;; | questions to ask next
;; |   afterimage why two.aft --stdout 3
;; |   afterimage why six.aft --stdout 3
;; $ afterimage why six.aft --stdout 3
;; | 6, printed as "6" in "is 6 " (byte 3 of standard output),
;; | comes from argument 2 of the host's call to tell
;; |   argument 2 of the host's call to tell
;; ! afterimage: values of 2 executed statements in 34 bytes (17.0000 a statement)
;; $ afterimage record --lens paths -q -o error.aft --invoke tell FILE 2 2
;; ! is 2
;; $ afterimage diff error.aft six.aft
;; | error.aft and six.aft first differ at t=1, tell: called with different arguments
;; |   error.aft  tell                                 host              calls tell(2, 2)
;; |   six.aft    tell                                 host              calls tell(1, 6)
;; |
;; | control takes the same path in both, through 2 blocks
;; |
;; | standard output differs from byte 0 on, in line 1
;; |   error.aft  "", and nothing more
;; |   six.aft    "is 6 "  at t=1
;; |
;; | standard error differs from byte 0 on, in line 1
;; |   error.aft  "is 2 "  at t=1
;; |   six.aft    "", and nothing more
;; |
;; | questions to ask next
;; |   afterimage why six.aft --stdout 0
;; |   afterimage why error.aft --stderr 0
