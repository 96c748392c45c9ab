//! Traces as lines of JSON. docs/JSON.md describes them.

use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_program::Location;
use afterimage_replay::paths::Visits;
use afterimage_wpp::Segments;
use serde::Serialize;

use super::{Scene, Stretch, TraceLevel, unreadable};
use crate::PresentError;

#[derive(Serialize)]
struct Head<'a> {
    schema: &'static str,
    level: &'static str,
    first: u64,
    last: u64,
    length: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    left_out: &'a str,
    reverse: bool,
    function: Option<FunctionObject<'a>>,
}

#[derive(Serialize)]
pub(super) struct FunctionObject<'a> {
    pub(super) index: u32,
    pub(super) name: &'a str,
}

#[derive(Serialize)]
pub(super) struct SourceObject<'a> {
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

#[derive(Serialize)]
struct BlockEntry<'a> {
    t: u64,
    depth: usize,
    function: u32,
    name: &'a str,
    block: u32,
    offset: u32,
    source: Option<SourceObject<'a>>,
}

#[derive(Serialize)]
struct PathEntry<'a> {
    t: u64,
    depth: usize,
    function: u32,
    name: &'a str,
    path: Vec<u32>,
    source: Option<SourceObject<'a>>,
}

#[derive(Serialize)]
struct LeftOut<'a> {
    t: u64,
    function: u32,
    name: &'a str,
    left_out: u64,
}

/// Writes a stretch of a run, block by block or path by path.
///
/// # Errors
/// If `out` fails or the path cannot be read.
pub fn trace_json<S: Segments>(
    out: &mut dyn Write,
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
    head(out, scene, stretch, name)?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(visit) = visits.next_visit().map_err(unreadable)?
    {
        let node = &scene.path.nodes()[visit.node];
        let function = node.function;
        let (name, depth) = (scene.names.function(function), visits.depth());
        let part = visits.window().part(visit);
        if node.left_out > 0 {
            let entry = LeftOut {
                t: visit.start + part.start,
                function: function.as_u32(),
                name,
                left_out: part.end - part.start,
            };
            line(out, &entry)?;
            room -= 1;
            continue;
        }
        if level == TraceLevel::Path {
            let first = scene.place(function, node.blocks[0])?;
            let entry = PathEntry {
                t: visit.start,
                depth,
                function: function.as_u32(),
                name,
                path: node.blocks.iter().map(|block| block.as_u32()).collect(),
                source: first.position.map(|position| source(scene, position)),
            };
            line(out, &entry)?;
            room -= 1;
            continue;
        }
        let mut one = |at: u64| -> Result<(), PresentError> {
            if room == 0 {
                return Ok(());
            }
            room -= 1;
            let block = node.blocks[at as usize];
            let place = scene.place(function, block)?;
            let entry = BlockEntry {
                t: visit.start + at,
                depth,
                function: function.as_u32(),
                name,
                block: block.as_u32(),
                offset: place.offset.0,
                source: place.position.map(|position| source(scene, position)),
            };
            line(out, &entry)
        };
        if stretch.reverse {
            part.rev().try_for_each(&mut one)?;
        } else {
            part.into_iter().try_for_each(&mut one)?;
        }
    }
    Ok(())
}

/// Writes the first line.
pub(super) fn head<S: Segments>(
    out: &mut dyn Write,
    scene: &Scene<'_, S>,
    stretch: &Stretch,
    level: &'static str,
) -> Result<(), PresentError> {
    let head = Head {
        schema: "afterimage/trace/1",
        level,
        first: stretch.window.first,
        last: stretch.window.last,
        length: scene.path.length(),
        left_out: scene.left_out,
        reverse: stretch.reverse,
        function: stretch.function.map(|function| named(scene, function)),
    };
    line(out, &head)
}

pub(super) fn named<'a, S>(scene: &Scene<'a, S>, function: FuncId) -> FunctionObject<'a> {
    FunctionObject {
        index: function.as_u32(),
        name: scene.names.function(function),
    }
}

pub(super) fn source<'a, S>(scene: &Scene<'a, S>, position: Location) -> SourceObject<'a> {
    SourceObject {
        file: scene.places.file(position),
        line: position.line,
        column: (position.column > 0).then_some(position.column),
    }
}

pub(super) fn line(out: &mut dyn Write, entry: &impl Serialize) -> Result<(), PresentError> {
    serde_json::to_writer(&mut *out, entry)?;
    writeln!(out)?;
    Ok(())
}
