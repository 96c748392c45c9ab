//! Verifies the values in a file.

use std::collections::BTreeSet;
use std::error::Error;

use afterimage_ids::{BlockId, FuncId, grouped};
use afterimage_machine::stopped_before;
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::TraceFile;
use afterimage_wet::checkpoint::{FileCheckpoints, INTERVAL, Vertex};
use afterimage_wet::{BuildError, EpochFileError, FileEpochs, Index, Run, fingerprint};

use super::{HostReads, recorded_epochs, recorded_values};
use crate::state::calls;
use crate::steps::recorded_checkpoints;
use crate::whole_path::{FileSegments, RecordedPath, recorded_path};
use afterimage_profile::stops;

/// The result of checking the values in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValuesReport {
    /// Descriptions of the rules that do not hold.
    pub findings: Vec<String>,
    /// The windows with stored values.
    pub windows: Vec<WindowReport>,
}

/// A window of a run with stored values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowReport {
    /// The number of statements executed in the window.
    pub statements: u64,
    /// The time of the window's first block.
    pub first: u64,
    /// The time of the window's last block.
    pub last: u64,
}

/// Follows the run again, from its path and its log, and compares the results with the values and
/// the checkpoints in the file, byte by byte. Returns `None` if the file has neither, or no
/// readable path. On the way, compares every branch with the path, and the arguments and reads of
/// every host call with the log. `progress` receives the number of executed blocks.
///
/// Takes as long as building the values.
pub fn verify_values(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    mut progress: impl FnMut(u64),
) -> Option<ValuesReport> {
    let mut report = ValuesReport::default();
    // Other checks report faults in the path.
    let path = recorded_path(file, program).ok()??;
    let epochs = match recorded_epochs(file, &path) {
        Ok(epochs) => epochs,
        Err(error) => {
            report.findings.push(format!("ValuesIndex: {error}"));
            return Some(report);
        }
    };
    let found = recorded_checkpoints(file, &path);
    let (interval, vertices) = match found {
        Ok(found) => found.map_or((INTERVAL, 0), |all| (all.interval(), all.vertices())),
        Err(error) => {
            report.findings.push(format!("ValuesCheckpoints: {error}"));
            return Some(report);
        }
    };
    if epochs.is_none() && vertices == 0 {
        return None;
    }
    let followed = Followed {
        file,
        program,
        module,
        path: &path,
        interval,
    };
    let mut seen = BTreeSet::new();
    for (window, index) in epochs.iter().flat_map(FileEpochs::windows).enumerate() {
        report.windows.push(WindowReport {
            statements: index.statements,
            first: index.first,
            last: index.length,
        });
        if let Err(finding) = followed.window(window, index, &mut seen, &mut progress) {
            report.findings.push(finding);
        }
    }
    // Checkpoints may cover more of the run than the values do.
    if report.findings.is_empty()
        && seen.len() < vertices
        && let Err(finding) = followed.checkpoints(&mut seen, &mut progress)
    {
        report.findings.push(finding);
    }
    if report.findings.is_empty() && seen.len() < vertices {
        let finding = "ValuesCheckpoints: some checkpoints do not occur when the run is followed";
        report.findings.push(finding.to_owned());
    }
    if let Some(epochs) = epochs.filter(|_| report.findings.is_empty()) {
        let told = [printed, open_calls].map(|check| check(file, program, module, &path, &epochs));
        report.findings.extend(told.into_iter().flatten());
    }
    Some(report)
}

/// Returns the fault in the call stack at the end of the run, or `None` if there is no fault. As in
/// questions about a moment, the stack is found call by call, back along the path.
fn open_calls(
    file: &TraceFile,
    program: &Program,
    module: &[u8],
    path: &RecordedPath,
    epochs: &FileEpochs,
) -> Option<String> {
    let length = path.length();
    if length == 0 {
        return None;
    }
    let check = || -> Result<Option<String>, Box<dyn Error>> {
        let values = recorded_values(program, module, path, epochs)?;
        let (found, _) = calls(&values, length, usize::MAX)?;
        let index = OperatorIndex::new(program, module);
        let end = file.end()?;
        let said = end.map(|end| stops(program, &index, &end)).transpose()?;
        // A run that returned, or ended with an exception, has no recorded stack.
        let said = said.filter(|said| !said.is_empty());
        let Some(said) = said else {
            return Ok(None);
        };
        let mut cursor = path.cursor();
        let mut open = Vec::new();
        for call in &found {
            let visit = cursor.seek(call.time)?.ok_or("a call without a time")?;
            let blocks = &path.nodes()[visit.node].blocks;
            let block = blocks.get((call.time - visit.start) as usize);
            open.push((call.function, *block.ok_or("a call in no block")?));
        }
        let said = said.iter().map(|stop| (stop.function, stop.block));
        Ok(other_stack(&open, said))
    };
    match check() {
        Ok(wrong) => wrong.map(|wrong| format!("Calls: {wrong}")),
        Err(error) => Some(format!("Calls: {error}")),
    }
}

/// Returns the difference between the stack that was found, innermost call first, and the recorded
/// stack.
fn other_stack(
    found: &[(FuncId, BlockId)],
    mut said: impl ExactSizeIterator<Item = (FuncId, BlockId)>,
) -> Option<String> {
    if said.len() != found.len() {
        let (found, said) = (found.len(), said.len());
        return Some(format!(
            "{found} functions are open at the end, but the recording lists {said}"
        ));
    }
    let differs = found.iter().position(|found| said.next() != Some(*found));
    let at = differs?;
    let (function, block) = found[at];
    Some(format!(
        "function {at} of the stack at the end is {function}, in {block}, but the recording names \
         another place"
    ))
}

/// Returns the fault in the stored output, or `None` if there is no fault.
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
            snapshots: None,
            progress: &|_| {},
        };
        HostReads::new(&values, run, file.clone()).check_printed()
    };
    match check() {
        Ok(wrong) => wrong.map(|wrong| format!("Printed: {wrong}")),
        Err(error) => Some(format!("Printed: {error}")),
    }
}

/// The vertices of the checkpoints' tree that have been compared, each with its level and its
/// number within the level.
type Seen = BTreeSet<(u32, u64)>;

/// A run that is followed again.
struct Followed<'a> {
    file: &'a TraceFile,
    program: &'a Program,
    module: &'a [u8],
    path: &'a RecordedPath,
    /// The approximate number of instructions between checkpoints.
    interval: u64,
}

impl Followed<'_> {
    /// Compares a window, given by its position, and its checkpoints.
    fn window(
        &self,
        window: usize,
        index: &Index,
        seen: &mut Seen,
        progress: impl FnMut(u64),
    ) -> Result<(), String> {
        let file = self.file.clone();
        let mut coded = Vec::new();
        let write = |before, epoch: Vec<u8>| {
            compare((&file, index.nodes, window), &mut coded, before, &epoch)
        };
        let built = self.build(index, write, seen, progress)?;
        let built = Index {
            epochs: coded,
            ..built
        };
        // The number of chunks of an epoch was checked when the epoch was read.
        let begins = |index: &Index| Vec::from_iter(index.epochs.iter().map(|(before, _)| *before));
        let same = built.statements == index.statements
            && built.length == index.length
            && built.sizes == index.sizes
            && begins(&built) == begins(index);
        if same {
            Ok(())
        } else {
            Err("ValuesIndex: the index differs from the result of following the run".to_owned())
        }
    }

    /// Compares all checkpoints.
    fn checkpoints(&self, seen: &mut Seen, progress: impl FnMut(u64)) -> Result<(), String> {
        let continuations = &self.path.segments().directory().continuations;
        let whole = Index {
            nodes: fingerprint(self.path.nodes(), continuations),
            first: 1,
            length: self.path.length(),
            ..Index::default()
        };
        let built = self.build(&whole, |_, _| Ok(()), seen, progress);
        built.map(|_| ())
    }

    /// Follows the part of the run that an index covers, and builds epochs with the same
    /// boundaries. Returns the index of these epochs, or the fault.
    fn build(
        &self,
        index: &Index,
        write: impl FnMut(u64, Vec<u8>) -> Result<(), String> + Send,
        seen: &mut Seen,
        progress: impl FnMut(u64),
    ) -> Result<Index, String> {
        let failed = |error: &dyn Error| format!("ValuesRun: {error}");
        let end = self.file.end().map_err(|error| failed(&error))?;
        let run = Run {
            program: self.program,
            bytes: self.module,
            path: self.path,
            continuations: &self.path.segments().directory().continuations,
            window: index.first..=index.length,
            left_out: &index.left_out,
            stopped: end.and_then(|end| stopped_before(self.program, self.module, &end)),
            epoch: Run::<FileSegments>::EPOCH,
        };
        let log = self.file.log().map_err(|error| failed(&error))?;
        // Threads cannot share readers, but they can share the file.
        let file = self.file.clone();
        let record = |vertex: &Vertex| {
            if compare_checkpoint(&file, index.nodes, vertex)? {
                seen.insert(vertex.place());
            }
            Ok(())
        };
        let built = run.build_as(index, log, write, (self.interval, record), progress);
        built.map_err(|error| match error {
            BuildError::Write(finding) => finding,
            error => failed(&error),
        })
    }
}

/// Compares the next epoch with the epoch in the file.
fn compare(
    (file, nodes, window): (&TraceFile, u32, usize),
    seen: &mut Vec<(u64, u32)>,
    before: u64,
    epoch: &[u8],
) -> Result<(), String> {
    let position = seen.len();
    seen.push((before, 0));
    let stored = FileEpochs::open(file, nodes).and_then(|epochs| match epochs {
        Some(epochs) => epochs.bytes(window, position),
        None => Err(EpochFileError::Index),
    });
    match stored {
        Ok(stored) if stored == epoch => Ok(()),
        Ok(_) => Err(format!(
            "ValuesEpoch: the epoch that begins after t={} differs from the result of \
             following the run",
            grouped(before)
        )),
        Err(error) => Err(format!("ValuesEpoch: after t={}: {error}", grouped(before))),
    }
}

/// Compares a vertex of checkpoints with the file. Returns whether the file has checkpoints.
fn compare_checkpoint(file: &TraceFile, nodes: u32, vertex: &Vertex) -> Result<bool, String> {
    let same = FileCheckpoints::open(file, nodes).and_then(|all| match all {
        Some(all) => all.has(vertex),
        None => Ok(None),
    });
    match same {
        Ok(None) => Ok(false),
        Ok(Some(true)) => Ok(true),
        Ok(Some(false)) => Err(format!(
            "ValuesCheckpoints: the checkpoints up to t={} differ from the result of following the run",
            grouped(vertex.end())
        )),
        Err(error) => Err(format!(
            "ValuesCheckpoints: up to t={}: {error}",
            grouped(vertex.end())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_stack_is_found() {
        let of = |function, block| (FuncId::from_u32(function), BlockId::from_u32(block));
        let found = [of(3, 1), of(2, 0)];
        assert_eq!(other_stack(&found, found.into_iter()), None);
        for said in [
            vec![of(3, 1)],
            vec![of(3, 1), of(2, 1)],
            vec![of(4, 1), of(2, 0)],
            vec![of(3, 1), of(2, 0), of(1, 0)],
        ] {
            assert!(other_stack(&found, said.into_iter()).is_some());
        }
    }
}
