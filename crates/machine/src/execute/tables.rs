//! Executes instructions on tables.

use super::bulk::{part, refused};
use super::{Inst, Stop};
use crate::Trap;
use crate::host::Source;
use crate::image::State;
use crate::inst::Code;

/// Executes an instruction on tables.
pub(super) fn table(
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
            let table = &state.tables[index];
            let before = table.elements.len() as u64;
            if b > 0 {
                if !source.table_growth()? {
                    return Ok(Some(refused(table.wide)));
                }
                state.grow_table(index, b, a)?;
            }
            return Ok(Some(before));
        }
        Code::TableFill => {
            let elements = &mut state.tables[index].elements;
            let range = part(elements.len(), a, c).ok_or(Trap::Table)?;
            elements[range].fill(b);
        }
        Code::TableCopy => {
            let read = part(state.tables[other].elements.len(), b, c).ok_or(Trap::Table)?;
            let written = part(state.tables[index].elements.len(), a, c).ok_or(Trap::Table)?;
            match state.tables.get_disjoint_mut([index, other]) {
                Ok([target, from]) => {
                    target.elements[written].copy_from_slice(&from.elements[read]);
                }
                // The source and the destination are the same table.
                Err(_) => state.tables[index]
                    .elements
                    .copy_within(read, written.start),
            }
        }
        Code::TableInit => {
            let segment = &state.elements[other];
            let read = part(segment.len(), b, c).ok_or(Trap::Table)?;
            let elements = &mut state.tables[index].elements;
            let written = part(elements.len(), a, c).ok_or(Trap::Table)?;
            elements[written].copy_from_slice(&segment[read]);
        }
        Code::ElementDrop => state.elements[index] = [].into(),
        _ => return Err(Stop::Diverged("an instruction that does not exist")),
    }
    Ok(None)
}
