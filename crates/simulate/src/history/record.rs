//! Records histories of misses, and encodes them.

use afterimage_streams::encode;

use super::varint;

/// The executions and misses of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of executions.
    pub executions: u64,
    /// The number of first-level misses or mispredictions.
    pub missed: u64,
    /// The number of accesses that also missed the second level, or 0 without a second level.
    pub last: u64,
}

impl Tally {
    /// Adds two tallies. Sums saturate at 64 bits, which no run reaches.
    pub fn plus(self, other: Self) -> Self {
        Self {
            executions: self.executions.saturating_add(other.executions),
            missed: self.missed.saturating_add(other.missed),
            last: self.last.saturating_add(other.last),
        }
    }
}

/// The misses of a site at one level.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// The number of hits before each miss.
    gaps: Vec<u64>,
    /// The number of hits since the last miss.
    since: u64,
}

impl Gaps {
    #[inline]
    fn push(&mut self, missed: bool) {
        if missed {
            self.gaps.push(self.since);
            self.since = 0;
        } else {
            self.since += 1;
        }
    }

    fn clear(&mut self) {
        // Free the allocations, because other sites may miss in the next epoch.
        self.gaps = Vec::new();
        self.since = 0;
    }
}

#[derive(Clone, Debug, Default)]
struct Site {
    executions: u64,
    first: Gaps,
    last: Gaps,
}

/// Collects misses and returns them epoch by epoch.
#[derive(Clone, Debug)]
pub struct Recorder {
    sites: Vec<Site>,
    tallies: Vec<Tally>,
    two: bool,
    missed: usize,
}

impl Recorder {
    /// The number of misses that fill an epoch. They take 8 MiB per level.
    pub const EPOCH: usize = 1 << 20;

    /// Creates a recorder for one level or, if `two` is true, for two levels.
    pub fn new(two: bool) -> Self {
        Self {
            sites: Vec::new(),
            tallies: Vec::new(),
            two,
            missed: 0,
        }
    }

    /// Makes room for site numbers below `sites`.
    pub fn expect(&mut self, sites: usize) {
        if self.sites.len() < sites {
            self.sites.resize_with(sites, Site::default);
            self.tallies.resize(sites, Tally::default());
        }
    }

    /// Records an execution of a site within the range given to [`expect`](Self::expect). `last` is
    /// true if the execution also missed the second level.
    #[inline]
    pub fn record(&mut self, site: usize, missed: bool, last: bool) {
        let kept = &mut self.sites[site];
        kept.executions += 1;
        kept.first.push(missed);
        if missed {
            self.missed += 1;
            if self.two {
                kept.last.push(last);
            }
        }
        let tally = &mut self.tallies[site];
        tally.executions += 1;
        tally.missed += u64::from(missed);
        tally.last += u64::from(self.two && missed && last);
    }

    /// Whether it is time to [end](Self::cut) the epoch.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.missed >= Self::EPOCH
    }

    /// Returns the counts since the beginning, by site.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Ends the epoch, and begins the next epoch. Returns the bytes, or `None` if nothing was
    /// executed. Time: O(sites + misses).
    pub fn cut(&mut self) -> Option<Vec<u8>> {
        let executed = |site: &&Site| site.executions > 0;
        let count = self.sites.iter().filter(executed).count();
        let (mut head, mut streams) = (vec![VERSION], Vec::new());
        varint::put(&mut head, count as u64);
        let mut before = 0;
        for (number, site) in self.sites.iter_mut().enumerate() {
            if site.executions == 0 {
                continue;
            }
            varint::put(&mut head, number as u64 - before);
            before = number as u64 + 1;
            varint::put(&mut head, site.executions - 1);
            let levels = if self.two {
                &[&site.first, &site.last][..]
            } else {
                &[&site.first][..]
            };
            for level in levels {
                varint::put(&mut head, level.gaps.len() as u64);
                // Without first-level misses, there is no second stream.
                if level.gaps.is_empty() {
                    break;
                }
                let start = streams.len();
                encode(&level.gaps, &mut streams);
                varint::put(&mut head, (streams.len() - start) as u64);
            }
            site.executions = 0;
            site.first.clear();
            site.last.clear();
        }
        self.missed = 0;
        head.extend(streams);
        (count > 0).then_some(head)
    }
}

/// The first byte of an epoch or a summary.
pub(super) const VERSION: u8 = 1;
