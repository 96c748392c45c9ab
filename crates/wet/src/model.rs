//! What of a node has to be known of each of its executions.
//!
//! A node's instructions compute their results from its *inputs*: the variables that it reads before it writes them, and what it reads from
//! memory and globals. All else follows. What it writes to memory and globals is where others' inputs come from.

use afterimage_machine::{Code, NodeCode};

/// No ordinal.
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
    /// Per instruction: which of the reads or the writes it is.
    ordinals: Box<[u32]>,
}

/// An input that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The instruction's position.
    pub inst: u32,
    /// From where.
    pub from: ReadFrom,
}

/// From where an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// A memory.
    Memory,
    /// A global.
    Global,
    /// A table, a size, the host: the value itself is kept.
    Elsewhere,
}

/// What an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The instruction's position.
    pub inst: u32,
    /// Where to.
    pub to: WriteTo,
}

/// Where an instruction writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTo {
    /// A memory: so many bytes of one value.
    Memory(u8),
    /// A memory: any number of bytes, all the same or from a data segment.
    Many,
    /// A memory, from a memory.
    Copy,
    /// A global.
    Global,
}

/// What may happen to an execution of a node besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It ends with a call of the host. Told is which one, counted from 1.
    HostCall,
    /// It throws an exception that is caught. Told is how many activations that ended, and, as if it was the upper half of a vector, the first
    /// variable that gets what is caught, in its upper half, and how many values the exception carries.
    Caught,
    /// The run ends inside of it. Told is how many of its instructions were executed.
    Stopped,
    /// What it throws is caught by a handler that is its function's own label, so that the function returns. Told are the values that it
    /// returns, one after the other.
    Returned,
}

impl Event {
    /// How many there are.
    pub(crate) const COUNT: u32 = 4;
}

impl NodeModel {
    /// The model of a node. O(instructions).
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

    /// How many inputs there are: variables first, then reads.
    pub fn inputs(&self) -> usize {
        self.variables.len() + self.reads.len()
    }

    /// What is told besides of the executions that it happens to, in columns behind those of the inputs.
    pub(crate) fn of_event(&self, event: Event) -> usize {
        self.inputs() + event as usize
    }

    /// Which input a variable is.
    pub fn of_variable(&self, variable: u32) -> Option<usize> {
        self.variables.binary_search(&variable).ok()
    }

    /// Which input an instruction reads, if it is one of the reads.
    pub fn of_read(&self, inst: usize) -> usize {
        self.variables.len() + self.ordinals[inst] as usize
    }

    /// Which of the reads or writes an instruction is.
    pub fn ordinal(&self, inst: usize) -> Option<usize> {
        let ordinal = *self.ordinals.get(inst)?;
        (ordinal != NONE).then_some(ordinal as usize)
    }
}

/// From where an instruction reads, if it does.
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

/// Where an instruction writes to, if it does.
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
