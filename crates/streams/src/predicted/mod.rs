//! Entropy-coded prediction: the predictors of Zhang and Gupta 2005, section 4, told apart by an adaptive arithmetic coder.
//!
//! A block is coded by a model that has learnt from nothing but the block itself and, in a long stream, from some blocks that
//! it was *primed* with; so each block decodes alone.

mod coder;
mod escape;
mod history;
mod model;
mod promise;
mod table;

pub(crate) use model::Model;
pub(crate) use promise::recurs;

use coder::{Decoder, Encoder, Trainer};

use crate::{StreamError, bits, varint};

/// Flags of the tag's parameter.
const DIFFERENCES: u8 = 1;
/// How many bytes there are is told: otherwise all that are left.
const DELIMITED: u8 = 2;

impl Model {
    /// A model that has seen nothing, for `len` values, at least one.
    pub(crate) fn fresh(len: usize) -> Self {
        Self::new(bits::length(len as u64 - 1).clamp(4, 12))
    }

    /// Learns from a block, however that is coded.
    pub(crate) fn train(&mut self, values: &[u64]) {
        self.start_block();
        let differences = prefers_differences(values);
        for &value in values {
            self.code(&mut Trainer, value, differences);
        }
    }
}

/// Appends a block, which `model` learns on the way; the result is the tag's parameter.
pub(crate) fn encode(values: &[u64], mut model: Model, delimited: bool, out: &mut Vec<u8>) -> u8 {
    let differences = prefers_differences(values);
    let parameter = u8::from(differences) * DIFFERENCES;
    model.start_block();
    let mut write = |out: &mut Vec<u8>| {
        let mut encoder = Encoder::new(out);
        for &value in values {
            model.code(&mut encoder, value, differences);
        }
        encoder.finish();
    };
    if delimited {
        let mut bytes = Vec::new();
        write(&mut bytes);
        varint::put(out, bytes.len() as u64);
        out.extend(bytes);
        return parameter | DELIMITED;
    }
    write(out);
    parameter
}

/// Takes a block.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    mut model: Model,
    out: &mut [u64],
) -> Result<(), StreamError> {
    if parameter > DIFFERENCES | DELIMITED {
        return Err(StreamError::Malformed("an unknown kind of predictions"));
    }
    let bytes = if parameter & DELIMITED != 0 {
        let count = varint::get(input)?;
        varint::bytes(input, count)?
    } else {
        std::mem::take(input)
    };
    let differences = parameter & DIFFERENCES != 0;
    model.start_block();
    let mut decoder = Decoder::new(bytes);
    for slot in out {
        *slot = model.code(&mut decoder, 0, differences);
    }
    Ok(())
}

/// Whether differences are shorter than values.
fn prefers_differences(values: &[u64]) -> bool {
    let (mut differences, mut last) = (0, 0u64);
    for &value in values {
        differences += i64::from(bits::length(varint::zigzag(value.wrapping_sub(last))));
        differences -= i64::from(bits::length(value));
        last = value;
    }
    differences < 0
}
