//! Maps offsets in the rewritten module back to the original.

use afterimage_ids::{BlockId, FuncId, InstrOffset, OrigOffset};

/// The place in the original program that corresponds to an offset of the rewritten module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginalPlace {
    /// Copied code of the operator at this offset in the original module.
    Operator(OrigOffset),
    /// The replacement of an operator that would wait at an address. It traps, because the memory
    /// is not shared.
    Wait(OrigOffset),
    /// The probe that polls the stop clock for this block. The run has entered the block but has
    /// executed nothing in it.
    Poll(BlockId),
    /// A place inside a function, before its first probe. Stack overflows happen there. No counter
    /// has counted the activation yet.
    Prologue,
}

/// A stretch of bytes that was copied unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The offset of the first byte in the rewritten body.
    pub new: u32,
    /// The offset of the first byte in the original module.
    pub orig: u32,
    /// The number of copied bytes.
    pub len: u32,
}

/// The copied stretches and the stopping probes of one body. Offsets are relative to the body's
/// start.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyMap {
    pub runs: Vec<Run>,
    /// The places where added code may trap, with their meaning, ascending.
    pub stops: Vec<(u32, OriginalPlace)>,
    /// The added branches that are hardly ever taken, ascending. The engine moves their targets out
    /// of line.
    pub unlikely: Vec<u32>,
}

/// The map of a whole rewritten module. A look-up takes O(log n).
#[derive(Clone, Debug, Default)]
pub struct OffsetMap {
    /// The number of the first defined function. For each defined function, `bodies` has the bounds
    /// of its body in the rewritten module, and its map.
    pub(crate) first: u32,
    pub(crate) bodies: Vec<(u32, u32, BodyMap)>,
}

impl OffsetMap {
    /// Returns the function and place that correspond to an offset of the rewritten module. Returns
    /// `None` for code that the original lacks.
    pub fn lookup(&self, offset: InstrOffset) -> Option<(FuncId, OriginalPlace)> {
        let i = self
            .bodies
            .partition_point(|b| b.0 <= offset.0)
            .checked_sub(1)?;
        let (start, end, map) = &self.bodies[i];
        if offset.0 >= *end {
            return None;
        }
        let function = FuncId::from_u32(self.first + u32::try_from(i).ok()?);
        let at = offset.0 - start;
        if let Ok(p) = map.stops.binary_search_by_key(&at, |p| p.0) {
            return Some((function, map.stops[p].1));
        }
        let place = match map.runs.partition_point(|r| r.new <= at).checked_sub(1) {
            None => OriginalPlace::Prologue,
            Some(r) => {
                let run = map.runs[r];
                if at - run.new >= run.len {
                    return None;
                }
                OriginalPlace::Operator(OrigOffset(run.orig + (at - run.new)))
            }
        };
        Some((function, place))
    }
}
