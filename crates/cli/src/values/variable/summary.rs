//! The values of a variable summed up: how many there are, or how often each.

use std::collections::BTreeMap;
use std::io::Write;

use afterimage::places::times;
use afterimage_present::grouped;
use afterimage_replay::state::{Number, Occasion, Occasions, PathError};
use afterimage_replay::values::RecordedValues;
use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::super::most_often;
use super::{Arguments, Subject, VariableQuery, never};
use crate::output::harmless;
use crate::progress::Bar;

/// The moments of which the values are summed up.
pub(super) struct Moments<'m, 'a> {
    pub values: &'m RecordedValues<'a>,
    pub occasions: &'m Occasions<'a>,
    /// The first of them and the last one, by number.
    pub first: u64,
    pub last: u64,
}

/// How many moments are looked at in one go. Between two of them the run is followed from the last checkpoint again.
const TOGETHER: u64 = 1 << 18;

/// What was counted.
#[derive(Default)]
pub(super) struct Summary {
    /// How often each value occurred, with the first of its moments, in order: by type, then by value.
    counts: Vec<(Number, u64)>,
    /// How often there was none, by the reason.
    missing: Vec<(String, u64)>,
    /// At how many moments the place may hold something else.
    marked: u64,
}

impl Summary {
    /// Of one number at many moments.
    pub(super) fn of<'a>(
        moments: &Moments<'_, 'a>,
        subject: &Subject<'_, 'a>,
        asked: &VariableQuery<'_>,
    ) -> Result<Self> {
        let &Moments {
            values,
            occasions,
            first,
            last,
        } = moments;
        let mut counts: BTreeMap<(String, u128), (Number, u64)> = BTreeMap::new();
        let mut missing: BTreeMap<String, (PathError, u64)> = BTreeMap::new();
        let bar = Bar::start("counting values", Some((last + 1).saturating_sub(first)));
        let progress = bar.progress();
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
                        counts.entry(key).or_insert((number, 0)).1 += 1;
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
            bail!("--var {}: {why}", asked.name);
        }
        let missing = missing.into_iter().map(|(why, (_, often))| (why, often));
        let missing = Vec::from_iter(missing);
        let mut counts = Vec::from_iter(counts.into_values());
        counts.sort_by(|(a, _), (b, _)| {
            let types = a.type_name.cmp(&b.type_name);
            types.then_with(|| a.rank.order(&b.rank))
        });
        Ok(Self {
            counts,
            missing,
            marked,
        })
    }

    /// Writes it.
    pub(super) fn text(
        &self,
        out: &mut dyn Write,
        asked: &VariableQuery<'_>,
        arguments: &Arguments,
    ) -> Result<()> {
        let types = self.counts.chunk_by(|a, b| a.0.type_name == b.0.type_name);
        let types = Vec::from_iter(types);
        let one = match types.as_slice() {
            [one] => Some(one[0].0.type_name.as_str()),
            _ => None,
        };
        asked.head(out, one)?;
        for of_type in &types {
            let kind = match one {
                Some(_) => String::new(),
                None => format!(" ({})", harmless(&of_type[0].0.type_name)),
            };
            if arguments.stats {
                extremes(out, of_type, &kind)?
            } else {
                histogram(out, of_type, &kind, arguments.rows())?
            }
        }
        if self.marked > 0 {
            writeln!(
                out,
                "{:>12}  may be something else: the place was written since the call began, or is another variable's, too",
                times(self.marked)
            )?;
        }
        for (why, often) in &self.missing {
            writeln!(out, "{:>12}  <{}>", times(*often), harmless(why))?;
        }
        Ok(())
    }

    /// The same as JSON, the most frequent values first.
    pub(super) fn json(&self, asked: &VariableQuery<'_>, most: u64) -> Value {
        let mut counts = Vec::from_iter(&self.counts);
        counts.sort_by_key(|(_, often)| std::cmp::Reverse(*often));
        let more = (counts.len() as u64).saturating_sub(most);
        counts.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let count = |&&(ref number, often): &&(Number, u64)| {
            json!({
                "type": number.type_name,
                "value": number.text,
                "bits": format!("0x{:x}", number.bits),
                "times": often,
            })
        };
        let missing = self.missing.iter();
        let missing = missing.map(|(why, often)| json!({ "unavailable": why, "times": often }));
        let stats = self.counts.chunk_by(|a, b| a.0.type_name == b.0.type_name);
        let stats = stats.map(|of_type| {
            let (first, last) = (&of_type[0].0, &of_type[of_type.len() - 1].0);
            json!({
                "type": first.type_name,
                "different": of_type.len(),
                "smallest": first.text,
                "largest": last.text,
            })
        });
        let mut json = json!({
            "schema": "afterimage/variable/1",
            "variable": asked.name,
            "at": asked.at,
            "count": asked.count,
            "stats": Vec::from_iter(stats),
            "counts": Vec::from_iter(counts.iter().map(count)),
            "more": more,
            "missing": Vec::from_iter(missing),
        });
        if self.marked > 0 {
            json["marked"] = json!(self.marked);
        }
        json
    }
}

fn extremes(out: &mut dyn Write, counts: &[(Number, u64)], kind: &str) -> Result<()> {
    let (Some((smallest, often)), Some((largest, _))) = (counts.first(), counts.last()) else {
        return Ok(());
    };
    let kind = kind.trim_start();
    let space = if kind.is_empty() { "" } else { " " };
    if counts.len() == 1 {
        writeln!(
            out,
            "    {kind}{space}always {} ({})",
            harmless(&smallest.text),
            times(*often)
        )?;
        return Ok(());
    }
    let most = counts.iter().rev().max_by_key(|(_, often)| *often);
    let (most, often) = most.map_or((smallest, *often), |(most, often)| (most, *often));
    writeln!(
        out,
        "    {kind}{space}{} different values, from {} to {}; {}",
        grouped(counts.len() as u64),
        harmless(&smallest.text),
        harmless(&largest.text),
        most_often(&harmless(&most.text), often)
    )?;
    Ok(())
}

fn histogram(out: &mut dyn Write, counts: &[(Number, u64)], kind: &str, most: u64) -> Result<()> {
    let mut counts = Vec::from_iter(counts);
    counts.sort_by_key(|(_, often)| std::cmp::Reverse(*often));
    let more = (counts.len() as u64).saturating_sub(most);
    counts.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    for (number, often) in counts {
        writeln!(
            out,
            "{:>12}  {}{kind}",
            times(*often),
            harmless(&number.text)
        )?;
    }
    if more > 0 {
        let values = if more == 1 { "value" } else { "values" };
        writeln!(
            out,
            "{:>12}  {} more {values}: --limit N",
            "…",
            grouped(more)
        )?;
    }
    Ok(())
}
