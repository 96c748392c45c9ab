//! Opens a recording to add data to it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use afterimage_trace::{TraceError, TraceFile, TraceWriter, Writer, writer};

use crate::error::{Reason, Replaced, SessionError, Unwritable};
use crate::monitor::{Monitor, Note};

/// The interval at which to check whether another process is done.
const LOOK: Duration = Duration::from_millis(50);

/// Opens the file to add data to it. `lost` is the error message if the file cannot be written.
/// Waits while another process is adding data, but not for a recorder. Returns `None` if another
/// process has added data since the file was opened as `seen`, because it may be the same data.
///
/// # Errors
/// Returns an error if the file cannot be written, is a different file from `seen`, or is still
/// being recorded.
pub fn append_to(
    at: &Path,
    seen: &TraceFile,
    lost: &'static str,
    monitor: &dyn Monitor,
) -> Result<Option<TraceWriter>, SessionError> {
    append(at, seen, lost, monitor, &AtomicBool::new(false))
        .map_err(|why| SessionError::new(at, why))
}

/// Whether the writer answers another question in this process.
pub(crate) fn is_this_process(writer: &Writer) -> bool {
    writer.process == Some(std::process::id())
}

/// Like [`append_to`], but stops waiting if `cancel` is set.
pub(crate) fn append(
    at: &Path,
    seen: &TraceFile,
    lost: &'static str,
    monitor: &dyn Monitor,
    cancel: &AtomicBool,
) -> Result<Option<TraceWriter>, Reason> {
    let failed = |why| Reason::Lost { lost, why };
    match TraceWriter::append(at) {
        // Data that was read from one file is not valid for another.
        Ok(_) if !seen.is_at(at) => Err(failed(Replaced.into())),
        Ok(out) => {
            let bytes = seen.ignored_bytes();
            if bytes > 0 {
                monitor.note(at, &Note::Removed { bytes });
            }
            let is_same = TraceFile::open(at)?.state() == seen.state();
            Ok(is_same.then_some(out))
        }
        // Do not wait for a recorder, because the program may run for a long time.
        Err(TraceError::BeingWritten(recorder)) if seen.state().is_none() => {
            Err(Reason::StillRecorded(recorder))
        }
        Err(TraceError::BeingWritten(other)) => {
            if !is_this_process(&other) {
                monitor.note(at, &Note::Waiting(other));
            }
            // The question continues after the first addition, even if the other process writes
            // more.
            while writer(at)?.is_some() && TraceFile::open(at)?.state() == seen.state() {
                if cancel.load(Ordering::SeqCst) {
                    let how = "while another process added to the file: nothing was added";
                    return Err(Reason::Cancelled {
                        how: how.to_owned(),
                    });
                }
                sleep(LOOK);
            }
            Ok(None)
        }
        Err(error) => {
            let unwritable = matches!(&error, TraceError::Io { source, .. }
                if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem));
            Err(failed(if unwritable {
                Unwritable(error).into()
            } else {
                error.into()
            }))
        }
    }
}
