//! Forward slices of recorded runs.

use std::error::Error;

use afterimage_slice::{Criterion, Follows, Forward, Slice, Stretch};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use crate::steps::{Follower, Run, StepsError};

/// How many nodes are followed before they are gone over.
const NODES: usize = 1 << 20;

/// The forward dynamic slice from criteria: the executions whose backward slice has one of them. The run is followed from the checkpoint before the first
/// criterion to its end.
///
/// Time is linear in the blocks executed after that, memory in the guest's.
///
/// # Errors
/// If the run cannot be followed.
pub fn forward<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    follows: Follows,
    criteria: Vec<Criterion>,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let first = criteria.iter().map(|criterion| criterion.start).min();
    let mut slicer = Forward::new(run.program, run.path.nodes(), follows, criteria);
    let Some(first) = first else {
        return Ok(slicer.finish());
    };
    follower.skip_to(first)?;
    let open = Vec::from_iter(follower.machine.activations());
    for &(_, node) in &open {
        follower.compile(node)?;
    }
    for (function, node) in open {
        slicer.open(function, node, follower.machine.codes());
    }
    let mut stretch = Stretch::default();
    loop {
        stretch.clear();
        while stretch.len() < NODES
            && let Some(visit) = follower.next()?
        {
            stretch.at(visit.start);
            follower.execute(visit, &mut stretch)?;
        }
        if stretch.is_empty() {
            return Ok(slicer.finish());
        }
        slicer.pass(&stretch, follower.machine.codes());
    }
}
