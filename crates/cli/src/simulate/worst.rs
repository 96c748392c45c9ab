//! The loads and branches that missed most, and who is behind them.

use afterimage::Session;
use afterimage_analyses::simulate::producers;
use afterimage_analyses::simulate::{MissesBy, MissesPlace, SiteKind, StoredSimulation, miss_rows};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{
    MissReport, SiteHistory, StepScene, WorstSite, shell_name, worst_json, worst_text,
};
use afterimage_replay::steps::Operators;
use afterimage_replay::values::RecordedValues;
use anyhow::{Result, bail};

use super::{Arguments, Format};
use crate::lens::{self};
use crate::output::{say, write};

/// Sites, if nothing else is asked for.
const SITES: u64 = 5;
/// Of so many misses it is looked up who made the address.
const SAMPLE: u64 = 16;

/// Writes the sites that missed most, simulation by simulation.
pub(super) fn answer(
    arguments: &Arguments,
    traced: &Session,
    stored: &[StoredSimulation],
) -> Result<()> {
    if matches!(arguments.format, Format::Csv) {
        bail!("the worst are written as text or JSON; --by instruction has all as CSV");
    }
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let scene = StepScene {
        names: &names,
        operators: &operators,
        source: &source,
        memories: loaded.program.memories,
        style: arguments.report.style(),
    };
    let values = lens::values_if_built(traced)?;
    let file = arguments.report.file.display().to_string();
    if values.is_none() {
        say(format_args!(
            "who made addresses and conditions is told if the recording has values: afterimage build --lens full {}",
            shell_name(&file)
        ));
    }
    let mut found = Vec::new();
    for stored in stored {
        found.push(worst(
            arguments,
            traced,
            stored,
            values.as_ref(),
            &operators,
            &file,
        )?);
    }
    write(arguments.report.output.as_deref(), false, |out| {
        for (i, (stored, sites)) in stored.iter().zip(&found).enumerate() {
            let report = MissReport {
                summary: &stored.summary,
                by: MissesBy::Instruction,
                rows: &[],
                top: None,
            };
            match arguments.format {
                Format::Text => {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    worst_text(out, &scene, &report, sites)?;
                }
                _ => worst_json(out, &scene, &report, sites)?,
            }
        }
        Ok(())
    })
}

/// The worst sites of a simulation.
fn worst<'a>(
    arguments: &Arguments,
    traced: &'a Session,
    stored: &'a StoredSimulation,
    values: Option<&RecordedValues<'a>>,
    operators: &Operators<'_>,
    file: &str,
) -> Result<Vec<WorstSite<'a>>> {
    let rows = miss_rows(&stored.summary, operators, MissesBy::Instruction)?;
    let top = arguments.top.unwrap_or(SITES) as usize;
    let mut sites = Vec::new();
    for row in rows.iter().filter(|row| row.tally.missed > 0) {
        let MissesPlace::Instruction {
            site,
            kind,
            function,
            op,
            place,
        } = &row.place
        else {
            continue;
        };
        // A store is not waited for, and of what is done at once there is no single address.
        if !kind.is_branch() && *kind != SiteKind::Load {
            continue;
        }
        if sites.len() == top {
            break;
        }
        let sample = stored.sample(*site, SAMPLE)?;
        let (function, op): (FuncId, OpId) = (*function, *op);
        let made = values.map(|values| producers(values, traced.program(), function, op, &sample));
        let last = sample.last().copied().unwrap_or(1);
        // A call's index is behind its arguments: of that, the slice of all is shown.
        let operand = match kind {
            SiteKind::Call => "",
            _ => " --operand 1",
        };
        sites.push(WorstSite {
            history: SiteHistory {
                stored,
                site: *site,
            },
            producers: made.transpose()?.filter(|_| *kind != SiteKind::Call),
            sample,
            command: format!(
                "afterimage slice {} --at @{}#{last}{operand}",
                shell_name(file),
                place.offset
            ),
        });
    }
    Ok(sites)
}
