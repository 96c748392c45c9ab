//! Converts path traces and the dynamic call graph back to the events of the run.

use super::event::Event;
use super::path_trace::Blocks;
use super::walk::{CallStep, Walk};
use super::wpp::Wpp;

/// The events of a run, in order. Memory is proportional to the depth of the calls.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    wpp: &'a Wpp,
    walk: Walk<'a>,
    stack: Vec<Activation<'a>>,
    /// The call or return after the current blocks.
    step: Option<CallStep>,
    /// The number of calls that are yet to return. Calls that never end come last.
    returns: u64,
}

/// The remaining blocks of an activation, and the number of its blocks executed so far.
#[derive(Clone, Debug)]
struct Activation<'a> {
    blocks: Option<Blocks<'a>>,
    executed: u64,
}

impl<'a> Events<'a> {
    pub(super) fn new(wpp: &'a Wpp) -> Self {
        let calls: u64 = wpp.calls.occurrences().iter().sum();
        let mut walk = wpp.calls.walk();
        let step = walk.next();
        Self {
            wpp,
            walk,
            stack: Vec::new(),
            step,
            returns: calls.saturating_sub(wpp.calls.open()),
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let step = self.step?;
            if let Some(own) = self.stack.last_mut() {
                let due = match step {
                    CallStep::Call { position, .. } => own.executed < position,
                    CallStep::End => true,
                };
                if due && let Some(block) = own.blocks.as_mut().and_then(Iterator::next) {
                    own.executed += 1;
                    return Some(Event::Block(block));
                }
            }
            self.step = self.walk.next();
            match step {
                CallStep::Call { call, .. } => {
                    let call = self.wpp.calls.call(call);
                    self.stack.push(Activation {
                        blocks: self.wpp.path(call).map(|p| p.trace.blocks()),
                        executed: 0,
                    });
                    return Some(Event::Enter(call.function));
                }
                CallStep::End => {
                    self.stack.pop();
                    if let Some(returns) = self.returns.checked_sub(1) {
                        self.returns = returns;
                        return Some(Event::Leave);
                    }
                }
            }
        }
    }
}
