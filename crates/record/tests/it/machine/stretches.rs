//! Checks that stretches between snapshots, built one by one, equal the whole path there.

use std::sync::Arc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::{Module, Program};
use afterimage_record::{RecordError, Stretches};
use afterimage_trace::{Kind, TraceFile};
use afterimage_wpp::{
    Directory, DirectoryLimits, Segment, Segments, StretchDirectory, Summary, WholePath,
};

use tempfile::TempDir;

use crate::harness::Recording;
use crate::stored::Stored;

/// Segments that are built on demand.
struct Made {
    stretches: Stretches,
    directory: Directory,
}

impl Segments for Made {
    type Error = RecordError;

    fn summaries(&self) -> &[Summary] {
        &self.directory.summaries
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, RecordError> {
        self.stretches.load(&self.directory, segment).map(Arc::new)
    }
}

/// Opens the file with added snapshots in a folder.
pub fn added(folder: &TempDir) -> TraceFile {
    TraceFile::open(&folder.path().join("a.aft")).expect("a file")
}

/// Returns the directory of the stretches of a program's run.
pub fn directory(file: &TraceFile, program: &Program) -> StretchDirectory {
    let section = |kind| {
        let bytes = file.last_whole(kind, u64::MAX).expect("a sound section");
        bytes.expect("a section")
    };
    let limits = DirectoryLimits {
        nodes: 1 << 20,
        blocks: 1 << 24,
        functions: (program.imports.len() + program.functions.len()) as u32,
        open: 1 << 20,
    };
    let (stretches, open) = (section(Kind::STRETCHES), section(Kind::OPEN));
    StretchDirectory::decode(&stretches, &open, &limits).expect("a directory")
}

/// Compares the stretches in a file with added snapshots with the path of the recording, and
/// returns their number.
pub fn agree(recording: &Recording, folder: &TempDir, stored: &Stored) -> usize {
    let file = added(folder);
    let directory = directory(&file, &recording.program).directory;
    let module = Module::parse(recording.bytes.clone()).expect("a module");
    let stretches = Stretches::open(&file, &Arc::new(module)).expect("words");
    let nodes = Arc::new(directory.nodes.clone());
    let made = Made {
        stretches: stretches.expect("words of a re-execution"),
        directory,
    };
    let path = WholePath::new(made, nodes).expect("stretches that follow each other");
    let checked = path.check();
    checked.unwrap_or_else(|error| panic!("{error}, {}", recording.ending()));
    assert_eq!(
        blocks(&path),
        blocks(&stored.path),
        "{}",
        recording.ending()
    );
    path.segments().summaries().len()
}

/// The maximum number of blocks compared.
const MOST: usize = 100_000;

fn blocks<S: Segments>(path: &WholePath<S>) -> Vec<(FuncId, BlockId, usize)> {
    let mut cursor = path.cursor();
    let mut blocks = Vec::new();
    while blocks.len() < MOST
        && let Some(visit) = cursor.next().expect("a step")
    {
        let node = &path.nodes()[visit.node];
        let depth = cursor.depth();
        blocks.extend(
            node.blocks
                .iter()
                .map(|&block| (node.function, block, depth)),
        );
    }
    blocks
}
