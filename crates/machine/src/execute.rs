//! Executes the instructions of a node.

mod bulk;
mod tables;
mod vectors;

use self::bulk::bulk;
use self::vectors::vector;
use crate::code::NodeCode;
use crate::host::Source;
use crate::image::{Growth, State};
use crate::inst::{Code, Expected, Inst, Load};
use crate::observe::{Observer, Range};
use crate::{MachineError, Trap};

/// The reason why the execution of a node stops before its end.
pub(crate) enum Stop {
    Trap(Trap),
    Diverged(&'static str),
    /// The log disagrees with the program's computation.
    Boundary(&'static str),
    /// The log ends at this point.
    End,
    Error(MachineError),
}

impl From<Trap> for Stop {
    fn from(trap: Trap) -> Self {
        Stop::Trap(trap)
    }
}

impl From<Growth> for Stop {
    fn from(growth: Growth) -> Self {
        match growth {
            Growth::Beyond(what) => Stop::Diverged(what),
            Growth::Limit(what) => Stop::Error(MachineError::Unsupported(what)),
        }
    }
}

/// The registers of a node.
pub(crate) struct Registers<'a> {
    pub low: &'a mut [u64],
    /// The upper halves of vectors, empty if there are no vectors.
    pub high: &'a mut [u64],
}

impl Registers<'_> {
    fn vector(&self, register: u32) -> u128 {
        let i = register as usize;
        u128::from(self.low[i]) | u128::from(self.high[i]) << 64
    }

    fn set_vector(&mut self, register: usize, value: u128) {
        self.low[register] = value as u64;
        self.high[register] = (value >> 64) as u64;
    }
}

/// Executes a part of a node's instructions. All earlier instructions must have been executed. The
/// variables are in the first registers. An error contains the total number of executed
/// instructions.
pub(crate) fn execute<O: Observer>(
    code: &NodeCode,
    range: std::ops::Range<usize>,
    mut registers: Registers<'_>,
    state: &mut State,
    source: &mut Source,
    observer: &mut O,
) -> Result<(), (usize, Stop)> {
    if range.start == 0 {
        code.set_constants(registers.low, registers.high);
    }
    let first = code.first_result() as usize;
    for (i, inst) in range.clone().zip(&code.insts[range]) {
        let place = InstructionAt { code, i, first };
        instruction(place, inst, &mut registers, state, source, observer)
            .map_err(|stop| (i, stop))?;
    }
    Ok(())
}

/// Executes one instruction of a node.
pub(crate) fn one<O: Observer>(
    code: &NodeCode,
    position: usize,
    registers: &mut Registers<'_>,
    state: &mut State,
    source: &mut Source,
    observer: &mut O,
) -> Result<(), Stop> {
    let place = InstructionAt {
        code,
        i: position,
        first: code.first_result() as usize,
    };
    let inst = &code.insts[position];
    instruction(place, inst, registers, state, source, observer)
}

impl NodeCode {
    /// Writes the node's constants to their registers.
    pub(crate) fn set_constants(&self, low: &mut [u64], high: &mut [u64]) {
        let variables = self.variables as usize;
        let constants = variables..variables + self.constants.len();
        low[constants.clone()].copy_from_slice(&self.constants);
        if self.wide {
            high[constants].fill(0);
            for &(register, half) in &self.wide_constants {
                high[register as usize] = half;
            }
        }
    }
}

/// An instruction of a node, with its position.
#[derive(Clone, Copy)]
struct InstructionAt<'a> {
    code: &'a NodeCode,
    i: usize,
    /// The register of the first instruction's result.
    first: usize,
}

#[inline(always)]
fn instruction<O: Observer>(
    InstructionAt { code, i, first }: InstructionAt<'_>,
    inst: &Inst,
    registers: &mut Registers<'_>,
    state: &mut State,
    source: &mut Source,
    observer: &mut O,
) -> Result<(), Stop> {
    let low = &mut *registers.low;
    let a = low[inst.a as usize];
    let result = match inst.code {
        Code::Scalar(scalar) => scalar
            .eval(a, low[inst.b as usize])
            .map_err(|trap| Stop::Trap(trap.into()))?,
        Code::Select => match low[inst.c as usize] as u32 {
            0 => low[inst.b as usize],
            _ => a,
        },
        Code::Load(load) => {
            let address = address(inst, a)?;
            let bytes = &state.memories[inst.memory as usize].bytes;
            let value = read(bytes, address, load)?;
            observer.read(i, range(inst, address, u64::from(load.bytes)));
            observer.loaded(i, (value, 0));
            value
        }
        Code::Store(length) => {
            let address = address(inst, a)?;
            let value = low[inst.b as usize];
            let memory = &mut state.memories[inst.memory as usize];
            write(&mut memory.bytes, address, value, length)?;
            observer.write(i, range(inst, address, u64::from(length)));
            observer.stored(i, inst.stored((value, 0)));
            return Ok(());
        }
        Code::Branch(expected) => {
            check(code, expected, inst, a)?;
            return Ok(());
        }
        Code::GlobalGet => {
            let global = inst.immediate as usize;
            let (bits, high) = state.globals[global];
            if code.wide {
                registers.high[first + i] = high;
            }
            observer.read_global(i, global as u32);
            observer.gave(i, (bits, high));
            bits
        }
        Code::GlobalSet => {
            let global = inst.immediate as usize;
            let high = if code.wide {
                registers.high[inst.a as usize]
            } else {
                0
            };
            state.globals[global] = (a, high);
            observer.write_global(i, global as u32);
            return Ok(());
        }
        Code::Vector(_) | Code::SelectVector | Code::LoadVector(_) | Code::StoreVector(_) => {
            vector(code, i, first, registers, state, observer)?;
            return Ok(());
        }
        _ => {
            let operands = [a, low[inst.b as usize], low[inst.c as usize]];
            match bulk(i, inst, operands, state, source, observer)? {
                Some(value) => {
                    if inst.code != Code::RefIsNull {
                        observer.gave(i, (value, 0));
                    }
                    value
                }
                None => return Ok(()),
            }
        }
    };
    registers.low[first + i] = result;
    Ok(())
}

#[inline]
fn address(inst: &Inst, base: u64) -> Result<u64, Trap> {
    base.checked_add(inst.immediate).ok_or(Trap::Memory)
}

#[inline]
fn range(inst: &Inst, address: u64, length: u64) -> Range {
    Range {
        memory: u32::from(inst.memory),
        address,
        length,
    }
}

#[inline]
fn bytes_at<const N: usize>(bytes: &[u8], address: u64) -> Result<[u8; N], Trap> {
    let start = usize::try_from(address).map_err(|_| Trap::Memory)?;
    let rest = bytes.get(start..).ok_or(Trap::Memory)?;
    rest.first_chunk::<N>().copied().ok_or(Trap::Memory)
}

#[inline]
fn read(bytes: &[u8], address: u64, load: Load) -> Result<u64, Trap> {
    let raw = match load.bytes {
        4 => u64::from(u32::from_le_bytes(bytes_at(bytes, address)?)),
        8 => u64::from_le_bytes(bytes_at(bytes, address)?),
        1 => u64::from(u8::from_le_bytes(bytes_at(bytes, address)?)),
        _ => u64::from(u16::from_le_bytes(bytes_at(bytes, address)?)),
    };
    Ok(load.extend(raw))
}

#[inline]
fn write(bytes: &mut [u8], address: u64, value: u64, length: u8) -> Result<(), Trap> {
    let start = usize::try_from(address).map_err(|_| Trap::Memory)?;
    let end = start.checked_add(length as usize).ok_or(Trap::Memory)?;
    let place = bytes.get_mut(start..end).ok_or(Trap::Memory)?;
    match length {
        4 => place.copy_from_slice(&(value as u32).to_le_bytes()),
        8 => place.copy_from_slice(&value.to_le_bytes()),
        1 => place[0] = value as u8,
        _ => place.copy_from_slice(&(value as u16).to_le_bytes()),
    }
    Ok(())
}

impl Load {
    /// Returns the value that a load makes from the bytes that it reads.
    #[inline]
    pub fn extend(self, raw: u64) -> u64 {
        if self.sign == 0 {
            return raw;
        }
        let unused = 64 - 8 * u32::from(self.bytes);
        let extended = ((raw << unused) as i64 >> unused) as u64;
        if self.sign == 32 {
            u64::from(extended as u32)
        } else {
            extended
        }
    }
}

#[inline]
fn check(code: &NodeCode, expected: Expected, inst: &Inst, a: u64) -> Result<(), Stop> {
    let index = a as u32;
    let fits = match expected {
        Expected::True => index != 0,
        Expected::False => index == 0,
        Expected::Any => true,
        Expected::OneOf => code.lists[inst.immediate as usize].has(index),
    };
    if fits {
        Ok(())
    } else {
        Err(Stop::Diverged("a branch goes a different way"))
    }
}
