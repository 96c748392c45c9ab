//! Reports how control flowed through a function in a stretch of the run.

use afterimage_ids::BlockId;
use afterimage_present::document::objects::Function;
use afterimage_present::{FlowBlock, FlowDocument, FlowEdge, FlowTrace, SourceRange};
use afterimage_program::BlockEnd;
use afterimage_replay::whole_path::Outlines;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::with_names;
use crate::range::ended_in;
use crate::trace::Bounds;

/// Asks how often a function's blocks, edges and path traces were executed in a stretch of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowQuery {
    /// The function's index or name.
    pub function: String,
    /// The stretch of the run.
    pub bounds: Bounds,
}

impl FlowQuery {
    /// The maximum number of calls for which to list paths. Each call must be examined.
    pub const CALLS: u64 = 10_000;
    /// The maximum number of blocks to list for a path.
    const BLOCKS: usize = 64;

    pub(crate) fn answer(&self, session: &Session) -> Result<FlowDocument> {
        session.ensure_whole_path()?;
        with_names(session, |program| {
            let path = session.path()?;
            let id = program.function(&self.function)?;
            let Some(function) = session.program().function(id) else {
                let name = program.names.short(id);
                bail!("{name} is imported, so it has no graph");
            };
            let window = self.bounds.window(&program.positions()?)?;
            let counts = session.window_counts(window)?;
            let ended = ended_in(session, window)?;
            let is_exit = |block: BlockId| function.cfg.blocks[block].end == BlockEnd::Exit;
            let mut edges: Vec<FlowEdge> = Vec::new();
            let mut blocks = Vec::new();
            for (block, code) in function.cfg.blocks.iter() {
                if is_exit(block) {
                    continue;
                }
                let count = counts.block(id, block);
                blocks.push(FlowBlock {
                    block: block.as_u32(),
                    count,
                });
                let is_call = matches!(code.end, BlockEnd::Call(_));
                let first = edges.len();
                for &edge in function.cfg.graph.out_edges(block) {
                    let to = function.cfg.edges[edge].to;
                    let known = edges[first..].iter_mut().find(|one| one.to == to.as_u32());
                    match known {
                        Some(known) => known.edges.push(edge.as_u32()),
                        None => edges.push(FlowEdge {
                            edges: vec![edge.as_u32()],
                            from: block.as_u32(),
                            to: to.as_u32(),
                            count: if is_call {
                                counts.within(id, block, to)
                            } else {
                                counts.after(id, block, to)
                            },
                        }),
                    }
                }
                // All control flow that does not continue in the function leaves it, unless the run
                // ends here.
                let inside: u64 = edges[first..].iter().map(|edge| edge.count).sum();
                let stopped = u64::from(ended == Some((id, block)));
                if !is_call {
                    let mut out = edges[first..].iter_mut();
                    if let Some(out) = out.find(|edge| is_exit(BlockId::from_u32(edge.to))) {
                        let left = count.checked_sub(inside + stopped);
                        out.count = left.context("the counts contradict each other: edges out of a block were executed more often than the block")?;
                    }
                }
            }
            let calls = path.activations(id)?;
            let before = match window.first {
                0 | 1 => 0,
                first => calls.rank(first - 1)?,
            };
            let last = calls.rank(window.last)?;
            let traces = if last == before {
                Some(Vec::new())
            } else if last - before <= Self::CALLS {
                let calls = before + 1..=last;
                let found = Outlines::of(path, id, Self::BLOCKS, Some(calls))?.traces;
                let rows = (1..).zip(found).filter(|(_, one)| one.chosen > 0);
                let mut rows = Vec::from_iter(rows.map(|(number, one)| FlowTrace {
                    trace: number,
                    calls: one.chosen,
                    unfinished: one.chosen_unfinished,
                    length: one.length,
                    beginning: one.beginning.iter().map(|block| block.as_u32()).collect(),
                }));
                rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
                Some(rows)
            } else {
                None
            };
            Ok(FlowDocument {
                function: Function::new(program.names, id),
                range: SourceRange {
                    first_t: window.first,
                    last_t: window.last,
                },
                blocks,
                edges,
                calls: last - before,
                traces,
                most: Self::CALLS,
            })
        })
    }
}
