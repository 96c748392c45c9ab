;; Calls through a table to an entry without a function, and to a function of another type.
(module
  (type $handler (func (param i32) (result i32)))
  (type $other (func (param i64)))
  (table 1200 funcref)
  (elem (i32.const 0) $double $drops)
  (func $double (type $handler) (i32.add (local.get 0) (local.get 0)))
  (func $drops (type $other))
  (func $dispatch (param $event i32) (result i32)
    (call_indirect (type $handler) (i32.const 21) (local.get $event)))
  (func (export "run") (param $event i32) (result i32)
    (call $dispatch (i32.add (local.get $event) (i32.const 1)))))

;; $ afterimage record --lens full -q -o run.aft --invoke run FILE -- -1
;; $ afterimage record --lens full -q --force -o run.aft --invoke run FILE -- 1100
;; $ afterimage why run.aft --trap
;; $ afterimage why run.aft --trap --format json
;; $ afterimage record --lens full -q --force -o run.aft --invoke run FILE -- 0
;; $ afterimage why run.aft --trap
