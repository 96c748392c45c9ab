//! Adds up the counts of several runs of one program.
//!
//! A flow equation that holds for the parts also holds for their sum, so a
//! [`Profile`](crate::Profile) of the sum is checked like any other.

use std::collections::BTreeMap;

use afterimage_ids::{Counts, FunctionCounts};
use afterimage_program::{Function, Program};

use crate::ProfileError;

/// Adds the counts of another run of the same program. O(edges).
///
/// # Errors
/// Returns an error if the counts belong to other functions or edges, or a sum does not fit into 64
/// bits. `sum` is then unusable.
pub fn add_counts(
    program: &Program,
    sum: &mut Counts,
    counts: &Counts,
) -> Result<(), ProfileError> {
    let expected = program.functions.len();
    for counts in [&*sum, counts] {
        let got = counts.functions.len();
        if got != expected {
            return Err(ProfileError::Functions { expected, got });
        }
    }
    let pairs = sum.functions.iter_mut().zip(&counts.functions);
    for (function, (sum, counts)) in program.functions.iter().zip(pairs) {
        add_function(function, sum, counts)?;
    }
    Ok(())
}

fn add_function(
    function: &Function,
    sum: &mut FunctionCounts,
    counts: &FunctionCounts,
) -> Result<(), ProfileError> {
    let id = function.id;
    if sum.edges.len() != counts.edges.len() {
        return Err(ProfileError::Edges {
            function: id,
            expected: function.cfg.edges.len(),
            got: counts.edges.len(),
        });
    }
    let add = |sum: &mut u64, count: u64| {
        let added = sum.checked_add(count);
        *sum = added.ok_or(ProfileError::Overflow { function: id })?;
        Ok(())
    };
    add(&mut sum.entries, counts.entries)?;
    for (sum, &count) in sum.edges.iter_mut().zip(&counts.edges) {
        add(sum, count)?;
    }
    if !counts.open.is_empty() {
        let mut open = BTreeMap::from_iter(sum.open.iter().copied());
        for &(block, count) in &counts.open {
            add(open.entry(block).or_default(), count)?;
        }
        sum.open = open.into_iter().collect();
    }
    Ok(())
}
