//! What bytes that the host wrote are: which byte of which file, of which argument.

use std::collections::HashMap;

use afterimage_machine::Range;
use afterimage_program::Import;
use afterimage_trace::{Event, HostRead, HostWrite, LogReader, RawValue, TraceFile};

use super::WhyError;
use crate::values::HostReads;

/// What the host gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Bytes of a file.
    File {
        /// Which file.
        file: Stream,
        /// The first of them, from 0; `None` if the file was not read from its beginning on, and from where is not known.
        offset: Option<u64>,
        /// How many.
        bytes: u64,
    },
    /// Bytes of an argument of the program.
    Argument {
        /// Which one: 0 is the program's name.
        number: u64,
        /// All of it.
        text: String,
        /// The first of the bytes, from 0: it ends with one more, which is 0.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes of an environment variable, `NAME=VALUE`.
    Variable {
        /// All of it.
        text: String,
        /// The first of the bytes, from 0.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Anything else that a function of the host wrote.
    Other {
        /// The function, as `module.name`.
        function: String,
        /// What it gives, if that is known.
        what: Option<&'static str>,
        /// Of which file.
        file: Option<Stream>,
    },
}

/// What a file descriptor stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// A folder that was granted, by its name.
    Folder(String),
    /// A file that was opened, by its path.
    Path(String),
    /// What was never opened as far as is known: its number.
    Unknown(u32),
}

/// An open file.
#[derive(Clone, Debug)]
struct Open {
    named: Named,
    /// Where it is read and written next, if that is known.
    offset: Option<u64>,
    /// What is written goes to its end.
    append: bool,
}

#[derive(Clone, Debug)]
enum Named {
    Stream(Stream),
    /// The call that opened it read its path here, from this folder.
    Opened {
        call: u64,
        path: Range,
        folder: Option<Box<Named>>,
    },
}

/// The files that are open, as far as the log tells.
#[derive(Debug)]
pub(super) struct Files {
    open: HashMap<u32, Open>,
    /// How much was put out to the stream that somebody looks at.
    pub put: u64,
}

const WASI: &str = "wasi_snapshot_preview1";

impl Given {
    /// What the bytes of a range are that a call of the host wrote, which is counted from 1. O(events of the log before).
    ///
    /// # Errors
    /// If the recording is damaged.
    pub fn find(
        host: &HostReads<'_, '_>,
        file: &TraceFile,
        imports: &[Import],
        call: u64,
        range: Range,
    ) -> Result<Self, WhyError> {
        let missing = WhyError::Damaged("a call of the host that the log does not have");
        let mut calls = Calls::new(file, imports)?;
        while let Some(made) = calls.next()? {
            if made.number == call {
                return calls.files.given(host, &made, range);
            }
            calls.files.follow(&made);
        }
        Err(missing)
    }
}

/// The calls of the host that returned, in order, and what they do to files.
pub(super) struct Calls<'p> {
    log: LogReader,
    imports: &'p [Import],
    number: u64,
    /// Whoever takes a call has to tell it to these.
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
                    ..
                } => {
                    self.number += 1;
                    let missing = WhyError::Damaged("an import that the program does not have");
                    let import = self.imports.get(import.as_u32() as usize).ok_or(missing)?;
                    return Ok(Some(Call {
                        number: self.number,
                        import,
                        name: match import.module == WASI {
                            true => &import.name,
                            false => "",
                        },
                        args,
                        writes,
                        reads,
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

/// A call of the host that returned.
pub(super) struct Call<'p> {
    /// Which one, from 1.
    pub number: u64,
    import: &'p Import,
    /// What it is called in WASI; nothing, if it is another one.
    pub name: &'p str,
    args: Vec<RawValue>,
    writes: Vec<HostWrite>,
    /// What it read of memory.
    pub reads: Vec<HostRead>,
    /// It returned 0.
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

    /// The number that it wrote where its argument says: the last one written there holds.
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

    /// What a call does to the files.
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

    /// Whether a file descriptor stands for a stream.
    pub fn is(&self, fd: u32, stream: &Stream) -> bool {
        let open = self.open.get(&fd);
        open.is_some_and(|open| matches!(&open.named, Named::Stream(found) if found == stream))
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

    fn stream(&self, host: &HostReads<'_, '_>, fd: u32) -> Result<Stream, WhyError> {
        match self.open.get(&fd) {
            Some(open) => open.named.stream(host),
            None => Ok(Stream::Unknown(fd)),
        }
    }

    /// What the bytes of a range are that a call wrote.
    fn given(
        &self,
        host: &HostReads<'_, '_>,
        call: &Call<'_>,
        range: Range,
    ) -> Result<Given, WhyError> {
        let fd = call.argument(0) as u32;
        let function = format!("{}.{}", call.import.module, call.import.name);
        let other = |what, file| Given::Other {
            function,
            what,
            file,
        };
        let inside = |write: &HostWrite| {
            write.memory == range.memory
                && write.address <= range.address
                && range.address - write.address < write.bytes.len() as u64
        };
        let is_word = |argument: usize| {
            let at = call.argument(argument);
            (at..at.saturating_add(4)).contains(&range.address)
        };
        match call.name {
            "fd_read" | "fd_pread" => {
                let positioned = call.name == "fd_pread";
                if is_word(if positioned { 4 } else { 3 }) {
                    let file = self.stream(host, fd)?;
                    return Ok(other(Some("how many bytes were read"), Some(file)));
                }
                let from = match positioned {
                    true => Some(call.argument(3)),
                    false => self.open.get(&fd).and_then(|open| open.offset),
                };
                let found = call.writes.iter().rposition(inside);
                let missing = WhyError::Damaged("bytes that the host did not write");
                let found = found.ok_or(missing)?;
                let before = call.writes[..found].iter();
                let before: u64 = before.map(|write| write.bytes.len() as u64).sum();
                let before = before + (range.address - call.writes[found].address);
                Ok(Given::File {
                    file: self.stream(host, fd)?,
                    offset: from.and_then(|from| from.checked_add(before)),
                    bytes: range.length,
                })
            }
            "args_get" | "environ_get" => {
                let arguments = call.name == "args_get";
                let strings = call.writes.iter().rev().find(|write| inside(write));
                let strings = strings.filter(|write| write.address == call.argument(1));
                let Some(strings) = strings else {
                    let what = match arguments {
                        true => "the address of an argument",
                        false => "the address of an environment variable",
                    };
                    return Ok(other(Some(what), None));
                };
                let at = (range.address - strings.address) as usize;
                let before = &strings.bytes[..at];
                let first = before
                    .iter()
                    .rposition(|byte| *byte == 0)
                    .map_or(0, |at| at + 1);
                let text = strings.bytes[first..].split(|byte| *byte == 0).next();
                let text = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
                let (offset, bytes) = ((at - first) as u64, range.length);
                Ok(match arguments {
                    true => Given::Argument {
                        number: before.iter().filter(|byte| **byte == 0).count() as u64,
                        text,
                        offset,
                        bytes,
                    },
                    false => Given::Variable {
                        text,
                        offset,
                        bytes,
                    },
                })
            }
            name => {
                let what = what_of(name);
                let of_file = name.starts_with("fd_").then(|| self.stream(host, fd));
                Ok(other(what, of_file.transpose()?))
            }
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
                    parts.push(String::from_utf8_lossy(held).into_owned());
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

/// What a function of WASI gives in memory.
fn what_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "args_sizes_get" => "the number and the size of the arguments",
        "environ_sizes_get" => "the number and the size of the environment variables",
        "clock_time_get" => "the time of a clock",
        "clock_res_get" => "the resolution of a clock",
        "random_get" => "random bytes",
        "fd_write" | "fd_pwrite" => "how many bytes were written",
        "fd_seek" | "fd_tell" => "the position",
        "fd_filestat_get" | "path_filestat_get" => "size, times and kind",
        "fd_fdstat_get" => "kind, flags and rights",
        "fd_prestat_get" | "fd_prestat_dir_name" => "the name of a granted folder",
        "fd_readdir" => "the list of its files",
        "path_open" => "the number of the opened file",
        "path_readlink" => "where a link leads",
        "poll_oneoff" => "what happened",
        "sock_accept" => "the number of a connection",
        "sock_recv" => "what came from a connection",
        _ => return None,
    })
}
