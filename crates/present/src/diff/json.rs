//! Writes the differences between two runs as JSON.

use afterimage_analyses::diff::{CallPlace, HostBytes, Written};
use afterimage_ids::{BlockId, FuncId};
use afterimage_replay::steps::Step;
use schemars::JsonSchema;
use serde::Serialize;

use super::replaced::{AlikeDocument, alike_document};
use super::{CALLS, DiffEnding, DiffReport, OutputPlaces, Spot};
use crate::document::objects::{Function, Position};
use crate::document::{Document, NoRows, at_most};
use crate::steps::StepScene;
use crate::{PresentError, StepRow};

/// The differences between two runs of one program, or of two programs that are alike.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffDocument {
    /// The first run.
    pub a: DiffSide,
    /// The second run.
    pub b: DiffSide,
    /// The differences between the programs; `null` if they are the same.
    pub alike: Option<AlikeDocument>,
    /// Whether the two runs are the same.
    pub same: bool,
    /// The endings of the runs, if they differ.
    pub endings: Option<DiffEndings>,
    /// The first difference.
    pub first: Option<DiffFirst>,
    /// The place where control diverges.
    pub control: Option<DiffControl>,
    /// The file descriptors to which `fd_write` wrote different bytes.
    pub outputs: Vec<DiffOutput>,
    /// The lines with different numbers of arrivals; `null` if no lines are known or requested.
    pub lines: Option<Vec<DiffLine>>,
    /// The number of lines that `--limit` left out.
    pub more_lines: usize,
    /// Commands to continue with.
    pub questions: Vec<String>,
}

impl Document for DiffDocument {
    const NAME: &'static str = "diff";
    const COMMAND: &'static str = "diff";
    type Row = NoRows;
}

/// A run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffSide {
    /// The recording.
    pub file: String,
    /// The number of executed blocks.
    pub length: u64,
}

/// The endings of two runs, in the words of `ending` in `afterimage/info/2`; `null` if the
/// end was not recorded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffEndings {
    /// The ending of the first run.
    pub a: Option<String>,
    /// The ending of the second run.
    pub b: Option<String>,
}

impl DiffEndings {
    pub(crate) fn new(endings: Option<&[DiffEnding; 2]>) -> Option<Self> {
        endings.map(|[a, b]| Self {
            a: a.text.clone(),
            b: b.text.clone(),
        })
    }
}

/// The first difference between two runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffFirst {
    /// The number of the differing operator's execution, from 1.
    pub number: u64,
    /// The step of the first run; `null` if that run has ended.
    pub a: Option<StepRow>,
    /// The step of the second run; `null` if that run has ended.
    pub b: Option<StepRow>,
    /// The differing bytes, if the host wrote or read different bytes at the same place.
    pub bytes: Option<DiffBytes>,
    /// The calls that are open at the difference, the innermost first. At most six are listed.
    pub calls: Vec<DiffCall>,
}

/// Bytes that differ.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffBytes {
    /// The offset of the first differing byte, from 0.
    pub offset: u64,
    /// The first run's bytes from `offset` on, at most 32.
    pub a: Vec<u8>,
    /// The second run's bytes from `offset` on, at most 32.
    pub b: Vec<u8>,
}

impl From<&HostBytes> for DiffBytes {
    fn from(bytes: &HostBytes) -> Self {
        Self {
            offset: bytes.offset,
            a: bytes.a.clone(),
            b: bytes.b.clone(),
        }
    }
}

/// A call that is open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffCall {
    /// The time of its block.
    pub t: u64,
    /// Its function.
    pub function: Function,
    /// The call: `@0x1f3`.
    pub at: String,
    /// Its line, if known.
    pub source: Option<Position>,
}

/// The place where control diverges.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffControl {
    /// The time of the first block that differs.
    pub t: u64,
    /// The number of the execution of the deciding operator, from 1.
    pub number: u64,
    /// The steps that differ in the previous block. The last entry decided where control went.
    pub decided: Vec<DiffDecided>,
    /// The differing block of the first run; `null` if the run has ended.
    pub a: Option<DiffBlock>,
    /// The differing block of the second run; `null` if the run has ended.
    pub b: Option<DiffBlock>,
    /// The calls that are open where control diverges, the innermost first. At most six are listed.
    pub calls: Vec<DiffCall>,
}

/// A step that differs between the two runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffDecided {
    /// The first run's step.
    pub a: StepRow,
    /// The second run's step.
    pub b: StepRow,
}

/// A block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffBlock {
    /// Its function.
    pub function: Function,
    /// Its number.
    pub block: u32,
}

/// A file descriptor to which different bytes were written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffOutput {
    /// The descriptor.
    pub descriptor: u32,
    /// The offset of the first differing byte, from 0.
    pub offset: u64,
    /// The number of the line of output that contains the first differing byte, from 1.
    pub output_line: u64,
    /// The bytes that precede the difference in its line of output.
    pub before: Vec<u8>,
    /// The output of the first run; `null` if its output ends earlier.
    pub a: Option<DiffWritten>,
    /// The output of the second run; `null` if its output ends earlier.
    pub b: Option<DiffWritten>,
}

/// The differing output of one run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffWritten {
    /// The bytes, up to the end of the line or of the write.
    pub bytes: Vec<u8>,
    /// The time of the call's block.
    pub t: u64,
    /// The function that makes the call.
    pub function: Function,
    /// The call: `@0x1f3`.
    pub at: String,
}

/// A line that ran a different number of times.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DiffLine {
    /// The line.
    pub source: Position,
    /// The number of times that the first run arrived at the line.
    pub a: u64,
    /// The number of times that the second run arrived at the line.
    pub b: u64,
}

/// Returns the document.
///
/// # Errors
/// Returns an error if the module cannot be read.
pub(crate) fn diff_document(
    scenes: &[StepScene<'_>; 2],
    report: &DiffReport,
) -> Result<DiffDocument, PresentError> {
    let scene = &scenes[0];
    let step = |scene: &StepScene<'_>, step: &Option<Step>| {
        let step = step.as_ref();
        step.map(|step| StepRow::new(scene, step)).transpose()
    };
    let first = report.first.as_ref().map(|first| {
        Ok::<_, PresentError>(DiffFirst {
            number: first.number,
            a: step(scene, &first.difference.a)?,
            b: step(&scenes[1], &first.difference.b)?,
            bytes: first.difference.bytes.as_ref().map(DiffBytes::from),
            calls: calls(scene, &first.calls[..first.calls.len().min(CALLS)])?,
        })
    });
    let block = |scene: &StepScene<'_>, block: Option<(FuncId, BlockId)>| {
        block.map(|(function, block)| DiffBlock {
            function: Function::new(scene.names, function),
            block: block.as_u32(),
        })
    };
    let control = report.parting.as_ref().map(|parting| {
        let decided = parting.decided.iter().map(|(a, b)| {
            Ok(DiffDecided {
                a: StepRow::new(scene, a)?,
                b: StepRow::new(&scenes[1], b)?,
            })
        });
        Ok::<_, PresentError>(DiffControl {
            t: parting.parting.time,
            number: parting.number,
            decided: decided.collect::<Result<_, PresentError>>()?,
            a: block(scene, parting.parting.a),
            b: block(&scenes[1], parting.parting.b),
            calls: calls(scene, &parting.calls[..parting.calls.len().min(CALLS)])?,
        })
    });
    let outputs = report.outputs.iter().map(|places| {
        let OutputPlaces {
            difference: output, ..
        } = places;
        Ok(DiffOutput {
            descriptor: output.descriptor,
            offset: output.offset,
            output_line: output.line,
            before: output.before.clone(),
            a: written(scene, output.a.as_ref())?,
            b: written(&scenes[1], output.b.as_ref())?,
        })
    });
    let files = scene.source.files();
    let lines = report.lines.as_ref().map(|lines| {
        let lines = lines.iter().map(|row| DiffLine {
            source: Position::line(
                files
                    .get(row.line.file.0 as usize)
                    .map_or("", String::as_str),
                row.line.number,
            ),
            a: row.counts[0],
            b: row.counts[1],
        });
        at_most(lines.collect(), report.top)
    });
    let (lines, more_lines) = lines.unzip();
    let side = |at: usize| DiffSide {
        file: report.names[at].clone(),
        length: report.lengths[at],
    };
    let alike = report.alike.as_ref();
    Ok(DiffDocument {
        a: side(0),
        b: side(1),
        alike: alike
            .map(|alike| alike_document(scenes, alike, report.top))
            .transpose()?,
        same: report.first.is_none() && report.endings.is_none(),
        endings: DiffEndings::new(report.endings.as_ref()),
        first: first.transpose()?,
        control: control.transpose()?,
        outputs: outputs.collect::<Result<_, PresentError>>()?,
        lines,
        more_lines: more_lines.unwrap_or_default(),
        questions: {
            let questions = report.questions(scenes)?;
            questions.into_iter().map(|it| it.command).collect()
        },
    })
}

fn calls(scene: &StepScene<'_>, calls: &[CallPlace]) -> Result<Vec<DiffCall>, PresentError> {
    let one = |call: &CallPlace| {
        let spot = Spot::of(scene, call.function, Some(call.op))?;
        Ok(DiffCall {
            t: call.time,
            function: Function::new(scene.names, call.function),
            at: spot.place,
            source: spot.position,
        })
    };
    calls.iter().map(one).collect()
}

fn written(
    scene: &StepScene<'_>,
    written: Option<&Written>,
) -> Result<Option<DiffWritten>, PresentError> {
    let one = |written: &Written| {
        let spot = Spot::of(scene, written.function, Some(written.op))?;
        Ok(DiffWritten {
            bytes: written.bytes.clone(),
            t: written.time,
            function: Function::new(scene.names, written.function),
            at: spot.place,
        })
    };
    written.map(one).transpose()
}
