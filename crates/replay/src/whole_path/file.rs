//! Opens the path in a trace file.

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

/// The largest allowed size of a path's directory, in bytes.
const LARGEST_DIRECTORY: u64 = 1 << 30;
/// The largest number of rules and symbols in a segment.
const LARGEST_SEGMENT: usize = 1 << 26;
/// The largest number of activations that may be open at once.
const DEEPEST: usize = 1 << 26;
/// The largest total number of blocks of all nodes.
const LONGEST_NODES: usize = 1 << 28;

/// The reason why a file's path cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PathFileError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] TraceError),
    /// The directory is damaged.
    #[error("the directory of the path is damaged: {0}")]
    Directory(CodecError),
    /// The directory names a block that the program does not have.
    #[error(
        "the directory of the path names a block that is not in the program: {function}, {block}"
    )]
    NoSuchBlock {
        /// The function that the directory names.
        function: afterimage_ids::FuncId,
        /// The block that is missing.
        block: afterimage_ids::BlockId,
    },
    /// The file and the directory disagree on the number of segments.
    #[error("the path has {found} segments, but its directory says {expected}")]
    Segments {
        /// The number of segments in the directory.
        expected: usize,
        /// The number of segments in the file.
        found: usize,
    },
    /// A segment is damaged.
    #[error("a segment of the path is damaged: {0}")]
    Segment(CodecError),
    /// The number of opened grammars differs from the number of segments.
    #[error("the path has {expected} segments, but {found} opened grammars")]
    Grammars {
        /// The number of segments in the directory.
        expected: usize,
        /// The number of opened grammars in the file.
        found: usize,
    },
    /// An opened grammar is damaged.
    #[error("an opened grammar of the path is damaged: {0}")]
    Grammar(CodecError),
    /// A segment could not be built on demand.
    #[error(transparent)]
    Made(#[from] Box<dyn std::error::Error + Send + Sync>),
    /// The answer needs more segments than may be built for one question.
    #[error(
        "more than {0} stretches of the path are needed: build all of it (afterimage build --lens paths)"
    )]
    TooMany(usize),
    /// The directory describes segments that cannot follow each other.
    #[error("the segments of the path are not consecutive: {0}")]
    Follow(String),
}

/// The stored data of a path besides its segments.
pub type RecordedDirectory = Directory;

/// Builds segments that are not in a file, on demand.
pub trait MakeSegment: std::fmt::Debug + Send + Sync {
    /// Builds a segment. The directory summarises its contents.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be built.
    fn segment(
        &self,
        directory: &Directory,
        number: usize,
    ) -> Result<Segment, Box<dyn std::error::Error + Send + Sync>>;
}

/// The source of a path's segments.
#[derive(Debug)]
enum Source {
    /// Segments from the file, with the section of their opened grammars.
    File(Option<usize>),
    Memory(Vec<Arc<Segment>>),
    /// Segments built on demand, with the limit and the number built so far.
    Made(Box<dyn MakeSegment>, usize, AtomicUsize),
}

/// A segment of a path.
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
    /// Returns the directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the stored size of the segments, in bytes.
    pub fn stored(&self) -> u64 {
        self.reader().map_or(0, |reader| reader.stored())
    }

    /// Returns the file's section with the path's opened grammars, or `None` if there is no such
    /// section.
    pub fn grammars(&self) -> Option<usize> {
        match self.source {
            Source::File(grammars) => grammars,
            Source::Memory(_) | Source::Made(..) => None,
        }
    }

    /// Begins a question. Segments that earlier questions needed do not count against its limit.
    pub fn begin(&self) {
        if let Source::Made(_, _, made) = &self.source {
            made.store(0, Ordering::Relaxed);
        }
    }

    /// Whether more segments were needed than may be built.
    pub fn are_too_many(&self) -> bool {
        match &self.source {
            Source::Made(_, most, made) => made.load(Ordering::Relaxed) > *most,
            Source::File(_) | Source::Memory(_) => false,
        }
    }

    /// Whether more than half of the allowed segments were built.
    pub fn are_many(&self) -> bool {
        match &self.source {
            Source::Made(_, most, made) => made.load(Ordering::Relaxed) > most / 2,
            Source::File(_) | Source::Memory(_) => false,
        }
    }

    /// Returns a segment, decoded from its bytes in PATHS even if the file has its opened grammar.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
    pub fn coded(&self, segment: usize) -> Result<Arc<Segment>, PathFileError> {
        let mut reader = self.reader()?;
        reader.go(segment);
        reader.advance()?;
        let segment = codec::decode(reader.bytes(), &self.contexts, &self.limits());
        segment.map(Arc::new).map_err(PathFileError::Segment)
    }

    /// Adds the opened grammars of all segments to a file. [`Segments::load`] then reads the opened
    /// grammars, which is several times faster. The caller must commit the file. Takes time linear
    /// in the path, and memory for one segment.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read, or the file cannot be written.
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

/// Returns the section with the opened grammars of the current path. This is the last section of
/// this kind, if it was written after the path.
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

/// Returns the path of a file, or `None` if the file has no path yet.
///
/// # Errors
/// Returns an error if the path is damaged, or does not belong to this program.
pub fn recorded_path(
    file: &TraceFile,
    program: &Program,
) -> Result<Option<RecordedPath>, PathFileError> {
    recorded_path_of(file, program, recorded_directory(file)?)
}

/// Returns the directory of a file's path, or `None` if there is no path yet. This is most of the
/// work of opening a path, but needs no program. Takes time linear in the directory's size.
///
/// # Errors
/// Returns an error if the directory is damaged.
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

/// Returns the stretches of a file's path. Returns `None` if the file has no stretches, or if an
/// earlier version wrote them.
///
/// # Errors
/// Returns an error if the directory of the stretches is damaged.
pub fn stretches_of_path(file: &TraceFile) -> Result<Option<StretchDirectory>, PathFileError> {
    let Some(open) = file.last_whole(Kind::OPEN, LARGEST_DIRECTORY)? else {
        return Ok(None);
    };
    decoded(file, Kind::STRETCHES, |bytes, limits| {
        StretchDirectory::decode(bytes, &open, limits)
    })
}

/// The maximum number of functions of a path in a file without a program.
const WITHOUT_PROGRAM: u32 = 1 << 12;

/// Returns an upper bound on the number of functions in a file's program. This is the module's size
/// in bytes, since each function takes at least one byte. The indices of functions are checked once
/// the program is available.
fn most_functions(file: &TraceFile) -> Result<u32, PathFileError> {
    let sections = file.sections()?;
    let module = sections.iter().find(|one| one.kind == Kind::MODULE);
    let bytes = module.map(|module| u32::try_from(module.raw).unwrap_or(u32::MAX));
    Ok(bytes.unwrap_or(WITHOUT_PROGRAM))
}

/// Like [`recorded_path`], but takes the file's directory from [`recorded_directory`].
///
/// # Errors
/// Returns the same errors as [`recorded_path`].
pub fn recorded_path_of(
    file: &TraceFile,
    program: &Program,
    directory: Option<Directory>,
) -> Result<Option<RecordedPath>, PathFileError> {
    directory
        .map(|directory| opened(file, program, directory, grammars(file)))
        .transpose()
}

/// Like [`recorded_path`], but reads only PATHS. This is used to rewrite the opened grammars, which
/// may be damaged.
///
/// # Errors
/// Returns the same errors as [`recorded_path`].
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

/// Returns the path of a run, with stretches that are built on demand, up to a limit.
///
/// # Errors
/// Returns an error if the stretches do not belong to this program, or do not follow each other.
pub fn path_of_stretches(
    file: &TraceFile,
    program: &Program,
    directory: Directory,
    (maker, most): (Box<dyn MakeSegment>, usize),
) -> Result<RecordedPath, PathFileError> {
    let source = Source::Made(maker, most, AtomicUsize::new(0));
    whole(checked(file, program, directory, source)?)
}

/// Checks that the segments' directory names only functions and blocks that the program has.
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

/// Returns the path that consists of these segments, which are not in the file.
///
/// # Errors
/// Returns an error if the segments do not follow each other.
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
