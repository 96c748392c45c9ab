//! Reports the values of the statements at a place.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::document::objects::{Function, MemoryRange};
use afterimage_present::grouped;
use afterimage_present::values::{
    RoleValue, StatementValues, ValueCount, ValueRows, ValuesInstance, ValuesReport,
};
use afterimage_profile::Source;
use afterimage_replay::Trap;
use afterimage_replay::steps::{CountedValue, ExecutionRange, ValueCounts, count_values};
use afterimage_replay::values::{
    Effect, Execution, Executions, RecordedValues, TypedValue, Types, ValuesError,
};
use afterimage_wet::FileEpochs;
use anyhow::{Result, anyhow};

use super::{Detail, Instances, ValuesQuery};
use crate::Session;
use crate::monitor::Work;
use crate::places::{Site, chosen, executions, statements};
use crate::steps::follow;
use crate::text::pasted;

impl ValuesQuery {
    pub(crate) fn answer(&self, traced: &Session) -> Result<ValuesReport> {
        let loaded = traced.module();
        let source = traced.source_map();
        let names = traced.program_names();
        let folded = traced.folded(source);
        let types = Types::new(&loaded.program, &loaded.bytes);
        let found = statements(traced, names, source, &types, &self.at)?;
        let which = self.instances.named(&self.at, found.occurrence)?;
        let values = traced.values()?;
        // A number after the place selects executions that belong together.
        let named = match found.occurrence {
            Some(_) => Some(chosen(traced, &values, (names, source), &found, &self.at)?),
            None => None,
        };
        let trap = traced.trap()?;
        let epochs = traced.epochs()?;
        let windows = epochs.windows().map(|index| (index.first, index.length));
        let windows = Vec::from_iter(windows);
        let mut reports = Vec::new();
        let mut refused = None;
        let mut asked = ValuesContext {
            query: self,
            traced,
            values: &values,
            types: &types,
            windows: &windows,
            trap: trap.as_ref(),
            followed: HashMap::new(),
        };
        if named.is_none() && self.is_summed() {
            asked.followed = asked.follow_many(epochs, &found.sites, which)?;
        }
        for site in &found.sites {
            let mut which = which;
            if let Some(named) = &named {
                let mut here = named
                    .iter()
                    .filter(|chosen| chosen.site.offset == site.offset);
                let chosen = here.next().map(|chosen| chosen.get(traced, &values));
                let Some(execution) = chosen.transpose()?.flatten() else {
                    continue;
                };
                which = Instances::One(execution.number);
            }
            let (all, count) = executions(traced, &values, site)?;
            let what = format!("the statement at @{}", site.offset);
            let by = |time| Ok(all.by(time)?);
            let function = names.function(site.function);
            let range = which.range(count, (&what, "executed"), by);
            let kept = left_out(epochs, site.function, function).map_or(Ok(()), Err);
            let rows = match kept.and(range) {
                Ok(range) => {
                    let rows = asked.rows(site, &all, (count, range), which);
                    match rows {
                        Err(error) if !is_left_out(&error) => return Err(error),
                        rows => rows,
                    }
                }
                Err(why) => Err(why),
            };
            let rows = match rows {
                Ok(rows) => rows,
                // Other statements of the line may still have executions with stored values.
                Err(why) => {
                    let rows = Rows {
                        refused: Some(why.to_string()),
                        ..Rows::default()
                    };
                    refused.get_or_insert(why);
                    rows
                }
            };
            let gives = rows.gives || rows.refused.is_some() || count == 0;
            let report = StatementValues {
                function: Function::new(names, site.function),
                offset: site.offset.0,
                operator: site.text.clone(),
                source: source.locate(site.offset).map(|at| source.line(at)),
                own: folded.locate(site.offset).map(|at| folded.line(at)),
                executions: count,
                refused: rows.refused,
                rows: rows.rows,
                more: rows.more,
                outside: rows.outside,
                named: which.is_named(),
            };
            reports.push((report, gives));
        }
        if let Some(why) = refused
            && reports.iter().all(|(report, _)| report.refused.is_some())
        {
            return Err(why);
        }
        // If there are many statements, leave out those without results.
        if reports.len() > 1 {
            reports.retain(|(_, gives)| *gives);
        }
        Ok(ValuesReport {
            at: self.at.clone(),
            statements: reports.into_iter().map(|(report, _)| report).collect(),
            memories: loaded.program.memories,
            rest: rest_of(&windows, traced.at()),
        })
    }
}

/// Returns the error for a function that was left out of all windows, and so has no values.
fn left_out(epochs: &FileEpochs, function: FuncId, name: &str) -> Option<anyhow::Error> {
    let mut windows = epochs.windows().peekable();
    let &first = windows.peek()?;
    if !windows.all(|index| index.left_out.has(function)) {
        return None;
    }
    let windows = epochs.windows().map(|index| (index.first, index.length));
    Some(anyhow!(
        "{name} was left out: values were kept without {}, {}; to have them, build the values \
         again: afterimage build --lens full --again",
        first.left_out.words,
        windows_text(&Vec::from_iter(windows))
    ))
}

/// Returns the windows with stored values, as text.
fn windows_text(windows: &[(u64, u64)]) -> String {
    let text =
        |&(first, last): &(u64, u64)| format!("from t={} to t={}", grouped(first), grouped(last));
    Vec::from_iter(windows.iter().map(text)).join(", ")
}

/// Describes the values that are not stored, and how to get them.
fn rest_of(windows: &[(u64, u64)], file: &Path) -> String {
    format!(
        "outside the part with stored values, {}; to build the rest: afterimage build --lens full {}",
        windows_text(windows),
        pasted(file)
    )
}

/// Whether the error concerns a part of the run, or a function, that has no stored values.
fn is_left_out(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<ValuesError>();
    matches!(error, Some(ValuesError::Outside { .. }))
}

/// The rows to report about a statement.
struct Rows {
    /// Whether the statement produces values, or has another result to show.
    gives: bool,
    /// The reason why no selected execution can be shown: none exists, or their values are not
    /// stored.
    refused: Option<String>,
    rows: ValueRows,
    /// The number of further executions, or values.
    more: u64,
    /// The number of selected executions whose values are not stored.
    outside: u64,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            gives: false,
            refused: None,
            rows: ValueRows::Instances {
                instances: Vec::new(),
            },
            more: 0,
            outside: 0,
        }
    }
}

/// A question about statements, and the data needed to answer it.
struct ValuesContext<'s, 'a> {
    query: &'s ValuesQuery,
    traced: &'a Session,
    values: &'s RecordedValues<'a>,
    types: &'s Types<'a>,
    /// The windows with stored values.
    windows: &'s [(u64, u64)],
    trap: Option<&'s Trap>,
    /// For each statement, the counts found by following the run.
    followed: HashMap<OrigOffset, ValueCounts>,
}

/// The approximate number of blocks that can be followed in the time of looking up one value.
const BLOCKS_PER_VALUE: u64 = 2048;

impl<'a> ValuesContext<'_, 'a> {
    /// Counts the values of statements for a summary by following the run, if that is faster than
    /// looking them up.
    fn follow_many(
        &self,
        epochs: &FileEpochs,
        sites: &[Site],
        which: Instances,
    ) -> Result<HashMap<OrigOffset, ValueCounts>> {
        let (mut asked, mut offsets, mut executed) = (Vec::new(), Vec::new(), 0u64);
        for site in sites {
            let (all, count) = executions(self.traced, self.values, site)?;
            let by = |time| Ok(all.by(time)?);
            // If a statement has none of the requested executions, a later step reports the reason.
            let Ok((first, last)) = which.range(count, ("", ""), by) else {
                continue;
            };
            let is_left_out = left_out(epochs, site.function, "").is_some();
            if count == 0 || is_left_out || self.kept(&all, (first, last))? != [(first, last)] {
                continue;
            }
            executed = executed.saturating_add(last - first + 1);
            offsets.push(site.offset);
            asked.push(ExecutionRange {
                function: site.function,
                op: site.op,
                executions: (first, last),
            });
        }
        if executed.saturating_mul(BLOCKS_PER_VALUE) <= self.traced.path()?.length() {
            return Ok(HashMap::new());
        }
        let counts = follow(self.traced, |run, log| Ok(count_values(run, log, &asked)?))?;
        let known = offsets.into_iter().zip(counts);
        let known = known.filter_map(|(offset, counts)| Some((offset, counts?)));
        Ok(known.collect())
    }

    /// Returns a summary of counted executions.
    fn summed(&self, mut counted: ValueCounts, trapped: Option<String>) -> Rows {
        let gives = !counted.is_empty();
        let mut more = 0;
        if self.query.detail == Detail::Histogram {
            counted.sort_by_key(|counted| std::cmp::Reverse(counted.times));
            more = (counted.len() as u64).saturating_sub(self.query.limit);
            counted.truncate(usize::try_from(self.query.limit).unwrap_or(usize::MAX));
        }
        let counts = counted.iter().map(|counted| ValueCount {
            value: role_value(&counted.value),
            times: counted.times,
            first: counted.first,
        });
        Rows {
            gives,
            more,
            rows: ValueRows::Counts {
                counts: counts.collect(),
                trapped,
                stats: self.query.detail == Detail::Stats,
            },
            ..Rows::default()
        }
    }

    fn rows(
        &self,
        site: &Site,
        all: &Executions<'a>,
        (count, (first, last)): (u64, (u64, u64)),
        which: Instances,
    ) -> Result<Rows> {
        if count == 0 {
            return Ok(Rows::default());
        }
        if let Some(counted) = self.followed.get(&site.offset) {
            let execution = all.get(self.values, last)?;
            let trap = execution.and_then(|execution| self.trap_at(site, &execution));
            return Ok(self.summed(counted.clone(), trap.map(|trap| trap.why.clone())));
        }
        let mut ranges = self.kept(all, (first, last))?;
        let kept: u64 = ranges.iter().map(|(from, to)| to - from + 1).sum();
        if kept == 0 {
            // No execution has stored values. Looking up the first execution returns the reason.
            ranges = vec![(first, first)];
        }
        // At least one execution is looked up, even if none has stored values.
        let outside = last - first + 1 - kept.max(1);
        let most = kept.clamp(1, self.query.most(which));
        let doing = Work::Question("computing values");
        let progress = self.traced.monitor().begin(doing, Some(most));
        let numbers = ranges.into_iter().flat_map(|(from, to)| from..=to);
        let mut executions = (0..most).zip(numbers).map(|(done, number)| {
            if done.is_multiple_of(256) {
                progress(done);
            }
            all.get(self.values, number)
        });
        if self.query.is_summed() {
            let mut counted: BTreeMap<(u64, u64), CountedValue> = BTreeMap::new();
            let mut trapped = None;
            while let Some(execution) = executions.next().transpose()?.flatten() {
                for value in self.types.results_of(self.values, &execution, site.op)? {
                    let counted = counted.entry(value.bits).or_insert(CountedValue {
                        value,
                        times: 0,
                        first: execution.number,
                    });
                    counted.times += 1;
                }
                let trap = self.trap_at(site, &execution);
                trapped = trapped.or(trap.map(|trap| trap.why.clone()));
            }
            let counted = Vec::from_iter(counted.into_values());
            let summed = self.summed(counted, trapped);
            return Ok(Rows { outside, ..summed });
        }
        let (mut instances, mut gives) = (Vec::new(), false);
        while let Some(execution) = executions.next().transpose()?.flatten() {
            let instance = self.instance(site, &execution)?;
            gives |= !instance.values.is_empty()
                || instance.read.or(instance.written).is_some()
                || instance.trapped.is_some();
            instances.push(instance);
        }
        Ok(Rows {
            gives,
            more: which.of(count, first) - outside - instances.len() as u64,
            rows: ValueRows::Instances { instances },
            outside,
            refused: None,
        })
    }

    /// Returns which executions in a range have stored values, as ranges of numbers.
    fn kept(&self, all: &Executions<'a>, (first, last): (u64, u64)) -> Result<Vec<(u64, u64)>> {
        let length = self.values.path().length();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        if self.windows.contains(&(1, length)) {
            ranges.push((first, last));
            return Ok(ranges);
        }
        // A node that is partly in a window is kept as a whole.
        let is_in = |number, (from, to): (u64, u64)| -> Result<bool> {
            let Some(execution) = all.get(self.values, number)? else {
                return Ok(false);
            };
            let instance = execution.instance;
            let length = self.values.path().nodes()[instance.node].length();
            Ok(instance.time <= to && from < instance.time.saturating_add(length))
        };
        for &window in self.windows {
            let mut from = all.by(window.0.saturating_sub(1))? + 1;
            let mut to = all.by(window.1)?;
            if from > 1 && is_in(from - 1, window)? {
                from -= 1;
            }
            if is_in(to + 1, window)? {
                to += 1;
            }
            ranges.push((from.max(first), to.min(last)));
        }
        ranges.retain(|(from, to)| from <= to);
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(before) if from <= before.1.saturating_add(1) => before.1 = before.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Ok(merged)
    }

    /// Returns why an execution trapped, if it did.
    fn trap_at(&self, site: &Site, execution: &Execution) -> Option<&Trap> {
        let here = |trap: &&Trap| trap.is_at(site.function, site.op, execution.time);
        self.trap.filter(here)
    }

    fn instance(&self, site: &Site, execution: &Execution) -> Result<ValuesInstance> {
        let effect = self.types.effect(self.values, execution, site.op)?;
        let trap = self.trap_at(site, execution).map(|trap| trap.why.clone());
        // If the recording was cut off, it is unknown whether this execution trapped.
        let unfinished = || "the recording ends before it finishes".to_owned();
        let trapped = trap.or_else(|| effect.trapped.then(unfinished));
        let Effect {
            values, accesses, ..
        } = effect;
        Ok(ValuesInstance {
            number: execution.number,
            t: execution.time,
            values: values.iter().map(role_value).collect(),
            read: accesses.read.map(MemoryRange::from),
            written: accesses.written.map(MemoryRange::from),
            trapped,
        })
    }
}

fn role_value(value: &TypedValue) -> RoleValue {
    RoleValue::new(value.role, value.ty, value.bits)
}
