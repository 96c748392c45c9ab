//! Makes checkpoints that are closer together than those of the commands, so that short runs have
//! many.

use std::convert::Infallible;
use std::path::Path;

use afterimage_replay::steps::{FileCheckpoints, Run, recorded_checkpoints};
use afterimage_replay::whole_path::{FileSegments, RecordedPath};
use afterimage_trace::{LogReader, TraceFile, TraceWriter};
use afterimage_wet::checkpoint::{CheckpointWriter, Vertex};
use afterimage_wet::{LeftOut, Run as Build};

/// Returns the checkpoints of a run at intervals of about `interval` instructions. They are kept in
/// their own file, a copy of the recording. If `part` is set, the checkpoints end in the middle of
/// the run.
pub fn checkpoints(
    run: Run<'_, FileSegments>,
    log: LogReader,
    path: &RecordedPath,
    (interval, part): (u64, bool),
    copy: &Path,
) -> Option<FileCheckpoints> {
    let length = run.path.length();
    let build = Build {
        program: run.program,
        bytes: run.module,
        path: run.path,
        continuations: run.continuations,
        window: 1..=if part { length / 2 } else { length },
        stopped: run.stopped,
        epoch: Build::<FileSegments>::EPOCH,
        left_out: &LeftOut::default(),
    };
    let out = TraceWriter::append(copy).expect("a copy");
    let mut writer = CheckpointWriter::new(&out).expect("a section");
    let record = |vertex: &Vertex| {
        writer.put(vertex).expect("a vertex");
        Ok::<_, Infallible>(())
    };
    let built = build.build_with_checkpoints(log, |_, _| Ok(()), (interval, record), |_| {});
    let nodes = built.expect("a run that can be followed").nodes;
    writer.finish(nodes, interval).expect("an index");
    out.commit().expect("a file");
    let file = TraceFile::open(copy).expect("a file");
    recorded_checkpoints(&file, path).expect("sound checkpoints")
}
