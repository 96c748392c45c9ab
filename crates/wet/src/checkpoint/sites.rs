//! Tracks the sites that write each word.

use std::collections::HashMap;

use afterimage_ids::{EntityRef, NodeId, PrimaryMap};
use afterimage_machine::{NodeCode, Range};
use rustc_hash::FxBuildHasher;

use crate::epoch::wire::{put, take, take_u32};
use crate::model::{WriteTo, write_to};

/// The maximum number of sites in a list. Longer lists are not stored.
const MOST: usize = 64;
/// The number of a list that is too long to be stored.
const UNTOLD: u32 = 0;
/// The list number of unwritten words.
pub(super) const NOBODY: u32 = u32::MAX;
/// The number of entries in the cache of additions.
const AT_ONCE: usize = 1 << 12;

/// A site, which is an instruction of a node that writes memory, or the host call at the node's
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The node that contains the site.
    pub node: NodeId,
    /// The number of the write in [`NodeModel`](crate::model::NodeModel), or `None` for the host
    /// call at the node's end.
    pub write: Option<u32>,
    /// The addresses to which the site writes.
    pub place: SiteAddresses,
}

/// The addresses to which a site wrote in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteAddresses {
    /// Addresses without a common property.
    Anywhere,
    /// Multiples of the number of bytes that the site writes.
    Aligned,
    /// Only this address.
    Always(u64),
}

/// Facts about a site in the current group.
#[derive(Clone, Copy)]
struct Facts {
    written: bool,
    aligned: bool,
    always: bool,
    address: u64,
}

const UNKNOWN: Facts = Facts {
    written: false,
    aligned: true,
    always: true,
    address: 0,
};

/// Collects the sites that write each word.
///
/// Sites are numbered in the order of the first executions of their nodes. A node has a site for
/// each instruction, and one for the host.
#[derive(Default)]
pub(super) struct Writers {
    /// The first site of each node, plus 1. It is 0 if the node has not been executed yet.
    first: Vec<u32>,
    /// The nodes, with their first sites, ascending.
    nodes: Vec<(u32, NodeId)>,
    /// The first site of the current node.
    now: u32,
    /// The current node's site for the host.
    host: u32,
    facts: Vec<Facts>,
    /// The sites that wrote in the group.
    seen: Vec<u32>,
    /// The sites of each list, ascending.
    lists: Vec<Box<[u32]>>,
    known: HashMap<Box<[u32]>, u32, FxBuildHasher>,
    /// For a list and a site, the list that results from adding the site.
    more: HashMap<(u32, u32), u32, FxBuildHasher>,
    /// A cache of additions, each with the list, the site, and the resulting list.
    at_once: Vec<(u32, u32, u32)>,
}

/// Returns the position of a list and a site in the cache.
#[inline]
fn place(list: u32, site: u32) -> usize {
    let mixed = (list.rotate_left(16) ^ site).wrapping_mul(0x9e37_79b9);
    mixed as usize >> (32 - AT_ONCE.trailing_zeros())
}

impl Writers {
    pub fn new() -> Self {
        Self {
            lists: vec![Box::default()],
            at_once: vec![(NOBODY, NOBODY, UNTOLD); AT_ONCE],
            ..Self::default()
        }
    }

    /// Begins a node.
    #[inline]
    pub fn node(&mut self, node: NodeId, code: &NodeCode) {
        let first = self.first.get(node.index()).copied().unwrap_or(0);
        self.now = match first.checked_sub(1) {
            Some(first) => first,
            None => self.add(node, code),
        };
        self.host = self.now + code.insts.len() as u32;
    }

    #[cold]
    fn add(&mut self, node: NodeId, code: &NodeCode) -> u32 {
        if self.first.len() <= node.index() {
            self.first.resize(node.index() + 1, 0);
        }
        let first = self.facts.len() as u32;
        self.first[node.index()] = first + 1;
        self.nodes.push((first, node));
        let sites = self.facts.len() + code.insts.len() + 1;
        self.facts.resize(sites, UNKNOWN);
        first
    }

    /// Records a write by an instruction of the node, or by the host if no instruction is given.
    /// Returns the site.
    #[inline]
    pub fn write(&mut self, inst: Option<usize>, range: Range) -> u32 {
        let site = inst.map_or(self.host, |inst| self.now + inst as u32);
        let facts = &mut self.facts[site as usize];
        if !facts.written {
            facts.written = true;
            facts.address = range.address;
            self.seen.push(site);
        }
        facts.always &= facts.address == range.address;
        facts.aligned &= range.length.is_power_of_two() && range.address & (range.length - 1) == 0;
        site
    }

    /// Returns the list that results from adding a site, or the same list if it already contains
    /// the site.
    #[inline]
    pub fn then(&mut self, list: u32, site: u32) -> u32 {
        let known = self.at_once[place(list, site)];
        if (known.0, known.1) == (list, site) {
            return known.2;
        }
        let found = match self.more.get(&(list, site)) {
            Some(&found) => found,
            None => self.extend(list, site),
        };
        self.at_once[place(list, site)] = (list, site, found);
        found
    }

    #[cold]
    fn extend(&mut self, list: u32, site: u32) -> u32 {
        let before: &[u32] = match list {
            UNTOLD => return UNTOLD,
            NOBODY => &[],
            list => &self.lists[list as usize],
        };
        let found = match before.binary_search(&site) {
            Ok(_) => list,
            Err(_) if before.len() == MOST => UNTOLD,
            Err(at) => {
                let mut sites = before.to_vec();
                sites.insert(at, site);
                let sites: Box<[u32]> = sites.into();
                let next = self.lists.len() as u32;
                let number = *self.known.entry(sites.clone()).or_insert(next);
                if number == next {
                    self.lists.push(sites);
                }
                number
            }
        };
        self.more.insert((list, site), found);
        found
    }

    /// Ends a group. Renumbers the lists that the group uses, in the order of their first uses, and
    /// appends their table.
    pub fn close<'l>(
        &mut self,
        used: impl Iterator<Item = &'l mut [u32]>,
        codes: &PrimaryMap<NodeId, NodeCode>,
        out: &mut Vec<u8>,
    ) {
        let mut numbers = vec![NOBODY; self.lists.len()];
        let mut order = Vec::new();
        for lists in used {
            for list in lists {
                let number = &mut numbers[*list as usize];
                if *number == NOBODY {
                    *number = order.len() as u32;
                    order.push(*list as usize);
                }
                *list = *number;
            }
        }
        let lists = order.iter().map(|&list| &self.lists[list]);
        let mut sites = Vec::from_iter(lists.clone().flatten().copied());
        sites.sort_unstable();
        sites.dedup();
        let mut table = Vec::from_iter(sites.iter().map(|&site| (self.site(site, codes), site)));
        // Sort in the order of execution, in which the host comes last.
        table.sort_unstable_by_key(|(site, _)| (site.node, site.write.unwrap_or(u32::MAX)));
        put(out, table.len() as u64);
        let mut last = 0;
        let mut position = HashMap::<u32, u64, FxBuildHasher>::default();
        for (number, (site, dense)) in (0..).zip(table) {
            position.insert(dense, number);
            site.encode(&mut last, out);
        }
        put(out, order.len() as u64);
        for list in lists {
            let mut list = Vec::from_iter(list.iter().map(|site| position[site]));
            list.sort_unstable();
            put(out, list.len() as u64);
            let mut next = 0;
            for site in list {
                put(out, site - next);
                next = site + 1;
            }
        }
        for site in self.seen.drain(..) {
            self.facts[site as usize] = UNKNOWN;
        }
        self.lists.truncate(1);
        self.known.clear();
        self.more.clear();
        self.at_once.fill((NOBODY, NOBODY, UNTOLD));
    }

    fn site(&self, site: u32, codes: &PrimaryMap<NodeId, NodeCode>) -> Site {
        let at = self.nodes.partition_point(|&(first, _)| first <= site) - 1;
        let (first, node) = self.nodes[at];
        let (before, rest) = codes[node].insts.split_at((site - first) as usize);
        let to = rest.first().and_then(|inst| write_to(inst.code));
        let writes = before.iter().filter(|inst| write_to(inst.code).is_some());
        let facts = self.facts[site as usize];
        let place = match to {
            Some(WriteTo::Memory(_)) if facts.always => SiteAddresses::Always(facts.address),
            Some(WriteTo::Memory(_)) if facts.aligned => SiteAddresses::Aligned,
            _ => SiteAddresses::Anywhere,
        };
        Site {
            node,
            write: to.map(|_| writes.count() as u32),
            place,
        }
    }
}

impl Site {
    fn encode(&self, last: &mut u32, out: &mut Vec<u8>) {
        put(out, u64::from(self.node.as_u32() - *last));
        *last = self.node.as_u32();
        let place = match self.place {
            SiteAddresses::Anywhere => 0,
            SiteAddresses::Aligned => 1,
            SiteAddresses::Always(_) => 2,
        };
        put(
            out,
            self.write.map_or(0, |write| 1 + u64::from(write)) * 3 + place,
        );
        if let SiteAddresses::Always(address) = self.place {
            put(out, address);
        }
    }

    fn decode(last: &mut u32, input: &mut &[u8]) -> Option<Self> {
        *last = last.checked_add(take_u32(input)?)?;
        let what = take(input)?;
        Some(Self {
            node: NodeId::from_u32(*last),
            write: match u32::try_from(what / 3).ok()? {
                0 => None,
                write => Some(write - 1),
            },
            place: match what % 3 {
                0 => SiteAddresses::Anywhere,
                1 => SiteAddresses::Aligned,
                _ => SiteAddresses::Always(take(input)?),
            },
        })
    }
}

/// The lists of a group.
#[derive(Debug)]
pub(super) struct Lists {
    sites: Vec<Site>,
    /// The concatenated lists, as positions among the sites.
    all: Vec<u32>,
    /// The end of each list.
    ends: Vec<u32>,
}

impl Lists {
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        // A site takes at least two bytes, and a list at least one.
        let count = take(input).filter(|&count| count <= input.len() as u64 / 2)?;
        let mut last = 0;
        let sites = (0..count).map(|_| Site::decode(&mut last, input));
        let sites = sites.collect::<Option<Vec<_>>>()?;
        let count = take(input).filter(|&count| count <= input.len() as u64)?;
        let mut lists = Self {
            sites,
            all: Vec::new(),
            ends: Vec::with_capacity(count as usize),
        };
        for _ in 0..count {
            let mut next = 0u32;
            for _ in 0..take(input)? {
                let site = next.checked_add(take_u32(input)?)?;
                if site as usize >= lists.sites.len() {
                    return None;
                }
                next = site + 1;
                lists.all.push(site);
            }
            lists.ends.push(u32::try_from(lists.all.len()).ok()?);
        }
        input.is_empty().then_some(lists)
    }

    /// Returns the sites of a list, by node and then in the order of their instructions. The result
    /// is empty if the list is not stored.
    pub fn get(&self, list: u64) -> Option<Vec<Site>> {
        let list = usize::try_from(list).ok()?;
        let end = *self.ends.get(list)? as usize;
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let own = self.all[start..end].iter();
        Some(own.map(|&site| self.sites[site as usize]).collect())
    }
}
