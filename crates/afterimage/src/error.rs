//! Defines the errors of sessions.

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};
use std::path::{Path, PathBuf};

use afterimage_ids::grouped;
use afterimage_record::RecordError;
use afterimage_replay::RecordingError;
use afterimage_replay::whole_path::PathFileError;
use afterimage_trace::{TraceError, Writer};

use crate::text::sentence;

/// The reason why a session failed, with its recording. The error is shown as one sentence that
/// begins with the file.
pub struct SessionError {
    /// The path of the recording.
    pub at: PathBuf,
    /// The reason.
    pub why: Box<Reason>,
}

/// The reason why a session failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The recording, or a part of it, cannot be opened.
    #[error("{0}")]
    Recording(#[from] RecordingError),
    /// The file cannot be read or written.
    #[error("{0}")]
    File(#[from] TraceError),
    /// The path is damaged.
    #[error("{0}")]
    Path(#[from] PathFileError),
    /// The run cannot be executed again.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// The values cannot be built.
    #[error("{0}")]
    Values(#[source] Box<dyn Error + Send + Sync>),
    /// Nothing can be added to the file.
    #[error("{lost}")]
    Lost {
        /// The data that cannot be added.
        lost: &'static str,
        /// The reason.
        #[source]
        why: Box<dyn Error + Send + Sync>,
    },
    /// A filter left parts out of the path.
    #[error(
        "the path lacks {left_out}, but this question needs all of it; build the whole path \
         with: afterimage build --lens paths --again {file}"
    )]
    Gaps {
        /// A description of the parts left out.
        left_out: String,
        /// The recording, as a word of a command line.
        file: String,
    },
    /// The program is still running.
    #[error(
        "the program is still being recorded by another process{0}; ask again when it has \
         ended, or see the part recorded so far with `afterimage trace`"
    )]
    StillRecorded(Writer),
    /// The program is still running, and its path does not exist yet.
    #[error(
        "it is still being recorded by another process{0}, and its path has not been written yet; \
         ask again later, or when the program has ended (`record --lens paths` writes the path \
         by the megabyte)"
    )]
    NothingYet(Writer),
    /// The end of the run is unknown.
    #[error(
        "the recording was cut off before its end was written, so its path cannot be followed; \
         record the program again (with --lens paths, a recording keeps its path up to the last \
         full megabyte)"
    )]
    CutOff,
    /// Nothing was removed, because the parts to remove could not be built again.
    #[error(
        "nothing was removed from the recording, because {0}: its contents could not be built \
         again"
    )]
    NotAgain(String),
    /// Removing the program's input would leave a recording that cannot answer any question.
    #[error(
        "the recording has neither counts nor a path, and they cannot be made without the \
         program's input; make them first: afterimage profile {0}"
    )]
    NothingToKeep(String),
    /// The program's input cannot be dropped, because the end of the run is unknown.
    #[error(
        "nothing was removed from the recording, because it was cut off: only following it \
         shows what is left"
    )]
    CutOffWithInputs,
    /// Exact counts cannot be made, because the end of the run is unknown.
    #[error(
        "the recording was cut off before its end was written, so exact counts cannot be made; record the program again"
    )]
    NoCounts,
    /// The earlier run, whose counts show where counters are cheap, cannot be used.
    #[error("--weights {}: {why}", at.display())]
    Weights {
        /// The recording of the earlier run.
        at: PathBuf,
        /// The reason.
        why: String,
    },
    /// Repeated counts differ from those in the file.
    #[error(
        "these counts differ from those in the file, so none can be trusted; this is a bug in \
         afterimage"
    )]
    CountsDiffer,
    /// A filter would remove the whole path.
    #[error(
        "the filters would keep no part of the path: the run has {blocks} blocks, from t=1 to \
         t={blocks}, and reached no mark or function; the recording is unchanged",
        blocks = grouped(*blocks)
    )]
    NothingKept {
        /// The number of executed blocks.
        blocks: u64,
    },
    /// Data was missing right after it was built.
    #[error("the {0} that was just built is missing")]
    Gone(&'static str),
    /// Removing parts of the recording was cancelled.
    #[error("removing parts was interrupted; nothing is changed")]
    NotRemoved,
    /// A build was cancelled.
    #[error("building {0} was cancelled; nothing was added")]
    Stopped(&'static str),
    /// The work was cancelled.
    #[error("building the values was interrupted {how}")]
    Cancelled {
        /// The progress of the work, and the data that was kept.
        how: String,
    },
}

/// Another file has replaced the recording.
#[derive(Debug, thiserror::Error)]
#[error("another file has replaced it, and nothing was added; ask again")]
pub(crate) struct Replaced;

/// The file is read-only.
#[derive(Debug, thiserror::Error)]
#[error("{0}; copy the recording to a folder where it can be written, and ask about the copy")]
pub(crate) struct Unwritable(pub TraceError);

/// The reason why a question has no answer, in one sentence.
pub struct QuestionError(anyhow::Error);

impl From<anyhow::Error> for QuestionError {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

impl Display for QuestionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(&self.0))
    }
}

/// Shows the same sentence, because `main` prints errors with `Debug`.
impl Debug for QuestionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Error for QuestionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let inner: &(dyn Error + Send + Sync) = self.0.as_ref();
        Some(inner)
    }
}

impl SessionError {
    pub(crate) fn new(at: &Path, why: impl Into<Reason>) -> Self {
        Self {
            at: at.to_owned(),
            why: Box::new(why.into()),
        }
    }
}

/// Shows the same sentence, because `main` prints errors with `Debug`.
impl Debug for SessionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for SessionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at.display(), self.why)
    }
}

impl Error for SessionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.why.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once() {
        let session = SessionError::new("r.aft".as_ref(), Reason::Gone("path"));
        let error = anyhow::Error::from(session).context("r.aft");
        let told = QuestionError::from(error).to_string();
        assert_eq!(told, "r.aft: the path that was just built is missing");
    }
}
