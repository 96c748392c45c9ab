//! `afterimage addresses`

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{
    PresentError, StepScene, address_stats_json, address_stats_text, addresses_json,
    addresses_text, grouped,
};
use afterimage_program::{Names, SourceMap};
use afterimage_query::Resolver;
use afterimage_query::location::{Occurrence, Place, number};
use afterimage_query::paths::FileSegments;
use afterimage_query::steps::{
    Access, AccessSite, Addresses, Operators, access_sites, address_stats, nearest_access,
};
use afterimage_query::values::Types;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::lens::{Traced, traced};
use crate::output::write;
use crate::places::counts_whole;
use crate::steps::follow;

/// Show which addresses loads and stores accessed, execution by execution or summed up
///
/// Loads and stores are those of single values; what bulk operations and the host access is in `afterimage trace --level memory`. The run is
/// followed from its beginning. Different addresses and strides are told apart up to 4,096 of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage addresses app.aft --all
  afterimage addresses app.aft --at parser.c:42
  afterimage addresses app.aft --at @0x1f3 --instances 1000..1010
  afterimage addresses app.aft --at parse+0x2a --stats
In text, 0x1040 +4 x 1000 are 1000 executions after each other, of which each accessed what is 4 bytes after the one before.")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function for all of its loads and stores; #K or #last at its end is one execution, of a line one arrival at it, of a function one call
    #[arg(long, value_name = "PLACE", required_unless_present = "all")]
    at: Option<String>,
    /// Which executions of each: A..B, K, last, or t=T for those in block T
    #[arg(long, value_name = "WHICH", requires = "at", conflicts_with = "stats")]
    instances: Option<String>,
    /// Sum up: how many accesses and addresses, the smallest and largest, the most frequent stride
    #[arg(long)]
    stats: bool,
    /// Sum up those of the whole program
    #[arg(long, conflicts_with = "at")]
    all: bool,
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
}

/// Lines that text has on standard output if nothing else is asked for.
const LINES: u64 = 100;

/// Which executions are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Range(u64, u64),
    Last,
    At(u64),
    /// Those of an arrival at a line, or of a call: the time and the number of the site, ascending.
    These(Vec<(u64, usize)>),
}

fn which(text: &str) -> Result<Which> {
    if text == "last" {
        return Ok(Which::Last);
    }
    if let Some(time) = text.strip_prefix("t=").and_then(number) {
        return Ok(Which::At(time));
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
    let traced = traced(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Traced) -> Result<()> {
    let loaded = &traced.loaded;
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let scene = StepScene {
        names: &names,
        operators: &operators,
        source: &source,
        memories: loaded.program.memories,
        style: arguments.report.style(),
    };
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
    traced: &'a Traced,
    (names, source): (&'a Names, &'a SourceMap<'a>),
    at: &str,
    sites: &[AccessSite],
) -> Result<Which> {
    let steps = traced.positions(names, source).executed(at)?;
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
    traced: &Traced,
    scene: &StepScene<'_>,
    text: &str,
    place: &Place,
) -> Result<Vec<AccessSite>> {
    let loaded = &traced.loaded;
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
    traced: &Traced,
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
            Format::Json => address_stats_json(out, scene, &stats)?,
        }
        Ok(())
    })
}

fn listed(
    arguments: &Arguments,
    traced: &Traced,
    scene: &StepScene<'_>,
    sites: &[AccessSite],
    which: Option<Which>,
) -> Result<()> {
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let limit = arguments.limit.or(screen.then_some(LINES));
    follow(traced, |run, log| {
        let mut chosen = Chosen::new(Addresses::new(run, log, sites)?, sites.len(), which);
        // What is not there is said before anything is written.
        let mut first = Some(chosen.first(arguments.at.as_deref().unwrap_or_default())?);
        let mut next = || match first.take() {
            Some(first) => Ok(Some(first)),
            None => chosen.next(),
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
                Format::Json => addresses_json(out, scene, sites, &mut next, limit)?,
            }
            Ok(())
        })
    })
}

/// The executions that are asked for.
struct Chosen<'a> {
    addresses: Addresses<'a, FileSegments>,
    which: Option<Which>,
    /// How many executions of each were met.
    met: Vec<u64>,
    /// The last of each.
    last: Option<std::vec::IntoIter<Access>>,
    /// When something was executed before and after the time that is asked for.
    around: (Option<u64>, Option<u64>),
}

impl<'a> Chosen<'a> {
    fn new(addresses: Addresses<'a, FileSegments>, sites: usize, which: Option<Which>) -> Self {
        Self {
            addresses,
            which,
            met: vec![0; sites],
            last: None,
            around: (None, None),
        }
    }

    /// The first one, or why there is none.
    fn first(&mut self, text: &str) -> Result<Access> {
        if let Some(first) = self.next()? {
            return Ok(first);
        }
        let most = self.met.iter().copied().max().unwrap_or(0);
        let times = match most {
            1 => "once".to_owned(),
            many => format!("{} times", grouped(many)),
        };
        match (&self.which, self.around) {
            (&Some(Which::At(time)), (before, after)) => {
                let nearest = before.into_iter().chain(after);
                match nearest.min_by_key(|near| near.abs_diff(time)) {
                    Some(near) => bail!(
                        "no load or store at {text} is executed at t={time}; the nearest is at t={near}"
                    ),
                    None => bail!("no load or store at {text} was ever executed"),
                }
            }
            (&Some(Which::Range(first, _)), _) if most > 0 => bail!(
                "what is at {text} was executed {times}, so there is no execution {first}; the last is {most}"
            ),
            _ => bail!("no load or store at {text} was ever executed"),
        }
    }

    fn next(&mut self) -> Result<Option<Access>, PresentError> {
        if self.which == Some(Which::Last) && self.last.is_none() {
            let mut last = vec![None; self.met.len()];
            while let Some(access) = self.step()? {
                last[access.site] = Some(access);
            }
            let mut last = Vec::from_iter(last.into_iter().flatten());
            last.sort_by_key(|access: &Access| (access.time, access.site));
            self.last = Some(last.into_iter());
        }
        if let Some(last) = &mut self.last {
            return Ok(last.next());
        }
        while let Some(access) = self.step()? {
            match self.which {
                Some(Which::These(ref these)) => {
                    if these.binary_search(&(access.time, access.site)).is_ok() {
                        return Ok(Some(access));
                    }
                    if these.last().is_none_or(|last| access.time > last.0) {
                        return Ok(None);
                    }
                }
                Some(Which::Range(first, last)) => {
                    if access.number >= first && access.number <= last {
                        return Ok(Some(access));
                    }
                    if self.met.iter().all(|&met| met > last) {
                        return Ok(None);
                    }
                }
                Some(Which::At(time)) => {
                    if access.time == time {
                        return Ok(Some(access));
                    }
                    if access.time > time {
                        self.around.1 = Some(access.time);
                        return Ok(None);
                    }
                    self.around.0 = Some(access.time);
                }
                Some(Which::Last) | None => return Ok(Some(access)),
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<Option<Access>, PresentError> {
        let access = self.addresses.next();
        let access = access.map_err(|error| PresentError::Path(Box::new(error)))?;
        if let Some(access) = access {
            self.met[access.site] = access.number;
        }
        Ok(access)
    }
}
