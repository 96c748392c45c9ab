//! Finds the host call that read a byte of the program's input, and the place in memory where it
//! put the byte.

use afterimage_machine::Range;
use afterimage_program::Import;
use afterimage_trace::TraceFile;

use super::WhyError;
use super::files::Calls;
use super::input::Stream;
use afterimage_replay::values::HostReads;

/// The place where a byte of input entered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    /// The number of the host call, from 1.
    pub call: u64,
    /// The place of the byte in memory.
    pub at: Range,
    /// The value of the byte.
    pub byte: u8,
}

impl Got {
    /// Finds the first `fd_read` of a byte of a stream or file. Bytes are numbered from 0.
    /// Returns `None` if the byte was not read. O(events of the log).
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn find(
        file: &TraceFile,
        imports: &[Import],
        (stream, byte): (&Stream, u64),
        host: &HostReads<'_, '_>,
    ) -> Result<Option<Self>, WhyError> {
        let mut calls = Calls::new(file, imports)?;
        while let Some(call) = calls.next()? {
            let fd = call.argument(0) as u32;
            let skip = if call.name == "fd_read" && call.succeeded {
                calls.files.offset(fd).and_then(|at| byte.checked_sub(at))
            } else {
                None
            };
            let skip = skip.filter(|skip| *skip < call.word(3).unwrap_or(0));
            if let Some(mut skip) = skip
                && calls.files.stream(host, fd)? == *stream
            {
                // The last write of the call is the number of bytes read, not data.
                let bytes = call.writes.split_last().map_or(&[][..], |(_, data)| data);
                for write in bytes {
                    let length = write.bytes.len() as u64;
                    if let Some(&byte) = write.bytes.get(skip as usize) {
                        return Ok(Some(Self {
                            call: call.number,
                            at: Range {
                                memory: write.memory,
                                address: write.address + skip,
                                length: 1,
                            },
                            byte,
                        }));
                    }
                    skip -= length;
                }
            }
            calls.files.follow(&call);
        }
        Ok(None)
    }
}
