//! Derives exact counts from counters.

use std::collections::BTreeMap;

use afterimage_ids::{BlockId, Counts, EdgeId, EntityRef, FuncId};
use afterimage_program::Program;

use crate::function_flow::FunctionFlow;
use crate::interprocedural::Interprocedural;
use crate::planner::may_end;
use crate::{Mode, Plan, RunFacts, SolveError};

/// Derives the count of every edge of every function from the counters of a run.
///
/// Time: linear in the size of the program, except for the equations of [`Mode::Program`], which
/// the plan keeps sparse. The result is exact, because every equation is used or checked in
/// integers.
///
/// # Errors
/// Returns an error if the counters are inconsistent (see [`SolveError`]). A plan of [`Mode::Slow`]
/// determines only blocks, so use [`measured_blocks`](crate::measured_blocks) for it.
pub fn solve(
    program: &Program,
    plan: &Plan,
    counters: &[u64],
    facts: &RunFacts,
) -> Result<Counts, SolveError> {
    check_shape(program, plan, counters)?;
    let open = open_by_function(program, plan, facts)?;
    let mut flows = Vec::with_capacity(program.functions.len());
    for ((function, plan_of), open) in program.functions.iter().zip(&plan.functions).zip(&open) {
        let ends = may_end(function).filter(|_| plan.standalone);
        flows.push(FunctionFlow::new(function, plan_of, counters, open, ends)?);
    }
    match plan.mode {
        Mode::Program => Interprocedural::new(program, plan, facts)?.solve(&mut flows)?,
        _ => flows
            .iter_mut()
            .try_for_each(|flow| flow.solve(std::iter::empty()))?,
    }
    let counts = flows
        .iter()
        .zip(&open)
        .map(|(flow, open)| flow.counts(open));
    Ok(Counts {
        functions: counts.collect::<Result<_, _>>()?,
    })
}

pub(crate) fn check_shape(
    program: &Program,
    plan: &Plan,
    counters: &[u64],
) -> Result<(), SolveError> {
    let (expected, found) = (program.functions.len(), plan.functions.len());
    if expected != found {
        return Err(SolveError::ForeignProgram { expected, found });
    }
    let (expected, found) = (plan.counters as usize, counters.len());
    if expected != found {
        return Err(SolveError::CounterCount { expected, found });
    }
    Ok(())
}

/// Returns the number of open activations in each block of every defined function.
fn open_by_function(
    program: &Program,
    plan: &Plan,
    facts: &RunFacts,
) -> Result<Vec<BTreeMap<BlockId, u64>>, SolveError> {
    let mut open = vec![BTreeMap::new(); program.functions.len()];
    for frame in &facts.open {
        let (function, block) = (frame.function, frame.block);
        let bad = SolveError::BadFrame { function, block };
        let Some(f) = program.function(function) else {
            return Err(bad);
        };
        if plan.standalone && may_end(f).any(|v| v == block) {
            return Err(SolveError::UnexpectedFrame { function, block });
        }
        let index = function.index() - program.imports.len();
        *open[index].entry(block).or_insert(0) += 1;
    }
    Ok(open)
}

/// Returns the derived chords of each defined function, with their positions in [`Plan::derived`].
pub(crate) fn derived_by_function(
    program: &Program,
    derived: &[(FuncId, EdgeId)],
) -> Result<Vec<Vec<(usize, EdgeId)>>, SolveError> {
    let mut by_function = vec![Vec::new(); program.functions.len()];
    for (position, &(function, edge)) in derived.iter().enumerate() {
        let place = crate::Counted::Edge(edge);
        let foreign = SolveError::ForeignPlan { function, place };
        match program.function(function) {
            Some(f) if f.cfg.edges.is_valid(edge) => {
                by_function[function.index() - program.imports.len()].push((position, edge));
            }
            _ => return Err(foreign),
        }
    }
    Ok(by_function)
}
