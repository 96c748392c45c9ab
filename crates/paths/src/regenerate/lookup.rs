//! Tables that show where the next few bits lead, over several paths at once.

use afterimage_ids::NodeId;

use super::count::Tally;
use super::stack::{Activation, LEAVES, NOWHERE};
use super::tables::{PathEnd, Tables, Target};
use super::{RegenerateError, Sink};

/// The number of bits that one look reads. Seven or nine bits make counting slower.
const BITS: u32 = 8;
/// The number of entries of a table. There is one for each number of bits up to [`BITS`] and each
/// value of these bits.
const TABLE: usize = 2 << BITS;
/// The maximum number of calls that one look may enter.
const DEEP: usize = 4;
/// The maximum number of paths that one look may follow. Paths without bits could cycle forever.
const FAR: usize = 64;

/// A start gets a table after this many visits. Most starts are visited less often, and would take
/// most of the memory.
const WARM: u32 = 16;
/// The maximum number of entries of all tables together, which take 128 MiB.
const MOST: usize = 1 << 23;

/// The maximum length of the lists of paths, at which they take 64 MiB. Beyond it, the lists are
/// rebuilt.
const MOST_NODES: usize = 1 << 24;

/// The place of the table for unknown starts.
pub(super) const UNKNOWN_PLACE: u32 = 0;

/// The result of following some bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// The place where the table for the next path begins.
    pub next: u32,
    /// The number of blocks executed.
    pub blocks: u32,
    /// The position of the first of the activations that begin to wait.
    site: u32,
    /// The number of bits consumed.
    pub bits: u8,
    /// The number of activations that begin to wait.
    waiting: u8,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The entry has not been computed yet.
    New,
    /// The activation continues.
    Stay,
    /// The activation makes a call, and waits.
    Enter,
    /// The activation makes a call, and so does its callee.
    Deeper,
    /// The activation returns.
    Leave,
    /// The next step must be taken without a table.
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

/// A table for each path start that the run reaches often, filled on demand. A table takes 8 KiB,
/// and all tables take at most 128 MiB. Counting paths takes 50 % more memory, and up to 64 MiB for
/// lists.
#[derive(Debug)]
pub(super) struct LookupTables {
    entries: Vec<Look>,
    /// The function and the start of each table.
    starts: Vec<(u32, u32)>,
    /// The activations that begin to wait, grouped by look.
    sites: Vec<Activation>,
    /// The number of uses of each entry since the last report, if paths are counted.
    used: Vec<u64>,
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
            entries: vec![UNKNOWN; TABLE],
            starts: vec![(NOWHERE, NOWHERE)],
            sites: Vec::new(),
            used: Vec::new(),
            met: Vec::new(),
            listed: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Counts one more use of an entry.
    #[inline]
    pub(super) fn count(&mut self, entry: usize) {
        match self.used.get_mut(entry) {
            Some(used) if *used > 0 => *used += 1,
            _ => self.count_first(entry),
        }
    }

    #[cold]
    fn count_first(&mut self, entry: usize) {
        if self.used.len() <= entry {
            self.used.resize(self.entries.len(), 0);
        }
        self.used[entry] = 1;
        self.met.push(entry as u32);
    }

    /// Reports to a tally the paths of all entries used since the last report.
    pub(super) fn report<T: Tally>(
        &mut self,
        tables: &mut Tables<'_>,
        tally: &mut T,
    ) -> Result<(), RegenerateError> {
        self.listed.resize(self.used.len(), 0);
        let met = std::mem::take(&mut self.met);
        for entry in met.iter().map(|&entry| entry as usize) {
            let times = std::mem::take(&mut self.used[entry]);
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
        let look = self.entries[entry];
        let within = (entry % TABLE) as u32;
        let bits = within.ilog2();
        let value = within - (1 << bits);
        let first = self.nodes.len();
        self.nodes.push(0);
        let mut way = self.way((entry - entry % TABLE) as u32, value, bits);
        while let Some(on) = &mut way
            && on.blocks < look.blocks
        {
            let before = on.blocks;
            let step = on.step(self, tables, tally);
            let ends = matches!(step, Step::End | Step::Later);
            if ends || on.blocks > look.blocks {
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

    /// Returns the state in which a look begins at the start with the table at `place`. The look
    /// reads the `bits` bits of `value`. Returns `None` if no start has this table.
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

    #[inline]
    pub(super) fn at(&self, entry: usize) -> &Look {
        &self.entries[entry]
    }

    /// Returns the activation that begins to wait with a call. Its `called` counts blocks from the
    /// look's beginning.
    #[inline]
    pub(super) fn site(&self, look: &Look) -> Activation {
        self.sites[look.site as usize]
    }

    /// Returns all activations that begin to wait.
    pub(super) fn sites(&self, look: &Look) -> &[Activation] {
        &self.sites[look.site as usize..][..usize::from(look.waiting)]
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
            self.entries.resize(self.entries.len() + TABLE, NEW);
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
            self.entries[entry] = look;
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
        let mut found = UNKNOWN;
        let Some(mut way) = self.way(place, value, bits) else {
            return (found, true);
        };
        let mut sites = Vec::new();
        for _ in 0..FAR {
            // No bits are left, so the paths that follow are unknown.
            if way.left == 0 {
                break;
            }
            match way.step(self, tables, sink) {
                Step::On => {}
                Step::Leave => {
                    found.bits = (bits - way.left) as u8;
                    found.blocks = way.blocks;
                    found.kind = Kind::Leave;
                    break;
                }
                Step::End => break,
                Step::Later => return (found, false),
            }
            found.next = match self.place(tables, way.function, way.start) {
                TableState::At(place) => place,
                TableState::Later => return (found, false),
                TableState::Never => break,
            };
            found.bits = (bits - way.left) as u8;
            found.blocks = way.blocks;
            found.kind = match way.waiting.len() {
                0 => Kind::Stay,
                1 => Kind::Enter,
                _ => Kind::Deeper,
            };
            sites.clone_from(&way.waiting);
        }
        if let Kind::Enter | Kind::Deeper = found.kind {
            // An entry has at most four of these activations.
            found.site = self.sites.len() as u32;
            found.waiting = sites.len() as u8;
            self.sites.extend(sites);
        }
        (found, true)
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
    /// The activation with which the look began has returned.
    Leave,
    /// The path needs more bits, or a step that the tables do not cover.
    End,
    /// The path leads to a start that may get a table.
    Later,
}

/// The progress of a look.
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
