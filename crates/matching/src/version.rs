//! Defines a version of a program, as executed.

use rustc_hash::FxHashMap;

use crate::{Active, Sketch};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A statement that computes a value.
    Compute,
    /// A comparison. Its value is 0 or 1.
    Test,
    /// A statement that reads memory.
    Load,
    /// A statement that writes memory. Its value is the value written.
    Store,
    /// A branch with two directions.
    Branch,
    /// A branch with several directions.
    Table,
    /// A call. Its values are the arguments.
    Call,
    /// A return from a function. Its value is the value returned.
    Return,
    /// Anything else.
    Other,
}

impl Class {
    /// Whether statements of the class read or write memory.
    pub fn accesses_memory(self) -> bool {
        matches!(self, Self::Load | Self::Store)
    }

    /// Returns the group of a class. Only statements of the same group may correspond. Tests and
    /// branches share a group, because a version may test and branch in one operator.
    pub(crate) fn group(self) -> u8 {
        match self {
            Self::Compute | Self::Load => 0,
            Self::Test | Self::Branch => 1,
            Self::Store => 2,
            Self::Table => 3,
            Self::Call => 4,
            Self::Return => 5,
            Self::Other => 6,
        }
    }
}

/// The origin of an operand's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Producer {
    /// A statement of the same version.
    Statement(u32),
    /// A constant.
    Constant(u64),
}

/// A statement that was executed.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The statement's function.
    pub function: u32,
    /// The statement's kind.
    pub class: Class,
    /// The operator. Equal numbers mean equal operators, in both versions.
    pub operator: u64,
    /// The values that the statement computed, wrote or used for a decision. For tests and
    /// branches, whether each decision equals the first, so that a condition and its negation look
    /// the same.
    pub values: Box<Sketch>,
    /// For tests and branches, the compared values, which are stronger evidence than the decisions.
    pub operands: Option<Box<Sketch>>,
    /// The addresses that the statement accessed.
    pub addresses: Option<Box<Sketch>>,
    /// The exact operator. It distinguishes a comparison, its negation, and its form with swapped
    /// operands.
    pub exact: u64,
    /// The offset that a load or a store adds to its address.
    pub offset: u64,
    /// The statement's position in the function's code, which is the same in functions of equal
    /// code. It is [`INLINED`](Self::INLINED) if the statement counts as inlined into the function.
    pub ordinal: u32,
    /// The number of calls around the statement that count as inlined.
    pub depth: u32,
    /// The time of the first execution.
    pub first: u64,
    /// The time of the last execution.
    pub last: u64,
    /// The parts of the run in which the statement was executed.
    pub active: Active,
    /// All known origins of the statement's operands, without repetition. Copies do not count as
    /// origins.
    pub producers: Box<[Producer]>,
    /// For a load, the stores that wrote its data, directly or through copies, ascending. Each
    /// comes with the strength of the link, from 1 (direct) down to 0.
    pub writers: Box<[(u32, f32)]>,
}

impl Statement {
    /// The ordinal of a statement that is not in its function's code, but in code that counts as
    /// inlined.
    pub const INLINED: u32 = u32::MAX;

    /// Creates a statement of a function and a class without known actions.
    #[cfg(test)]
    pub(crate) fn plain(function: u32, class: Class) -> Self {
        Self {
            function,
            class,
            operator: 0,
            values: Box::default(),
            operands: None,
            addresses: None,
            exact: 0,
            offset: 0,
            ordinal: 0,
            depth: 0,
            first: 1,
            last: 1,
            active: Active::default(),
            producers: Box::default(),
            writers: Box::default(),
        }
    }

    /// Returns the sketch that identifies the statement best. For tests and branches, this is the
    /// sketch of the compared values. For other statements, it is the sketch of the values.
    pub fn telling(&self) -> &Sketch {
        self.operands.as_deref().unwrap_or(&self.values)
    }
}

/// The location of a statement's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// All addresses are on the stack.
    OnStack,
    /// No address is on the stack.
    Elsewhere,
}

/// The entries of a function.
#[derive(Clone, Debug, Default)]
pub struct Entered {
    /// The number of entries.
    pub count: u64,
    /// The time of the first entry.
    pub first: u64,
    /// The function's type. Equal numbers mean equal types, in both versions.
    pub ty: u64,
    /// The values of each parameter.
    pub parameters: Vec<Sketch>,
}

/// A version of a program, as executed.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The executed statements, each function's in program order.
    pub statements: Vec<Statement>,
    /// The length of the run, in the unit of the statements' times.
    pub length: u64,
    /// The first address above the stack; 0 if unknown.
    pub stack: u64,
    /// For each function with statements, the operators of its code, by ordinal.
    pub bodies: FxHashMap<u32, Box<[u64]>>,
    /// The functions that were entered.
    pub entered: FxHashMap<u32, Entered>,
}

impl Version {
    /// Returns the location of a statement's addresses, if known and uniform.
    pub(crate) fn lies(&self, statement: &Statement) -> Option<Lies> {
        let addresses = statement.addresses.as_ref().filter(|_| self.stack > 0)?;
        if addresses.largest < self.stack {
            return Some(Lies::OnStack);
        }
        (addresses.smallest >= self.stack).then_some(Lies::Elsewhere)
    }

    /// Returns, for each statement, the loads that read its data, ascending, with the strength of
    /// the link. O(statements).
    pub fn readers(&self) -> Vec<Vec<(u32, f32)>> {
        let mut readers = vec![Vec::new(); self.statements.len()];
        for (load, statement) in (0..).zip(&self.statements) {
            for &(store, counts) in &statement.writers {
                readers[store as usize].push((load, counts));
            }
        }
        readers
    }

    /// Returns the possible users of each statement's result. O(statements).
    pub fn users(&self) -> Vec<Vec<u32>> {
        let mut users = vec![Vec::new(); self.statements.len()];
        for (user, statement) in (0..).zip(&self.statements) {
            for producer in &statement.producers {
                if let &Producer::Statement(of) = producer
                    && let Some(users) = users.get_mut(of as usize)
                {
                    users.push(user);
                }
            }
        }
        users
    }
}
