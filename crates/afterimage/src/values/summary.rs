//! Summarises the values of a variable: their statistics, or the number of occurrences of each
//! value.

use std::collections::BTreeMap;

use afterimage_present::values::{VariableCount, VariableMissing, VariableRows, VariableStats};
use afterimage_replay::state::{Number, Occasion, Occasions, PathError};
use afterimage_replay::values::RecordedValues;
use anyhow::{Result, bail};

use super::variable::{Subject, never};
use super::{Detail, VariableQuery};
use crate::Session;
use crate::monitor::Work;

/// The moments whose values are summarised.
pub(super) struct Moments<'m, 'a> {
    pub values: &'m RecordedValues<'a>,
    pub occasions: &'m Occasions<'a>,
    /// The numbers of the first and the last moment.
    pub first: u64,
    pub last: u64,
}

/// The number of moments to examine in one pass. Each pass follows the run from the last
/// checkpoint.
const TOGETHER: u64 = 1 << 18;

/// A value, the number of its occurrences, and the number of the moment at which it first occurred.
struct Counted {
    number: Number,
    times: u64,
    first: u64,
}

/// Summarises the values of a variable over many moments, and counts the values that are left out.
pub(super) fn rows<'a>(
    traced: &Session,
    moments: &Moments<'_, 'a>,
    subject: &Subject<'_, 'a>,
    query: &VariableQuery,
) -> Result<(VariableRows, u64)> {
    let &Moments {
        values,
        occasions,
        first,
        last,
    } = moments;
    let mut counts: BTreeMap<(String, u128), Counted> = BTreeMap::new();
    let mut missing: BTreeMap<String, (PathError, u64)> = BTreeMap::new();
    let total = Some((last + 1).saturating_sub(first));
    let progress = traced
        .monitor()
        .begin(Work::Question("counting values"), total);
    let (mut next, mut marked) = (first, 0);
    while next <= last {
        let end = last.min(next + (TOGETHER - 1));
        let mut wanted: Vec<Occasion> = Vec::new();
        for number in next..=end {
            wanted.extend(occasions.get(values, number)?);
        }
        for row in subject.numbers(&wanted)? {
            match row.value {
                Ok((number, is_marked)) => {
                    marked += u64::from(is_marked);
                    let key = (number.type_name.clone(), number.bits);
                    let counted = counts.entry(key).or_insert(Counted {
                        number,
                        times: 0,
                        first: row.number,
                    });
                    counted.times += 1;
                }
                Err(why) => {
                    let text = why.to_string();
                    missing.entry(text).or_insert((why, 0)).1 += 1;
                }
            }
        }
        progress(end + 1 - first);
        next = end + 1;
    }
    let reasons = missing.values().map(|(why, _)| Some(why));
    if let (Some(why), true) = (never(reasons), counts.is_empty()) {
        bail!("--var {}: {why}", query.name);
    }
    let missing = missing.into_iter();
    let missing = missing.map(|(unavailable, (_, times))| VariableMissing { unavailable, times });
    let mut counts = Vec::from_iter(counts.into_values());
    counts.sort_by(|a, b| {
        let (a, b) = (&a.number, &b.number);
        let types = a.type_name.cmp(&b.type_name);
        types.then_with(|| a.rank.order(&b.rank))
    });
    let stats = counts.chunk_by(|a, b| a.number.type_name == b.number.type_name);
    let stats = Vec::from_iter(stats.filter_map(extremes));
    counts.sort_by_key(|counted| std::cmp::Reverse(counted.times));
    let most = usize::try_from(query.values.limit).unwrap_or(usize::MAX);
    let more = counts.len().saturating_sub(most) as u64;
    let counts = counts
        .into_iter()
        .take(most)
        .map(|Counted { number, times, .. }| VariableCount {
            type_name: number.type_name,
            value: number.text,
            bits: format!("0x{:x}", number.bits),
            times,
        });
    let rows = VariableRows::Summary {
        stats,
        counts: counts.collect(),
        missing: missing.collect(),
        marked,
        brief: query.values.detail == Detail::Stats,
    };
    Ok((rows, more))
}

/// Returns the extremes of sorted values of one type.
fn extremes(counts: &[Counted]) -> Option<VariableStats> {
    let (smallest, largest) = (counts.first()?, counts.last()?);
    let most = counts.iter().rev().max_by_key(|counted| counted.times)?;
    Some(VariableStats {
        type_name: smallest.number.type_name.clone(),
        different: counts.len(),
        smallest: smallest.number.text.clone(),
        smallest_first: smallest.first,
        largest: largest.number.text.clone(),
        largest_first: largest.first,
        most: most.number.text.clone(),
        most_times: most.times,
    })
}
