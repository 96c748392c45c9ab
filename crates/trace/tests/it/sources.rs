//! Checks that embedded sources are read back one by one, and that a list that does not fit its
//! chunks is refused.

use std::fs;
use std::sync::atomic::AtomicBool;

use afterimage_trace::{Kind, Rule, TraceError, TraceFile, TraceWriter};

use crate::sample;

/// Returns a recording with a section SOURCES.
fn recording(write: impl FnOnce(&TraceWriter)) -> TraceFile {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let writer = TraceWriter::append(&path).unwrap();
    write(&writer);
    writer.commit().unwrap();
    TraceFile::open(&path).unwrap()
}

#[test]
fn files_are_read_back_in_any_order() {
    let long = Vec::from_iter((0..3_000_000u32).map(|i| (i % 251) as u8));
    let all: [(&str, &[u8]); 4] = [
        ("/b/long.c", &long),
        ("empty.c", b""),
        ("\u{202e}\n", b"\xff\x00"),
        ("/a.c", b"int x;\n"),
    ];
    let file = recording(|writer| {
        let mut sources = writer.sources().unwrap();
        for (path, text) in all {
            sources.add(path, text).unwrap();
        }
        sources.finish().unwrap();
    });
    let sources = file.sources().unwrap().unwrap();
    for (path, text) in all {
        assert!(sources.has(path));
        assert_eq!(sources.read(path).unwrap().as_deref(), Some(text), "{path}");
    }
    assert_eq!(sources.read("a.c").unwrap(), None);
    let paths = Vec::from_iter(sources.files());
    let lengths = [
        ("\u{202e}\n", 2),
        ("/a.c", 7),
        ("/b/long.c", 3_000_000),
        ("empty.c", 0),
    ];
    assert_eq!(paths.len(), lengths.len());
    assert!(lengths.iter().all(|own| paths.contains(own)));
    assert_eq!(file.verify().findings, []);
}

#[test]
fn a_recording_has_none_unless_they_were_embedded() {
    assert!(recording(|_| ()).sources().unwrap().is_none());
    let none = recording(|writer| writer.sources().unwrap().finish().unwrap());
    assert_eq!(none.sources().unwrap().unwrap().files().len(), 0);
    assert_eq!(none.verify().findings, []);
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let large = vec![b'x'; (64 << 20) + 1];
    recording(|writer| {
        let mut sources = writer.sources().unwrap();
        let refused = sources.add("a.c", &large);
        assert!(matches!(refused, Err(TraceError::TooLarge { .. })));
        sources.finish().unwrap();
    });
}

#[test]
fn a_list_that_does_not_fit_is_malformed() {
    // Each entry has the path "a", the number of chunks, and the length.
    let lists: [(&str, &[u8]); 6] = [
        ("more chunks than there are", b"\x01\x01a\x02\x06"),
        ("another length", b"\x01\x01a\x01\x05"),
        ("a chunk of no file", b"\x01\x01a\x00\x00"),
        ("one path twice", b"\x02\x01a\x01\x06\x01a\x00\x00"),
        ("bytes behind it", b"\x01\x01a\x01\x06\x00"),
        ("a path that is not UTF-8", b"\x01\x01\xff\x01\x06"),
    ];
    for (what, list) in lists {
        let file = recording(|writer| {
            let mut section = writer.section(Kind::SOURCES, None).unwrap();
            section.put(0, b"int x;").unwrap();
            section.finish(1, list).unwrap();
        });
        let found = file.sources();
        assert!(matches!(found, Err(TraceError::Malformed { .. })), "{what}");
        let findings = file.verify().findings;
        assert_eq!(findings.len(), 1, "{what}");
        assert_eq!(findings[0].rule, Rule::Decode, "{what}");
    }
}

#[test]
fn a_recording_without_inputs_is_sound_and_has_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let file = TraceFile::open(&path).unwrap();
    let meta = file.meta().unwrap().without_inputs();
    assert!(meta.args.is_empty() && meta.env.is_empty() && meta.dirs.is_empty());
    let kept = [Kind::META, Kind::MODULE, Kind::END, Kind::COUNTS];
    let stop = AtomicBool::new(false);
    TraceWriter::rewrite_as(&path, &meta, &kept, &stop).unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert_eq!(file.meta().unwrap(), meta);
    assert!(matches!(file.log(), Err(TraceError::WithoutInputs)));
    assert_eq!(file.verify().findings, []);
    // META does not mention the removal, so the file lacks its log.
    TraceWriter::rewrite_as(&path, &sample::meta(), &kept, &stop).unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(matches!(file.log(), Err(TraceError::Missing(Kind::LOG))));
    assert_eq!(file.verify().findings[0].rule, Rule::Required);
}

#[test]
fn a_stopped_rewrite_leaves_the_recording_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let before = fs::read(&path).unwrap();
    let stop = AtomicBool::new(true);
    let meta = sample::meta();
    for rewritten in [
        TraceWriter::rewrite_without(&path, &[Kind::COUNTS], &stop),
        TraceWriter::rewrite_as(&path, &meta, &[Kind::META, Kind::MODULE], &stop),
    ] {
        assert!(matches!(rewritten, Err(TraceError::Stopped)));
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
