//! A recording with its path, opened.

use afterimage_program::Program;
use afterimage_replay::paths::{FileSegments, RecordedPath, recorded_path};
use afterimage_replay::steps::{FileCheckpoints, Run, stopped_before};
use afterimage_trace::TraceFile;

use crate::common::Sandbox;

/// A recording, opened.
pub struct Recorded {
    pub module: Vec<u8>,
    pub program: Program,
    pub file: TraceFile,
    pub path: RecordedPath,
}

impl Recorded {
    /// `run.aft` in a sandbox.
    pub fn open(sandbox: &Sandbox) -> Self {
        let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
        let module = file.module().unwrap();
        let program = Program::parse(&module).unwrap();
        let path = recorded_path(&file, &program).unwrap().expect("a path");
        Self {
            module,
            program,
            file,
            path,
        }
    }

    /// Its run, to be followed from its beginning or from checkpoints.
    pub fn run<'a>(&'a self, checkpoints: Option<&'a FileCheckpoints>) -> Run<'a, FileSegments> {
        let end = self.file.end().unwrap();
        Run {
            program: &self.program,
            module: &self.module,
            path: &self.path,
            continuations: &self.path.segments().directory().continuations,
            stopped: end.and_then(|end| stopped_before(&self.program, &self.module, &end)),
            checkpoints,
            progress: &|_| {},
        }
    }
}
