//! Finds the host calls that read the bytes that a statement wrote, in order of time.

use std::collections::VecDeque;

use afterimage_machine::Range;
use afterimage_wet::Definition;
use afterimage_wpp::Visit;

use super::canvas::Wrote;
use super::writers::Moment;
use super::{HostReads, HostReadsError};

/// Adjacent bytes that a host call read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::values) struct HostUse {
    /// The execution of the node that ends with the call.
    pub visit: Visit,
    /// The range that the host read.
    pub range: Range,
}

/// The bytes that a definition wrote.
struct Written {
    by: Wrote,
    /// The time at which the execution that wrote the bytes begins.
    start: u64,
    /// The bytes, in ascending ranges that do not touch each other.
    ranges: Vec<Range>,
    /// The number of the first host call after the write.
    first_call: u64,
}

/// Bytes that may still have the written value.
#[derive(Clone, Copy)]
struct Piece {
    range: Range,
    /// The start of an execution at which the bytes still have the value.
    until: u64,
    /// The start of an execution that ends with a call at which the bytes still have the value, or
    /// 0 if no such call is known.
    called: u64,
    /// The start of an execution at which no byte has the value any longer, or `u64::MAX` if none
    /// is known.
    lost: u64,
}

/// Iterates, in order of time, over the host calls that read a definition's bytes before the bytes
/// were overwritten.
///
/// The log lists the calls that read some of the bytes. The index of checkpoints shows whether the
/// bytes still have the written value. The index is queried for the times of the calls. If there
/// are many calls, it is first queried at growing distances, and then in between. This takes O(log
/// time) queries for each written part.
pub(in crate::values) struct HostReaders<'h, 'a> {
    host: &'h HostReads<'h, 'a>,
    written: Option<Written>,
    at: At,
}

/// The current position of the iterator.
#[derive(Clone, Default)]
struct At {
    /// The bytes that may still be read, ascending.
    pieces: Vec<Piece>,
    /// The next call to examine.
    call: u64,
    found: VecDeque<HostUse>,
}

impl<'h, 'a> HostReaders<'h, 'a> {
    /// Creates an iterator over the readers of a definition.
    pub fn new(
        host: &'h HostReads<'h, 'a>,
        definition: Definition,
    ) -> Result<Self, HostReadsError> {
        let mut readers = Self {
            host,
            written: Written::of(host, definition)?,
            at: At::default(),
        };
        readers.go(0)?;
        Ok(readers)
    }

    /// Returns the next reader, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<HostUse>, HostReadsError> {
        loop {
            if let Some(found) = self.at.found.pop_front() {
                return Ok(Some(found));
            }
            if !self.look()? {
                return Ok(None);
            }
        }
    }

    /// Returns the number of remaining readers. Does not move the iterator.
    pub fn count(&mut self) -> Result<u64, HostReadsError> {
        let here = self.at.clone();
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        self.at = here;
        Ok(count)
    }

    /// Goes to the first reader in an execution that begins at `time` or later.
    pub fn go(&mut self, time: u64) -> Result<(), HostReadsError> {
        self.at = At::default();
        let Some(written) = &self.written else {
            return Ok(());
        };
        self.at.call = written.first_call;
        if time > written.start {
            let before = self.host.times()?.before(time)?;
            let call = self.host.host()?.number_of(before + 1);
            self.at.call = self.at.call.max(call);
        }
        let pieces = written.ranges.iter().map(|&range| Piece {
            range,
            until: written.start,
            called: 0,
            lost: u64::MAX,
        });
        self.at.pieces = pieces.collect();
        Ok(())
    }

    /// Examines the next call that may read the bytes. Returns whether there was one.
    fn look(&mut self) -> Result<bool, HostReadsError> {
        let pieces = &self.at.pieces;
        if pieces.is_empty() {
            return Ok(false);
        }
        let call = self
            .host
            .next_reading(self.at.call, |range| !touched(pieces, range).is_empty())?;
        let Some((call, logged)) = call else {
            self.at.pieces.clear();
            return Ok(false);
        };
        self.at.call = call + 1;
        let visit = self.host.caller(call)?;
        for read in &logged.reads {
            let range = Range {
                memory: read.memory,
                address: read.address,
                length: read.length,
            };
            let mut part: Option<Range> = None;
            for range in self.alive(range, visit)? {
                match &mut part {
                    Some(part) if end(*part) == range.address => part.length += range.length,
                    _ => {
                        let part = part.replace(range);
                        let found = part.map(|range| HostUse { visit, range });
                        self.at.found.extend(found);
                    }
                }
            }
            let found = part.map(|range| HostUse { visit, range });
            self.at.found.extend(found);
        }
        Ok(true)
    }

    /// Returns the bytes of a range that still have the written value when an execution calls the
    /// host. Excludes the other bytes of the range from the rest of the search.
    fn alive(&mut self, range: Range, visit: Visit) -> Result<Vec<Range>, HostReadsError> {
        let touched = touched(&self.at.pieces, range);
        let (mut left, mut alive) = (Vec::new(), Vec::new());
        for &piece in &self.at.pieces[touched.clone()] {
            let first = piece.range.address.max(range.address);
            let behind = end(piece.range).min(end(range));
            let part = |from: u64, to: u64| Piece {
                range: Range {
                    address: from,
                    length: to - from,
                    ..piece.range
                },
                ..piece
            };
            if piece.range.address < first {
                left.push(part(piece.range.address, first));
            }
            for piece in self.decide(part(first, behind), visit)? {
                alive.push(piece.range);
                left.push(piece);
            }
            if behind < end(piece.range) {
                left.push(part(behind, end(piece.range)));
            }
        }
        self.at.pieces.splice(touched, left);
        Ok(alive)
    }

    /// Returns the parts of a piece that still have the written value when an execution calls the
    /// host, ascending.
    fn decide(&self, piece: Piece, visit: Visit) -> Result<Vec<Piece>, HostReadsError> {
        let (here, mut alive, mut work) = (visit.start, Vec::new(), vec![piece]);
        while let Some(piece) = work.pop() {
            if here < piece.until || here == piece.called {
                alive.push(piece);
            } else if here < piece.lost {
                let probe = self.probe(&piece, here)?;
                let moment = probe.map_or(Moment::Call(visit), Moment::Start);
                let mut parts = Vec::new();
                for (range, is_ours) in self.ours(piece.range, moment)? {
                    let mut part = Piece { range, ..piece };
                    match (probe, is_ours) {
                        (Some(time), true) => part.until = time,
                        (Some(time), false) => part.lost = time,
                        (None, true) => part.called = here,
                        (None, false) => part.lost = here,
                    }
                    parts.push(part);
                }
                work.extend(parts.into_iter().rev());
            }
        }
        Ok(alive)
    }

    /// Returns a later time at which to query a piece, so that later calls need no further query.
    /// The execution with the current call begins with block `here`. Returns `None` if the call
    /// itself should be queried.
    fn probe(&self, piece: &Piece, here: u64) -> Result<Option<u64>, HostReadsError> {
        let path = self.host.run.path;
        let time = match piece.lost {
            u64::MAX if piece.called == 0 => return Ok(None),
            u64::MAX => {
                let start = self.written.as_ref().map_or(0, |written| written.start);
                here.saturating_add(here - start).min(path.length())
            }
            lost => here + (lost - here) / 2,
        };
        let visit = path.cursor().seek(time)?;
        Ok(visit
            .map(|visit| visit.start)
            .filter(|&start| start > here && start < piece.lost))
    }

    /// Splits the bytes of a range into parts, each marked as having the written value or not.
    fn ours(&self, range: Range, moment: Moment) -> Result<Vec<(Range, bool)>, HostReadsError> {
        let Some(written) = &self.written else {
            return Ok(Vec::new());
        };
        let mut parts: Vec<(Range, bool)> = Vec::new();
        let only = Some(written.start);
        self.host.written(range, moment, only, |part| {
            let is_ours = part.wrote == written.by;
            match parts.last_mut() {
                Some((last, same)) if *same == is_ours => last.length += part.range.length,
                _ => parts.push((part.range, is_ours)),
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

impl Written {
    /// Returns the bytes that a definition wrote to memories, or `None` if there are none.
    fn of(
        host: &HostReads<'_, '_>,
        definition: Definition,
    ) -> Result<Option<Self>, HostReadsError> {
        let values = host.values;
        let calls = host.host()?;
        let instance = definition.instance();
        let start = instance.time;
        let (by, ranges, before) = match definition {
            Definition::Result { .. } => return Ok(None),
            Definition::Write { inst, .. } => {
                let executed = values.stopped(instance)?;
                if executed.is_some_and(|executed| inst as u64 >= executed) {
                    return Ok(None);
                }
                let range = values.range_written(instance, inst)?;
                let inst = inst as u32;
                let ranges = Vec::from_iter(range);
                (Wrote::Guest { start, inst }, ranges, None)
            }
            Definition::After { .. } => {
                let Some(call) = values.host_call(instance)? else {
                    return Ok(None);
                };
                let logged = calls.get(call)?;
                let logged = logged.ok_or(HostReadsError::Damaged("a host call"))?;
                let ranges = logged.writes.iter().map(|write| Range {
                    memory: write.memory,
                    address: write.address,
                    length: write.bytes.len() as u64,
                });
                (Wrote::Host { call }, ranges.collect(), calls.of_guest(call))
            }
        };
        let ranges = united(ranges);
        if ranges.is_empty() {
            return Ok(None);
        }
        let before = match before {
            Some(before) => before,
            None => host.times()?.before(start)?,
        };
        Ok(Some(Self {
            by,
            start,
            ranges,
            first_call: calls.number_of(before + 1),
        }))
    }
}

fn end(range: Range) -> u64 {
    range.address.saturating_add(range.length)
}

/// Returns the positions of the pieces that a range touches. O(log pieces).
fn touched(pieces: &[Piece], range: Range) -> std::ops::Range<usize> {
    let place = |range: Range, address| (range.memory, address);
    let first = pieces.partition_point(|piece| {
        place(piece.range, end(piece.range)) <= place(range, range.address)
    });
    let behind = pieces.partition_point(|piece| {
        place(piece.range, piece.range.address) < place(range, end(range))
    });
    first..behind.max(first)
}

/// Merges ranges into ascending ranges that do not touch each other.
fn united(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.retain(|range| range.length > 0);
    ranges.sort_unstable_by_key(|range| (range.memory, range.address));
    let mut united: Vec<Range> = Vec::new();
    for range in ranges {
        match united.last_mut() {
            Some(last) if last.memory == range.memory && range.address <= end(*last) => {
                last.length = end(*last).max(end(range)) - last.address;
            }
            _ => united.push(range),
        }
    }
    united
}
