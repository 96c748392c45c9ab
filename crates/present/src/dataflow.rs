//! Facts of GEN-KILL problems.

use std::io::Write;

use afterimage_analyses::dataflow::{
    Decider, Fact, FactAnswer, FactInstance, InstanceRun, PathAnswer,
};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_replay::steps::AccessSite;
use serde_json::{Value as Json, json};

use crate::PresentError;
use crate::addresses::Shown;
use crate::csv::quoted;
use crate::number::{counted, grouped, percent};
use crate::steps::StepScene;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};

/// What answers are about.
pub struct FactScene<'a> {
    /// The program.
    pub steps: StepScene<'a>,
    /// The fact, as it was written.
    pub text: &'a str,
    /// The fact.
    pub fact: &'a Fact,
    /// The first operator of a block of a function.
    pub first: &'a dyn Fn(FuncId, BlockId) -> OpId,
}

/// The answer about an operator.
#[derive(Clone, Debug)]
pub struct FactRow {
    /// The operator.
    pub function: FuncId,
    /// Which.
    pub op: OpId,
    /// The answer.
    pub answer: FactAnswer,
    /// For each that decided, the executions for which it did, the first of them, and whether these are all.
    pub instances: Vec<(Vec<InstanceRun>, bool)>,
    /// The execution that was asked about, if only one was.
    pub one: Option<FactInstance>,
}

impl FactScene<'_> {
    fn shown(&self, function: FuncId, op: OpId) -> Result<Shown, PresentError> {
        Shown::of(&self.steps, AccessSite { function, op })
    }

    /// An operator with its line: `@0x1f3 i32.load  file.c:3`.
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

    /// What holds or does not, in words.
    fn holds(&self) -> &'static str {
        match self.fact {
            Fact::Available => "what it gives is available already",
            Fact::Reaching => "",
            Fact::LastUse => "it is the last use of what is in its local",
            Fact::Places { ahead: false, .. } => "it holds",
            Fact::Places { ahead: true, .. } => "it will hold",
        }
    }

    /// What decided, in words, and where.
    fn decider(&self, decider: Option<Decider>) -> Result<(String, String), PresentError> {
        let at = |op: Option<(FuncId, OpId)>| match op {
            Some((function, op)) => self.place(function, op),
            None => Ok(String::new()),
        };
        let (what, op) = match (decider, self.fact) {
            (None, Fact::Reaching) => ("what the call began with", None),
            (None, Fact::LastUse | Fact::Places { ahead: true, .. }) => {
                ("nothing up to the call's end", None)
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
                "chosen anew where paths meet, at",
                Some((f, (self.first)(f, block))),
            ),
            (Some(Decider::GenEntry(f)), _) => return Ok(("gen".into(), self.name(f))),
            (Some(Decider::KillEntry(f)), _) => return Ok(("kill".into(), self.name(f))),
            (Some(Decider::Something), _) => ("changed", None),
        };
        Ok((what.to_owned(), at(op)?))
    }
}

/// How often, as a person would say it.
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

/// Writes answers for a person: for each operator a sentence, what decided, and if they were asked for, its path traces.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
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
    let sentence = match scene.is_reaching() {
        true => {
            let definitions = counted(answer.decided.len() as u64, "definition");
            let verb = if answer.decided.len() == 1 {
                "reaches"
            } else {
                "reach"
            };
            format!("{place}: {definitions} {verb} it; {how_often}")
        }
        false => format!(
            "{place}: {}: {}; {how_often}",
            scene.holds(),
            verdict(answer)
        ),
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
            // Of all it need not be told which these are.
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
            "; {steps} of these, which are not regular, were gone through one by one"
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// The answer about one execution.
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
        "it was executed at t={}, in block {} of those that its call executed itself",
        grouped(one.time),
        grouped(one.step),
    )?;
    Ok(())
}

/// Executions by their numbers: `#3-#9, every 2nd from #12 to #40`.
fn numbers(runs: &[InstanceRun], all: bool) -> String {
    let stretch = |first: u64, last: u64| match first == last {
        true => format!("#{}", grouped(first)),
        false => format!("#{}-#{}", grouped(first), grouped(last)),
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
            _ => format!("{first} and every {} on to {last}", grouped(run.stride)),
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
        ("in these of the call's blocks", Left),
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

/// What a decider is called in formats for programs.
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

/// The same as JSON.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn dataflow_json(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    rows: &[FactRow],
) -> Result<(), PresentError> {
    let mut answers = Vec::new();
    for row in rows {
        let answer = &row.answer;
        let site = AccessSite {
            function: row.function,
            op: row.op,
        };
        let mut entry = Shown::of(&scene.steps, site)?.json(&scene.steps, site);
        entry["executions"] = json!(answer.executions);
        entry["calls"] = json!(answer.calls);
        entry["holds"] = match scene.is_reaching() {
            true => Json::Null,
            false => json!(answer.holds),
        };
        let mut decided = Vec::new();
        for (k, &(decider, times)) in answer.decided.iter().enumerate() {
            let place = match decider {
                Some(Decider::Gen(function, op) | Decider::Kill(function, op)) => {
                    Some((function, Some(op)))
                }
                Some(Decider::Meets(function, block)) => {
                    Some((function, Some((scene.first)(function, block))))
                }
                Some(Decider::GenEntry(function) | Decider::KillEntry(function)) => {
                    Some((function, None))
                }
                Some(Decider::Something) | None => None,
            };
            let mut by = match place {
                Some((function, Some(op))) => {
                    let site = AccessSite { function, op };
                    Shown::of(&scene.steps, site)?.json(&scene.steps, site)
                }
                Some((function, None)) => json!({
                    "function": function.as_u32(),
                    "name": scene.steps.names.function(function),
                }),
                None => json!({}),
            };
            by["kind"] = json!(kind(decider));
            by["times"] = json!(times);
            if let Some((runs, all)) = row.instances.get(k) {
                let runs = runs.iter();
                let runs = runs.map(|run| json!([run.first, run.last, run.stride, run.times]));
                by["instances"] = Json::Array(runs.collect());
                by["all_instances"] = json!(all);
            }
            decided.push(by);
        }
        entry["decided"] = Json::Array(decided);
        if let Some(one) = &row.one {
            let mut decided = answer.decided.iter();
            let decider = decided.position(|&(decider, _)| decider == one.decider);
            entry["one"] = json!({
                "number": one.number,
                "t": one.time,
                "block_of_call": one.step,
                "decided": decider,
            });
        }
        entry["queries"] = json!(answer.queries);
        entry["scanned"] = json!(answer.scanned);
        entry["path_traces"] = json!(answer.all_paths);
        entry["paths"] = Json::Array(answer.paths.iter().map(path_json).collect());
        answers.push(entry);
    }
    let all = json!({
        "schema": "afterimage/dataflow/1",
        "fact": scene.text,
        "answers": answers,
    });
    serde_json::to_writer(&mut *out, &all)?;
    writeln!(out)?;
    Ok(())
}

fn path_json(path: &PathAnswer) -> Json {
    let series = |series: &afterimage_wpp::twpp::Series| {
        let entries = series.entries().iter();
        Json::Array(entries.map(|e| json!([e.first, e.last, e.step])).collect())
    };
    json!({
        "calls": path.calls,
        "blocks": path.blocks,
        "executions": series(&path.executions),
        "holds": series(&path.holds),
    })
}

/// The same as comma-separated values: a row for each operator and what decided.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn dataflow_csv(
    out: &mut dyn Write,
    scene: &FactScene<'_>,
    rows: &[FactRow],
) -> Result<(), PresentError> {
    write!(
        out,
        "function,name,offset,operator,file,line,executions,holds,decided,by_function,by_name,by_offset,by_file,by_line,times\r\n"
    )?;
    for row in rows {
        let shown = scene.shown(row.function, row.op)?;
        let (file, line) = shown.file_and_line(&scene.steps);
        let holds = match scene.is_reaching() {
            true => String::new(),
            false => row.answer.holds.to_string(),
        };
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
            let fields = [
                row.function.as_u32().to_string(),
                quoted(scene.steps.names.function(row.function)).into_owned(),
                shown.offset.0.to_string(),
                shown.name.clone(),
                quoted(&file).into_owned(),
                line.clone(),
                row.answer.executions.to_string(),
                holds.clone(),
                kind(decider).to_owned(),
                own.map_or(String::new(), |f| f.as_u32().to_string()),
                own.map_or(String::new(), |f| {
                    quoted(scene.steps.names.function(f)).into_owned()
                }),
                by.map_or(String::new(), |by| by.offset.0.to_string()),
                quoted(&by_file).into_owned(),
                by_line,
                times.to_string(),
            ];
            write!(out, "{}\r\n", fields.join(","))?;
        }
    }
    Ok(())
}
