//! Memoises the results of walking back over nodes.
//!
//! The wanted set before a node depends on three things: the wanted set after it, the decisions for
//! which its activation waits, and which of its stores write wanted bytes. Frequent nodes meet the
//! same combinations again and again, so their outcomes are kept in a tree. Each store is a branch
//! of the tree, and the leaves contain the instructions in the slice.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_machine::Range;
use rustc_hash::FxHashMap;

use crate::bytes::ByteSet;
use crate::reach::Reach;
use crate::stretch::unpacked;

/// The part of the wanted set after a node that concerns the node. Each bit of a mask represents a
/// position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The node's output variables that are wanted.
    pub outputs: u64,
    /// The globals used by the node that are wanted.
    pub globals: u32,
    /// The arguments of the node's call that are wanted.
    pub arguments: u32,
    /// The node's return values that are wanted.
    pub returned: u32,
    /// The number of the set of blocks with decisions for which the node's activation waits.
    pub waits: u32,
    /// The next block, if the choice of that block decides something.
    pub next: Option<BlockId>,
    /// Whether an execution in the node's callee depends on the call.
    pub called: bool,
    /// Whether the node called the host, which provided wanted data.
    pub host: bool,
}

/// The result of walking back over a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The instructions in the slice.
    pub insts: Box<[u32]>,
    /// Whether the node's end is in the slice.
    pub ended: bool,
    /// Variables that are no longer wanted.
    pub cleared: Box<[u32]>,
    /// Variables that are now wanted.
    pub set: Box<[u32]>,
    /// The wanted globals among the globals that the node uses.
    pub globals: u32,
    /// The set of blocks for which the activation now waits.
    pub waits: u32,
    /// Whether an execution in the slice depends on the activation's call.
    pub of_call: bool,
    /// Whether the table used by the call is wanted.
    pub table: bool,
}

impl Outcome {
    /// Returns the outcome's approximate size in bytes, including its path in the tree.
    fn size(&self) -> usize {
        let lists = self.insts.len() + self.cleared.len() + self.set.len();
        lists * size_of::<u32>() + 2 * size_of::<Self>() + size_of::<Key>()
    }
}

/// A load or store, identified by the number of the node's accesses after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub behind: u32,
    pub memory: u16,
}

impl Access {
    /// Returns the range of this access, given all accesses of the execution.
    #[inline]
    fn range(self, accesses: &[u64]) -> Option<Range> {
        let at = accesses.len().checked_sub(1 + self.behind as usize)?;
        unpacked(self.memory, accesses[at])
    }
}

/// An access on which the outcome of a node depended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mattered {
    /// A load whose data becomes wanted.
    Load(Access),
    /// A store, and whether its data was wanted.
    Store(Access, bool),
}

/// A position among the steps of a node.
type At = u32;

/// A position that has not been reached yet.
const NEW: At = At::MAX;

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(Access, At),
    /// A store, with the next step if its data is not wanted and the next step if it is.
    Store(Access, [At; 2]),
    /// The outcome with this number.
    End(u32),
}

/// The known outcomes for a node.
#[derive(Debug, Default)]
struct NodeMemo {
    roots: FxHashMap<Key, At>,
    /// The outcome that was found last.
    last: Option<(Key, At)>,
    steps: Vec<Step>,
    /// The outcomes, with how often each was found.
    outcomes: Vec<(Rc<Outcome>, u64)>,
}

/// The outcomes of all nodes.
#[derive(Debug)]
pub(crate) struct Memo {
    nodes: Vec<Option<Box<NodeMemo>>>,
    /// The approximate number of bytes that may still be used.
    room: usize,
    waits: FxHashMap<FuncId, Waits>,
}

/// The maximum number of outcomes per node, and of sets of blocks per function.
const MOST_OF_NODE: usize = 1 << 10;
const MOST_WAITS: usize = 1 << 12;

/// The result of a look-up.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The memoised outcome. All accesses were processed.
    Outcome(Rc<Outcome>),
    /// There is no outcome for this combination. Contains the effects of the stores processed up to
    /// that point.
    Nothing(Did),
}

/// The effects of the first stores that were processed. Each bit says whether a store wrote wanted
/// bytes. The lowest bit belongs to the first store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Did {
    wanted: u64,
    count: u32,
}

impl Did {
    /// The maximum number of stores that can be described.
    pub const MOST: usize = u64::BITS as usize;

    #[inline]
    fn push(&mut self, is_wanted: bool) {
        self.wanted |= u64::from(is_wanted) << self.count;
        self.count += 1;
    }

    /// Returns the effect of a store, if it was processed.
    pub fn get(self, store: u32) -> Option<bool> {
        (store < self.count).then_some(self.wanted >> store & 1 == 1)
    }

    /// Whether this store has not been processed.
    pub fn is_over(self, store: u32) -> bool {
        store >= self.count
    }
}

impl Memo {
    /// Creates a memo for this many nodes. Outcomes are kept up to about `room` bytes in total.
    pub fn new(nodes: usize, room: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(nodes, || None);
        Self {
            nodes: all,
            room,
            waits: FxHashMap::default(),
        }
    }

    /// Processes the accesses of an execution along the known tree.
    #[inline]
    pub fn find(
        &mut self,
        node: usize,
        key: &Key,
        accesses: &[u64],
        bytes: &mut ByteSet,
    ) -> Lookup {
        let Some(Some(known)) = self.nodes.get_mut(node) else {
            return Lookup::Nothing(Did::default());
        };
        let mut at = match known.last {
            Some((last, at)) if last == *key => at,
            _ => match known.roots.get(key) {
                Some(&at) => {
                    known.last = Some((*key, at));
                    at
                }
                None => return Lookup::Nothing(Did::default()),
            },
        };
        let mut did = Did::default();
        while let Some(&step) = known.steps.get(at as usize) {
            at = match step {
                Step::Load(access, next) => {
                    if let Some(range) = access.range(accesses) {
                        bytes.add(range, Reach::ALL);
                    }
                    next
                }
                Step::Store(access, next) => {
                    let range = access.range(accesses);
                    let is_wanted = range.is_some_and(|range| bytes.take(range).is_some());
                    did.push(is_wanted);
                    let then = next[usize::from(is_wanted)];
                    if then == NEW {
                        return Lookup::Nothing(did);
                    }
                    then
                }
                Step::End(outcome) => {
                    let (outcome, times) = &mut known.outcomes[outcome as usize];
                    *times += 1;
                    return Lookup::Outcome(Rc::clone(outcome));
                }
            };
        }
        Lookup::Nothing(did)
    }

    /// Memoises the outcome of an execution, unless there is no room.
    pub fn keep(&mut self, node: usize, key: Key, accesses: &[Mattered], outcome: Outcome) {
        if !self.has_room(node) {
            return;
        }
        let Some(place) = self.nodes.get_mut(node) else {
            return;
        };
        let known = place.get_or_insert_default();
        self.room = self
            .room
            .saturating_sub(outcome.size() + size_of_val(accesses));
        let end = known.outcomes.len() as u32;
        known.outcomes.push((Rc::new(outcome), 0));
        // Follows the part of the outcome's path that already exists.
        let mut at = known.roots.get(&key).copied().unwrap_or(NEW);
        let mut from = None;
        let mut left = accesses;
        while let (Some(&step), Some((first, rest))) =
            (known.steps.get(at as usize), left.split_first())
        {
            let next = match (step, *first) {
                (Step::Load(_, next), _) => next,
                (Step::Store(_, next), Mattered::Store(_, is_wanted)) => {
                    next[usize::from(is_wanted)]
                }
                // This cannot happen, because the same key and the same stores always lead to the
                // same step.
                _ => return,
            };
            from = Some((at, *first));
            (at, left) = (next, rest);
        }
        // Adds the rest of the path, from its end.
        let mut next = known.push(Step::End(end));
        for &access in left.iter().rev() {
            next = known.push(match access {
                Mattered::Load(access) => Step::Load(access, next),
                Mattered::Store(access, is_wanted) => {
                    let mut ways = [NEW; 2];
                    ways[usize::from(is_wanted)] = next;
                    Step::Store(access, ways)
                }
            });
        }
        match from {
            None => {
                known.roots.insert(key, next);
                known.last = Some((key, next));
            }
            Some((at, access)) => match (&mut known.steps[at as usize], access) {
                (Step::Store(_, ways), Mattered::Store(_, is_wanted)) => {
                    ways[usize::from(is_wanted)] = next;
                }
                (Step::Load(_, way), _) => *way = next,
                _ => {}
            },
        }
    }

    /// Whether there is room for another outcome of a node.
    pub fn has_room(&self, node: usize) -> bool {
        let known = self.nodes.get(node);
        known.is_some_and(|known| {
            let of_node = known.as_ref().map_or(0, |known| known.outcomes.len());
            self.room > 0 && of_node < MOST_OF_NODE
        })
    }

    /// Returns the number of a function's set of blocks, given in ascending order. The empty set
    /// has number 0. Returns `None` if there are too many sets.
    pub fn number(&mut self, function: FuncId, blocks: &[(BlockId, Reach)]) -> Option<u32> {
        if blocks.is_empty() {
            return Some(0);
        }
        let waits = self.waits.entry(function).or_default();
        waits.number(blocks.iter().map(|(block, _)| *block).collect())
    }

    /// Returns the set with this number.
    pub fn blocks(&self, function: FuncId, number: u32) -> Option<&[BlockId]> {
        let Some(before) = number.checked_sub(1) else {
            return Some(&[]);
        };
        let waits = self.waits.get(&function)?;
        waits.sets.get(before as usize).map(|set| &**set)
    }

    /// Iterates over all outcomes, with their nodes and how often each was found.
    pub fn outcomes(&self) -> impl Iterator<Item = (usize, &Outcome, u64)> {
        let known = self.nodes.iter().enumerate();
        let known = known.filter_map(|(node, known)| Some((node, known.as_ref()?)));
        known.flat_map(|(node, known)| {
            let outcomes = known.outcomes.iter();
            outcomes.map(move |(outcome, times)| (node, &**outcome, *times))
        })
    }
}

impl NodeMemo {
    fn push(&mut self, step: Step) -> At {
        self.steps.push(step);
        (self.steps.len() - 1) as At
    }
}

/// The sets of blocks for which activations of a function waited. The empty set is left out, so the
/// first set is number 1.
#[derive(Debug, Default)]
struct Waits {
    numbers: FxHashMap<Rc<[BlockId]>, u32>,
    sets: Vec<Rc<[BlockId]>>,
}

impl Waits {
    fn number(&mut self, blocks: Rc<[BlockId]>) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&blocks) {
            return Some(number);
        }
        if self.sets.len() >= MOST_WAITS {
            return None;
        }
        self.sets.push(Rc::clone(&blocks));
        let number = self.sets.len() as u32;
        self.numbers.insert(blocks, number);
        Some(number)
    }
}
