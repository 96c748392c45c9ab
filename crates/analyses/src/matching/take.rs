//! Defines the traits for receiving the values that statements produce while a run is followed.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Range;
use afterimage_matching::{Class, Instance};

/// The place of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementSite {
    /// The function that contains the statement.
    pub function: FuncId,
    /// The statement's operator.
    pub op: OpId,
}

/// The values of an execution that are compared or shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedValue {
    /// A value that is equal in both versions if the statements do the same thing. For a test or
    /// branch, 0 if its outcome equals the outcome of its first execution, otherwise 1.
    pub compared: u64,
    /// The value to show to users.
    pub value: u64,
    /// For tests and branches, the compared operands.
    pub operands: Option<u64>,
    /// The operands that the execution took, if [`Take::TAKEN`] is set.
    pub taken: Taken,
}

/// The operands that an execution of a computation took. There are up to three, or none if they are
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(super) values: [u64; 3],
    pub(super) count: u8,
    /// A bit for each operand. It is set if the operand is not a constant.
    pub(super) variables: u8,
}

impl Taken {
    /// Iterates over the operands.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.values.into_iter().take(usize::from(self.count))
    }

    /// Iterates over the operands that are not constants.
    pub fn variables(&self) -> impl Iterator<Item = u64> {
        let bits = self.variables;
        let numbered = (0..).zip(self.all());
        numbered.filter_map(move |(at, value)| (bits >> at & 1 == 1).then_some(value))
    }
}

/// A statement while the run is followed, and the data kept about it.
#[derive(Debug)]
pub(crate) struct Collected<K> {
    pub place: StatementSite,
    /// The context, that is, the calls through which the statement is executed.
    pub context: u32,
    /// The statement's number in the version that was sketched before.
    pub number: u32,
    /// The address of the statement's last memory access.
    pub address: u64,
    /// The first outcome of a test or branch.
    decided: Option<bool>,
    pub kept: K,
}

impl<K> Collected<K> {
    /// Creates a statement that has not been executed yet.
    pub fn new(place: StatementSite, context: u32, number: u32, kept: K) -> Self {
        Self {
            place,
            context,
            number,
            address: Instance::NO_ADDRESS,
            decided: None,
            kept,
        }
    }
}

/// A receiver of the values that statements produce.
pub(crate) trait Take {
    /// The data kept about each statement, besides its place.
    type Kept;

    /// Whether the taker needs the operands of computations.
    const TAKEN: bool = false;

    /// Creates the data kept about a statement that has not been executed yet.
    fn begin(class: Class) -> Self::Kept;

    /// Returns the statement's number in the version that was sketched before, or `u32::MAX` if it
    /// has none.
    fn number(&self, _: u32, _: StatementSite) -> u32 {
        u32::MAX
    }

    fn take(&mut self, statement: &mut Collected<Self::Kept>, given: ComparedValue, time: u64);

    /// Receives the address of a statement's memory access, before the statement's value.
    #[inline(always)]
    fn access(&mut self, _: &mut Collected<Self::Kept>, _: u64) {}

    /// Receives the beginning of an activation of a function.
    #[inline(always)]
    fn enter(&mut self, _: FuncId, _: u64, _: &[u64]) {}

    /// Receives a write by the statement at this position among the collected statements.
    #[inline(always)]
    fn write(&mut self, _: u32, _: Range) {}

    /// Receives a read by the statement at this position among the collected statements.
    #[inline(always)]
    fn read(&mut self, _: u32, _: Range) {}

    /// Receives a copy within memory.
    fn copy(&mut self, _: Range, _: Range) {}

    /// Receives a write by the host.
    fn host_write(&mut self, _: Range) {}
}

/// The result of a statement, as the follower reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gave {
    /// The value that the statement produced.
    pub value: u64,
    /// The operands that a test or branch compares; `None` for other statements.
    pub operands: Option<u64>,
    /// The operands that the statement took, if requested.
    pub taken: Taken,
}

/// A listener to a follower. It consumes the events of statements or passes them on.
pub(crate) trait Listen {
    /// Whether the listener needs the operands of computations.
    const TAKEN: bool;

    /// Begins another statement. Statements are numbered from 0 in this order.
    fn begin(&mut self, place: StatementSite, context: u32, class: Class);

    /// Whether this statement has a number in the version that was sketched before.
    fn is_known(&self, statement: u32) -> bool;

    fn gave(&mut self, statement: u32, gave: Gave, time: u64);
    fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]);
    fn read(&mut self, statement: u32, range: Range);
    fn write(&mut self, statement: u32, range: Range);
    fn copy(&mut self, from: Range, to: Range);
    fn host_write(&mut self, range: Range);
}

/// A taker, with the data that it keeps about each statement.
pub(crate) struct Taking<T: Take> {
    pub taker: T,
    pub(super) statements: Vec<Collected<T::Kept>>,
}

impl<T: Take> Taking<T> {
    pub fn new(taker: T) -> Self {
        Self {
            taker,
            statements: Vec::new(),
        }
    }

    #[inline(always)]
    fn access(&mut self, statement: u32, range: Range) {
        if let Some(known) = self.statements.get_mut(statement as usize) {
            self.taker.access(known, range.address);
        }
    }
}

impl<T: Take> Listen for Taking<T> {
    const TAKEN: bool = T::TAKEN;

    fn begin(&mut self, place: StatementSite, context: u32, class: Class) {
        let number = self.taker.number(context, place);
        let kept = T::begin(class);
        self.statements
            .push(Collected::new(place, context, number, kept));
    }

    fn is_known(&self, statement: u32) -> bool {
        self.statements[statement as usize].number != u32::MAX
    }

    #[inline(always)]
    fn gave(&mut self, statement: u32, gave: Gave, time: u64) {
        let statement = &mut self.statements[statement as usize];
        let compared = match gave.operands {
            None => gave.value,
            Some(_) => {
                let truth = gave.value as u32 != 0;
                u64::from(truth != *statement.decided.get_or_insert(truth))
            }
        };
        let given = ComparedValue {
            compared,
            value: gave.value,
            operands: gave.operands,
            taken: gave.taken,
        };
        self.taker.take(statement, given, time);
    }

    #[inline(always)]
    fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]) {
        self.taker.enter(function, time, parameters);
    }

    #[inline(always)]
    fn read(&mut self, statement: u32, range: Range) {
        self.access(statement, range);
        self.taker.read(statement, range);
    }

    #[inline(always)]
    fn write(&mut self, statement: u32, range: Range) {
        self.access(statement, range);
        self.taker.write(statement, range);
    }

    fn copy(&mut self, from: Range, to: Range) {
        self.taker.copy(from, to);
    }

    fn host_write(&mut self, range: Range) {
        self.taker.host_write(range);
    }
}
