//! The distances of the nearest lines equal those of a naive search: all dependences of a short run
//! are listed, and distances are lowered until none changes (Bellman 1958).

use std::collections::{BTreeMap, HashMap};

use afterimage_analyses::slices::{Criterion, Nearby, Reach, Through, Visibility, Want, nearest};
use afterimage_ids::{FuncId, OpId};
use afterimage_program::Program;
use afterimage_replay::values::{
    Controller, Controllers, Execution, HostReads, Instance, Kind, Origin, RecordedValues,
    Statement, moves, operands, reads,
};
use afterimage_testkit::modules::SplitMix64;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};
use crate::common::recorded::Recorded;

/// The maximum number of blocks. Longer runs are left out.
const MOST: u64 = 3000;
/// The number of questions about a run.
const ASKED: usize = 12;

/// A program with atomic operators, each of which the machine executes as several instructions.
pub const ATOMICS: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32) (local $sum i32)
    (loop $again
      (i32.atomic.store (i32.shl (local.get $i) (i32.const 2)) (i32.add (local.get $i) (i32.const 7)))
      (local.set $sum (i32.add (local.get $sum)
        (i32.atomic.rmw.add (i32.and (local.get $i) (i32.const 12)) (i32.mul (local.get $i) (i32.const 3)))))
      (local.set $sum (i32.xor (local.get $sum)
        (i32.atomic.rmw.cmpxchg (i32.const 8) (i32.sub (local.get $i) (i32.const 1)) (local.get $sum))))
      (local.set $sum (i32.add (local.get $sum) (i32.atomic.load (i32.const 4))))
      (i32.store (i32.const 64) (local.get $sum))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 12))))
    (drop (i32.div_u (i32.load (i32.const 64)) (i32.sub (local.get $sum) (local.get $sum))))))"#;

#[derive(Debug, Default)]
struct Compared {
    lines: usize,
    /// The numbers of lines reached through values, addresses, and branches or calls.
    through: [usize; 3],
    /// The number of lines whose distance includes a dependence within one line.
    within: usize,
}

#[test]
fn of_generated_programs() {
    let mut all = Compared::default();
    crate::forward::recorded::each_recorded(4, |sandbox| compare(sandbox, &mut all));
    each_with_values(seeds(4), |sandbox| compare(sandbox, &mut all));
    println!("{all:?}");
    assert!(all.lines > 1000 && all.within > 50, "{all:?}");
    assert!(all.through.iter().all(|&of| of > 50), "{all:?}");
}

#[test]
fn of_programs_with_exceptions_tables_atomics_and_copies() {
    for text in [
        crate::forward_holds::PROGRAM,
        crate::forward_holds::EXCEPTIONS,
        crate::forward_holds::TABLES,
        crate::deps_slices::PROGRAM,
        ATOMICS,
    ] {
        let sandbox = Sandbox::new();
        sandbox.wasm("a.wasm", text);
        sandbox.run("record --lens full -o run.aft a.wasm");
        let mut all = Compared::default();
        compare(&sandbox, &mut all);
        println!("{all:?}");
        assert!(all.lines > 100, "{all:?}");
    }
}

/// An execution that depends on others: of an instruction's operator, of a call or return (with or
/// without its values), or of a block at a position in the node. The first number is the time at
/// which the node begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Vertex {
    Op(u64, OpId),
    End(u64, bool),
    Block(u64, u64),
}

/// The kinds of dependences that have different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Value,
    AddressRead,
    AddressWritten,
    Control,
}

#[derive(Default)]
struct Graph {
    /// All dependences, those of the latest executions first. They lead to earlier executions.
    edges: Vec<(Vertex, Vertex, How)>,
    /// The operators of the vertices that have one, with the times of their blocks.
    spots: BTreeMap<Vertex, (FuncId, OpId, u64)>,
}

/// A recording whose dependences are listed.
struct Listed<'v, 'a> {
    values: &'v RecordedValues<'a>,
    host: &'v HostReads<'v, 'a>,
    program: &'a Program,
    controllers: Controllers<'a>,
    /// The calls to the host that the guest made, with the executions that made them.
    calls: HashMap<u64, Instance>,
    /// The operators that write to memory at an address.
    writes: HashMap<(FuncId, OpId), bool>,
}

/// Dependences that stored values do not describe, because an exception was caught. The search does
/// not continue from an execution with such a dependence.
struct Undescribed;

impl Listed<'_, '_> {
    fn graph(&self) -> Graph {
        let path = self.values.path();
        let mut graph = Graph::default();
        let mut cursor = path.cursor();
        let mut visits = Vec::new();
        while let Some(visit) = cursor.next().unwrap() {
            // The last node may not have reached its end.
            if visit.last() < path.length() {
                visits.push(visit);
            }
        }
        for visit in visits.into_iter().rev() {
            let instance = self.values.at(visit.start).unwrap().unwrap();
            let compiled = self.values.compiled(visit.node).unwrap();
            let node = &path.nodes()[visit.node];
            let all = Statement::all(self.program, &compiled.code, &node.blocks);
            for (op, statement) in all {
                let spot = (node.function, op, visit.start + statement.block);
                let vertices = match statement.kind {
                    Kind::Inst(_) => vec![(Vertex::Op(visit.start, op), true)],
                    _ => vec![
                        (Vertex::End(visit.start, true), true),
                        (Vertex::End(visit.start, false), false),
                    ],
                };
                for (vertex, takes) in vertices {
                    graph.spots.insert(vertex, spot);
                    let on = self.of_statement(instance, (op, statement), takes);
                    let on = on.unwrap_or_default().into_iter();
                    graph.edges.extend(on.map(|(on, how)| (vertex, on, how)));
                }
            }
            for block in 0..node.length() {
                let vertex = Vertex::Block(visit.start, block);
                let mut on = Vec::new();
                let described = self.control(instance, block, &mut on);
                if described.is_ok() {
                    graph
                        .edges
                        .extend(on.into_iter().map(|(on, how)| (vertex, on, how)));
                }
            }
        }
        graph
    }

    fn of_statement(
        &self,
        instance: Instance,
        (op, statement): (OpId, Statement),
        takes: bool,
    ) -> Result<Vec<(Vertex, How)>, Undescribed> {
        let mut found = Vec::new();
        if statement.kind == Kind::Throw {
            return Err(Undescribed);
        }
        let function = self.values.path().nodes()[instance.node].function;
        let writes = self.writes[&(function, op)];
        let is_taken = |_: usize, role: &str| takes || role != "argument";
        let all = operands(self.values, instance, statement).unwrap();
        // A copy reads from one address and writes to another.
        let is_memory = |role: &str| match role {
            "address" | "base address" => true,
            "to" | "from" => writes,
            _ => false,
        };
        for (role, origin) in all {
            if !is_taken(0, role) {
                continue;
            }
            let how = match is_memory(role) {
                true if writes && role != "from" => How::AddressWritten,
                // A data segment is not memory.
                true if role != "from" || self.is_copy(instance, statement) => How::AddressRead,
                _ => How::Value,
            };
            found.extend(self.origin(origin)?.map(|on| (on, how)));
        }
        for one in reads(self.values, instance, statement).unwrap() {
            found.extend(self.origin(one.origin)?.map(|on| (on, How::Value)));
        }
        if takes && matches!(statement.kind, Kind::Call(_)) {
            for part in self.host.parts(instance, u64::MAX).unwrap().0 {
                found.extend(self.origin(part.origin)?.map(|on| (on, How::Value)));
            }
        }
        for moved in moves(self.values, instance, statement, is_taken).unwrap() {
            let block = moved.time - moved.instance.time;
            self.control(moved.instance, block, &mut found)?;
        }
        self.control(instance, statement.block, &mut found)?;
        Ok(found)
    }

    fn is_copy(&self, instance: Instance, statement: Statement) -> bool {
        reads(self.values, instance, statement)
            .unwrap()
            .iter()
            .any(|one| one.role == "memory")
    }

    fn origin(&self, origin: Origin) -> Result<Option<Vertex>, Undescribed> {
        Ok(match origin {
            Origin::Constant | Origin::Zero | Origin::Argument { .. } | Origin::Initial => None,
            Origin::Operator { instance, op } => {
                let compiled = self.values.compiled(instance.node).unwrap();
                let blocks = &self.values.path().nodes()[instance.node].blocks;
                let all = Statement::all(self.program, &compiled.code, blocks);
                let of = all.iter().find(|(other, _)| *other == op);
                match of.expect("a statement").1.kind {
                    Kind::Inst(_) => Some(Vertex::Op(instance.time, op)),
                    _ => return Err(Undescribed),
                }
            }
            Origin::Returned { instance, .. } => Some(Vertex::End(instance.time, true)),
            Origin::Host { call } => match self.calls.get(&call) {
                Some(instance) => Some(Vertex::End(instance.time, true)),
                None => return Err(Undescribed),
            },
        })
    }

    /// Adds the branches and calls because of which a block of a node was executed.
    fn control(
        &self,
        instance: Instance,
        block: u64,
        found: &mut Vec<(Vertex, How)>,
    ) -> Result<(), Undescribed> {
        let execution = Execution {
            number: 0,
            time: instance.time + block,
            instance,
            statement: None,
        };
        let all = self.controllers.of_execution(self.values, &execution);
        for controller in all.unwrap() {
            let time = match controller {
                Controller::Host => continue,
                Controller::Throw { .. } => return Err(Undescribed),
                Controller::Call { time } | Controller::Branch { time, .. } => time,
            };
            let by = self.values.at(time).unwrap().unwrap();
            let compiled = self.values.compiled(by.node).unwrap();
            let blocks = &self.values.path().nodes()[by.node].blocks;
            let all = Statement::all(self.program, &compiled.code, blocks);
            let position = time - by.time;
            let last = all.iter().rfind(|(_, one)| one.block == position);
            let decides = |(op, one): &(OpId, Statement)| match one.kind {
                Kind::Inst(_) => {
                    let operands = one.operands(&compiled.code);
                    let is_branch = operands.iter().any(|of| of.role == "condition");
                    let selects = operands.len() > 1;
                    (is_branch && !selects).then_some(Vertex::Op(by.time, *op))
                }
                Kind::Call(_) | Kind::Throw => Some(Vertex::End(by.time, false)),
                Kind::Return => None,
            };
            let on = last.and_then(decides);
            found.push((on.unwrap_or(Vertex::Block(by.time, position)), How::Control));
        }
        Ok(())
    }
}

/// The lines of a program: each operator is a line, or several operators share one, and some are not
/// shown or end the search.
fn place(coarse: bool, function: FuncId, op: OpId) -> Visibility<(FuncId, u32)> {
    let number = op.as_u32();
    if !coarse {
        return Visibility::Line((function, number));
    }
    match (function.as_u32() * 7 + number / 3) % 11 {
        0 => Visibility::Origin,
        1 | 2 => Visibility::Elsewhere,
        _ => Visibility::Line((function, number / 4)),
    }
}

/// Returns the length that `docs/AGENTS.md` states. `same` means that both ends are on the same
/// line, or that neither is shown.
fn length(how: How, same: bool) -> u32 {
    match how {
        How::Value if same => 1,
        How::Value => 3,
        How::AddressRead => 10,
        How::Control => 30,
        How::AddressWritten => 60,
    }
}

fn through(how: How) -> Through {
    match how {
        How::Value => Through::Values,
        How::AddressRead | How::AddressWritten => Through::Addresses,
        How::Control => Through::Control,
    }
}

type Distances = BTreeMap<Vertex, (u32, Through)>;

impl Graph {
    fn at(&self, coarse: bool, vertex: Vertex) -> Visibility<(FuncId, u32)> {
        match self.spots.get(&vertex) {
            Some(&(function, op, _)) => place(coarse, function, op),
            None => Visibility::Elsewhere,
        }
    }

    /// Lowers distances until none changes. Of two chains with the same length, the one through
    /// values is preferred.
    fn distances(&self, from: &[(Vertex, Through)], coarse: bool) -> Distances {
        let mut found: Distances = from.iter().map(|&(v, through)| (v, (0, through))).collect();
        loop {
            let mut is_changed = false;
            for &(user, on, how) in &self.edges {
                let (Some(&(distance, before)), at) = (found.get(&user), self.at(coarse, user))
                else {
                    continue;
                };
                if at == Visibility::Origin {
                    continue;
                }
                let far = distance + length(how, at == self.at(coarse, on));
                let new = (far, before.max(through(how)));
                if found.get(&on).is_none_or(|known| new < *known) {
                    found.insert(on, new);
                    is_changed = true;
                }
            }
            if !is_changed {
                return found;
            }
        }
    }

    /// Compares the nearest lines with the distances of all executions.
    fn check(
        &self,
        found: &[Nearby<(FuncId, u32)>],
        (distances, coarse): (&Distances, bool),
        all: &mut Compared,
    ) {
        let mut lines: BTreeMap<_, u32> = BTreeMap::new();
        for (&vertex, &(distance, _)) in distances {
            if let Visibility::Line(line) = self.at(coarse, vertex) {
                let known = lines.entry(line).or_insert(distance);
                *known = distance.min(*known);
            }
        }
        let answered = found.iter().map(|one| (one.line, one.distance));
        assert_eq!(answered.collect::<BTreeMap<_, _>>(), lines);
        for one in found {
            let is_it = |vertex: &&Vertex| self.spots.get(vertex) == Some(&one.spot);
            let mut there = distances.keys().filter(is_it);
            let is_so = |vertex: &Vertex| distances[vertex] == (one.distance, one.through);
            assert!(there.any(is_so), "{one:?}");
            all.through[one.through as usize] += 1;
            all.within += usize::from(one.distance % 10 % 3 > 0);
        }
        all.lines += found.len();
    }
}

fn compare(sandbox: &Sandbox, all: &mut Compared) {
    let Some(recorded) = Recorded::short(sandbox, MOST) else {
        return;
    };
    let (program, module) = (recorded.program(), recorded.bytes());
    let path = recorded.path().unwrap();
    let values = recorded.values().unwrap();
    let run = recorded.run_from_checkpoints().unwrap();
    let host = HostReads::new(&values, run, recorded.file().clone());
    let (mut calls, mut starts) = (HashMap::new(), Vec::new());
    let mut cursor = path.cursor();
    while let Some(visit) = cursor.next().unwrap() {
        if visit.last() < path.length() {
            let instance = values.at(visit.start).unwrap().unwrap();
            let call = values.host_call(instance).unwrap();
            calls.extend(call.map(|call| (call, instance)));
            starts.push(instance);
        }
    }
    let mut writes = HashMap::new();
    for function in &program.functions {
        for (op, _, operator) in program.operators(module, function) {
            let name = format!("{operator:?}");
            let memory = ["MemoryFill", "MemoryInit", "MemoryCopy"];
            let is_store = memory.iter().any(|one| name.starts_with(one))
                || name.contains("Store") && !name.contains("Cmpxchg");
            writes.insert((function.id, op), is_store);
        }
    }
    let listed = Listed {
        values: &values,
        host: &host,
        program,
        controllers: Controllers::new(program),
        calls,
        writes,
    };
    let graph = listed.graph();
    let mut random = SplitMix64(path.length());
    if starts.is_empty() {
        return;
    }
    for _ in 0..ASKED {
        // Start from one, two or three executions at once.
        let (mut criteria, mut from) = (Vec::new(), Vec::new());
        for _ in 0..1 + random.below(3) {
            // Later executions have more dependences.
            let half = starts.len() / 2;
            let instance = starts[half + random.below(starts.len() - half)];
            let blocks = &path.nodes()[instance.node].blocks;
            let compiled = values.compiled(instance.node).unwrap();
            let statements = Statement::all(program, &compiled.code, blocks);
            let block = random.below(blocks.len());
            let (want, vertex) = match statements.len() {
                0 => (
                    Want::Block(block),
                    Vertex::Block(instance.time, block as u64),
                ),
                count => match statements[random.below(count)] {
                    (
                        op,
                        Statement {
                            kind: Kind::Inst(inst),
                            ..
                        },
                    ) => (Want::Inst(inst), Vertex::Op(instance.time, op)),
                    _ => (Want::End, Vertex::End(instance.time, true)),
                },
            };
            let through = match want {
                Want::Block(_) => Through::Control,
                _ => Through::Values,
            };
            from.push((vertex, through));
            criteria.push(Criterion {
                start: instance.time,
                wants: vec![want],
                reach: Reach::of_depth(0).expect("not too deep"),
            });
        }
        for coarse in [false, true] {
            let mut each = |function, op| place(coarse, function, op);
            let most = (usize::MAX, usize::MAX);
            let found = nearest(&host, module, &criteria, &mut each, most).unwrap();
            assert!(!found.cut && found.lines.is_sorted_by_key(|one| one.distance));
            let distances = graph.distances(&from, coarse);
            println!("{criteria:?} {coarse}");
            graph.check(&found.lines, (&distances, coarse), all);
        }
    }
}
