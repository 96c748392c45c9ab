//! Encodes segments, node tables and summaries as bytes, and decodes them.
//!
//! # A segment's bytes
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the version, 2 |
//! | 1 | the binary logarithm of the size of the main model's largest tables, 6 to 15 |
//! | LEB128 | [`Segment::before`] |
//! | LEB128 | [`Segment::length`] |
//! | LEB128 | a number above the numbers of all nodes |
//! | LEB128 | a number above the numbers of all functions |
//! | LEB128, then one for each | [`Segment::open`] |
//! | LEB128, then the rest | the steps, range coded |
//!
//! The counts of nodes and calls are recomputed from the grammar.
//!
//! # Steps
//!
//! A segment is written in execution order. A path is a node. An activation is `Call`, its steps,
//! `End`. A repetition is its body's steps, then `Loop`. The `Loop` step gives the number of
//! preceding symbols in the body, and the number of executions. So the end of a loop is coded at
//! the point where the program decides to leave the loop. Activations, and long recurring sequences
//! (`Sequence`, their steps, `End`), are numbered in the order of their ends. A later occurrence is
//! only `Again` and this number.
//!
//! Short sequences are *dissolved*, which means that their steps are written at every occurrence.
//! Predicting the steps one by one costs fewer bits than distinguishing one rule from all others.
//! Sequences that recur very often are an exception if naming them costs no more, because they are
//! then much faster to read. The reader folds the steps in the same way as the builder. So the
//! decoded grammar is about as small as the encoded grammar and yields the same path, but its rules
//! differ. [`canonical`] computes these rules.
//!
//! # Prediction
//!
//! Five contexts record what has followed so far. The first is the point where the last node ends.
//! The second is the last node and the number of consecutive nodes with the same end, which are the
//! iterations of an innermost loop. The others are the last 2, 3 and 6 nodes of the activation,
//! with the calls between them folded in. Each context remembers up to three candidates, each with
//! the number of times that it followed.
//!
//! In most cases, only one step has ever followed in the longest context. If it has followed at
//! least three times, such a step takes one look-up and one binary decision. Otherwise, the
//! candidates of all contexts are offered one by one, and a decision says whether the offer is
//! right. The probability that it is right is mixed (Mahoney 2005) from two opinions. One opinion
//! comes from the two longest contexts, and the other from the remaining contexts. A table maps the
//! counts of the candidate and of its competitors to each opinion. So the codec learns what, for
//! example, "seen once" means. The decisions are range coded. If no offer is right, the step is
//! spelt out. The counts of loops are predicted in the same way, in contexts of their own.
//!
//! The codec uses no floating point, so every machine decodes the same segment.

mod assemble;
mod coder;
mod escapes;
mod history;
mod levels;
mod logistic;
mod model;
mod nodes;
mod numbers;
mod opened;
mod plan;
mod predictor;
mod step;
mod successors;
mod summary;
pub(crate) mod varint;
mod walk;

use afterimage_ids::FuncId;

use self::assemble::Assembler;
use self::coder::{Decoder, Encoder};
use self::model::{Bounds, Model};
pub use self::nodes::{NodeLimits, decode_nodes, encode_nodes};
pub use self::opened::{decode_opened, encode_opened};
use self::plan::Plans;
use self::step::Step;
pub use self::summary::{decode_summary, encode_summary};
use crate::measures::tally;
use crate::{Grammar, Kind, Root, Segment, Symbol};

const VERSION: u8 = 2;
/// A plan with far fewer steps is chosen if its size is at most this many percent of the other
/// plan's, because it is read much faster.
const WORTH: usize = 105;
const MIN_TABLE_BITS: u32 = 6;
const MAX_TABLE_BITS: u32 = 15;

/// The facts about a node that the writer and the reader know before they see the segment. Both
/// must have the same facts. Otherwise, the bytes decode to another segment, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeContext {
    /// The place where the activation continues after the node, which determines what can follow.
    /// It may be, for example, a block number that is unique in the program. If the node ends with
    /// a call, this is the number of the block after the call. All nodes that end the activation
    /// have one common number.
    pub next: u32,
    /// Whether the node ends with a call. If so, an activation follows.
    pub calls: bool,
}

/// The maximum size of a decoded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of rules, their symbols and the root's items. It must be at least the size of the
    /// encoded segment. Values above 2^30 have no effect.
    pub symbols: usize,
    /// The number of nodes. A segment that names a higher node is refused.
    pub nodes: u32,
    /// The number of functions. A segment that names a higher function is refused.
    pub functions: u32,
    /// The maximum number of activations that are open at the beginning.
    pub open: usize,
}

/// The reason why bytes are not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes end too early.
    #[error("the bytes end too early")]
    Truncated,
    /// Further bytes follow the end.
    #[error("bytes follow the end")]
    Trailing,
    /// The bytes were written by another version.
    #[error("coded in version {0}, which this program cannot read")]
    Version(u8),
    /// A number exceeds the limits.
    #[error("more {0} than allowed")]
    TooLarge(&'static str),
    /// The bytes contain something that no encoder writes.
    #[error("{0}")]
    Malformed(&'static str),
}

/// Encodes a segment. Time: linear in its steps. There are at most 8 million steps, or a few for
/// each symbol if that is more.
///
/// `contexts` is indexed by node. It may have fewer entries than there are nodes.
///
/// # Panics
/// Panics if the grammar is not sound.
pub fn encode(segment: &Segment, contexts: &[NodeContext]) -> Vec<u8> {
    let bounds = bounds(segment);
    let mut out = vec![VERSION, bounds.table_bits as u8];
    for value in [
        segment.before,
        segment.length,
        bounds.nodes.into(),
        bounds.functions.into(),
    ] {
        varint::put(&mut out, value);
    }
    varint::put(&mut out, segment.open.len() as u64);
    for function in &segment.open {
        varint::put(&mut out, function.as_u32().into());
    }
    let (payload, _) = coded(segment, contexts, bounds);
    varint::put(&mut out, payload.len() as u64);
    out.extend(payload);
    out
}

/// Returns the coded steps of a segment, and the plan that they follow. A plan with far fewer steps
/// is preferred unless it takes clearly more bytes.
fn coded(segment: &Segment, contexts: &[NodeContext], bounds: Bounds) -> (Vec<u8>, Plans) {
    let coded = |plans: Plans| {
        let mut model = Model::new(contexts, bounds);
        let mut coder = Encoder::new();
        walk::walk(segment, &plans, |step| {
            let coded = model.step(&mut coder, step);
            debug_assert_eq!(coded, Ok(step));
        });
        (coder.finish(), plans)
    };
    let (plans, fewer) = plan::plans(segment);
    let first = coded(plans);
    match fewer.map(coded) {
        Some(fewer) if 100 * fewer.0.len() <= WORTH * first.0.len() => fewer,
        _ => first,
    }
}

/// Decodes a segment. Returns the [`canonical`] form of the encoded segment. The time bounds of
/// [`encode`] apply, and the limits also bound time and memory.
///
/// # Errors
/// Returns an error if [`encode`] cannot have written the bytes, for example because they are
/// truncated, or if the segment exceeds the limits. Altered bytes may also decode to another
/// segment, which is sound in itself.
pub fn decode(
    bytes: &[u8],
    contexts: &[NodeContext],
    limits: &Limits,
) -> Result<Segment, CodecError> {
    let input = &mut &*bytes;
    varint::version(input, VERSION)?;
    let table_bits = u32::from(varint::byte(input)?);
    if !(MIN_TABLE_BITS..=MAX_TABLE_BITS).contains(&table_bits) {
        return Err(CodecError::Malformed("tables of an unknown size"));
    }
    let before = varint::get(input)?;
    let length = varint::get(input)?;
    let nodes = varint::get_below(
        input,
        u64::from(limits.nodes.min(Symbol::LIMIT)) + 1,
        "nodes",
    )? as u32;
    let functions = varint::get_below(input, u64::from(limits.functions) + 1, "functions")? as u32;
    let open = varint::get_below(input, limits.open as u64 + 1, "open activations")?;
    let open = (0..open)
        .map(|_| {
            Ok(FuncId::from_u32(
                varint::get_below(input, functions.into(), "functions")? as u32,
            ))
        })
        .collect::<Result<Vec<_>, CodecError>>()?;
    let mut coder = Decoder::new(varint::rest(input)?);
    let mut model = Model::new(
        contexts,
        Bounds {
            nodes,
            functions,
            table_bits,
        },
    );
    let mut assembler = Assembler::new(limits, open.len());
    while assembler.step(model.step(&mut coder, Step::End)?)? {}
    if coder.has_rest() {
        return Err(CodecError::Trailing);
    }
    let (root, grammar) = assembler.finish();
    finish(before, length, open, root, grammar)
}

/// Returns the segment that [`decode`] makes from [`encode`]'s bytes. It has the execution and the
/// counts of the encoded segment. However, rules are rebuilt by folding, unused rules are removed,
/// and neighbours in the root are merged.
///
/// # Errors
/// Returns an error if the segment executes a node or a function 2^64 times or more, or exceeds
/// every possible limit.
pub fn canonical(segment: &Segment, contexts: &[NodeContext]) -> Result<Segment, CodecError> {
    let (_, plans) = coded(segment, contexts, bounds(segment));
    let limits = Limits {
        symbols: usize::MAX,
        nodes: u32::MAX,
        functions: u32::MAX,
        open: usize::MAX,
    };
    let mut assembler = Assembler::new(&limits, segment.open.len());
    let mut result = Ok(true);
    walk::walk(segment, &plans, |step| {
        if result.is_ok() {
            result = assembler.step(step);
        }
    });
    result?;
    let (root, grammar) = assembler.finish();
    finish(
        segment.before,
        segment.length,
        segment.open.clone(),
        root,
        grammar,
    )
}

fn finish(
    before: u64,
    length: u64,
    open: Vec<FuncId>,
    root: Vec<Root>,
    grammar: Grammar,
) -> Result<Segment, CodecError> {
    let uncountable = CodecError::Malformed("a path with more executions than can be counted");
    let (node_counts, call_counts) = tally(&grammar, &root).ok_or(uncountable)?;
    Ok(Segment {
        before,
        length,
        open,
        root,
        grammar,
        node_counts,
        call_counts,
    })
}

/// Returns the facts that the reader must know first.
fn bounds(segment: &Segment) -> Bounds {
    let grammar = &segment.grammar;
    let run = segment.root.iter().filter_map(|item| {
        if let Root::Run(symbol) = item {
            Some(*symbol)
        } else {
            None
        }
    });
    let symbols = run.chain(grammar.symbols.iter().copied());
    let nodes = symbols
        .filter_map(|symbol| symbol.as_node())
        .map(|node| node.as_u32() + 1)
        .max()
        .unwrap_or(0);
    let functions = grammar.rules.values().filter_map(|rule| match rule.kind {
        Kind::Call(function) => Some(function),
        Kind::Sequence | Kind::Repeat(_) => None,
    });
    let entered = segment.root.iter().filter_map(|item| {
        if let Root::Enter(f) = item {
            Some(*f)
        } else {
            None
        }
    });
    let functions = functions.chain(entered).chain(segment.open.iter().copied());
    let functions = functions
        .map(|function| function.as_u32().saturating_add(1))
        .max()
        .unwrap_or(0);
    let steps = grammar.symbols.len() + grammar.rules.len() + segment.root.len();
    let table_bits = (usize::BITS - steps.leading_zeros()).clamp(MIN_TABLE_BITS, MAX_TABLE_BITS);
    Bounds {
        nodes,
        functions,
        table_bits,
    }
}
