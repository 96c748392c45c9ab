//! Checks the slices that are stored in a file.

use std::collections::BTreeSet;

use afterimage_ids::OrigOffset;
use afterimage_machine::stopped_before;
use afterimage_program::{OperatorIndex, Program};
use afterimage_replay::steps::{Follower, Run, StepsError, recorded_checkpoints};
use afterimage_replay::values::{Execution, Instance, Statement};
use afterimage_replay::whole_path::{FileSegments, PathFileError, RecordedPath, recorded_path};
use afterimage_slice::{Criterion, Operator};
use afterimage_trace::{LogReader, TraceFile};

use super::criteria;
use super::question::{Algorithm, Question, answer, makers};
use super::saved::{SavedSlice, saved_slices};

/// The result of checking the slices in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlicesReport {
    /// The violated rules.
    pub findings: Vec<String>,
    /// The slices that were the same when computed again, with the number of executions in each.
    pub slices: Vec<(String, u64)>,
}

/// Recomputes the slices stored in a file and compares the results. Returns `None` if the file has
/// no slices or no readable path. If the file's path has gaps, slices of other paths are skipped.
/// `progress` receives the number of blocks processed so far.
///
/// Takes as long as computing the slices did.
pub fn verify_slices(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    progress: &dyn Fn(u64),
) -> Option<SlicesReport> {
    let mut report = SlicesReport::default();
    let saved = match saved_slices(file, program) {
        Ok(saved) if saved.is_empty() => return None,
        Ok(saved) => saved,
        Err(error) => {
            report.findings.push(format!("Slice: {error}"));
            return Some(report);
        }
    };
    // Other checks report faults in the path.
    let path = recorded_path(file, program).ok()??;
    let identity = (path.length(), path.nodes().len() as u64);
    // Reports show no slices of a path with gaps.
    let is_whole = path.nodes().values().all(|node| node.left_out == 0);
    for (name, saved) in saved {
        let again = match &saved {
            Ok(saved) if saved.path != identity && !is_whole => continue,
            Ok(saved) if saved.path != identity => {
                Err("it belongs to a different path; keep it again".to_owned())
            }
            Ok(saved) => check(saved, file, program, module, &path, progress),
            Err(error) => Err(error.to_string()),
        };
        let executions = saved.map_or(0, |saved| saved.slice.executions());
        match again {
            Ok(true) => report.slices.push((name, executions)),
            Ok(false) => report
                .findings
                .push(format!("Slice: {name:?} differs when it is made again")),
            Err(error) => report.findings.push(format!("Slice: {name:?}: {error}")),
        }
    }
    Some(report)
}

fn check(
    saved: &SavedSlice,
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    progress: &dyn Fn(u64),
) -> Result<bool, String> {
    let end = file.end().map_err(message)?;
    let checkpoints = recorded_checkpoints(file, path).map_err(message)?;
    let run = Run {
        program,
        module,
        path,
        continuations: &path.segments().directory().continuations,
        stopped: end.and_then(|end| stopped_before(program, module, &end)),
        checkpoints: checkpoints.as_ref(),
        snapshots: None,
        progress,
    };
    let log = || file.log().map_err(message);
    let question = &saved.question;
    let mut stands = are_of(&saved.offsets, question, program, module);
    let from = question.from.iter();
    let from = from.map(|from| (&from.criteria, &from.operators));
    let of_statements = question.algorithm != Algorithm::Full;
    // A question about memory or a variable has one criterion and no statements.
    stands &= !question.operators.is_empty() || question.criteria.len() == 1;
    for (criteria, operators) in from.chain([(&question.criteria, &question.operators)]) {
        let begin = |operators| begin(criteria, operators, run, log()?).map_err(message);
        let mut is_right = begin(operators)?;
        // Slices by statements, if they are about memory or variables, begin with the statements
        // that made the value.
        if !is_right && of_statements && begin(&[])? {
            for depth in [1, 0] {
                let made = makers(run, log()?, question, depth).map_err(message)?;
                is_right |= made == *operators;
            }
        }
        stands &= is_right;
    }
    if !stands {
        return Err("its place does not match its question".to_owned());
    }
    let again = answer(run, [log()?, log()?], question);
    Ok(again.map_err(message)? == saved.slice)
}

fn message(error: impl ToString) -> String {
    error.to_string()
}

/// Whether the offsets match the statements that the question is about. A question about memory or
/// a variable has neither.
fn are_of(offsets: &[OrigOffset], question: &Question, program: &Program, module: &[u8]) -> bool {
    let index = OperatorIndex::new(program, module);
    let places = offsets.iter().map(|&offset| index.find(offset));
    let places = places.collect::<Option<Vec<_>>>();
    let own = match question.algorithm {
        Algorithm::Full => &question.operators[..],
        Algorithm::Edges | Algorithm::Nodes => &[],
    };
    places.is_some_and(|places| places == own)
}

/// Whether the criteria begin where paths of the run begin. If the question is about statements,
/// the criteria must be executions or operands of exactly these statements.
fn begin(
    criteria: &[Criterion],
    operators: &[Operator],
    run: Run<'_, FileSegments>,
    log: LogReader,
) -> Result<bool, StepsError<PathFileError>> {
    let mut follower = Follower::new(run, log)?;
    let mut cursor = run.path.cursor();
    let mut left: BTreeSet<&Operator> = operators.iter().collect();
    for criterion in criteria {
        let visit = cursor.seek(criterion.start).map_err(StepsError::Path)?;
        let Some(visit) = visit.filter(|visit| visit.start == criterion.start) else {
            return Ok(false);
        };
        follower.compile(visit.node)?;
        let code = &follower.machine.codes()[visit.node];
        let blocks = &run.path.nodes()[visit.node].blocks;
        let mut has_begun = operators.is_empty();
        for operator @ &(function, op) in operators {
            let block = run.program.function(function).and_then(|f| f.block_of(op));
            let position = blocks.iter().position(|&other| Some(other) == block);
            let Some(position) = position.filter(|_| code.function == function) else {
                continue;
            };
            let is_last = position + 1 == blocks.len();
            let position = position as u64;
            let execution = Execution {
                number: 0,
                time: visit.start + position,
                instance: Instance {
                    node: visit.node,
                    number: 0,
                    time: visit.start,
                },
                statement: Statement::find(run.program, code, position, op, is_last),
            };
            let begins = criteria::all_of(&execution, code).any(|wants| wants == criterion.wants);
            // An operator that is not a statement may be listed with the statements of its line.
            if begins || execution.statement.is_none() {
                left.remove(operator);
            }
            has_begun |= begins;
        }
        if !has_begun {
            return Ok(false);
        }
    }
    Ok(left.is_empty())
}
