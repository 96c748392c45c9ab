//! Writes steps for other programs, in the binary form that docs/TRACE.md describes.

use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_replay::steps::{Level, Range, Step, Tried, Value, What};

use super::{NextStep, StepScene};
use crate::PresentError;
use crate::trace::Stretch;
use crate::value::type_number;

/// The first bytes of the output.
const MAGIC: &[u8; 8] = b"AFTRACE1";
/// The number for a missing function or offset.
const NONE: u32 = u32::MAX;
/// The kind of a record with a value of the preceding entry.
const VALUE: u8 = 19;
/// The kind of a record with some of the bytes of the preceding entry.
const BYTES: u8 = 20;
/// The maximum number of bytes in a record of kind [`BYTES`].
const HELD: usize = 16;
/// The number added to a record's kind if the record describes the access that a trapped operator
/// would have made. This record follows the trap's record.
const TRIED: u8 = 32;

/// Writes steps as fixed-size records after a head.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
pub fn steps_binary(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextStep<'_>,
    level: Level,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    let level = match level {
        Level::Statement => 4,
        Level::Memory => 5,
    };
    out.write_all(MAGIC)?;
    out.write_all(&[level, u8::from(stretch.reverse), 0, 0])?;
    let function = stretch.function.map_or(NONE, FuncId::as_u32);
    out.write_all(&function.to_le_bytes())?;
    out.write_all(&stretch.window.first.to_le_bytes())?;
    out.write_all(&stretch.window.last.to_le_bytes())?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(step) = next()?
    {
        let (mut record, values) = Record::of(&step);
        record.offset = scene
            .operator(&step)?
            .offset
            .map_or(NONE, |offset| offset.0);
        out.write_all(&record.bytes())?;
        for (number, value) in (0..).zip(values) {
            let mut of_value = Record {
                kind: VALUE,
                number,
                ..record
            };
            (of_value.address, of_value.length) = (0, 0);
            of_value.value(value);
            out.write_all(&of_value.bytes())?;
        }
        let bytes = step.bytes.as_deref().unwrap_or_default();
        for (number, held) in (0..).zip(bytes.chunks(HELD)) {
            let mut of_bytes = Record {
                kind: BYTES,
                number,
                ..record.placed()
            };
            of_bytes.hold(held);
            out.write_all(&of_bytes.bytes())?;
        }
        if let What::Trap(_, Some(tried)) = &step.what {
            let (time, function, offset) = (record.time, record.function, record.offset);
            let tried = Record {
                time,
                function,
                offset,
                ..Record::tried(tried)
            };
            out.write_all(&tried.bytes())?;
        }
        room -= 1;
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Record {
    time: u64,
    function: u32,
    offset: u32,
    kind: u8,
    ty: u8,
    memory: u16,
    number: u32,
    address: u64,
    length: u64,
    low: u64,
    high: u64,
}

impl Record {
    /// Returns the record of a step, and the values for the records that follow it.
    fn of(step: &Step) -> (Self, &[Value]) {
        let mut record = Self {
            time: step.time,
            function: step.function.as_u32(),
            offset: NONE,
            ..Self::default()
        };
        let mut values: &[Value] = &[];
        record.kind = match &step.what {
            What::Computed(value) => {
                record.value(value);
                1
            }
            What::Load(range, value) => {
                record.value(value);
                record.load(*range)
            }
            What::Store(range, value) => record.store(*range, value),
            What::Copy { from, to } => record.copy(*from, *to),
            What::Fill(range, byte) => record.fill(*range, *byte),
            What::Init { to, segment, from } => record.init(*to, *segment, *from),
            What::Grow { memory, by, result } => {
                (record.memory, record.length) = (*memory as u16, *by);
                record.value(result);
                7
            }
            What::SetGlobal(global, value) => {
                record.number = *global;
                record.value(value);
                8
            }
            What::Changed(operands) => {
                values = operands;
                9
            }
            What::Branch(value) => {
                record.value(value);
                10
            }
            What::Jump => 11,
            What::Call { callee, arguments } => {
                record.number = callee.as_u32();
                values = arguments;
                12
            }
            What::Return(returned) => {
                values = returned;
                13
            }
            What::HostReturn(import, returned) => {
                record.number = import.as_u32();
                values = returned;
                14
            }
            What::HostRead(import, range) => {
                record.range(*range);
                record.number = import.as_u32();
                15
            }
            What::HostWrite(import, range) => {
                record.range(*range);
                record.number = import.as_u32();
                16
            }
            What::Throw(carried) => {
                values = carried;
                17
            }
            What::Trap(..) => 18,
        };
        if !values.is_empty() {
            record.length = values.len() as u64;
        }
        (record, values)
    }

    /// Returns the record of the intended access of an operator that trapped.
    fn tried(tried: &Tried) -> Self {
        let mut record = Self::default();
        let kind = match *tried {
            Tried::Load(range) => record.load(range),
            Tried::Store(range, ref value) => record.store(range, value),
            Tried::Copy { from, to } => record.copy(from, to),
            Tried::Fill(range, byte) => record.fill(range, byte),
            Tried::Init { to, segment, from } => record.init(to, segment, from),
        };
        Self {
            kind: TRIED + kind,
            ..record
        }
    }

    // These methods add data to a record, and return its kind.

    fn load(&mut self, range: Range) -> u8 {
        self.range(range);
        2
    }

    fn store(&mut self, range: Range, value: &Value) -> u8 {
        self.range(range);
        self.value(value);
        3
    }

    fn copy(&mut self, from: Range, to: Range) -> u8 {
        self.range(to);
        (self.number, self.low) = (from.memory, from.address);
        4
    }

    fn fill(&mut self, range: Range, byte: u8) -> u8 {
        self.range(range);
        self.low = u64::from(byte);
        5
    }

    fn init(&mut self, to: Range, segment: u32, from: u64) -> u8 {
        self.range(to);
        (self.number, self.low) = (segment, from);
        6
    }

    fn range(&mut self, range: Range) {
        // The number fits, because a module has far fewer memories.
        self.memory = range.memory as u16;
        (self.address, self.length) = (range.address, range.length);
    }

    /// Returns a record that has only the place of the preceding record.
    fn placed(&self) -> Self {
        Self {
            time: self.time,
            function: self.function,
            offset: self.offset,
            ..Self::default()
        }
    }

    /// Adds some bytes, at most 16.
    fn hold(&mut self, bytes: &[u8]) {
        let mut held = [0; HELD];
        held[..bytes.len()].copy_from_slice(bytes);
        let all = u128::from_le_bytes(held);
        (self.low, self.high) = (all as u64, (all >> 64) as u64);
        self.length = bytes.len() as u64;
    }

    fn value(&mut self, value: &Value) {
        self.ty = type_number(value.ty);
        (self.low, self.high) = value.bits;
    }

    fn bytes(&self) -> [u8; 56] {
        let mut bytes = [0; 56];
        bytes[..8].copy_from_slice(&self.time.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.function.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16] = self.kind;
        bytes[17] = self.ty;
        bytes[18..20].copy_from_slice(&self.memory.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.number.to_le_bytes());
        for (at, long) in [self.address, self.length, self.low, self.high]
            .into_iter()
            .enumerate()
        {
            bytes[24 + 8 * at..32 + 8 * at].copy_from_slice(&long.to_le_bytes());
        }
        bytes
    }
}
