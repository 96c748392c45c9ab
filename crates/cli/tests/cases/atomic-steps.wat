;; An atomic operator is several instructions that access memory; what follows it keeps its own addresses.
(module (memory 1)
  (func (export "t") (result i32) (local $i i32)
    (loop $l
      (drop (i32.atomic.rmw.add (i32.mul (local.get $i) (i32.const 8)) (i32.const 5)))
      (drop (i32.load offset=4 (i32.mul (local.get $i) (i32.const 8))))
      (i32.store offset=400 (i32.mul (local.get $i) (i32.const 4)) (local.get $i))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 2))))
    (i32.load offset=8 (i32.const 0))))
;; $ afterimage record -q -o run.aft --invoke t FILE
;; | 5
;; $ afterimage trace run.aft --level memory
;; |      t  function                  place      operator          effect
;; |      2  t                         @0x2f      i32.atomic.rmw.add  0x0, 4 bytes = 0
;; |      2  t                         @0x2f      i32.atomic.rmw.add  0x0, 4 bytes <- 5
;; |      2  t                         @0x39      i32.load          0x4, 4 bytes = 0
;; |      2  t                         @0x44      i32.store         0x190, 4 bytes <- 0
;; |      3  t                         @0x2f      i32.atomic.rmw.add  0x8, 4 bytes = 0
;; |      3  t                         @0x2f      i32.atomic.rmw.add  0x8, 4 bytes <- 5
;; |      3  t                         @0x39      i32.load          0xc, 4 bytes = 0
;; |      3  t                         @0x44      i32.store         0x194, 4 bytes <- 1
;; |      4  t                         @0x57      i32.load          0x8, 4 bytes = 5
;; | the run returned 5
;; ! afterimage: path of 4 executed blocks in 11 bytes
;; $ afterimage trace run.aft --level statement
;; |      t  function                  place      operator          effect
;; |      1  t                                    host              calls t()
;; |      2  t                         @0x2c      i32.mul           = 0
;; |      2  t                         @0x2f      i32.atomic.rmw.add  0x0, 4 bytes = 0
;; |      2  t                         @0x38      i32.mul           = 0
;; |      2  t                         @0x39      i32.load          0x4, 4 bytes = 0
;; |      2  t                         @0x41      i32.mul           = 0
;; |      2  t                         @0x44      i32.store         0x190, 4 bytes <- 0
;; |      2  t                         @0x4c      i32.add           = 1
;; |      2  t                         @0x51      i32.lt_u          = 1
;; |      2  t                         @0x52      br_if             on 1
;; |      3  t                         @0x2c      i32.mul           = 8
;; |      3  t                         @0x2f      i32.atomic.rmw.add  0x8, 4 bytes = 0
;; |      3  t                         @0x38      i32.mul           = 8
;; |      3  t                         @0x39      i32.load          0xc, 4 bytes = 0
;; |      3  t                         @0x41      i32.mul           = 4
;; |      3  t                         @0x44      i32.store         0x194, 4 bytes <- 1
;; |      3  t                         @0x4c      i32.add           = 2
;; |      3  t                         @0x51      i32.lt_u          = 0
;; |      3  t                         @0x52      br_if             on 0
;; |      4  t                         @0x57      i32.load          0x8, 4 bytes = 5
;; |      4  t                         @0x5a      end               returns 5
;; | the run returned 5
