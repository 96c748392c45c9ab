//! Finds the path traces of one function.

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use rustc_hash::FxHashMap;

use super::open::Open;
use super::own_traces::{OwnTraces, Sequence};
use super::{CollectError, Stop};
use crate::measures::CallRule;
use crate::twpp::path_builder::PathBuilder;
use crate::twpp::path_table::PathTable;
use crate::twpp::wpp::FunctionPaths;
use crate::{Grammar, Node, Segments, Summary, WholePath};

/// Returns the unique path traces of one function, and the number of calls that took each (Zhang
/// and Gupta 2001, section 3, Table 4).
///
/// The query does not open segments in which the function is neither called nor executed. In other
/// segments, it examines the rules that represent the function's calls, and their parts, once each.
/// It steps over callees, and expands each sequence of nodes once. At the first query, time is
/// linear in these segments' grammars. Later, it is linear in the function's part of the grammars.
/// In both cases, it is also linear in the blocks of the sequences. The traces are in the order of
/// discovery, which need not be the order of time.
///
/// # Errors
/// Returns an error if a segment cannot be read, a part of the function was left out of the path,
/// or there are too many different traces.
pub fn function_paths<S: Segments>(
    path: &WholePath<S>,
    function: FuncId,
) -> Result<FunctionPaths, CollectError<S::Error>> {
    let mut found = PathsOfFunction {
        table: PathTable::new(function),
        own: OwnTraces::default(),
        numbers: FxHashMap::default(),
        scratch: PathBuilder::default(),
    };
    let mut open = Open::default();
    for (segment, summary) in path.segments().summaries().iter().enumerate() {
        if calls_in(summary, function) == 0
            && (open.is_empty() || !executes(summary, path.nodes(), function))
        {
            open.pass(summary)
                .try_for_each(|trace| found.add(trace).map(drop))?;
            continue;
        }
        let measured = path.open(segment)?;
        let grammar = &measured.segment.grammar;
        open.follow(&measured, 0, path.nodes(), Some(function), |trace| {
            found.add(trace).map(drop)
        })?;
        found.own.begin_segment(grammar.rules.len());
        for rule in measured.call_rules().of(function) {
            found.add_rule(grammar, rule, path.nodes())?;
        }
    }
    for trace in open.finish() {
        let number = found.add(trace)?;
        found.table.path(number).unfinished += 1;
    }
    Ok(found.table.finish())
}

/// Returns the number of activations of a function that begin in a segment.
pub(super) fn calls_in(summary: &Summary, function: FuncId) -> u64 {
    let counts = &summary.call_counts;
    let at = counts.binary_search_by_key(&function, |&(function, _)| function);
    at.map_or(0, |at| counts[at].1)
}

/// Whether a function executes blocks in a segment.
pub(super) fn executes(
    summary: &Summary,
    nodes: &PrimaryMap<NodeId, Node>,
    function: FuncId,
) -> bool {
    let mut executed = summary.node_counts.iter();
    executed.any(|&(node, _)| {
        let node = nodes.get(node);
        node.is_some_and(|node| node.function == function)
    })
}

struct PathsOfFunction {
    table: PathTable,
    own: OwnTraces,
    /// For each sequence of `own` that a whole call executes, the number of its unique trace.
    numbers: FxHashMap<Sequence, u32>,
    /// A reusable builder for the trace of a rule.
    scratch: PathBuilder,
}

impl PathsOfFunction {
    fn add(&mut self, mut trace: PathBuilder) -> Result<u32, Stop> {
        let number = self.table.add(&mut trace)?;
        self.table.path(number).calls += 1;
        Ok(number)
    }

    /// Adds the calls that a rule of the segment represents.
    fn add_rule(
        &mut self,
        grammar: &Grammar,
        rule: CallRule,
        nodes: &PrimaryMap<NodeId, Node>,
    ) -> Result<(), Stop> {
        let sequence = self.own.of_call(grammar, rule.rule, nodes)?;
        let number = match self.numbers.get(&sequence) {
            Some(&number) => number,
            None => {
                self.own.expand(sequence, |node| {
                    self.scratch.extend(&nodes[node].blocks);
                });
                let number = self.table.add(&mut self.scratch)?;
                self.numbers.insert(sequence, number);
                number
            }
        };
        self.table.path(number).calls += rule.times;
        Ok(())
    }
}
