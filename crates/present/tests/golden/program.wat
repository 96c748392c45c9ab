(module
  (import "env" "log" (func $log (param i32)))
  (func $main (export "main")
    i32.const 4
    call $sum
    call $log)
  ;; Adds the numbers from n down to 1.
  (func $sum (param $n i32) (result i32)
    (local $s i32)
    (loop $next
      local.get $s local.get $n i32.add local.set $s
      local.get $n
      i32.const 1 i32.sub local.tee $n
      br_if $next)
    local.get $n
    if
      unreachable local.get 1 local.set 1
    else
      nop i32.const 7 local.set $n
    end
    local.get $s)
  (func $"never, \"ever\"" (param i32)
    (block (block (br_table 0 1 0 (local.get 0)))
      nop nop))
  (table 1 funcref))
