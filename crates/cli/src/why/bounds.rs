//! Which operand took an operator on a part of a memory or a table beyond its end.

use afterimage_present::grouped;
use afterimage_query::values::{Instance, Kind, Operand, Statement};
use afterimage_query::why::{Code, State, ValType};
use anyhow::{Error, Result};

use super::led::{Value, of_place, value};
use super::trap::is_computed;
use crate::ended::at_end;
use crate::explain::Scene;
use crate::lens::gaps;

/// An operand of it.
pub(super) struct Bounded {
    pub role: &'static str,
    pub value: Value,
    /// Of one that says where: within what, in words.
    pub within: Option<String>,
}

/// The operands of an operator on a part of a memory or a table that trapped, the one to blame first: where a part begins that begins beyond the end, otherwise how
/// long it is; if that is a constant, where the part begins that goes beyond. `None` if it is no such operator, or the end is not known.
pub(super) fn operands(
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
    let ends = |state: &State| {
        let bytes = |memory: usize| Some((state.memories.get(memory)?.bytes.len(), "byte"));
        let elements = |table: usize| Some((state.tables.get(table)?.elements.len(), "element"));
        match inst.code {
            Code::MemoryFill => [bytes(memory), None],
            Code::MemoryCopy => [bytes(memory), bytes(whole)],
            Code::MemoryInit => {
                let segment = state.data.get(whole);
                [bytes(memory), segment.map(|data| (data.len(), "byte"))]
            }
            Code::TableFill => [elements(table), None],
            Code::TableCopy => [elements(table), elements(other)],
            Code::TableInit => {
                let segment = state.elements.get(other);
                let segment = segment.map(|items| (items.len(), "element"));
                [elements(table), segment]
            }
            _ => [None, None],
        }
    };
    let is_bulk = matches!(
        inst.code,
        Code::MemoryFill
            | Code::MemoryCopy
            | Code::MemoryInit
            | Code::TableFill
            | Code::TableCopy
            | Code::TableInit
    );
    if !is_bulk || gaps(&scene.traced.path).is_some() {
        return Ok(None);
    }
    // What trapped was executed last, and changed nothing.
    let ends = at_end(scene.traced, |ended| ends(ended.paused.inside.state))?;
    let mut found = Vec::new();
    // Where each part begins, and how much there is from there on; last how long the parts are.
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
    let mut left = all.filter_map(|(k, &(_, left))| Some((k, left?)));
    // A part of no length may begin at the end.
    let is_beyond = |left: Option<u64>| left.is_none_or(|left| left == 0 && length > 0);
    let beyond = left.clone().find(|&(_, left)| is_beyond(left));
    let blamed = match beyond {
        Some((beyond, _)) => beyond,
        None if is_computed(scene, &found[last].value)? => last,
        None => {
            let short = left.try_fold(None, |short, (k, left)| {
                let is_short = short.is_none() && left.is_some_and(|left| left < length);
                let computed = is_short && is_computed(scene, &found[k].value)?;
                Ok::<_, Error>(computed.then_some(k).or(short))
            });
            short?.unwrap_or(last)
        }
    };
    found[..=blamed].rotate_right(1);
    Ok(Some(found))
}
