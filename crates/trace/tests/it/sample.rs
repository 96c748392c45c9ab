//! A small recording with every kind of event, in two complete states.

use std::fs;
use std::path::Path;

use afterimage_ids::{BlockId, Counts, FuncId, FunctionCounts, ImportId, OrigOffset};
use afterimage_trace::{
    CountsLens, End, Ending, Event, Existing, Frame, HostRead, HostStop, HostWrite, Meta, RawValue,
    Result, Standing, Stdin, TraceFile, TraceWriter,
};
use sha2::{Digest, Sha256};

/// An empty module.
pub const MODULE: &[u8] = b"\0asm\x01\0\0\0";

pub fn meta() -> Meta {
    Meta {
        program_name: "hello".into(),
        args: vec!["-v".into()],
        env: vec![("LANG".into(), "C".into())],
        dirs: vec!["/".into()],
        invoke: None,
        tool_version: "0.1.0".into(),
        engine: "none".into(),
        stdin: Stdin::File,
        created_unix: 1_700_000_000,
        module_sha256: Sha256::digest(MODULE).into(),
        stack_limit: 1 << 20,
        extra: [("clock".into(), "true".into())].into(),
    }
}

pub fn events() -> Vec<Event> {
    let import = ImportId::from_u32;
    vec![
        Event::Enter {
            function: FuncId::from_u32(2),
            args: vec![],
        },
        Event::Leave {
            results: vec![RawValue::F64(1.5f64.to_bits()), RawValue::NullRef],
        },
        Event::Enter {
            function: FuncId::from_u32(300),
            args: vec![
                RawValue::I64(-1),
                RawValue::V128(1 << 100),
                RawValue::OpaqueRef,
            ],
        },
        Event::MemoryGrow { granted: true },
        Event::TableGrow { granted: false },
        Event::HostCall {
            import: import(0),
            args: vec![RawValue::I32(-1), RawValue::F32(1f32.to_bits())],
            results: vec![RawValue::I32(0)],
            writes: vec![HostWrite {
                memory: 0,
                address: 1024,
                bytes: b"input\n".to_vec(),
            }],
            reads: vec![HostRead {
                memory: 0,
                address: 64,
                length: 8,
            }],
            read_digest: 0x1234_5678,
        },
        Event::HostStop {
            import: import(1),
            args: vec![RawValue::I32(3)],
            reads: vec![],
            read_digest: 0,
            outcome: HostStop::Exit(3),
        },
    ]
}

pub fn end() -> End {
    let frame = |function, offset, standing| Frame {
        function: FuncId::from_u32(function),
        offset: OrigOffset(offset),
        standing,
    };
    // No run ends like this, but the file can hold it.
    let frames = vec![
        frame(302, 0x2345, Standing::NotEntered),
        frame(301, 0x1234, Standing::Before),
        frame(300, 0x56, Standing::At),
    ];
    End {
        ending: Ending::Exited { code: 3 },
        frames,
        clock: Some(12_345),
        events: 7,
        host_call_counts: vec![1, 1],
    }
}

pub fn counts() -> CountsLens {
    let block = BlockId::from_u32;
    let functions = vec![
        FunctionCounts {
            entries: 1,
            edges: vec![1, 0, 1_000_000],
            open: vec![(block(2), 1)],
        },
        FunctionCounts {
            entries: 0,
            edges: vec![0; 5],
            open: vec![],
        },
        FunctionCounts {
            entries: 9,
            edges: vec![],
            open: vec![(block(0), 1)],
        },
    ];
    CountsLens {
        counts: Counts { functions },
        mode: "quick".into(),
        counters: 2,
        increments: 11,
    }
}

/// Writes the first state, which is the recording, and returns its length.
pub fn record(path: &Path) -> u64 {
    let writer = TraceWriter::create(path, Existing::Kept).unwrap();
    write_recording(&writer).unwrap();
    writer.commit().unwrap();
    drop(writer);
    fs::metadata(path).unwrap().len()
}

/// Writes META, MODULE, LOG in three chunks, and END.
pub fn write_recording(writer: &TraceWriter) -> Result<()> {
    writer.meta(&meta())?;
    writer.module(MODULE)?;
    let mut log = writer.log()?;
    for (i, event) in events().iter().enumerate() {
        log.event(event)?;
        if i == 3 {
            log.flush()?;
        }
    }
    log.finish()?;
    writer.end(&end())
}

/// Appends the second state, which adds counts.
pub fn append(path: &Path) -> Result<()> {
    let writer = TraceWriter::append(path)?;
    writer.counts(&counts())?;
    writer.commit()
}

/// Returns the bytes of a file with both states, and the length of the first.
pub fn two_states() -> (Vec<u8>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let first = record(&path);
    append(&path).unwrap();
    (fs::read(&path).unwrap(), first as usize)
}

/// Asserts that the file never gives a wrong part. Each part is an error, or exactly what was
/// written, or missing from a file that reports ignored bytes. Returns the number of complete
/// parts.
pub fn assert_never_wrong(file: &TraceFile) -> usize {
    never_wrong(file, file.ignored_bytes() > 0 || file.state().is_none())
}

/// Asserts the same. `lost` says whether something may be missing.
pub fn never_wrong(file: &TraceFile, lost: bool) -> usize {
    let mut whole = 0;
    if let Ok(it) = file.meta() {
        assert_eq!(it, meta());
        whole += 1;
    }
    if let Ok(it) = file.module() {
        assert_eq!(it, MODULE);
        whole += 1;
    }
    if let Ok(mut log) = file.log() {
        let (mut read, mut failed) = (0, false);
        for event in &mut log {
            match event {
                Ok(event) => {
                    assert_eq!(event, events()[read]);
                    read += 1;
                }
                Err(_) => failed = true,
            }
        }
        if read == events().len() {
            whole += 1;
        } else {
            assert!(
                failed || (lost && !log.is_complete()),
                "{read} events and no error"
            );
        }
    }
    match file.end() {
        Ok(Some(it)) => {
            assert_eq!(it, end());
            whole += 1;
        }
        Ok(None) => assert!(lost),
        Err(_) => {}
    }
    match file.counts() {
        Ok(Some(it)) => {
            assert_eq!(it, counts());
            whole += 1;
        }
        Ok(None) => assert!(lost || file.state() == Some(1)),
        Err(_) => {}
    }
    whole
}
