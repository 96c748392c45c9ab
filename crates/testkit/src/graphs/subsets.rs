//! Finds optimal placements by exhaustive search.

/// Returns the accepted subset of `0..weights.len()` with the least total weight, by trying all 2^n
/// subsets. Returns `None` if no subset is accepted.
pub fn cheapest_subset(
    weights: &[f64],
    mut accepts: impl FnMut(&[usize]) -> bool,
) -> Option<(f64, Vec<usize>)> {
    let mut best: Option<(f64, Vec<usize>)> = None;
    for bits in 0..1u32 << weights.len() {
        let subset: Vec<usize> = (0..weights.len()).filter(|i| bits >> i & 1 == 1).collect();
        let cost: f64 = subset.iter().map(|&i| weights[i]).sum();
        if best.as_ref().is_none_or(|(least, _)| cost < *least) && accepts(&subset) {
            best = Some((cost, subset));
        }
    }
    best
}
