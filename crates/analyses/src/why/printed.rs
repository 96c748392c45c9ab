//! Finds the host call that wrote a byte of the program's output, and the place in memory from
//! which it came.

use afterimage_machine::Range;
use afterimage_program::Import;
use afterimage_trace::TraceFile;
use afterimage_wet::{FilePrinted, PrintedError};

use super::files::Calls;
use super::input::Stream;
use super::{At, End, Walk, WhyError};
use afterimage_replay::values::{HostPart, HostReads, HostReadsError, Instance, Origin};

/// A call that produced output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The number of the host call, from 1.
    pub call: u64,
    /// The number of bytes that were written to the stream before the call.
    pub before: u64,
    /// The number of bytes that the call output.
    pub bytes: u64,
    /// The ranges of memory from which the output was read, in order. They may be longer than the
    /// output.
    pub from: Vec<Range>,
    /// The number of bytes that the host read first, for the list of ranges.
    list: u64,
    /// The CRC-32 of everything that the host read.
    digest: u32,
}

/// The output of a call, as it was in memory.
pub struct PutBytes {
    call: u64,
    /// The time of the call and the bytes that the host read, if the file contains them.
    read: Option<(u64, Vec<u8>)>,
}

impl PutBytes {
    /// Finds the execution that ends with the call. This opens a segment of the path, which is not
    /// needed for the output itself.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn caller(&self, host: &HostReads<'_, '_>) -> Result<Instance, HostReadsError> {
        match self.read {
            Some((time, _)) => host.caller_at(time, self.call),
            None => host.caller_of(self.call),
        }
    }
}

impl Put {
    /// Returns the call's output, with the bytes that the file contains.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn open(&self, host: &HostReads<'_, '_>) -> Result<PutBytes, HostReadsError> {
        Ok(PutBytes {
            call: self.call,
            read: host.printed(self.call, self.digest)?,
        })
    }

    /// Returns up to `most` bytes from `first` on, counted from the start of the stream. If the
    /// file does not contain the bytes, follows the run from the last checkpoint.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged, or the run cannot be followed.
    pub fn bytes(
        &self,
        opened: &PutBytes,
        host: &HostReads<'_, '_>,
        first: u64,
        most: u64,
    ) -> Result<Vec<u8>, HostReadsError> {
        if let Some((_, read)) = &opened.read {
            return Ok(self.part(read, first, most).to_vec());
        }
        let mut ranges: Vec<Range> = Vec::new();
        let (mut at, mut left) = (first, most);
        while let Some(range) = self.range(at, left) {
            at += range.length;
            left -= range.length;
            ranges.push(range);
        }
        Ok(host.bytes(opened.caller(host)?, &ranges)?.concat())
    }

    /// Returns the number of bytes that the host read up to the end of the first `most` bytes of
    /// output.
    pub fn read_for(&self, most: u64) -> u64 {
        self.list.saturating_add(most.min(self.bytes))
    }

    /// Returns up to `most` bytes of output from `first` on, counted from the start of the stream.
    /// `read` are the bytes that the host read.
    pub fn part<'r>(&self, read: &'r [u8], first: u64, most: u64) -> &'r [u8] {
        let skip = first.saturating_sub(self.before).min(self.bytes);
        let length = most.min(self.bytes - skip);
        let place = |at: u64| usize::try_from(self.list.saturating_add(at)).ok();
        let found = place(skip).zip(place(skip.saturating_add(length)));
        let found = found.and_then(|(from, to)| read.get(from..to.min(read.len())));
        found.unwrap_or_default()
    }

    /// Returns the time of the block that ends with the call, and the bytes that the host read, or
    /// `None` if they are not stored.
    ///
    /// # Errors
    /// Returns an error if the stored output is damaged.
    pub fn stored(&self, stored: &FilePrinted) -> Result<Option<(u64, Vec<u8>)>, PrintedError> {
        stored.get(self.call, self.digest)
    }

    /// Returns the place in memory of the output bytes from `byte` on, counted from the start of
    /// the stream. The result has at most `most` bytes and lies within one of the ranges.
    pub fn range(&self, byte: u64, most: u64) -> Option<Range> {
        let mut skip = byte.checked_sub(self.before)?;
        let mut left = self.bytes.checked_sub(skip)?;
        for range in &self.from {
            if skip < range.length {
                left = left.min(range.length - skip).min(most);
                return (left > 0).then_some(Range {
                    address: range.address + skip,
                    length: left,
                    ..*range
                });
            }
            skip -= range.length;
        }
        None
    }
}

/// Iterates over a program's output, call by call, from the log. O(events of the log) in total.
pub struct Printed<'p>(Calls<'p>);

impl<'p> Printed<'p> {
    /// Opens the output of a run.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn new(file: &TraceFile, imports: &'p [Import]) -> Result<Self, WhyError> {
        Calls::new(file, imports).map(Self)
    }

    /// Returns the next call that wrote to a stream.
    ///
    /// # Errors
    /// Returns an error if the log is damaged.
    pub fn next(&mut self, stream: &Stream) -> Result<Option<Put>, WhyError> {
        while let Some(call) = self.0.next()? {
            let fd = call.argument(0) as u32;
            if call.name != "fd_write" || !call.succeeded || !self.0.files.is(fd, stream) {
                self.0.files.follow(&call);
                continue;
            }
            let before = self.0.files.put;
            let bytes = call.word(3).unwrap_or(0);
            self.0.files.put = before.saturating_add(bytes);
            self.0.files.follow(&call);
            if bytes == 0 {
                continue;
            }
            // The first range that the call read lists the other ranges.
            let from = call.reads.iter().skip(1).map(|read| Range {
                memory: read.memory,
                address: read.address,
                length: read.length,
            });
            return Ok(Some(Put {
                call: call.number,
                before,
                bytes,
                from: from.collect(),
                list: call.reads.first().map_or(0, |list| list.length),
                digest: call.digest,
            }));
        }
        Ok(None)
    }
}

/// Finds the writer of the first byte in a range of memory. The host read the range in the call at
/// the end of an execution.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn written_before(
    walk: &Walk<'_, '_>,
    host: &HostReads<'_, '_>,
    caller: Instance,
    range: Range,
) -> Result<At, WhyError> {
    let parts = host.writers(caller, range)?;
    written_in(walk, parts.first())
}

/// Finds the last writer of some bytes of memory before an instruction in an execution of a node.
/// If several statements wrote parts, chooses the first part with a byte other than zero, or the
/// first part if there is none. `held` contains the bytes that are known. Also returns whether
/// there are several parts.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn written_until(
    walk: &Walk<'_, '_>,
    host: &HostReads<'_, '_>,
    (instance, executed): (Instance, usize),
    range: Range,
    held: &[u8],
) -> Result<(At, bool), WhyError> {
    let (mut first, mut skipped) = (None, 0);
    while skipped < range.length {
        let rest = Range {
            address: range.address.wrapping_add(skipped),
            length: range.length - skipped,
            ..range
        };
        let (at, length) = first_until(walk, host, (instance, executed), rest)?;
        let several = skipped > 0 || length < rest.length;
        let own = held.get(skipped as usize..).unwrap_or_default();
        if own.iter().take(length as usize).any(|byte| *byte != 0) {
            return Ok((at, several));
        }
        first.get_or_insert((at, several));
        skipped += length.max(1);
        if held.is_empty() {
            break;
        }
    }
    first.ok_or(WhyError::Damaged("bytes that nothing wrote"))
}

/// Finds the writer of the first of some bytes, and the number of consecutive bytes that it wrote
/// at once.
fn first_until(
    walk: &Walk<'_, '_>,
    host: &HostReads<'_, '_>,
    (instance, executed): (Instance, usize),
    range: Range,
) -> Result<(At, u64), WhyError> {
    let compiled = walk.values.compiled(instance.node)?;
    let mut length = range.length;
    for write in compiled.model.writes.iter().rev() {
        let inst = write.inst as usize;
        if inst >= executed {
            continue;
        }
        let Some(own) = walk.values.range_written(instance, inst)? else {
            continue;
        };
        if own.memory != range.memory || own.length == 0 {
            continue;
        }
        match range.address.checked_sub(own.address) {
            Some(offset) if offset < own.length => {
                let length = length.min(own.length - offset);
                let range = Range { length, ..range };
                let at = At::Written {
                    instance,
                    inst,
                    range,
                };
                return Ok((at, length));
            }
            Some(_) => {}
            // A later write that begins after the first byte writes only the bytes that follow.
            None => length = length.min(own.address - range.address),
        }
    }
    let parts = host.writers_before(instance, Range { length, ..range })?;
    let part = parts.first();
    let length = part.map_or(length, |part| part.range.length);
    Ok((written_in(walk, part)?, length))
}

fn written_in(walk: &Walk<'_, '_>, part: Option<&HostPart>) -> Result<At, WhyError> {
    let unknown = || WhyError::Damaged("bytes that nothing wrote");
    let part = part.ok_or_else(unknown)?;
    Ok(match part.origin {
        Origin::Host { call } => At::End(End::Host {
            call,
            range: part.range,
        }),
        Origin::Operator { instance, op } => {
            let compiled = walk.values.compiled(instance.node)?;
            // An atomic operator reads before it writes.
            let mut insts = compiled.code.insts.iter();
            At::Written {
                instance,
                inst: insts.rposition(|inst| inst.op == op).ok_or_else(unknown)?,
                range: part.range,
            }
        }
        _ => At::End(End::Memory(part.range)),
    })
}
