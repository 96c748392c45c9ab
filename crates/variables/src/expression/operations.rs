//! Classifies operations by name and kind.

use gimli::Operation;

use crate::debug::Slice;
use crate::scalar::Binary;

/// Returns the operation on two operands that a DWARF operation performs, or `None` for other
/// operations.
pub(super) fn two_operands(operation: &Operation<Slice<'_>>) -> Option<Binary> {
    Some(match operation {
        Operation::And => Binary::And,
        Operation::Div => Binary::Div,
        Operation::Minus => Binary::Minus,
        Operation::Mod => Binary::Mod,
        Operation::Mul => Binary::Mul,
        Operation::Or => Binary::Or,
        Operation::Plus => Binary::Plus,
        Operation::Shl => Binary::Shl,
        Operation::Shr => Binary::Shr,
        Operation::Shra => Binary::Shra,
        Operation::Xor => Binary::Xor,
        Operation::Eq => Binary::Eq,
        Operation::Ge => Binary::Ge,
        Operation::Gt => Binary::Gt,
        Operation::Le => Binary::Le,
        Operation::Lt => Binary::Lt,
        Operation::Ne => Binary::Ne,
        _ => return None,
    })
}

/// Returns the name of an unsupported operation.
pub(super) fn name(operation: &Operation<Slice<'_>>) -> &'static str {
    match operation {
        Operation::Register { .. } | Operation::RegisterOffset { .. } => "a machine register",
        Operation::Deref { .. } => "an address space",
        Operation::PushObjectAddress => "DW_OP_push_object_address",
        Operation::Call { .. } => "DW_OP_call",
        Operation::VariableValue { .. } => "DW_OP_GNU_variable_value",
        Operation::TLS => "thread-local storage",
        Operation::CallFrameCFA => "DW_OP_call_frame_cfa",
        Operation::ImplicitPointer { .. } => "DW_OP_implicit_pointer",
        Operation::ParameterRef { .. } => "DW_OP_GNU_parameter_ref",
        Operation::Uninitialized => "DW_OP_GNU_uninit",
        _ => "an operation that has no meaning here",
    }
}
