//! Counts the instructions of functions that the compiler inlined.
//!
//! An inlined call has no entry to count, because the optimiser merges, moves and duplicates its
//! instructions. However, each instruction names the functions that it comes from, so the number of
//! executed instructions is exact.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::FuncId;
use afterimage_program::{Location, demangle};

use crate::{Profile, ProfileError, Scope};

/// The counts of a function that was inlined. Calls to the function that were not inlined are not
/// included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedRow {
    /// The function's name, demangled.
    pub name: String,
    /// The place of the function's declaration or, if that is unknown, a place in its code.
    pub position: Option<Location>,
    /// The number of executed instructions, including functions that were inlined into it, and
    /// excluding callees.
    pub instructions: u64,
    /// The functions of the module that contain these instructions, ascending.
    pub into: Vec<FuncId>,
}

/// The counts of an inlined function while they are added up.
#[derive(Default)]
struct Sum {
    place: Option<Location>,
    instructions: u64,
    into: BTreeSet<FuncId>,
}

impl Profile<'_> {
    /// Returns one row per inlined function whose code was executed, ascending by declaration and
    /// then by name.
    ///
    /// O(operators of executed functions · depth · log).
    ///
    /// # Errors
    /// Returns the same errors as [`Profile::operators`].
    pub fn inlined_rows(&self, scope: &Scope) -> Result<Vec<InlinedRow>, ProfileError> {
        let mut sums: BTreeMap<(Option<Location>, String), Sum> = BTreeMap::new();
        let mut operators = Vec::new();
        for (function, _, counts) in self.functions() {
            if counts.executed_blocks == 0 || !scope.contains(function.id) {
                continue;
            }
            self.operators(function, counts, &mut operators)?;
            let executed = operators.iter().filter(|it| it.instruction && it.count > 0);
            for operator in executed {
                let mut frames = self.source.inlined_frames(operator.offset);
                // The outermost frame is the function that the module defines.
                frames.pop();
                // An instruction counts once for a function that was inlined into itself.
                let mut counted = BTreeSet::new();
                for frame in frames {
                    let Some(name) = frame.function else { continue };
                    let key = (frame.declared, name);
                    if !counted.insert(key.clone()) {
                        continue;
                    }
                    let sum = sums.entry(key).or_default();
                    sum.place = sum.place.or(frame.location);
                    sum.into.insert(function.id);
                    let more = sum.instructions.checked_add(operator.count);
                    sum.instructions = more.ok_or(ProfileError::Overflow {
                        function: function.id,
                    })?;
                }
            }
        }
        let rows = sums.into_iter().map(|((declared, raw), sum)| InlinedRow {
            name: demangle(&raw).unwrap_or(raw),
            position: declared.or(sum.place),
            instructions: sum.instructions,
            into: sum.into.into_iter().collect(),
        });
        Ok(rows.collect())
    }
}
