//! A version of a program as it was executed.

use rustc_hash::FxHashMap;

use crate::{Active, Sketch};

/// What kind of statement it is: those of different kinds do not correspond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// It computes a value.
    Compute,
    /// It compares: its value is 0 or 1.
    Test,
    /// It reads memory.
    Load,
    /// It writes memory: its value is what is written.
    Store,
    /// Control goes one of two ways.
    Branch,
    /// Control goes one of several ways.
    Table,
    /// It calls: its values are the arguments.
    Call,
    /// It returns from a function: its value is what is returned.
    Return,
    /// Anything else.
    Other,
}

impl Class {
    /// Whether it reads or writes memory.
    pub fn accesses_memory(self) -> bool {
        matches!(self, Self::Load | Self::Store)
    }

    /// Statements of the same group may correspond: a version may test and branch at once.
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

/// Where an operand's value comes from.
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
    /// In which function.
    pub function: u32,
    /// What kind of statement it is.
    pub class: Class,
    /// Which operator: equal numbers for equal ones, in both versions.
    pub operator: u64,
    /// The values that it gave, wrote or decided by. Of tests and branches whether each was decided as the first one was, so that a
    /// condition and its negation are the same.
    pub values: Box<Sketch>,
    /// Of tests and branches what is compared: it tells more than how it was decided.
    pub operands: Option<Box<Sketch>>,
    /// The addresses that it accessed.
    pub addresses: Option<Box<Sketch>>,
    /// Which operator exactly: a comparison, its negation and the one with exchanged operands differ.
    pub exact: u64,
    /// What a load or a store adds to the address that it takes.
    pub offset: u64,
    /// Its place in the function's code: the same in functions of equal code. [`INLINED`](Self::INLINED) if it stands there as if it were inlined.
    pub ordinal: u32,
    /// Through how many calls it is executed that are taken as inlined.
    pub depth: u32,
    /// When it was executed first.
    pub first: u64,
    /// When it was executed last.
    pub last: u64,
    /// In which parts of the run it was executed.
    pub active: Active,
    /// Where its operands may come from, through copies: all that is known, each at most once.
    pub producers: Box<[Producer]>,
    /// Of a load, the stores that wrote what it read, ascending: directly, or in the end of a chain of copies; and for how much that counts, from 1 if directly to 0.
    pub writers: Box<[(u32, f32)]>,
}

impl Statement {
    /// It is not in the code of its function, but of one that is taken as inlined.
    pub const INLINED: u32 = u32::MAX;

    /// One of a function and a class that did nothing that is known.
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

    /// What tells most of what it did: of tests what they compare, of others the values.
    pub fn telling(&self) -> &Sketch {
        self.operands.as_deref().unwrap_or(&self.values)
    }
}

/// Where the addresses of a statement lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// All on the stack.
    OnStack,
    /// All elsewhere.
    Elsewhere,
}

/// How a function was entered.
#[derive(Clone, Debug, Default)]
pub struct Entered {
    /// How often.
    pub count: u64,
    /// When first.
    pub first: u64,
    /// Its type: equal numbers for equal ones, in both versions.
    pub ty: u64,
    /// The values of each parameter.
    pub parameters: Vec<Sketch>,
}

/// A version of a program as it was executed.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The statements that were executed, each function's in the order of the program.
    pub statements: Vec<Statement>,
    /// How long the run was, in the unit of the statements' times.
    pub length: u64,
    /// Addresses below this one are on the stack; 0 if it is not known where that begins.
    pub stack: u64,
    /// For each function that has statements the operators of its code, by ordinal.
    pub bodies: FxHashMap<u32, Box<[u64]>>,
    /// The functions that were entered.
    pub entered: FxHashMap<u32, Entered>,
}

impl Version {
    /// Where the addresses lie that a statement accessed, if it is known and the same of all.
    pub(crate) fn lies(&self, statement: &Statement) -> Option<Lies> {
        let addresses = statement.addresses.as_ref().filter(|_| self.stack > 0)?;
        if addresses.largest < self.stack {
            return Some(Lies::OnStack);
        }
        (addresses.smallest >= self.stack).then_some(Lies::Elsewhere)
    }

    /// For each statement the loads that read what it wrote, ascending, and for how much that counts. O(statements).
    pub fn readers(&self) -> Vec<Vec<(u32, f32)>> {
        let mut readers = vec![Vec::new(); self.statements.len()];
        for (load, statement) in (0..).zip(&self.statements) {
            for &(store, counts) in &statement.writers {
                readers[store as usize].push((load, counts));
            }
        }
        readers
    }

    /// For each statement those that may use what it gives. O(statements).
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
