//! Lists or summarises the addresses of loads and stores.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use afterimage_machine::{NodeCode, Observer, Range, Trap};
use afterimage_trace::LogReader;
use afterimage_wpp::{Segments, Visit};

use super::accesses::{NodeSites, SiteTable, is_access};
use super::follow::{Follower, Run};
use super::stream::Plans;
use super::tally::Tally;
use super::{AccessSite, Distinct, Frequent, StepsError};
use crate::values::block_executions;

/// An execution of a load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The index of the load or store in the list of requested sites.
    pub site: usize,
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of the block with the access.
    pub time: u64,
    /// The bytes that the access read or wrote. If it trapped, these are the bytes that it would
    /// have read or written.
    pub range: Range,
    /// The trap, if the access ended the run.
    pub trap: Option<Trap>,
}

/// Iterates over the executions of some loads and stores, in order.
pub struct Addresses<'a, S: Segments> {
    walk: Walk<'a, S>,
    listed: Listed,
}

/// The machine, with the sites to observe.
struct Walk<'a, S: Segments> {
    run: Run<'a, S>,
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
            run,
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            table,
        })
    }

    /// Executes a node. If the run traps in the node, returns the access that trapped.
    fn execute<O: Observer>(
        &mut self,
        visit: Visit,
        observer: &mut O,
    ) -> Result<Option<Tried>, StepsError<S::Error>> {
        if visit.last() < self.run.path.length() {
            self.follower.execute(visit, observer)?;
            return Ok(None);
        }
        let mut last = Last {
            observer,
            tried: None,
        };
        self.follower.execute(visit, &mut last)?;
        let trap = self.follower.machine.trap();
        let tried = last.tried.zip(trap);
        Ok(tried.map(|((inst, range), trap)| Tried { inst, range, trap }))
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

/// The access that trapped and ended the run.
struct Tried {
    inst: usize,
    range: Range,
    trap: Trap,
}

/// Watches the last node of a run, which may not reach its end.
struct Last<'o, O> {
    observer: &'o mut O,
    /// The instruction at which the node stopped, and the access of that instruction.
    tried: Option<(usize, Range)>,
}

impl<O: Observer> Observer for Last<'_, O> {
    fn read(&mut self, inst: usize, range: Range) {
        self.observer.read(inst, range);
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.observer.write(inst, range);
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], _: &[u64]) {
        let Some(inst) = code.insts.get(executed) else {
            return;
        };
        let operand = |register: u32| low.get(register as usize).copied().unwrap_or(0);
        let accesses = inst.accesses([inst.a, inst.b, inst.c].map(operand));
        let range = accesses.read.or(accesses.written);
        self.tried = range.map(|range| (executed, range));
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
    fn access(&mut self, inst: usize, range: Range, trap: Option<Trap>) {
        if let Some((site, block)) = self.sites.get(inst) {
            self.counts[site] += 1;
            self.found.push_back(Access {
                site,
                number: self.counts[site],
                time: self.start + u64::from(block),
                range,
                trap,
            });
        }
    }
}

impl Observer for Listed {
    const REGISTERS: bool = false;

    #[inline]
    fn read(&mut self, inst: usize, range: Range) {
        self.access(inst, range, None);
    }

    #[inline]
    fn write(&mut self, inst: usize, range: Range) {
        self.access(inst, range, None);
    }
}

impl<'a, S: Segments> Addresses<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates an iterator over the executions of these loads and stores, in a run with this log.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
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

    /// Skips to the last checkpoint before a block, without following the run to that point.
    /// Executions after that checkpoint are listed. Takes O(1) without checkpoints, and otherwise
    /// one lookup in the path for each block with a site.
    ///
    /// # Errors
    /// Returns an error if the checkpoints or the path cannot be read.
    pub fn skip_to(&mut self, time: u64) -> Result<(), StepsError<S::Error>> {
        let Walk {
            run,
            follower,
            table,
            ..
        } = &mut self.walk;
        let before = follower.machine.time();
        follower.skip_to(time)?;
        let now = follower.machine.time();
        if now == before {
            return Ok(());
        }
        // All sites in a block are executed equally often.
        let mut counted = HashMap::new();
        for (site, count) in table.sites.iter().zip(&mut self.listed.counts) {
            let block = run.program.function(site.function);
            let block = block.and_then(|function| function.block_of(site.op));
            let key = (site.function, block);
            if let Some(&known) = counted.get(&key) {
                *count = known;
                continue;
            }
            let all = block_executions(run.path, run.program, site.function, site.op);
            *count = all.map_err(|_| StepsError::TooLong)?.rank(now)?;
            counted.insert(key, *count);
        }
        Ok(())
    }

    /// Returns the next execution, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed further.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<Access>, StepsError<S::Error>> {
        loop {
            if let Some(found) = self.listed.found.pop_front() {
                return Ok(Some(found));
            }
            let Some(visit) = self.walk.follower.advance()? else {
                return Ok(None);
            };
            let sites = self.walk.sites(visit)?;
            if !sites.any {
                self.walk.follower.execute(visit, &mut ())?;
                continue;
            }
            self.listed.sites = sites;
            self.listed.start = visit.start;
            let tried = self.walk.execute(visit, &mut self.listed)?;
            if let Some(Tried { inst, range, trap }) = tried {
                self.listed.access(inst, range, Some(trap));
            }
        }
    }
}

/// The number of addresses of one load or store that are returned together.
const STRETCH: usize = 256;

/// Consecutive addresses that one load or store accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessedAddresses {
    /// The load or store that accessed the addresses.
    pub site: AccessSite,
    /// The index of the accessed memory.
    pub memory: u32,
    /// The number of bytes that the load or store accesses.
    pub bytes: u64,
    /// The number of the first execution, from 1.
    pub first: u64,
    /// The addresses. There are 256, or fewer at the end of the run.
    pub addresses: Vec<u64>,
}

/// Iterates over all addresses that a run's loads and stores accessed, in stretches of one load or
/// store each. Accesses that trapped are not included.
///
/// The stretches of each load or store are in order. Full stretches are returned at once. The
/// remaining stretches come at the end, in program order. At most one stretch is in memory for each
/// load or store.
pub struct AccessedStretches<'a, S: Segments> {
    walk: Walk<'a, S>,
    collected: Collected,
    ended: bool,
}

#[derive(Default)]
struct Collected {
    sites: Rc<NodeSites>,
    /// For each site, the number of addresses already returned, the last access, and the addresses
    /// of the stretch in progress.
    open: Vec<(u64, Range, Vec<u64>)>,
    /// The full stretches, each with its site, the number of its first execution, its last access,
    /// and its addresses.
    full: VecDeque<(usize, u64, Range, Vec<u64>)>,
}

impl Collected {
    #[inline]
    fn access(&mut self, inst: usize, range: Range) {
        let Some((site, _)) = self.sites.get(inst) else {
            return;
        };
        let (_, known, addresses) = &mut self.open[site];
        *known = range;
        addresses.push(range.address);
        if addresses.len() == STRETCH {
            self.hand_on(site);
        }
    }

    fn hand_on(&mut self, site: usize) {
        let (before, range, addresses) = &mut self.open[site];
        let addresses = std::mem::take(addresses);
        let first = *before + 1;
        *before += addresses.len() as u64;
        if !addresses.is_empty() {
            self.full.push_back((site, first, *range, addresses));
        }
    }
}

impl Observer for Collected {
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

impl<'a, S: Segments> AccessedStretches<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates an iterator over the stretches of a run with this log.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(run: Run<'a, S>, log: LogReader) -> Result<Self, StepsError<S::Error>> {
        let table = SiteTable::of_all(is_access, run.path.nodes().len());
        Ok(Self {
            walk: Walk::new(run, log, table)?,
            collected: Collected::default(),
            ended: false,
        })
    }

    /// Returns the next stretch, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed further.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<AccessedAddresses>, StepsError<S::Error>> {
        loop {
            if let Some((site, first, range, addresses)) = self.collected.full.pop_front() {
                return Ok(Some(AccessedAddresses {
                    site: self.walk.table.sites[site],
                    memory: range.memory,
                    bytes: range.length,
                    first,
                    addresses,
                }));
            }
            if self.ended {
                return Ok(None);
            }
            self.go_on()?;
        }
    }

    /// Executes the next node. At the end of the run, collects the remaining stretches.
    fn go_on(&mut self) -> Result<(), StepsError<S::Error>> {
        let Some(visit) = self.walk.follower.advance()? else {
            self.ended = true;
            let mut left = Vec::from_iter(0..self.collected.open.len());
            left.sort_by_key(|&site| self.walk.table.sites[site]);
            for site in left {
                self.collected.hand_on(site);
            }
            return Ok(());
        };
        let sites = self.walk.sites(visit)?;
        if !sites.any {
            return self.walk.follower.execute(visit, &mut ());
        }
        let none = (
            0,
            Range {
                memory: 0,
                address: 0,
                length: 0,
            },
            Vec::new(),
        );
        self.collected
            .open
            .resize(self.walk.table.sites.len(), none);
        self.collected.sites = sites;
        self.walk.follower.execute(visit, &mut self.collected)
    }
}

/// A summary of the addresses of loads and stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressStats {
    /// A summary for each load or store that was executed, in program order.
    pub sites: Vec<(AccessSite, AccessStats)>,
    /// The access that ended the run, with its range and the trap. It is not counted in `sites`.
    pub trapped: Option<(AccessSite, Range, Trap)>,
}

/// A summary of the addresses of a load or store. A stride is the difference between the addresses
/// of two consecutive executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessStats {
    /// The number of executions without a trap, at least one.
    pub count: u64,
    /// The number of distinct addresses.
    pub addresses: Distinct,
    /// The smallest address.
    pub smallest: u64,
    /// The largest address.
    pub largest: u64,
    /// The number of distinct strides.
    pub strides: Distinct,
    /// The most frequent stride, or `None` if there is no stride, or there are too many distinct
    /// strides.
    pub stride: Option<Frequent<i64>>,
    /// The index of the accessed memory.
    pub memory: u32,
    /// The number of bytes that the load or store accesses.
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

/// Summarises the addresses of all loads and stores that a run executed, or only of these sites.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn address_stats<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    sites: Option<&[AccessSite]>,
) -> Result<AddressStats, StepsError<S::Error>>
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
    let mut trapped = None;
    while let Some(visit) = walk.follower.advance()? {
        let sites = walk.sites(visit)?;
        if !sites.any {
            walk.follower.execute(visit, &mut ())?;
            continue;
        }
        sums.sums.resize_with(walk.table.sites.len(), Sum::default);
        sums.sites = sites;
        if let Some(tried) = walk.execute(visit, &mut sums)?
            && let Some((site, _)) = sums.sites.get(tried.inst)
        {
            trapped = Some((walk.table.sites[site], tried.range, tried.trap));
        }
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
    let sites = stats;
    Ok(AddressStats { sites, trapped })
}
