//! Stores the calls of one activation, in order, as runs.

use super::call_graph::CallId;
use super::varint;

/// Consecutive calls of one activation with equal subtrees, at positions that form an arithmetic
/// series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallRun {
    /// The callee, as a subtree of the dynamic call graph.
    pub call: CallId,
    /// The first call's position, which is the number of blocks that the caller itself had executed
    /// before the call.
    pub first: u64,
    /// The distance between consecutive positions, or 0 if there is only one call.
    pub step: u64,
    /// The number of calls, at least 1.
    pub count: u64,
}

impl CallRun {
    /// Returns the last call's position.
    pub fn last(&self) -> u64 {
        self.first + (self.count - 1) * self.step
    }
}

/// Collects calls into runs. Equal sequences give equal bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct RunBuilder {
    latest: Option<CallRun>,
    after: u64,
    bytes: Vec<u8>,
}

impl RunBuilder {
    /// Adds the next call, at the previous call's position or at a later position.
    pub(super) fn push(&mut self, call: CallId, position: u64) {
        if let Some(run) = &mut self.latest {
            let distance = position - run.last();
            if run.call == call && (run.count == 1 || run.step == distance) {
                run.step = distance;
                run.count += 1;
                return;
            }
        }
        self.flush();
        self.latest = Some(CallRun {
            call,
            first: position,
            step: 0,
            count: 1,
        });
    }

    /// Returns the runs as bytes that [`Runs`] reads.
    pub(super) fn finish(&mut self) -> &[u8] {
        self.flush();
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.latest = None;
        self.after = 0;
        self.bytes.clear();
        self.bytes.shrink_to(1 << 8);
    }

    /// Returns the size of the complete runs in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn flush(&mut self) {
        if let Some(run) = self.latest.take() {
            varint::put(&mut self.bytes, u64::from(run.call.0));
            varint::put(&mut self.bytes, run.first - self.after);
            varint::put(&mut self.bytes, run.count);
            if run.count > 1 {
                varint::put(&mut self.bytes, run.step);
            }
            self.after = run.last();
        }
    }
}

/// The runs of an activation, in order.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    rest: &'a [u8],
    after: u64,
}

impl<'a> Runs<'a> {
    /// Reads the output of a [`RunBuilder`].
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            after: 0,
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = CallRun;

    fn next(&mut self) -> Option<CallRun> {
        let call = CallId(varint::take(&mut self.rest)? as u32);
        let first = self.after + varint::take(&mut self.rest)?;
        let count = varint::take(&mut self.rest)?;
        let step = if count > 1 {
            varint::take(&mut self.rest)?
        } else {
            0
        };
        let run = CallRun {
            call,
            first,
            step,
            count,
        };
        self.after = run.last();
        Some(run)
    }
}
