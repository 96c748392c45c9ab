//! Reports whether a recording is sound.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{Document, NoRows, begin};
use crate::info::LEFT_OVER;
use crate::number::{counted, grouped};
use crate::plain::plain;
use crate::render::Render;
use crate::{PresentError, Style};

/// Whether a recording is sound. Even a recording that was cut off can be sound. Its log and path
/// then end with the last recorded event and block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifyReport {
    /// Whether no fault was found.
    pub sound: bool,
    /// The number of bytes checked.
    pub bytes: u64,
    /// The number of chunks checked.
    pub chunks: u64,
    /// The number of sections checked.
    pub sections: u64,
    /// The number of events in the log.
    pub events: u64,
    /// Whether the file says how the run ended.
    pub ended: bool,
    /// The number of bytes after its last complete state.
    pub ignored_bytes: u64,
    /// `true` if an interrupted addition left the ignored bytes, so that they are not damage;
    /// otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The checks of the path, if there is one.
    pub path: Option<VerifiedPath>,
    /// The number of moments at which the run was confirmed to agree with its path, if the path was
    /// written live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moments: Option<u64>,
    /// The windows of values that were confirmed by following the run.
    pub values: Option<Vec<VerifiedValues>>,
    /// The simulations that were repeated, if any are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulations: Option<Vec<VerifiedSimulation>>,
    /// The slices that were computed again, if any are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<Vec<VerifiedSlice>>,
    /// The limit that prevents afterimage from following the run, and so from storing values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_followed: Option<String>,
    /// Whether a re-execution gave the same run; `null` if none was tried.
    pub repeats: Option<bool>,
    /// Why the run cannot be re-executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// The faults, in words.
    pub findings: Vec<String>,
}

/// The checks of a path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifiedPath {
    /// The number of segments.
    pub segments: u64,
    /// The number of distinct paths.
    pub nodes: u64,
    /// The number of executed blocks.
    pub blocks: u64,
    /// A description of the parts that were left out of the path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub left_out: String,
    /// Whether the path was compared with the counts in the file.
    pub counts: bool,
    /// Whether the path was compared with the recorded end.
    pub end: bool,
}

/// Values that were confirmed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifiedValues {
    /// The number of executed statements.
    pub statements: u64,
    /// The first block.
    pub first: u64,
    /// The last block.
    pub last: u64,
}

/// A simulation that was repeated.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifiedSimulation {
    /// The options that request it.
    pub simulation: String,
    /// The number of executions.
    pub executions: u64,
}

/// A slice that was computed again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerifiedSlice {
    /// Its name.
    pub slice: String,
    /// The number of executions in it.
    pub executions: u64,
}

impl Document for VerifyReport {
    const NAME: &'static str = "verify";
    const COMMAND: &'static str = "verify";
    type Row = NoRows;
}

impl Render for VerifyReport {
    const NAME: &'static str = "a verification";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        text(out, self)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

fn path_text(out: &mut dyn Write, path: &VerifiedPath) -> Result<(), PresentError> {
    let against = match (path.counts, path.end) {
        (true, true) => ", compared with the counts and the end",
        (true, false) => ", compared with the counts",
        (false, true) => ", compared with the end",
        (false, false) => "",
    };
    let [blocks, nodes, segments] = [
        (path.blocks, "executed block"),
        (path.nodes, "path"),
        (path.segments, "segment"),
    ]
    .map(|(n, noun)| counted(n, noun));
    match path.left_out.as_str() {
        "" => writeln!(out, "whole path: {blocks}, {nodes} in {segments}{against}")?,
        left_out => writeln!(
            out,
            "path of {blocks} without {left_out}: {nodes} in {segments}{against}"
        )?,
    }
    Ok(())
}

fn text(out: &mut dyn Write, d: &VerifyReport) -> Result<(), PresentError> {
    for finding in &d.findings {
        writeln!(out, "{}", plain(finding))?;
    }
    let verdict = match (d.sound, d.ended) {
        (true, true) => "sound",
        (true, false) => "cut off, but sound as far as it goes",
        (false, _) => "NOT sound",
    };
    let [bytes, chunks, sections, events] = [
        (d.bytes, "byte"),
        (d.chunks, "chunk"),
        (d.sections, "section"),
        (d.events, "event"),
    ]
    .map(|(n, noun)| counted(n, noun));
    writeln!(out, "{verdict}: {bytes}, {chunks} in {sections}, {events}")?;
    if let Some(path) = &d.path {
        path_text(out, path)?;
    }
    if let Some(moments) = d.moments.filter(|_| d.sound) {
        writeln!(
            out,
            "path written live: it agrees with the run at {}",
            counted(moments, "moment")
        )?;
    }
    for values in d.values.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "values of {} from t={} to t={}: the same when the run is followed again, without the engine",
            counted(values.statements, "executed statement"),
            grouped(values.first),
            grouped(values.last)
        )?;
    }
    for row in d.simulations.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "history of {}, {}: the same when it is simulated again",
            counted(row.executions, "execution"),
            row.simulation
        )?;
    }
    for row in d.slices.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "slice {:?}, {}: the same when it is computed again",
            row.slice,
            counted(row.executions, "execution")
        )?;
    }
    if let Some(why) = &d.not_followed {
        writeln!(out, "not followed: {}", plain(why))?;
    }
    match (d.ended, d.repeats) {
        (false, _) => {
            let reaches = match &d.path {
                Some(path) if path.blocks > 0 => format!(
                    "{} and its path after {}",
                    counted(d.events, "event"),
                    counted(path.blocks, "executed block")
                ),
                _ => counted(d.events, "event"),
            };
            writeln!(
                out,
                "the recording was cut off: its log ends after {reaches} and does not contain the end of the run, so the run cannot be repeated"
            )?;
        }
        (true, Some(true)) => writeln!(
            out,
            "re-executed: the same calls, the same results, the same ending"
        )?,
        (true, Some(false)) => {}
        (true, None) => match &d.obstacle {
            Some(obstacle) => writeln!(out, "not re-executed: {}", plain(obstacle))?,
            None => writeln!(out, "not re-executed")?,
        },
    }
    if d.interrupted {
        writeln!(out, "{} {LEFT_OVER}", counted(d.ignored_bytes, "byte"))?;
    } else if d.ignored_bytes > 0 {
        writeln!(
            out,
            "{} after the last complete state {} ignored",
            counted(d.ignored_bytes, "byte"),
            if d.ignored_bytes == 1 { "is" } else { "are" }
        )?;
    }
    Ok(())
}
