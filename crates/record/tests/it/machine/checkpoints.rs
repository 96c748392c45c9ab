//! Checks that a machine restored from a checkpoint continues like a machine that got there from
//! the beginning.

use std::hash::{DefaultHasher, Hash, Hasher};

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{
    Caller, Checkpoint, Code, GlobalBits, Machine, MachineError, Memory, NodeCode, Observer, Range,
    Snapshot, State, StoppedBefore, stopped_before,
};
use afterimage_numeric::Kind;
use afterimage_testkit::modules::SplitMix64;

use wasmparser::ValType;

use super::follow::Path;
use crate::harness::Recording;

/// The maximum number of nodes executed after a checkpoint, except after the last one.
const MOST: usize = 3_000;
/// The number of checkpoints tried in a run.
const TRIED: usize = 4;
/// The maximum number of nodes from which to continue.
const EVERYWHERE: usize = 40;
/// Continuing from every node is tried only if memories have at most this many bytes.
const LARGE: usize = 1 << 17;

/// A hash of everything an observer receives.
#[derive(Default)]
struct Digest(DefaultHasher);

impl Digest {
    fn note(&mut self, what: &str, values: impl Hash) {
        (what, values).hash(&mut self.0);
    }

    /// Hashes the registers that a node can read, and its results.
    fn registers(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        let first = code.first_result();
        let gives = |inst: &u32| code.insts[*inst as usize].code.gives();
        let results = (0..executed as u32).filter(gives).map(|inst| first + inst);
        for register in code.inputs.iter().copied().chain(results) {
            let register = register as usize;
            let vector = |inst: usize| match code.insts[inst].code {
                Code::Vector(vector) => vector.signature().1 == Kind::Vector,
                Code::LoadVector(_) => true,
                _ => false,
            };
            // The upper half of a scalar may be left over from a vector.
            let high = high
                .get(register)
                .filter(|_| register.checked_sub(first as usize).is_some_and(vector));
            self.note("register", (register, low[register], high));
        }
    }
}

fn bits(range: Range) -> (u32, u64, u64) {
    (range.memory, range.address, range.length)
}

impl Observer for Digest {
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.note("node", node);
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.note("read", (inst, bits(range)));
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.note("write", (inst, bits(range)));
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.note("copy", (inst, bits(from), bits(to)));
    }

    fn read_global(&mut self, inst: usize, global: u32) {
        self.note("read global", (inst, global));
    }

    fn write_global(&mut self, inst: usize, global: u32) {
        self.note("write global", (inst, global));
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.registers(code, code.insts.len(), low, high);
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.registers(code, executed, low, high);
    }

    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        let low = Vec::from_iter(arguments.iter().map(|bits| bits.0));
        self.note("called", (function, low));
    }

    fn returned(&mut self, values: &[GlobalBits]) {
        let low = Vec::from_iter(values.iter().map(|bits| bits.0));
        self.note("returned", low);
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.note("enter", (function, by as u8));
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.note("leave", results);
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.note("host returned", (first, count));
    }

    fn host_call(&mut self) {
        self.note("host call", ());
    }

    fn host_read(&mut self, range: Range) {
        self.note("host read", bits(range));
    }

    fn host_write(&mut self, range: Range) {
        self.note("host write", bits(range));
    }

    fn caught(&mut self, first: u32, count: u32) {
        self.note("caught", (first, count));
    }
}

/// Executes the nodes of a run, one at a time.
pub struct Runner<'a> {
    pub machine: Machine<'a>,
    path: &'a Path,
    /// The place where the run was stopped from outside.
    stopped: Option<StoppedBefore>,
    /// The types of the globals.
    globals: &'a [ValType],
}

impl<'a> Runner<'a> {
    pub fn new(recording: &'a Recording, path: &'a Path) -> Self {
        let log = recording.file.log().expect("a log");
        let (program, bytes) = (&recording.program, &recording.bytes);
        let machine = Machine::new(program, bytes, log).expect("a machine");
        Self {
            machine,
            path,
            stopped: stopped_before(program, bytes, &recording.recorded.end),
            globals: &program.globals,
        }
    }

    pub fn compile(&mut self, node: NodeId) {
        let known = &self.path.directory.nodes[node];
        let next = self.path.directory.continuations[node.as_u32() as usize].next;
        if !self.machine.is_compiled(node) {
            let compiled = self
                .machine
                .compile(node, known.function, &known.blocks, next);
            compiled.expect("a node");
        }
    }

    /// Executes the node at this position of the path.
    pub fn observed<O: Observer>(&mut self, position: usize, observer: &mut O) {
        let node = self.path.visits[position];
        let length = self.path.length(node);
        let last = position + 1 == self.path.visits.len();
        let done = match self.stopped.filter(|_| last) {
            Some(stopped) => self.machine.step_before(node, length, stopped, observer),
            None => self.machine.step(node, length, observer),
        };
        done.expect("a step");
    }

    /// Executes the node at this position of the path. Returns a digest of its effects, including
    /// the end of the run and the state left.
    pub fn step(&mut self, position: usize) -> u64 {
        let mut digest = Digest::default();
        self.observed(position, &mut digest);
        let last = position + 1 == self.path.visits.len();
        digest.note("time", self.machine.time());
        if last {
            let state = &self.machine.state;
            let memories = state.memories.iter().map(|memory| &memory.bytes);
            digest.note("memories", Vec::from_iter(memories));
            let globals = state.globals.iter().zip(self.globals);
            let globals = globals.map(|(&(low, high), &ty)| match ty {
                ValType::V128 => (low, high),
                _ => (low, 0),
            });
            digest.note("globals", Vec::from_iter(globals));
            let tables = state.tables.iter().map(|table| &table.elements);
            digest.note("tables", Vec::from_iter(tables));
            digest.note("trap", self.machine.trap().map(|trap| trap.to_string()));
        }
        digest.0.finish()
    }
}

/// A moment of a run, as a checkpoint and as a snapshot, with the contents of the memories.
struct Place {
    position: usize,
    checkpoint: Vec<u8>,
    snapshot: Vec<u8>,
    memories: Vec<Vec<u8>>,
}

impl Place {
    fn of(position: usize, machine: &mut Machine<'_>) -> Self {
        let memories = machine.state.memories.iter();
        Self {
            position,
            memories: memories.map(|memory| memory.bytes.to_vec()).collect(),
            checkpoint: machine.checkpoint().expect("a run that goes on").encode(),
            snapshot: snapshot(machine).encode(),
        }
    }

    fn fill(&self, state: &mut State) {
        assert_eq!(state.memories.len(), self.memories.len());
        for (memory, bytes) in state.memories.iter_mut().zip(&self.memories) {
            assert_eq!(memory.bytes.len(), bytes.len());
            memory.bytes.copy_from_slice(bytes);
        }
    }

    /// Restores a machine from the checkpoint.
    fn restore(&self, runner: &mut Runner<'_>) {
        let checkpoint: Checkpoint = Checkpoint::decode(&self.checkpoint).expect("a checkpoint");
        assert_eq!(checkpoint.encode(), self.checkpoint);
        for node in checkpoint.nodes() {
            runner.compile(node);
        }
        let restored = runner
            .machine
            .restore(&checkpoint, |state| self.fill(state));
        restored.expect("a checkpoint of this run");
        let again = runner.machine.checkpoint().expect("the same one");
        assert_eq!(again, checkpoint);
    }

    /// Restores a machine from the snapshot.
    fn restore_snapshot(&self, runner: &mut Runner<'_>) {
        let place = Snapshot::decode(&self.snapshot).expect("a snapshot");
        assert_eq!(place.encode(), self.snapshot);
        let machine = &mut runner.machine;
        let restored = machine.restore_snapshot(place, |state| self.fill(state));
        restored.expect("a snapshot of this run");
        assert_eq!(snapshot(machine).encode(), self.snapshot);
    }
}

pub fn snapshot(machine: &mut Machine<'_>) -> Snapshot {
    let snapshot = machine.snapshot().expect("the module");
    snapshot.expect("a run that goes on")
}

/// Checks that a machine restored at some moments of a run continues correctly.
pub fn go_on(recording: &Recording, path: &Path) {
    let count = path.visits.len();
    let mut random = SplitMix64(count as u64);
    let mut tried = Vec::from_iter((0..TRIED).map(|_| random.below(count + 1)));
    tried.extend([0, count.saturating_sub(1)]);
    let compared = |position: usize| {
        let mut tried = tried.iter();
        tried.any(|&from| from <= position && position < from + MOST)
    };
    let mut runner = Runner::new(recording, path);
    path.define(&mut runner.machine).expect("nodes");
    let mut digests = Vec::new();
    let mut places = Vec::new();
    for position in 0..count {
        if tried.contains(&position) {
            places.push(Place::of(position, &mut runner.machine));
        }
        let digest = runner.step(position);
        digests.push(compared(position).then_some(digest));
    }
    for place in places {
        for restore in [Place::restore, Place::restore_snapshot] {
            let mut runner = Runner::new(recording, path);
            // Only the required nodes are compiled.
            runner.machine.expect(path.directory.nodes.len());
            restore(&place, &mut runner);
            for (at, digest) in digests.iter().enumerate().skip(place.position).take(MOST) {
                runner.compile(path.visits[at]);
                let found = runner.step(at);
                assert_eq!(
                    *digest,
                    Some(found),
                    "node {at} differs after a checkpoint before node {}, {}",
                    place.position,
                    recording.ending()
                );
            }
        }
        damaged(recording, path, &place, &mut random);
    }
    everywhere(recording, path);
}

/// Checks that the machine reaches all later snapshots from the snapshot before each of the first
/// nodes.
fn everywhere(recording: &Recording, path: &Path) {
    let mut runner = Runner::new(recording, path);
    path.define(&mut runner.machine).expect("nodes");
    let mut places = Vec::new();
    for position in 0..path.visits.len().min(EVERYWHERE) {
        places.push(Place::of(position, &mut runner.machine));
        let large = runner.machine.state.memories.iter();
        if large.map(|memory| memory.bytes.len()).sum::<usize>() > LARGE {
            return;
        }
        runner.step(position);
    }
    let mut other = Runner::new(recording, path);
    other.machine.expect(path.directory.nodes.len());
    // Go from last to first, because earlier work of the machine must not matter.
    for (number, place) in places.iter().enumerate().rev() {
        place.restore_snapshot(&mut other);
        for next in places.iter().skip(number + 1).take(3) {
            other.compile(path.visits[next.position - 1]);
            other.step(next.position - 1);
            assert_eq!(
                Snapshot::decode(&next.snapshot),
                Some(snapshot(&mut other.machine)),
                "before node {} after the snapshot before node {number}, {}",
                next.position,
                recording.ending()
            );
            let memories = other.machine.state.memories.iter();
            let same = |(memory, bytes): (&Memory, &Vec<u8>)| memory.bytes[..] == bytes[..];
            assert!(memories.zip(&next.memories).all(same));
        }
    }
}

/// Checks that damaged checkpoints are either rejected or valid but different.
fn damaged(recording: &Recording, path: &Path, place: &Place, random: &mut SplitMix64) {
    let bytes = &place.snapshot;
    assert!(Snapshot::decode(&bytes[..bytes.len() - 1]).is_none());
    for round in 0..8 {
        let is_snapshot = round % 2 == 0;
        let mut bytes = match is_snapshot {
            true => place.snapshot.clone(),
            false => place.checkpoint.clone(),
        };
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
        let mut runner = Runner::new(recording, path);
        path.define(&mut runner.machine).expect("nodes");
        let restored = if is_snapshot {
            let Some(snapshot) = Snapshot::decode(&bytes) else {
                continue;
            };
            runner.machine.restore_snapshot(snapshot, |_| ())
        } else {
            let Some(checkpoint) = Checkpoint::decode(&bytes) else {
                continue;
            };
            runner.machine.restore(&checkpoint, |_| ())
        };
        let mut steps = path.visits.iter().take(20);
        let stepped = restored.and_then(|()| {
            steps.try_for_each(|&node| runner.machine.step(node, path.length(node), &mut ()))
        });
        let _: Result<(), MachineError> = stepped;
    }
}
