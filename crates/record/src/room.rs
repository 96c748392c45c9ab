//! How large the guest's memories and tables may become.

use afterimage_trace::{MAX_ELEMENTS, MAX_MEMORY};
use wasmparser::{Parser, Payload};

use crate::RecordError;

const PAGE: u64 = 1 << 16;

/// What the guest's memories and tables take together. What is recorded stays within the limits of [`afterimage_trace`], so that it can be
/// followed: growth beyond them is refused, as the specification allows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// Bytes of memories.
    memory: u64,
    /// Elements of tables.
    elements: u64,
    /// How much more the last growth that was granted takes: the engine may still fail.
    last: u64,
}

impl Room {
    /// What a module begins with.
    ///
    /// # Errors
    /// If that is too much.
    pub fn of_module(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut room = Self::default();
        // Who runs a module has parsed it before.
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

    /// Whether a memory may grow from so many bytes to so many.
    pub fn memory(&mut self, from: usize, to: usize) -> bool {
        grow(&mut self.memory, MAX_MEMORY, from, to, &mut self.last)
    }

    /// The engine could not let it grow.
    pub fn memory_failed(&mut self) {
        self.memory -= std::mem::take(&mut self.last);
    }

    /// Whether a table may grow from so many elements to so many.
    pub fn table(&mut self, from: usize, to: usize) -> bool {
        grow(&mut self.elements, MAX_ELEMENTS, from, to, &mut self.last)
    }

    /// The engine could not let it grow.
    pub fn table_failed(&mut self) {
        self.elements -= std::mem::take(&mut self.last);
    }
}

/// Whether a growth failed that the engine did not ask about before: the size of a table does not fit 64 bits.
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
