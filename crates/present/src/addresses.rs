//! Addresses of loads and stores.

use std::io::Write;

use afterimage_ids::OrigOffset;
use afterimage_program::Location;
use afterimage_replay::steps::{Access, AccessSite, AddressStats, Distinct, Range};
use serde_json::{Value as Json, json};

use crate::PresentError;
use crate::number::{counted, grouped};
use crate::steps::{StepScene, range_json};
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// A load or a store, as it is shown.
pub(crate) struct Shown {
    pub name: String,
    pub offset: OrigOffset,
    position: Option<Location>,
}

impl Shown {
    pub(crate) fn of(scene: &StepScene<'_>, site: AccessSite) -> Result<Self, PresentError> {
        let found = scene.operators.get(site.function, site.op)?;
        let found = found.ok_or(PresentError::NoGraph(site.function.as_u32()))?;
        Ok(Self {
            name: found.name.to_string(),
            offset: found.offset,
            position: found.position,
        })
    }

    pub(crate) fn line(&self, scene: &StepScene<'_>) -> String {
        let line = self.position.map(|position| {
            let file = scene.source.shown_path(position.file);
            plain(&format!("{file}:{}", position.line))
        });
        line.unwrap_or_default()
    }

    pub(crate) fn file_and_line(&self, scene: &StepScene<'_>) -> (String, String) {
        let known = self.position.map(|position| {
            let file = scene.file(position).to_owned();
            (file, position.line.to_string())
        });
        known.unwrap_or_default()
    }

    pub(crate) fn json(&self, scene: &StepScene<'_>, site: AccessSite) -> Json {
        json!({
            "function": site.function.as_u32(),
            "name": scene.names.function(site.function),
            "operator": self.name,
            "offset": self.offset.0,
            "source": self.position.map(|position| {
                json!({ "file": scene.file(position), "line": position.line })
            }),
        })
    }
}

/// Gives the next execution; `None` at the end.
pub type NextAccess<'s> = dyn FnMut() -> Result<Option<Access>, PresentError> + 's;

/// Executions after each other whose addresses are equally far apart.
struct Run {
    first: Access,
    last: Access,
    stride: i64,
    count: u64,
}

impl Run {
    fn new(access: Access) -> Self {
        Self {
            first: access,
            last: access,
            stride: 0,
            count: 1,
        }
    }

    /// Whether an execution continues it.
    fn take(&mut self, access: Access) -> bool {
        // What trapped has a line of its own.
        if access.trap.is_some() {
            return false;
        }
        let stride = access.range.address.wrapping_sub(self.last.range.address) as i64;
        if self.count > 1 && stride != self.stride {
            return false;
        }
        self.stride = stride;
        self.last = access;
        self.count += 1;
        true
    }
}

/// Writes executions for a person: those after each other whose addresses are equally far apart are one line.
///
/// Returns whether there were more than `limit` lines.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn addresses_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    sites: &[AccessSite],
    next: &mut NextAccess<'_>,
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let mut heads = Vec::new();
    for &site in sites {
        let shown = Shown::of(scene, site)?;
        let function = plain(scene.names.function(site.function));
        heads.push(format!("@{} {}", shown.offset, shown.name));
        let line = shown.line(scene);
        let text = format!("@{} {}  {line}  in {function}", shown.offset, shown.name);
        writeln!(out, "{}", scene.style.paint(Paint::Bold, &text))?;
    }
    // Among several, each line says whose it is.
    let width = match sites.len() {
        1 => 0,
        _ => heads.iter().map(String::len).max().unwrap_or(0),
    };
    let mut written = 0;
    let mut line = |out: &mut dyn Write, run: &Run| -> Result<bool, PresentError> {
        if limit == Some(written) {
            return Ok(false);
        }
        written += 1;
        let head = match width {
            0 => "",
            _ => heads[run.first.site].as_str(),
        };
        let number = format!("#{}", grouped(run.first.number));
        let time = format!("t={}", grouped(run.first.time));
        let address = place(scene, run.first.range);
        let many = match run.count {
            1 => String::new(),
            count => format!(" {:+} x {}", run.stride, grouped(count)),
        };
        let trapped = match run.first.trap {
            Some(trap) => {
                let bytes = counted(run.first.range.length, "byte");
                format!(", {bytes}: trapped ({trap})")
            }
            None => String::new(),
        };
        let text = format!("{head:width$}{number:>12}  {time:<16}  {address}{many}{trapped}");
        writeln!(out, "{}", scene.style.cut(&text))?;
        Ok(true)
    };
    let mut runs: Vec<Option<Run>> = sites.iter().map(|_| None).collect();
    while let Some(access) = next()? {
        let run = &mut runs[access.site];
        if run.as_mut().is_some_and(|run| run.take(access)) {
            continue;
        }
        if let Some(run) = run.replace(Run::new(access))
            && !line(out, &run)?
        {
            return Ok(true);
        }
    }
    let mut rest = Vec::from_iter(runs.into_iter().flatten());
    rest.sort_by_key(|run| (run.first.time, run.first.site));
    for run in rest {
        if !line(out, &run)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes executions as lines of JSON, after a head.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn addresses_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    sites: &[AccessSite],
    next: &mut NextAccess<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    let mut heads = Vec::new();
    for &site in sites {
        heads.push(Shown::of(scene, site)?.json(scene, site));
    }
    writeln!(
        out,
        "{}",
        json!({ "schema": "afterimage/addresses/1", "instructions": heads })
    )?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(access) = next()?
    {
        let mut entry = json!({
            "instruction": access.site,
            "number": access.number,
            "t": access.time,
            "memory": access.range.memory,
            "address": access.range.address,
            "bytes": access.range.length,
        });
        if let Some(trap) = access.trap {
            entry["trapped"] = json!(trap.to_string());
        }
        writeln!(out, "{entry}")?;
        room -= 1;
    }
    Ok(())
}

/// Writes what loads and stores accessed, summed up, as a table: in the order of the program, or, if only so many may be shown, those that were
/// executed most often first. Whether there are more.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn address_stats_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    stats: &AddressStats,
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let AddressStats { sites, trapped } = stats;
    let mut order = Vec::from_iter(sites);
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    if order.len() > limit {
        order.sort_by_key(|(site, stats)| (std::cmp::Reverse(stats.count), *site));
    }
    let mut table = Table::new(&[
        ("offset", Left),
        ("operator", Left),
        ("accesses", Right),
        ("addresses", Right),
        ("smallest", Right),
        ("largest", Right),
        ("stride", Right),
        ("times", Right),
        ("source", Left),
        ("function", Left),
    ]);
    for (site, stats) in order.iter().take(limit) {
        let shown = Shown::of(scene, *site)?;
        let (stride, times) = match (stats.stride, stats.strides) {
            (Some(most), _) => (format!("{:+}", most.value), grouped(most.times)),
            (None, Distinct::Exactly(_)) => ("-".to_owned(), String::new()),
            (None, Distinct::MoreThan(bound)) => {
                ("various".to_owned(), format!("> {} kinds", grouped(bound)))
            }
        };
        let at = |address| {
            place(
                scene,
                Range {
                    memory: stats.memory,
                    address,
                    length: stats.bytes,
                },
            )
        };
        table.row([
            shown.offset.to_string(),
            shown.name.clone(),
            grouped(stats.count),
            distinct(stats.addresses),
            at(stats.smallest),
            at(stats.largest),
            stride,
            times,
            shown.line(scene),
            plain(scene.names.function(site.function)),
        ]);
    }
    table.write(out, scene.style, |_| Paint::Plain)?;
    let instructions = counted(sites.len() as u64, "instruction");
    let accesses: u64 = sites.iter().map(|(_, stats)| stats.count).sum();
    writeln!(out, "{instructions}, {}", accesses_text(accesses))?;
    if let Some((site, range, trap)) = trapped {
        let shown = Shown::of(scene, *site)?;
        writeln!(
            out,
            "not among them: {} at @{} in {} trapped ({trap}): {}, {}",
            shown.name,
            shown.offset,
            plain(scene.names.function(site.function)),
            place(scene, *range),
            counted(range.length, "byte")
        )?;
    }
    Ok(order.len() > limit)
}

fn accesses_text(count: u64) -> String {
    match count {
        1 => "1 access".to_owned(),
        count => format!("{} accesses", grouped(count)),
    }
}

/// The same as lines of JSON, after a head.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn address_stats_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    stats: &AddressStats,
) -> Result<(), PresentError> {
    let exact = |distinct| match distinct {
        Distinct::Exactly(count) => Some(count),
        Distinct::MoreThan(_) => None,
    };
    let mut head = json!({
        "schema": "afterimage/address-stats/1",
        "bound": afterimage_replay::steps::BOUND,
    });
    if let Some((site, range, trap)) = &stats.trapped {
        let mut trapped = Shown::of(scene, *site)?.json(scene, *site);
        trapped["access"] = range_json(*range);
        trapped["why"] = json!(trap.to_string());
        head["trapped"] = trapped;
    }
    writeln!(out, "{head}")?;
    for (site, stats) in &stats.sites {
        let mut entry = Shown::of(scene, *site)?.json(scene, *site);
        entry["accesses"] = json!(stats.count);
        entry["memory"] = json!(stats.memory);
        entry["bytes"] = json!(stats.bytes);
        entry["addresses"] = json!(exact(stats.addresses));
        entry["smallest"] = json!(stats.smallest);
        entry["largest"] = json!(stats.largest);
        entry["strides"] = json!(exact(stats.strides));
        entry["stride"] = json!(stats.stride.map(|most| most.value));
        entry["stride_times"] = json!(stats.stride.map(|most| most.times));
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

fn distinct(distinct: Distinct) -> String {
    match distinct {
        Distinct::Exactly(count) => grouped(count),
        Distinct::MoreThan(bound) => format!("> {}", grouped(bound)),
    }
}

/// An address, with its memory where there are several.
fn place(scene: &StepScene<'_>, range: Range) -> String {
    match scene.memories {
        0 | 1 => format!("0x{:x}", range.address),
        _ => format!("{}:0x{:x}", range.memory, range.address),
    }
}
