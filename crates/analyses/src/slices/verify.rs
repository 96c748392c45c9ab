//! Checking the slices that are kept in a file.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::stopped_before;
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::TraceFile;

use super::question::answer;
use super::saved::{SavedSlice, saved_slices};
use afterimage_replay::paths::{RecordedPath, recorded_path};
use afterimage_replay::steps::{Run, recorded_checkpoints};

/// What checking the slices in a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlicesReport {
    /// What does not hold.
    pub findings: Vec<String>,
    /// The slices that were made again, and how many executions each has.
    pub slices: Vec<(String, u64)>,
}

/// Makes the slices that are kept in a file again, and compares; `None` if there are none. Those of another path than the file has now are passed over. `progress` is told now
/// and then how many blocks were gone over.
///
/// Takes as long as making them.
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
    // What is wrong with the path is said by those who check it.
    let path = recorded_path(file, program).ok()??;
    let identity = (path.length(), path.nodes().len() as u64);
    for (name, saved) in saved {
        let again = match &saved {
            Ok(saved) if saved.path != identity => continue,
            Ok(saved) => check(saved, file, program, module, &path, progress),
            Err(error) => Err(error.to_string()),
        };
        let executions = saved.map_or(0, |saved| saved.slice.executions());
        match again {
            Ok(true) => report.slices.push((name, executions)),
            Ok(false) => report.findings.push(format!(
                "Slice: {name:?} is another one when it is made again"
            )),
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
    if !stands(saved, program, module, path)? {
        return Err("it stands elsewhere than what it is about".to_owned());
    }
    let end = file.end().map_err(|error| error.to_string())?;
    let checkpoints = recorded_checkpoints(file, path).map_err(|error| error.to_string())?;
    let run = Run {
        program,
        module,
        path,
        continuations: &path.segments().directory().continuations,
        stopped: end.and_then(|end| stopped_before(program, module, &end)),
        checkpoints: checkpoints.as_ref(),
        progress,
    };
    let log = || file.log().map_err(|error| error.to_string());
    let again = answer(run, [log()?, log()?], &saved.question);
    Ok(again.map_err(|error| error.to_string())? == saved.slice)
}

/// Whether the places and the statements that a slice is said to be about are in paths that its question begins in.
fn stands(
    saved: &SavedSlice,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
) -> Result<bool, String> {
    let index = OperatorIndex::new(program, module);
    let mut begins = Vec::new();
    let mut cursor = path.cursor();
    for criterion in &saved.question.criteria {
        let visit = cursor.seek(criterion.start);
        let visit = visit.map_err(|error| error.to_string())?;
        begins.extend(visit.map(|visit| &path.nodes()[visit.node]));
    }
    let is_there = |(function, op): (FuncId, OpId)| {
        let block = program.function(function).and_then(|f| f.block_of(op));
        let within = |block| {
            let mut nodes = begins.iter();
            nodes.any(|node| node.function == function && node.blocks.contains(&block))
        };
        block.is_some_and(within)
    };
    let places = saved.offsets.iter().map(|&offset| index.find(offset));
    let places = places.collect::<Option<Vec<_>>>();
    let Some(places) = places else {
        return Ok(false);
    };
    let same = places.is_empty() || places == saved.question.operators;
    Ok(same && places.into_iter().all(is_there))
}
