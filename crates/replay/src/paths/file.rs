//! Opening the path in a trace file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afterimage_program::Program;
use afterimage_trace::{Kind, SectionReader, TraceError, TraceFile, TraceWriter};
use afterimage_wpp::codec::{self, CodecError, Limits, NodeContext};
use afterimage_wpp::{
    Directory, DirectoryLimits, PathError, Segment, Segments, StretchDirectory, Summary, Symbol,
    WholePath,
};

/// The whole path of a run, read from a file.
pub type RecordedPath = WholePath<FileSegments>;

/// Most bytes that the directory of a path may have.
const LARGEST_DIRECTORY: u64 = 1 << 30;
/// Most rules and symbols that a segment may have.
const LARGEST_SEGMENT: usize = 1 << 26;
/// Most activations that may be open at once.
const DEEPEST: usize = 1 << 26;
/// Most blocks that the nodes may have together.
const LONGEST_NODES: usize = 1 << 28;

/// Why a file's path cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PathFileError {
    /// The file.
    #[error(transparent)]
    File(#[from] TraceError),
    /// The directory.
    #[error("the directory of the path is damaged: {0}")]
    Directory(CodecError),
    /// A node that the program does not have.
    #[error(
        "the directory of the path names a block that the program does not have: {function}, {block}"
    )]
    NoSuchBlock {
        /// The function.
        function: afterimage_ids::FuncId,
        /// The block.
        block: afterimage_ids::BlockId,
    },
    /// There are more or fewer segments than the directory says.
    #[error("the path has {found} segments, its directory says {expected}")]
    Segments {
        /// By the directory.
        expected: usize,
        /// In the file.
        found: usize,
    },
    /// A segment.
    #[error("a segment of the path is damaged: {0}")]
    Segment(CodecError),
    /// There are more or fewer opened grammars than segments.
    #[error("the path has {expected} segments, and {found} opened grammars")]
    Grammars {
        /// By the directory.
        expected: usize,
        /// In the file.
        found: usize,
    },
    /// An opened grammar.
    #[error("an opened grammar of the path is damaged: {0}")]
    Grammar(CodecError),
    /// A segment that had to be made cannot be.
    #[error(transparent)]
    Made(#[from] Box<dyn std::error::Error + Send + Sync>),
    /// The answer needs more segments than are made for one question.
    #[error(
        "more than {0} stretches of the path are needed: build all of it (afterimage build --lens paths)"
    )]
    TooMany(usize),
    /// What the segments are said to hold is impossible.
    #[error("the segments of the path do not follow each other: {0}")]
    Follow(String),
}

/// What is stored of a path beside its segments.
pub type RecordedDirectory = Directory;

/// Who makes segments that are in no file when they are needed.
pub trait MakeSegment: std::fmt::Debug + Send + Sync {
    /// A segment of which the directory says what it holds.
    ///
    /// # Errors
    /// If it cannot be made.
    fn segment(
        &self,
        directory: &Directory,
        number: usize,
    ) -> Result<Segment, Box<dyn std::error::Error + Send + Sync>>;
}

/// Where segments are.
#[derive(Debug)]
enum Source {
    /// In the file, and which of its sections has their opened grammars.
    File(Option<usize>),
    Memory(Vec<Arc<Segment>>),
    /// They are made, at most so many times; and how many were.
    Made(Box<dyn MakeSegment>, usize, AtomicUsize),
}

/// A part of a path.
pub type PathSegment = Segment;

/// The segments of a file's path.
#[derive(Debug)]
pub struct FileSegments {
    file: TraceFile,
    source: Source,
    contexts: Vec<NodeContext>,
    directory: Directory,
    functions: u32,
}

impl FileSegments {
    /// The directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// How many bytes the segments have, as they are stored.
    pub fn stored(&self) -> u64 {
        self.reader().map_or(0, |reader| reader.stored())
    }

    /// Which of the file's sections has the path's opened grammars, if one has them.
    pub fn grammars(&self) -> Option<usize> {
        match self.source {
            Source::File(grammars) => grammars,
            Source::Memory(_) | Source::Made(..) => None,
        }
    }

    /// Whether more segments were needed than may be made.
    pub fn are_too_many(&self) -> bool {
        match &self.source {
            Source::Made(_, most, made) => made.load(Ordering::Relaxed) > *most,
            Source::File(_) | Source::Memory(_) => false,
        }
    }

    /// Whether more than half of the allowed segments have been made.
    pub fn are_many(&self) -> bool {
        match &self.source {
            Source::Made(_, most, made) => made.load(Ordering::Relaxed) > most / 2,
            Source::File(_) | Source::Memory(_) => false,
        }
    }

    /// A segment as its bytes in PATHS make it, whether or not its opened grammar is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn coded(&self, segment: usize) -> Result<Arc<Segment>, PathFileError> {
        let mut reader = self.reader()?;
        reader.go(segment);
        reader.advance()?;
        let segment = codec::decode(reader.bytes(), &self.contexts, &self.limits());
        segment.map(Arc::new).map_err(PathFileError::Segment)
    }

    /// Adds the opened grammars of all segments to a file, from which [`Segments::load`] then reads: several times faster. The caller commits.
    /// Linear in the path; memory for one segment.
    ///
    /// # Errors
    /// If a segment cannot be read, or the file not be written.
    pub fn write_grammars(&self, out: &TraceWriter) -> Result<(), PathFileError> {
        let mut section = out.section(Kind::PATH_GRAMMARS, None)?;
        let mut end = 0;
        for (at, summary) in self.summaries().iter().enumerate() {
            let segment = self.coded(at)?;
            section.put(summary.before, &codec::encode_opened(&segment))?;
            end = summary.before + summary.length;
        }
        Ok(section.finish(end, &[])?)
    }

    fn reader(&self) -> Result<SectionReader, PathFileError> {
        let missing = PathFileError::File(TraceError::Missing(Kind::PATHS));
        self.file.last(Kind::PATHS).ok_or(missing)
    }

    fn limits(&self) -> Limits {
        Limits {
            symbols: LARGEST_SEGMENT,
            nodes: self.directory.nodes.len() as u32,
            functions: self.functions,
            open: DEEPEST,
        }
    }
}

/// Which section has the opened grammars of the path that holds: the last one, if it was written after the path was.
fn grammars(file: &TraceFile) -> Option<usize> {
    let sections = (0..).map_while(|position| file.section(position));
    let mut found = None;
    for (position, section) in sections.enumerate() {
        match section.kind() {
            Kind::PATH_INDEX if section.is_complete() => found = None,
            Kind::PATH_GRAMMARS if section.is_complete() => found = Some(position),
            _ => {}
        }
    }
    found
}

impl Segments for FileSegments {
    type Error = PathFileError;

    fn summaries(&self) -> &[Summary] {
        &self.directory.summaries
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, PathFileError> {
        match &self.source {
            Source::Memory(segments) => {
                let found = segments.get(segment).map(Arc::clone);
                return found.ok_or(PathFileError::Segments {
                    expected: segment + 1,
                    found: segments.len(),
                });
            }
            Source::Made(maker, most, made) => {
                if made.fetch_add(1, Ordering::Relaxed) >= *most {
                    return Err(PathFileError::TooMany(*most));
                }
                return Ok(Arc::new(maker.segment(&self.directory, segment)?));
            }
            Source::File(_) => {}
        }
        let section = self.grammars();
        let section = section.and_then(|section| self.file.section(section));
        let Some(mut reader) = section else {
            return self.coded(segment);
        };
        reader.go(segment);
        reader.advance()?;
        let segment = codec::decode_opened(reader.bytes(), &self.limits());
        segment.map(Arc::new).map_err(PathFileError::Grammar)
    }
}

/// The path of a file, `None` if there is none yet.
///
/// # Errors
/// If it is damaged, or not one of this program.
pub fn recorded_path(
    file: &TraceFile,
    program: &Program,
) -> Result<Option<RecordedPath>, PathFileError> {
    recorded_path_of(file, program, recorded_directory(file)?)
}

/// The directory of a file's path, `None` if there is no path yet: most of the work of opening one, for which no program is needed. Linear in its size.
///
/// # Errors
/// If it is damaged.
pub fn recorded_directory(file: &TraceFile) -> Result<Option<Directory>, PathFileError> {
    decoded(file, Kind::PATH_INDEX, Directory::decode)
}

fn decoded<T>(
    file: &TraceFile,
    kind: Kind,
    decode: impl FnOnce(&[u8], &DirectoryLimits) -> Result<T, CodecError>,
) -> Result<Option<T>, PathFileError> {
    let Some(bytes) = file.last_whole(kind, LARGEST_DIRECTORY)? else {
        return Ok(None);
    };
    let limits = DirectoryLimits {
        nodes: Symbol::LIMIT - 1,
        blocks: LONGEST_NODES,
        functions: most_functions(file)?,
        open: DEEPEST,
    };
    let directory = decode(&bytes, &limits);
    directory.map(Some).map_err(PathFileError::Directory)
}

/// The stretches of a file's path. `None` if the file has none, or an earlier version made them.
///
/// # Errors
/// If it is damaged.
pub fn stretches_of_path(file: &TraceFile) -> Result<Option<StretchDirectory>, PathFileError> {
    let Some(open) = file.last_whole(Kind::OPEN, LARGEST_DIRECTORY)? else {
        return Ok(None);
    };
    decoded(file, Kind::STRETCHES, |bytes, limits| {
        StretchDirectory::decode(bytes, &open, limits)
    })
}

/// Of a file without a program so many functions are enough.
const WITHOUT_PROGRAM: u32 = 1 << 12;

/// No more functions than this are in a file's program: each takes a byte of it at least. Whether it has those that are spoken of is looked at when it is there.
fn most_functions(file: &TraceFile) -> Result<u32, PathFileError> {
    let sections = file.sections()?;
    let module = sections.iter().find(|one| one.kind == Kind::MODULE);
    let bytes = module.map(|module| u32::try_from(module.raw).unwrap_or(u32::MAX));
    Ok(bytes.unwrap_or(WITHOUT_PROGRAM))
}

/// As [`recorded_path`], with what [`recorded_directory`] gave for the file.
///
/// # Errors
/// As there.
pub fn recorded_path_of(
    file: &TraceFile,
    program: &Program,
    directory: Option<Directory>,
) -> Result<Option<RecordedPath>, PathFileError> {
    directory
        .map(|directory| opened(file, program, directory, grammars(file)))
        .transpose()
}

/// The same as [`recorded_path`], read from PATHS alone: for whoever writes the opened grammars again, which may be damaged.
///
/// # Errors
/// As there.
pub fn coded_path(
    file: &TraceFile,
    program: &Program,
) -> Result<Option<RecordedPath>, PathFileError> {
    recorded_directory(file)?
        .map(|directory| opened(file, program, directory, None))
        .transpose()
}

fn opened(
    file: &TraceFile,
    program: &Program,
    directory: Directory,
    grammars: Option<usize>,
) -> Result<RecordedPath, PathFileError> {
    let segments = checked(file, program, directory, Source::File(grammars))?;
    let (expected, found) = (
        segments.directory.summaries.len(),
        segments.reader()?.chunks().saturating_sub(1),
    );
    if expected != found {
        return Err(PathFileError::Segments { expected, found });
    }
    let section = segments
        .grammars()
        .and_then(|section| file.section(section));
    let found = section.map_or(expected, |section| section.chunks().saturating_sub(1));
    if expected != found {
        return Err(PathFileError::Grammars { expected, found });
    }
    whole(segments)
}

/// The path of a run whose stretches are made when they are needed, no more than so many.
///
/// # Errors
/// If what is told of them is not of this program.
pub fn path_of_stretches(
    file: &TraceFile,
    program: &Program,
    directory: Directory,
    (maker, most): (Box<dyn MakeSegment>, usize),
) -> Result<RecordedPath, PathFileError> {
    let source = Source::Made(maker, most, AtomicUsize::new(0));
    whole(checked(file, program, directory, source)?)
}

/// Segments whose directory names only what the program has.
fn checked(
    file: &TraceFile,
    program: &Program,
    directory: Directory,
    source: Source,
) -> Result<FileSegments, PathFileError> {
    let functions = (program.imports.len() + program.functions.len()) as u32;
    if directory.functions() > functions {
        let error = CodecError::Malformed("a function that does not exist");
        return Err(PathFileError::Directory(error));
    }
    for (node, continuation) in directory.nodes.values().zip(&directory.continuations) {
        let cfg = program
            .function(node.function)
            .map(|function| &function.cfg);
        let known = |block| cfg.is_some_and(|cfg| cfg.blocks.is_valid(block));
        let mut blocks = node.blocks.iter().chain(&continuation.next);
        if let Some(&block) = blocks.find(|&&block| !known(block)) {
            return Err(PathFileError::NoSuchBlock {
                function: node.function,
                block,
            });
        }
    }
    Ok(FileSegments {
        contexts: directory.contexts().contexts().to_vec(),
        file: file.clone(),
        source,
        directory,
        functions,
    })
}

/// The path of a file that consists of these segments, which are not in the file.
///
/// # Errors
/// If the segments do not follow each other.
pub fn path_in_memory(
    file: &TraceFile,
    directory: Directory,
    segments: Vec<Segment>,
) -> Result<RecordedPath, PathFileError> {
    whole(FileSegments {
        file: file.clone(),
        source: Source::Memory(segments.into_iter().map(Arc::new).collect()),
        contexts: Vec::new(),
        directory,
        functions: 0,
    })
}

fn whole(segments: FileSegments) -> Result<RecordedPath, PathFileError> {
    let nodes = Arc::new(segments.directory.nodes.clone());
    WholePath::new(segments, nodes)
        .map_err(|error: PathError<PathFileError>| PathFileError::Follow(error.to_string()))
}
