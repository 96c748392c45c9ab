//! Checks whether a segment is sound.

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

use super::{CheckError, tally};
use crate::{Grammar, Kind, Node, Root, Rule, Segment, Symbol};

/// Facts about the rules.
pub(super) struct Rules {
    /// The number of blocks that each rule executes.
    pub(super) lengths: PrimaryMap<RuleId, u64>,
    /// Whether each rule is an activation or contains one.
    pub(super) calls: PrimaryMap<RuleId, bool>,
    /// The function whose activation executes a rule, or `None` if the rule represents only whole
    /// activations.
    owners: PrimaryMap<RuleId, Option<FuncId>>,
}

/// Facts about the root.
#[derive(Default)]
pub(super) struct Items {
    /// The number of blocks executed before each item, and in total.
    pub(super) starts: Vec<u64>,
    /// The number of activations open before each item, and at the end.
    pub(super) depths: Vec<u32>,
    /// The function of the innermost activation before each item, and at the end.
    pub(super) functions: Vec<Option<FuncId>>,
}

impl Items {
    fn push(&mut self, length: u64, stack: &[FuncId]) {
        self.starts.push(length);
        self.depths.push(stack.len() as u32);
        self.functions.push(stack.last().copied());
    }
}

/// Checks the rules and measures them.
pub(super) fn rules(
    grammar: &Grammar,
    nodes: &PrimaryMap<NodeId, Node>,
) -> Result<Rules, CheckError> {
    let mut lengths = PrimaryMap::with_capacity(grammar.rules.len());
    let mut calls = PrimaryMap::with_capacity(grammar.rules.len());
    let mut owners = PrimaryMap::with_capacity(grammar.rules.len());
    let mut start = 0;
    for (id, &rule) in grammar.rules.iter() {
        start = symbols(grammar, id, rule, start)?;
        let mut length: u64 = 0;
        let mut owner = None;
        let mut any_calls = matches!(rule.kind, Kind::Call(_));
        for &symbol in grammar.symbols_of(id) {
            let (more, of) = match symbol.as_rule() {
                Some(names) if names >= id => {
                    return Err(CheckError::Forward { rule: id, names });
                }
                Some(child) => {
                    any_calls |= calls[child];
                    (lengths[child], owners[child])
                }
                None => terminal(symbol, nodes)?,
            };
            length = length.checked_add(more).ok_or(CheckError::LongRule(id))?;
            owner = same(id, owner, of)?;
        }
        let (length, owner) = match rule.kind {
            Kind::Sequence => (length, owner),
            Kind::Repeat(times) => {
                let length = length.checked_mul(times).ok_or(CheckError::LongRule(id))?;
                (length, owner)
            }
            Kind::Call(function) => {
                same(id, owner, Some(function))?;
                (length, None)
            }
        };
        lengths.push(length);
        calls.push(any_calls);
        owners.push(owner);
    }
    if start < grammar.symbols.len() {
        return Err(CheckError::LeftOver);
    }
    Ok(Rules {
        lengths,
        calls,
        owners,
    })
}

/// Checks the root and measures it.
pub(super) fn root(
    segment: &Segment,
    nodes: &PrimaryMap<NodeId, Node>,
    rules: &Rules,
) -> Result<Items, CheckError> {
    let mut stack = segment.open.clone();
    let mut length: u64 = 0;
    let mut items = Items::default();
    let mut begun = 0;
    for (item, root) in segment.root.iter().enumerate() {
        items.push(length, &stack);
        match *root {
            Root::Run(symbol) => {
                let (more, of) = match symbol.as_rule() {
                    Some(rule) => match rules.lengths.get(rule) {
                        Some(&length) => (length, rules.owners[rule]),
                        None => return Err(CheckError::UnknownRule(rule)),
                    },
                    None => terminal(symbol, nodes)?,
                };
                if let Some(function) = of
                    && stack.last() != Some(&function)
                {
                    return Err(CheckError::Foreign { item, function });
                }
                length = length.checked_add(more).ok_or(CheckError::LongRoot)?;
            }
            Root::Enter(function) => {
                stack.push(function);
                begun += 1;
            }
            Root::Leave if begun > 0 => return Err(CheckError::LeaveBegun(item)),
            Root::Leave => {
                stack.pop().ok_or(CheckError::LeaveNone(item))?;
            }
        }
    }
    items.push(length, &stack);
    if length != segment.length {
        return Err(CheckError::Length {
            length: segment.length,
            found: length,
        });
    }
    segment
        .before
        .checked_add(length)
        .ok_or(CheckError::End)
        .map(|_| items)
}

/// Compares the segment's counts with the counts that follow from the rules, which must be sound.
pub(super) fn counts(segment: &Segment) -> Result<(), CheckError> {
    let tallies = tally(&segment.grammar, &segment.root).ok_or(CheckError::Uncountable)?;
    if tallies.0 != segment.node_counts {
        return Err(CheckError::NodeCounts);
    }
    if tallies.1 != segment.call_counts {
        return Err(CheckError::CallCounts);
    }
    Ok(())
}

/// Checks that a rule's symbols follow the symbols of the previous rule, and that their number
/// suits the rule's kind. Returns the end of the symbols.
fn symbols(grammar: &Grammar, id: RuleId, rule: Rule, start: usize) -> Result<usize, CheckError> {
    if rule.start as usize != start {
        return Err(CheckError::Gap(id));
    }
    if rule.len as usize > grammar.symbols.len() - start {
        return Err(CheckError::Beyond(id));
    }
    match rule.kind {
        Kind::Sequence if rule.len < 2 => Err(CheckError::ShortSequence(id)),
        Kind::Repeat(_) if rule.len != 1 => Err(CheckError::RepeatedSymbols(id)),
        Kind::Repeat(times) if times < 2 => Err(CheckError::FewTimes(id)),
        _ => Ok(start + rule.len as usize),
    }
}

/// Returns the length of a node, and the function whose activations execute it. A left-out stretch
/// may occur in any activation.
fn terminal(
    symbol: Symbol,
    nodes: &PrimaryMap<NodeId, Node>,
) -> Result<(u64, Option<FuncId>), CheckError> {
    let id = NodeId::from_u32(symbol.bits() >> 1);
    let node = nodes.get(id).ok_or(CheckError::UnknownNode(id))?;
    match node.length() {
        0 => Err(CheckError::EmptyNode(id)),
        length => Ok((length, (node.left_out == 0).then_some(node.function))),
    }
}

/// Returns the function if both agree, or the only function that is known.
fn same(
    rule: RuleId,
    one: Option<FuncId>,
    other: Option<FuncId>,
) -> Result<Option<FuncId>, CheckError> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(CheckError::Mixed { rule, one, other }),
        _ => Ok(one.or(other)),
    }
}
