//! Computes backward slices by walking back over a run.

mod ends;
mod insts;
mod keeping;

use std::rc::Rc;

use afterimage_ids::{NodeId, PrimaryMap};
use afterimage_machine::{NodeCode, Range, Register, Taker};
use afterimage_program::Program;
use afterimage_wpp::Node;

use crate::bytes::ByteSet;
use crate::criterion::{Criteria, Criterion, ExecutionQuery, Follows, Stored, Want};
use crate::frame::Frame;
use crate::instances::Instances;
use crate::marks::{Marks, Slice};
use crate::memo::Memo;
use crate::plan::{End, Kind, Plan};
use crate::plans::Plans;
use crate::reach::Reach;
use crate::stretch::{Event, Execution, Stretch, unpacked};
use ends::OfEnd;
use insts::Accesses;
use keeping::Keeping;

/// The number of registers examined at once.
const CHUNK: usize = 8;

/// The maximum size in bytes of the memoised outcomes of nodes.
const ROOM: usize = 64 << 20;

/// Walks back over a run, stretch by stretch, and computes a full dynamic slice, which consists of
/// executions (Zhang and Gupta 2005, section 6.1; Agrawal and Horgan 1990, the third approach).
///
/// The walk keeps a set of wanted items: bytes of memory, globals, variables of open activations,
/// and blocks whose predicate must be found. An execution that produces a wanted item is in the
/// slice. Its operands then become wanted, as far as the criteria require. Time is linear in the
/// nodes of the run, and memory in the guest's memory.
pub struct Backward<'a> {
    follows: Follows,
    plans: Plans<'a>,
    bytes: ByteSet,
    globals: Vec<Reach>,
    tables: Vec<Reach>,
    /// The depth to which to follow the size of each memory.
    sizes: Vec<Reach>,
    frames: Vec<Frame>,
    of_end: OfEnd,
    criteria: Criteria,
    /// The query about the current execution.
    asked: Option<Box<ExecutionQuery>>,
    /// The depth to which to follow each register of the current node.
    registers: Vec<Reach>,
    /// For each block of the node, the depth to which to follow the decision to execute it, because
    /// wanted values were moved in the block.
    moved: Vec<Reach>,
    /// Whether the end of the current node is in the slice.
    ended: bool,
    parts: Vec<(Range, Reach)>,
    marks: Marks,
    /// If given, only these executions are marked.
    within: Option<Instances>,
    /// The executions at which the chop begins, each with an instruction or `None` for the end.
    sources: Vec<(u64, Option<usize>)>,
    connected: bool,
    /// The position in `within` of the current execution's bits.
    base: Option<u64>,
    /// The run has been processed from its end back to this time.
    gone: u64,
    /// The memoised outcomes of nodes; `None` if some dependences are followed only to a limited
    /// depth.
    memo: Option<Memo>,
    /// The record of how the current node is processed, to be memoised.
    keeping: Option<Box<Keeping>>,
}

impl<'a> Backward<'a> {
    /// Starts from criteria. Stretches are skipped until one contains the execution of the last
    /// criterion.
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        follows: Follows,
        criteria: Vec<Criterion>,
    ) -> Self {
        let is_full = criteria.iter().all(|c| c.reach == Reach::ALL);
        Self {
            memo: is_full.then(|| Memo::new(nodes.len(), ROOM)),
            keeping: None,
            follows,
            plans: Plans::new(program, nodes),
            bytes: ByteSet::default(),
            globals: Vec::new(),
            tables: Vec::new(),
            sizes: Vec::new(),
            frames: Vec::new(),
            of_end: OfEnd::default(),
            criteria: Criteria::new(criteria),
            asked: None,
            registers: Vec::new(),
            moved: Vec::new(),
            ended: false,
            parts: Vec::new(),
            marks: Marks::new(nodes.len()),
            within: None,
            sources: Vec::new(),
            connected: false,
            base: None,
            gone: u64::MAX,
        }
    }

    /// Uses about this many bytes for memoised outcomes instead of 64 MiB. Fewer bytes do not
    /// change the slice, but computing it takes longer.
    pub fn with_room(mut self, bytes: usize) -> Self {
        if let Some(memo) = &mut self.memo {
            *memo = Memo::new(self.plans.len(), bytes);
        }
        self
    }

    /// Restricts the slice to these executions. If they are the executions of a forward slice, the
    /// result is a chop (Jackson and Rollins 1994). Stretches must begin where the forward slice's
    /// stretches began, or combine several of these. The result is empty if the slice contains no
    /// instruction or end that `from` wants. In that case, no dependence leads from `from` to the
    /// criteria.
    pub fn within(mut self, instances: Instances, from: &[Criterion]) -> Self {
        self.within = Some(instances);
        // Executions with equal outcomes may have different instructions in the set.
        self.memo = None;
        for criterion in from {
            let wants = criterion.wants.iter();
            self.sources.extend(wants.filter_map(|want| match *want {
                Want::Inst(inst) => Some((criterion.start, Some(inst))),
                Want::End => Some((criterion.start, None)),
                _ => None,
            }));
        }
        // A slice contains only statements, so other criteria cannot be found in it.
        self.connected = self.sources.is_empty();
        self
    }

    /// Records that an instruction, or an end, of an execution is in the slice.
    #[inline]
    fn come_to(&mut self, execution: Execution, inst: Option<usize>) {
        if self.within.is_some() && !self.connected {
            self.connected = self.sources.contains(&(execution.start, inst));
        }
    }

    /// Whether the slice is complete, because nothing is wanted any more, or because all executions
    /// of [`within`](Self::within) are later.
    pub fn is_done(&self) -> bool {
        let none = |wanted: &[Reach]| wanted.iter().all(|wanted| wanted.is_none());
        let before = |within: &Instances| within.first().is_none_or(|first| first > self.gone);
        if self.criteria.is_empty() && self.within.as_ref().is_some_and(before) {
            return true;
        }
        self.criteria.is_empty()
            && self.bytes.len() == 0
            && none(&self.globals)
            && none(&self.tables)
            && none(&self.sizes)
            && self.frames.iter().all(Frame::is_done)
            && self.of_end.is_none()
    }

    /// Sets a node's code. This must be called before any stretch that contains the node.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        self.plans.prepare(node, code);
    }

    /// Walks back over a stretch, which must directly precede the stretch passed last.
    pub fn pass(&mut self, stretch: &Stretch) {
        let Some(executions) = self.criteria.begin(stretch) else {
            return;
        };
        let mut bases = self.bases(stretch, executions);
        for at in (0..executions).rev() {
            let execution = stretch.executions[at];
            self.base = bases
                .pop_if(|(position, _)| *position == at)
                .map(|(_, base)| base);
            let before = at.checked_sub(1).map(|i| stretch.executions[i]);
            let first = before.map_or(stretch.before, |before| before.events);
            let addresses = before.map_or(0, |before| before.addresses);
            self.asked = self.criteria.of(execution.start);
            let events = self.events(&stretch.events[first..execution.events]);
            let accesses = &stretch.addresses[addresses..execution.addresses];
            self.execution(execution, &stretch.events[first..first + events], accesses);
        }
        self.gone = stretch
            .first()
            .map_or(self.gone, |first| first.saturating_sub(1));
        self.asked = None;
        self.events(&stretch.events[..stretch.before]);
    }

    /// Returns the positions of the bits of a stretch's parts, by the first execution of each part,
    /// ascending.
    fn bases(&self, stretch: &Stretch, executions: usize) -> Vec<(usize, u64)> {
        let Some(within) = &self.within else {
            return Vec::new();
        };
        let mut bases = Vec::with_capacity(executions);
        let mut base = None;
        for (position, execution) in stretch.executions[..executions].iter().enumerate() {
            base = within.of_stretch(execution.start).or(base);
            let plan = self.plans.get(execution.node);
            if let (Some(at), Some(plan)) = (base, plan) {
                bases.push((position, at));
                base = Some(at + plan.insts.len() as u64 + 1);
            }
        }
        bases
    }

    /// Whether an instruction of the current execution, or its end, may be in the slice.
    #[inline]
    fn is_within(&self, inst: usize) -> bool {
        let Some(within) = &self.within else {
            return true;
        };
        self.base.is_some_and(|base| within.has(base + inst as u64))
    }

    /// Returns the slice. Whatever is still wanted existed before the run, or before the part that
    /// was processed.
    pub fn finish(mut self) -> Slice {
        for (node, outcome, times) in self.memo.iter().flat_map(Memo::outcomes) {
            self.marks.add(node, &outcome.insts, outcome.ended, times);
        }
        if self.within.is_some() && !self.connected {
            return Slice::default();
        }
        let plans = |node: NodeId| self.plans.get(node).map(Rc::as_ref);
        // A slice between two places contains no data from before the run.
        let initial = match self.within {
            Some(_) => Vec::new(),
            None => self.bytes.all(),
        };
        self.marks.finish(plans, initial)
    }

    fn clear(&mut self, plan: &Plan) {
        let count = plan.registers.next_multiple_of(CHUNK);
        if self.registers.len() < count {
            self.registers.resize(count, Reach::NONE);
        }
        self.registers[..count].fill(Reach::NONE);
        if plan.has_moved() {
            self.moved.clear();
            self.moved.resize(plan.blocks.len(), Reach::NONE);
        }
        self.ended = false;
    }

    #[inline]
    fn want_register(&mut self, register: Register, plan: &Plan, reach: Reach) {
        debug_assert!((register as usize) < plan.registers);
        if let Some(wanted) = self.registers.get_mut(register as usize) {
            *wanted = reach.max(*wanted);
        }
    }

    /// Marks the blocks in which a wanted value was moved as wanted.
    fn want_moved(&mut self, taker: Taker, plan: &Plan, reach: Reach) {
        if reach.is_some() {
            for block in plan.moved(taker) {
                self.moved[block] = reach.max(self.moved[block]);
            }
        }
    }

    /// Processes a complete execution of a node.
    fn execution(&mut self, execution: Execution, events: &[Event], accesses: &[u64]) {
        let Some(plan) = self.plans.get(execution.node).map(Rc::clone) else {
            return;
        };
        let function = plan.function;
        let frame = self.top();
        if frame.function.replace(function) != Some(function) {
            frame.number = None;
        }
        let last = plan.blocks.len().saturating_sub(1);
        if self.asked.is_none() && !self.may_matter(&plan, execution, events, accesses) {
            self.top().next = plan.blocks.first().copied();
            return;
        }
        let keeps = self.asked.is_none() && plan.keeps && execution.ended && events.is_empty();
        if keeps && self.as_before(&plan, execution, accesses) {
            return;
        }
        self.clear(&plan);
        let mut live = self.ask(&plan, execution);
        if execution.ended {
            live = live.max(self.end(&plan, execution));
            for &output in &plan.outputs {
                let reach = self.top().take(output.variable);
                if reach.is_some() {
                    self.want_register(output.register, &plan, reach);
                    for block in plan.moved_output(output) {
                        self.moved[block] = reach.max(self.moved[block]);
                    }
                }
            }
        }
        self.of_end = OfEnd::default();
        self.go_over(&plan, execution, events, accesses, (last, live));
        if let Some(keeping) = self.keeping.take() {
            self.keep(&plan, execution, *keeping);
        }
    }

    /// Adds everything that the criteria want from an execution, except in memory. Returns how far
    /// the execution's last block must be followed as a result.
    fn ask(&mut self, plan: &Plan, execution: Execution) -> Reach {
        let mut live = Reach::NONE;
        let Some(asked) = self.asked.take() else {
            return live;
        };
        // A query read from a file may name instructions that do not exist.
        for &(inst, reach) in asked.insts.iter().filter(|(i, _)| *i < plan.insts.len()) {
            self.want_register(plan.result(inst) as Register, plan, reach);
        }
        for &(variable, reach) in asked.variables.iter().filter(|(v, _)| *v < plan.variables) {
            self.want_register(variable, plan, reach);
        }
        if asked.end.is_some() && execution.ended {
            match &plan.end {
                End::Call { .. } => self.of_end.host = asked.end.max(self.of_end.host),
                End::Return(values) => {
                    if self.follows.data {
                        let reach = asked.end.next();
                        for (i, &value) in (0..).zip(values) {
                            self.want_given(i, value, plan, reach);
                        }
                    }
                    self.mark_end(execution);
                    live = asked.end;
                }
                End::Throw(_) | End::Rethrow(_) => {
                    self.of_end.asked = asked.end;
                    self.of_end.threw = asked.end.max(self.of_end.threw);
                }
                End::Next => {}
            }
        }
        self.asked = Some(asked);
        live
    }

    /// Returns how far the criteria follow the execution of a block of the current node.
    #[inline]
    fn asks_block(&self, position: usize) -> Reach {
        let asked = self.asked.as_ref();
        asked.map(|asked| asked.block(position)).unwrap_or_default()
    }

    /// Adds the bytes that the criteria want after the first `behind` instructions of an execution.
    #[inline]
    fn ask_memory(&mut self, behind: usize) {
        let Some(asked) = &mut self.asked else {
            return;
        };
        while let Some((_, of, reach)) = asked.memory.pop_if(|(before, ..)| *before >= behind) {
            match of {
                Stored::Bytes(range) => self.bytes.add(range, reach),
                Stored::Global(global) => want(&mut self.globals, global, reach),
            }
        }
    }

    /// Whether an execution of a node can affect anything wanted.
    #[inline]
    fn may_matter(
        &self,
        plan: &Plan,
        execution: Execution,
        events: &[Event],
        accesses: &[u64],
    ) -> bool {
        let Some(frame) = self.frames.last() else {
            return true;
        };
        if !execution.ended || !events.is_empty() || plan.more || !self.of_end.is_none() {
            return true;
        }
        if frame
            .returned
            .as_ref()
            .is_some_and(|(_, wanted)| !wanted.is_empty())
        {
            return true;
        }
        if frame.wants_any()
            && plan
                .outputs
                .iter()
                .any(|output| frame.wants(output.variable))
        {
            return true;
        }
        if frame.waits() && (plan.forks || frame.waits_for(&plan.decided).is_some()) {
            return true;
        }
        let globals = &self.globals;
        if plan
            .globals
            .iter()
            .any(|&g| globals.get(g as usize).is_some_and(|reach| reach.is_some()))
        {
            return true;
        }
        if self.bytes.len() == 0 {
            return false;
        }
        plan.stores.iter().any(|&(from_end, memory)| {
            let access = accesses[accesses.len() - 1 - from_end as usize];
            unpacked(memory, access).is_none_or(|range| self.bytes.any(range))
        })
    }

    /// Walks back over a node's blocks, from block `last` on. The pair contains block `last` and
    /// the depth to which the block is wanted.
    fn go_over(
        &mut self,
        plan: &Plan,
        execution: Execution,
        mut events: &[Event],
        accesses: &[u64],
        (last, mut live): (usize, Reach),
    ) {
        let executed = execution.executed as usize;
        let begun = executed + usize::from(execution.trapped);
        let has_moved = plan.has_moved();
        let mut accesses = Accesses::new(accesses);
        let mut counts = self.marks.of(execution.node, plan.insts.len());
        let mut counted = None;
        for position in (0..=last).rev() {
            let block = plan.blocks[position];
            let decides = self.decides(plan, position);
            if decides.is_some() {
                live = live.max(decides);
                self.decided(plan, position, execution, decides);
            }
            live = live.max(self.asks_block(position));
            let first = plan.firsts[position] as usize;
            let behind = (plan.firsts[position + 1] as usize).min(begun);
            for i in (first..behind).rev() {
                if self.asked.is_some() {
                    self.ask_memory(i + 1);
                }
                let reach = if i < executed {
                    self.inst(plan, i, &mut events, &mut accesses)
                } else {
                    self.trap(plan, i)
                };
                if reach.is_some() {
                    live = live.max(reach);
                    self.come_to(execution, Some(i));
                    // An atomic operator has several instructions, but an execution of it counts
                    // only once.
                    let op = Some(plan.ops[i]);
                    if op != counted && self.is_within(i) {
                        counted = op;
                        counts[i] += 1;
                        if let Some(keeping) = &mut self.keeping {
                            keeping.insts.push(i as u32);
                        }
                    }
                }
            }
            let mut reach = std::mem::take(&mut live).next();
            if has_moved {
                reach = reach.max(self.moved[position]);
            }
            if reach.is_some() && self.follows.control {
                let frame = self.top();
                if plan.conditional[position] {
                    frame.depends(block, reach)
                } else {
                    frame.of_call = reach.max(frame.of_call);
                    if let Some(keeping) = &mut self.keeping {
                        keeping.of_call = true;
                    }
                }
            }
        }
        self.marks.put(execution.node, counts);
        self.ask_memory(0);
        // The variables whose values at the node's beginning are wanted.
        let variables = plan.variables as usize;
        for chunk in (0..variables).step_by(CHUNK) {
            let wanted: [Reach; CHUNK] = std::array::from_fn(|i| self.registers[chunk + i]);
            if wanted == [Reach::NONE; CHUNK] {
                continue;
            }
            let frame = self.top();
            for (variable, reach) in (chunk..variables).zip(wanted) {
                if reach.is_some() {
                    frame.want(variable as u32, reach);
                }
            }
        }
        self.top().next = plan.blocks.first().copied();
    }

    /// Returns how far a block's exit must be followed, because the exit decided which code in the
    /// slice was executed.
    #[inline]
    fn decides(&mut self, plan: &Plan, position: usize) -> Reach {
        let frame = self.top();
        if !frame.waits() {
            return Reach::NONE;
        }
        match plan.decisions.get(position) {
            Some(decisions) => frame.decide(decisions),
            None if plan.forks => {
                let (function, block) = (plan.function, plan.blocks[position]);
                let next = frame.next;
                let decisions = next.and_then(|next| self.plans.decisions(function, block, next));
                let decided = decisions.map(|decisions| self.top().decide(&decisions));
                decided.unwrap_or_default()
            }
            None => Reach::NONE,
        }
    }

    /// Records that the end of a block is in the slice, because of the exit that control took.
    fn decided(&mut self, plan: &Plan, position: usize, execution: Execution, reach: Reach) {
        let last = position + 1 == plan.blocks.len();
        match &plan.end {
            End::Call { index, table, .. } if last => {
                self.call_happened(plan, execution, (*index, *table), reach);
            }
            End::Throw(_) | End::Rethrow(_) if last => self.mark_end(execution),
            _ => {
                let insts = plan.firsts[position]..plan.firsts[position + 1];
                let branch = insts.last().map(|inst| inst as usize);
                let branch = branch.filter(|&inst| plan.insts[inst].kind == Kind::Branch);
                if let Some(inst) = branch {
                    self.want_register(plan.result(inst) as Register, plan, reach);
                }
            }
        }
    }
}

/// Marks the item with this number as wanted, at least this far.
fn want(wanted: &mut Vec<Reach>, number: u32, reach: Reach) {
    let number = number as usize;
    if reach.is_none() {
        return;
    }
    if wanted.len() <= number {
        wanted.resize(number + 1, Reach::NONE);
    }
    wanted[number] = reach.max(wanted[number]);
}

/// Removes the item with this number from the wanted set. Returns how far to follow it.
fn take(wanted: &mut [Reach], number: u32) -> Reach {
    let wanted = wanted.get_mut(number as usize);
    wanted.map(std::mem::take).unwrap_or_default()
}
