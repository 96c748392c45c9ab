//! A graph of all dependences of a run, built forward one execution at a time, and reachability in
//! it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use afterimage_graph::{ControlDependence, PostDominatorTree};
use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{
    Caller, Code, Machine, NodeCode, NodeEnd, Observer, Operand, Range, Register, Taker,
    stopped_before,
};
use afterimage_program::{BlockKind, Callee, Program};
use afterimage_slice::{Edge, Follows, Operator, Stretch};

use crate::harness::Recording;
use crate::stored::Stored;

/// A vertex of the graph. 0 represents values without dependences.
pub type Vertex = usize;

/// The distance of each reachable vertex.
pub type Distances = Vec<Option<usize>>;

/// The direct users of each vertex, and the length that each dependence counts for.
pub type Users = Vec<Vec<(Vertex, usize)>>;

/// The reason why a vertex depends on another vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Data,
    Address,
    Control,
    /// The vertices belong together in every kind of slice.
    Always,
}

/// A vertex.
#[derive(Default)]
struct Of {
    /// The operator, if the vertex counts as one of its executions.
    operator: Option<(FuncId, OpId)>,
    on: Vec<(Why, Vertex)>,
    /// The operator's execution that contains this vertex as a part, if that execution does not
    /// depend on the vertex. The part is a copied byte, or an operand of a call.
    part_of: Option<Vertex>,
    /// The block or dispatch, if this vertex represents its execution.
    block: Option<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Executed,
    Dispatch,
}

/// An execution of a node.
pub struct Executed {
    pub node: NodeId,
    pub start: u64,
    /// The vertex of each executed instruction.
    pub insts: Vec<Vertex>,
    /// The vertex of each block's execution.
    pub blocks: Vec<Vertex>,
    /// The call, return or throw at the node's end.
    pub end: Option<Vertex>,
    pub whole: bool,
}

/// A block that an activation executed, or a vertex in which an exception chose its handler.
struct Passed {
    block: BlockId,
    /// The vertex of the block's execution.
    vertex: Vertex,
    /// The branch, call or throw that ends it.
    decides: Option<Vertex>,
    /// The thrown exception, if this handles one.
    thrown: Option<Vertex>,
}

struct Frame {
    function: FuncId,
    variables: Vec<Vertex>,
    passed: Vec<Passed>,
    /// The call that began the activation.
    call: Option<Vertex>,
    returns: bool,
    results: usize,
    handles: Option<Vertex>,
}

pub struct Naive<'a> {
    program: &'a Program,
    lengths: Vec<u64>,
    blocks: Vec<Box<[BlockId]>>,
    graph: Vec<Of>,
    pub executed: Vec<Executed>,
    repeated: OnceCell<Vec<(Operator, Vec<Vertex>)>>,
    frames: Vec<Frame>,
    memory: HashMap<(u32, u64), Vertex>,
    globals: HashMap<u32, Vertex>,
    tables: HashMap<u32, Vertex>,
    sizes: HashMap<u32, Vertex>,
    control: HashMap<FuncId, ControlDependence>,
    /// Arguments, results or the values of an exception.
    given: Vec<Vertex>,
    /// The call that is about to begin.
    call: Option<Vertex>,
    /// The exception thrown last.
    thrown: Option<Vertex>,
    /// Reads and writes of the current node, by instruction.
    reads: HashMap<usize, Vec<Range>>,
    writes: HashMap<usize, Range>,
    copies: HashMap<usize, (Range, Range)>,
    /// The code of the stopped node.
    stopped: Option<NodeCode>,
    /// The instruction that trapped.
    pub trapped: Option<Vertex>,
    /// The host call in progress.
    host: Option<Vertex>,
    ends_with_call: bool,
    pub stretches: Vec<Part>,
}

/// A part of the run.
#[derive(Default)]
pub struct Part {
    /// The activations open before the part, and the last node of each.
    pub open: Vec<(FuncId, NodeId)>,
    pub stretch: Stretch,
}

/// The number of nodes in a part.
const PART: usize = 61;

fn is_followed(why: Why, follows: Follows) -> bool {
    match why {
        Why::Data => follows.data,
        Why::Address => follows.data && follows.addresses,
        Why::Control => follows.control,
        Why::Always => true,
    }
}

impl<'a> Naive<'a> {
    /// Follows a recording.
    pub fn record(recording: &'a Recording, stored: &Stored) -> (Self, Machine<'a>) {
        let mut machine = stored.machine(recording);
        let nodes = stored.path.nodes();
        let mut naive = Self {
            program: &recording.program,
            lengths: nodes.values().map(|node| node.length()).collect(),
            blocks: nodes.values().map(|node| node.blocks.clone()).collect(),
            graph: vec![Of::default()],
            executed: Vec::new(),
            repeated: OnceCell::new(),
            frames: Vec::new(),
            memory: HashMap::new(),
            globals: HashMap::new(),
            tables: HashMap::new(),
            sizes: HashMap::new(),
            control: HashMap::new(),
            given: Vec::new(),
            call: None,
            thrown: None,
            reads: HashMap::new(),
            writes: HashMap::new(),
            copies: HashMap::new(),
            stopped: None,
            trapped: None,
            host: None,
            ends_with_call: false,
            stretches: Vec::new(),
        };
        let mut cursor = stored.path.cursor();
        let mut part = Part::default();
        let stopped = stopped_before(
            &recording.program,
            &recording.bytes,
            &recording.recorded.end,
        );
        while let Some(visit) = cursor.next().expect("a step") {
            if part.stretch.len() == PART {
                let open = machine.activations().collect();
                let stretch = Stretch::default();
                naive
                    .stretches
                    .push(std::mem::replace(&mut part, Part { open, stretch }));
            }
            part.stretch.at(visit.start);
            let both = &mut (&mut naive, &mut part.stretch);
            let done = match stopped {
                Some(stopped) if visit.last() == stored.path.length() => {
                    machine.step_before(visit.node, visit.length, stopped, both)
                }
                _ => machine.step(visit.node, visit.length, both),
            };
            done.unwrap_or_else(|error| panic!("{error}"));
        }
        naive.stretches.push(part);
        (naive, machine)
    }

    /// Returns the length that a dependence counts for. The execution of a block counts as the
    /// decision that led to it, and a part counts as its whole.
    fn length(&self, user: Vertex, why: Why, on: Vertex) -> usize {
        let of = &self.graph[on];
        let counts = match (self.graph[user].block, of.block) {
            (Some(_), Some(block)) => block == Block::Executed,
            _ => of.operator.is_some() || of.part_of.is_some(),
        };
        usize::from(counts && why != Why::Always)
    }

    /// Returns the distance of every reachable vertex, in dependences between executions of
    /// operators and blocks.
    pub fn reach(&self, from: &[Vertex], follows: Follows) -> Distances {
        let mut from = from.to_vec();
        let parts = self.graph.iter().enumerate();
        let parts = parts.filter(|(_, of)| of.part_of.is_some_and(|whole| from.contains(&whole)));
        let parts = Vec::from_iter(parts.map(|(part, _)| part));
        from.extend(parts);
        self.distances(&from, |v, next| {
            for &(why, on) in &self.graph[v].on {
                if is_followed(why, follows) {
                    next.push((on, self.length(v, why, on)));
                }
            }
        })
    }

    /// Searches breadth-first over steps of length 0 and 1.
    fn distances(
        &self,
        from: &[Vertex],
        steps: impl Fn(Vertex, &mut Vec<(Vertex, usize)>),
    ) -> Distances {
        let mut found: Distances = vec![None; self.graph.len()];
        let mut work = VecDeque::from_iter(from.iter().map(|&v| (v, 0)));
        let mut next = Vec::new();
        while let Some((v, distance)) = work.pop_front() {
            if found[v].is_some() {
                continue;
            }
            found[v] = Some(distance);
            next.clear();
            steps(v, &mut next);
            for &(to, length) in &next {
                match length {
                    0 => work.push_front((to, distance)),
                    _ => work.push_back((to, distance + length)),
                }
            }
        }
        found
    }

    /// Returns the operator of a vertex.
    pub fn operator(&self, v: Vertex) -> Option<Operator> {
        self.graph[v].operator
    }

    /// Counts the executions of each operator among the vertices within `depth`. An operator with
    /// several instructions in a node, such as an atomic one, counts once per execution.
    pub fn count(&self, distances: &Distances, depth: usize) -> BTreeMap<Operator, u64> {
        let mut found: HashMap<_, u64> = HashMap::new();
        let is_near = |v: Vertex| distances[v].is_some_and(|d| d <= depth);
        for (v, of) in self.graph.iter().enumerate() {
            if let Some(operator) = of.operator.filter(|_| is_near(v)) {
                *found.entry(operator).or_default() += 1;
            }
        }
        for (operator, insts) in self.repeated.get_or_init(|| self.repeated()) {
            let more = insts.iter().filter(|&&v| is_near(v)).skip(1).count();
            if more > 0 {
                *found.get_mut(operator).expect("counted") -= more as u64;
            }
        }
        BTreeMap::from_iter(found)
    }

    /// Returns the executions of operators with several instructions, with those instructions.
    fn repeated(&self) -> Vec<(Operator, Vec<Vertex>)> {
        let mut all = Vec::new();
        for executed in &self.executed {
            let mut insts: BTreeMap<Operator, Vec<Vertex>> = BTreeMap::new();
            for &v in &executed.insts {
                if let Some(operator) = self.graph[v].operator {
                    insts.entry(operator).or_default().push(v);
                }
            }
            all.extend(insts.into_iter().filter(|(_, insts)| insts.len() > 1));
        }
        all
    }

    /// Returns the flow of values between operators: data, and operands of addresses.
    pub fn values_taken(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (v, of) in self.graph.iter().enumerate() {
            let Some(user) = self.graph[of.part_of.unwrap_or(v)].operator else {
                continue;
            };
            for &(why, on) in &of.on {
                let why = match why {
                    Why::Data => afterimage_slice::Why::Data,
                    Why::Address => afterimage_slice::Why::Address,
                    Why::Control | Why::Always => continue,
                };
                // A reference to an exception represents the exception's values.
                let mut work = vec![on];
                while let Some(on) = work.pop() {
                    match self.graph[self.graph[on].part_of.unwrap_or(on)].operator {
                        Some(on) => drop(edges.insert(Edge { user, on, why })),
                        None => {
                            let on = self.graph[on].on.iter();
                            let data = on.filter(|(why, _)| *why != Why::Control);
                            work.extend(data.map(|&(_, on)| on));
                        }
                    }
                }
            }
        }
        edges
    }

    /// Returns the direct users of each vertex.
    pub fn users(&self, follows: Follows) -> Users {
        let mut users = vec![Vec::new(); self.graph.len()];
        for (user, of) in self.graph.iter().enumerate() {
            let followed = of.on.iter().filter(|(why, _)| is_followed(*why, follows));
            followed.for_each(|&(why, on)| users[on].push((user, self.length(user, why, on))));
        }
        users
    }

    /// Returns the distance of every vertex that reaches `to`. A vertex with parts takes the
    /// distance of the nearest part.
    pub fn reached_from(&self, to: &[Vertex], users: &Users) -> Distances {
        let mut found = self.distances(to, |v, next| {
            if v != 0 {
                next.extend(&users[v]);
            }
        });
        found[0] = None;
        for v in 0..found.len() {
            if let (Some(whole), Some(distance)) = (self.graph[v].part_of, found[v]) {
                found[whole] = Some(found[whole].map_or(distance, |known| known.min(distance)));
            }
        }
        found
    }

    /// Adds a part of an operator's execution.
    fn part(&mut self, of: Vertex, on: Vec<(Why, Vertex)>) -> Vertex {
        let part = self.vertex(None, on);
        self.graph[part].part_of = Some(of);
        part
    }

    fn vertex(&mut self, operator: Option<(FuncId, OpId)>, on: Vec<(Why, Vertex)>) -> Vertex {
        self.graph.push(Of {
            operator,
            on,
            part_of: None,
            block: None,
        });
        self.graph.len() - 1
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("an activation")
    }

    /// Returns the vertex for a value taken by `taker`. If the value was moved, it depends on the
    /// blocks where it was moved.
    fn value(&mut self, code: &NodeCode, register: Register, taker: Taker) -> Vertex {
        let value = self.unmoved(code, register);
        let moved = code.moved(taker);
        if moved.is_empty() {
            return value;
        }
        let blocks = &self.executed.last().expect("a node").blocks;
        let blocks = moved
            .iter()
            .map(|moved| (Why::Control, blocks[moved.block as usize]));
        let on = [(Why::Data, value)].into_iter().chain(blocks);
        let on = Vec::from_iter(on);
        self.vertex(None, on)
    }

    fn unmoved(&self, code: &NodeCode, register: Register) -> Vertex {
        match code.source(register) {
            Operand::Constant(_) => 0,
            Operand::Result(inst) => self.executed.last().expect("a node").insts[inst],
            Operand::Variable(variable) => {
                let frame = self.frames.last().expect("an activation");
                frame.variables.get(variable as usize).copied().unwrap_or(0)
            }
        }
    }

    fn set(&mut self, first: u32, values: &[Vertex]) {
        let variables = &mut self.frame().variables;
        for (i, &value) in (first as usize..).zip(values) {
            if variables.len() <= i {
                variables.resize(i + 1, 0);
            }
            variables[i] = value;
        }
    }

    fn arrive(&mut self, first: u32, given: &[Vertex]) {
        self.set(first, given);
        let top = first as usize + given.len();
        let frame = self.frame();
        if frame.returns {
            // Variables that were never set depend on nothing.
            let returned = (top - frame.results..top).map(|i| frame.variables.get(i).copied());
            let returned = Vec::from_iter(returned.map(Option::unwrap_or_default));
            self.given = returned;
        }
    }

    /// Returns the dispatch vertices on a path between two blocks. No other vertex may be between
    /// them.
    fn way(&self, function: FuncId, from: BlockId, to: BlockId) -> Vec<BlockId> {
        let cfg = &self.program.function(function).expect("a function").cfg;
        let mut ways = vec![vec![from]];
        while let Some(way) = ways.pop() {
            let last = *way.last().expect("a vertex");
            for next in cfg.graph.successors(last) {
                if next == to {
                    return way[1..].to_vec();
                }
                let dispatches = matches!(cfg.blocks[next].kind, BlockKind::Dispatch(_));
                if dispatches && !way.contains(&next) {
                    ways.push([&way[..], &[next]].concat());
                }
            }
        }
        Vec::new()
    }

    /// Moves an activation to a block.
    fn pass(&mut self, block: BlockId) -> Vertex {
        let function = self.frame().function;
        if let Some(last) = self.frame().passed.last() {
            let from = last.block;
            for between in self.way(function, from, block) {
                self.passed(between, None);
            }
        }
        let handles = self.frame().handles.take();
        self.passed(block, handles)
    }

    fn passed(&mut self, block: BlockId, thrown: Option<Vertex>) -> Vertex {
        let program = self.program;
        let function = self.frame().function;
        let cfg = &program.function(function).expect("a function").cfg;
        let control = self.control.entry(function).or_insert_with(|| {
            ControlDependence::compute(&cfg.graph, &PostDominatorTree::compute(&cfg.graph))
        });
        let edges = control.controllers(block);
        let decides = |from: BlockId, to: BlockId| {
            let mut edges = edges.iter();
            edges.any(|&edge| cfg.graph.from(edge) == from && cfg.graph.to(edge) == to)
        };
        let is_dispatch = |v: BlockId| matches!(cfg.blocks[v].kind, BlockKind::Dispatch(_));
        // Finds all edges by which the exception handled in this block may arrive.
        let handled = |handler: BlockId| {
            let mut dispatches =
                Vec::from_iter(cfg.graph.predecessors(handler).filter(|&v| is_dispatch(v)));
            let mut at = 0;
            while at < dispatches.len() {
                for v in cfg.graph.predecessors(dispatches[at]) {
                    if is_dispatch(v) && !dispatches.contains(&v) {
                        dispatches.push(v);
                    }
                }
                at += 1;
            }
            edges.iter().any(|&edge| {
                let (from, to) = (cfg.graph.from(edge), cfg.graph.to(edge));
                dispatches.contains(&to) || (dispatches.contains(&from) && to == handler)
            })
        };
        let frame = self.frames.last().expect("an activation");
        let mut on = Vec::new();
        let mut follower = block;
        let mut follower_thrown = thrown;
        let mut found = false;
        for passed in frame.passed.iter().rev() {
            if let Some(thrown) = follower_thrown
                && handled(follower)
            {
                on.push((Why::Control, thrown));
            }
            if decides(passed.block, follower) {
                on.push((Why::Control, passed.vertex));
                on.extend(passed.decides.map(|v| (Why::Control, v)));
                found = true;
                break;
            }
            follower = passed.block;
            follower_thrown = passed.thrown;
        }
        if !found {
            on.extend(frame.call.map(|v| (Why::Control, v)));
        }
        let dispatches = is_dispatch(block);
        let vertex = self.vertex(None, on);
        self.graph[vertex].block = Some(if dispatches {
            Block::Dispatch
        } else {
            Block::Executed
        });
        self.frame().passed.push(Passed {
            block,
            vertex,
            decides: None,
            thrown,
        });
        vertex
    }

    /// Handles the first `count` instructions of a node.
    fn instructions(&mut self, code: &NodeCode, count: usize) {
        let function = code.function;
        let program = self.program;
        let known = program.function(function).expect("a function");
        let node = self.executed.last().expect("a node").node;
        let blocks = self.blocks[node.index()].clone();
        let mut inst = 0;
        for &block in &blocks {
            let executed = self.pass(block);
            let last = self.executed.last_mut().expect("a node");
            last.blocks.push(executed);
            let mut branch = None;
            while let Some(one) = code.insts.get(inst).filter(|_| inst < count)
                && known.block_of(one.op) == Some(block)
            {
                let vertex = self.instruction(code, inst, executed);
                if matches!(one.code, Code::Branch(_)) {
                    branch = Some(vertex);
                }
                inst += 1;
            }
            self.frame().passed.last_mut().expect("a block").decides = branch;
        }
        assert!(
            inst == count || count < code.insts.len(),
            "an instruction in no block"
        );
    }

    fn instruction(&mut self, code: &NodeCode, i: usize, executed: Vertex) -> Vertex {
        let inst = &code.insts[i];
        let third = match inst.code {
            Code::Vector(_) => code.vector(i).map_or(0, |extra| extra.c),
            _ => inst.c,
        };
        let operands = [inst.a, inst.b, third];
        let mut on = vec![(Why::Control, executed)];
        for (j, &register) in operands[..inst.code.operands()].iter().enumerate() {
            let why = tells_where(inst.code, j);
            let taker = Taker::Operand(i as u32, j as u8);
            on.push((why, self.value(code, register, taker)));
        }
        for range in self.reads.remove(&i).unwrap_or_default() {
            for address in range.address..range.address + range.length {
                let written = self.memory.get(&(range.memory, address));
                on.push((Why::Data, written.copied().unwrap_or(0)));
            }
        }
        let memory = u32::from(inst.memory);
        let number = inst.immediate as u32;
        let on_what = |map: &HashMap<u32, Vertex>, number| {
            (Why::Data, map.get(&number).copied().unwrap_or(0))
        };
        match inst.code {
            Code::GlobalGet => on.push(on_what(&self.globals, number)),
            Code::MemorySize | Code::MemoryGrow => on.push(on_what(&self.sizes, memory)),
            Code::TableGet
            | Code::TableSize
            | Code::TableSet
            | Code::TableFill
            | Code::TableInit
            | Code::TableGrow => on.push(on_what(&self.tables, number)),
            Code::TableCopy => {
                on.push(on_what(&self.tables, number));
                on.push(on_what(&self.tables, (inst.immediate >> 32) as u32));
            }
            _ => {}
        }
        let vertex = self.vertex(Some((code.function, inst.op)), on);
        self.executed.last_mut().expect("a node").insts.push(vertex);
        match inst.code {
            Code::GlobalSet => {
                self.globals.insert(number, vertex);
            }
            Code::MemoryGrow => {
                self.sizes.insert(memory, vertex);
            }
            Code::TableSet
            | Code::TableFill
            | Code::TableCopy
            | Code::TableInit
            | Code::TableGrow => {
                self.tables.insert(number, vertex);
            }
            _ => {}
        }
        if let Some(range) = self.writes.remove(&i) {
            for address in range.address..range.address + range.length {
                self.memory.insert((range.memory, address), vertex);
            }
        }
        if let Some((from, to)) = self.copies.remove(&i) {
            let bytes = from.address..from.address + from.length;
            let before = bytes.map(|address| self.memory.get(&(from.memory, address)).copied());
            let before = Vec::from_iter(before.map(|before| before.unwrap_or(0)));
            for (address, before) in (to.address..).zip(before) {
                let byte = self.part(vertex, vec![(Why::Always, vertex), (Why::Data, before)]);
                self.memory.insert((to.memory, address), byte);
            }
        }
        vertex
    }
}

/// Returns why an instruction depends on one of its operands.
fn tells_where(code: Code, operand: usize) -> Why {
    let tell_where = match code {
        Code::Load(_) | Code::LoadVector(_) | Code::Store(_) | Code::StoreVector(_) => 1,
        Code::MemoryFill | Code::MemoryInit => 1,
        Code::MemoryCopy => 3,
        _ => 0,
    };
    if operand < tell_where {
        Why::Address
    } else {
        Why::Data
    }
}

impl Observer for Naive<'_> {
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        let before = self.executed.last();
        let start = before.map_or(1, |last| last.start + self.lengths[last.node.index()]);
        self.executed.push(Executed {
            node,
            start,
            insts: Vec::new(),
            blocks: Vec::new(),
            end: None,
            whole: false,
        });
        self.ends_with_call = false;
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.reads.entry(inst).or_default().push(range);
    }

    fn write(&mut self, inst: usize, range: Range) {
        self.writes.insert(inst, range);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        self.copies.insert(inst, (from, to));
    }

    fn done(&mut self, code: &NodeCode, _: &[u64], _: &[u64]) {
        self.instructions(code, code.insts.len());
        let program = self.program;
        let function = program.function(code.function).expect("a function");
        let last = self.executed.last().expect("a node");
        let block = *last.blocks.last().expect("a block");
        let blocks = &self.blocks[last.node.index()];
        let ops = &function.cfg.blocks[*blocks.last().expect("a block")].ops;
        let last = ops.end.as_u32().checked_sub(1).map(OpId::from_u32);
        // A function may end after an instruction without an explicit operator.
        let is_inst = |op: OpId| code.insts.iter().any(|inst| inst.op == op);
        let operator = last
            .filter(|&op| !is_inst(op))
            .map(|op| (code.function, op));
        let values = |naive: &mut Self, registers: &[Register]| {
            let registers = (0..).zip(registers);
            let values =
                registers.map(|(i, &register)| naive.value(code, register, Taker::Given(i)));
            Vec::from_iter(values)
        };
        let mut on = vec![(Why::Control, block)];
        self.call = None;
        let end = match &code.end {
            NodeEnd::Call {
                callee,
                index,
                arguments,
                ..
            }
            | NodeEnd::TailCall {
                callee,
                index,
                arguments,
            } => {
                self.given = values(self, arguments);
                on.extend(index.map(|index| (Why::Data, self.value(code, index, Taker::Index))));
                if let Callee::Indirect { table, .. } = callee {
                    let table = self.tables.get(table).copied().unwrap_or(0);
                    on.push((Why::Data, table));
                }
                self.ends_with_call = true;
                let call = self.vertex(operator, on);
                let takes = self.given.iter().map(|&argument| (Why::Data, argument));
                let takes = Vec::from_iter(takes);
                self.part(call, takes);
                self.call = Some(call);
                Some(call)
            }
            NodeEnd::Return(results) => {
                self.given = values(self, results);
                on.extend(self.given.iter().map(|&value| (Why::Data, value)));
                Some(self.vertex(operator, on))
            }
            NodeEnd::Throw {
                values: carried, ..
            } => {
                self.given = values(self, carried);
                let takes = self.given.iter().map(|&value| (Why::Data, value));
                let takes = Vec::from_iter(takes);
                let throw = self.vertex(operator, on);
                self.part(throw, takes);
                Some(throw)
            }
            NodeEnd::Rethrow { exception, .. } => {
                let exception = self.value(code, *exception, Taker::Given(0));
                self.given = vec![exception; 64];
                on.push((Why::Data, exception));
                Some(self.vertex(operator, on))
            }
            NodeEnd::Next | NodeEnd::Trap => None,
        };
        self.thrown = match code.end {
            NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. } => end,
            _ => None,
        };
        let last = self.executed.last_mut().expect("a node");
        last.end = end;
        last.whole = true;
        if !matches!(code.end, NodeEnd::Return(_))
            && let Some(end) = end
        {
            self.frame().passed.last_mut().expect("a block").decides = Some(end);
        }
        let outputs = code.outputs.iter();
        let outputs = outputs.map(|&(to, from)| (to, self.value(code, from, Taker::Output(to))));
        let outputs = Vec::from_iter(outputs);
        for (to, value) in outputs {
            self.set(to, &[value]);
        }
        let frame = self.frame();
        frame.returns = code.next.is_none();
        frame.results = program.types[function.ty].results.len();
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        self.instructions(code, executed);
        self.stopped = Some(code.clone());
    }

    fn trapped(&mut self, i: usize) {
        let code = self.stopped.take().expect("a node that was stopped");
        let inst = &code.insts[i];
        let program = self.program;
        let function = program.function(code.function).expect("a function");
        let block = function.block_of(inst.op).expect("a block");
        let executed = self.executed.last().expect("a node");
        let blocks = self.blocks[executed.node.index()].iter();
        let position = blocks.clone().position(|b| *b == block);
        let executed = executed.blocks[position.expect("its block")];
        // The instruction that trapped used its operands, but had no effect.
        let third = match inst.code {
            Code::Vector(_) => code.vector(i).map_or(0, |extra| extra.c),
            _ => inst.c,
        };
        let mut on = vec![(Why::Control, executed)];
        let operands = [inst.a, inst.b, third];
        for (j, &register) in operands[..inst.code.operands()].iter().enumerate() {
            let taker = Taker::Operand(i as u32, j as u8);
            let why = tells_where(inst.code, j);
            on.push((why, self.value(&code, register, taker)));
        }
        let number = inst.immediate as u32;
        let tables = match inst.code {
            Code::TableGet | Code::TableSet | Code::TableFill | Code::TableInit => vec![number],
            Code::TableCopy => vec![number, (inst.immediate >> 32) as u32],
            _ => Vec::new(),
        };
        for table in tables {
            on.push((Why::Data, self.tables.get(&table).copied().unwrap_or(0)));
        }
        let vertex = self.vertex(Some((code.function, inst.op)), on);
        self.executed.last_mut().expect("a node").insts.push(vertex);
        self.trapped = Some(vertex);
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        let (variables, call) = match by {
            Caller::Host => (Vec::new(), None),
            _ => (std::mem::take(&mut self.given), self.call.take()),
        };
        self.frames.push(Frame {
            function,
            variables,
            passed: Vec::new(),
            call,
            returns: false,
            results: 0,
            handles: None,
        });
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.frames.pop().expect("an activation");
        if let Some((first, count)) = results {
            let given = std::mem::take(&mut self.given);
            assert_eq!(given.len(), count as usize);
            self.arrive(first, &given);
        }
    }

    fn host_call(&mut self) {
        let call = self.call.take();
        self.host = std::mem::take(&mut self.ends_with_call).then(|| {
            let arguments = std::mem::take(&mut self.given);
            let on = arguments.into_iter().map(|argument| (Why::Data, argument));
            let on = on.chain(call.map(|call| (Why::Always, call)));
            let on = Vec::from_iter(on);
            match call {
                Some(call) => self.part(call, on),
                None => self.vertex(None, on),
            }
        });
    }

    fn host_read(&mut self, range: Range) {
        for address in range.address..range.address + range.length {
            let written = self.memory.get(&(range.memory, address)).copied();
            if let Some(host) = self.host {
                self.graph[host].on.push((Why::Data, written.unwrap_or(0)));
            }
        }
    }

    fn host_write(&mut self, range: Range) {
        for address in range.address..range.address + range.length {
            let host = self.host.unwrap_or(0);
            self.memory.insert((range.memory, address), host);
        }
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        let host = self.host.take().unwrap_or(0);
        self.arrive(first, &vec![host; count as usize]);
    }

    fn caught(&mut self, first: u32, count: u32) {
        let mut given = std::mem::take(&mut self.given);
        // The reference represents all values of the exception.
        let all = given.iter().map(|&value| (Why::Data, value)).collect();
        given.truncate(count as usize);
        let reference = self.vertex(None, all);
        given.push(reference);
        self.set(first, &given);
        let thrown = self.thrown.take();
        let frame = self.frame();
        frame.handles = thrown;
        let results = frame.results;
        self.given = given[..results.min(given.len())].to_vec();
    }
}
