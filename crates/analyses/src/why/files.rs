//! Tracks open files by following the host calls.

use std::collections::HashMap;

use afterimage_machine::Range;
use afterimage_program::Import;
use afterimage_trace::{Event, HostRead, HostWrite, LogReader, RawValue, TraceFile};

use super::WhyError;
use super::input::Stream;
use afterimage_replay::values::HostReads;

const WASI: &str = "wasi_snapshot_preview1";

/// An open file.
#[derive(Clone, Debug)]
struct Open {
    named: Named,
    /// The position of the next read or write, if known.
    offset: Option<u64>,
    /// Whether writes go to the end of the file.
    append: bool,
}

#[derive(Clone, Debug)]
enum Named {
    Stream(Stream),
    /// An opened file. The call that opened it read the file's path at this place. The path is
    /// relative to this folder.
    Opened {
        call: u64,
        path: Range,
        folder: Option<Box<Named>>,
    },
}

/// The identity of a stream or file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Stream(Stream),
    /// The file that this call opened.
    Opened(u64),
}

/// The open files that the log shows.
#[derive(Debug)]
pub(super) struct Files {
    open: HashMap<u32, Open>,
    /// The number of bytes written so far to the stream that is asked about.
    pub put: u64,
}

/// The host calls that returned, in order, and their effects on files.
pub(super) struct Calls<'p> {
    log: LogReader,
    imports: &'p [Import],
    number: u64,
    /// The open files. The user of this iterator must apply each call to them.
    pub files: Files,
}

impl<'p> Calls<'p> {
    pub fn new(file: &TraceFile, imports: &'p [Import]) -> Result<Self, WhyError> {
        Ok(Self {
            log: file.log()?,
            imports,
            number: 0,
            files: Files::new(&file.meta()?.dirs),
        })
    }

    pub fn next(&mut self) -> Result<Option<Call<'p>>, WhyError> {
        while let Some(event) = self.log.next().transpose()? {
            match event {
                Event::HostCall {
                    import,
                    args,
                    results,
                    writes,
                    reads,
                    read_digest,
                } => {
                    self.number += 1;
                    let missing = WhyError::Damaged("an import that is not in the program");
                    let import = self.imports.get(import.as_u32() as usize).ok_or(missing)?;
                    return Ok(Some(Call {
                        number: self.number,
                        import,
                        name: if import.module == WASI {
                            &import.name
                        } else {
                            ""
                        },
                        args,
                        writes,
                        reads,
                        digest: read_digest,
                        succeeded: matches!(results[..], [RawValue::I32(0)]),
                    }));
                }
                Event::HostStop { .. } => self.number += 1,
                _ => {}
            }
        }
        Ok(None)
    }
}

/// A host call that returned.
pub(super) struct Call<'p> {
    /// The number of the call, from 1.
    pub number: u64,
    /// The called import.
    pub import: &'p Import,
    /// The name of the import in WASI; empty if it is not from WASI.
    pub name: &'p str,
    args: Vec<RawValue>,
    /// The bytes that the call wrote to memory.
    pub writes: Vec<HostWrite>,
    /// The bytes that the call read from memory.
    pub reads: Vec<HostRead>,
    /// The CRC-32 of the bytes read.
    pub digest: u32,
    /// Whether the call returned 0.
    pub succeeded: bool,
}

impl Call<'_> {
    pub fn argument(&self, i: usize) -> u64 {
        match self.args.get(i) {
            Some(RawValue::I32(value)) => u64::from(*value as u32),
            Some(RawValue::I64(value)) => *value as u64,
            _ => 0,
        }
    }

    /// Returns the number that the call wrote to the address in this argument. If the call wrote
    /// there several times, the last write counts.
    pub fn word(&self, argument: usize) -> Option<u64> {
        let at = self.argument(argument);
        let found = self.writes.iter().rev().find(|write| write.address == at)?;
        let mut bytes = [0; 8];
        let length = found.bytes.len().min(8);
        bytes[..length].copy_from_slice(&found.bytes[..length]);
        Some(u64::from_le_bytes(bytes))
    }
}

impl Files {
    fn new(folders: &[String]) -> Self {
        let open = |stream, offset| Open {
            named: Named::Stream(stream),
            offset,
            append: false,
        };
        let mut all = HashMap::from([
            (0, open(Stream::Input, Some(0))),
            (1, open(Stream::Output, Some(0))),
            (2, open(Stream::Error, Some(0))),
        ]);
        for (fd, folder) in (3..).zip(folders) {
            all.insert(fd, open(Stream::Folder(folder.clone()), None));
        }
        Self { open: all, put: 0 }
    }

    /// Applies a call to the files.
    pub fn follow(&mut self, call: &Call<'_>) {
        if !call.succeeded {
            return;
        }
        let fd = call.argument(0) as u32;
        match call.name {
            "fd_read" => self.advance(fd, call.word(3)),
            "fd_write" => {
                let append = self.open.get(&fd).is_some_and(|open| open.append);
                self.advance(fd, call.word(3).filter(|_| !append));
            }
            "fd_seek" => self.go(fd, call.word(3)),
            "fd_tell" => self.go(fd, call.word(1)),
            "fd_close" => {
                self.open.remove(&fd);
            }
            "fd_renumber" => {
                if let Some(open) = self.open.remove(&fd) {
                    self.open.insert(call.argument(1) as u32, open);
                }
            }
            "path_open" => {
                let Some(opened) = call.word(8) else { return };
                let folder = self.open.get(&fd).map(|open| Box::new(open.named.clone()));
                let named = Named::Opened {
                    call: call.number,
                    path: Range {
                        memory: 0,
                        address: call.argument(2),
                        length: call.argument(3),
                    },
                    folder,
                };
                let open = Open {
                    named,
                    offset: Some(0),
                    append: call.argument(7) & 1 != 0,
                };
                self.open.insert(opened as u32, open);
            }
            "sock_accept" => {
                if let Some(opened) = call.word(2) {
                    self.open.remove(&(opened as u32));
                }
            }
            _ => {}
        }
    }

    /// Whether a file descriptor refers to a stream.
    pub fn is(&self, fd: u32, stream: &Stream) -> bool {
        let open = self.open.get(&fd);
        open.is_some_and(|open| matches!(&open.named, Named::Stream(found) if found == stream))
    }

    /// Returns the identity of a file descriptor.
    pub fn who(&self, fd: u32) -> Who {
        match self.open.get(&fd).map(|open| &open.named) {
            Some(Named::Stream(stream)) => Who::Stream(stream.clone()),
            Some(Named::Opened { call, .. }) => Who::Opened(*call),
            None => Who::Stream(Stream::Unknown(fd)),
        }
    }

    /// Returns the stream of a file descriptor. Returns `None` for an opened file if there is no
    /// `host` to supply its path.
    pub fn stream_if(
        &self,
        fd: u32,
        host: Option<&HostReads<'_, '_>>,
    ) -> Result<Option<Stream>, WhyError> {
        match (self.who(fd), host) {
            (Who::Stream(stream), _) => Ok(Some(stream)),
            (Who::Opened(_), Some(host)) => self.stream(host, fd).map(Some),
            (Who::Opened(_), None) => Ok(None),
        }
    }

    /// Returns the position of the next read of a file, if known.
    pub fn offset(&self, fd: u32) -> Option<u64> {
        self.open.get(&fd)?.offset
    }

    fn go(&mut self, fd: u32, offset: Option<u64>) {
        if let Some(open) = self.open.get_mut(&fd) {
            open.offset = offset;
        }
    }

    fn advance(&mut self, fd: u32, bytes: Option<u64>) {
        if let Some(open) = self.open.get_mut(&fd) {
            open.offset = open
                .offset
                .zip(bytes)
                .and_then(|(at, by)| at.checked_add(by));
        }
    }

    /// Returns the stream of a file descriptor.
    pub fn stream(&self, host: &HostReads<'_, '_>, fd: u32) -> Result<Stream, WhyError> {
        match self.open.get(&fd) {
            Some(open) => open.named.stream(host),
            None => Ok(Stream::Unknown(fd)),
        }
    }
}

impl Named {
    fn stream(&self, host: &HostReads<'_, '_>) -> Result<Stream, WhyError> {
        let mut parts = Vec::new();
        let mut next = Some(self);
        while let Some(named) = next {
            match named {
                Named::Stream(Stream::Folder(name)) => {
                    parts.push(name.clone());
                    break;
                }
                Named::Stream(stream) => return Ok(stream.clone()),
                Named::Opened { call, path, folder } => {
                    let instance = host.caller_of(*call)?;
                    let held = host.bytes(instance, &[*path])?;
                    let held = held.first().map_or(&[][..], |held| held);
                    // A path that is not text is quoted.
                    let name = str::from_utf8(held).map(str::to_owned);
                    parts.push(name.unwrap_or_else(|_| afterimage_variables::quoted(held)));
                    next = folder.as_deref();
                }
            }
        }
        let mut path = String::new();
        for part in parts.iter().rev() {
            if !path.is_empty() && !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(part);
        }
        Ok(match self {
            Named::Opened { .. } => Stream::Path(path),
            Named::Stream(_) => Stream::Folder(path),
        })
    }
}
