//! Models a node by describing the data of each of its executions.
//!
//! A node's instructions compute their results from its *inputs*: the variables that it reads
//! before writing them, and its reads of memory, globals, tables and sizes. Everything else follows
//! from the inputs. The node's writes to memory and globals are the origins of other nodes' inputs.

use afterimage_machine::{Code, NodeCode};

/// Marks an instruction without an ordinal.
const NONE: u32 = u32::MAX;

/// The inputs and the writes of a node.
#[derive(Clone, Debug)]
pub struct NodeModel {
    /// The variables that are inputs, ascending.
    pub variables: Box<[u32]>,
    /// The other inputs, in the order of their instructions.
    pub reads: Box<[Read]>,
    /// The writes, in the order of their instructions.
    pub writes: Box<[Write]>,
    /// Each instruction's number among the reads or the writes.
    ordinals: Box<[u32]>,
}

/// An input read by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The instruction's position.
    pub inst: u32,
    /// The source of the read.
    pub from: ReadFrom,
}

/// The source of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// A memory, at the instruction's address.
    Memory,
    /// A global of the module.
    Global,
    /// A table, a size or the host. The value itself is stored.
    Elsewhere,
}

/// A write by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The instruction's position.
    pub inst: u32,
    /// The destination of the write.
    pub to: WriteTo,
}

/// The destination of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTo {
    /// A memory, with this number of bytes of one value.
    Memory(u8),
    /// A memory, with any number of bytes, which are all equal or come from a data segment.
    Many,
    /// A memory, with bytes copied from a memory.
    Copy,
    /// A global of the module.
    Global,
}

/// An additional event of a node's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The execution ends with a call to the host. Stores the number of the call, from 1.
    HostCall,
    /// The execution throws an exception that is caught. Stores the number of activations that
    /// ended. The value's upper half stores two 32-bit numbers. The upper number is the first
    /// variable for the caught values, and the lower number is the number of values.
    Caught,
    /// The run ends inside the execution. Stores the number of its instructions that were executed.
    Stopped,
    /// The execution throws an exception, and the function's own label catches it, so the function
    /// returns. Stores the returned values in sequence.
    Returned,
}

impl Event {
    /// The number of kinds of events.
    pub(crate) const COUNT: u32 = 4;
}

impl NodeModel {
    /// Builds the model of a node. Time: O(instructions).
    pub fn new(code: &NodeCode) -> Self {
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        let mut ordinals = vec![NONE; code.insts.len()];
        for ((position, inst), ordinal) in (0..).zip(&code.insts).zip(&mut ordinals) {
            if let Some(from) = read_from(inst.code) {
                *ordinal = reads.len() as u32;
                let inst = position;
                reads.push(Read { inst, from });
            } else if let Some(to) = write_to(inst.code) {
                *ordinal = writes.len() as u32;
                let inst = position;
                writes.push(Write { inst, to });
            }
        }
        Self {
            variables: code.inputs.clone(),
            reads: reads.into(),
            writes: writes.into(),
            ordinals: ordinals.into(),
        }
    }

    /// Returns the number of inputs. Variables come first, and then reads.
    pub fn inputs(&self) -> usize {
        self.variables.len() + self.reads.len()
    }

    /// Returns the column of an event, which has data for the executions with the event. The
    /// columns of events follow the columns of the inputs.
    pub(crate) fn of_event(&self, event: Event) -> usize {
        self.inputs() + event as usize
    }

    /// Returns the input for a variable.
    pub fn of_variable(&self, variable: u32) -> Option<usize> {
        self.variables.binary_search(&variable).ok()
    }

    /// Returns the input that an instruction reads. The instruction must be one of the reads.
    pub fn of_read(&self, inst: usize) -> usize {
        self.variables.len() + self.ordinals[inst] as usize
    }

    /// Returns the number of an instruction among the reads or writes.
    pub fn ordinal(&self, inst: usize) -> Option<usize> {
        let ordinal = *self.ordinals.get(inst)?;
        (ordinal != NONE).then_some(ordinal as usize)
    }
}

/// Returns the source from which an instruction reads, if it reads.
pub fn read_from(code: Code) -> Option<ReadFrom> {
    Some(match code {
        Code::Load(_) | Code::LoadVector(_) => ReadFrom::Memory,
        Code::GlobalGet => ReadFrom::Global,
        Code::MemorySize
        | Code::MemoryGrow
        | Code::TableGet
        | Code::TableSize
        | Code::TableGrow => ReadFrom::Elsewhere,
        _ => return None,
    })
}

/// Returns the destination to which an instruction writes, if it writes.
pub fn write_to(code: Code) -> Option<WriteTo> {
    Some(match code {
        Code::Store(bytes) => WriteTo::Memory(bytes),
        Code::StoreVector(store) => WriteTo::Memory(store.bytes() as u8),
        Code::MemoryFill | Code::MemoryInit => WriteTo::Many,
        Code::MemoryCopy => WriteTo::Copy,
        Code::GlobalSet => WriteTo::Global,
        _ => return None,
    })
}
