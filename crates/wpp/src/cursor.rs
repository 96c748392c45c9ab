//! Moves through a path.

mod calls;
mod occurrence;
mod siblings;
mod stack;

use afterimage_ids::{FuncId, NodeId};

pub use self::calls::{CallEvent, Calls};
use self::occurrence::SymbolOccurrence;
pub use self::siblings::NodeFilter;
pub use self::stack::Activation;
use crate::{PathError, Segments, WholePath};

/// An execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The node that is executed.
    pub node: NodeId,
    /// The time of the node's first block. Times count executed blocks from 1.
    pub start: u64,
    /// The number of blocks that the node executes.
    pub length: u64,
}

impl Visit {
    /// Returns the time of the node's last block.
    pub fn last(&self) -> u64 {
        self.start + self.length - 1
    }
}

/// A position in a path. It is at an execution of a node, before the first execution, or after the
/// last.
///
/// A step takes O(1), amortised over a walk in one direction. A search takes O(log n) for each rule
/// on its way down. Nearby positions are found without returning to the top.
pub struct Cursor<'a, S: Segments> {
    path: &'a WholePath<S>,
    at: At,
}

#[derive(Clone)]
enum At {
    Before,
    On(SymbolOccurrence),
    After,
}

impl<S: Segments> WholePath<S> {
    /// Returns a cursor before the first node.
    pub fn cursor(&self) -> Cursor<'_, S> {
        Cursor {
            path: self,
            at: At::Before,
        }
    }
}

impl<S: Segments> Clone for Cursor<'_, S> {
    fn clone(&self) -> Self {
        Self {
            path: self.path,
            at: self.at.clone(),
        }
    }
}

impl<S: Segments> Cursor<'_, S> {
    /// Moves to the execution that contains block `time`. If `time` is 0, moves before the first
    /// execution. If it exceeds the path's length, moves after the last. Returns `None` in both
    /// cases.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read. The cursor then stays in place.
    pub fn seek(&mut self, time: u64) -> Result<Option<Visit>, PathError<S::Error>> {
        if time == 0 || time > self.path.length() {
            self.at = if time == 0 { At::Before } else { At::After };
            return Ok(None);
        }
        match &mut self.at {
            At::On(place) => {
                if place.contains(time) {
                    place.seek(time);
                } else {
                    let segment = self.path.segment_of(time);
                    let measured = self.path.open(segment)?;
                    let offset = time - measured.segment.before - 1;
                    place.locate_in(measured, segment, offset);
                }
            }
            _ => self.at = At::On(SymbolOccurrence::at(self.path, time)?),
        }
        Ok(self.visit())
    }

    /// Returns the current execution, or `None` if the cursor is before the first execution or
    /// after the last.
    #[inline]
    pub fn visit(&self) -> Option<Visit> {
        match &self.at {
            At::On(place) => place.visit(),
            _ => None,
        }
    }

    /// Moves to the next execution.
    ///
    /// # Errors
    /// Returns an error if the next segment cannot be read. The cursor then stays in place.
    #[allow(
        clippy::should_implement_trait,
        reason = "it can fail and turn round, which iterators cannot"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        match &mut self.at {
            At::Before => self.seek(1),
            At::After => Ok(None),
            At::On(place) => {
                if place.step() {
                    return Ok(place.visit());
                }
                let end = place.end();
                let next = self.seek(end);
                if let (Err(_), At::On(place)) = (&next, &mut self.at) {
                    place.seek(end - 1);
                }
                next
            }
        }
    }

    /// Moves to the previous execution.
    ///
    /// # Errors
    /// Returns an error if the previous segment cannot be read. The cursor then stays in place.
    #[inline]
    pub fn previous(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        match &mut self.at {
            At::Before => Ok(None),
            At::After => self.seek(self.path.length()),
            At::On(place) => {
                if place.start > 0 {
                    place.step_back();
                    Ok(self.visit())
                } else {
                    let time = place.time();
                    self.seek(time - 1)
                }
            }
        }
    }
}

impl<S: Segments> Cursor<'_, S> {
    /// Returns the number of open activations. Time: O(1).
    pub fn depth(&self) -> usize {
        match &self.at {
            At::On(place) => place.depth(),
            _ => 0,
        }
    }

    /// Returns the innermost activation's function. Examines each rule on the way down to the
    /// symbol.
    pub fn function(&self) -> Option<FuncId> {
        match &self.at {
            At::On(place) => place.function(),
            _ => None,
        }
    }

    /// Returns the open activations, outermost first. Time: linear in their number, in the length
    /// of the segment's root and in the number of earlier segments. Opens each segment in which one
    /// of them began, but only once.
    ///
    /// # Errors
    /// Returns an error if one of these segments cannot be read.
    pub fn stack(&self) -> Result<Vec<Activation>, PathError<S::Error>> {
        match &self.at {
            At::On(place) => place.stack(self.path),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the innermost open activation, or `None` if there is none. This is usually far
    /// faster than [`Cursor::stack`].
    ///
    /// # Errors
    /// Returns an error if the segment where it began cannot be read.
    pub fn innermost(&self) -> Result<Option<Activation>, PathError<S::Error>> {
        match &self.at {
            At::On(place) => place.innermost(self.path),
            _ => Ok(None),
        }
    }

    /// Returns the time of the last block before the innermost activation ends, or `None` if it
    /// does not end or no activation is open. This is as fast as [`Cursor::skip_activation`].
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn activation_end(&self) -> Result<Option<u64>, PathError<S::Error>> {
        match &self.at {
            At::On(place) => place.activation_end(self.path),
            _ => Ok(None),
        }
    }

    /// Moves to the first execution after the end of the innermost activation. If it does not end,
    /// or no activation is open, moves after the last execution. If the cursor is at no execution,
    /// moves to the next. Examines each rule on the way up to the activation. If the activation is
    /// in no rule, this is linear in the length of a segment's root and in the number of later
    /// segments.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read. The cursor then stays in place.
    pub fn skip_activation(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        if !matches!(self.at, At::On(_)) {
            return self.next();
        }
        match self.activation_end()? {
            Some(end) => self.seek(end + 1),
            None => self.seek(self.path.length().saturating_add(1)),
        }
    }
}

impl SymbolOccurrence {
    /// Returns the node that contains block `time`, which must be from 1 to the path's length.
    fn at<S: Segments>(path: &WholePath<S>, time: u64) -> Result<Self, PathError<S::Error>> {
        let segment = path.segment_of(time);
        let mut place = Self::first(path.open(segment)?, segment);
        place.seek(time);
        Ok(place)
    }

    /// Whether block `time` is in the segment of this place.
    fn contains(&self, time: u64) -> bool {
        let segment = &self.measured.segment;
        segment.before < time && time - segment.before <= segment.length
    }

    /// Moves to the node that contains block `time`, which must be in the segment.
    fn seek(&mut self, time: u64) {
        self.locate(time - self.measured.segment.before - 1);
    }

    /// Returns the execution of the node, if the symbol is a node.
    #[inline]
    fn visit(&self) -> Option<Visit> {
        Some(Visit {
            node: self.word.as_node()?,
            start: self.time(),
            length: self.width,
        })
    }

    /// Returns the time of the symbol's first block.
    #[inline]
    fn time(&self) -> u64 {
        self.measured.segment.before + self.start + 1
    }

    /// Returns the time of the first block after the segment.
    #[inline]
    fn end(&self) -> u64 {
        self.measured.segment.before + self.measured.segment.length + 1
    }
}
