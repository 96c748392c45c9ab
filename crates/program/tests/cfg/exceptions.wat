;; Dispatch vertices exist exactly where an exception can arrive.
(module
  (type $v (func))
  (tag $e (param i32))
  (tag $f)
  (table 1 funcref)
  (elem (i32.const 0) $throws)
  (func $throws (throw $f))
  (func $harmless)
  (func $catches (result i32)
    (block $handler (result i32)
      (try_table (catch $e $handler)
        (call $throws)
        (call $harmless)
        (throw $e (i32.const 1)))
      unreachable))
  (func $catch_all_stops
    (block $all
      (try_table (catch_all $all) (catch $f $all)
        (call $throws))))
  (func $nested (result i32)
    (block $e (result i32)
      (try_table (result i32) (catch $e $e)
        (block $f
          (try_table (catch $f $f) (catch $e 1)
            (call_indirect (type $v) (i32.const 0))))
        (i32.const 0))))
  (func $nothing_throws
    (block $h (try_table (catch $f $h) (call $harmless))))
  (func $into_a_loop
    (loop $again
      (try_table (catch_all $again) (call $throws))))
  (func $to_function_label
    (try_table (catch $f 0) (call $throws)))
  (func $tail_call_leaves_the_try
    (block $h (try_table (catch $f $h) (return_call $throws))))
  (func $calls_tail (call $tail_call_leaves_the_try))
)
