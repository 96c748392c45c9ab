//! Stretches of two runs that correspond.

use std::collections::{HashSet, VecDeque};

use afterimage_ids::{FuncId, OpId};
use afterimage_matching::{Instance, Region, Version};
use afterimage_wpp::Segments;
use rustc_hash::FxHashMap;

use super::Place;
use super::collect::{Collected, Given, Sketched, Take, Walk};
use super::diverge::OpenLog;
use crate::steps::{Run, StepsError};

/// A stretch has so many executions of the second version, and as many more as there are to the next anchor.
const SHORTEST: usize = 24;
/// It has no more than so many.
const LONGEST: usize = 300;
/// How many executions of the first version are kept before the anchor that it begins with, and after the one that it ends with.
const ROOM: usize = 48;
/// How many it has in all.
const FIRST: usize = 3000;
/// Most executions that are kept of all stretches together.
const KEPT: usize = 1 << 24;

/// A stretch of the second run.
#[derive(Debug)]
struct Stretch {
    /// The anchors, and which executions of them, that it begins and ends with.
    from: (u32, u64),
    to: Option<(u32, u64)>,
    executed: Vec<Instance>,
}

/// An execution as it is compared.
fn instance(statement: &Collected, number: u32, given: Given) -> Instance {
    Instance {
        statement: number,
        value: given.operands.unwrap_or(given.compared),
        address: statement.address,
    }
}

/// Chooses stretches of the second run: such that each statement's first executions are in one, and later ones ever more rarely.
struct Chooser {
    numbers: FxHashMap<(u32, OpId), u32>,
    /// By statement, the anchor that it belongs to.
    anchor: Vec<u32>,
    executed: Vec<u64>,
    wanted: Vec<bool>,
    current: Vec<Instance>,
    from: Option<(u32, u64)>,
    /// The current stretch has an execution that is wanted.
    keep: bool,
    kept: usize,
    stretches: Vec<Stretch>,
}

/// Whether of a statement's executions the k-th is wanted: 1, 2, 3, 4, 6, 8, 12, 16, …
fn is_wanted(k: u64) -> bool {
    k < 4 || k.is_power_of_two() || (k.is_multiple_of(3) && (k / 3).is_power_of_two())
}

impl Chooser {
    /// Ends the current stretch, at an anchor or because it is too long.
    fn end(&mut self, to: Option<(u32, u64)>) {
        if let Some(from) = self.from
            && self.keep
            && self.kept < KEPT
        {
            self.kept += 4 * self.current.len();
            self.stretches.push(Stretch {
                from,
                to,
                executed: self.current.clone(),
            });
        }
        self.current.clear();
        self.keep = false;
        self.from = to;
    }
}

impl Take for Chooser {
    fn number(&self, context: u32, place: Place) -> u32 {
        let known = self.numbers.get(&(context, place.op));
        known.copied().unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected, given: Given, _: u64) {
        let number = statement.number;
        let Some(executed) = self.executed.get_mut(number as usize) else {
            return;
        };
        *executed += 1;
        let k = *executed;
        self.keep |= is_wanted(k) && self.wanted[number as usize];
        self.current.push(instance(statement, number, given));
        let anchor = self.anchor[number as usize];
        if anchor != u32::MAX && (self.current.len() >= SHORTEST || self.from.is_none()) {
            self.end(Some((anchor, k)));
        }
        if self.current.len() > LONGEST {
            self.end(None);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected, address: u64) {
        statement.address = address;
    }
}

/// A stretch of the first run while it is filled.
struct Open {
    stretch: usize,
    region: Region,
    /// So many executions are still to come, if the end is near.
    left: usize,
    ended: bool,
}

/// Finds what corresponds to stretches in the first run.
struct Finder {
    numbers: FxHashMap<(u32, OpId), u32>,
    anchor: Vec<u32>,
    executed: Vec<u64>,
    recent: VecDeque<Instance>,
    begins: FxHashMap<(u32, u64), Vec<usize>>,
    ends: Vec<Option<(u32, u64)>>,
    /// By anchor, how often it was executed.
    passed: Vec<u64>,
    open: Vec<Open>,
    found: Vec<(usize, Region)>,
}

impl Take for Finder {
    fn number(&self, context: u32, place: Place) -> u32 {
        let known = self.numbers.get(&(context, place.op));
        known.copied().unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected, given: Given, _: u64) {
        let number = statement.number;
        let Some(executed) = self.executed.get_mut(number as usize) else {
            return;
        };
        *executed += 1;
        let k = *executed;
        let here = instance(statement, number, given);
        if !self.open.is_empty() {
            self.fill(here);
        }
        if self.recent.len() == ROOM {
            self.recent.pop_front();
        }
        self.recent.push_back(here);
        let anchor = self.anchor[number as usize];
        if anchor != u32::MAX {
            self.pass(anchor, k);
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: &mut Collected, address: u64) {
        statement.address = address;
    }
}

impl Finder {
    fn fill(&mut self, here: Instance) {
        for open in &mut self.open {
            open.region.a.push(here);
            open.left -= 1;
        }
        let found = &mut self.found;
        self.open.retain_mut(|open| {
            if open.left == 0 {
                let mut region = std::mem::take(&mut open.region);
                if !open.ended {
                    region.last = region.a.len();
                }
                found.push((open.stretch, region));
            }
            open.left > 0
        });
    }

    fn pass(&mut self, anchor: u32, k: u64) {
        self.passed[anchor as usize] = k;
        for open in &mut self.open {
            if !open.ended && self.ends[open.stretch] == Some((anchor, k)) {
                open.ended = true;
                open.region.last = open.region.a.len();
                open.left = ROOM.min(open.left);
            }
        }
        for stretch in self.begins.remove(&(anchor, k)).unwrap_or_default() {
            let over = self.ends[stretch].is_some_and(|(end, k)| self.passed[end as usize] >= k);
            let a: Vec<Instance> = self.recent.iter().copied().collect();
            let region = Region {
                first: a.len() - 1,
                last: a.len(),
                a,
                b: Vec::new(),
            };
            self.open.push(Open {
                stretch,
                region,
                left: if over { ROOM } else { FIRST },
                ended: over,
            });
        }
    }
}

fn anchor_of(version: &Version, anchors: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut of = vec![u32::MAX; version.statements.len()];
    for (anchor, statement) in (0..).zip(anchors) {
        if of[statement as usize] == u32::MAX {
            of[statement as usize] = anchor;
        }
    }
    of
}

/// Follows both runs again and keeps stretches of them that correspond, between anchors. The first version's statements are told apart by the calls around them where functions do not stand by themselves.
///
/// # Errors
/// If a run cannot be followed.
pub(super) fn regions<S: Segments>(
    versions: [&Sketched; 2],
    standing: Option<&HashSet<FuncId>>,
    anchors: &[(u32, u32)],
    wanted: Vec<bool>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
) -> Result<Vec<Region>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    // A statement of the first version may be the counterpart of several: each anchor has statements of its own.
    let mut taken = HashSet::new();
    let anchors: Vec<(u32, u32)> = anchors
        .iter()
        .copied()
        .filter(|(a, _)| taken.insert(*a))
        .collect();
    let open = |log: OpenLog<'_>| log().map_err(afterimage_machine::MachineError::from);
    let [of_a, of_b] = versions;
    let chooser = Chooser {
        numbers: of_b.numbers.clone(),
        anchor: anchor_of(&of_b.version, anchors.iter().map(|pair| pair.1)),
        executed: vec![0; of_b.places.len()],
        wanted,
        current: Vec::new(),
        from: None,
        keep: false,
        kept: 0,
        stretches: Vec::new(),
    };
    let stretches = follow(runs[1].0, open(runs[1].1)?, chooser, None)?.stretches;
    let mut begins: FxHashMap<(u32, u64), Vec<usize>> = FxHashMap::default();
    for (at, stretch) in stretches.iter().enumerate() {
        begins.entry(stretch.from).or_default().push(at);
    }
    let finder = Finder {
        numbers: of_a.numbers.clone(),
        anchor: anchor_of(&of_a.version, anchors.iter().map(|pair| pair.0)),
        executed: vec![0; of_a.places.len()],
        recent: VecDeque::new(),
        begins,
        ends: stretches.iter().map(|stretch| stretch.to).collect(),
        passed: vec![0; anchors.len()],
        open: Vec::new(),
        found: Vec::new(),
    };
    let mut finder = follow(runs[0].0, open(runs[0].1)?, finder, standing)?;
    for open in finder.open.drain(..) {
        finder.found.push((open.stretch, open.region));
    }
    finder.found.sort_unstable_by_key(|(stretch, _)| *stretch);
    let mut executed: Vec<Option<Vec<Instance>>> = stretches
        .into_iter()
        .map(|stretch| Some(stretch.executed))
        .collect();
    let found = finder.found.into_iter().map(|(stretch, region)| Region {
        b: executed[stretch].take().unwrap_or_default(),
        ..region
    });
    Ok(found.collect())
}

fn follow<S: Segments, T: Take>(
    run: Run<'_, S>,
    log: afterimage_trace::LogReader,
    taker: T,
    standing: Option<&HashSet<FuncId>>,
) -> Result<T, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut walk = Walk::within(run, log, taker, standing)?;
    while let Some(visit) = walk.follower.next()? {
        walk.execute(visit)?;
    }
    Ok(walk.sketcher.taker)
}
