//! Finds arithmetic series in timestamps that are added one by one.

use super::series::Entry;

/// Builds the series that the latest timestamps form, in constant memory.
///
/// The result depends only on the timestamps, so equal sets have equal entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeriesBuilder {
    first: u64,
    last: u64,
    step: u64,
    /// The number of timestamps in the series, or 0 before the first.
    count: u64,
}

impl SeriesBuilder {
    /// Adds a timestamp that is greater than all previous timestamps. Returns the entry that this
    /// completes, if there is one.
    pub(super) fn push(&mut self, t: u64) -> Option<Entry> {
        debug_assert!(t > self.last);
        if self.count >= 2 && t - self.last == self.step {
            self.last = t;
            self.count += 1;
            return None;
        }
        match self.count {
            0 => {
                *self = Self {
                    first: t,
                    last: t,
                    step: 0,
                    count: 1,
                };
                None
            }
            1 => {
                self.step = t - self.first;
                self.last = t;
                self.count = 2;
                None
            }
            // A series of two timestamps that are not adjacent saves nothing. The second may still
            // begin a series.
            2 if self.step > 1 => {
                let done = Entry::single(self.first);
                *self = Self {
                    first: self.last,
                    last: t,
                    step: t - self.last,
                    count: 2,
                };
                Some(done)
            }
            _ => {
                let done = self.entry();
                *self = Self {
                    first: t,
                    last: t,
                    step: 0,
                    count: 1,
                };
                Some(done)
            }
        }
    }

    /// Returns the entries for the remaining timestamps, and clears the series.
    pub(super) fn finish(&mut self) -> [Option<Entry>; 2] {
        let entries = match self.count {
            0 => [None, None],
            2 if self.step > 1 => [
                Some(Entry::single(self.first)),
                Some(Entry::single(self.last)),
            ],
            _ => [Some(self.entry()), None],
        };
        *self = Self::default();
        entries
    }

    fn entry(&self) -> Entry {
        Entry {
            first: self.first,
            last: self.last,
            step: if self.count == 1 { 1 } else { self.step },
        }
    }
}
