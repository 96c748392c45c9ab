//! Paths in files of their own.

use afterimage_machine::Machine;
use afterimage_record::{Cache, PathFilter, RecordedRun, build_paths};
use afterimage_trace::{Kind, TraceWriter};
use afterimage_wpp::{Directory, DirectoryLimits, InMemory, WholePath};

use crate::harness::{Recording, open, progress, read_path};

/// A stored path.
pub struct Stored {
    pub path: WholePath<InMemory>,
    pub directory: Directory,
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
        build_paths(&run, None, &PathFilter::default(), &out)
            .unwrap_or_else(|error| panic!("stored path: {error}, {}", recording.ending()));
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
        Self { path, directory }
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
