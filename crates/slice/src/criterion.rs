//! Defines the starting points of slices.

use afterimage_machine::Range;

use crate::reach::Reach;
use crate::stretch::Stretch;

/// The dependences to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    /// Whether to follow control dependences.
    pub control: bool,
    /// Whether to follow the address operands of loads, stores and other memory accesses. Without
    /// addresses and control, slices are thin (Sridharan, Fink and Bodík 2007).
    pub addresses: bool,
    /// Whether to follow data dependences.
    pub data: bool,
}

impl Follows {
    /// All dependences.
    pub const ALL: Self = Self {
        control: true,
        addresses: true,
        data: true,
    };
    /// The flow of values and the computation of addresses.
    pub const DATA: Self = Self {
        control: false,
        ..Self::ALL
    };
    /// Only the flow of values.
    pub const THIN: Self = Self {
        addresses: false,
        ..Self::DATA
    };
    /// Only the decisions to execute statements.
    pub const CONTROL: Self = Self {
        data: false,
        ..Self::ALL
    };
}

/// A starting point of a slice, which consists of parts of one execution of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// The time of the execution's first block.
    pub start: u64,
    /// The parts from which to slice.
    pub wants: Vec<Want>,
    /// The depth to which to follow the origins of these parts.
    pub reach: Reach,
}

/// A part of a node's execution from which to slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The execution of an instruction.
    Inst(usize),
    /// The execution of the node's end, which is a return, a throw, or a call. A call includes its
    /// arguments and the host's reads during the call.
    End,
    /// The value of a variable at the node's beginning.
    Variable(u32),
    /// Bytes of a memory, after this many of the node's instructions.
    Bytes(Range, usize),
    /// A global, after this many of the node's instructions.
    Global(u32, usize),
    /// The execution of a block, given by its position in the node.
    Block(usize),
}

/// The parts of one execution from which to slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionQuery {
    pub insts: Vec<(usize, Reach)>,
    pub end: Reach,
    pub variables: Vec<(u32, Reach)>,
    /// The wanted bytes and globals, each with the number of instructions executed before,
    /// ascending.
    pub memory: Vec<(usize, Stored, Reach)>,
    pub blocks: Vec<(usize, Reach)>,
}

/// Bytes of a memory, or a global.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    Bytes(Range),
    Global(u32),
}

impl ExecutionQuery {
    /// Whether the query is empty.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.end.is_none()
            && self.insts.is_empty()
            && self.variables.is_empty()
            && self.memory.is_empty()
            && self.blocks.is_empty()
    }
}

impl ExecutionQuery {
    /// Adds the parts that a criterion wants.
    pub fn add(&mut self, criterion: &Criterion) {
        let reach = criterion.reach;
        for want in &criterion.wants {
            match *want {
                Want::Inst(inst) => self.insts.push((inst, reach)),
                Want::End => self.end = reach.max(self.end),
                Want::Variable(variable) => self.variables.push((variable, reach)),
                Want::Bytes(range, behind) => {
                    self.memory.push((behind, Stored::Bytes(range), reach));
                }
                Want::Global(global, behind) => {
                    self.memory.push((behind, Stored::Global(global), reach));
                }
                Want::Block(block) => self.blocks.push((block, reach)),
            }
        }
        self.memory.sort_by_key(|(behind, ..)| *behind);
    }

    /// Returns how far to follow an instruction, if it is a criterion.
    #[inline]
    pub fn inst(&self, inst: usize) -> Reach {
        farthest(&self.insts, inst)
    }

    /// Returns how far to follow the execution of a block, if it is a criterion.
    #[inline]
    pub fn block(&self, block: usize) -> Reach {
        farthest(&self.blocks, block)
    }
}

fn farthest(asked: &[(usize, Reach)], of: usize) -> Reach {
    let own = asked.iter().filter(|(one, _)| *one == of);
    own.map(|(_, reach)| *reach).max().unwrap_or_default()
}

/// The criteria that have not been reached yet.
#[derive(Debug)]
pub(crate) struct Criteria {
    /// The criteria by time, ascending.
    left: Vec<Criterion>,
    begun: bool,
}

impl Criteria {
    pub fn new(mut criteria: Vec<Criterion>) -> Self {
        criteria.sort_by_key(|criterion| criterion.start);
        Self {
            left: criteria,
            begun: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the number of executions of a stretch to process, up to the last criterion. Returns
    /// `None` if that criterion is not in the stretch.
    pub fn begin(&mut self, stretch: &Stretch) -> Option<usize> {
        let all = stretch.executions.len();
        if self.begun {
            return Some(all);
        }
        let start = self.left.last()?.start;
        let found = stretch.executions.binary_search_by_key(&start, |e| e.start);
        self.begun = found.is_ok();
        found.ok().map(|found| found + 1)
    }

    /// Returns the query about the execution that began at this time. Executions must come in order
    /// of decreasing time.
    #[inline]
    pub fn of(&mut self, start: u64) -> Option<Box<ExecutionQuery>> {
        if self.left.last()?.start != start {
            return None;
        }
        let mut asked = Box::<ExecutionQuery>::default();
        while let Some(criterion) = self.left.last()
            && criterion.start == start
        {
            asked.add(criterion);
            self.left.pop();
        }
        Some(asked)
    }
}
