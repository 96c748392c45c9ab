//! The summary of a whole execution trace.

use afterimage_ids::{FuncId, PrimaryMap};
use afterimage_wpp::{Continuation, Node};

use crate::epoch::Sizes;
use crate::epoch::wire::{put, take};

/// Functions whose data is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The functions, ascending.
    functions: Vec<FuncId>,
    /// A description of the user's filter.
    pub words: String,
}

impl LeftOut {
    /// No functions are left out.
    pub const NOTHING: Self = Self {
        functions: Vec::new(),
        words: String::new(),
    };

    /// Leaves out these functions. `words` describes the user's filter.
    pub fn new(mut functions: Vec<FuncId>, words: String) -> Self {
        functions.sort_unstable();
        functions.dedup();
        Self { functions, words }
    }

    /// Whether no functions are left out.
    pub fn is_nothing(&self) -> bool {
        self.functions.is_empty()
    }

    /// Whether a function is left out. Time: O(log n).
    pub fn has(&self, function: FuncId) -> bool {
        self.functions.binary_search(&function).is_ok()
    }

    /// Whether `other` leaves out all functions that `self` leaves out.
    pub fn is_within(&self, other: &Self) -> bool {
        self.functions.iter().all(|&function| other.has(function))
    }
}

/// The summary of a whole execution trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The [`fingerprint`] of the path's nodes.
    pub nodes: u32,
    /// Whether this trace makes earlier traces in the same file obsolete.
    pub anew: bool,
    /// The first traced block.
    pub first: u64,
    /// The number of blocks executed up to the trace's end.
    pub length: u64,
    /// The number of traced instructions, without the instructions of functions that were left out.
    pub statements: u64,
    /// The functions that were left out.
    pub left_out: LeftOut,
    /// The sizes of the kinds of data in the trace.
    pub sizes: Sizes,
    /// For each epoch, the number of blocks executed before it, and its number of chunks.
    pub epochs: Vec<(u64, u32)>,
}

impl Index {
    /// Encodes the index.
    pub fn encode(&self) -> Vec<u8> {
        let Sizes {
            labels,
            far,
            values,
            copies,
            directory,
        } = self.sizes;
        let version = if self.left_out.is_nothing() {
            VERSION
        } else {
            FILTERED
        };
        let mut out = vec![version];
        let numbers = [
            u64::from(self.nodes),
            u64::from(self.anew),
            self.first,
            self.length,
            self.statements,
            directory,
        ];
        for value in numbers {
            put(&mut out, value);
        }
        for (bytes, numbers) in [labels, far, values, copies] {
            put(&mut out, bytes);
            put(&mut out, numbers);
        }
        put(&mut out, self.epochs.len() as u64);
        let mut last = 0;
        for &(before, chunks) in &self.epochs {
            put(&mut out, before - last);
            put(&mut out, u64::from(chunks));
            last = before;
        }
        if version == FILTERED {
            put(&mut out, self.left_out.functions.len() as u64);
            let mut next = 0;
            for function in &self.left_out.functions {
                put(&mut out, u64::from(function.as_u32() - next));
                next = function.as_u32() + 1;
            }
            put(&mut out, self.left_out.words.len() as u64);
            out.extend_from_slice(self.left_out.words.as_bytes());
        }
        out
    }

    /// Decodes an index. Returns `None` if the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, mut input) = bytes.split_first()?;
        if version != VERSION && version != FILTERED {
            return None;
        }
        let input = &mut input;
        let nodes = u32::try_from(take(input)?).ok()?;
        let anew = match take(input)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (first, length, statements) = (take(input)?, take(input)?, take(input)?);
        let directory = take(input)?;
        let mut pair = || Some((take(input)?, take(input)?));
        let sizes = Sizes {
            labels: pair()?,
            far: pair()?,
            values: pair()?,
            copies: pair()?,
            directory,
        };
        let count = take(input)?;
        // An epoch takes at least two bytes.
        if count > input.len() as u64 / 2 {
            return None;
        }
        let mut epochs = Vec::with_capacity(count as usize);
        let mut last = 0u64;
        for _ in 0..count {
            last = last.checked_add(take(input)?)?;
            epochs.push((last, u32::try_from(take(input)?).ok()?));
        }
        let left_out = match version {
            FILTERED => left_out(input)?,
            _ => LeftOut::default(),
        };
        input.is_empty().then_some(Self {
            left_out,
            nodes,
            anew,
            first,
            length,
            statements,
            sizes,
            epochs,
        })
    }
}

/// Reads the functions that were left out.
fn left_out(input: &mut &[u8]) -> Option<LeftOut> {
    let count = take(input)?;
    // A function takes at least one byte.
    if count > input.len() as u64 {
        return None;
    }
    let mut functions = Vec::with_capacity(count as usize);
    let mut next = 0u64;
    for _ in 0..count {
        let function = u32::try_from(next.checked_add(take(input)?)?).ok()?;
        functions.push(FuncId::from_u32(function));
        next = u64::from(function) + 1;
    }
    let length = usize::try_from(take(input)?).ok()?;
    let (words, rest) = input.split_at_checked(length)?;
    *input = rest;
    let words = String::from_utf8(words.to_vec()).ok()?;
    (count > 0).then_some(LeftOut { functions, words })
}

/// The version of an index.
const VERSION: u8 = 1;
/// The version of an index that ends with the functions that were left out.
const FILTERED: u8 = 2;

/// Returns a hash that distinguishes the nodes of different paths.
pub fn fingerprint(nodes: &PrimaryMap<afterimage_ids::NodeId, Node>, on: &[Continuation]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for (node, continuation) in nodes.values().zip(on) {
        hasher.update(&node.function.as_u32().to_le_bytes());
        hasher.update(&(node.blocks.len() as u32).to_le_bytes());
        for block in &node.blocks {
            hasher.update(&block.as_u32().to_le_bytes());
        }
        let next = continuation.next.map_or(u32::MAX, |next| next.as_u32());
        hasher.update(&next.to_le_bytes());
    }
    hasher.finalize()
}
