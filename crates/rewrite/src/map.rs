//! Maps offsets in the rewritten module back to the original.

use afterimage_ids::{BlockId, FuncId, InstrOffset, OrigOffset};

/// The place in the original program that corresponds to an offset of the rewritten module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginalPlace {
    /// A byte that was copied: the operator there is the original's.
    Operator(OrigOffset),
    /// The replacement of an operator that would wait at an address: it traps, because the memory
    /// is not shared.
    Wait(OrigOffset),
    /// The probe that polls the stop clock for this block: control has entered the block and
    /// executed nothing in it.
    Poll(BlockId),
    /// Inside a function, before its first probe: the place of a stack overflow. No counter has
    /// counted this activation.
    Prologue,
}

/// A stretch of bytes that was copied unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Offset of the first byte in the rewritten body.
    pub new: u32,
    /// Offset of the first byte in the original module.
    pub orig: u32,
    /// Its length in bytes.
    pub len: u32,
}

/// The copied stretches and stopping probes of one body, offsets relative to the body's start.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyMap {
    pub runs: Vec<Run>,
    /// The places where added code may trap, and their meaning. Ascending.
    pub stops: Vec<(u32, OriginalPlace)>,
    /// Added branches that are hardly ever taken, so that the engine moves their targets out of
    /// line. Ascending.
    pub unlikely: Vec<u32>,
}

/// The map of a whole rewritten module. Lookup is O(log n).
#[derive(Clone, Debug, Default)]
pub struct OffsetMap {
    /// The first defined function; then, for each defined function, the bounds of its body in the
    /// rewritten module, and its map.
    pub(crate) first: u32,
    pub(crate) bodies: Vec<(u32, u32, BodyMap)>,
}

impl OffsetMap {
    /// Returns the function and place that correspond to an offset of the rewritten module, or
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
