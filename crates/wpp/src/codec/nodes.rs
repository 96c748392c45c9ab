//! Encodes and decodes the stored node table.
//!
//! Layout: the version (a byte), the number of nodes, and the number of following bytes (LEB128).
//! The rest is range coded. It contains, for each node, its function, its `left_out`, its blocks
//! and an end mark. A block is predicted from up to two blocks before it on its path. An
//! unpredicted block is stored as its distance from the previous block.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};

use super::coder::{Coder, Decoder, Encoder};
use super::numbers::Gamma;
use super::predictor::Predictor;

use super::step::Token;
use super::successors::hash;
use super::{CodecError, varint};
use crate::{Node, Symbol};

const VERSION: u8 = 2;
/// The number of contexts of a block and of a function.
const ORDERS: usize = 3;
/// The code of a path's end. Greater codes are blocks.
const END: u32 = 0;

/// The maximum size of a decoded node table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// The number of nodes.
    pub nodes: u32,
    /// The total number of blocks of all paths.
    pub blocks: usize,
    /// The number of functions.
    pub functions: u32,
}

/// Encodes a node table. Time: linear. Block numbers must be below 2^32 - 2.
pub fn encode_nodes(nodes: &PrimaryMap<NodeId, Node>) -> Vec<u8> {
    let mut table = Table::new(nodes.len());
    let mut coder = Encoder::new();
    for node in nodes.values() {
        let function = table.function(&mut coder, node.function.as_u32());
        let left_out = table.left_out.code(&mut coder, node.left_out);
        debug_assert_eq!(
            (function, left_out),
            (node.function.as_u32(), Some(node.left_out))
        );
        table.begin(function);
        for block in &node.blocks {
            table.block(&mut coder, block.as_u32() + 1);
        }
        table.block(&mut coder, END);
    }
    let mut out = vec![VERSION];
    let payload = coder.finish();
    varint::put(&mut out, nodes.len() as u64);
    varint::put(&mut out, payload.len() as u64);
    out.extend(payload);
    out
}

/// Decodes a node table. Time and memory are bounded by the limits.
///
/// # Errors
/// Returns an error if [`encode_nodes`] cannot have written the bytes, for example because they are
/// truncated, or if the table exceeds the limits. Altered bytes may also decode to another table.
pub fn decode_nodes(
    bytes: &[u8],
    limits: &NodeLimits,
) -> Result<PrimaryMap<NodeId, Node>, CodecError> {
    let input = &mut &*bytes;
    varint::version(input, VERSION)?;
    let count = varint::get_below(
        input,
        u64::from(limits.nodes.min(Symbol::LIMIT)) + 1,
        "nodes",
    )?;
    let mut coder = Decoder::new(varint::rest(input)?);
    let mut table = Table::new(usize::try_from(count).unwrap_or(usize::MAX));
    let mut nodes = PrimaryMap::new();
    let mut left = limits.blocks;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let function = table.function(&mut coder, 0);
        if function >= limits.functions {
            return Err(CodecError::Malformed("a function that does not exist"));
        }
        let left_out = table
            .left_out
            .code(&mut coder, 0)
            .ok_or(CodecError::Malformed("a stretch without an end"))?;
        table.begin(function);
        loop {
            if coder.exhausted() {
                return Err(CodecError::Truncated);
            }
            match table.block(&mut coder, END) {
                END => break,
                u32::MAX => return Err(CodecError::Malformed("a block that does not exist")),
                block => blocks.push(BlockId::from_u32(block - 1)),
            }
            left = left.checked_sub(1).ok_or(CodecError::TooLarge("blocks"))?;
        }
        if blocks.is_empty() && left_out == 0 {
            return Err(CodecError::Malformed("an empty path"));
        }
        nodes.push(Node {
            function: FuncId::from_u32(function),
            blocks: blocks.drain(..).collect(),
            left_out,
        });
    }
    if coder.exhausted() {
        return Err(CodecError::Truncated);
    }
    if coder.has_rest() {
        return Err(CodecError::Trailing);
    }
    Ok(nodes)
}

/// Statistics learnt from the nodes so far.
struct Table {
    functions: Predictor<ORDERS>,
    new_functions: Gamma,
    /// The functions of the last two nodes.
    recent: [u32; 2],
    left_out: Gamma,
    blocks: Predictor<ORDERS>,
    new_blocks: [Gamma; 2],
    /// The last blocks of the path, latest first. At a path's beginning, these are the previous
    /// path's last blocks.
    past: [u32; ORDERS - 1],
    function: u32,
    is_first: bool,
}

impl Table {
    fn new(nodes: usize) -> Self {
        let bits = (usize::BITS - nodes.leading_zeros() + 2).clamp(6, 16);
        Self {
            functions: Predictor::new([6; ORDERS], 4),
            new_functions: Gamma::new(),
            recent: [0; 2],
            left_out: Gamma::new(),
            blocks: Predictor::new([bits; ORDERS], 6),
            new_blocks: [Gamma::new(), Gamma::new()],
            past: [0; ORDERS - 1],
            function: 0,
            is_first: true,
        }
    }

    fn function(&mut self, coder: &mut impl Coder, given: u32) -> u32 {
        let [last, before] = self.recent;
        let first = hash(1, last);
        let second = hash(first, before);
        let contexts = [first, hash(first, self.past[0]), second];
        let function = match self.functions.code(coder, Token(given), contexts, |_| true) {
            Some(token) => token.0,
            None => last.wrapping_add(
                self.new_functions
                    .code_signed(coder, given.wrapping_sub(last)),
            ),
        };
        self.functions.update(Token(function));
        self.recent = [function, last];
        function
    }

    /// Begins a path.
    fn begin(&mut self, function: u32) {
        self.function = function;
        self.is_first = true;
    }

    /// Codes a block, as its number plus 1, or the end.
    fn block(&mut self, coder: &mut impl Coder, given: u32) -> u32 {
        let mut context = hash(self.is_first.into(), self.function);
        let contexts = std::array::from_fn(|order| {
            if order > 0 {
                context = hash(context, self.past[order - 1]);
            }
            context
        });
        let last = self.past[0];
        let block = match self.blocks.code(coder, Token(given), contexts, |_| true) {
            Some(token) => token.0,
            None => {
                let gamma = &mut self.new_blocks[usize::from(self.is_first)];
                last.wrapping_add(gamma.code_signed(coder, given.wrapping_sub(last)))
            }
        };
        self.blocks.update(Token(block));
        self.is_first = false;
        if block != END {
            self.past.copy_within(..ORDERS - 2, 1);
            self.past[0] = block;
        }
        block
    }
}
