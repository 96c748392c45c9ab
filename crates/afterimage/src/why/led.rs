//! Finds the branch that led to a block.

use afterimage_analyses::why::{Register, ValType};
use afterimage_ids::OpId;
use afterimage_present::{WhyPlace, value_text};
use afterimage_replay::values::{Controller, Execution, Instance, ValuesError};
use anyhow::Result;

use crate::explain::Scene;

/// A value in a register.
#[derive(Clone)]
pub struct Value {
    pub instance: Instance,
    pub register: Register,
    pub ty: ValType,
    pub text: String,
}

pub fn value(
    scene: &Scene<'_, '_>,
    instance: Instance,
    register: Register,
    ty: ValType,
) -> Result<Value> {
    let bits = scene.values.value(instance, register)?;
    Ok(Value {
        instance,
        register,
        ty,
        text: value_text(ty, bits),
    })
}

/// Converts an address or a length to a value to show. Addresses and lengths are unsigned, so a
/// value that would look negative is shown in hexadecimal.
pub fn of_place(value: Value, bits: u64) -> Value {
    let text = if value.text.starts_with('-') {
        format!("0x{bits:x}")
    } else {
        value.text
    };
    Value { text, ..value }
}

/// Returns the last operator of the block executed at a time.
pub fn last_of(scene: &Scene<'_, '_>, instance: Instance, time: u64) -> Option<OpId> {
    let node = &scene.values.path().nodes()[instance.node];
    let block = *node.blocks.get((time - instance.time) as usize)?;
    let function = scene.traced.program().function(node.function)?;
    let end = function.cfg.blocks.get(block)?.ops.end.as_u32();
    Some(OpId::from_u32(end.checked_sub(1)?))
}

/// Finds the branch of the activation that led to the block executed at a time, and the deciding
/// value if it is stored. Returns `None` if only the call led to the block.
pub fn led_by(
    scene: &Scene<'_, '_>,
    instance: Instance,
    time: u64,
) -> Result<Option<(WhyPlace, Option<Value>)>> {
    let execution = Execution {
        number: 0,
        time,
        instance,
        statement: None,
    };
    let found = scene.controllers.of_execution(scene.values, &execution)?;
    let Some(&Controller::Branch { time, .. }) = found.first() else {
        return Ok(None);
    };
    let Some(instance) = scene.values.at(time)? else {
        return Ok(None);
    };
    let Some(op) = last_of(scene, instance, time) else {
        return Ok(None);
    };
    let walk = scene.walk();
    let place = scene.place(walk.spot_of(instance, op))?;
    let mut decided = None;
    if let Some(statement) = walk.statement(instance, op)? {
        let compiled = scene.values.compiled(instance.node)?;
        let types = scene.types.of(compiled.code.function, op);
        let (types, _) = types.unwrap_or_default();
        let operands = statement.operands(&compiled.code);
        if let (Some(one), Some(&ty)) = (operands.first(), types.last()) {
            decided = match value(scene, instance, one.register, ty) {
                Ok(value) => Some(value),
                // The cause of the decision is unknown, but the branch is known.
                Err(error) if is_outside(&error) => None,
                Err(error) => return Err(error),
            };
        }
    }
    Ok(Some((place, decided)))
}

/// Whether the error concerns a part of the run without stored values.
pub fn is_outside(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ValuesError::Outside { .. }))
}
