//! Encodes and decodes the stored summary of a segment. Indexes contain summaries, so a query reads
//! only the segments that contain its answer.
//!
//! Layout: the version (a byte), `before`, `length`, `open`, `kept`, `begun`, the numbers of nodes
//! and of functions, and the number of following bytes (LEB128). The rest is range coded. It
//! contains, for each node and each function, its distance from the previous node or function, and
//! its count minus 1. A count often equals the previous count.

use afterimage_ids::{EntityRef, FuncId, NodeId};

use super::coder::{Coder, Decoder, Encoder};
use super::logistic::Chance;
use super::numbers::Gamma;
use super::{CodecError, Limits, varint};
use crate::{Summary, Symbol};

const VERSION: u8 = 1;

/// Encodes a summary. Time: linear.
pub fn encode_summary(summary: &Summary) -> Vec<u8> {
    let mut coder = Encoder::new();
    list(&mut coder, &summary.node_counts);
    list(&mut coder, &summary.call_counts);
    let payload = coder.finish();
    let Summary {
        before,
        length,
        open,
        kept,
        begun,
        node_counts,
        call_counts,
    } = summary;
    let mut out = vec![VERSION];
    for value in [
        *before,
        *length,
        (*open).into(),
        (*kept).into(),
        (*begun).into(),
    ] {
        varint::put(&mut out, value);
    }
    for count in [node_counts.len(), call_counts.len(), payload.len()] {
        varint::put(&mut out, count as u64);
    }
    out.extend(payload);
    out
}

/// Decodes a summary. Time and memory are bounded by the limits.
///
/// # Errors
/// Returns an error if [`encode_summary`] cannot have written the bytes, or a number exceeds the
/// limits. Altered bytes may also decode to another summary.
pub fn decode_summary(bytes: &[u8], limits: &Limits) -> Result<Summary, CodecError> {
    let input = &mut &*bytes;
    varint::version(input, VERSION)?;
    let before = varint::get(input)?;
    let length = varint::get(input)?;
    let mut number =
        || varint::get_below(input, 1 << 32, "activations").map(|number| number as u32);
    let (open, kept, begun) = (number()?, number()?, number()?);
    let node_limit = limits.nodes.min(Symbol::LIMIT);
    let nodes = varint::get_below(input, u64::from(node_limit) + 1, "nodes")?;
    let calls = varint::get_below(input, u64::from(limits.functions) + 1, "functions")?;
    let mut coder = Decoder::new(varint::rest(input)?);
    let node_counts =
        read_list::<NodeId>(&mut coder, nodes, node_limit, "a node that does not exist")?;
    let call_counts = read_list::<FuncId>(
        &mut coder,
        calls,
        limits.functions,
        "a function that does not exist",
    )?;
    if coder.exhausted() {
        return Err(CodecError::Truncated);
    }
    if coder.has_rest() {
        return Err(CodecError::Trailing);
    }
    Ok(Summary {
        before,
        length,
        open,
        kept,
        begun,
        node_counts,
        call_counts,
    })
}

/// Statistics learnt from a list so far.
struct List {
    /// The last entry's number, plus 1.
    next: u64,
    last: u64,
    skips: Gamma,
    same: Chance,
    /// The coders of counts, by the bit length of the last count. Each is large, and a short list
    /// needs few of them.
    counts: [Option<Box<Gamma>>; 65],
}

impl List {
    fn new() -> Self {
        Self {
            next: 0,
            last: 0,
            skips: Gamma::new(),
            same: Chance::new(1 << 15, 1),
            counts: [const { None }; 65],
        }
    }

    /// Codes a number and its count minus 1. Returns `None` for invalid values in hostile bytes.
    fn entry(&mut self, coder: &mut impl Coder, number: u64, count: u64) -> Option<(u64, u64)> {
        let skip = self.skips.code(coder, number.wrapping_sub(self.next))?;
        let number = self.next.checked_add(skip)?;
        self.next = number.checked_add(1)?;
        if !self.same.code(coder, count == self.last) {
            let class = u64::BITS - self.last.leading_zeros();
            let gamma = self.counts[class as usize].get_or_insert_with(|| Box::new(Gamma::new()));
            self.last = gamma.code(coder, count)?;
        }
        Some((number, self.last))
    }
}

fn list<K: EntityRef>(coder: &mut Encoder, counts: &[(K, u64)]) {
    let mut list = List::new();
    for &(key, count) in counts {
        let entry = (key.index() as u64, count.wrapping_sub(1));
        let coded = list.entry(coder, entry.0, entry.1);
        debug_assert_eq!(coded, Some(entry), "ascending, without zeros");
    }
}

fn read_list<K: EntityRef>(
    coder: &mut Decoder,
    count: u64,
    below: u32,
    unknown: &'static str,
) -> Result<Vec<(K, u64)>, CodecError> {
    let mut list = List::new();
    let mut counts = Vec::new();
    for _ in 0..count {
        let entry = list
            .entry(coder, 0, 0)
            .filter(|&(number, _)| number < below.into());
        let (number, count) = entry.ok_or(CodecError::Malformed(unknown))?;
        let count = count
            .checked_add(1)
            .ok_or(CodecError::Malformed("a count of 2^64"))?;
        counts.push((K::new(number as usize), count));
        if coder.exhausted() {
            return Err(CodecError::Truncated);
        }
    }
    Ok(counts)
}
