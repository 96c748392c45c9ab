//! Reports on facts of GEN-KILL problems.

use std::io::Write;

use afterimage_analyses::dataflow::{
    Decider, Fact, FactAnswer, FactInstance, InstanceRun, PathAnswer,
};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_replay::steps::AccessSite;
use schemars::JsonSchema;
use serde::Serialize;

use crate::PresentError;
use crate::Style;
use crate::addresses::Shown;
use crate::csv::{Csv, known};
use crate::document::objects::{Function, Instruction};
use crate::document::{Document, NoRows, begin};
use crate::number::{counted, grouped, percent};
use crate::render::Render;
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// The program and the fact that the answers are about.
pub struct FactScene<'a> {
    /// The program.
    pub steps: StepScene<'a>,
    /// The fact as written.
    pub text: &'a str,
    /// The fact.
    pub fact: &'a Fact,
    /// The first operator of a block of a function.
    pub first: &'a dyn Fn(FuncId, BlockId) -> OpId,
}

/// The answer for an operator.
#[derive(Clone, Debug)]
pub struct FactRow {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator.
    pub op: OpId,
    /// The answer.
    pub answer: FactAnswer,
    /// The first executions that each decider decided, and whether the list is complete.
    pub instances: Vec<(Vec<InstanceRun>, bool)>,
    /// The execution that the question was about, if it was about only one.
    pub one: Option<FactInstance>,
}

impl FactScene<'_> {
    fn shown(&self, function: FuncId, op: OpId) -> Result<Shown, PresentError> {
        Shown::of(&self.steps, AccessSite { function, op })
    }

    /// Formats an operator with its line: `@0x1f3 i32.load file.c:3`.
    fn place(&self, function: FuncId, op: OpId) -> Result<String, PresentError> {
        let shown = self.shown(function, op)?;
        let line = shown.line(&self.steps);
        let text = format!("@{} {}  {line}", shown.offset, shown.name);
        Ok(text.trim_end().to_owned())
    }

    fn name(&self, function: FuncId) -> String {
        plain(self.steps.names.function(function))
    }

    fn is_reaching(&self) -> bool {
        matches!(self.fact, Fact::Reaching)
    }

    /// Returns the fact as a verb phrase.
    fn holds(&self) -> &'static str {
        match self.fact {
            Fact::Available => "its result is already available",
            Fact::Reaching => "",
            Fact::LastUse => "it is the last use of its local's value",
            Fact::Places { ahead: false, .. } => "it holds",
            Fact::Places { ahead: true, .. } => "it will hold",
        }
    }

    /// Describes the deciding site, and its place.
    fn decider(&self, decider: Option<Decider>) -> Result<(String, String), PresentError> {
        let at = |op: Option<(FuncId, OpId)>| match op {
            Some((function, op)) => self.place(function, op),
            None => Ok(String::new()),
        };
        let (what, op) = match (decider, self.fact) {
            (None, Fact::Reaching) => ("the value at the start of the call", None),
            (None, Fact::LastUse | Fact::Places { ahead: true, .. }) => {
                ("nothing until the call ended", None)
            }
            (None, _) => ("nothing since the call began", None),
            (Some(Decider::Gen(f, op)), Fact::LastUse) => ("then set by", Some((f, op))),
            (Some(Decider::Kill(f, op)), Fact::LastUse) => ("read again by", Some((f, op))),
            (Some(Decider::Gen(f, op)), Fact::Reaching) => ("set by", Some((f, op))),
            (Some(Decider::Gen(f, op)), Fact::Available) => ("available from", Some((f, op))),
            (Some(Decider::Kill(f, op)), Fact::Available) => ("ended by", Some((f, op))),
            (Some(Decider::Gen(f, op)), _) => ("gen", Some((f, op))),
            (Some(Decider::Kill(f, op)), _) => ("kill", Some((f, op))),
            (Some(Decider::Meets(f, block)), _) => (
                "chosen again where paths meet, at",
                Some((f, (self.first)(f, block))),
            ),
            (Some(Decider::GenEntry(f)), _) => return Ok(("gen".into(), self.name(f))),
            (Some(Decider::KillEntry(f)), _) => return Ok(("kill".into(), self.name(f))),
            (Some(Decider::Something), _) => ("changed", None),
        };
        Ok((what.to_owned(), at(op)?))
    }
}

/// Describes in words how often the fact held.
fn verdict(answer: &FactAnswer) -> String {
    match answer.holds {
        0 => "never".to_owned(),
        all if all == answer.executions => "always".to_owned(),
        some => format!(
            "{} of {} times ({})",
            grouped(some),
            grouped(answer.executions),
            percent(some, answer.executions)
        ),
    }
}

/// Writes the answers for people: a sentence for each operator, the deciding sites and, on request,
/// the path traces.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn dataflow_text(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    rows: &[FactRow],
) -> Result<(), PresentError> {
    for (k, row) in rows.iter().enumerate() {
        if k > 0 {
            writeln!(out)?;
        }
        of_row(out, scene, row)?;
    }
    Ok(())
}

fn of_row(out: &mut dyn Write, scene: &FactScene<'_>, row: &FactRow) -> Result<(), PresentError> {
    let answer = &row.answer;
    let place = scene.place(row.function, row.op)?;
    let place = format!("{place}  in {}", scene.name(row.function));
    if answer.executions == 0 {
        writeln!(out, "{place}: never executed")?;
        return Ok(());
    }
    if let Some(one) = &row.one {
        return of_one(out, scene, &place, one, answer.executions);
    }
    let how_often = format!(
        "executed {} in {}",
        times(answer.executions),
        counted(answer.calls, "call")
    );
    let sentence = if scene.is_reaching() {
        let definitions = counted(answer.decided.len() as u64, "definition");
        let verb = if answer.decided.len() == 1 {
            "reaches"
        } else {
            "reach"
        };
        format!("{place}: {definitions} {verb} it; {how_often}")
    } else {
        format!(
            "{place}: {}: {}; {how_often}",
            scene.holds(),
            verdict(answer)
        )
    };
    writeln!(out, "{}", scene.steps.style.paint(Paint::Bold, &sentence))?;
    let mut table = Table::new(&[
        ("times", Right),
        ("", Right),
        ("decided by", Left),
        ("", Left),
        ("executions", Left),
    ]);
    for (k, &(decider, times)) in answer.decided.iter().enumerate() {
        let (what, place) = scene.decider(decider)?;
        let which = match row.instances.get(k) {
            // If one site decided all executions, do not list them.
            Some(_) if times == answer.executions => "all".to_owned(),
            Some((runs, all)) => numbers(runs, *all),
            None => String::new(),
        };
        table.row([
            grouped(times),
            percent(times, answer.executions),
            what,
            place,
            which,
        ]);
    }
    table.write(out, scene.steps.style, |_| Paint::Plain)?;
    if !answer.paths.is_empty() {
        writeln!(out)?;
        paths(out, scene, answer)?;
    }
    let queries = match answer.queries {
        1 => "1 query".to_owned(),
        many => format!("{} queries", grouped(many)),
    };
    write!(
        out,
        "{queries} on {}",
        counted(answer.all_paths, "path trace")
    )?;
    if answer.scanned > 0 {
        let steps = counted(answer.scanned, "step");
        write!(
            out,
            "; {steps} of these, which are irregular, were examined one by one"
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// Writes the answer for one execution.
fn of_one(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    place: &str,
    one: &FactInstance,
    executions: u64,
) -> Result<(), PresentError> {
    let holds = match (one.decider, scene.fact) {
        (_, Fact::Reaching) => String::new(),
        (None, Fact::LastUse) => format!("{}: yes; ", scene.holds()),
        (decider, _) => {
            let holds = decider.is_some_and(Decider::holds);
            format!("{}: {}; ", scene.holds(), if holds { "yes" } else { "no" })
        }
    };
    let (what, by) = scene.decider(one.decider)?;
    let text = format!(
        "{place}  #{} of {}: {holds}{what} {by}",
        grouped(one.number),
        grouped(executions)
    );
    writeln!(
        out,
        "{}",
        scene.steps.style.paint(Paint::Bold, text.trim_end())
    )?;
    writeln!(
        out,
        "it was executed at t={}, at step {} of its call",
        grouped(one.time),
        grouped(one.step),
    )?;
    Ok(())
}

/// Formats the numbers of executions: `#3-#9, every 2nd from #12 to #40`.
fn numbers(runs: &[InstanceRun], all: bool) -> String {
    let stretch = |first: u64, last: u64| {
        if first == last {
            format!("#{}", grouped(first))
        } else {
            format!("#{}-#{}", grouped(first), grouped(last))
        }
    };
    let mut texts: Vec<String> = Vec::new();
    for run in runs {
        let end = run.stride * (run.times - 1);
        let (first, last) = (
            stretch(run.first, run.last),
            stretch(run.first + end, run.last + end),
        );
        texts.push(match run.times {
            1 => first,
            2 => format!("{first}, {last}"),
            _ => format!("{first} and every {} up to {last}", grouped(run.stride)),
        });
    }
    if !all {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

fn paths(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    answer: &FactAnswer,
) -> Result<(), PresentError> {
    let mut table = Table::new(&[
        ("calls", Right),
        ("blocks", Right),
        ("executed", Right),
        ("holds", Right),
        ("in these blocks of the call", Left),
    ]);
    for path in &answer.paths {
        let holds = path.holds.count();
        let which = match holds {
            0 => "none".to_owned(),
            all if all == path.executions.count() => format!("all: {}", path.executions),
            _ => path.holds.to_string(),
        };
        table.row([
            grouped(path.calls),
            grouped(path.blocks),
            grouped(path.executions.count()),
            grouped(holds),
            which,
        ]);
    }
    table.write(out, scene.steps.style, |_| Paint::Plain)?;
    let more = answer.all_paths - answer.paths.len() as u64;
    if more > 0 {
        writeln!(
            out,
            "… and {}: see them with --paths N",
            counted(more, "path trace")
        )?;
    }
    Ok(())
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many)),
    }
}

/// Returns the name of a decider in formats for programs.
fn kind(decider: Option<Decider>) -> &'static str {
    match decider {
        Some(Decider::Gen(..)) => "gen",
        Some(Decider::Kill(..)) => "kill",
        Some(Decider::Meets(..)) => "meets",
        Some(Decider::GenEntry(_)) => "gen-call",
        Some(Decider::KillEntry(_)) => "kill-call",
        Some(Decider::Something) => "changed",
        None => "open",
    }
}

/// A fact at all executions of a place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataflowDocument {
    /// The fact as written.
    pub fact: String,
    /// The answer for each operator at the place to which the fact applies.
    pub answers: Vec<DataflowAnswer>,
}

impl Document for DataflowDocument {
    const NAME: &'static str = "dataflow";
    const COMMAND: &'static str = "dataflow";
    type Row = NoRows;
}

/// The answer for an operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataflowAnswer {
    /// The operator.
    #[serde(flatten)]
    pub instruction: Instruction,
    /// The number of executions.
    pub executions: u64,
    /// The number of calls.
    pub calls: u64,
    /// The number of executions for which the fact holds; `null` for `reaching`.
    pub holds: Option<u64>,
    /// The deciding sites, most frequent first.
    pub decided: Vec<DataflowDecided>,
    /// The execution that the question was about, if it was about only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one: Option<DataflowOne>,
    /// The number of queries raised.
    pub queries: u64,
    /// The number of path steps that were scanned one by one, because the trace was too irregular
    /// for queries.
    pub scanned: u64,
    /// The number of distinct path traces of the calls. Two path traces differ in the path of the
    /// call, or in the decisions of its callees.
    pub path_traces: u64,
    /// With `--paths`, the path traces taken by the most calls.
    pub paths: Vec<DataflowPath>,
}

/// The site that decided whether a fact holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataflowDecided {
    /// The place: the operator, the first operator where paths meet, or the function for `gen-call`
    /// and `kill-call`.
    #[serde(flatten)]
    pub place: Option<DataflowPlace>,
    /// `gen`, `kill`, `gen-call`, `kill-call`, `meets`, `changed` or `open`. With `meets`, paths
    /// meet and choose one of the fact's values. With `open`, nothing decided the fact before the
    /// beginning or end of the call.
    pub kind: &'static str,
    /// The number of executions that the site decided.
    pub times: u64,
    /// The executions that the site decided, numbered from 1 in order of time, as series `[first,
    /// last, stride, times]`. A series repeats the executions from `first` to `last` every
    /// `stride`, `times` times in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<Vec<[u64; 4]>>,
    /// Whether `instances` lists all executions that the site decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_instances: Option<bool>,
}

/// An operator, or a function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DataflowPlace {
    /// An operator.
    Operator(Instruction),
    /// A function.
    Function {
        /// The function.
        function: Function,
    },
}

/// The only execution that the question was about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataflowOne {
    /// The execution's number, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The position of its block among the blocks that its call executed itself.
    pub block_of_call: u64,
    /// The index in `decided` of the site that decided the execution, from 0.
    pub decided: Option<usize>,
}

/// A path trace, with the blocks at which the fact held. Blocks are numbered from 1, and listed as
/// arithmetic series `[first, last, step]`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataflowPath {
    /// The number of calls that took the path trace.
    pub calls: u64,
    /// The number of blocks that a call with the path trace executed itself.
    pub blocks: u64,
    /// The blocks at which the operator was executed.
    pub executions: Vec<[u64; 3]>,
    /// The blocks at which the fact held.
    pub holds: Vec<[u64; 3]>,
}

/// Returns the document.
///
/// # Errors
/// Returns an error if the module does not match the program.
pub(crate) fn dataflow_document(
    scene: &FactScene<'_>,
    rows: &[FactRow],
) -> Result<DataflowDocument, PresentError> {
    let answers = rows.iter().map(|row| answer(scene, row));
    Ok(DataflowDocument {
        fact: scene.text.to_owned(),
        answers: answers.collect::<Result<_, _>>()?,
    })
}

fn answer(scene: &FactScene<'_>, row: &FactRow) -> Result<DataflowAnswer, PresentError> {
    let answer = &row.answer;
    let at = |function, op| Shown::at(&scene.steps, AccessSite { function, op });
    let mut decided = Vec::new();
    for (k, &(decider, times)) in answer.decided.iter().enumerate() {
        let place = match decider {
            Some(Decider::Gen(function, op) | Decider::Kill(function, op)) => {
                Some(DataflowPlace::Operator(at(function, op)?))
            }
            Some(Decider::Meets(function, block)) => {
                let first = (scene.first)(function, block);
                Some(DataflowPlace::Operator(at(function, first)?))
            }
            Some(Decider::GenEntry(function) | Decider::KillEntry(function)) => {
                let function = Function::new(scene.steps.names, function);
                Some(DataflowPlace::Function { function })
            }
            Some(Decider::Something) | None => None,
        };
        let instances = row.instances.get(k);
        let runs = instances.map(|(runs, _)| {
            let runs = runs.iter();
            let runs = runs.map(|run| [run.first, run.last, run.stride, run.times]);
            runs.collect()
        });
        decided.push(DataflowDecided {
            place,
            kind: kind(decider),
            times,
            instances: runs,
            all_instances: instances.map(|(_, all)| *all),
        });
    }
    let one = row.one.as_ref().map(|one| {
        let mut decided = answer.decided.iter();
        DataflowOne {
            number: one.number,
            t: one.time,
            block_of_call: one.step,
            decided: decided.position(|&(decider, _)| decider == one.decider),
        }
    });
    Ok(DataflowAnswer {
        instruction: at(row.function, row.op)?,
        executions: answer.executions,
        calls: answer.calls,
        holds: (!scene.is_reaching()).then_some(answer.holds),
        decided,
        one,
        queries: answer.queries,
        scanned: answer.scanned,
        path_traces: answer.all_paths,
        paths: answer.paths.iter().map(path_trace).collect(),
    })
}

fn path_trace(path: &PathAnswer) -> DataflowPath {
    let series = |series: &afterimage_wpp::twpp::Series| {
        let entries = series.entries().iter();
        entries.map(|e| [e.first, e.last, e.step]).collect()
    };
    DataflowPath {
        calls: path.calls,
        blocks: path.blocks,
        executions: series(&path.executions),
        holds: series(&path.holds),
    }
}

/// Writes comma-separated values with a row for each operator and decider.
///
/// # Errors
/// Returns an error if `out` fails or the module does not match the program.
pub fn dataflow_csv(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    rows: &[FactRow],
) -> Result<(), PresentError> {
    let header = "function,name,offset,operator,file,line,executions,holds,decided,by_function,by_name,by_offset,by_file,by_line,times";
    let mut table = Csv::new(out, header)?;
    for row in rows {
        let shown = scene.shown(row.function, row.op)?;
        let (file, line) = shown.file_and_line(&scene.steps);
        let holds = known((!scene.is_reaching()).then_some(row.answer.holds));
        for &(decider, times) in &row.answer.decided {
            let (own, by) = match decider {
                Some(Decider::Gen(f, op) | Decider::Kill(f, op)) => (Some(f), Some((f, op))),
                Some(Decider::Meets(f, block)) => (Some(f), Some((f, (scene.first)(f, block)))),
                Some(Decider::GenEntry(f) | Decider::KillEntry(f)) => (Some(f), None),
                Some(Decider::Something) | None => (None, None),
            };
            let by = by.map(|(f, op)| scene.shown(f, op)).transpose()?;
            let (by_file, by_line) = by
                .as_ref()
                .map(|by| by.file_and_line(&scene.steps))
                .unwrap_or_default();
            let names = scene.steps.names;
            table.row(&[
                &row.function.as_u32(),
                &names.function(row.function),
                &shown.offset.0,
                &shown.name,
                &file,
                &line,
                &row.answer.executions,
                &holds,
                &kind(decider),
                &known(own.map(|f| f.as_u32())),
                &known(own.map(|f| names.function(f))),
                &known(by.map(|by| by.offset.0)),
                &by_file,
                &by_line,
                &times,
            ])?;
        }
    }
    table.finish()
}

/// The answers about a fact, with the program.
pub struct DataflowView<'r> {
    /// The program and the fact.
    pub scene: FactScene<'r>,
    /// The answers.
    pub rows: Vec<FactRow>,
}

impl DataflowView<'_> {
    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<DataflowDocument, PresentError> {
        dataflow_document(&self.scene, &self.rows)
    }
}

impl Render for DataflowView<'_> {
    const NAME: &'static str = "an answer about a fact";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        dataflow_text(out, &self.scene, &self.rows)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        dataflow_csv(out, &self.scene, &self.rows)
    }
}
