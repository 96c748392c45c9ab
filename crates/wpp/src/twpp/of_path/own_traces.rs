//! Finds the sequences of blocks that the calls to a function execute themselves, without callees.
//! Each sequence is found once, however often it occurs.

use std::hash::BuildHasher;

use afterimage_ids::{NodeId, PrimaryMap, RuleId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{Stop, whole};
use crate::twpp::event::EventError;
use crate::{Grammar, Kind, Node, Symbol};

/// Stretches of a sequence that are longer than this become sequences themselves. So short
/// sequences are equal if their nodes are, regardless of the rules from which they come. Long
/// sequences are not copied into every sequence that contains them.
const STRETCH: usize = 16;

/// The parts of grammars that a function executes itself. Calls are removed from the rules, and
/// each distinct remainder is kept once for all segments.
///
/// Equal sequences execute the same blocks. Different sequences may execute the same blocks, too,
/// if grammars divide long traces differently.
#[derive(Default)]
pub(super) struct OwnTraces {
    sequences: Vec<Repeated>,
    /// The symbols of all sequences. In these symbols, a rule's number is the number of a sequence.
    symbols: Vec<Symbol>,
    table: HashTable<u32>,
    /// The remainder of each rule, valid if the rule has been examined in the current segment.
    rules: Vec<Remains>,
    remains: Vec<Symbol>,
    segment: u32,
    /// The symbols found so far in the rules in progress, one rule after another.
    found: Vec<Symbol>,
    frames: Vec<Frame>,
}

/// The number of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sequence(u32);

/// A repeated sequence.
#[derive(Clone, Copy)]
struct Repeated {
    start: usize,
    end: usize,
    times: u64,
}

/// The remainder of a rule after its calls are removed.
#[derive(Clone, Copy, Default)]
struct Remains {
    /// The number of the segment where the remainder was computed, from 1.
    segment: u32,
    start: u32,
    len: u32,
}

/// A rule that is being examined.
struct Frame {
    rule: RuleId,
    /// The index of the next symbol among the grammar's symbols.
    next: u32,
    /// The index after the last symbol.
    end: u32,
    /// The start of the rule's symbols in `found`.
    found: usize,
}

impl OwnTraces {
    /// Begins a segment that has this many rules.
    pub(super) fn begin_segment(&mut self, rules: usize) {
        self.segment += 1;
        self.remains.clear();
        if rules > self.rules.len() {
            self.rules = vec![Remains::default(); rules];
        }
    }

    /// Returns the sequence that a call, represented by a rule, executes itself. Time: linear in
    /// the rule's parts, except for parts that have already been examined in this segment.
    pub(super) fn of_call(
        &mut self,
        grammar: &Grammar,
        call: RuleId,
        nodes: &PrimaryMap<NodeId, Node>,
    ) -> Result<Sequence, Stop> {
        self.enter(grammar, call);
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                let Frame { rule, found, .. } = *frame;
                self.frames.pop();
                if self.frames.is_empty() {
                    break;
                }
                self.leave(grammar, rule, found)?;
                continue;
            }
            let symbol = grammar.symbols[frame.next as usize];
            frame.next += 1;
            let Some(child) = symbol.as_rule() else {
                if let Some(node) = symbol.as_node() {
                    whole(&nodes[node])?;
                }
                self.found.push(symbol);
                continue;
            };
            if let Kind::Call(_) = grammar.rules[child].kind {
                continue;
            }
            let known = self.rules[child.as_u32() as usize];
            if known.segment == self.segment {
                let remains = known.start as usize..(known.start + known.len) as usize;
                self.found.extend_from_slice(&self.remains[remains]);
            } else {
                self.enter(grammar, child);
            }
        }
        let sequence = self.sequence(0, 1);
        self.found.clear();
        sequence
    }

    /// Reports the nodes of a sequence, in order.
    pub(super) fn expand(&self, sequence: Sequence, mut node: impl FnMut(NodeId)) {
        // The rest of each sequence in progress, and the number of remaining repetitions.
        let mut open = vec![(self.sequences[sequence.0 as usize], sequence)];
        while let Some((left, of)) = open.last_mut() {
            if left.start == left.end {
                left.times -= 1;
                left.start = self.sequences[of.0 as usize].start;
                if left.times == 0 {
                    open.pop();
                }
                continue;
            }
            let symbol = self.symbols[left.start];
            left.start += 1;
            match symbol.as_rule() {
                Some(inner) => {
                    let inner = Sequence(inner.as_u32());
                    open.push((self.sequences[inner.0 as usize], inner));
                }
                None => symbol.as_node().into_iter().for_each(&mut node),
            }
        }
    }

    fn enter(&mut self, grammar: &Grammar, id: RuleId) {
        let rule = &grammar.rules[id];
        self.frames.push(Frame {
            rule: id,
            next: rule.start,
            end: rule.start + rule.len,
            found: self.found.len(),
        });
    }

    /// Finishes a rule. The symbols found become a part of the surrounding rule.
    fn leave(&mut self, grammar: &Grammar, rule: RuleId, found: usize) -> Result<(), Stop> {
        let times = match grammar.rules[rule].kind {
            Kind::Repeat(times) if self.found.len() > found => times,
            _ => 1,
        };
        if times > 1 || self.found.len() - found > STRETCH {
            let sequence = self.sequence(found, times)?;
            self.found.truncate(found);
            self.found.push(Symbol::rule(RuleId::from_u32(sequence.0)));
        }
        let remains = &self.found[found..];
        // A rule of the segment adds at most one stretch.
        self.rules[rule.as_u32() as usize] = Remains {
            segment: self.segment,
            start: self.remains.len() as u32,
            len: remains.len() as u32,
        };
        self.remains.extend_from_slice(remains);
        Ok(())
    }

    /// Returns the sequence of the symbols from index `found` on, repeated `times` times.
    fn sequence(&mut self, found: usize, times: u64) -> Result<Sequence, Stop> {
        let Self {
            sequences, symbols, ..
        } = self;
        let hash = |of: &[Symbol], times: u64| FxBuildHasher.hash_one((of, times));
        let wanted = &self.found[found..];
        let own = |&k: &u32| {
            let of = sequences[k as usize];
            (&symbols[of.start..of.end], of.times)
        };
        let key = hash(wanted, times);
        if let Some(&known) = self.table.find(key, |k| own(k) == (wanted, times)) {
            return Ok(Sequence(known));
        }
        let number = u32::try_from(sequences.len()).ok();
        let number = number.filter(|&n| n < Symbol::LIMIT);
        let number = number.ok_or(EventError::TooMany)?;
        let rehash = |k: &u32| {
            let (of, times) = own(k);
            hash(of, times)
        };
        self.table.insert_unique(key, number, rehash);
        let start = symbols.len();
        symbols.extend_from_slice(wanted);
        sequences.push(Repeated {
            start,
            end: symbols.len(),
            times,
        });
        Ok(Sequence(number))
    }
}
