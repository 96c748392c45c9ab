//! Writes and reads the SOURCES section, which contains embedded source files.
//!
//! Each file has chunks of its own, so it can be read without the others. The list of all files is
//! in the last chunk, so a writer need not know their lengths in advance.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::limits::{MAX_SOURCE, MAX_SOURCES, check};
use crate::wire::{Bytes, Fault, put_bytes, put_varint};
use crate::writer::{CHUNK, SectionWriter};
use crate::{Kind, Result, SectionReader, TraceError, TraceFile, TraceWriter};

/// Writes source files into a recording, one after another.
pub struct SourcesWriter {
    section: SectionWriter,
    /// The path of each file, and its numbers of chunks and bytes.
    files: Vec<(String, u64, u64)>,
}

impl TraceWriter {
    /// Begins the embedded sources.
    ///
    /// # Errors
    /// Returns [`TraceError::Write`] or [`TraceError::Failed`].
    pub fn sources(&self) -> Result<SourcesWriter> {
        Ok(SourcesWriter {
            section: self.section(Kind::SOURCES, None)?,
            files: Vec::new(),
        })
    }
}

impl SourcesWriter {
    /// Writes a file. `path` is the path in the debug information. No earlier file may have it.
    ///
    /// # Errors
    /// Returns [`TraceError::TooLarge`] for a file of more than 64 MiB or for too many files,
    /// [`TraceError::Write`], or [`TraceError::Failed`].
    pub fn add(&mut self, path: &str, text: &[u8]) -> Result<()> {
        check("the length of a source file", text.len(), MAX_SOURCE)?;
        check(
            "the number of source files",
            self.files.len() + 1,
            MAX_SOURCES,
        )?;
        let before = self.files.len() as u64;
        let pieces = text.chunks(CHUNK);
        let entry = (path.to_owned(), pieces.len() as u64, text.len() as u64);
        for piece in pieces {
            self.section.put(before, piece)?;
        }
        self.files.push(entry);
        Ok(())
    }

    /// Writes the list, which ends the section.
    ///
    /// # Errors
    /// Returns [`TraceError::TooLarge`] if the paths are too long in total, [`TraceError::Write`],
    /// or [`TraceError::Failed`].
    pub fn finish(self) -> Result<()> {
        let mut list = Vec::new();
        put_varint(&mut list, self.files.len() as u64);
        for (path, chunks, length) in &self.files {
            put_bytes(&mut list, path.as_bytes());
            put_varint(&mut list, *chunks);
            put_varint(&mut list, *length);
        }
        self.section.finish(self.files.len() as u64, &list)
    }
}

/// The source files in a recording.
#[derive(Debug)]
pub struct EmbeddedSources {
    section: SectionReader,
    files: BTreeMap<String, Embedded>,
}

#[derive(Debug)]
struct Embedded {
    chunks: Range<usize>,
    length: u64,
}

impl TraceFile {
    /// Returns the source files in the recording, or `None` if none were embedded.
    ///
    /// # Errors
    /// Returns [`TraceError::Damaged`] or [`TraceError::Malformed`].
    pub fn sources(&self) -> Result<Option<EmbeddedSources>> {
        let Some(section) = self.last(Kind::SOURCES) else {
            return Ok(None);
        };
        let last = section.chunks().saturating_sub(1);
        let list = section.decoded(last..section.chunks())?;
        let files = decode(&list, &section, last);
        let files = files.map_err(|fault| TraceError::Malformed {
            kind: Kind::SOURCES,
            sequence: last as u32,
            at: fault.at,
            what: fault.what,
        })?;
        Ok(Some(EmbeddedSources { section, files }))
    }
}

/// Reads the list, and checks it against the `last` chunks before it.
fn decode(
    list: &[u8],
    section: &SectionReader,
    last: usize,
) -> Result<BTreeMap<String, Embedded>, Fault> {
    let bytes = &mut Bytes::new(list);
    let mut next = 0;
    let entries = bytes.list(3, MAX_SOURCES, |bytes| {
        let start = *bytes;
        let (path, chunks, length) = (bytes.text()?, bytes.varint()?, bytes.varint()?);
        let chunks = usize::try_from(chunks).ok();
        let end = chunks.and_then(|chunks| chunks.checked_add(next));
        let Some(end) = end.filter(|&end| end <= last && length <= MAX_SOURCE) else {
            return start.fault("a source file that is longer than its data");
        };
        let chunks = std::mem::replace(&mut next, end)..end;
        if section.length(chunks.clone()).ok() != Some(length) {
            return start.fault("a source file whose length differs from its chunks");
        }
        Ok((path, Embedded { chunks, length }))
    })?;
    if next != last {
        return bytes.fault("chunks that belong to no source file");
    }
    bytes.end()?;
    let count = entries.len();
    let files = BTreeMap::from_iter(entries);
    if files.len() == count {
        Ok(files)
    } else {
        bytes.fault("two source files with one path")
    }
}

impl EmbeddedSources {
    /// Returns the paths of the files, as in the debug information, with their lengths in bytes.
    /// They are ordered by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        let files = self.files.iter();
        files.map(|(path, file)| (path.as_str(), file.length))
    }

    /// Whether a file is embedded.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns the text of a file, if it is embedded.
    ///
    /// # Errors
    /// Returns [`TraceError::Damaged`] if a chunk of the file is damaged.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let file = self.files.get(path);
        let text = file.map(|file| self.section.decoded(file.chunks.clone()));
        text.transpose()
    }
}
