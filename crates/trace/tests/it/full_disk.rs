//! Tests a disk that becomes full at any moment, simulated by a limit on the length of files.

#![cfg(unix)]

use std::fs;
use std::process::Command;

use afterimage_trace::{Existing, TraceError, TraceFile, TraceWriter};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sample;

/// The variable that is set in the child process. Only the child may limit itself.
const CHILD: &str = "AFTERIMAGE_FULL_DISK";

#[test]
fn a_full_disk_is_an_error_and_leaves_what_was_committed() {
    if std::env::var_os(CHILD).is_some() {
        return with_limits();
    }
    // The shell makes the child ignore the signal that would otherwise end it at the limit.
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let status = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" --exact full_disk::a_full_disk_is_an_error_and_leaves_what_was_committed"#])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stdout)
    );
}

fn limited<T>(length: usize, work: impl FnOnce() -> T) -> T {
    let free = getrlimit(Resource::Fsize);
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: Some(length as u64),
            ..free
        },
    )
    .unwrap();
    let result = work();
    setrlimit(Resource::Fsize, free).unwrap();
    result
}

fn with_limits() {
    let (bytes, first) = sample::two_states();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.aft");
    for limit in (0..=bytes.len()).rev().step_by(3) {
        let _ = fs::remove_file(&path);
        let recorded = limited(limit, || {
            let writer = TraceWriter::create(&path, Existing::Kept)?;
            let written = sample::write_recording(&writer).and_then(|()| writer.commit());
            assert_eq!(written.is_ok(), limit >= first);
            if let Err(error) = written {
                assert!(matches!(error, TraceError::Write(_)), "{error}");
                assert!(matches!(writer.commit(), Err(TraceError::Failed)));
            }
            Ok::<_, TraceError>(())
        });
        assert_eq!(
            recorded.is_ok(),
            limit >= 16,
            "only the header is written at creation"
        );
        if limit >= 16 {
            let file = TraceFile::open(&path).unwrap();
            sample::assert_never_wrong(&file);
            assert_eq!(file.state().is_some(), limit >= first);
            assert_eq!(
                file.ignored_bytes(),
                0,
                "the remains of the failed write were cut off"
            );
        }

        fs::write(&path, &bytes[..first]).unwrap();
        let appended = limited(limit, || sample::append(&path));
        assert_eq!(appended.is_ok(), limit >= bytes.len());
        let expected = if appended.is_ok() {
            &bytes[..]
        } else {
            &bytes[..first]
        };
        assert_eq!(fs::read(&path).unwrap(), expected);
    }
}
