//! Decodes the operators of a function body, with their offsets.

use afterimage_ids::OrigOffset;
use afterimage_program::{Function, Program};
use wasmparser::Operator;

use crate::ProfileError;

/// An operator in a function's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The operator's offset in the original module.
    pub offset: OrigOffset,
    /// Whether the operator is an instruction rather than a marker of the block structure.
    pub instruction: bool,
    /// Whether the operator is an unconditional jump.
    pub jump: bool,
}

/// Reads the operators of a function into `into`, in order. O(size of the body).
pub fn decode(
    program: &Program,
    module: &[u8],
    function: &Function,
    into: &mut Vec<Decoded>,
) -> Result<(), ProfileError> {
    into.clear();
    into.extend(
        program
            .operators(module, function)
            .map(|(_, offset, operator)| Decoded {
                offset,
                instruction: !is_marker(&operator),
                jump: matches!(operator, Operator::Br { .. }),
            }),
    );
    if into.len() != function.operators as usize {
        return Err(ProfileError::Body {
            function: function.id,
            expected: function.operators,
            got: into.len(),
        });
    }
    Ok(())
}

/// Whether an operator only marks the block structure. Markers cost nothing in any engine and do
/// not count as instructions.
fn is_marker(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::End
            | Operator::Else
            | Operator::TryTable { .. }
    )
}
