//! Stores paths in files of their own.

use std::sync::Arc;

use afterimage_machine::Machine;
use afterimage_program::Program;
use afterimage_record::{Cache, PathFilter, build_paths};
use afterimage_trace::{Kind, TraceFile, TraceWriter};
use afterimage_wpp::codec::{Limits, decode};
use afterimage_wpp::{Directory, DirectoryLimits, InMemory, WholePath};

use crate::harness::{Recording, open, progress};

/// A stored path.
pub struct Stored {
    pub path: WholePath<InMemory>,
    pub directory: Directory,
}

impl Stored {
    /// Stores the path of a recording in a copy of its file, and reads it back.
    pub fn of(recording: &Recording) -> Self {
        Self::filtered(recording, &PathFilter::default())
    }

    /// Stores only the part that a filter keeps.
    pub fn filtered(recording: &Recording, filter: &PathFilter) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("a.aft");
        std::fs::write(&at, &recording.whole).expect("a copy");
        let out = TraceWriter::append(&at).expect("a writer");
        let (cache, progress) = (Cache::none(), progress());
        build_paths(&recording.run(&cache, &progress), None, filter, &out)
            .unwrap_or_else(|error| panic!("stored path: {error}, {}", recording.ending()));
        out.commit().expect("a commit");
        Self::read(&open(&at), &recording.program)
    }

    fn read(file: &TraceFile, program: &Program) -> Self {
        let functions = (program.imports.len() + program.functions.len()) as u32;
        let bytes = file.last_whole(Kind::PATH_INDEX, u64::MAX);
        let limits = DirectoryLimits {
            nodes: 1 << 20,
            blocks: 1 << 24,
            functions,
            open: 1 << 20,
        };
        let bytes = bytes.expect("a sound index").expect("an index");
        let directory = Directory::decode(&bytes, &limits).expect("a directory");
        let contexts = directory.contexts();
        let limits = Limits {
            symbols: 1 << 24,
            nodes: directory.nodes.len() as u32,
            functions,
            open: 1 << 20,
        };
        let mut chunks = file.last(Kind::PATHS).expect("segments");
        let mut segments = Vec::new();
        while segments.len() < directory.summaries.len() && chunks.advance().expect("a sound chunk")
        {
            let segment = decode(chunks.bytes(), contexts.contexts(), &limits);
            segments.push(segment.expect("a segment"));
        }
        let nodes = Arc::new(directory.nodes.clone());
        let path = WholePath::new(InMemory::from_iter(segments), nodes).expect("a path");
        path.check().expect("sound segments");
        Self { path, directory }
    }

    /// Returns a machine that knows all nodes, before the run.
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
