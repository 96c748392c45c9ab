//! Stores distinct activations. Each activation lists its own blocks and its calls, but not their
//! order.

use std::hash::{DefaultHasher, Hash, Hasher};

use afterimage_ids::FuncId;
use rustc_hash::FxHashMap;

use super::inlining::ChainId;

/// Activations, and stretches that occur in several activations. Each distinct item is stored once.
#[derive(Default)]
pub(super) struct Activations {
    all: Vec<Activation>,
    items: Vec<Item>,
    /// The last entry with each hash.
    known: FxHashMap<u64, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Activation {
    /// The function, or `None` for a stretch.
    function: Option<FuncId>,
    /// Whether the activation begins in the window.
    begins: bool,
    /// Whether this is a stretch with an event that inherits its chain.
    inherits: bool,
    /// The number of blocks left out of the activation or stretch, including its parts.
    left_out: u64,
    total: u64,
    calls: u64,
    start: usize,
    len: u32,
    /// The previous entry with the same hash.
    same: Option<u32>,
}

/// An event in an activation. The activation executes a block itself, a block was left out, or a
/// part of the activation occurs. Events are stored as numbers because there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct What(u32);

impl What {
    /// The activation executes a block itself.
    pub(super) const OWN: Self = Self(u32::MAX);
    /// A block was left out while this was the innermost known activation.
    pub(super) const GAP: Self = Self(u32::MAX - 1);

    /// Returns the event in which a part occurs. The part is a callee's activation, or a stretch of
    /// the activation itself.
    pub(super) fn of_part(part: u32) -> Self {
        Self(part)
    }

    /// Returns the part that occurs, which is a callee's activation, or a stretch of the activation
    /// itself.
    pub(super) fn part(self) -> Option<u32> {
        (self < Self::GAP).then_some(self.0)
    }
}

/// An event in an activation, and its number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Item {
    /// The event that happens.
    pub what: What,
    /// The chain of inlined functions in which the event happens. [`ChainId::INHERITED`] is used
    /// before the first block of a stretch, and means the chain of the block before the stretch. A
    /// stretch in which no event inherits its chain has [`ChainId::ITSELF`].
    pub chain: ChainId,
    /// The number of times the event happens.
    pub times: u64,
}

/// The events of an activation or a stretch, while it is read in order.
#[derive(Debug)]
pub(super) struct Doing {
    pub items: Vec<Item>,
    /// The chain of the last block so far. The next call comes from this chain.
    pub last: ChainId,
}

impl Doing {
    /// Creates an empty list of events, after a block that belongs to a chain.
    pub fn after(last: ChainId) -> Self {
        Self {
            items: Vec::new(),
            last,
        }
    }

    /// Adds items, repeated `times` times. `last` is the chain of their last block, if they have
    /// one.
    pub fn add(&mut self, items: &[Item], last: Option<ChainId>, times: u64) {
        let Some(more) = times.checked_sub(1) else {
            return;
        };
        for &item in items {
            // In rules that are never executed, the counts may overflow.
            let mut push = |chain, times| {
                self.items.push(Item {
                    chain,
                    times: item.times.saturating_mul(times),
                    ..item
                });
            };
            match item.chain {
                // The first repetition follows the earlier block. Each later repetition follows the
                // previous one.
                ChainId::INHERITED => match last {
                    Some(last) if more > 0 && last != self.last => {
                        push(self.last, 1);
                        push(last, more);
                    }
                    _ => push(self.last, times),
                },
                chain => push(chain, times),
            }
        }
        self.last = last.unwrap_or(self.last);
    }
}

/// Sorts the items, and merges equal items.
pub(super) fn compact(items: &mut Vec<Item>) {
    items.sort_unstable();
    items.dedup_by(|next, sum| {
        let same = (next.what, next.chain) == (sum.what, sum.chain);
        if same {
            sum.times = sum.times.saturating_add(next.times);
        }
        same
    });
}

impl Activations {
    /// Returns the number of an activation, or of a stretch, which has no function. Adds it if no
    /// equal entry exists.
    pub fn make(&mut self, function: Option<FuncId>, begins: bool, mut items: Vec<Item>) -> u32 {
        compact(&mut items);
        let mut hasher = DefaultHasher::new();
        (function, begins, &items).hash(&mut hasher);
        let hash = hasher.finish();
        let last = self.known.get(&hash).copied();
        let mut next = last;
        while let Some(id) = next {
            let other = &self.all[id as usize];
            if (other.function, other.begins) == (function, begins) && self.items(id) == items {
                return id;
            }
            next = other.same;
        }
        let id = self.all.len() as u32;
        self.known.insert(hash, id);
        let mut made = Activation {
            function,
            begins,
            inherits: function.is_none()
                && items.iter().any(|item| item.chain == ChainId::INHERITED),
            left_out: 0,
            total: 0,
            calls: u64::from(function.is_some() && begins),
            start: self.items.len(),
            len: items.len() as u32,
            same: last,
        };
        for item in &items {
            let (total, left_out, calls) = match item.what.part() {
                None => (1, u64::from(item.what == What::GAP), 0),
                Some(part) => {
                    let part = &self.all[part as usize];
                    (part.total, part.left_out, part.calls)
                }
            };
            // In rules that are never executed, the counts may overflow.
            let add = |sum: &mut u64, each: u64| {
                *sum = sum.saturating_add(each.saturating_mul(item.times));
            };
            add(&mut made.total, total);
            add(&mut made.left_out, left_out);
            add(&mut made.calls, calls);
        }
        self.all.push(made);
        self.items.extend(items);
        id
    }

    /// Adds a stretch, and returns it as an item of its activation.
    pub fn stretch(&mut self, items: Vec<Item>) -> Item {
        let id = self.make(None, true, items);
        Item {
            what: What::of_part(id),
            chain: if self.all[id as usize].inherits {
                ChainId::INHERITED
            } else {
                ChainId::ITSELF
            },
            times: 1,
        }
    }

    /// Returns the function, or `None` for a stretch and for the host.
    pub fn function(&self, id: u32) -> Option<FuncId> {
        self.all[id as usize].function
    }

    /// Returns the number of blocks left out of an activation or stretch, including its parts.
    pub fn left_out(&self, id: u32) -> u64 {
        self.all[id as usize].left_out
    }

    /// Returns the number of executed and left-out blocks of an activation or stretch, including
    /// its parts.
    pub fn total(&self, id: u32) -> u64 {
        self.all[id as usize].total
    }

    /// Returns 1 if the activation begins in the window, and otherwise 0.
    pub fn begins(&self, id: u32) -> u64 {
        u64::from(self.all[id as usize].begins)
    }

    /// Returns the number of activations that begin in an activation or stretch, including itself.
    pub fn calls(&self, id: u32) -> u64 {
        self.all[id as usize].calls
    }

    /// Returns the events of an activation or stretch, with the parts in ascending order.
    pub fn items(&self, id: u32) -> &[Item] {
        let Activation { start, len, .. } = self.all[id as usize];
        &self.items[start..start + len as usize]
    }
}
