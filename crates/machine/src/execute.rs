//! Executing the instructions of a node.

use afterimage_numeric::Kind;
use afterimage_trace::Event;

use crate::code::NodeCode;
use crate::image::{PAGE, State};
use crate::inst::{Code, Expected, Inst, Load};
use crate::machine::Source;
use crate::observe::{Observer, Range};
use crate::{MachineError, Trap};

/// Why a node's execution stops before its end.
pub(crate) enum Stop {
    Trap(Trap),
    Diverged(&'static str),
    /// The log ends here.
    End,
    Error(MachineError),
}

impl From<Trap> for Stop {
    fn from(trap: Trap) -> Self {
        Stop::Trap(trap)
    }
}

/// The registers of a node.
pub(crate) struct Registers<'a> {
    pub low: &'a mut [u64],
    /// The upper halves of vectors; empty if there are none.
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

/// Executes a node's instructions. The variables are in the first registers.
pub(crate) fn execute<O: Observer>(
    code: &NodeCode,
    mut registers: Registers<'_>,
    state: &mut State,
    source: &mut Source,
    observer: &mut O,
) -> Result<(), Stop> {
    let variables = code.variables as usize;
    let constants = code.constants.len();
    registers.low[variables..variables + constants].copy_from_slice(&code.constants);
    if code.wide {
        registers.high[variables..variables + constants].fill(0);
        for &(register, high) in &code.wide_constants {
            registers.high[register as usize] = high;
        }
    }
    let first = variables + constants;
    for (i, inst) in code.insts.iter().enumerate() {
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
                value
            }
            Code::Store(length) => {
                let address = address(inst, a)?;
                let value = low[inst.b as usize];
                let memory = &mut state.memories[inst.memory as usize];
                write(&mut memory.bytes, address, value, length)?;
                observer.write(i, range(inst, address, u64::from(length)));
                continue;
            }
            Code::Branch(expected) => {
                check(code, expected, inst, a)?;
                continue;
            }
            Code::GlobalGet => {
                let global = inst.immediate as usize;
                let (bits, high) = state.globals[global];
                if code.wide {
                    registers.high[first + i] = high;
                }
                observer.read_global(i, global as u32);
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
                continue;
            }
            Code::Vector(_) | Code::SelectVector | Code::LoadVector(_) | Code::StoreVector(_) => {
                vector(code, i, first, &mut registers, state, observer)?;
                continue;
            }
            _ => {
                let operands = [a, low[inst.b as usize], low[inst.c as usize]];
                match bulk(i, inst, operands, state, source, observer)? {
                    Some(value) => value,
                    None => continue,
                }
            }
        };
        registers.low[first + i] = result;
    }
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
    /// The value that a load makes of the bytes that it read.
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
        Expected::OneOf => {
            let list = &code.lists[inst.immediate as usize];
            list.from.is_some_and(|from| index >= from)
                || list.indices.binary_search(&index).is_ok()
        }
    };
    if fits {
        Ok(())
    } else {
        Err(Stop::Diverged("a branch goes another way"))
    }
}

/// Vectors.
fn vector<O: Observer>(
    code: &NodeCode,
    i: usize,
    first: usize,
    registers: &mut Registers<'_>,
    state: &mut State,
    observer: &mut O,
) -> Result<(), Stop> {
    let inst = &code.insts[i];
    let a = registers.low[inst.a as usize];
    match inst.code {
        Code::Vector(operator) => {
            let (operands, result) = operator.signature();
            let Some(extra) = code.vector(i) else {
                return Err(Stop::Diverged("a vector operator without its immediate"));
            };
            let mut values = [0; 3];
            let from = [inst.a, inst.b, extra.c];
            for ((value, kind), register) in values.iter_mut().zip(operands).zip(from) {
                *value = match kind {
                    Kind::Vector => registers.vector(register),
                    Kind::Scalar => u128::from(registers.low[register as usize]),
                };
            }
            let value = operator.eval(extra.immediate, values);
            match result {
                Kind::Vector => registers.set_vector(first + i, value),
                Kind::Scalar => registers.low[first + i] = value as u64,
            }
        }
        Code::SelectVector => {
            let chosen = match registers.low[inst.c as usize] as u32 {
                0 => inst.b,
                _ => inst.a,
            };
            let value = registers.vector(chosen);
            registers.set_vector(first + i, value);
        }
        Code::LoadVector(load) => {
            let address = address(inst, a)?;
            let length = load.bytes();
            let memory = &state.memories[inst.memory as usize];
            let place = memory.range(address, length as u64)?;
            let mut raw = [0; 16];
            raw[..length].copy_from_slice(&memory.bytes[place]);
            let into = if load.keeps() {
                registers.vector(inst.b)
            } else {
                0
            };
            let value = load.make(u128::from_le_bytes(raw), into, inst.c as u8);
            registers.set_vector(first + i, value);
            observer.read(i, range(inst, address, length as u64));
        }
        Code::StoreVector(store) => {
            let address = address(inst, a)?;
            let length = store.bytes();
            let value = store.value(registers.vector(inst.b), inst.c as u8);
            let memory = &mut state.memories[inst.memory as usize];
            let place = memory.range(address, length as u64)?;
            memory.bytes[place].copy_from_slice(&value.to_le_bytes()[..length]);
            observer.write(i, range(inst, address, length as u64));
        }
        _ => {}
    }
    Ok(())
}

/// What is rare.
fn bulk<O: Observer>(
    i: usize,
    inst: &Inst,
    [a, b, c]: [u64; 3],
    state: &mut State,
    source: &mut Source,
    observer: &mut O,
) -> Result<Option<u64>, Stop> {
    let of = |memory: u32, address, length| Range {
        memory,
        address,
        length,
    };
    let memory = inst.memory as usize;
    let to = u32::from(inst.memory);
    let index = inst.immediate as usize;
    match inst.code {
        Code::MemorySize => return Ok(Some(state.memories[memory].bytes.len() as u64 / PAGE)),
        Code::MemoryGrow => {
            let memory = &mut state.memories[memory];
            let refused = if memory.wide {
                u64::MAX
            } else {
                u64::from(u32::MAX)
            };
            let before = memory.bytes.len() as u64 / PAGE;
            if a > 0 {
                if !source.growth(true)? {
                    return Ok(Some(refused));
                }
                let size = a.checked_add(before).and_then(|n| n.checked_mul(PAGE));
                let size = size
                    .and_then(|n| usize::try_from(n).ok())
                    .ok_or(Stop::Diverged("a memory grows too large"))?;
                let more = size - memory.bytes.len();
                memory
                    .bytes
                    .try_reserve_exact(more)
                    .map_err(|_| Stop::Error(MachineError::Unsupported("a memory so large")))?;
                memory.bytes.resize(size, 0);
            }
            return Ok(Some(before));
        }
        Code::MemoryCopy => {
            let from = of(index as u32, b, c);
            let source = state.memories[index].range(b, c)?;
            let target = state.memories[memory].range(a, c)?;
            observer.copy(i, from, of(to, a, c));
            if index == memory {
                state.memories[memory]
                    .bytes
                    .copy_within(source, target.start);
            } else {
                let bytes = state.memories[index].bytes[source].to_vec();
                state.memories[memory].bytes[target].copy_from_slice(&bytes);
            }
        }
        Code::MemoryFill => {
            let memory = &mut state.memories[memory];
            let target = memory.range(a, c)?;
            memory.bytes[target].fill(b as u8);
            observer.write(i, of(to, a, c));
        }
        Code::MemoryInit => {
            let data = &state.data[index];
            let source = part(data.len(), b, c).ok_or(Trap::Memory)?;
            let memory = &mut state.memories[memory];
            let target = memory.range(a, c)?;
            memory.bytes[target].copy_from_slice(&data[source]);
            observer.write(i, of(to, a, c));
        }
        Code::DataDrop => state.data[index] = [].into(),
        Code::RefIsNull => return Ok(Some(u64::from(a == 0))),
        _ => return table(inst, [a, b, c], state, source),
    }
    Ok(None)
}

fn part(length: usize, start: u64, count: u64) -> Option<std::ops::Range<usize>> {
    let end = start
        .checked_add(count)
        .filter(|end| *end <= length as u64)?;
    Some(start as usize..end as usize)
}

fn table(
    inst: &Inst,
    [a, b, c]: [u64; 3],
    state: &mut State,
    source: &mut Source,
) -> Result<Option<u64>, Stop> {
    let index = inst.immediate as u32 as usize;
    let other = (inst.immediate >> 32) as usize;
    match inst.code {
        Code::TableGet => {
            let elements = &state.tables[index].elements;
            let found = usize::try_from(a).ok().and_then(|a| elements.get(a));
            return Ok(Some(*found.ok_or(Trap::Table)?));
        }
        Code::TableSet => {
            let elements = &mut state.tables[index].elements;
            let found = usize::try_from(a).ok().and_then(|a| elements.get_mut(a));
            *found.ok_or(Trap::Table)? = b;
        }
        Code::TableSize => return Ok(Some(state.tables[index].elements.len() as u64)),
        Code::TableGrow => {
            let table = &mut state.tables[index];
            let before = table.elements.len() as u64;
            if b > 0 {
                if !source.growth(false)? {
                    let refused = if table.wide {
                        u64::MAX
                    } else {
                        u64::from(u32::MAX)
                    };
                    return Ok(Some(refused));
                }
                let size = before.checked_add(b).and_then(|n| usize::try_from(n).ok());
                let size = size.ok_or(Stop::Diverged("a table grows too large"))?;
                let more = size - table.elements.len();
                table
                    .elements
                    .try_reserve_exact(more)
                    .map_err(|_| Stop::Error(MachineError::Unsupported("a table so large")))?;
                table.elements.resize(size, a);
            }
            return Ok(Some(before));
        }
        Code::TableFill => {
            let elements = &mut state.tables[index].elements;
            let range = part(elements.len(), a, c).ok_or(Trap::Table)?;
            elements[range].fill(b);
        }
        Code::TableCopy => {
            let from = part(state.tables[other].elements.len(), b, c).ok_or(Trap::Table)?;
            let to = part(state.tables[index].elements.len(), a, c).ok_or(Trap::Table)?;
            let copied = state.tables[other].elements[from].to_vec();
            state.tables[index].elements[to].copy_from_slice(&copied);
        }
        Code::TableInit => {
            let elements = state.elements[other].clone();
            let from = part(elements.len(), b, c).ok_or(Trap::Table)?;
            let table = &mut state.tables[index].elements;
            let to = part(table.len(), a, c).ok_or(Trap::Table)?;
            table[to].copy_from_slice(&elements[from]);
        }
        Code::ElementDrop => state.elements[index] = [].into(),
        _ => return Err(Stop::Diverged("an instruction that does not exist")),
    }
    Ok(None)
}

impl Source {
    /// Whether a memory (or else a table) was let grow.
    fn growth(&mut self, memory: bool) -> Result<bool, Stop> {
        match self.next().map_err(|e| Stop::Error(e.into()))? {
            Some(Event::MemoryGrow { granted }) if memory => Ok(granted),
            Some(Event::TableGrow { granted }) if !memory => Ok(granted),
            None => Err(Stop::End),
            Some(_) => Err(Stop::Diverged("the log has no growth here")),
        }
    }
}
