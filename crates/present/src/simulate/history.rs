//! Reports the history of one branch, load or store.

use std::io::Write;
use std::ops::ControlFlow;

use afterimage_analyses::simulate::{
    OneOutcome, Outcome, OutcomeRun, Spec, StoredSimulation, Tally,
};
use afterimage_ids::{FuncId, OpId};
use afterimage_replay::steps::AccessSite;
use schemars::JsonSchema;
use serde::Serialize;

use super::json::{Missed, kind_name};
use crate::PresentError;
use crate::addresses::Shown;
use crate::csv::Csv;
use crate::document::objects::Instruction;
use crate::document::{Document, begin, row};
use crate::number::{counted, grouped, percent};
use crate::steps::StepScene;
use crate::table::{Paint, plain};

/// A site of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct SiteHistory<'a> {
    /// The simulation.
    pub stored: &'a StoredSimulation,
    /// The number of the site in the simulation's summary.
    pub site: usize,
}

/// The maximum number of runs to combine into a pattern.
const MOST_PARTS: usize = 8;

/// A sequence of executions up to the next miss that follows a hit, and the number of times that it
/// occurred.
#[derive(Default)]
struct Group {
    first: u64,
    parts: Vec<(Outcome, u64)>,
    times: u64,
}

impl SiteHistory<'_> {
    fn spec(&self) -> &Spec {
        &self.stored.summary.spec
    }

    pub(super) fn tally(&self) -> Tally {
        self.stored.summary.sites[self.site].1
    }

    pub(super) fn place(&self) -> AccessSite {
        let (site, _) = self.stored.summary.sites[self.site];
        AccessSite {
            function: FuncId::from_u32(site.function),
            op: OpId::from_u32(site.op),
        }
    }

    fn word(&self, outcome: Outcome) -> &'static str {
        match (self.spec(), outcome) {
            (Spec::Branches(_), Outcome::Hit) => "predicted",
            (Spec::Branches(_), _) => "mispredicted",
            (Spec::Caches(_), Outcome::Hit) => "hit",
            (Spec::Caches(_), Outcome::Missed) => "missed",
            (Spec::Caches(_), Outcome::MissedBoth) => "missed both",
        }
    }

    fn runs(&self, each: impl FnMut(OutcomeRun) -> ControlFlow<()>) -> Result<(), PresentError> {
        let runs = self.stored.runs(self.site, each);
        runs.map_err(|error| PresentError::Path(Box::new(error)))
    }

    /// Formats the site and its counts.
    pub(super) fn head(&self, scene: &StepScene<'_>) -> Result<(String, String), PresentError> {
        let place = self.place();
        let shown = Shown::of(scene, place)?;
        let line = shown.line(scene);
        let function = plain(scene.names.function(place.function));
        let head = format!("@{} {}  {line}  in {function}", shown.offset, shown.name);
        let tally = self.tally();
        let both = if self.spec().is_two() {
            format!(", {} both", grouped(tally.last))
        } else {
            String::new()
        };
        let counts = format!(
            "{} of {} {} ({}){both}",
            grouped(tally.missed),
            counted(tally.executions, "execution"),
            self.word(Outcome::Missed),
            percent(tally.missed, tally.executions),
        );
        Ok((head, counts))
    }

    fn line(&self, group: &Group) -> String {
        let parts = group.parts.iter();
        let parts =
            parts.map(|(outcome, count)| format!("{} {}", self.word(*outcome), grouped(*count)));
        let parts = Vec::from_iter(parts).join(", ");
        let times = match group.times {
            1 => String::new(),
            times => format!(" x {}", grouped(times)),
        };
        format!(
            "{:>14}  {parts}{times}",
            format!("#{}", grouped(group.first))
        )
    }
}

/// Writes a history for people. A run of executions with the same outcome is one entry, and
/// repetitions of runs share one line. Returns whether there are more than `limit` lines.
///
/// # Errors
/// Returns an error if `out` fails or the history is damaged.
pub fn history_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    history: &SiteHistory<'_>,
    limit: u64,
) -> Result<bool, PresentError> {
    let (head, counts) = history.head(scene)?;
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    writeln!(out, "{counts}: {}", history.spec())?;
    let (mut lines, mut written) = (Vec::new(), 0);
    let (mut last, mut next) = (Group::default(), Group::default());
    history.runs(|run| {
        if next.parts.is_empty() {
            next.first = run.first;
            next.times = 1;
        }
        next.parts.push((run.outcome, run.count));
        if run.outcome != Outcome::Hit && next.parts.len() < MOST_PARTS {
            return ControlFlow::Continue(());
        }
        let group = std::mem::take(&mut next);
        if group.parts == last.parts {
            last.times += 1;
            return ControlFlow::Continue(());
        }
        let done = std::mem::replace(&mut last, group);
        if !done.parts.is_empty() {
            lines.push(done);
            written += 1;
        }
        if written > limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    lines.extend([last, next]);
    lines.retain(|group| !group.parts.is_empty());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    for group in lines.iter().take(limit) {
        writeln!(out, "{}", scene.style.cut(&history.line(group)))?;
    }
    Ok(lines.len() > limit)
}

/// Writes the outcome of one execution.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn outcome_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    history: &SiteHistory<'_>,
    number: u64,
    one: &OneOutcome,
) -> Result<(), PresentError> {
    let (head, counts) = history.head(scene)?;
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    let met = match (history.spec(), one.outcome) {
        (Spec::Branches(_), Outcome::Hit) => "was predicted",
        (Spec::Branches(_), _) => "was mispredicted",
        (Spec::Caches(_), Outcome::Hit) => "hit the first level",
        (Spec::Caches(spec), Outcome::Missed) if spec.second.is_some() => {
            "missed the first level and hit the second"
        }
        (Spec::Caches(_), Outcome::Missed) => "missed",
        (Spec::Caches(_), Outcome::MissedBoth) => "missed both levels",
    };
    let (missed, plural) = match history.spec() {
        Spec::Branches(_) => ("was mispredicted", "were mispredicted"),
        Spec::Caches(_) => ("missed", "missed"),
    };
    let which = match one.outcome {
        Outcome::Hit => String::new(),
        _ => format!(
            ", the {} of {} that {plural}",
            ordinal(one.missed),
            grouped(history.tally().missed)
        ),
    };
    writeln!(out, "execution {} {met}{which}", grouped(number))?;
    let before = match one.before {
        Some(number) => format!("the last one before that {missed} is #{}", grouped(number)),
        None => format!("none before {missed}"),
    };
    let after = match one.after {
        Some(number) => format!("the next one is #{}", grouped(number)),
        None => format!("none after {missed}"),
    };
    writeln!(out, "{before}; {after}")?;
    writeln!(out, "{counts}: {}", history.spec())?;
    Ok(())
}

/// Formats an ordinal number: `1st`, `2nd`, `3rd`, `4th`, `11th`.
fn ordinal(number: u64) -> String {
    let end = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{}{end}", grouped(number))
}

/// The outcome of each execution of a branch, load or store in a simulation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateHistoryHead {
    /// The simulation: the options that request it, in full.
    pub simulation: String,
    /// The branch, load or store.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// `branch`, `table`, `call`, `load`, `store` or `bulk`.
    pub kind: &'static str,
    /// The numbers of executions and misses.
    #[serde(flatten)]
    pub missed: Missed,
}

impl Document for SimulateHistoryHead {
    const NAME: &'static str = "simulate-history";
    const COMMAND: &'static str = "simulate --at PLACE";
    type Row = SimulateHistoryRow;
}

/// Consecutive executions with the same outcome.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateHistoryRow {
    /// The number of the first execution, from 1.
    pub first: u64,
    /// The number of executions.
    pub executions: u64,
    /// `hit`, `missed`, or `missed_second` for a miss in both levels.
    pub outcome: &'static str,
}

/// Writes a history as lines of JSON: a head, then its runs.
///
/// # Errors
/// Returns an error if `out` fails or the history is damaged.
pub fn history_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    history: &SiteHistory<'_>,
) -> Result<(), PresentError> {
    let (site, tally) = history.stored.summary.sites[history.site];
    let head = SimulateHistoryHead {
        simulation: history.spec().to_string(),
        instruction: Shown::at(scene, history.place())?,
        kind: kind_name(site.kind),
        missed: Missed::new(history.spec(), tally),
    };
    begin(out, &head)?;
    each_run(history, |run, outcome| {
        let line = SimulateHistoryRow {
            first: run.first,
            executions: run.count,
            outcome,
        };
        row::<SimulateHistoryHead>(out, &line)
    })
}

/// Writes a history as comma-separated values: `simulation`, `offset`, `first`, `executions`,
/// `outcome`. The first history begins with a header line.
///
/// # Errors
/// Returns an error if `out` fails or the history is damaged.
pub fn history_csv(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    history: &SiteHistory<'_>,
    is_first: bool,
) -> Result<(), PresentError> {
    let header = if is_first {
        "simulation,offset,first,executions,outcome"
    } else {
        ""
    };
    let mut table = Csv::new(out, header)?;
    let offset = Shown::of(scene, history.place())?.offset.0;
    let name = history.spec().to_string();
    each_run(history, |run, outcome| {
        table.row(&[&name, &offset, &run.first, &run.count, &outcome])
    })?;
    table.finish()
}

/// Passes all runs to `write`, with their outcomes as words.
fn each_run(
    history: &SiteHistory<'_>,
    mut write: impl FnMut(OutcomeRun, &'static str) -> Result<(), PresentError>,
) -> Result<(), PresentError> {
    let mut written = Ok(());
    history.runs(|run| {
        let outcome = match run.outcome {
            Outcome::Hit => "hit",
            Outcome::Missed => "missed",
            Outcome::MissedBoth => "missed_second",
        };
        written = write(run, outcome);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    written
}
