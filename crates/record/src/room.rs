//! Limits the size of the guest's memories and tables.

use afterimage_trace::{MAX_ELEMENTS, MAX_MEMORY};
use wasmparser::{Parser, Payload};

use crate::RecordError;

const PAGE: u64 = 1 << 16;

/// The total size of the guest's memories and tables. Recordings stay within the limits of
/// [`afterimage_trace`], so that the machine can follow every recorded run. Growth beyond these
/// limits is refused, as the specification permits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// The total size of all memories in bytes.
    memory: u64,
    /// The total number of elements in all tables.
    elements: u64,
    /// The size of the last granted growth, which may still fail in the engine.
    last: u64,
}

impl Room {
    /// Computes a module's initial sizes.
    ///
    /// # Errors
    /// Returns an error if they exceed the limits.
    pub fn of_module(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut room = Self::default();
        // The caller has already parsed the module, so parse errors do not occur.
        for payload in Parser::new(0).parse_all(bytes).flatten() {
            match payload {
                Payload::MemorySection(memories) => {
                    for memory in memories.into_iter().flatten() {
                        let bytes = memory.initial.saturating_mul(PAGE);
                        room.memory = room.memory.saturating_add(bytes);
                    }
                }
                Payload::TableSection(tables) => {
                    for table in tables.into_iter().flatten() {
                        room.elements = room.elements.saturating_add(table.ty.initial);
                    }
                }
                Payload::CodeSectionStart { .. } => break,
                _ => {}
            }
        }
        let all = [
            ("memories", "bytes", room.memory, MAX_MEMORY),
            ("tables", "elements", room.elements, MAX_ELEMENTS),
        ];
        for (what, unit, found, most) in all {
            if found > most {
                return Err(RecordError::TooLarge {
                    what,
                    unit,
                    found,
                    most,
                });
            }
        }
        Ok(room)
    }

    /// Lets a memory grow from `from` to `to` bytes if there is room. Returns whether it may grow.
    pub fn memory(&mut self, from: usize, to: usize) -> bool {
        grow(&mut self.memory, MAX_MEMORY, from, to, &mut self.last)
    }

    /// Undoes the last growth, which failed in the engine.
    pub fn memory_failed(&mut self) {
        self.memory -= std::mem::take(&mut self.last);
    }

    /// Lets a table grow from `from` to `to` elements if there is room. Returns whether it may
    /// grow.
    pub fn table(&mut self, from: usize, to: usize) -> bool {
        grow(&mut self.elements, MAX_ELEMENTS, from, to, &mut self.last)
    }

    /// Undoes the last growth, which failed in the engine.
    pub fn table_failed(&mut self) {
        self.elements -= std::mem::take(&mut self.last);
    }
}

/// Whether a growth failed before the engine asked for permission, because the table's size exceeds
/// 64 bits.
pub(crate) fn was_not_asked(error: &wasmtime::Error) -> bool {
    error.to_string().starts_with("overflow calculating")
}

fn grow(all: &mut u64, most: u64, from: usize, to: usize, last: &mut u64) -> bool {
    let by = to.saturating_sub(from) as u64;
    let fits = by <= most.saturating_sub(*all);
    *last = if fits { by } else { 0 };
    *all += *last;
    fits
}
