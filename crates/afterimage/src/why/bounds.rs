//! Finds the operand that made an operator access a memory or table beyond its end.

use afterimage_analyses::why::{Code, State, ValType};
use afterimage_present::grouped;
use afterimage_replay::values::{Instance, Kind, Operand, Statement};
use anyhow::{Error, Result};

use super::led::{Value, of_place, value};
use super::trap::is_computed;
use crate::ended::at_end;
use crate::explain::Scene;
use crate::path::gaps;

/// An operand of an operator that accesses a part of a memory or table.
pub struct Bounded {
    pub role: &'static str,
    pub value: Value,
    /// The bounds in words, if the operand is a position.
    pub within: Option<String>,
}

/// The number of a memory, table or segment that an operator accesses in part.
#[derive(Clone, Copy)]
enum Whole {
    Memory(usize),
    Data(usize),
    Table(usize),
    Elements(usize),
}

/// Returns the operands of an operator that trapped while accessing a part of a memory or table.
/// The operand to blame comes first.
///
/// If the part begins beyond the end, or at the end with a computed beginning, its beginning is to
/// blame. Otherwise, the length is to blame. If the length is a constant, however, the beginning is
/// to blame if it was computed or is the end. Returns `None` for any other operator, or if the end
/// is unknown.
pub fn operands(
    scene: &Scene<'_, '_>,
    instance: Instance,
    statement: Statement,
    types: &[ValType],
) -> Result<Option<Vec<Bounded>>> {
    let compiled = scene.values.compiled(instance.node)?;
    let Kind::Inst(inst) = statement.kind else {
        return Ok(None);
    };
    let inst = &compiled.code.insts[inst];
    let (memory, whole) = (usize::from(inst.memory), inst.immediate as usize);
    let (table, other) = (
        inst.immediate as u32 as usize,
        (inst.immediate >> 32) as usize,
    );
    let wholes = match inst.code {
        Code::MemoryFill => [Some(Whole::Memory(memory)), None],
        Code::MemoryCopy => [Some(Whole::Memory(memory)), Some(Whole::Memory(whole))],
        Code::MemoryInit => [Some(Whole::Memory(memory)), Some(Whole::Data(whole))],
        Code::TableFill => [Some(Whole::Table(table)), None],
        Code::TableCopy => [Some(Whole::Table(table)), Some(Whole::Table(other))],
        Code::TableInit => [Some(Whole::Table(table)), Some(Whole::Elements(other))],
        _ => return Ok(None),
    };
    if gaps(scene.traced.path()?).is_some() {
        return Ok(None);
    }
    // The operator that trapped was the last one executed and changed nothing, so the final state
    // is the state before it.
    let ends = at_end(scene.traced, |ended| {
        wholes.map(|whole| end(ended.paused.inside.state, whole?))
    })?;
    let mut found = Vec::new();
    // The start of each part with the room from there to the end, followed by the length of the
    // parts.
    let mut parts = Vec::new();
    let operands = statement.operands(&compiled.code);
    for (k, (&Operand { role, register }, &ty)) in operands.iter().zip(types).enumerate() {
        let end = ends.get(k).copied().flatten();
        let (bits, _) = scene.values.value(instance, register)?;
        parts.push((bits, end.map(|(end, _)| (end as u64).checked_sub(bits))));
        found.push(Bounded {
            role,
            value: of_place(value(scene, instance, register, ty)?, bits),
            within: end.map(|(end, of)| match end {
                1 => format!("1 {of}"),
                _ => format!("{} {of}s", grouped(end as u64)),
            }),
        });
    }
    let Some((length, _)) = parts.pop() else {
        return Ok(None);
    };
    let last = parts.len();
    let all = (0..).zip(&parts);
    let left = all.filter_map(|(k, &(_, left))| Some((k, left?)));
    let beyond = left.clone().find(|(_, left)| left.is_none());
    // Finds the first part that goes beyond the end, has a computed beginning, and has at most
    // `most` room.
    let computed = |most: u64| {
        left.clone().try_fold(None, |first, (k, left)| {
            let goes = |left: u64| left < length && left <= most;
            let is_short = first.is_none() && left.is_some_and(goes);
            let is_its = is_short && is_computed(scene, &found[k].value)?;
            Ok::<_, Error>(is_its.then_some(k).or(first))
        })
    };
    let blamed = match beyond {
        Some((beyond, _)) => beyond,
        None => match computed(0)? {
            // A part may begin at the end only if it is empty, so blame the computed beginning.
            Some(at_end) => at_end,
            None if is_computed(scene, &found[last].value)? => last,
            None => {
                let at_end = left
                    .clone()
                    .find(|&(_, left)| left == Some(0) && length > 0);
                let at_end = at_end.map_or(last, |(k, _)| k);
                computed(u64::MAX)?.unwrap_or(at_end)
            }
        },
    };
    found[..=blamed].rotate_right(1);
    Ok(Some(found))
}

/// Returns the size of a memory or table, and its unit.
fn end(state: &State, whole: Whole) -> Option<(usize, &'static str)> {
    Some(match whole {
        Whole::Memory(memory) => (state.memories.get(memory)?.bytes.len(), "byte"),
        Whole::Data(segment) => (state.data.get(segment)?.len(), "byte"),
        Whole::Table(table) => (state.tables.get(table)?.elements.len(), "element"),
        Whole::Elements(segment) => (state.elements.get(segment)?.len(), "element"),
    })
}
