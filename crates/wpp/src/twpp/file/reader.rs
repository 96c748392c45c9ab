//! Reads a file, or one function of a file.

use afterimage_ids::FuncId;

use super::consistency;
use super::error::{FileError, Part};
use super::function_block;
use super::layout::{DirectoryEntry, ENTRY, HEADER, Header, MAGIC, VERSION, u32_at};
use super::stored_traces::StoredTraces;
use crate::twpp::call_graph::CallGraph;
use crate::twpp::compact::Twpp;
use crate::twpp::lzw::LzwDecoder;
use crate::twpp::plain_calls::{self, CallsError};

/// An open TWPP file. A function can be read without the other functions and the call graph.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    header: Header,
    directory: &'a [[u8; ENTRY]],
}

/// The sizes in bytes of the parts of a file, which are the columns of the paper's Table 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// The size of the header and the directory.
    pub directory: u64,
    /// The size of the compressed dynamic call graph.
    pub calls: u64,
    /// The size of the timestamped traces of dynamic basic blocks.
    pub traces: u64,
    /// The size of the dictionaries of dynamic basic blocks.
    pub dictionaries: u64,
    /// The size of the path traces, which are pairs of a trace and a dictionary, and of the number
    /// of calls that took each.
    pub paths: u64,
}

impl FileSizes {
    /// Returns the size of the whole file.
    pub fn total(&self) -> u64 {
        self.directory + self.calls + self.traces + self.dictionaries + self.paths
    }
}

impl<'a> Reader<'a> {
    /// Opens a file, and checks its header and directory. Time: O(functions).
    ///
    /// # Errors
    /// Returns an error if the bytes are not a TWPP file, or the header or the directory is
    /// damaged.
    pub fn open(bytes: &'a [u8]) -> Result<Self, FileError> {
        if bytes.first_chunk() != Some(&MAGIC) {
            return Err(FileError::NotTwpp);
        }
        let truncated = FileError::Truncated(Part::Directory);
        let (head, rest) = bytes.split_first_chunk::<HEADER>().ok_or(truncated)?;
        let version = u32_at(head, 8);
        if version != VERSION {
            return Err(FileError::UnknownVersion(version));
        }
        let header = Header::from_bytes(head);
        let (directory, _) = rest.as_chunks::<ENTRY>();
        let directory = directory.get(..header.functions as usize);
        let directory = directory.ok_or(truncated)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&head[..HEADER - 4]);
        checksum.update(directory.as_flattened());
        if checksum.finalize() != u32_at(head, HEADER - 4) {
            return Err(FileError::Checksum(Part::Directory));
        }
        let reader = Self {
            bytes,
            header,
            directory,
        };
        let functions = directory.iter().map(DirectoryEntry::from_bytes);
        if !functions.is_sorted_by(|a, b| a.is_some() && key(a) < key(b)) {
            let what = "its functions do not ascend";
            return Err(FileError::Malformed(Part::Directory, what));
        }
        Ok(reader)
    }

    /// Returns the directory's entries, ascending by function.
    pub fn entries(&self) -> impl Iterator<Item = DirectoryEntry> {
        self.directory.iter().filter_map(DirectoryEntry::from_bytes)
    }

    /// Returns the directory's entry for a function, if it was called. Time: O(log functions).
    pub fn entry(&self, function: FuncId) -> Option<DirectoryEntry> {
        let number = function.as_u32();
        let found = self
            .directory
            .binary_search_by_key(&number, |e| u32_at(e, 0));
        DirectoryEntry::from_bytes(&self.directory[found.ok()?])
    }

    /// Returns the path traces of a function, if it was called. Reads only the directory and the
    /// function's block. Time: linear in the block. The timestamps are read only for the checksum.
    /// [`StoredTraces`] checks them on demand.
    ///
    /// # Errors
    /// Returns an error if the function's block is damaged.
    pub fn function(&self, function: FuncId) -> Result<Option<StoredTraces<'a>>, FileError> {
        self.entry(function).map(|e| self.read(&e)).transpose()
    }

    /// Returns the dynamic call graph, in at most `limit` bytes of memory. Time: O(calls).
    ///
    /// # Errors
    /// Returns an error if the call graph is damaged, or exceeds the limit.
    pub fn calls(&self, limit: usize) -> Result<CallGraph, FileError> {
        let begin = (HEADER + ENTRY * self.directory.len()) as u64;
        let compressed = self.part(Part::Calls, begin, self.header.calls_length)?;
        if crc32fast::hash(compressed) != self.header.calls_checksum {
            return Err(FileError::Checksum(Part::Calls));
        }
        let length = self.header.plain_length;
        let length = usize::try_from(length).map_err(|_| FileError::TooLarge(limit))?;
        let plain = LzwDecoder::new(compressed).take(length);
        plain_calls::read(plain, limit).map_err(|error| match error {
            CallsError::Source(error) => error.into(),
            CallsError::Malformed(what) => FileError::Malformed(Part::Calls, what),
            CallsError::TooLarge => FileError::TooLarge(limit),
        })
    }

    /// Reads everything, with the call graph in at most `limit` bytes of memory. Checks that the
    /// call graph and the path traces agree on every number of calls. Time: O(calls + bytes).
    ///
    /// # Errors
    /// Returns an error if a part is damaged, if the call graph exceeds the limit, or if the parts
    /// contradict each other.
    pub fn twpp(&self, limit: usize) -> Result<Twpp, FileError> {
        let functions = self
            .entries()
            .map(|entry| Ok(self.read(&entry)?.check()?.into_owned()));
        let twpp = Twpp {
            functions: functions.collect::<Result<_, FileError>>()?,
            calls: self.calls(limit)?,
        };
        consistency::check(&twpp).map_err(|what| FileError::Malformed(Part::Calls, what))?;
        Ok(twpp)
    }

    /// Returns the sizes of the parts in bytes. Time: O(functions).
    ///
    /// # Errors
    /// Returns an error if a function's block is cut off, or has an invalid beginning.
    pub fn sizes(&self) -> Result<FileSizes, FileError> {
        let mut sizes = FileSizes {
            directory: (HEADER + ENTRY * self.directory.len()) as u64,
            calls: self.header.calls_length,
            ..FileSizes::default()
        };
        for entry in self.entries() {
            let part = Part::Function(entry.function);
            let block = self.part(part, entry.offset, entry.length)?;
            let what = "its parts are longer than it is";
            let lengths = function_block::lengths(block);
            let lengths = lengths.ok_or(FileError::Malformed(part, what))?;
            sizes.traces += lengths.traces;
            sizes.dictionaries += lengths.dictionaries;
            sizes.paths += lengths.paths;
        }
        Ok(sizes)
    }

    /// Returns the size of the call graph in bytes before compression.
    pub fn plain_calls(&self) -> u64 {
        self.header.plain_length
    }

    fn read(&self, entry: &DirectoryEntry) -> Result<StoredTraces<'a>, FileError> {
        let part = Part::Function(entry.function);
        let block = self.part(part, entry.offset, entry.length)?;
        if crc32fast::hash(block) != entry.checksum {
            return Err(FileError::Checksum(part));
        }
        let malformed = |what| FileError::Malformed(part, what);
        let traces = function_block::read(entry.function, block).map_err(malformed)?;
        if traces.calls != entry.calls || traces.paths.len() as u64 != u64::from(entry.paths) {
            return Err(malformed("its calls differ from those of the directory"));
        }
        Ok(traces)
    }

    fn part(&self, part: Part, offset: u64, length: u64) -> Result<&'a [u8], FileError> {
        let begin = usize::try_from(offset).ok();
        let end = offset.checked_add(length);
        let end = end.and_then(|end| usize::try_from(end).ok());
        begin
            .zip(end)
            .and_then(|(begin, end)| self.bytes.get(begin..end))
            .ok_or(FileError::Truncated(part))
    }
}

fn key(entry: &Option<DirectoryEntry>) -> Option<FuncId> {
    entry.map(|e| e.function)
}
