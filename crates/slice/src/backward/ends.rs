//! Processes the ends of nodes and the events between them, which are calls, returns, exceptions,
//! and actions of the host.

use afterimage_ids::{BlockId, FuncId};
use afterimage_machine::{Caller, Register, Taker};

use super::{Backward, want};
use crate::frame::{Frame, Wanted};
use crate::plan::{End, Plan};
use crate::reach::Reach;
use crate::stretch::{Event, Execution};

/// The wanted parts of the end of the next node: a call, a return or a throw.
#[derive(Debug, Default)]
pub(super) struct OfEnd {
    /// The wanted arguments of the node's call.
    pub(super) arguments: Wanted,
    /// The depth to which to follow the call, because an execution in the callee depends on it.
    pub(super) called: Reach,
    /// The depth to which to follow the call to the host, because the host provided wanted data.
    pub(super) host: Reach,
    /// The wanted values of the node's exception.
    pub(super) thrown: Wanted,
    /// The depth to which to follow all values of the node's exception.
    pub(super) all_thrown: Reach,
    /// The depth to which the criterion follows the throw, and therefore all of its operands.
    pub(super) asked: Reach,
    /// The depth to which to follow the fact that the exception was thrown.
    pub(super) threw: Reach,
}

impl Backward<'_> {
    /// Processes the events after a node's instructions, from last to first. Returns the number of
    /// remaining events, which belong to instructions.
    pub(super) fn events(&mut self, events: &[Event]) -> usize {
        let mut left = events.len();
        while let Some(&event) = left.checked_sub(1).and_then(|last| events.get(last)) {
            match event {
                Event::Write { .. } | Event::Copy { .. } => break,
                Event::Enter { function, by } => self.enter(function, by),
                Event::Leave(results) => self.leave(results),
                Event::Caught(first, count) => self.caught(first, count),
                Event::HostCall
                | Event::HostRead(_)
                | Event::HostWrite(_)
                | Event::HostReturned(..) => {
                    let call = events[..left].iter();
                    let begins = call
                        .rev()
                        .position(|event| matches!(event, Event::HostCall));
                    let count = begins.map_or(left, |i| i + 1);
                    self.host(&events[left - count..left]);
                    left -= count - 1;
                }
            }
            left -= 1;
        }
        left
    }

    /// Processes the beginning of the innermost activation.
    fn enter(&mut self, function: FuncId, by: Caller) {
        let mut frame = self.frames.pop().unwrap_or_default();
        if by == Caller::Host {
            return;
        }
        let ty = self.plans.program().function(function).map(|f| f.ty);
        let ty = ty.and_then(|ty| self.plans.program().types.get(ty));
        let parameters = ty.map_or(0, |ty| ty.params.len() as u32);
        self.of_end.arguments = taken(&mut frame, 0, parameters);
        if self.follows.control {
            self.of_end.called = frame.needs_call();
        }
    }

    pub(super) fn top(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Returns the wanted results of a call that were stored in these variables of the innermost
    /// activation. If no code of the activation follows the call, the activation returned the
    /// results.
    fn wanted_results(&mut self, first: u32, count: u32) -> Wanted {
        let frame = self.top();
        if let Some((results, wanted)) = frame.returned.take() {
            let top = first + count;
            for (i, reach) in wanted {
                frame.want(top.saturating_sub(results) + i, reach);
            }
        }
        taken(frame, first, count)
    }

    /// Processes the end of an activation.
    fn leave(&mut self, results: Option<(u32, u32)>) {
        let returned = results.map(|(first, count)| (count, self.wanted_results(first, count)));
        self.frames.push(Frame::that_returned(returned));
    }

    /// Processes an exception that the innermost activation caught.
    fn caught(&mut self, first: u32, count: u32) {
        let frame = self.top();
        if let Some((results, wanted)) = frame.returned.take() {
            // The handler is the label of the function itself.
            for (i, reach) in wanted.into_iter().filter(|(i, _)| *i < results) {
                frame.want(first + i, reach);
            }
        }
        let thrown = taken(frame, first, count);
        let all_thrown = frame.take(first + count);
        let handler = frame.next;
        let waits = frame.waits();
        self.of_end.thrown = thrown;
        self.of_end.all_thrown = all_thrown;
        self.of_end.threw = match handler {
            Some(handler) if waits => self.handles(handler),
            _ => Reach::NONE,
        };
    }

    /// Returns how far to follow the decision to execute a handler, whatever raised the exception.
    fn handles(&mut self, handler: BlockId) -> Reach {
        let Some(function) = self.top().function else {
            return Reach::NONE;
        };
        let Some(decided) = self.plans.handled(function, handler) else {
            return Reach::NONE;
        };
        self.top().waits_for(&decided)
    }

    /// Processes a call to the host.
    fn host(&mut self, events: &[Event]) {
        let asked = self.asked.as_ref().map(|asked| asked.end);
        let mut wanted = asked.unwrap_or_default();
        for event in events.iter().rev() {
            let of_event = match *event {
                Event::HostReturned(first, count) => {
                    let given = self.wanted_results(first, count).into_iter();
                    given.map(|(_, reach)| reach).max().unwrap_or_default()
                }
                Event::HostWrite(range) => self.bytes.take(range),
                _ => Reach::NONE,
            };
            wanted = wanted.max(of_event);
        }
        for event in events {
            if let Event::HostRead(range) = *event
                && self.follows.data
            {
                self.bytes.add(range, wanted.next());
            }
        }
        self.of_end.host = wanted;
    }

    /// Records that a node's end is in the slice.
    pub(super) fn mark_end(&mut self, execution: Execution) {
        if !std::mem::replace(&mut self.ended, true) {
            let plan = self.plans.get(execution.node);
            if plan.is_some_and(|plan| self.is_within(plan.insts.len())) {
                self.marks.end(execution);
            }
            self.come_to(execution, None);
        }
    }

    /// Marks values that are passed, returned or thrown as wanted.
    pub(super) fn want_given(
        &mut self,
        number: u32,
        register: Register,
        plan: &Plan,
        reach: Reach,
    ) {
        self.want_register(register, plan, reach);
        self.want_moved(Taker::Given(number), plan, reach);
    }

    /// Marks everything on which a node's end depends as wanted. Returns how far the node's last
    /// block must be followed as a result.
    pub(super) fn end(&mut self, plan: &Plan, execution: Execution) -> Reach {
        let of_end = std::mem::take(&mut self.of_end);
        let returned = self.top().returned.take();
        let data = self.follows.data;
        match &plan.end {
            End::Next => Reach::NONE,
            End::Call {
                arguments,
                index,
                table,
            } => {
                if data {
                    for &(i, reach) in &of_end.arguments {
                        if let Some(&argument) = arguments.get(i as usize) {
                            self.want_given(i, argument, plan, reach);
                        }
                    }
                    for (i, &argument) in (0..).zip(arguments) {
                        self.want_given(i, argument, plan, of_end.host.next());
                    }
                }
                let happened = of_end.called.max(of_end.host);
                if happened.is_some() {
                    self.call_happened(plan, execution, (*index, *table), happened);
                }
                happened
            }
            End::Return(values) => {
                for (i, reach) in returned.into_iter().flat_map(|(_, wanted)| wanted) {
                    if let Some(&value) = values.get(i as usize) {
                        self.want_given(i, value, plan, reach);
                    }
                }
                Reach::NONE
            }
            End::Throw(values) => {
                if data {
                    for &(i, reach) in &of_end.thrown {
                        if let Some(&value) = values.get(i as usize) {
                            self.want_given(i, value, plan, reach);
                        }
                    }
                    let all = of_end.all_thrown.max(of_end.asked.next());
                    for (i, &value) in (0..).zip(values) {
                        self.want_given(i, value, plan, all);
                    }
                }
                if of_end.threw.is_some() {
                    self.mark_end(execution);
                }
                of_end.threw
            }
            End::Rethrow(exception) => {
                if data {
                    // A rethrow takes the reference to the exception. The values come from the
                    // earlier throw.
                    let thrown = of_end.thrown.iter().map(|(_, reach)| *reach);
                    let carried = thrown.fold(of_end.all_thrown, Reach::max);
                    let reach = carried.max(of_end.asked.max(of_end.threw).next());
                    self.want_given(0, *exception, plan, reach);
                }
                if of_end.threw.is_some() {
                    self.mark_end(execution);
                }
                of_end.threw
            }
        }
    }

    /// Records that the call at a node's end is in the slice.
    pub(super) fn call_happened(
        &mut self,
        plan: &Plan,
        execution: Execution,
        (index, table): (Option<Register>, Option<u32>),
        reach: Reach,
    ) {
        self.mark_end(execution);
        if self.follows.data {
            if let Some(index) = index {
                self.want_register(index, plan, reach.next());
                self.want_moved(Taker::Index, plan, reach.next());
            }
            if let Some(table) = table {
                want(&mut self.tables, table, reach.next());
                if let Some(keeping) = &mut self.keeping {
                    keeping.table = true;
                }
            }
        }
    }
}

impl OfEnd {
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        let throws = self.all_thrown.max(self.asked).max(self.threw);
        self.called.max(self.host).max(throws).is_none()
            && self.arguments.is_empty()
            && self.thrown.is_empty()
    }
}

/// Removes the wanted variables in a range, and returns them by position.
fn taken(frame: &mut Frame, first: u32, count: u32) -> Wanted {
    let of = |i| (i, frame.take(first + i));
    let taken = (0..count).map(of);
    taken.filter(|(_, reach)| reach.is_some()).collect()
}
