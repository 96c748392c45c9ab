//! Represents sets of timestamps as arithmetic series (Zhang and Gupta 2001, section 2, "Compacting
//! TWPP path traces").

use std::fmt;

use super::series_builder::SeriesBuilder;

/// An arithmetic series of timestamps: `l`, `l:h` or `l:h:s` in the paper's notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The first timestamp, at least 1.
    pub first: u64,
    /// The last timestamp, which the series reaches exactly. It equals `first` if there is only one
    /// timestamp.
    pub last: u64,
    /// The distance between neighbours, at least 1. It is 1 if there is only one timestamp.
    pub step: u64,
}

impl Entry {
    /// Returns the series with a single timestamp.
    pub fn single(t: u64) -> Self {
        Self {
            first: t,
            last: t,
            step: 1,
        }
    }

    /// Returns the number of timestamps.
    pub fn count(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }

    /// Whether the series contains a timestamp.
    pub fn contains(&self, t: u64) -> bool {
        (self.first..=self.last).contains(&t) && (t - self.first).is_multiple_of(self.step)
    }

    /// Returns the number of integers in the paper's encoding: 1, 2 or 3.
    pub fn width(&self) -> u64 {
        match (self.first == self.last, self.step) {
            (true, _) => 1,
            (false, 1) => 2,
            (false, _) => 3,
        }
    }

    /// Returns the timestamps, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { first, step, .. } = *self;
        (0..self.count()).map(move |k| first + k * step)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width() {
            1 => write!(f, "{}", self.first),
            2 => write!(f, "{}:{}", self.first, self.last),
            _ => write!(f, "{}:{}:{}", self.first, self.last, self.step),
        }
    }
}

/// The reason why integers are not a series in the paper's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("integer {at} does not continue an ascending sequence of entries l, l:h or l:h:s")]
pub struct SeriesError {
    /// The position, from 0, of the first integer of an invalid entry. If an entry does not end
    /// within three integers, this is the position after those integers, which may be the number of
    /// all integers.
    pub at: usize,
}

/// A set of timestamps, as arithmetic series in ascending order without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Series {
    entries: Vec<Entry>,
}

impl Series {
    /// Compacts ascending timestamps. Time: O(n).
    ///
    /// A series is extended as long as possible. Two isolated timestamps become `l:h` if they are
    /// adjacent. Otherwise, they become singletons, as in the paper's Figure 10, because `l:h:s`
    /// would take more integers.
    pub fn compact(timestamps: impl IntoIterator<Item = u64>) -> Self {
        let mut builder = SeriesBuilder::default();
        let mut entries = Vec::new();
        for t in timestamps {
            entries.extend(builder.push(t));
        }
        entries.extend(builder.finish().into_iter().flatten());
        Self { entries }
    }

    /// Builds a set from entries in ascending order without overlaps.
    pub(super) fn from_entries(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// Builds a set from entries, each later than the previous entry.
    ///
    /// # Panics
    /// Panics if an entry is not later than the previous entry, or does not reach its last
    /// timestamp.
    pub fn from_ascending(entries: Vec<Entry>) -> Self {
        let mut after = 0;
        for entry in &entries {
            let Entry { first, last, step } = *entry;
            let ends = step > 0 && last >= first && (last - first).is_multiple_of(step);
            assert!(first > after && ends, "{entry} does not follow {after}");
            after = last;
        }
        Self::from_entries(entries)
    }

    /// Returns the series.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of timestamps.
    pub fn count(&self) -> u64 {
        self.entries.iter().map(Entry::count).sum()
    }

    /// Returns the number of integers in the paper's encoding.
    pub fn width(&self) -> u64 {
        self.entries.iter().map(Entry::width).sum()
    }

    /// Whether the set contains a timestamp. Time: O(log entries).
    pub fn contains(&self, t: u64) -> bool {
        let next = self.entries.partition_point(|e| e.first <= t);
        next > 0 && self.entries[next - 1].contains(t)
    }

    /// Returns the timestamps, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().flat_map(Entry::iter)
    }

    /// Returns the paper's encoding: the integers of all entries in sequence, with the last integer
    /// of each entry negative.
    pub fn to_integers(&self) -> Vec<i64> {
        let mut integers = Vec::new();
        for e in &self.entries {
            let width = e.width() as usize;
            let parts = [e.first, e.last, e.step];
            integers.extend(parts[..width - 1].iter().map(|&n| n as i64));
            integers.push(-(parts[width - 1] as i64));
        }
        integers
    }

    /// Decodes the paper's encoding.
    ///
    /// # Errors
    /// Returns an error if an entry has none of the three forms, does not reach its last timestamp,
    /// or is not later than the previous entry.
    pub fn from_integers(integers: &[i64]) -> Result<Self, SeriesError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut start = 0;
        while start < integers.len() {
            let rest = &integers[start..];
            let width = rest.iter().take(3).position(|&n| n < 0);
            let width = 1 + width.ok_or(SeriesError {
                at: integers.len().min(start + 3),
            })?;
            let number = |k: usize| rest[k].unsigned_abs();
            let entry = match width {
                1 => Entry::single(number(0)),
                _ => Entry {
                    first: number(0),
                    last: number(1),
                    step: if width == 2 { 1 } else { number(2) },
                },
            };
            let after = entries.last().map_or(0, |e| e.last);
            let proper = width == 1
                || entry.step > 0
                    && entry.last > entry.first
                    && (entry.last - entry.first).is_multiple_of(entry.step);
            if entry.first <= after || entry.last > i64::MAX as u64 || !proper {
                return Err(SeriesError { at: start });
            }
            entries.push(entry);
            start += width;
        }
        Ok(Self { entries })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, entry) in self.entries.iter().enumerate() {
            let comma = if k == 0 { "" } else { ", " };
            write!(f, "{comma}{entry}")?;
        }
        Ok(())
    }
}
