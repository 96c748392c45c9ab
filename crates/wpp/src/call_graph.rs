//! Counts the dynamic call graph in the grammar, without expanding the grammar.

mod components;
mod contexts;
mod open;

use std::collections::BTreeMap;

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use thiserror::Error;

use self::contexts::Contexts;
use self::open::Open;
use crate::measures::Measured;
use crate::{Kind, Node, PathError, Root, Segments, Symbol, WholePath};

/// The number of recursive functions that one pass over a grammar can count.
const LANES: usize = 16;

/// The caller and the callee. If there is no caller, the host made the call.
type Key = (Option<FuncId>, FuncId);

/// The calls to one function by another, or by the host.
///
/// The caller is the activation that continues when the callee returns. After a tail call, this is
/// the caller of the function that made the tail call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEdge {
    /// The caller, or `None` for the host.
    pub caller: Option<FuncId>,
    /// The function that is called.
    pub callee: FuncId,
    /// The number of activations that begin with these calls.
    pub calls: u64,
    /// The number of blocks that these activations execute themselves.
    pub own: u64,
    /// The number of blocks executed while one of these activations is open and not nested in
    /// another activation of the callee. So the sum over a function's callers counts every block at
    /// most once, even if the function is recursive.
    pub inclusive: u64,
}

/// The totals of all calls to a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotal {
    /// The number of activations.
    pub calls: u64,
    /// The number of blocks that the activations execute themselves.
    pub own: u64,
    /// The number of blocks executed while at least one activation is open.
    pub inclusive: u64,
}

/// The dynamic call graph of a run, which has all edges along which a call was made. The edges
/// ascend by caller, with the host first, and then by callee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph {
    edges: Vec<CallEdge>,
}

/// The reason why the call graph cannot be computed. `E` is the error of loading a segment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallGraphError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// A function is called 2^64 times or more.
    #[error("there are more calls than can be counted")]
    Uncountable,
}

impl CallGraph {
    /// Returns the edges.
    pub fn edges(&self) -> &[CallEdge] {
        &self.edges
    }

    /// Returns the calls that a function, or the host, made. Time: O(log edges).
    pub fn callees(&self, caller: Option<FuncId>) -> &[CallEdge] {
        let start = self.edges.partition_point(|edge| edge.caller < caller);
        let end = self.edges.partition_point(|edge| edge.caller <= caller);
        &self.edges[start..end]
    }

    /// Returns the calls to a function. Time: linear in the number of edges.
    pub fn callers(&self, callee: FuncId) -> impl Iterator<Item = &CallEdge> {
        self.edges.iter().filter(move |edge| edge.callee == callee)
    }

    /// Returns the calls to each function that was called. Returns `None` if a function's calls are
    /// 2^64 or more.
    pub fn totals(&self) -> Option<BTreeMap<FuncId, CallTotal>> {
        let mut totals = BTreeMap::<FuncId, CallTotal>::new();
        for edge in &self.edges {
            let total = totals.entry(edge.callee).or_default();
            total.calls = total.calls.checked_add(edge.calls)?;
            // The sums are at most the number of blocks in the run, so they cannot overflow.
            total.own += edge.own;
            total.inclusive += edge.inclusive;
        }
        Some(totals)
    }
}

impl<S: Segments> WholePath<S> {
    /// Counts all calls, at the first request. Opens each segment once. Time: linear in the size of
    /// the segment's grammar, plus one pass over the grammar for every 16 functions that the
    /// segment may call recursively.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read, or there are 2^64 calls or more.
    pub fn call_graph(&self) -> Result<&CallGraph, CallGraphError<S::Error>> {
        if let Some(known) = self.calls.get() {
            return Ok(known);
        }
        let counted = self.count_calls()?;
        Ok(self.calls.get_or_init(|| counted))
    }

    fn count_calls(&self) -> Result<CallGraph, CallGraphError<S::Error>> {
        let mut sums = BTreeMap::<Key, CallEdge>::new();
        let mut open = Open::default();
        for segment in 0..self.segments().summaries().len() {
            let measured = self.open(segment)?;
            let before = open.clone();
            let mut own = BTreeMap::new();
            count(&measured, self.nodes(), &mut open, &mut own)
                .ok_or(CallGraphError::Uncountable)?;
            // A chain of calls from an activation to a nested activation of the same function
            // consists of calls that were made in the segment or were open before it.
            let recursive = components::recursive(own.keys().copied().chain(before.calls()));
            for edge in own.values_mut() {
                if recursive.binary_search(&edge.callee).is_ok() {
                    edge.inclusive = 0;
                }
            }
            for lanes in recursive.chunks(LANES) {
                count_outermost(&measured, lanes, before.clone(), &mut own);
            }
            for (key, more) in own {
                let sum = edge(&mut sums, key);
                let calls = sum.calls.checked_add(more.calls);
                sum.calls = calls.ok_or(CallGraphError::Uncountable)?;
                sum.own += more.own;
                sum.inclusive += more.inclusive;
            }
            open.ended(&mut |key, length| edge(&mut sums, key).inclusive += length);
        }
        open.close(self.length());
        open.ended(&mut |key, length| edge(&mut sums, key).inclusive += length);
        Ok(CallGraph {
            edges: sums.into_values().collect(),
        })
    }
}

fn edge(sums: &mut BTreeMap<Key, CallEdge>, (caller, callee): Key) -> &mut CallEdge {
    sums.entry((caller, callee)).or_insert(CallEdge {
        caller,
        callee,
        calls: 0,
        own: 0,
        inclusive: 0,
    })
}

/// Returns the number of blocks that a terminal of the given width adds to its function. Left-out
/// blocks belong to no function.
fn own_blocks(nodes: &PrimaryMap<NodeId, Node>, symbol: Symbol, width: u64) -> u64 {
    match symbol.as_node() {
        Some(node) if nodes[node].left_out > 0 => 0,
        _ => width,
    }
}

/// Counts the blocks that each rule executes, excluding blocks in activations that begin in the
/// rule.
fn own_lengths(measured: &Measured, nodes: &PrimaryMap<NodeId, Node>) -> Vec<u64> {
    let grammar = &measured.segment.grammar;
    let mut own = Vec::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rules.iter() {
        let mut sum = 0;
        let mut before = 0;
        for (at, &symbol) in grammar.symbols_of(id).iter().enumerate() {
            let end = measured.layout.end(id, at);
            sum += match symbol.as_rule() {
                None => own_blocks(nodes, symbol, end - before),
                Some(child) => match grammar.rules[child].kind {
                    Kind::Call(_) => 0,
                    _ => own[child.as_u32() as usize],
                },
            };
            before = end;
        }
        own.push(match rule.kind {
            Kind::Repeat(times) => sum * times,
            _ => sum,
        });
    }
    own
}

/// Adds the calls made in a segment, and the time of the calls that end in it. Returns `None` if a
/// number overflows.
fn count(
    measured: &Measured,
    nodes: &PrimaryMap<NodeId, Node>,
    open: &mut Open,
    sums: &mut BTreeMap<Key, CallEdge>,
) -> Option<()> {
    let grammar = &measured.segment.grammar;
    let own = own_lengths(measured, nodes);
    let own_of = |symbol: Symbol, width: u64| match symbol.as_rule() {
        None => own_blocks(nodes, symbol, width),
        Some(rule) => match grammar.rules[rule].kind {
            Kind::Call(_) => 0,
            _ => own[rule.as_u32() as usize],
        },
    };
    let mut contexts = Contexts::<1>::new(measured.calls.len());
    for (item, root) in measured.segment.root.iter().enumerate() {
        match *root {
            Root::Run(symbol) => {
                let width = measured.root_starts[item + 1] - measured.root_starts[item];
                if let Some(key) = open.innermost() {
                    edge(sums, key).own += own_of(symbol, width);
                }
                if let Some(rule) = symbol.as_rule() {
                    contexts.add(rule, open.function(), [1])?;
                }
            }
            Root::Enter(function) => {
                let key = open.enter(
                    function,
                    measured.segment.before + measured.root_starts[item],
                );
                let edge = edge(sums, key);
                edge.calls = edge.calls.checked_add(1)?;
            }
            Root::Leave => {
                open.leave(measured.segment.before + measured.root_starts[item]);
            }
        }
    }
    for (id, rule) in measured.segment.grammar.rules.iter().rev() {
        if !measured.calls[id] || contexts.is_empty(id) {
            continue;
        }
        if let Kind::Call(function) = rule.kind {
            let mut all: u64 = 0;
            for (caller, [times]) in contexts.of(id) {
                let edge = edge(sums, (caller, function));
                edge.calls = edge.calls.checked_add(times)?;
                edge.own += times * own[id.as_u32() as usize];
                // If the function is already active, this counts its blocks twice.
                // `count_outermost` corrects the sum later.
                edge.inclusive = edge
                    .inclusive
                    .wrapping_add(times.wrapping_mul(measured.layout.length(id)));
                all = all.checked_add(times)?;
            }
            contexts.hand_down(measured, id, Some((function, [all])))?;
        } else {
            contexts.hand_down(measured, id, None)?;
        }
    }
    Some(())
}

/// Adds the inclusive time of activations of the functions in `lanes`. Only activations that begin
/// and end in the segment, and are not inside another activation of the same function, are counted.
fn count_outermost(
    measured: &Measured,
    lanes: &[FuncId],
    mut open: Open,
    sums: &mut BTreeMap<Key, CallEdge>,
) {
    let mut contexts = Contexts::<LANES>::new(measured.calls.len());
    for (item, root) in measured.segment.root.iter().enumerate() {
        match *root {
            Root::Run(symbol) => {
                if let Some(rule) = symbol.as_rule() {
                    let mut times = [0; LANES];
                    for (times, &function) in times.iter_mut().zip(lanes) {
                        *times = u64::from(!open.is_open(function));
                    }
                    // `count` has already added these numbers without overflow.
                    let _ = contexts.add(rule, open.function(), times);
                }
            }
            Root::Enter(function) => {
                open.enter(
                    function,
                    measured.segment.before + measured.root_starts[item],
                );
            }
            Root::Leave => open.leave(measured.segment.before + measured.root_starts[item]),
        }
    }
    for (id, rule) in measured.segment.grammar.rules.iter().rev() {
        if !measured.calls[id] || contexts.is_empty(id) {
            continue;
        }
        let called = if let Kind::Call(function) = rule.kind {
            let lane = lanes.iter().position(|&lane| lane == function);
            let mut all = [0; LANES];
            for (caller, times) in contexts.of(id) {
                if let Some(lane) = lane.filter(|&lane| times[lane] > 0) {
                    edge(sums, (caller, function)).inclusive +=
                        times[lane] * measured.layout.length(id);
                }
                for (all, times) in all.iter_mut().zip(times) {
                    *all += times;
                }
            }
            if let Some(lane) = lane {
                all[lane] = 0;
            }
            Some((function, all))
        } else {
            None
        };
        let _ = contexts.hand_down(measured, id, called);
    }
}
