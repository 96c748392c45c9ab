//! Counts the occurrences of a pattern, rule by rule.

use afterimage_ids::{NodeId, PrimaryMap, RuleId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Pattern;
use super::automaton::{Automaton, State};
use crate::measures::Measured;
use crate::{Kind, Node, Rule, Symbol};

/// A segment in which a pattern is searched for.
pub(super) struct Search<'a> {
    pub(super) measured: &'a Measured,
    pub(super) nodes: &'a PrimaryMap<NodeId, Node>,
    pattern: &'a Pattern,
    /// The rules that execute code of the pattern's functions, directly or in a call. Other rules
    /// match nothing.
    concerned: Vec<bool>,
}

impl<'a> Search<'a> {
    /// Prepares the search in a segment. Time: linear in the grammar.
    pub(super) fn new(
        measured: &'a Measured,
        nodes: &'a PrimaryMap<NodeId, Node>,
        pattern: &'a Pattern,
    ) -> Self {
        let grammar = &measured.segment.grammar;
        let mut search = Self {
            measured,
            nodes,
            pattern,
            concerned: Vec::with_capacity(grammar.rules.len()),
        };
        for id in grammar.rules.keys() {
            let mut symbols = grammar.symbols_of(id).iter();
            let any = symbols.any(|&symbol| search.concerns(symbol));
            search.concerned.push(any);
        }
        search
    }

    fn concerns(&self, symbol: Symbol) -> bool {
        match symbol.as_rule() {
            Some(rule) => self.concerned[rule.as_u32() as usize],
            None => {
                let node = symbol.as_node().and_then(|node| self.nodes.get(node));
                node.is_some_and(|node| self.pattern.names(node.function))
            }
        }
    }

    pub(super) fn rule(&self, rule: RuleId) -> Rule {
        self.measured.segment.grammar.rules[rule]
    }

    /// Returns the number of blocks that a symbol executes.
    pub(super) fn length(&self, symbol: Symbol) -> u64 {
        match symbol.as_rule() {
            Some(rule) => self.measured.layout.length(rule),
            None => {
                let node = symbol.as_node().and_then(|node| self.nodes.get(node));
                node.map_or(0, Node::length)
            }
        }
    }

    pub(super) fn symbol(&self, at: u32) -> Symbol {
        self.measured.segment.grammar.symbols[at as usize]
    }
}

/// The state after a symbol, and the number of occurrences that end in the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) state: State,
    pub(super) count: u64,
}

/// Known outcomes for the symbols of a segment.
///
/// Counts fit in 64 bits, because they are at most the number of executed blocks.
pub(super) struct Counting<'s, 'p> {
    pub(super) search: &'s Search<'s>,
    pub(super) automaton: &'s mut Automaton<'p>,
    /// Outcomes by symbol and state. For a call, the state is the callee's initial state.
    known: HashMap<(Symbol, State), Outcome, FxBuildHasher>,
}

/// A rule in progress.
struct Frame {
    symbol: Symbol,
    rule: Rule,
    /// The state at the beginning.
    from: State,
    state: State,
    count: u64,
    next: u32,
    /// For a repetition, the state and the counts at the beginning of each round so far.
    rounds: Vec<(State, u64)>,
}

impl<'s, 'p> Counting<'s, 'p> {
    pub(super) fn new(search: &'s Search<'s>, automaton: &'s mut Automaton<'p>) -> Self {
        Self {
            search,
            automaton,
            known: HashMap::default(),
        }
    }

    /// Returns the state in which a rule's symbols begin, if the activation that reaches the rule
    /// is in `state`.
    pub(super) fn inner(&mut self, rule: Rule, state: State) -> State {
        match rule.kind {
            Kind::Call(function) => self.automaton.enter(state, function),
            _ => state,
        }
    }

    /// Returns the effect of a symbol on an activation in a given state. The computation does not
    /// recurse.
    pub(super) fn symbol(&mut self, symbol: Symbol, state: State) -> Outcome {
        let mut frames: Vec<Frame> = Vec::new();
        let mut wanted = (symbol, state);
        loop {
            let mut outcome = match self.at_once(wanted.0, wanted.1) {
                Ok(outcome) => outcome,
                Err(frame) => {
                    wanted = (self.search.symbol(frame.next), frame.state);
                    frames.push(frame);
                    continue;
                }
            };
            // The outcome of this symbol is known, so the outcomes of the surrounding rules may be
            // known, too.
            loop {
                let Some(frame) = frames.last_mut() else {
                    return outcome;
                };
                frame.state = outcome.state;
                frame.count += outcome.count;
                if frame.advance() {
                    wanted = (self.search.symbol(frame.next), frame.state);
                    break;
                }
                let inside = Outcome {
                    state: frame.state,
                    count: frame.count,
                };
                self.known.insert((frame.symbol, frame.from), inside);
                let symbol = frame.symbol;
                frames.pop();
                let before = frames.last().map_or(state, |frame| frame.state);
                outcome = self.seen_from_outside(symbol, before, inside);
            }
        }
    }

    /// Returns the outcome if it is known or obvious. Otherwise, returns the frame in which to
    /// compute it.
    fn at_once(&mut self, symbol: Symbol, state: State) -> Result<Outcome, Frame> {
        if !self.search.concerns(symbol) {
            // In this symbol, no activation of the pattern's functions executes a block.
            let state = self.automaton.pass(state);
            return Ok(Outcome { state, count: 0 });
        }
        let nothing = Outcome { state, count: 0 };
        let Some(id) = symbol.as_rule() else {
            return Ok(match symbol.as_node() {
                Some(node) => self.node(symbol, node, state),
                None => nothing,
            });
        };
        let rule = self.search.rule(id);
        let from = self.inner(rule, state);
        if let Some(&inside) = self.known.get(&(symbol, from)) {
            return Ok(self.seen_from_outside(symbol, state, inside));
        }
        let rounds = match rule.kind {
            Kind::Repeat(_) => vec![(from, 0)],
            _ => Vec::new(),
        };
        Err(Frame {
            symbol,
            rule,
            from,
            state: from,
            count: 0,
            next: rule.start,
            rounds,
        })
    }

    fn node(&mut self, symbol: Symbol, node: NodeId, state: State) -> Outcome {
        if let Some(&outcome) = self.known.get(&(symbol, state)) {
            return outcome;
        }
        let node = &self.search.nodes[node];
        let mut count = 0;
        let state_after = self
            .automaton
            .execute(state, node.function, &node.blocks, |_| count += 1);
        let outcome = Outcome {
            state: state_after,
            count,
        };
        self.known.insert((symbol, state), outcome);
        outcome
    }

    /// Returns the outcome of a symbol for the surrounding activation. A call leaves its caller's
    /// state unchanged, except for the parts that may begin next.
    fn seen_from_outside(&mut self, symbol: Symbol, state: State, inside: Outcome) -> Outcome {
        let rule = symbol.as_rule().map(|rule| self.search.rule(rule).kind);
        match rule {
            Some(Kind::Call(_)) => Outcome {
                state: self.automaton.leave(state, inside.state),
                ..inside
            },
            _ => inside,
        }
    }
}

impl Frame {
    /// Continues with the next symbol, if there is another to examine.
    fn advance(&mut self) -> bool {
        let Kind::Repeat(times) = self.rule.kind else {
            self.next += 1;
            // An empty call has no frame, because it concerns no part.
            return self.next < self.rule.start + self.rule.len;
        };
        let done = self.rounds.len() as u64;
        if done == times {
            return false;
        }
        let seen = self.rounds.iter().position(|&(s, _)| s == self.state);
        let Some(seen) = seen else {
            self.rounds.push((self.state, self.count));
            return true;
        };
        // From here on, the rounds are periodic. Count the whole periods, and then the remaining
        // rounds.
        let turn = (self.rounds.len() - seen) as u64;
        let of_turn = self.count - self.rounds[seen].1;
        let left = times - done;
        let (state, until) = self.rounds[seen + (left % turn) as usize];
        self.count += left / turn * of_turn + (until - self.rounds[seen].1);
        self.state = state;
        false
    }
}
