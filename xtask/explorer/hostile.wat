;; Names and output that try to be more than text.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\2c\00\00\00")
  (data (i32.const 16) "</pre><script>alert(1)</script>\e2\80\aegnp.\1b[31m\00\ff\0a")
  (func $"<img src=x onerror=alert(1)>" (param $"<b>n</b>" i32) (result i32)
    (i32.mul (local.get 0) (i32.const 3)))
  (func $"</script><script>alert(2)</script>\u{202e}gpj.exe" (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (i32.const 1))
      (else (call $"<img src=x onerror=alert(1)>" (local.get 0)))))
  (func (export "_start") (local $i i32)
    (loop $again
      (drop (call $"</script><script>alert(2)</script>\u{202e}gpj.exe" (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 40))))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
