//! Collects the contents of a slice.

use std::collections::BTreeMap;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::Range;

use crate::plan::Plan;
use crate::stretch::Execution;

/// The number of times that each node's instructions and its end are in the slice. The instructions
/// of an atomic operator count once per execution.
#[derive(Debug)]
pub(crate) struct Marks {
    insts: Vec<Vec<u64>>,
    ends: Vec<u64>,
    /// The operator that [`inst_once`](Self::inst_once) marked last, with the start of its
    /// execution.
    last: Option<(u64, OpId)>,
    last_end: Option<u64>,
}

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The operators in the slice, with the number of executions of each.
    pub operators: BTreeMap<(FuncId, OpId), u64>,
    /// The bytes of memory in the slice that existed before the processed part, as initial data or
    /// zeros.
    pub initial: Vec<Range>,
}

impl Slice {
    /// Returns the number of operator executions in the slice.
    pub fn executions(&self) -> u64 {
        self.operators.values().sum()
    }
}

impl Marks {
    pub fn new(nodes: usize) -> Self {
        Self {
            insts: vec![Vec::new(); nodes],
            ends: vec![0; nodes],
            last: None,
            last_end: None,
        }
    }

    /// Marks an instruction, unless the last mark in this execution was for the same operator.
    pub fn inst_once(&mut self, execution: Execution, inst: usize, op: OpId) {
        if self.last.replace((execution.start, op)) != Some((execution.start, op)) {
            self.inst(execution, inst);
        }
    }

    /// Marks the end of an execution, unless it is already marked.
    pub fn end_once(&mut self, execution: Execution) {
        if self.last_end.replace(execution.start) != Some(execution.start) {
            self.end(execution);
        }
    }

    #[inline]
    pub fn inst(&mut self, execution: Execution, inst: usize) {
        let counts = &mut self.insts[execution.node.index()];
        if counts.len() <= inst {
            counts.resize(inst + 1, 0);
        }
        counts[inst] += 1;
    }

    /// Takes out the counts of a node's instructions, so that an execution can update them in one
    /// place. [`put`](Self::put) puts them back.
    #[inline]
    pub fn of(&mut self, node: NodeId, insts: usize) -> Vec<u64> {
        let mut counts = std::mem::take(&mut self.insts[node.index()]);
        if counts.len() < insts {
            counts.resize(insts, 0);
        }
        counts
    }

    /// Puts these counts back.
    #[inline]
    pub fn put(&mut self, node: NodeId, counts: Vec<u64>) {
        self.insts[node.index()] = counts;
    }

    pub fn end(&mut self, execution: Execution) {
        self.ends[execution.node.index()] += 1;
    }

    /// Marks these instructions in `times` executions of a node. Also marks the node's end if
    /// `ended` is true.
    pub fn add(&mut self, node: usize, insts: &[u32], ended: bool, times: u64) {
        let counts = &mut self.insts[node];
        for &inst in insts {
            let inst = inst as usize;
            if counts.len() <= inst {
                counts.resize(inst + 1, 0);
            }
            counts[inst] += times;
        }
        self.ends[node] += u64::from(ended) * times;
    }

    pub fn finish<'p>(
        &self,
        plans: impl Fn(NodeId) -> Option<&'p Plan>,
        initial: Vec<Range>,
    ) -> Slice {
        let mut operators: BTreeMap<_, u64> = BTreeMap::new();
        for (node, (insts, &end)) in self.insts.iter().zip(&self.ends).enumerate() {
            let Some(plan) = plans(NodeId::new(node)) else {
                continue;
            };
            // For each execution, only one of an operator's instructions is marked.
            let counts = insts.iter().copied().zip(plan.ops.iter().copied());
            let end = plan.end_op.map(|op| (end, op));
            for (count, op) in counts.chain(end).filter(|(count, _)| *count > 0) {
                *operators.entry((plan.function, op)).or_default() += count;
            }
        }
        Slice { operators, initial }
    }
}
