//! Redundant loads.

use std::io::Write;

use afterimage_query::dataflow::PathRedundancy;
use afterimage_query::redundancy::{LoadRedundancy, LoadSource, Redundancy};
use serde_json::{Value as Json, json};

use crate::PresentError;
use crate::addresses::Shown;
use crate::csv::quoted;
use crate::number::{counted, grouped, percent};
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// The loads that are shown, hottest first, and sums over those of all that were asked about.
#[derive(Clone, Debug, Default)]
pub struct RedundancyReport {
    /// Of which function, if only of one.
    pub function: Option<String>,
    /// The loads.
    pub loads: Vec<LoadRedundancy>,
    /// How many there are.
    pub all: u64,
    /// What the path alone tells of the loads that are shown, in the order of the program.
    pub by_path: Vec<PathRedundancy>,
    /// How often all of them were executed.
    pub executions: u64,
    /// How often they were redundant.
    pub redundant: u64,
    /// How often within their activations.
    pub within: u64,
    /// How many instructions the run executed.
    pub instructions: u64,
}

impl RedundancyReport {
    /// The loads with the most redundant executions first, so many of them.
    pub fn new(redundancy: Redundancy, function: Option<String>, top: Option<u64>) -> Self {
        let mut loads = redundancy.loads;
        let sum = |of: fn(&LoadRedundancy) -> u64| loads.iter().map(of).sum();
        let mut report = Self {
            function,
            all: loads.len() as u64,
            executions: sum(|load| load.executions),
            redundant: sum(|load| load.redundant),
            within: sum(|load| load.within),
            instructions: redundancy.instructions,
            loads: Vec::new(),
            by_path: Vec::new(),
        };
        loads.sort_by_key(|load| std::cmp::Reverse((load.redundant, load.within)));
        loads.truncate(top.map_or(usize::MAX, |top| top as usize));
        report.loads = loads;
        report
    }

    /// What the path alone tells of a load.
    fn path(&self, load: &LoadRedundancy) -> Option<&PathRedundancy> {
        let found = self.by_path.binary_search_by_key(&load.site, |p| p.site);
        found.ok().map(|found| &self.by_path[found])
    }
}

/// Writes redundant loads for a person: what was found in a sentence, then the loads, each with where it had its value from most often.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn redundancy_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    let of = report.function.as_deref();
    let of = of.map_or(String::new(), |name| format!(" of {}", plain(name)));
    if report.all == 0 {
        writeln!(out, "no load{of} was executed")?;
        return Ok(());
    }
    let sentence = format!(
        "{} of {} of {}{of} ({}) read what was available already; {} ({}) had been accessed in the same call",
        grouped(report.redundant),
        counted(report.executions, "execution"),
        counted(report.all, "load"),
        percent(report.redundant, report.executions),
        grouped(report.within),
        percent(report.within, report.executions),
    );
    writeln!(out, "{sentence}\n")?;
    let mut columns = vec![
        ("load", Left),
        ("", Left),
        ("executed", Right),
        ("redundant", Right),
        ("", Right),
        ("same call", Right),
        ("", Right),
    ];
    let has_paths = !report.by_path.is_empty();
    if has_paths {
        columns.extend([("by path", Right), ("", Right)]);
    }
    columns.extend([
        ("mostly from", Left),
        ("", Right),
        ("source", Left),
        ("function", Left),
    ]);
    let mut table = Table::new(&columns);
    for load in &report.loads {
        let shown = Shown::of(scene, load.site)?;
        let by_path = report.path(load);
        let (from, share) = match load.sources.first() {
            Some(source) => (
                from(scene, load, source)?,
                percent(source.times, load.redundant),
            ),
            None => ("-".to_owned(), String::new()),
        };
        let mut cells = vec![
            format!("@{}", shown.offset),
            shown.name.clone(),
            grouped(load.executions),
            grouped(load.redundant),
            percent(load.redundant, load.executions),
            grouped(load.within),
            percent(load.within, load.executions),
        ];
        if has_paths {
            cells.push(by_path.map_or(String::new(), |by_path| grouped(by_path.redundant)));
            cells.push(by_path.map_or(String::new(), |by_path| {
                percent(by_path.redundant, load.executions)
            }));
        }
        cells.extend([
            from,
            share,
            shown.line(scene),
            plain(scene.names.function(load.site.function)),
        ]);
        table.row(cells);
    }
    table.write(out, scene.style, |row| {
        Paint::of_share(report.loads[row].redundant, report.executions)
    })?;
    if (report.loads.len() as u64) < report.all {
        let more = report.all - report.loads.len() as u64;
        writeln!(
            out,
            "… and {}: see them with --top N",
            counted(more, "load")
        )?;
    }
    Ok(())
}

/// A source: where it is, if it is not the load itself.
fn from(
    scene: &StepScene<'_>,
    load: &LoadRedundancy,
    source: &LoadSource,
) -> Result<String, PresentError> {
    if source.site == load.site {
        return Ok("itself".to_owned());
    }
    let shown = Shown::of(scene, source.site)?;
    let line = shown.line(scene);
    let place = if line.is_empty() {
        String::new()
    } else {
        format!(" {line}")
    };
    Ok(format!("@{} {}{place}", shown.offset, shown.name))
}

/// The same as JSON.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn redundancy_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    let mut loads = Vec::new();
    for load in &report.loads {
        let mut entry = Shown::of(scene, load.site)?.json(scene, load.site);
        entry["executions"] = json!(load.executions);
        entry["redundant"] = json!(load.redundant);
        entry["same_call"] = json!(load.within);
        if let Some(by_path) = report.path(load) {
            let sources = by_path.sources.iter();
            let sources = sources.map(|&(site, times)| -> Result<Json, PresentError> {
                let mut entry = Shown::of(scene, site)?.json(scene, site);
                entry["times"] = json!(times);
                Ok(entry)
            });
            entry["by_path"] = json!({
                "redundant": by_path.redundant,
                "queries": by_path.queries,
                "sources": Json::Array(sources.collect::<Result<_, _>>()?),
            });
        }
        let sources = load
            .sources
            .iter()
            .map(|source| -> Result<Json, PresentError> {
                let mut entry = Shown::of(scene, source.site)?.json(scene, source.site);
                entry["store"] = json!(source.is_store);
                entry["times"] = json!(source.times);
                Ok(entry)
            });
        entry["sources"] = Json::Array(sources.collect::<Result<_, _>>()?);
        loads.push(entry);
    }
    let all = json!({
        "schema": "afterimage/redundancy/1",
        "loads": report.all,
        "executions": report.executions,
        "redundant": report.redundant,
        "same_call": report.within,
        "instructions": report.instructions,
        "entries": loads,
    });
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)?;
    Ok(())
}

/// The same as comma-separated values: a row for each load, with its first source.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn redundancy_csv(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    write!(
        out,
        "function,name,offset,operator,file,line,executions,redundant,same_call,by_path,source_function,source_offset,source_operator,source_times\r\n"
    )?;
    for load in &report.loads {
        let shown = Shown::of(scene, load.site)?;
        let (file, line) = shown.file_and_line(scene);
        let mut fields = vec![
            load.site.function.as_u32().to_string(),
            quoted(scene.names.function(load.site.function)).into_owned(),
            shown.offset.0.to_string(),
            shown.name,
            quoted(&file).into_owned(),
            line,
            load.executions.to_string(),
            load.redundant.to_string(),
            load.within.to_string(),
            report
                .path(load)
                .map_or(String::new(), |by_path| by_path.redundant.to_string()),
        ];
        match load.sources.first() {
            Some(source) => {
                let shown = Shown::of(scene, source.site)?;
                fields.extend([
                    source.site.function.as_u32().to_string(),
                    shown.offset.0.to_string(),
                    shown.name,
                    source.times.to_string(),
                ]);
            }
            None => fields.extend(std::iter::repeat_n(String::new(), 4)),
        }
        write!(out, "{}\r\n", fields.join(","))?;
    }
    Ok(())
}
