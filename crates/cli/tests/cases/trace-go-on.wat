;; Where a trace of statements goes on, to the statement; and functions that only return in a stretch.
(module
  (tag $e (param i32))
  (func $leaf)
  (func $by-call (result i32) (i32.const 5) (call $leaf))
  (func $by-catch (result i32) (block (result i32) (try_table (catch $e 0) (throw $e (i32.const 7))) (unreachable)))
  (func $loop (param i32) (result i32)
    (loop (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if 0 (i32.gt_s (local.get 0) (i32.const 0))))
    (local.get 0))
  (func (export "f") (result i32)
    (i32.add (i32.add (call $by-call) (call $by-catch)) (call $loop (i32.const 3)))))

;; $ afterimage record -q --invoke f -o run.aft FILE
;; | 12
;; $ afterimage build --lens full run.aft
;; ! afterimage: path of 12 executed blocks in 17 bytes
;; ! afterimage: values of 11 executed statements in 40 bytes (3.6364 a statement)
;; $ afterimage trace run.aft --level statement
;; |      t  function                  place      operator          effect
;; |      1  f                                    host              calls f()
;; |      1  f                         @0x66      call              by-call()
;; |      2  by-call                   @0x39      call              leaf()
;; |      3  leaf                      @0x34      end               returns
;; |      3  by-call                   @0x3b      end               returns 5
;; |      4  f                         @0x68      call              by-catch()
;; |      5  by-catch                  @0x48      throw             7
;; |      5  by-catch                  @0x4d      end               returns 7
;; |      6  f                         @0x6a      i32.add           = 12
;; |      6  f                         @0x6d      call              loop(3)
;; |      8  loop                      @0x56      i32.sub           = 2
;; |      8  loop                      @0x5d      i32.gt_s          = 1
;; |      8  loop                      @0x5e      br_if             on 1
;; |      9  loop                      @0x56      i32.sub           = 1
;; |      9  loop                      @0x5d      i32.gt_s          = 1
;; |      9  loop                      @0x5e      br_if             on 1
;; |     10  loop                      @0x56      i32.sub           = 0
;; |     10  loop                      @0x5d      i32.gt_s          = 0
;; |     10  loop                      @0x5e      br_if             on 0
;; |     11  loop                      @0x63      end               returns 0
;; |     12  f                         @0x6f      i32.add           = 12
;; |     12  f                         @0x70      end               returns 12
;; | the run returned 12
;; $ afterimage trace run.aft --level statement --function loop --limit 4
;; |      t  function                  place      operator          effect
;; |      8  loop                      @0x56      i32.sub           = 2
;; |      8  loop                      @0x5d      i32.gt_s          = 1
;; |      8  loop                      @0x5e      br_if             on 1
;; |      9  loop                      @0x56      i32.sub           = 1
;; | … and more: continue with --from @0x5d#2, or --limit all
;; $ afterimage trace run.aft --level statement --limit 3 --reverse
;; |      t  function                  place      operator          effect
;; |     12  f                         @0x70      end               returns 12
;; |     12  f                         @0x6f      i32.add           = 12
;; |     11  loop                      @0x63      end               returns 0
;; | … and more: continue with --from @0x5e#3, or --limit all
;; $ afterimage trace run.aft --level statement --function by-call
;; |      t  function                  place      operator          effect
;; |      2  by-call                   @0x39      call              leaf()
;; |      3  by-call                   @0x3b      end               returns 5
;; $ afterimage trace run.aft --level statement --function by-call --from leaf#1
;; |      t  function                  place      operator          effect
;; |      3  by-call                   @0x3b      end               returns 5
;; $ afterimage trace run.aft --level statement --function by-call --from leaf#1 --to leaf#1
;; |      t  function                  place      operator          effect
;; |      3  by-call                   @0x3b      end               returns 5
;; $ afterimage trace run.aft --level statement --function by-catch --from 5
;; |      t  function                  place      operator          effect
;; |      5  by-catch                  @0x48      throw             7
;; |      5  by-catch                  @0x4d      end               returns 7
;; $ afterimage trace run.aft --function by-call --from leaf#1
;; ! afterimage: run.aft: by-call executes nothing from t=3 to t=12; the nearest time is t=2
;; = 125
;; $ afterimage trace run.aft --level statement --function leaf --from loop#1
;; ! afterimage: run.aft: leaf executes nothing from t=7 to t=12; the nearest time is t=3
;; = 125
;; $ afterimage trace run.aft --level statement --from @0x5d#2 --limit 2
;; |      t  function                  place      operator          effect
;; |      9  loop                      @0x5d      i32.gt_s          = 1
;; |      9  loop                      @0x5e      br_if             on 1
;; | … and more: continue with --from @0x56#3, or --limit all
;; $ afterimage trace run.aft --level statement --from 3 --limit 1
;; |      t  function                  place      operator          effect
;; |      3  leaf                      @0x34      end               returns
;; | … and more: see them with --limit N, or --limit all
;; $ afterimage trace run.aft --level statement --limit 6
;; |      t  function                  place      operator          effect
;; |      1  f                                    host              calls f()
;; |      1  f                         @0x66      call              by-call()
;; |      2  by-call                   @0x39      call              leaf()
;; |      3  leaf                      @0x34      end               returns
;; |      3  by-call                   @0x3b      end               returns 5
;; |      4  f                         @0x68      call              by-catch()
;; | … and more: continue with --from @0x48#1, or --limit all
