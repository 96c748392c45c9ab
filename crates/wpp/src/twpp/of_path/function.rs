//! The path traces of one function.

use afterimage_ids::FuncId;

use super::open::{Open, own_trace_of_call};
use super::{CollectError, Stop};
use crate::measures::Measured;
use crate::twpp::path_builder::PathBuilder;
use crate::twpp::path_table::PathTable;
use crate::twpp::wpp::FunctionPaths;
use crate::{Kind, Root, Segments, Summary, Symbol, WholePath};

/// The unique path traces of one function, and how many calls took each (Zhang and Gupta 2001, section 3, Table 4).
///
/// Segments in which it is neither called nor executed are not opened. In the others the rules that stand for its calls are walked, once however often
/// they occur, and what is called from there is stepped over. Time is linear in these segments' grammars and in the blocks of
/// the rules' own traces. The traces are in the order in which they are found, which need not be that of time.
///
/// # Errors
/// If a segment cannot be read, something of the function was left out of the path, or there are too many different traces.
pub fn function_paths<S: Segments>(
    path: &WholePath<S>,
    function: FuncId,
) -> Result<FunctionPaths, CollectError<S::Error>> {
    let own = |summary: &Summary| {
        let mut nodes = summary.node_counts.iter();
        nodes.any(|&(node, _)| {
            let node = path.nodes().get(node);
            node.is_some_and(|node| node.function == function)
        })
    };
    let mut found = Found {
        table: PathTable::new(function),
        scratch: PathBuilder::default(),
    };
    let mut open = Open::default();
    for (segment, summary) in path.segments().summaries().iter().enumerate() {
        if calls_in(summary, function) == 0 && (open.is_empty() || !own(summary)) {
            open.pass(summary)
                .try_for_each(|trace| found.add(trace, 1))?;
            continue;
        }
        let measured = path.open(segment)?;
        let grammar = &measured.segment.grammar;
        open.follow(&measured, 0, path.nodes(), Some(function), |trace| {
            found.add(trace, 1)
        })?;
        let times = occurrences(&measured);
        for (id, rule) in grammar.rules.iter() {
            let times = times[id.as_u32() as usize];
            if times > 0 && rule.kind == Kind::Call(function) {
                own_trace_of_call(grammar, id, path.nodes(), &mut found.scratch)?;
                found.add_scratch(times)?;
            }
        }
    }
    for trace in open.finish() {
        let number = found.number(trace, 1)?;
        found.table.path(number).unfinished += 1;
    }
    Ok(found.table.finish())
}

/// How many activations of a function begin in a segment.
pub(super) fn calls_in(summary: &Summary, function: FuncId) -> u64 {
    let counts = &summary.call_counts;
    let at = counts.binary_search_by_key(&function, |&(function, _)| function);
    at.map_or(0, |at| counts[at].1)
}

struct Found {
    table: PathTable,
    /// For the trace of a rule: keeps its memory.
    scratch: PathBuilder,
}

impl Found {
    fn add(&mut self, trace: PathBuilder, times: u64) -> Result<(), Stop> {
        self.number(trace, times).map(drop)
    }

    fn number(&mut self, mut trace: PathBuilder, times: u64) -> Result<u32, Stop> {
        let number = self.table.add(&mut trace)?;
        self.table.path(number).calls += times;
        Ok(number)
    }

    fn add_scratch(&mut self, times: u64) -> Result<(), Stop> {
        let number = self.table.add(&mut self.scratch)?;
        self.table.path(number).calls += times;
        Ok(())
    }
}

/// How often each rule occurs in a segment. Linear in the grammar.
///
/// What is counted of calls fits, since the segment's counts were verified; what else there is may saturate, and is never asked for.
pub(super) fn occurrences(measured: &Measured) -> Vec<u64> {
    let segment = &measured.segment;
    let mut counts = vec![0u64; segment.grammar.rules.len()];
    let add = |counts: &mut Vec<u64>, symbol: Symbol, times: u64| {
        if let Some(rule) = symbol.as_rule() {
            let count = &mut counts[rule.as_u32() as usize];
            *count = count.saturating_add(times);
        }
    };
    for item in &segment.root {
        if let Root::Run(symbol) = *item {
            add(&mut counts, symbol, 1);
        }
    }
    for (id, rule) in segment.grammar.rules.iter().rev() {
        let mut times = counts[id.as_u32() as usize];
        if times == 0 || !measured.calls[id] {
            continue;
        }
        if let Kind::Repeat(rounds) = rule.kind {
            times = times.saturating_mul(rounds);
        }
        for &symbol in segment.grammar.symbols_of(id) {
            add(&mut counts, symbol, times);
        }
    }
    counts
}
