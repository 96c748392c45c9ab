//! Predicts the targets of indirect branches with a tagless target cache, indexed by place XOR
//! global history (Chang, Hao and Patt, "Target prediction for indirect jumps", 1997). Without a
//! history, the cache is a branch target buffer, which predicts the last target.

/// A table of 2^bits targets.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// The last target seen at each index.
    last: Vec<Option<u64>>,
    /// Selects the history bits that enter the index.
    mask: u64,
}

impl Targets {
    /// Creates a cache that uses `history` outcomes, limited to the bits of an index.
    pub(super) fn new(bits: u32, history: u32) -> Self {
        Self {
            last: vec![None; 1 << bits],
            mask: (1 << history.min(bits)) - 1,
        }
    }

    /// Records a target and returns whether it was predicted.
    #[inline]
    pub(super) fn next(&mut self, place: u64, history: u64, target: u64) -> bool {
        let index = (place ^ history & self.mask) as usize & (self.last.len() - 1);
        self.last[index].replace(target) == Some(target)
    }
}
