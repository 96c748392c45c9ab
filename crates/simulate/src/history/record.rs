//! Writing histories.

use afterimage_streams::encode;

use super::varint;

/// How often a site was executed, and how often it was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Executions.
    pub executions: u64,
    /// Those that the first level or the predictor missed.
    pub missed: u64,
    /// Those of these that the second level missed, too; none if there is no second level.
    pub last: u64,
}

impl Tally {
    /// The sum of two; what does not fit into 64 bits, which no run has, is the largest number.
    pub fn plus(self, other: Self) -> Self {
        Self {
            executions: self.executions.saturating_add(other.executions),
            missed: self.missed.saturating_add(other.missed),
            last: self.last.saturating_add(other.last),
        }
    }
}

/// What was missed at one level.
#[derive(Clone, Debug, Default)]
struct Gaps {
    /// For each miss, how many executions before it were not missed.
    gaps: Vec<u64>,
    /// How many were not missed since.
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
        // The allocations go: in the next epoch other sites may be the ones that miss.
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

/// Keeps what was missed, and gives it by epochs.
#[derive(Clone, Debug)]
pub struct Recorder {
    sites: Vec<Site>,
    tallies: Vec<Tally>,
    two: bool,
    missed: usize,
}

impl Recorder {
    /// With so many missed an epoch is full: 8 MiB of them.
    pub const EPOCH: usize = 1 << 20;

    /// Of one level, or of two.
    pub fn new(two: bool) -> Self {
        Self {
            sites: Vec::new(),
            tallies: Vec::new(),
            two,
            missed: 0,
        }
    }

    /// Makes room for sites up to this number.
    pub fn expect(&mut self, sites: usize) {
        if self.sites.len() < sites {
            self.sites.resize_with(sites, Site::default);
            self.tallies.resize(sites, Tally::default());
        }
    }

    /// A site, of which [`expect`](Self::expect) was told, is executed. `last` is whether the second level missed it, too.
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

    /// Whether the epoch is to [end](Self::cut).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.missed >= Self::EPOCH
    }

    /// What was counted since the beginning, by site.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Ends the epoch and begins the next one. Its bytes; `None` if nothing was executed in it. O(sites + misses).
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
                // Who missed nothing at the first level has no second one.
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

/// The first byte of an epoch.
pub(super) const VERSION: u8 = 1;
