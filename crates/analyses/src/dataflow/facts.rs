//! Answers GEN-KILL questions about facts at all executions of an operator.

use std::cmp::Reverse;

use afterimage_dataflow::{Direction, Events, Outcome, Site, Summaries};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_program::{Function, Program};
use afterimage_wpp::twpp::Series;
use rustc_hash::FxHashMap;
use wasmparser::Operator;

use super::calls::RunCalls;
use super::instances::{Collecting, Instances};
use super::loads::{own_events, read_by, redefined};
use super::memory::{Bytes, Code, Codes, Decider, InCallees, Sites};
use super::question::{self, Counts, FactQuery, Meter, OwnEvents, ask};

/// A fact about an operator's executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The result of a load or pure operator is already available. Earlier in the call (for a load,
    /// also in its callees), the same value was read, written or computed in the same way, and its
    /// operands have not been recomputed since. For a load, no operation since then can have
    /// overwritten the memory, judging from the code and the path alone.
    Available,
    /// The operator reads a local. The fact is the definition of that local that reaches the
    /// operator.
    Reaching,
    /// The local that the operator reads is not read again before it is set or the call ends.
    LastUse,
    /// The latest event in the call or its callees is in `gen`, not in `kill`. With `ahead`, the
    /// next event counts instead.
    Places {
        /// The events that make the fact true.
        r#gen: Vec<EventPlace>,
        /// The events that make the fact false.
        kill: Vec<EventPlace>,
        /// Whether the next event counts, not the latest.
        ahead: bool,
    },
}

/// An event that decides a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventPlace {
    /// An operator is executed.
    Operator(FuncId, OpId),
    /// A function is called.
    Entry(FuncId),
}

/// The reason why a question about a fact has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    /// The operator is not reachable.
    #[error("it can never be executed")]
    Unreachable,
    /// The operator does not read a local.
    #[error("it does not read a local; name a local.get")]
    NoLocal,
    /// The operator is neither a load nor pure.
    #[error(
        "it is neither a load nor an operator that only computes, so its result cannot be available"
    )]
    NotPure,
}

/// The answer to a question about a fact at all executions of an operator.
#[derive(Clone, Debug, Default)]
pub struct FactAnswer {
    /// The number of executions of the operator.
    pub executions: u64,
    /// The number of executions for which the fact held.
    pub holds: u64,
    /// The deciding sites, most frequent first; `None` means the beginning or the end of the call.
    pub decided: Vec<(Option<Decider>, u64)>,
    /// The number of calls in which the operator was executed.
    pub calls: u64,
    /// Up to the requested number of answers, each for one path trace and the decisions of its
    /// callees. Answers that cover the most calls come first.
    pub paths: Vec<PathAnswer>,
    /// The total number of path answers.
    pub all_paths: u64,
    /// The number of queries ⟨timestamps, node⟩ raised.
    pub queries: u64,
    /// The number of path steps scanned one by one, because the trace was too irregular for
    /// queries.
    pub scanned: u64,
}

/// The executions in a group of calls that are alike.
#[derive(Clone, Debug)]
pub struct PathAnswer {
    /// The number of calls in the group.
    pub calls: u64,
    /// The number of blocks that each call executed itself, without its callees.
    pub blocks: u64,
    /// The positions of the blocks that executed the operator, counted from 1.
    pub executions: Series,
    /// The blocks at which the fact held.
    pub holds: Series,
}

/// The sites that decide a fact about an operator.
struct Wanted {
    block: BlockId,
    /// The events in the operator's function.
    events: OwnEvents,
    /// The relevant events of callees, if any.
    callees: Option<Callees>,
}

/// The events in callees that decide a fact.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Callees {
    /// Writes to the memory that a load reads.
    Reading(Bytes),
    /// The places that the fact names.
    Places,
}

/// An answer under construction.
#[derive(Default)]
struct Answering {
    answer: FactAnswer,
    counts: Counts,
    each: Collecting,
}

/// Answers questions about the functions of a run.
pub struct Facts<'a> {
    calls: &'a RunCalls,
    codes: Codes<'a>,
    program: &'a Program,
    module: &'a [u8],
    tell: &'a dyn Fn(f64),
}

impl<'a> Facts<'a> {
    /// Prepares to answer questions about a run of a program. `module` contains the bytes of the
    /// program.
    pub fn new(calls: &'a RunCalls, program: &'a Program, module: &'a [u8]) -> Self {
        Self {
            codes: Codes::new(program, module),
            calls,
            program,
            module,
            tell: &|_| {},
        }
    }

    /// Makes each call of [`answers`](Self::answers) pass the share of the work that is done to
    /// `tell`.
    #[must_use]
    pub fn telling(self, tell: &'a dyn Fn(f64)) -> Self {
        Self { tell, ..self }
    }

    /// Finds whether a fact holds at each execution of an operator. Lists up to `paths` path traces
    /// one by one.
    ///
    /// Time is linear in the blocks of the function's unique path traces. If calls matter, it is
    /// linear in the blocks of all unique path traces of the run. Regular traces take less.
    ///
    /// # Errors
    /// Returns an error if the fact does not apply to the operator.
    pub fn answer(
        &self,
        function: FuncId,
        op: OpId,
        fact: &Fact,
        paths: usize,
    ) -> Result<FactAnswer, FactError> {
        Ok(self.answer_each(function, op, fact, paths)?.0)
    }

    /// Like [`answer`](Self::answer), but also returns the deciding site of each execution.
    ///
    /// # Errors
    /// Returns an error if the fact does not apply to the operator.
    pub fn answer_each(
        &self,
        function: FuncId,
        op: OpId,
        fact: &Fact,
        paths: usize,
    ) -> Result<(FactAnswer, Instances<'a>), FactError> {
        let mut answers = self.answers(function, &[op], fact, paths);
        answers.pop().unwrap_or(Err(FactError::Unreachable))
    }

    /// Returns the answers for several operators of a function, in their order. Goes through the
    /// function's path traces only once. Keeps all of their executions in memory.
    pub fn answers(
        &self,
        function: FuncId,
        ops: &[OpId],
        fact: &Fact,
        paths: usize,
    ) -> Vec<Result<(FactAnswer, Instances<'a>), FactError>> {
        let sites = Sites::default();
        let forward = matches!(fact, Fact::LastUse | Fact::Places { ahead: true, .. });
        let direction = if forward {
            Direction::Forward
        } else {
            Direction::Backward
        };
        let wanted = ops
            .iter()
            .map(|&op| self.wanted(function, op, fact, &sites));
        let wanted = Vec::from_iter(wanted);
        // All loads that read the same bytes share the decisions of calls.
        let mut distinct: Vec<Callees> = Vec::new();
        for callees in wanted.iter().flatten().filter_map(|wanted| wanted.callees) {
            if !distinct.contains(&callees) {
                distinct.push(callees);
            }
        }
        let of_callees = self.calls.all_trace_blocks();
        let all = of_callees.saturating_mul(distinct.len() as u64);
        let answered = wanted.iter().flatten().count() as u64;
        let own = question::work(self.calls, function).saturating_mul(answered);
        let meter = Meter::new(all.saturating_add(own), self.tell);
        let known = Vec::from_iter(distinct.into_iter().map(|callees| {
            let summaries = self.summaries(callees, fact, direction, &sites);
            meter.add(of_callees);
            (callees, summaries)
        }));
        let mut numbers = Vec::new();
        let mut questions = Vec::new();
        for (number, wanted) in wanted.iter().enumerate() {
            let Ok(wanted) = wanted else { continue };
            let callees = wanted.callees;
            let summaries = known.iter().find(|(of, _)| Some(*of) == callees);
            numbers.push(number);
            questions.push(FactQuery {
                direction,
                block: wanted.block,
                op: ops[number],
                events: &wanted.events,
                summaries: summaries.map(|(_, summaries)| summaries),
            });
        }
        let open_holds = matches!(fact, Fact::LastUse);
        let holds = |outcome: Outcome| match outcome {
            Outcome::Open => open_holds,
            Outcome::Decided(site) => sites.get(site).holds(),
        };
        let mut answers = Vec::from_iter(ops.iter().map(|_| Answering::default()));
        let decider = |outcome: Outcome| match outcome {
            Outcome::Open => None,
            Outcome::Decided(site) => Some(sites.get(site)),
        };
        ask(
            self.calls,
            function,
            &questions,
            &meter,
            |k, blocks, alike, times, solution| {
                let Answering {
                    answer,
                    counts,
                    each,
                } = &mut answers[numbers[k]];
                counts.add(alike, &solution);
                each.add(alike, times, &solution, decider);
                answer.calls += alike.calls;
                answer.holds += alike.calls * solution.count_where(holds);
                answer.all_paths += 1;
                let least = answer.paths.last().map_or(0, |last| last.calls);
                if answer.paths.len() < paths || alike.calls > least && paths > 0 {
                    answer.paths.push(PathAnswer {
                        calls: alike.calls,
                        blocks,
                        executions: times.clone(),
                        holds: solution.times_where(holds),
                    });
                    answer.paths.sort_by_key(|path| Reverse(path.calls));
                    answer.paths.truncate(paths);
                }
            },
        );
        let answered = wanted.into_iter().zip(answers);
        let answered = answered.map(|(wanted, answering)| {
            wanted?;
            let Answering {
                mut answer,
                counts,
                each,
            } = answering;
            answer.executions = counts.executions;
            answer.queries = counts.queries;
            answer.scanned = counts.scanned;
            let decided = counts.by_outcome.into_iter();
            let decided = decided.map(|(outcome, times)| (decider(outcome), times));
            answer.decided = decided.collect();
            answer
                .decided
                .sort_unstable_by_key(|&(decider, times)| (Reverse(times), decider));
            Ok((answer, each.finish(self.calls)))
        });
        answered.collect()
    }

    /// Finds what decides a fact about an operator.
    fn wanted(
        &self,
        function: FuncId,
        op: OpId,
        fact: &Fact,
        sites: &Sites,
    ) -> Result<Wanted, FactError> {
        let known = self.program.function(function);
        let known = known.ok_or(FactError::Unreachable)?;
        let block = known.block_of(op).ok_or(FactError::Unreachable)?;
        let (events, callees) = match fact {
            Fact::Available => self.available(function, op, sites)?,
            Fact::Reaching => (self.of_local(known, op, sites, false)?, None),
            Fact::LastUse => (self.of_local(known, op, sites, true)?, None),
            Fact::Places { r#gen, kill, ahead } => {
                let direction = if *ahead {
                    Direction::Forward
                } else {
                    Direction::Backward
                };
                let places = Placed::new(self.program, r#gen, kill, sites, direction);
                (places.own(function), Some(Callees::Places))
            }
        };
        Ok(Wanted {
            block,
            events,
            callees,
        })
    }

    /// Returns the effects of all calls on a fact.
    fn summaries(
        &self,
        callees: Callees,
        fact: &Fact,
        direction: Direction,
        sites: &Sites,
    ) -> Summaries<'_> {
        match (callees, fact) {
            (Callees::Reading(bytes), _) => {
                let codes = &self.codes;
                let events = InCallees {
                    codes,
                    sites,
                    bytes,
                };
                self.calls.summaries(direction, &events)
            }
            (Callees::Places, fact) => {
                let (r#gen, kill) = match fact {
                    Fact::Places { r#gen, kill, .. } => (&r#gen[..], &kill[..]),
                    _ => (&[][..], &[][..]),
                };
                let places = Placed::new(self.program, r#gen, kill, sites, direction);
                self.calls.summaries(direction, &places)
            }
        }
    }

    fn available(
        &self,
        function: FuncId,
        op: OpId,
        sites: &Sites,
    ) -> Result<(OwnEvents, Option<Callees>), FactError> {
        let code = self.codes.of(function).ok_or(FactError::Unreachable)?;
        let mut accesses = code.expressions.accesses.iter();
        if let Some(load) = accesses.find(|access| access.op == op && !access.is_store) {
            let callees = Callees::Reading(read_by(load));
            return Ok((own_events(&code, load, sites), Some(callees)));
        }
        Ok((computed(&code, op, sites)?, None))
    }

    /// Finds the definitions of the local that an operator reads, or the uses and definitions of
    /// that local.
    fn of_local(
        &self,
        function: &Function,
        op: OpId,
        sites: &Sites,
        uses: bool,
    ) -> Result<OwnEvents, FactError> {
        let mut operators = self.program.operators(self.module, function);
        let local = operators.find_map(|(other, _, operator)| match operator {
            Operator::LocalGet { local_index } if other == op => Some(local_index),
            _ => None,
        });
        let local = local.ok_or(FactError::NoLocal)?;
        let mut events = OwnEvents::default();
        for (op, _, operator) in self.program.operators(self.module, function) {
            let decider = match operator {
                Operator::LocalSet { local_index } | Operator::LocalTee { local_index }
                    if local_index == local =>
                {
                    Decider::Gen(function.id, op)
                }
                Operator::LocalGet { local_index } if local_index == local && uses => {
                    Decider::Kill(function.id, op)
                }
                _ => continue,
            };
            if let Some(block) = function.block_of(op) {
                events.at_operator(block, op, sites.of(decider));
            }
        }
        Ok(events)
    }
}

/// Returns the places where the operator's expression is computed, and the places where its meaning
/// changes.
pub(super) fn computed(code: &Code<'_>, op: OpId, sites: &Sites) -> Result<OwnEvents, FactError> {
    let expression = code.expressions.computed(&code.ssa, op);
    let expression = expression.ok_or(FactError::NotPure)?;
    let mut events = OwnEvents::default();
    let function = code.function.id;
    for statement in code.ssa.statements.values() {
        if code.expressions.computed(&code.ssa, statement.op) == Some(expression) {
            let site = sites.of(Decider::Gen(function, statement.op));
            events.at_operator(statement.block, statement.op, site);
        }
    }
    redefined(code, expression, sites, &mut events);
    Ok(events)
}

/// The events at the places that a user named.
struct Placed {
    /// The events by function, sorted by block.
    events: FxHashMap<FuncId, OwnEvents>,
    direction: Direction,
}

impl Placed {
    fn new(
        program: &Program,
        r#gen: &[EventPlace],
        kill: &[EventPlace],
        sites: &Sites,
        direction: Direction,
    ) -> Self {
        let mut events: FxHashMap<FuncId, OwnEvents> = FxHashMap::default();
        let marked = r#gen.iter().map(|place| (place, true));
        for (&place, is_gen) in marked.chain(kill.iter().map(|place| (place, false))) {
            let (function, decider) = match (place, is_gen) {
                (EventPlace::Operator(f, op), true) => (f, Decider::Gen(f, op)),
                (EventPlace::Operator(f, op), false) => (f, Decider::Kill(f, op)),
                (EventPlace::Entry(f), true) => (f, Decider::GenEntry(f)),
                (EventPlace::Entry(f), false) => (f, Decider::KillEntry(f)),
            };
            let Some(known) = program.function(function) else {
                continue;
            };
            let own = events.entry(function).or_default();
            match place {
                EventPlace::Operator(_, op) => {
                    if let Some(block) = known.block_of(op) {
                        own.at_operator(block, op, sites.of(decider));
                    }
                }
                EventPlace::Entry(_) => {
                    own.at_begin(known.cfg.graph.root(), sites.of(decider));
                }
            }
        }
        Self { events, direction }
    }

    fn own(&self, function: FuncId) -> OwnEvents {
        self.events.get(&function).cloned().unwrap_or_default()
    }
}

impl Events for Placed {
    fn of_block(&self, function: FuncId, block: BlockId) -> Option<Site> {
        let own = self.events.get(&function)?;
        own.first(block, self.direction, |_| true)
    }

    fn any_in(&self, function: FuncId) -> bool {
        self.events.contains_key(&function)
    }
}
