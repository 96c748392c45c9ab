//! Collects the ranges of the values that a run's statements produced, for predicates on values.
//! Memory is bounded by the size of the program.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{EntityRef, FuncId};
use afterimage_matching::Class;
use afterimage_program::Program;
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use wasmparser::Operator;

use crate::matching::{Collected, ComparedValue, StatementSite, Take, Taking, Walk};
use afterimage_replay::steps::{Run, StepsError, name};

/// A number that a statement produced. All numbers of a statement have one type.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Number {
    /// A signed integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Whether a test succeeded, or a branch was taken.
    Truth(bool),
}

impl Number {
    fn is_nan(self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }

    /// Returns 0, 1 or 2 if the number is less than, equal to or greater than 0.
    fn sign(self) -> usize {
        let of =
            |order: Option<std::cmp::Ordering>| order.map_or(1, |order| order as i8 + 1) as usize;
        match self {
            Self::Integer(value) => of(value.partial_cmp(&0)),
            Self::Float(value) => of(value.partial_cmp(&0.0)),
            Self::Truth(value) => 1 + usize::from(value),
        }
    }
}

/// The range of a statement's values in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest value.
    pub smallest: Number,
    /// The largest value.
    pub largest: Number,
    /// Whether any value was less than 0, whether any was 0, and whether any was greater than 0.
    pub signs: [bool; 3],
}

/// The meaning of the bits of a statement's value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    I32,
    I64,
    F32,
    F64,
    Truth,
    /// A value without an order.
    Other,
}

impl Kind {
    fn of(operator: &Operator<'_>) -> Self {
        if matches!(operator, Operator::BrIf { .. } | Operator::If { .. }) {
            return Self::Truth;
        }
        let name = name(operator);
        let (space, rest) = name.split_once('.').unwrap_or((&name, ""));
        let stem = rest.split('_').next().unwrap_or(rest);
        let tests = ["eqz", "eq", "ne", "lt", "gt", "le", "ge"];
        match space {
            "i32" | "i64" | "f32" | "f64" if tests.contains(&stem) => Self::Truth,
            "i32" => Self::I32,
            "i64" => Self::I64,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => Self::Other,
        }
    }

    fn number(self, bits: u64) -> Option<Number> {
        let number = match self {
            Self::I32 => Number::Integer(i64::from(bits as u32 as i32)),
            Self::I64 => Number::Integer(bits as i64),
            Self::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
            Self::F64 => Number::Float(f64::from_bits(bits)),
            Self::Truth => Number::Truth(bits as u32 != 0),
            Self::Other => return None,
        };
        (!number.is_nan()).then_some(number)
    }
}

/// The state of a statement while the run is followed.
struct WatchedStatement {
    place: StatementSite,
    kind: Kind,
    range: Option<Range>,
}

/// An observer that collects the ranges of values.
struct Ranges<'a> {
    program: &'a Program,
    module: &'a [u8],
    kinds: RefCell<HashMap<FuncId, Vec<Kind>>>,
    known: RefCell<Vec<WatchedStatement>>,
}

impl Ranges<'_> {
    fn kind(&self, place: StatementSite) -> Kind {
        let mut kinds = self.kinds.borrow_mut();
        let of_function = kinds.entry(place.function).or_insert_with(|| {
            let function = self.program.function(place.function);
            let operators = function.map(|function| self.program.operators(self.module, function));
            let operators = operators.into_iter().flatten();
            operators
                .map(|(_, _, operator)| Kind::of(&operator))
                .collect()
        });
        of_function
            .get(place.op.index())
            .copied()
            .unwrap_or(Kind::Other)
    }
}

impl Take for Ranges<'_> {
    type Kept = ();

    fn begin(_: Class) {}

    fn number(&self, _: u32, place: StatementSite) -> u32 {
        let kind = self.kind(place);
        let mut known = self.known.borrow_mut();
        known.push(WatchedStatement {
            place,
            kind,
            range: None,
        });
        known.len() as u32 - 1
    }

    #[inline(always)]
    fn take(&mut self, statement: &mut Collected<()>, given: ComparedValue, _: u64) {
        let Some(known) = self.known.get_mut().get_mut(statement.number as usize) else {
            return;
        };
        let Some(number) = known.kind.number(given.value) else {
            return;
        };
        let range = known.range.get_or_insert(Range {
            smallest: number,
            largest: number,
            signs: [false; 3],
        });
        if number < range.smallest {
            range.smallest = number;
        }
        if number > range.largest {
            range.largest = number;
        }
        range.signs[number.sign()] = true;
    }
}

/// Collects the ranges of all executed statements that produce numbers. NaNs are ignored.
///
/// Time is linear in the run, and memory in the program.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn ranges<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<BTreeMap<StatementSite, Range>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let taker = Ranges {
        program: run.program,
        module: run.module,
        kinds: RefCell::default(),
        known: RefCell::default(),
    };
    let walked = Walk::new(run, log, Taking::new(taker))?.follow()?;
    let known = walked.listener.taker.known.into_inner().into_iter();
    let known = known.filter_map(|known| Some((known.place, known.range?)));
    Ok(known.collect())
}
