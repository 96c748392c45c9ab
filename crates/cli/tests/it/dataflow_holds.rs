//! Answers to GEN-KILL questions agree with a walk over all operators that were executed.

use std::collections::{BTreeMap, HashMap};

use afterimage_analyses::dataflow::{
    Decider, EventPlace, Fact, FactAnswer, Facts, InstanceRun, LastStep, RunCalls, path_redundancy,
};
use afterimage_analyses::redundancy::load_redundancy;
use afterimage_ids::{BlockId, EntityRef, FuncId, OpId, StmtId, ValueId};
use afterimage_program::{Effect, Program, Ssa, ValueDef};
use afterimage_replay::steps::{AccessSite, Run, stopped_before};
use afterimage_replay::values::Types;
use afterimage_replay::whole_path::{RecordedPath, recorded_path};
use afterimage_trace::TraceFile;
use afterimage_wpp::twpp::{Event, collect};
use wasmparser::Operator;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::memory_programs::memory_recording;

/// The number of seeds to try.
const SEEDS: u64 = 6;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 4_000;
/// The limit of the analysis: a value computed from more values counts as a separate value.
const MOST_LEAVES: usize = 8;

/// An event of the run: the execution of an operator, or the beginning of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Executed {
    activation: usize,
    place: EventPlace,
    /// The block that begins with this event, if any.
    begins: Option<BlockId>,
    /// The number of blocks executed so far, including its own.
    time: u64,
}

/// A run, operator by operator.
struct Expanded {
    all: Vec<Executed>,
    /// The range of each activation in it.
    spans: Vec<(usize, usize)>,
}

/// The operators of a function.
struct Body<'a> {
    ssa: std::rc::Rc<Ssa>,
    operators: Vec<Operator<'a>>,
}

fn expand(program: &Program, path: &RecordedPath, last: Option<LastStep>) -> Expanded {
    let (mut all, mut spans, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let wpp = collect(path, &|_| {}).unwrap();
    let blocks = wpp
        .events()
        .filter(|event| matches!(event, Event::Block(_)));
    let mut left = blocks.count();
    let mut time = 0;
    for event in wpp.events() {
        match event {
            Event::Enter(function) => {
                let activation = spans.len();
                spans.push((all.len(), usize::MAX));
                open.push((activation, function));
                all.push(Executed {
                    activation,
                    place: EventPlace::Entry(function),
                    begins: None,
                    time,
                });
            }
            Event::Leave => {
                let (activation, _) = open.pop().unwrap();
                spans[activation].1 = all.len();
            }
            Event::Block(block) => {
                left -= 1;
                time += 1;
                let &(activation, function) = open.last().unwrap();
                let known = &program.function(function).unwrap();
                let ops = known.cfg.blocks[block].ops.clone();
                let mut begins = Some(block);
                for op in ops.start.as_u32()..ops.end.as_u32() {
                    let op = OpId::from_u32(op);
                    let executed = left > 0 || last.is_none_or(|last| op < last.next);
                    if executed && known.block_of(op) == Some(block) {
                        all.push(Executed {
                            activation,
                            place: EventPlace::Operator(function, op),
                            begins: begins.take(),
                            time,
                        });
                    }
                }
            }
        }
    }
    for (activation, _) in open {
        spans[activation].1 = all.len();
    }
    Expanded { all, spans }
}

impl Expanded {
    /// Returns the decision for each execution of an operator, and its time. Asks `event` about
    /// each earlier (or later) event in the activation and its callees.
    fn decided<T>(
        &self,
        at: EventPlace,
        ahead: bool,
        event: impl Fn(usize, Executed) -> Option<T>,
    ) -> Vec<(u64, Option<T>)> {
        let mut decided = Vec::new();
        for (k, executed) in self.all.iter().enumerate() {
            if executed.place != at {
                continue;
            }
            let (begin, end) = self.spans[executed.activation];
            let own = |j: usize| event(executed.activation, self.all[j]);
            let found = if ahead {
                (k + 1..end).find_map(own)
            } else {
                (begin..k).rev().find_map(own)
            };
            decided.push((executed.time, found));
        }
        decided
    }
}

/// Compares an answer in total, and execution by execution.
fn check(
    facts: &Facts<'_>,
    (function, op): (FuncId, OpId),
    fact: &Fact,
    expected: &[(u64, Option<Decider>)],
) -> FactAnswer {
    let (answer, each) = facts.answer_each(function, op, fact, 2).unwrap();
    let mut sums: BTreeMap<Option<Decider>, u64> = BTreeMap::new();
    for (_, decider) in expected {
        *sums.entry(*decider).or_default() += 1;
    }
    let found: BTreeMap<_, _> = answer.decided.iter().copied().collect();
    assert_eq!(found, sums, "{function} {op} {fact:?}");
    assert_eq!(answer.executions, expected.len() as u64);
    assert_eq!(each.count(), answer.executions);
    assert_eq!(each.get(0), None);
    assert_eq!(each.get(answer.executions + 1), None);
    for (number, &(time, decider)) in (1..).zip(expected) {
        let found = each.get(number).unwrap();
        assert_eq!(
            (found.time, found.decider),
            (time, decider),
            "{number} of {function} {op}"
        );
    }
    for (&decider, &times) in &sums {
        let numbers = (1u64..).zip(expected).filter(|(_, e)| e.1 == decider);
        let numbers: Vec<u64> = numbers.map(|(number, _)| number).collect();
        let (runs, all) = each.decided_by(decider, usize::MAX);
        assert!(all);
        assert_eq!(runs.iter().map(InstanceRun::count).sum::<u64>(), times);
        assert_eq!(listed(&runs), numbers, "{runs:?}");
        let (first, all) = each.decided_by(decider, 2);
        assert_eq!(all, runs.len() <= 2);
        assert_eq!(first[..], runs[..runs.len().min(2)]);
    }
    answer
}

fn listed(runs: &[InstanceRun]) -> Vec<u64> {
    let mut numbers = Vec::new();
    for run in runs {
        for k in 0..run.times {
            numbers.extend(run.first + k * run.stride..=run.last + k * run.stride);
        }
    }
    numbers
}

/// Numbers the values. A value is a term over values that are not computed from others; each new
/// value has a new number.
struct Terms {
    numbers: HashMap<String, u32>,
    leaves: Vec<Vec<u32>>,
}

impl Terms {
    fn number(&mut self, term: String, mut leaves: Vec<u32>) -> u32 {
        leaves.sort_unstable();
        leaves.dedup();
        let next = self.leaves.len() as u32;
        let number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.leaves.push(leaves);
        }
        number
    }

    fn leaf(&mut self) -> u32 {
        let next = self.leaves.len() as u32;
        self.number(format!("leaf {next}"), vec![next])
    }
}

/// An execution of a pure operator or of a load or store.
#[derive(Clone, Debug)]
enum Does {
    Computes(u32),
    /// The term of the address, the address if it is constant, the offset, the number of bytes, and
    /// whether it is a store.
    Accesses(u32, Option<u64>, u64, u64, bool),
    /// An effect that may write anywhere.
    Writes,
}

/// Returns the effect of each executed operator. The whole memory counts as one place.
fn terms(program: &Program, module: &[u8], expanded: &Expanded) -> Vec<Option<Does>> {
    let types = Types::new(program, module);
    let mut bodies: HashMap<FuncId, Body<'_>> = HashMap::new();
    let mut terms = Terms {
        numbers: HashMap::new(),
        leaves: Vec::new(),
    };
    let mut values: HashMap<(usize, ValueId), u32> = HashMap::new();
    let mut addresses: HashMap<u32, u64> = HashMap::new();
    let mut does = Vec::new();
    for executed in &expanded.all {
        let EventPlace::Operator(function, op) = executed.place else {
            does.push(None);
            continue;
        };
        let body = bodies.entry(function).or_insert_with(|| {
            let known = program.function(function).unwrap();
            let operators = program.operators(module, known);
            Body {
                ssa: types.statements(function).unwrap(),
                operators: operators.map(|(_, _, operator)| operator).collect(),
            }
        });
        let ssa = &body.ssa;
        let activation = executed.activation;
        if let Some(block) = executed.begins {
            for phi in ssa.phis(block) {
                let leaf = terms.leaf();
                values.insert((activation, phi.value), leaf);
            }
        }
        let operator = &body.operators[op.index()];
        let mut term = |value: ValueId, values: &mut HashMap<(usize, ValueId), u32>| match ssa
            .values[value]
            .def
        {
            ValueDef::Constant(op) => {
                let operator = &body.operators[op.index()];
                let number = terms.number(format!("{operator:?}"), Vec::new());
                if let Operator::I32Const { value } = operator {
                    addresses.insert(number, u64::from(*value as u32));
                }
                number
            }
            _ => *values
                .entry((activation, value))
                .or_insert_with(|| terms.leaf()),
        };
        let Some(id): Option<StmtId> = ssa.statement_at(op) else {
            does.push(None);
            continue;
        };
        let operands: Vec<u32> = ssa
            .operands(id)
            .iter()
            .map(|&value| term(value, &mut values))
            .collect();
        let statement = &ssa.statements[id];
        let mut result = None;
        let done = match statement.effect {
            Effect::None => {
                let leaves: Vec<u32> = operands
                    .iter()
                    .flat_map(|&operand| terms.leaves[operand as usize].clone())
                    .collect();
                let distinct: std::collections::BTreeSet<_> = leaves.iter().collect();
                if distinct.len() > MOST_LEAVES {
                    None
                } else {
                    let computed = terms.number(format!("{operator:?} {operands:?}"), leaves);
                    result = Some(computed);
                    Some(Does::Computes(computed))
                }
            }
            Effect::MemoryRead(_) | Effect::MemoryWrite(_) => match width(operator) {
                Some((offset, bytes, is_store)) => {
                    let address = addresses.get(&operands[0]).map(|a| a + offset);
                    Some(Does::Accesses(
                        operands[0],
                        address,
                        offset,
                        bytes,
                        is_store,
                    ))
                }
                None => Some(Does::Writes),
            },
            Effect::MemoryCopy { .. } | Effect::MemoryInit { .. } => Some(Does::Writes),
            Effect::Call(callee) | Effect::TailCall(callee) => match callee {
                afterimage_program::Callee::Direct(f) if program.function(f).is_some() => None,
                afterimage_program::Callee::Direct(_) => Some(Does::Writes),
                // The callee is the host if no code of the guest follows.
                afterimage_program::Callee::Indirect { .. } => {
                    let next = expanded.all.get(does.len() + 1);
                    let guest = next.is_some_and(|next| matches!(next.place, EventPlace::Entry(_)));
                    (!guest).then_some(Does::Writes)
                }
            },
            _ => None,
        };
        for value in statement.results.start.as_u32()..statement.results.end.as_u32() {
            let known = match result {
                Some(known) => known,
                None => terms.leaf(),
            };
            values.insert((activation, ValueId::from_u32(value)), known);
        }
        does.push(done);
    }
    does
}

/// Returns the offset and the number of bytes of a load or store in the generated programs.
fn width(operator: &Operator<'_>) -> Option<(u64, u64, bool)> {
    Some(match operator {
        Operator::I32Load { memarg } => (memarg.offset, 4, false),
        Operator::I32Load16S { memarg } => (memarg.offset, 2, false),
        Operator::I32Load8U { memarg } => (memarg.offset, 1, false),
        Operator::I32Store { memarg } => (memarg.offset, 4, true),
        Operator::I32Store16 { memarg } => (memarg.offset, 2, true),
        Operator::I32Store8 { memarg } => (memarg.offset, 1, true),
        _ => return None,
    })
}

/// Returns the number of executions of an operator whose result is available, by terms.
fn naive_available(expanded: &Expanded, does: &[Option<Does>], at: EventPlace) -> u64 {
    let mut available = 0;
    for (k, executed) in expanded.all.iter().enumerate() {
        if executed.place != at {
            continue;
        }
        let (begin, _) = expanded.spans[executed.activation];
        let before = (begin..k).rev();
        let found = match does[k].as_ref().unwrap() {
            Does::Computes(term) => before
                .filter(|&j| expanded.all[j].activation == executed.activation)
                .find(|&j| matches!(&does[j], Some(Does::Computes(other)) if other == term))
                .is_some(),
            Does::Accesses(base, address, offset, bytes, _) => before
                .filter_map(|j| {
                    let (other, constant, from, length, is_store) = match does[j].as_ref()? {
                        Does::Computes(_) => return None,
                        Does::Writes => return Some(false),
                        Does::Accesses(base, constant, from, length, is_store) => {
                            (base, constant, from, length, is_store)
                        }
                    };
                    let own = expanded.all[j].activation == executed.activation;
                    let apart = match (constant, address) {
                        (Some(there), Some(here)) => *here as i64 - *there as i64,
                        _ if own && other == base => *offset as i64 - *from as i64,
                        _ => return is_store.then_some(false),
                    };
                    let (length, end) = (*length as i64, apart + *bytes as i64);
                    if apart >= 0 && end <= length {
                        return Some(true);
                    }
                    (*is_store && apart < length && end > 0).then_some(false)
                })
                .next()
                .unwrap_or(false),
            Does::Writes => panic!("it is neither"),
        };
        available += u64::from(found);
    }
    available
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    available: u64,
    not_available: u64,
    by_path: u64,
    decided: u64,
}

/// Checks that several questions at once have the same answers as each question alone.
fn together(facts: &Facts<'_>, executed: &[(FuncId, OpId)]) {
    for of in executed.chunk_by(|a, b| a.0 == b.0) {
        let ops = Vec::from_iter(of.iter().map(|&(_, op)| op));
        let all = facts.answers(of[0].0, &ops, &Fact::Available, 1);
        for (op, answer) in ops.into_iter().zip(all) {
            let alone = facts.answer_each(of[0].0, op, &Fact::Available, 1);
            match (answer, alone) {
                (Ok((answer, each)), Ok((alone, each_alone))) => {
                    let sums = |a: &FactAnswer| (a.executions, a.holds, a.calls, a.decided.clone());
                    assert_eq!(sums(&answer), sums(&alone), "{op}");
                    assert_eq!(each.get(1), each_alone.get(1));
                    assert_eq!(each.get(each.count()), each_alone.get(each.count()));
                }
                (answer, alone) => assert_eq!(answer.err(), alone.err()),
            }
        }
    }
}

fn compare(sandbox: &Sandbox, by_terms: bool, compared: &mut Compared) {
    let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
    let module = file.module().unwrap();
    let program = Program::parse(&module).unwrap();
    let path = recorded_path(&file, &program).unwrap().expect("a path");
    if !(1..=MOST_BLOCKS).contains(&path.length()) {
        return;
    }
    let end = file.end().unwrap();
    let last = end
        .as_ref()
        .and_then(|end| LastStep::of(&program, &module, end).unwrap());
    let expanded = expand(&program, &path, last);
    let calls = RunCalls::of(&path, last, &|_| {}).unwrap();
    // Answer again by walking every path trace block by block.
    let gone_through = RunCalls::of(&path, last, &|_| {}).unwrap().regular_up_to(0);
    let mut executed: Vec<(FuncId, OpId)> = Vec::new();
    for executed_now in &expanded.all {
        if let EventPlace::Operator(function, op) = executed_now.place
            && !executed.contains(&(function, op))
        {
            executed.push((function, op));
        }
    }
    executed.sort_unstable();
    for calls in [&calls, &gone_through] {
        let facts = Facts::new(calls, &program, &module);
        places(&program, &expanded, &facts, &executed, compared);
        locals(&program, &module, &expanded, &facts, &executed, compared);
        together(&facts, &executed);
    }
    let facts = Facts::new(&gone_through, &program, &module);
    if by_terms {
        let does = terms(&program, &module, &expanded);
        for &(function, op) in &executed {
            let at = EventPlace::Operator(function, op);
            let Ok(answer) = facts.answer(function, op, &Fact::Available, 0) else {
                continue;
            };
            let expected = naive_available(&expanded, &does, at);
            assert_eq!(answer.holds, expected, "{at:?}");
            compared.available += expected;
            compared.not_available += answer.executions - expected;
        }
    }
    // The results for loads by the path alone must be correct.
    let run = Run {
        program: &program,
        module: &module,
        path: &path,
        continuations: &path.segments().directory().continuations,
        stopped: end.and_then(|end| stopped_before(&program, &module, &end)),
        checkpoints: None,
        snapshots: None,
        progress: &|_| {},
    };
    let exact = load_redundancy(run, file.log().unwrap()).unwrap().operators;
    let sites: Vec<AccessSite> = exact.iter().map(|load| load.site).collect();
    let by_path = path_redundancy(&calls, &program, &module, &sites, &|_| {});
    assert_eq!(by_path.len(), exact.len());
    for (by_path, exact) in by_path.iter().zip(&exact) {
        assert_eq!(by_path.site, exact.site);
        assert_eq!(by_path.executions, exact.executions, "{:?}", exact.site);
        assert!(by_path.redundant <= exact.within, "{by_path:?} {exact:?}");
        let fact = Fact::Available;
        let answer = facts
            .answer(exact.site.function, exact.site.op, &fact, 0)
            .unwrap();
        assert_eq!(answer.holds, by_path.redundant);
        compared.by_path += by_path.redundant;
    }
    compared.runs += 1;
}

/// Compares events at any places, in any functions.
fn places(
    program: &Program,
    expanded: &Expanded,
    facts: &Facts<'_>,
    executed: &[(FuncId, OpId)],
    compared: &mut Compared,
) {
    let third = |from: usize| executed.iter().skip(from).step_by(7).take(5);
    let place = |&(function, op): &(FuncId, OpId)| EventPlace::Operator(function, op);
    let mut r#gen: Vec<EventPlace> = third(1).map(place).collect();
    let kill: Vec<EventPlace> = third(4).map(place).collect();
    r#gen.push(EventPlace::Entry(program.functions[0].id));
    for ahead in [false, true] {
        let fact = Fact::Places {
            r#gen: r#gen.clone(),
            kill: kill.clone(),
            ahead,
        };
        let event = |_: usize, executed: Executed| match executed.place {
            place if r#gen.contains(&place) => Some(match place {
                EventPlace::Operator(f, op) => Decider::Gen(f, op),
                EventPlace::Entry(f) => Decider::GenEntry(f),
            }),
            EventPlace::Operator(f, op) if kill.contains(&executed.place) => {
                Some(Decider::Kill(f, op))
            }
            _ => None,
        };
        for &(function, op) in executed.iter().step_by(3) {
            let at = EventPlace::Operator(function, op);
            let expected = expanded.decided(at, ahead, event);
            let answer = check(facts, (function, op), &fact, &expected);
            let holds = expected.iter();
            let holds = holds.filter(|(_, decider)| decider.is_some_and(Decider::holds));
            assert_eq!(answer.holds, holds.count() as u64);
            compared.decided += answer.executions;
        }
    }
}

/// Compares reaching definitions and last uses of locals.
fn locals(
    program: &Program,
    module: &[u8],
    expanded: &Expanded,
    facts: &Facts<'_>,
    executed: &[(FuncId, OpId)],
    compared: &mut Compared,
) {
    let mut of: BTreeMap<(FuncId, OpId), (u32, bool)> = BTreeMap::new();
    for function in &program.functions {
        for (op, _, operator) in program.operators(module, function) {
            let (local, sets) = match operator {
                Operator::LocalGet { local_index } => (local_index, false),
                Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                    (local_index, true)
                }
                _ => continue,
            };
            of.insert((function.id, op), (local, sets));
        }
    }
    for &(function, op) in executed {
        let Some(&(local, false)) = of.get(&(function, op)) else {
            assert!(facts.answer(function, op, &Fact::Reaching, 0).is_err());
            continue;
        };
        for ahead in [false, true] {
            let at = EventPlace::Operator(function, op);
            let expected = expanded.decided(at, ahead, |activation, other| {
                let EventPlace::Operator(f, op) = other.place else {
                    return None;
                };
                let &(same, sets) = of.get(&(f, op))?;
                let counts = other.activation == activation && same == local;
                match (counts, sets) {
                    (true, true) => Some(Decider::Gen(f, op)),
                    (true, false) if ahead => Some(Decider::Kill(f, op)),
                    _ => None,
                }
            });
            let fact = if ahead { Fact::LastUse } else { Fact::Reaching };
            let answer = check(facts, (function, op), &fact, &expected);
            compared.decided += answer.executions;
        }
    }
}

#[test]
fn facts_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 3, "paths", |sandbox| {
        compare(sandbox, false, &mut compared);
    });
    assert!(
        compared.runs >= seeds(SEEDS) / 2,
        "few runs: {}",
        compared.runs
    );
    assert!(compared.decided > 0);
}

#[test]
fn facts_of_programs_that_load_much_hold() {
    let mut compared = Compared::default();
    // Programs that run too long are left out.
    for seed in 0..4 * seeds(SEEDS) {
        compare(&memory_recording(seed), true, &mut compared);
    }
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
    assert!(compared.available > 100 && compared.not_available > 100);
    assert!(compared.by_path > 10);
}
