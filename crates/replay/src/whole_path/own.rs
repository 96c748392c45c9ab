//! Iterates over the executions of nodes in one activation, without its callees.

use afterimage_wpp::{Cursor, PathError, Segments, Visit, WholePath};

/// The executions of nodes in one activation, without its callees.
pub(super) struct OwnVisits<'a, S: Segments> {
    cursor: Cursor<'a, S>,
    depth: usize,
    /// The time of the activation's last block, or `None` if the activation does not end.
    end: Option<u64>,
    /// The first execution, until it is returned.
    first: Option<Visit>,
}

impl<'a, S: Segments> OwnVisits<'a, S> {
    /// Creates an iterator that begins with the execution that contains the block at `time`.
    pub(super) fn from(path: &'a WholePath<S>, time: u64) -> Result<Self, PathError<S::Error>> {
        let mut cursor = path.cursor();
        let first = cursor.seek(time)?;
        Ok(Self {
            depth: cursor.depth(),
            end: cursor.activation_end()?,
            cursor,
            first,
        })
    }

    /// Returns the next execution, beginning with the first. O(1) amortised, plus one
    /// [`Cursor::skip_activation`] for each callee.
    pub(super) fn next(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let mut next = self.cursor.next()?;
        while next.is_some() && self.cursor.depth() > self.depth {
            next = self.cursor.skip_activation()?;
        }
        Ok(next.filter(|next| self.end.is_none_or(|end| next.start <= end)))
    }
}
