//! Boundary events and their encoding.
//!
//! An event is encoded as a tag byte and its fields. In the log, its length precedes it, so a
//! reader can collect the whole event from one or several chunks before decoding it.

use afterimage_ids::{FuncId, ImportId};

use crate::Result;
use crate::limits::{MAX_RANGES, MAX_VALUES, check};
use crate::wire::{Bytes, Fault, put_bytes, put_signed, put_varint};

/// An event at the boundary between guest and host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host calls an export, or the engine calls the start function.
    Enter {
        /// The function that the host calls.
        function: FuncId,
        /// The arguments of the call.
        args: Vec<RawValue>,
    },
    /// The innermost [`Event::Enter`] returned.
    Leave {
        /// The results of the call.
        results: Vec<RawValue>,
    },
    /// The guest called an import, which returned.
    HostCall {
        /// The import that the guest called.
        import: ImportId,
        /// The arguments of the call.
        args: Vec<RawValue>,
        /// The results of the call.
        results: Vec<RawValue>,
        /// Guest bytes that the host wrote, in order.
        writes: Vec<HostWrite>,
        /// Guest bytes that the host read, in order.
        reads: Vec<HostRead>,
        /// The CRC-32 (IEEE) of the bytes read, concatenated in order.
        read_digest: u32,
    },
    /// The guest asked for a larger memory. The guest's own code says which memory.
    MemoryGrow {
        /// Whether the engine granted the growth.
        granted: bool,
    },
    /// The guest asked for a larger table.
    TableGrow {
        /// Whether the engine granted the growth.
        granted: bool,
    },
    /// The guest called an import, which did not return. This is the last event of a run.
    HostStop {
        /// The import that the guest called.
        import: ImportId,
        /// The arguments of the call.
        args: Vec<RawValue>,
        /// Guest bytes that the host read, in order.
        reads: Vec<HostRead>,
        /// The CRC-32 (IEEE) of the bytes read, concatenated in order.
        read_digest: u32,
        /// The reason why the call did not return.
        outcome: HostStop,
    },
}

/// The reason why a host call did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostStop {
    /// The guest asked to exit with this code.
    Exit(i32),
    /// The host failed with this message.
    Error(String),
    /// The run was stopped from outside during the call.
    Interrupted,
}

/// A WebAssembly value. Floats and vectors are represented by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawValue {
    /// `i32`.
    I32(i32),
    /// `i64`.
    I64(i64),
    /// The bits of an `f32`.
    F32(u32),
    /// The bits of an `f64`.
    F64(u64),
    /// The bits of a `v128`.
    V128(u128),
    /// A null reference.
    NullRef,
    /// A non-null reference that the log cannot name.
    OpaqueRef,
}

/// Guest bytes that the host wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWrite {
    /// The index of the memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The bytes that the host wrote.
    pub bytes: Vec<u8>,
}

/// A range of guest bytes that the host read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRead {
    /// The index of the memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
}

/// A borrowed [`HostWrite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWriteRef<'a> {
    /// The index of the memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The bytes that the host wrote.
    pub bytes: &'a [u8],
}

/// A borrowed [`Event::HostCall`], which a recorder can pass without allocating.
#[derive(Clone, Copy, Debug)]
pub struct HostCallRef<'a> {
    /// The import that the guest called.
    pub import: ImportId,
    /// The arguments of the call.
    pub args: &'a [RawValue],
    /// The results of the call.
    pub results: &'a [RawValue],
    /// Guest bytes that the host wrote, in order.
    pub writes: &'a [HostWriteRef<'a>],
    /// Guest bytes that the host read, in order.
    pub reads: &'a [HostRead],
    /// The CRC-32 (IEEE) of the bytes read, concatenated in order.
    pub read_digest: u32,
}

impl<'a> From<&'a HostWrite> for HostWriteRef<'a> {
    fn from(write: &'a HostWrite) -> Self {
        HostWriteRef {
            memory: write.memory,
            address: write.address,
            bytes: &write.bytes,
        }
    }
}

const ENTER: u8 = 0;
const LEAVE: u8 = 1;
const HOST_CALL: u8 = 2;
const HOST_STOP: u8 = 3;
const MEMORY_GROW: u8 = 4;
const TABLE_GROW: u8 = 5;

/// Appends an event's bytes, without their length.
///
/// # Errors
/// Returns [`crate::TraceError::TooLarge`]. Some bytes may have been appended.
pub(crate) fn encode(event: &Event, out: &mut Vec<u8>) -> Result<()> {
    match event {
        Event::Enter { function, args } => {
            out.push(ENTER);
            put_varint(out, function.as_u32().into());
            put_values(out, args)?;
        }
        Event::Leave { results } => {
            out.push(LEAVE);
            put_values(out, results)?;
        }
        Event::HostCall {
            import,
            args,
            results,
            writes,
            reads,
            read_digest,
        } => {
            let call = HostCallRef {
                import: *import,
                args,
                results,
                writes: &Vec::from_iter(writes.iter().map(HostWriteRef::from)),
                reads,
                read_digest: *read_digest,
            };
            encode_host_call(&call, out)?;
        }
        Event::HostStop {
            import,
            args,
            reads,
            read_digest,
            outcome,
        } => {
            out.push(HOST_STOP);
            put_varint(out, import.as_u32().into());
            put_values(out, args)?;
            put_reads(out, reads, *read_digest)?;
            match outcome {
                HostStop::Exit(code) => {
                    out.push(0);
                    put_signed(out, *code);
                }
                HostStop::Error(message) => {
                    out.push(1);
                    put_bytes(out, message.as_bytes());
                }
                HostStop::Interrupted => out.push(2),
            }
        }
        Event::MemoryGrow { granted } => out.extend([MEMORY_GROW, u8::from(*granted)]),
        Event::TableGrow { granted } => out.extend([TABLE_GROW, u8::from(*granted)]),
    }
    Ok(())
}

/// Appends the bytes of a host call that returned.
pub(crate) fn encode_host_call(call: &HostCallRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    out.push(HOST_CALL);
    put_varint(out, call.import.as_u32().into());
    put_values(out, call.args)?;
    put_reads(out, call.reads, call.read_digest)?;
    put_values(out, call.results)?;
    check(
        "the number of ranges written",
        call.writes.len(),
        MAX_RANGES,
    )?;
    put_varint(out, call.writes.len() as u64);
    for write in call.writes {
        put_varint(out, write.memory.into());
        put_varint(out, write.address);
        put_bytes(out, write.bytes);
    }
    Ok(())
}

fn put_reads(out: &mut Vec<u8>, reads: &[HostRead], digest: u32) -> Result<()> {
    check("the number of ranges read", reads.len(), MAX_RANGES)?;
    put_varint(out, reads.len() as u64);
    for read in reads {
        put_varint(out, read.memory.into());
        put_varint(out, read.address);
        put_varint(out, read.length);
    }
    put_varint(out, digest.into());
    Ok(())
}

fn put_values(out: &mut Vec<u8>, values: &[RawValue]) -> Result<()> {
    check("the number of values", values.len(), MAX_VALUES)?;
    put_varint(out, values.len() as u64);
    for value in values {
        match *value {
            RawValue::I32(value) => {
                out.push(0);
                put_varint(out, u64::from(value as u32));
            }
            RawValue::I64(value) => {
                out.push(1);
                put_varint(out, value as u64);
            }
            RawValue::F32(bits) => {
                out.push(2);
                out.extend_from_slice(&bits.to_le_bytes());
            }
            RawValue::F64(bits) => {
                out.push(3);
                out.extend_from_slice(&bits.to_le_bytes());
            }
            RawValue::V128(bits) => {
                out.push(4);
                out.extend_from_slice(&bits.to_le_bytes());
            }
            RawValue::NullRef => out.push(5),
            RawValue::OpaqueRef => out.push(6),
        }
    }
    Ok(())
}

/// Decodes the event that exactly fills `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Result<Event, Fault> {
    let bytes = &mut Bytes::new(bytes);
    let event = match bytes.byte()? {
        ENTER => Event::Enter {
            function: FuncId::from_u32(entity(bytes)?),
            args: values(bytes)?,
        },
        LEAVE => Event::Leave {
            results: values(bytes)?,
        },
        HOST_CALL => {
            let import = ImportId::from_u32(entity(bytes)?);
            let args = values(bytes)?;
            let (reads, read_digest) = host_reads(bytes)?;
            let results = values(bytes)?;
            let writes = host_writes(bytes)?;
            Event::HostCall {
                import,
                args,
                results,
                writes,
                reads,
                read_digest,
            }
        }
        HOST_STOP => {
            let import = ImportId::from_u32(entity(bytes)?);
            let args = values(bytes)?;
            let (reads, read_digest) = host_reads(bytes)?;
            let outcome = match bytes.byte()? {
                0 => HostStop::Exit(bytes.signed()?),
                1 => HostStop::Error(bytes.text()?),
                2 => HostStop::Interrupted,
                _ => return bytes.fault("an unknown outcome of a host call"),
            };
            Event::HostStop {
                import,
                args,
                reads,
                read_digest,
                outcome,
            }
        }
        MEMORY_GROW => Event::MemoryGrow {
            granted: bytes.flag()?,
        },
        TABLE_GROW => Event::TableGrow {
            granted: bytes.flag()?,
        },
        _ => return bytes.fault("an unknown event"),
    };
    bytes.end()?;
    Ok(event)
}

/// Reads an entity's number. Refuses the greatest `u32`, which the entity types reserve.
pub(crate) fn entity(bytes: &mut Bytes<'_>) -> Result<u32, Fault> {
    match bytes.varint32()? {
        u32::MAX => bytes.fault("an index out of range"),
        index => Ok(index),
    }
}

fn values(bytes: &mut Bytes<'_>) -> Result<Vec<RawValue>, Fault> {
    bytes.list(1, MAX_VALUES, value)
}

fn value(bytes: &mut Bytes<'_>) -> Result<RawValue, Fault> {
    Ok(match bytes.byte()? {
        0 => RawValue::I32(bytes.varint32()? as i32),
        1 => RawValue::I64(bytes.varint()? as i64),
        2 => RawValue::F32(u32::from_le_bytes(bytes.array()?)),
        3 => RawValue::F64(u64::from_le_bytes(bytes.array()?)),
        4 => RawValue::V128(u128::from_le_bytes(bytes.array()?)),
        5 => RawValue::NullRef,
        6 => RawValue::OpaqueRef,
        _ => return bytes.fault("an unknown type of value"),
    })
}

fn host_reads(bytes: &mut Bytes<'_>) -> Result<(Vec<HostRead>, u32), Fault> {
    let reads = bytes.list(3, MAX_RANGES, |bytes| {
        let (memory, address) = (bytes.varint32()?, bytes.varint()?);
        Ok(HostRead {
            memory,
            address,
            length: bytes.varint()?,
        })
    })?;
    Ok((reads, bytes.varint32()?))
}

fn host_writes(bytes: &mut Bytes<'_>) -> Result<Vec<HostWrite>, Fault> {
    bytes.list(3, MAX_RANGES, |bytes| {
        let (memory, address) = (bytes.varint32()?, bytes.varint()?);
        Ok(HostWrite {
            memory,
            address,
            bytes: bytes.bytes()?.to_vec(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_all_of_its_bytes() {
        let event = Event::Leave {
            results: vec![RawValue::I32(-1)],
        };
        let mut bytes = Vec::new();
        encode(&event, &mut bytes).unwrap();
        assert_eq!(decode(&bytes), Ok(event));
        bytes.push(0);
        assert_eq!(
            decode(&bytes).map_err(|fault| fault.what),
            Err("bytes after the end")
        );
        bytes.truncate(bytes.len() - 2);
        assert!(decode(&bytes).is_err());
    }

    #[test]
    fn the_greatest_index_is_not_an_entity() {
        let mut bytes = vec![ENTER];
        put_varint(&mut bytes, u32::MAX.into());
        bytes.push(0);
        assert_eq!(
            decode(&bytes).map_err(|fault| fault.what),
            Err("an index out of range")
        );
    }
}
