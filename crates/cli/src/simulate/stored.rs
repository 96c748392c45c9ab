//! Histories in the recording: those that are asked for, simulated and added if they are not there.

use std::path::Path;

use afterimage::Session;
use afterimage::append_to;
use afterimage::steps::follow;
use afterimage_analyses::simulate::{
    DamagedSimulation, SimulationWriter, Spec, StoredSimulation, StoredSimulations, simulate,
    stored_simulation, stored_simulations,
};
use afterimage_present::grouped;
use afterimage_trace::TraceFile;
use anyhow::{Context, Error, Result, anyhow};

use crate::input;
use crate::output::{pasted, say};

/// The simulations that are asked for, or if none are, all that the recording has; and what is to be said of one of these that is damaged. `again` does them anew, without reading them.
pub(super) fn stored(
    at: &Path,
    traced: &Session,
    specs: &[Spec],
    again: bool,
) -> Result<(Vec<StoredSimulation>, Option<Error>)> {
    if !specs.is_empty() {
        return Ok((asked(at, traced, specs, again)?, None));
    }
    let StoredSimulations { sound, damaged } = stored_simulations(traced.file())?;
    let mut specs = Vec::from_iter(sound.iter().map(|stored| stored.summary.spec));
    let mut problem = None;
    for DamagedSimulation { spec, error } in damaged {
        match spec {
            Some(spec) if again => {
                if !specs.contains(&spec) {
                    specs.push(spec);
                }
            }
            Some(spec) => {
                problem.get_or_insert_with(|| {
                    let file = pasted(at);
                    anyhow!("{error}: afterimage simulate {file} {spec} --again")
                });
            }
            // It cannot be told which one to replace, so what is said of it is no error for ever.
            None => say(format_args!(
                "{}: {error}, and with the options of what it was, which cannot be read",
                at.display()
            )),
        }
    }
    if specs.is_empty() {
        return Err(problem.unwrap_or_else(|| {
            anyhow!("nothing that was simulated can be read: say what to simulate, with --cache or --branch-predictor")
        }));
    }
    if again {
        Ok((asked(at, traced, &specs, again)?, None))
    } else {
        Ok((sound, problem))
    }
}

/// Some simulations, done if they are not there, or `again`.
fn asked(
    at: &Path,
    traced: &Session,
    specs: &[Spec],
    again: bool,
) -> Result<Vec<StoredSimulation>> {
    let file = loop {
        let file = input::recording(at)?;
        let mut missing = Vec::new();
        for spec in specs {
            if again || stored_simulation(&file, spec)?.is_none() {
                missing.push(*spec);
            }
        }
        if missing.is_empty() {
            break file;
        }
        if add(at, traced, &file, &missing)? {
            break input::recording(at)?;
        }
    };
    let found = specs.iter().map(|spec| {
        let found = stored_simulation(&file, spec)?;
        found.with_context(|| format!("the simulation {spec} that was added is not there"))
    });
    found.collect()
}

/// Simulates, and adds what comes of it. Not, if another process added something meanwhile, which may be that.
fn add(at: &Path, traced: &Session, seen: &TraceFile, specs: &[Spec]) -> Result<bool> {
    let lost = "histories cannot be added to the recording (--no-save simulates without)";
    let Some(out) = append_to(at, seen, lost, traced.monitor())? else {
        return Ok(false);
    };
    let mut writer = SimulationWriter::new(&out, specs)?;
    let summaries = follow(traced, |run, log| {
        let mut keep = |i, before, epoch: &[u8]| writer.put(i, before, epoch);
        Ok(simulate(run, log, traced.stops()?, specs, &mut keep)?)
    })?;
    writer.finish(&summaries)?;
    out.commit()?;
    drop(out);
    let file = input::recording(at)?;
    for summary in &summaries {
        let stored = stored_simulation(&file, &summary.spec)?;
        let bytes = stored.map_or(0, |stored| stored.stored_bytes());
        let executions = summary.sum(|_| true).executions;
        say(format_args!(
            "{}: history of {} executions in {} bytes ({:.4} bits each)",
            summary.spec,
            grouped(executions),
            grouped(bytes),
            8.0 * bytes as f64 / executions.max(1) as f64
        ));
    }
    Ok(true)
}
