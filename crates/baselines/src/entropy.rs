//! Computes entropies from counts. An entropy is the size that an ideal entropy coder with a
//! perfect static model would reach (Shannon 1948). The size of the model itself is not counted,
//! which favours the baseline.

use rustc_hash::FxHashMap;

/// Returns the order-0 entropy, in bits, of a whole sequence whose distinct outcomes have these
/// `counts`: Σ nᵢ log₂(N/nᵢ). Divide by N for bits per outcome.
pub fn entropy_bits(counts: impl IntoIterator<Item = u64, IntoIter: Clone>) -> f64 {
    let counts = counts.into_iter();
    let total: f64 = counts.clone().map(|n| n as f64).sum();
    counts.map(|n| information(n, total)).sum()
}

/// Returns the number of bits needed when each static branch is coded separately, at the order-0
/// entropy of its outcomes. Each item contains the counts of one branch, one for each direction.
pub fn branch_entropy_bits<C: AsRef<[u64]>>(branches: impl IntoIterator<Item = C>) -> f64 {
    branches
        .into_iter()
        .map(|counts| entropy_bits(counts.as_ref().iter().copied()))
        .sum()
}

/// Returns n log₂(total/n), which is the number of bits for `n` outcomes that each have probability
/// n/total. No terms of opposite sign cancel, so a long sequence of low entropy loses no precision.
fn information(n: u64, total: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let n = n as f64;
    n * (total / n).log2()
}

/// Computes the order-0 and order-1 entropy of a stream of symbols. Memory is proportional to the
/// number of distinct pairs.
#[derive(Clone, Debug, Default)]
pub struct StreamEntropy {
    symbols: FxHashMap<u32, u64>,
    /// The counts by context and symbol. The context is the previous symbol.
    pairs: FxHashMap<(u32, u32), u64>,
    last: Option<u32>,
    len: u64,
}

impl StreamEntropy {
    /// Creates an empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next symbol.
    #[inline]
    pub fn push(&mut self, symbol: u32) {
        *self.symbols.entry(symbol).or_default() += 1;
        if let Some(context) = self.last.replace(symbol) {
            *self.pairs.entry((context, symbol)).or_default() += 1;
        }
        self.len += 1;
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of distinct symbols.
    pub fn alphabet(&self) -> usize {
        self.symbols.len()
    }

    /// Returns the number of distinct pairs of neighbouring symbols.
    pub fn distinct_pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the order-0 entropy of the whole stream, in bits.
    pub fn order0_bits(&self) -> f64 {
        entropy_bits(self.symbols.values().copied())
    }

    /// Returns the order-1 entropy of the whole stream, in bits. Each symbol is coded with its
    /// probability after the previous symbol. The first symbol has no context and costs nothing.
    pub fn order1_bits(&self) -> f64 {
        self.pairs
            .iter()
            .map(|(&(context, _), &n)| {
                // No symbol follows the last symbol, so that occurrence is not a context.
                let last = u64::from(self.last == Some(context));
                information(n, (self.symbols[&context] - last) as f64)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    fn stream(symbols: &[u32]) -> StreamEntropy {
        let mut stream = StreamEntropy::new();
        symbols.iter().for_each(|&symbol| stream.push(symbol));
        stream
    }

    /// Returns −Σ log₂ p(symbol), where each probability is the symbol's frequency in the whole
    /// sequence.
    fn order0_by_definition(symbols: &[u32]) -> f64 {
        symbols
            .iter()
            .map(|x| {
                let same = symbols.iter().filter(|y| *y == x).count();
                -(same as f64 / symbols.len() as f64).log2()
            })
            .sum()
    }

    #[test]
    fn fair_and_certain_branches() {
        assert_eq!(branch_entropy_bits([[8, 8], [16, 0]]), 16.0);
        assert_eq!(branch_entropy_bits([vec![5, 5, 5, 5], vec![]]), 40.0);
        assert_eq!(branch_entropy_bits(Vec::<Vec<u64>>::new()), 0.0);
    }

    #[test]
    fn a_cycle_has_no_order_1_entropy() {
        let stream = stream(&[1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!((stream.order0_bits(), stream.order1_bits()), (16.0, 0.0));
        assert_eq!((stream.alphabet(), stream.distinct_pairs()), (4, 4));
    }

    proptest! {
        #[test]
        fn entropies_are_those_of_the_definition(symbols in prop::collection::vec(0u32..5, 0..60)) {
            let stream = stream(&symbols);
            prop_assert!(close(stream.order0_bits(), order0_by_definition(&symbols)));
            let mut after = BTreeMap::<u32, Vec<u32>>::new();
            for pair in symbols.windows(2) {
                after.entry(pair[0]).or_default().push(pair[1]);
            }
            let order1 = after.values().map(|symbols| order0_by_definition(symbols)).sum();
            prop_assert!(close(stream.order1_bits(), order1));
        }
    }
}
