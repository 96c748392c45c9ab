//! Tracks the wanted parts of an activation.

use afterimage_ids::{BlockId, FuncId};

use crate::control::Decision;
use crate::reach::Reach;

/// An activation during a backward walk over its executions.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// The function, once one of its nodes has been processed.
    pub function: Option<FuncId>,
    /// The depth to which to follow the value of each variable of the activation.
    pub wanted: Vec<Reach>,
    /// The number of wanted variables.
    pub count: u32,
    /// Later blocks in the slice for which the last decision has not been found yet, ascending.
    /// Each comes with the depth to which to follow the decision.
    pending: Vec<(BlockId, Reach)>,
    /// The number of the set of pending blocks, if known.
    pub number: Option<u32>,
    /// The depth to which to follow the call, because an execution in the slice depends on it.
    pub of_call: Reach,
    /// The first block of the node that the activation executes next.
    pub next: Option<BlockId>,
    /// The number of the activation's results, and the wanted results.
    pub returned: Option<(u32, Wanted)>,
}

/// The positions of wanted values, each with the depth to which to follow it.
pub(crate) type Wanted = Vec<(u32, Reach)>;

impl Frame {
    /// Marks a variable as wanted, at least this far.
    #[inline]
    pub fn want(&mut self, variable: u32, reach: Reach) {
        let at = variable as usize;
        if self.wanted.len() <= at {
            self.wanted.resize(at + 1, Reach::NONE);
        }
        let wanted = &mut self.wanted[at];
        self.count += u32::from(wanted.is_none() && reach.is_some());
        *wanted = reach.max(*wanted);
    }

    /// Removes a variable from the wanted variables. Returns how far to follow it.
    #[inline]
    pub fn take(&mut self, variable: u32) -> Reach {
        let Some(wanted) = self.wanted.get_mut(variable as usize) else {
            return Reach::NONE;
        };
        let reach = std::mem::take(wanted);
        self.count -= u32::from(reach.is_some());
        reach
    }

    #[inline]
    pub fn wants(&self, variable: u32) -> bool {
        let wanted = self.wanted.get(variable as usize);
        wanted.is_some_and(|wanted| wanted.is_some())
    }

    #[inline]
    pub fn wants_any(&self) -> bool {
        self.count > 0
    }

    /// Whether nothing more can be found in the activation, or through its call.
    pub fn is_done(&self) -> bool {
        self.count == 0
            && self.pending.is_empty()
            && self.of_call.is_none()
            && self
                .returned
                .as_ref()
                .is_none_or(|(_, wanted)| wanted.is_empty())
    }

    /// Returns the blocks that wait for a decision, ascending, each with the depth to which to
    /// follow the decision.
    pub fn pending(&self) -> &[(BlockId, Reach)] {
        &self.pending
    }

    /// Sets the blocks that wait for a decision, which must be ascending, and the number of this
    /// set. Their decisions are followed without limit.
    pub fn wait(&mut self, blocks: &[BlockId], number: u32) {
        self.pending.clear();
        let blocks = blocks.iter().map(|&block| (block, Reach::ALL));
        self.pending.extend(blocks);
        self.number = Some(number);
    }

    /// Creates an activation that has just ended with these results.
    pub fn that_returned(returned: Option<(u32, Wanted)>) -> Self {
        Self {
            returned,
            ..Self::default()
        }
    }

    /// Records that a block is in the slice, and how far to follow the decision to execute it. The
    /// decision is an earlier edge or, if there is none, the call.
    pub fn depends(&mut self, block: BlockId, reach: Reach) {
        if reach.is_none() {
            return;
        }
        match self
            .pending
            .binary_search_by_key(&block, |(block, _)| *block)
        {
            Ok(place) => self.pending[place].1 = reach.max(self.pending[place].1),
            Err(place) => {
                self.pending.insert(place, (block, reach));
                self.number = None;
            }
        }
    }

    /// Returns how far to follow the call, if no earlier edge decides.
    pub fn needs_call(&self) -> Reach {
        let pending = self.pending.iter().map(|(_, reach)| *reach);
        pending.fold(self.of_call, Reach::max)
    }

    /// Whether any block waits for a decision.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns how far to follow the decision for which any of these blocks waits. The blocks are
    /// ascending.
    #[inline]
    pub fn waits_for(&self, decided: &[BlockId]) -> Reach {
        let mut farthest = Reach::NONE;
        if self.pending.len() < decided.len() {
            for (block, reach) in &self.pending {
                if *reach > farthest && decided.binary_search(block).is_ok() {
                    farthest = *reach;
                }
            }
        } else {
            for block in decided {
                if let Ok(place) = self
                    .pending
                    .binary_search_by_key(block, |(block, _)| *block)
                {
                    farthest = farthest.max(self.pending[place].1);
                }
            }
        }
        farthest
    }

    /// Walks back over edges. Returns how far to follow the end of the block that the edges leave,
    /// because it decided which code in the slice was executed.
    pub fn decide(&mut self, decisions: &[Decision]) -> Reach {
        let mut found = Reach::NONE;
        for decision in decisions {
            let mut reach = Reach::NONE;
            let decided = &decision.decided;
            self.pending.retain(|(block, of)| {
                let is_decided = decided.binary_search(block).is_ok();
                if is_decided {
                    reach = reach.max(*of);
                }
                !is_decided
            });
            if reach.is_some() {
                self.number = None;
            }
            if decision.dispatches {
                self.depends(decision.from, reach)
            } else {
                found = found.max(reach)
            }
        }
        found
    }
}
