//! The totals of a simulation, and their encoding.
//!
//! The encoding begins with a version byte, 1, and the text of the [`Spec`], preceded by its length
//! as a varint. Then come varints for the executed blocks, the executed instructions, the five
//! numbers of the [traffic](crate::Traffic) (0 for branches), and the number of sites. Each site
//! has varints for function, operator, kind, executions, misses and, with two levels, second-level
//! misses. Sites are in the order in which the run first reached them. Their positions are the site
//! numbers of the epochs.

use super::record::VERSION;
use super::{HistoryError, Tally, varint};
use crate::{Spec, Traffic};

/// An operator that the simulation watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The number of the function that contains the operator.
    pub function: u32,
    /// The number of the operator in the function.
    pub op: u32,
    /// The kind of operator.
    pub kind: SiteKind,
}

/// The kind of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteKind {
    /// A conditional branch.
    Conditional,
    /// A branch with several targets.
    Table,
    /// A call that may reach several functions.
    Call,
    /// A read of memory.
    Load,
    /// A write to memory.
    Store,
    /// A copy or fill of any number of bytes.
    Bulk,
}

/// The kinds, indexed by their encoding.
const KINDS: [SiteKind; 6] = [
    SiteKind::Conditional,
    SiteKind::Table,
    SiteKind::Call,
    SiteKind::Load,
    SiteKind::Store,
    SiteKind::Bulk,
];

/// An upper bound on the executions of a site.
const MOST: u64 = 1 << 62;

impl SiteKind {
    /// Whether the site is a branch rather than a memory access.
    pub fn is_branch(self) -> bool {
        self <= SiteKind::Call
    }
}

/// The totals of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The simulated predictor or caches.
    pub spec: Spec,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The numbers of lines moved, which are all 0 for branches.
    pub traffic: Traffic,
    /// The sites that the run reached, in the order in which it first reached them. A site has no
    /// executions if the run ended right before it.
    pub sites: Vec<(Site, Tally)>,
}

impl Spec {
    /// Whether there is a second level.
    pub fn is_two(&self) -> bool {
        matches!(self, Spec::Caches(caches) if caches.second.is_some())
    }

    /// Whether the simulation concerns branches rather than memory accesses.
    pub fn is_branches(&self) -> bool {
        matches!(self, Spec::Branches(_))
    }
}

impl Summary {
    /// Sums the tallies of the wanted sites. Sums saturate at 64 bits, which no run reaches.
    pub fn sum(&self, wanted: impl Fn(SiteKind) -> bool) -> Tally {
        let sites = self.sites.iter().filter(|(site, _)| wanted(site.kind));
        sites.fold(Tally::default(), |sum, (_, tally)| sum.plus(*tally))
    }

    /// Encodes the summary.
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

    /// Decodes a summary. Memory use is proportional to `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a summary.
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
                narrow.ok_or(HistoryError::Malformed(
                    "a place that no program can contain",
                ))
            };
            let function = narrow(varint::get(&mut rest)?)?;
            let op = narrow(varint::get(&mut rest)?)?;
            let kind = KINDS.get(varint::get(&mut rest)? as usize).copied();
            let kind = kind.filter(|kind| kind.is_branch() == matches!(spec, Spec::Branches(_)));
            let kind = kind.ok_or(HistoryError::Malformed("a site of an unknown kind"))?;
            let executions = varint::get(&mut rest)?;
            let missed = varint::get(&mut rest)?;
            let last = if spec.is_two() {
                varint::get(&mut rest)?
            } else {
                0
            };
            if executions >= MOST {
                return Err(HistoryError::Malformed(
                    "more executions than a run can have",
                ));
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
