//! Calling contexts, with the blocks executed in each chain of calls (Ammons, Ball and Larus,
//! "Exploiting Hardware Performance Counters with Flow and Context Sensitive Profiling", 1997).
//!
//! A context is a chain of called functions of the module, and of functions that the compiler
//! inlined into them.
//!
//! The run is not expanded. Activations that execute equally many blocks and make the same calls
//! equally often are examined together, once for each context in which they occur.

mod activations;
mod charges;
mod clip;
mod inlining;
pub(super) mod site;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use afterimage_ids::FuncId;
use afterimage_profile::Line;
use afterimage_wpp::{PathError, Segments, WholePath};

use self::activations::{Activations, What};
use self::inlining::ChainId;
use super::Window;

pub use self::charges::{Charge, Payer, charged};
pub use self::inlining::{InlinedFrames, Inlinee, InlineeId, Inlining};

/// The limits that decide whether a context is listed or summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// The nesting depth from which functions, called or inlined, are summed up.
    pub depth: usize,
    /// The number of executed blocks, including callees, below which contexts are summed up.
    pub min: u64,
}

/// The sum over calls that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The number of calls, including the calls that they make.
    pub calls: u64,
    /// The number of blocks that these calls execute, including blocks that were left out of the
    /// path.
    pub blocks: u64,
    /// The number of these blocks that were left out of the path.
    pub left_out: u64,
}

/// The owner of the code executed in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// The host's context, which is the root of the tree.
    Host,
    /// A function of the module.
    Function(FuncId),
    /// A function that was inlined into the surrounding function.
    Inlined(InlineeId),
    /// A line of the surrounding function. Functions called on that line are nested in it.
    Line(Line),
}

/// A chain of calls, from the host to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The innermost frame of the chain.
    pub frame: Frame,
    /// The index of the context without the innermost frame, or `None` for the host.
    pub parent: Option<usize>,
    /// The number of activations that begin in this context. An inlined function has none.
    pub calls: u64,
    /// The number of executed blocks of the innermost function itself.
    pub own: u64,
    /// The number of blocks left out of the path while this was the innermost known context.
    pub left_out: u64,
    /// The number of blocks in this context and in the contexts below it, including blocks that
    /// were left out.
    pub total: u64,
    /// The indices of the contexts with one more frame, in descending order of blocks.
    pub children: Vec<usize>,
    /// Calls made in this context to functions that execute too few blocks.
    pub shorter: Rest,
    /// Calls made in this context that are too deep.
    pub deeper: Rest,
}

/// The calling contexts of a window of a run. In each context, `total` is the sum of `own`,
/// `left_out`, the children's `total` and the blocks of the calls summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextTree {
    /// The contexts, parents before children. The host's context is first.
    pub contexts: Vec<Context>,
    /// The window that the contexts cover.
    pub window: Window,
    /// The limits that select the contexts to sum up.
    pub limits: ContextLimits,
}

impl ContextTree {
    /// Returns the contexts of a window of a run. If an activation is open at the beginning of the
    /// window, its blocks count, but its call does not. With the default `inlining`, contexts
    /// consist of the module's functions only.
    ///
    /// Takes time linear in the grammars and, for each context, in the distinct activations that
    /// occur in it.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        window: Window,
        limits: ContextLimits,
        inlining: &Inlining,
    ) -> Result<Self, PathError<S::Error>> {
        let (activations, host) = clip::collect(path, window, inlining, limits.depth)?;
        Ok(Self {
            contexts: expand(&activations, host, limits, inlining),
            window,
            limits,
        })
    }

    /// Returns the contexts in depth-first order, parents first, with their depths. The host's
    /// depth is 0.
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
    /// Returns the same tree, except that the blocks of some functions count for their callers.
    /// Functions that the host called are kept. Takes linear time.
    #[must_use]
    pub fn folding(&self, is_folded: impl Fn(Frame) -> bool) -> Self {
        let mut contexts: Vec<Context> = Vec::new();
        // For each context of this tree, its place in the new tree.
        let mut places: Vec<usize> = Vec::with_capacity(self.contexts.len());
        let mut known = HashMap::new();
        for context in &self.contexts {
            let parent = context.parent.map(|parent| places[parent]);
            let frame = context.frame;
            let at = match parent {
                Some(parent) if parent > 0 && is_folded(frame) => parent,
                parent => *known.entry((parent, frame)).or_insert_with(|| {
                    contexts.push(Context::new(frame, parent));
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

impl Context {
    fn new(frame: Frame, parent: Option<usize>) -> Self {
        Self {
            frame,
            parent,
            calls: 0,
            own: 0,
            left_out: 0,
            total: 0,
            children: Vec::new(),
            shorter: Rest::default(),
            deeper: Rest::default(),
        }
    }
}

/// Distinct activations, each with its number of occurrences.
type Many = BTreeMap<u32, u64>;

/// Activations of one function in one context.
struct Pending {
    context: usize,
    depth: usize,
    activations: Many,
}

/// The blocks that activations of one function execute in one chain of inlined functions.
#[derive(Default)]
struct Here {
    own: u64,
    left_out: u64,
    callees: BTreeMap<FuncId, Many>,
    /// The number of blocks executed in the chain, in its callees, and in longer chains.
    total: u64,
}

/// The context to which the blocks of a chain are charged.
#[derive(Clone, Copy)]
enum ContextOf {
    Context { at: usize, depth: usize },
    Shorter(usize),
    Deeper(usize),
}

struct Expansion<'a> {
    all: &'a Activations,
    limits: ContextLimits,
    inlining: &'a Inlining,
    contexts: Vec<Context>,
    open: Vec<Pending>,
}

fn expand(
    all: &Activations,
    host: u32,
    limits: ContextLimits,
    inlining: &Inlining,
) -> Vec<Context> {
    let mut root = Context::new(Frame::Host, None);
    root.total = all.total(host);
    let mut expansion = Expansion {
        all,
        limits,
        inlining,
        contexts: vec![root],
        open: vec![Pending {
            context: 0,
            depth: 0,
            activations: BTreeMap::from([(host, 1)]),
        }],
    };
    while let Some(pending) = expansion.open.pop() {
        expansion.look(pending);
    }
    expansion.contexts
}

impl Expansion<'_> {
    /// Creates contexts from the calls of some activations.
    fn look(&mut self, pending: Pending) {
        let first = self.contexts.len();
        let mut places: BTreeMap<ChainId, ContextOf> = BTreeMap::new();
        // Longer chains have larger numbers.
        for (chain, here) in self.chains(pending.activations) {
            let place = match self.inlining.split(chain) {
                None => ContextOf::Context {
                    at: pending.context,
                    depth: pending.depth,
                },
                Some((shorter, frame)) => match places[&shorter] {
                    ContextOf::Context { at, depth } => self.place(at, depth, frame, here.total),
                    merged => merged,
                },
            };
            places.insert(chain, place);
            match place {
                ContextOf::Context { at, .. } => {
                    self.contexts[at].own = here.own;
                    self.contexts[at].left_out = here.left_out;
                }
                merged => {
                    let rest = self.rest(merged);
                    rest.blocks += here.own + here.left_out;
                    rest.left_out += here.left_out;
                }
            }
            for (function, activations) in here.callees {
                self.call(place, function, activations);
            }
        }
        for at in [pending.context]
            .into_iter()
            .chain(first..self.contexts.len())
        {
            let mut children = std::mem::take(&mut self.contexts[at].children);
            children.sort_by_key(|&child| Reverse(self.contexts[child].total));
            self.contexts[at].children = children;
        }
    }

    /// Creates a context of calls to one function.
    fn call(&mut self, from: ContextOf, function: FuncId, activations: Many) {
        let all = self.all;
        let sum = |of: &dyn Fn(u32) -> u64| -> u64 {
            activations.iter().map(|(&id, times)| of(id) * times).sum()
        };
        let blocks = sum(&|id| all.total(id));
        let place = match from {
            ContextOf::Context { at, depth } => {
                self.place(at, depth, Frame::Function(function), blocks)
            }
            merged => merged,
        };
        match place {
            ContextOf::Context { at, depth } => {
                self.contexts[at].calls = sum(&|id| all.begins(id));
                self.open.push(Pending {
                    context: at,
                    depth,
                    activations,
                });
            }
            merged => {
                let rest = self.rest(merged);
                rest.blocks += blocks;
                rest.calls += sum(&|id| all.calls(id));
                rest.left_out += sum(&|id| all.left_out(id));
            }
        }
    }

    /// Returns the context in which to count a function that executes `blocks` blocks. The parent
    /// context calls the function, or the function was inlined into it. Creates the context if the
    /// function is large enough. Each line of a context has its own context.
    fn place(&mut self, parent: usize, depth: usize, frame: Frame, blocks: u64) -> ContextOf {
        let is_line = matches!(frame, Frame::Line(_));
        if !is_line && depth >= self.limits.depth {
            return ContextOf::Deeper(parent);
        }
        if !is_line && blocks < self.limits.min {
            return ContextOf::Shorter(parent);
        }
        let at = self.contexts.len();
        let mut context = Context::new(frame, Some(parent));
        context.total = blocks;
        self.contexts.push(context);
        self.contexts[parent].children.push(at);
        let depth = depth + usize::from(!is_line);
        ContextOf::Context { at, depth }
    }

    fn rest(&mut self, place: ContextOf) -> &mut Rest {
        match place {
            ContextOf::Deeper(at) => &mut self.contexts[at].deeper,
            ContextOf::Shorter(at) | ContextOf::Context { at, .. } => {
                &mut self.contexts[at].shorter
            }
        }
    }

    /// Returns the blocks that activations execute in each chain of inlined functions, including
    /// shorter chains without executed blocks.
    fn chains(&self, activations: Many) -> BTreeMap<ChainId, Here> {
        let all = self.all;
        let mut chains: BTreeMap<ChainId, Here> = BTreeMap::new();
        chains.entry(ChainId::ITSELF).or_default();
        let whole = activations.into_iter();
        let mut open: BTreeMap<(u32, ChainId), u64> = whole
            .map(|(id, times)| ((id, ChainId::ITSELF), times))
            .collect();
        // Parts have smaller numbers than the wholes that contain them.
        while let Some(((id, around), times)) = open.pop_last() {
            for item in all.items(id) {
                let chain = match item.chain {
                    ChainId::INHERITED => around,
                    chain => chain,
                };
                let more = item.times * times;
                let part = item.what.part().map(|part| (part, all.function(part)));
                if let Some((part, None)) = part {
                    *open.entry((part, chain)).or_default() += more;
                    continue;
                }
                let here = chains.entry(chain).or_default();
                match part {
                    Some((part, Some(function))) => {
                        let callees = here.callees.entry(function).or_default();
                        *callees.entry(part).or_default() += more;
                        here.total += all.total(part) * more;
                    }
                    _ if item.what == What::GAP => {
                        here.left_out += more;
                        here.total += more;
                    }
                    _ => {
                        here.own += more;
                        here.total += more;
                    }
                }
            }
        }
        let own = Vec::from_iter(chains.iter().map(|(&chain, here)| (chain, here.total)));
        for (mut chain, total) in own {
            while let Some((shorter, _)) = self.inlining.split(chain) {
                chains.entry(shorter).or_default().total += total;
                chain = shorter;
            }
        }
        chains
    }
}
