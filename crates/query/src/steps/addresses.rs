//! Addresses of loads and stores, execution by execution and summed up.

use std::collections::VecDeque;
use std::rc::Rc;

use afterimage_machine::{Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::{Segments, Visit};

use super::accesses::{NodeSites, SiteTable, is_access};
use super::follow::{Follower, Run};
use super::stream::Plans;
use super::tally::Tally;
use super::{AccessSite, Distinct, Frequent, StepsError};

/// An execution of a load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which of the sites that were asked about.
    pub site: usize,
    /// Which execution of it, from 1. One that traps is none.
    pub number: u64,
    /// When: the time of the block.
    pub time: u64,
    /// What was read or written.
    pub range: Range,
}

/// The executions of some loads and stores, in order.
pub struct Addresses<'a, S: Segments> {
    walk: Walk<'a, S>,
    listed: Listed,
}

/// The machine on its way past sites.
struct Walk<'a, S: Segments> {
    follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    table: SiteTable,
}

impl<'a, S: Segments> Walk<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    fn new(
        run: Run<'a, S>,
        log: LogReader,
        table: SiteTable,
    ) -> Result<Self, StepsError<S::Error>> {
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            table,
        })
    }

    fn sites(&mut self, visit: Visit) -> Result<Rc<NodeSites>, StepsError<S::Error>> {
        if let Some(known) = self.table.known(visit.node) {
            return Ok(known);
        }
        let plan = self.plans.of(visit.node, &self.follower)?;
        let code = &self.follower.machine.codes()[visit.node];
        Ok(self.table.add(visit.node, code, &plan))
    }
}

#[derive(Default)]
struct Listed {
    sites: Rc<NodeSites>,
    start: u64,
    counts: Vec<u64>,
    found: VecDeque<Access>,
}

impl Listed {
    #[inline]
    fn access(&mut self, inst: usize, range: Range) {
        if let Some((site, block)) = self.sites.get(inst) {
            self.counts[site] += 1;
            self.found.push_back(Access {
                site,
                number: self.counts[site],
                time: self.start + u64::from(block),
                range,
            });
        }
    }
}

impl Observer for Listed {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        self.access(inst, range);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.access(inst, range);
    }
}

impl<'a, S: Segments> Addresses<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// The executions of these loads and stores in a run, of which `log` is the log.
    ///
    /// # Errors
    /// If the run cannot be followed.
    pub fn new(
        run: Run<'a, S>,
        log: LogReader,
        sites: &[AccessSite],
    ) -> Result<Self, StepsError<S::Error>> {
        let table = SiteTable::of(sites, run.path.nodes().len());
        Ok(Self {
            walk: Walk::new(run, log, table)?,
            listed: Listed {
                counts: vec![0; sites.len()],
                ..Listed::default()
            },
        })
    }

    /// The next execution; `None` at the end.
    ///
    /// # Errors
    /// If the run cannot be followed further.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and then has ended"
    )]
    pub fn next(&mut self) -> Result<Option<Access>, StepsError<S::Error>> {
        loop {
            if let Some(found) = self.listed.found.pop_front() {
                return Ok(Some(found));
            }
            let Some(visit) = self.walk.follower.next()? else {
                return Ok(None);
            };
            let sites = self.walk.sites(visit)?;
            if !sites.any {
                self.walk.follower.execute(visit, &mut ())?;
                continue;
            }
            self.listed.sites = sites;
            self.listed.start = visit.start;
            self.walk.follower.execute(visit, &mut self.listed)?;
        }
    }
}

/// The addresses of a load or a store, summed up. A stride is the difference of the addresses of two executions after each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessStats {
    /// How often it was executed. Once at least.
    pub count: u64,
    /// How many different addresses there were.
    pub addresses: Distinct,
    /// The smallest address.
    pub smallest: u64,
    /// The largest.
    pub largest: u64,
    /// How many different strides there were.
    pub strides: Distinct,
    /// The most frequent one; `None` if there was none, or too many different ones.
    pub stride: Option<Frequent<i64>>,
    /// Which memory.
    pub memory: u32,
    /// How many bytes it accesses.
    pub bytes: u64,
}

#[derive(Default)]
struct Sums {
    sites: Rc<NodeSites>,
    sums: Vec<Sum>,
}

#[derive(Default)]
struct Sum {
    count: u64,
    smallest: u64,
    largest: u64,
    last: u64,
    memory: u32,
    bytes: u64,
    addresses: Tally<u64>,
    strides: Tally<i64>,
}

impl Sums {
    #[inline]
    fn access(&mut self, inst: usize, range: Range) {
        let Some((site, _)) = self.sites.get(inst) else {
            return;
        };
        let sum = &mut self.sums[site];
        let address = range.address;
        if sum.count == 0 {
            (sum.smallest, sum.largest) = (address, address);
            (sum.memory, sum.bytes) = (range.memory, range.length);
        } else {
            sum.strides.add(address.wrapping_sub(sum.last) as i64);
            sum.smallest = sum.smallest.min(address);
            sum.largest = sum.largest.max(address);
        }
        sum.count += 1;
        sum.last = address;
        sum.addresses.add(address);
    }
}

impl Observer for Sums {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        self.access(inst, range);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.access(inst, range);
    }
}

/// The addresses of all loads and stores that a run executed, summed up: all, or those that are given. In the order of the program.
///
/// # Errors
/// If the run cannot be followed.
pub fn address_stats<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    sites: Option<&[AccessSite]>,
) -> Result<Vec<(AccessSite, AccessStats)>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let nodes = run.path.nodes().len();
    let table = match sites {
        Some(sites) => SiteTable::of(sites, nodes),
        None => SiteTable::of_all(is_access, nodes),
    };
    let mut walk = Walk::new(run, log, table)?;
    let mut sums = Sums::default();
    while let Some(visit) = walk.follower.next()? {
        let sites = walk.sites(visit)?;
        if !sites.any {
            walk.follower.execute(visit, &mut ())?;
            continue;
        }
        sums.sums.resize_with(walk.table.sites.len(), Sum::default);
        sums.sites = sites;
        walk.follower.execute(visit, &mut sums)?;
    }
    let pairs = walk.table.sites.into_iter().zip(sums.sums);
    let mut stats = Vec::new();
    for (site, sum) in pairs.filter(|(_, sum)| sum.count > 0) {
        let (addresses, _) = sum.addresses.finish();
        let (strides, stride) = sum.strides.finish();
        let found = AccessStats {
            count: sum.count,
            addresses,
            smallest: sum.smallest,
            largest: sum.largest,
            strides,
            stride,
            memory: sum.memory,
            bytes: sum.bytes,
        };
        stats.push((site, found));
    }
    stats.sort_unstable_by_key(|(site, _)| *site);
    Ok(stats)
}
