//! Following the run up to moments.

use std::error::Error;

use afterimage_ids::EntityRef;
use afterimage_machine::{Inside, Machine};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use crate::steps::{Run, StepsError};

/// After how many nodes it is told how far it has come.
const TELL: u32 = 1 << 14;

/// A moment to stop at: inside an execution of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Halt {
    /// The time of the execution's first block.
    pub start: u64,
    /// How many of the node's instructions are executed before the moment.
    pub instructions: usize,
}

/// Follows a run once, up to the last of these moments, which are ascending, and shows what there is at each: the halt's position, the first
/// register of a result in its node, and the state. A moment that the run did not come to, because it ended just before, is not shown.
///
/// Time is linear in the blocks up to the last moment; memory is the guest's and the nodes' code.
///
/// # Errors
/// If the path, the log and the program disagree, or the path lacks something.
pub fn follow_to<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    halts: &[Halt],
    mut show: impl FnMut(usize, u32, &Inside<'_>),
) -> Result<(), StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let nodes = run.path.nodes();
    if nodes.values().any(|node| node.left_out > 0) {
        return Err(StepsError::Partial);
    }
    let mut machine = Machine::new(run.program, run.module, log)?;
    for (node, continuation) in nodes.values().zip(run.continuations) {
        machine.define(node.function, &node.blocks, continuation.next)?;
    }
    let lengths = Vec::from_iter(nodes.values().map(|node| node.length()));
    let mut cursor = run.path.cursor();
    let mut done = 0;
    let mut told = 0;
    let mut pauses = Vec::new();
    while let Some(next) = halts.get(done) {
        let Some(visit) = cursor.next()? else {
            break;
        };
        told += 1;
        if told == TELL {
            told = 0;
            (run.progress)(machine.time());
        }
        let last = visit.last() == run.path.length();
        let stopped = run.stopped.filter(|_| last);
        let here = halts[done..].iter();
        pauses.clear();
        if next.start == visit.start {
            let here = here.take_while(|halt| halt.start == visit.start);
            pauses.extend(here.map(|halt| halt.instructions));
        }
        let first_result = machine.codes()[visit.node].first_result();
        let mut shown = done;
        machine.step_pausing(
            visit.node,
            lengths[visit.node.index()],
            stopped,
            &mut (),
            &pauses,
            |_, inside| {
                show(shown, first_result, inside);
                shown += 1;
            },
        )?;
        done += pauses.len();
    }
    Ok(())
}
