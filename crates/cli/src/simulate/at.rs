//! The history of what is at a place.

use std::io::Write;

use afterimage::Session;
use afterimage::places::times;
use afterimage_analyses::simulate::StoredSimulation;
use afterimage_ids::OpId;
use afterimage_present::{
    SiteHistory, StepScene, grouped, history_csv, history_json, history_text, outcome_text,
};
use afterimage_profile::location::{Occurrence, Place, Resolved};
use afterimage_replay::steps::Operators;
use anyhow::{Result, bail};

use super::{Arguments, Format};
use crate::output::write;

/// Lines of text, if nothing else is asked for.
const LINES: u64 = 100;

/// What is at a place, if its history can be asked for like this.
pub(super) fn asked(arguments: &Arguments, traced: &Session, place: &str) -> Result<Resolved> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let resolved = traced.resolver(&names, &source).location(place)?;
    if resolved.occurrence.is_some() && !matches!(resolved.place, Place::Operator(..)) {
        bail!(
            "--at {place}: histories are of the executions of instructions, and this is of a line or a function: leave out what is behind the # to see its instructions, and add it to one of these"
        );
    }
    if arguments.top.is_some() && resolved.occurrence.is_some() {
        bail!("--at {place}: that is one execution: leave --top out");
    }
    if arguments.top.is_some() && !matches!(arguments.format, Format::Text) {
        bail!("--top shortens what --at writes as text; the other formats have the whole history");
    }
    Ok(resolved)
}

/// Writes the histories of what is at a place, simulation by simulation.
pub(super) fn answer(
    arguments: &Arguments,
    traced: &Session,
    stored: &[StoredSimulation],
    (place, resolved): (&str, &Resolved),
) -> Result<()> {
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
    let histories = histories(stored, &resolved.place);
    if histories.is_empty() {
        let kind = match stored
            .iter()
            .any(|stored| stored.summary.spec.is_branches())
        {
            true if stored
                .iter()
                .any(|stored| !stored.summary.spec.is_branches()) =>
            {
                "branch, load or store"
            }
            true => "branch",
            false => "load or store",
        };
        bail!("no {kind} at {place} was ever executed; see those that were with --by instruction");
    }
    write(arguments.report.output.as_deref(), false, |out| {
        if let Some(which) = resolved.occurrence {
            return outcomes(out, &scene, arguments, &histories, which, place);
        }
        for (i, history) in histories.iter().enumerate() {
            match arguments.format {
                Format::Text => {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    let limit = arguments.top.unwrap_or(LINES);
                    if history_text(out, &scene, history, limit)? {
                        writeln!(out, "… and more: see them with --top N")?;
                    }
                }
                Format::Json => history_json(out, &scene, history)?,
                Format::Csv => history_csv(out, &scene, history, i == 0)?,
            }
        }
        Ok(())
    })
}

/// The histories of the sites at a place, in the order of the program.
fn histories<'a>(stored: &'a [StoredSimulation], place: &Place) -> Vec<SiteHistory<'a>> {
    let is_there = |function: u32, op: u32| match place {
        Place::Function(wanted) => wanted.as_u32() == function,
        Place::Operator(wanted, at) => wanted.as_u32() == function && at.as_u32() == op,
        Place::Line(_, operators) => operators
            .iter()
            .any(|(wanted, at)| wanted.as_u32() == function && *at == OpId::from_u32(op)),
    };
    let mut found = Vec::new();
    for stored in stored {
        let sites = stored.summary.sites.iter().enumerate();
        let own = sites
            .filter(|(_, (site, tally))| tally.executions > 0 && is_there(site.function, site.op));
        let mut own = Vec::from_iter(own);
        own.sort_unstable_by_key(|(_, (site, _))| *site);
        found.extend(
            own.into_iter()
                .map(|(site, _)| SiteHistory { stored, site }),
        );
    }
    found
}

/// Writes what one execution of each met.
fn outcomes(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    arguments: &Arguments,
    histories: &[SiteHistory<'_>],
    which: Occurrence,
    place: &str,
) -> Result<()> {
    if !matches!(arguments.format, Format::Text) {
        bail!(
            "what one execution met is written as text; {place} without # has the whole history in the other formats"
        );
    }
    let (mut most, mut written) = (0, 0);
    for history in histories {
        let executions = history.stored.summary.sites[history.site].1.executions;
        most = most.max(executions);
        let number = match which {
            Occurrence::Kth(number) => number,
            Occurrence::Last => executions,
        };
        let Some(one) = history.stored.outcome(history.site, number)? else {
            continue;
        };
        if written > 0 {
            writeln!(out)?;
        }
        outcome_text(out, scene, history, number, &one)?;
        written += 1;
    }
    match (which, written) {
        (Occurrence::Kth(number), 0) => bail!(
            "what is at {place} was executed {}: there is no execution {}",
            times(most),
            grouped(number)
        ),
        _ => Ok(()),
    }
}
