//! Writes simulations as lines of JSON after a head.

use afterimage_analyses::simulate::{MissesPlace, SiteKind, Spec, Summary, Tally};
use schemars::JsonSchema;
use serde::Serialize;

use super::SimulationView;
use crate::PresentError;
use crate::document::objects::{Function, Position};
use crate::document::{Document, TakeRows};
use crate::steps::StepScene;

/// The misses of branch predictors or caches, with a head and rows for each simulation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateHead {
    /// The simulation: the options that request it, in full.
    pub simulation: String,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The number of branches or accesses, and the number of misses.
    #[serde(flatten)]
    pub missed: Missed,
    /// The numbers of cache lines, if caches are simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<CacheLines>,
}

impl Document for SimulateHead {
    const NAME: &'static str = "simulate";
    const COMMAND: &'static str = "simulate";
    type Row = SimulateRow;
}

/// The number of executions, and the number of misses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Missed {
    /// The number of executions.
    pub executions: u64,
    /// The number of executions that missed.
    pub missed: u64,
    /// The number of executions that also missed in the second level, if there are two levels of
    /// cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_second: Option<u64>,
}

impl Missed {
    pub(super) fn new(spec: &Spec, tally: Tally) -> Self {
        Self {
            executions: tally.executions,
            missed: tally.missed,
            missed_second: spec.is_two().then_some(tally.last),
        }
    }
}

/// Numbers of cache lines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CacheLines {
    /// The number of times that an access touched a line. An access that touches several lines
    /// counts once for each.
    pub touched: u64,
    /// The number of lines that the first level read.
    pub first_read: u64,
    /// The number of lines that the first level wrote back.
    pub first_written_back: u64,
    /// The number of lines that the second level read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_read: Option<u64>,
    /// The number of lines that the second level wrote back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_written_back: Option<u64>,
}

/// A line, function or instruction, depending on `--by`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulateRow {
    /// The function, with `--by function` and `--by instruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Function>,
    /// The instruction, with `--by instruction`.
    #[serde(flatten)]
    pub instruction: Option<SimulatedInstruction>,
    /// The line, if known, with `--by line` and `--by instruction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Option<Position>>,
    /// The numbers of executions and misses.
    #[serde(flatten)]
    pub missed: Missed,
}

/// A branch or access.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SimulatedInstruction {
    /// `branch`, `table`, `call`, `load`, `store` or `bulk`.
    pub kind: &'static str,
    /// The operator's name in the text format.
    pub operator: String,
    /// Its offset in the original module.
    pub offset: u32,
}

/// Writes a simulation for programs.
///
/// # Errors
/// Returns an error if `to` fails.
pub fn misses_rows(
    to: &mut dyn TakeRows<SimulateHead>,
    scene: &StepScene<'_>,
    report: &SimulationView<'_>,
) -> Result<(), PresentError> {
    to.head(head(report.summary))?;
    let in_function = |function| Some(Function::new(scene.names, function));
    for row in report.shown() {
        let (function, instruction, source) = match &row.place {
            MissesPlace::Line(line) => {
                let source = line.map(|line| {
                    let file = scene.source.files().get(line.file.0 as usize);
                    Position::line(file.map_or("", String::as_str), line.number)
                });
                (None, None, Some(source))
            }
            MissesPlace::Function(function) => (in_function(*function), None, None),
            MissesPlace::Instruction {
                kind,
                function,
                place,
                ..
            } => {
                let instruction = SimulatedInstruction {
                    kind: kind_name(*kind),
                    operator: place.name.to_string(),
                    offset: place.offset.0,
                };
                let at = place.position;
                let source = at.map(|at| Position::line(scene.file(at), at.line));
                (in_function(*function), Some(instruction), Some(source))
            }
        };
        let entry = SimulateRow {
            function,
            instruction,
            source,
            missed: Missed::new(&report.summary.spec, row.tally),
        };
        to.row(entry)?;
    }
    Ok(())
}

/// Returns the head of a simulation.
fn head(summary: &Summary) -> SimulateHead {
    let (traffic, is_two) = (summary.traffic, summary.spec.is_two());
    let lines = CacheLines {
        touched: traffic.touched,
        first_read: traffic.first,
        first_written_back: traffic.first_back,
        second_read: is_two.then_some(traffic.second),
        second_written_back: is_two.then_some(traffic.second_back),
    };
    SimulateHead {
        simulation: summary.spec.to_string(),
        blocks: summary.blocks,
        instructions: summary.instructions,
        missed: Missed::new(&summary.spec, summary.sum(|_| true)),
        lines: matches!(summary.spec, Spec::Caches(_)).then_some(lines),
    }
}

/// Returns the word for a kind of site.
pub(super) fn kind_name(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Conditional => "branch",
        SiteKind::Table => "table",
        SiteKind::Call => "call",
        SiteKind::Load => "load",
        SiteKind::Store => "store",
        SiteKind::Bulk => "bulk",
    }
}
