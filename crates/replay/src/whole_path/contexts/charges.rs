//! Charges the cost of blocks to the caller of their function. This gives the cost of a line of the
//! user's own code, including the library code that it calls.
//!
//! The input is the charge for each block, and the payer for its calls. The output is the sum for
//! each payer. Every execution of a block is charged once. Like the contexts, the sums are taken
//! over distinct activations, so the run is not expanded.

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::{PathError, Segments, WholePath};

use super::clip;
use super::inlining::{ChainId, Inlining};
use crate::whole_path::Window;

/// A payer, as a number chosen by the caller of [`charged`].
pub type Payer = u32;

/// The cost of an execution of a block, and the payer for the calls that it makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The amount charged to the payer for the activation.
    pub amount: u32,
    /// The payer for the activations that the block calls, or `None` for the payer of its own
    /// activation. A payer's number is at most `u32::MAX - 2`.
    pub calls: Option<Payer>,
}

/// Returns the sum for each payer, where `None` pays for the host's calls. Blocks without a charge,
/// and blocks that were left out of the path, cost nothing. After a tail call, the caller of the
/// first function pays.
///
/// Takes time linear in the grammars and, for each payer, in the number of distinct activations for
/// which it pays.
///
/// # Errors
/// Returns an error if the path cannot be read.
pub fn charged<S: Segments>(
    path: &WholePath<S>,
    charges: &HashMap<(FuncId, BlockId), Charge>,
) -> Result<BTreeMap<Option<Payer>, u64>, PathError<S::Error>> {
    // Amounts and payers take the place of inlined functions. A block's chain is its amount, and
    // the chain of its call is the payer.
    let numbers = charges.iter().map(|(&block, charge)| {
        let payer = charge.calls.map_or(0, |payer| payer + 1);
        (block, (charge.amount, payer))
    });
    let numbers = Inlining::of_numbers(numbers.collect());
    let window = Window {
        first: 1,
        last: path.length(),
    };
    let (all, host) = clip::collect(path, window, &numbers, usize::MAX)?;
    let mut sums = BTreeMap::new();
    // Each open part has the payer for itself, and the payer for calls before its first block.
    let nobody = ChainId::ITSELF;
    let mut open = BTreeMap::from([((host, nobody, nobody), 1_u64)]);
    // Parts have smaller numbers than the wholes that contain them.
    while let Some(((id, payer, before), times)) = open.pop_last() {
        for item in all.items(id) {
            let chain = match item.chain {
                ChainId::INHERITED => before,
                chain => chain,
            };
            let more = item.times.saturating_mul(times);
            let key = match item.what.part() {
                None => {
                    let sum: &mut u64 = sums.entry(payer.number().checked_sub(1)).or_default();
                    let amount = u64::from(chain.number());
                    *sum = sum.saturating_add(more.saturating_mul(amount));
                    continue;
                }
                Some(part) if all.function(part).is_none() => (part, payer, chain),
                Some(part) if chain == nobody => (part, payer, nobody),
                Some(part) => (part, chain, nobody),
            };
            let sum: &mut u64 = open.entry(key).or_default();
            *sum = sum.saturating_add(more);
        }
    }
    Ok(sums)
}
