//! Sets of words of memory.

use super::Key;
use super::cache::Room;
use crate::epoch::wire::{put, take, take_u32};

/// Consecutive lines with the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub first: Key,
    /// The number of lines.
    pub count: u32,
    pub mask: u16,
}

impl Span {
    /// Returns the line after the span.
    pub fn end(&self) -> Key {
        self.first.saturating_add(u64::from(self.count))
    }

    /// Returns the lines of the span, each with its words.
    pub fn lines(self) -> impl Iterator<Item = (Key, u16)> {
        (self.first..self.end()).map(move |key| (key, self.mask))
    }
}

/// A set of words, as the smallest possible number of ascending spans. A large range that was
/// written at once takes no more memory than one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    spans: Vec<Span>,
}

impl Room for Set {
    fn bytes(&self) -> usize {
        self.spans.len() * size_of::<Span>()
    }
}

impl FromIterator<Span> for Set {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut set = Self::default();
        spans.into_iter().for_each(|span| set.push(span));
        set
    }
}

impl Set {
    /// Adds lines if they have words. The lines must come after all lines of the set.
    pub fn push(&mut self, span: Span) {
        if span.mask == 0 || span.count == 0 {
            return;
        }
        if let Some(last) = self.spans.last_mut()
            && last.end() == span.first
            && last.mask == span.mask
            && let Some(count) = last.count.checked_add(span.count)
        {
            last.count = count;
            return;
        }
        self.spans.push(span);
    }

    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the words of a line that the set contains. Time: O(log spans).
    pub fn get(&self, key: Key) -> u16 {
        let at = self.spans.partition_point(|span| span.end() <= key);
        let span = self.spans.get(at).filter(|span| span.first <= key);
        span.map_or(0, |span| span.mask)
    }

    /// Adds all words of another set. Time: O(spans of both).
    pub fn add(&mut self, other: &Set) {
        if self.spans.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut all = Set {
            spans: Vec::with_capacity(self.spans.len() + other.spans.len()),
        };
        sweep(&self.spans, &other.spans, |first, count, masks| {
            let mask = masks.0 | masks.1;
            all.push(Span { first, count, mask });
        });
        *self = all;
    }

    /// Removes the words that another set has, and returns them. Time: O(spans of this set · log
    /// spans of the other, plus overlapping spans of the other).
    pub fn take(&mut self, other: &Set) -> Set {
        let (mut taken, mut left) = (Set::default(), Set::default());
        let mut rest = &other.spans[..];
        for &span in &self.spans {
            rest = from(rest, span.first);
            let piece = |mask| Span { mask, ..span };
            match rest.first() {
                Some(of) if of.first <= span.first && span.end() <= of.end() => {
                    taken.push(piece(span.mask & of.mask));
                    left.push(piece(span.mask & !of.mask));
                }
                Some(of) if of.first < span.end() => {
                    let near = &rest[..rest.partition_point(|of| of.first < span.end())];
                    sweep(&[span], near, |first, count, (mask, of)| {
                        let piece = |mask| Span { first, count, mask };
                        taken.push(piece(mask & of));
                        left.push(piece(mask & !of));
                    });
                }
                _ => left.push(span),
            }
        }
        *self = left;
        taken
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.spans.shrink_to_fit();
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        encode(self.spans.iter().copied(), out);
    }

    /// Decodes a set from the front. Returns `None` if it is invalid.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        decode(input).map(Self::of)
    }

    /// Returns the set of ascending spans, none of them empty.
    pub fn of(mut spans: Vec<Span>) -> Self {
        spans.dedup_by(|next, last| {
            let goes_on = last.end() == next.first && last.mask == next.mask;
            let count = last.count.checked_add(next.count).filter(|_| goes_on);
            last.count = count.unwrap_or(last.count);
            count.is_some()
        });
        // Release unused memory, because sets live long and many spans may have been merged into
        // one.
        spans.shrink_to_fit();
        Self { spans }
    }
}

/// Drops the spans that end before a line. Takes time logarithmic in the number of dropped spans.
/// This number is small if lines are looked up in order.
fn from(spans: &[Span], line: Key) -> &[Span] {
    let ends_before = |span: &Span| span.end() <= line;
    let mut beyond = 1;
    while spans.get(beyond - 1).is_some_and(ends_before) {
        beyond *= 2;
    }
    let near = &spans[..beyond.min(spans.len())];
    let known = beyond / 2;
    &spans[known + near[known..].partition_point(ends_before)..]
}

/// Walks over two lists of ascending spans. Passes each stretch of lines whose masks are constant
/// in both lists to `tell`. A missing line has mask 0.
pub(super) fn sweep(a: &[Span], b: &[Span], mut tell: impl FnMut(Key, u32, (u16, u16))) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut at = 0;
    loop {
        while a.next_if(|span| span.end() <= at).is_some() {}
        while b.next_if(|span| span.end() <= at).is_some() {}
        let firsts = [a.peek(), b.peek()].into_iter().flatten();
        let Some(first) = firsts.map(|span| span.first).min() else {
            return;
        };
        let start = first.max(at);
        // The span's words at this line, and the line up to which they stay the same.
        let until = |span: Option<&&Span>| match span {
            Some(span) if span.first <= start => (span.mask, span.end()),
            Some(span) => (0, span.first),
            None => (0, Key::MAX),
        };
        let ((of_a, end_a), (of_b, end_b)) = (until(a.peek()), until(b.peek()));
        // A span has fewer than 2³² lines.
        let end = end_a.min(end_b);
        tell(start, (end - start) as u32, (of_a, of_b));
        at = end;
    }
}

/// Encodes ascending spans as their number, the gaps between them in lines, their lengths in lines
/// minus 1, the lower halves of their masks, and the upper halves.
pub(super) fn encode(spans: impl Iterator<Item = Span> + Clone, out: &mut Vec<u8>) {
    put(out, spans.clone().count() as u64);
    let mut next = 0;
    for span in spans.clone() {
        put(out, span.first - next);
        next = span.end();
    }
    spans
        .clone()
        .for_each(|span| put(out, u64::from(span.count - 1)));
    out.extend(spans.clone().map(|span| span.mask as u8));
    out.extend(spans.map(|span| (span.mask >> 8) as u8));
}

/// Decodes spans from the front. Returns `None` if the spans are invalid, or if a span has no words
/// or lies beyond the last line.
pub(super) fn decode(input: &mut &[u8]) -> Option<Vec<Span>> {
    let count = take(input)?;
    if count > input.len() as u64 / 4 {
        return None;
    }
    let count = count as usize;
    let mut spans = Vec::with_capacity(count);
    for _ in 0..count {
        // Store the gap here. The loop below adds up the gaps.
        let first = take(input)?;
        spans.push(Span {
            first,
            count: 0,
            mask: 0,
        });
    }
    let mut next = 0u64;
    for span in &mut spans {
        span.first = next.checked_add(span.first)?;
        span.count = take_u32(input)?.checked_add(1)?;
        next = span.first.checked_add(span.count.into())?;
    }
    let (low, rest) = input.split_at_checked(count)?;
    let (high, rest) = rest.split_at_checked(count)?;
    *input = rest;
    for (span, (&low, &high)) in spans.iter_mut().zip(low.iter().zip(high)) {
        span.mask = u16::from_le_bytes([low, high]);
    }
    spans.iter().all(|span| span.mask != 0).then_some(spans)
}
