//! For programs.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::ways::ways_json;
use super::{RedundancyOf, RedundancyReport, RedundancyScene};
use crate::PresentError;
use crate::addresses::Shown;

/// Writes redundant operators as JSON.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn redundancy_json(
    out: &mut dyn Write,
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    let steps = &scene.steps;
    let mut entries = Vec::new();
    for operator in &report.operators {
        let mut entry = Shown::of(steps, operator.site)?.json(steps, operator.site);
        entry["executions"] = json!(operator.executions);
        entry["redundant"] = json!(operator.redundant);
        if report.of == RedundancyOf::Loads {
            entry["same_call"] = json!(operator.within);
        }
        if let Some(by_path) = report.path(operator) {
            let sources = by_path.sources.iter();
            let sources = sources.map(|&(site, times)| -> Result<Json, PresentError> {
                let mut entry = Shown::of(steps, site)?.json(steps, site);
                entry["times"] = json!(times);
                Ok(entry)
            });
            entry["by_path"] = json!({
                "redundant": by_path.redundant,
                "queries": by_path.queries,
                "sources": Json::Array(sources.collect::<Result<_, _>>()?),
            });
        }
        let sources = operator
            .sources
            .iter()
            .map(|source| -> Result<Json, PresentError> {
                let mut entry = Shown::of(steps, source.site)?.json(steps, source.site);
                entry["store"] = json!(source.is_store);
                entry["times"] = json!(source.times);
                Ok(entry)
            });
        entry["sources"] = Json::Array(sources.collect::<Result<_, _>>()?);
        if report.ways > 0 {
            entry["all_ways"] = json!(operator.ways.len());
            entry["ways"] = ways_json(scene, operator, report.ways)?;
        }
        entries.push(entry);
    }
    let mut all = json!({
        "schema": "afterimage/redundancy/1",
        "executions": report.executions,
        "redundant": report.redundant,
        "instructions": report.instructions,
        "entries": entries,
    });
    match report.of {
        RedundancyOf::Loads => {
            all["loads"] = json!(report.all);
            all["same_call"] = json!(report.within);
        }
        RedundancyOf::Expressions => all["expressions"] = json!(report.all),
    }
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)?;
    Ok(())
}
