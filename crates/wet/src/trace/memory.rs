//! Computes values that were read from memory.

use afterimage_machine::Code;
use afterimage_wpp::Segments;

use super::evaluate::{Bits, ComputedValues};
use super::source::Writer;
use super::{Compiled, Epochs, Failure, Instance, StorageCell, TraceError, WholeTrace};
use crate::epoch::Execution;

/// The maximum size of a value in bytes.
const LONGEST: usize = 16;

/// The maximum number of successive copies through which bytes are traced.
const MOST_COPIES: u32 = 256;

/// Bytes of memory whose values are wanted.
#[derive(Clone, Copy)]
struct Wanted {
    memory: u32,
    /// The execution and the register that hold the address of the load.
    base: (Instance, u32),
    offset: u64,
    length: usize,
    /// The number of copies traced so far.
    copies: u32,
}

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Computes the result of a load, if all needed values are known.
    pub(super) fn loaded(
        &self,
        instance: Instance,
        compiled: &Compiled,
        position: usize,
        known: &mut ComputedValues,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        let inst = &compiled.code.insts[position];
        let length = match inst.code {
            Code::Load(load) => load.bytes as usize,
            Code::LoadVector(load) => load.bytes(),
            _ => return Err(TraceError::Damaged("a load that loads nothing")),
        };
        let mut bytes = [0u8; LONGEST];
        let mut filled = 0;
        let mut complete = true;
        let readings = self.reading(instance, position)?;
        if readings.is_empty() {
            return Err(TraceError::Trapped);
        }
        let whole = readings.len() == 1;
        for reading in readings {
            let part = if whole {
                length
            } else {
                reading.length as usize
            };
            let bytes = bytes
                .get_mut(filled..filled + part)
                .ok_or(TraceError::Damaged("a load of too many bytes"))?;
            let wanted = Wanted {
                memory: u32::from(inst.memory),
                base: (instance, inst.a),
                offset: inst.immediate.wrapping_add(filled as u64),
                length: part,
                copies: 0,
            };
            complete &= self.bytes_of(wanted, reading.writer, bytes, known)?;
            filled += part;
        }
        if filled != length {
            let damaged = "a load whose bytes do not match its label";
            return Err(TraceError::Damaged(damaged));
        }
        let kept = match inst.code {
            Code::LoadVector(load) if load.keeps() => known.get(instance, inst.b),
            _ => Some((0, 0)),
        };
        let (Some((low, high)), true) = (kept, complete) else {
            return Ok(None);
        };
        let raw = u128::from_le_bytes(bytes);
        Ok(Some(match inst.code {
            Code::LoadVector(load) => {
                let into = u128::from(low) | u128::from(high) << 64;
                let value = load.make(raw, into, inst.c as u8);
                (value as u64, (value >> 64) as u64)
            }
            Code::Load(load) => (load.extend(raw as u64), 0),
            _ => (0, 0),
        }))
    }

    /// Fills in bytes that a writer wrote. Returns whether all needed values were known.
    fn bytes_of(
        &self,
        wanted: Wanted,
        writer: Writer,
        bytes: &mut [u8],
        known: &mut ComputedValues,
    ) -> Result<bool, Failure<S, E>> {
        match writer {
            Writer::Initial => {
                let Some(address) = address_of(wanted, known) else {
                    return Ok(false);
                };
                let memory = self.initial.memories.get(wanted.memory as usize);
                let memory = memory.ok_or(TraceError::Damaged("a memory that does not exist"))?;
                // Memory added by growth is zero.
                for (i, byte) in (0..).zip(bytes) {
                    let at = usize::try_from(address.wrapping_add(i)).ok();
                    let found = at.and_then(|at| memory.bytes.get(at));
                    *byte = found.copied().unwrap_or(0);
                }
                Ok(true)
            }
            Writer::Host { call } => {
                let Some(address) = address_of(wanted, known) else {
                    return Ok(false);
                };
                let unknown = TraceError::Damaged("bytes that the host did not write");
                let call = self.host()?.get(call)?;
                let wrote = call.map(|call| call.wrote(wanted.memory, address, bytes));
                wrote.filter(|wrote| *wrote).ok_or(unknown)
            }
            Writer::Write {
                instance,
                inst,
                offset,
            } => self.written_bytes(wanted, (instance, inst), offset, bytes, known),
        }
    }

    fn written_bytes(
        &self,
        wanted: Wanted,
        (instance, position): (Instance, usize),
        offset: u8,
        bytes: &mut [u8],
        known: &mut ComputedValues,
    ) -> Result<bool, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let inst = &compiled.code.insts[position];
        let value = match inst.code {
            Code::Store(_) => known.get(instance, inst.b).map(|(low, _)| u128::from(low)),
            Code::StoreVector(store) => known.get(instance, inst.b).map(|(low, high)| {
                let vector = u128::from(low) | u128::from(high) << 64;
                store.value(vector, inst.c as u8)
            }),
            Code::MemoryFill => {
                let byte = known.get(instance, inst.b);
                let Some((byte, _)) = byte else {
                    return Ok(false);
                };
                bytes.fill(byte as u8);
                return Ok(true);
            }
            Code::MemoryInit | Code::MemoryCopy => {
                let to = known.get(instance, inst.a);
                let from = known.get(instance, inst.b);
                let address = address_of(wanted, known);
                let (Some((to, _)), Some((from, _)), Some(address)) = (to, from, address) else {
                    return Ok(false);
                };
                let first = address.wrapping_sub(to);
                if inst.code == Code::MemoryInit {
                    let data = self.initial.data.get(inst.immediate as usize);
                    let missing = TraceError::Damaged("a data segment that does not exist");
                    let data = data.ok_or(missing)?;
                    for (i, byte) in (0..).zip(bytes) {
                        let at = from.wrapping_add(first).wrapping_add(i);
                        let found = usize::try_from(at).ok().and_then(|at| data.get(at));
                        let beyond = "a byte beyond the end of a data segment";
                        *byte = *found.ok_or(TraceError::Damaged(beyond))?;
                    }
                    return Ok(true);
                }
                let source = Wanted {
                    memory: inst.immediate as u32,
                    base: (instance, inst.b),
                    offset: first,
                    length: 1,
                    copies: wanted.copies + 1,
                };
                return self.copied_bytes(source, instance, position, bytes, known);
            }
            _ => {
                let damaged = "a write by an instruction that writes no data";
                return Err(TraceError::Damaged(damaged));
            }
        };
        let Some(value) = value else {
            return Ok(false);
        };
        let value = value.to_le_bytes();
        let offset = offset as usize;
        let part = value.get(offset..offset + wanted.length);
        let part = part.ok_or(TraceError::Damaged("a write of fewer bytes"))?;
        bytes.copy_from_slice(part);
        Ok(true)
    }

    /// Fills in bytes that a memory copy wrote, from `source.offset` bytes after the start of its
    /// destination.
    fn copied_bytes(
        &self,
        source: Wanted,
        instance: Instance,
        position: usize,
        bytes: &mut [u8],
        known: &mut ComputedValues,
    ) -> Result<bool, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let write = compiled.model.ordinal(position);
        let write = write.ok_or(TraceError::Damaged("a write that does not exist"))?;
        // If the value needed more copies, the builder would have stored it.
        if source.copies > MOST_COPIES {
            return Err(TraceError::Damaged("too many nested copies"));
        }
        let copies = self.copies(instance, write)?;
        let copies = copies
            .view()
            .ok_or(TraceError::Damaged("a copy of nothing"))?;
        let mut complete = true;
        for (i, byte) in (0..).zip(bytes) {
            let offset = source.offset.wrapping_add(i);
            let found = copies.at(instance.number, offset, &self.blocks)?;
            let (origin, execution) = found.ok_or(TraceError::Damaged("a copy of fewer bytes"))?;
            let writer = match self.writer(origin, Execution::Number(execution), instance)? {
                Some(writer) => writer,
                None => {
                    let (base, register) = source.base;
                    let Some((from, _)) = known.get(base, register) else {
                        return Ok(false);
                    };
                    let address = from.wrapping_add(offset);
                    let memory = source.memory;
                    self.writer_before(instance, StorageCell::Byte { memory, address })?
                }
            };
            if let Writer::Write {
                instance: named,
                inst,
                ..
            } = writer
                && (named.time, inst) >= (instance.time, position)
            {
                let damaged = "a copy of bytes that were written later";
                return Err(TraceError::Damaged(damaged));
            }
            let wanted = Wanted {
                offset,
                length: 1,
                ..source
            };
            complete &= self.bytes_of(wanted, writer, std::slice::from_mut(byte), known)?;
        }
        Ok(complete)
    }
}

/// Returns the address of the bytes, if known.
fn address_of(wanted: Wanted, known: &mut ComputedValues) -> Option<u64> {
    let (instance, register) = wanted.base;
    let (base, _) = known.get(instance, register)?;
    Some(base.wrapping_add(wanted.offset))
}
