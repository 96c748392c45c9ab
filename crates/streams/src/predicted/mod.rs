//! Codes values by entropy-coded prediction, with the predictors of Zhang and Gupta 2005, section
//! 4, selected by an adaptive arithmetic coder.
//!
//! A block is coded by a model that has learnt only from the block itself and, in a long stream,
//! from a few blocks that *primed* it. So each block can be decoded alone.

mod coder;
mod escape;
mod history;
mod model;
mod promise;
mod table;

use model::Learnt;
pub(crate) use model::Model;
pub(crate) use promise::{Recurrence, recurs};

use coder::{Decoder, Encoder, Trainer};

use crate::{BLOCK, StreamError, bits, varint};

/// The flag of a block that stores differences.
const DIFFERENCES: u8 = 1;
/// The flag of a block that stores its number of bytes. Otherwise, all remaining bytes belong to
/// the block.
const DELIMITED: u8 = 2;

impl Model {
    /// Returns an untrained model for `len` values, at least one.
    pub(crate) fn fresh(len: usize) -> Self {
        Self::new(bits::length(len as u64 - 1).clamp(4, 12))
    }

    /// Learns from a block, whatever its encoding.
    pub(crate) fn train(&mut self, values: &[u64]) {
        self.start_block();
        self.learn_all(values, prefers_differences(values));
    }

    fn learn_all(&mut self, values: &[u64], differences: bool) {
        for &value in values {
            self.code(&mut Trainer, value, differences);
        }
    }
}

/// A model, and a copy that is reset after each block.
pub(crate) struct Repeated {
    model: Model,
    copy: Model,
    learnt: Vec<Learnt>,
}

impl Repeated {
    pub(crate) fn new(model: Model) -> Self {
        let copy = model.clone();
        let learnt = Vec::with_capacity(BLOCK);
        Self {
            model,
            copy,
            learnt,
        }
    }

    /// Appends a block if it takes at most `most` bytes, and returns the tag's parameter.
    pub(crate) fn encode(&mut self, values: &[u64], most: usize, out: &mut Vec<u8>) -> Option<u8> {
        self.learnt.clear();
        let learnt = &mut self.learnt;
        let result = encode_within(values, &mut self.copy, most, out, |slots| {
            learnt.push(slots)
        });
        self.copy.unlearn(&self.learnt, &self.model);
        result.ok()
    }
}

/// Appends a block, from which `model` learns, if the block takes at most `most` bytes. Returns the
/// tag's parameter.
pub(crate) fn encode(
    values: &[u64],
    model: &mut Model,
    most: usize,
    out: &mut Vec<u8>,
) -> Option<u8> {
    match encode_within(values, model, most, out, |_| {}) {
        Ok(parameter) => Some(parameter),
        Err(coded) => {
            model.learn_all(&values[coded..], prefers_differences(values));
            None
        }
    }
}

/// Appends a block with its own model, and the block's length, if it takes at most `most` bytes.
/// Returns the tag's parameter.
pub(crate) fn encode_alone(values: &[u64], most: usize, out: &mut Vec<u8>) -> Option<u8> {
    let mut bytes = Vec::new();
    let mut model = Model::fresh(values.len());
    let parameter = encode_within(values, &mut model, most, &mut bytes, |_| {}).ok()?;
    varint::put(out, bytes.len() as u64);
    out.extend(bytes);
    Some(parameter | DELIMITED)
}

/// The number of values between two checks that the block is still worthwhile.
const STRETCH: usize = 128;

/// Appends a block if it takes at most `most` bytes. As soon as it clearly takes more, removes it
/// and returns an error with the number of values coded so far. `learnt` receives the places where
/// each value was learnt.
#[inline]
fn encode_within(
    values: &[u64],
    model: &mut Model,
    most: usize,
    out: &mut Vec<u8>,
    mut learnt: impl FnMut(Learnt),
) -> Result<u8, usize> {
    let start = out.len();
    let differences = prefers_differences(values);
    model.start_block();
    let mut encoder = Encoder::new(out);
    let mut coded = 0;
    for stretch in values.chunks(STRETCH) {
        for &value in stretch {
            learnt(model.code(&mut encoder, value, differences).1);
        }
        coded += stretch.len();
        // Assume that the rest costs about as much as the part so far.
        let bytes = encoder.len() - start;
        if bytes * values.len() * 4 > (most + STRETCH / 8) * coded * 5 {
            out.truncate(start);
            return Err(coded);
        }
    }
    encoder.finish();
    if out.len() - start > most {
        out.truncate(start);
        return Err(coded);
    }
    Ok(u8::from(differences) * DIFFERENCES)
}

/// Decodes a block.
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
        *slot = model.code(&mut decoder, 0, differences).0;
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
