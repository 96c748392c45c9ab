//! What is in a slice.

use std::collections::BTreeMap;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::Range;

use crate::plan::Plan;
use crate::stretch::Execution;

/// How often instructions, and ends, of nodes are in the slice: of the instructions of an atomic operator one for each execution.
#[derive(Debug)]
pub(crate) struct Marks {
    insts: Vec<Vec<u64>>,
    ends: Vec<u64>,
    /// What was marked last by those that mark once, and when.
    last: Option<(u64, OpId)>,
    last_end: Option<u64>,
}

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The operators in it, and how many executions of each.
    pub operators: BTreeMap<(FuncId, OpId), u64>,
    /// Bytes that were there before what was gone over, in memory: of the module, or zero.
    pub initial: Vec<Range>,
}

impl Slice {
    /// How many executions of operators are in it.
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

    /// Marks an instruction, unless one of its operator was the last one that was marked in this execution.
    pub fn inst_once(&mut self, execution: Execution, inst: usize, op: OpId) {
        if self.last.replace((execution.start, op)) != Some((execution.start, op)) {
            self.inst(execution, inst);
        }
    }

    /// Marks the end of an execution, unless it is marked.
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

    /// How often the instructions of a node are in it, to be [put](Self::put) back: those of one execution are counted in one place.
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

    /// Marks these instructions of so many executions of a node, and the end if it `ended`.
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
            // Of an operator's instructions one is marked for each execution.
            let counts = insts.iter().copied().zip(plan.ops.iter().copied());
            let end = plan.end_op.map(|op| (end, op));
            for (count, op) in counts.chain(end).filter(|(count, _)| *count > 0) {
                *operators.entry((plan.function, op)).or_default() += count;
            }
        }
        Slice { operators, initial }
    }
}
