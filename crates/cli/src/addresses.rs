//! `afterimage addresses`

use std::collections::HashMap;

use afterimage::Session;
use afterimage::places::{counts_whole, reached, times};
use afterimage::steps::follow;
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{
    PresentError, StepScene, accessed_binary, accessed_json, accessed_text, address_stats_json,
    address_stats_text, addresses_json, addresses_text,
};
use afterimage_profile::Resolver;
use afterimage_profile::location::{Occurrence, Place, number};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::paths::FileSegments;
use afterimage_replay::steps::{
    Access, AccessSite, AccessedStretches, Addresses, Operators, access_sites, address_stats,
    nearest_access,
};
use afterimage_replay::values::{Types, block_executions};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::lens::traced_whole;
use crate::output::write;

/// Show which addresses loads and stores accessed, execution by execution or summed up
///
/// Loads and stores are those of single values; what bulk operations and the host access is in `afterimage trace --level memory`. The run is
/// followed from its beginning; for --instances and #K only where these are executed, from the last checkpoint before, which `build --lens full` makes.
/// Different addresses and strides are told apart up to 4,096 of them. An access that trapped is listed, and marked; sums and --each do not have it.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "all"]))]
#[command(after_help = "\
Examples:
  afterimage addresses app.aft --all
  afterimage addresses app.aft --all --each --format bin -o addresses.bin
  afterimage addresses app.aft --at parser.c:42
  afterimage addresses app.aft --at @0x1f3 --instances 1000..1010
  afterimage addresses app.aft --at parse+0x2a --stats
In text, 0x1040 +4 x 1000 are 1000 executions after each other, of which each accessed what is 4 bytes after the one before.")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function for all of its loads and stores; #K or #last at its end is one execution, of a line one arrival at it, of a function one call
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// Which executions of each: A..B, K, last, or t=T for those in block T and later
    #[arg(long, value_name = "WHICH", requires = "at", conflicts_with = "stats")]
    instances: Option<String>,
    /// Sum up: how many accesses and addresses, the smallest and largest, the most frequent stride
    #[arg(long)]
    stats: bool,
    /// Sum up those of the whole program
    #[arg(long, conflicts_with = "at")]
    all: bool,
    /// All addresses of the whole program instead, one instruction's after the other, up to 256 at a time
    #[arg(long, requires = "all", conflicts_with = "stats")]
    each: bool,
    /// At most N lines [default: 100 for text on standard output]
    #[arg(long, value_name = "N|all", value_parser = entries)]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    /// One object a line
    Json,
    /// Addresses of --all --each for other programs, see docs/TRACE.md
    Bin,
}

impl Arguments {
    fn place(&self) -> &str {
        self.at.as_deref().unwrap_or_default()
    }
}

/// Lines that text has on standard output if nothing else is asked for.
const LINES: u64 = 100;

/// Which executions are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Range(u64, u64),
    Last,
    From(u64),
    /// Those of an arrival at a line, or of a call: the time and the number of the site, ascending.
    These(Vec<(u64, usize)>),
}

fn which(text: &str) -> Result<Which> {
    if text == "last" {
        return Ok(Which::Last);
    }
    if let Some(time) = text.strip_prefix("t=").and_then(number) {
        return Ok(Which::From(time));
    }
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > 0 && first <= last => Ok(Which::Range(first, last)),
        _ => {
            bail!("--instances {text}: write A..B with numbers from 1 on, one number, last, or t=T")
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let traced = traced_whole(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin is for --all --each");
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
    if arguments.each {
        return each(arguments, traced, &scene);
    }
    let Some(at) = &arguments.at else {
        return summed(arguments, traced, &scene, None);
    };
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, &names, &source);
    let resolved = resolver.location(at)?;
    let sites = sites(traced, &scene, at, &resolved.place)?;
    let which = match (&arguments.instances, resolved.occurrence) {
        (Some(_), Some(_)) => {
            bail!("{at} names one execution already; leave --instances out")
        }
        (None, Some(_)) if arguments.stats => {
            bail!("{at} names one execution, of which there is nothing to sum up")
        }
        (Some(text), None) => Some(which(text)?),
        (None, Some(_)) if counts_whole(&resolved.place, at) => {
            Some(named(traced, (&names, &source), at, &sites)?)
        }
        (None, Some(Occurrence::Kth(number))) => Some(Which::Range(number, number)),
        (None, Some(Occurrence::Last)) => Some(Which::Last),
        (None, None) => None,
    };
    if arguments.stats {
        return summed(arguments, traced, &scene, Some(&sites));
    }
    listed(arguments, traced, &scene, &sites, which)
}

/// Those that an arrival at a line, or a call, executes.
fn named<'a>(
    traced: &'a Session,
    (names, source): (&'a Names, &'a SourceMap<'a>),
    at: &str,
    sites: &[AccessSite],
) -> Result<Which> {
    let steps = traced.positions(names, source)?.executed(at)?;
    let mut found = Vec::new();
    for step in steps {
        let mut sites = sites.iter();
        let is_here = |site: &AccessSite| (site.function, site.op) == (step.function, step.op);
        found.extend(sites.position(is_here).map(|site| (step.time, site)));
    }
    if found.is_empty() {
        bail!("{at} executes no load or store");
    }
    found.sort_unstable();
    Ok(Which::These(found))
}

/// The loads and stores at a place.
fn sites(
    traced: &Session,
    scene: &StepScene<'_>,
    text: &str,
    place: &Place,
) -> Result<Vec<AccessSite>> {
    let loaded = traced.module();
    let types = Types::new(&loaded.program, &loaded.bytes);
    let operators: Vec<(FuncId, OpId)> = match place {
        Place::Operator(function, op) => vec![(*function, *op)],
        Place::Line(_, operators) => operators.clone(),
        Place::Function(function) => {
            let Some(known) = loaded.program.function(*function) else {
                bail!("{text} is imported: it has no loads and stores here");
            };
            let all = (0..known.operators).map(OpId::from_u32);
            all.map(|op| (*function, op)).collect()
        }
    };
    let sites = access_sites(&types, &operators);
    if !sites.is_empty() {
        return Ok(sites);
    }
    let nearest = operators
        .first()
        .and_then(|&(function, op)| nearest_access(&types, function, op));
    let Some(nearest) = nearest else {
        bail!("there is no load or store at {text}, nor anywhere in its function");
    };
    let found = scene.operators.get(nearest.function, nearest.op)?;
    let found = found.context("the nearest load or store is not in the module")?;
    bail!(
        "there is no load or store at {text}; the nearest is {} at @{}",
        found.name,
        found.offset
    )
}

fn summed(
    arguments: &Arguments,
    traced: &Session,
    scene: &StepScene<'_>,
    sites: Option<&[AccessSite]>,
) -> Result<()> {
    let stats = follow(traced, |run, log| Ok(address_stats(run, log, sites)?))?;
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let limit = arguments.limit.or(screen.then_some(LINES));
    write(out, false, |out| {
        match arguments.format {
            Format::Text => {
                if address_stats_text(out, scene, &stats, limit)? {
                    writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                }
            }
            Format::Json | Format::Bin => address_stats_json(out, scene, &stats)?,
        }
        Ok(())
    })
}

/// All addresses of the program.
fn each(arguments: &Arguments, traced: &Session, scene: &StepScene<'_>) -> Result<()> {
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let limit = arguments.limit.or(screen.then_some(LINES));
    follow(traced, |run, log| {
        let mut stretches = AccessedStretches::new(run, log)?;
        let mut next = || {
            let next = stretches.next();
            next.map_err(|error| PresentError::Path(Box::new(error)))
        };
        write(out, arguments.format == Format::Bin, |out| {
            match arguments.format {
                Format::Text => {
                    if accessed_text(out, scene, &mut next, limit)? {
                        writeln!(out, "… and more: see them with --limit N, or -o FILE")?;
                    }
                }
                Format::Json => accessed_json(out, scene, &mut next, limit)?,
                Format::Bin => accessed_binary(out, scene, &mut next, limit)?,
            }
            Ok(())
        })
    })
}

fn listed(
    arguments: &Arguments,
    traced: &Session,
    scene: &StepScene<'_>,
    sites: &[AccessSite],
    which: Option<Which>,
) -> Result<()> {
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let limit = arguments.limit.or(screen.then_some(LINES));
    let chosen = Chosen::of(traced, arguments.place(), sites, which)?;
    follow(traced, |run, log| {
        let mut found = chosen.find(Addresses::new(run, log, sites)?);
        // What is not there is said before anything is written.
        let first = found.next()?;
        let mut first = Some(first.with_context(|| {
            format!(
                "nothing at {} accesses an address below 2⁶⁴",
                arguments.place()
            )
        })?);
        let mut next = || match first.take() {
            Some(first) => Ok(Some(first)),
            None => found.next(),
        };
        write(out, false, |out| {
            match arguments.format {
                Format::Text => {
                    if addresses_text(out, scene, sites, &mut next, limit)? {
                        writeln!(
                            out,
                            "… and more: see them with --limit N, --instances A..B, or -o FILE"
                        )?;
                    }
                }
                Format::Json | Format::Bin => {
                    addresses_json(out, scene, sites, &mut next, limit)?;
                }
            }
            Ok(())
        })
    })
}

/// The executions that are asked for, and where they are.
struct Chosen {
    kind: Kind,
    /// From when to when they are.
    first: u64,
    last: u64,
}

enum Kind {
    /// All from the first time on.
    All,
    /// Those with these numbers, of each site.
    Numbers(u64, u64),
    /// These: the time and the number of the site, ascending.
    These(Vec<(u64, usize)>),
}

impl Chosen {
    /// Finds them in the path; says why there are none.
    fn of(
        traced: &Session,
        text: &str,
        sites: &[AccessSite],
        which: Option<Which>,
    ) -> Result<Self> {
        let never = || format!("no load or store at {text} was ever executed");
        if let Some(Which::These(these)) = which {
            let first = these.first().map_or(1, |these| these.0);
            let last = these.last().map_or(0, |these| these.0);
            let kind = Kind::These(these);
            return Ok(Self { kind, first, last });
        }
        let program = traced.program();
        // How often each was executed, when those that are asked for were executed first and last, and their number by then.
        let (mut most, mut first, mut last) = (0, u64::MAX, 0);
        let mut latest = None;
        let mut these = Vec::new();
        let mut known = HashMap::new();
        for (number, site) in sites.iter().enumerate() {
            let block = program.function(site.function);
            let block = block.and_then(|function| function.block_of(site.op));
            // Where the run ended in a block, not all of it was executed equally often.
            let ended = traced.stops()?.first().is_some_and(|stop| {
                stop.function == site.function && site.op >= stop.next && Some(stop.block) == block
            });
            let key = (site.function, block, ended);
            let found = match known.get(&key) {
                Some(&found) => found,
                None => {
                    let found = span(traced, site, which.as_ref())?;
                    known.insert(key, found);
                    found
                }
            };
            let Span {
                count,
                wanted,
                final_time,
            } = found;
            most = most.max(count);
            latest = latest.max(final_time);
            if let Some((from, to)) = wanted {
                first = first.min(from);
                last = last.max(to);
                these.push((to, number));
            }
        }
        if most == 0 {
            bail!("{}", never());
        }
        if first > last {
            match which {
                Some(Which::Range(from, _)) => bail!(
                    "what is at {text} was executed {}, so there is no execution {from}; the last is {most}",
                    times(most)
                ),
                Some(Which::From(time)) => bail!(
                    "no load or store at {text} is executed at t={time} or later; the last time is t={}",
                    latest.unwrap_or(0)
                ),
                _ => bail!("{}", never()),
            }
        }
        let kind = match which {
            Some(Which::Range(from, to)) => Kind::Numbers(from, to),
            Some(Which::Last) => {
                these.sort_unstable();
                Kind::These(these)
            }
            _ => Kind::All,
        };
        Ok(Self { kind, first, last })
    }

    /// Follows the run from before the first.
    fn find<'a>(&'a self, addresses: Addresses<'a, FileSegments>) -> Found<'a> {
        Found {
            chosen: self,
            addresses,
            at: 0,
            begun: false,
        }
    }
}

/// When a site is executed.
#[derive(Clone, Copy)]
struct Span {
    /// How often.
    count: u64,
    /// The first and the last time of those that are asked for, if there are any.
    wanted: Option<(u64, u64)>,
    /// The time of the last one of all.
    final_time: Option<u64>,
}

fn span(traced: &Session, site: &AccessSite, which: Option<&Which>) -> Result<Span> {
    let program = traced.program();
    let all = block_executions(traced.path()?, program, site.function, site.op)?;
    let by = |time| Ok(all.rank(time)?);
    let count = reached(traced, (site.function, site.op), all.count(), by)?;
    let time = |number| -> Result<Option<u64>> {
        let found = if number <= count {
            all.select(number)?
        } else {
            None
        };
        Ok(found.map(|found| found.time))
    };
    let final_time = time(count)?;
    let (first, last) = match which {
        Some(&Which::Range(first, last)) => (first, last.min(count)),
        Some(Which::Last) => (count, count),
        Some(&Which::From(time)) => (all.rank(time.saturating_sub(1))? + 1, count),
        Some(Which::These(_)) | None => (1, count),
    };
    Ok(Span {
        count,
        wanted: time(first)?.zip(time(last)?),
        final_time,
    })
}

/// Finds the executions that are asked for.
struct Found<'a> {
    chosen: &'a Chosen,
    addresses: Addresses<'a, FileSegments>,
    /// How many of these were passed.
    at: usize,
    begun: bool,
}

impl Found<'_> {
    fn next(&mut self) -> Result<Option<Access>, PresentError> {
        let Chosen { kind, first, last } = self.chosen;
        if !self.begun {
            self.begun = true;
            self.skip_to(*first)?;
        }
        while let Some(access) = self.step()? {
            if access.time > *last {
                return Ok(None);
            }
            let is_it = match kind {
                Kind::All => access.time >= *first,
                Kind::Numbers(from, to) => (*from..=*to).contains(&access.number),
                Kind::These(these) => {
                    let here = (access.time, access.site);
                    let passed = self.at;
                    while these.get(self.at).is_some_and(|these| *these < here) {
                        self.at += 1;
                    }
                    let is_it = these.get(self.at) == Some(&here);
                    self.at += usize::from(is_it);
                    if let Some(&(next, _)) = these.get(self.at).filter(|_| self.at > passed) {
                        self.skip_to(next)?;
                    }
                    is_it
                }
            };
            if is_it {
                return Ok(Some(access));
            }
        }
        Ok(None)
    }

    fn skip_to(&mut self, time: u64) -> Result<(), PresentError> {
        let done = self.addresses.skip_to(time);
        done.map_err(|error| PresentError::Path(Box::new(error)))
    }

    fn step(&mut self) -> Result<Option<Access>, PresentError> {
        let access = self.addresses.next();
        access.map_err(|error| PresentError::Path(Box::new(error)))
    }
}
