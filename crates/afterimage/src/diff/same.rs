//! Compares two recordings of the same program, or of two programs that are alike.

use std::cell::Cell;

use afterimage_analyses::diff::{
    Alike, OutputDifference, Parting, Side, Written, calls_around, effects, executed_by,
    first_difference, output_differences, parting,
};
use afterimage_ids::OpId;
use afterimage_present::{
    AlikeReport, DiffReport, DiffView, FirstDifference, OutputPlaces, PartingDifference,
    ReplacedReport, Sources, StepScene, Style,
};
use afterimage_profile::{operator_texts, readable};
use afterimage_replay::steps::{Level, Run, Step, Steps, Wanted, What, Within};
use afterimage_replay::values::Types;
use afterimage_replay::whole_path::{FileSegments, Window};
use afterimage_trace::{LogReader, TraceError};
use anyhow::{Context, Error, Result, bail};

use super::counts;
use crate::Session;
use crate::inputs::{RANDOM, endings, remark_different_inputs, remark_random_numbers};
use crate::monitor::Work;
use crate::path::refuse_gaps;

/// The maximum number of calls around a difference to search for the user's own code.
const FRAMES: usize = 64;

/// The data needed to follow a recording.
struct Opened<'a> {
    traced: &'a Session,
    run: Run<'a, FileSegments>,
}

impl Opened<'_> {
    fn log(&self) -> impl Fn() -> Result<LogReader, TraceError> + use<'_> {
        || self.traced.file().log()
    }
}

/// The options for comparing and showing two runs of the same program.
pub struct SameQuery<'s> {
    /// Whether to also compare how often lines were executed.
    pub lines: bool,
    /// The maximum number of rows in each list, or `None` for the default.
    pub top: Option<usize>,
    pub sources: &'s dyn Sources,
    pub style: Style,
}

/// Compares two runs of the same program, or of two programs that are `alike`, and passes the
/// differences to `ask`.
///
/// # Errors
/// Returns an error if a run cannot be followed, or `ask` fails.
pub fn same<R>(
    [a, b]: [&Session; 2],
    alike: Option<Alike>,
    query: &SameQuery<'_>,
    ask: impl FnOnce(&DiffView<'_>) -> Result<R>,
) -> Result<R> {
    let is_alike = alike.is_some();
    if is_alike {
        remark_different_inputs([a, b], "was changed in the program")?;
    }
    let found = found(a, b, alike)?;
    let first = found.first.as_ref();
    if !is_alike && first.is_some_and(|first| is_random(a, first)) {
        remark_random_numbers([a, b])?;
    }
    let sources = [a, b].map(Session::source_map);
    let names = [a, b].map(Session::program_names);
    let operators = [a, b].map(Session::operators);
    let mut lines = (None, 0);
    // Lines are compared by the numbers of their files, which are the same if the lists of files
    // are equal.
    let known = !sources[0].files().is_empty() && sources[0].files() == sources[1].files();
    if found.first.is_some() && query.lines && known {
        let of_a = counts::line_counts(a, names[0], sources[0])?;
        let of_b = counts::line_counts(b, names[1], sources[1])?;
        if let (Some(of_a), Some(of_b)) = (of_a, of_b) {
            let (rows, known) = counts::differences(&of_a, &of_b);
            lines = (Some(rows), known);
        }
    }
    let report = DiffReport {
        names: [a, b].map(|session| session.at().display().to_string()),
        lengths: [a.path()?.length(), b.path()?.length()],
        first: found.first,
        parting: found.parting,
        outputs: found.outputs,
        lines: lines.0,
        known_lines: lines.1,
        endings: endings([a, b])?,
        alike: found.alike,
        top: query.top,
    };
    let scenes = [0, 1].map(|side| StepScene {
        own: None,
        names: names[side],
        operators: &operators[side],
        source: sources[side],
        memories: a.program().memories,
        style: query.style,
    });
    ask(&DiffView {
        scenes,
        report,
        sources: query.sources,
        code: a.code(),
    })
}

/// Whether two runs of a program first differ in random numbers.
fn is_random(of: &Session, first: &FirstDifference) -> bool {
    let step = first.difference.a.as_ref().map(|step| &step.what);
    let Some(&What::HostWrite(function, _)) = step else {
        return false;
    };
    let import = of.program().imports.get(function.as_u32() as usize);
    import.is_some_and(|import| import.name == RANDOM)
}

/// The result of following both runs.
struct Compared {
    first: Option<FirstDifference>,
    parting: Option<PartingDifference>,
    outputs: Vec<OutputPlaces>,
    alike: Option<AlikeReport>,
}

fn found(a: &Session, b: &Session, alike: Option<Alike>) -> Result<Compared> {
    let checkpoints = (checkpoints(a)?, checkpoints(b)?);
    let work = Work::Question("following both runs");
    let length = a.path()?.length() + b.path()?.length();
    let progress = a.monitor().begin(work, Some(length));
    let half = Cell::new(0);
    let tell = |time: u64| progress(half.get() + time);
    let opened = |traced, checkpoints| opened(traced, checkpoints, &tell);
    let sides = [opened(a, checkpoints.0)?, opened(b, checkpoints.1)?];
    let logs = (sides[0].log(), sides[1].log());
    let a_side = Side {
        run: sides[0].run,
        log: &logs.0,
    };
    let b_side = Side {
        run: sides[1].run,
        log: &logs.1,
    };
    let replaced_operators = alike.as_ref().map_or(&[][..], |alike| &alike.replaced);
    let first = first_difference(a_side, b_side, replaced_operators)?;
    half.set(a.path()?.length().min(b.path()?.length()));
    let (first, parted, outputs) = match first {
        None => (None, None, Vec::new()),
        Some(difference) => {
            let step = difference.a.as_ref().or(difference.b.as_ref());
            let traced = if difference.a.is_some() { a } else { b };
            let first = match step {
                None => bail!(
                    "the recordings differ where neither continues; this is a bug in afterimage"
                ),
                Some(step) => FirstDifference {
                    number: match step.op {
                        Some(op) => number(traced, step, op)?,
                        None => 1,
                    },
                    calls: calls_around(traced.path()?, traced.program(), step.time, FRAMES)?,
                    difference,
                },
            };
            let parted = match parting(a.path()?, b.path()?)? {
                Some(parting) => Some(decision(a, [&sides[0], &sides[1]], parting)?),
                None => None,
            };
            (
                Some(first),
                parted,
                outputs(a, b, output_differences(a_side, b_side)?.differences)?,
            )
        }
    };
    let alike = match alike {
        Some(alike) => Some(replaced(alike, [(a, a_side), (b, b_side)])?),
        None => None,
    };
    Ok(Compared {
        first,
        parting: parted,
        outputs,
        alike,
    })
}

/// Returns the effects of replaced operators.
fn replaced<'a>(
    alike: Alike,
    [a, b]: [(&'a Session, Side<'a, FileSegments>); 2],
) -> Result<AlikeReport> {
    let module = |traced: &'a Session| (traced.program(), traced.bytes());
    let mut texts = Vec::new();
    for (traced, _) in [a, b] {
        let (program, bytes) = module(traced);
        let mut offsets = Vec::new();
        for at in &alike.replaced {
            let function = program.function(at.function);
            let mut operators = function.map(|function| program.operators(bytes, function));
            let found = operators
                .as_mut()
                .and_then(|all| all.nth(at.op.as_u32() as usize));
            let (_, offset, _) = found.context("a replaced operator is not in its module")?;
            offsets.push(offset);
        }
        let found = operator_texts(bytes, &offsets)?;
        texts.push(found.into_iter().map(|text| readable(text.trim())));
    }
    let of_a = effects(a.1, module(b.0), &alike.replaced)?;
    let of_b = effects(b.1, module(a.0), &alike.replaced)?;
    let mut texts = texts.into_iter();
    let texts = texts
        .next()
        .into_iter()
        .flatten()
        .zip(texts.next().into_iter().flatten());
    let effects = of_a.into_iter().zip(of_b);
    let all = alike.replaced.iter().zip(texts).zip(effects);
    let types = Types::new(b.0.program(), b.0.bytes());
    let replaced = all.map(|((&at, texts), effects)| ReplacedReport {
        at,
        taker: types
            .statements(at.function)
            .and_then(|ssa| ssa.taker_of(at.op)),
        texts: texts.into(),
        effects: effects.into(),
    });
    Ok(AlikeReport {
        replaced: replaced.collect(),
        data: alike.data,
    })
}

type Checkpoints = afterimage_replay::steps::FileCheckpoints;

fn checkpoints(traced: &Session) -> Result<Option<&Checkpoints>> {
    let at = traced.at();
    let found = refuse_gaps(at, traced.path()?).map_err(Error::from);
    let found = found.and_then(|()| Ok(traced.checkpoints()?));
    found.with_context(|| at.display().to_string())
}

fn opened<'a>(
    traced: &'a Session,
    checkpoints: Option<&'a Checkpoints>,
    progress: &'a dyn Fn(u64),
) -> Result<Opened<'a>> {
    Ok(Opened {
        traced,
        run: Run {
            progress,
            checkpoints,
            ..traced.run()?
        },
    })
}

fn number(traced: &Session, step: &Step, op: OpId) -> Result<u64> {
    let program = traced.program();
    Ok(executed_by(
        traced.path()?,
        program,
        step.function,
        op,
        step.time,
    )?)
}

/// Returns the calls that wrote different output.
fn outputs(a: &Session, b: &Session, found: Vec<OutputDifference>) -> Result<Vec<OutputPlaces>> {
    let number = |traced: &Session, written: Option<&Written>| -> Result<u64> {
        let Some(written) = written else {
            return Ok(0);
        };
        let (path, program) = (traced.path()?, traced.program());
        let Written {
            function, op, time, ..
        } = *written;
        Ok(executed_by(path, program, function, op, time)?)
    };
    let places = found.into_iter().map(|difference| {
        let numbers = [
            number(a, difference.a.as_ref())?,
            number(b, difference.b.as_ref())?,
        ];
        Ok(OutputPlaces {
            difference,
            numbers,
        })
    });
    places.collect()
}

/// Returns the decision at which control diverged.
fn decision(a: &Session, sides: [&Opened<'_>; 2], parting: Parting) -> Result<PartingDifference> {
    let before = parting.time - 1;
    let mut decided = Vec::new();
    let mut number_of = 0;
    if before > 0 {
        let [of_a, of_b] = sides.map(|side| steps_of(side, before));
        let pairs = of_a?.into_iter().zip(of_b?);
        decided = pairs.filter(|(a, b)| a != b).collect();
        if let Some((step, _)) = decided.last()
            && let Some(op) = step.op
        {
            number_of = number(a, step, op)?;
        }
    }
    Ok(PartingDifference {
        parting,
        decided,
        number: number_of,
        calls: calls_around(a.path()?, a.program(), before.max(1), FRAMES)?,
    })
}

/// Returns the effects of a block's operators.
fn steps_of(side: &Opened<'_>, time: u64) -> Result<Vec<Step>> {
    let wanted = Wanted {
        level: Level::Statement,
        window: Window {
            first: time,
            last: time,
        },
        within: Within::default(),
        function: None,
        range: None,
    };
    let mut steps = Steps::new(side.run, side.traced.file().log()?, wanted)?;
    let mut all = Vec::new();
    while let Some(step) = steps.next()? {
        if step.op.is_some() {
            all.push(step);
        }
    }
    Ok(all)
}
