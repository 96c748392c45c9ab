//! Codes a stream.

use crate::block::{self, Nesting, dictionary, runs};
use crate::primer::Primer;
use crate::{BLOCK, Codec, blocks, predicted};

/// Blocks of so few bytes are not tried with predictors.
const SHORT: usize = 8;
/// After so many blocks in a row that predictors did not make shorter, …
const PATIENCE: u32 = 4;
/// … they are tried on one block in so many.
const PAUSE: usize = 8;

/// About so many blocks tell whether a dictionary pays.
const SAMPLES: usize = 12;
/// A value of a stream's dictionary stands for so many places, on average.
const SHARING: usize = 8;

/// Appends one coded stream to `out`: nothing for no values, 2 to 6 bytes for a constant or arithmetic one of small numbers.
///
/// How many values there are is not stored: [`Stream::open`](crate::Stream::open) wants to be told. Time: linear.
pub fn encode(values: &[u64], out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    if values.len() <= BLOCK {
        return block::encode(values, Nesting::default(), out);
    }
    let start = out.len();
    let Some(pieces) = runs::pieces(values, BLOCK) else {
        return encode_long(values, out);
    };
    block::push(Codec::Runs, out, |out| {
        runs::encode(&pieces, Nesting::default(), out)
    });
    // A block takes two bytes at least.
    if out.len() - start > 2 * values.len() / BLOCK {
        let mut other = Vec::new();
        encode_long(values, &mut other);
        if other.len() < out.len() - start {
            out.truncate(start);
            out.extend(other);
        }
    }
}

/// Appends a stream in blocks, with one dictionary for all if that is shorter.
fn encode_long(values: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    if let Some(plan) = dictionary::plan(values, BLOCK.min(values.len() / SHARING)) {
        block::push(Codec::Dictionary, out, |out| {
            dictionary::encode_values(&plan, Nesting::default(), out);
            0
        });
        let step = values.len().div_ceil(BLOCK).div_ceil(SAMPLES);
        if (out.len() - start) / step + sample_size(&plan.ranks, step) < sample_size(values, step) {
            block::push(Codec::Blocks, out, |out| encode_blocks(&plan.ranks, out));
            return;
        }
        out.truncate(start);
    }
    block::push(Codec::Blocks, out, |out| encode_blocks(values, out));
}

/// How many bytes one in `step` blocks take.
fn sample_size(values: &[u64], step: usize) -> usize {
    let sample: Vec<_> = values
        .chunks(BLOCK)
        .step_by(step)
        .flatten()
        .copied()
        .collect();
    let mut bytes = Vec::new();
    encode_blocks(&sample, &mut bytes);
    bytes.len()
}

/// Appends a directory and blocks; the result is the tag's parameter.
fn encode_blocks(values: &[u64], out: &mut Vec<u8>) -> u8 {
    let mut blocks: Vec<Vec<u8>> = values
        .chunks(BLOCK)
        .map(|chunk| {
            let mut bytes = Vec::new();
            block::encode(chunk, Nesting::PRIMED, &mut bytes);
            bytes
        })
        .collect();
    let parameter = predict_blocks(values, &mut blocks);
    blocks::encode(&blocks, out);
    parameter
}

/// Replaces blocks by predicted ones where those are shorter; the result is the tag's parameter.
fn predict_blocks(values: &[u64], blocks: &mut [Vec<u8>]) -> u8 {
    if blocks.iter().all(|block| block.len() <= SHORT) {
        return 0;
    }
    let primer = Primer::choose(blocks.len() as u64);
    let block = |index: usize| &values[index * BLOCK..values.len().min((index + 1) * BLOCK)];
    let mut model = primer.fresh();
    let mut used = false;
    for index in primer.indices() {
        let index = index as usize;
        used |= predict_block(block(index), &model, &mut blocks[index]);
        model.train(block(index));
    }
    let mut failures = 0;
    for (index, bytes) in blocks.iter_mut().enumerate() {
        let pauses = failures >= PATIENCE && index % PAUSE != 0;
        if bytes.len() <= SHORT || pauses || primer.contains(index as u64) {
            continue;
        }
        if predict_block(block(index), &model, bytes) {
            used = true;
            failures = 0;
        } else {
            failures += 1;
        }
    }
    if used { primer.parameter() } else { 0 }
}

/// Codes a block with predictors, if that is shorter.
fn predict_block(values: &[u64], model: &predicted::Model, bytes: &mut Vec<u8>) -> bool {
    let before = bytes.len();
    block::keep_shorter(0, Codec::Predicted, bytes, |out| {
        predicted::encode(values, model.clone(), false, out)
    });
    bytes.len() < before
}
