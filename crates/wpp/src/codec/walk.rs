//! Walks over a segment. Visits the definition of a named rule at its first occurrence, and of any
//! other rule at every occurrence.

use afterimage_ids::{RuleId, SecondaryMap};

use super::plan::{Form, Plans, plan_of};
use super::step::Step;
use crate::{Grammar, Kind, Root, Rule, Segment, Symbol};

/// Calls `visit` for each step of a segment, including the end. Time: linear in the visited
/// symbols. The stack of open rules is on the heap.
pub(super) fn walk(segment: &Segment, plans: &Plans, mut visit: impl FnMut(Step)) {
    let mut walk = Walk::new(segment, plans);
    for &item in &segment.root {
        match item {
            Root::Run(symbol) => walk.run(symbol, &mut visit),
            Root::Enter(function) => visit(Step::Enter(function)),
            Root::Leave => visit(Step::Leave),
        }
    }
    visit(Step::End);
}

struct Walk<'a> {
    grammar: &'a Grammar,
    plans: &'a Plans,
    /// The numbers of the named rules that have ended, plus 1.
    numbers: SecondaryMap<RuleId, u32>,
    ended: u32,
    stack: Vec<Open>,
}

/// A rule that is being written.
struct Open {
    rule: RuleId,
    /// The range of the rule's remaining symbols.
    from: u32,
    to: u32,
    /// The number of remaining repetitions of its symbols.
    more: u64,
}

impl<'a> Walk<'a> {
    fn new(segment: &'a Segment, plans: &'a Plans) -> Self {
        let grammar = &segment.grammar;
        let numbers = SecondaryMap::with_capacity(grammar.rules.len());
        Self {
            grammar,
            plans,
            numbers,
            ended: 0,
            stack: Vec::new(),
        }
    }

    fn run(&mut self, symbol: Symbol, visit: &mut impl FnMut(Step)) {
        self.symbol(symbol, visit);
        while let Some(open) = self.stack.last_mut() {
            let rule = open.rule;
            if open.from < open.to {
                let symbol = self.grammar.symbols[open.from as usize];
                open.from += 1;
                self.symbol(symbol, visit);
            } else if open.more > 0 {
                open.more -= 1;
                open.from = self.grammar.rules[rule].start;
            } else {
                self.stack.pop();
                self.end(rule, visit);
            }
        }
    }

    fn symbol(&mut self, symbol: Symbol, visit: &mut impl FnMut(Step)) {
        if let Some(node) = symbol.as_node() {
            return visit(Step::Node(node));
        }
        let Some(rule) = symbol.as_rule() else { return };
        if let Some(number) = self.numbers[rule].checked_sub(1) {
            return visit(Step::Again(number));
        }
        let Rule { kind, start, len } = self.grammar.rules[rule];
        let form = self.plans[rule].form;
        match kind {
            Kind::Call(function) => visit(Step::Call(function)),
            Kind::Sequence if form == Form::Named => visit(Step::Sequence),
            _ => {}
        }
        let more = match kind {
            Kind::Repeat(times) if form == Form::Unrolled => times - 1,
            _ => 0,
        };
        self.stack.push(Open {
            rule,
            from: start,
            to: start + len,
            more,
        });
    }

    fn end(&mut self, rule: RuleId, visit: &mut impl FnMut(Step)) {
        match (self.plans[rule].form, self.grammar.rules[rule].kind) {
            (Form::Named, _) => {
                visit(Step::End);
                self.ended += 1;
                self.numbers[rule] = self.ended;
            }
            (Form::Dissolved, Kind::Repeat(times)) => {
                let symbols = self
                    .grammar
                    .symbols_of(rule)
                    .iter()
                    .map(|&symbol| plan_of(symbol, self.plans).width)
                    .sum();
                visit(Step::Loop { symbols, times });
            }
            (Form::Dissolved | Form::Unrolled, _) => {}
        }
    }
}
