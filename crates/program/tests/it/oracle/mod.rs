//! Builds control-flow graphs slowly, by their definition. Every choice of every operator is tried
//! on the structure of the code, and the transitions give the blocks.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::{FuncId, OpId, TypeId};
use afterimage_program::{BlockKind, EdgeKind, Function, Program};
use wasmparser::{Catch, Operator};

/// A vertex, such as a block, which is given by its first operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    EmptyRoot,
    Block(u32),
    Dispatch(Option<u32>),
    Exit,
}

/// An edge, with its kind, its operator, whether it goes back, and its target.
pub type Edge = (String, Option<u32>, bool, Node);

/// A graph, with the last operator of every block, and the ordered edges that leave each vertex.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub blocks: BTreeMap<Node, Option<u32>>,
    pub edges: BTreeMap<Node, Vec<Edge>>,
}

impl Graph {
    /// Returns the builder's graph.
    pub fn built(function: &Function) -> Self {
        let cfg = &function.cfg;
        let node = |id| {
            let block: &afterimage_program::Block = &cfg.blocks[id];
            match block.kind {
                BlockKind::Code if block.ops.is_empty() => Node::EmptyRoot,
                BlockKind::Code => Node::Block(block.ops.start.as_u32()),
                BlockKind::Dispatch(op) => Node::Dispatch(op.map(OpId::as_u32)),
                BlockKind::Exit => Node::Exit,
            }
        };
        let mut graph = Self::default();
        for (id, block) in &cfg.blocks {
            let last = (!block.ops.is_empty()).then(|| block.ops.end.as_u32() - 1);
            graph.blocks.insert(node(id), last);
        }
        for edge in cfg.edges.values() {
            let op = edge.op.map(OpId::as_u32);
            let described = (edge.kind.to_string(), op, edge.back, node(edge.to));
            graph
                .edges
                .entry(node(edge.from))
                .or_default()
                .push(described);
        }
        graph
    }
}

/// The possible targets of control from an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Op(usize),
    Exit,
}

/// One way out of an operator or a dispatch vertex.
struct Step {
    kind: EdgeKind,
    back: bool,
    to: To,
    /// Whether control takes this way only because of the order of operators.
    plain: bool,
}

#[derive(Clone, Copy)]
enum To {
    Code(Target),
    Dispatch(Option<usize>),
}

/// A function's operators and their nesting.
pub struct Body<'a> {
    ops: Vec<Operator<'a>>,
    /// The frames that enclose each operator, outermost first. An opener is not in its own frame.
    enclosing: Vec<Vec<usize>>,
    end: BTreeMap<usize, usize>,
    otherwise: BTreeMap<usize, usize>,
}

impl<'a> Body<'a> {
    pub fn new(program: &Program, bytes: &'a [u8], function: &Function) -> Self {
        let ops: Vec<_> = program
            .operators(bytes, function)
            .map(|(_, _, op)| op)
            .collect();
        assert_eq!(ops.len(), function.operators as usize);
        let (mut enclosing, mut end, mut otherwise) = (vec![], BTreeMap::new(), BTreeMap::new());
        let mut open: Vec<usize> = vec![];
        for (i, op) in ops.iter().enumerate() {
            match op {
                Operator::End => {
                    if let Some(opener) = open.pop() {
                        end.insert(opener, i);
                    }
                }
                Operator::Else => {
                    otherwise.insert(*open.last().unwrap(), i);
                }
                _ => {}
            }
            enclosing.push(open.clone());
            let opens = matches!(op, Operator::If { .. } | Operator::Block { .. });
            if opens || matches!(op, Operator::Loop { .. } | Operator::TryTable { .. }) {
                open.push(i);
            }
        }
        Self {
            ops,
            enclosing,
            end,
            otherwise,
        }
    }

    /// Returns the target that runs next when control is before an operator.
    fn arrive(&self, mut at: usize) -> Target {
        loop {
            match self.ops[at] {
                Operator::End if at + 1 == self.ops.len() => return Target::Exit,
                Operator::Else => at = self.end[self.enclosing[at].last().unwrap()],
                Operator::Block { .. } | Operator::Loop { .. } | Operator::TryTable { .. } => {
                    at += 1
                }
                Operator::End => at += 1,
                _ => return Target::Op(at),
            }
        }
    }

    /// Whether the next operator in order is after an else-arm.
    fn passes_else(&self, mut at: usize) -> bool {
        loop {
            match self.ops[at] {
                Operator::Else => return true,
                Operator::End if at + 1 == self.ops.len() => return false,
                Operator::Block { .. } | Operator::Loop { .. } | Operator::TryTable { .. } => {
                    at += 1
                }
                Operator::End => at += 1,
                _ => return false,
            }
        }
    }

    fn branch(&self, frames: &[usize], depth: u32, kind: EdgeKind) -> Step {
        let frame = frames
            .len()
            .checked_sub(1 + depth as usize)
            .map(|i| frames[i]);
        let back = frame.is_some_and(|frame| matches!(self.ops[frame], Operator::Loop { .. }));
        let target = match frame {
            None => Target::Exit,
            Some(frame) if back => self.arrive(frame + 1),
            Some(frame) => self.arrive(self.end[&frame] + 1),
        };
        Step {
            kind,
            back,
            to: To::Code(target),
            plain: false,
        }
    }

    /// Returns the dispatch vertex that an exception raised inside these frames reaches.
    fn raised(&self, frames: &[usize], kind: EdgeKind) -> Step {
        let mut tries = frames.iter().rev();
        let innermost = tries.find(|&&f| matches!(self.ops[f], Operator::TryTable { .. }));
        Step {
            kind,
            back: false,
            to: To::Dispatch(innermost.copied()),
            plain: false,
        }
    }

    fn steps(&self, at: usize, throws: &dyn Fn(&Operator<'_>) -> bool) -> Vec<Step> {
        let frames = &self.enclosing[at];
        let next = |kind, to| Step {
            kind,
            back: false,
            to: To::Code(to),
            plain: false,
        };
        match &self.ops[at] {
            Operator::If { .. } => {
                let no = self.otherwise.get(&at).unwrap_or(&self.end[&at]) + 1;
                vec![
                    next(EdgeKind::Then, self.arrive(at + 1)),
                    next(EdgeKind::Else, self.arrive(no)),
                ]
            }
            Operator::Br { relative_depth } => {
                vec![self.branch(frames, *relative_depth, EdgeKind::Jump)]
            }
            Operator::BrIf { relative_depth } => vec![
                next(EdgeKind::NotTaken, self.arrive(at + 1)),
                self.branch(frames, *relative_depth, EdgeKind::Taken),
            ],
            Operator::BrTable { targets } => {
                let mut depths: Vec<u32> = vec![];
                for depth in targets
                    .targets()
                    .map(Result::unwrap)
                    .chain([targets.default()])
                {
                    if !depths.contains(&depth) {
                        depths.push(depth);
                    }
                }
                depths
                    .iter()
                    .map(|&d| self.branch(frames, d, EdgeKind::Table(d)))
                    .collect()
            }
            Operator::Return
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. } => {
                vec![next(EdgeKind::Return, Target::Exit)]
            }
            Operator::Unreachable => vec![],
            Operator::Throw { .. } | Operator::ThrowRef => {
                vec![self.raised(frames, EdgeKind::Throw)]
            }
            op @ (Operator::Call { .. } | Operator::CallIndirect { .. }) => {
                let mut steps = vec![next(EdgeKind::CallReturn, self.arrive(at + 1))];
                if throws(op) {
                    steps.push(self.raised(frames, EdgeKind::CallThrow));
                }
                steps
            }
            _ => {
                let plain = !self.passes_else(at + 1);
                vec![Step {
                    plain,
                    ..next(EdgeKind::Fall, self.arrive(at + 1))
                }]
            }
        }
    }

    /// Returns the ways out of a dispatch vertex, found by throwing every existing tag and a tag
    /// that no clause names.
    fn dispatch(&self, try_table: Option<usize>, tags: u32) -> Vec<Step> {
        let Some(at) = try_table else {
            return vec![Step {
                kind: EdgeKind::Unwind,
                back: false,
                to: To::Code(Target::Exit),
                plain: false,
            }];
        };
        let Operator::TryTable { try_table } = &self.ops[at] else {
            unreachable!()
        };
        let outside = &self.enclosing[at];
        let mut chosen = BTreeSet::new();
        for thrown in 0..=tags {
            chosen.insert(try_table.catches.iter().position(|catch| match *catch {
                Catch::One { tag, .. } | Catch::OneRef { tag, .. } => tag == thrown,
                Catch::All { .. } | Catch::AllRef { .. } => true,
            }));
        }
        let (uncaught, caught): (Vec<_>, Vec<_>) = chosen.into_iter().partition(Option::is_none);
        let mut steps = vec![];
        for clause in caught.into_iter().flatten() {
            let (Catch::One { label, .. }
            | Catch::OneRef { label, .. }
            | Catch::All { label }
            | Catch::AllRef { label }) = try_table.catches[clause];
            steps.push(self.branch(outside, label, EdgeKind::Catch(clause as u32)));
        }
        steps.extend(
            uncaught
                .iter()
                .map(|_| self.raised(outside, EdgeKind::Unwind)),
        );
        steps
    }

    /// Returns the graph of the function, given the calls that may throw and the number of tags.
    pub fn graph(&self, throws: &dyn Fn(&Operator<'_>) -> bool, tags: u32) -> Graph {
        // These are all operators that can run, with all their steps.
        let mut steps: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
        let mut dispatches: BTreeMap<Option<usize>, Vec<Step>> = BTreeMap::new();
        let entry = self.arrive(0);
        let mut work = vec![To::Code(entry)];
        while let Some(to) = work.pop() {
            let new = match to {
                To::Code(Target::Exit) => continue,
                To::Code(Target::Op(op)) if steps.contains_key(&op) => continue,
                To::Dispatch(at) if dispatches.contains_key(&at) => continue,
                To::Code(Target::Op(op)) => &*steps.entry(op).or_insert(self.steps(op, throws)),
                To::Dispatch(at) => &*dispatches.entry(at).or_insert(self.dispatch(at, tags)),
            };
            work.extend(new.iter().map(|step| step.to));
        }

        // A block begins where control can come from places other than the previous operator.
        let all = || steps.values().chain(dispatches.values()).flatten();
        let mut arrivals: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        for step in all() {
            if let To::Code(Target::Op(op)) = step.to {
                let (count, plain) = arrivals.entry(op).or_insert((0, true));
                *count += 1;
                *plain &= step.plain;
            }
        }
        let begins = |op: usize| Target::Op(op) == entry || arrivals.get(&op) != Some(&(1, true));
        let node = |to: To| match to {
            To::Code(Target::Op(op)) => Node::Block(op as u32),
            To::Code(Target::Exit) => Node::Exit,
            To::Dispatch(at) => Node::Dispatch(at.map(|op| op as u32)),
        };
        let describe = |step: &Step, op: Option<usize>| {
            (
                step.kind.to_string(),
                op.map(|op| op as u32),
                step.back,
                node(step.to),
            )
        };

        let mut graph = Graph::default();
        graph.blocks.insert(Node::Exit, None);
        let is_target = |op| arrivals.contains_key(&op);
        if !matches!(entry, Target::Op(op) if !is_target(op)) {
            graph.blocks.insert(Node::EmptyRoot, None);
            let fall = (
                EdgeKind::Fall.to_string(),
                None,
                false,
                node(To::Code(entry)),
            );
            graph.edges.insert(Node::EmptyRoot, vec![fall]);
        }
        for &first in steps.keys().filter(|&&op| begins(op)) {
            let mut last = first;
            while let [
                Step {
                    plain: true,
                    to: To::Code(Target::Op(next)),
                    ..
                },
            ] = steps[&last][..]
                && !begins(next)
            {
                last = next;
            }
            let block = Node::Block(first as u32);
            graph.blocks.insert(block, Some(last as u32));
            let out: Vec<Edge> = steps[&last]
                .iter()
                .map(|step| describe(step, Some(last)))
                .collect();
            if !out.is_empty() {
                graph.edges.insert(block, out);
            }
        }
        for (&at, steps) in &dispatches {
            let vertex = node(To::Dispatch(at));
            graph.blocks.insert(vertex, None);
            graph.edges.insert(
                vertex,
                steps.iter().map(|step| describe(step, at)).collect(),
            );
        }
        graph
    }

    /// Returns whether a `throw` or a call that `throws` is not enclosed by a catch-all clause, or
    /// whether a tail call throws.
    fn lets_out(&self, throws: &dyn Fn(&Operator<'_>) -> bool) -> bool {
        let protected = |at: usize| {
            self.enclosing[at]
                .iter()
                .any(|&frame| match &self.ops[frame] {
                    Operator::TryTable { try_table } => try_table
                        .catches
                        .iter()
                        .any(|catch| matches!(catch, Catch::All { .. } | Catch::AllRef { .. })),
                    _ => false,
                })
        };
        self.ops.iter().enumerate().any(|(at, op)| match op {
            Operator::Throw { .. } | Operator::ThrowRef => !protected(at),
            Operator::Call { .. } | Operator::CallIndirect { .. } => !protected(at) && throws(op),
            Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. } => throws(op),
            _ => false,
        })
    }
}

/// Returns whether a call throws, given the functions that throw.
pub fn call_throws(program: &Program, throwing: &BTreeSet<FuncId>, op: &Operator<'_>) -> bool {
    match *op {
        Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
            throwing.contains(&FuncId::from_u32(function_index))
        }
        Operator::CallIndirect { type_index, .. }
        | Operator::ReturnCallIndirect { type_index, .. } => {
            let ty = &program.types[TypeId::from_u32(type_index)];
            throwing.iter().any(|&id| {
                let function = program.function(id).unwrap();
                program.address_taken.contains(id) && program.types[function.ty] == *ty
            })
        }
        _ => false,
    }
}

/// Returns the functions that may throw an exception to their caller, by adding functions until the
/// set is complete.
pub fn throwing(program: &Program, bodies: &[Body<'_>]) -> BTreeSet<FuncId> {
    let mut throwing = BTreeSet::new();
    loop {
        let before = throwing.len();
        for (function, body) in program.functions.iter().zip(bodies) {
            if body.lets_out(&|op| call_throws(program, &throwing, op)) {
                throwing.insert(function.id);
            }
        }
        if throwing.len() == before {
            return throwing;
        }
    }
}
