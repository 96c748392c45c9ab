//! Checks that the sums over the path equal the counts.

use std::collections::{HashMap, HashSet};

use afterimage_ids::{BlockId, Counts, EntityRef, FuncId, FunctionCounts, NodeId};
use afterimage_program::{BlockKind, Function};
use afterimage_wpp::Summary;

use super::flow::Flow;
use super::nodes::{NodeEnd, Nodes};
use super::{PathReport, PathRule};
use afterimage_profile::block_counts;

/// The sums over a function's executions in the path.
#[derive(Default)]
struct Sums {
    entries: u64,
    blocks: HashMap<BlockId, u64>,
    /// The number of times that each edge is taken, by the blocks that it joins.
    edges: HashMap<(BlockId, BlockId), u64>,
    /// Blocks that end with a call that returned an unknown number of times.
    unclear: HashSet<BlockId>,
}

/// The sums over the path, by defined function.
pub(super) struct Totals<'n, 'a> {
    nodes: &'n Nodes<'a>,
    functions: Vec<Sums>,
}

impl<'n, 'a> Totals<'n, 'a> {
    /// Computes the sums. Takes time linear in the nodes and summaries.
    pub fn new(nodes: &'n Nodes<'a>, summaries: &[Summary], flow: &Flow<'_, '_>) -> Self {
        let imports = nodes.program.imports.len();
        let mut functions: Vec<Sums> = Vec::new();
        functions.resize_with(nodes.program.functions.len(), Sums::default);
        let mut counts: Vec<u64> = vec![0; nodes.nodes.len()];
        for summary in summaries {
            for &(node, count) in &summary.node_counts {
                counts[node.index()] = counts[node.index()].saturating_add(count);
            }
            for &(function, count) in &summary.call_counts {
                if let Some(sums) = defined(&mut functions, imports, function) {
                    sums.entries = sums.entries.saturating_add(count);
                }
            }
        }
        let mut standing: HashMap<NodeId, u64> = HashMap::new();
        for node in flow.standing() {
            *standing.entry(node).or_default() += 1;
        }
        for (id, node) in nodes.nodes.iter() {
            let count = counts[id.index()];
            let Some(sums) = defined(&mut functions, imports, node.function) else {
                continue;
            };
            for &block in &node.blocks {
                add(sums.blocks.entry(block).or_default(), count);
            }
            for pair in node.blocks.windows(2) {
                add(sums.edges.entry((pair[0], pair[1])).or_default(), count);
            }
            let Some(&last) = node.blocks.last() else {
                continue;
            };
            let left = count.saturating_sub(standing.get(&id).copied().unwrap_or(0));
            let cfg = nodes.program.function(node.function).map(|f| &f.cfg);
            let Some(exit) = cfg.map(|cfg| cfg.graph.exit()) else {
                continue;
            };
            let mut take =
                |to: BlockId, times| add(sums.edges.entry((last, to)).or_default(), times);
            match nodes.ends[id] {
                NodeEnd::Goes(to) => take(to, left),
                NodeEnd::Ends(_) => take(exit, left),
                // The callee may have been left out, and the run may end in it.
                NodeEnd::Calls { .. } if nodes.partial => {}
                NodeEnd::Calls {
                    returns, throws, ..
                } => {
                    let thrown = flow.thrown.get(&id).copied().unwrap_or(0).min(left);
                    take(returns.unwrap_or(exit), left - thrown);
                    if let Some(throws) = throws {
                        take(throws, thrown);
                    }
                    if flow.unclear.contains(&id) {
                        sums.unclear.insert(last);
                    }
                }
                NodeEnd::Cut | NodeEnd::Unknown => {}
            }
        }
        Self { nodes, functions }
    }

    /// Compares the sums with the counts of a file, which must have the same number of functions.
    pub fn compare(&self, counts: &Counts, report: &mut PathReport) {
        let functions = self.nodes.program.functions.iter();
        for ((function, sums), counts) in functions.zip(&self.functions).zip(&counts.functions) {
            let partial = self.nodes.partial;
            if is_wrong(sums.entries, counts.entries, partial) {
                let (id, found, said) = (function.id, sums.entries, counts.entries);
                let text = format!("{id} has {found} activations, but COUNTS says {said}");
                report.find(PathRule::CallCounts, text);
            }
            if counts.edges.len() == function.cfg.edges.len() {
                sums.compare_blocks(function, counts, partial, report);
                sums.compare_edges(function, counts, partial, report);
            }
        }
    }
}

impl Sums {
    fn compare_blocks(
        &self,
        function: &Function,
        counts: &FunctionCounts,
        partial: bool,
        report: &mut PathReport,
    ) {
        // Other checks report counts that contradict each other.
        let Ok(expected) = block_counts(function, counts) else {
            return;
        };
        for (block, kind) in &function.cfg.blocks {
            let found = self.blocks.get(&block).copied().unwrap_or(0);
            if kind.kind == BlockKind::Code && is_wrong(found, expected[block], partial) {
                let text = format!(
                    "{}, {block} is executed {found} times, but COUNTS says {}",
                    function.id, expected[block]
                );
                report.find(PathRule::BlockCounts, text);
            }
        }
    }

    fn compare_edges(
        &self,
        function: &Function,
        counts: &FunctionCounts,
        partial: bool,
        report: &mut PathReport,
    ) {
        // This closure groups the ways out of a block that the path does not distinguish.
        let group = |from: BlockId, to: BlockId| {
            let to = (!self.unclear.contains(&from)).then_some(to);
            (from, to)
        };
        let mut sums: HashMap<(BlockId, Option<BlockId>), (u64, u64)> = HashMap::new();
        for (&(from, to), &count) in &self.edges {
            add(&mut sums.entry(group(from, to)).or_default().0, count);
        }
        for (id, edge) in function.cfg.edges.iter() {
            if function.cfg.blocks[edge.from].kind == BlockKind::Code {
                let sum = sums.entry(group(edge.from, edge.to)).or_default();
                add(&mut sum.1, counts.edges[id.index()]);
            }
        }
        let mut wrong: Vec<_> = sums
            .into_iter()
            .filter(|(_, sum)| is_wrong(sum.0, sum.1, partial))
            .collect();
        wrong.sort_unstable();
        for ((from, to), (found, said)) in wrong {
            let to = to.map_or_else(
                || "the block after its call".to_owned(),
                |to| to.to_string(),
            );
            let text = format!(
                "{}: control goes from {from} to {to} {found} times, but COUNTS says {said}",
                function.id
            );
            report.find(PathRule::EdgeCounts, text);
        }
    }
}

fn defined(functions: &mut [Sums], imports: usize, function: FuncId) -> Option<&mut Sums> {
    functions.get_mut(function.index().checked_sub(imports)?)
}

/// Whether a sum contradicts a count. On a path with gaps, the sum may be smaller.
fn is_wrong(found: u64, said: u64, partial: bool) -> bool {
    found > said || found < said && !partial
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
