//! Checking the values in a file.

use std::convert::Infallible;

use afterimage_machine::stopped_before;
use afterimage_program::Program;
use afterimage_trace::TraceFile;
use afterimage_wet::{EpochFileError, FileEpochs, Index, Run};

use super::recorded_epochs;
use crate::paths::{FileSegments, RecordedPath, recorded_path};

/// What checking the values in a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValuesReport {
    /// What does not hold.
    pub findings: Vec<String>,
    /// Statements executed in what is kept.
    pub statements: u64,
    /// The first block of which values are kept.
    pub first: u64,
    /// The last one.
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
    progress: impl FnMut(u64),
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
    let index = epochs.index();
    report.statements = index.statements;
    (report.first, report.last) = (index.first, index.length);
    if let Err(finding) = follow(file, program, module, &path, &epochs, progress) {
        report.findings.push(finding);
    }
    Some(report)
}

fn follow(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    epochs: &FileEpochs,
    progress: impl FnMut(u64),
) -> Result<(), String> {
    let index = epochs.index();
    let end = file.end().map_err(|error| format!("ValuesRun: {error}"))?;
    let run = Run {
        program,
        bytes: module,
        path,
        continuations: &path.segments().directory().continuations,
        window: index.first..=index.length,
        stopped: end.and_then(|end| stopped_before(program, module, &end)),
        epoch: Run::<FileSegments>::EPOCH,
    };
    let log = file.log().map_err(|error| format!("ValuesRun: {error}"))?;
    // Readers are not shared between threads; the file is.
    let mut coded = Vec::new();
    let mut wrong = None;
    let file = file.clone();
    let nodes = index.nodes;
    let built = run.build::<Infallible>(
        log,
        |before, epoch| {
            if wrong.is_none() {
                wrong = compare(&file, nodes, &mut coded, before, &epoch);
            }
            Ok(())
        },
        progress,
    );
    let built = built.map_err(|error| format!("ValuesRun: {error}"))?;
    if let Some(wrong) = wrong {
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
    file: &TraceFile,
    nodes: u32,
    seen: &mut Vec<(u64, u32)>,
    before: u64,
    epoch: &[u8],
) -> Option<String> {
    let position = seen.len();
    seen.push((before, 0));
    let stored = FileEpochs::open(file, nodes).and_then(|epochs| match epochs {
        Some(epochs) => epochs.bytes(position),
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
