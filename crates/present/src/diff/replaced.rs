//! Reports the differences between two programs that are alike, and the effects of these
//! differences.

use std::io::Write;

use afterimage_analyses::diff::{Effect, Otherwise};
use afterimage_analyses::slices::{Direction, SliceQuery};
use afterimage_replay::steps::{Trap, Value};
use schemars::JsonSchema;
use serde::Serialize;

use super::{AlikeReport, DiffReport, NextQuestion, ReplacedReport, Spot, ended, slice_of};
use crate::PresentError;
use crate::document::at_most;
use crate::document::objects::{Function, Position, TypedValue};
use crate::number::{counted, grouped};
use crate::steps::StepScene;
use crate::table::{Paint, plain};
use crate::value::value_text;

/// The default maximum number of operators to show. The same limit applies to data segments.
const SHOWN: usize = 10;

/// Writes the differences between two programs that are alike, for a person.
pub(super) fn alike_text(
    out: &mut dyn Write,
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport,
    alike: &AlikeReport,
) -> Result<(), PresentError> {
    let [a, b] = report.names().map(plain);
    let mut what = Vec::new();
    if !alike.replaced.is_empty() {
        what.push(counted(alike.replaced.len() as u64, "operator"));
    }
    if !alike.data.is_empty() {
        what.push(counted(alike.data.len() as u64, "data segment"));
    }
    let what = if what.is_empty() {
        "that have the same code and data".to_owned()
    } else {
        format!("that differ only in {}", what.join(" and "))
    };
    let head = format!("{a} and {b} are recordings of programs {what}");
    writeln!(out, "{}", scenes[0].style.paint(Paint::Bold, &head))?;
    ended(
        out,
        report.names(),
        report.endings.as_ref(),
        scenes[0].style,
    )?;
    let top = report.top.unwrap_or(SHOWN);
    for replaced in alike.ranked().into_iter().take(top) {
        let spot = spot(&scenes[1], replaced)?;
        let place = match spot.source {
            Some(_) => format!("{}, {}", spot.text(), spot.place),
            None => spot.text(),
        };
        let [x, y] = replaced.texts.each_ref().map(|text| plain(text));
        writeln!(out, "  {place}: {y} instead of {x}")?;
        writeln!(out, "    {}", done(replaced, [&a, &b], &x))?;
        let first = replaced.effects[1].first.as_ref();
        if let Some(first) = first.filter(|first| !first.is_of_constants()) {
            writeln!(out, "    {}", otherwise(first, [&x, &y]))?;
        }
    }
    if alike.replaced.len() > top {
        let more = (alike.replaced.len() - top) as u64;
        let more = grouped(more);
        writeln!(out, "  … and {more} more operators: --limit N")?;
    }
    for data in alike.data.iter().take(top) {
        writeln!(
            out,
            "  data segment {}: {} {}, the first at offset {}",
            data.segment,
            counted(data.bytes, "byte"),
            if data.bytes == 1 { "differs" } else { "differ" },
            grouped(data.first)
        )?;
    }
    if alike.data.len() > top {
        let more = (alike.data.len() - top) as u64;
        let more = grouped(more);
        writeln!(out, "  … and {more} more data segments: --limit N")?;
    }
    writeln!(out)?;
    Ok(())
}

/// Returns the place of an operator. A constant has the source line of the statement that uses it.
fn spot(scene: &StepScene<'_>, replaced: &ReplacedReport) -> Result<Spot, PresentError> {
    let function = replaced.at.function;
    let mut spot = Spot::of(scene, function, Some(replaced.at.op))?;
    if let Some(taker) = replaced.taker {
        let taken = Spot::of(scene, function, Some(taker))?;
        spot.source = taken.source.or(spot.source);
    }
    Ok(spot)
}

/// Describes how often an operator was executed, and how often its result differed.
fn done(replaced: &ReplacedReport, [name_a, name_b]: [&str; 2], other: &str) -> String {
    let [a, b] = &replaced.effects;
    match (a.executed, b.executed) {
        (0, 0) => return "executed in neither".to_owned(),
        (0, _) => {
            return format!(
                "executed {} in {name_b}, not in {name_a}",
                counted(b.executed, "time")
            );
        }
        (_, 0) => {
            return format!(
                "executed {} in {name_a}, not in {name_b}",
                counted(a.executed, "time")
            );
        }
        _ => {}
    }
    let executed = format!(
        "executed {} in {name_a}, {} in {name_b}",
        counted(a.executed, "time"),
        grouped(b.executed)
    );
    match b.otherwise {
        None => executed,
        Some(_) if b.first.as_ref().is_some_and(Otherwise::is_of_constants) => executed,
        Some(0) => format!("{executed}, where {other} would have given the same value each time"),
        Some(times) => format!(
            "{executed}, where {other} would have given a different value {}",
            counted(times, "time")
        ),
    }
}

fn otherwise(first: &Otherwise, [before, now]: [&str; 2]) -> String {
    let told = |given: &Result<Value, Trap>| match given {
        Ok(value) => format!("gives {}", value_text(value.ty, value.bits)),
        Err(trap) => format!("traps ({trap})"),
    };
    let operands = first.operands.iter();
    let operands: Vec<_> = operands
        .map(|value| value_text(value.ty, value.bits))
        .collect();
    let of = if operands.is_empty() {
        String::new()
    } else {
        format!(" of {}", operands.join(", "))
    };
    format!(
        "first in execution {}, t={}:{of} {now} {}, {before} {}",
        grouped(first.number),
        grouped(first.time),
        told(&first.gave),
        told(&first.other)
    )
}

impl AlikeReport {
    /// Returns a caveat to append to the sentence that the runs are the same. The caveat is empty
    /// if the second run executed no differing operator.
    pub(super) fn unseen(&self) -> &'static str {
        let executed = |replaced: &ReplacedReport| replaced.effects[1].executed > 0;
        if self.replaced.iter().any(executed) {
            "; the operands of operators that change a table, drop a segment or divide by zero \
             are not compared"
        } else {
            ""
        }
    }

    /// Returns the operators in order of importance: operators with different results, earliest
    /// first, then operators with unknown differences, then the others.
    fn ranked(&self) -> Vec<&ReplacedReport> {
        let mut all: Vec<_> = self.replaced.iter().collect();
        all.sort_by_key(|replaced| {
            let Effect {
                executed,
                otherwise,
                first,
            } = &replaced.effects[1];
            let rank = match (first, otherwise) {
                (Some(_), _) => 0,
                (None, None) if *executed > 0 => 1,
                _ => 2,
            };
            (rank, first.as_ref().map(|first| first.time))
        });
        all
    }
}

impl DiffReport {
    /// Returns the follow-up question about the effects of a replaced operator that gave a
    /// different result.
    pub(super) fn guilty(
        &self,
        scene: &StepScene<'_>,
    ) -> Result<Option<NextQuestion>, PresentError> {
        let ranked = self.alike.as_ref().map(AlikeReport::ranked);
        // Constants are not statements, so there is no question about them.
        let first = ranked.into_iter().flatten().find_map(|replaced| {
            let first = replaced.effects[1].first.as_ref()?;
            (!first.is_of_constants()).then_some((replaced.at, first.number))
        });
        let Some((at, number)) = first else {
            return Ok(None);
        };
        let spot = Spot::of(scene, at.function, Some(at.op))?;
        let slice = SliceQuery {
            direction: Direction::Forward,
            ..slice_of(&spot.place, number)
        };
        Ok(Some(NextQuestion::slice(self.names(), 1, slice)))
    }
}

/// The differences between two programs that are alike.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AlikeDocument {
    /// The operators that differ.
    pub replaced: Vec<DiffReplaced>,
    /// The number of differing operators that `--limit` left out.
    pub more_replaced: usize,
    /// The data segments that differ.
    pub data: Vec<DiffData>,
    /// The number of differing data segments that `--limit` left out.
    pub more_data: usize,
}

/// An operator that differs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffReplaced {
    /// Its function.
    pub function: Function,
    /// The operator in the first program.
    pub a: DiffOperator,
    /// The operator in the second program.
    pub b: DiffOperator,
    /// The number of executions of `b` in which the operator of `a` would have had a different
    /// result from the same operands. It is `null` unless the operators are constants or compute
    /// from their operands alone.
    pub otherwise: Option<u64>,
    /// The first execution that `otherwise` counts.
    pub first: Option<DiffOtherwise>,
}

/// An operator of one of the programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffOperator {
    /// Its text.
    pub operator: String,
    /// Its place: `@0x1f3`.
    pub at: String,
    /// Its line, if known.
    pub source: Option<Position>,
    /// The number of executions.
    pub executed: u64,
}

/// An execution in which the other operator would have given a different result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffOtherwise {
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The operands.
    pub operands: Vec<TypedValue>,
    /// The result of the operator of `a`.
    pub a: DiffResult,
    /// The result of the operator of `b`.
    pub b: DiffResult,
}

/// The result of an operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DiffResult {
    /// A value.
    Value(TypedValue),
    /// The operator traps.
    Trap {
        /// The reason.
        trap: String,
    },
}

impl From<&Result<Value, Trap>> for DiffResult {
    fn from(given: &Result<Value, Trap>) -> Self {
        match given {
            Ok(value) => Self::Value(value.into()),
            Err(trap) => Self::Trap {
                trap: trap.to_string(),
            },
        }
    }
}

/// A data segment that differs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffData {
    /// The number of the segment.
    pub segment: u32,
    /// The offset of the first differing byte, from 0.
    pub offset: u64,
    /// The number of bytes that differ.
    pub bytes: u64,
}

pub(super) fn alike_document(
    scenes: &[StepScene<'_>; 2],
    alike: &AlikeReport,
    top: Option<usize>,
) -> Result<AlikeDocument, PresentError> {
    let mut replaced = Vec::new();
    for one in alike.ranked() {
        let spots = [spot(&scenes[0], one)?, spot(&scenes[1], one)?];
        let side = |at: usize| {
            let Spot {
                place, position, ..
            } = &spots[at];
            DiffOperator {
                operator: one.texts[at].clone(),
                at: place.clone(),
                source: position.clone(),
                executed: one.effects[at].executed,
            }
        };
        let now = &one.effects[1];
        replaced.push(DiffReplaced {
            function: Function::new(scenes[1].names, one.at.function),
            a: side(0),
            b: side(1),
            otherwise: now.otherwise,
            first: now.first.as_ref().map(|first| DiffOtherwise {
                number: first.number,
                t: first.time,
                operands: first.operands.iter().map(TypedValue::from).collect(),
                a: (&first.other).into(),
                b: (&first.gave).into(),
            }),
        });
    }
    let data = alike.data.iter().map(|data| DiffData {
        segment: data.segment,
        offset: data.first,
        bytes: data.bytes,
    });
    let (replaced, more_replaced) = at_most(replaced, top);
    let (data, more_data) = at_most(data.collect(), top);
    Ok(AlikeDocument {
        replaced,
        more_replaced,
        data,
        more_data,
    })
}
