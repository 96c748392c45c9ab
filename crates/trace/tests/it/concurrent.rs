//! Tests readers during writing, and a writer that is killed.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use afterimage_ids::ImportId;
use afterimage_trace::{Event, Existing, HostWrite, RawValue, TraceFile, TraceWriter};

use crate::sample;

#[test]
fn readers_see_complete_states_while_a_writer_appends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    sample::record(&path);
    let mut states = Vec::new();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let writer = TraceWriter::append(&path).unwrap();
            for _ in 0..100 {
                writer.counts(&sample::counts()).unwrap();
                writer.commit().unwrap();
            }
        });
        while !writer.is_finished() {
            let file = TraceFile::open(&path).unwrap();
            assert!(sample::assert_never_wrong(&file) >= 4);
            states.push(file.state());
        }
    });
    assert!(states.is_sorted());
    let file = TraceFile::open(&path).unwrap();
    assert_eq!((file.state(), file.ignored_bytes()), (Some(101), 0));
    assert!(file.verify().is_sound());
}

/// A kill at any moment after a flush leaves all events that were appended before the flush.
#[test]
fn another_thread_flushes_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let mut log = writer.log().unwrap();
    let flusher = log.flusher();
    let there = || {
        let log = TraceFile::open(&path).unwrap().log();
        log.map_or(0, Iterator::count)
    };
    for count in 1..20 {
        log.event(&Event::MemoryGrow { granted: true }).unwrap();
        let (before, flusher) = (there(), flusher.clone());
        thread::spawn(move || flusher.flush()).join().unwrap();
        assert_eq!((before, there()), (count - 1, count));
    }
    let size = fs::metadata(&path).unwrap().len();
    flusher.flush();
    assert_eq!(fs::metadata(&path).unwrap().len(), size, "nothing waits");
    assert_eq!(log.finish().unwrap(), 19);
    flusher.flush();
    writer.commit().unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.log().unwrap().is_complete());
    assert_eq!(there(), 19);
}

#[test]
fn a_flush_of_a_log_that_was_given_up_returns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    let mut log = writer.log().unwrap();
    log.event(&Event::MemoryGrow { granted: true }).unwrap();
    let flusher = log.flusher();
    drop(log);
    flusher.flush();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.log().is_err(), "what was not handed over is lost");
}

#[test]
fn sections_of_several_threads_interleave() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    sample::write_recording(&writer).unwrap();
    thread::scope(|scope| {
        for number in 0..4u8 {
            let kind = afterimage_trace::Kind(1000 + u16::from(number));
            let mut section = writer.section(kind, None).unwrap();
            scope.spawn(move || {
                for i in 0..50 {
                    section.put(i, &[number; 1000]).unwrap();
                }
                section.finish(50, &[]).unwrap();
            });
        }
    });
    writer.commit().unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert!(file.verify().is_sound());
    for number in 0..4u8 {
        let position = file.sections().unwrap();
        let kind = 1000 + u16::from(number);
        let position = position
            .iter()
            .position(|section| section.kind.0 == kind)
            .unwrap();
        let mut section = file.section(position).unwrap();
        for _ in 0..50 {
            assert!(section.advance().unwrap());
            assert_eq!(section.bytes(), [number; 1000]);
        }
    }
}

/// The variable that is set in the child process, to the path of the file that the child writes.
const CHILD: &str = "AFTERIMAGE_KILLED_WRITER";

fn event(number: u64) -> Event {
    let bytes = number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes()
        .to_vec();
    Event::HostCall {
        import: ImportId::from_u32(0),
        args: vec![RawValue::I64(number as i64)],
        results: vec![],
        writes: vec![HostWrite {
            memory: 0,
            address: number,
            bytes,
        }],
        reads: vec![],
        read_digest: 0,
    }
}

#[test]
fn a_killed_recording_is_readable_up_to_its_last_chunk() {
    if let Some(path) = std::env::var_os(CHILD) {
        let writer = TraceWriter::create(path.as_ref(), Existing::Kept).unwrap();
        writer.meta(&sample::meta()).unwrap();
        writer.module(sample::MODULE).unwrap();
        let mut log = writer.log().unwrap();
        for number in 0.. {
            log.event(&event(number)).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "concurrent::a_killed_recording_is_readable_up_to_its_last_chunk",
        ])
        .env(CHILD, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while fs::metadata(&path).map_or(0, |file| file.len()) < 500_000 {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "the child writes nothing"
        );
        thread::sleep(Duration::from_millis(1));
    }
    let alive = TraceFile::open(&path).unwrap();
    assert!(TraceWriter::append(&path).is_err(), "it is being written");
    child.kill().unwrap();
    child.wait().unwrap();

    let file = TraceFile::open(&path).unwrap();
    assert_eq!((file.state(), file.end().unwrap()), (None, None));
    assert_eq!(
        (file.meta().unwrap(), file.module().unwrap()),
        (sample::meta(), sample::MODULE.to_vec())
    );
    let mut read = 0;
    for found in file.log().unwrap() {
        assert_eq!(found.unwrap(), event(read));
        read += 1;
    }
    assert!(read > 10_000);
    assert!(alive.log().unwrap().count() as u64 <= read);

    sample::append(&path).unwrap();
    let file = TraceFile::open(&path).unwrap();
    assert_eq!((file.state(), file.end().unwrap()), (Some(2), None));
    assert_eq!(file.log().unwrap().count() as u64, read);
}
