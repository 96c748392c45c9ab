//! Tracks the times at which open activations began, and their arguments.

use afterimage_ids::FuncId;
use afterimage_machine::{Caller, GlobalBits, Observer, Opened, Restored};
use afterimage_wpp::Visit;

/// An open activation, with its times and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The time at which the activation began, and the time of its pending call.
    pub times: Opened,
    /// The arguments of the activation, if it began while the run was followed.
    pub arguments: Option<Box<[GlobalBits]>>,
}

/// Tracks the open activations while a run is followed. Call [`next`](Self::next) for each node
/// before its execution.
#[derive(Clone, Debug, Default)]
pub struct OpenActivations {
    /// The open activations, the outermost first.
    pub open: Vec<Open>,
    /// The arguments of the latest call.
    pub given: Vec<GlobalBits>,
    /// The time of the current node's first block.
    first: u64,
    /// The time of the current node's last block.
    last: u64,
}

impl OpenActivations {
    /// Creates a tracker at the start of a run, or at a snapshot. Returns `None` if the snapshot
    /// lacks the times at which its activations began.
    pub fn at(restored: Restored) -> Option<Self> {
        let known = restored.opened?.into_iter().map(|times| Open {
            times,
            arguments: None,
        });
        Some(Self {
            open: known.collect(),
            given: restored.arguments,
            ..Self::default()
        })
    }

    /// Records that a node is about to be executed.
    pub fn next(&mut self, visit: Visit) {
        (self.first, self.last) = (visit.start, visit.last());
    }

    /// Records that an activation begins with the node.
    pub fn begin(&mut self) {
        self.open.push(Open {
            times: Opened {
                entered: self.first,
                called: self.first,
            },
            arguments: Some(self.given.as_slice().into()),
        });
    }

    /// Returns the times of all open activations, the outermost first.
    pub fn times(&self) -> Vec<Opened> {
        self.open.iter().map(|open| open.times).collect()
    }
}

impl Observer for OpenActivations {
    const REGISTERS: bool = false;

    fn called(&mut self, _: FuncId, arguments: &[GlobalBits]) {
        self.given.clear();
        self.given.extend_from_slice(arguments);
        if let Some(caller) = self.open.last_mut() {
            caller.times.called = self.last;
        }
    }

    fn enter(&mut self, _: FuncId, _: Caller) {
        self.begin();
    }

    fn leave(&mut self, _: Option<(u32, u32)>) {
        self.open.pop();
    }
}
