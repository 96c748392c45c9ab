//! Estimates the size of windows.

use std::collections::HashMap;
use std::ops::Range;

use afterimage::Session;
use afterimage_ids::{FuncId, NodeId, SecondaryMap};
use afterimage_program::{Cfg, Ssa};
use afterimage_wpp::Segments;
use anyhow::Result;

use crate::schema::Table;
use crate::windows::Windows;

/// The approximate size of a part of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub rows: u64,
    pub bytes: u64,
}

/// Returns the approximate number of bytes per row of a table, measured on a run of bzip2.
fn bytes_a_row(table: &str) -> f64 {
    match table {
        "steps" => 0.3,
        "memory" => 0.9,
        "calls" => 1.4,
        _ => 1.2,
    }
}

/// Estimates the size of the selected windows, in proportion to their share of the run. The rows of
/// the whole run follow from the executions of each path.
pub(crate) fn estimate(
    session: &Session,
    windows: Windows,
    selected: &Range<u64>,
    tables: &[&'static Table],
) -> Result<Estimate> {
    let path = session.path()?;
    let mut counts: SecondaryMap<NodeId, u64> = SecondaryMap::new();
    for summary in path.segments().summaries() {
        for &(node, count) in &summary.node_counts {
            counts[node] = counts[node].saturating_add(count);
        }
    }
    let mut known: HashMap<FuncId, Vec<u64>> = HashMap::new();
    let (mut statements, mut entries) = (0u64, 0u64);
    for (id, node) in path.nodes().iter().filter(|(id, _)| counts[*id] > 0) {
        let Some(function) = session.program().function(node.function) else {
            continue;
        };
        let lengths = known.entry(node.function).or_insert_with(|| {
            let ssa = Ssa::build(session.program(), session.bytes(), function);
            ssa.map_or_else(|_| Vec::new(), |ssa| statements_of(&ssa, &function.cfg))
        });
        let own = node.blocks.iter().map(|block| {
            let index = block.as_u32() as usize;
            lengths.get(index).copied().unwrap_or(0)
        });
        statements = statements.saturating_add(counts[id].saturating_mul(own.sum()));
        if node.blocks.first().is_some_and(|first| first.as_u32() == 0) {
            entries = entries.saturating_add(counts[id]);
        }
    }
    let share = (selected.end - selected.start) as f64 / windows.count() as f64;
    let mut sum = Estimate::default();
    for table in tables {
        let rows = match table.name {
            "steps" => path.length() as f64,
            "calls" => entries as f64,
            "memory" => 0.3 * statements as f64,
            "dependences" => 1.8 * statements as f64,
            _ => statements as f64,
        };
        let rows = rows * share;
        sum.rows += rows as u64;
        sum.bytes += (rows * bytes_a_row(table.name)) as u64;
    }
    Ok(sum)
}

/// Returns the number of statements of each block.
fn statements_of(ssa: &Ssa, cfg: &Cfg) -> Vec<u64> {
    let mut lengths = vec![0; cfg.blocks.len()];
    for statement in ssa.statements.values() {
        if let Some(length) = lengths.get_mut(statement.block.as_u32() as usize) {
            *length += 1;
        }
    }
    lengths
}
