;; More executions than are gone through one by one: what is listed is all there is, all the same.
(module
  (func (export "_start") (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 20001000))))))

;; $ afterimage record -q -o run.aft FILE
;; $ afterimage dataflow run.aft --fact gen=_start+0x7;at=_start+0x7
;; | @0x29 i32.const  in _start: it holds: 20,000,999 of 20,001,000 times (>99.9%); executed 20,001,000 times in 1 call
;; |      times          decided by                                     executions
;; | 20,000,999  >99.9%  gen                           @0x29 i32.const  #2-#20,001,000
;; |          1   <0.1%  nothing since the call began                   #1
;; | 2 queries on 1 path trace
;; ! afterimage: path of 20,001,001 executed blocks in 21 bytes
