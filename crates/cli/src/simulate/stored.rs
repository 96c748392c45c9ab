//! Histories in the recording: those that are asked for, simulated and added if they are not there.

use std::path::Path;

use afterimage_present::grouped;
use afterimage_query::simulate::{
    SimulationWriter, Spec, StoredSimulation, simulate, stored_simulation, stored_simulations,
};
use afterimage_trace::TraceWriter;
use anyhow::{Context, Result};

use crate::input;
use crate::lens::Traced;
use crate::output::say;
use crate::steps::follow;

/// The simulations that are asked for, or if none are, all that the recording has. `again` does them anew.
pub(super) fn stored(
    at: &Path,
    traced: &Traced,
    specs: &[Spec],
    again: bool,
) -> Result<Vec<StoredSimulation>> {
    if specs.is_empty() && !again {
        return Ok(stored_simulations(&traced.file)?);
    }
    let mut specs = specs.to_vec();
    if specs.is_empty() {
        let all = stored_simulations(&traced.file)?;
        specs.extend(all.iter().map(|stored| stored.summary.spec));
    }
    let mut missing = Vec::new();
    for spec in &specs {
        if again || stored_simulation(&traced.file, spec)?.is_none() {
            missing.push(*spec);
        }
    }
    if !missing.is_empty() {
        add(at, traced, &missing)?;
    }
    let file = input::recording(at)?;
    let found = specs.iter().map(|spec| {
        let found = stored_simulation(&file, spec)?;
        found.with_context(|| format!("the simulation {spec} that was added is not there"))
    });
    found.collect()
}

/// Simulates, and adds what comes of it.
fn add(at: &Path, traced: &Traced, specs: &[Spec]) -> Result<()> {
    let out = TraceWriter::append(at)
        .context("histories cannot be added to the recording (--no-save simulates without)")?;
    let mut writer = SimulationWriter::new(&out, specs)?;
    let summaries = follow(traced, |run, log| {
        let mut keep = |i, before, epoch: &[u8]| writer.put(i, before, epoch);
        Ok(simulate(run, log, &traced.stops, specs, &mut keep)?)
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
    Ok(())
}
