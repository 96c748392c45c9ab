//! What the host wrote.

use afterimage_trace::{Event, HostWrite, LogReader, TraceError};

/// What the host wrote to memory, call by call.
#[derive(Debug, Default)]
pub struct HostWrites(Vec<Box<[HostWrite]>>);

impl HostWrites {
    /// Reads a log. Takes the memory of all that the host wrote.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(log: LogReader) -> Result<Self, TraceError> {
        let mut calls = Vec::new();
        for event in log {
            match event? {
                Event::HostCall { writes, .. } => calls.push(writes.into()),
                Event::HostStop { .. } => calls.push([].into()),
                _ => {}
            }
        }
        Ok(Self(calls))
    }

    /// What a call, counted from 1, wrote.
    pub fn of_call(&self, call: u64) -> &[HostWrite] {
        let position = usize::try_from(call).ok().and_then(|call| call.checked_sub(1));
        position
            .and_then(|position| self.0.get(position))
            .map_or(&[], |writes| writes)
    }

    /// Fills in the bytes that a call wrote from an address on. Whether it wrote them all.
    pub(super) fn written(&self, call: u64, memory: u32, address: u64, bytes: &mut [u8]) -> bool {
        let writes = self.of_call(call);
        (0..).zip(bytes).all(|(i, byte)| {
            let at = address.wrapping_add(i);
            // The last write holds.
            let mut writes = writes.iter().rev().filter(|write| write.memory == memory);
            let found = writes.find_map(|write| {
                let offset = usize::try_from(at.checked_sub(write.address)?).ok()?;
                write.bytes.get(offset)
            });
            found.map(|found| *byte = *found).is_some()
        })
    }
}
