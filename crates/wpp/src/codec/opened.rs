//! Encodes segments in opened form, rule by rule and without prediction. Opened form takes several
//! times as many bytes as [`encode`](super::encode), but a fraction of the time to read.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use super::{CodecError, Limits, finish, varint};
use crate::{Grammar, Kind, Root, Rule, Segment, Symbol};

const VERSION: u8 = 1;

/// The kind of a rule, which is its encoded number modulo 3.
const SEQUENCE: u64 = 0;
const REPEAT: u64 = 1;
const CALL: u64 = 2;
const KINDS: u64 = 3;

/// The kind of a root item, which is its encoded number modulo 4.
const NODE: u64 = 0;
const RULE: u64 = 1;
const ENTER: u64 = 2;
const LEAVE: u64 = 3;
const ITEMS: u64 = 4;

/// Encodes a segment with its rules unchanged. Time: linear in the grammar.
///
/// Layout, with all numbers as LEB128: the version (a byte), `before`, and `length`. Four lists
/// follow, each preceded by its length. They are the open functions, the root's items, the rules,
/// and the concatenated right-hand sides of all rules.
///
/// # Panics
/// Panics if a rule names a rule that does not come before it.
pub fn encode_opened(segment: &Segment) -> Vec<u8> {
    let grammar = &segment.grammar;
    let mut out = Vec::with_capacity(2 * grammar.symbols.len() + 4 * grammar.rules.len() + 64);
    out.push(VERSION);
    varint::put(&mut out, segment.before);
    varint::put(&mut out, segment.length);
    varint::put(&mut out, segment.open.len() as u64);
    for function in &segment.open {
        varint::put(&mut out, function.as_u32().into());
    }
    varint::put(&mut out, segment.root.len() as u64);
    for item in &segment.root {
        let number = match *item {
            Root::Run(symbol) => {
                let kind = if symbol.as_rule().is_some() {
                    RULE
                } else {
                    NODE
                };
                u64::from(symbol.bits() >> 1) * ITEMS + kind
            }
            Root::Enter(function) => u64::from(function.as_u32()) * ITEMS + ENTER,
            Root::Leave => LEAVE,
        };
        varint::put(&mut out, number);
    }
    varint::put(&mut out, grammar.rules.len() as u64);
    for rule in grammar.rules.values() {
        let len = u64::from(rule.len);
        match rule.kind {
            Kind::Sequence => varint::put(&mut out, len * KINDS + SEQUENCE),
            // The number of rounds may need all 64 bits.
            Kind::Repeat(rounds) => {
                varint::put(&mut out, REPEAT);
                varint::put(&mut out, rounds);
            }
            Kind::Call(function) => {
                varint::put(&mut out, len * KINDS + CALL);
                varint::put(&mut out, function.as_u32().into());
            }
        }
    }
    varint::put(&mut out, grammar.symbols.len() as u64);
    for id in grammar.rules.keys() {
        for &symbol in grammar.symbols_of(id) {
            let word = match symbol.as_rule() {
                Some(rule) => u64::from(id.as_u32() - rule.as_u32()) << 1 | 1,
                None => symbol.bits().into(),
            };
            varint::put(&mut out, word);
        }
    }
    out
}

/// Decodes a segment with its rules unchanged. Checks only what counting nodes and calls requires.
/// Time and memory are linear in the number of bytes and in the highest node number.
///
/// # Errors
/// Returns an error if [`encode_opened`] cannot have written the bytes, or a number exceeds the
/// limits.
pub fn decode_opened(bytes: &[u8], limits: &Limits) -> Result<Segment, CodecError> {
    let input = &mut &*bytes;
    varint::version(input, VERSION)?;
    let before = varint::get(input)?;
    let length = varint::get(input)?;
    let nodes = u64::from(limits.nodes.min(Symbol::LIMIT));
    let functions = u64::from(limits.functions);
    let function = |number: u64| {
        if number < functions {
            Ok(FuncId::from_u32(number as u32))
        } else {
            Err(CodecError::TooLarge("functions"))
        }
    };
    let node = |number: u64| {
        if number < nodes {
            Ok(Symbol::node(NodeId::from_u32(number as u32)))
        } else {
            Err(CodecError::TooLarge("nodes"))
        }
    };
    let open = (0..count(input, limits.open, "open activations")?)
        .map(|_| function(varint::get(input)?))
        .collect::<Result<_, _>>()?;
    // The number of rules is known only after the root.
    let items = (0..count(input, limits.symbols, "symbols")?)
        .map(|_| varint::get(input))
        .collect::<Result<Vec<_>, _>>()?;
    let (rules, symbols) = grammar(input, limits, function, node)?;
    if !input.is_empty() {
        return Err(CodecError::Trailing);
    }
    let root = items.into_iter().map(|item| {
        let number = item / ITEMS;
        match item % ITEMS {
            NODE => Ok(Root::Run(node(number)?)),
            RULE if number < rules.len() as u64 => {
                Ok(Root::Run(Symbol::rule(RuleId::from_u32(number as u32))))
            }
            ENTER => Ok(Root::Enter(function(number)?)),
            LEAVE if number == 0 => Ok(Root::Leave),
            _ => Err(CodecError::Malformed("an invalid item of the root")),
        }
    });
    let root = root.collect::<Result<_, _>>()?;
    finish(before, length, open, root, Grammar { rules, symbols })
}

/// Reads the rules and their symbols.
fn grammar(
    input: &mut &[u8],
    limits: &Limits,
    function: impl Fn(u64) -> Result<FuncId, CodecError>,
    node: impl Fn(u64) -> Result<Symbol, CodecError>,
) -> Result<(PrimaryMap<RuleId, Rule>, Vec<Symbol>), CodecError> {
    let length = count(input, limits.symbols.min(Symbol::LIMIT as usize), "rules")?;
    let mut rules: PrimaryMap<RuleId, Rule> = PrimaryMap::with_capacity(length);
    let mut start = 0;
    for _ in 0..length {
        let number = varint::get(input)?;
        let (kind, len) = match number % KINDS {
            SEQUENCE => (Kind::Sequence, number / KINDS),
            REPEAT if number == REPEAT => (Kind::Repeat(varint::get(input)?), 1),
            CALL => (Kind::Call(function(varint::get(input)?)?), number / KINDS),
            _ => return Err(CodecError::Malformed("a rule of an unknown kind")),
        };
        rules.push(Rule {
            kind,
            start: start as u32,
            len: len as u32,
        });
        if len > u64::from(u32::MAX) - start {
            return Err(CodecError::TooLarge("symbols"));
        }
        start += len;
    }
    let length = count(input, limits.symbols, "symbols")?;
    if length as u64 != start {
        return Err(CodecError::Malformed("rules that do not cover all symbols"));
    }
    let mut symbols = Vec::with_capacity(length);
    for (id, rule) in rules.iter() {
        for _ in 0..rule.len {
            let word = varint::get(input)?;
            let number = word >> 1;
            symbols.push(match word & 1 {
                0 => node(number)?,
                _ => match u64::from(id.as_u32()).checked_sub(number) {
                    Some(before) if number > 0 => Symbol::rule(RuleId::from_u32(before as u32)),
                    _ => return Err(CodecError::Malformed("a rule that names a later rule")),
                },
            });
        }
    }
    Ok((rules, symbols))
}

/// Reads the length of a list. It is at most the limit, and at most the number of remaining bytes.
fn count(input: &mut &[u8], limit: usize, what: &'static str) -> Result<usize, CodecError> {
    let count = varint::get_below(input, limit as u64 + 1, what)? as usize;
    if count <= input.len() {
        Ok(count)
    } else {
        Err(CodecError::Truncated)
    }
}
