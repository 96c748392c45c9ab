//! Looks up where the next few bits lead, over several paths at once.

use std::ops::Range;

use afterimage_ids::NodeId;

use super::count::Tally;
use super::stack::{Activation, LEAVES, NOWHERE};
use super::tables::{PathEnd, Tables, Target};
use super::{RegenerateError, Sink};

/// The number of bits that one lookup reads. Seven or nine bits make counting slower.
const BITS: u32 = 8;
/// The number of entries of a table. There is one for each number of bits up to [`BITS`] and each
/// value of these bits.
const TABLE: usize = 2 << BITS;
/// The maximum number of calls that one lookup may enter.
const DEEP: usize = 4;
/// The maximum number of paths that one lookup may follow. Paths without bits could cycle forever.
const FAR: usize = 64;

/// A start gets a table after this many visits. Most starts are visited less often, and would take
/// most of the memory.
const WARM: u32 = 16;
/// The maximum number of entries of all tables together, which take 128 MiB.
const MOST: usize = 1 << 23;

/// The maximum total length of the lists of paths. At this length, the lists take 64 MiB. Beyond
/// it, they are rebuilt.
const MOST_NODES: usize = 1 << 24;

/// The place of the table for unknown starts.
pub(super) const UNKNOWN_PLACE: u32 = 0;

/// The result of following some bits, packed into a word. A lookup spends most of its time waiting
/// for memory, so entries are small.
///
/// From the lowest bit, the word's parts are the kind (3 bits), the number of bits consumed (4),
/// the number of activations that begin to wait, minus one (2), the number of the table for the
/// next path (14), the number of blocks executed (16), and the position of the first of these
/// activations (25).
#[derive(Clone, Copy)]
pub(super) struct Look(u64);

/// The parts of a [`Look`].
struct Parts {
    kind: Kind,
    bits: u32,
    waiting: usize,
    next: u32,
    blocks: u32,
    site: usize,
}

/// The maximum number of blocks of a lookup.
const MOST_BLOCKS: u32 = (1 << 16) - 1;
/// The maximum number of activations that all lookups together list.
const MOST_SITES: usize = 1 << 25;

impl Look {
    const NEW: Self = Self(Kind::New as u64);
    const UNKNOWN: Self = Self(Kind::Unknown as u64);

    fn new(parts: &Parts) -> Self {
        let waiting = parts.waiting.max(1) as u64 - 1;
        // A place is a multiple of the size of a table, so its low bits are free for other parts.
        Self(
            parts.kind as u64
                | u64::from(parts.bits) << 3
                | waiting << 7
                | u64::from(parts.next)
                | u64::from(parts.blocks) << 23
                | (parts.site as u64) << 39,
        )
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.0 & 7 {
            0 => Kind::New,
            1 => Kind::Stay,
            2 => Kind::Enter,
            3 => Kind::Deeper,
            4 => Kind::Leave,
            _ => Kind::Unknown,
        }
    }

    /// Returns the number of bits consumed.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        (self.0 >> 3 & 15) as u32
    }

    /// Returns the place where the table for the next path begins.
    #[inline]
    pub(super) fn next(self) -> u32 {
        self.0 as u32 & (MOST as u32 - TABLE as u32)
    }

    /// Returns the number of blocks executed.
    #[inline]
    pub(super) fn blocks(self) -> u32 {
        (self.0 >> 23) as u32 & MOST_BLOCKS
    }

    /// Returns the positions of the activations that begin to wait, if the lookup enters a
    /// function.
    #[inline]
    fn sites(self) -> Range<usize> {
        let first = (self.0 >> 39) as usize;
        first..first + 1 + (self.0 >> 7 & 3) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The entry has not been computed yet.
    New = 0,
    /// The activation continues.
    Stay = 1,
    /// The activation makes a call, and waits.
    Enter = 2,
    /// The activation makes a call, and so does its callee.
    Deeper = 3,
    /// The activation returns.
    Leave = 4,
    /// The next step must be taken without a table.
    Unknown = 5,
}

/// An entry of a table.
#[derive(Clone, Copy)]
struct Entry {
    look: Look,
    /// The number of uses since the last report, if paths are counted. It is stored beside the
    /// lookup, so that counting does not wait for memory again.
    used: u64,
}

impl Entry {
    const NEW: Self = Self {
        look: Look::NEW,
        used: 0,
    };
    const UNKNOWN: Self = Self {
        look: Look::UNKNOWN,
        used: 0,
    };
}

/// A table for each path start that the run reaches often, filled on demand. A table takes 8 KiB,
/// and all tables take at most 128 MiB. Counting paths takes 25 % more memory, and up to 64 MiB for
/// lists.
pub(super) struct LookupTables {
    entries: Vec<Entry>,
    /// The function and the start of each table.
    starts: Vec<(u32, u32)>,
    /// The activations that begin to wait, grouped by lookup.
    sites: Vec<Activation>,
    /// The entries used since the last report.
    met: Vec<u32>,
    /// For each entry, 1 plus the position of its list of paths in `nodes`, or 0 if it has no list
    /// yet.
    listed: Vec<u32>,
    /// Lists of paths. Each consists of the number of paths, followed by the paths.
    nodes: Vec<u32>,
}

impl LookupTables {
    pub(super) fn new() -> Self {
        Self {
            entries: vec![Entry::UNKNOWN; TABLE],
            starts: vec![(NOWHERE, NOWHERE)],
            sites: Vec::new(),
            met: Vec::new(),
            listed: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Returns an entry. Also counts its use, if this tally counts and the entry has paths.
    #[inline]
    pub(super) fn used<T: Tally>(&mut self, entry: usize) -> Look {
        let found = &mut self.entries[entry];
        let look = found.look;
        if T::COUNTS && look.blocks() > 0 {
            found.used += 1;
            if found.used == 1 {
                self.met.push(entry as u32);
            }
        }
        look
    }

    /// Reports to a tally the paths of all entries used since the last report.
    pub(super) fn report<T: Tally>(
        &mut self,
        tables: &mut Tables<'_>,
        tally: &mut T,
    ) -> Result<(), RegenerateError> {
        self.listed.resize(self.entries.len(), 0);
        let met = std::mem::take(&mut self.met);
        for entry in met.iter().map(|&entry| entry as usize) {
            let times = std::mem::take(&mut self.entries[entry].used);
            if self.listed[entry] == 0 {
                if self.nodes.len() > MOST_NODES {
                    self.nodes.clear();
                    self.listed.fill(0);
                }
                self.list(entry, tables, tally)?;
            }
            let (_, nodes) = self.nodes.split_at(self.listed[entry] as usize - 1);
            if let Some((&count, nodes)) = nodes.split_first() {
                for &node in &nodes[..count as usize] {
                    tally.add(NodeId::from_u32(node), times);
                }
            }
        }
        self.met = met;
        self.met.clear();
        Ok(())
    }

    /// Lists the paths of an entry.
    fn list<T: Tally>(
        &mut self,
        entry: usize,
        tables: &mut Tables<'_>,
        tally: &mut T,
    ) -> Result<(), RegenerateError> {
        let blocks = self.entries[entry].look.blocks();
        let within = (entry % TABLE) as u32;
        let bits = within.ilog2();
        let value = within - (1 << bits);
        let first = self.nodes.len();
        self.nodes.push(0);
        let mut way = self.way((entry - entry % TABLE) as u32, value, bits);
        while let Some(on) = &mut way
            && on.blocks < blocks
        {
            let before = on.blocks;
            let step = on.step(self, tables, tally);
            let ends = matches!(step, Step::End | Step::Later);
            if ends || on.blocks > blocks {
                return Err(RegenerateError::Bits);
            }
            if on.blocks > before {
                self.nodes.push(on.node.as_u32());
            }
        }
        self.nodes[first] = (self.nodes.len() - first - 1) as u32;
        self.listed[entry] = first as u32 + 1;
        Ok(())
    }

    /// Returns the state in which a lookup begins at the start with the table at `place`. The
    /// lookup reads the `bits` bits of `value`. Returns `None` if no start has this table.
    fn way(&self, place: u32, value: u32, bits: u32) -> Option<Way> {
        let (function, start) = self.start(place)?;
        Some(Way {
            value,
            left: bits,
            blocks: 0,
            node: NodeId::from_u32(0),
            function,
            start,
            waiting: Vec::new(),
        })
    }

    /// Returns the entry for the next bits, and the number of bits that it covers. The next bits
    /// are the `left` topmost bits of `rest`.
    #[inline]
    pub(super) fn entry(place: u32, rest: u64, left: u32) -> (usize, u32) {
        let bits = left.min(BITS);
        let value = (rest >> (64 - bits)) as usize;
        (place as usize + (1 << bits) + value, bits)
    }

    /// Returns the activations that begin to wait in a lookup that enters a function. Their
    /// `called` field counts blocks from the lookup's beginning.
    #[inline]
    pub(super) fn sites(&self, look: Look) -> &[Activation] {
        &self.sites[look.sites()]
    }

    /// Returns the function and the start whose table begins at a place.
    pub(super) fn start(&self, place: u32) -> Option<(u32, u32)> {
        let start = self.starts[place as usize / TABLE];
        (start.0 != NOWHERE).then_some(start)
    }

    /// Counts a visit to a start and returns the place of its table.
    pub(super) fn meet(&mut self, tables: &mut Tables<'_>, function: u32, start: u32) -> u32 {
        // An invalid start is refused when its path is looked up.
        let Some(place) = tables.place(function, start) else {
            return UNKNOWN_PLACE;
        };
        if *place < WARM {
            *place += 1;
        } else if *place == WARM && !self.is_full() {
            *place = self.entries.len() as u32;
            self.entries.resize(self.entries.len() + TABLE, Entry::NEW);
            self.starts.push((function, start));
        }
        match *place {
            0..=WARM => UNKNOWN_PLACE,
            place => place,
        }
    }

    /// Returns the state of a start's table, which includes the table's place if it exists.
    fn place(&self, tables: &mut Tables<'_>, function: u32, start: u32) -> TableState {
        match tables.place(function, start) {
            Some(&mut place) if place > WARM => TableState::At(place),
            Some(_) if !self.is_full() => TableState::Later,
            _ => TableState::Never,
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() + TABLE > MOST
    }

    /// Computes an entry. Keeps the entry, unless it would cover more paths once another start has
    /// a table.
    #[cold]
    pub(super) fn fill<S: Sink>(
        &mut self,
        (tables, sink): (&mut Tables<'_>, &mut S),
        place: u32,
        entry: usize,
        bits: u32,
    ) -> Kind {
        let value = entry as u32 - place - (1 << bits);
        let (look, lasts) = self.find((tables, sink), place, value, bits);
        if lasts {
            self.entries[entry].look = look;
        }
        if lasts { Kind::New } else { Kind::Unknown }
    }

    /// Finds where some bits lead, and whether the answer is final.
    fn find<S: Sink>(
        &mut self,
        (tables, sink): (&mut Tables<'_>, &mut S),
        place: u32,
        value: u32,
        bits: u32,
    ) -> (Look, bool) {
        let mut found = None;
        let Some(mut way) = self.way(place, value, bits) else {
            return (Look::UNKNOWN, true);
        };
        let mut sites = Vec::new();
        for _ in 0..FAR {
            // No bits are left, so the paths that follow are unknown.
            if way.left == 0 {
                break;
            }
            let step = way.step(self, tables, sink);
            if way.blocks > MOST_BLOCKS {
                break;
            }
            let parts = Parts {
                kind: match way.waiting.len() {
                    0 => Kind::Stay,
                    1 => Kind::Enter,
                    _ => Kind::Deeper,
                },
                bits: bits - way.left,
                waiting: way.waiting.len(),
                next: UNKNOWN_PLACE,
                blocks: way.blocks,
                site: self.sites.len(),
            };
            match step {
                Step::On => {}
                Step::Leave => {
                    let kind = Kind::Leave;
                    found = Some(Parts { kind, ..parts });
                    break;
                }
                Step::End => break,
                Step::Later => return (Look::UNKNOWN, false),
            }
            let next = match self.place(tables, way.function, way.start) {
                TableState::At(place) => place,
                TableState::Later => return (Look::UNKNOWN, false),
                TableState::Never => break,
            };
            found = Some(Parts { next, ..parts });
            sites.clone_from(&way.waiting);
        }
        if let Some(Kind::Enter | Kind::Deeper) = found.as_ref().map(|parts| parts.kind) {
            if self.sites.len() + DEEP > MOST_SITES {
                return (Look::UNKNOWN, true);
            }
            self.sites.extend(sites);
        }
        (found.as_ref().map_or(Look::UNKNOWN, Look::new), true)
    }
}

/// The state of a start's table.
enum TableState {
    At(u32),
    /// The start gets a table if it is visited more often.
    Later,
    /// There is no room for more tables.
    Never,
}

/// The outcome of following a path.
enum Step {
    On,
    /// The activation with which the lookup began has returned.
    Leave,
    /// The path needs more bits, or a step that the tables do not cover.
    End,
    /// The path leads to a start that may get a table.
    Later,
}

/// The progress of a lookup.
struct Way {
    value: u32,
    left: u32,
    blocks: u32,
    /// The previous path, if it has blocks.
    node: NodeId,
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

    /// Follows one path.
    fn step<S: Sink>(
        &mut self,
        looks: &LookupTables,
        tables: &mut Tables<'_>,
        sink: &mut S,
    ) -> Step {
        match self.path(looks, tables, sink) {
            Some(step) => step,
            None => Step::End,
        }
    }

    /// Does the same as [`step`](Self::step), with `None` for [`Step::End`].
    fn path<S: Sink>(
        &mut self,
        looks: &LookupTables,
        tables: &mut Tables<'_>,
        sink: &mut S,
    ) -> Option<Step> {
        let (function, start) = (self.function, self.start);
        let (mut left, number) = self.take(self.left, tables.width(function, start))?;
        let path = tables.path(function, start, number, sink).ok()?;
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
                        let place = match looks.place(tables, function, returns) {
                            TableState::At(place) => place,
                            TableState::Later => return Some(Step::Later),
                            TableState::Never => UNKNOWN_PLACE,
                        };
                        self.waiting.push(Activation {
                            function,
                            start: returns,
                            throws,
                            block,
                            place,
                            entered: 0,
                            called: u64::from(self.blocks + path.length),
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
        self.node = path.node;
        self.blocks += path.length;
        Some(step)
    }

    /// Returns the callee, `Some(None)` for an import that writes nothing, or `None` if the callee
    /// is unknown.
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
