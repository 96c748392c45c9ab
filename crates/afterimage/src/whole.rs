//! Computes the cost of the user's lines, including the library code that they call. The counts
//! supply the cost of inlined code. The path shows which lines called library functions.

use std::collections::HashMap;

use afterimage_ids::Counts;
use afterimage_profile::{CodeFilter, Folded, PaidBy, Profile, WholeLines};
use afterimage_replay::whole_path::{Charge, Payer, charged};
use anyhow::{Context, Result, bail};

use crate::named::with_names;
use crate::session::Session;

/// Finds the whole cost of the lines that a filter shows. Builds the path if it does not exist yet.
/// Returns `None` if the filter shows all code or none.
///
/// # Errors
/// Returns an error if the path has gaps or cannot be built, or it contradicts the counts.
pub(crate) fn whole_lines(
    session: &Session,
    counts: &Counts,
    code: &CodeFilter,
) -> Result<Option<WholeLines>> {
    with_names(session, |program| {
        let folded = Folded::new(program.source, code);
        if *code == CodeFilter::All || !folded.shows_any() {
            return Ok(None);
        }
        let (names, source) = (program.names, program.source);
        let (program, stops) = (session.program(), session.stops()?);
        let profile = Profile::new(program, session.bytes(), counts, stops, names, source)?;
        let costs = profile.costs(&folded)?;
        let unpaid = profile.unpaid(&folded, &costs, stops)?;
        let path = session.ensure_whole_path()?;
        // The payers by number. Number 0 represents nobody.
        let mut payers = vec![PaidBy::Nobody];
        let mut known = HashMap::from([(PaidBy::Nobody, 0)]);
        let mut number = |by: PaidBy| -> Payer {
            *known.entry(by).or_insert_with(|| {
                payers.push(by);
                payers.len() as Payer - 1
            })
        };
        let charges = costs.blocks.iter().map(|(&block, cost)| {
            let charge = Charge {
                amount: cost.instructions,
                calls: cost.calls.map(&mut number),
            };
            (block, charge)
        });
        let charges = charges.collect();
        let mut sums: HashMap<PaidBy, u64> = HashMap::new();
        for (payer, sum) in charged(path, &charges)? {
            let by = payer.map_or(PaidBy::Nobody, |payer| payers[payer as usize]);
            *sums.entry(by).or_default() += sum;
        }
        let wrong = "the path of the run and its counts contradict each other";
        if let Some((by, missed)) = unpaid {
            let sum = sums.entry(by).or_default();
            *sum = sum.checked_sub(missed).context(wrong)?;
        }
        let mut whole = costs.whole;
        for (by, sum) in sums {
            whole.pay(by, sum).context(wrong)?;
        }
        if whole.instructions() != profile.totals().instructions {
            bail!(wrong);
        }
        Ok(Some(whole))
    })
}
