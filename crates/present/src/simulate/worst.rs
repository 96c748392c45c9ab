//! Reports the sites with the most misses, and the producers of their addresses and conditions.

use std::io::Write;

use afterimage_analyses::simulate::Producer;
use afterimage_replay::steps::AccessSite;
use schemars::JsonSchema;
use serde::Serialize;

use super::json::Missed;
use super::{SimulationView, SiteHistory};
use crate::PresentError;
use crate::addresses::Shown;
use crate::document::objects::Instruction;
use crate::document::{Document, begin, row};
use crate::number::{grouped, percent};
use crate::steps::StepScene;
use crate::table::{Paint, plain};

/// One of the sites with the most misses.
#[derive(Debug)]
pub struct WorstSite<'a> {
    /// Its history.
    pub history: SiteHistory<'a>,
    /// Some of the executions that missed, ascending.
    pub sample: Vec<u64>,
    /// The producers of its address or condition in the sampled executions, with their counts;
    /// `None` if the file has no values.
    pub producers: Option<Vec<(Producer, u64)>>,
    /// The command that explains the misses further.
    pub command: String,
}

/// Writes the sites with the most misses in the simulation `report`.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn worst_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
    sites: &[WorstSite<'_>],
) -> Result<(), PresentError> {
    let all = report.summary.sum(|_| true).missed;
    let sum: u64 = sites.iter().map(|site| site.history.tally().missed).sum();
    let what = site_noun(report);
    let head = match sites.len() {
        0 => format!("no {what} missed anything: {}", report.summary.spec),
        1 => format!(
            "one {what} has {} of all misses: {}",
            percent(sum, all),
            report.summary.spec
        ),
        count => format!(
            "{count} {what}s have {} of all misses: {}",
            percent(sum, all),
            report.summary.spec
        ),
    };
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    for site in sites {
        let (head, counts) = site.history.head(scene)?;
        writeln!(out)?;
        writeln!(out, "{head}")?;
        let share = percent(site.history.tally().missed, all);
        writeln!(out, "  {counts}: {share} of all")?;
        if let Some(producers) = &site.producers {
            let from = if report.is_branches() {
                "decided by"
            } else {
                "address from"
            };
            let told: u64 = producers.iter().map(|(_, count)| count).sum();
            for (producer, count) in producers {
                let share = match producers.len() {
                    1 => String::new(),
                    _ => format!(
                        " ({} of {} misses examined)",
                        grouped(*count),
                        grouped(told)
                    ),
                };
                let text = format!("  {from} {}{share}", producer_text(scene, *producer)?);
                writeln!(out, "{}", scene.style.cut(&text))?;
            }
        }
        writeln!(out, "  {}", site.command)?;
    }
    Ok(())
}

/// The loads, or branches, with the most misses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateWorstHead {
    /// The simulation: the options that request it, in full.
    pub simulation: String,
    /// The number of branches or accesses.
    pub executions: u64,
    /// The number of branches or accesses that missed.
    pub missed: u64,
}

impl Document for SimulateWorstHead {
    const NAME: &'static str = "simulate-worst";
    const COMMAND: &'static str = "simulate --worst";
    type Row = SimulateWorstRow;
}

/// One of the sites with the most misses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateWorstRow {
    /// The instruction.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The numbers of executions and misses.
    #[serde(flatten)]
    pub missed: Missed,
    /// A sample of the executions that missed, spread evenly.
    pub sample: Vec<u64>,
    /// The producers of the address or condition in the sampled executions; `null` if the recording
    /// has no values.
    pub producers: Option<Vec<SimulateProducer>>,
    /// The command that shows the slice of the last execution in the sample.
    pub command: String,
}

/// The producer of an address or condition.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateProducer {
    /// `operator`, `constant` or `host`.
    pub from: &'static str,
    /// The operator.
    #[serde(flatten)]
    pub instruction: Option<Instruction>,
    /// The number of sampled misses for which it was the producer.
    pub misses: u64,
}

/// Writes the sites as lines of JSON after a head.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn worst_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
    sites: &[WorstSite<'_>],
) -> Result<(), PresentError> {
    let all = report.summary.sum(|_| true);
    let head = SimulateWorstHead {
        simulation: report.summary.spec.to_string(),
        executions: all.executions,
        missed: all.missed,
    };
    begin(out, &head)?;
    for site in sites {
        let producers = site.producers.as_ref().map(|producers| {
            let all = producers.iter();
            let all = all.map(|(producer, count)| made_by(scene, *producer, *count));
            all.collect::<Result<_, _>>()
        });
        let entry = SimulateWorstRow {
            instruction: Shown::at(scene, site.history.place())?,
            missed: Missed::new(&report.summary.spec, site.history.tally()),
            sample: site.sample.clone(),
            producers: producers.transpose()?,
            command: site.command.clone(),
        };
        row::<SimulateWorstHead>(out, &entry)?;
    }
    Ok(())
}

fn site_noun(report: &SimulationView<'_>) -> &'static str {
    if report.is_branches() {
        "branch site"
    } else {
        "load"
    }
}

fn producer_text(scene: &StepScene<'_>, producer: Producer) -> Result<String, PresentError> {
    Ok(match producer {
        Producer::Constant => "a constant".to_owned(),
        Producer::Host => "the host".to_owned(),
        Producer::Operator(function, op) => {
            let shown = Shown::of(scene, AccessSite { function, op })?;
            format!(
                "@{} {}  {}  in {}",
                shown.offset,
                shown.name,
                shown.line(scene),
                plain(scene.names.function(function))
            )
        }
    })
}

fn made_by(
    scene: &StepScene<'_>,
    producer: Producer,
    misses: u64,
) -> Result<SimulateProducer, PresentError> {
    let (from, instruction) = match producer {
        Producer::Constant => ("constant", None),
        Producer::Host => ("host", None),
        Producer::Operator(function, op) => {
            let site = AccessSite { function, op };
            ("operator", Some(Shown::at(scene, site)?))
        }
    };
    Ok(SimulateProducer {
        from,
        instruction,
        misses,
    })
}
