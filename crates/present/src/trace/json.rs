//! Writes traces as lines of JSON.

use afterimage_program::Location;
use afterimage_replay::whole_path::Visits;
use afterimage_wpp::Segments;
use schemars::JsonSchema;
use serde::Serialize;

use super::calls::CallRow;
use super::lines::LineRow;
use super::{Scene, Stretch, TraceLevel, unreadable};
use crate::document::objects::{Function, Position};
use crate::document::{Document, TakeRows};
use crate::{PresentError, StepRow};

/// A stretch of a run: its blocks, paths, calls, lines, statements or accesses, one per line, in
/// order of time. Times are numbers of executed blocks, from 1.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TraceHead {
    /// The kind of entries: `block`, `path`, `call`, `line`, `statement` or `memory`.
    pub level: &'static str,
    /// The time of the stretch's first block.
    pub first: u64,
    /// The time of the stretch's last block.
    pub last: u64,
    /// The number of blocks that the run executed.
    pub length: u64,
    /// A description of the missing parts of the path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub left_out: String,
    /// Whether the lines go backward in time.
    pub reverse: bool,
    /// The function whose entries are listed, if one was selected.
    pub function: Option<Function>,
}

impl Document for TraceHead {
    const NAME: &'static str = "trace";
    const COMMAND: &'static str = "trace";
    type Row = TraceRow;
}

/// A line of a trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TraceRow {
    /// At level `block`.
    Block(BlockRow),
    /// At level `path`.
    Path(PathRow),
    /// At levels `block` and `path`, for gaps in the recording.
    LeftOut(LeftOutRow),
    /// At level `call`.
    Call(CallRow),
    /// At levels `statement` and `memory`.
    Step(StepRow),
    /// At level `line`.
    Line(LineRow),
}

/// An executed block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockRow {
    /// Its time.
    pub t: u64,
    /// The number of enclosing activations.
    pub depth: usize,
    /// Its function.
    pub function: Function,
    /// Its number in the function.
    pub block: u32,
    /// Its offset in the original module.
    pub offset: u32,
    /// The line of its first instruction with a known line.
    pub source: Option<Position>,
}

/// An executed path. A path that lies only partly in the stretch is included as a whole.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathRow {
    /// The time of its first block.
    pub t: u64,
    /// The number of enclosing activations.
    pub depth: usize,
    /// Its function.
    pub function: Function,
    /// Its blocks.
    pub path: Vec<u32>,
    /// The line of the first block.
    pub source: Option<Position>,
}

/// Blocks that were left out of the recording.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOutRow {
    /// The time of the first block.
    pub t: u64,
    /// The function of the blocks that were left out.
    pub function: Function,
    /// The number of blocks that were left out.
    pub left_out: u64,
}

/// Writes a stretch of a run for programs, block by block or path by path.
///
/// # Errors
/// Returns an error if `to` fails or the path cannot be read.
pub fn trace_rows<S: Segments>(
    to: &mut dyn TakeRows<TraceHead>,
    scene: &Scene<'_, S>,
    visits: &mut Visits<'_, S>,
    level: TraceLevel,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    let name = match level {
        TraceLevel::Block => "block",
        TraceLevel::Path => "path",
    };
    head(to, scene, stretch, name)?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(visit) = visits.next_visit().map_err(unreadable)?
    {
        let node = &scene.path.nodes()[visit.node];
        let (function, depth) = (Function::new(scene.names, node.function), visits.depth());
        let part = visits.window().part(visit);
        if node.left_out > 0 {
            let entry = LeftOutRow {
                t: visit.start + part.start,
                function,
                left_out: part.end - part.start,
            };
            to.row(TraceRow::LeftOut(entry))?;
            room -= 1;
            continue;
        }
        if level == TraceLevel::Path {
            let first = scene.place(node.function, node.blocks[0])?;
            let entry = PathRow {
                t: visit.start,
                depth,
                function,
                path: node.blocks.iter().map(|block| block.as_u32()).collect(),
                source: first.position.map(|position| source(scene, position)),
            };
            to.row(TraceRow::Path(entry))?;
            room -= 1;
            continue;
        }
        let mut one = |at: u64| -> Result<(), PresentError> {
            if room == 0 {
                return Ok(());
            }
            room -= 1;
            let block = node.blocks[at as usize];
            let place = scene.place(node.function, block)?;
            let entry = BlockRow {
                t: visit.start + at,
                depth,
                function: function.clone(),
                block: block.as_u32(),
                offset: place.offset.0,
                source: place.position.map(|position| source(scene, position)),
            };
            to.row(TraceRow::Block(entry))
        };
        if stretch.reverse {
            part.rev().try_for_each(&mut one)?;
        } else {
            part.into_iter().try_for_each(&mut one)?;
        }
    }
    Ok(())
}

/// Writes the head.
pub(super) fn head<S: Segments>(
    to: &mut dyn TakeRows<TraceHead>,
    scene: &Scene<'_, S>,
    stretch: &Stretch,
    level: &'static str,
) -> Result<(), PresentError> {
    let function = stretch.function;
    let head = TraceHead {
        level,
        first: stretch.window.first,
        last: stretch.window.last,
        length: scene.path.length(),
        left_out: scene.left_out.to_owned(),
        reverse: stretch.reverse,
        function: function.map(|function| Function::new(scene.names, function)),
    };
    to.head(head)
}

pub(super) fn source<S>(scene: &Scene<'_, S>, position: Location) -> Position {
    Position::new(scene.places.file(position), position)
}
