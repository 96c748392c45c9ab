//! Follows a run and feeds the models.

use std::error::Error;
use std::rc::Rc;

use afterimage_ids::EntityRef;
use afterimage_machine::MachineError;
use afterimage_simulate::{Spec, Summary};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::SimulateError;
use super::plan::NodePlans;
use super::watch::{Model, Watch};
use afterimage_profile::Stop;
use afterimage_replay::steps::{Follower, Run, StepsError};

/// A receiver of the epochs of histories. It gets the model's position among the specs, the number
/// of blocks executed before the epoch, and the epoch's bytes.
pub type Keep<'k> = dyn FnMut(usize, u64, &[u8]) -> Result<(), Box<dyn Error + Send + Sync>> + 'k;

/// Simulates a run for all specs at once, and passes on histories epoch by epoch. `stops` gives the
/// position of each open activation at the end of the run. If the recording was cut off, the
/// simulation ends where the log ends. The summaries contain the number of blocks reached. Memory
/// does not depend on the length of the run.
///
/// # Errors
/// Returns an error if the run cannot be followed, or `keep` fails.
pub fn simulate<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    stops: &[Stop],
    specs: &[Spec],
    keep: &mut Keep<'_>,
) -> Result<Vec<Summary>, SimulateError<S::Error>>
where
    S::Error: Error + 'static,
{
    let nodes = run.path.nodes();
    let mut plans = NodePlans::new(run.program, run.module, nodes.len());
    let mut watch = Watch::new(specs.iter().copied().map(Model::new).collect());
    let mut follower = Follower::new(run, log)?;
    let mut instructions = 0u64;
    // The number of blocks executed before each model's current epoch.
    let mut epochs = vec![0; specs.len()];
    let mut whole = true;
    while let Some(visit) = follower.advance()? {
        watch.plan = match plans.known(visit.node) {
            Some(known) => Rc::clone(known),
            None => {
                let code = &follower.machine.codes()[visit.node];
                let plan = plans.add(visit.node, &nodes[visit.node], code)?;
                watch.expect(plans.sites.branches.len(), plans.sites.accesses.len());
                plan
            }
        };
        match follower.execute(visit, &mut watch) {
            Err(StepsError::Machine(MachineError::LogEnds { .. })) => {
                whole = false;
                break;
            }
            other => other?,
        }
        instructions = instructions.saturating_add(watch.plan.instructions);
        for (i, model) in watch.models.iter_mut().enumerate() {
            if model.recorder.is_full()
                && let Some(epoch) = model.recorder.cut()
            {
                keep(i, epochs[i], &epoch).map_err(SimulateError::Kept)?;
                epochs[i] = visit.last();
            }
        }
    }
    if whole {
        instructions = instructions.saturating_sub(not_executed(&mut plans, stops)?);
    }
    let blocks = follower.machine.time();
    let mut summaries = Vec::new();
    for (i, mut model) in watch.models.into_iter().enumerate() {
        if let Some(epoch) = model.recorder.cut() {
            keep(i, epochs[i], &epoch).map_err(SimulateError::Kept)?;
        }
        let sites = match model.spec {
            Spec::Branches(_) => &plans.sites.branches,
            Spec::Caches(_) => &plans.sites.accesses,
        };
        let tallies = model.recorder.tallies().iter().copied();
        summaries.push(Summary {
            spec: model.spec,
            blocks,
            instructions,
            traffic: model.traffic(),
            sites: sites.iter().copied().zip(tallies).collect(),
        });
    }
    Ok(summaries)
}

/// Counts the instructions that were not executed in the blocks in which the run ended.
fn not_executed<E: Error + 'static>(
    plans: &mut NodePlans<'_>,
    stops: &[Stop],
) -> Result<u64, SimulateError<E>> {
    let (mut sum, mut known) = (0u64, None);
    for &stop in stops {
        // In deep recursion, the same stop occurs many times.
        let missed = match known {
            Some((same, missed)) if same == stop => missed,
            _ => {
                let end = plans.block_end(&stop);
                let body = plans.body(stop.function)?;
                let ops = body.get(stop.next.index()..end).unwrap_or_default();
                ops.iter().filter(|op| op.instruction).count() as u64
            }
        };
        known = Some((stop, missed));
        sum = sum.saturating_add(missed);
    }
    Ok(sum)
}
