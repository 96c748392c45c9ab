;; A table that was changed before a call through it: forward as backward.
(module
  (memory (export "memory") 1)
  (type $f (func (param i32) (result i32)))
  (table $t 2 funcref)
  (elem $e func $b)
  (func $b (param i32) (result i32) (i32.mul (local.get 0) (i32.const 5)))
  (func $tc (param i32) (result i32) (return_call_indirect $t (type $f) (local.get 0) (i32.const 1)))
  (func $start (export "_start")
    (table.init $t $e (i32.const 1) (i32.const 0) (i32.const 1))
    (i32.store (i32.const 8) (call $tc (i32.load (i32.const 4))))))

;; $ afterimage record -o run.aft FILE
;; ! afterimage: slice-table.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage slice run.aft --at @0x5d --forward --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 0,b,2,73,,,1,1
;; | 1,tc,2,81,,,1,1
;; | 2,start,3,93,,,1,1
;; | 2,start,8,106,,,1,1
;; ! afterimage: path of 4 executed blocks in 14 bytes
;; ! afterimage: values of 4 executed statements in 14 bytes (3.5000 a statement)
;; $ afterimage slice run.aft --at @0x49 --by statement --format csv
;; | function,name,op,offset,file,line,sliced,executed
;; | 0,b,2,73,,,1,1
;; | 1,tc,2,81,,,1,1
;; | 2,start,3,93,,,1,1
;; | 2,start,6,101,,,1,1
;; | 2,start,7,104,,,1,1
