//! Who takes what the statements of a run give while it is followed.

use afterimage_ids::{FuncId, OpId};
use afterimage_machine::Range;
use afterimage_matching::{Class, Instance};

/// Where a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementSite {
    /// In which function.
    pub function: FuncId,
    /// Which operator.
    pub op: OpId,
}

/// What an execution gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// What is the same in both versions if they do the same: of a test or a branch 0 if it was decided as the first time, or else 1.
    pub compared: u64,
    /// What a person wants to see.
    pub value: u64,
    /// Of tests and branches what they compare.
    pub operands: Option<u64>,
    /// What it took, if [`Take::TAKEN`].
    pub taken: Taken,
}

/// What an execution of a computation took: up to three operands, none if they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(super) values: [u64; 3],
    pub(super) count: u8,
    /// By operand, in bits, whether it is no constant.
    pub(super) variables: u8,
}

impl Taken {
    /// The operands.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.values.into_iter().take(usize::from(self.count))
    }

    /// Those that are no constants.
    pub fn variables(&self) -> impl Iterator<Item = u64> {
        let bits = self.variables;
        let numbered = (0..).zip(self.all());
        numbered.filter_map(move |(at, value)| (bits >> at & 1 == 1).then_some(value))
    }
}

/// A statement while the run is followed, and what is kept of it.
#[derive(Debug)]
pub(crate) struct Collected<K> {
    pub place: StatementSite,
    /// Through which calls it is executed.
    pub context: u32,
    /// Its number in a version that is known.
    pub number: u32,
    /// Where it accessed memory last.
    pub address: u64,
    /// How a test was decided first.
    decided: Option<bool>,
    pub kept: K,
}

impl<K> Collected<K> {
    /// One that was not executed yet.
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

/// What is done with the values that statements give.
pub(crate) trait Take {
    /// What is kept of each statement, besides where it is.
    type Kept;

    /// It wants to know what computations took.
    const TAKEN: bool = false;

    /// Of a statement that was not executed yet.
    fn begin(class: Class) -> Self::Kept;

    /// The number of a statement in the version that is known, if there is one.
    fn number(&self, _: u32, _: StatementSite) -> u32 {
        u32::MAX
    }

    fn take(&mut self, statement: &mut Collected<Self::Kept>, given: Given, time: u64);

    /// A statement accesses memory, before it is told what it gives.
    #[inline(always)]
    fn access(&mut self, _: &mut Collected<Self::Kept>, _: u64) {}

    /// An activation of a function begins.
    #[inline(always)]
    fn enter(&mut self, _: FuncId, _: u64, _: &[u64]) {}

    /// A statement with this position among those that were collected writes.
    #[inline(always)]
    fn write(&mut self, _: u32, _: Range) {}

    /// It reads.
    #[inline(always)]
    fn read(&mut self, _: u32, _: Range) {}

    /// Memory is copied.
    fn copy(&mut self, _: Range, _: Range) {}

    /// The host writes.
    fn host_write(&mut self, _: Range) {}
}

/// What a statement gave, as it is told by who follows the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gave {
    /// The value.
    pub value: u64,
    /// What a test or a branch compares; `None` of others.
    pub operands: Option<u64>,
    /// What it took, if that is asked for.
    pub taken: Taken,
}

/// Listens to who follows a run: takes what statements do, or hands it on.
pub(crate) trait Listen {
    /// It wants to know what computations took.
    const TAKEN: bool;

    /// There is another statement: the first one has number 0, the next number 1, and so on.
    fn begin(&mut self, place: StatementSite, context: u32, class: Class);

    /// Whether this statement has a number in the version that is known.
    fn is_known(&self, statement: u32) -> bool;

    fn gave(&mut self, statement: u32, gave: Gave, time: u64);
    fn enter(&mut self, function: FuncId, time: u64, parameters: &[u64]);
    fn read(&mut self, statement: u32, range: Range);
    fn write(&mut self, statement: u32, range: Range);
    fn copy(&mut self, from: Range, to: Range);
    fn host_write(&mut self, range: Range);
}

/// Who takes, and what is kept of each statement.
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
        let given = Given {
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
