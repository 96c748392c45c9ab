//! Encodes the data that a reader needs before it opens a segment: the nodes, and a summary of each
//! segment.

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, PrimaryMap};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::codec::varint;
use crate::codec::{
    CodecError, Limits, NodeContext, NodeLimits, decode_nodes, decode_summary, encode_nodes,
    encode_summary,
};
use crate::{Node, Summary};

/// The mark of a path from which nothing was left out.
const WHOLE: u64 = 1;
/// The mark of a path with a table of functions that were left out.
const PARTIAL: u64 = 2;

/// The place where an activation continues after a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Continuation {
    /// The next vertex, or `None` if the activation ends. If the node ends with a call, this is the
    /// vertex after the call.
    pub next: Option<BlockId>,
    /// Whether the node ends with a call.
    pub calls: bool,
}

/// Assigns to each node the context with which segments are coded. The writer and the reader do
/// this identically.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    contexts: Vec<NodeContext>,
    points: HashMap<(FuncId, BlockId), u32, FxBuildHasher>,
}

impl Contexts {
    /// Adds the next node.
    pub fn push(&mut self, function: FuncId, continuation: Continuation) {
        // 0 means the end of an activation.
        let fresh = self.points.len() as u32 + 1;
        let next = continuation.next.map_or(0, |next| {
            *self.points.entry((function, next)).or_insert(fresh)
        });
        self.contexts.push(NodeContext {
            next,
            calls: continuation.calls,
        });
    }

    /// Returns the contexts, one for each node.
    pub fn contexts(&self) -> &[NodeContext] {
        &self.contexts
    }
}

/// The directory of a stored path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The nodes of the path, by number.
    pub nodes: PrimaryMap<NodeId, Node>,
    /// For each node, the place where the activation continues after it.
    pub continuations: Vec<Continuation>,
    /// The contents of the segments.
    pub summaries: Vec<Summary>,
    /// The number of bits that the run wrote for its path.
    pub bits: u64,
    /// A description of the parts that the user's filter left out, or an empty string.
    pub left_out: String,
    /// The functions that were left out in part, ascending. It is `None` if blocks of unknown
    /// functions were left out.
    pub partial: Option<Vec<Partial>>,
}

/// A function that a filter left out in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The function.
    pub function: FuncId,
    /// The number of the function's blocks that were left out.
    pub blocks: u64,
    /// The number of the function's activations that were left out entirely.
    pub calls: u64,
    /// The numbers of the activations that are present. A pair (k, n) says that the k-th present
    /// activation is the n-th of all activations. Until the next pair, both numbers increase by
    /// one. The numbers count from 1. The list is `None` if it would have too many pairs.
    pub numbers: Option<Vec<(u64, u64)>>,
}

impl Default for Directory {
    /// Returns the directory of an empty path from which nothing was left out.
    fn default() -> Self {
        Self {
            nodes: PrimaryMap::new(),
            continuations: Vec::new(),
            summaries: Vec::new(),
            bits: 0,
            left_out: String::new(),
            partial: Some(Vec::new()),
        }
    }
}

/// The maximum size of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryLimits {
    /// The number of nodes.
    pub nodes: u32,
    /// The total number of blocks of all nodes.
    pub blocks: usize,
    /// The number of the program's functions, imports included.
    pub functions: u32,
    /// The number of activations that are open at once.
    pub open: usize,
}

impl Directory {
    /// Returns the contexts of the nodes.
    pub fn contexts(&self) -> Contexts {
        let mut contexts = Contexts::default();
        for (node, &continuation) in self.nodes.values().zip(&self.continuations) {
            contexts.push(node.function, continuation);
        }
        contexts
    }

    /// Returns the number of the last function that the directory names, plus 1. Time: O(nodes +
    /// segments).
    pub fn functions(&self) -> u32 {
        let nodes = self.nodes.values().map(|node| node.function);
        // The counts ascend by function.
        let last = |counts: &[(FuncId, u64)]| counts.last().map(|&(function, _)| function);
        let called = self.summaries.iter();
        let called = called.filter_map(|summary| last(&summary.call_counts));
        let partial = self.partial.iter().flatten().map(|part| part.function);
        let all = nodes.chain(called).chain(partial);
        all.map(|function| function.as_u32().saturating_add(1))
            .max()
            .unwrap_or(0)
    }

    /// Encodes the directory. Time: linear.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let partial = self.partial.as_deref();
        let partial = partial.filter(|partial| !partial.is_empty() || !self.left_out.is_empty());
        varint::put(&mut out, if partial.is_some() { PARTIAL } else { WHOLE });
        varint::put(&mut out, self.bits);
        let part = |out: &mut Vec<u8>, part: &[u8]| {
            varint::put(out, part.len() as u64);
            out.extend_from_slice(part);
        };
        part(&mut out, self.left_out.as_bytes());
        if let Some(partial) = partial {
            varint::put(&mut out, partial.len() as u64);
            partial.iter().for_each(|partial| partial.encode(&mut out));
        }
        part(&mut out, &encode_nodes(&self.nodes));
        for continuation in &self.continuations {
            let next = continuation.next.map_or(0, |next| next.index() as u64 + 1);
            varint::put(&mut out, next << 1 | u64::from(continuation.calls));
        }
        varint::put(&mut out, self.summaries.len() as u64);
        let encoded = |at| encode_summary(&self.summaries[at]);
        for summary in afterimage_parallel::map(self.summaries.len(), encoded) {
            part(&mut out, &summary);
        }
        out
    }

    /// Decodes a directory. Time and memory are bounded by the number of bytes and by the limits.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a directory.
    pub fn decode(encoded: &[u8], limits: &DirectoryLimits) -> Result<Self, CodecError> {
        let input = &mut &*encoded;
        let version = varint::get(input)?;
        if ![WHOLE, PARTIAL].contains(&version) {
            return Err(CodecError::Malformed("a directory of another version"));
        }
        let bits = varint::get(input)?;
        let left_out = String::from_utf8(varint::part(input)?.to_vec())
            .map_err(|_| CodecError::Malformed("text that is not UTF-8"))?;
        let partial = match version {
            PARTIAL => Some(partial(input, limits)?),
            _ if left_out.is_empty() => Some(Vec::new()),
            _ => None,
        };
        let node_limits = NodeLimits {
            nodes: limits.nodes,
            blocks: limits.blocks,
            functions: limits.functions,
        };
        let nodes = decode_nodes(varint::part(input)?, &node_limits)?;
        let mut continuations = Vec::with_capacity(nodes.len());
        for _ in 0..nodes.len() {
            let word = varint::get_below(input, 1 << 33, "blocks")?;
            continuations.push(Continuation {
                next: (word >> 1)
                    .checked_sub(1)
                    .map(|next| BlockId::from_u32(next as u32)),
                calls: word & 1 == 1,
            });
        }
        let segment_limits = Limits {
            symbols: 0,
            nodes: nodes.len() as u32,
            functions: limits.functions,
            open: limits.open,
        };
        // A summary takes at least one byte.
        let count = varint::get_below(input, input.len() as u64 + 1, "segments")?;
        let parts = (0..count).map(|_| varint::part(input));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let decoded = |at: usize| decode_summary(parts[at], &segment_limits);
        let summaries = afterimage_parallel::map(parts.len(), decoded);
        let summaries = summaries.into_iter().collect::<Result<_, _>>()?;
        if !input.is_empty() {
            return Err(CodecError::Trailing);
        }
        Ok(Self {
            nodes,
            continuations,
            summaries,
            bits,
            left_out,
            partial,
        })
    }
}

/// The directory of a path whose stretches are built on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StretchDirectory {
    /// The contents of each stretch.
    pub directory: Directory,
    /// The value of the stop clock at the beginning of each stretch except the first, ascending.
    pub clocks: Vec<u64>,
    /// The activations open at the beginning of each stretch except the first, outermost first.
    /// Activations that already waited for the same call at the beginning of the previous stretch
    /// are omitted; see [`known_before`](Self::known_before).
    pub open: Vec<Vec<OpenActivation>>,
}

/// An activation that is open at the beginning of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenActivation {
    /// The function of the activation.
    pub function: FuncId,
    /// The block with the call for which the activation waits, or `None` if it does not wait.
    pub call: Option<BlockId>,
    /// The time of the activation's first block.
    pub entered: u64,
    /// The time of the call's block. It equals `entered` if the activation does not wait.
    pub called: u64,
}

impl OpenActivation {
    fn encode(&self, before: u64, out: &mut Vec<u8>) {
        varint::put(out, u64::from(self.function.as_u32()));
        varint::put(out, self.call.map_or(0, |call| call.index() as u64 + 1));
        varint::put(out, before - self.called);
        varint::put(out, self.called - self.entered);
    }

    fn decode(
        input: &mut &[u8],
        before: u64,
        limits: &DirectoryLimits,
    ) -> Result<Self, CodecError> {
        let function = varint::get_below(input, u64::from(limits.functions), "functions")?;
        let call = varint::get_below(input, 1 << 32, "blocks")?;
        let called = before.checked_sub(varint::get(input)?);
        let called = called.ok_or(CodecError::Malformed("a call before the run"))?;
        let entered = called.checked_sub(varint::get(input)?);
        let entered = entered.filter(|&entered| entered > 0);
        Ok(Self {
            function: FuncId::from_u32(function as u32),
            call: call
                .checked_sub(1)
                .map(|call| BlockId::from_u32(call as u32)),
            entered: entered.ok_or(CodecError::Malformed("an activation before the run"))?,
            called,
        })
    }
}

impl StretchDirectory {
    /// Returns the number of activations that wait for the same call at the end of a stretch as at
    /// its beginning.
    pub fn known_before(stretch: &Summary) -> usize {
        (stretch.kept as usize).saturating_sub(1)
    }

    /// Encodes the directory and the clocks, without the open activations. Time: linear.
    pub fn encode(&self) -> Vec<u8> {
        let directory = self.directory.encode();
        let mut out = Vec::new();
        varint::put(&mut out, directory.len() as u64);
        out.extend(directory);
        let mut last = 0;
        for &clock in &self.clocks {
            varint::put(&mut out, clock - last);
            last = clock;
        }
        out
    }

    /// Encodes the open activations. Time: linear.
    pub fn encode_open(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let summaries = self.directory.summaries.iter().skip(1);
        for (summary, open) in summaries.zip(&self.open) {
            for activation in open {
                activation.encode(summary.before, &mut out);
            }
        }
        out
    }

    /// Decodes a directory and its open activations. Time and memory are bounded by the number of
    /// bytes and by the limits.
    ///
    /// # Errors
    /// Returns an error if the bytes are invalid, or belong to different paths.
    pub fn decode(
        encoded: &[u8],
        encoded_open: &[u8],
        limits: &DirectoryLimits,
    ) -> Result<Self, CodecError> {
        let input = &mut &*encoded;
        let directory = Directory::decode(varint::part(input)?, limits)?;
        let summaries = &directory.summaries;
        let mut clocks = Vec::with_capacity(summaries.len());
        let mut last = 0u64;
        for _ in summaries.iter().skip(1) {
            let next = last.checked_add(varint::get(input)?);
            last = next.ok_or(CodecError::Malformed("a clock beyond 2^64"))?;
            clocks.push(last);
        }
        if !input.is_empty() {
            return Err(CodecError::Malformed("more clocks than stretches"));
        }
        let input = &mut &*encoded_open;
        let mut open = Vec::with_capacity(clocks.len());
        for (earlier, summary) in summaries.iter().zip(summaries.iter().skip(1)) {
            let count = (summary.open as usize).checked_sub(Self::known_before(earlier));
            let count = count.ok_or(CodecError::Malformed("fewer open activations than kept"))?;
            let activations =
                (0..count).map(|_| OpenActivation::decode(input, summary.before, limits));
            open.push(activations.collect::<Result<_, _>>()?);
        }
        if !input.is_empty() {
            return Err(CodecError::Trailing);
        }
        Ok(Self {
            directory,
            clocks,
            open,
        })
    }
}

impl Partial {
    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, u64::from(self.function.as_u32()));
        varint::put(out, self.blocks);
        varint::put(out, self.calls);
        let Some(numbers) = &self.numbers else {
            varint::put(out, 0);
            return;
        };
        varint::put(out, numbers.len() as u64 + 1);
        let (mut kept, mut all) = (0, 0);
        for &(k, n) in numbers {
            varint::put(out, k - kept);
            varint::put(out, n - all);
            (kept, all) = (k, n);
        }
    }

    fn decode(input: &mut &[u8], limits: &DirectoryLimits) -> Result<Self, CodecError> {
        let function = varint::get_below(input, u64::from(limits.functions), "functions")?;
        let (blocks, calls) = (varint::get(input)?, varint::get(input)?);
        // A pair takes at least two bytes.
        let pairs = varint::get_below(input, input.len() as u64 / 2 + 2, "numbers")?;
        let (mut kept, mut all) = (0u64, 0u64);
        let next = |input: &mut &[u8], last: u64| {
            let more = varint::get(input)?;
            let next = last.checked_add(more).filter(|_| more > 0);
            next.ok_or(CodecError::Malformed("numbers that do not ascend"))
        };
        let mut pair = || {
            kept = next(input, kept)?;
            all = next(input, all)?;
            Ok((kept, all))
        };
        let numbers = match pairs {
            0 => None,
            pairs => Some((1..pairs).map(|_| pair()).collect::<Result<_, _>>()?),
        };
        Ok(Self {
            function: FuncId::from_u32(function as u32),
            blocks,
            calls,
            numbers,
        })
    }
}

fn partial(input: &mut &[u8], limits: &DirectoryLimits) -> Result<Vec<Partial>, CodecError> {
    let count = varint::get_below(input, u64::from(limits.functions) + 1, "functions")?;
    let mut all: Vec<Partial> = Vec::new();
    for _ in 0..count {
        let partial = Partial::decode(input, limits)?;
        if all
            .last()
            .is_some_and(|last| last.function >= partial.function)
        {
            return Err(CodecError::Malformed("functions that do not ascend"));
        }
        all.push(partial);
    }
    Ok(all)
}
