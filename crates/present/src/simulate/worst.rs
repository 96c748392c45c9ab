//! Where most was missed, and who is behind it.

use std::io::Write;

use afterimage_analyses::simulate::Producer;
use afterimage_replay::steps::AccessSite;
use serde_json::{Value as Json, json};

use super::{MissReport, SiteHistory};
use crate::PresentError;
use crate::addresses::Shown;
use crate::number::{grouped, percent};
use crate::steps::StepScene;
use crate::table::{Paint, plain};

/// One of the sites that missed most.
#[derive(Debug)]
pub struct WorstSite<'a> {
    /// Its history.
    pub history: SiteHistory<'a>,
    /// Some of the executions that were missed, ascending.
    pub sample: Vec<u64>,
    /// Who made its address, or its condition, in these, and in how many of them; `None` if the file has no values.
    pub producers: Option<Vec<(Producer, u64)>>,
    /// The command that shows more.
    pub command: String,
}

/// Writes the sites of a simulation that missed most. `report` is the simulation that they are of.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn worst_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &MissReport<'_>,
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
            let from = match report.is_branches() {
                true => "decided by",
                false => "address from",
            };
            let told: u64 = producers.iter().map(|(_, count)| count).sum();
            for (producer, count) in producers {
                let share = match producers.len() {
                    1 => String::new(),
                    _ => format!(
                        " ({} of {} misses looked at)",
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

/// The same as lines of JSON, after a head.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn worst_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &MissReport<'_>,
    sites: &[WorstSite<'_>],
) -> Result<(), PresentError> {
    let all = report.summary.sum(|_| true);
    let head = json!({
        "schema": "afterimage/simulate-worst/1",
        "simulation": report.summary.spec.to_string(),
        "executions": all.executions,
        "missed": all.missed,
    });
    writeln!(out, "{head}")?;
    for site in sites {
        let place = site.history.place();
        let mut entry = Shown::of(scene, place)?.json(scene, place);
        let tally = site.history.tally();
        entry["executions"] = json!(tally.executions);
        entry["missed"] = json!(tally.missed);
        if report.summary.spec.is_two() {
            entry["missed_second"] = json!(tally.last);
        }
        entry["sample"] = json!(site.sample);
        entry["producers"] = match &site.producers {
            None => Json::Null,
            Some(producers) => {
                let all = producers.iter().map(|(producer, count)| {
                    let mut entry = producer_json(scene, *producer)?;
                    entry["misses"] = json!(count);
                    Ok(entry)
                });
                Json::Array(all.collect::<Result<_, PresentError>>()?)
            }
        };
        entry["command"] = json!(site.command);
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

fn site_noun(report: &MissReport<'_>) -> &'static str {
    match report.is_branches() {
        true => "branch site",
        false => "load",
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

fn producer_json(scene: &StepScene<'_>, producer: Producer) -> Result<Json, PresentError> {
    let word = |word: &str| json!({ "from": word });
    Ok(match producer {
        Producer::Constant => word("constant"),
        Producer::Host => word("host"),
        Producer::Operator(function, op) => {
            let site = AccessSite { function, op };
            let mut entry = Shown::of(scene, site)?.json(scene, site);
            entry["from"] = json!("operator");
            entry
        }
    })
}
