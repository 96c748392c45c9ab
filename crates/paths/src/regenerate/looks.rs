//! Where the next few bits lead: several paths at once.

use super::stack::{Activation, LEAVES, NOWHERE};
use super::tables::{PathEnd, Tables, Target};
use super::unheard::Unheard;

/// How many bits are looked at at once. With seven or nine, counting is slower.
const BITS: u32 = 8;
/// How many entries a table has: for each number of bits up to [`BITS`], and each value that they can have.
const TABLE: usize = 2 << BITS;
/// Most calls that one look may go into.
const DEEP: usize = 4;
/// Most paths that one look may go along: paths that take no bits could go round for ever.
const FAR: usize = 64;

/// Where the table is that knows nothing.
pub(super) const UNKNOWN_PLACE: u32 = 0;

/// Where some bits lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Where the table of the path that comes next begins.
    pub next: u32,
    /// How many blocks are executed.
    pub blocks: u32,
    /// Which activations wait from then on: the first of them.
    site: u32,
    /// How many bits are used up.
    pub bits: u8,
    /// How many activations wait.
    waiting: u8,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nobody has asked yet.
    New,
    /// The activation goes on.
    Stay,
    /// It calls, and waits.
    Enter,
    /// It calls, and what it calls does, too.
    Deeper,
    /// It returns.
    Leave,
    /// One step has to be taken without a table.
    Unknown,
}

const NEW: Look = Look {
    next: UNKNOWN_PLACE,
    blocks: 0,
    site: 0,
    bits: 0,
    waiting: 0,
    kind: Kind::New,
};

const UNKNOWN: Look = Look {
    kind: Kind::Unknown,
    ..NEW
};

/// A table for each start of a path, filled as it is asked. Memory: 8 KiB for each start that the run came by.
#[derive(Debug)]
pub(super) struct Looks {
    entries: Vec<Look>,
    /// The function and the start of each table.
    starts: Vec<(u32, u32)>,
    /// The activations that wait, one look's after the other's.
    sites: Vec<Activation>,
}

impl Looks {
    pub(super) fn new() -> Self {
        Self {
            entries: vec![UNKNOWN; TABLE],
            starts: vec![(NOWHERE, NOWHERE)],
            sites: Vec::new(),
        }
    }

    /// Which entry tells of the next bits, which are the `left` topmost ones of `rest`, and of how many of them.
    #[inline]
    pub(super) fn entry(place: u32, rest: u64, left: u32) -> (usize, u32) {
        let bits = left.min(BITS);
        let value = (rest >> (64 - bits)) as usize;
        (place as usize + (1 << bits) + value, bits)
    }

    #[inline]
    pub(super) fn at(&self, entry: usize) -> &Look {
        &self.entries[entry]
    }

    /// The activation that waits after a call.
    #[inline]
    pub(super) fn site(&self, look: &Look) -> Activation {
        self.sites[look.site as usize]
    }

    /// The activations that wait after calls.
    pub(super) fn sites(&self, look: &Look) -> &[Activation] {
        &self.sites[look.site as usize..][..usize::from(look.waiting)]
    }

    /// Whose table begins at a place: the function and the start.
    pub(super) fn start(&self, place: u32) -> Option<(u32, u32)> {
        let start = self.starts[place as usize / TABLE];
        (start.0 != NOWHERE).then_some(start)
    }

    /// Where the table of a start is; it is made if there is none.
    pub(super) fn place(&mut self, tables: &mut Tables<'_>, function: u32, start: u32) -> u32 {
        // A start that is none is refused when its path is looked up.
        let Some(place) = tables.place(function, start) else {
            return UNKNOWN_PLACE;
        };
        if *place == UNKNOWN_PLACE
            && let Ok(end) = u32::try_from(self.entries.len())
            && end <= u32::MAX - TABLE as u32
        {
            *place = end;
            self.entries.resize(self.entries.len() + TABLE, NEW);
            self.starts.push((function, start));
        }
        *place
    }

    /// Finds out what an entry is to tell.
    #[cold]
    pub(super) fn fill(&mut self, tables: &mut Tables<'_>, place: u32, entry: usize, bits: u32) {
        let value = entry as u32 - place - (1 << bits);
        self.entries[entry] = self.find(tables, place, value, bits);
    }

    fn find(&mut self, tables: &mut Tables<'_>, place: u32, value: u32, bits: u32) -> Look {
        let mut found = UNKNOWN;
        let Some((function, start)) = self.start(place) else {
            return found;
        };
        let mut way = Way {
            value,
            left: bits,
            blocks: 0,
            function,
            start,
            waiting: Vec::new(),
        };
        let mut sites = Vec::new();
        for _ in 0..FAR {
            // Whether there are more bits is not known, so neither is whether there are more paths.
            if way.left == 0 {
                break;
            }
            let Some(step) = way.step(self, tables) else {
                break;
            };
            found.bits = (bits - way.left) as u8;
            found.blocks = way.blocks;
            if let Step::Leave = step {
                found.kind = Kind::Leave;
                break;
            }
            found.next = self.place(tables, way.function, way.start);
            found.kind = match way.waiting.len() {
                0 => Kind::Stay,
                1 => Kind::Enter,
                _ => Kind::Deeper,
            };
            sites.clone_from(&way.waiting);
        }
        if let (Kind::Enter | Kind::Deeper, Ok(site)) =
            (found.kind, u32::try_from(self.sites.len()))
        {
            found.site = site;
            found.waiting = sites.len() as u8;
            self.sites.extend(sites);
        }
        found
    }
}

/// What a path came to.
enum Step {
    On,
    /// The activation in which the look began returned.
    Leave,
}

/// How far a look has come.
struct Way {
    value: u32,
    left: u32,
    blocks: u32,
    function: u32,
    start: u32,
    /// The activations that have begun to wait.
    waiting: Vec<Activation>,
}

impl Way {
    fn take(&self, left: u32, width: u8) -> Option<(u32, u32)> {
        let left = left.checked_sub(u32::from(width))?;
        Some((left, self.value >> left & ((1 << width) - 1)))
    }

    /// Goes along one path. `None`, and nothing has changed, if that needs more bits, or more than bits and tables.
    fn step(&mut self, looks: &mut Looks, tables: &mut Tables<'_>) -> Option<Step> {
        let (function, start) = (self.function, self.start);
        let (mut left, number) = self.take(self.left, tables.width(function, start))?;
        let path = tables.path(function, start, number, &mut Unheard).ok()?;
        let mut step = Step::On;
        match path.end {
            PathEnd::Start(next) => self.start = next,
            PathEnd::Call {
                target,
                returns,
                throws,
                block,
            } => {
                if self.waiting.len() == DEEP {
                    return None;
                }
                match self.callee(tables, target, left)? {
                    None if returns == LEAVES => return None,
                    None => self.start = returns,
                    Some(callee) => {
                        let (root, entry) = tables.entry(callee);
                        if let Some((number, width)) = entry {
                            let (rest, said) = self.take(left, width)?;
                            if said != number {
                                return None;
                            }
                            left = rest;
                        }
                        self.waiting.push(Activation {
                            function,
                            start: returns,
                            throws,
                            block,
                            place: looks.place(tables, function, returns),
                        });
                        (self.function, self.start) = (callee, root);
                    }
                }
            }
            PathEnd::Return => match self.waiting.last() {
                None => step = Step::Leave,
                Some(at) if at.start == LEAVES => return None,
                Some(&at) => {
                    (self.function, self.start) = (at.function, at.start);
                    self.waiting.pop();
                }
            },
            PathEnd::TailCall { .. } | PathEnd::Throw | PathEnd::Stop => return None,
        }
        self.left = left;
        self.blocks += path.length;
        Some(step)
    }

    /// Who is called, `Some(None)` for an import that says nothing.
    fn callee(&self, tables: &Tables<'_>, target: Target, left: u32) -> Option<Option<u32>> {
        let ids = tables.entry_ids();
        match target {
            Target::Defined(callee) => Some(Some(callee)),
            Target::Import(function) if ids.of(function).is_none() => Some(None),
            Target::Import(_) => None,
            Target::Table(ty) => {
                let (_, number) = self.take(left, ids.width(ty))?;
                let callee = tables.defined(ids.function(ty, number)?)?;
                Some(Some(callee))
            }
        }
    }
}
