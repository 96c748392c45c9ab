//! Dictionaries of dynamic basic blocks (Zhang and Gupta 2001, section 2, "Creating dictionaries of
//! dynamic basic blocks").

use afterimage_ids::BlockId;

/// The expansions of the dynamic basic blocks of a path trace. They are chains of at least two
/// blocks, keyed by their first blocks.
///
/// A block that does not begin a chain represents itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dictionary {
    /// The concatenated chains, ascending by first block.
    blocks: Box<[BlockId]>,
    /// The end of each chain.
    ends: Box<[u32]>,
}

impl Dictionary {
    /// Builds a dictionary from chains in any order, no two with the same first block.
    pub(super) fn new(mut chains: Vec<Vec<BlockId>>) -> Self {
        chains.sort_unstable_by_key(|chain| chain.first().copied());
        let mut end = 0;
        let ends = chains.iter().map(|chain| {
            end += chain.len() as u32;
            end
        });
        Self {
            ends: ends.collect(),
            blocks: chains.concat().into(),
        }
    }

    /// Builds a dictionary from concatenated chains, which ascend by first block, and the end of
    /// each chain.
    pub(super) fn from_ascending(blocks: &[BlockId], ends: &[u32]) -> Self {
        Self {
            blocks: blocks.into(),
            ends: ends.into(),
        }
    }

    /// Returns the chains, ascending by first block.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = &[BlockId]> {
        (0..self.ends.len()).map(|k| self.chain(k))
    }

    /// Whether every block represents itself.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the blocks of a dynamic basic block. Time: O(log chains).
    pub fn expand<'a>(&'a self, block: &'a BlockId) -> &'a [BlockId] {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.chain(middle).first() < Some(block) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        match (low < self.ends.len()).then(|| self.chain(low)) {
            Some(chain) if chain.first() == Some(block) => chain,
            _ => std::slice::from_ref(block),
        }
    }

    /// Returns the number of four-byte words in the paper's form, which stores the number of
    /// chains, and each chain's length and blocks.
    pub fn words(&self) -> u64 {
        1 + (self.ends.len() + self.blocks.len()) as u64
    }

    fn chain(&self, k: usize) -> &[BlockId] {
        let start = k.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.blocks[start as usize..self.ends[k] as usize]
    }
}
