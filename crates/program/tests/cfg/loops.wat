;; A loop at the start of a function leaves the root without operators.
;; A loop without a branch back to it does not split a block.
(module
  (func $starts_with_loop (param i32)
    (loop $again
      (br_if $again (local.get 0))))
  (func $loop_without_branch (param i32)
    nop
    (loop (drop (local.get 0)))
    nop)
  (func $infinite
    (loop $again (br $again)))
  (func $nested_headers (param i32 i32)
    (loop $outer
      (loop $inner
        (br_if $inner (local.get 0))
        (br_if $outer (local.get 1)))))
  (func $empty_loop_before_else (param i32)
    (if (local.get 0)
      (then nop (loop))
      (else nop)))
)
