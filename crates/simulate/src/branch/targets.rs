//! Targets of indirect branches: a target cache without tags, by the exclusive or of place and global history (Chang, Hao and Patt, "Target
//! prediction for indirect jumps", 1997). Without history it is a branch target buffer: the last target is predicted.

/// 2^bits targets.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// What an index led to last.
    last: Vec<Option<u64>>,
    /// Which bits of the history are used.
    mask: u64,
}

impl Targets {
    /// With so much of the history, or as much as an index holds.
    pub(super) fn new(bits: u32, history: u32) -> Self {
        Self {
            last: vec![None; 1 << bits],
            mask: (1 << history.min(bits)) - 1,
        }
    }

    /// Whether the target was predicted.
    #[inline]
    pub(super) fn next(&mut self, place: u64, history: u64, target: u64) -> bool {
        let index = (place ^ history & self.mask) as usize & (self.last.len() - 1);
        self.last[index].replace(target) == Some(target)
    }
}
