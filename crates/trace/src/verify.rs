//! Reads a whole file and checks its invariants, with one rule for each.
//!
//! Opening and reading check only what their own results depend on. Here, every byte of the state
//! is examined, and sections are checked against each other. The code here does not check that the
//! log belongs to the WebAssembly module, because only re-execution shows that. Nor does it check
//! that counts satisfy the flow equations, because that needs the control-flow graph.

mod bytes;
mod content;

use std::fmt;

use crate::{Result, TraceError, TraceFile};

/// The maximum number of findings listed for each rule.
const MAX_FINDINGS: usize = 10;

/// An invariant of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Only the remains of an interrupted addition follow the last complete state.
    Tail,
    /// Chunks, indexes and footers lie end to end from the header to the last footer. Every chunk
    /// is in the index. The footers number the states from 1.
    Layout,
    /// Every chunk's header equals its copy in the index, its checksum holds and it decompresses to
    /// its declared length.
    Chunk,
    /// The last chunk of every section is present.
    Complete,
    /// No section kind occurs twice if a recording may contain only one section of that kind.
    Single,
    /// A committed recording has the sections META, MODULE and LOG. LOG may be missing if the
    /// recording was cut off, or if META says that the program's inputs were removed.
    Required,
    /// META, LOG, END, COUNTS and SOURCES can be decoded.
    Decode,
    /// The SHA-256 of MODULE equals the digest in META.
    ModuleDigest,
    /// Every return from the guest has a matching call into it, and a host call that did not return
    /// is the last event.
    Nesting,
    /// All calls to an import agree in the types of their arguments and of their results.
    Signatures,
    /// END states the number of events in LOG, and the number of calls to each import.
    EventCounts,
    /// END's ending agrees with LOG's last events, and only a run that ended early has frames.
    Ending,
    /// In COUNTS, open activations are listed by ascending block and none is zero. Their number
    /// equals the number of END's entered frames.
    Open,
}

/// A place where an invariant does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The invariant that does not hold.
    pub rule: Rule,
    /// The fault and its place.
    pub text: String,
}

/// The result of verifying a whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The violated invariants, with at most ten places for each.
    pub findings: Vec<Finding>,
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of chunks verified, excluding the chunks of indexes.
    pub chunks: u64,
    /// The number of sections, including unknown kinds.
    pub sections: u64,
    /// The number of complete states in the file, which is the number of commits.
    pub states: u64,
    /// The number of events in the log.
    pub events: u64,
    /// Whether the recording says how the run ended.
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

    /// Returns the value. For an error, returns `None` and adds a finding under the rule to which
    /// the error belongs.
    fn check<T>(&mut self, result: Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let rule = match error {
            // The rules about sections and chunks report these.
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
    /// Reads the whole file and checks every [`Rule`]. Takes time proportional to the decoded
    /// length, and memory for one section other than the log.
    pub fn verify(&self) -> Report {
        let mut report = Report::default();
        bytes::verify(self, &mut report);
        content::verify(self, &mut report);
        report
    }
}
