//! Checks the simulations in a file.

use afterimage_machine::{MachineError, stopped_before};
use afterimage_program::{OperatorIndex, Program};
use afterimage_simulate::{Epoch, Misses, Summary};
use afterimage_trace::TraceFile;

use super::stored::{StoredSimulation, simulation_sections};
use super::{SimulateError, simulate};
use afterimage_profile::stops;
use afterimage_replay::steps::{Run, StepsError};
use afterimage_replay::whole_path::{RecordedPath, recorded_path};

/// The result of checking the simulations in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulationsReport {
    /// The violated rules.
    pub findings: Vec<String>,
    /// The simulations that were repeated, each with the number of executions that were compared.
    pub simulations: Vec<(String, u64)>,
}

/// Repeats the simulations in a file, one after another, and compares every execution. Returns
/// `None` if the file has no simulations or no readable path. `progress` receives the number of
/// blocks executed so far.
///
/// Takes as long as the simulations themselves.
pub fn verify_simulations(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    progress: &dyn Fn(u64),
) -> Option<SimulationsReport> {
    let mut report = SimulationsReport::default();
    let positions = match simulation_sections(file) {
        Ok(positions) if positions.is_empty() => return None,
        Ok(positions) => positions,
        Err(error) => {
            report.findings.push(format!("Simulation: {error}"));
            return Some(report);
        }
    };
    // Other checks report faults in the path.
    let path = recorded_path(file, program).ok()??;
    for position in positions {
        let stored = StoredSimulation::open(file, position);
        let checked = stored
            .map_err(|error| error.to_string())
            .and_then(|stored| check(&stored, file, program, module, &path, progress));
        match checked {
            Ok(summary) => {
                let sum = summary.sum(|_| true);
                let name = summary.spec.to_string();
                report.simulations.push((name, sum.executions));
            }
            Err(finding) => report.findings.push(format!("Simulation: {finding}")),
        }
    }
    Some(report)
}

/// The result of following a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything that was compared is the same.
    Whole,
    /// The run was not followed, because of a limit. This is not a fault of the recording.
    Refused(String),
    /// The run cannot be followed, or contradicts the recording.
    Wrong(String),
}

/// Follows a run along the path in the file, and compares every branch with the path and every host
/// call with the log. Returns `None` if the file has no readable path, or if parts were left out of
/// the path. This check is not needed if another check follows the run.
pub fn verify_followed(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    progress: &dyn Fn(u64),
) -> Option<Followed> {
    let path = recorded_path(file, program).ok()??;
    if path.nodes().iter().any(|(_, node)| node.left_out > 0) {
        return None;
    }
    let follow = || {
        let end = file.end().map_err(|error| error.to_string())?;
        let index = OperatorIndex::new(program, module);
        let at_end = end.as_ref().map(|end| stops(program, &index, end));
        let at_end = at_end.transpose().map_err(|error| error.to_string())?;
        let run = Run {
            program,
            module,
            path: &path,
            continuations: &path.segments().directory().continuations,
            stopped: end.and_then(|end| stopped_before(program, module, &end)),
            checkpoints: None,
            snapshots: None,
            progress,
        };
        let log = file.log().map_err(|error| error.to_string())?;
        let followed = simulate(
            run,
            log,
            &at_end.unwrap_or_default(),
            &[],
            &mut |_, _, _| Ok(()),
        );
        match followed {
            Err(SimulateError::Steps(StepsError::Machine(error @ MachineError::TooDeep))) => {
                Ok(Followed::Refused(error.to_string()))
            }
            Err(error) => Err(error.to_string()),
            Ok(_) => Ok(Followed::Whole),
        }
    };
    Some(follow().unwrap_or_else(Followed::Wrong))
}

fn check(
    stored: &StoredSimulation,
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    progress: &dyn Fn(u64),
) -> Result<Summary, String> {
    let name = stored.summary.spec.to_string();
    let end = file.end().map_err(|error| error.to_string())?;
    let index = OperatorIndex::new(program, module);
    let at_end = end.as_ref().map(|end| stops(program, &index, end));
    let at_end = at_end.transpose().map_err(|error| error.to_string())?;
    let run = Run {
        program,
        module,
        path,
        continuations: &path.segments().directory().continuations,
        stopped: end.and_then(|end| stopped_before(program, module, &end)),
        checkpoints: None,
        snapshots: None,
        progress,
    };
    // Both histories are divided into epochs at the same places, so epochs can be compared one by
    // one.
    let mut reader = stored.reader().map_err(|error| error.to_string())?;
    let mut left = reader.chunks().saturating_sub(1);
    let two = stored.summary.spec.is_two();
    let log = file.log().map_err(|error| error.to_string())?;
    let again = simulate(
        run,
        log,
        &at_end.unwrap_or_default(),
        &[stored.summary.spec],
        &mut |_, before, bytes| {
            if left == 0 {
                return Err("the history in the file ends too early".into());
            }
            left -= 1;
            reader.advance()?;
            if reader.first() != before {
                return Err(format!(
                    "an epoch begins after {} blocks, not after {before}",
                    reader.first()
                )
                .into());
            }
            let (found, expected) = (Epoch::open(reader.bytes(), two)?, Epoch::open(bytes, two)?);
            Ok(compare(&found, &expected)?)
        },
    );
    let again = again.map_err(|error| format!("{name}: {error}"))?;
    if left > 0 {
        return Err(format!(
            "{name}: the history in the file continues past the end of the run"
        ));
    }
    match again.into_iter().next() {
        Some(again) if again == stored.summary => Ok(again),
        _ => Err(format!("{name}: its summary differs from the run's")),
    }
}

/// Compares two epochs, execution by execution.
fn compare(found: &Epoch<'_>, expected: &Epoch<'_>) -> Result<(), String> {
    if found.sites.len() != expected.sites.len() {
        return Err(format!(
            "an epoch has {} sites, not {}",
            found.sites.len(),
            expected.sites.len()
        ));
    }
    for (one, other) in found.sites.iter().zip(&expected.sites) {
        if (one.site, one.tally) != (other.site, other.tally) {
            return Err(format!(
                "an epoch counts {:?} of site {}, not {:?} of site {}",
                one.tally, one.site, other.tally, other.site
            ));
        }
        let [mut one_misses, mut other_misses] = [Misses::default(), Misses::default()];
        let read = one.misses(0, &mut one_misses);
        read.and_then(|()| other.misses(0, &mut other_misses))
            .map_err(|error| error.to_string())?;
        let levels = [
            (&one_misses.first, &other_misses.first),
            (&one_misses.last, &other_misses.last),
        ];
        for (one_level, other_level) in levels {
            let differ = one_level.iter().zip(other_level).find(|(a, b)| a != b);
            if let Some((a, b)) = differ {
                return Err(format!(
                    "site {}: an epoch counts execution {} as a miss, not execution {}",
                    one.site, a, b
                ));
            }
        }
    }
    Ok(())
}
