//! Computes forward slices.

use std::collections::VecDeque;

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use afterimage_machine::{NodeCode, Range};
use afterimage_program::Program;
use afterimage_wpp::Node;

use crate::criterion::{Criterion, ExecutionQuery, Follows};
use crate::domain::{Dependences, Domain, Why};
use crate::instances::Instances;
use crate::marks::{Marks, Slice};
use crate::plan::Plan;
use crate::reach::Reach;
use crate::stretch::{Execution, Stretch};
use crate::walk::Walk;

/// The domain of forward slices. A label states how deep to follow the dependents of an execution
/// or value. It is zero for anything that does not depend on the criteria.
struct Reached {
    marks: Marks,
    /// The executions in the slice, if requested.
    instances: Option<Instances>,
    /// The host's reads of data that depends on the criteria.
    host_read: Vec<HostTook>,
}

/// Bytes that the host read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTook {
    /// The time of the first block of the execution that ends with the call.
    pub start: u64,
    /// The bytes that the host read.
    pub range: Range,
}

impl Reached {
    fn mark(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>) {
        if let Some(instances) = &mut self.instances {
            instances.add(inst.unwrap_or(plan.insts.len()));
        }
        match inst {
            Some(inst) => self.marks.inst_once(execution, inst, plan.ops[inst]),
            None => self.marks.end_once(execution),
        }
    }
}

/// How far to follow the dependents of an execution, before the execution itself is counted.
#[derive(Default)]
struct Farthest(Reach);

impl Dependences<Reach> for Farthest {
    #[inline(always)]
    fn add(&mut self, _: Why, label: Reach) {
        self.0 = self.0.max(label);
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.0 = Reach::NONE;
    }

    fn labels(&self) -> impl Iterator<Item = Reach> {
        std::iter::once(self.0).filter(|reach| reach.is_some())
    }
}

impl Domain for Reached {
    type Label = Reach;
    type On = Farthest;
    const SKIPS: bool = true;

    fn begin(&mut self, plan: &Plan) {
        if let Some(instances) = &mut self.instances {
            instances.begin(plan.insts.len());
        }
    }

    fn criterion(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>) {
        self.mark(execution, plan, inst);
    }

    fn inst(&mut self, execution: Execution, plan: &Plan, inst: usize, on: &Farthest) -> Reach {
        let reach = on.0.next();
        if reach.is_some() {
            self.mark(execution, plan, Some(inst));
        }
        reach
    }

    fn end(&mut self, execution: Execution, plan: &Plan, on: &Farthest) -> Reach {
        let reach = on.0.next();
        if reach.is_some() {
            self.mark(execution, plan, None);
        }
        reach
    }

    fn takes(&mut self, execution: Execution, plan: &Plan, inst: Option<usize>, on: &Farthest) {
        if on.0.next().is_some() {
            self.mark(execution, plan, inst);
        }
    }

    fn join(&mut self, a: Reach, b: Reach) -> Reach {
        a.max(b)
    }

    fn copied(&mut self, copy: Reach, byte: Reach) -> Reach {
        copy.max(byte.next())
    }

    fn taken(&mut self, before: Reach, more: Reach) -> Reach {
        before.max(more.next())
    }

    fn host(&mut self, call: Reach, taken: Reach) -> Reach {
        call.max(taken)
    }

    fn host_read(&mut self, execution: Execution, range: Range) {
        let start = execution.start;
        self.host_read.push(HostTook { start, range });
    }
}

/// Walks forward over a run, stretch by stretch, and finds the dependents of criteria. These are
/// the executions whose [backward](crate::Backward) slices contain a criterion.
///
/// Time is linear in the nodes of the run and in the blocks that the decisions in the slice decide.
/// Memory is linear in the guest's memory.
pub struct Forward<'a> {
    walk: Walk<'a, Reached>,
    /// The criteria by time, ascending.
    criteria: VecDeque<Criterion>,
    /// The depth to which to follow the dependents of the criteria.
    reach: Reach,
}

impl<'a> Forward<'a> {
    /// Starts from criteria. The largest of their limits applies to all criteria. The first stretch
    /// must contain the execution of the first criterion, or come before it.
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        follows: Follows,
        mut criteria: Vec<Criterion>,
    ) -> Self {
        criteria.sort_by_key(|criterion| criterion.start);
        let reach = criteria.iter().map(|criterion| criterion.reach).max();
        let reached = Reached {
            marks: Marks::new(nodes.len()),
            instances: None,
            host_read: Vec::new(),
        };
        Self {
            walk: Walk::new(program, nodes, follows, reached),
            criteria: criteria.into(),
            reach: reach.unwrap_or_default(),
        }
    }

    /// Makes the walk also record which executions are in the slice.
    pub fn with_instances(mut self) -> Self {
        self.walk.domain.instances = Some(Instances::default());
        self
    }

    /// Sets a node's code. This must be called before any stretch that contains the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.walk.prepare(node, code);
    }

    /// Adds an activation that is open before the first stretch, with the node that it executed
    /// last. Add outer activations first.
    pub fn open(&mut self, function: FuncId, last: NodeId) {
        self.walk.open(function, last);
    }

    /// Processes a stretch, which must directly follow the stretch passed last.
    pub fn pass(&mut self, stretch: &Stretch) {
        if let (Some(instances), Some(start)) = (&mut self.walk.domain.instances, stretch.first()) {
            instances.stretch(start);
        }
        let criteria = &mut self.criteria;
        let asked = |start| {
            let mut asked = ExecutionQuery::default();
            while let Some(criterion) = criteria.pop_front_if(|next| next.start == start) {
                asked.add(&criterion);
            }
            asked
        };
        self.walk.pass(stretch, asked, self.reach);
    }

    /// Returns the executions in the slice, if they were recorded.
    pub fn instances(&mut self) -> Option<Instances> {
        self.walk.domain.instances.take()
    }

    /// Returns, in order, the host's reads so far of data that depends on the criteria.
    pub fn host_read(&mut self) -> Vec<HostTook> {
        std::mem::take(&mut self.walk.domain.host_read)
    }

    /// Returns the slice.
    pub fn finish(self) -> Slice {
        let plans = |node: NodeId| self.walk.prepared(node);
        self.walk.domain.marks.finish(plans, Vec::new())
    }
}
