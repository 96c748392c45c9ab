//! Defines the reports that a session sends while it works.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use afterimage_present::{counted, grouped, shell_name, size, time};
use afterimage_record::Progress;
use afterimage_trace::Writer;

/// Receives reports from a session. Threads of the session may call it at the same time.
pub trait Monitor: Sync {
    /// Begins long work with `total` units, if their number is known. The returned value receives
    /// the number of finished units, and is dropped when the work ends.
    fn begin(&self, _work: Work, _total: Option<u64>) -> Progress {
        Arc::new(|_| {})
    }

    /// Receives a note about an event that the recording's user should know about.
    fn note(&self, _at: &Path, _note: &Note) {}
}

/// The number of units of work whose progress is reported as a share.
const SHARES: u64 = 1000;

/// Begins long work. The returned function receives the share that is done, from 0 to 1.
pub(crate) fn begin_shares(monitor: &dyn Monitor, work: Work) -> impl Fn(f64) + use<> {
    let progress = monitor.begin(work, Some(SHARES));
    move |share| progress((share.clamp(0.0, 1.0) * SHARES as f64) as u64)
}

/// Ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Monitor for Silent {}

/// A kind of long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Building the path. The units are polls of the stop clock, or megabytes of the path that the
    /// run wrote.
    Path,
    /// Building the values. The units are executed blocks.
    Values,
    /// Taking snapshots. The units are polls of the stop clock.
    Snapshots,
    /// Executing the run again to find the writer of a byte. The units are stretches of the run.
    Writer,
    /// Counting blocks. The units are polls of the stop clock.
    Counts,
    /// Following the run for a question, with this purpose. The purpose determines the units.
    Question(&'static str),
    /// Searching for the answer to a question, with this purpose. The total is an upper bound,
    /// because the search ends when the answer is found.
    Search(&'static str),
}

impl Work {
    /// Returns the name of the units, if it is meaningful to a user.
    pub fn units(&self) -> Option<&'static str> {
        (*self == Self::Values).then_some("blocks")
    }

    /// Whether the work may end long before its total is reached.
    pub fn may_end_early(&self) -> bool {
        matches!(self, Self::Search(_))
    }
}

impl Display for Work {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Path => "following the path",
            Self::Values => "following the values",
            Self::Snapshots => "taking snapshots",
            Self::Writer => "looking for a writer",
            Self::Counts => "counting",
            Self::Question(doing) | Self::Search(doing) => doing,
        })
    }
}

/// An event in the life of a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Another process is adding to the recording. The session waits.
    Waiting(Writer),
    /// The remains of an interrupted addition have been removed.
    Removed {
        /// The number of bytes.
        bytes: u64,
    },
    /// The program is still running. Questions are about the part recorded so far.
    StillRecorded {
        /// The process that records the program.
        recorder: Writer,
        /// The number of blocks so far.
        blocks: u64,
    },
    /// A filter left parts out of the path.
    PathLacks {
        /// A description of the parts left out.
        left_out: String,
        /// Whether exact counts of everything are available.
        counts: bool,
    },
    /// The path was built.
    PathBuilt {
        /// The number of executed blocks.
        blocks: u64,
        /// The size of the path in bytes.
        bytes: u64,
        /// A description of the parts that a filter left out.
        left_out: String,
    },
    /// A filter removed the whole path.
    PathEmpty {
        /// The number of blocks of the run.
        blocks: u64,
    },
    /// The path was built, but the path that the run wrote could not be removed.
    WordsStay {
        /// The reason.
        why: String,
    },
    /// Snapshots were taken.
    SnapshotsTaken {
        /// The number of snapshots.
        snapshots: usize,
        /// The size in bytes of the snapshots, of the path that the run wrote, and of its
        /// stretches.
        bytes: u64,
    },
    /// Counts could not be added to the file.
    CountsNotKept {
        /// The reason.
        why: String,
    },
    /// Building values will take long.
    ValuesTake {
        /// The approximate number of seconds that remain.
        seconds: u64,
        /// The approximate number of bytes that the build adds to the file in total.
        bytes: u64,
    },
    /// Values were built.
    ValuesBuilt {
        /// The number of executed statements.
        statements: u64,
        /// The first and the last block with values, if only a part of the run has values.
        part: Option<(u64, u64)>,
        /// The size of the values in the file, in bytes.
        bytes: u64,
        /// A description of the parts left out.
        left_out: String,
    },
    /// A sentence about a question, or about the program's debug information.
    Remark(String),
    /// The recording was cut off, so only a part of its path has values.
    CutOff {
        /// The last block with values.
        values: u64,
        /// The last block of the path.
        path: u64,
    },
}

impl Note {
    /// Whether the note reports progress rather than a problem.
    pub fn is_good_news(&self) -> bool {
        matches!(
            self,
            Self::PathBuilt { .. }
                | Self::ValuesTake { .. }
                | Self::ValuesBuilt { .. }
                | Self::SnapshotsTaken { .. }
        )
    }

    /// Returns the note as a sentence about the recording with this path.
    pub fn about(&self, at: &Path) -> String {
        let file = at.display();
        match self {
            Self::Waiting(other) => {
                format!("{file}: waiting for another process{other} that is adding to it")
            }
            Self::Removed { bytes } => format!(
                "{file}: removed {} that an interrupted process had begun to add",
                counted(*bytes, "byte")
            ),
            Self::StillRecorded { recorder, blocks } => format!(
                "{file} is still being recorded by another process{recorder}: this report \
                 covers the run up to t={}",
                grouped(*blocks)
            ),
            Self::PathLacks { left_out, counts } => {
                let all = if *counts {
                    format!(
                        "; for exact counts of everything: afterimage profile {}",
                        shell_name(&file.to_string())
                    )
                } else {
                    String::new()
                };
                format!(
                    "the path in {file} lacks {left_out}: only the rest is counted, but calls \
                     are numbered as in the whole run{all}"
                )
            }
            Self::PathBuilt {
                blocks,
                bytes,
                left_out,
            } => format!(
                "path of {} executed blocks in {} bytes{}",
                grouped(*blocks),
                grouped(*bytes),
                without(left_out)
            ),
            Self::PathEmpty { blocks } => format!(
                "no part of the path was kept: the run has {blocks} blocks, from t=1 to \
                 t={blocks}, and reached no mark or function",
                blocks = grouped(*blocks)
            ),
            Self::WordsStay { why } => format!(
                "{file}: the path that the run wrote stays in the recording and makes it \
                 larger: {why}"
            ),
            Self::SnapshotsTaken {
                snapshots: 0,
                bytes,
            } => format!("the path of the run, in {}", size(*bytes)),
            Self::SnapshotsTaken { snapshots, bytes } => {
                let snapshots = counted(*snapshots as u64, "snapshot");
                format!("{snapshots} of the run, with its path, in {}", size(*bytes))
            }
            Self::CountsNotKept { why } => format!("cannot keep the counts in {file}: {why}"),
            Self::ValuesTake { seconds, bytes } => format!(
                "{file}: building the values takes about {} more and adds about {} to the \
                 recording; Ctrl-C keeps what is built so far",
                time(*seconds),
                size(*bytes)
            ),
            Self::ValuesBuilt {
                statements,
                part,
                bytes,
                left_out,
            } => {
                let part = match part {
                    None => String::new(),
                    Some((first, last)) => {
                        format!(" from t={} to t={}", grouped(*first), grouped(*last))
                    }
                };
                format!(
                    "values of {} executed statements{part} in {} bytes ({:.4} a statement){}",
                    grouped(*statements),
                    grouped(*bytes),
                    *bytes as f64 / (*statements).max(1) as f64,
                    without(left_out)
                )
            }
            Self::Remark(text) => text.clone(),
            Self::CutOff { values, path } => format!(
                "the recording was cut off: its log ends at t={0}, its path at t={1}; there are values up to t={0}",
                grouped(*values),
                grouped(*path)
            ),
        }
    }
}

fn without(left_out: &str) -> String {
    if left_out.is_empty() {
        String::new()
    } else {
        format!(", without {left_out}")
    }
}
