//! Reads a function's body again, with a validator.

use wasmparser::{
    BinaryReader, FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody,
    ValidatorResources,
};

use crate::error::SUPPORTED;
use crate::{Function, ParseError, Program};

/// Returns the error for bytes that are not the module from which the program was parsed.
pub(crate) fn mismatch(function: &Function) -> ParseError {
    ParseError::Malformed {
        message: "this is not the code that the program was parsed from".to_string(),
        offset: function.body.start,
    }
}

/// Returns a validator that knows a function's locals, and a reader of the function's operators.
/// `bytes` is the module from which the program was parsed.
///
/// # Errors
/// Returns an error if `bytes` is not that module.
pub fn validator<'a>(
    program: &Program,
    bytes: &'a [u8],
    function: &Function,
) -> Result<(FuncValidator<ValidatorResources>, BinaryReader<'a>), ParseError> {
    let range = function.body.start.0 as usize..function.body.end.0 as usize;
    let code = bytes.get(range).ok_or_else(|| mismatch(function))?;
    let resources = program.resources.0.clone();
    let to_validate = FuncToValidate {
        resources: resources.ok_or_else(|| mismatch(function))?,
        index: function.id.as_u32(),
        ty: function.ty.as_u32(),
        features: SUPPORTED,
    };
    let mut validator = to_validate.into_validator(FuncValidatorAllocations::default());
    let body = FunctionBody::new(BinaryReader::new(code, function.body.start.0 as usize));
    let mut reader = body.get_binary_reader();
    validator.read_locals(&mut reader)?;
    Ok((validator, reader))
}
