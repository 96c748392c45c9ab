//! Encodes a stream.

use crate::block::{self, Nesting, dictionary, runs};
use crate::predicted::{self, Repeated};
use crate::primer::Primer;
use crate::{BLOCK, Codec, blocks, estimate};

/// Predictors are not tried on blocks of up to this many bytes.
const SHORT: usize = 8;
/// Predictors are tried less often after this many consecutive blocks that they did not shorten.
const PATIENCE: u32 = 4;
/// After [`PATIENCE`] such blocks, predictors are tried on only one block in this many.
const PAUSE: usize = 8;
/// Predictors are not used for blocks with at most this many runs.
const FEW_RUNS: usize = 8;

/// The number of times that a value of a stream's dictionary must occur, on average.
const SHARING: usize = 8;

/// Appends an encoded stream to `out`. An empty stream takes no bytes. A constant or arithmetic
/// sequence of small numbers takes 2 to 6 bytes.
///
/// The number of values is not stored. It must be passed to [`Stream::open`](crate::Stream::open).
/// Time: linear.
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
    // A block takes at least two bytes.
    if out.len() - start > 2 * values.len() / BLOCK {
        let mut other = Vec::new();
        encode_long(values, &mut other);
        if other.len() < out.len() - start {
            out.truncate(start);
            out.extend(other);
        }
    }
}

/// Appends a stream in several blocks, with a common dictionary if that is shorter.
fn encode_long(values: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    if let Some(plan) = dictionary::plan(values, BLOCK.min(values.len() / SHARING)) {
        block::push(Codec::Dictionary, out, |out| {
            dictionary::encode_values(&plan, Nesting::default(), out);
            0
        });
        let dictionary = 8 * (out.len() - start) as u64;
        if estimate(&plan.ranks) + dictionary < estimate(values) {
            block::push(Codec::Blocks, out, |out| encode_blocks(&plan.ranks, out));
            return;
        }
        out.truncate(start);
    }
    block::push(Codec::Blocks, out, |out| encode_blocks(values, out));
}

/// Appends a directory and blocks, and returns the tag's parameter.
fn encode_blocks(values: &[u64], out: &mut Vec<u8>) -> u8 {
    let chunks = Vec::from_iter(values.chunks(BLOCK));
    let primer = Primer::choose(chunks.len() as u64);
    let primes = Vec::from_iter(primer.indices().map(|index| index as usize));
    let mut blocks = vec![Vec::new(); chunks.len()];
    for &index in &primes {
        block::encode(chunks[index], Nesting::PRIMED, &mut blocks[index]);
    }
    let mut trust = Trust::default();
    let mut used = false;
    // If all priming blocks are short, the model is created only when predictors are tried on
    // another block.
    let mut model = None;
    if primes.iter().any(|&index| blocks[index].len() > SHORT) {
        let mut primed = primer.fresh();
        for &index in &primes {
            used |= trust.choose(&mut blocks[index], |most, out| {
                predicted::encode(chunks[index], &mut primed, most, out)
            });
        }
        model = Some(Repeated::new(primed));
    }
    for (index, (&values, bytes)) in chunks.iter().zip(&mut blocks).enumerate() {
        if !bytes.is_empty() {
            // This block primes the model.
            continue;
        }
        let regular = index % PAUSE == 0;
        if !regular
            && let (Some(most), Some(model)) = (trust.most(), &mut model)
            && runs::pieces(values, FEW_RUNS).is_none()
            && block::push_predicted(bytes, |out| model.encode(values, most, out))
        {
            continue;
        }
        block::encode(values, Nesting::PRIMED, bytes);
        if bytes.len() > SHORT && (regular || trust.tries()) {
            let model = model.get_or_insert_with(|| {
                let mut primed = primer.fresh();
                for &index in &primes {
                    primed.train(chunks[index]);
                }
                Repeated::new(primed)
            });
            used |= trust.choose(bytes, |most, out| model.encode(values, most, out));
        }
    }
    blocks::encode(&blocks, out);
    if used { primer.parameter() } else { 0 }
}

/// The expected benefit of predictors, updated with each block of a stream.
#[derive(Default)]
struct Trust {
    /// The number of consecutive blocks that predictors did not shorten.
    failures: u32,
    /// The size of the last block in bytes, without and with predictors.
    last: Option<(usize, usize)>,
}

impl Trust {
    /// Whether predictors are worth trying.
    fn tries(&self) -> bool {
        self.failures < PATIENCE
    }

    /// Returns the size up to which a predicted block is accepted without trying other codecs, if
    /// that size is known.
    fn most(&self) -> Option<usize> {
        let (without, with) = self.last?;
        (3 * with <= 2 * without).then_some(without * 3 / 4)
    }

    /// Replaces a block with a predicted block if that is sufficiently shorter. Returns whether it
    /// was replaced.
    fn choose(
        &mut self,
        bytes: &mut Vec<u8>,
        write: impl FnOnce(usize, &mut Vec<u8>) -> Option<u8>,
    ) -> bool {
        let before = bytes.len();
        if block::replace_predicted(bytes, write) {
            self.failures = 0;
            self.last = Some((before, bytes.len()));
            return true;
        }
        self.failures += 1;
        self.last = None;
        false
    }
}
