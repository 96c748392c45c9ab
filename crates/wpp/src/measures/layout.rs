//! Lays out the rules of a segment so that a search touches little memory.
//!
//! A segment's grammar is larger than the processor's caches, so the cost of a search is the number
//! of memory locations that it touches. Here, a rule is one contiguous stretch, with a header and
//! then each symbol with its end. A symbol contains the position of its rule, not the rule's
//! number, so a search needs no table of positions. A long rule is searched with a [`Directory`],
//! not by binary search.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use super::Directory;
use super::order::order;
use crate::{Kind, Node, Segment, Symbol};

/// A symbol that contains its rule's position, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u32);

impl Word {
    /// Marks the absence of a symbol.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Returns the symbol for the rule at this position.
    #[inline]
    pub(crate) fn rule(first: u32) -> Self {
        Self(first << 1 | 1)
    }

    /// Returns the node, if this is a terminal.
    #[inline]
    pub(crate) fn as_node(self) -> Option<NodeId> {
        (self.0 & 1 == 0).then(|| NodeId::from_u32(self.0 >> 1))
    }

    /// Returns the position of the rule's symbols, if this represents a rule.
    #[inline]
    pub(crate) fn as_rule(self) -> Option<u32> {
        (self.0 & 1 == 1 && self != Self::NONE).then_some(self.0 >> 1)
    }
}

/// A symbol, or a part of a header.
#[derive(Clone, Copy)]
struct Entry {
    word: u32,
    /// The number of blocks that the rule's symbols execute up to this symbol, or the index of that
    /// number in [`Layout::wide`].
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
/// The rule is an activation or contains activations.
const CALLS: u32 = 16;

/// Rules with more symbols than this have a directory, unless they execute nothing.
const SHORT: usize = 32;

/// Up to this many symbols are searched linearly. A linear search examines more symbols than a
/// binary search does. But few symbols account for most of a rule's time, so the processor usually
/// predicts the branch correctly.
pub(crate) const FEW: usize = 16;

/// A rule, decoded from its header.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    /// The position of its first symbol, and the position after its last symbol.
    pub(crate) first: u32,
    pub(crate) end: u32,
    flags: u32,
    /// The function of a call, or the number of rounds of a repetition.
    payload: u64,
}

impl Body {
    /// Returns the rule's kind.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        match self.flags & KIND {
            SEQUENCE => Kind::Sequence,
            REPEAT => Kind::Repeat(self.payload),
            _ => Kind::Call(FuncId::from_u32(self.payload as u32)),
        }
    }

    /// Returns the function, if the rule is an activation.
    #[inline]
    pub(crate) fn call(self) -> Option<FuncId> {
        (self.flags & KIND == CALL).then(|| FuncId::from_u32(self.payload as u32))
    }

    /// Returns the number of times that the rule executes its symbols.
    #[inline]
    pub(crate) fn rounds(self) -> u64 {
        if self.flags & KIND == REPEAT {
            self.payload
        } else {
            1
        }
    }

    /// Whether the rule is an activation or contains activations.
    pub(crate) fn calls(self) -> bool {
        self.flags & CALLS != 0
    }

    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.flags & WIDE != 0
    }
}

/// The rules of a segment, each at the position of its first symbol.
#[derive(Default)]
pub(crate) struct Layout {
    /// The rules, one after another. A rule's symbols are preceded by:
    ///
    /// - if the rule is long, the number of the directory's list with its ends;
    /// - the function and the number of symbols, or the two halves of the number of rounds;
    /// - the flags and, as `end`, the start of its first symbol, which is 0, or the index of that
    ///   start in `wide`.
    entries: Vec<Entry>,
    /// Ends that are too large for a word. A 0 precedes the ends of each rule.
    wide: Vec<u64>,
    /// The ends of long rules.
    directory: Directory,
    /// The position of each rule.
    places: PrimaryMap<RuleId, u32>,
}

impl Layout {
    /// The maximum number of entries, so that positions fit into words.
    const LIMIT: usize = 1 << 30;

    /// Lays out the rules of a sound segment. Returns `None` if there are too many rules and
    /// symbols.
    pub(super) fn new(
        segment: &Segment,
        nodes: &PrimaryMap<NodeId, Node>,
        lengths: &PrimaryMap<RuleId, u64>,
        calls: &PrimaryMap<RuleId, bool>,
    ) -> Option<Self> {
        let grammar = &segment.grammar;
        let is_long = |rule: RuleId| grammar.rules[rule].len as usize > SHORT && lengths[rule] > 0;
        let long = grammar.rules.keys().filter(|&rule| is_long(rule)).count();
        let entries = grammar.rules.len().checked_mul(2)?;
        let entries = entries.checked_add(long + grammar.symbols.len())?;
        if entries >= Self::LIMIT {
            return None;
        }
        let mut layout = Self {
            entries: vec![Entry { word: 0, end: 0 }; entries],
            places: std::iter::repeat_n(0, grammar.rules.len()).collect(),
            ..Self::default()
        };
        let mut place = 0;
        for rule in order(segment, lengths) {
            place += 2 + u32::from(is_long(rule));
            layout.places[rule] = place;
            place += grammar.rules[rule].len;
        }
        let length = |symbol: Symbol| match (symbol.as_rule(), symbol.as_node()) {
            (Some(rule), _) => lengths[rule],
            (None, Some(node)) => nodes[node].length(),
            (None, None) => 0,
        };
        let mut ends = Vec::new();
        for (id, rule) in grammar.rules.iter() {
            let mut end = 0;
            ends.clear();
            ends.extend(grammar.symbols_of(id).iter().map(|&symbol| {
                end += length(symbol);
                end
            }));
            let mut flags = if calls[id] { CALLS } else { 0 };
            if is_long(id) {
                flags |= LONG;
                let list = layout.directory.push(ends.iter().copied(), end);
                layout.entries[layout.places[id] as usize - 3].word = list;
            }
            layout.fill(id, rule.kind, flags, grammar.symbols_of(id), &ends);
        }
        layout.directory.shrink();
        layout.wide.shrink_to_fit();
        Some(layout)
    }

    /// Writes a rule, except for its list in the directory. `ends` gives the number of blocks
    /// executed up to each symbol.
    fn fill(&mut self, id: RuleId, kind: Kind, flags: u32, symbols: &[Symbol], ends: &[u64]) {
        let first = self.places[id] as usize;
        let wide = ends.last().is_some_and(|&end| u32::try_from(end).is_err());
        let flags = if wide { flags | WIDE } else { flags };
        let (kind, word, end) = match kind {
            Kind::Sequence => (SEQUENCE, 0, symbols.len() as u32),
            Kind::Repeat(times) => (REPEAT, times as u32, (times >> 32) as u32),
            Kind::Call(function) => (CALL, function.as_u32(), symbols.len() as u32),
        };
        self.entries[first - 2] = Entry { word, end };
        self.entries[first - 1] = Entry {
            word: flags | kind,
            end: self.end_of(0, wide),
        };
        for ((&symbol, &end), at) in symbols.iter().zip(ends).zip(first..) {
            let Word(word) = self.word(symbol);
            let end = self.end_of(end, wide);
            self.entries[at] = Entry { word, end };
        }
    }

    /// Returns the representation of an end in an entry.
    fn end_of(&mut self, end: u64, wide: bool) -> u32 {
        if !wide {
            return end as u32;
        }
        self.wide.push(end);
        self.wide.len() as u32 - 1
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
            + self.wide.len() * size_of::<u64>()
            + self.places.len() * size_of::<u32>()
            + self.directory.bytes()
    }

    /// Returns the number of positions.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a rule's position, which is the position of its first symbol.
    pub(crate) fn place(&self, rule: RuleId) -> u32 {
        self.places[rule]
    }

    /// Converts a symbol, which must belong to the grammar.
    #[inline]
    pub(crate) fn word(&self, symbol: Symbol) -> Word {
        match symbol.as_rule() {
            Some(rule) => Word::rule(self.places[rule]),
            None => Word(symbol.bits()),
        }
    }

    /// Returns the rule at a position.
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

    /// Returns the number of a long rule, in the order of the grammar, or `None` for a short rule.
    #[inline]
    pub(crate) fn long(&self, body: Body) -> Option<u32> {
        let is_long = body.flags & LONG != 0;
        is_long.then(|| self.entries[body.first as usize - 3].word)
    }

    /// Returns the symbol at a position.
    #[inline]
    pub(crate) fn at(&self, at: u32) -> Word {
        Word(self.entries[at as usize].word)
    }

    /// Returns the number of blocks that a rule's symbols execute, up to and including the symbol
    /// at this position, or 0 at the position before the first symbol.
    #[inline]
    pub(crate) fn end_at(&self, at: u32, wide: bool) -> u64 {
        let end = self.entries[at as usize].end;
        if wide {
            self.wide[end as usize]
        } else {
            u64::from(end)
        }
    }

    /// Returns the number of blocks that the symbol at a position executes.
    #[inline]
    pub(crate) fn width_at(&self, at: u32, wide: bool) -> u64 {
        self.end_at(at, wide) - self.end_at(at - 1, wide)
    }

    /// Returns the position of the symbol at `within` blocks into the rule. `within` must be less
    /// than the number of blocks that the rule's symbols execute.
    #[inline]
    pub(crate) fn find(&self, body: Body, within: u64) -> u32 {
        let (mut from, mut to) = (body.first, body.end);
        if let Some(list) = self.long(body) {
            let (least, most) = self.directory.range(list, within);
            (from, to) = (body.first + least, body.first + most);
        }
        let own = &self.entries[from as usize..to as usize];
        let before = if body.is_wide() {
            own.partition_point(|entry| self.wide[entry.end as usize] <= within)
        } else {
            // The value fits, because it is less than the rule's length.
            let within = within as u32;
            if own.len() <= FEW {
                let beyond = own.iter().position(|entry| entry.end > within);
                beyond.unwrap_or(own.len())
            } else {
                own.partition_point(|entry| entry.end <= within)
            }
        };
        from + before as u32
    }

    /// Returns the number of blocks that a rule executes in total.
    pub(crate) fn length(&self, rule: RuleId) -> u64 {
        let body = self.body(self.places[rule]);
        let once = self.end_at(body.end - 1, body.is_wide());
        match body.kind() {
            Kind::Repeat(times) => once * times,
            _ => once,
        }
    }

    /// Returns the number of blocks that a rule's symbols execute up to and including symbol `at`,
    /// counted from 0. For a repetition, counts the first round.
    pub(crate) fn end(&self, rule: RuleId, at: usize) -> u64 {
        let body = self.body(self.places[rule]);
        self.end_at(body.first + at as u32, body.is_wide())
    }
}
