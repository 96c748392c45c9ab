//! Finds the activations that are open at a place, and their ends.

use afterimage_ids::FuncId;

use super::occurrence::{Frame, SymbolOccurrence};
use crate::measures::Measured;
use crate::{PathError, Root, Segments, WholePath};

/// An activation that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The activation's function.
    pub function: FuncId,
    /// The time of the activation's first block, which is the number of blocks executed before it,
    /// plus 1.
    pub entered: u64,
}

impl SymbolOccurrence {
    /// Returns the innermost activation's function.
    pub(super) fn function(&self) -> Option<FuncId> {
        let inner = self.frames.iter().rev().find_map(Frame::call);
        inner.or_else(|| self.measured.functions[self.item])
    }

    /// Returns the open activations, outermost first. Time: linear in their number, in the length
    /// of the segment's root and in the number of earlier segments.
    pub(super) fn stack<S: Segments>(
        &self,
        path: &WholePath<S>,
    ) -> Result<Vec<Activation>, PathError<S::Error>> {
        let mut inner = self.measured.begun(self.item);
        let kept = self.measured.depths[self.item] as usize - inner.len();
        let before = self.measured.segment.before;
        for frame in &self.frames {
            inner.extend(frame.call().map(|function| Activation {
                function,
                entered: before + frame.base + 1,
            }));
        }
        let mut stack = earlier(path, self.segment, kept)?;
        stack.append(&mut inner);
        Ok(stack)
    }

    /// Returns the innermost open activation. Time: linear in the items of the segment's root since
    /// the activation began. If it began in an earlier segment, this takes as long as
    /// [`stack`](Self::stack).
    pub(super) fn innermost<S: Segments>(
        &self,
        path: &WholePath<S>,
    ) -> Result<Option<Activation>, PathError<S::Error>> {
        let before = self.measured.segment.before;
        let called = |frame: &Frame| {
            let function = frame.call()?;
            let entered = before + frame.base + 1;
            Some(Activation { function, entered })
        };
        if let Some(found) = self.frames.iter().rev().find_map(called) {
            return Ok(Some(found));
        }
        // Activations that the root enters stay open until the segment's end.
        let root = self.measured.segment.root[..self.item].iter();
        let mut begun = root.zip(&self.measured.root_starts).rev();
        let entered = begun.find_map(|(root, start)| match *root {
            Root::Enter(function) => Some(Activation {
                function,
                entered: before + start + 1,
            }),
            _ => None,
        });
        match entered {
            Some(found) => Ok(Some(found)),
            None => {
                let open = self.measured.depths[self.item] as usize;
                Ok(earlier(path, self.segment, open)?.pop())
            }
        }
    }

    /// Returns the number of blocks executed until the innermost activation ends. Returns `None` if
    /// the activation does not end, or no activation is open.
    pub(super) fn activation_end<S: Segments>(
        &self,
        path: &WholePath<S>,
    ) -> Result<Option<u64>, PathError<S::Error>> {
        if let Some(frame) = self
            .frames
            .iter()
            .rev()
            .find(|frame| frame.call().is_some())
        {
            let end = frame.base + frame.length;
            return Ok(Some(self.measured.segment.before + end));
        }
        let depth = self.measured.depths[self.item];
        let leave = leave_of(path, self.segment, self.item, depth)?;
        Ok(leave.map(|place| place.measured.segment.before + place.start))
    }
}

/// Returns the item that ends the innermost of `depth` open activations. The search begins at an
/// item of a segment's root at which these activations are open. Returns `None` if the activation
/// does not end.
pub(super) fn leave_of<S: Segments>(
    path: &WholePath<S>,
    segment: usize,
    item: usize,
    depth: u32,
) -> Result<Option<SymbolOccurrence>, PathError<S::Error>> {
    if depth == 0 {
        return Ok(None);
    }
    let summaries = path.segments().summaries();
    let mut from = item;
    // Activations that begin and end in the same segment are rules. Only activations that are open
    // at a segment's beginning can end in its root.
    for (segment, summary) in summaries.iter().enumerate().skip(segment) {
        if summary.kept < depth && depth <= summary.open {
            let measured = path.open(segment)?;
            let mut depths = measured.depths[from..].iter();
            if let Some(after) = depths.position(|&open| open < depth) {
                let mut place = SymbolOccurrence::first(measured, segment);
                place.go_to_item(from + after - 1);
                return Ok(Some(place));
            }
        }
        from = 0;
    }
    Ok(None)
}

impl Measured {
    /// Returns the activations that are open before an item of the root and began in the segment.
    pub(crate) fn begun(&self, item: usize) -> Vec<Activation> {
        let mut begun = Vec::new();
        for (root, start) in self.segment.root[..item].iter().zip(&self.root_starts) {
            if let Root::Enter(function) = *root {
                begun.push(Activation {
                    function,
                    entered: self.segment.before + start + 1,
                });
            }
        }
        begun
    }
}

/// Returns the outermost `depth` activations that are open at a segment's beginning.
fn earlier<S: Segments>(
    path: &WholePath<S>,
    segment: usize,
    mut depth: usize,
) -> Result<Vec<Activation>, PathError<S::Error>> {
    let summaries = path.segments().summaries();
    // Collect the activations innermost first.
    let mut stack = Vec::with_capacity(depth);
    for segment in (0..segment).rev() {
        let kept = summaries[segment].kept as usize;
        if kept < depth {
            let begun = path.begun(segment)?;
            stack.extend(begun[..depth - kept].iter().rev());
            depth = kept;
        }
    }
    stack.reverse();
    Ok(stack)
}
