//! Finds the handlers of exceptions, and stores exceptions that may still be referenced.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::{BlockKind, EdgeKind};
use wasmparser::{Catch, Operator};

use crate::MachineError;
use crate::code::NodeEnd;
use crate::machine::{Bits, Machine, Waiting};
use crate::observe::Observer;

/// The minimum number of exceptions that can be added between two searches for unreachable
/// exceptions.
const FEW: usize = 1 << 10;

/// An exception that was caught by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The index of the exception's tag.
    pub tag: u32,
    /// The values that the exception carries.
    pub values: Vec<Bits>,
}

/// The exceptions that were caught by reference, indexed by their references. References are
/// numbers from 1, and are never reused.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    pub kept: HashMap<u64, Exception>,
    pub made: u64,
    /// The number of exceptions above which the next search for unreachable exceptions takes place.
    pub room: usize,
}

impl Exceptions {
    /// Keeps an exception and returns its reference.
    fn keep(&mut self, exception: Exception) -> u64 {
        self.made += 1;
        self.kept.insert(self.made, exception);
        self.made
    }

    /// Drops the exceptions to which `roots` cannot refer, directly or through other exceptions.
    /// The types of values are unknown, so every value that could be a reference counts as a
    /// reference. Time: O(roots + exceptions).
    fn forget(&mut self, roots: impl Iterator<Item = u64>) {
        let mut reached = HashMap::new();
        let mut found = Vec::new();
        let mut count = 0;
        for root in roots {
            count += 1;
            found.push(root);
            while let Some(reference) = found.pop() {
                if let Some(exception) = self.kept.remove(&reference) {
                    found.extend(exception.values.iter().map(|&(low, _)| low));
                    reached.insert(reference, exception);
                }
            }
        }
        self.room = 2 * reached.len() + FEW.max(count);
        self.kept = reached;
    }
}

/// The handler of an exception.
struct Handler {
    block: BlockId,
    /// Whether the handler is the function's own label. If so, the function returns the caught
    /// values.
    returns: bool,
    /// The first variable for the caught values.
    first: u32,
    /// Whether the handler takes the exception's values.
    values: bool,
    /// Whether the handler takes a reference to the exception.
    reference: bool,
    /// Whether the function has vectors.
    wide: bool,
}

impl Machine<'_> {
    /// Rethrows an exception.
    pub(crate) fn rethrow<O: Observer>(
        &mut self,
        reference: u64,
        block: BlockId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(exception) = self.exceptions.kept.get(&reference) else {
            return Err(self.diverged("an exception that was never thrown is thrown again"));
        };
        self.values.clone_from(&exception.values);
        let tag = exception.tag;
        self.unwind(tag, block, observer)
    }

    /// Finds the handler of an exception that was thrown in this block of the innermost activation.
    /// The exception's values are in `values`.
    pub(crate) fn unwind<O: Observer>(
        &mut self,
        tag: u32,
        block: BlockId,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let mut block = block;
        while let Some(&frame) = self.frames.last() {
            if let Some(handler) = self.handler(frame.function, block, tag)? {
                return self.catch(tag, &handler, observer);
            }
            self.frames.pop();
            observer.leave(None);
            if let Some(caller) = self.frames.last() {
                let NodeEnd::Call { block: call, .. } = self.codes[caller.call].end else {
                    return Err(self.diverged("an exception reaches no call"));
                };
                block = call;
            }
        }
        self.waiting = Waiting::Nothing;
        Ok(())
    }

    /// Catches the exception in the innermost activation.
    fn catch<O: Observer>(
        &mut self,
        tag: u32,
        handler: &Handler,
        observer: &mut O,
    ) -> Result<(), MachineError> {
        let Some(&frame) = self.frames.last() else {
            return Err(self.diverged("nothing catches an exception"));
        };
        let reference = handler.reference.then(|| {
            let values = self.values.clone();
            self.exceptions.keep(Exception { tag, values })
        });
        if !handler.values {
            self.values.clear();
        }
        let carried = self.values.len() as u32;
        self.values
            .extend(reference.map(|reference| (reference, 0)));
        let given = self.values.len() as u32;
        self.write_values(frame.base + handler.first as usize, handler.wide);
        observer.caught(handler.first, carried);
        if self.exceptions.kept.len() > self.exceptions.room {
            self.forget_exceptions();
        }
        if handler.returns {
            observer.passes_on(frame.function);
            self.return_top(frame, handler.first + given, handler.wide);
            return self.deliver(false, observer);
        }
        self.waiting = Waiting::Block(handler.block);
        Ok(())
    }

    fn forget_exceptions(&mut self) {
        let top = self
            .frames
            .last()
            .map_or(0, |frame| frame.base + self.variables(frame.function));
        let registers = self.registers.iter().take(top).copied();
        let tables = self.state.tables.iter();
        let elements = tables.flat_map(|table| table.elements.iter().copied());
        let globals = self.state.globals.iter().map(|&(low, _)| low);
        self.exceptions
            .forget(registers.chain(elements).chain(globals));
    }

    /// Returns the handler of a function for an exception that is thrown in a block or by the
    /// block's call.
    fn handler(
        &mut self,
        function: FuncId,
        block: BlockId,
        tag: u32,
    ) -> Result<Option<Handler>, MachineError> {
        let body = self.body(function)?;
        let cfg = &body.function.cfg;
        let thrown = |kind| matches!(kind, EdgeKind::Throw | EdgeKind::CallThrow);
        let mut ways = cfg.graph.out_edges(block).iter();
        let mut way = ways.find(|&&edge| thrown(cfg.edges[edge].kind));
        while let Some(&edge) = way {
            let dispatch = cfg.graph.to(edge);
            let BlockKind::Dispatch(Some(op)) = cfg.blocks[dispatch].kind else {
                return Ok(None);
            };
            let Some(Operator::TryTable { try_table }) = body.operators.get(op.as_u32() as usize)
            else {
                return Err(MachineError::Unsupported("a handler without its try_table"));
            };
            way = None;
            for edge in cfg.graph.out_edges(dispatch) {
                let EdgeKind::Catch(clause) = cfg.edges[*edge].kind else {
                    way = Some(edge);
                    continue;
                };
                let (fits, values, reference) = match try_table.catches.get(clause as usize) {
                    Some(Catch::One { tag: t, .. }) => (*t == tag, true, false),
                    Some(Catch::OneRef { tag: t, .. }) => (*t == tag, true, true),
                    Some(Catch::All { .. }) => (true, false, false),
                    Some(Catch::AllRef { .. }) => (true, false, true),
                    None => (false, false, false),
                };
                if fits {
                    let carried = body.slots.carried.get(edge);
                    let block = cfg.graph.to(*edge);
                    return Ok(Some(Handler {
                        block,
                        returns: block == cfg.graph.exit(),
                        first: body
                            .slots
                            .of_slot(carried.map_or(0, |carried| carried.base)),
                        values,
                        reference,
                        wide: body.wide,
                    }));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(value: u64) -> Exception {
        Exception {
            tag: 0,
            values: vec![(value, 0)],
        }
    }

    #[test]
    fn what_a_root_reaches_is_kept_and_the_rest_is_forgotten() {
        let mut exceptions = Exceptions::default();
        // A chain in which each exception carries the previous exception, and an unreachable cycle
        // of two exceptions.
        let chain = Vec::from_iter((0..5).map(|before| exceptions.keep(exception(before))));
        assert_eq!(chain, [1, 2, 3, 4, 5]);
        exceptions.keep(exception(7));
        exceptions.keep(exception(6));
        exceptions.forget([0, 4, 4, u64::MAX].into_iter());
        let mut kept = Vec::from_iter(exceptions.kept.keys().copied());
        kept.sort_unstable();
        assert_eq!(kept, [1, 2, 3, 4]);
        assert_eq!(
            exceptions.keep(exception(0)),
            8,
            "no reference is used twice"
        );
    }

    #[test]
    fn room_is_bounded_by_roots_and_what_they_reach() {
        let mut exceptions = Exceptions::default();
        for _ in 0..3 {
            for _ in 0..10 * FEW {
                exceptions.keep(exception(0));
            }
            exceptions.forget(std::iter::repeat_n(1, 10));
            assert!(exceptions.kept.len() == 1 && exceptions.room <= FEW + 2);
        }
    }
}
