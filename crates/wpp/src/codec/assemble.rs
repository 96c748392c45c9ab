//! Assembles a segment from its steps.

use afterimage_ids::FuncId;

use super::plan::MOST_STEPS;
use super::step::Step;
use super::{CodecError, Limits};
use crate::builder::lists::Lists;
use crate::builder::tidy::tidy;
use crate::consing::Consing;
use crate::{Grammar, Root, Symbol};

/// Converts steps to rules. Sequences that the writer dissolved are folded again, in the same way
/// as in the builder. So a repetition always yields the same rule, even if no step marks it.
pub(super) struct Assembler<'a> {
    limits: &'a Limits,
    /// The number of steps that may still follow.
    steps: u64,
    rules: Consing,
    /// The lists in which sequences are folded. They are empty between two steps.
    lists: Lists,
    root: Vec<Root>,
    /// The rules that have ended, by number.
    ended: Vec<Symbol>,
    /// For each rule in progress, its function if it is a call, and the start of its symbols in
    /// `symbols`.
    begun: Vec<(Option<FuncId>, usize)>,
    /// The symbols of the rules in progress, and the root's symbols since the last `Enter` or
    /// `Leave`.
    symbols: Vec<Symbol>,
    /// The number of open activations.
    open: usize,
}

impl<'a> Assembler<'a> {
    /// Creates an assembler for a segment that begins with `open` open activations.
    pub(super) fn new(limits: &'a Limits, open: usize) -> Self {
        Self {
            limits,
            steps: (limits.symbols as u64)
                .saturating_mul(8)
                .saturating_add(MOST_STEPS)
                .min(1 << 30),
            rules: Consing::default(),
            lists: Lists::default(),
            root: Vec::new(),
            ended: Vec::new(),
            begun: Vec::new(),
            symbols: Vec::new(),
            open,
        }
    }

    /// Processes a step. Returns `false` after the last step.
    pub(super) fn step(&mut self, step: Step) -> Result<bool, CodecError> {
        self.steps = self
            .steps
            .checked_sub(1)
            .ok_or(CodecError::TooLarge("steps"))?;
        match step {
            Step::Node(node) => self.symbols.push(Symbol::node(node)),
            Step::Again(number) => {
                let rule = self.ended.get(number as usize);
                self.symbols
                    .push(*rule.ok_or(CodecError::Malformed("a rule before its definition"))?);
            }
            Step::Sequence => self.begun.push((None, self.symbols.len())),
            Step::Call(function) => self.begun.push((Some(function), self.symbols.len())),
            Step::Loop { symbols, times } => self.repeat(symbols, times)?,
            Step::Enter(function) => self.mark(Some(function))?,
            Step::Leave => self.mark(None)?,
            Step::End => match self.begun.pop() {
                Some((function, from)) => self.end(function, from)?,
                None => {
                    self.flush()?;
                    return Ok(false);
                }
            },
        }
        Ok(true)
    }

    /// Returns the assembled segment.
    pub(super) fn finish(mut self) -> (Vec<Root>, Grammar) {
        let grammar = tidy(self.rules.grammar(), &mut self.root);
        (self.root, grammar)
    }

    fn end(&mut self, function: Option<FuncId>, from: usize) -> Result<(), CodecError> {
        self.fold(from);
        let rule = match function {
            Some(function) => self.lists.close_call(function, &mut self.rules),
            None => self
                .close()
                .ok_or(CodecError::Malformed("an empty sequence"))?,
        };
        self.made(rule)?;
        self.ended.push(rule);
        Ok(())
    }

    fn repeat(&mut self, symbols: u32, times: u64) -> Result<(), CodecError> {
        let first = self.begun.last().map_or(0, |&(_, from)| from);
        let from = self
            .symbols
            .len()
            .checked_sub(symbols as usize)
            .filter(|&from| from >= first && symbols > 0);
        let from = from.ok_or(CodecError::Malformed("a loop longer than its sequence"))?;
        if times < 2 {
            return Err(CodecError::Malformed(
                "a loop that is executed less than twice",
            ));
        }
        self.fold(from);
        let body = self.close().ok_or(CodecError::Malformed("an empty loop"))?;
        let rule = self.rules.repeat(body, times);
        self.made(rule)
    }

    /// Marks the beginning or the end of an activation that is not entirely in the segment.
    fn mark(&mut self, function: Option<FuncId>) -> Result<(), CodecError> {
        if !self.begun.is_empty() {
            return Err(CodecError::Malformed("an open activation within a rule"));
        }
        self.flush()?;
        self.open = match function {
            Some(_) => self.open + 1,
            None => self.open.checked_sub(1).ok_or(CodecError::Malformed(
                "the end of an activation that is not open",
            ))?,
        };
        self.item(function.map_or(Root::Leave, Root::Enter))
    }

    /// Combines the root's symbols since the last mark into one symbol.
    fn flush(&mut self) -> Result<(), CodecError> {
        self.fold(0);
        match self.close() {
            Some(symbol) => {
                self.check()?;
                self.item(Root::Run(symbol))
            }
            None => Ok(()),
        }
    }

    fn item(&mut self, item: Root) -> Result<(), CodecError> {
        if self.root.len() >= self.limits.symbols {
            return Err(CodecError::TooLarge("root items"));
        }
        self.root.push(item);
        Ok(())
    }

    /// Moves the symbols from `from` on into a list. The caller must close the list.
    fn fold(&mut self, from: usize) {
        self.lists.open();
        for &symbol in &self.symbols[from..] {
            self.lists.push(symbol, 1, &mut self.rules);
        }
        self.symbols.truncate(from);
    }

    fn close(&mut self) -> Option<Symbol> {
        let (symbol, times) = self.lists.close(&mut self.rules)?;
        Some(self.rules.repeat(symbol, times))
    }

    /// Appends a finished rule as the next symbol.
    fn made(&mut self, rule: Symbol) -> Result<(), CodecError> {
        self.check()?;
        self.symbols.push(rule);
        Ok(())
    }

    fn check(&self) -> Result<(), CodecError> {
        if self.rules.size() > self.limits.symbols.min(1 << 30) {
            Err(CodecError::TooLarge("symbols"))
        } else {
            Ok(())
        }
    }
}
