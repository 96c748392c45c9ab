//! Tracks the queries that were already raised.

use afterimage_wpp::twpp::Series;

use crate::times::Times;

/// Timestamps for which queries were raised. New timestamps are stored separately. They are merged
/// into `ordered` after more than 16 additions, or once they have over 16 series more than
/// `ordered`.
#[derive(Debug, Default)]
pub(super) struct RaisedTimestamps {
    ordered: Series,
    recent: Vec<Series>,
    /// The total number of arithmetic series in `recent`.
    waiting: usize,
}

impl RaisedTimestamps {
    /// Adds timestamps. Returns the new timestamps, and the timestamps that were already known.
    /// Amortised O(log) for each series if few sets are added at a time.
    pub fn add(&mut self, times: Times) -> (Times, Times) {
        let (mut known, mut new) = times.split(&self.ordered);
        for recent in &self.recent {
            if new.is_empty() {
                break;
            }
            let (again, left) = new.split(recent);
            known.join(again);
            new = left;
        }
        if !new.is_empty() {
            let series = new.to_series();
            self.waiting += series.entries().len();
            self.recent.push(series);
        }
        if self.recent.len() > 16 || self.waiting > 16 + self.ordered.entries().len() {
            let mut all = Times::from(&self.ordered);
            for series in self.recent.drain(..) {
                all.join(Times::from(&series));
            }
            self.ordered = all.to_series();
            self.waiting = 0;
        }
        (new, known)
    }

    /// Returns all timestamps.
    pub fn into_series(self) -> Series {
        let mut all = Times::from(&self.ordered);
        for series in &self.recent {
            all.join(Times::from(series));
        }
        all.to_series()
    }
}
