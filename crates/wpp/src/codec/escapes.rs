//! Codes a step that no table has predicted because it is new in its context.

use afterimage_ids::{FuncId, NodeId};

use super::CodecError;
use super::coder::Coder;
use super::logistic::Chance;
use super::numbers::{Gamma, Tree};
use super::step::Step;

const EVEN: Chance = Chance::new(1 << 15, 1);

/// Codes a step's kind, then its number.
pub(super) struct Escapes {
    functions_below: u32,
    /// For each place, the chances of the three decisions that code a step's kind, as a binary
    /// tree.
    kinds: Vec<[Chance; 8]>,
    /// The chance that the node is executed for the first time in the segment.
    fresh: Chance,
    /// The number of a node that is executed for the first time. Nodes are numbered in the order of
    /// their first execution, so this is often the next number.
    fresh_node: Gamma,
    next_fresh: u32,
    seen: Vec<bool>,
    nodes: Tree,
    functions: Tree,
    /// The number of rules that have ended since the named rule.
    again: Gamma,
    symbols: Gamma,
}

impl Escapes {
    pub(super) const PLACES: usize = 16;

    pub(super) fn new(nodes_below: u32, functions_below: u32) -> Self {
        Self {
            functions_below,
            kinds: vec![[EVEN; 8]; Self::PLACES],
            fresh: EVEN,
            fresh_node: Gamma::new(),
            next_fresh: 0,
            seen: vec![false; nodes_below as usize],
            nodes: Tree::new(nodes_below),
            functions: Tree::new(functions_below),
            again: Gamma::new(),
            symbols: Gamma::new(),
        }
    }

    /// Codes a step, or a loop without its count. `place` selects the chances for the kind, and is
    /// below [`Self::PLACES`]. `symbols` counts the innermost rule's symbols so far, and `ended`
    /// counts the rules that have ended.
    pub(super) fn code(
        &mut self,
        coder: &mut impl Coder,
        given: Step,
        place: usize,
        symbols: u32,
        ended: usize,
    ) -> Result<Step, CodecError> {
        let kinds = &mut self.kinds[place];
        let kind = kind(given);
        let mut tree = 1;
        for at in (0..3).rev() {
            tree = tree << 1 | usize::from(kinds[tree].code(coder, kind >> at & 1 == 1));
        }
        Ok(match tree & 7 {
            0 => Step::Node(self.node(coder, given)?),
            1 => Step::Again(self.again(coder, given, ended)?),
            2 => Step::Sequence,
            3 => Step::Loop {
                symbols: self.symbols(coder, given, symbols)?,
                times: 0,
            },
            4 => Step::Call(self.function(coder, given)?),
            5 => Step::End,
            6 => Step::Enter(self.function(coder, given)?),
            _ => Step::Leave,
        })
    }

    fn node(&mut self, coder: &mut impl Coder, given: Step) -> Result<NodeId, CodecError> {
        let given = if let Step::Node(node) = given {
            node.as_u32()
        } else {
            0
        };
        let is_fresh = !self.seen.get(given as usize).copied().unwrap_or(false);
        let node = if self.fresh.code(coder, is_fresh) {
            let ahead = given.wrapping_sub(self.next_fresh);
            let ahead = self.fresh_node.code_signed(coder, ahead);
            self.next_fresh.wrapping_add(ahead)
        } else {
            self.nodes.code(coder, given)
        };
        let seen = self
            .seen
            .get_mut(node as usize)
            .ok_or(CodecError::Malformed("a node that does not exist"))?;
        if !std::mem::replace(seen, true) {
            self.next_fresh = node + 1;
        }
        Ok(NodeId::from_u32(node))
    }

    fn again(
        &mut self,
        coder: &mut impl Coder,
        given: Step,
        ended: usize,
    ) -> Result<u32, CodecError> {
        let given = if let Step::Again(number) = given {
            number.into()
        } else {
            0
        };
        let ago = self
            .again
            .code(coder, (ended as u64).wrapping_sub(1).wrapping_sub(given));
        let number = ago.and_then(|ago| (ended as u64).checked_sub(1)?.checked_sub(ago));
        number
            .map(|number| number as u32)
            .ok_or(CodecError::Malformed("a rule before its definition"))
    }

    fn symbols(
        &mut self,
        coder: &mut impl Coder,
        given: Step,
        most: u32,
    ) -> Result<u32, CodecError> {
        let given = if let Step::Loop { symbols, .. } = given {
            symbols
        } else {
            0
        };
        let symbols = self
            .symbols
            .code(coder, given.into())
            .filter(|&symbols| symbols > 0 && symbols <= most.into());
        symbols
            .map(|symbols| symbols as u32)
            .ok_or(CodecError::Malformed("a loop longer than its sequence"))
    }

    fn function(&mut self, coder: &mut impl Coder, given: Step) -> Result<FuncId, CodecError> {
        let given = if let Step::Call(function) | Step::Enter(function) = given {
            function.as_u32()
        } else {
            0
        };
        let function = self.functions.code(coder, given);
        if function < self.functions_below {
            Ok(FuncId::from_u32(function))
        } else {
            Err(CodecError::Malformed("a function that does not exist"))
        }
    }
}

fn kind(step: Step) -> usize {
    match step {
        Step::Node(_) => 0,
        Step::Again(_) => 1,
        Step::Sequence => 2,
        Step::Loop { .. } => 3,
        Step::Call(_) => 4,
        Step::End => 5,
        Step::Enter(_) => 6,
        Step::Leave => 7,
    }
}
