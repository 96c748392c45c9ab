//! Calling contexts: which chains of calls executed how much (Ammons, Ball and Larus, "Exploiting Hardware Performance
//! Counters with Flow and Context Sensitive Profiling", 1997).
//!
//! The run is not expanded. Activations that call the same activations equally often are looked at once, and once for
//! each context in which they occur.

mod activations;
mod clip;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use afterimage_ids::FuncId;
use afterimage_wpp::{PathError, Segments, WholePath};

use self::activations::Activations;
use super::Window;

/// What is not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// Activations that are in so many others are summed up.
    pub depth: usize,
    /// Contexts in which fewer blocks are executed, what they call included, are summed up.
    pub min: u64,
}

/// Calls that are summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// How many, those that they make included.
    pub calls: u64,
    /// How many blocks they execute, or lack.
    pub blocks: u64,
    /// How many of these were left out of the path.
    pub left_out: u64,
}

/// A chain of calls, from the host to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The function; `None` for the host, which is the root of the tree.
    pub function: Option<FuncId>,
    /// The chain without its last call: its position; `None` for the host.
    pub parent: Option<usize>,
    /// How many activations begin in this way.
    pub calls: u64,
    /// How many blocks these execute themselves.
    pub own: u64,
    /// How many blocks were left out of the path while they were the innermost that it has.
    pub left_out: u64,
    /// How many blocks are executed while they are open.
    pub total: u64,
    /// The chains with one call more: their positions, those with the most blocks first.
    pub children: Vec<usize>,
    /// Calls that are made here to functions that are called too little.
    pub shorter: Rest,
    /// Calls that are made here and are too deep.
    pub deeper: Rest,
}

/// The calling contexts of a stretch of a run. `own`, `left_out`, the children's `total` and what is summed up make the `total`, in every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextTree {
    /// The contexts, parents before children; the first one is the host.
    pub contexts: Vec<Context>,
    /// The stretch.
    pub window: Window,
    /// What is summed up.
    pub limits: ContextLimits,
}

impl ContextTree {
    /// The contexts of a window of a run. An activation that is open where the window begins counts for its blocks, not as a call.
    ///
    /// Linear in the grammars, and for each context in the different activations that occur in it.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        window: Window,
        limits: ContextLimits,
    ) -> Result<Self, PathError<S::Error>> {
        let (activations, host) = clip::collect(path, window)?;
        Ok(Self {
            contexts: expand(&activations, host, limits),
            window,
            limits,
        })
    }

    /// The contexts in depth-first order, parents first, with their depths: the host's is 0.
    pub fn walk(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut open = vec![(0, 0)];
        std::iter::from_fn(move || {
            let (at, depth) = open.pop()?;
            let children = self.contexts[at].children.iter().rev();
            open.extend(children.map(|&child| (child, depth + 1)));
            Some((at, depth))
        })
    }
}

impl ContextTree {
    /// The same tree in which what some functions execute counts for those that called them, if these were not called by the host. Linear.
    #[must_use]
    pub fn folding(&self, is_folded: impl Fn(FuncId) -> bool) -> Self {
        let mut contexts: Vec<Context> = Vec::new();
        // Where each context of this tree has gone.
        let mut places: Vec<usize> = Vec::with_capacity(self.contexts.len());
        let mut known = HashMap::new();
        for context in &self.contexts {
            let parent = context.parent.map(|parent| places[parent]);
            let at = match (parent, context.function) {
                (Some(parent), Some(function)) if parent > 0 && is_folded(function) => parent,
                (parent, function) => *known.entry((parent, function)).or_insert_with(|| {
                    contexts.push(Context {
                        function,
                        parent,
                        calls: 0,
                        own: 0,
                        left_out: 0,
                        total: 0,
                        children: Vec::new(),
                        shorter: Rest::default(),
                        deeper: Rest::default(),
                    });
                    contexts.len() - 1
                }),
            };
            places.push(at);
            let to = &mut contexts[at];
            if parent != Some(at) {
                to.calls += context.calls;
                to.total += context.total;
            }
            to.own += context.own;
            to.left_out += context.left_out;
            to.shorter.add(context.shorter);
            to.deeper.add(context.deeper);
        }
        for at in 1..contexts.len() {
            if let Some(parent) = contexts[at].parent {
                contexts[parent].children.push(at);
            }
        }
        let totals = Vec::from_iter(contexts.iter().map(|context| context.total));
        for context in &mut contexts {
            let order = |&child: &usize| (Reverse(totals[child]), child);
            context.children.sort_by_key(order);
        }
        Self { contexts, ..*self }
    }
}

impl Rest {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.blocks += other.blocks;
        self.left_out += other.left_out;
    }
}

/// Activations of one function in one context, and how many of each there are.
struct Pending {
    context: usize,
    depth: usize,
    activations: BTreeMap<u32, u64>,
}

fn expand(all: &Activations, host: u32, limits: ContextLimits) -> Vec<Context> {
    let mut contexts = vec![Context {
        function: None,
        parent: None,
        calls: 0,
        own: 0,
        left_out: 0,
        total: all.total(host),
        children: Vec::new(),
        shorter: Rest::default(),
        deeper: Rest::default(),
    }];
    let mut open = vec![Pending {
        context: 0,
        depth: 0,
        activations: BTreeMap::from([(host, 1)]),
    }];
    while let Some(pending) = open.pop() {
        let at = pending.context;
        let (own, gaps, callees) = look(all, pending.activations);
        (contexts[at].own, contexts[at].left_out) = (own, gaps);
        for (function, activations) in callees {
            let sum = |of: &dyn Fn(u32) -> u64| -> u64 {
                activations.iter().map(|(&id, times)| of(id) * times).sum()
            };
            let blocks = sum(&|id| all.total(id));
            let rest = if pending.depth >= limits.depth {
                &mut contexts[at].deeper
            } else if blocks < limits.min {
                &mut contexts[at].shorter
            } else {
                let child = contexts.len();
                contexts.push(Context {
                    function: Some(function),
                    parent: Some(at),
                    calls: sum(&|id| all.begins(id)),
                    own: 0,
                    left_out: 0,
                    total: blocks,
                    children: Vec::new(),
                    shorter: Rest::default(),
                    deeper: Rest::default(),
                });
                contexts[at].children.push(child);
                open.push(Pending {
                    context: child,
                    depth: pending.depth + 1,
                    activations,
                });
                continue;
            };
            rest.blocks += blocks;
            rest.calls += sum(&|id| all.calls(id));
            rest.left_out += sum(&|id| all.left_out(id));
        }
        let mut children = std::mem::take(&mut contexts[at].children);
        children.sort_by_key(|&child| Reverse(contexts[child].total));
        contexts[at].children = children;
    }
    contexts
}

/// What some activations execute and lack themselves, and whom they call how often, by function.
fn look(
    all: &Activations,
    mut open: BTreeMap<u32, u64>,
) -> (u64, u64, BTreeMap<FuncId, BTreeMap<u32, u64>>) {
    let (mut own, mut gaps) = (0, 0);
    let mut callees: BTreeMap<FuncId, BTreeMap<u32, u64>> = BTreeMap::new();
    // Parts have smaller numbers than what they are parts of.
    while let Some((id, times)) = open.pop_last() {
        own += all.own(id) * times;
        gaps += all.gaps(id) * times;
        for &(part, each) in all.parts(id) {
            let more = each * times;
            let sums = match all.function(part) {
                Some(function) => callees.entry(function).or_default(),
                None => &mut open,
            };
            *sums.entry(part).or_default() += more;
        }
    }
    (own, gaps, callees)
}
