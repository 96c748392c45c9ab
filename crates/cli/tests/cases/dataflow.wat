;; $f reads, changes and computes in a loop; $g is called from there every second time, and writes memory.
(module
  (memory 1)
  (func $g (param $p i32)
    (i32.store (i32.const 16) (local.get $p)))
  (func $f (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.mul (local.get $n) (i32.const 3))))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.const 16))))
      (if (i32.and (local.get $i) (i32.const 1))
        (then (call $g (local.get $sum)))
        (else (i32.store offset=4 (i32.const 16) (local.get $i))))
      (local.set $sum (i32.xor (local.get $sum) (i32.load (i32.const 16))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "main") (result i32)
    (i32.add (call $f (i32.const 4)) (call $f (i32.const 5)))))
;; $ afterimage record --invoke main -o run.aft FILE
;; | 15
;; ! afterimage: dataflow.wat returned; 0 host calls recorded in run.aft (N)
;; $ afterimage dataflow run.aft --fact available:@0x4e --paths 5
;; | @0x4e i32.load  in f: its result is already available: 7 of 9 times (77.8%); executed 9 times in 2 calls
;; | times         decided by                                    executions
;; |     7  77.8%  available from                @0x6c i32.load  #2-#4, #6-#9
;; |     2  22.2%  nothing since the call began                  #1, #5
;; |
;; | calls  blocks  executed  holds  in these blocks of the call
;; |     1      14         4      3  5:11:3
;; |     1      17         5      4  5:14:3
;; | 4 queries on 2 path traces
;; ! afterimage: path of 38 executed blocks in 21 bytes
;; $ afterimage dataflow run.aft --fact available:@0x4e#5
;; | @0x4e i32.load  in f  #5 of 9: its result is already available: no; nothing since the call began
;; | it was executed at t=20, at step 2 of its call
;; $ afterimage dataflow run.aft --fact available:@0x4e#last
;; | @0x4e i32.load  in f  #9 of 9: its result is already available: yes; available from @0x6c i32.load
;; | it was executed at t=34, at step 14 of its call
;; $ afterimage dataflow run.aft --fact available:@0x4e#10
;; ! afterimage: run.aft: @0x4e#10: it was executed 9 times
;; = 125
;; $ afterimage dataflow run.aft --fact available:f#1
;; ! afterimage: run.aft: f#1 names one call to a function with many operators: name one of them
;; = 125
;; $ afterimage dataflow run.aft --fact gen=@0x64#1;at=@0x4e
;; ! afterimage: run.aft: @0x64#1 names one execution, but facts are decided by all executions of a place: leave out the # and the number
;; = 125
;; $ afterimage dataflow run.aft --fact reaching:@0x4a#3 --format json
;; | {"schema":"afterimage/dataflow/2","fact":"reaching:@0x4a#3","answers":[{"function":{"index":1,"name":"f"},"operator":"local.get","offset":74,"source":null,"executions":9,"calls":2,"holds":null,"decided":[{"function":{"index":1,"name":"f"},"operator":"local.set","offset":72,"source":null,"kind":"gen","times":9}],"one":{"number":3,"t":10,"block_of_call":8,"decided":0},"queries":2,"scanned":0,"path_traces":2,"paths":[]}]}
;; $ afterimage dataflow run.aft --fact available:@0x6c
;; | @0x6c i32.load  in f: its result is already available: always; executed 9 times in 2 calls
;; | times         decided by                       executions
;; |     5  55.6%  available from  @0x4e i32.load   #1 and every 2 up to #9
;; |     4  44.4%  available from  @0x36 i32.store  #2 and every 2 up to #8
;; | 4 queries on 2 path traces
;; $ afterimage dataflow run.aft --fact available:@0x46
;; | @0x46 i32.mul  in f: its result is already available: 7 of 9 times (77.8%); executed 9 times in 2 calls
;; | times         decided by                                   executions
;; |     7  77.8%  available from                @0x46 i32.mul  #2-#4, #6-#9
;; |     2  22.2%  nothing since the call began                 #1, #5
;; | 10 queries on 2 path traces
;; $ afterimage dataflow run.aft --fact reaching:@0x4a
;; | @0x4a local.get  in f: 1 definition reaches it; executed 9 times in 2 calls
;; | times          decided by                   executions
;; |     9  100.0%  set by      @0x48 local.set  all
;; | 2 queries on 2 path traces
;; $ afterimage dataflow run.aft --fact last-use:@0x4a
;; | @0x4a local.get  in f: it is the last use of its local's value: always; executed 9 times in 2 calls
;; | times          decided by                    executions
;; |     9  100.0%  then set by  @0x52 local.set  all
;; | 2 queries on 2 path traces
;; $ afterimage dataflow run.aft --fact gen=g;kill=@0x64;at=@0x4e
;; | @0x4e i32.load  in f: it holds: 3 of 9 times (33.3%); executed 9 times in 2 calls
;; | times         decided by                                     executions
;; |     4  44.4%  kill                          @0x64 i32.store  #2 and every 2 up to #8
;; |     3  33.3%  gen                           g                #3, #7, #9
;; |     2  22.2%  nothing since the call began                   #1, #5
;; | 6 queries on 2 path traces
;; $ afterimage dataflow run.aft --fact gen=@0x36;at=@0x4e;ahead --paths 1 --format json
;; | {"schema":"afterimage/dataflow/2","fact":"gen=@0x36;at=@0x4e;ahead","answers":[{"function":{"index":1,"name":"f"},"operator":"i32.load","offset":78,"source":null,"executions":9,"calls":2,"holds":8,"decided":[{"function":{"index":0,"name":"g"},"operator":"i32.store","offset":54,"source":null,"kind":"gen","times":8,"instances":[[1,8,0,1]],"all_instances":true},{"kind":"open","times":1,"instances":[[9,9,0,1]],"all_instances":true}],"queries":7,"scanned":0,"path_traces":2,"paths":[{"calls":1,"blocks":14,"executions":[[2,11,3]],"holds":[[2,11,3]]}]}]}
;; $ afterimage dataflow run.aft --fact available:@0x6c --format csv
;; | function,name,offset,operator,file,line,executions,holds,decided,by_function,by_name,by_offset,by_file,by_line,times
;; | 1,f,108,i32.load,,,9,9,gen,1,f,78,,,5
;; | 1,f,108,i32.load,,,9,9,gen,0,g,54,,,4
;; $ afterimage dataflow run.aft --fact available:@0x5d
;; ! afterimage: run.aft: @0x5d: it is neither a load nor an operator that only computes, so its result cannot be available
;; = 125
;; $ afterimage dataflow run.aft --fact reaching:@0x4e
;; ! afterimage: run.aft: @0x4e: it does not read a local; name a local.get
;; = 125
;; $ afterimage dataflow run.aft --fact gen=@0x4e#2;at=@0x6c
;; ! afterimage: run.aft: @0x4e#2 names one execution, but facts are decided by all executions of a place: leave out the # and the number
;; = 125
;; $ afterimage dataflow run.aft --fact kill=@0x6c
;; ! afterimage: --fact kill=@0x6c: at= is missing; write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE
;; = 125
;; $ afterimage dataflow run.aft --fact at=@0x6c
;; ! afterimage: --fact at=@0x6c: gen= and kill= are both missing, so nothing decides it; write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE
;; = 125
;; $ afterimage dataflow run.aft --fact dead:@0x6c
;; ! afterimage: --fact dead:@0x6c: dead:@0x6c is not part of a fact; write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE
;; = 125
;; $ afterimage dataflow run.aft --fact available:
;; ! afterimage: --fact available:: available lacks a place; write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE
;; = 125
;; $ afterimage dataflow run.aft --fact available:@0x4e#5 --format csv
;; ! afterimage: run.aft: @0x4e#5: csv covers all executions; for one, choose --format text or json
;; = 125
;; $ afterimage dataflow run.aft --fact available:@0x4e#5 --paths 3
;; ! afterimage: run.aft: @0x4e#5 is one execution: leave out --paths and --instances, or remove the # and the text after it
;; = 125
;; $ afterimage dataflow run.aft --fact available:@0x4e --instances 3 --format csv
;; ! afterimage: run.aft: --paths and --instances work for text and JSON; csv has one row for each place that decided
;; = 125
;; $ afterimage dataflow run.aft --fact gen=g;kill=@0x64;at=@0x4e --format csv
;; | function,name,offset,operator,file,line,executions,holds,decided,by_function,by_name,by_offset,by_file,by_line,times
;; | 1,f,78,i32.load,,,9,3,kill,1,f,100,,,4
;; | 1,f,78,i32.load,,,9,3,gen-call,0,g,,,,3
;; | 1,f,78,i32.load,,,9,3,open,,,,,,2
