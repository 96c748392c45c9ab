//! Executes instructions on the sizes of memories and tables, and instructions that access any
//! number of bytes.

use super::tables::table;
use super::{Inst, Stop, address};
use crate::Trap;
use crate::host::Source;
use crate::image::{PAGE, State};
use crate::inst::Code;
use crate::observe::{Observer, Range};

/// Executes the rare instructions on sizes, segments and tables.
pub(super) fn bulk<O: Observer>(
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
        Code::MemoryGrow => return Ok(Some(grow_memory(memory, a, state, source)?)),
        Code::MemoryCopy => {
            let read = state.memories[index].range(b, c)?;
            let written = state.memories[memory].range(a, c)?;
            observer.copy(i, of(index as u32, b, c), of(to, a, c));
            observer.bytes(&state.memories[index].bytes[read.clone()]);
            match state.memories.get_disjoint_mut([memory, index]) {
                Ok([target, from]) => {
                    target.bytes[written].copy_from_slice(&from.bytes[read]);
                }
                // The source and the destination are the same memory.
                Err(_) => state.memories[memory]
                    .bytes
                    .copy_within(read, written.start),
            }
        }
        Code::MemoryFill => {
            let memory = &mut state.memories[memory];
            let target = memory.range(a, c)?;
            memory.bytes[target].fill(b as u8);
            observer.fill(i, of(to, a, c));
        }
        Code::MemoryInit => {
            let data = &state.data[index];
            let read = part(data.len(), b, c).ok_or(Trap::Memory)?;
            let memory = &mut state.memories[memory];
            let written = memory.range(a, c)?;
            memory.bytes[written].copy_from_slice(&data[read.clone()]);
            observer.fill(i, of(to, a, c));
            observer.bytes(&data[read]);
        }
        Code::DataDrop => state.data[index] = [].into(),
        Code::Aligned(bytes) => {
            // An overflow does not change the address modulo the width.
            let address = a.wrapping_add(inst.immediate);
            if !address.is_multiple_of(u64::from(bytes)) {
                return Err(Trap::Unaligned.into());
            }
        }
        Code::Wait(bytes) => {
            state.memories[memory].range(address(inst, a)?, u64::from(bytes))?;
            return Err(Trap::Wait.into());
        }
        Code::Notify => {
            state.memories[memory].range(address(inst, a)?, 4)?;
        }
        Code::RefIsNull => return Ok(Some(u64::from(a == 0))),
        _ => return table(inst, [a, b, c], state, source),
    }
    Ok(None)
}

/// Grows a memory if the log allows the growth. Returns the instruction's result.
fn grow_memory(
    index: usize,
    pages: u64,
    state: &mut State,
    source: &mut Source,
) -> Result<u64, Stop> {
    let memory = &state.memories[index];
    let before = memory.bytes.len() as u64 / PAGE;
    if pages == 0 {
        return Ok(before);
    }
    let fits = before
        .checked_add(pages)
        .is_some_and(|size| size <= memory.most);
    if !source.memory_growth(fits)? {
        return Ok(refused(memory.wide));
    }
    state.grow_memory(index, pages)?;
    Ok(before)
}

/// Returns -1, which is the result of a refused growth.
pub(super) fn refused(wide: bool) -> u64 {
    if wide { u64::MAX } else { u64::from(u32::MAX) }
}

/// Returns a range of `count` items from `start` on, if it lies within `length`.
pub(super) fn part(length: usize, start: u64, count: u64) -> Option<std::ops::Range<usize>> {
    let end = start
        .checked_add(count)
        .filter(|end| *end <= length as u64)?;
    Some(start as usize..end as usize)
}
