//! The operators of a body: where each is, and whether it executes.

use afterimage_ids::OrigOffset;
use afterimage_program::Function;
use wasmparser::{BinaryReader, FunctionBody, Operator};

use crate::ProfileError;

/// An operator of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Where it is in the original module.
    pub offset: OrigOffset,
    /// Whether it is an instruction, and not a marker of the block structure.
    pub instruction: bool,
}

/// Reads the operators of a function into `into`, by ordinal. O(size of the body).
pub(crate) fn decode(
    module: &[u8],
    function: &Function,
    into: &mut Vec<Decoded>,
) -> Result<(), ProfileError> {
    into.clear();
    let (start, end) = (function.body.start.0 as usize, function.body.end.0 as usize);
    let refuse = |offset: usize, message: &str| ProfileError::Body {
        function: function.id,
        offset,
        message: message.to_owned(),
    };
    let bytes = module
        .get(start..end)
        .ok_or_else(|| refuse(start, "the module ends before the body does"))?;
    let from_reader =
        |error: wasmparser::BinaryReaderError| refuse(error.offset(), error.message());
    let mut reader = FunctionBody::new(BinaryReader::new(bytes, start))
        .get_operators_reader()
        .map_err(from_reader)?;
    into.reserve(function.operators as usize);
    while !reader.eof() {
        let (operator, offset) = reader.read_with_offset().map_err(from_reader)?;
        into.push(Decoded {
            offset: OrigOffset(offset as u32),
            instruction: !is_marker(&operator),
        });
    }
    if into.len() != function.operators as usize {
        return Err(refuse(end, "the body has another number of operators than was parsed"));
    }
    Ok(())
}

/// Whether an operator only marks the block structure: it costs nothing in any
/// engine and is not counted as an instruction.
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
