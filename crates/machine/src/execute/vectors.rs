//! Executes instructions on vectors.

use afterimage_numeric::Kind;

use super::{Registers, Stop, address, range};
use crate::code::NodeCode;
use crate::image::State;
use crate::inst::Code;
use crate::observe::Observer;

/// Executes an instruction on vectors.
pub(super) fn vector<O: Observer>(
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
            observer.loaded(i, (value as u64, (value >> 64) as u64));
        }
        Code::StoreVector(store) => {
            let address = address(inst, a)?;
            let length = store.bytes();
            let value = store.value(registers.vector(inst.b), inst.c as u8);
            let memory = &mut state.memories[inst.memory as usize];
            let place = memory.range(address, length as u64)?;
            memory.bytes[place].copy_from_slice(&value.to_le_bytes()[..length]);
            observer.write(i, range(inst, address, length as u64));
            observer.stored(i, (value as u64, (value >> 64) as u64));
        }
        _ => {}
    }
    Ok(())
}
