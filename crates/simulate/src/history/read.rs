//! Reads histories. The bytes are untrusted.

use afterimage_streams::{Stream, StreamError};

use super::record::{Recorder, Tally, VERSION};
use super::varint;

/// The reason why a history cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The bytes end too early.
    #[error("a history ends too early")]
    Truncated,
    /// The bytes contradict themselves or a limit.
    #[error("a history is damaged: {0}")]
    Malformed(&'static str),
    /// The version is unknown.
    #[error("a history has version {0}; this program reads version 1")]
    Version(u8),
    /// A stream of misses cannot be read.
    #[error("a history is damaged: {0}")]
    Stream(#[from] StreamError),
}

/// A site in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteEpoch<'a> {
    /// The number of the site.
    pub site: u64,
    /// The site's executions and misses in the epoch.
    pub tally: Tally,
    first: &'a [u8],
    last: &'a [u8],
}

/// An epoch's sites, in ascending order.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    /// The sites executed in the epoch.
    pub sites: Vec<SiteEpoch<'a>>,
}

impl<'a> Epoch<'a> {
    /// The maximum total number of misses in an epoch. A full epoch may still receive the misses of
    /// one more node of the path.
    const MOST: u64 = 2 * Recorder::EPOCH as u64;

    /// Opens an epoch for one or two levels, without reading the streams of misses. Time: O(sites).
    /// Memory use is proportional to `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an epoch. Errors inside the streams of an epoch appear
    /// only when the streams are read.
    pub fn open(bytes: &'a [u8], two: bool) -> Result<Self, HistoryError> {
        let (&version, mut rest) = bytes.split_first().ok_or(HistoryError::Truncated)?;
        if version != VERSION {
            return Err(HistoryError::Version(version));
        }
        let count = varint::get(&mut rest)?;
        let (mut sites, mut lengths) = (Vec::new(), Vec::new());
        let (mut behind, mut all) = (0u64, 0u64);
        let many = || HistoryError::Malformed("numbers beyond 64 bits");
        for _ in 0..count {
            let site = behind
                .checked_add(varint::get(&mut rest)?)
                .ok_or_else(many)?;
            behind = site.checked_add(1).ok_or_else(many)?;
            let executions = varint::get(&mut rest)?.checked_add(1).ok_or_else(many)?;
            let mut missed = [0, 0];
            let mut length = [0, 0];
            let mut most = executions;
            for level in 0..1 + usize::from(two) {
                missed[level] = varint::get(&mut rest)?;
                if missed[level] > most {
                    return Err(HistoryError::Malformed("more misses than executions"));
                }
                if missed[level] == 0 {
                    break;
                }
                most = missed[level];
                length[level] = varint::get(&mut rest)?;
            }
            let [missed, last] = missed;
            all = all.saturating_add(missed);
            if all > Self::MOST {
                return Err(HistoryError::Malformed(
                    "more misses than an epoch can contain",
                ));
            }
            sites.push(SiteEpoch {
                site,
                tally: Tally {
                    executions,
                    missed,
                    last,
                },
                first: &[],
                last: &[],
            });
            lengths.push(length);
        }
        for (site, lengths) in sites.iter_mut().zip(lengths) {
            site.first = take(&mut rest, lengths[0])?;
            site.last = take(&mut rest, lengths[1])?;
        }
        match rest {
            [] => Ok(Self { sites }),
            _ => Err(HistoryError::Malformed("bytes follow an epoch")),
        }
    }

    /// Finds a site by number.
    pub fn get(&self, site: u64) -> Option<&SiteEpoch<'a>> {
        let found = self.sites.binary_search_by_key(&site, |known| known.site);
        found.ok().map(|found| &self.sites[found])
    }
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Result<&'a [u8], HistoryError> {
    let length = usize::try_from(length).map_err(|_| HistoryError::Truncated)?;
    let (taken, behind) = rest
        .split_at_checked(length)
        .ok_or(HistoryError::Truncated)?;
    *rest = behind;
    Ok(taken)
}

/// Executions that missed, by number from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// The executions that missed the first level or were mispredicted, in ascending order.
    pub first: Vec<u64>,
    /// The executions in `first` that also missed the second level.
    pub last: Vec<u64>,
}

impl SiteEpoch<'_> {
    /// Appends the misses of this epoch. `before` is the number of executions before it. Memory: 16
    /// bytes per miss.
    ///
    /// # Errors
    /// Returns an error if the history is damaged.
    pub fn misses(&self, before: u64, into: &mut Misses) -> Result<(), HistoryError> {
        let Tally {
            executions,
            missed,
            last,
        } = self.tally;
        let first = into.first.len();
        places(self.first, missed, executions, |place| {
            into.first.push(before.saturating_add(place));
        })?;
        let of = &into.first[first..];
        places(self.last, last, missed, |place| {
            into.last.extend(of.get(place as usize - 1));
        })
    }
}

/// Decodes a stream of `count` gaps. Calls `tell` with the position of each miss, from 1 to
/// `total`.
fn places(
    bytes: &[u8],
    count: u64,
    total: u64,
    mut tell: impl FnMut(u64),
) -> Result<(), HistoryError> {
    let stream = Stream::open(bytes, count)?;
    if stream.coded_len() != bytes.len() {
        return Err(HistoryError::Malformed("bytes follow a stream"));
    }
    let mut cursor = stream.cursor();
    let mut place = 0u64;
    while let Some(gap) = cursor.next()? {
        let next = place
            .checked_add(gap)
            .and_then(|place| place.checked_add(1));
        place = next
            .filter(|&place| place <= total)
            .ok_or(HistoryError::Malformed("a miss after the last execution"))?;
        tell(place);
    }
    Ok(())
}
