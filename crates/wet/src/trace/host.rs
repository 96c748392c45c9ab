//! What the host did.

use afterimage_ids::ImportId;
use afterimage_trace::{Event, HostWrite, LogReader, RawValue, TraceError};

/// A call by the guest of the host.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The import called.
    pub import: ImportId,
    /// What it returned; empty if it did not.
    pub results: Box<[RawValue]>,
    /// What it wrote to memory.
    pub writes: Box<[HostWrite]>,
}

/// The guest's calls of the host, in order.
#[derive(Debug, Default)]
pub struct HostCalls(Vec<HostCall>);

impl HostCalls {
    /// Reads a log. Takes the memory of all that the host wrote.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(log: LogReader) -> Result<Self, TraceError> {
        let mut calls = Vec::new();
        for event in log {
            match event? {
                Event::HostCall {
                    import,
                    results,
                    writes,
                    ..
                } => calls.push(HostCall {
                    import,
                    results: results.into(),
                    writes: writes.into(),
                }),
                Event::HostStop { import, .. } => calls.push(HostCall {
                    import,
                    results: [].into(),
                    writes: [].into(),
                }),
                _ => {}
            }
        }
        Ok(Self(calls))
    }

    /// A call, counted from 1.
    pub fn get(&self, call: u64) -> Option<&HostCall> {
        let position = usize::try_from(call).ok()?.checked_sub(1)?;
        self.0.get(position)
    }
}

impl HostCall {
    /// Fills in the bytes that it wrote from an address on. Whether it wrote them all.
    pub(super) fn wrote(&self, memory: u32, address: u64, bytes: &mut [u8]) -> bool {
        (0..).zip(bytes).all(|(i, byte)| {
            let at = address.wrapping_add(i);
            // The last write holds.
            let mut writes = self.writes.iter().rev();
            let found = writes.find_map(|write| {
                let offset = usize::try_from(at.checked_sub(write.address)?).ok()?;
                let found = write.bytes.get(offset);
                found.filter(|_| write.memory == memory)
            });
            found.map(|found| *byte = *found).is_some()
        })
    }

    /// The bits of a result.
    pub(super) fn result(&self, index: u32) -> Option<(u64, u64)> {
        Some(match *self.results.get(index as usize)? {
            RawValue::I32(value) => (u64::from(value as u32), 0),
            RawValue::I64(value) => (value as u64, 0),
            RawValue::F32(bits) => (u64::from(bits), 0),
            RawValue::F64(bits) => (bits, 0),
            RawValue::V128(bits) => (bits as u64, (bits >> 64) as u64),
            RawValue::NullRef => (0, 0),
            RawValue::OpaqueRef => return None,
        })
    }
}
