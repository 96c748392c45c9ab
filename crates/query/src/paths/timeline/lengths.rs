//! How long calls are: how coarse a timeline has to be.

use afterimage_wpp::{Kind, PathError, Root, Segments, WholePath};

use super::known::rules;
use crate::paths::Window;
use crate::paths::grammar::{checked, multiplicities};

/// How many calls have so many blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLengths {
    /// By the binary logarithm of the length, rounded down.
    counts: [u64; 64],
    /// Those that begin or end in another segment of the path.
    across: u64,
}

impl CallLengths {
    /// The calls in all segments of the path that the window touches. Linear in their grammars.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        window: Window,
    ) -> Result<Self, PathError<S::Error>> {
        let mut lengths = Self {
            counts: [0; 64],
            across: 0,
        };
        for (number, summary) in path.segments().summaries().iter().enumerate() {
            if summary.before >= window.last || summary.before + summary.length < window.first {
                continue;
            }
            let segment = checked(path, number)?;
            let known = rules(&segment, path.nodes());
            let times = multiplicities(&segment);
            for (id, rule) in segment.grammar.rules.iter() {
                if matches!(rule.kind, Kind::Call(_)) {
                    let class = known[id].length.checked_ilog2().unwrap_or(0);
                    let count = &mut lengths.counts[class as usize];
                    *count = count.saturating_add(times[id]);
                }
            }
            let enters = segment
                .root
                .iter()
                .filter(|item| matches!(item, Root::Enter(_)));
            lengths.across += enters.count() as u64;
        }
        Ok(lengths)
    }

    /// How many calls have at least 2^`log` blocks, or an unknown number.
    pub fn at_least(&self, log: u32) -> u64 {
        let counts = self.counts.iter().skip(log as usize);
        counts.fold(self.across, |sum, &count| sum.saturating_add(count))
    }

    /// The smallest power of two such that no more than `most` calls have so many blocks, or 2^63.
    pub fn resolution(&self, most: u64) -> u64 {
        let fits = (0..63).find(|&log| self.at_least(log) <= most);
        1 << fits.unwrap_or(63)
    }
}
