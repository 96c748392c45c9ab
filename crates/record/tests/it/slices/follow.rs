//! Slices every guest from many criteria.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Machine;
use afterimage_slice::{
    Backward, Criterion, Edge, Exercised, Follows, Forward, Instances, Operator, Potential, Reach,
    Want, Why,
};
use afterimage_testkit::modules::SplitMix64;

use super::altered::{Altered, Kept, SliceStart};
use super::naive::{Executed, Naive, Part, Users, Vertex};
use crate::guests::record_run;
use crate::harness::{Recording, quiet};
use crate::stored::Stored;

/// Longer runs are not sliced, because the naive graph would take too much memory.
const MOST: u64 = 20_000;
/// The corresponding limit for each run of the corpus.
const MOST_OF_CORPUS: u64 = 1_000_000;
/// The numbers of criteria for a run of up to `SHORT` blocks, for a longer run, and for each run of
/// the corpus.
const CRITERIA: u64 = 25;
const SHORT: u64 = 1000;
const CRITERIA_OF_LONG: u64 = 4;
const CRITERIA_OF_CORPUS: u64 = 2;

/// The memory in bytes for cached results of nodes, or `None` for the default.
const ROOMS: [Option<usize>; 4] = [None, Some(0), Some(2_000), Some(20_000)];

/// The number of criteria whose slices are executed again.
const REEVALUATED: usize = 3;

/// The depth limits of slices.
const DEPTHS: [u8; 4] = [0, 1, 2, 9];

const FOLLOWS: [Follows; 4] = [Follows::ALL, Follows::DATA, Follows::THIN, Follows::CONTROL];

/// Checks that slices equal the reachable executions.
pub fn agree(recording: &Recording, stored: &Stored) {
    let length = stored.path.length();
    if length <= MOST {
        let criteria = CRITERIA * SHORT / length.max(SHORT);
        agree_on(recording, stored, criteria.max(CRITERIA_OF_LONG));
    }
}

/// Checks the same for a real program, from few criteria.
pub fn agree_on_few(recording: &Recording, stored: &Stored) {
    let length = stored.path.length();
    if length <= MOST_OF_CORPUS {
        agree_on(recording, stored, CRITERIA_OF_CORPUS)
    } else {
        println!("  LEFT OUT: {length} blocks are too many")
    }
}

fn agree_on(recording: &Recording, stored: &Stored, criteria: u64) {
    let length = stored.path.length();
    let (naive, machine) = Naive::record(recording, stored);
    let compared = Compared {
        recording,
        stored,
        machine: &machine,
        users: FOLLOWS.map(|follows| naive.users(follows)),
        edges: edges(recording, stored, &naive, &machine),
        naive: &naive,
    };
    let mut random = SplitMix64(length);
    let mut earlier = Vec::new();
    let count = naive.executed.len();
    for turn in 0..criteria.min(2 * count as u64) {
        let at = match turn {
            0 => count - 1,
            _ => random.below(count),
        };
        let executed = &naive.executed[at];
        let inst = match executed.insts.len() {
            0 => None,
            // The instruction that trapped is the last.
            many if turn == 0 => Some(many - 1),
            many => Some(random.below(many)),
        };
        let of = |want| Criterion {
            start: executed.start,
            wants: vec![want],
            reach: Reach::ALL,
        };
        let mut criteria: Vec<(Criterion, Vec<Vertex>)> = Vec::new();
        criteria.extend(inst.map(|inst| (of(Want::Inst(inst)), vec![executed.insts[inst]])));
        let last = executed.blocks.len().checked_sub(1);
        criteria.extend(last.map(|last| (of(Want::Block(last)), vec![executed.blocks[last]])));
        if let Some(end) = executed.end {
            criteria.push((of(Want::End), vec![end]));
        }
        earlier.extend(criteria.iter().cloned());
        for (criterion, from) in criteria {
            compared.slices(&[criterion], &from);
        }
    }
    // A trapped instruction has no value to compare.
    let trapped = |from: &[Vertex]| naive.trapped.is_some_and(|trapped| from == [trapped]);
    let laws = earlier.iter().filter(|(_, from)| !trapped(from));
    let laws = laws.filter_map(|(criterion, from)| {
        let start = |executed: &Executed| executed.start;
        let at = naive.executed.binary_search_by_key(&criterion.start, start);
        let asked = match criterion.wants[..] {
            [Want::Inst(inst)] => SliceStart::Inst(inst),
            [Want::End] => SliceStart::End,
            _ => return None,
        };
        Some((criterion, from, (at.expect("an execution"), asked)))
    });
    for (criterion, from, asked) in laws.take(REEVALUATED) {
        compared.reevaluates(criterion, from, asked);
    }
    for pair in earlier.windows(2).step_by(3) {
        compared.chop(&pair[0], &pair[1]);
        compared.chop(&pair[1], &pair[0]);
    }
    potential(&compared);
    // For several criteria at once, the slice is everything reachable from any of them.
    for some in earlier.chunks(5) {
        let criteria = some.iter().map(|(criterion, _)| criterion.clone());
        let criteria = Vec::from_iter(criteria);
        let from = Vec::from_iter(some.iter().flat_map(|(_, from)| from.iter().copied()));
        compared.slices(&criteria, &from);
    }
}

/// Checks that potential dependences include every observed dependence of operators, and that the
/// forward direction is the reverse of the backward direction.
fn potential(compared: &Compared<'_>) {
    let (recording, stored) = (compared.recording, compared.stored);
    let codes = compared.machine.codes().iter();
    let codes = codes.map(|(node, code)| (node, code.clone()));
    let mut potential = Potential::new(&recording.program, stored.path.nodes(), codes);
    let users = BTreeSet::from_iter(compared.edges.iter().map(|edge| edge.user));
    let some = Vec::from_iter(users.iter().copied().step_by(users.len() / 6 + 1));
    for follows in FOLLOWS {
        for reach in [Reach::ALL, depth(2)] {
            let forward = some
                .iter()
                .map(|one| potential.forward(&[*one], follows, reach));
            let forward = Vec::from_iter(forward);
            for &user in &some {
                let may = potential.backward(&[user], follows, reach);
                for (other, users) in some.iter().zip(&forward) {
                    let same = may.contains(other) == users.contains(&user);
                    assert!(same, "{user:?} {other:?} {follows:?} {reach:?}");
                }
            }
        }
        for &user in &some {
            let may = potential.backward(&[user], follows, Reach::ALL);
            let ever = compared.reachable(&[user], follows);
            let missing = Vec::from_iter(ever.difference(&may));
            assert!(missing.is_empty(), "{user:?} {follows:?}: {missing:?}");
            // Each round adds one dependence.
            let mut reached = BTreeSet::from([user]);
            for rounds in 0..4 {
                let found = potential.backward(&[user], follows, depth(rounds));
                assert_eq!(found, reached, "{user:?} {follows:?} {rounds}");
                // A dependence through memory leads to all stores, so the first rounds must suffice
                // for large programs.
                if reached.len() > 200 {
                    break;
                }
                let next = reached.iter();
                let next = next.map(|one| potential.backward(&[*one], follows, depth(1)));
                reached = next.flatten().collect();
            }
        }
    }
}

fn depth(depth: u8) -> Reach {
    Reach::of_depth(depth).expect("not too deep")
}

/// Returns the criteria with a limit on the number of dependences.
fn limited(criteria: &[Criterion], depth: u8) -> Vec<Criterion> {
    let reach = self::depth(depth);
    let limit = |criterion: &Criterion| Criterion {
        reach,
        ..criterion.clone()
    };
    criteria.iter().map(limit).collect()
}

/// A run and all of its dependences.
struct Compared<'t> {
    recording: &'t Recording,
    stored: &'t Stored,
    naive: &'t Naive<'t>,
    machine: &'t Machine<'t>,
    /// The users of each vertex, for each kind of slice.
    users: [Users; FOLLOWS.len()],
    /// The observed dependences between operators.
    edges: BTreeSet<Edge>,
}

impl Compared<'_> {
    /// Checks that slices from these criteria are the sets reachable from these vertices, backward
    /// and forward.
    fn slices(&self, criteria: &[Criterion], from: &[Vertex]) {
        for (follows, users) in FOLLOWS.into_iter().zip(&self.users) {
            let found = self.backward(criteria, follows, None);
            let reached = self.naive.reach(from, follows);
            let what = format!("backward {criteria:?} {follows:?}");
            same(&found, &self.naive.count(&reached, usize::MAX), &what);
            for depth in DEPTHS {
                let criteria = limited(criteria, depth);
                let found = self.backward(&criteria, follows, None);
                let what = format!("backward {depth} deep {criteria:?} {follows:?}");
                let expected = self.naive.count(&reached, usize::from(depth));
                same(&found, &expected, &what);
            }
            if follows == Follows::ALL {
                // Operators depended on each other if their executions did.
                let from = from.iter().filter_map(|&v| self.naive.operator(v));
                let from = Vec::from_iter(from);
                let wider = self.reachable(&from, follows);
                let only_blocks = criteria.iter().flat_map(|c| &c.wants);
                let mut only_blocks = only_blocks.filter(|want| matches!(want, Want::Block(_)));
                assert!(
                    only_blocks.next().is_some()
                        || from.is_empty()
                        || found.keys().all(|op| wider.contains(op)),
                    "{what}: not all of it is reachable over edges"
                );
            }
            let (found, _) = self.forward(criteria, follows);
            let reached = self.naive.reached_from(from, users);
            let what = format!("forward {criteria:?} {follows:?}");
            same(&found, &self.naive.count(&reached, usize::MAX), &what);
            // The execution of a block is not the execution of a statement, so counting cannot
            // start at a block.
            let of_blocks = |want: &Want| matches!(want, Want::Block(_));
            if criteria.iter().any(|one| one.wants.iter().any(of_blocks)) {
                continue;
            }
            for depth in DEPTHS {
                let criteria = limited(criteria, depth);
                let (found, _) = self.forward(&criteria, follows);
                let what = format!("forward {depth} deep {criteria:?} {follows:?}");
                let expected = self.naive.count(&reached, usize::from(depth));
                same(&found, &expected, &what);
            }
        }
    }

    /// Checks that executing only a data slice reproduces the criterion's value, whatever the
    /// values outside the slice are.
    fn reevaluates(&self, criterion: &Criterion, from: &[Vertex], asked: (usize, SliceStart)) {
        let follows = FOLLOWS[1];
        let reached = self.naive.reach(from, follows);
        let operators = self.backward(std::slice::from_ref(criterion), follows, None);
        let kept = [
            Kept::Executions(self.naive, &reached),
            Kept::Operators(&operators),
        ];
        for kept in kept {
            let altered = Altered::run(self.recording, self.stored, kept, asked);
            assert_eq!(altered.same, Some(true), "{criterion:?} depends on more");
        }
    }

    /// Returns the operators on which some execution of these operators depended, directly or
    /// indirectly.
    fn reachable(&self, from: &[Operator], follows: Follows) -> BTreeSet<Operator> {
        let (mut found, mut work) = (BTreeSet::new(), from.to_vec());
        while let Some(user) = work.pop() {
            if found.insert(user) {
                let first = Edge {
                    user,
                    on: (FuncId::from_u32(0), OpId::from_u32(0)),
                    why: Why::Data,
                };
                let own = self.edges.range(first..);
                let own = own.take_while(|edge| edge.user == user);
                let on = own.filter(|edge| match edge.why {
                    Why::Data => follows.data,
                    Why::Address => follows.data && follows.addresses,
                    Why::Control => follows.control,
                    Why::Moved => follows.data && follows.control,
                });
                work.extend(on.map(|edge| edge.on));
            }
        }
        found
    }

    /// Checks that a chop is the intersection of both slices.
    fn chop(&self, from: &(Criterion, Vec<Vertex>), to: &(Criterion, Vec<Vertex>)) {
        for (follows, users) in FOLLOWS.into_iter().zip(&self.users) {
            let (_, instances) = self.forward(std::slice::from_ref(&from.0), follows);
            let within = Some((instances, std::slice::from_ref(&from.0)));
            let found = self.backward(std::slice::from_ref(&to.0), follows, within);
            let reached = self.naive.reached_from(&from.1, users);
            let reaching = self.naive.reach(&to.1, follows);
            let both = reached.iter().zip(&reaching);
            let both = both.map(|(a, b)| a.and(*b)).collect();
            let mut expected = self.naive.count(&both, usize::MAX);
            // The execution of a block is not a statement.
            let is_block = from
                .0
                .wants
                .iter()
                .any(|want| matches!(want, Want::Block(_)));
            if !is_block && !from.1.iter().any(|&v| reaching[v].is_some()) {
                expected.clear();
            }
            let what = format!("chop {from:?} {to:?} {follows:?}");
            same(&found, &expected, &what);
        }
    }

    fn backward(
        &self,
        criteria: &[Criterion],
        follows: Follows,
        within: Option<(Instances, &[Criterion])>,
    ) -> BTreeMap<Operator, u64> {
        let program = &self.recording.program;
        let nodes = self.stored.path.nodes();
        let mut slicer = Backward::new(program, nodes, follows, criteria.to_vec());
        // The slice is the same with too little memory for cached results.
        let starts = criteria.iter().map(|criterion| criterion.start);
        if let Some(room) = ROOMS[starts.sum::<u64>() as usize % ROOMS.len()] {
            slicer = slicer.with_room(room);
        }
        if let Some((instances, from)) = within {
            slicer = slicer.within(instances, from);
        }
        for (node, code) in self.machine.codes().iter() {
            slicer.prepare(node, code);
        }
        for part in self.naive.stretches.iter().rev() {
            slicer.pass(&part.stretch);
        }
        slicer.finish().operators
    }

    /// Slices forward, starting with the part that contains the first criterion.
    fn forward(
        &self,
        criteria: &[Criterion],
        follows: Follows,
    ) -> (BTreeMap<Operator, u64>, Instances) {
        let program = &self.recording.program;
        let nodes = self.stored.path.nodes();
        let first = criteria.iter().map(|criterion| criterion.start).min();
        let first = first.expect("a criterion");
        let slicer = Forward::new(program, nodes, follows, criteria.to_vec());
        let mut slicer = slicer.with_instances();
        for (node, code) in self.machine.codes().iter() {
            slicer.prepare(node, code);
        }
        let begins = |part: &Part| part.stretch.first().is_some_and(|start| start <= first);
        let part = self.naive.stretches.iter().rposition(begins).unwrap_or(0);
        let parts = &self.naive.stretches[part..];
        for &(function, node) in &parts[0].open {
            slicer.open(function, node);
        }
        for part in parts {
            slicer.pass(&part.stretch);
        }
        let instances = slicer.instances().expect("kept");
        (slicer.finish().operators, instances)
    }
}

/// Returns the exercised edges, and checks that values flow exactly over the naive record's edges.
fn edges(
    recording: &Recording,
    stored: &Stored,
    naive: &Naive<'_>,
    machine: &Machine<'_>,
) -> BTreeSet<Edge> {
    let mut exercised = Exercised::new(&recording.program, stored.path.nodes());
    for (node, code) in machine.codes().iter() {
        exercised.prepare(node, code);
    }
    for part in &naive.stretches {
        exercised.pass(&part.stretch);
    }
    let edges = exercised.finish();
    let mut taken = edges.clone();
    taken.retain(|edge| matches!(edge.why, Why::Data | Why::Address));
    let expected = naive.values_taken();
    let differ = Vec::from_iter(taken.symmetric_difference(&expected));
    assert!(differ.is_empty(), "edges that only one has: {differ:?}");
    edges
}

fn same(found: &BTreeMap<Operator, u64>, expected: &BTreeMap<Operator, u64>, what: &str) {
    let keys = found.keys().chain(expected.keys());
    let differs = |key: &&_| found.get(*key) != expected.get(*key);
    let differ = keys
        .filter(differs)
        .map(|key| (key, found.get(key), expected.get(key)));
    let differ = Vec::from_iter(differ);
    assert!(
        differ.is_empty(),
        "{what}: operator, found, expected: {differ:?}"
    );
}

/// Removing any single operator or execution from a slice changes the criterion's value.
#[test]
fn what_is_missing_from_a_slice_is_found() {
    let recording = record_run(
        r#"(module (memory 1) (global $g (mut i32) (i32.const 3))
          (func $add (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
          (func (export "run") (result i32) (local $at i32)
            (global.set $g (i32.mul (global.get $g) (i32.const 7)))
            (i32.store (i32.const 8) (call $add (global.get $g) (i32.const 4)))
            (i32.store (i32.const 16) (i32.const 99))
            (local.set $at (i32.shl (i32.load8_u (i32.const 20)) (i32.const 1)))
            (memory.copy (i32.const 32) (i32.const 8) (i32.const 4))
            (i32.xor (i32.load offset=32 (local.get $at)) (i32.const 1))))"#,
        &[],
        &quiet(),
    );
    let stored = Stored::of(&recording);
    let (naive, machine) = Naive::record(&recording, &stored);
    let compared = Compared {
        recording: &recording,
        stored: &stored,
        machine: &machine,
        users: FOLLOWS.map(|follows| naive.users(follows)),
        edges: BTreeSet::new(),
        naive: &naive,
    };
    let at = naive.executed.len() - 1;
    let executed = &naive.executed[at];
    let inst = executed.insts.len() - 1;
    let criterion = Criterion {
        start: executed.start,
        wants: vec![Want::Inst(inst)],
        reach: Reach::ALL,
    };
    let asked = (at, SliceStart::Inst(inst));
    let from = [executed.insts[inst]];
    compared.reevaluates(&criterion, &from, asked);

    // A call only passes on its operands.
    let ends = naive.executed.iter().filter_map(|executed| executed.end);
    let ends = Vec::from_iter(ends.filter_map(|end| naive.operator(end)));
    let all = compared.backward(&[criterion], FOLLOWS[1], None);
    let mut found = 0;
    for operator in all.keys().filter(|operator| !ends.contains(operator)) {
        let mut less = all.clone();
        less.remove(operator);
        let same = Altered::run(&recording, &stored, Kept::Operators(&less), asked).same;
        assert_eq!(same, Some(false), "without {operator:?}");
        found += 1;
    }
    // These are two reads and a write of the global, the product, the sum and its store, the shift
    // and its load, the copy and its load, and the criterion.
    assert_eq!(found, 11);

    let all = naive.reach(&from, FOLLOWS[1]);
    let insts = naive.executed.iter().flat_map(|executed| &executed.insts);
    let reached = insts.filter(|&&inst| all[inst].is_some());
    let mut found = 0;
    for &inst in reached {
        let mut less = all.clone();
        less[inst] = None;
        let kept = Kept::Executions(&naive, &less);
        let same = Altered::run(&recording, &stored, kept, asked).same;
        assert_eq!(
            same,
            Some(false),
            "without an execution of {:?}",
            naive.operator(inst)
        );
        found += 1;
    }
    assert_eq!(found, 11);
}
