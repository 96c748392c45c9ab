//! Encodes and decodes groups of adjacent intervals.

use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;

use afterimage_streams::Stream;

use super::cache::Room;
use super::set::{Set, Span, decode, encode as put_spans, sweep};
use super::sites::{Lists, Site};
use super::touched::{LineForm, Lines, bits};
use super::{Key, LINE, WORD};
use crate::epoch::wire::{put, take};

/// The size in bytes at which a unit ends.
const UNIT: usize = 1 << 20;

/// A recorded interval.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The number of blocks executed by the interval's end.
    pub after: u64,
    /// The bytes of the checkpoint at the interval's end. They are empty if the run ends there.
    pub state: Vec<u8>,
    pub lines: Vec<Lines>,
    /// The times of the last writes to words, relative to the interval's beginning.
    pub times: Vec<u64>,
    /// The sites that wrote each word, as the number of a list.
    pub lists: Vec<u32>,
}

impl Recorded {
    /// Returns the words written and the words read.
    pub fn sets(&self) -> Sets {
        Sets {
            written: self.lines.iter().map(Lines::written).collect(),
            read: self.lines.iter().map(Lines::read).collect(),
        }
    }

    /// Returns the written lines, in their stored form.
    fn written(&self) -> impl Iterator<Item = &Lines> + Clone {
        self.lines.iter().filter(|lines| lines.written != 0)
    }

    /// Returns the number of stored words. These are the words last written by the guest, or one of
    /// them for lines in the form `Same`.
    fn kept(&self) -> u64 {
        let kept = self
            .written()
            .map(|lines| kept_of(&lines.written(), lines.by_host, lines.told));
        kept.sum()
    }
}

/// Returns the number of words stored for some written lines.
fn kept_of(lines: &Span, by_host: u16, told: LineForm) -> u64 {
    let mask = lines.mask & !by_host;
    match told {
        LineForm::Same => u64::from(mask != 0),
        _ => u64::from(mask.count_ones()) * u64::from(lines.count),
    }
}

/// The words that were written, and the words that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    pub written: Set,
    pub read: Set,
}

impl Sets {
    /// Adds another interval's sets.
    pub fn add(&mut self, other: &Sets) {
        self.written.add(&other.written);
        self.read.add(&other.read);
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.written.shrink();
        self.read.shrink();
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        self.written.encode(out);
        self.read.encode(out);
    }

    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let written = Set::decode(input)?;
        let read = Set::decode(input)?;
        Some(Self { written, read })
    }
}

/// Encodes a group and its units. The group's bytes begin with a record for each interval. The
/// record has the numbers of the interval's blocks, lists, stored words and times, and the lengths
/// of its checkpoint and its parts. The table of sites and lists follows, and then all checkpoints.
/// For each interval, a unit contains the sets, the words that the host wrote, the words with mixed
/// times, the forms of the lines, the times, and the lists.
pub(super) fn encode(before: u64, intervals: &[Recorded], lists: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut out = Vec::new();
    put(&mut out, intervals.len() as u64);
    put(&mut out, lists.len() as u64);
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut last = before;
    for interval in intervals {
        if units.last().is_none_or(|unit| unit.len() >= UNIT) {
            units.push(Vec::new());
        }
        let Some(unit) = units.last_mut() else {
            break;
        };
        let start = unit.len();
        put_spans(interval.written().map(Lines::written), unit);
        interval.sets().read.encode(unit);
        sparse(unit, interval.written().map(|lines| lines.by_host));
        sparse(unit, interval.written().map(|lines| lines.mixed));
        sparse(unit, interval.written().map(|lines| lines.told as u16));
        let sets = unit.len();
        afterimage_streams::encode(&interval.times, unit);
        let times = unit.len();
        let sites = Vec::from_iter(interval.lists.iter().map(|&list| u64::from(list)));
        afterimage_streams::encode(&sites, unit);
        let numbers = [
            interval.after - last,
            sites.len() as u64,
            interval.kept(),
            interval.times.len() as u64,
            interval.state.len() as u64,
            (sets - start) as u64,
            (times - sets) as u64,
            (unit.len() - times) as u64,
        ];
        numbers.iter().for_each(|&number| put(&mut out, number));
        last = interval.after;
    }
    out.extend_from_slice(lists);
    for interval in intervals {
        out.extend_from_slice(&interval.state);
    }
    (out, units)
}

/// Appends the nonzero masks of a list, with their positions.
fn sparse(out: &mut Vec<u8>, masks: impl Iterator<Item = u16>) {
    let masks = (0u64..).zip(masks).filter(|&(_, mask)| mask != 0);
    let masks = Vec::from_iter(masks);
    put(out, masks.len() as u64);
    let mut next = 0;
    for (position, mask) in masks {
        put(out, position - next);
        put(out, mask.into());
        next = position + 1;
    }
}

/// Reads a list of masks that [`sparse`] wrote.
fn dense(input: &mut &[u8], length: usize) -> Option<Vec<u16>> {
    let mut masks = vec![0; length];
    let mut next = 0u64;
    for _ in 0..take(input)? {
        let position = next.checked_add(take(input)?)?;
        let mask = u16::try_from(take(input)?).ok()?;
        *masks.get_mut(usize::try_from(position).ok()?)? = mask;
        next = position + 1;
    }
    Some(masks)
}

/// A decoded group, without its units.
#[derive(Debug)]
pub(super) struct Group {
    bytes: Vec<u8>,
    pub intervals: Vec<Interval>,
    lists: Range<usize>,
    decoded: OnceLock<Option<Lists>>,
    /// The size of each unit in bytes.
    pub units: Vec<usize>,
}

/// An interval of a group.
#[derive(Debug)]
pub(super) struct Interval {
    /// The number of blocks executed before the interval.
    pub before: u64,
    /// The number of blocks executed by the interval's end.
    pub after: u64,
    /// The number of words stored for the group's earlier intervals.
    pub first_kept: u64,
    state: Range<usize>,
    /// The number of the unit that contains the interval.
    pub unit: usize,
    sets: Range<usize>,
    times: Range<usize>,
    lists: Range<usize>,
    /// The number of the interval's lists of sites: one per written word, or one for a stretch of
    /// whole lines.
    words: u64,
    /// The number of words whose bytes are stored.
    kept: u64,
    /// The number of times that are stored.
    count: u64,
}

/// The data about an interval's words.
#[derive(Debug)]
pub(super) struct Parts {
    pub sets: Arc<Sets>,
    /// The spans of the written lines and their masks, coded. A search for a word's last writer
    /// decodes them for few intervals.
    of_written: Vec<u8>,
    /// The number of these spans.
    most: usize,
    decoded: OnceLock<Option<Vec<Written>>>,
    times: Vec<u8>,
    lists: Vec<u8>,
    words: u64,
    kept: u64,
    count: u64,
}

/// Lines with the same writes. Consecutive lines that are stored individually are grouped.
#[derive(Clone, Copy, Debug)]
struct Written {
    lines: Span,
    by_host: u16,
    mixed: u16,
    told: LineForm,
    before: Before,
}

impl Written {
    /// Whether these lines continue `last`. This requires adjacent lines with equal masks that are
    /// stored individually.
    fn goes_on(&self, last: &Self) -> bool {
        let all = |of: &Self| (of.told, of.lines.mask, of.by_host, of.mixed);
        self.told == LineForm::Each
            && all(self) == all(last)
            && self.lines.first == last.lines.end()
    }

    /// Returns the number of individually stored lines from the first of these lines up to a given
    /// line.
    fn lines_before(&self, key: Key) -> u64 {
        match self.told {
            LineForm::Each => key - self.lines.first,
            LineForm::Once | LineForm::Same => 0,
        }
    }
}

/// Totals over the preceding lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Before {
    times: u64,
    words: u64,
    /// The number of stored words.
    kept: u64,
}

impl Before {
    /// Returns the totals after more lines are added, or `None` if these lines are invalid.
    fn with(
        self,
        Written {
            lines,
            by_host,
            mixed,
            told,
            ..
        }: Written,
    ) -> Option<Self> {
        let (times, words) = match told {
            LineForm::Each if lines.count == 1 => {
                (times_of(lines.mask, mixed), lines.mask.count_ones().into())
            }
            LineForm::Once | LineForm::Same
                if lines.mask == u16::MAX && mixed == 0 && matches!(by_host, 0 | u16::MAX) =>
            {
                (1, 1)
            }
            _ => return None,
        };
        Some(Self {
            times: self.times + times,
            words: self.words + words,
            kept: self.kept.checked_add(kept_of(&lines, by_host, told))?,
        })
    }
}

impl Group {
    /// Decodes a group, which begins after `before` blocks.
    pub fn decode(bytes: Vec<u8>, before: u64) -> Option<Self> {
        let mut input = &bytes[..];
        let count = take(&mut input)?;
        if count > super::CHILDREN as u64 {
            return None;
        }
        let lists = take(&mut input)?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let mut header = [0; 8];
            for number in &mut header {
                *number = take(&mut input)?;
            }
            headers.push(header);
        }
        let mut at = bytes.len() - input.len();
        let lists = part(&mut at, lists)?;
        let mut intervals = Vec::new();
        let mut units: Vec<usize> = Vec::new();
        let (mut last, mut first_kept) = (before, 0u64);
        for [blocks, words, kept, count, state, sets, times, lists] in headers {
            if units.last().is_none_or(|&length| length >= UNIT) {
                units.push(0);
            }
            let unit = units.len() - 1;
            let within = &mut units[unit];
            let after = last.checked_add(blocks)?;
            intervals.push(Interval {
                before: last,
                after,
                first_kept,
                state: part(&mut at, state)?,
                unit,
                sets: part(within, sets)?,
                times: part(within, times)?,
                lists: part(within, lists)?,
                words,
                kept,
                count,
            });
            last = after;
            first_kept = first_kept.checked_add(kept)?;
        }
        (at == bytes.len()).then_some(Self {
            bytes,
            intervals,
            lists,
            decoded: OnceLock::new(),
            units,
        })
    }

    /// Returns the checkpoint at an interval's end, which is empty if there is none.
    pub fn state(&self, interval: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.intervals.get(interval)?.state.clone()])
    }

    /// Returns the sites of a list, or `None` if the list is damaged.
    pub fn sites(&self, list: u64) -> Option<Vec<Site>> {
        let decode = || Lists::decode(&self.bytes[self.lists.clone()]);
        let lists = self.decoded.get_or_init(decode).as_ref()?;
        lists.get(list)
    }
}

/// Returns the next part of `length` bytes.
fn part(at: &mut usize, length: u64) -> Option<Range<usize>> {
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let range = *at..end;
    *at = end;
    Some(range)
}

impl Interval {
    /// Decodes the data about the interval's words from the bytes of its unit. Returns `None` if
    /// they are damaged.
    pub fn parts(&self, unit: &[u8]) -> Option<Parts> {
        let bytes = unit.get(self.sets.clone())?;
        let mut input = bytes;
        let spans = decode(&mut input)?;
        let mut of_written = bytes[..bytes.len() - input.len()].to_vec();
        let read = Set::decode(&mut input)?;
        of_written.extend_from_slice(input);
        let most = spans.len();
        let sets = Sets {
            written: Set::of(spans),
            read,
        };
        Some(Parts {
            sets: Arc::new(sets),
            of_written,
            most,
            decoded: OnceLock::new(),
            times: unit.get(self.times.clone())?.to_vec(),
            lists: unit.get(self.lists.clone())?.to_vec(),
            words: self.words,
            kept: self.kept,
            count: self.count,
        })
    }
}

/// A written word, as its lines, its bit in the mask, and the mask of the earlier words of its
/// line.
type WrittenWord<'p> = (&'p Written, u16, u16);

impl Parts {
    /// Returns the written lines, ascending, or `None` if the data is damaged.
    fn written_lines(&self) -> Option<&[Written]> {
        let known = self.decoded.get_or_init(|| self.decode_written());
        known.as_deref()
    }

    fn decode_written(&self) -> Option<Vec<Written>> {
        let mut input = &self.of_written[..];
        let spans = decode(&mut input)?;
        let mut masks = || dense(&mut input, spans.len());
        let (by_host, mixed, told) = (masks()?, masks()?, masks()?);
        let mut written: Vec<Written> = Vec::with_capacity(spans.len());
        let mut before = Before::default();
        for (i, &lines) in spans.iter().enumerate() {
            let told = match told[i] {
                0 => LineForm::Each,
                1 => LineForm::Once,
                2 => LineForm::Same,
                _ => return None,
            };
            let lines = Written {
                lines,
                by_host: by_host[i],
                mixed: mixed[i],
                told,
                before,
            };
            before = before.with(lines)?;
            match written.last_mut() {
                Some(last) if lines.goes_on(last) => last.lines.count += 1,
                _ => written.push(lines),
            }
        }
        let Before { times, words, kept } = before;
        written.shrink_to_fit();
        let fits = input.is_empty() && (times, words, kept) == (self.count, self.words, self.kept);
        fits.then_some(written)
    }

    /// Returns a written word. The inner value is `None` if the word was not written. The outer
    /// value is `None` if the data is damaged.
    fn word(&self, key: Key, address: u64) -> Option<Option<WrittenWord<'_>>> {
        let written = self.written_lines()?;
        let at = written.partition_point(|of| of.lines.end() <= key);
        let of = written.get(at).filter(|of| of.lines.first <= key);
        let word = 1u16 << (address % LINE / WORD);
        Some(of.and_then(|of| {
            let mask = of.lines.mask;
            (mask & word != 0).then_some((of, word, mask & (word - 1)))
        }))
    }

    /// Returns whether the host was the last to write a byte's word, with a write that covered the
    /// whole word. Returns `None` if the data is damaged.
    pub fn is_by_host(&self, key: Key, address: u64) -> Option<bool> {
        let found = self.word(key, address)?;
        Some(found.is_some_and(|(of, word, _)| of.by_host & word != 0))
    }

    /// Returns the time of the last write to a byte of a line, relative to the interval's
    /// beginning. The time is 0 if the byte was not written. Returns `None` if the data is damaged.
    pub fn written(&self, key: Key, address: u64) -> Option<u64> {
        let Some((of, word, before)) = self.word(key, address)? else {
            return Some(0);
        };
        let within = match (of.told, of.mixed & word) {
            (LineForm::Each, 0) => times_of(before, of.mixed & before),
            (LineForm::Each, _) => times_of(before, of.mixed & before) + address % WORD,
            _ => 0,
        };
        let lines = of.lines_before(key) * times_of(of.lines.mask, of.mixed);
        let stream = Stream::open(&self.times, self.count).ok()?;
        stream.cursor().get(of.before.times + lines + within).ok()
    }

    /// Passes written words to `tell`, one stretch of lines at a time. Each stretch comes with the
    /// words that the host wrote last, and the location of the other words.
    pub fn kept(&self, words: &Set, mut tell: impl FnMut(Span, u16, Kept)) -> Option<()> {
        let written = self.written_lines()?;
        let first = words.spans().first().map_or(0, |span| span.first);
        let end = words.spans().last().map_or(0, Span::end);
        let from = written.partition_point(|of| of.lines.end() <= first);
        let own = written[from..].iter();
        let mut rest = words.spans();
        for of in own.take_while(|of| of.lines.first < end) {
            rest = &rest[rest.partition_point(|span| span.end() <= of.lines.first)..];
            let near = &rest[..rest.partition_point(|span| span.first < of.lines.end())];
            sweep(&[of.lines], near, |first, count, (mask, wanted)| {
                let mask = mask & wanted;
                if mask != 0 {
                    let kept = Kept {
                        lines: of.lines,
                        mask: of.lines.mask & !of.by_host,
                        told: of.told,
                        before: of.before.kept,
                    };
                    tell(Span { first, count, mask }, mask & of.by_host, kept);
                }
            });
        }
        Some(())
    }

    /// Returns the sites that wrote the word of a written byte, as the number of a list of the
    /// group, or `None` if the data is damaged.
    pub fn list(&self, key: Key, address: u64) -> Option<u64> {
        let (of, _, before) = self.word(key, address)??;
        let within = match of.told {
            LineForm::Each => before.count_ones(),
            _ => 0,
        };
        let lines = of.lines_before(key) * u64::from(of.lines.mask.count_ones());
        let stream = Stream::open(&self.lists, self.words).ok()?;
        stream
            .cursor()
            .get(of.before.words + lines + u64::from(within))
            .ok()
    }
}

/// The location of the bytes of some written lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    lines: Span,
    /// The words of each line that are stored.
    mask: u16,
    told: LineForm,
    /// The number of the interval's words that are stored before these lines.
    before: u64,
}

impl Kept {
    /// Whether all words have the same bytes.
    pub fn is_same(&self) -> bool {
        self.told == LineForm::Same
    }

    /// Returns the number of the interval's words that are stored before a given stored word of a
    /// line.
    pub fn position(&self, key: Key, word: usize) -> u64 {
        let of_line = u64::from(self.mask.count_ones());
        let within = u64::from((self.mask & ((1 << word) - 1)).count_ones());
        match self.told {
            LineForm::Same => self.before,
            _ => self.before + (key - self.lines.first) * of_line + within,
        }
    }
}

impl Room for Group {
    fn bytes(&self) -> usize {
        // One byte of the lists decodes to about one number, or to half a site.
        let decoded = 2 * self.lists.len() * size_of::<u32>();
        let intervals = self.intervals.len() * size_of::<Interval>();
        self.bytes.len() + decoded + intervals
    }
}

impl Room for Parts {
    fn bytes(&self) -> usize {
        // This counts the written lines as if they were decoded.
        let written = self.of_written.len() + self.most * size_of::<Written>();
        self.sets.bytes() + written + self.times.len() + self.lists.len()
    }
}

impl Room for Sets {
    fn bytes(&self) -> usize {
        self.written.bytes() + self.read.bytes()
    }
}

/// Returns the number of times stored for a line.
fn times_of(mask: u16, mixed: u16) -> u64 {
    let mixed = (mask & mixed).count_ones();
    u64::from(mask.count_ones() + mixed * (WORD as u32 - 1))
}

/// Returns the words of a mask, as ranges of bytes in their line.
pub(super) fn bytes_of(mask: u16) -> impl Iterator<Item = Range<usize>> {
    bits(mask).map(|word| {
        let first = word * WORD as usize;
        first..first + WORD as usize
    })
}
