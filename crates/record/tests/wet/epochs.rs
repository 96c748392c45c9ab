//! Whole execution traces in memory.

#[path = "../../../../fuzz/bodies/values/epochs.rs"]
mod given;

use std::convert::Infallible;
use std::ops::RangeInclusive;

use afterimage_machine::{Machine, StoppedBefore, stopped_before};
use afterimage_record::{Cache, PathFilter, RecordedRun, build_paths};
use afterimage_trace::Kind;
use afterimage_trace::TraceWriter;
use afterimage_wet::{Epoch, HostCalls, LeftOut, Run};
use afterimage_wpp::{Directory, DirectoryLimits, InMemory, WholePath};

pub use given::InEpochs;

use crate::harness::{Recording, open, progress, read_path};

/// A stored path.
pub struct Stored {
    pub path: WholePath<InMemory>,
    pub directory: Directory,
    /// Where the run was stopped from outside.
    pub stopped: Option<StoppedBefore>,
}

impl Stored {
    /// Stores the path of a recording in a copy of its file, and reads it back.
    pub fn of(recording: &Recording) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("a.aft");
        std::fs::write(&at, &recording.whole).expect("a copy");
        let out = TraceWriter::append(&at).expect("a writer");
        let run = RecordedRun {
            file: &recording.file,
            bytes: &recording.bytes,
            program: &recording.program,
            cache: &Cache::none(),
            progress: &progress(),
        };
        build_paths(&run, None, &PathFilter::default(), &out).expect("a stored path");
        out.commit().expect("a commit");
        let file = open(&at);
        let path = read_path(&file, &recording.program);
        let program = &recording.program;
        let limits = DirectoryLimits {
            nodes: 1 << 20,
            blocks: 1 << 24,
            functions: (program.imports.len() + program.functions.len()) as u32,
            open: 1 << 20,
        };
        let bytes = file.last_whole(Kind::PATH_INDEX, u64::MAX);
        let bytes = bytes.expect("a sound index").expect("an index");
        let directory = Directory::decode(&bytes, &limits).expect("a directory");
        let stopped = stopped_before(program, &recording.bytes, &recording.recorded.end);
        Self {
            path,
            directory,
            stopped,
        }
    }

    /// A machine that knows all nodes, before the run.
    pub fn machine<'a>(&self, recording: &'a Recording) -> Machine<'a> {
        let log = recording.file.log().expect("a log");
        let machine = Machine::new(&recording.program, &recording.bytes, log);
        let mut machine = machine.expect("a machine");
        let nodes = self.path.nodes().values();
        for (node, continuation) in nodes.zip(&self.directory.continuations) {
            let defined = machine.define(node.function, &node.blocks, continuation.next);
            defined.expect("a node");
        }
        machine
    }
}

impl InEpochs {
    /// Builds windows, with about so many numbers in an epoch.
    pub fn build(
        recording: &Recording,
        stored: &Stored,
        windows: &[RangeInclusive<u64>],
        epoch: usize,
    ) -> Self {
        Self::without(recording, stored, windows, epoch, LeftOut::NOTHING)
    }

    /// Builds windows without some functions.
    pub fn without(
        recording: &Recording,
        stored: &Stored,
        windows: &[RangeInclusive<u64>],
        epoch: usize,
        left_out: LeftOut,
    ) -> Self {
        let log = || recording.file.log().expect("a log");
        let mut all = Self {
            before: Vec::new(),
            end: 0,
            epochs: Vec::new(),
            host: HostCalls::read(log()).expect("a sound log"),
            left_out,
        };
        for window in windows {
            let run = Run {
                program: &recording.program,
                bytes: &recording.bytes,
                path: &stored.path,
                continuations: &stored.directory.continuations,
                window: window.clone(),
                left_out: &all.left_out,
                stopped: stored.stopped,
                epoch,
            };
            let (before, epochs) = (&mut all.before, &mut all.epochs);
            let built = run.build::<Infallible>(
                log(),
                |time, bytes| {
                    before.push(time);
                    epochs.push(Epoch::open(bytes).expect("a sound epoch"));
                    Ok(())
                },
                |_| (),
            );
            let built = built.unwrap_or_else(|error| panic!("{error}, {}", recording.ending()));
            all.end = built.length;
        }
        all
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.epochs.len()
    }
}
