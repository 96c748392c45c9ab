//! Redundant expressions agree with a slow walk over all computations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use afterimage_analyses::dataflow::{Fact, Facts, LastStep, RunCalls, path_expressions};
use afterimage_analyses::redundancy::{OperatorRedundancy, expression_redundancy};
use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, OpId, StmtId, ValueId};
use afterimage_program::{Effect, Function, Ssa, ValueDef};
use afterimage_replay::steps::{AccessSite, Level, Step, Steps, Value, Wanted, What, Within};
use afterimage_replay::values::Types;
use afterimage_replay::whole_path::Window;
use afterimage_wpp::twpp::{Event, collect};
use serde_json::Value as Json;
use wasmparser::Operator;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::memory_programs::memory_recording;
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 8;
/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;
/// The limit of the analysis: an expression over more values counts as a separate value.
const MOST_LEAVES: usize = 8;

type Bits = (u64, u64);

/// The bits of a null reference.
const NULL: u64 = 0;

/// A function's code, and the terms of its values.
struct Body {
    function: Function,
    ssa: Rc<Ssa>,
    operators: Vec<String>,
    constants: HashMap<OpId, Bits>,
    /// The term of each value, and the leaves of the term.
    terms: HashMap<ValueId, (String, BTreeSet<ValueId>)>,
}

impl Body {
    /// Returns the term of a value, as text.
    fn term(&mut self, value: ValueId) -> (String, BTreeSet<ValueId>) {
        if let Some(known) = self.terms.get(&value) {
            return known.clone();
        }
        let leaf = (format!("{value}"), BTreeSet::from([value]));
        let term = match self.ssa.values[value].def {
            ValueDef::Constant(op) => (self.operators[op.index()].clone(), BTreeSet::new()),
            ValueDef::Result { statement, .. } => self.of_statement(statement).unwrap_or(leaf),
            _ => leaf,
        };
        self.terms.insert(value, term.clone());
        term
    }

    /// Returns the expression of a statement, if it has one.
    fn of_statement(&mut self, id: StmtId) -> Option<(String, BTreeSet<ValueId>)> {
        let ssa = Rc::clone(&self.ssa);
        let statement = &ssa.statements[id];
        if statement.effect != Effect::None {
            return None;
        }
        let mut text = self.operators[statement.op.index()].clone();
        let mut leaves = BTreeSet::new();
        for &operand in ssa.operands(id) {
            let (term, of) = self.term(operand);
            text = format!("{text} ({term})");
            leaves.extend(of);
        }
        (leaves.len() <= MOST_LEAVES).then_some((text, leaves))
    }
}

/// A computation.
#[derive(Clone)]
struct Computed {
    term: String,
    operands: Vec<Bits>,
    site: AccessSite,
    /// Its path, and the number of the path's execution.
    path: (NodeId, usize),
}

/// An activation.
struct Activation {
    function: FuncId,
    values: HashMap<ValueId, Bits>,
    arguments: Vec<Bits>,
    before: Option<BlockId>,
    /// The call that it waits for.
    waits: Option<StmtId>,
    computed: Vec<Computed>,
}

/// The counts of an operator: its executions, and its redundant executions by source and by route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    executions: u64,
    sources: BTreeMap<AccessSite, u64>,
    ways: BTreeMap<(NodeId, AccessSite, NodeId, bool), u64>,
    paths: BTreeMap<NodeId, (u64, u64)>,
}

type Counts = BTreeMap<AccessSite, Count>;

/// Returns the bits of a constant.
fn constant(operator: &Operator<'_>) -> Option<Bits> {
    Some(match operator {
        Operator::I32Const { value } => (u64::from(*value as u32), 0),
        Operator::I64Const { value } => (*value as u64, 0),
        Operator::F32Const { value } => (u64::from(value.bits()), 0),
        Operator::F64Const { value } => (value.bits(), 0),
        Operator::V128Const { value } => {
            let value = value.i128() as u128;
            (value as u64, (value >> 64) as u64)
        }
        Operator::RefNull { .. } => (NULL, 0),
        Operator::RefFunc { function_index } => (u64::from(*function_index) + 1, 0),
        _ => return None,
    })
}

/// Follows values through a run by the results of its statements. `None` where an exception was
/// thrown, because exceptions are not followed.
struct Walk<'a> {
    recorded: &'a Recorded,
    types: Types<'a>,
    bodies: HashMap<FuncId, Body>,
    open: Vec<Activation>,
    arguments: Vec<Bits>,
    returned: Option<Vec<Bits>>,
    counts: Counts,
}

fn bits(values: &[Value]) -> Vec<Bits> {
    values.iter().map(|value| value.bits).collect()
}

impl Walk<'_> {
    fn body(&mut self, function: FuncId) -> &mut Body {
        let (program, module) = (self.recorded.program(), self.recorded.bytes());
        self.bodies.entry(function).or_insert_with(|| {
            let known = program.function(function).unwrap();
            let operators: Vec<_> = program.operators(module, known).collect();
            let constants = operators
                .iter()
                .filter_map(|(op, _, o)| Some((*op, constant(o)?)));
            Body {
                function: known.clone(),
                ssa: self.types.statements(function).unwrap(),
                constants: constants.collect(),
                operators: operators.iter().map(|(_, _, o)| format!("{o:?}")).collect(),
                terms: HashMap::new(),
            }
        })
    }

    fn enter(&mut self, function: FuncId) {
        self.open.push(Activation {
            function,
            values: HashMap::new(),
            arguments: std::mem::take(&mut self.arguments),
            before: None,
            waits: None,
            computed: Vec::new(),
        });
    }

    fn leave(&mut self) {
        self.open.pop();
        let Some(returned) = self.returned.take() else {
            return;
        };
        if let Some(caller) = self.open.last()
            && let Some(call) = caller.waits
        {
            self.gave(call, &returned);
        }
    }

    /// Records the values that a statement of the innermost activation gave.
    fn gave(&mut self, id: StmtId, values: &[Bits]) {
        let function = self.open.last().unwrap().function;
        let results = self.body(function).ssa.statements[id].results.clone();
        let results = (results.start.as_u32()..results.end.as_u32()).map(ValueId::from_u32);
        let own = &mut self.open.last_mut().unwrap().values;
        own.extend(results.zip(values.iter().copied()));
    }

    /// Returns a value of the innermost activation.
    fn value(&mut self, value: ValueId) -> Bits {
        let activation = self.open.last().unwrap();
        if let Some(&known) = activation.values.get(&value) {
            return known;
        }
        let function = activation.function;
        let arguments = activation.arguments.clone();
        match self.body(function).ssa.values[value].def {
            ValueDef::Param(index) => arguments[index as usize],
            ValueDef::Initial(_) => (0, 0),
            ValueDef::Constant(op) => self.body(function).constants[&op],
            ref other => panic!("{value} of {function} was not given: {other:?}"),
        }
    }

    /// Begins a block. The values that meet there come from the block that control left.
    fn block(&mut self, block: BlockId) {
        let activation = self.open.last().unwrap();
        let (function, before) = (activation.function, activation.before);
        let body = self.body(function);
        let (ssa, cfg) = (Rc::clone(&body.ssa), body.function.cfg.clone());
        let mut met = Vec::new();
        for phi in ssa.phis(block) {
            let edges = cfg.graph.in_edges(block).iter();
            let from = edges
                .zip(&phi.operands)
                .find(|(edge, _)| Some(cfg.edges[**edge].from) == before);
            let (_, &operand) = from.expect("an edge from where control came");
            met.push((phi.value, self.value(operand)));
        }
        let activation = self.open.last_mut().unwrap();
        activation.values.extend(met);
        activation.before = Some(block);
    }

    fn step(&mut self, step: &Step, path: (NodeId, usize)) -> Option<()> {
        let results = match &step.what {
            What::Computed(value) | What::Load(_, value) => vec![value.bits],
            What::Grow { result, .. } => vec![result.bits],
            What::HostReturn(_, values) => bits(values),
            What::Return(values) => {
                self.returned = Some(bits(values));
                return Some(());
            }
            What::Throw(_) => return None,
            What::Call { arguments, .. } => {
                self.arguments = bits(arguments);
                let call = step.op?;
                let id = self.body(step.function).ssa.statement_at(call);
                self.open.last_mut().unwrap().waits = id;
                return Some(());
            }
            _ => return Some(()),
        };
        let Some(op) = step.op else {
            return Some(());
        };
        let Some(id) = self.body(step.function).ssa.statement_at(op) else {
            return Some(());
        };
        self.computes(step.function, id, path);
        self.gave(id, &results);
        Some(())
    }

    fn computes(&mut self, function: FuncId, id: StmtId, path: (NodeId, usize)) {
        let ssa = Rc::clone(&self.body(function).ssa);
        let statement = &ssa.statements[id];
        if statement.effect != Effect::None {
            return;
        }
        let site = AccessSite {
            function,
            op: statement.op,
        };
        let operands = ssa.operands(id).iter();
        let operands: Vec<Bits> = operands.map(|&v| self.value(v)).collect();
        let own = format!("its own: {id}");
        let term = self.body(function).of_statement(id);
        let computed = Computed {
            term: term.map_or(own, |(term, _)| term),
            operands,
            site,
            path,
        };
        let activation = self.open.last_mut().unwrap();
        let before = activation.computed.iter().rev();
        let last = before.clone().find(|other| other.term == computed.term);
        let last = last.filter(|other| other.operands == computed.operands);
        let count = self.counts.entry(site).or_default();
        count.executions += 1;
        let in_path = count.paths.entry(path.0).or_default();
        in_path.0 += 1;
        if let Some(last) = last {
            in_path.1 += 1;
            *count.sources.entry(last.site).or_default() += 1;
            let way = (path.0, last.site, last.path.0, last.path.1 == path.1);
            *count.ways.entry(way).or_default() += 1;
        }
        activation.computed.push(computed);
    }
}

/// Counts by a walk over the run that searches back from each computation. Returns `None` if this
/// is not possible.
fn naive(recorded: &Recorded) -> Option<Counts> {
    let wanted = Wanted {
        level: Level::Statement,
        window: Window {
            first: 1,
            last: recorded.path().unwrap().length(),
        },
        within: Within::default(),
        function: None,
        range: None,
    };
    let mut steps = Steps::new(
        recorded.run_from(None),
        recorded.file().log().unwrap(),
        wanted,
    )
    .unwrap();
    let mut steps = std::iter::from_fn(|| steps.next().unwrap()).peekable();
    let mut visits = Vec::new();
    let mut cursor = recorded.path().unwrap().cursor();
    while let Some(visit) = cursor.next().unwrap() {
        let length = recorded.path().unwrap().nodes()[visit.node].length();
        let begun = visits.len();
        visits.extend((0..length).map(|_| (visit.node, begun)));
    }
    let mut walk = Walk {
        recorded,
        types: Types::new(recorded.program(), recorded.bytes()),
        bodies: HashMap::new(),
        open: Vec::new(),
        arguments: Vec::new(),
        returned: None,
        counts: Counts::new(),
    };
    let mut time = 0;
    for event in collect(recorded.path().unwrap(), &|_| {}).unwrap().events() {
        match event {
            Event::Enter(function) => {
                // The call by the host precedes the block to which it leads.
                if let Some(call) =
                    steps.next_if(|s| s.op.is_none() && matches!(s.what, What::Call { .. }))
                {
                    walk.step(&call, visits[time]);
                }
                walk.enter(function);
            }
            Event::Leave => walk.leave(),
            Event::Block(block) => {
                time += 1;
                walk.block(block);
                while let Some(step) = steps
                    .next_if(|s| s.time == time as u64 && (s.op.is_some() || walk.open.len() > 1))
                {
                    walk.step(&step, visits[time - 1])?;
                }
            }
        }
    }
    Some(walk.counts)
}

fn counted(found: &OperatorRedundancy) -> Count {
    let sources = found.sources.iter().map(|s| (s.site, s.times));
    let ways = found.ways.iter();
    let ways = ways.map(|w| ((w.path, w.source, w.from, w.same), w.times));
    let paths = found.paths.iter();
    Count {
        executions: found.executions,
        sources: sources.collect(),
        ways: ways.collect(),
        paths: paths
            .map(|p| (p.path, (p.executions, p.redundant)))
            .collect(),
    }
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    redundant: u64,
    by_path: u64,
}

fn compare(sandbox: &Sandbox, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    if !(1..=MOST_BLOCKS).contains(&recorded.path().unwrap().length()) {
        return;
    }
    let log = recorded.file().log().unwrap();
    let found = expression_redundancy(recorded.run_from(None), log).unwrap();
    assert!(found.operators.is_sorted_by_key(|operator| operator.site));
    let sum = |of: fn(&OperatorRedundancy) -> u64| found.operators.iter().map(of).sum::<u64>();
    if let Some(expected) = naive(&recorded) {
        let found = found.operators.iter().map(|f| (f.site, counted(f)));
        assert_eq!(found.collect::<Counts>(), expected);
        compared.runs += 1;
        compared.redundant += sum(|operator| operator.redundant);
    }
    let ran = sandbox.ok("redundancy --expressions --exact-only --format json run.aft");
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["executions"], sum(|operator| operator.executions));
    assert_eq!(json["redundant"], sum(|operator| operator.redundant));
    // The results by the path alone must be correct, and so must the results of a fact.
    let (program, module) = (recorded.program(), recorded.bytes());
    let end = recorded.file().end().unwrap();
    let last = end.and_then(|end| LastStep::of(program, module, &end).unwrap());
    let calls = RunCalls::of(recorded.path().unwrap(), last, &|_| {}).unwrap();
    let sites: Vec<AccessSite> = found.operators.iter().map(|f| f.site).collect();
    let by_path = path_expressions(&calls, program, module, &sites, &|_| {});
    let facts = Facts::new(&calls, program, module);
    let mut told = by_path.iter().peekable();
    for exact in &found.operators {
        let (function, op): (FuncId, OpId) = (exact.site.function, exact.site.op);
        let Some(by_path) = told.next_if(|told| told.site == exact.site) else {
            assert!(facts.answer(function, op, &Fact::Available, 0).is_err());
            continue;
        };
        assert_eq!(by_path.executions, exact.executions, "{:?}", exact.site);
        let sources: BTreeMap<_, _> = exact.sources.iter().map(|s| (s.site, s.times)).collect();
        for (source, times) in &by_path.sources {
            assert!(*times <= sources[source], "{by_path:?} {exact:?}");
        }
        let answer = facts.answer(function, op, &Fact::Available, 0).unwrap();
        assert_eq!(answer.holds, by_path.redundant);
        compared.by_path += by_path.redundant;
    }
    assert!(told.next().is_none());
}

#[test]
fn redundant_expressions_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
}

#[test]
fn redundant_expressions_of_programs_that_compute_much_hold() {
    let mut compared = Compared::default();
    for seed in 0..seeds(SEEDS) {
        compare(&memory_recording(seed), &mut compared);
    }
    assert!(
        compared.runs >= seeds(SEEDS) / 2,
        "few runs: {}",
        compared.runs
    );
    assert!(compared.redundant > 1000 && compared.by_path > 100);
}

/// Vectors, selections, recursion in which an expression is computed on both sides of a call, and a
/// run that ends in a trap.
const MIXED: &str = r#"(module
  (func $deep (param $n i32) (param $v v128) (result i32) (local $a i32)
    (local.set $a (i32.mul (local.get $n) (i32.const 3)))
    (drop (i32x4.add (local.get $v) (local.get $v)))
    (if (local.get $n)
      (then (drop (call $deep (i32.sub (local.get $n) (i32.const 1)) (i32x4.add (local.get $v) (v128.const i64x2 0 1))))))
    (drop (i32x4.add (local.get $v) (local.get $v)))
    (i32.add
      (i32.mul (local.get $n) (i32.const 3))
      (select (i32.mul (local.get $n) (i32.const 3)) (local.get $a) (i32.eqz (local.get $n)))))
  (func (export "main") (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.xor (local.get $sum) (call $deep (i32.and (local.get $i) (i32.const 3)) (i32x4.splat (local.get $i)))))
      (drop (i32.div_u (i32.const 100) (i32.sub (i32.const 20) (local.get $i))))
      (drop (i32.eqz (i32.and (local.get $i) (i32.const 8))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 30))))
    (local.get $sum)))"#;

#[test]
fn redundant_expressions_of_vectors_and_recursion_hold() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(MIXED).unwrap());
    // The run traps.
    sandbox.run("record --invoke main -o run.aft a.wasm");
    sandbox.ok("build --lens paths run.aft");
    let mut compared = Compared::default();
    compare(&sandbox, &mut compared);
    assert_eq!(compared.runs, 1);
    assert!(compared.redundant > 50 && compared.by_path > 20);
}
