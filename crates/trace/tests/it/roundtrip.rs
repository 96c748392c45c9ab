//! Checks that written data is read back unchanged.

use std::path::Path;

use afterimage_ids::{BlockId, Counts, FuncId, FunctionCounts, ImportId, OrigOffset};
use afterimage_trace::{
    Chunk, ChunkPacker, CountsLens, End, Ending, Event, Existing, Frame, HostCallRef, HostRead,
    HostStop, HostWrite, HostWriteRef, Interrupter, Kind, LogPlace, Meta, RawValue, SectionWriter,
    Standing, Stdin, TraceFile, TraceWriter, TrapCode,
};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = RawValue> {
    prop_oneof![
        any::<i32>().prop_map(RawValue::I32),
        (0..64).prop_map(RawValue::I32),
        any::<i64>().prop_map(RawValue::I64),
        any::<u32>().prop_map(RawValue::F32),
        any::<u64>().prop_map(RawValue::F64),
        any::<u128>().prop_map(RawValue::V128),
        Just(RawValue::NullRef),
        Just(RawValue::OpaqueRef),
    ]
}

fn values() -> impl Strategy<Value = Vec<RawValue>> {
    prop::collection::vec(value(), 0..5)
}

fn reads() -> impl Strategy<Value = Vec<HostRead>> {
    let read = (0..3u32, any::<u64>(), any::<u64>());
    let read = read.prop_map(|(memory, address, length)| HostRead {
        memory,
        address,
        length,
    });
    prop::collection::vec(read, 0..3)
}

fn writes() -> impl Strategy<Value = Vec<HostWrite>> {
    let write = (
        0..3u32,
        any::<u64>(),
        prop::collection::vec(any::<u8>(), 0..40),
    );
    let write = write.prop_map(|(memory, address, bytes)| HostWrite {
        memory,
        address,
        bytes,
    });
    prop::collection::vec(write, 0..3)
}

fn index() -> impl Strategy<Value = u32> {
    prop_oneof![0..300u32, 0..u32::MAX]
}

fn event() -> impl Strategy<Value = Event> {
    let import = || index().prop_map(ImportId::from_u32);
    let outcome = prop_oneof![
        any::<i32>().prop_map(HostStop::Exit),
        Just(HostStop::Interrupted),
        ".*".prop_map(HostStop::Error)
    ];
    prop_oneof![
        (index(), values()).prop_map(|(f, args)| Event::Enter {
            function: FuncId::from_u32(f),
            args
        }),
        values().prop_map(|results| Event::Leave { results }),
        (
            import(),
            values(),
            values(),
            writes(),
            reads(),
            any::<u32>()
        )
            .prop_map(|(import, args, results, writes, reads, read_digest)| {
                Event::HostCall {
                    import,
                    args,
                    results,
                    writes,
                    reads,
                    read_digest,
                }
            }),
        any::<bool>().prop_map(|granted| Event::MemoryGrow { granted }),
        any::<bool>().prop_map(|granted| Event::TableGrow { granted }),
        (import(), values(), reads(), any::<u32>(), outcome).prop_map(
            |(import, args, reads, read_digest, outcome)| Event::HostStop {
                import,
                args,
                reads,
                read_digest,
                outcome
            }
        ),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Returned),
        any::<i32>().prop_map(|code| Ending::Exited { code }),
        (prop::sample::select(TrapCode::ALL), ".*")
            .prop_map(|(code, message)| Ending::Trapped { code, message }),
        ".*".prop_map(|message| Ending::Exception { message }),
        Just(Ending::StackOverflow),
        prop::sample::select(&[
            Interrupter::CtrlC,
            Interrupter::Terminate,
            Interrupter::Timeout
        ])
        .prop_map(|by| Ending::Interrupted { by }),
        ".*".prop_map(|message| Ending::HostError { message }),
    ]
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        Just(Standing::At),
        Just(Standing::Before),
        Just(Standing::NotEntered)
    ]
}

fn end() -> impl Strategy<Value = End> {
    let frame =
        (index(), any::<u32>(), standing()).prop_map(|(function, offset, standing)| Frame {
            function: FuncId::from_u32(function),
            offset: OrigOffset(offset),
            standing,
        });
    (
        ending(),
        prop::collection::vec(frame, 0..20),
        any::<Option<u64>>(),
        any::<u64>(),
        // The limit keeps the sum of these counts within 64 bits.
        prop::collection::vec(0..u64::MAX / 10, 0..10),
    )
        .prop_map(|(ending, frames, clock, events, host_call_counts)| End {
            ending,
            frames,
            clock,
            events,
            host_call_counts,
        })
}

fn counts() -> impl Strategy<Value = CountsLens> {
    let count = || prop_oneof![Just(0), 0..1000u64, any::<u64>()];
    let open = prop::collection::vec((index().prop_map(BlockId::from_u32), any::<u64>()), 0..3);
    let function = (count(), prop::collection::vec(count(), 0..10), open).prop_map(
        |(entries, edges, open)| FunctionCounts {
            entries,
            edges,
            open,
        },
    );
    (
        prop::collection::vec(function, 0..10),
        ".*",
        any::<u64>(),
        any::<u64>(),
    )
        .prop_map(|(functions, mode, counters, increments)| CountsLens {
            counts: Counts { functions },
            mode,
            counters,
            increments,
        })
}

fn meta() -> impl Strategy<Value = Meta> {
    let text = || prop::collection::vec(".*", 0..4);
    let stdin = prop_oneof![
        Just(Stdin::Empty),
        Just(Stdin::Inherited),
        Just(Stdin::File)
    ];
    let env = prop::collection::vec((".*", ".*"), 0..3);
    let numbers = (any::<u64>(), any::<u64>(), any::<[u8; 32]>());
    let extra = prop::collection::btree_map(".*", ".*", 0..3);
    (
        ".*",
        text(),
        env,
        text(),
        prop::option::of(".*"),
        stdin,
        numbers,
        extra,
    )
        .prop_map(
            |(program_name, args, env, dirs, invoke, stdin, numbers, extra)| Meta {
                program_name,
                args,
                env,
                dirs,
                invoke,
                tool_version: "0.1.0".into(),
                engine: "an engine".into(),
                stdin,
                created_unix: numbers.0,
                module_sha256: numbers.2,
                stack_limit: numbers.1,
                extra,
            },
        )
}

fn write(
    path: &Path,
    meta: &Meta,
    module: &[u8],
    events: &[Event],
    end: &End,
    counts: &CountsLens,
) -> afterimage_trace::Result<()> {
    let writer = TraceWriter::create(path, Existing::Kept)?;
    writer.meta(meta)?;
    writer.module(module)?;
    let mut log = writer.log()?;
    for event in events {
        log.event(event)?;
    }
    assert_eq!(log.finish()?, events.len() as u64);
    writer.end(end)?;
    writer.counts(counts)?;
    writer.commit()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn everything_is_read_back(
        meta in meta(),
        module in prop::collection::vec(any::<u8>(), 0..500),
        events in prop::collection::vec(event(), 0..50),
        end in end(),
        counts in counts(),
    ) {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.aft");
        write(&path, &meta, &module, &events, &end, &counts).unwrap();
        let file = TraceFile::open(&path).unwrap();
        prop_assert_eq!(file.meta().unwrap(), meta);
        prop_assert_eq!(file.module().unwrap(), module);
        let read: Vec<_> = file.log().unwrap().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read, events);
        prop_assert_eq!(file.end().unwrap(), Some(end));
        prop_assert_eq!(file.counts().unwrap(), Some(counts));
        prop_assert_eq!((file.state(), file.ignored_bytes()), (Some(1), 0));
    }
}

/// Tests events around and beyond the lengths at which the log cuts chunks.
#[test]
fn long_events_continue_in_later_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let mut log = writer.log().unwrap();
    let lengths = [
        10,
        130_000,
        3_000_000,
        1 << 20,
        (1 << 20) - 30,
        131_072,
        0,
        5_000_000,
        7,
    ];
    let bytes: Vec<u8> = (0..5_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for length in lengths {
        let writes = [HostWriteRef {
            memory: 0,
            address: 8,
            bytes: &bytes[..length],
        }];
        let call = HostCallRef {
            import: ImportId::from_u32(3),
            args: &[],
            results: &[RawValue::I32(0)],
            writes: &writes,
            reads: &[],
            read_digest: 0,
        };
        log.host_call(&call).unwrap();
    }
    log.finish().unwrap();
    writer.commit().unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.sections().unwrap()[0].chunks > 10);
    let read = file.log().unwrap().map(|event| match event.unwrap() {
        Event::HostCall { writes, .. } => {
            assert_eq!(writes[0].bytes, bytes[..writes[0].bytes.len()]);
            writes[0].bytes.len()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(read.collect::<Vec<_>>(), lengths);
}

#[test]
fn logs_are_read_again_from_any_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("a.aft");
    let writer = TraceWriter::create(&at, Existing::Kept).unwrap();
    let mut log = writer.log().unwrap();
    // Some events are longer than a chunk's piece. Some chunks have one event, and some have many.
    let lengths = [
        10,
        3 << 20,
        20,
        200_000,
        0,
        0,
        90_000,
        70_000,
        5,
        1 << 20,
        7,
    ];
    let events = Vec::from_iter(lengths.map(|length| Event::HostCall {
        import: ImportId::from_u32(length),
        args: vec![],
        results: vec![],
        writes: vec![HostWrite {
            memory: 0,
            address: 0,
            bytes: vec![length as u8; length as usize],
        }],
        reads: vec![],
        read_digest: 0,
    }));
    for event in &events {
        log.event(event).unwrap();
    }
    log.finish().unwrap();
    writer.commit().unwrap();
    let file = TraceFile::open(&at).unwrap();
    let mut log = file.log().unwrap();
    let mut places = vec![log.place()];
    while log.next().is_some() {
        places.push(log.place());
    }
    assert_eq!(places.len(), events.len() + 1);
    for first in (0..places.len()).rev().chain([3, 3, 0, 7]) {
        log.go(places[first]).unwrap();
        assert_eq!(log.place(), places[first]);
        for event in &events[first..] {
            assert_eq!(&log.next().unwrap().unwrap(), event);
        }
        assert!(log.next().is_none());
    }
    // The next event is in the current chunk.
    log.go(places[5]).unwrap();
    log.go(places[4]).unwrap();
    assert_eq!(log.next().unwrap().unwrap(), events[4]);
    let place = places[4];
    let wrong = [
        LogPlace {
            at: u64::MAX,
            ..place
        },
        LogPlace {
            chunks: 1 << 40,
            ..place
        },
        LogPlace { chunks: 0, ..place },
        LogPlace {
            events: 0,
            ..places[9]
        },
    ];
    for place in wrong {
        assert!(log.go(place).is_err());
        assert!(log.next().is_none());
    }
}

#[test]
fn sections_interleave_and_unknown_kinds_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    writer.meta(&Meta::default()).unwrap();
    let mut paths = writer
        .section(Kind(700), Some("paths of thread 0"))
        .unwrap();
    let mut log = writer.log().unwrap();
    let mut values = writer.section(Kind(701), None).unwrap();
    for i in 0..10u8 {
        paths.put(i.into(), &[i; 10]).unwrap();
        values.put(0, &[i; 1000]).unwrap();
        log.event(&Event::MemoryGrow {
            granted: i % 2 == 0,
        })
        .unwrap();
        log.flush().unwrap();
    }
    values.finish(0, b"end").unwrap();
    paths.finish(10, &[]).unwrap();
    log.finish().unwrap();
    writer.commit_durable().unwrap();
    drop(writer);

    let writer = TraceWriter::append(&path).unwrap();
    writer
        .counts(&CountsLens {
            mode: "one".into(),
            ..CountsLens::default()
        })
        .unwrap();
    writer.commit().unwrap();
    writer
        .counts(&CountsLens {
            mode: "two".into(),
            ..CountsLens::default()
        })
        .unwrap();
    writer.commit().unwrap();

    let file = TraceFile::open(&path).unwrap();
    assert_eq!(file.state(), Some(3));
    assert_eq!(file.counts().unwrap().unwrap().mode, "two");
    assert_eq!(file.log().unwrap().count(), 10);
    let sections = file.sections().unwrap();
    let kinds: Vec<_> = sections.iter().map(|section| section.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::META,
            Kind(700),
            Kind(701),
            Kind::LOG,
            Kind::COUNTS,
            Kind::COUNTS
        ]
    );
    assert_eq!(sections[1].name.as_deref(), Some("paths of thread 0"));
    assert_eq!((sections[2].raw, sections[2].chunks), (10_003, 11));
    assert!(sections.iter().all(|section| section.complete));
    let mut paths = file.section(1).unwrap();
    for i in 0..10u8 {
        assert!(paths.advance().unwrap());
        assert_eq!((paths.first(), paths.bytes()), (i.into(), &[i; 10][..]));
    }
}

#[test]
fn functions_that_never_ran_cost_next_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let idle = FunctionCounts {
        edges: vec![0; 40],
        ..FunctionCounts::default()
    };
    let counts = Counts {
        functions: vec![idle; 100_000],
    };
    let lens = CountsLens {
        counts,
        ..CountsLens::default()
    };
    writer.counts(&lens).unwrap();
    writer.commit().unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.length() < 2_000, "{} bytes", file.length());
    assert_eq!(file.counts().unwrap(), Some(lens));
}

#[test]
fn a_million_frames() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let frame = |i: u32| Frame {
        function: FuncId::from_u32(i % 7),
        offset: OrigOffset(i),
        standing: if i == 0 {
            Standing::NotEntered
        } else {
            Standing::At
        },
    };
    let end = End {
        ending: Ending::StackOverflow,
        frames: (0..1_000_000).map(frame).collect(),
        clock: Some(u64::MAX),
        events: 0,
        host_call_counts: Vec::new(),
    };
    writer.end(&end).unwrap();
    writer.commit().unwrap();
    assert_eq!(TraceFile::open(&path).unwrap().end().unwrap(), Some(end));
}

#[test]
fn chunks_that_are_written_together_are_those_written_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = Vec::from_iter((0..100u64).map(|number| {
        // Some chunks are incompressible, and some are empty.
        let byte = |at: u64| match number % 3 {
            0 => (at * at * 31 + number) as u8,
            _ => number as u8,
        };
        let raw = Vec::from_iter((0..number * number % 999).map(byte));
        (number / 7, raw)
    }));
    let written = |name: &str, write: &dyn Fn(SectionWriter)| {
        let at = folder.path().join(name);
        let writer = TraceWriter::create(&at, Existing::Kept).unwrap();
        write(writer.live_section(Kind(702), Some("chunks")).unwrap());
        writer.commit().unwrap();
        std::fs::read(at).unwrap()
    };
    let one_by_one = written("one", &|mut section| {
        for (first, raw) in &chunks {
            section.put(*first, raw).unwrap();
        }
        section.finish(20, &[]).unwrap();
    });
    // All chunks, or every third, are packed beforehand.
    for packed in [1, 3, 1000] {
        let together = written(&format!("packed {packed}"), &|mut section| {
            let mut packer = ChunkPacker::new().unwrap();
            for some in chunks.chunks(17) {
                let chunks = some.iter().enumerate().map(|(number, (first, raw))| {
                    let chunk = match number % packed {
                        0 => Chunk::Packed(packer.pack(raw)),
                        _ => Chunk::Raw(raw.clone()),
                    };
                    (*first, chunk)
                });
                section.put_all(&Vec::from_iter(chunks)).unwrap();
            }
            section.finish(20, &[]).unwrap();
        });
        assert!(together == one_by_one, "every {packed} packed");
    }
    let in_background = written("background", &|section| {
        let mut section = section.in_background().unwrap();
        for (first, raw) in &chunks {
            section.put(*first, raw.clone()).unwrap();
        }
        section.finish(20, &[]).unwrap();
    });
    assert!(in_background == one_by_one);
}
