;; Functions that return without executing a block after a call or a throw; what an invoked function returned.
(module
  (tag $e (param i32))
  (func $leaf)
  (func $by-call (result i32) (i32.const 5) (call $leaf))
  (func $by-loop (result i32) (loop (result i32) (i32.const 6) (call $leaf)))
  (func $by-catch (result i32) (block (result i32) (try_table (catch $e 0) (throw $e (i32.const 7))) (unreachable)))
  (func $with-event (result i32) (call $leaf) (i32.const 8))
  (func (export "f") (result i32) (i32.add (i32.add (call $by-call) (call $by-loop)) (i32.add (call $by-catch) (call $with-event))))
  (func (export "g") (result i32 i64) (call $by-catch) (i64.const -1) (call $leaf)))

;; $ afterimage record -o f.aft --lens full --invoke f FILE
;; | 26
;; ! afterimage: path of 13 executed blocks in 20 bytes
;; ! afterimage: values of 3 executed statements in 40 bytes (13.3333 a statement)
;; ! afterimage: returns.wat returned; 0 host calls recorded in f.aft (N)
;; $ afterimage trace --level statement f.aft
;; |      t  function                  place      operator          effect
;; |      1  f                                    host              calls f()
;; |      1  f                         @0x67      call              by-call()
;; |      2  by-call                   @0x3f      call              leaf()
;; |      3  leaf                      @0x3a      end               returns
;; |      3  by-call                   @0x41      end               returns 5
;; |      4  f                         @0x69      call              by-loop()
;; |      5  by-loop                   @0x48      call              leaf()
;; |      6  leaf                      @0x3a      end               returns
;; |      6  by-loop                   @0x4b      end               returns 6
;; |      7  f                         @0x6b      i32.add           = 11
;; |      7  f                         @0x6c      call              by-catch()
;; |      8  by-catch                  @0x58      throw             7
;; |      8  by-catch                  @0x5d      end               returns 7
;; |      9  f                         @0x6e      call              with-event()
;; |     10  with-event                @0x60      call              leaf()
;; |     11  leaf                      @0x3a      end               returns
;; |     12  with-event                @0x64      end               returns 8
;; |     13  f                         @0x70      i32.add           = 15
;; |     13  f                         @0x71      i32.add           = 26
;; |     13  f                         @0x72      end               returns 26
;; | the run returned 26
;; $ afterimage trace --level statement --function by-loop f.aft
;; |      t  function                  place      operator          effect
;; |      5  by-loop                   @0x48      call              leaf()
;; |      6  by-loop                   @0x4b      end               returns 6
;; $ afterimage trace --level statement --reverse --last 4 f.aft
;; |      t  function                  place      operator          effect
;; |     13  f                         @0x72      end               returns 26
;; |     13  f                         @0x71      i32.add           = 26
;; |     13  f                         @0x70      i32.add           = 15
;; |     12  with-event                @0x64      end               returns 8
;; $ afterimage trace --last 1 f.aft
;; |      t  depth  block     offset      function
;; |     13      0  block4    0x70        f
;; | the run returned 26
;; $ afterimage state --at end f.aft
;; | before the block at t=13 of 13
;; | #0 f()  @0x70  t=13
;; |     the module has no debug information; compile it with -g
;; | the run then returned 26
;; $ afterimage record -o g.aft --invoke g FILE
;; | 7
;; | -1
;; ! afterimage: returns.wat returned; 0 host calls recorded in g.aft (N)
;; $ afterimage trace --level statement --format json g.aft
;; | {"schema":"afterimage/trace/2","level":"statement","first":1,"last":4,"length":N,"reverse":false,"function":null}
;; | {"t":1,"function":{"index":6,"name":"g"},"operator":null,"offset":null,"source":null,"kind":"call","callee":{"index":6,"name":"g"},"values":[]}
;; | {"t":1,"function":{"index":6,"name":"g"},"operator":"call","offset":117,"source":null,"kind":"call","callee":{"index":3,"name":"by-catch"},"values":[]}
;; | {"t":2,"function":{"index":3,"name":"by-catch"},"operator":"throw","offset":88,"source":null,"kind":"throw","values":[{"type":"i32","bits":"0x7","as_number":7,"text":"7"}]}
;; | {"t":2,"function":{"index":3,"name":"by-catch"},"operator":"end","offset":93,"source":null,"kind":"return","values":[{"type":"i32","bits":"0x7","as_number":7,"text":"7"}]}
;; | {"t":3,"function":{"index":6,"name":"g"},"operator":"call","offset":121,"source":null,"kind":"call","callee":{"index":0,"name":"leaf"},"values":[]}
;; | {"t":4,"function":{"index":0,"name":"leaf"},"operator":"end","offset":58,"source":null,"kind":"return","values":[]}
;; | {"t":4,"function":{"index":6,"name":"g"},"operator":"end","offset":123,"source":null,"kind":"return","values":[{"type":"i32","bits":"0x7","as_number":7,"text":"7"},{"type":"i64","bits":"0xffffffffffffffff","as_number":-1,"text":"-1"}]}
;; ! afterimage: path of 4 executed blocks in 14 bytes
