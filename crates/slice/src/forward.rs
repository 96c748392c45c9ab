//! Forward slices.

use std::collections::VecDeque;

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use afterimage_machine::NodeCode;
use afterimage_program::Program;
use afterimage_wpp::Node;

use crate::criterion::{Asked, Criterion, Follows};
use crate::domain::{Domain, Why};
use crate::instances::Instances;
use crate::marks::{Marks, Slice};
use crate::plan::Plan;
use crate::stretch::{Execution, Stretch};
use crate::walk::Walk;

/// Whether something depends on the criteria.
struct Reached {
    marks: Marks,
    /// Which executions, if that is to be known.
    instances: Option<Instances>,
}

impl Reached {
    fn mark(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>) {
        if let Some(instances) = &mut self.instances {
            instances.add(inst.unwrap_or(plan.insts.len()));
        }
        match inst {
            Some(inst) => self.marks.inst_once(execution, inst),
            None => self.marks.end_once(execution),
        }
    }
}

impl Domain for Reached {
    type Label = bool;
    const SKIPS: bool = true;

    fn begin(&mut self, plan: &Plan) {
        if let Some(instances) = &mut self.instances {
            instances.begin(plan.insts.len());
        }
    }

    fn inst(&mut self, execution: Execution, plan: &Plan, inst: usize, on: &[(Why, bool)]) -> bool {
        let reached = on.iter().any(|&(_, label)| label);
        if reached {
            self.mark(execution, plan, Some(inst));
        }
        reached
    }

    fn end(&mut self, execution: Execution, plan: &Plan, on: &[(Why, bool)]) -> bool {
        let reached = on.iter().any(|&(_, label)| label);
        if reached {
            self.mark(execution, plan, None);
        }
        reached
    }

    fn takes(
        &mut self,
        execution: Execution,
        plan: &Plan,
        inst: Option<usize>,
        on: &[(Why, bool)],
    ) {
        if on.iter().any(|&(_, label)| label) {
            self.mark(execution, plan, inst);
        }
    }

    fn join(&mut self, a: bool, b: bool) -> bool {
        a || b
    }

    fn copied(&mut self, copy: bool, byte: bool) -> bool {
        copy || byte
    }

    fn host(&mut self, call: bool, taken: bool) -> bool {
        call || taken
    }
}

/// Goes forward over a run, stretch by stretch, and finds what depends on criteria: the executions whose [backward](crate::Backward) slice has one
/// of them.
///
/// Time is linear in the nodes of the run and the blocks that the decisions in the slice decide, memory in the guest's.
pub struct Forward<'a> {
    walk: Walk<'a, Reached>,
    /// By time, ascending.
    criteria: VecDeque<Criterion>,
}

impl<'a> Forward<'a> {
    /// From criteria. The first stretch must have the execution of the first of them, or come before it.
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        follows: Follows,
        mut criteria: Vec<Criterion>,
    ) -> Self {
        criteria.sort_by_key(|criterion| criterion.start);
        let reached = Reached {
            marks: Marks::new(nodes.len()),
            instances: None,
        };
        Self {
            walk: Walk::new(program, nodes, follows, reached),
            criteria: criteria.into(),
        }
    }

    /// Also keeps which executions are in the slice.
    pub fn with_instances(mut self) -> Self {
        self.walk.domain.instances = Some(Instances::default());
        self
    }

    /// A node's code; to be told before a stretch with the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.walk.prepare(node, code);
    }

    /// An activation that is open before the first stretch, and the node that it executed last; those around it come first.
    pub fn open(&mut self, function: FuncId, last: NodeId) {
        self.walk.open(function, last);
    }

    /// Goes over a stretch: the one after the last one that was given.
    pub fn pass(&mut self, stretch: &Stretch) {
        if let (Some(instances), Some(start)) = (&mut self.walk.domain.instances, stretch.first()) {
            instances.stretch(start);
        }
        let criteria = &mut self.criteria;
        let asked = |start| {
            let mut asked = Asked::default();
            while let Some(criterion) = criteria.pop_front_if(|next| next.start == start) {
                asked.add(&criterion);
            }
            asked
        };
        self.walk.pass(stretch, asked, true);
    }

    /// Which executions are in the slice, if that was kept.
    pub fn instances(&mut self) -> Option<Instances> {
        self.walk.domain.instances.take()
    }

    /// What the slice is.
    pub fn finish(self) -> Slice {
        let plans = |node: NodeId| self.walk.prepared(node);
        self.walk.domain.marks.finish(plans, Vec::new())
    }
}
