//! Reports the paths along which redundant values are available.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_analyses::redundancy::{InPath, OperatorRedundancy};
use afterimage_ids::{EntityRef, NodeId};
use afterimage_profile::Line;
use afterimage_program::Location;
use schemars::JsonSchema;
use serde::Serialize;

use super::text::from;
use super::{RedundancyReport, RedundancyScene};
use crate::PresentError;
use crate::addresses::Shown;
use crate::document::objects::{Instruction, Position};
use crate::number::{counted, grouped, percent};
use crate::paths::{path_blocks, path_lines};
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// Writes the most frequent routes through paths for each operator that is ever redundant.
pub(super) fn ways(
    out: &mut dyn Write,
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
) -> Result<(), PresentError> {
    if report.ways == 0 {
        if report.redundant > 0 {
            writeln!(out, "\n--paths N shows the paths that made these redundant")?;
        }
        return Ok(());
    }
    for operator in report.operators.iter().filter(|o| o.redundant > 0) {
        writeln!(out)?;
        of_operator(out, scene, report, operator)?;
    }
    Ok(())
}

fn of_operator(
    out: &mut dyn Write,
    scene: &RedundancyScene<'_>,
    report: &RedundancyReport,
    operator: &OperatorRedundancy,
) -> Result<(), PresentError> {
    let steps = &scene.steps;
    let shown = Shown::of(steps, operator.site)?;
    let line = shown.line(steps);
    let place = format!("@{} {}  {line}", shown.offset, shown.name);
    let redundant = operator.paths.iter().filter(|p| p.redundant > 0).count();
    let in_paths = match (redundant, operator.paths.len()) {
        (_, 1) => "the only path".to_owned(),
        (some, all) if some == all => format!("all {all} paths"),
        (some, all) => format!("{some} of the {all} paths"),
    };
    let head = format!(
        "{}  in {}: redundant in {in_paths} that executed it",
        place.trim_end(),
        plain(steps.names.function(operator.site.function)),
    );
    writeln!(out, "{}", steps.style.paint(Paint::Bold, &head))?;
    let mut table = Table::new(&[
        ("times", Right),
        ("", Right),
        ("in path", Left),
        ("", Left),
        ("redundant there", Right),
        ("from", Left),
        ("in path", Left),
        ("", Left),
    ]);
    for way in operator.ways.iter().take(report.ways) {
        let of_path = in_path(operator, way.path);
        let there = of_path.map_or(String::new(), |p| {
            if p.redundant == p.executions {
                "always".to_owned()
            } else {
                format!("{} of {}", grouped(p.redundant), grouped(p.executions))
            }
        });
        let source = operator.sources.iter().find(|s| s.site == way.source);
        let source = match source {
            Some(source) => from(steps, operator, source)?,
            None => String::new(),
        };
        let (blocks, lines) = if way.same {
            ("the same execution of it".to_owned(), String::new())
        } else {
            path(scene, way.from)?
        };
        let own = path(scene, way.path)?;
        table.row([
            grouped(way.times),
            percent(way.times, operator.redundant),
            own.0,
            own.1,
            there,
            source,
            blocks,
            lines,
        ]);
    }
    table.write(out, steps.style, |_| Paint::Plain)?;
    let more = operator.ways.len().saturating_sub(report.ways);
    if more > 0 {
        writeln!(out, "… and {}", counted(more as u64, "way"))?;
    }
    Ok(())
}

fn in_path(operator: &OperatorRedundancy, path: NodeId) -> Option<&InPath> {
    operator.paths.iter().find(|p| p.path == path)
}

/// Formats the blocks and the lines of a path.
fn path(scene: &RedundancyScene<'_>, path: NodeId) -> Result<(String, String), PresentError> {
    let Some(node) = scene.paths.get(path) else {
        return Ok(Default::default());
    };
    let lines = match scene.steps.source.files() {
        [] => String::new(),
        _ => path_lines(&lines(scene, path)?, scene.steps.source),
    };
    Ok((path_blocks(&node.blocks), lines))
}

/// Returns the source lines of a path, ascending.
fn lines(scene: &RedundancyScene<'_>, path: NodeId) -> Result<Vec<Line>, PresentError> {
    let Some(node) = scene.paths.get(path) else {
        return Ok(Vec::new());
    };
    let operators = scene.steps.operators.of(node.function)?;
    let Some(function) = scene.program.function(node.function) else {
        return Ok(Vec::new());
    };
    let positions = node.blocks.iter().flat_map(|&block| {
        let ops = &function.cfg.blocks[block].ops;
        operators[ops.start.index()..ops.end.index()].iter()
    });
    let positions = positions.filter_map(|operator| operator.position);
    let lines: BTreeSet<Line> = positions.map(Location::into).collect();
    Ok(lines.into_iter().collect())
}

/// A route of a value, from its source to the operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Way {
    /// The number of times the value took this route.
    pub times: u64,
    /// Whether the source and the operator were in the same execution of the path.
    pub same_execution: bool,
    /// The path in which the operator was executed.
    pub path: Option<WayPath>,
    /// The source.
    pub from: WaySource,
    /// The number of executions of the operator in `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions_in_path: Option<u64>,
    /// The number of redundant executions of the operator in `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redundant_in_path: Option<u64>,
}

/// The source of a value, and its path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WaySource {
    /// The source.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The path in which the source was executed.
    pub path: Option<WayPath>,
}

/// A Ball–Larus path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WayPath {
    /// Its blocks.
    pub blocks: Vec<u32>,
    /// Its lines.
    pub lines: Vec<Position>,
}

/// Returns the most frequent routes to an operator, for programs.
pub(super) fn ways_of(
    scene: &RedundancyScene<'_>,
    operator: &OperatorRedundancy,
    most: usize,
) -> Result<Vec<Way>, PresentError> {
    let of = |way: &afterimage_analyses::redundancy::Way| {
        let of_path = in_path(operator, way.path);
        Ok(Way {
            times: way.times,
            same_execution: way.same,
            path: way_path(scene, way.path)?,
            from: WaySource {
                instruction: Shown::at(&scene.steps, way.source)?,
                path: way_path(scene, way.from)?,
            },
            executions_in_path: of_path.map(|of_path| of_path.executions),
            redundant_in_path: of_path.map(|of_path| of_path.redundant),
        })
    };
    operator.ways.iter().take(most).map(of).collect()
}

fn way_path(scene: &RedundancyScene<'_>, path: NodeId) -> Result<Option<WayPath>, PresentError> {
    let Some(node) = scene.paths.get(path) else {
        return Ok(None);
    };
    let files = scene.steps.source.files();
    let lines = lines(scene, path)?;
    let lines = lines.iter().map(|line| {
        let file = files.get(line.file.0 as usize);
        Position::line(file.map_or("", String::as_str), line.number)
    });
    Ok(Some(WayPath {
        blocks: node.blocks.iter().map(|b| b.as_u32()).collect(),
        lines: lines.collect(),
    }))
}
