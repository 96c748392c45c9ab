//! Builds values in short epochs, with checkpoints at short intervals.

use afterimage_trace::TraceWriter;
use afterimage_wet::checkpoint::CheckpointWriter;
use afterimage_wet::{EpochWriter, Index, LeftOut, Run};

use crate::common::Sandbox;
use crate::common::recorded::Recorded;

/// Rebuilds the values of a copy of a recording, with epochs and intervals of about `epoch` numbers
/// and instructions.
pub fn build_tiny(
    sandbox: &Sandbox,
    recorded: &Recorded,
    name: &str,
    (epoch, interval): (usize, u64),
) {
    let run = recorded.run_from(None);
    let run = Run {
        program: run.program,
        bytes: run.module,
        path: run.path,
        continuations: run.continuations,
        window: 1..=u64::MAX,
        left_out: &LeftOut::NOTHING,
        stopped: run.stopped,
        epoch,
    };
    let out = TraceWriter::append(&sandbox.path(name)).unwrap();
    let mut epochs = EpochWriter::new(&out).unwrap();
    let mut checkpoints = CheckpointWriter::new(&out).unwrap();
    let built = run.build_with_checkpoints(
        recorded.file().log().unwrap(),
        |before, epoch| epochs.put(before, &epoch),
        (interval, |vertex: &_| checkpoints.put(vertex)),
        |_| {},
    );
    let index = Index {
        anew: true,
        ..built.unwrap()
    };
    checkpoints.finish(index.nodes, interval).unwrap();
    epochs.finish(&out, &index).unwrap();
    out.commit().unwrap();
}
