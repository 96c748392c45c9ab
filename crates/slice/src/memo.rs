//! What going back over a node came to, to be done again at once.
//!
//! What is wanted before a node follows from what is wanted behind it, from what its activation waits for, and from which of its stores write something that
//! is wanted. Nodes that are executed often are gone over with the same of these again and again, so the outcome is kept: a tree, in which each store
//! decides how to go on, with the instructions that are in the slice at its leaves.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_machine::Range;
use rustc_hash::FxHashMap;

use crate::bytes::ByteSet;
use crate::reach::Reach;
use crate::stretch::unpacked;

/// What is wanted behind a node, as far as the node has to do with it. Positions are bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Among the variables that it leaves behind.
    pub outputs: u64,
    /// Among the globals that it uses.
    pub globals: u32,
    /// Among the arguments of its call.
    pub arguments: u32,
    /// Among the values that it returns.
    pub returned: u32,
    /// What its activation waits for, by number.
    pub waits: u32,
    /// Where control went, if that decides something.
    pub next: Option<BlockId>,
    /// Something in what it calls depends on the call.
    pub called: bool,
    /// It called the host, which gave something that is wanted.
    pub host: bool,
}

/// What it came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The instructions that are in the slice.
    pub insts: Box<[u32]>,
    /// What the node ends with is.
    pub ended: bool,
    /// Variables that are not wanted any more.
    pub cleared: Box<[u32]>,
    /// Those that are wanted now.
    pub set: Box<[u32]>,
    /// The globals that are wanted now, among those that the node uses.
    pub globals: u32,
    /// What the activation waits for now.
    pub waits: u32,
    /// Something depends on the activation's call.
    pub of_call: bool,
    /// The table that the call goes through is wanted.
    pub table: bool,
}

impl Outcome {
    /// How many bytes it takes, with what finds it, about.
    fn size(&self) -> usize {
        let lists = self.insts.len() + self.cleared.len() + self.set.len();
        lists * size_of::<u32>() + 2 * size_of::<Self>() + size_of::<Key>()
    }
}

/// A load or store, by how many of the node's come behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub behind: u32,
    pub memory: u16,
}

impl Access {
    /// Where it was, of all accesses of the execution.
    #[inline]
    fn range(self, accesses: &[u64]) -> Option<Range> {
        let at = accesses.len().checked_sub(1 + self.behind as usize)?;
        unpacked(self.memory, accesses[at])
    }
}

/// An access that mattered while a node was gone over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mattered {
    /// What it reads is wanted.
    Load(Access),
    /// Whether what it writes was.
    Store(Access, bool),
}

/// A position among the steps of a node.
type At = u32;

/// Nobody came here.
const NEW: At = At::MAX;

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(Access, At),
    /// Where it goes on if what it writes is not wanted, and if it is.
    Store(Access, [At; 2]),
    /// The outcome with this number.
    End(u32),
}

/// What is known of a node.
#[derive(Debug, Default)]
struct NodeMemo {
    roots: FxHashMap<Key, At>,
    /// The one that was found last.
    last: Option<(Key, At)>,
    steps: Vec<Step>,
    /// And how often each was found.
    outcomes: Vec<(Rc<Outcome>, u64)>,
}

/// The outcomes of all nodes.
#[derive(Debug)]
pub(crate) struct Memo {
    nodes: Vec<Option<Box<NodeMemo>>>,
    /// How many more bytes it may take, about.
    room: usize,
    waits: FxHashMap<FuncId, Waits>,
}

/// More outcomes than this are not kept for a node, nor more sets of blocks for a function.
const MOST_OF_NODE: usize = 1 << 10;
const MOST_WAITS: usize = 1 << 12;

/// What was found.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// All accesses are gone over.
    Outcome(Rc<Outcome>),
    /// Nothing that goes as far as it has to.
    Nothing(Did),
}

/// What the first stores that were gone over did: whether each wrote something that was wanted, the first one lowest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Did {
    wanted: u64,
    count: u32,
}

impl Did {
    /// How many stores it can tell of.
    pub const MOST: usize = u64::BITS as usize;

    #[inline]
    fn push(&mut self, is_wanted: bool) {
        self.wanted |= u64::from(is_wanted) << self.count;
        self.count += 1;
    }

    /// What one of them did, if it was gone over.
    pub fn get(self, store: u32) -> Option<bool> {
        (store < self.count).then_some(self.wanted >> store & 1 == 1)
    }

    /// Whether the accesses before this store were gone over.
    pub fn is_over(self, store: u32) -> bool {
        store >= self.count
    }
}

impl Memo {
    /// Of so many nodes; outcomes are kept as long as they take no more bytes than `room`, about.
    pub fn new(nodes: usize, room: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(nodes, || None);
        Self {
            nodes: all,
            room,
            waits: FxHashMap::default(),
        }
    }

    /// Goes over the accesses of an execution as it was done before.
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

    /// Keeps what an execution came to, unless there is no room.
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
        // What is there already of the way to it.
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
                // The same key and the same stores lead the same way.
                _ => return,
            };
            from = Some((at, *first));
            (at, left) = (next, rest);
        }
        // The rest, from its end.
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

    /// Whether there is room for one more of a node.
    pub fn has_room(&self, node: usize) -> bool {
        let known = self.nodes.get(node);
        known.is_some_and(|known| {
            let of_node = known.as_ref().map_or(0, |known| known.outcomes.len());
            self.room > 0 && of_node < MOST_OF_NODE
        })
    }

    /// The number of a set of blocks of a function, ascending, of which the empty one is 0; `None` if there are too many.
    pub fn number(&mut self, function: FuncId, blocks: &[(BlockId, Reach)]) -> Option<u32> {
        if blocks.is_empty() {
            return Some(0);
        }
        let waits = self.waits.entry(function).or_default();
        waits.number(blocks.iter().map(|(block, _)| *block).collect())
    }

    /// The set with this number.
    pub fn blocks(&self, function: FuncId, number: u32) -> Option<&[BlockId]> {
        let Some(before) = number.checked_sub(1) else {
            return Some(&[]);
        };
        let waits = self.waits.get(&function)?;
        waits.sets.get(before as usize).map(|set| &**set)
    }

    /// All outcomes, with their nodes and how often each was found.
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

/// The sets of blocks that activations of a function waited for, but the empty one; the first is number 1.
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
