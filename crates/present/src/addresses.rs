//! Reports the addresses that loads and stores accessed.

use std::io::Write;

use afterimage_ids::OrigOffset;
use afterimage_profile::Source;
use afterimage_program::Location;
use afterimage_replay::steps::{Access, AccessSite, AddressStats, Distinct, Range};
use schemars::JsonSchema;
use serde::Serialize;

use crate::PresentError;
use crate::document::objects::{Function, Instruction, MemoryRange, Position};
use crate::document::{Document, TakeRows};
use crate::number::{counted, grouped};
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// A load or store, prepared for display.
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

    /// Returns the source line or, for inlined library code, the line of shown code into which it
    /// was inlined.
    pub(crate) fn line(&self, scene: &StepScene<'_>) -> String {
        let own = scene.own.and_then(|own| own.folded.locate(self.offset));
        let line = own.or(self.position).map(|position| {
            let file = scene.source.short_path(position.file);
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

    pub(crate) fn instruction(&self, scene: &StepScene<'_>, site: AccessSite) -> Instruction {
        let source = self.position;
        Instruction {
            function: Function::new(scene.names, site.function),
            operator: self.name.clone(),
            offset: self.offset.0,
            source: source.map(|position| Position::line(scene.file(position), position.line)),
        }
    }

    /// Describes the operator of a load or store.
    pub(crate) fn at(scene: &StepScene<'_>, site: AccessSite) -> Result<Instruction, PresentError> {
        Ok(Self::of(scene, site)?.instruction(scene, site))
    }
}

/// Returns the next execution, or `None` at the end.
pub type NextAccess<'s> = dyn FnMut() -> Result<Option<Access>, PresentError> + 's;

/// Consecutive executions with equidistant addresses.
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

    /// Adds an execution if its address continues the sequence. Returns whether it does.
    fn take(&mut self, access: Access) -> bool {
        // An access that trapped has a separate line.
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

/// Writes executions for a person. Consecutive executions with equidistant addresses share a line.
///
/// Returns whether there were more than `limit` lines.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
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
    // If there are several instructions, each line names its instruction.
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

/// The accesses of loads and stores, with one row for each execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AddressesHead {
    /// The loads and stores.
    pub instructions: Vec<Instruction>,
}

impl Document for AddressesHead {
    const NAME: &'static str = "addresses";
    const COMMAND: &'static str = "addresses";
    type Row = AddressRow;
}

/// An execution of a load or store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AddressRow {
    /// The index of its instruction in the head's `instructions`, from 0.
    pub instruction: usize,
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The bytes that it accessed.
    #[serde(flatten)]
    pub range: MemoryRange,
    /// The reason for the trap, if this execution trapped. An execution that trapped accessed
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
}

/// Writes executions for programs.
///
/// # Errors
/// Returns an error if `to` fails or the run cannot be followed.
pub fn address_rows(
    to: &mut dyn TakeRows<AddressesHead>,
    scene: &StepScene<'_>,
    sites: &[AccessSite],
    next: &mut NextAccess<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    let instructions = sites.iter().map(|&site| Shown::at(scene, site));
    let instructions = instructions.collect::<Result<_, _>>()?;
    to.head(AddressesHead { instructions })?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(access) = next()?
    {
        let entry = AddressRow {
            instruction: access.site,
            number: access.number,
            t: access.time,
            range: access.range.into(),
            trapped: access.trap.map(|trap| trap.to_string()),
        };
        to.row(entry)?;
        room -= 1;
    }
    Ok(())
}

/// Writes a summary of the accesses of loads and stores as a table. Rows are in program order. If
/// their number is limited, the most frequently executed instructions come first. Returns whether
/// the limit left out any rows.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
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
            "not included: {} at @{} in {} trapped ({trap}): {}, {}",
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

/// A summary of the accesses of loads and stores.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AddressStatsHead {
    /// The largest count that is exact. Larger counts are `null`.
    pub bound: u64,
    /// The access that trapped. The other fields do not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<TrappedAccess>,
}

impl Document for AddressStatsHead {
    const NAME: &'static str = "address-stats";
    const COMMAND: &'static str = "addresses --stats";
    type Row = AddressStatsRow;
}

/// A load or store that trapped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrappedAccess {
    /// The instruction.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The bytes that it would have accessed.
    pub access: MemoryRange,
    /// Why it trapped.
    pub why: String,
}

/// A load or store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AddressStatsRow {
    /// The instruction.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The number of executions.
    pub accesses: u64,
    /// The memory that it accesses.
    pub memory: u32,
    /// The number of bytes per access.
    pub bytes: u64,
    /// The number of distinct addresses.
    pub addresses: Option<u64>,
    /// The smallest address.
    pub smallest: u64,
    /// The largest address.
    pub largest: u64,
    /// The number of distinct strides. A stride is the difference between the addresses of two
    /// consecutive executions.
    pub strides: Option<u64>,
    /// The most frequent stride.
    pub stride: Option<i64>,
    /// The number of times the most frequent stride occurred.
    pub stride_times: Option<u64>,
}

/// Writes the summary for programs.
///
/// # Errors
/// Returns an error if `to` fails or the module does not match the program.
pub fn address_stats_rows(
    to: &mut dyn TakeRows<AddressStatsHead>,
    scene: &StepScene<'_>,
    stats: &AddressStats,
) -> Result<(), PresentError> {
    let trapped = stats.trapped.as_ref().map(|(site, range, trap)| {
        Ok::<_, PresentError>(TrappedAccess {
            instruction: Shown::at(scene, *site)?,
            access: (*range).into(),
            why: trap.to_string(),
        })
    });
    let head = AddressStatsHead {
        bound: afterimage_replay::steps::BOUND as u64,
        trapped: trapped.transpose()?,
    };
    to.head(head)?;
    for (site, stats) in &stats.sites {
        let entry = AddressStatsRow {
            instruction: Shown::at(scene, *site)?,
            accesses: stats.count,
            memory: stats.memory,
            bytes: stats.bytes,
            addresses: exact(stats.addresses),
            smallest: stats.smallest,
            largest: stats.largest,
            strides: exact(stats.strides),
            stride: stats.stride.map(|most| most.value),
            stride_times: stats.stride.map(|most| most.times),
        };
        to.row(entry)?;
    }
    Ok(())
}

/// Returns the count, if it is exact.
pub(crate) fn exact(distinct: Distinct) -> Option<u64> {
    match distinct {
        Distinct::Exactly(count) => Some(count),
        Distinct::MoreThan(_) => None,
    }
}

fn distinct(distinct: Distinct) -> String {
    match distinct {
        Distinct::Exactly(count) => grouped(count),
        Distinct::MoreThan(bound) => format!("> {}", grouped(bound)),
    }
}

/// Formats an address, with its memory if there are several memories.
fn place(scene: &StepScene<'_>, range: Range) -> String {
    match scene.memories {
        0 | 1 => format!("0x{:x}", range.address),
        _ => format!("{}:0x{:x}", range.memory, range.address),
    }
}
