//! The walk over a segment that visits the definition of every rule where the rule occurs first.

use afterimage_ids::{PrimaryMap, RuleId, SecondaryMap};

use super::step::Step;
use crate::{Grammar, Kind, Root, Rule, Segment, Symbol};

/// Calls `visit` for each step of a segment, the end included. Linear in what is visited; the depth is on the heap.
pub(super) fn walk(segment: &Segment, mut visit: impl FnMut(Step)) {
    let mut walk = Walk::new(segment);
    for &item in &segment.root {
        match item {
            Root::Run(symbol) => walk.run(symbol, &mut visit),
            Root::Enter(function) => visit(Step::Enter(function)),
            Root::Leave => visit(Step::Leave),
        }
    }
    visit(Step::End);
}

/// A sequence of no more steps is never named: its terminals are predicted better than its number would be.
const MOST_STEPS: u32 = 256;
/// A repetition of no more steps is unrolled.
const MOST_UNROLLED: u64 = 4;

/// What is done where a rule occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Its definition stands at its first occurrence, its number elsewhere.
    Named,
    /// Its symbols stand in its place; for a `Repeat` followed by a step that says so.
    Dissolved,
    /// Its symbols stand in its place as often as they are executed.
    Unrolled,
}

#[derive(Clone, Copy)]
struct Plan {
    form: Form,
    /// How many symbols it is for the reader.
    width: u32,
    /// How many steps are made of it where it is not named.
    steps: u32,
}

impl Plan {
    const ONE: Self = Self { form: Form::Named, width: 1, steps: 1 };
}

struct Walk<'a> {
    grammar: &'a Grammar,
    plans: PrimaryMap<RuleId, Plan>,
    /// The numbers of the rules that were ended, plus 1.
    numbers: SecondaryMap<RuleId, u32>,
    ended: u32,
    stack: Vec<Open>,
}

/// A rule that is being written.
struct Open {
    rule: RuleId,
    /// The range of its symbols that are left.
    from: u32,
    to: u32,
    /// How often all of them are still to be written after that.
    more: u64,
}

impl<'a> Walk<'a> {
    fn new(segment: &'a Segment) -> Self {
        let grammar = &segment.grammar;
        let numbers = SecondaryMap::with_capacity(grammar.rules.len());
        Self { grammar, plans: plan(segment), numbers, ended: 0, stack: Vec::new() }
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
        self.stack.push(Open { rule, from: start, to: start + len, more });
    }

    fn end(&mut self, rule: RuleId, visit: &mut impl FnMut(Step)) {
        match (self.plans[rule].form, self.grammar.rules[rule].kind) {
            (Form::Named, _) => {
                visit(Step::End);
                self.ended += 1;
                self.numbers[rule] = self.ended;
            }
            (Form::Dissolved, Kind::Repeat(times)) => {
                let symbols = self.grammar.symbols_of(rule).iter().map(|&symbol| plan_of(symbol, &self.plans).width).sum();
                visit(Step::Loop { symbols, times });
            }
            (Form::Dissolved | Form::Unrolled, _) => {}
        }
    }
}

fn plan_of(symbol: Symbol, plans: &PrimaryMap<RuleId, Plan>) -> Plan {
    match symbol.as_rule() {
        Some(rule) if plans[rule].form != Form::Named => plans[rule],
        _ => Plan::ONE,
    }
}

/// Decides for each rule.
fn plan(segment: &Segment) -> PrimaryMap<RuleId, Plan> {
    let grammar = &segment.grammar;
    let uses = uses(segment);
    let mut plans: PrimaryMap<RuleId, Plan> = PrimaryMap::with_capacity(grammar.rules.len());
    for (id, rule) in &grammar.rules {
        let (mut width, mut steps) = (0u32, 0u32);
        for &symbol in grammar.symbols_of(id) {
            let plan = plan_of(symbol, &plans);
            width = width.saturating_add(plan.width);
            steps = steps.saturating_add(plan.steps);
        }
        plans.push(match rule.kind {
            Kind::Sequence if uses[id] <= 1 || steps <= MOST_STEPS => Plan { form: Form::Dissolved, width, steps },
            Kind::Repeat(times) if u64::from(steps).saturating_mul(times) <= MOST_UNROLLED => {
                Plan { form: Form::Unrolled, width: width * times as u32, steps: steps * times as u32 }
            }
            Kind::Repeat(_) => Plan { form: Form::Dissolved, width: 1, steps: steps.saturating_add(1) },
            Kind::Sequence | Kind::Call(_) => Plan { form: Form::Named, width, steps },
        });
    }
    plans
}

/// How often each rule is written if all sequences are named; 2 means more.
fn uses(segment: &Segment) -> PrimaryMap<RuleId, u8> {
    let grammar = &segment.grammar;
    let mut uses: PrimaryMap<RuleId, u8> = grammar.rules.values().map(|_| 0).collect();
    for item in &segment.root {
        if let Root::Run(symbol) = item
            && let Some(rule) = symbol.as_rule()
        {
            uses[rule] = (uses[rule] + 1).min(2);
        }
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let each = match rule.kind {
            Kind::Repeat(_) => uses[id],
            Kind::Sequence | Kind::Call(_) => uses[id].min(1),
        };
        for child in grammar.symbols_of(id).iter().filter_map(|symbol| symbol.as_rule()) {
            uses[child] = (uses[child] + each).min(2);
        }
    }
    uses
}
