//! What a slice begins with.

use afterimage_machine::Range;

use crate::reach::Reach;
use crate::stretch::Stretch;

/// Which dependences are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    /// Control dependences.
    pub control: bool,
    /// Of loads, stores and what else accesses memory: the operands that tell where. Without them and control, slices are thin (Sridharan, Fink and
    /// Bodík 2007).
    pub addresses: bool,
    /// Data dependences.
    pub data: bool,
}

impl Follows {
    /// All dependences.
    pub const ALL: Self = Self {
        control: true,
        addresses: true,
        data: true,
    };
    /// What values went through, and how addresses were computed.
    pub const DATA: Self = Self {
        control: false,
        ..Self::ALL
    };
    /// What values went through.
    pub const THIN: Self = Self {
        addresses: false,
        ..Self::DATA
    };
    /// What let statements run.
    pub const CONTROL: Self = Self {
        data: false,
        ..Self::ALL
    };
}

/// What a slice begins with: things inside one execution of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// The time of the execution's first block.
    pub start: u64,
    /// What is asked about.
    pub wants: Vec<Want>,
    /// How far what makes it is to be followed.
    pub reach: Reach,
}

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The execution of an instruction.
    Inst(usize),
    /// The execution of what the node ends with: a call, with all of its arguments and what the host read in it; a return; a throw.
    End,
    /// The value of a variable, as it is at the node's beginning.
    Variable(u32),
    /// Bytes of a memory, when so many of the node's instructions were executed.
    Bytes(Range, usize),
    /// A global, when so many of the node's instructions were executed.
    Global(u32, usize),
    /// That a block was executed: its position in the node.
    Block(usize),
}

/// What is asked of one execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionQuery {
    pub insts: Vec<(usize, Reach)>,
    pub end: Reach,
    pub variables: Vec<(u32, Reach)>,
    /// With how many instructions were executed before, ascending.
    pub memory: Vec<(usize, Stored, Reach)>,
    pub blocks: Vec<(usize, Reach)>,
}

/// What is not in variables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    Bytes(Range),
    Global(u32),
}

impl ExecutionQuery {
    /// Whether nothing is.
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
    /// What a criterion asks as well.
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

    /// How far an instruction that is asked about is to be followed.
    #[inline]
    pub fn inst(&self, inst: usize) -> Reach {
        farthest(&self.insts, inst)
    }

    /// How far that a block was executed is to be followed, if it is asked about.
    #[inline]
    pub fn block(&self, block: usize) -> Reach {
        farthest(&self.blocks, block)
    }
}

fn farthest(asked: &[(usize, Reach)], of: usize) -> Reach {
    let own = asked.iter().filter(|(one, _)| *one == of);
    own.map(|(_, reach)| *reach).max().unwrap_or_default()
}

/// The criteria that were not come to yet.
#[derive(Debug)]
pub(crate) struct Criteria {
    /// By time, ascending.
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

    /// How many executions of a stretch are to be gone over: up to the last criterion. `None` if that is not in it.
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

    /// What is asked of the execution that began at this time. Executions must come in the order of falling time.
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
