//! Tests creating, replacing and locking files.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afterimage_trace::{Existing, Kind, Meta, TraceError, TraceFile, TraceWriter, writer};

use crate::sample;

/// Returns the names in a folder, sorted.
fn names(dir: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn setting() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    (dir, path)
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let (_dir, path) = setting();
    fs::write(&path, "precious").unwrap();
    assert!(matches!(
        TraceWriter::create(&path, Existing::Kept),
        Err(TraceError::Exists)
    ));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn an_overwritten_file_stays_until_the_new_one_is_complete() {
    let (dir, path) = setting();
    sample::record(&path);
    let old = fs::read(&path).unwrap();
    let reader = TraceFile::open(&path).unwrap();

    let writer = TraceWriter::create(&path, Existing::Replaced).unwrap();
    writer
        .meta(&Meta {
            program_name: "new".into(),
            ..Meta::default()
        })
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(names(&dir).len(), 2);
    let part = dir.path().join(&names(&dir)[1]);
    assert_eq!(
        TraceFile::open(&part).unwrap().meta().unwrap().program_name,
        "new"
    );

    writer.commit().unwrap();
    assert_eq!(names(&dir), ["a.aft"]);
    assert_eq!(
        TraceFile::open(&path).unwrap().meta().unwrap().program_name,
        "new"
    );
    assert_eq!(
        sample::assert_never_wrong(&reader),
        4,
        "who reads the old file keeps it"
    );
    writer.counts(&sample::counts()).unwrap();
    writer.commit().unwrap();
    assert_eq!(
        TraceFile::open(&path).unwrap().counts().unwrap(),
        Some(sample::counts())
    );
}

#[test]
fn what_an_overwriting_writer_leaves_can_be_discarded() {
    let (dir, path) = setting();
    sample::record(&path);
    let writer = TraceWriter::create(&path, Existing::Replaced).unwrap();
    writer.meta(&Meta::default()).unwrap();
    writer.discard().unwrap();
    assert_eq!(names(&dir), ["a.aft"]);
    assert_eq!(
        sample::assert_never_wrong(&TraceFile::open(&path).unwrap()),
        4
    );
}

#[test]
fn a_new_file_that_is_discarded_is_gone_and_a_committed_one_is_not() {
    let (dir, path) = setting();
    TraceWriter::create(&path, Existing::Kept)
        .unwrap()
        .discard()
        .unwrap();
    assert!(names(&dir).is_empty());
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    writer.commit().unwrap();
    writer.discard().unwrap();
    assert_eq!(names(&dir), ["a.aft"]);
}

#[test]
fn a_new_file_that_is_dropped_stays_readable_as_far_as_it_came() {
    let (_dir, path) = setting();
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    sample::write_recording(&writer).unwrap();
    drop(writer);
    let file = TraceFile::open(&path).unwrap();
    assert_eq!((file.state(), sample::assert_never_wrong(&file)), (None, 4));
}

#[test]
fn who_writes_a_file_is_told() {
    let (_dir, path) = setting();
    let out = TraceWriter::create(&path, Existing::Kept).unwrap();
    let found = writer(&path).unwrap().unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(found.process, Some(std::process::id()));
    }
    let error = TraceWriter::append(&path).unwrap_err().to_string();
    assert!(
        error.contains(&format!("another process{found} is writing")),
        "{error}"
    );
    out.commit().unwrap();
    drop(out);
    // Another test may be starting a process, which inherits the lock until its program is loaded.
    let released = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        writer(&path).unwrap().is_none()
    });
    assert!(released);
}

/// Asking who writes a file takes the file's lock for a moment.
#[test]
fn writers_do_not_mind_being_asked_for() {
    let (_dir, path) = setting();
    TraceWriter::create(&path, Existing::Kept)
        .unwrap()
        .commit()
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                writer(&path).unwrap();
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        for _ in 0..200 {
            drop(TraceWriter::append(&path).unwrap());
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn there_is_one_writer_at_a_time_and_readers_do_not_wait() {
    let (_dir, path) = setting();
    let busy = |result: Result<TraceWriter, _>| matches!(result, Err(TraceError::BeingWritten(_)));

    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    assert!(busy(TraceWriter::append(&path)));
    assert!(busy(TraceWriter::create(&path, Existing::Replaced)));
    writer.meta(&Meta::default()).unwrap();
    assert_eq!(
        TraceFile::open(&path).unwrap().meta().unwrap(),
        Meta::default()
    );
    // The lock is held as long as any part of the writer exists.
    let section = writer.section(Kind(900), None).unwrap();
    writer.commit().unwrap();
    drop(writer);
    assert!(busy(TraceWriter::append(&path)));
    drop(section);

    let over = TraceWriter::create(&path, Existing::Replaced).unwrap();
    assert!(
        busy(TraceWriter::create(&path, Existing::Replaced)),
        "two that replace the same file"
    );
    assert!(busy(TraceWriter::append(&path)));
    over.commit().unwrap();
    assert!(
        busy(TraceWriter::append(&path)),
        "the new file has its own lock"
    );
    drop(over);
    TraceWriter::append(&path).unwrap();
}

#[test]
fn sections_that_occur_once_are_not_written_twice() {
    let (_dir, path) = setting();
    sample::record(&path);
    let writer = TraceWriter::append(&path).unwrap();
    let twice = |result: Result<(), _>, kind| matches!(result, Err(TraceError::Duplicate(it)) if it == kind);
    assert!(twice(writer.meta(&Meta::default()), Kind::META));
    assert!(twice(writer.module(&[]), Kind::MODULE));
    assert!(twice(writer.log().map(drop), Kind::LOG));
    assert!(twice(writer.end(&sample::end()), Kind::END));
    writer.counts(&sample::counts()).unwrap();
    writer.counts(&sample::counts()).unwrap();
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_followed_and_a_device_is_left_alone() {
    let (dir, path) = setting();
    let link = dir.path().join("link.aft");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    sample::record(&path);
    TraceWriter::create(&link, Existing::Replaced)
        .unwrap()
        .commit()
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(matches!(
        TraceFile::open(&path).unwrap().meta(),
        Err(TraceError::Missing(Kind::META))
    ));
    let null = std::path::Path::new("/dev/null");
    assert!(matches!(
        TraceWriter::create(null, Existing::Replaced),
        Err(TraceError::NotAFile)
    ));
    assert!(matches!(TraceFile::open(null), Err(TraceError::NotAFile)));
    assert!(matches!(
        TraceWriter::create(dir.path(), Existing::Replaced),
        Err(TraceError::NotAFile)
    ));
    assert!(matches!(
        TraceWriter::create(dir.path(), Existing::Kept),
        Err(TraceError::NotAFile)
    ));
    assert!(matches!(
        TraceWriter::create(&dir.path().join("no/a.aft"), Existing::Replaced),
        Err(TraceError::Io { .. })
    ));
}

/// Writes META and MODULE, the last sections of every file in these tests.
fn written(writer: &TraceWriter) {
    writer.meta(&sample::meta()).unwrap();
    writer.module(sample::MODULE).unwrap();
}

/// If another process replaces a file while it is written, the replacement stays, and our file is
/// kept as well.
#[test]
fn a_file_that_is_replaced_while_it_is_written_is_kept_beside_the_other() {
    let put = |path: &PathBuf| {
        let other = path.with_extension("other");
        fs::write(&other, "theirs").unwrap();
        fs::rename(&other, path).unwrap();
    };
    let kept = |path: &PathBuf, result: afterimage_trace::Result<()>| {
        let Err(TraceError::Replaced { path: named, kept }) = result else {
            panic!("{result:?}");
        };
        assert_eq!(named, path.canonicalize().unwrap());
        assert_eq!(fs::read(path).unwrap(), b"theirs");
        let file = TraceFile::open(&kept).unwrap();
        assert!(file.state().is_some(), "it is complete");
        assert_eq!(file.meta().unwrap(), sample::meta());
        assert_eq!(file.module().unwrap(), sample::MODULE);
        file
    };
    let (dir, path) = setting();
    let path = dir
        .path()
        .canonicalize()
        .unwrap()
        .join(path.file_name().unwrap());
    // A new file.
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    written(&writer);
    put(&path);
    kept(&path, writer.commit());
    // A file that should have replaced another.
    fs::remove_file(&path).unwrap();
    sample::record(&path);
    let writer = TraceWriter::create(&path, Existing::Replaced).unwrap();
    written(&writer);
    put(&path);
    kept(&path, writer.commit());
    // A file that was extended.
    fs::remove_file(&path).unwrap();
    sample::record(&path);
    let old = TraceFile::open(&path).unwrap();
    assert!(old.is_at(&path));
    let writer = TraceWriter::append(&path).unwrap();
    writer.counts(&sample::counts()).unwrap();
    put(&path);
    let file = kept(&path, writer.commit());
    assert_eq!(file.counts().unwrap(), Some(sample::counts()));
    assert!(!old.is_at(&path));
    // A file that was removed, with nothing in its place.
    fs::remove_file(&path).unwrap();
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    written(&writer);
    fs::remove_file(&path).unwrap();
    let removed = writer.commit();
    let Err(TraceError::Replaced { kept, .. }) = removed else {
        panic!("{removed:?}");
    };
    assert_eq!(
        TraceFile::open(&kept).unwrap().meta().unwrap(),
        sample::meta()
    );
    // A file that was moved is complete, in its new place.
    let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
    written(&writer);
    let moved = path.with_extension("moved");
    fs::rename(&path, &moved).unwrap();
    assert!(matches!(writer.commit(), Err(TraceError::Moved { .. })));
    assert_eq!(
        TraceFile::open(&moved).unwrap().meta().unwrap(),
        sample::meta()
    );
}
