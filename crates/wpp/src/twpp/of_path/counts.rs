//! Counts the unique path traces of functions, without building them.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::CollectError;
use super::fingerprint::{Fingerprint, Points};
use crate::measures::occurrences;
use crate::{Grammar, Kind, Root, Segments, Symbol, WholePath};

/// Counts for the calls to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCounts {
    /// The function that was called.
    pub function: FuncId,
    /// The number of calls to the function.
    pub calls: u64,
    /// The number of calls that never returned.
    pub unfinished: u64,
    /// The number of unique path traces that the calls took, or `None` if blocks of the function
    /// were left out of the path.
    pub paths: Option<u64>,
    /// The number of blocks that the calls executed themselves.
    pub blocks: u64,
}

/// Returns the counts of all functions that were called, ascending by function. Time: linear in the
/// grammars, however long the traces are.
///
/// Traces are distinguished by their lengths and by 122-bit fingerprints with random keys. Among n
/// traces of at most m blocks, the probability that two different traces are confused is below n²
/// m² / 2^121. For a million traces of a million blocks, that is one in 2^41. [`super::collect`]
/// compares the traces themselves.
///
/// # Errors
/// Returns an error if a segment cannot be read.
pub fn count_paths<S: Segments>(
    path: &WholePath<S>,
) -> Result<Vec<PathCounts>, CollectError<S::Error>> {
    let points = Points::random();
    let of_nodes: PrimaryMap<_, _> = path
        .nodes()
        .values()
        .map(|node| points.of(&node.blocks))
        .collect();
    let mut found = HashMap::default();
    // The open activations, outermost first.
    let mut open: Vec<(FuncId, Fingerprint)> = Vec::new();
    for (segment, summary) in path.segments().summaries().iter().enumerate() {
        let measured = path.open(segment)?;
        let grammar = &measured.segment.grammar;
        let times = occurrences(&measured);
        let own = own_fingerprints(grammar, &of_nodes, |rule, function, trace| {
            if times[rule.as_u32() as usize] > 0 {
                entry(&mut found, function).traces.insert(trace);
            }
        });
        for item in &measured.segment.root {
            match *item {
                Root::Run(symbol) => {
                    if let Some((_, trace)) = open.last_mut() {
                        *trace = trace.then(own_of(symbol, &own, &of_nodes));
                    }
                }
                Root::Enter(function) => open.push((function, Fingerprint::EMPTY)),
                Root::Leave => {
                    if let Some((function, trace)) = open.pop() {
                        entry(&mut found, function).traces.insert(trace);
                    }
                }
            }
        }
        for &(function, calls) in &summary.call_counts {
            entry(&mut found, function).calls += calls;
        }
        for &(node, count) in &summary.node_counts {
            let node = &path.nodes()[node];
            let found = entry(&mut found, node.function);
            found.blocks += count * node.blocks.len() as u64;
            found.left_out |= node.left_out > 0;
        }
    }
    for (function, trace) in open {
        let counts = entry(&mut found, function);
        counts.traces.insert(trace);
        counts.unfinished += 1;
    }
    let counts = found.into_iter().map(|(function, found)| PathCounts {
        function,
        calls: found.calls,
        unfinished: found.unfinished,
        paths: Some(found.traces.len() as u64).filter(|_| !found.left_out),
        blocks: found.blocks,
    });
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable_by_key(|counts| counts.function);
    Ok(counts)
}

/// Returns the fingerprint of the blocks that the surrounding activation executes in each rule,
/// without the blocks of its callees. Passes each rule that represents a call to `call`, with the
/// function and the fingerprint of the blocks that the call executes itself.
pub(super) fn own_fingerprints(
    grammar: &Grammar,
    of_nodes: &PrimaryMap<NodeId, Fingerprint>,
    mut call: impl FnMut(RuleId, FuncId, Fingerprint),
) -> PrimaryMap<RuleId, Fingerprint> {
    let mut own = PrimaryMap::with_capacity(grammar.rules.len());
    for (id, rule) in grammar.rules.iter() {
        let symbols = grammar.symbols_of(id).iter();
        let trace = symbols.fold(Fingerprint::EMPTY, |trace, &symbol| {
            trace.then(own_of(symbol, &own, of_nodes))
        });
        own.push(match rule.kind {
            Kind::Sequence => trace,
            Kind::Repeat(rounds) => trace.repeated(rounds),
            Kind::Call(function) => {
                call(id, function, trace);
                Fingerprint::EMPTY
            }
        });
    }
    own
}

/// Returns the fingerprint of the blocks that the surrounding activation executes in a symbol.
pub(super) fn own_of(
    symbol: Symbol,
    own: &PrimaryMap<RuleId, Fingerprint>,
    of_nodes: &PrimaryMap<NodeId, Fingerprint>,
) -> Fingerprint {
    match (symbol.as_rule(), symbol.as_node()) {
        (Some(rule), _) => own[rule],
        (None, Some(node)) => of_nodes[node],
        (None, None) => Fingerprint::EMPTY,
    }
}

/// The counts for one function so far.
#[derive(Default)]
struct CallsOfFunction {
    calls: u64,
    unfinished: u64,
    blocks: u64,
    left_out: bool,
    traces: FxHashSet<Fingerprint>,
}

type Functions = HashMap<FuncId, CallsOfFunction, FxBuildHasher>;

fn entry(functions: &mut Functions, function: FuncId) -> &mut CallsOfFunction {
    functions.entry(function).or_default()
}
