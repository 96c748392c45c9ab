//! Checking the values in a file.

use std::convert::Infallible;

use afterimage_machine::stopped_before;
use afterimage_program::Program;
use afterimage_trace::TraceFile;
use afterimage_wet::checkpoint::{FileCheckpoints, INTERVAL, Vertex};
use afterimage_wet::{EpochFileError, FileEpochs, Index, Run};

use super::{HostReads, recorded_epochs, recorded_values};
use crate::paths::{FileSegments, RecordedPath, recorded_path};

/// What checking the values in a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValuesReport {
    /// What does not hold.
    pub findings: Vec<String>,
    /// The windows of which values are kept.
    pub windows: Vec<WindowReport>,
}

/// A stretch of a run of which values are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowReport {
    /// Statements executed in it.
    pub statements: u64,
    /// Its first block.
    pub first: u64,
    /// Its last one.
    pub last: u64,
}

/// Follows the run again, from its path and its log, and compares what comes of it with the values in the file, byte by byte; `None` if it has
/// none. On the way every branch is compared with the path, and every call of the host with the log: its arguments, and what it read.
/// `progress` is told now and then how many blocks were executed.
///
/// Takes as long as building the values.
pub fn verify_values(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    mut progress: impl FnMut(u64),
) -> Option<ValuesReport> {
    let mut report = ValuesReport::default();
    // What is wrong with the path is said by those who check it.
    let path = recorded_path(file, program).ok()??;
    let epochs = match recorded_epochs(file, &path) {
        Ok(epochs) => epochs?,
        Err(error) => {
            report.findings.push(format!("ValuesIndex: {error}"));
            return Some(report);
        }
    };
    for (window, index) in epochs.windows().enumerate() {
        report.windows.push(WindowReport {
            statements: index.statements,
            first: index.first,
            last: index.length,
        });
        let of_file = Stored {
            file,
            window,
            index,
        };
        if let Err(finding) = follow(&of_file, program, module, &path, &mut progress) {
            report.findings.push(finding);
        }
    }
    if report.findings.is_empty() {
        report
            .findings
            .extend(printed(file, program, module, &path, &epochs));
    }
    Some(report)
}

/// What is wrong with what the file tells of what was put out.
fn printed(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    epochs: &FileEpochs,
) -> Option<String> {
    let check = || {
        let values = recorded_values(program, module, path, epochs)?;
        let end = file.end()?;
        let run = crate::steps::Run {
            program,
            module,
            path,
            continuations: &path.segments().directory().continuations,
            stopped: end.and_then(|end| stopped_before(program, module, &end)),
            checkpoints: None,
            progress: &|_| {},
        };
        HostReads::new(&values, run, file).check_printed()
    };
    match check() {
        Ok(wrong) => wrong.map(|wrong| format!("Printed: {wrong}")),
        Err(error) => Some(format!("Printed: {error}")),
    }
}

/// A window in a file.
struct Stored<'a> {
    file: &'a TraceFile,
    /// Its position.
    window: usize,
    index: &'a Index,
}

fn follow(
    stored: &Stored<'_>,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    progress: impl FnMut(u64),
) -> Result<(), String> {
    let Stored {
        file,
        window,
        index,
    } = *stored;
    let end = file.end().map_err(|error| format!("ValuesRun: {error}"))?;
    let run = Run {
        program,
        bytes: module,
        path,
        continuations: &path.segments().directory().continuations,
        window: index.first..=index.length,
        left_out: &index.left_out,
        stopped: end.and_then(|end| stopped_before(program, module, &end)),
        epoch: Run::<FileSegments>::EPOCH,
    };
    let log = file.log().map_err(|error| format!("ValuesRun: {error}"))?;
    // Readers are not shared between threads; the file is.
    let mut coded = Vec::new();
    let mut wrong = None;
    let file = file.clone();
    let nodes = index.nodes;
    let mut wrong_checkpoint = None;
    let built = run.build_with_checkpoints::<Infallible>(
        log,
        |before, epoch| {
            if wrong.is_none() {
                wrong = compare((&file, nodes, window), &mut coded, before, &epoch);
            }
            Ok(())
        },
        (INTERVAL, |vertex: &Vertex| {
            if wrong_checkpoint.is_none() {
                wrong_checkpoint = compare_checkpoint(&file, nodes, vertex);
            }
            Ok(())
        }),
        progress,
    );
    let built = built.map_err(|error| format!("ValuesRun: {error}"))?;
    if let Some(wrong) = wrong.or(wrong_checkpoint) {
        return Err(wrong);
    }
    let built = Index {
        epochs: coded,
        ..built
    };
    let same = built.statements == index.statements
        && built.length == index.length
        && built.sizes == index.sizes
        && built.epochs.len() == index.epochs.len();
    match same {
        true => Ok(()),
        false => Err("ValuesIndex: it says other than what following the run gives".to_owned()),
    }
}

/// Compares the next epoch with what the file has in its place. What is wrong, if anything.
fn compare(
    (file, nodes, window): (&TraceFile, u32, usize),
    seen: &mut Vec<(u64, u32)>,
    before: u64,
    epoch: &[u8],
) -> Option<String> {
    let position = seen.len();
    seen.push((before, 0));
    let stored = FileEpochs::open(file, nodes).and_then(|epochs| match epochs {
        Some(epochs) => epochs.bytes(window, position),
        None => Err(EpochFileError::Index),
    });
    match stored {
        Ok(stored) if stored == epoch => None,
        Ok(_) => Some(format!(
            "ValuesEpoch: the epoch that begins after t={before} is not what following the run gives"
        )),
        Err(error) => Some(format!("ValuesEpoch: after t={before}: {error}")),
    }
}

/// Compares checkpoints with those that the file has in their place, if it does. What is wrong, if anything.
fn compare_checkpoint(file: &TraceFile, nodes: u32, vertex: &Vertex) -> Option<String> {
    let same = FileCheckpoints::open(file, nodes).and_then(|all| match all {
        Some(all) => all.has(vertex),
        None => Ok(None),
    });
    match same {
        Ok(None | Some(true)) => None,
        Ok(Some(false)) => Some(format!(
            "ValuesCheckpoints: those up to t={} are not what following the run gives",
            vertex.end()
        )),
        Err(error) => Some(format!(
            "ValuesCheckpoints: up to t={}: {error}",
            vertex.end()
        )),
    }
}
