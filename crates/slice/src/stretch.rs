//! Records a stretch of a run, for walking over it.

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{Caller, NodeCode, Observer, Range};

/// An execution of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub node: NodeId,
    /// The time of the node's first block.
    pub start: u64,
    /// The number of executed instructions. Only in the run's last node may this be less than all.
    pub executed: u32,
    /// Whether the execution reached the node's end. The run's last node may not reach it.
    pub ended: bool,
    /// Whether the instruction after the executed instructions trapped.
    pub trapped: bool,
    /// The end of the execution's addresses in the stretch.
    pub addresses: usize,
    /// The end of the execution's events in the stretch.
    pub events: usize,
}

/// An event that the node's code does not determine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An instruction writes many bytes.
    Write { inst: u32, range: Range },
    /// An instruction copies bytes.
    Copy { inst: u32, from: Range, to: Range },
    /// An activation begins.
    Enter { function: FuncId, by: Caller },
    /// An activation ends, and its results go to these variables of the surrounding activation.
    Leave(Option<(u32, u32)>),
    /// The guest calls the host.
    HostCall,
    /// The host reads bytes.
    HostRead(Range),
    /// The host writes bytes.
    HostWrite(Range),
    /// The host returns. Its results go to these variables.
    HostReturned(u32, u32),
    /// An exception is caught. Its values go to these variables.
    Caught(u32, u32),
}

/// A stretch of a run, with the executed nodes and the addresses that they read and wrote. A
/// stretch begins and ends between nodes.
///
/// Observes the [`Machine`](afterimage_machine::Machine). Call [`at`](Self::at) with each node's
/// start before the node is executed. Takes 40 bytes for each node and 8 for each load or store,
/// and more for each event.
#[derive(Debug, Default)]
pub struct Stretch {
    pub(crate) executions: Vec<Execution>,
    /// The addresses of loads and stores, in order, packed.
    pub(crate) addresses: Vec<u64>,
    pub(crate) events: Vec<Event>,
    /// The number of events before the first node.
    pub(crate) before: usize,
    start: u64,
}

/// The minimum length in bytes of an access that is stored as an event.
const LONG: u64 = 255;

/// Packs an address, with the length in its upper byte. No memory is so large that addresses need
/// this byte.
#[inline(always)]
fn packed(range: Range) -> u64 {
    range.address | range.length.min(LONG) << 56
}

/// Unpacks a range. Returns `None` if an event contains the range.
#[inline(always)]
pub(crate) fn unpacked(memory: u16, packed: u64) -> Option<Range> {
    let length = packed >> 56;
    (length < LONG).then_some(Range {
        memory: memory.into(),
        address: packed & (u64::MAX >> 8),
        length,
    })
}

impl Stretch {
    /// Records that the next node begins at this time.
    #[inline]
    pub fn at(&mut self, start: u64) {
        self.start = start;
    }

    /// Removes all contents but keeps the allocations.
    pub fn clear(&mut self) {
        self.executions.clear();
        self.addresses.clear();
        self.events.clear();
        self.before = 0;
    }

    /// Returns the time at which the stretch's first node began.
    pub fn first(&self) -> Option<u64> {
        self.executions.first().map(|execution| execution.start)
    }

    /// Returns the number of node executions in the stretch.
    pub fn len(&self) -> usize {
        self.executions.len()
    }

    /// Whether the stretch is empty.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }

    #[inline]
    fn event(&mut self, event: Event) {
        self.events.push(event);
        match self.executions.last_mut() {
            Some(last) => last.events = self.events.len(),
            None => self.before = self.events.len(),
        }
    }
}

impl Observer for Stretch {
    const REGISTERS: bool = false;

    #[inline(always)]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.executions.push(Execution {
            node,
            start: self.start,
            executed: code.insts.len() as u32,
            ended: true,
            trapped: false,
            addresses: self.addresses.len(),
            events: self.events.len(),
        });
    }

    #[inline(always)]
    fn read(&mut self, _: usize, range: Range) {
        self.addresses.push(packed(range));
    }

    #[inline(always)]
    fn write(&mut self, inst: usize, range: Range) {
        self.addresses.push(packed(range));
        if range.length >= LONG {
            let inst = inst as u32;
            self.event(Event::Write { inst, range });
        }
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        let inst = inst as u32;
        self.event(Event::Copy { inst, from, to });
    }

    #[inline(always)]
    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        let addresses = self.addresses.len();
        if let Some(last) = self.executions.last_mut() {
            last.addresses = addresses;
        }
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        let addresses = self.addresses.len();
        if let Some(last) = self.executions.last_mut() {
            last.addresses = addresses;
            last.executed = executed as u32;
            last.ended = false;
        }
    }

    fn trapped(&mut self, _: usize) {
        if let Some(last) = self.executions.last_mut() {
            last.trapped = true;
        }
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        self.event(Event::Enter { function, by });
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.event(Event::Leave(results));
    }

    fn host_call(&mut self) {
        self.event(Event::HostCall);
    }

    fn host_read(&mut self, range: Range) {
        self.event(Event::HostRead(range));
    }

    fn host_write(&mut self, range: Range) {
        self.event(Event::HostWrite(range));
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.event(Event::HostReturned(first, count));
    }

    fn caught(&mut self, first: u32, count: u32) {
        self.event(Event::Caught(first, count));
    }
}
