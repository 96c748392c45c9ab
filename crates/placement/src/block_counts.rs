//! Computes the frequencies of blocks.

use afterimage_ids::{BlockId, Counts, EntityRef, FuncId};
use afterimage_program::{Function, Program};

use crate::solve::check_shape;
use crate::{Counted, Plan, Site, SolveError};

/// Derives the number of executions of every block of every function from the counts of the edges.
/// EXIT counts once per activation, virtual edges included.
///
/// # Errors
/// Returns an error if the counts belong to another program, or a sum exceeds 64 bits.
pub fn block_counts(program: &Program, counts: &Counts) -> Result<Vec<Vec<u64>>, SolveError> {
    let (expected, found) = (program.functions.len(), counts.functions.len());
    if expected != found {
        return Err(SolveError::ForeignProgram { expected, found });
    }
    let functions = program.functions.iter().zip(&counts.functions);
    functions
        .map(|(f, counts)| {
            let graph = &f.cfg.graph;
            graph
                .vertices()
                .map(|v| {
                    if v == graph.exit() || v == graph.root() && graph.in_edges(v).is_empty() {
                        return Ok(counts.entries);
                    }
                    let entries = if v == graph.root() { counts.entries } else { 0 };
                    sum(
                        f.id,
                        v,
                        entries,
                        graph
                            .in_edges(v)
                            .iter()
                            .map(|e| counts.edges.get(e.index())),
                    )
                })
                .collect()
        })
        .collect()
}

fn sum<'a>(
    function: FuncId,
    v: BlockId,
    entries: u64,
    edges: impl Iterator<Item = Option<&'a u64>>,
) -> Result<u64, SolveError> {
    let place = Counted::Block(v);
    let mut total = i128::from(entries);
    for count in edges {
        total += i128::from(*count.ok_or(SolveError::ForeignPlan { function, place })?);
    }
    u64::try_from(total).map_err(|_| SolveError::Impossible {
        function,
        place,
        value: total,
    })
}

/// Returns the number of executions of each block that a plan measures directly, by function and
/// block. The result for other blocks is `None`. A plan of [`Mode::Slow`](crate::Mode::Slow)
/// measures all blocks that contain code.
///
/// # Errors
/// Returns an error if the plan, the program and the counters do not belong together.
pub fn measured_blocks(
    program: &Program,
    plan: &Plan,
    counters: &[u64],
) -> Result<Vec<Vec<Option<u64>>>, SolveError> {
    check_shape(program, plan, counters)?;
    let functions = program.functions.iter().zip(&plan.functions);
    functions
        .map(|(f, plan)| {
            let mut blocks = vec![None; f.cfg.blocks.len()];
            for probe in &plan.probes {
                if let Site::Block(v) = probe.site {
                    let count = counters.get(probe.counter.index());
                    let count = count.ok_or(SolveError::MissingCounter(probe.counter))?;
                    *slot(f, &mut blocks, v)? = Some(*count);
                }
            }
            Ok(blocks)
        })
        .collect()
}

fn slot<'a>(
    f: &Function,
    blocks: &'a mut [Option<u64>],
    v: BlockId,
) -> Result<&'a mut Option<u64>, SolveError> {
    let foreign = SolveError::ForeignPlan {
        function: f.id,
        place: Counted::Block(v),
    };
    blocks.get_mut(v.index()).ok_or(foreign)
}
