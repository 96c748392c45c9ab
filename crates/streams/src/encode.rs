//! Codes a stream.

use crate::block::{self, Nesting, dictionary, runs};
use crate::predicted::{self, Repeated};
use crate::primer::Primer;
use crate::{BLOCK, Codec, blocks, estimate};

/// Blocks of so few bytes are not tried with predictors.
const SHORT: usize = 8;
/// After so many blocks in a row that predictors did not make shorter, …
const PATIENCE: u32 = 4;
/// … they are tried on one block in so many.
const PAUSE: usize = 8;
/// What has so few runs is not left to predictors.
const FEW_RUNS: usize = 8;

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
        let dictionary = 8 * (out.len() - start) as u64;
        if estimate(&plan.ranks) + dictionary < estimate(values) {
            block::push(Codec::Blocks, out, |out| encode_blocks(&plan.ranks, out));
            return;
        }
        out.truncate(start);
    }
    block::push(Codec::Blocks, out, |out| encode_blocks(values, out));
}

/// Appends a directory and blocks; the result is the tag's parameter.
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
    // If no block that primes it gains anything by a model, that is only made when another one is tried.
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
            // It primes the model.
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

/// What is expected of predictors, from block to block of a stream.
#[derive(Default)]
struct Trust {
    /// So many blocks in a row they did not make shorter.
    failures: u32,
    /// How many bytes the last block took without them, and with them.
    last: Option<(usize, usize)>,
}

impl Trust {
    /// Whether it is worth trying them.
    fn tries(&self) -> bool {
        self.failures < PATIENCE
    }

    /// If nothing else needs to be tried when a block takes so few bytes with them: how many.
    fn most(&self) -> Option<usize> {
        let (without, with) = self.last?;
        (3 * with <= 2 * without).then_some(without * 3 / 4)
    }

    /// Replaces a block by a predicted one, if that is enough shorter: whether it did.
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
