//! Finds the variables in scope at a stop.

use std::ops::Range;

use afterimage_analyses::currency::{Alignment, Moments};
use afterimage_replay::state::Activation;
use anyhow::Result;

use super::pair::Pair;

/// Returns the names of the variables in scope in the unoptimised run, innermost first. They are
/// the variables at the first stop that has a counterpart. Returns `None` if no stop has one.
pub fn in_scope(
    pair: &Pair<'_, '_>,
    moments: &Moments,
    settled: &Alignment<'_>,
    stops: Range<u32>,
) -> Result<Option<Vec<String>>> {
    let side = &pair.a;
    let mut found = None;
    for stop in stops {
        // The unoptimised run may have ended before the counterpart.
        if let Ok(other) = pair.counterpart(settled, moments, stop)?
            && let Some(stop) = moments.a.stops.get(other as usize)
        {
            found = Some(stop);
            break;
        }
    }
    let Some(stop) = found else {
        return Ok(None);
    };
    let at = Activation::at(side.scene.values, &side.bodies, stop.time, Some(stop.op))?;
    let scopes = side.variables.function(stop.function)?;
    let all = side.variables.in_scope_of(&scopes, at.offset)?;
    let named = all
        .into_iter()
        .filter(|one| !one.name.is_empty() && !one.shadowed);
    Ok(Some(named.map(|one| one.name).collect()))
}
