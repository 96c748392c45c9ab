//! Different activations: what they execute themselves and whom they call how often, in no order.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use afterimage_ids::FuncId;

/// Activations, and stretches of activations that occur in several; each different one once.
#[derive(Default)]
pub(super) struct Activations {
    all: Vec<Activation>,
    parts: Vec<(u32, u64)>,
    /// By hash, those that have it.
    known: HashMap<u64, Vec<u32>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Activation {
    /// `None` for a stretch.
    function: Option<FuncId>,
    /// It begins in what is looked at.
    begins: bool,
    own: u64,
    /// Blocks that were left out in it, those in its parts included.
    left_out: u64,
    /// Those that were left out in itself.
    gaps: u64,
    total: u64,
    calls: u64,
    start: usize,
    len: usize,
}

/// What an activation or a stretch of one does.
#[derive(Debug, Default)]
pub(super) struct Doing {
    /// Blocks that it executes itself.
    pub own: u64,
    /// Blocks that were left out while it was the innermost that is known.
    pub gaps: u64,
    /// Which activations and stretches are part of it, and how often.
    pub parts: Vec<(u32, u64)>,
}

impl Doing {
    /// Does so much more.
    pub fn add(&mut self, own: u64, gaps: u64, part: Option<(u32, u64)>) {
        self.own += own;
        self.gaps += gaps;
        self.parts.extend(part);
    }
}

impl Activations {
    /// Makes an activation known, or a stretch without a function.
    pub fn make(&mut self, function: Option<FuncId>, begins: bool, mut doing: Doing) -> u32 {
        doing.parts.sort_unstable();
        doing.parts.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            sum.1 += if same { next.1 } else { 0 };
            same
        });
        let Doing { own, gaps, parts } = doing;
        let mut hasher = DefaultHasher::new();
        (function, begins, own, gaps, &parts).hash(&mut hasher);
        let same = self.known.entry(hasher.finish()).or_default();
        let found = same.iter().copied().find(|&id| {
            let other = &self.all[id as usize];
            (other.function, other.begins) == (function, begins)
                && (other.own, other.gaps) == (own, gaps)
                && self.parts[other.start..other.start + other.len] == parts[..]
        });
        if let Some(id) = found {
            return id;
        }
        let sum = |of: fn(&Activation) -> u64| -> u64 {
            // Rules that are never executed may hold more than can be counted.
            parts.iter().fold(0, |sum, &(id, times)| {
                sum.saturating_add(of(&self.all[id as usize]).saturating_mul(times))
            })
        };
        let id = self.all.len() as u32;
        same.push(id);
        self.all.push(Activation {
            function,
            begins,
            own,
            gaps,
            left_out: gaps.saturating_add(sum(|part| part.left_out)),
            total: own
                .saturating_add(gaps)
                .saturating_add(sum(|part| part.total)),
            calls: sum(|part| part.calls).saturating_add(u64::from(function.is_some() && begins)),
            start: self.parts.len(),
            len: parts.len(),
        });
        self.parts.extend(parts);
        id
    }

    /// The function; `None` for a stretch, and for the host.
    pub fn function(&self, id: u32) -> Option<FuncId> {
        self.all[id as usize].function
    }

    /// Blocks that it executes itself, without those of its parts.
    pub fn own(&self, id: u32) -> u64 {
        self.all[id as usize].own
    }

    /// Blocks that were left out while it was the innermost that is known.
    pub fn gaps(&self, id: u32) -> u64 {
        self.all[id as usize].gaps
    }

    /// Blocks that were left out in it, parts included.
    pub fn left_out(&self, id: u32) -> u64 {
        self.all[id as usize].left_out
    }

    /// Blocks that it executes or lacks, parts included.
    pub fn total(&self, id: u32) -> u64 {
        self.all[id as usize].total
    }

    /// 1 if it begins in what is looked at.
    pub fn begins(&self, id: u32) -> u64 {
        u64::from(self.all[id as usize].begins)
    }

    /// How many activations begin in it, itself included.
    pub fn calls(&self, id: u32) -> u64 {
        self.all[id as usize].calls
    }

    /// Its parts, ascending, and how often each occurs.
    pub fn parts(&self, id: u32) -> &[(u32, u64)] {
        let Activation { start, len, .. } = self.all[id as usize];
        &self.parts[start..start + len]
    }
}
