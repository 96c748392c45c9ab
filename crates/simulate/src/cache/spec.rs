//! Cache sizes and their text form.

use std::fmt;
use std::str::FromStr;

use crate::size::{bytes, number};
use crate::spec::SpecError;

/// The largest number of lines in a level. Simulating that many lines takes 16 MiB, or 200 MiB if
/// the sets are large.
const MOST_LINES: u64 = 1 << 21;
/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 16;

/// A level, written as size, ways and line length in bytes, as for cachegrind (`32768,8,64`). Sizes
/// may end in k, m or g. The word `full` in place of the ways means fully associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSpec {
    /// The total size in bytes.
    pub size: u64,
    /// The number of lines per set.
    pub ways: u64,
    /// The number of bytes per line, which is a power of two.
    pub line: u64,
}

impl LevelSpec {
    /// Returns the number of sets, which is a power of two.
    pub fn sets(&self) -> u64 {
        self.size / self.line / self.ways
    }

    fn is_full(&self) -> bool {
        self.sets() == 1 && self.ways > 1
    }
}

impl FromStr for LevelSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = Vec::from_iter(text.split(','));
        let &[size, ways, line] = parts.as_slice() else {
            return Err(SpecError(format!(
                "{text:?} is not a cache: write its size, its ways and the bytes of a line, as \
                 in 32k,8,64"
            )));
        };
        let wrong = |what: &str| SpecError(format!("cache {text:?}: {what}"));
        let line = bytes(line).filter(|line| line.is_power_of_two());
        let line = line.filter(|line| (4..=LONGEST_LINE).contains(line));
        let line = line.ok_or_else(|| {
            wrong("the bytes of a line must be a power of two from 4 to 65536, such as 64")
        })?;
        let size = bytes(size).ok_or_else(|| {
            wrong("the size must be a number of bytes, or a number with k, m or g, such as 32k")
        })?;
        let size = Some(size).filter(|&size| size > 0 && size % line == 0);
        let size =
            size.ok_or_else(|| wrong("the size must be a whole number of lines, such as 32k"))?;
        let lines = size / line;
        if lines > MOST_LINES {
            return Err(wrong(&format!(
                "it has {lines} lines, but at most {MOST_LINES} can be simulated"
            )));
        }
        let ways = match ways.trim() {
            "full" => Some(lines),
            ways => number(ways).filter(|&ways| ways > 0),
        };
        let ways = ways.ok_or_else(|| wrong("the ways must be a number from 1 on, or full"))?;
        if lines % ways != 0 || !(lines / ways).is_power_of_two() {
            return Err(wrong(&format!(
                "{lines} lines in sets of {ways} give a number of sets that is not \
                 a power of two; change the size or the ways"
            )));
        }
        Ok(Self { size, ways, line })
    }
}

impl fmt::Display for LevelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, ways, line } = self;
        if self.is_full() {
            write!(f, "{size},full,{line}")
        } else {
            write!(f, "{size},{ways},{line}")
        }
    }
}

/// One or two cache levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// The first level.
    pub first: LevelSpec,
    /// The second level, if any. It is at least as large as the first level, and its lines are at
    /// least as long.
    pub second: Option<LevelSpec>,
}

impl CacheSpec {
    /// Combines two levels.
    ///
    /// # Errors
    /// Returns an error if the second level is smaller or has shorter lines.
    pub fn new(first: LevelSpec, second: Option<LevelSpec>) -> Result<Self, SpecError> {
        if let Some(behind) = second
            && (behind.size < first.size || behind.line < first.line)
        {
            return Err(SpecError(format!(
                "the second level {behind} is smaller than the first, {first}, or has shorter \
                 lines; swap them"
            )));
        }
        Ok(Self { first, second })
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheSpec, LevelSpec};

    fn level(text: &str) -> LevelSpec {
        text.parse().expect(text)
    }

    #[test]
    fn levels_are_written_as_for_cachegrind_or_shorter() {
        assert_eq!(level("32k,8,64"), level("32768,8,64"));
        assert_eq!(level("32k,8,64").sets(), 64);
        assert_eq!(level("1k,16,64"), level("1k,full,64"));
        assert_eq!(level("1k,full,64").to_string(), "1024,full,64");
        assert_eq!(level("48k,12,64").sets(), 64);
        assert_eq!(level("64,1,64").to_string(), "64,1,64");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<LevelSpec>().expect_err(text).to_string();
        assert!(error("32k,8").contains("as in 32k,8,64"));
        assert!(error("32k,8,48").contains("power of two"));
        assert!(error("32k,8,2").contains("from 4"));
        assert!(error("1t,8,64").contains("number of bytes"));
        assert!(error("0,8,64").contains("whole number of lines"));
        assert!(error("100,1,64").contains("whole number of lines"));
        assert!(error("32k,0,64").contains("from 1 on"));
        assert!(error("32k,5,64").contains("sets of 5"));
        assert!(error("64g,8,64").contains("can be simulated"));
        let order = CacheSpec::new(level("1m,16,64"), Some(level("32k,8,64")));
        assert!(order.expect_err("order").to_string().contains("swap"));
    }
}
