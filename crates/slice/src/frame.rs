//! What is wanted of an activation.

use afterimage_ids::{BlockId, FuncId};

use crate::control::Decision;

/// An activation, while its executions are gone over backward.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// The function, once one of its nodes was gone over.
    pub function: Option<FuncId>,
    /// Variables whose values are wanted, one bit each.
    pub wanted: Vec<u64>,
    /// How many those are.
    pub count: u32,
    /// Blocks that were executed later and are in the slice, whose last decision is looked for, ascending.
    pub pending: Vec<BlockId>,
    /// What is in the slice depends on the call.
    pub of_call: bool,
    /// The first block of what was executed next.
    pub next: Option<BlockId>,
    /// What is wanted of what it returned: how many values that were, and which of them.
    pub returned: Option<(u32, Vec<u32>)>,
}

impl Frame {
    /// Wants a variable.
    #[inline]
    pub fn want(&mut self, variable: u32) {
        let word = variable as usize / 64;
        if self.wanted.len() <= word {
            self.wanted.resize(word + 1, 0);
        }
        let bit = 1 << (variable % 64);
        self.count += u32::from(self.wanted[word] & bit == 0);
        self.wanted[word] |= bit;
    }

    /// A variable is not wanted any more. Whether it was.
    #[inline]
    pub fn take(&mut self, variable: u32) -> bool {
        let Some(word) = self.wanted.get_mut(variable as usize / 64) else {
            return false;
        };
        let bit = 1 << (variable % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.count -= u32::from(was);
        was
    }

    /// Whether a variable is wanted.
    #[inline]
    pub fn wants(&self, variable: u32) -> bool {
        let word = self.wanted.get(variable as usize / 64);
        word.is_some_and(|word| word & 1 << (variable % 64) != 0)
    }

    /// Whether any variable is.
    #[inline]
    pub fn wants_any(&self) -> bool {
        self.count > 0
    }

    /// Whether nothing more is to be found in it, or through its call.
    pub fn is_done(&self) -> bool {
        self.count == 0
            && self.pending.is_empty()
            && !self.of_call
            && self
                .returned
                .as_ref()
                .is_none_or(|(_, wanted)| wanted.is_empty())
    }

    /// A block is in the slice, and depends on an edge before it, or on the call if there is none.
    pub fn depends(&mut self, block: BlockId) {
        if let Err(place) = self.pending.binary_search(&block) {
            self.pending.insert(place, block);
        }
    }

    /// Whether it depends on the call, if nothing before decides.
    pub fn needs_call(&self) -> bool {
        self.of_call || !self.pending.is_empty()
    }

    /// Whether some block waits for a decision.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether one of these, ascending, waits.
    #[inline]
    pub fn waits_for(&self, decided: &[BlockId]) -> bool {
        let (few, many) = match self.pending.len() < decided.len() {
            true => (&self.pending[..], decided),
            false => (decided, &self.pending[..]),
        };
        few.iter().any(|block| many.binary_search(block).is_ok())
    }

    /// Goes back over edges. Whether the block that they leave decided something that is in the slice.
    pub fn decide(&mut self, decisions: &[Decision]) -> bool {
        let mut found = false;
        for decision in decisions {
            let before = self.pending.len();
            let decided = &decision.decided;
            self.pending
                .retain(|block| decided.binary_search(block).is_err());
            if self.pending.len() < before {
                match decision.dispatches {
                    true => self.depends(decision.from),
                    false => found = true,
                }
            }
        }
        found
    }
}
