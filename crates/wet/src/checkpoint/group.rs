//! The intervals next to each other that are coded together.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use afterimage_streams::Stream;

use super::set::Set;
use super::touched::{Line, bits};
use super::{Key, LINE, WORD};
use crate::epoch::wire::{put, take};

/// An interval, as it is recorded.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Blocks executed at its end.
    pub after: u64,
    /// The checkpoint at its end; empty if the run ends there.
    pub state: Vec<u8>,
    pub lines: Vec<Line>,
    /// When words were written last, less the time at the interval's beginning.
    pub times: Vec<u64>,
}

impl Recorded {
    /// What was written, and what was read.
    pub fn sets(&self) -> Sets {
        let (mut written, mut read) = (Set::default(), Set::default());
        for line in &self.lines {
            written.push(line.key, line.written);
            read.push(line.key, line.read);
        }
        Sets { written, read }
    }
}

/// The words that were written and those that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets {
    pub written: Set,
    pub read: Set,
}

impl Sets {
    /// Adds what others have.
    pub fn add(&mut self, other: &Sets) {
        self.written.add(&other.written);
        self.read.add(&other.read);
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

/// The bytes of a group: for each interval its end, how many lines were written, and how long its parts are; then all checkpoints; then, for each interval, its
/// sets, the words that the host wrote, those of mixed times, and a stream of times.
pub(super) fn encode(before: u64, intervals: &[Recorded]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, intervals.len() as u64);
    let mut bodies = Vec::new();
    let mut last = before;
    for interval in intervals {
        let mut sets = Vec::new();
        interval.sets().encode(&mut sets);
        let written = || interval.lines.iter().filter(|line| line.written != 0);
        sparse(&mut sets, written().map(|line| line.by_host));
        sparse(&mut sets, written().map(|line| line.mixed));
        let mut times = Vec::new();
        afterimage_streams::encode(&interval.times, &mut times);
        let numbers = [
            interval.after - last,
            written().count() as u64,
            interval.state.len() as u64,
            sets.len() as u64,
            interval.times.len() as u64,
            times.len() as u64,
        ];
        numbers.iter().for_each(|&number| put(&mut out, number));
        bodies.extend([sets, times]);
        last = interval.after;
    }
    for interval in intervals {
        out.extend_from_slice(&interval.state);
    }
    bodies.iter().for_each(|body| out.extend_from_slice(body));
    out
}

/// Appends those of a list of masks that are not 0, with their positions.
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

/// Takes such a list.
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

/// A group that was read.
#[derive(Debug)]
pub(super) struct Group {
    bytes: Vec<u8>,
    pub intervals: Vec<Interval>,
}

/// An interval of a group.
#[derive(Debug)]
pub(super) struct Interval {
    /// Blocks executed at its beginning.
    pub before: u64,
    /// Blocks executed at its end.
    pub after: u64,
    /// How many lines the group's intervals before wrote.
    pub first_line: u64,
    state: Range<usize>,
    sets: Range<usize>,
    times: Range<usize>,
    count: u64,
    parts: OnceCell<Option<Rc<Parts>>>,
}

/// What is known of an interval's words.
#[derive(Debug)]
pub(super) struct Parts {
    pub sets: Rc<Sets>,
    /// By written line.
    pub by_host: Vec<u16>,
    mixed: Vec<u16>,
    /// By written line, how many times there are of lines before.
    first_time: Vec<u64>,
}

impl Group {
    /// The group with these bytes, before which so many blocks were executed.
    pub fn decode(bytes: Vec<u8>, before: u64) -> Option<Self> {
        let mut input = &bytes[..];
        let count = take(&mut input)?;
        if count > super::CHILDREN as u64 {
            return None;
        }
        let mut headers = Vec::new();
        for _ in 0..count {
            let mut number = || take(&mut input);
            headers.push([
                number()?,
                number()?,
                number()?,
                number()?,
                number()?,
                number()?,
            ]);
        }
        let mut at = bytes.len() - input.len();
        let mut part = |length: u64| {
            let end = at.checked_add(usize::try_from(length).ok()?)?;
            let range = at..end;
            at = end;
            (end <= bytes.len()).then_some(range)
        };
        let states = headers.iter().map(|&[_, _, state, ..]| part(state));
        let states = states.collect::<Option<Vec<_>>>()?;
        let mut intervals = Vec::new();
        let (mut last, mut first_line) = (before, 0u64);
        for ([blocks, lines, _, sets, count, times], state) in headers.into_iter().zip(states) {
            let after = last.checked_add(blocks)?;
            intervals.push(Interval {
                before: last,
                after,
                first_line,
                state,
                sets: part(sets)?,
                times: part(times)?,
                count,
                parts: OnceCell::new(),
            });
            last = after;
            first_line = first_line.checked_add(lines)?;
        }
        (at == bytes.len()).then_some(Self { bytes, intervals })
    }

    /// The checkpoint at an interval's end; empty if there is none.
    pub fn state(&self, interval: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.intervals.get(interval)?.state.clone()])
    }

    /// What is known of an interval's words. `None` if it is damaged.
    pub fn parts(&self, interval: usize) -> Option<Rc<Parts>> {
        let interval = self.intervals.get(interval)?;
        let parts = interval.parts.get_or_init(|| {
            let mut input = &self.bytes[interval.sets.clone()];
            let sets = Sets::decode(&mut input)?;
            let lines = sets.written.keys.len();
            let by_host = dense(&mut input, lines)?;
            let mixed = dense(&mut input, lines)?;
            let mut first_time = Vec::with_capacity(lines);
            let mut times = 0;
            for (&mask, &mixed) in sets.written.masks.iter().zip(&mixed) {
                first_time.push(times);
                times += times_of(mask, mixed);
            }
            let fits = input.is_empty() && times == interval.count;
            fits.then(|| {
                Rc::new(Parts {
                    sets: Rc::new(sets),
                    by_host,
                    mixed,
                    first_time,
                })
            })
        });
        parts.clone()
    }

    /// When a byte of a line was written last in an interval, less the time at its beginning: 0 if it was not. `None` if that is damaged.
    pub fn written(&self, interval: usize, key: Key, address: u64) -> Option<u64> {
        let parts = self.parts(interval)?;
        let Ok(line) = parts.sets.written.keys.binary_search(&key) else {
            return Some(0);
        };
        let (mask, mixed) = (parts.sets.written.masks[line], parts.mixed[line]);
        let word = (address % LINE / WORD) as usize;
        if mask >> word & 1 == 0 {
            return Some(0);
        }
        let before = (1u32 << word) - 1;
        let before = times_of(mask & before as u16, mixed & before as u16);
        let within = match mixed >> word & 1 {
            1 => address % WORD,
            _ => 0,
        };
        let interval = &self.intervals[interval];
        let stream = Stream::open(&self.bytes[interval.times.clone()], interval.count).ok()?;
        let at = parts.first_time[line] + before + within;
        stream.cursor().get(at).ok()
    }
}

/// How many times are told of a line.
fn times_of(mask: u16, mixed: u16) -> u64 {
    let mixed = (mask & mixed).count_ones();
    u64::from(mask.count_ones() + mixed * (WORD as u32 - 1))
}

/// The words of a mask as ranges of bytes in their line.
pub(super) fn bytes_of(mask: u16) -> impl Iterator<Item = Range<usize>> {
    bits(mask).map(|word| {
        let first = word * WORD as usize;
        first..first + WORD as usize
    })
}
