//! Replays the boundary between guest and host. All host calls, results, reads and writes come from
//! the log.

use afterimage_ids::{BlockId, EntityRef, FuncId, ImportId};
use afterimage_program::Program;
use afterimage_trace::{Event, HostRead, HostWrite, LogPlace, LogReader, RawValue, TraceError};

use crate::MachineError;
use crate::execute::Stop;
use crate::machine::{Bits, Machine, Waiting};
use crate::observe::{Caller, Observer, Range};

/// The source of the host's actions.
pub(crate) struct Source {
    log: LogReader,
    /// Whether the guest may create exceptions. The engine keeps exceptions in a memory. The log
    /// records the growth of this memory as if the guest had caused it.
    exceptions: bool,
}

impl Source {
    pub(crate) fn new(log: LogReader, program: &Program) -> Self {
        let exceptions = !program.tags.is_empty();
        Self { log, exceptions }
    }

    /// Whether the log was cut off.
    pub(crate) fn is_cut(&self) -> bool {
        !self.log.is_complete()
    }

    /// Returns the start of the next event.
    pub(crate) fn place(&self) -> LogPlace {
        self.log.place()
    }

    /// Moves to a position in the log.
    pub(crate) fn go(&mut self, place: LogPlace) -> Result<(), TraceError> {
        self.log.go(place)
    }

    /// Returns the next event, or `None` at the end of the log. If the guest may create exceptions,
    /// skips granted growth of memories.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TraceError> {
        loop {
            match self.log.next().transpose()? {
                Some(Event::MemoryGrow { granted: true }) if self.exceptions => {}
                event => return Ok(event),
            }
        }
    }

    /// Whether a memory was allowed to grow. `fits` is true if the memory would stay within its
    /// limit.
    ///
    /// The engine grants growth within the limit, unless the host has no memory left. This also
    /// applies to the memory that contains exceptions, so both kinds of events are handled alike.
    /// The engine refuses growth beyond the limit.
    pub(crate) fn memory_growth(&mut self, fits: bool) -> Result<bool, Stop> {
        loop {
            let event = self.log.next().transpose();
            match event.map_err(|error| Stop::Error(error.into()))? {
                Some(Event::MemoryGrow { granted: true }) if self.exceptions && !fits => {}
                Some(Event::MemoryGrow { granted: false }) if self.exceptions && fits => {
                    let what = "a host that runs out of memory, with exceptions,";
                    return Err(Stop::Error(MachineError::Unsupported(what)));
                }
                Some(Event::MemoryGrow { granted }) => return Ok(granted),
                None => return Err(Stop::End),
                Some(_) => return Err(Stop::Boundary("a memory grows")),
            }
        }
    }

    /// Whether a table was allowed to grow.
    pub(crate) fn table_growth(&mut self) -> Result<bool, Stop> {
        match self.next().map_err(|error| Stop::Error(error.into()))? {
            Some(Event::TableGrow { granted }) => Ok(granted),
            None => Err(Stop::End),
            Some(_) => Err(Stop::Boundary("a table grows")),
        }
    }
}

impl Machine<'_> {
    /// Begins the activation that the host calls next.
    pub(crate) fn enter_from_host<O: Observer>(
        &mut self,
        function: FuncId,
        first: BlockId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        loop {
            let (called, args) = match self.source.next()? {
                Some(Event::Enter { function, args }) => (function, args),
                None if self.source.is_cut() => return Err(self.log_ends()),
                _ => return Err(self.boundary("the host calls nothing")),
            };
            self.take(&args)?;
            observer.called(called, &self.values);
            if called == function {
                return self.enter(function, first, Caller::Host, observer);
            }
            if called.index() >= self.program.imports.len() {
                return Err(self.boundary("the host calls another function"));
            }
            // If an import is exported, the host may call itself.
            self.call_host(called, observer)?;
            if self.waiting != Waiting::Host {
                return Err(self.boundary("the run ends in the host"));
            }
        }
    }

    /// Handles a call to the host with the arguments in `values`, by the guest or by the host
    /// itself. The host's actions come from the log.
    pub(crate) fn call_host<O: Observer>(
        &mut self,
        function: FuncId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let event = self.source.next()?;
        let (import, args, reads, digest) = match &event {
            Some(
                Event::HostCall {
                    import,
                    args,
                    reads,
                    read_digest,
                    ..
                }
                | Event::HostStop {
                    import,
                    args,
                    reads,
                    read_digest,
                    ..
                },
            ) => (import, args, reads, read_digest),
            None => {
                self.waiting = Waiting::Nothing;
                return Ok(());
            }
            Some(_) => return Err(self.boundary("the guest calls the host")),
        };
        if *import != ImportId::from_u32(function.as_u32()) {
            return Err(self.boundary("the guest calls another import"));
        }
        if !self.holds(args) {
            return Err(self.boundary("an import is called with other arguments"));
        }
        observer.host_call();
        self.host_reads(reads, *digest, observer)?;
        let Some(Event::HostCall {
            results, writes, ..
        }) = event
        else {
            self.waiting = Waiting::Nothing;
            return Ok(());
        };
        self.host_writes(&writes, observer)?;
        let import = self.program.imports.get(function.index());
        let ty = import.and_then(|import| self.program.types.get(import.ty));
        if ty.map(|ty| ty.results.len()) != Some(results.len()) {
            return Err(self.boundary("an import returns a different number of values"));
        }
        self.take(&results)?;
        self.deliver(true, observer)
    }

    fn host_reads<O: Observer>(
        &self,
        reads: &[HostRead],
        digest: u32,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let mut hasher = crc32fast::Hasher::new();
        for read in reads {
            let range = Range {
                memory: read.memory,
                address: read.address,
                length: read.length,
            };
            let memory = self.state.memories.get(read.memory as usize);
            let bytes = memory.and_then(|memory| {
                let place = memory.range(read.address, read.length).ok()?;
                memory.bytes.get(place)
            });
            let bytes = bytes.ok_or_else(|| self.boundary("the host reads outside of memory"))?;
            hasher.update(bytes);
            observer.host_read(range);
            observer.bytes(bytes);
        }
        if hasher.finalize() != digest {
            return Err(self.boundary("the host reads other bytes"));
        }
        Ok(())
    }

    fn host_writes<O: Observer>(
        &mut self,
        writes: &[HostWrite],
        observer: &mut O,
    ) -> Result<(), MachineError> {
        for write in writes {
            let range = Range {
                memory: write.memory,
                address: write.address,
                length: write.bytes.len() as u64,
            };
            let memory = self.state.memories.get_mut(write.memory as usize);
            let bytes = memory.and_then(|memory| {
                let place = memory.range(range.address, range.length).ok()?;
                memory.bytes.get_mut(place)
            });
            let Some(bytes) = bytes else {
                return Err(self.boundary("the host writes outside of memory"));
            };
            bytes.copy_from_slice(&write.bytes);
            observer.host_write(range);
            observer.bytes(&write.bytes);
        }
        Ok(())
    }

    /// Returns `values` to the host as the results of its call.
    pub(crate) fn return_to_host(&mut self) -> Result<(), MachineError> {
        match self.source.next()? {
            Some(Event::Leave { results }) if self.holds(&results) => self.waiting = Waiting::Host,
            Some(Event::Leave { .. }) => {
                return Err(self.boundary("other values are returned to the host"));
            }
            Some(_) => return Err(self.boundary("the guest returns to the host")),
            None => self.waiting = Waiting::Nothing,
        }
        Ok(())
    }

    /// Sets `values` to the arguments or results that the host gives.
    fn take(&mut self, given: &[RawValue]) -> Result<(), MachineError> {
        self.values.clear();
        for &value in given {
            let Some(bits) = bits(value) else {
                return Err(self.boundary("the host gives a reference, which cannot be followed"));
            };
            self.values.push(bits);
        }
        Ok(())
    }

    /// Whether `values` equal the logged values. For references other than null, which are not in
    /// the log, only checks that the value is not null.
    fn holds(&self, logged: &[RawValue]) -> bool {
        let mut pairs = logged.iter().zip(&self.values);
        logged.len() == self.values.len()
            && pairs.all(|(&logged, &value)| match (logged, bits(logged)) {
                (RawValue::V128(_), Some(bits)) => bits == value,
                // The upper half of a value that is not a vector may contain remnants of a vector.
                (_, Some(bits)) => bits.0 == value.0,
                (_, None) => value.0 != 0,
            })
    }
}

/// Returns the bits of a value, or `None` for a non-null reference.
fn bits(value: RawValue) -> Option<Bits> {
    Some(match value {
        RawValue::I32(value) => (u64::from(value as u32), 0),
        RawValue::I64(value) => (value as u64, 0),
        RawValue::F32(bits) => (u64::from(bits), 0),
        RawValue::F64(bits) => (bits, 0),
        RawValue::V128(bits) => (bits as u64, (bits >> 64) as u64),
        RawValue::NullRef => (0, 0),
        RawValue::OpaqueRef => return None,
    })
}
