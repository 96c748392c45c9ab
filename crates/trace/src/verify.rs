//! Reading all of a file and checking its invariants, one rule each.
//!
//! Opening and reading check what their own answer rests on. Here every byte of the state is
//! looked at, and sections are checked against each other. What is not claimed: that the log is that of the
//! module (re-execution shows it), or that counts satisfy the flow equations (they need the graph).

mod bytes;
mod content;

use std::fmt;

use crate::{Result, TraceError, TraceFile};

/// Of each rule no more findings than this are listed.
const MAX_FINDINGS: usize = 10;

/// An invariant of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Nothing follows the last complete state but what an addition left that was interrupted.
    Tail,
    /// From the header to the last footer, chunks, indexes and footers lie end to end, every
    /// chunk is in the index, and the footers number the states from 1.
    Layout,
    /// Every chunk's header equals its copy in the index, its checksum holds and it decompresses to
    /// its declared length.
    Chunk,
    /// The last chunk of every section is there.
    Complete,
    /// There is at most one section of each kind of which a recording has only one.
    Single,
    /// A committed recording has the sections META, MODULE and LOG; LOG only if META does not tell that what the program was given was removed.
    Required,
    /// META, LOG, END, COUNTS and SOURCES mean something.
    Decode,
    /// The SHA-256 of MODULE is the one in META.
    ModuleDigest,
    /// Every return from the guest has a call into it, and a host call that did not return is the last event.
    Nesting,
    /// Every call of an import has arguments of the same types, and so have its results.
    Signatures,
    /// END tells how many events LOG holds, and how many of them are calls of each import.
    EventCounts,
    /// END's ending agrees with LOG's last events, and only a run that ended early has frames.
    Ending,
    /// In COUNTS, open activations are listed by ascending block, none is zero, and they are as many
    /// as END has frames that were entered.
    Open,
}

/// A place where an invariant does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The invariant.
    pub rule: Rule,
    /// What is wrong, and where.
    pub text: String,
}

/// What reading all of a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where invariants do not hold: at most ten places for each.
    pub findings: Vec<Finding>,
    /// Bytes read.
    pub bytes: u64,
    /// Chunks verified, those of indexes not counted.
    pub chunks: u64,
    /// Sections, unknown kinds included.
    pub sections: u64,
    /// Complete states in the file: how often it was committed.
    pub states: u64,
    /// Events in the log.
    pub events: u64,
    /// Whether the recording tells how the run ended.
    pub ended: bool,
}

impl Report {
    /// Whether every invariant holds.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, rule: Rule, text: impl Into<String>) {
        if self
            .findings
            .iter()
            .filter(|finding| finding.rule == rule)
            .count()
            < MAX_FINDINGS
        {
            self.findings.push(Finding {
                rule,
                text: text.into(),
            });
        }
    }

    /// The value, or `None` and a finding under the rule that the error belongs to.
    fn check<T>(&mut self, result: Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let rule = match error {
            // Found by the rules about sections and chunks.
            TraceError::Missing(_)
            | TraceError::WithoutInputs
            | TraceError::Cut(_)
            | TraceError::Duplicate(_)
            | TraceError::Damaged { .. } => return None,
            _ => Rule::Decode,
        };
        self.find(rule, error.to_string());
        None
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}

impl TraceFile {
    /// Reads the whole file and checks every [`Rule`]. Takes time proportional to the decoded length,
    /// memory for one section that is not the log.
    pub fn verify(&self) -> Report {
        let mut report = Report::default();
        bytes::verify(self, &mut report);
        content::verify(self, &mut report);
        report
    }
}
