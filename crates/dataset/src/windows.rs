//! Divides a run into windows with equal numbers of blocks. A window contains the paths that begin
//! in it.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The division of a run into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    blocks: u64,
    length: u64,
}

impl Windows {
    /// Divides a run of `length` blocks into windows of `blocks` blocks each. A run without blocks
    /// has one window.
    pub(crate) fn new(blocks: u64, length: u64) -> Self {
        let blocks = blocks.max(1);
        Self { blocks, length }
    }

    /// Returns the number of windows.
    pub fn count(self) -> u64 {
        self.length.div_ceil(self.blocks).max(1)
    }

    /// Returns the number of blocks in a window.
    pub fn blocks(self) -> u64 {
        self.blocks
    }

    /// Returns the first and the last time at which a path of this window can begin.
    pub(crate) fn starts(self, window: u64) -> (u64, u64) {
        let first = window.saturating_mul(self.blocks).saturating_add(1);
        let last = first.saturating_add(self.blocks - 1);
        (first, last.min(self.length))
    }
}

/// A selection of windows: `7`, or `0..8` for the first eight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected(pub Range<u64>);

impl FromStr for Selected {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse::<u64>().ok();
        let found = match text.split_once("..") {
            Some((first, end)) => number(first).zip(number(end)),
            None => number(text).and_then(|one| Some((one, one.checked_add(1)?))),
        };
        match found {
            Some((first, end)) if first < end => Ok(Self(first..end)),
            _ => Err("write the number of a window, from 0, or a range: 0..8 for the first eight"),
        }
    }
}
