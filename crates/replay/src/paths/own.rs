//! Iterates over the nodes that one activation executes itself.

use afterimage_wpp::{Cursor, PathError, Segments, Visit, WholePath};

/// The executions of nodes of an activation, without those of its callees.
pub(super) struct OwnVisits<'a, S: Segments> {
    cursor: Cursor<'a, S>,
    depth: usize,
    /// The time of its last block; `None` if it does not end.
    end: Option<u64>,
    /// The execution that it begins with, until delivered.
    first: Option<Visit>,
}

impl<'a, S: Segments> OwnVisits<'a, S> {
    /// Begins with the execution that contains block T.
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

    /// The next execution, beginning with the first. O(1) amortised, plus a call of
    /// [`Cursor::skip_activation`] for each call.
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
