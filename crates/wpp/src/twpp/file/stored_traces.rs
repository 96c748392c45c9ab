//! Holds one function's path traces as they are stored in a file.

use afterimage_ids::FuncId;

use super::error::{FileError, Part};
use crate::twpp::compact::{CompactPath, FunctionTraces};
use crate::twpp::dictionary::Dictionary;
use crate::twpp::timestamped::TimestampedTrace;

/// All path traces of a function in a file. This is the data that the paper extracts (Zhang and
/// Gupta 2001, Table 4).
///
/// The timestamps stay in the file, in the form that [`TimestampedTrace`] uses. A trace is checked
/// when it is requested, in one pass over its timestamps. [`Self::check`] checks all traces
/// together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTraces<'a> {
    pub(super) function: FuncId,
    pub(super) calls: u64,
    /// The bytes of the traces, unchecked.
    pub(super) traces: Vec<&'a [u8]>,
    pub(super) dictionaries: Vec<Dictionary>,
    pub(super) paths: Vec<CompactPath>,
}

impl<'a> StoredTraces<'a> {
    /// Returns the function.
    pub fn function(&self) -> FuncId {
        self.function
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the unique path traces.
    pub fn paths(&self) -> &[CompactPath] {
        &self.paths
    }

    /// Returns the timestamped sequence of dynamic basic blocks of a unique path trace, and the
    /// dictionary that expands them. Time: linear in the trace's bytes.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    ///
    /// # Panics
    /// Panics if there is no such path.
    pub fn parts(
        &self,
        path: usize,
    ) -> Result<(TimestampedTrace<&'a [u8]>, &Dictionary), FileError> {
        let path = &self.paths[path];
        let trace = TimestampedTrace::from_file(self.traces[path.trace as usize]);
        let trace = trace.map_err(|error| self.malformed(error.0))?;
        Ok((trace, &self.dictionaries[path.dictionary as usize]))
    }

    /// Returns all path traces, each checked as by [`parts`](Self::parts). Time: O(bytes).
    ///
    /// # Errors
    /// Returns an error if a trace is damaged, or all traces together execute more blocks than a
    /// run can.
    pub fn check(self) -> Result<FunctionTraces<&'a [u8]>, FileError> {
        let malformed = |what| FileError::Malformed(Part::Function(self.function), what);
        let traces = self.traces.into_iter().map(TimestampedTrace::from_file);
        let traces = traces.collect::<Result<_, _>>();
        let checked = FunctionTraces {
            function: self.function,
            traces: traces.map_err(|error| malformed(error.0))?,
            dictionaries: self.dictionaries,
            paths: self.paths,
        };
        checked.check_executed().map_err(malformed)?;
        Ok(checked)
    }

    fn malformed(&self, what: &'static str) -> FileError {
        FileError::Malformed(Part::Function(self.function), what)
    }
}
