//! The rules of a segment, laid out so that a search looks at little memory.
//!
//! A segment's grammar is larger than the processor's caches, so what a search costs is how many places it looks at. A
//! rule is one stretch here: a header, and for each symbol what it is and where it ends. Symbols say where the rules that they name are,
//! not their numbers, so that there is no table between. A long rule is not searched by halves: a directory says between which of its
//! symbols a position is. Its slots are equally far apart in time, so at a random time two neighbours enclose only a few symbols on
//! average, whatever the symbols' lengths are (bucketing, as in Devroye, "Lecture Notes on Bucket Algorithms", 1986).

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use crate::{Kind, Rule, Symbol};

/// A symbol that says where its rule is. One word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u32);

impl Word {
    /// No symbol.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// The symbol that stands for the rule at this place.
    #[inline]
    pub(crate) fn rule(first: u32) -> Self {
        Self(first << 1 | 1)
    }

    /// The node, if this is a terminal.
    #[inline]
    pub(crate) fn as_node(self) -> Option<NodeId> {
        (self.0 & 1 == 0).then(|| NodeId::from_u32(self.0 >> 1))
    }

    /// Where the rule's symbols are, if this stands for one.
    #[inline]
    pub(crate) fn as_rule(self) -> Option<u32> {
        (self.0 & 1 == 1 && self != Self::NONE).then_some(self.0 >> 1)
    }
}

/// A symbol, or a part of a header.
#[derive(Clone, Copy)]
struct Entry {
    word: u32,
    /// How many blocks the rule's symbols execute up to this one, or where that stands in [`Layout::wide`].
    end: u32,
}

const KIND: u32 = 3;
const SEQUENCE: u32 = 0;
const REPEAT: u32 = 1;
const CALL: u32 = 2;
/// The ends of the rule's symbols need more than 32 bits.
const WIDE: u32 = 4;
/// The rule has a directory.
const LONG: u32 = 8;
/// The rule is an activation or contains some.
const CALLS: u32 = 16;

/// How many symbols a rule may have that has no directory.
const SHORT: usize = 32;

/// A rule, as its header says.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    /// The places of its first symbol, and after its last.
    pub(crate) first: u32,
    pub(crate) end: u32,
    flags: u32,
    /// The function, the number of rounds, or nothing.
    payload: u64,
}

impl Body {
    /// What the rule stands for.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        match self.flags & KIND {
            SEQUENCE => Kind::Sequence,
            REPEAT => Kind::Repeat(self.payload),
            _ => Kind::Call(FuncId::from_u32(self.payload as u32)),
        }
    }

    /// Whether the rule is an activation or contains some.
    pub(crate) fn calls(self) -> bool {
        self.flags & CALLS != 0
    }

    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.flags & WIDE != 0
    }
}

/// The rules of a segment, each at the place of its first symbol.
#[derive(Default)]
pub(crate) struct Layout {
    /// The rules, one after the other. Before a rule's symbols stand:
    ///
    /// - if it is long, where its directory begins and how many bits of a time are within a slot of it;
    /// - the function and how many symbols there are, or the two halves of the number of rounds;
    /// - flags, and as `end` what its first symbol begins with: 0, or where that stands in `wide`.
    entries: Vec<Entry>,
    /// Ends that are too large for a word, each rule's after a 0.
    wide: Vec<u64>,
    /// For long rules, how many symbols end at the beginning of each slot or before, and at last how many there are but for one.
    directory: Vec<u32>,
    /// Where each rule is.
    places: PrimaryMap<RuleId, u32>,
}

impl Layout {
    /// How many entries there may be, so that places fit into words.
    const LIMIT: usize = 1 << 30;

    /// Room for rules. `None` if these are too many.
    pub(super) fn with_capacity(rules: &PrimaryMap<RuleId, Rule>, symbols: usize) -> Option<Self> {
        let long = rules
            .values()
            .filter(|rule| rule.len as usize > SHORT)
            .count();
        let entries = rules.len().checked_mul(2)?.checked_add(long + symbols)?;
        (entries < Self::LIMIT).then(|| Self {
            entries: Vec::with_capacity(entries),
            places: PrimaryMap::with_capacity(rules.len()),
            ..Self::default()
        })
    }

    /// Adds the next rule, whose symbols name rules that were added before. `ends`: how many blocks its symbols execute up to each.
    pub(super) fn push(&mut self, kind: Kind, symbols: &[Symbol], ends: &[u64], calls: bool) {
        let length = ends.last().copied().unwrap_or(0);
        let mut flags = if calls { CALLS } else { 0 };
        if symbols.len() > SHORT && length > 0 {
            flags |= LONG;
            self.push_directory(ends, length);
        }
        let wide = u32::try_from(length).is_err();
        if wide {
            flags |= WIDE;
        }
        let (kind, word, end) = match kind {
            Kind::Sequence => (SEQUENCE, 0, symbols.len() as u32),
            Kind::Repeat(times) => (REPEAT, times as u32, (times >> 32) as u32),
            Kind::Call(function) => (CALL, function.as_u32(), symbols.len() as u32),
        };
        self.entries.push(Entry { word, end });
        let end = self.end_of(0, wide);
        self.entries.push(Entry {
            word: flags | kind,
            end,
        });
        self.places.push(self.entries.len() as u32);
        for (&symbol, &end) in symbols.iter().zip(ends) {
            let Word(word) = self.word(symbol);
            let end = self.end_of(end, wide);
            self.entries.push(Entry { word, end });
        }
    }

    /// What stands for an end in an entry.
    fn end_of(&mut self, end: u64, wide: bool) -> u32 {
        if !wide {
            return end as u32;
        }
        self.wide.push(end);
        self.wide.len() as u32 - 1
    }

    fn push_directory(&mut self, ends: &[u64], length: u64) {
        let most = ends.len() as u64 / 2;
        // Half as many slots as symbols, or fewer.
        let mut shift = 0;
        while (length - 1) >> shift >= most {
            shift += 1;
        }
        self.entries.push(Entry {
            word: self.directory.len() as u32,
            end: shift,
        });
        let mut at = 0;
        for slot in 0..=(length - 1) >> shift {
            while ends[at] <= slot << shift {
                at += 1;
            }
            self.directory.push(at as u32);
        }
        self.directory.push(ends.len() as u32 - 1);
    }

    pub(super) fn shrink(&mut self) {
        self.directory.shrink_to_fit();
        self.wide.shrink_to_fit();
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
            + self.wide.len() * size_of::<u64>()
            + (self.directory.len() + self.places.len()) * size_of::<u32>()
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where a rule is: the place of its first symbol.
    pub(crate) fn place(&self, rule: RuleId) -> u32 {
        self.places[rule]
    }

    /// The symbol, which must be one of the grammar's.
    #[inline]
    pub(crate) fn word(&self, symbol: Symbol) -> Word {
        match symbol.as_rule() {
            Some(rule) => Word::rule(self.places[rule]),
            None => Word(symbol.bits()),
        }
    }

    /// The rule at a place.
    #[inline]
    pub(crate) fn body(&self, first: u32) -> Body {
        let [sizes, flags] = [2, 1].map(|before| self.entries[(first - before) as usize]);
        let flags = flags.word;
        let (len, payload) = match flags & KIND {
            REPEAT => (1, u64::from(sizes.end) << 32 | u64::from(sizes.word)),
            _ => (sizes.end, u64::from(sizes.word)),
        };
        Body {
            first,
            end: first + len,
            flags,
            payload,
        }
    }

    /// The symbol at a place.
    #[inline]
    pub(crate) fn at(&self, at: u32) -> Word {
        Word(self.entries[at as usize].word)
    }

    /// How many blocks a rule's symbols execute up to the one at this place; 0 at the place before the first.
    #[inline]
    pub(crate) fn end_at(&self, at: u32, wide: bool) -> u64 {
        let end = self.entries[at as usize].end;
        if wide {
            self.wide[end as usize]
        } else {
            u64::from(end)
        }
    }

    /// How many blocks the symbol at a place executes.
    #[inline]
    pub(crate) fn width_at(&self, at: u32, wide: bool) -> u64 {
        self.end_at(at, wide) - self.end_at(at - 1, wide)
    }

    /// The place of the symbol that executes what a rule executes after so many blocks, fewer than its symbols do.
    #[inline]
    pub(crate) fn find(&self, body: Body, within: u64) -> u32 {
        let (mut from, mut to) = (body.first, body.end);
        if body.flags & LONG != 0 {
            let header = self.entries[body.first as usize - 3];
            let slot = header.word as usize + (within >> header.end) as usize;
            from = body.first + self.directory[slot];
            to = body.first + self.directory[slot + 1];
        }
        let own = &self.entries[from as usize..to as usize];
        let before = if body.is_wide() {
            own.partition_point(|entry| self.wide[entry.end as usize] <= within)
        } else {
            // It fits, since it is below the rule's length.
            let within = within as u32;
            own.partition_point(|entry| entry.end <= within)
        };
        from + before as u32
    }

    /// How many blocks a rule executes in all.
    pub(crate) fn length(&self, rule: RuleId) -> u64 {
        let body = self.body(self.places[rule]);
        let once = self.end_at(body.end - 1, body.is_wide());
        match body.kind() {
            Kind::Repeat(times) => once * times,
            _ => once,
        }
    }

    /// How many blocks a rule's symbols execute up to one, from 0.
    pub(crate) fn end(&self, rule: RuleId, at: usize) -> u64 {
        let body = self.body(self.places[rule]);
        self.end_at(body.first + at as u32, body.is_wide())
    }
}
