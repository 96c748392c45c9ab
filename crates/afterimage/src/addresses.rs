//! Finds the addresses that loads and stores accessed.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;

use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::{JsonLines, Listed, WithRows};
use afterimage_present::{
    AddressStatsHead, AddressesHead, NextAccess, PresentError, Style, accessed_binary,
    accessed_rows, accessed_text, address_rows, address_stats_rows, address_stats_text,
    addresses_text, grouped,
};
use afterimage_profile::location::{Occurrence, Place, number};
use afterimage_replay::steps::{
    Access, AccessSite, AccessedStretches, AddressStats, Addresses, access_sites, address_stats,
    nearest_access,
};
use afterimage_replay::values::{Types, block_executions};
use afterimage_replay::whole_path::FileSegments;
use anyhow::{Context, Error, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::{NamedProgram, with_names};
use crate::places::{counts_whole, reached, times};
use crate::rows::{Form, MORE, Rows, next_of};
use crate::steps::follow;

/// Asks which addresses loads and stores accessed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressesQuery {
    /// The place: `file.c:42`, `func+0x2a`, `@0x1f3`, or a function. `#7` or `#last` at the end
    /// selects one execution.
    pub at: String,
    /// The executions of each load or store: `1000..1010`, `7`, `last`, or `t=1000` for all from
    /// block 1000 on.
    pub instances: Option<String>,
    /// The maximum number of executions to report.
    pub limit: Option<u64>,
}

impl AddressesQuery {
    /// Answers from a few stretches of the run, if these suffice.
    pub(crate) fn answer_early(
        &self,
        session: &Session,
    ) -> Result<Option<WithRows<AddressesHead>>> {
        of_stretches(session, &self.at, self.instances.as_deref(), |found| {
            self.rows(found)
        })
    }

    pub(crate) fn answer(&self, program: NamedProgram<'_>) -> Result<WithRows<AddressesHead>> {
        self.rows(&Accesses::find(
            program,
            &self.at,
            self.instances.as_deref(),
        )?)
    }

    /// Writes the accesses if a few stretches of the run suffice. Otherwise returns `false`.
    ///
    /// # Errors
    /// Returns the same errors as [`write`](Self::write).
    pub fn write_early(&self, session: &Session, to: &Rows<'_>) -> Result<bool> {
        let written = of_stretches(session, &self.at, self.instances.as_deref(), |found| {
            self.listed(found, to)
        });
        Ok(written?.is_some())
    }

    /// Writes the accesses. The path must exist.
    ///
    /// # Errors
    /// Returns an error if there are no accesses at the place, the run cannot be followed, or the
    /// rows cannot be written.
    pub fn write(&self, session: &Session, to: &Rows<'_>) -> Result<()> {
        with_names(session, |program| {
            let found = Accesses::find(program, &self.at, self.instances.as_deref())?;
            self.listed(&found, to)
        })
    }

    fn listed(&self, found: &Accesses<'_, '_>, to: &Rows<'_>) -> Result<()> {
        let (scene, sites) = (&found.program.own_scene(to.style), &found.sites);
        found.each(|next| {
            let more = "--limit N, --instances A..B, or -o FILE";
            to.write(more, |out| match to.form {
                Form::Text => addresses_text(out, scene, sites, next, self.limit),
                Form::Json | Form::Bin => {
                    let out = &mut JsonLines(out);
                    address_rows(out, scene, sites, next, self.limit).map(|()| false)
                }
            })
        })
    }

    fn rows(&self, found: &Accesses<'_, '_>) -> Result<WithRows<AddressesHead>> {
        let program = found.program;
        let mut rows = Listed::default();
        found.each(|next| {
            let scene = program.scene(Style::default());
            let (to, sites) = (&mut rows, &found.sites);
            Ok(address_rows(to, &scene, sites, next, self.limit)?)
        })?;
        rows.all()
            .into_iter()
            .next()
            .context("the answer has no head")
    }
}

/// Summarises the addresses of the loads and stores at a place, or of the whole program.
fn sum_up(program: NamedProgram<'_>, at: Option<&str>) -> Result<AddressStats> {
    let found = at.map(|at| Accesses::find(program, at, None)).transpose()?;
    if let Some(found) = found.as_ref().filter(|found| found.is_one) {
        bail!(
            "{} is one execution, so there is nothing to summarise",
            found.at
        );
    }
    let sites = found.as_ref().map(|found| found.sites.as_slice());
    follow(program.session, |run, log| {
        Ok(address_stats(run, log, sites)?)
    })
}

/// Returns the summary as a document.
pub(crate) fn summed(
    program: NamedProgram<'_>,
    at: Option<&str>,
) -> Result<WithRows<AddressStatsHead>> {
    let stats = sum_up(program, at)?;
    let mut rows = Listed::default();
    address_stats_rows(&mut rows, &program.scene(Style::default()), &stats)?;
    rows.all()
        .into_iter()
        .next()
        .context("the answer has no head")
}

/// Writes a summary of the addresses of the loads and stores at a place, or of the whole program.
/// The path must exist.
///
/// # Errors
/// Returns an error if there are no loads or stores, the run cannot be followed, or the rows cannot
/// be written.
pub fn write_address_stats(session: &Session, at: Option<&str>, to: &Rows<'_>) -> Result<()> {
    with_names(session, |program| {
        let (stats, scene) = (sum_up(program, at)?, program.scene(to.style));
        to.write(MORE, |out| match to.form {
            Form::Text => address_stats_text(out, &scene, &stats, to.limit),
            Form::Json | Form::Bin => {
                address_stats_rows(&mut JsonLines(out), &scene, &stats).map(|()| false)
            }
        })
    })
}

/// Writes all addresses that the program accessed. The path must exist.
///
/// # Errors
/// Returns an error if the run cannot be followed, or the rows cannot be written.
pub fn write_accessed(session: &Session, to: &Rows<'_>) -> Result<()> {
    with_names(session, |program| {
        let scene = program.scene(to.style);
        follow(session, |run, log| {
            let mut stretches = AccessedStretches::new(run, log)?;
            let mut next = || next_of(stretches.next());
            to.write(MORE, |out| match to.form {
                Form::Text => accessed_text(out, &scene, &mut next, to.limit),
                Form::Json => {
                    let out = &mut JsonLines(out);
                    accessed_rows(out, &scene, &mut next, to.limit).map(|()| false)
                }
                Form::Bin => accessed_binary(out, &scene, &mut next, to.limit).map(|()| false),
            })
        })
    })
}

/// Passes a few executions to `ask`, building only the stretches of the run that contain them.
/// Returns `None` if there are too many executions, or they need too many stretches.
///
/// # Errors
/// Returns an error if there are no such executions, the recording is damaged, or `ask` fails.
fn of_stretches<R>(
    session: &Session,
    at: &str,
    instances: Option<&str>,
    ask: impl FnOnce(&Accesses<'_, '_>) -> Result<R>,
) -> Result<Option<R>> {
    let may_be_few = match instances {
        Some(text) => Which::Of(text.parse()?).are_few(),
        None => at.contains('#'),
    };
    if !may_be_few {
        return Ok(None);
    }
    let found = session.ask_stretches(|session| {
        with_names(session, |program| {
            let found = Accesses::find(program, at, instances)?;
            found.which.are_few().then(|| ask(&found)).transpose()
        })
    });
    Ok(found?.flatten())
}

/// Selects executions of each load and store at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// The executions with these numbers, from 1.
    Range(u64, u64),
    /// The last execution.
    Last,
    /// The executions from this time on.
    From(u64),
}

impl FromStr for Instances {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "last" {
            return Ok(Self::Last);
        }
        if let Some(time) = text.strip_prefix("t=").and_then(number) {
            return Ok(Self::From(time));
        }
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first > 0 && first <= last => Ok(Self::Range(first, last)),
            _ => bail!(
                "--instances {text}: write A..B with numbers from 1 on, one number, last, or t=T"
            ),
        }
    }
}

/// The requested executions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    All,
    Of(Instances),
    /// The executions during one arrival at a line or one call, as times and site numbers,
    /// ascending.
    These(Vec<(u64, usize)>),
}

/// If there are fewer executions than this, all are found before the first is shown.
const FEW: u64 = 1 << 12;

impl Which {
    /// Whether the executions are few enough to find all of them before showing the first.
    fn are_few(&self) -> bool {
        match self {
            Self::Of(Instances::Range(first, last)) => last - first < FEW,
            Self::Of(Instances::Last) => true,
            Self::These(these) => (these.len() as u64) < FEW,
            Self::All | Self::Of(Instances::From(_)) => false,
        }
    }
}

/// Loads and stores at a place, and the requested executions.
struct Accesses<'t, 'a> {
    /// The program.
    pub program: NamedProgram<'a>,
    at: &'t str,
    /// The loads and stores.
    pub sites: Vec<AccessSite>,
    which: Which,
    /// Whether the place names one execution.
    pub is_one: bool,
}

impl<'t, 'a> Accesses<'t, 'a> {
    /// Finds the loads and stores at a place.
    ///
    /// # Errors
    /// Returns an error if there are no loads or stores at the place, or if both the place and
    /// `instances` select executions.
    pub fn find(program: NamedProgram<'a>, at: &'t str, instances: Option<&str>) -> Result<Self> {
        let resolved = program.resolver().location(at)?;
        let sites = sites(program, at, &resolved.place)?;
        let which = match (instances, resolved.occurrence) {
            (Some(_), Some(_)) => bail!("{at} already names one execution; leave out --instances"),
            (Some(text), None) => Which::Of(text.parse()?),
            (None, Some(_)) if counts_whole(&resolved.place, at) => named(program, at, &sites)?,
            (None, Some(Occurrence::Kth(number))) => Which::Of(Instances::Range(number, number)),
            (None, Some(Occurrence::Last)) => Which::Of(Instances::Last),
            (None, None) => Which::All,
        };
        Ok(Self {
            program,
            at,
            sites,
            which,
            is_one: resolved.occurrence.is_some(),
        })
    }

    /// Passes an iterator over the executions to `ask`.
    ///
    /// # Errors
    /// Returns an error if there are no such executions, the run cannot be followed, or `ask`
    /// fails.
    pub fn each<R>(&self, ask: impl FnOnce(&mut NextAccess<'_>) -> Result<R>) -> Result<R> {
        let traced = self.program.session;
        let chosen = Chosen::of(traced, self.at, &self.sites, &self.which)?;
        follow(traced, |run, log| {
            let mut found = chosen.find(Addresses::new(run, log, &self.sites)?);
            // Report a missing execution before writing.
            let first = found.next()?;
            let first = first
                .with_context(|| format!("nothing at {} accesses an address below 2⁶⁴", self.at))?;
            let mut read = VecDeque::from([first]);
            while self.which.are_few()
                && let Some(next) = found.next()?
            {
                read.push_back(next);
            }
            ask(&mut || match read.pop_front() {
                Some(next) => Ok(Some(next)),
                None => found.next(),
            })
        })
    }
}

/// Finds the executions in an arrival at a line, or in a call.
fn named(program: NamedProgram<'_>, at: &str, sites: &[AccessSite]) -> Result<Which> {
    let steps = program.positions()?.executed(at)?;
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

/// Returns the loads and stores at a place.
fn sites(program: NamedProgram<'_>, text: &str, place: &Place) -> Result<Vec<AccessSite>> {
    let loaded = program.session.module();
    let types = Types::new(&loaded.program, &loaded.bytes);
    let operators: Vec<(FuncId, OpId)> = match place {
        Place::Operator(function, op) => vec![(*function, *op)],
        Place::Line(_, operators) => operators.clone(),
        Place::Function(function) => {
            let Some(known) = loaded.program.function(*function) else {
                bail!("{text} is imported, so its loads and stores are not in this module");
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
    let found = program.operators.get(nearest.function, nearest.op)?;
    let found = found.context("the nearest load or store is not in the module")?;
    bail!(
        "there is no load or store at {text}; the nearest is {} at @{}",
        found.name,
        found.offset
    )
}

/// The requested executions, and their position in the run.
struct Chosen {
    kind: Kind,
    /// The range of times that contains these executions.
    first: u64,
    last: u64,
}

enum Kind {
    /// All executions, from the first time.
    All,
    /// The executions with these numbers, for each site.
    Numbers(u64, u64),
    /// The executions at these times and sites, ascending.
    These(Vec<(u64, usize)>),
}

impl Chosen {
    /// Finds the requested executions in the path. Fails if there are none.
    fn of(traced: &Session, text: &str, sites: &[AccessSite], which: &Which) -> Result<Self> {
        let never = || format!("no load or store at {text} was ever executed");
        if let Which::These(these) = which {
            let first = these.first().map_or(1, |these| these.0);
            let last = these.last().map_or(0, |these| these.0);
            let kind = Kind::These(these.clone());
            return Ok(Self { kind, first, last });
        }
        let program = traced.program();
        // Collect the requested executions of each site, and the time of the first and the last.
        let (mut most, mut first, mut last) = (0, u64::MAX, 0);
        let mut latest = None;
        let mut these = Vec::new();
        let mut known = HashMap::new();
        for (number, site) in sites.iter().enumerate() {
            let block = program.function(site.function);
            let block = block.and_then(|function| function.block_of(site.op));
            // If the run ended inside a block, operators after that place have one execution fewer
            // than operators before it.
            let ended = traced.stops()?.first().is_some_and(|stop| {
                stop.function == site.function && site.op >= stop.next && Some(stop.block) == block
            });
            let key = (site.function, block, ended);
            let found = match known.get(&key) {
                Some(&found) => found,
                None => {
                    let found = span(traced, site, which)?;
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
                Which::Of(Instances::Range(from, _)) => bail!(
                    "{text} was executed {}, so there is no execution {from}; the last is {most}",
                    times(most)
                ),
                Which::Of(Instances::From(time)) => bail!(
                    "no load or store at {text} is executed at t={} or later; the last time is t={}",
                    grouped(*time),
                    grouped(latest.unwrap_or(0))
                ),
                _ => bail!("{}", never()),
            }
        }
        let kind = match which {
            Which::Of(Instances::Range(from, to)) => Kind::Numbers(*from, *to),
            Which::Of(Instances::Last) => {
                these.sort_unstable();
                Kind::These(these)
            }
            _ => Kind::All,
        };
        Ok(Self { kind, first, last })
    }

    /// Returns a search that follows the run from before the first requested execution.
    fn find<'a>(&'a self, addresses: Addresses<'a, FileSegments>) -> AccessSearch<'a> {
        AccessSearch {
            chosen: self,
            addresses,
            at: 0,
            begun: false,
        }
    }
}

/// The executions of a site.
#[derive(Clone, Copy)]
struct Span {
    /// The number of executions of the site.
    count: u64,
    /// The times of the first and the last requested execution, if there is one.
    wanted: Option<(u64, u64)>,
    /// The time of the last execution.
    final_time: Option<u64>,
}

fn span(traced: &Session, site: &AccessSite, which: &Which) -> Result<Span> {
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
        Which::Of(Instances::Range(first, last)) => (*first, *last.min(&count)),
        Which::Of(Instances::Last) => (count, count),
        &Which::Of(Instances::From(time)) => (all.rank(time.saturating_sub(1))? + 1, count),
        Which::These(_) | Which::All => (1, count),
    };
    Ok(Span {
        count,
        wanted: time(first)?.zip(time(last)?),
        final_time,
    })
}

/// Finds the requested executions.
struct AccessSearch<'a> {
    chosen: &'a Chosen,
    addresses: Addresses<'a, FileSegments>,
    /// The number of requested executions already found.
    at: usize,
    begun: bool,
}

impl AccessSearch<'_> {
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
        next_of(done)
    }

    fn step(&mut self) -> Result<Option<Access>, PresentError> {
        let access = self.addresses.next();
        next_of(access)
    }
}
