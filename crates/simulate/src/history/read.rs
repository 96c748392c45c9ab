//! Reading histories. The bytes may be anyone's.

use afterimage_streams::{Stream, StreamError};

use super::record::{Recorder, Tally, VERSION};
use super::varint;

/// Why a history cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// Bytes are missing.
    #[error("a history ends too early")]
    Truncated,
    /// Bytes say what cannot be.
    #[error("a history is damaged: {0}")]
    Malformed(&'static str),
    /// Of a later version.
    #[error("a history has version {0}; this program reads version 1")]
    Version(u8),
    /// The stream of executions cannot be read.
    #[error("a history is damaged: {0}")]
    Stream(#[from] StreamError),
}

/// A site in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteEpoch<'a> {
    /// Its number.
    pub site: u64,
    /// What happened to it in the epoch.
    pub tally: Tally,
    first: &'a [u8],
    last: &'a [u8],
}

/// An epoch's sites, ascending.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    /// Those that were executed.
    pub sites: Vec<SiteEpoch<'a>>,
}

impl<'a> Epoch<'a> {
    /// Most misses that an epoch may have, all sites together: behind a full one, those of one node of the path may follow.
    const MOST: u64 = 2 * Recorder::EPOCH as u64;

    /// Reads the sites of an epoch that has one level or two, but not yet what each missed. O(sites); memory in proportion to the bytes.
    ///
    /// # Errors
    /// If the bytes are no epoch. What its streams hold is found out when they are read.
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
                return Err(HistoryError::Malformed("more misses than an epoch has"));
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

    /// One site, by its number.
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

/// Executions that were missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Those that the first level or the predictor missed, ascending, from 1.
    pub first: Vec<u64>,
    /// Those of these that the second level missed, too.
    pub last: Vec<u64>,
}

impl SiteEpoch<'_> {
    /// Appends those that were missed, `before` executions having been before the epoch. Memory: 16 bytes a miss.
    ///
    /// # Errors
    /// If the history is damaged.
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

/// Tells the places, from 1 to `total`, that a stream of so many gaps leads to.
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
