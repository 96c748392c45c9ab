;; Exports: each format, the whole run and a stretch, and what is merged; and what verify and info say of the path.
(module
  (func $leaf (param i32) (if (local.get 0) (then (nop))))
  (func $middle (local $i i32)
    (loop $again
      (call $leaf (local.get $i))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 3)))))
  (func $down (param i32)
    (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "main")
    (call $middle)
    (call $down (i32.const 2))
    (call $leaf (i32.const 1))))

;; $ afterimage record --invoke main FILE
;; ! afterimage: export.wat returned; 0 host calls recorded in export.aft (N)
;; $ afterimage profile export.aft --by function
;; | ran 60 instructions in 22 blocks; 4 of 4 functions executed
;; |
;; | share  instructions  blocks  calls  source  function
;; | 50.0%            30       7      1  -       middle
;; | 23.3%            14       5      3  -       down
;; | 18.3%            11       7      4  -       leaf
;; |  8.3%             5       3      1  -       main
;; $ afterimage build --lens paths export.aft
;; ! afterimage: path of 22 executed blocks in 21 bytes
;; $ afterimage info export.aft
;; | program   export.wat
;; | invoked   main
;; | recorded  WHEN
;; | ending    returned
;; | boundary  0 host calls in 2 events
;; | sha256    ac61fd124947a14f08673fafebed1479d1990fd85ef6af7921bef4beb95b74f6
;; | engine    wasmtime 48.0.8 cranelift nan-canonicalization relaxed-simd-deterministic
;; | lenses    counts, paths
;; | path      22 executed blocks in 1 segment: 70 bytes, 25.455 bits each
;; | size      N
;; |
;; | Before you share this file, note that everyone who receives it learns
;; |   the module, 151 bytes, without debug information
;; | `afterimage strip --inputs` removes the program's input
;; $ afterimage verify export.aft
;; | sound: N, 9 chunks in 7 sections, 2 events
;; | whole path: 22 executed blocks, 11 paths in 1 segment, compared with the counts and the end
;; | re-executed: the same calls, the same results, the same ending
;; $ afterimage verify --no-execute --format json export.aft
;; | {"schema":"afterimage/verify/2","sound":true,"bytes":N,"chunks":9,"sections":7,"events":2,"ended":true,"ignored_bytes":0,"path":{"segments":1,"nodes":11,"blocks":22,"counts":true,"end":true},"values":null,"repeats":null,"findings":[]}
;; $ afterimage export export.aft --format collapsed
;; | main 3
;; | main;middle 7
;; | main;middle;leaf 5
;; | main;down 2
;; | main;down;down 2
;; | main;down;down;down 1
;; | main;leaf 2
;; $ afterimage export export.aft --format collapsed --min 4
;; | main 3
;; | main;[calls below 4 blocks] 2
;; | main;middle 7
;; | main;middle;leaf 5
;; | main;down 2
;; | main;down;[calls below 4 blocks] 3
;; $ afterimage export export.aft --format collapsed --depth 2 --from middle#1 --to down#2
;; | main 1
;; | main;middle 7
;; | main;middle;[calls deeper than 2] 5
;; | main;down 2
;; | main;down;[calls deeper than 2] 1
;; $ afterimage export export.aft --format dot
;; | // Calling contexts of blocks 1 to 22.
;; | digraph {
;; |   node [shape=box, style=filled];
;; |   c0 [label="host\n22 blocks (100.0%)\nitself 0", fillcolor="0.03 0.60 1.0"];
;; |   c1 [label="main\n22 blocks (100.0%)\nitself 3", fillcolor="0.03 0.60 1.0"];
;; |   c0 -> c1 [label="1"];
;; |   c3 [label="middle\n12 blocks (54.5%)\nitself 7", fillcolor="0.03 0.44 1.0"];
;; |   c1 -> c3 [label="1"];
;; |   c7 [label="leaf\n5 blocks (22.7%)\nitself 5", fillcolor="0.03 0.29 1.0"];
;; |   c3 -> c7 [label="3"];
;; |   c4 [label="down\n5 blocks (22.7%)\nitself 2", fillcolor="0.03 0.29 1.0"];
;; |   c1 -> c4 [label="1"];
;; |   c5 [label="down\n3 blocks (13.6%)\nitself 2", fillcolor="0.03 0.22 1.0"];
;; |   c4 -> c5 [label="1"];
;; |   c6 [label="down\n1 block (4.5%)\nitself 1", fillcolor="0.03 0.13 1.0"];
;; |   c5 -> c6 [label="1"];
;; |   c2 [label="leaf\n2 blocks (9.1%)\nitself 2", fillcolor="0.03 0.18 1.0"];
;; |   c1 -> c2 [label="1"];
;; | }
;; $ afterimage export export.aft --format dot --min 20% --depth 2
;; | // Calling contexts of blocks 1 to 22.
;; | digraph {
;; |   node [shape=box, style=filled];
;; |   c0 [label="host\n22 blocks (100.0%)\nitself 0", fillcolor="0.03 0.60 1.0"];
;; |   c1 [label="main\n22 blocks (100.0%)\nitself 3", fillcolor="0.03 0.60 1.0"];
;; |   c0 -> c1 [label="1"];
;; |   s1 [label="functions with fewer than 5 blocks here\n2 blocks (9.1%)", style=dashed];
;; |   c1 -> s1 [label="1", style=dashed];
;; |   c2 [label="middle\n12 blocks (54.5%)\nitself 7", fillcolor="0.03 0.44 1.0"];
;; |   c1 -> c2 [label="1"];
;; |   d2 [label="calls deeper than 2\n5 blocks (22.7%)", style=dashed];
;; |   c2 -> d2 [label="3", style=dashed];
;; |   c3 [label="down\n5 blocks (22.7%)\nitself 2", fillcolor="0.03 0.29 1.0"];
;; |   c1 -> c3 [label="1"];
;; |   d3 [label="calls deeper than 2\n3 blocks (13.6%)", style=dashed];
;; |   c3 -> d3 [label="2", style=dashed];
;; | }
;; $ afterimage export export.aft --format perfetto
;; | {"displayTimeUnit":"ms","otherData":{"calls_deeper_are_merged":256,"calls_shorter_are_merged":1,"clock":"executed basic blocks; 1 block is shown as 1 microsecond","first_block":1,"last_block":22,"program":"export.wat","tool":"afterimage"},"traceEvents":[
;; | {"args":{"name":"export.wat"},"name":"process_name","ph":"M","pid":1,"tid":1},
;; | {"args":{"name":"executed basic blocks; 1 block is shown as 1 microsecond"},"name":"thread_name","ph":"M","pid":1,"tid":1},
;; | {"ph":"B","pid":1,"tid":1,"ts":0,"name":"main"},
;; | {"ph":"B","pid":1,"tid":1,"ts":1,"name":"middle"},
;; | {"ph":"B","pid":1,"tid":1,"ts":3,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":4,"name":"leaf"},
;; | {"ph":"B","pid":1,"tid":1,"ts":6,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":8,"name":"leaf"},
;; | {"ph":"B","pid":1,"tid":1,"ts":10,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":12,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":13,"name":"middle"},
;; | {"ph":"B","pid":1,"tid":1,"ts":14,"name":"down"},
;; | {"ph":"B","pid":1,"tid":1,"ts":16,"name":"down"},
;; | {"ph":"B","pid":1,"tid":1,"ts":18,"name":"down"},
;; | {"ph":"E","pid":1,"tid":1,"ts":19,"name":"down"},
;; | {"ph":"E","pid":1,"tid":1,"ts":19,"name":"down"},
;; | {"ph":"E","pid":1,"tid":1,"ts":19,"name":"down"},
;; | {"ph":"B","pid":1,"tid":1,"ts":20,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":22,"name":"leaf"},
;; | {"ph":"E","pid":1,"tid":1,"ts":22,"name":"main"}
;; | ]}
;; $ afterimage export export.aft --format perfetto --min 4 --from t=3 --to t=12
;; | {"displayTimeUnit":"ms","otherData":{"calls_deeper_are_merged":256,"calls_shorter_are_merged":4,"clock":"executed basic blocks; 1 block is shown as 1 microsecond","first_block":3,"last_block":12,"program":"export.wat","tool":"afterimage"},"traceEvents":[
;; | {"args":{"name":"export.wat"},"name":"process_name","ph":"M","pid":1,"tid":1},
;; | {"args":{"name":"executed basic blocks; 1 block is shown as 1 microsecond"},"name":"thread_name","ph":"M","pid":1,"tid":1},
;; | {"ph":"B","pid":1,"tid":1,"ts":2,"name":"main"},
;; | {"ph":"B","pid":1,"tid":1,"ts":2,"name":"middle"},
;; | {"ph":"X","pid":1,"tid":1,"ts":3,"dur":9,"name":"… calls shorter than 4 blocks","args":{"calls":3,"blocks":5}},
;; | {"ph":"E","pid":1,"tid":1,"ts":12,"name":"middle"},
;; | {"ph":"E","pid":1,"tid":1,"ts":12,"name":"main"}
;; | ]}
;; $ afterimage export export.aft --format firefox --depth 2
;; | {"counters":[],"libs":[],"meta":{"categories":[{"color":"grey","name":"Other","subcategories":["Other"]},{"color":"blue","name":"WebAssembly","subcategories":["Other"]},{"color":"grey","name":"Merged calls","subcategories":["Other"]}],"debug":false,"extensions":{"baseURL":[],"id":[],"length":N,"name":[]},"interval":0.001,"markerSchema":[],"pausedRanges":[],"preprocessedProfileVersion":62,"processType":0,"product":"export.wat (time: executed basic blocks; 1 block is shown as 1 microsecond; samples: executed basic blocks)","sampleUnits":{"eventDelay":"ms","threadCPUDelta":"µs","time":"ms"},"sourceCodeIsNotOnSearchfox":true,"startTime":0.0,"symbolicated":true,"usesOnlyOneStackType":true,"version":24},"pages":[],"profilerOverhead":[],"shared":{"frameTable":{"address":[-1,-1,-1,-1,-1],"category":[1,1,2,1,1],"column":[null,null,null,null,null],"func":[0,1,2,3,4],"inlineDepth":[0,0,0,0,0],"innerWindowID":[0,0,0,0,0],"length":N,"line":[null,null,null,null,null],"nativeSymbol":[null,null,null,null,null],"subcategory":[0,0,0,0,0]},"funcTable":{"columnNumber":[null,null,null,null,null],"isJS":[false,false,false,false,false],"length":N,"lineNumber":[null,null,null,null,null],"name":[0,1,2,3,4],"relevantForJS":[false,false,false,false,false],"resource":[-1,-1,-1,-1,-1],"source":[null,null,null,null,null]},"nativeSymbols":{"address":[],"functionSize":[],"length":N,"libIndex":[],"name":[]},"resourceTable":{"host":[],"length":N,"lib":[],"name":[],"type":[]},"sources":{"filename":[],"id":[],"length":N,"sourceMapURL":[],"startColumn":[],"startLine":[]},"stackTable":{"frame":[0,1,2,3,2,4],"length":N,"prefix":[null,0,1,0,3,0]},"stringArray":["main","middle","… calls deeper than 2","down","leaf"]},"threads":[{"isMainThread":true,"markers":{"category":[],"data":[],"endTime":[],"length":N,"name":[],"phase":[],"startTime":[]},"name":"export.wat","pausedRanges":[],"pid":"1","processName":"export.wat","processShutdownTime":0.022,"processStartupTime":0.0,"processType":"default","registerTime":0.0,"samples":{"length":N,"stack":[0,1,2,1,2,1,2,1,0,3,4,0,5],"time":[0.0,0.001,0.003,0.004,0.006,0.008,0.01,0.012,0.013,0.014,0.016,0.019,0.02],"weight":[1,2,1,2,2,2,2,1,1,2,3,1,2],"weightType":"samples"},"showMarkersInTimeline":false,"tid":"1","unregisterTime":0.022}]}
;; $ afterimage export export.aft --format perfetto --from end --to start
;; ! afterimage: export.aft: the stretch is empty: --from is t=22, which is after --to, t=1
;; = 125
;; $ afterimage export export.aft --format perfetto --from nowhere#1
;; ! afterimage: export.aft: --from nowhere#1: no function is called "nowhere"
;; = 125
;; $ afterimage export export.aft --format perfetto --min 2x
;; ! error: invalid value '2x' for '--min <BLOCKS|SHARE%>': write a number of blocks, or a share from 0% to 100%
;; !
;; ! For more information, try '--help'.
;; = 125
