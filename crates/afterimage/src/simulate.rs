//! Runs, stores and queries simulations of branch predictors and caches.

use std::io::Write;

use afterimage_analyses::simulate::{
    CacheSpec, DamagedSimulation, LevelSpec, MissRows, MissesBy, MissesPlace, PredictorSpec,
    SimulationWriter, SiteKind, Spec, StoredSimulation, StoredSimulations, Summary, producers,
    simulate, stored_simulation, stored_simulations,
};
use afterimage_analyses::slices::{SliceAbout, SliceQuery};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::{Listed, WithRows};
use afterimage_present::{
    SimulateHead, SimulationView, SiteHistory, StepScene, Style, WorstSite, grouped, misses_rows,
    outcome_text, slice_command, times,
};
use afterimage_profile::location::{Occurrence, Place};
use afterimage_replay::values::RecordedValues;
use afterimage_trace::TraceFile;
use anyhow::{Context, Error, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::append::append_to;
use crate::monitor::Note;
use crate::named::NamedProgram;
use crate::steps::follow;
use crate::text::pasted;

/// Makes the simulations of these caches and predictors, without duplicates. The caches are the
/// first level and, if given, the second.
///
/// # Errors
/// Returns an error if the levels are incompatible.
pub fn specs(
    caches: Option<(LevelSpec, Option<LevelSpec>)>,
    predictors: &[PredictorSpec],
) -> Result<Vec<Spec>> {
    let mut specs = Vec::new();
    if let Some((first, second)) = caches {
        specs.push(Spec::Caches(CacheSpec::new(first, second)?));
    }
    for predictor in predictors {
        let spec = Spec::Branches(*predictor);
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    Ok(specs)
}

/// Returns the default simulations: caches and a predictor as in a present-day processor.
///
/// # Errors
/// There are none, because the default caches are valid.
pub fn default_specs() -> Result<Vec<Spec>> {
    let first = "32k,8,64".parse()?;
    let second = "1m,16,64".parse()?;
    Ok(vec![
        Spec::Caches(CacheSpec::new(first, Some(second))?),
        Spec::Branches("tage".parse()?),
    ])
}

/// Asks what branch predictors and caches would have missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulateQuery {
    /// The simulations, as on the command line: `--cache 32k,8,64`. Empty means the simulations in
    /// the recording or, if there are none, the defaults.
    pub specs: Vec<Spec>,
    /// The parts of the program that the rows are about. The default is lines, or functions if no
    /// lines are known.
    pub by: Option<MissesBy>,
    /// The maximum number of rows for each simulation.
    pub top: Option<u64>,
    /// Whether to store the outcome of every execution in the recording.
    pub save: bool,
}

impl SimulateQuery {
    pub(crate) fn answer(&self, program: NamedProgram<'_>) -> Result<Vec<WithRows<SimulateHead>>> {
        let session = program.session;
        let mut specs = self.specs.clone();
        let is_new = || -> Result<bool> {
            let StoredSimulations { sound, damaged } = stored_simulations(session.file())?;
            Ok(sound.is_empty() && damaged.is_empty())
        };
        if specs.is_empty() && (!self.save || is_new()?) {
            specs = default_specs()?;
        }
        let summaries = if self.save {
            let (stored, problem) = stored(session, &specs, false)?;
            problem.map_or(Ok(()), Err)?;
            stored.into_iter().map(|stored| stored.summary).collect()
        } else {
            unsaved(session, &specs)?
        };
        let mut rows = Listed::default();
        let shown = MissesShown {
            by: self.by,
            top: self.top,
            own: false,
        };
        missed(program, &summaries, shown, |reports| {
            let scene = program.scene(Style::default());
            let mut reports = reports.iter();
            Ok(reports.try_for_each(|report| misses_rows(&mut rows, &scene, report))?)
        })?;
        Ok(rows.all())
    }
}

/// The rows of a report about misses.
#[derive(Clone, Copy, Debug, Default)]
pub struct MissesShown {
    /// The kind of rows. The default is lines, or functions if no lines are known.
    pub by: Option<MissesBy>,
    /// The maximum number of rows.
    pub top: Option<u64>,
    /// Whether to leave out the code that [`Session::looking_at`] does not show.
    pub own: bool,
}

/// Passes the misses of simulations to `ask`, by row.
///
/// # Errors
/// Returns an error if the module cannot be read, or `ask` fails.
pub fn missed<R>(
    program: NamedProgram<'_>,
    summaries: &[Summary],
    MissesShown { by, top, own }: MissesShown,
    ask: impl FnOnce(Vec<SimulationView<'_>>) -> Result<R>,
) -> Result<R> {
    if let Some(summary) = summaries.first() {
        say_cut(program.session, summary)?;
    }
    let by = by.unwrap_or(if program.source.files().is_empty() {
        MissesBy::Function
    } else {
        MissesBy::Line
    });
    let own = own.then_some(program.own);
    let rows = summaries
        .iter()
        .map(|summary| MissRows::new(summary, program.operators, by, own));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let reports = summaries.iter().zip(&rows);
    ask(Vec::from_iter(reports.map(|(summary, rows)| {
        SimulationView {
            summary,
            by,
            rows: &rows.rows,
            left_out: rows.left_out,
            top,
        }
    })))
}

/// Simulates without storing the results.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn unsaved(traced: &Session, specs: &[Spec]) -> Result<Vec<Summary>> {
    follow(traced, |run, log| {
        let mut keep = |_, _, _: &[u8]| Ok(());
        Ok(simulate(run, log, traced.stops()?, specs, &mut keep)?)
    })
}

fn remark(traced: &Session, text: String) {
    traced.monitor().note(traced.at(), &Note::Remark(text));
}

/// Reports that the log of a recording was cut off before the end of its path.
fn say_cut(traced: &Session, summary: &Summary) -> Result<()> {
    let length = traced.path()?.length();
    if summary.blocks < length {
        let text = format!(
            "the recording was cut off: its log ends at t={}, its path at t={}; this report \
             covers the run up to there",
            grouped(summary.blocks),
            grouped(length)
        );
        remark(traced, text);
    }
    Ok(())
}

/// Returns the requested simulations, or all simulations in the recording if none are requested.
/// Also returns the error to report if a simulation is damaged. `again` repeats the simulations
/// without reading stored results.
///
/// # Errors
/// Returns an error if the run cannot be followed, or nothing can be added to the file.
pub fn stored(
    traced: &Session,
    specs: &[Spec],
    again: bool,
) -> Result<(Vec<StoredSimulation>, Option<Error>)> {
    if !specs.is_empty() {
        return Ok((ensured(traced, specs, again)?, None));
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
                    let file = pasted(traced.at());
                    anyhow!("{error}: afterimage simulate {file} {spec} --again")
                });
            }
            // The damaged simulation cannot be identified or replaced, so the damage must not make
            // every later report fail.
            None => {
                let at = traced.at().display();
                let text = format!("{at}: {error}, and its options cannot be read");
                remark(traced, text);
            }
        }
    }
    if specs.is_empty() {
        return Err(problem.unwrap_or_else(|| {
            anyhow!(
                "no simulation in the recording can be read: choose one with --cache or \
                --branch-predictor"
            )
        }));
    }
    if again {
        Ok((ensured(traced, &specs, again)?, None))
    } else {
        Ok((sound, problem))
    }
}

/// Returns some simulations. Makes them if they do not exist, or if `again` is set.
fn ensured(traced: &Session, specs: &[Spec], again: bool) -> Result<Vec<StoredSimulation>> {
    let at = traced.at();
    let file = loop {
        let file = TraceFile::open(at)?;
        let mut missing = Vec::new();
        for spec in specs {
            if again || stored_simulation(&file, spec)?.is_none() {
                missing.push(*spec);
            }
        }
        if missing.is_empty() {
            break file;
        }
        if add(traced, &file, &missing)? {
            break TraceFile::open(at)?;
        }
    };
    let found = specs.iter().map(|spec| {
        let found = stored_simulation(&file, spec)?;
        found.with_context(|| format!("the simulation {spec} that was just added is missing"))
    });
    found.collect()
}

/// Simulates and adds the results to the file. Adds nothing if another process has added data in
/// the meantime, because it may be the same data.
fn add(traced: &Session, seen: &TraceFile, specs: &[Spec]) -> Result<bool> {
    let at = traced.at();
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
    let file = TraceFile::open(at)?;
    for summary in &summaries {
        let stored = stored_simulation(&file, &summary.spec)?;
        let bytes = stored.map_or(0, |stored| stored.stored_bytes());
        let executions = summary.sum(|_| true).executions;
        let text = format!(
            "{}: history of {} executions in {} bytes ({:.4} bits each)",
            summary.spec,
            grouped(executions),
            grouped(bytes),
            8.0 * bytes as f64 / executions.max(1) as f64
        );
        remark(traced, text);
    }
    Ok(true)
}

/// Finds the histories of the sites at a place, in program order. `name` is the place as written.
///
/// # Errors
/// Returns an error if no site of this kind was ever executed there.
pub fn histories<'a>(
    stored: &'a [StoredSimulation],
    place: &Place,
    name: &str,
) -> Result<Vec<SiteHistory<'a>>> {
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
    if !found.is_empty() {
        return Ok(found);
    }
    let is_of_branches = |stored: &StoredSimulation| stored.summary.spec.is_branches();
    let kind = match (
        stored.iter().any(is_of_branches),
        stored.iter().all(is_of_branches),
    ) {
        (true, false) => "branch, load or store",
        (true, true) => "branch",
        (false, _) => "load or store",
    };
    bail!("no {kind} at {name} was ever executed; see those that were with --by instruction")
}

/// Writes the outcome of one execution of each site as text. `name` is the place as written.
///
/// # Errors
/// Returns an error if there is no such execution, the recording is damaged, or `out` fails.
pub fn outcomes(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    histories: &[SiteHistory<'_>],
    which: Occurrence,
    name: &str,
) -> Result<()> {
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
            "{name} was executed {}: there is no execution {}",
            times(most),
            grouped(number)
        ),
        _ => Ok(()),
    }
}

/// The maximum number of misses for which to look up the producer of the address.
const SAMPLE: u64 = 16;

/// Finds the worst `top` sites of a simulation. With `own`, skips code that
/// [`Session::looking_at`] does not show.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn worst<'a, 'p>(
    program: NamedProgram<'p>,
    stored: &'a StoredSimulation,
    values: Option<&RecordedValues<'p>>,
    (top, own): (u64, bool),
) -> Result<Vec<WorstSite<'a>>> {
    let traced = program.session;
    let (by, own) = (MissesBy::Instruction, own.then_some(program.own));
    let found = MissRows::new(&stored.summary, program.operators, by, own)?;
    let mut sites = Vec::new();
    for row in found.rows.iter().filter(|row| row.tally.missed > 0) {
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
        // Skip stores, for which no instruction waits, and bulk operators, which have no single
        // address.
        if !kind.is_branch() && *kind != SiteKind::Load {
            continue;
        }
        if sites.len() as u64 == top {
            break;
        }
        let sample = stored.sample(*site, SAMPLE)?;
        let (function, op): (FuncId, OpId) = (*function, *op);
        let made = values.map(|values| producers(values, traced.program(), function, op, &sample));
        let last = sample.last().copied().unwrap_or(1);
        // The index of an indirect call is the operand after its arguments, so suggest the slice of
        // all operands.
        let at = format!("@{}#{last}", place.offset);
        let about = match kind {
            SiteKind::Call => SliceAbout::Statement { at },
            _ => SliceAbout::Operand {
                at,
                operand: "1".to_owned(),
            },
        };
        let file = traced.at().display().to_string();
        sites.push(WorstSite {
            history: SiteHistory {
                stored,
                site: *site,
            },
            producers: made.transpose()?.filter(|_| *kind != SiteKind::Call),
            sample,
            command: slice_command(&file, &SliceQuery::new(about)),
        });
    }
    Ok(sites)
}
