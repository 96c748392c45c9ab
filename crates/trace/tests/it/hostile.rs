//! Tests files that are made to do harm but have correct checksums.

use std::fs;
use std::time::{Duration, Instant};

use afterimage_ids::ImportId;
use afterimage_trace::{
    Event, Existing, HostCallRef, HostRead, HostWriteRef, Kind, Meta, RawValue, TraceError,
    TraceFile, TraceWriter,
};

use crate::sample;

/// The length of a chunk's header.
const CHUNK_HEADER: usize = 40;

/// Returns the starts of the chunks in a file's first state.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    let mut at = 16;
    let mut chunks = Vec::new();
    while &bytes[at..at + 4] == b"AFTC" {
        chunks.push(at);
        let stored = u32::from_le_bytes(bytes[at + 24..at + 28].try_into().unwrap());
        at += CHUNK_HEADER + stored as usize;
    }
    chunks
}

/// Makes the last four of `bytes` the checksum of the others.
fn seal(bytes: &mut [u8]) {
    let (body, crc) = bytes.split_at_mut(bytes.len() - 4);
    crc.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}

/// Returns a recording without footer, and the place of its chunks.
fn footerless() -> (Vec<u8>, Vec<usize>) {
    let (bytes, _) = sample::two_states();
    let chunks = chunks(&bytes);
    let index = *chunks.last().unwrap();
    (bytes[..index].to_vec(), chunks[..chunks.len() - 1].to_vec())
}

#[test]
fn a_newer_version_is_refused_by_number() {
    let (mut bytes, _) = sample::two_states();
    bytes[8] = 2;
    seal(&mut bytes[..16]);
    let error = TraceFile::from_bytes(bytes.clone()).unwrap_err();
    assert!(matches!(error, TraceError::Newer { major: 2 }));
    assert_eq!(
        error.to_string(),
        "the trace file has format version 2, newer than version 1, which this program reads; \
         use a newer afterimage"
    );
    bytes[8] = 1;
    bytes[10] = 9;
    seal(&mut bytes[..16]);
    let minor = TraceFile::from_bytes(bytes).unwrap();
    assert_eq!(
        sample::assert_never_wrong(&minor),
        5,
        "a newer minor version is read"
    );
}

#[test]
fn what_is_no_trace_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    assert!(matches!(TraceFile::open(&path), Err(TraceError::Io { .. })));
    fs::write(&path, []).unwrap();
    assert!(matches!(TraceFile::open(&path), Err(TraceError::Empty)));
    fs::write(&path, sample::MODULE).unwrap();
    assert!(matches!(TraceFile::open(&path), Err(TraceError::NotATrace)));
    assert!(matches!(
        TraceWriter::append(&path),
        Err(TraceError::NotATrace)
    ));
    fs::write(&path, "x").unwrap();
    assert!(matches!(TraceFile::open(&path), Err(TraceError::NotATrace)));
    assert!(matches!(
        TraceFile::open(dir.path()),
        Err(TraceError::NotAFile)
    ));
    assert!(matches!(
        TraceWriter::append(dir.path()),
        Err(TraceError::NotAFile)
    ));
}

/// Checks that any value in any field of any chunk header, with a correct checksum, gives a right
/// answer or an error. In fields of 65,536 values, only edge values are tried.
#[test]
fn no_header_field_is_believed() {
    let (bytes, chunks) = footerless();
    let fields = [
        (4, 2),
        (6, 1),
        (7, 1),
        (8, 4),
        (12, 4),
        (16, 8),
        (24, 4),
        (28, 4),
        (32, 4),
    ];
    let values = [
        0u64,
        1,
        2,
        3,
        4,
        255,
        1 << 16,
        (1 << 24) - 1,
        1 << 24,
        (1 << 24) + 1,
        1 << 31,
        u64::MAX,
    ];
    for &chunk in &chunks {
        for (field, length) in fields {
            for value in values {
                let mut bytes = bytes.clone();
                let at = chunk + field;
                bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
                seal(&mut bytes[chunk..chunk + CHUNK_HEADER]);
                let file = TraceFile::from_bytes(bytes).unwrap();
                file.verify();
                if field == 6 || field >= 24 {
                    sample::assert_never_wrong(&file);
                }
            }
        }
    }
}

/// Tests chunks that announce much more than they hold.
#[test]
fn announced_lengths_allocate_nothing() {
    let huge: &[&[u8]] = &[
        // LOG with an event of 1 GiB, an event of more, and a call with 2^63 arguments.
        b"\x80\x80\x80\x80\x04",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0c\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00",
        // LOG with a return with 1,001 results.
        &[b"\xec\x07\x01\xe9\x07", &[5; 1001][..]].concat(),
        // COUNTS without mode, counters and increments, with 2^28 functions, or one function with
        // 2^35 edges.
        b"\x00\x00\x00\x80\x80\x80\x80\x01",
        b"\x00\x00\x00\x01\x00\x80\x80\x80\x80\x80\x01",
        // END of a run that returned, without clock and events, with 2^35 imports, or no imports
        // and 2^35 frames.
        b"\x00\x00\x00\x80\x80\x80\x80\x80\x01",
        b"\x00\x00\x00\x00\x80\x80\x80\x80\x80\x01",
        // An integer of more than 64 bits.
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"",
    ];
    let dir = tempfile::tempdir().unwrap();
    for (i, raw) in huge.iter().enumerate() {
        let path = dir.path().join(format!("{i}.aft"));
        let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
        for kind in [Kind::META, Kind::MODULE, Kind::LOG, Kind::END, Kind::COUNTS] {
            writer.section(kind, None).unwrap().finish(0, raw).unwrap();
        }
        writer.commit().unwrap();
        let file = TraceFile::open(&path).unwrap();
        assert!(file.meta().is_err());
        assert!(file.end().is_err());
        assert!(file.counts().is_err());
        assert_eq!(file.log().unwrap().filter(Result::is_ok).count(), 0);
        assert!(!file.verify().is_sound());
    }
}

/// A few kilobytes that decompress to gigabytes are refused before they are decompressed.
#[test]
fn compressed_zeros_beyond_a_sections_limit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let zeros = vec![0; 1 << 24];
    let limits = [
        (Kind::META, 4),
        (Kind::MODULE, 64),
        (Kind::END, 16),
        (Kind::COUNTS, 32),
    ];
    for (kind, chunks) in limits {
        let mut section = writer.section(kind, None).unwrap();
        for _ in 0..chunks {
            section.put(0, &zeros).unwrap();
        }
        section.finish(0, &[0]).unwrap();
    }
    writer.commit().unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.length() < 1 << 20);
    let too_large = |error| matches!(error, TraceError::TooLarge { .. });
    assert!(too_large(file.meta().unwrap_err()));
    assert!(too_large(file.module().unwrap_err()));
    assert!(too_large(file.end().unwrap_err()));
    assert!(too_large(file.counts().unwrap_err()));
}

#[test]
fn a_frame_that_holds_more_or_less_than_declared_is_damage() {
    let (bytes, chunks) = footerless();
    for difference in [-1i32, 1] {
        let mut bytes = bytes.clone();
        // META is compressed.
        let chunk = chunks[0];
        assert_eq!(bytes[chunk + 6], 1);
        let raw = u32::from_le_bytes(bytes[chunk + 28..chunk + 32].try_into().unwrap());
        let raw = raw.wrapping_add_signed(difference);
        bytes[chunk + 28..chunk + 32].copy_from_slice(&raw.to_le_bytes());
        seal(&mut bytes[chunk..chunk + CHUNK_HEADER]);
        let file = TraceFile::from_bytes(bytes).unwrap();
        assert!(matches!(
            file.meta(),
            Err(TraceError::Damaged {
                kind: Kind::META,
                ..
            })
        ));
    }
}

#[test]
fn a_writer_refuses_what_no_reader_takes() {
    let dir = tempfile::tempdir().unwrap();
    let writer = TraceWriter::create(&dir.path().join("a.aft"), Existing::Kept).unwrap();
    let refused = |result, expected: u64| match result {
        Err(TraceError::TooLarge { limit, .. }) => assert_eq!(limit, expected),
        other => panic!("{other:?}"),
    };
    let mut log = writer.log().unwrap();
    let values = |count| Event::Leave {
        results: vec![RawValue::NullRef; count],
    };
    refused(log.event(&values(1001)), 1000);
    let read = HostRead {
        memory: 0,
        address: 0,
        length: 0,
    };
    let write = HostWriteRef {
        memory: 0,
        address: 0,
        bytes: &[],
    };
    let call = HostCallRef {
        import: ImportId::from_u32(0),
        args: &[],
        results: &[],
        writes: &[],
        reads: &[],
        read_digest: 0,
    };
    let many = (vec![read; (1 << 20) + 1], vec![write; (1 << 20) + 1]);
    refused(
        log.host_call(&HostCallRef {
            reads: &many.0,
            ..call
        }),
        1 << 20,
    );
    refused(
        log.host_call(&HostCallRef {
            writes: &many.1,
            ..call
        }),
        1 << 20,
    );
    let (reads, writes) = (&many.0[1..], &many.1[1..]);
    log.host_call(&HostCallRef {
        reads,
        writes,
        ..call
    })
    .unwrap();
    log.event(&values(1000)).unwrap();
    assert_eq!(log.finish().unwrap(), 2, "what was refused left no trace");

    refused(
        writer.section(Kind(9), Some(&"x".repeat(256))).map(drop),
        255,
    );
    let mut section = writer.section(Kind(9), Some(&"x".repeat(255))).unwrap();
    refused(section.put(0, &vec![0; (1 << 24) + 1]), 1 << 24);
    let mut end = sample::end();
    end.host_call_counts = vec![0; 1_000_001];
    refused(writer.end(&end), 1_000_000);
    let mut lens = sample::counts();
    lens.counts.functions[0].edges = vec![0; (1 << 27) + 1];
    refused(writer.counts(&lens), 1 << 27);
    let program_name = "x".repeat(1 << 24);
    refused(
        writer.meta(&Meta {
            program_name,
            ..sample::meta()
        }),
        1 << 24,
    );

    writer.commit().unwrap();
    let file = TraceFile::open(&dir.path().join("a.aft")).unwrap();
    assert_eq!(file.log().unwrap().filter(Result::is_ok).count(), 2);
}

/// Returns the bytes of a raw chunk.
fn chunk(kind: Kind, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_HEADER];
    bytes[..4].copy_from_slice(b"AFTC");
    bytes[4..6].copy_from_slice(&kind.0.to_le_bytes());
    bytes[7] = flags;
    bytes[12..16].copy_from_slice(&sequence.to_le_bytes());
    bytes[24..28].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes[28..32].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes[32..36].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    seal(&mut bytes);
    bytes.extend(payload);
    bytes
}

/// Returns the bytes of a footer at `at` whose index begins at `index`.
fn footer(index: usize, at: usize) -> Vec<u8> {
    let mut bytes = b"AFTEND\r\n".to_vec();
    bytes.extend((index as u64).to_le_bytes());
    bytes.extend(((at - index) as u64).to_le_bytes());
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    seal(&mut bytes);
    bytes
}

/// Tests unsound indexes, each before a sound footer.
#[test]
fn an_unsound_index_makes_no_state() {
    let (sound, first) = sample::two_states();
    let header = &sound[..16];
    let with_index = |index: &[Vec<u8>]| {
        let chunk = chunk(Kind::LOG, 0, 1, b"");
        let start = 16 + chunk.len();
        let bytes = [header, &chunk, &index.concat()].concat();
        let footer = footer(start, bytes.len());
        TraceFile::from_bytes([bytes, footer].concat()).unwrap()
    };
    let index = |sequence, flags, payload: &[u8]| chunk(Kind::INDEX, sequence, flags, payload);
    let mut record = 16u64.to_le_bytes().to_vec();
    record.extend(&chunk(Kind::LOG, 0, 1, b"")[..CHUNK_HEADER]);

    let accepted = with_index(&[index(0, 0, b""), index(1, 1, &record)]);
    assert_eq!((accepted.state(), accepted.ignored_bytes()), (Some(1), 0));
    let mut beyond = record.clone();
    beyond[..8].copy_from_slice(&(first as u64).to_le_bytes());
    let unsound: &[&[Vec<u8>]] = &[
        // A chunk that is not an index, an index without its first or next chunk, without a last
        // chunk, or with chunks after the last.
        &[chunk(Kind::LOG, 0, 1, &record)],
        &[index(1, 1, &record)],
        &[index(0, 0, &record), index(2, 1, b"")],
        &[index(0, 0, &record)],
        &[index(0, 1, &record), index(1, 1, b"")],
        // Half a record, an invalid record, a chunk beyond the index, and a chunk listed twice.
        &[index(0, 1, &record[..24])],
        &[index(0, 1, &[0; 48])],
        &[index(0, 1, &beyond)],
        &[index(0, 1, &[&record[..], &record[..]].concat())],
        &[],
    ];
    for (i, chunks) in unsound.iter().enumerate() {
        assert_eq!(with_index(chunks).state(), None, "case {i}");
    }
}

/// Tests footers that all name one large index. The index must not be examined anew for each
/// footer.
#[test]
fn a_file_stuffed_with_footers_opens_in_linear_time() {
    let (sound, _) = sample::two_states();
    let mut bytes = sound[..16].to_vec();
    bytes.extend(chunk(Kind::LOG, 0, 0, &[7; 1 << 20]));
    let index = bytes.len();
    bytes.extend(chunk(Kind::INDEX, 0, 0, &[0; 48 * 25_000]));
    for _ in 0..20_000 {
        bytes.extend(footer(index, bytes.len()));
    }
    bytes.push(0);
    let start = Instant::now();
    TraceFile::from_bytes(bytes).unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn host_calls_that_cannot_be_counted_together_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let mut end = sample::end();
    end.host_call_counts = vec![u64::MAX, 1];
    writer.end(&end).unwrap();
    writer.commit().unwrap();
    let error = TraceFile::open(&path).unwrap().end().unwrap_err();
    assert!(error.to_string().contains("host calls"), "{error}");
}
