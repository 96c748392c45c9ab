//! Defines the source of segments.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use afterimage_ids::{FuncId, NodeId};

use crate::{Root, Segment};

/// The data about a segment that is available without loading the segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of blocks executed before the segment.
    pub before: u64,
    /// The number of blocks executed in the segment.
    pub length: u64,
    /// The number of activations open at the segment's beginning.
    pub open: u32,
    /// The number of these activations that are still open at the segment's end.
    pub kept: u32,
    /// The number of activations that begin in the segment and are open at its end.
    pub begun: u32,
    /// The number of executions of each node that occurs, ascending by node.
    pub node_counts: Vec<(NodeId, u64)>,
    /// The number of activations of each function that begin in the segment, ascending by function.
    /// Functions without such activations are omitted.
    pub call_counts: Vec<(FuncId, u64)>,
}

impl Segment {
    /// Returns the summary of the segment. Time: linear in the length of the root and of the
    /// counts.
    pub fn summary(&self) -> Summary {
        let items = |wanted: fn(&Root) -> bool| {
            let count = self.root.iter().filter(|item| wanted(item)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let open = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        Summary {
            before: self.before,
            length: self.length,
            open,
            kept: open.saturating_sub(items(|item| matches!(item, Root::Leave))),
            begun: items(|item| matches!(item, Root::Enter(_))),
            node_counts: self.node_counts.clone(),
            call_counts: self.call_counts.clone(),
        }
    }
}

/// Segments that can be loaded one by one, for example from a file.
pub trait Segments {
    /// The error of loading a segment.
    type Error: Error + 'static;

    /// Returns the summaries of all segments, in order. Every call must return the same summaries.
    fn summaries(&self) -> &[Summary];

    /// Loads a segment. The segment need not be sound.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be loaded.
    fn load(&self, segment: usize) -> Result<Arc<Segment>, Self::Error>;
}

impl<S: Segments + ?Sized> Segments for &S {
    type Error = S::Error;

    fn summaries(&self) -> &[Summary] {
        (**self).summaries()
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Self::Error> {
        (**self).load(segment)
    }
}

/// Segments that are in memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    segments: Vec<Arc<Segment>>,
    summaries: Vec<Summary>,
}

impl FromIterator<Segment> for InMemory {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        let segments: Vec<_> = segments.into_iter().map(Arc::new).collect();
        Self {
            summaries: segments.iter().map(|segment| segment.summary()).collect(),
            segments,
        }
    }
}

impl Segments for InMemory {
    type Error = Infallible;

    fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Infallible> {
        Ok(Arc::clone(&self.segments[segment]))
    }
}
