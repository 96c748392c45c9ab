//! Finds the writers of the memory that the host read when the guest called it. In reverse, finds
//! the host calls that read bytes written by a statement.
//!
//! The log lists the bytes that each call read. The labels of the whole execution trace do not name
//! the last writers of these bytes. The index of checkpoints names them for the part of the run
//! that it covers. After this part, the run is followed.

mod canvas;
mod error;
mod latest;
mod printed;
mod readers;
mod times;
mod writers;

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use afterimage_machine::Range;
use afterimage_trace::TraceFile;
use afterimage_wet::{FilePrinted, HostCall, HostCalls};
use afterimage_wpp::Visit;

pub use error::HostReadsError;
pub(super) use readers::{HostReaders, HostUse};

use self::canvas::{Part, Wrote};
use self::times::CallTimes;
use self::writers::{Moment, Writers};
use super::{Instance, Origin, RecordedValues};
use crate::steps::Run;
use crate::whole_path::FileSegments;

/// The largest number of bytes that are examined together.
const CHUNK: u64 = 1 << 18;

/// An index of the host's reads of memory.
///
/// The first question reads the log once. After that, memory use is about a hundred bytes for every
/// few hundred host calls, plus the memory for following the run.
pub struct HostReads<'v, 'a> {
    values: &'v RecordedValues<'a>,
    run: Run<'a, FileSegments>,
    file: TraceFile,
    times: OnceCell<CallTimes<'a>>,
    printed: OnceCell<Option<FilePrinted>>,
    writers: RefCell<Writers<'a>>,
}

/// Adjacent bytes that the host read and that have the same last writer, or no writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// The range of these bytes in memory.
    pub range: Range,
    /// The origin of the bytes.
    pub origin: Origin,
}

impl<'v, 'a> HostReads<'v, 'a> {
    /// Creates an index of the host's reads in a recording. `run` is the run to follow, with the
    /// checkpoints of `file`, if there are any.
    pub fn new(
        values: &'v RecordedValues<'a>,
        run: Run<'a, FileSegments>,
        file: TraceFile,
    ) -> Self {
        Self {
            values,
            run,
            times: OnceCell::new(),
            printed: OnceCell::new(),
            writers: RefCell::new(Writers::new(run, file.clone())),
            file,
        }
    }

    /// Returns the values of the recording.
    pub fn values(&self) -> &'v RecordedValues<'a> {
        self.values
    }

    /// Returns the writers of the bytes that the host read in the call that ends an execution. The
    /// result contains the first `limit` parts in the order of reading, and the number of further
    /// parts. The list is empty if the execution does not end with a host call.
    ///
    /// Takes time near-linear in the bytes read. In the worst case, the run is followed once for
    /// every 256 KiB.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn parts(
        &self,
        instance: Instance,
        limit: u64,
    ) -> Result<(Vec<HostPart>, u64), HostReadsError> {
        let (mut parts, mut more) = (Vec::new(), 0);
        let Some(call) = self.values.host_call(instance)? else {
            return Ok((parts, more));
        };
        let Some(logged) = self.host()?.get(call)? else {
            return Err(HostReadsError::Damaged("a host call"));
        };
        let moment = Moment::Call(self.visit(instance.time)?);
        for read in &logged.reads {
            let range = Range {
                memory: read.memory,
                address: read.address,
                length: read.length,
            };
            self.written(range, moment, None, |part| {
                if (parts.len() as u64) < limit {
                    parts.push(HostPart {
                        range: part.range,
                        origin: self.origin(part.wrote)?,
                    })
                } else {
                    more += 1
                }
                Ok(())
            })?;
        }
        Ok((parts, more))
    }

    /// Returns the last writers of bytes, part by part, before the host call that ends an
    /// execution.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn writers(
        &self,
        instance: Instance,
        range: Range,
    ) -> Result<Vec<HostPart>, HostReadsError> {
        self.parts_of(range, Moment::Call(self.visit(instance.time)?))
    }

    /// Returns the last writers of bytes, part by part, before an execution of a node.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn writers_before(
        &self,
        instance: Instance,
        range: Range,
    ) -> Result<Vec<HostPart>, HostReadsError> {
        self.parts_of(range, Moment::Start(instance.time))
    }

    fn parts_of(&self, range: Range, moment: Moment) -> Result<Vec<HostPart>, HostReadsError> {
        let mut parts = Vec::new();
        self.written(range, moment, None, |part| {
            parts.push(HostPart {
                range: part.range,
                origin: self.origin(part.wrote)?,
            });
            Ok(())
        })?;
        Ok(parts)
    }

    /// Returns the contents of memory ranges before the host call that ends an execution. Follows
    /// the run from the last checkpoint.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn bytes(
        &self,
        instance: Instance,
        ranges: &[Range],
    ) -> Result<Vec<Vec<u8>>, HostReadsError> {
        let visit = self.visit(instance.time)?;
        let instructions = self.values.compiled(instance.node)?.code.insts.len();
        self.writers.borrow_mut().held(visit, instructions, ranges)
    }

    /// Returns the time of host call number `call`, from 1, and the bytes that the host read in
    /// this call for output. Returns `None` if the file does not store them. The bytes agree with
    /// `digest` from the log. Neither follows the run nor opens a segment.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn printed(
        &self,
        call: u64,
        digest: u32,
    ) -> Result<Option<(u64, Vec<u8>)>, HostReadsError> {
        let known = self.known_printed()?;
        let found = known.map(|known| known.get(call, digest)).transpose()?;
        Ok(found.flatten())
    }

    /// Returns the execution at a time, which must end with host call number `call`, from 1.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged, for example if the execution does not end with
    /// this call.
    pub fn caller_at(&self, time: u64, call: u64) -> Result<Instance, HostReadsError> {
        let damaged = || HostReadsError::Damaged("a host call that was never made");
        let caller = self.values.at(time)?.ok_or_else(damaged)?;
        let is_it = self.values.host_call(caller)? == Some(call);
        is_it.then_some(caller).ok_or_else(damaged)
    }

    fn known_printed(&self) -> Result<Option<&FilePrinted>, HostReadsError> {
        if let Some(known) = self.printed.get() {
            return Ok(known.as_ref());
        }
        let found = FilePrinted::open(&self.file)?;
        Ok(self.printed.get_or_init(|| found).as_ref())
    }

    fn host(&self) -> Result<&'a HostCalls, HostReadsError> {
        Ok(self.values.host()?)
    }

    fn times(&self) -> Result<&CallTimes<'a>, HostReadsError> {
        if let Some(known) = self.times.get() {
            return Ok(known);
        }
        let times = CallTimes::new(self)?;
        Ok(self.times.get_or_init(|| times))
    }

    /// Returns the execution of a node that begins with a block.
    fn visit(&self, start: u64) -> Result<Visit, HostReadsError> {
        let visit = self.run.path.cursor().seek(start)?;
        let damaged = HostReadsError::Damaged("an execution that does not exist");
        visit.filter(|visit| visit.start == start).ok_or(damaged)
    }

    /// Returns the execution that ends with host call number `call`, from 1, which the guest must
    /// have made.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged, or the host made the call itself.
    pub fn caller_of(&self, call: u64) -> Result<Instance, HostReadsError> {
        let damaged = HostReadsError::Damaged("an execution that does not exist");
        let visit = self.caller(call)?;
        self.values.at(visit.start)?.ok_or(damaged)
    }

    /// Returns the execution that ends with a call by the guest.
    fn caller(&self, call: u64) -> Result<Visit, HostReadsError> {
        let damaged = || HostReadsError::Damaged("a host call that was never made");
        let of_guest = self.host()?.of_guest(call).ok_or_else(damaged)?;
        let time = self.times()?.get(of_guest)?.ok_or_else(damaged)?;
        let visit = self.run.path.cursor().seek(time)?;
        visit.ok_or_else(damaged)
    }

    /// Returns the next call by the guest, from number `from` on, in which the host read a range
    /// that `wanted` accepts.
    fn next_reading(
        &self,
        mut from: u64,
        wanted: impl Fn(Range) -> bool,
    ) -> Result<Option<(u64, Arc<HostCall>)>, HostReadsError> {
        let host = self.host()?;
        loop {
            let found = host.next_reading(from, |read| {
                wanted(Range {
                    memory: read.memory,
                    address: read.address,
                    length: read.length,
                })
            })?;
            match found {
                Some((call, _)) if host.of_guest(call).is_none() => from = call + 1,
                found => return Ok(found),
            }
        }
    }

    /// Passes the last writers of bytes before a moment to `told`, part by part in the order of
    /// addresses. If `only` is set, only writers in the execution that begins with that block
    /// matter. Bytes with other writers may then be reported as unwritten.
    fn written(
        &self,
        range: Range,
        moment: Moment,
        only: Option<u64>,
        mut told: impl FnMut(Part) -> Result<(), HostReadsError>,
    ) -> Result<(), HostReadsError> {
        let mut open: Option<Part> = None;
        let mut done = 0;
        while done < range.length {
            let chunk = Range {
                address: range.address + done,
                length: CHUNK.min(range.length - done),
                ..range
            };
            done += chunk.length;
            let mut writers = self.writers.borrow_mut();
            let parts = writers.last(self.values, chunk, moment, only)?;
            drop(writers);
            for part in parts {
                match &mut open {
                    Some(open) if open.wrote == part.wrote => {
                        open.range.length += part.range.length;
                    }
                    _ => {
                        if let Some(open) = open.replace(part) {
                            told(open)?;
                        }
                    }
                }
            }
        }
        open.map_or(Ok(()), told)
    }

    fn origin(&self, wrote: Wrote) -> Result<Origin, HostReadsError> {
        Ok(match wrote {
            Wrote::Nothing => Origin::Initial,
            Wrote::Host { call } => Origin::Host { call },
            Wrote::Guest { start, inst } => {
                let missing = HostReadsError::Damaged("an execution that does not exist");
                let instance = self.values.at(start)?.ok_or(missing)?;
                let compiled = self.values.compiled(instance.node)?;
                let missing = HostReadsError::Damaged("an instruction that does not exist");
                let inst = compiled.code.insts.get(inst as usize).ok_or(missing)?;
                Origin::Operator {
                    instance,
                    op: inst.op,
                }
            }
        })
    }
}
