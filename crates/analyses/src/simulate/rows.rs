//! Sums misses by place.

use std::cmp::Reverse;
use std::collections::HashMap;

use afterimage_ids::{FuncId, OpId};
use afterimage_simulate::{SiteKind, Summary, Tally};

use afterimage_profile::{Line, OwnFunctions, ProfileError, Source};
use afterimage_replay::steps::{OperatorPlace, Operators};
use serde::{Deserialize, Serialize};

/// The kind of place that each row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissesBy {
    /// A source line.
    Line,
    /// A function.
    Function,
    /// An instruction.
    Instruction,
}

/// The place of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissesPlace {
    /// A source line; `None` for all code without a known line.
    Line(Option<Line>),
    /// A function.
    Function(FuncId),
    /// An instruction.
    Instruction {
        /// The site's number in the summary.
        site: usize,
        /// The kind of site.
        kind: SiteKind,
        /// The function that contains the instruction.
        function: FuncId,
        /// The instruction's operator.
        op: OpId,
        /// The operator's name and offset.
        place: OperatorPlace,
    },
}

/// The misses at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissesRow {
    /// The place that the row describes.
    pub place: MissesPlace,
    /// The executions and misses of all sites at the place.
    pub tally: Tally,
}

/// The misses by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissRows {
    /// The rows.
    pub rows: Vec<MissesRow>,
    /// The executions and misses of code that is not shown.
    pub left_out: Tally,
}

impl MissRows {
    /// Returns misses by place. Rows with the most misses come first, then rows with the most
    /// executions. Equal rows are in program order. Places that were not executed have no row. With
    /// `own`, code that is not shown has no row either, unless nothing in the shown code was
    /// executed. Code that was inlined into shown code has the line of the call. O(sites · log
    /// sites), plus the bodies of their functions.
    ///
    /// # Errors
    /// Returns an error if the summary names an operator that the program does not contain.
    pub fn new(
        summary: &Summary,
        operators: &Operators<'_>,
        by: MissesBy,
        own: Option<&OwnFunctions<'_>>,
    ) -> Result<Self, ProfileError> {
        let found = miss_rows(summary, operators, by, own)?;
        if found.rows.is_empty() && own.is_some() {
            return miss_rows(summary, operators, by, None);
        }
        Ok(found)
    }
}

/// Like [`MissRows::new`], but returns no rows if nothing in the shown code was executed.
fn miss_rows(
    summary: &Summary,
    operators: &Operators<'_>,
    by: MissesBy,
    own: Option<&OwnFunctions<'_>>,
) -> Result<MissRows, ProfileError> {
    let mut sites = Vec::from_iter(summary.sites.iter().enumerate());
    sites.retain(|(_, (_, tally))| tally.executions > 0);
    sites.sort_unstable_by_key(|(_, (site, _))| *site);
    let mut rows: Vec<MissesRow> = Vec::new();
    let mut lines: HashMap<Option<Line>, usize> = HashMap::new();
    let mut left_out = Tally::default();
    for (number, (site, tally)) in sites {
        let (function, op) = (FuncId::from_u32(site.function), OpId::from_u32(site.op));
        if by == MissesBy::Function {
            if own.is_some_and(|own| !own.shows(function)) {
                left_out = left_out.plus(*tally);
                continue;
            }
            match rows.last_mut() {
                Some(row) if row.place == MissesPlace::Function(function) => {
                    row.tally = row.tally.plus(*tally);
                }
                _ => rows.push(MissesRow {
                    place: MissesPlace::Function(function),
                    tally: *tally,
                }),
            }
            continue;
        }
        let known = operators.of(function)?;
        let place = known.get(site.op as usize).cloned();
        let mut place = place.ok_or(ProfileError::Body {
            function,
            expected: site.op.saturating_add(1),
            got: known.len(),
        })?;
        if let Some(own) = own {
            let position = own.folded.locate(place.offset);
            if position.is_none() && !own.shows(function) {
                left_out = left_out.plus(*tally);
                continue;
            }
            place.position = position;
        }
        if by == MissesBy::Instruction {
            rows.push(MissesRow {
                place: MissesPlace::Instruction {
                    site: number,
                    kind: site.kind,
                    function,
                    op,
                    place,
                },
                tally: *tally,
            });
            continue;
        }
        let line = place.position.map(Line::from);
        let at = *lines.entry(line).or_insert_with(|| {
            rows.push(MissesRow {
                place: MissesPlace::Line(line),
                tally: Tally::default(),
            });
            rows.len() - 1
        });
        rows[at].tally = rows[at].tally.plus(*tally);
    }
    // The sort is stable, so equal rows stay in program order.
    rows.sort_by_key(|row| Reverse((row.tally.missed, row.tally.executions)));
    Ok(MissRows { rows, left_out })
}
