//! Resolves places to statements, for questions about values.

use std::path::Path;

use afterimage_ids::{FuncId, OpId, OrigOffset};
pub use afterimage_present::times;
use afterimage_present::{grouped, shell_word};
use afterimage_profile::location::{Form, Occurrence, Place, ResolveError, form, split_occurrence};
use afterimage_profile::{Source, operator_texts, readable};
use afterimage_program::{LineError, NameError, Names, OperatorIndex, SourceMap};
use afterimage_replay::values::{Execution, Executions, Operand, RecordedValues, Types};
use afterimage_replay::whole_path::{PathFileError, PositionError};
use anyhow::{Error, Result, anyhow, bail};

use crate::Session;
use crate::monitor::Note;
use crate::text::{pasted, sentence};

/// A statement of the program.
#[derive(Clone, Debug)]
pub struct Site {
    pub function: FuncId,
    pub op: OpId,
    pub offset: OrigOffset,
    /// The operator's text.
    pub text: String,
}

/// The statements that a user named, and the selected execution.
#[derive(Debug)]
pub struct Sites {
    pub sites: Vec<Site>,
    pub occurrence: Option<Occurrence>,
    counts: Counts,
}

/// The unit that the number after a place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Arrivals at a line, or calls to a function.
    Whole,
    /// Executions of each statement. This is the unit for an operator, and for a column, whose
    /// arrivals are not counted.
    Each,
}

/// An execution of one of the named statements.
#[derive(Clone, Copy)]
pub struct Chosen<'f> {
    pub site: &'f Site,
    which: Which,
}

/// Selects an execution of a statement.
#[derive(Clone, Copy)]
enum Which {
    /// Selects an execution by its number, from 1.
    Number(u64),
    /// Selects the execution at this time.
    At(u64),
}

impl Chosen<'_> {
    /// Returns the number of the execution, and the execution itself. Returns `None` if the run
    /// ended before it.
    pub fn get<'a>(
        &self,
        traced: &'a Session,
        values: &RecordedValues<'a>,
    ) -> Result<Option<Execution>> {
        let (all, count) = executions(traced, values, self.site)?;
        let number = match self.which {
            Which::Number(number) => number,
            Which::At(time) => all.by(time)?,
        };
        Ok(if number <= count {
            all.get(values, number)?
        } else {
            None
        })
    }
}

/// Finds the statements at a place: all statements of a source line or of a function, or the
/// statement of one operator.
pub fn statements<'a>(
    traced: &'a Session,
    names: &'a Names,
    source: &'a SourceMap<'a>,
    types: &Types<'_>,
    text: &str,
) -> Result<Sites> {
    let mut found = nameless_statements(traced, names, source, types, text)?;
    let offsets = Vec::from_iter(found.sites.iter().map(|site| site.offset));
    let texts = operator_texts(traced.bytes(), &offsets)?;
    for (site, text) in found.sites.iter_mut().zip(texts) {
        site.text = readable(text.trim());
    }
    Ok(found)
}

/// Whether a string names a moment, unless it is the name of a function.
pub fn is_moment(text: &str) -> bool {
    let time = text.strip_prefix("t=").unwrap_or(text);
    let share = text.strip_suffix('%');
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let begins = digits.starts_with(|c: char| c.is_ascii_digit());
        begins && text.replace(['_', ','], "").parse::<f64>().is_ok()
    };
    ["start", "end"].contains(&text) || is_number(time) || share.is_some_and(is_number)
}

/// Like [`statements`], but without their text, which would take a pass over the module.
pub fn nameless_statements<'a>(
    traced: &'a Session,
    names: &'a Names,
    source: &'a SourceMap<'a>,
    types: &Types<'_>,
    text: &str,
) -> Result<Sites> {
    let loaded = traced.module();
    let resolved = traced.resolver(names, source).location(text);
    if resolved.is_err() && is_moment(text) {
        bail!(
            "{text} is a moment of the run, not a statement: name a place, such as file.c:42#3 \
             or func; for a variable at a moment use why --var or slice --var, for memory slice \
             --address"
        );
    }
    let resolved = resolved?;
    let statements = |function: FuncId, keep: &dyn Fn(OpId) -> bool| -> Vec<(FuncId, OpId)> {
        let Some(ssa) = types.statements(function) else {
            return Vec::new();
        };
        let all = ssa.statements.values();
        let ops = all.map(|statement| statement.op).filter(|op| keep(*op));
        ops.map(|op| (function, op)).collect()
    };
    let counts = if counts_whole(&resolved.place, text) {
        Counts::Whole
    } else {
        Counts::Each
    };
    let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
    let offset_of = |function: FuncId, op: OpId| {
        let defined = loaded.program.function(function)?;
        index.offsets(defined).get(op.as_u32() as usize).copied()
    };
    let found: Vec<(FuncId, OpId)> = match resolved.place {
        Place::Operator(function, op) => statements(function, &|other| other == op),
        Place::Line(_, ref operators) => {
            let mut found = Vec::new();
            for &(function, op) in operators {
                found.extend(statements(function, &|other| other == op));
            }
            found
        }
        Place::Function(function) => {
            if loaded.program.function(function).is_none() {
                bail!(
                    "{} is imported, so its statements are not in this module",
                    names.short(function)
                );
            }
            statements(function, &|_| true)
        }
    };
    if found.is_empty() {
        let here = match &resolved.place {
            Place::Operator(function, op) => Some((*function, *op)),
            Place::Line(_, operators) => operators.last().copied(),
            Place::Function(_) => None,
        };
        // Suggest the next statement, because a value is usually used soon after it is moved. If
        // there is none, suggest the previous statement.
        let near = here.and_then(|(function, op)| {
            let distance = |other: &OpId| (*other < op, other.as_u32().abs_diff(op.as_u32()));
            let all = statements(function, &|_| true)
                .into_iter()
                .map(|(_, op)| op);
            offset_of(function, all.min_by_key(distance)?)
        });
        let near = near.map_or_else(
            || ", and so does all of its function".to_owned(),
            |offset| {
                let line = line_of(source, offset);
                let line = if line.is_empty() {
                    line
                } else {
                    format!(" ({line})")
                };
                format!("; ask about the statement at @{offset}{line}")
            },
        );
        bail!("{text} has no statement: it only moves values, makes constants or jumps{near}");
    }
    let mut sites = Vec::new();
    for (function, op) in found {
        let offset = offset_of(function, op);
        let offset = offset.ok_or_else(|| anyhow!("there is no statement at {text}"))?;
        sites.push(Site {
            function,
            op,
            offset,
            text: String::new(),
        });
    }
    sites.sort_by_key(|site| site.offset);
    sites.dedup_by_key(|site| site.offset);
    Ok(Sites {
        sites,
        occurrence: resolved.occurrence,
        counts,
    })
}

/// Whether a number after a place counts arrivals or calls, rather than executions of a statement.
pub fn counts_whole(place: &Place, text: &str) -> bool {
    match place {
        Place::Operator(..) => false,
        Place::Line(..) => !has_column(text),
        Place::Function(_) => true,
    }
}

/// Whether a place is a column of a line.
pub fn has_column(text: &str) -> bool {
    let place = split_occurrence(text).map_or(text, |split| split.0);
    matches!(
        form(place),
        Form::Line {
            column: Some(_),
            ..
        }
    )
}

/// Returns the line of an operator as `file.c:42`, or an empty string if it is unknown.
pub fn line_of(source: &dyn Source, offset: OrigOffset) -> String {
    source.locate(offset).map_or_else(String::new, |location| {
        format!("{}:{}", source.short_path(location.file), location.line)
    })
}

/// Finds the executions that a user named, at least one, in chronological order. For a line, these
/// are the executions of the k-th arrival. For a function, they are the first execution of each
/// statement in the k-th call. For an operator or a column, they are the k-th execution of each
/// statement.
pub fn chosen<'f, 'a>(
    traced: &'a Session,
    values: &RecordedValues<'a>,
    (names, source): (&'a Names, &'a SourceMap<'a>),
    found: &'f Sites,
    at: &str,
) -> Result<Vec<Chosen<'f>>> {
    let mut chosen = Vec::new();
    match found.counts {
        Counts::Whole => {
            for step in traced.positions(names, source)?.executed(at)? {
                let mut sites = found.sites.iter();
                let is_here = |site: &&Site| (site.function, site.op) == (step.function, step.op);
                let Some(site) = sites.find(is_here) else {
                    continue;
                };
                let which = Which::At(step.time);
                chosen.push(Chosen { site, which });
            }
            if chosen.is_empty() {
                bail!(
                    "{at} only moves values or jumps: no statement is executed there{}",
                    other_executions(at)
                );
            }
        }
        Counts::Each => {
            let which = found.occurrence.unwrap_or(Occurrence::Kth(1));
            let mut most = 0;
            for site in &found.sites {
                let (_, count) = executions(traced, values, site)?;
                most = most.max(count);
                match number(which, count, &format!("the statement at @{}", site.offset)) {
                    Ok(number) => chosen.push(Chosen {
                        site,
                        which: Which::Number(number),
                    }),
                    // If there are several statements, some may be executed less often.
                    Err(_) if found.sites.len() > 1 => {}
                    Err(error) => return Err(error),
                }
            }
            if chosen.is_empty() {
                match most {
                    0 => bail!("no statement at {at} was ever executed"),
                    _ => bail!(
                        "no statement at {at} was executed more than {}",
                        times(most)
                    ),
                }
            }
            if found.occurrence.is_some() && chosen.len() > 1 {
                let remark = format!(
                    "{at}: after a column, # counts the executions of each of its {} \
                     statements; arrivals are counted by line",
                    chosen.len()
                );
                traced.monitor().note(traced.at(), &Note::Remark(remark));
            }
        }
    }
    Ok(chosen)
}

/// Returns a sentence about how to see the other executions at a place.
fn other_executions(at: &str) -> String {
    let place = split_occurrence(at).map_or(at, |split| split.0);
    format!(
        "; for all executions of its statements: afterimage values --at {}",
        shell_word(place)
    )
}

/// Finds the executions of a statement, and their number. The number excludes the last execution if
/// the run ended before it.
pub fn executions<'a>(
    traced: &'a Session,
    values: &RecordedValues<'a>,
    site: &Site,
) -> Result<(Executions<'a>, u64)> {
    let program = traced.program();
    let all = Executions::of(values, program, site.function, site.op)?;
    let by = |time| Ok(all.by(time)?);
    let count = reached(traced, (site.function, site.op), all.count(), by)?;
    Ok((all, count))
}

/// Returns how many of the `count` executions of an operator's block reached the operator. The last
/// execution did not reach it if the run ended in the block before the operator. `by` returns the
/// number of executions of the block up to a time.
pub fn reached(
    traced: &Session,
    (function, op): (FuncId, OpId),
    count: u64,
    by: impl FnOnce(u64) -> Result<u64>,
) -> Result<u64> {
    if let Some(stop) = traced.stops()?.first()
        && stop.function == function
        && op >= stop.next
        && count > 0
    {
        let known = traced.program().function(function);
        let block = known.and_then(|function| function.block_of(op));
        if block == Some(stop.block) && by(traced.path()?.length().saturating_sub(1))? < count {
            return Ok(count - 1);
        }
    }
    Ok(count)
}

/// Resolves the number of an execution that a user named.
pub fn number(which: Occurrence, count: u64, what: &str) -> Result<u64> {
    let number = match which {
        Occurrence::Kth(number) => number,
        Occurrence::Last => count,
    };
    (1..=count)
        .contains(&number)
        .then_some(number)
        .ok_or_else(|| so_often(what, "executed", (count, number)).into())
}

/// The error for an execution that did not happen. The last field is the number of executions.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotThatOften(String, u64);

/// Returns the error for a requested execution number, if the place has only `count` executions.
/// `happened` is the verb: "executed", "called" or "arrived at".
pub(crate) fn so_often(what: &str, happened: &str, (count, number): (u64, u64)) -> NotThatOften {
    let text = match count {
        0 => format!("{what} was never {happened}"),
        _ => format!(
            "{what} was {happened} {}: there is no execution {}",
            times(count),
            grouped(number)
        ),
    };
    NotThatOften(text, count)
}

/// The error if a question asks why a place was not executed, but it was.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WasExecuted(pub String);

/// The reason why a place, or an execution of a place, does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// The place exists, but was never executed.
    Never,
    /// The place has executions, but not that one.
    Fewer,
    /// The place was executed, but the question asks why it was not.
    Executed,
    /// The line has no code. Contains the file's nearest line with code.
    NoCode(u32),
    /// No function has this name.
    NoFunction(String),
}

/// Returns why a place does not exist, if that is the reason for an error.
pub fn no_place(error: &Error) -> Option<NoPlace> {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        if let Some(NotThatOften(_, count)) = cause.downcast_ref() {
            return Some(if *count == 0 {
                NoPlace::Never
            } else {
                NoPlace::Fewer
            });
        }
        if cause.is::<WasExecuted>() {
            return Some(NoPlace::Executed);
        }
        match cause.downcast_ref::<PositionError<PathFileError>>() {
            Some(PositionError::Never { .. }) => return Some(NoPlace::Never),
            Some(PositionError::Fewer { .. }) => return Some(NoPlace::Fewer),
            Some(PositionError::Place(error)) => return of_place(error),
            _ => {}
        }
        if let Some(error) = cause.downcast_ref::<ResolveError>() {
            return of_place(error);
        }
        cause.downcast_ref().and_then(of_name)
    };
    error.chain().find_map(of)
}

fn of_place(error: &ResolveError) -> Option<NoPlace> {
    match error {
        ResolveError::Name(error) => of_name(error),
        ResolveError::Line(LineError::NoCode { nearest, .. }) => nearest.map(NoPlace::NoCode),
        _ => None,
    }
}

fn of_name(error: &NameError) -> Option<NoPlace> {
    match error {
        NameError::Unknown { query, .. } => Some(NoPlace::NoFunction(query.clone())),
        _ => None,
    }
}

/// Returns the command that explains why a place was not executed.
pub fn why_not(file: &Path, at: &str) -> String {
    let place = split_occurrence(at).map_or(at, |split| split.0);
    format!(
        "afterimage why-not {} --at {}",
        pasted(file),
        shell_word(place)
    )
}

/// Returns the command that shows which decisions allowed a place to be executed.
pub fn what_let_run(file: &Path, at: &str) -> String {
    format!("afterimage deps {} --at {}", pasted(file), shell_word(at))
}

/// If an error says that a place was never reached, adds the command that explains why. Leaves
/// other errors unchanged.
pub fn and_why_not(error: Error, file: &Path, at: &str) -> Error {
    let is_it = |error: &(dyn std::error::Error + 'static)| {
        let error = error.downcast_ref::<PositionError<PathFileError>>();
        matches!(error, Some(PositionError::Never { .. }))
    };
    if error.chain().any(is_it) {
        let text = format!("{}; see: {}", sentence(&error), why_not(file, at));
        error.context(text)
    } else {
        error
    }
}

/// Finds the operand that a user named by its role or by its number, from 1. `address` also names
/// an address with an offset.
pub fn operand(all: &[Operand], wanted: &str) -> Option<usize> {
    let is_it = |role: &str| role == wanted || role.strip_prefix("base ") == Some(wanted);
    let named = all.iter().position(|one| is_it(one.role));
    let number = || wanted.parse::<usize>().ok()?.checked_sub(1);
    named.or_else(number).filter(|&found| found < all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_number_sign_is_not_cut_off() {
        let told = |at| why_not(Path::new("app.aft"), at);
        for at in ["main::{closure#0}", "main::{closure#0}#3"] {
            assert_eq!(
                told(at),
                "afterimage why-not app.aft --at 'main::{closure#0}'",
                "{at}"
            );
        }
        assert_eq!(told("a.c:3#last"), "afterimage why-not app.aft --at a.c:3");
    }
}
