//! Which operand took an operator on a part of a memory or a table beyond its end.

use afterimage_present::grouped;
use afterimage_query::values::{Instance, Kind, Operand, Statement};
use afterimage_query::why::{Code, State, ValType};
use anyhow::{Error, Result};

use super::led::{Value, value};
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
    let mut left = Vec::new();
    let operands = statement.operands(&compiled.code);
    for (k, (&Operand { role, register }, &ty)) in operands.iter().zip(types).enumerate() {
        let end = ends.get(k).copied().flatten();
        let (bits, _) = scene.values.value(instance, register)?;
        // How much there is from there on.
        left.push(end.map_or(bits, |(end, _)| (end as u64).saturating_sub(bits)));
        found.push(Bounded {
            role,
            value: value(scene, instance, register, ty)?,
            within: end.map(|(end, of)| match end {
                1 => format!("1 {of}"),
                _ => format!("{} {of}s", grouped(end as u64)),
            }),
        });
    }
    let Some(length) = left.pop() else {
        return Ok(None);
    };
    let last = left.len();
    let within = |k: usize| ends.get(k).is_some_and(|end| end.is_some());
    let beyond = (0..last).find(|&k| within(k) && left[k] == 0);
    let blamed = match beyond {
        Some(beyond) => beyond,
        None => {
            let short = (0..last).find(|&k| within(k) && left[k] < length);
            let short = short.map(|k| Ok::<_, Error>((k, is_computed(scene, &found[k].value)?)));
            match short.transpose()? {
                Some((k, true)) if !is_computed(scene, &found[last].value)? => k,
                _ => last,
            }
        }
    };
    found[..=blamed].rotate_right(1);
    Ok(Some(found))
}
