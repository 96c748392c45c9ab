//! The stored form of a segment.

mod assemble;
mod coder;
mod history;
mod logistic;
mod model;
mod numbers;
mod plan;
mod predictor;
mod step;
mod successors;
mod varint;
mod walk;

use afterimage_ids::FuncId;

use crate::measures::tally;
use crate::{Kind, Root, Segment};
use assemble::Assembler;
use coder::{Decoder, Encoder};
use model::{Bounds, Model};
use step::Step;

/// What a reader knows of a node before it decodes segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeContext {
    /// Where the path goes on within the activation, after the call if it ends with one: the number of a block, or of
    /// any point of the program that decides which paths can follow. Equal numbers for equal points.
    pub next: u32,
    /// The number of the point where it starts, in the same numbering.
    pub start: u32,
    /// The path ends with a call.
    pub calls: bool,
}

/// How large a decoded segment may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rules and their symbols together. A list that is folded can exceed it for a moment.
    pub symbols: usize,
    /// Nodes that exist: a segment with a larger number is refused.
    pub nodes: u32,
    /// Functions that exist.
    pub functions: u32,
    /// Open activations.
    pub open: usize,
}

/// Why bytes are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes end too early.
    #[error("the bytes end too early")]
    Truncated,
    /// Bytes follow the end.
    #[error("bytes follow the end")]
    Trailing,
    /// Written by another version.
    #[error("unknown version {0}")]
    Version(u8),
    /// More of something than the limits allow.
    #[error("more {0} than allowed")]
    TooLarge(&'static str),
    /// Something that no encoder writes.
    #[error("{0}")]
    Malformed(&'static str),
}

const VERSION: u8 = 1;

/// Encodes.
pub fn encode(segment: &Segment, contexts: &[NodeContext]) -> Vec<u8> {
    let bounds = bounds(segment);
    let mut out = vec![VERSION, bounds.table_bits as u8];
    for value in [segment.before, segment.length, bounds.nodes.into(), bounds.functions.into()] {
        varint::put(&mut out, value);
    }
    varint::put(&mut out, segment.open.len() as u64);
    for function in &segment.open {
        varint::put(&mut out, function.as_u32().into());
    }
    let mut model = Model::new(contexts, bounds);
    let mut coder = Encoder::new();
    walk::walk(segment, |step| {
        let coded = model.step(&mut coder, step);
        debug_assert_eq!(coded, Ok(step));
    });
    let payload = coder.finish();
    varint::put(&mut out, payload.len() as u64);
    out.extend(payload);
    out
}

/// Decodes.
pub fn decode(bytes: &[u8], contexts: &[NodeContext], limits: &Limits) -> Result<Segment, CodecError> {
    let input = &mut &*bytes;
    match varint::byte(input)? {
        VERSION => {}
        version => return Err(CodecError::Version(version)),
    }
    let table_bits = u32::from(varint::byte(input)?);
    if !(MIN_TABLE_BITS..=MAX_TABLE_BITS).contains(&table_bits) {
        return Err(CodecError::Malformed("tables of an unknown size"));
    }
    let before = varint::get(input)?;
    let length = varint::get(input)?;
    let nodes = varint::get_below(input, u64::from(limits.nodes) + 1, "nodes")? as u32;
    let functions = varint::get_below(input, u64::from(limits.functions) + 1, "functions")? as u32;
    let open = varint::get_below(input, limits.open as u64 + 1, "open activations")?;
    let open = (0..open)
        .map(|_| Ok(FuncId::from_u32(varint::get_below(input, functions.into(), "functions")? as u32)))
        .collect::<Result<Vec<_>, CodecError>>()?;
    let size = varint::get(input)?;
    match (input.len() as u64).cmp(&size) {
        std::cmp::Ordering::Less => return Err(CodecError::Truncated),
        std::cmp::Ordering::Greater => return Err(CodecError::Trailing),
        std::cmp::Ordering::Equal => {}
    }
    let mut model = Model::new(contexts, Bounds { nodes, functions, table_bits });
    let mut coder = Decoder::new(input);
    let mut assembler = Assembler::new(limits, open.len());
    while assembler.step(model.step(&mut coder, Step::End)?)? {}
    if coder.has_rest() {
        return Err(CodecError::Trailing);
    }
    finish(before, length, open, assembler)
}

/// The segment that is decoded from a segment's encoding.
///
/// # Errors
/// See [`decode`].
pub fn canonical(segment: &Segment) -> Result<Segment, CodecError> {
    let limits = Limits {
        symbols: usize::MAX,
        nodes: u32::MAX,
        functions: u32::MAX,
        open: usize::MAX,
    };
    let mut assembler = Assembler::new(&limits, segment.open.len());
    let mut result = Ok(true);
    walk::walk(segment, |step| {
        if result.is_ok() {
            result = assembler.step(step);
        }
    });
    result?;
    finish(segment.before, segment.length, segment.open.clone(), assembler)
}

fn finish(before: u64, length: u64, open: Vec<FuncId>, assembler: Assembler) -> Result<Segment, CodecError> {
    let (root, grammar) = assembler.finish();
    let (node_counts, call_counts) = tally(&grammar, &root).ok_or(CodecError::Malformed("a path without end"))?;
    Ok(Segment { before, length, open, root, grammar, node_counts, call_counts })
}

const MIN_TABLE_BITS: u32 = 6;
const MAX_TABLE_BITS: u32 = 17;

fn bounds(segment: &Segment) -> Bounds {
    let grammar = &segment.grammar;
    let run = segment.root.iter().filter_map(|item| if let Root::Run(symbol) = item { Some(*symbol) } else { None });
    let symbols = run.chain(grammar.symbols.iter().copied());
    let nodes = symbols.filter_map(|symbol| symbol.as_node()).map(|node| node.as_u32() + 1).max().unwrap_or(0);
    let functions = grammar.rules.values().filter_map(|rule| match rule.kind {
        Kind::Call(function) => Some(function),
        Kind::Sequence | Kind::Repeat(_) => None,
    });
    let entered = segment.root.iter().filter_map(|item| if let Root::Enter(f) = item { Some(*f) } else { None });
    let functions = functions.chain(entered).chain(segment.open.iter().copied());
    let functions = functions.map(|function| function.as_u32().saturating_add(1)).max().unwrap_or(0);
    let steps = grammar.symbols.len() + grammar.rules.len() + segment.root.len();
    let table_bits = (usize::BITS - steps.leading_zeros()).clamp(MIN_TABLE_BITS, MAX_TABLE_BITS);
    Bounds { nodes, functions, table_bits }
}
