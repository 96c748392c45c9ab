;; Calls end a block, and tail calls leave the function.
(module
  (import "env" "f" (func $import))
  (type $t (func))
  (table 1 funcref)
  (func $calls
    call $import
    (call_indirect (type $t) (i32.const 0)))
  (func $tail
    nop
    return_call $calls)
  (func $tail_indirect
    (return_call_indirect (type $t) (i32.const 0)))
)
