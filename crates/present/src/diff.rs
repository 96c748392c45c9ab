//! Two executions of one program compared.

mod json;
mod replaced;
mod text;
mod versions;

use afterimage_ids::{FuncId, OpId};
use afterimage_program::{Block, Names, Program};
use afterimage_query::Line;
use afterimage_query::diff::{
    CallPlace, Difference, Effect, OtherData, OutputDifference, Parting, Replaced,
};
use afterimage_query::steps::{Step, What};

pub use self::json::diff_json;
pub use self::text::diff_text;
pub use self::versions::{versions_json, versions_text};
use crate::PresentError;
use crate::name::without_parameters;
use crate::shell::shell_name;
use crate::steps::StepScene;
use crate::table::plain;
use crate::text::short;

/// How two executions of one program differ.
#[derive(Clone, Debug)]
pub struct DiffReport<'r> {
    /// What the two recordings are called.
    pub names: [&'r str; 2],
    /// The program.
    pub program: &'r Program,
    /// How many blocks they executed.
    pub lengths: [u64; 2],
    /// The first thing that they do differently; `None` if they are the same.
    pub first: Option<FirstDifference>,
    /// Where control parts, if it does.
    pub parting: Option<PartingDifference>,
    /// Where what they put out differs.
    pub outputs: Vec<OutputPlaces>,
    /// The lines that were executed differently often, those whose counts differ most first; `None` if lines are not known.
    pub lines: Option<Vec<LineDifference>>,
    /// How many lines there are.
    pub known_lines: usize,
    /// If they are of two programs that are alike, what these do not have in common.
    pub alike: Option<AlikeReport>,
    /// So many rows of a list text shows at most, if not as many as usual.
    pub top: Option<usize>,
}

/// What two programs that are alike do not have in common.
#[derive(Clone, Debug)]
pub struct AlikeReport {
    /// The operators that are others.
    pub replaced: Vec<ReplacedReport>,
    /// The data segments that hold other bytes.
    pub data: Vec<OtherData>,
}

/// An operator that is another one in the second program.
#[derive(Clone, Debug)]
pub struct ReplacedReport {
    /// Where.
    pub at: Replaced,
    /// What it is, in each.
    pub texts: [String; 2],
    /// What it did, in each.
    pub effects: [Effect; 2],
}

/// The first thing that two executions do differently.
#[derive(Clone, Debug)]
pub struct FirstDifference {
    /// What.
    pub difference: Difference,
    /// The which execution of its operator it is: the same in both, if both execute it.
    pub number: u64,
    /// The calls that are open there.
    pub calls: Vec<CallPlace>,
}

/// Where what is put out differs.
#[derive(Clone, Debug)]
pub struct OutputPlaces {
    /// What.
    pub difference: OutputDifference,
    /// The which executions the calls are that put it out.
    pub numbers: [u64; 2],
}

/// Where control parts.
#[derive(Clone, Debug)]
pub struct PartingDifference {
    /// Where.
    pub parting: Parting,
    /// What the last block that both executed did differently, in each; the last of it decides.
    pub decided: Vec<(Step, Step)>,
    /// The which execution of the deciding operator it is.
    pub number: u64,
    /// The calls that are open there.
    pub calls: Vec<CallPlace>,
}

/// How often a line was arrived at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineDifference {
    /// The line.
    pub line: Line,
    /// How often, in each.
    pub counts: [u64; 2],
}

/// Where something is.
struct Spot {
    function: String,
    place: String,
    source: Option<(String, u32)>,
}

impl Spot {
    fn of(scene: &StepScene<'_>, function: FuncId, op: Option<OpId>) -> Result<Self, PresentError> {
        let found = match op {
            Some(op) => scene.operators.get(function, op)?,
            None => None,
        };
        Ok(Self {
            function: plain(without_parameters(scene.names.function(function))),
            place: found
                .as_ref()
                .map_or(String::new(), |found| format!("@{}", found.offset)),
            source: found.and_then(|found| found.position).map(|position| {
                let file = plain(short(scene.file(position)));
                (file, position.line)
            }),
        })
    }

    /// Where a block begins.
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

    /// `file.c:42 in main`, or `@0x1f3 in main`.
    fn text(&self) -> String {
        match &self.source {
            Some((file, line)) => format!("{file}:{line} in {}", self.function),
            None if self.place.is_empty() => self.function.clone(),
            None => format!("{} in {}", self.place, self.function),
        }
    }
}

/// What people call an imported function: its name in the interface, where the module gives it a longer one.
fn import_name(names: &Names, function: FuncId) -> String {
    let name = names.function(function);
    let short = name.strip_prefix("__imported_wasi_snapshot_preview1_");
    plain(short.unwrap_or(name))
}

/// A command that tells what led to an operator's execution.
fn command(verb: &str, name: &str, place: &str, number: u64) -> String {
    format!(
        "afterimage {verb} {} --at {place}#{number}",
        shell_name(name)
    )
}

/// Whether the run ended with a step: of that one cannot ask as of others.
fn trapped(step: &Step) -> bool {
    matches!(step.what, What::Trap(..))
}

impl DiffReport<'_> {
    /// Where to go on asking: at the operator that decided where control went, at the calls that put out something else, or at what differs first.
    fn questions(&self, scenes: &[StepScene<'_>; 2]) -> Result<Vec<String>, PresentError> {
        let mut questions = self.guilty(&scenes[1])?;
        let decided = self.parting.as_ref().and_then(|parting| {
            let (a, b) = parting.decided.last()?;
            let of = |step: &Step| Some((step.function, step.op?, parting.number, trapped(step)));
            Some([of(a)?, of(b)?])
        });
        let put_out = self.outputs.first().and_then(|output| {
            let (a, b) = (output.difference.a.as_ref()?, output.difference.b.as_ref()?);
            let [of_a, of_b] = output.numbers;
            Some([
                (a.function, a.op, of_a, false),
                (b.function, b.op, of_b, false),
            ])
        });
        let first = self.first.as_ref().and_then(|first| {
            let (a, b) = (first.difference.a.as_ref()?, first.difference.b.as_ref()?);
            let of = |step: &Step| Some((step.function, step.op?, first.number, trapped(step)));
            let same = (a.function, a.op) == (b.function, b.op);
            same.then_some([of(a)?, of(b)?])
        });
        if let Some(places) = decided.or(put_out).or(first) {
            for verb in ["why", "slice"] {
                let sides = self.names.into_iter().zip(scenes).zip(places);
                for ((name, scene), (function, op, number, trapped)) in sides {
                    let spot = Spot::of(scene, function, Some(op))?;
                    if trapped {
                        questions.push(format!("afterimage {verb} {} --trap", shell_name(name)));
                        continue;
                    }
                    questions.push(command(verb, name, &spot.place, number));
                }
            }
        }
        Ok(questions)
    }
}
