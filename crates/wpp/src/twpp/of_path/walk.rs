//! Walks the expansion of a symbol.

use afterimage_ids::{FuncId, NodeId, RuleId};

use crate::{Grammar, Kind, Symbol};

/// Receives the events of a walk.
pub(super) trait Visitor {
    /// The error that stops the walk.
    type Error;

    /// Receives `times` executions of a node in succession.
    fn node(&mut self, node: NodeId, times: u64) -> Result<(), Self::Error>;

    /// Receives the beginning of a call. Returns the way to treat the call.
    fn call(&mut self, rule: RuleId, function: FuncId) -> Way;

    /// Receives the end of a call that the walk entered.
    fn called(&mut self, rule: RuleId) -> Result<(), Self::Error>;
}

/// The way to treat a call.
pub(super) enum Way {
    Into,
    Past,
}

/// A rule that is being walked.
struct Frame {
    rule: RuleId,
    /// The index of the next symbol among the grammar's symbols.
    next: u32,
    /// The index after the last symbol.
    end: u32,
    /// The number of times that the rule must still be walked after the current walk.
    again: u64,
}

/// Walks the expansion of a symbol, in order. The grammar must be sound. Memory is proportional to
/// the rules' depth.
pub(super) fn walk<V: Visitor>(
    grammar: &Grammar,
    symbol: Symbol,
    visitor: &mut V,
) -> Result<(), V::Error> {
    let mut frames = Vec::new();
    enter(grammar, symbol, visitor, &mut frames)?;
    while let Some(frame) = frames.last_mut() {
        if frame.next < frame.end {
            let symbol = grammar.symbols[frame.next as usize];
            frame.next += 1;
            enter(grammar, symbol, visitor, &mut frames)?;
        } else if frame.again > 0 {
            frame.again -= 1;
            frame.next = grammar.rules[frame.rule].start;
        } else {
            let rule = frame.rule;
            frames.pop();
            if let Kind::Call(_) = grammar.rules[rule].kind {
                visitor.called(rule)?;
            }
        }
    }
    Ok(())
}

#[inline]
fn enter<V: Visitor>(
    grammar: &Grammar,
    symbol: Symbol,
    visitor: &mut V,
    frames: &mut Vec<Frame>,
) -> Result<(), V::Error> {
    let Some(id) = symbol.as_rule() else {
        return symbol
            .as_node()
            .map_or(Ok(()), |node| visitor.node(node, 1));
    };
    let rule = &grammar.rules[id];
    let mut again = 0;
    match rule.kind {
        Kind::Sequence => {}
        Kind::Repeat(times) => {
            if let Some(node) = grammar.symbols[rule.start as usize].as_node() {
                return visitor.node(node, times);
            }
            again = times - 1;
        }
        Kind::Call(function) => match visitor.call(id, function) {
            Way::Into => {}
            Way::Past => return Ok(()),
        },
    }
    frames.push(Frame {
        rule: id,
        next: rule.start,
        end: rule.start + rule.len,
        again,
    });
    Ok(())
}
