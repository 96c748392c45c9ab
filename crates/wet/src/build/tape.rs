//! Defines the words that the thread that follows a run passes to the thread that finds the
//! writers.
//!
//! The record of an execution of a node begins with the node's number and the values of the
//! variables that it reads. [`NodeTable`](super::known::NodeTable) determines the record's form.
//! The addresses that the instructions access, the lengths of fills and copies, and the values that
//! instructions read follow, in the order of the instructions. If the node's function has vectors,
//! a value is two words. Between these records are events: calls, returns, exceptions, and actions
//! of the host.

use afterimage_ids::{EntityRef, FuncId, NodeId};
use afterimage_machine::{Caller, GlobalBits, NodeCode, Observer, Range};

/// The kind of a word that begins a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// An execution of a node.
    Node(NodeId),
    /// The node in which the run ends, and the number of its instructions that were executed. This
    /// is the last record.
    Stopped(NodeId, usize),
    Enter,
    /// The host calls a function.
    EnterFromHost(FuncId),
    /// An activation returns its results to a range of variables, given by the first variable and
    /// their number.
    Leave(u32, u32),
    /// An activation ends, and no caller receives results.
    Unwind,
    HostReturned(u32, u32),
    HostCall,
    /// The host writes to a memory. The address and the length follow.
    HostWrite(u32),
    Caught(u32, u32),
    /// A function returns values after it caught an exception. This many two-word values follow.
    Returned(usize),
}

const KIND: u32 = 4;
/// The bit position of the second part of a word.
const SECOND: u32 = 36;

const NODE: u64 = 0;
const STOPPED: u64 = 1;
const ENTER: u64 = 2;
const ENTER_FROM_HOST: u64 = 3;
const LEAVE: u64 = 4;
const UNWIND: u64 = 5;
const HOST_RETURNED: u64 = 6;
const HOST_CALL: u64 = 7;
const HOST_WRITE: u64 = 8;
const CAUGHT: u64 = 9;
const RETURNED: u64 = 10;

impl Word {
    /// Decodes a word that begins a record.
    #[inline(always)]
    pub(super) fn of(word: u64) -> Self {
        let first = (word >> KIND) as u32;
        // Registers, a node's instructions, and results number fewer than 2²⁸ each.
        let second = (word >> SECOND) as u32;
        match word & ((1 << KIND) - 1) {
            NODE => Self::Node(NodeId::from_u32(first)),
            STOPPED => Self::Stopped(NodeId::from_u32(first), second as usize),
            ENTER => Self::Enter,
            ENTER_FROM_HOST => Self::EnterFromHost(FuncId::from_u32(first)),
            LEAVE => Self::Leave(first, second),
            UNWIND => Self::Unwind,
            HOST_RETURNED => Self::HostReturned(first, second),
            HOST_CALL => Self::HostCall,
            HOST_WRITE => Self::HostWrite(first),
            CAUGHT => Self::Caught(first, second),
            _ => Self::Returned(first as usize),
        }
    }
}

#[inline(always)]
fn word(kind: u64, first: u32, second: u32) -> u64 {
    kind | u64::from(first) << KIND | u64::from(second) << SECOND
}

/// Observes a machine, and records its actions.
#[derive(Default)]
pub(super) struct Tape {
    words: Vec<u64>,
    /// The position of the last node's record.
    last: usize,
    /// Whether the last node's function has vectors.
    wide: bool,
    /// Whether an exception has been caught since that node.
    caught: bool,
}

impl Tape {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the words written, and continues with `empty`.
    pub(super) fn take(&mut self, mut empty: Vec<u64>) -> Vec<u64> {
        empty.clear();
        std::mem::replace(&mut self.words, empty)
    }

    /// Removes the record of the last node, which did not finish.
    pub(super) fn forget(&mut self) {
        self.words.truncate(self.last);
    }

    #[inline(always)]
    fn value(&mut self, (low, high): GlobalBits) {
        self.words.push(low);
        if self.wide {
            self.words.push(high);
        }
    }
}

impl Observer for Tape {
    const REGISTERS: bool = false;

    #[inline(always)]
    fn node(&mut self, node: NodeId, code: &NodeCode) {
        self.last = self.words.len();
        self.wide = code.wide;
        self.caught = false;
        self.words.push(word(NODE, node.as_u32(), 0));
    }

    #[inline(always)]
    fn variables(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        if code.wide {
            for &variable in &code.inputs {
                let variable = variable as usize;
                self.words
                    .extend_from_slice(&[low[variable], high[variable]]);
            }
        } else {
            let values = code.inputs.iter().map(|&variable| low[variable as usize]);
            self.words.extend(values);
        }
    }

    #[inline(always)]
    fn read(&mut self, _: usize, range: Range) {
        self.words.push(range.address);
    }

    #[inline(always)]
    fn loaded(&mut self, _: usize, value: GlobalBits) {
        self.value(value);
    }

    #[inline(always)]
    fn write(&mut self, _: usize, range: Range) {
        self.words.push(range.address);
    }

    fn fill(&mut self, _: usize, range: Range) {
        self.words.extend_from_slice(&[range.address, range.length]);
    }

    fn copy(&mut self, _: usize, from: Range, to: Range) {
        let copied = [from.address, to.address, to.length];
        self.words.extend_from_slice(&copied);
    }

    #[inline(always)]
    fn gave(&mut self, _: usize, value: GlobalBits) {
        self.value(value);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        if let Some(begun) = self.words.get_mut(self.last) {
            *begun |= word(STOPPED, 0, executed as u32);
        }
    }

    #[inline(always)]
    fn enter(&mut self, function: FuncId, by: Caller) {
        self.words.push(match by {
            Caller::Host => word(ENTER_FROM_HOST, function.index() as u32, 0),
            Caller::Call | Caller::TailCall => ENTER,
        });
    }

    #[inline(always)]
    fn returned(&mut self, values: &[GlobalBits]) {
        // No instruction computes these values.
        if std::mem::take(&mut self.caught) {
            self.words.push(word(RETURNED, values.len() as u32, 0));
            let halves = values.iter().flat_map(|&(low, high)| [low, high]);
            self.words.extend(halves);
        }
    }

    #[inline(always)]
    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.words.push(match results {
            Some((first, count)) => word(LEAVE, first, count),
            None => UNWIND,
        });
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        self.words.push(word(HOST_RETURNED, first, count));
    }

    fn host_call(&mut self) {
        self.words.push(HOST_CALL);
    }

    fn host_write(&mut self, range: Range) {
        let written = [
            word(HOST_WRITE, range.memory, 0),
            range.address,
            range.length,
        ];
        self.words.extend_from_slice(&written);
    }

    fn caught(&mut self, first: u32, count: u32) {
        self.caught = true;
        self.words.push(word(CAUGHT, first, count));
    }
}
