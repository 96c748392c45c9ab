//! Reports the differences between two runs of one program.

mod json;
mod replaced;
mod text;
mod versions;

use std::io::Write;

use afterimage_analyses::diff::{
    CallPlace, Difference, Effect, OtherData, OutputDifference, Parting, Replaced,
};
use afterimage_analyses::slices::{Direction, SliceAbout, SliceQuery};
use afterimage_ids::{FuncId, OpId};
use afterimage_profile::{CodeFilter, Line};
use afterimage_program::{Block, Names};
use afterimage_replay::steps::{Step, What};

pub use self::json::DiffDocument;
pub(crate) use self::json::DiffEndings;
use self::json::diff_document;
pub use self::text::diff_text;
pub use self::versions::{VersionsDocument, VersionsView};
use crate::PresentError;
use crate::Sources;
use crate::document::begin;
use crate::document::objects::Position;
use crate::name::{short_function, without_parameters};
use crate::render::Render;
use crate::shell::shell_name;
use crate::slice::slice_command;
use crate::steps::StepScene;
use crate::table::{Paint, Style, plain};

/// The differences between two runs of one program.
#[derive(Clone, Debug)]
pub struct DiffReport {
    /// The names of the two recordings.
    pub names: [String; 2],
    /// The number of blocks in each execution.
    pub lengths: [u64; 2],
    /// The first difference; `None` if the runs are the same.
    pub first: Option<FirstDifference>,
    /// The place where control diverges, if it does.
    pub parting: Option<PartingDifference>,
    /// The places where the output of the runs differs.
    pub outputs: Vec<OutputPlaces>,
    /// The lines with different counts, largest differences first; `None` if lines are unknown.
    pub lines: Option<Vec<LineDifference>>,
    /// The number of lines with code that are known in both programs.
    pub known_lines: usize,
    /// The endings of the runs, if they differ.
    pub endings: Option<[DiffEnding; 2]>,
    /// The differences between their programs, if these are different but alike.
    pub alike: Option<AlikeReport>,
    /// The maximum number of rows in a list of the text form, if it is not the default.
    pub top: Option<usize>,
}

/// The ending of an execution, if the other execution ended differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffEnding {
    /// The ending, in words that follow the name of the recording; `None` if the end was not
    /// recorded.
    pub text: Option<String>,
    /// The command that explains the ending, if there is one.
    pub question: Option<String>,
}

impl DiffEnding {
    /// Returns the words that follow the name of the recording in a sentence.
    pub fn words(&self) -> &str {
        self.text
            .as_deref()
            .unwrap_or("ended in a way that its recording does not contain")
    }
}

/// The differences between two programs that are alike.
#[derive(Clone, Debug)]
pub struct AlikeReport {
    /// The operators that differ.
    pub replaced: Vec<ReplacedReport>,
    /// The data segments that differ.
    pub data: Vec<OtherData>,
}

/// An operator that differs in the second program.
#[derive(Clone, Debug)]
pub struct ReplacedReport {
    /// Its place.
    pub at: Replaced,
    /// The statement that uses the operator, if the operator is a constant. Line tables have lines
    /// only for statements.
    pub taker: Option<OpId>,
    /// Its text in each program.
    pub texts: [String; 2],
    /// Its effects in each run.
    pub effects: [Effect; 2],
}

/// The first difference between two runs.
#[derive(Clone, Debug)]
pub struct FirstDifference {
    /// The difference.
    pub difference: Difference,
    /// The number of the operator's execution, which is the same in both runs if both execute the
    /// operator.
    pub number: u64,
    /// The calls that are open at the difference.
    pub calls: Vec<CallPlace>,
}

/// The places where output differs.
#[derive(Clone, Debug)]
pub struct OutputPlaces {
    /// The difference.
    pub difference: OutputDifference,
    /// The numbers of the executions of the calls that write the differing output.
    pub numbers: [u64; 2],
}

/// The place where control diverges.
#[derive(Clone, Debug)]
pub struct PartingDifference {
    /// The place.
    pub parting: Parting,
    /// The steps that differ in the last common block. The last pair decides where control goes.
    pub decided: Vec<(Step, Step)>,
    /// The number of the execution of the deciding operator.
    pub number: u64,
    /// The calls that are open where control diverges.
    pub calls: Vec<CallPlace>,
}

/// The arrivals at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineDifference {
    /// The line.
    pub line: Line,
    /// The number of arrivals in each execution.
    pub counts: [u64; 2],
}

/// The maximum number of open calls to list for a difference.
const CALLS: usize = 6;

/// A place.
struct Spot {
    function: String,
    place: String,
    /// Its file and line. The file is the displayed part of the path.
    source: Option<(String, u32)>,
    /// Its source position, for programs.
    position: Option<Position>,
}

impl Spot {
    fn of(scene: &StepScene<'_>, function: FuncId, op: Option<OpId>) -> Result<Self, PresentError> {
        let found = match op {
            Some(op) => scene.operators.get(function, op)?,
            None => None,
        };
        let position = found.as_ref().and_then(|found| found.position);
        Ok(Self {
            function: plain(without_parameters(scene.names.function(function))),
            place: found
                .as_ref()
                .map_or(String::new(), |found| format!("@{}", found.offset)),
            source: position.map(|position| {
                let file = plain(scene.source.short_path(position.file));
                (file, position.line)
            }),
            position: position.map(|position| Position::new(scene.file(position), position)),
        })
    }

    /// Returns the place of a block's first operator with a source line or, if there is none, of
    /// its first operator.
    fn of_block(
        scene: &StepScene<'_>,
        function: FuncId,
        block: &Block,
    ) -> Result<Self, PresentError> {
        let ops = (block.ops.start.as_u32()..block.ops.end.as_u32()).map(OpId::from_u32);
        let mut first = None;
        for op in ops {
            let spot = Self::of(scene, function, Some(op))?;
            if spot.source.is_some() {
                return Ok(spot);
            }
            first = first.or(Some(spot));
        }
        match first {
            Some(spot) => Ok(spot),
            None => Self::of(scene, function, None),
        }
    }

    /// Formats the place: `file.c:42 in main`, or `@0x1f3 in main`.
    fn text(&self) -> String {
        let function = short_function(&self.function);
        match &self.source {
            Some((file, line)) => format!("{file}:{line} in {function}"),
            None if self.place.is_empty() => function,
            None => format!("{} in {function}", self.place),
        }
    }
}

/// Returns the displayed name of an imported function, without the prefix that wasi-libc adds to
/// the names of WASI functions.
fn import_name(names: &Names, function: FuncId) -> String {
    let name = names.function(function);
    let short = name.strip_prefix("__imported_wasi_snapshot_preview1_");
    plain(short.unwrap_or(name))
}

/// A follow-up question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextQuestion {
    /// The command, for people.
    pub command: String,
    /// The index of the recording and the query, if the question is a slice.
    pub slice: Option<(usize, SliceQuery)>,
}

impl NextQuestion {
    /// Creates a question that is not a slice.
    fn new(command: String) -> Self {
        let slice = None;
        Self { command, slice }
    }

    fn slice(names: [&str; 2], side: usize, query: SliceQuery) -> Self {
        Self {
            command: slice_command(names[side], &query),
            slice: Some((side, query)),
        }
    }
}

/// Adds a question, unless the list already has it.
fn ask(questions: &mut Vec<NextQuestion>, question: NextQuestion) {
    if !questions.contains(&question) {
        questions.push(question);
    }
}

/// Returns the query for the slice of an execution of an operator.
fn slice_of(place: &str, number: u64) -> SliceQuery {
    let at = format!("{place}#{number}");
    SliceQuery::new(SliceAbout::Statement { at })
}

/// Returns the command that explains the origin of a value in an operator's execution.
fn why_command(name: &str, place: &str, number: u64) -> String {
    format!("afterimage why {} --at {place}#{number}", shell_name(name))
}

/// Returns the command that explains the value of one of two differing steps, or `None` if there is
/// no value to explain.
fn why_of(name: &str, place: &str, number: u64, [step, other]: [&Step; 2]) -> Option<String> {
    let at = why_command(name, place, number);
    match (&step.what, &other.what) {
        // The run ended with this step, so ask about the trap.
        (What::Trap(..), _) => Some(format!("afterimage why {} --trap", shell_name(name))),
        (
            What::HostReturn(..)
            | What::HostWrite(..)
            | What::HostRead(..)
            | What::Copy { .. }
            | What::Fill(..)
            | What::Init { .. },
            _,
        ) => None,
        // The difference is in an argument, so ask about the argument instead of the result of the
        // call.
        (What::Call { arguments: x, .. }, What::Call { arguments: y, .. }) => {
            let differ = x.iter().zip(y).position(|(x, y)| x != y);
            Some(match differ {
                Some(argument) => format!("{at} --operand {}", argument + 1),
                None => at,
            })
        }
        _ => Some(at),
    }
}

/// Returns the query for the slice of a differing step: backward to its causes, or forward to its
/// effects.
fn slice_about(place: &str, number: u64, step: &Step) -> SliceQuery {
    match &step.what {
        What::Trap(..) => SliceQuery::new(SliceAbout::Trap),
        // The data comes from the host, so only its effects can be followed.
        What::HostReturn(..) | What::HostWrite(..) => SliceQuery {
            direction: Direction::Forward,
            ..slice_of(place, number)
        },
        _ => slice_of(place, number),
    }
}

/// Returns the commands that explain the first differing byte, for each execution that wrote it.
fn asked_of_output<'q>(
    names: [&'q str; 2],
    output: &'q OutputDifference,
) -> impl Iterator<Item = String> + use<'q> {
    let stream = match output.descriptor {
        1 => Some("--stdout"),
        2 => Some("--stderr"),
        _ => None,
    };
    let sides = names.into_iter().zip([&output.a, &output.b]);
    sides.filter_map(move |(name, written)| {
        let (stream, _) = stream.zip(written.as_ref())?;
        let name = shell_name(name);
        Some(format!("afterimage why {name} {stream} {}", output.offset))
    })
}

/// Writes how two runs ended, on one line, if they ended differently.
fn ended(
    out: &mut dyn Write,
    names: [&str; 2],
    endings: Option<&[DiffEnding; 2]>,
    style: Style,
) -> Result<(), PresentError> {
    let Some([a, b]) = endings else {
        return Ok(());
    };
    let line = format!("{} {}; {} {}", names[0], a.words(), names[1], b.words());
    let line = plain(&line);
    writeln!(out, "{}", style.paint(Paint::Bold, &line))?;
    Ok(())
}

impl DiffReport {
    fn names(&self) -> [&str; 2] {
        self.names.each_ref().map(String::as_str)
    }

    /// Returns follow-up questions: about a replaced operator, the end of an execution, the
    /// operator that decided where control went, the output, or the first difference.
    ///
    /// # Errors
    /// Returns an error if the module cannot be read.
    pub fn questions(
        &self,
        scenes: &[StepScene<'_>; 2],
    ) -> Result<Vec<NextQuestion>, PresentError> {
        let mut questions = Vec::from_iter(self.guilty(&scenes[1])?);
        let endings = self.endings.iter().flatten();
        for question in endings.filter_map(|ending| ending.question.clone()) {
            ask(&mut questions, NextQuestion::new(question));
        }
        let decided = self.parting.as_ref().and_then(|parting| {
            let (a, b) = parting.decided.last()?;
            Some(([a, b], parting.number))
        });
        let first = self.first.as_ref().and_then(|first| {
            let (a, b) = (first.difference.a.as_ref()?, first.difference.b.as_ref()?);
            let same = (a.function, a.op) == (b.function, b.op);
            same.then_some(([a, b], first.number))
        });
        if let Some((steps, number)) = decided.or(first) {
            let mut slices = Vec::new();
            for side in [0, 1] {
                let (step, other) = (steps[side], steps[1 - side]);
                let Some(op) = step.op else { continue };
                let spot = Spot::of(&scenes[side], step.function, Some(op))?;
                let name = self.names()[side];
                if let Some(why) = why_of(name, &spot.place, number, [step, other]) {
                    ask(&mut questions, NextQuestion::new(why));
                }
                let slice = slice_about(&spot.place, number, step);
                slices.push(NextQuestion::slice(self.names(), side, slice));
            }
            for slice in slices {
                ask(&mut questions, slice);
            }
        }
        for output in &self.outputs {
            for question in asked_of_output(self.names(), &output.difference) {
                ask(&mut questions, NextQuestion::new(question));
            }
        }
        Ok(questions)
    }
}

/// A comparison of two runs, with their programs.
pub struct DiffView<'r> {
    /// The programs.
    pub scenes: [StepScene<'r>; 2],
    /// The differences.
    pub report: DiffReport,
    /// Source text.
    pub sources: &'r dyn Sources,
    /// The code whose lines the text form lists.
    pub code: &'r CodeFilter,
}

impl DiffView<'_> {
    /// Returns follow-up questions.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn questions(&self) -> Result<Vec<NextQuestion>, PresentError> {
        self.report.questions(&self.scenes)
    }
}

impl DiffView<'_> {
    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<DiffDocument, PresentError> {
        diff_document(&self.scenes, &self.report)
    }
}

impl Render for DiffView<'_> {
    const NAME: &'static str = "a comparison of two recordings";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        let shown = (self.sources, self.code);
        diff_text(out, &self.scenes, &self.report, shown)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }
}
