//! Defines requests for slices, as made by users.

use afterimage_slice::{Follows, Reach};
use serde::{Deserialize, Serialize};

use super::{Algorithm, Direction};

/// A request for a slice. Places are strings, which are resolved in the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceQuery {
    /// The starting point of the slice.
    pub about: SliceAbout,
    /// The direction of the slice.
    pub direction: Direction,
    /// The precision of the slice.
    pub algorithm: Algorithm,
    /// The dependences to follow.
    pub along: SliceAlong,
    /// For a chop, the place on which everything in the slice must also depend. Allowed only for
    /// backward slices.
    pub chop: Option<String>,
    /// The maximum number of dependences to follow, from 1 to [`DEEPEST`](Self::DEEPEST). Not
    /// allowed with a chop.
    pub depth: Option<u8>,
}

/// The starting point of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceAbout {
    /// The statements at a place in one of its executions, such as `parser.c:42#7` or
    /// `@0x1f3#last`.
    Statement {
        /// The place, with the number of its execution.
        at: String,
    },
    /// One operand of a statement.
    Operand {
        /// The execution of the statement.
        at: String,
        /// The operand, written as `left`, `address`, or its number from 1.
        operand: String,
    },
    /// The value of a source variable at a moment, or of an expression such as `p->next`.
    Variable {
        /// The moment at which the variable has the value.
        at: String,
        /// The variable or expression.
        name: String,
    },
    /// Bytes of memory 0 at a moment.
    Bytes {
        /// The moment at which the memory has these bytes.
        at: String,
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        length: u64,
    },
    /// The operator at which the program was killed. It trapped, or is a call or throw. Allowed
    /// only for backward slices by executions.
    Trap,
}

impl SliceAbout {
    /// Returns the place or the moment.
    pub fn at(&self) -> Option<&str> {
        match self {
            Self::Statement { at }
            | Self::Operand { at, .. }
            | Self::Variable { at, .. }
            | Self::Bytes { at, .. } => Some(at),
            Self::Trap => None,
        }
    }
}

/// The dependences that a slice follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceAlong {
    /// All dependences.
    All,
    /// Data dependences only.
    Data,
    /// Control dependences only.
    Control,
    /// Dependences through values only, not through the computation of addresses (Sridharan, Fink
    /// and Bodík 2007).
    Thin,
}

impl SliceAlong {
    /// Returns the dependences to follow.
    pub fn follows(self) -> Follows {
        Follows {
            control: matches!(self, Self::All | Self::Control),
            addresses: self != Self::Thin,
            data: self != Self::Control,
        }
    }
}

impl SliceQuery {
    /// The largest value of `depth`.
    pub const DEEPEST: u8 = Reach::DEEPEST;

    /// Creates a request for a backward slice with the default settings, by executions and along
    /// all dependences.
    pub fn new(about: SliceAbout) -> Self {
        Self {
            about,
            direction: Direction::Backward,
            algorithm: Algorithm::Full,
            along: SliceAlong::All,
            chop: None,
            depth: None,
        }
    }

    /// Whether the request is about statements rather than a value.
    pub fn is_of_statements(&self) -> bool {
        matches!(self.about, SliceAbout::Statement { .. } | SliceAbout::Trap)
    }

    /// Returns the reason why the parts of the request contradict each other, if they do.
    pub fn refusal(&self) -> Option<&'static str> {
        let is_forward = self.direction == Direction::Forward;
        let is_full = self.algorithm == Algorithm::Full;
        if self.chop.is_some() && is_forward {
            Some("a chop is part of a backward slice")
        } else if self.chop.is_some() && self.depth.is_some() {
            Some("a chop cannot be limited in depth")
        } else if self.about == SliceAbout::Trap && (is_forward || !is_full) {
            Some(
                "a slice of the operator that killed the program must be backward and by executions",
            )
        } else if self
            .depth
            .is_some_and(|it| !(1..=Self::DEEPEST).contains(&it))
        {
            Some("the depth must be from 1 to 253")
        } else {
            None
        }
    }
}
