//! Collects the dependences between statements that a run exercised.

use std::collections::BTreeSet;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::NodeCode;
use afterimage_program::Program;
use afterimage_wpp::Node;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::criterion::{ExecutionQuery, Follows};
use crate::domain::{Dependences, Domain, Why};
use crate::plan::Plan;
use crate::stretch::{Execution, Stretch};
use crate::walk::Walk;

/// An operator.
pub type Operator = (FuncId, OpId);

/// A dependence of one operator on another in some execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The dependent operator.
    pub user: Operator,
    /// The operator that it depended on.
    pub on: Operator,
    /// The reason for the dependence.
    pub why: Why,
}

/// The producer of a value. It is 0 for none. Numbers from 1 on are operators, and numbers from
/// [`SETS`] on are sets of operators.
type Label = u32;

/// The first label of a set of operators.
const SETS: Label = 1 << 31;
/// A bit that marks an operator in a set if it allowed a value to be moved but did not produce it.
const MOVED: Label = 1 << 30;

/// The size of a cache of recent edges, which avoids most look-ups in the set of all edges.
const RECENT: usize = 1 << 14;

/// The domain that collects the exercised edges.
struct Edges {
    numbers: FxHashMap<Operator, Label>,
    operators: Vec<Operator>,
    /// The numbers of each node's instructions, and of its end.
    of_nodes: Vec<Box<[Label]>>,
    /// Sets of operators, each ascending.
    sets: Vec<Box<[Label]>>,
    of_sets: FxHashMap<Box<[Label]>, Label>,
    edges: FxHashSet<(Label, Label, Why)>,
    recent: Vec<(Label, Label, Why)>,
}

impl Edges {
    fn new(nodes: usize) -> Self {
        Self {
            numbers: FxHashMap::default(),
            operators: Vec::new(),
            of_nodes: vec![Box::default(); nodes],
            sets: Vec::new(),
            of_sets: FxHashMap::default(),
            edges: FxHashSet::default(),
            recent: vec![(0, 0, Why::Data); RECENT],
        }
    }

    fn number(&mut self, operator: Operator) -> Label {
        let operators = &mut self.operators;
        *self.numbers.entry(operator).or_insert_with(|| {
            operators.push(operator);
            operators.len() as Label
        })
    }

    /// Returns the number of a node's instruction, or of its end. Returns 0 if it is not a separate
    /// operator.
    fn of(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>) -> Label {
        let node = execution.node.index();
        if self.of_nodes[node].is_empty() {
            let ops = plan.ops.iter().map(|&op| Some(op));
            let ops = ops.chain([plan.end_op]);
            let ops = ops.map(|op| op.map_or(0, |op| self.number((plan.function, op))));
            self.of_nodes[node] = ops.collect();
        }
        let numbers = &self.of_nodes[node];
        numbers[inst.unwrap_or(plan.ops.len())]
    }

    #[inline]
    fn exercise(&mut self, user: Label, on: &[(Why, Label)]) {
        if user == 0 {
            return;
        }
        for &(why, label) in on {
            let edge = (user, label, why);
            let place = (user.wrapping_mul(0x9e37_79b1) ^ label.wrapping_mul(0x85eb_ca77)) >> 18;
            let recent = &mut self.recent[place as usize];
            if *recent != edge {
                *recent = edge;
                self.edges.insert(edge);
            }
        }
    }

    /// Returns the label of a set.
    fn set(&mut self, members: BTreeSet<Label>) -> Label {
        let members: Box<[Label]> = members.into_iter().collect();
        if let Some(&known) = self.of_sets.get(&members) {
            return known;
        }
        let label = SETS + self.sets.len() as Label;
        self.sets.push(members.clone());
        self.of_sets.insert(members, label);
        label
    }

    /// Returns the operators that a label represents.
    fn all(&self, label: Label) -> Vec<Label> {
        if label < SETS {
            vec![label]
        } else {
            self.members(label).to_vec()
        }
    }

    fn members(&self, label: Label) -> &[Label] {
        match label.checked_sub(SETS) {
            Some(set) => self.sets.get(set as usize).map_or(&[], |set| &set[..]),
            None => &[],
        }
    }

    /// Returns all edges between operators.
    fn finish(self) -> BTreeSet<Edge> {
        let mut all = BTreeSet::new();
        let operator = |label: Label| {
            let position = (label as usize).checked_sub(1)?;
            self.operators.get(position).copied()
        };
        for &(user, on, why) in &self.edges {
            let alone = [on];
            let on = if on < SETS {
                &alone[..]
            } else {
                self.members(on)
            };
            for &on in on {
                let why = match on & MOVED {
                    0 => why,
                    _ => Why::Moved,
                };
                let on = on & !MOVED;
                if let (Some(user), Some(on)) = (operator(user), operator(on)) {
                    all.insert(Edge { user, on, why });
                }
            }
        }
        all
    }
}

impl Dependences<Label> for Vec<(Why, Label)> {
    fn add(&mut self, why: Why, label: Label) {
        // Neighbouring bytes often have the same label.
        if self.last() != Some(&(why, label)) {
            self.push((why, label));
        }
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn labels(&self) -> impl Iterator<Item = Label> {
        self.iter().map(|(_, label)| *label)
    }
}

impl Domain for Edges {
    type Label = Label;
    type On = Vec<(Why, Label)>;
    const SKIPS: bool = false;

    fn inst(&mut self, execution: Execution, plan: &Plan, inst: usize, on: &Self::On) -> Label {
        let number = self.of(execution, plan, Some(inst));
        self.exercise(number, on);
        number
    }

    fn end(&mut self, execution: Execution, plan: &Plan, on: &Self::On) -> Label {
        let number = self.of(execution, plan, None);
        self.exercise(number, on);
        number
    }

    fn takes(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>, on: &Self::On) {
        let number = self.of(execution, plan, inst);
        self.exercise(number, on);
    }

    fn join(&mut self, a: Label, b: Label) -> Label {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        self.set(self.all(a).into_iter().chain(self.all(b)).collect())
    }

    fn moved(&mut self, value: Label, block: Label) -> Label {
        match block {
            0 => value,
            _ => {
                let block = self.all(block).into_iter().map(|label| label | MOVED);
                let value = self.all(value).into_iter().filter(|&label| label != 0);
                self.set(block.chain(value).collect())
            }
        }
    }

    fn copied(&mut self, copy: Label, _: Label) -> Label {
        copy
    }

    fn taken(&mut self, _: Label, _: Label) -> Label {
        0
    }

    fn host(&mut self, call: Label, _: Label) -> Label {
        call
    }
}

/// Walks forward over a run from its beginning and collects the dependences between operators.
/// These are the edges of Agrawal and Horgan's second approach (1990, section 3.2).
///
/// A call and the host's actions during it count as one operator. The same is true of a copy and
/// all of its bytes. Time is linear in the executed statements and in the blocks that are decided.
/// Needs memory for the edges, plus four bytes for each written byte of the guest's memory.
pub struct Exercised<'a>(Walk<'a, Edges>);

impl<'a> Exercised<'a> {
    /// Starts a walk over a run of a program.
    pub fn new(program: &'a Program, nodes: &'a PrimaryMap<NodeId, Node>) -> Self {
        let edges = Edges::new(nodes.len());
        Self(Walk::new(program, nodes, Follows::ALL, edges))
    }

    /// Sets a node's code. This must be called before any stretch that contains the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.0.prepare(node, code);
    }

    /// Processes a stretch, which must directly follow the stretch passed last.
    pub fn pass(&mut self, stretch: &Stretch) {
        self.0.pass(stretch, |_| ExecutionQuery::default(), 0);
    }

    /// Returns the edges.
    pub fn finish(self) -> BTreeSet<Edge> {
        self.0.domain.finish()
    }
}
