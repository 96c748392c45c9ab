//! Finds periods in a block at low cost.

/// The maximum number of interleaved strides to try.
const MOST_INTERLEAVED: usize = 8;

/// The number of entries of the table of recent contexts.
const TABLE: usize = 2048;

/// Finds up to three pairs that are worth trying. A pair is an order and a lag.
pub(super) fn find(values: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    if values.len() < 12 {
        return found;
    }
    if let Some(period) = period(values) {
        found.push((1, period));
    }
    found.extend(interleaved(values).into_iter().map(|lag| (2, lag)));
    found
}

/// Returns the distance at which most triples of differences recur. A period of the values is also
/// a period of the differences, and a triple distinguishes a period from a repetition inside it.
fn period(values: &[u64]) -> Option<usize> {
    let mut last_seen = [0u16; TABLE];
    let mut votes = vec![0u16; values.len()];
    for at in 3..values.len() {
        let difference = |back: usize| values[at - back].wrapping_sub(values[at - back - 1]);
        let context = difference(0)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(difference(1))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(difference(2))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut last_seen[(context >> 53) as usize];
        if *slot > 0 {
            votes[at - usize::from(*slot)] += 1;
        }
        *slot = at as u16;
    }
    let (lag, &most) = votes
        .iter()
        .enumerate()
        .skip(2)
        .max_by_key(|&(lag, &votes)| (votes, std::cmp::Reverse(lag)))?;
    (usize::from(most) * 3 > values.len()).then_some(lag)
}

/// Returns the smallest number of interleaved sequences with mostly constant strides.
fn interleaved(values: &[u64]) -> Option<usize> {
    /// The number of places to examine before rejecting a candidate that fits fewer than one place
    /// in three.
    const GLANCE: usize = 48;
    let hits = |places: std::ops::Range<usize>, lag: usize| {
        let fits = places.filter(|&at| {
            values[at].wrapping_sub(values[at - lag])
                == values[at - lag].wrapping_sub(values[at - 2 * lag])
        });
        fits.count()
    };
    (2..=MOST_INTERLEAVED.min(values.len() / 4)).find(|&lag| {
        let tests = values.len() - 2 * lag;
        let glance = GLANCE.min(tests);
        hits(2 * lag..2 * lag + glance, lag) * 3 >= glance
            && hits(2 * lag..values.len(), lag) * 3 > tests * 2
    })
}
