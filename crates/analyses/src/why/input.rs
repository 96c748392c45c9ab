//! Identifies bytes that the host wrote, such as bytes of a file or of an argument.

use afterimage_machine::Range;
use afterimage_program::Import;
use afterimage_trace::{HostWrite, TraceFile};

use super::WhyError;
use super::files::{Call, Calls, Files};
use afterimage_replay::values::HostReads;

/// The source of bytes that the host wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// Bytes of a file.
    File {
        /// The file.
        file: Stream,
        /// The offset of the first byte, from 0. `None` if the position at which the call read is
        /// unknown.
        offset: Option<u64>,
        /// The number of bytes.
        bytes: u64,
    },
    /// Bytes of an argument of the program.
    Argument {
        /// The number of the argument. Argument 0 is the program's name.
        number: u64,
        /// The whole argument.
        text: Box<[u8]>,
        /// The offset of the first byte, from 0. A zero byte follows the text.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Bytes of an environment variable, written as `NAME=VALUE`.
    Variable {
        /// The whole variable.
        text: Box<[u8]>,
        /// The offset of the first byte, from 0.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Any other bytes that a host function wrote.
    Other {
        /// The host function, as `module.name`.
        function: String,
        /// A description of the function's data, if known.
        what: Option<&'static str>,
        /// The file that the data describes.
        file: Option<Stream>,
    },
}

/// The meaning of a file descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// A folder that was granted to the program, by its name.
    Folder(String),
    /// An opened file, by its path.
    Path(String),
    /// An unknown descriptor, by its number.
    Unknown(u32),
}

impl InputSource {
    /// Identifies the bytes of a range that a host call wrote. Calls are numbered from 1. O(events
    /// of the log before the call).
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn find(
        host: &HostReads<'_, '_>,
        file: &TraceFile,
        imports: &[Import],
        call: u64,
        range: Range,
    ) -> Result<Self, WhyError> {
        let missing = WhyError::Damaged("a host call that is not in the log");
        let mut calls = Calls::new(file, imports)?;
        while let Some(made) = calls.next()? {
            if made.number == call {
                return calls.files.source_of(host, &made, range);
            }
            calls.files.follow(&made);
        }
        Err(missing)
    }
}

impl Files {
    /// Identifies the bytes of a range that a call wrote.
    fn source_of(
        &self,
        host: &HostReads<'_, '_>,
        call: &Call<'_>,
        range: Range,
    ) -> Result<InputSource, WhyError> {
        let fd = call.argument(0) as u32;
        let function = format!("{}.{}", call.import.module, call.import.name);
        let other = |what, file| InputSource::Other {
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
                    return Ok(other(Some("the length of a read"), Some(file)));
                }
                let from = if positioned {
                    Some(call.argument(3))
                } else {
                    self.offset(fd)
                };
                let found = call.writes.iter().rposition(inside);
                let missing = WhyError::Damaged("bytes that the host did not write");
                let found = found.ok_or(missing)?;
                let before = call.writes[..found].iter();
                let before: u64 = before.map(|write| write.bytes.len() as u64).sum();
                let before = before + (range.address - call.writes[found].address);
                Ok(InputSource::File {
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
                    let what = if arguments {
                        "the address of an argument"
                    } else {
                        "the address of an environment variable"
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
                let text = text.unwrap_or_default().into();
                let (offset, bytes) = ((at - first) as u64, range.length);
                Ok(if arguments {
                    InputSource::Argument {
                        number: before.iter().filter(|byte| **byte == 0).count() as u64,
                        text,
                        offset,
                        bytes,
                    }
                } else {
                    InputSource::Variable {
                        text,
                        offset,
                        bytes,
                    }
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

/// Describes the data that a WASI function writes to memory.
fn what_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "args_sizes_get" => "the number and the size of the arguments",
        "environ_sizes_get" => "the number and the size of the environment variables",
        "clock_time_get" => "the time of a clock",
        "clock_res_get" => "the resolution of a clock",
        "random_get" => "random bytes",
        "fd_write" | "fd_pwrite" => "the length of a write",
        "fd_seek" | "fd_tell" => "the position",
        "fd_filestat_get" | "path_filestat_get" => "the size, times and kind",
        "fd_fdstat_get" => "the kind, flags and rights",
        "fd_prestat_get" | "fd_prestat_dir_name" => "the name of a granted folder",
        "fd_readdir" => "the list of files",
        "path_open" => "the number of the opened file",
        "path_readlink" => "the target of a link",
        "poll_oneoff" => "the events that occurred",
        "sock_accept" => "the number of a connection",
        "sock_recv" => "data from a connection",
        _ => return None,
    })
}
