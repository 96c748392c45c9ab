//! What is known of a simulation at once.
//!
//! 1 byte of version, 1; the text of what was simulated: a varint, how many bytes, and these; varints: blocks executed, instructions executed, the five numbers
//! of the [traffic](crate::Traffic), all 0 of branches; how many sites there are. For each site varints: function, operator, kind, executions, how many were missed, and, of two
//! levels, how many by the second, too. The sites are in the order in which they were met: so their numbers are those of the epochs.

use super::record::VERSION;
use super::{HistoryError, Tally, varint};
use crate::{Spec, Traffic};

/// A site: what was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The number of its function.
    pub function: u32,
    /// Its number in the function.
    pub op: u32,
    /// What it is.
    pub kind: SiteKind,
}

/// What a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteKind {
    /// A branch that is taken or not.
    Conditional,
    /// A branch that goes to one of several places.
    Table,
    /// A call of one of several functions.
    Call,
    /// It reads memory.
    Load,
    /// It writes memory.
    Store,
    /// It copies memory, or fills any number of bytes.
    Bulk,
}

/// The kinds by their numbers.
const KINDS: [SiteKind; 6] = [
    SiteKind::Conditional,
    SiteKind::Table,
    SiteKind::Call,
    SiteKind::Load,
    SiteKind::Store,
    SiteKind::Bulk,
];

/// No site is executed as often.
const MOST: u64 = 1 << 62;

impl SiteKind {
    /// It is a branch, and accesses no memory.
    pub fn is_branch(self) -> bool {
        self <= SiteKind::Call
    }
}

/// What is known of a simulation at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What was simulated.
    pub spec: Spec,
    /// How many blocks were executed.
    pub blocks: u64,
    /// How many instructions were executed.
    pub instructions: u64,
    /// Lines that moved; of branches none.
    pub traffic: Traffic,
    /// The sites that were executed, in the order in which they were met.
    pub sites: Vec<(Site, Tally)>,
}

impl Spec {
    /// There is a second level.
    pub fn is_two(&self) -> bool {
        matches!(self, Spec::Caches(caches) if caches.second.is_some())
    }

    /// It is of branches, and not of memory accesses.
    pub fn is_branches(&self) -> bool {
        matches!(self, Spec::Branches(_))
    }
}

impl Summary {
    /// Sums over the sites that are wanted; counts that do not fit into 64 bits, which no run has, are the largest number.
    pub fn sum(&self, wanted: impl Fn(SiteKind) -> bool) -> Tally {
        let sites = self.sites.iter().filter(|(site, _)| wanted(site.kind));
        sites.fold(Tally::default(), |sum, (_, tally)| sum.plus(*tally))
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let text = self.spec.to_string();
        let mut out = vec![VERSION];
        varint::put(&mut out, text.len() as u64);
        out.extend(text.as_bytes());
        let Traffic {
            touched,
            first,
            second,
            first_back,
            second_back,
        } = self.traffic;
        let traffic = [touched, first, second, first_back, second_back];
        let counts = [self.blocks, self.instructions];
        for number in counts.into_iter().chain(traffic) {
            varint::put(&mut out, number);
        }
        varint::put(&mut out, self.sites.len() as u64);
        for (site, tally) in &self.sites {
            varint::put(&mut out, site.function.into());
            varint::put(&mut out, site.op.into());
            varint::put(&mut out, site.kind as u64);
            varint::put(&mut out, tally.executions);
            varint::put(&mut out, tally.missed);
            if self.spec.is_two() {
                varint::put(&mut out, tally.last);
            }
        }
        out
    }

    /// Reads it. Memory in proportion to the bytes.
    ///
    /// # Errors
    /// If the bytes are no summary.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistoryError> {
        let (&version, mut rest) = bytes.split_first().ok_or(HistoryError::Truncated)?;
        if version != VERSION {
            return Err(HistoryError::Version(version));
        }
        let length = varint::get(&mut rest)?;
        let length = usize::try_from(length).map_err(|_| HistoryError::Truncated)?;
        let (text, behind) = rest
            .split_at_checked(length)
            .ok_or(HistoryError::Truncated)?;
        rest = behind;
        let text = std::str::from_utf8(text).ok();
        let spec = text.and_then(|text| text.parse::<Spec>().ok());
        let spec = spec.ok_or(HistoryError::Malformed("the simulated model is missing"))?;
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = varint::get(&mut rest)?;
        }
        let [
            blocks,
            instructions,
            touched,
            first,
            second,
            first_back,
            second_back,
        ] = numbers;
        let count = varint::get(&mut rest)?;
        let mut sites = Vec::new();
        for _ in 0..count {
            let narrow = |number| {
                let narrow = u32::try_from(number)
                    .ok()
                    .filter(|&narrow| narrow < u32::MAX);
                narrow.ok_or(HistoryError::Malformed("a place of no program"))
            };
            let function = narrow(varint::get(&mut rest)?)?;
            let op = narrow(varint::get(&mut rest)?)?;
            let kind = KINDS.get(varint::get(&mut rest)? as usize).copied();
            let kind = kind.filter(|kind| kind.is_branch() == matches!(spec, Spec::Branches(_)));
            let kind = kind.ok_or(HistoryError::Malformed("a site of no kind"))?;
            let executions = varint::get(&mut rest)?;
            let missed = varint::get(&mut rest)?;
            let last = if spec.is_two() {
                varint::get(&mut rest)?
            } else {
                0
            };
            if executions >= MOST {
                return Err(HistoryError::Malformed("more executions than a run has"));
            }
            if executions < missed || missed < last {
                return Err(HistoryError::Malformed("more misses than executions"));
            }
            let tally = Tally {
                executions,
                missed,
                last,
            };
            sites.push((Site { function, op, kind }, tally));
        }
        if !rest.is_empty() {
            return Err(HistoryError::Malformed("bytes follow a summary"));
        }
        Ok(Self {
            spec,
            blocks,
            instructions,
            traffic: Traffic {
                touched,
                first,
                second,
                first_back,
                second_back,
            },
            sites,
        })
    }
}
