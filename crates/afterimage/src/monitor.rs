//! What a session tells whoever waits for it.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use afterimage_present::{counted, grouped, shell_name, size, time};
use afterimage_record::Progress;
use afterimage_trace::Writer;

/// Hears what a session does. Threads of the session may call it at the same time.
pub trait Monitor: Sync {
    /// Long work begins, of `total` units if that is known. What is returned is told how many of them are done, and dropped when the work ends.
    fn begin(&self, _work: Work, _total: Option<u64>) -> Progress {
        Arc::new(|_| {})
    }

    /// Something happened to a recording that its user should know.
    fn note(&self, _at: &Path, _note: &Note) {}
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Monitor for Silent {}

/// Long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The path is being built; the units are events of the log, or megabytes that the run wrote of its path.
    Path,
    /// The values are being built; the units are executed blocks.
    Values,
    /// Snapshots are being taken; the units are events of the log.
    Snapshots,
    /// The run is executed again to find who wrote a byte; the units are stretches of it.
    Writer,
    /// Blocks are being counted; the units are events of the log.
    Counts,
    /// A question follows the run, for what is said; the units are executed blocks.
    Question(&'static str),
}

impl Work {
    /// The units, where a user knows them.
    pub fn units(&self) -> Option<&'static str> {
        (*self == Self::Values).then_some("blocks")
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
            Self::Question(doing) => doing,
        })
    }
}

/// What happened to a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Another process adds to it, and is waited for.
    Waiting(Writer),
    /// What an interrupted addition left is removed.
    Removed {
        /// How many bytes.
        bytes: u64,
    },
    /// The program still runs; questions are about what is there.
    StillRecorded {
        /// Who records it.
        recorder: Writer,
        /// How many blocks are there.
        blocks: u64,
    },
    /// A filter left something out of the path.
    PathLacks {
        /// What, in words.
        left_out: String,
        /// Whether exact counts of everything can be had.
        counts: bool,
    },
    /// The path was built.
    PathBuilt {
        /// How many blocks were executed.
        blocks: u64,
        /// How many bytes it takes.
        bytes: u64,
        /// What a filter left out, in words.
        left_out: String,
    },
    /// A filter left nothing of a path of so many blocks.
    PathEmpty {
        /// How many.
        blocks: u64,
    },
    /// What the run wrote of its path could not be dropped after the path was built.
    WordsStay {
        /// Why.
        why: String,
    },
    /// Snapshots were taken.
    SnapshotsTaken {
        /// How many.
        snapshots: usize,
        /// How many bytes they take, with what was written of the path and of its stretches.
        bytes: u64,
    },
    /// Counts could not be added to the file.
    CountsNotKept {
        /// Why.
        why: String,
    },
    /// Building values takes long.
    ValuesTake {
        /// About how many seconds more.
        seconds: u64,
        /// About how many bytes the build adds to the file in all.
        bytes: u64,
    },
    /// Values were built.
    ValuesBuilt {
        /// How many statements were executed.
        statements: u64,
        /// From which block on to which one, if not of the whole run.
        part: Option<(u64, u64)>,
        /// How many bytes the values in the file take.
        bytes: u64,
        /// What was left out, in words.
        left_out: String,
    },
    /// Something about a question, or the program's debug information, as a sentence.
    Remark(String),
    /// The recording was cut off, so there are values of a part of its path.
    CutOff {
        /// The last block with values.
        values: u64,
        /// The last block of the path.
        path: u64,
    },
}

impl Note {
    /// Whether it says what went well.
    pub fn is_good_news(&self) -> bool {
        matches!(
            self,
            Self::PathBuilt { .. }
                | Self::ValuesTake { .. }
                | Self::ValuesBuilt { .. }
                | Self::SnapshotsTaken { .. }
        )
    }

    /// The note as a sentence about the recording at a place.
    pub fn about(&self, at: &Path) -> String {
        let file = at.display();
        match self {
            Self::Waiting(other) => {
                format!("{file}: waiting for another process{other}, which adds to it")
            }
            Self::Removed { bytes } => format!(
                "{file}: {bytes} bytes that were being added when that was interrupted are removed"
            ),
            Self::StillRecorded { recorder, blocks } => format!(
                "{file} is still being recorded by another process{recorder}: what follows is about the run up to t={}",
                grouped(*blocks)
            ),
            Self::PathLacks { left_out, counts } => {
                let all = if *counts {
                    format!(
                        "; exact counts of all: afterimage profile {}",
                        shell_name(&file.to_string())
                    )
                } else {
                    String::new()
                };
                format!(
                    "the path in {file} lacks {left_out}: what follows counts only what is there, and numbers calls as in the whole run{all}"
                )
            }
            Self::PathBuilt {
                blocks,
                bytes,
                left_out,
            } => format!(
                "path of {blocks} executed blocks in {bytes} bytes{}",
                without(left_out)
            ),
            Self::PathEmpty { blocks } => format!(
                "nothing of it was kept: the run has {blocks} blocks, from t=1 to t={blocks}, and no mark or function was met"
            ),
            Self::WordsStay { why } => format!(
                "{file}: what the run wrote of its path stays in the recording, which is larger for that: {why}"
            ),
            Self::SnapshotsTaken {
                snapshots: 0,
                bytes,
            } => format!("the path of the run, in {}", size(*bytes)),
            Self::SnapshotsTaken { snapshots, bytes } => {
                let snapshots = counted(*snapshots as u64, "snapshot");
                format!("{snapshots} of the run, with its path, in {}", size(*bytes))
            }
            Self::CountsNotKept { why } => format!("the counts are not kept in {file}: {why}"),
            Self::ValuesTake { seconds, bytes } => format!(
                "{file}: building the values takes about {} more, and adds about {} to the recording; Ctrl-C keeps what is built so far",
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
                    Some((first, last)) => format!(" from t={first} to t={last}"),
                };
                format!(
                    "values of {statements} executed statements{part} in {bytes} bytes ({:.4} a statement){}",
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
