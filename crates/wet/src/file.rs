//! Reads and writes whole execution traces in trace files.

use std::sync::{Arc, Mutex, OnceLock};

use afterimage_ids::NodeId;
use afterimage_trace::{
    Kind, SectionReader, SectionWriter, TraceError as FileError, TraceFile, TraceWriter,
};

use crate::build::LastWriters;
use crate::def::Origin;
use crate::epoch::{BEFORE_NODE, CALLED_NODE, Epoch, EpochError};
use crate::index::{Index, LeftOut};
use crate::locked;
use crate::recent::{Loaded, Recent};
use crate::stretches::{Made, MakeStretch, Standing, StretchError};
use crate::trace::{DefinedBy, Epochs, HostCalls, Span, StorageCell, VariableBefore};

/// The maximum number of an epoch's bytes in one chunk.
const PART: usize = 15 << 20;
/// The maximum size of an epoch in bytes.
const LARGEST: u64 = 1 << 30;
/// The maximum size of an index in bytes.
const LARGEST_INDEX: u64 = 1 << 28;

/// The reason why the epochs of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EpochFileError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An epoch is damaged.
    #[error(transparent)]
    Epoch(#[from] EpochError),
    /// The index is damaged.
    #[error(
        "the index of the whole execution trace is damaged or has another version; build it again: afterimage build --lens full --again"
    )]
    Index,
    /// The trace belongs to another path.
    #[error(
        "the whole execution trace belongs to a path that has been built again since then: build the trace again \
         (afterimage build --lens full --again)"
    )]
    OtherPath,
    /// A stretch of the run could not be built.
    #[error(transparent)]
    Made(StretchError),
    /// The answer needs more stretches of the run than may be built.
    #[error(
        "more than {0} stretches of the run are needed: build all values (afterimage build --lens full)"
    )]
    TooMany(usize),
}

/// Writes epochs to a file, one by one.
pub struct EpochWriter {
    section: SectionWriter,
    epochs: Vec<(u64, u32)>,
}

impl EpochWriter {
    /// Begins the section.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(out: &TraceWriter) -> Result<Self, FileError> {
        Ok(Self {
            section: out.section(Kind::VALUES, None)?,
            epochs: Vec::new(),
        })
    }

    /// Writes the next epoch, which begins after `before` blocks.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(&mut self, before: u64, epoch: &[u8]) -> Result<(), FileError> {
        let mut chunks = 0;
        for part in epoch.chunks(PART) {
            self.section.put(before, part)?;
            chunks += 1;
        }
        self.epochs.push((before, chunks));
        Ok(())
    }

    /// Ends the section and writes the index. The caller must commit the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(self, out: &TraceWriter, index: &Index) -> Result<(), FileError> {
        self.section.finish(index.length, &[])?;
        let index = Index {
            epochs: self.epochs,
            ..index.clone()
        };
        out.whole(Kind::VALUES_INDEX, None, &index.encode())
    }
}

/// The epochs of a file, or epochs that are built on demand. A file has the epochs of all windows
/// that have been traced since the whole run was last traced.
///
/// The most recently used epochs stay in memory, with their last writers. They take up to 256 MiB,
/// or one epoch if that is larger. Other epochs are read or built again.
#[derive(Debug)]
pub struct FileEpochs {
    file: TraceFile,
    /// The windows, the most recently traced first.
    windows: Vec<Window>,
    /// The number of blocks executed before each epoch, window by window.
    before: Vec<u64>,
    recent: Mutex<Recent>,
    /// The most recently lent epoch.
    passing: Mutex<Option<(usize, Arc<Epoch>)>>,
    host: OnceLock<HostCalls>,
    /// The builder of the epochs, if they are built on demand.
    made: Option<Made>,
}

/// The window of one trace.
#[derive(Debug)]
struct Window {
    index: Index,
    /// The number of the section that contains the window's epochs.
    section: usize,
    /// The number of the section that contains the window's index.
    of_index: usize,
    /// The number of the window's first epoch, among the epochs of all windows.
    first: usize,
    /// The first chunk of each epoch.
    chunks: Vec<u32>,
}

impl FileEpochs {
    /// Opens the whole execution trace of a file. Returns `None` if the file has none. `nodes` is
    /// the [`fingerprint`](crate::fingerprint) of the file's path.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged, or belongs to another path.
    pub fn open(file: &TraceFile, nodes: u32) -> Result<Option<Self>, EpochFileError> {
        let mut epochs = Self {
            file: file.clone(),
            windows: Vec::new(),
            before: Vec::new(),
            recent: Mutex::default(),
            passing: Mutex::default(),
            host: OnceLock::new(),
            made: None,
        };
        let mut sections = Vec::new();
        while let Some(section) = file.section(sections.len()) {
            sections.push(section);
        }
        let complete = |kind, position: &usize| {
            let section: &SectionReader = &sections[*position];
            section.kind() == kind && section.is_complete()
        };
        for at in (0..sections.len()).rev() {
            if !complete(Kind::VALUES_INDEX, &at) {
                continue;
            }
            let bytes = whole(file, at)?;
            let index = Index::decode(&bytes).ok_or(EpochFileError::Index)?;
            if index.nodes != nodes {
                if epochs.windows.is_empty() {
                    return Err(EpochFileError::OtherPath);
                }
                // This window was traced before the path was rebuilt.
                break;
            }
            let anew = index.anew;
            let values = (0..at).rev().find(|at| complete(Kind::VALUES, at));
            let values = values.ok_or(EpochFileError::Index)?;
            epochs.add(index, (values, at), sections[values].chunks())?;
            if anew {
                break;
            }
        }
        Ok((!epochs.windows.is_empty()).then_some(epochs))
    }

    /// Returns epochs that are built on demand. `before` contains the number of blocks executed
    /// before each epoch. `end` is the number of blocks executed by the end of the last epoch. At
    /// most `most` epochs are built. If `most` covers all epochs, there is no limit.
    pub fn made(
        file: &TraceFile,
        (before, end): (Vec<u64>, u64),
        maker: Box<dyn MakeStretch>,
        most: usize,
    ) -> Self {
        let index = Index {
            first: 1,
            length: end,
            epochs: before.iter().map(|&before| (before, 0)).collect(),
            ..Index::default()
        };
        Self {
            file: file.clone(),
            windows: vec![Window {
                index,
                section: usize::MAX,
                of_index: usize::MAX,
                first: 0,
                chunks: vec![0; before.len()],
            }],
            recent: Mutex::default(),
            passing: Mutex::default(),
            host: OnceLock::new(),
            made: Some(Made::new(maker, most, before.len())),
            before,
        }
    }

    /// Changes the limit on the bytes of epochs in memory. With a limit of 0, only the most
    /// recently used epoch stays.
    pub fn keep(&self, bytes: usize) {
        locked(&self.recent).keep(bytes);
    }

    /// Whether the overall limit on built epochs has been exceeded.
    pub fn are_too_many(&self) -> bool {
        self.made.as_ref().is_some_and(Made::is_exceeded)
    }

    /// Returns the number of builds of epochs so far, and the number of epochs. An epoch that is
    /// dropped and built again counts again. Returns `None` if the epochs are stored, or there is
    /// no limit.
    pub fn built(&self) -> Option<(usize, usize)> {
        let built = self.made.as_ref()?.built()?;
        Some((built, self.before.len()))
    }

    /// Begins a question, and clears the record of exceeded limits.
    pub fn begin(&self) {
        if let Some(made) = &self.made {
            made.begin();
        }
    }

    /// Limits the total number of epochs built since the file was opened. The limit holds until the
    /// next question begins. Only one question is answered at a time.
    pub fn limit(&self, most: Option<usize>) {
        if let Some(made) = &self.made {
            made.limit(most);
        }
    }

    /// Whether the [limit](Self::limit) has been exceeded.
    pub fn is_over_limit(&self) -> bool {
        self.made.as_ref().is_some_and(Made::is_over_limit)
    }

    /// Returns an epoch with its last writers. Reads or builds the epoch if it is not in memory.
    fn loaded(&self, position: usize) -> Result<Loaded, EpochFileError> {
        if let Some(known) = locked(&self.recent).get(position) {
            return Ok(known);
        }
        let loaded = match &self.made {
            Some(made) => made.build(position, self.host()?)?,
            None => Loaded {
                epoch: self.read(position)?.into(),
                writers: None,
            },
        };
        Ok(locked(&self.recent).put(position, loaded))
    }

    /// Returns the last writers in a stretch that is built on demand.
    fn writers(&self, position: usize) -> Result<Arc<LastWriters>, EpochFileError> {
        self.loaded(position)?.writers.ok_or(EpochFileError::Index)
    }

    fn add(
        &mut self,
        index: Index,
        (section, of_index): (usize, usize),
        chunks: usize,
    ) -> Result<(), EpochFileError> {
        let first = self.before.len();
        let mut firsts = Vec::with_capacity(index.epochs.len());
        let mut next = 0u32;
        for &(before, count) in &index.epochs {
            firsts.push(next);
            next = next.checked_add(count).ok_or(EpochFileError::Index)?;
            self.before.push(before);
        }
        // The last chunk is empty.
        if chunks != next as usize + 1 {
            return Err(EpochFileError::Index);
        }
        self.windows.push(Window {
            index,
            section,
            of_index,
            first,
            chunks: firsts,
        });
        Ok(())
    }

    /// Returns the index of each window, the most recently traced first.
    pub fn windows(&self) -> impl Iterator<Item = &Index> {
        self.windows.iter().map(|window| &window.index)
    }

    /// Returns the positions of the sections with each window's epochs and index.
    pub fn sections(&self) -> impl Iterator<Item = (usize, usize)> {
        let windows = self.windows.iter();
        windows.map(|window| (window.section, window.of_index))
    }

    /// Whether the values of all these blocks are stored.
    pub fn covers(&self, first: u64, last: u64) -> bool {
        self.missing_from(first) > last
    }

    /// Returns the first block, from a given block on, whose values are not stored.
    pub fn missing_from(&self, first: u64) -> u64 {
        let mut windows = Vec::from_iter(self.windows());
        windows.sort_unstable_by_key(|index| index.first);
        let mut next = first;
        for index in windows {
            if index.first <= next {
                next = next.max(index.length.saturating_add(1));
            }
        }
        next
    }

    /// Returns the window of an epoch, and the window's position.
    fn window_of(&self, position: usize) -> Option<(usize, &Window)> {
        let mut windows = self.windows.iter().enumerate().rev();
        windows.find(|(_, window)| window.first <= position)
    }

    fn read(&self, position: usize) -> Result<Epoch, EpochFileError> {
        let (at, window) = self.window_of(position).ok_or(EpochFileError::Index)?;
        Ok(Epoch::open(self.bytes(at, position - window.first)?)?)
    }

    /// Returns the coded form of an epoch of a window, both given by their positions.
    ///
    /// # Errors
    /// Returns an error if there is no such epoch, or it cannot be read.
    pub fn bytes(&self, window: usize, epoch: usize) -> Result<Vec<u8>, EpochFileError> {
        let missing = EpochFileError::Index;
        let window = self.windows.get(window).ok_or(missing)?;
        let missing = EpochFileError::Index;
        let section = self.file.section(window.section).ok_or(missing)?;
        let counts = window.index.epochs.get(epoch).zip(window.chunks.get(epoch));
        let (&(_, count), &first) = counts.ok_or(EpochFileError::Index)?;
        let chunks = first as usize..(first as usize).saturating_add(count as usize);
        if chunks.end > section.chunks() || section.length(chunks.clone())? > LARGEST {
            return Err(EpochFileError::Index);
        }
        Ok(section.decoded(chunks)?)
    }
}

/// Reads all bytes of an index.
fn whole(file: &TraceFile, section: usize) -> Result<Vec<u8>, EpochFileError> {
    let mut section = file.section(section).ok_or(EpochFileError::Index)?;
    let mut bytes = Vec::new();
    while section.advance()? {
        bytes.extend_from_slice(section.bytes());
        if bytes.len() as u64 > LARGEST_INDEX {
            return Err(EpochFileError::Index);
        }
    }
    Ok(bytes)
}

impl Epochs for FileEpochs {
    type Error = EpochFileError;

    fn before(&self) -> &[u64] {
        &self.before
    }

    fn end(&self) -> u64 {
        let ends = self.windows().map(|index| index.length);
        ends.max().unwrap_or(0)
    }

    fn kept(&self) -> Vec<(u64, u64)> {
        let windows = self.windows().map(|index| (index.first, index.length));
        let mut windows = Vec::from_iter(windows);
        windows.sort_unstable();
        windows
    }

    fn find(&self, time: u64) -> Option<usize> {
        self.windows.iter().find_map(|window| {
            let epochs = &window.index.epochs;
            let after = epochs.partition_point(|&(before, _)| before < time);
            let inside = after > 0 && time <= window.index.length;
            inside.then(|| window.first + after - 1)
        })
    }

    fn span(&self, time: u64) -> Option<Span> {
        let position = self.find(time)?;
        let (at, window) = self.window_of(position)?;
        let next = window.index.epochs.get(position - window.first + 1);
        let end = next.map_or(window.index.length, |&(before, _)| before);
        // Windows that were traced later take precedence.
        let later = self.windows[..at].iter().filter_map(|later| {
            let &(before, _) = later.index.epochs.first()?;
            (before >= time).then_some(before)
        });
        let last = later.chain([end]).min()?;
        Some(Span {
            position,
            last,
            ends: last == end,
        })
    }

    fn left_out(&self, time: u64) -> Option<&LeftOut> {
        if self.windows().all(|index| index.left_out.is_nothing()) {
            return None;
        }
        let (_, window) = self.window_of(self.find(time)?)?;
        let left_out = &window.index.left_out;
        (!left_out.is_nothing()).then_some(left_out)
    }

    fn next_known(&self, time: u64) -> Option<u64> {
        let firsts = self.windows.iter().filter_map(|window| {
            let &(before, _) = window.index.epochs.first()?;
            let first = before.saturating_add(1).max(time);
            (first <= window.index.length).then_some(first)
        });
        firsts.min()
    }

    fn load(&self, position: usize) -> Result<Arc<Epoch>, EpochFileError> {
        Ok(self.loaded(position)?.epoch)
    }

    fn has(&self, position: usize) -> bool {
        locked(&self.recent).has(position)
    }

    fn dropped(&self) -> u64 {
        locked(&self.recent).dropped()
    }

    fn written_before(
        &self,
        mut position: usize,
        place: StorageCell,
    ) -> Result<Option<(Origin, u64)>, EpochFileError> {
        let Some(made) = &self.made else {
            return Ok(None);
        };
        // Watching the byte is faster than building many stretches in which only other bytes of the
        // line were written.
        let mut missed = false;
        loop {
            let last = match place {
                StorageCell::Byte { memory, address } if missed => {
                    made.wrote_byte(position, memory, address)
                }
                _ => made.written_before(position, place),
            };
            let Some(earlier) = last? else {
                return Ok(None);
            };
            if earlier >= position {
                return Err(EpochFileError::Index);
            }
            position = earlier;
            let writers = self.writers(position)?;
            let found = match place {
                StorageCell::Byte { memory, address } => writers.of_byte(memory, address),
                StorageCell::Global(global) => writers.of_global(global),
            };
            if found.is_some() {
                return Ok(found);
            }
            missed = true;
        }
    }

    fn variable_before(&self, wanted: VariableBefore) -> Result<Option<DefinedBy>, EpochFileError> {
        let VariableBefore {
            mut position,
            activation,
            function,
            variable,
            mut is_given,
        } = wanted;
        let Some(made) = &self.made else {
            return Ok(None);
        };
        loop {
            let opened = made.opened(position, activation)?;
            let Standing { entered, called } = opened.ok_or(EpochFileError::Index)?;
            if is_given {
                let called = called.ok_or(EpochFileError::Index)?;
                return Ok(Some(DefinedBy::At(called)));
            }
            let last = match called {
                Some(called) => self.find(called),
                None => position.checked_sub(1),
            };
            position = last
                .filter(|last| *last < position)
                .ok_or(EpochFileError::Index)?;
            if !made.may_write(position, activation, (function, variable))? {
                if entered > self.before[position] {
                    return Ok(Some(DefinedBy::At(entered)));
                }
                continue;
            }
            let writers = self.writers(position)?;
            let found = writers.of_variable(activation, variable);
            match found.ok_or(EpochFileError::Index)? {
                (BEFORE_NODE, _) => {}
                (CALLED_NODE, _) => is_given = true,
                (node, execution) => {
                    let node = NodeId::from_u32(node);
                    return Ok(Some(DefinedBy::Execution(node, execution)));
                }
            }
        }
    }

    fn lend(&self, position: usize) -> Result<Arc<Epoch>, EpochFileError> {
        if self.made.is_some() {
            return self.load(position);
        }
        if let Some(known) = locked(&self.recent).get(position) {
            return Ok(known.epoch);
        }
        let mut passing = locked(&self.passing);
        if let Some((known, epoch)) = &*passing
            && *known == position
        {
            return Ok(Arc::clone(epoch));
        }
        let epoch = Arc::new(self.read(position)?);
        *passing = Some((position, Arc::clone(&epoch)));
        Ok(epoch)
    }

    fn host(&self) -> Result<&HostCalls, EpochFileError> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = HostCalls::read(self.file.log()?)?;
        Ok(self.host.get_or_init(|| host))
    }
}
