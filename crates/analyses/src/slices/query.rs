//! A slice as a user asks for it.

use afterimage_slice::{Follows, Reach};
use serde::{Deserialize, Serialize};

use super::{Algorithm, Direction};

/// Which slice? Places are texts, which mean something in the recording that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceQuery {
    /// What it begins with.
    pub about: SliceAbout,
    /// Which way.
    pub direction: Direction,
    /// How exact.
    pub algorithm: Algorithm,
    /// Along which dependences.
    pub along: SliceAlong,
    /// Only what also depends on this place: a chop. Backward only.
    pub chop: Option<String>,
    /// Only what is at most so many dependences away, from 1 to [`DEEPEST`](Self::DEEPEST). Not with a chop.
    pub depth: Option<u8>,
}

/// What a slice begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceAbout {
    /// The statements of an execution of a place: `parser.c:42#7`, `@0x1f3#last`.
    Statement {
        /// The place.
        at: String,
    },
    /// One of the values that a statement takes.
    Operand {
        /// The statement.
        at: String,
        /// Which: `left`, `address`, or its number from 1.
        operand: String,
    },
    /// What a variable of the source, or an expression such as `p->next`, held at a moment.
    Variable {
        /// The moment.
        at: String,
        /// The variable.
        name: String,
    },
    /// What bytes of memory 0 held at a moment.
    Bytes {
        /// The moment.
        at: String,
        /// Where they begin.
        address: u64,
        /// How many.
        length: u64,
    },
    /// What killed the program. Backward and by executions only.
    Trap,
}

impl SliceAbout {
    /// The place, or the moment.
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

/// Along which dependences a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceAlong {
    /// All.
    All,
    /// Data only.
    Data,
    /// Control only.
    Control,
    /// Values only, not how addresses were computed (Sridharan, Fink and Bodík 2007).
    Thin,
}

impl SliceAlong {
    /// The dependences.
    pub fn follows(self) -> Follows {
        Follows {
            control: matches!(self, Self::All | Self::Control),
            addresses: self != Self::Thin,
            data: self != Self::Control,
        }
    }
}

impl SliceQuery {
    /// The largest depth.
    pub const DEEPEST: u8 = Reach::DEEPEST;

    /// All that something depends on.
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

    /// Whether statements are asked about, and not a value.
    pub fn is_of_statements(&self) -> bool {
        matches!(self.about, SliceAbout::Statement { .. } | SliceAbout::Trap)
    }

    /// Why the parts of the question do not go together, if they do not.
    pub fn refusal(&self) -> Option<&'static str> {
        let is_forward = self.direction == Direction::Forward;
        let is_full = self.algorithm == Algorithm::Full;
        if self.chop.is_some() && is_forward {
            Some("a chop is a part of a slice backward")
        } else if self.chop.is_some() && self.depth.is_some() {
            Some("a chop has no depth")
        } else if self.about == SliceAbout::Trap && (is_forward || !is_full) {
            Some("nothing depends on what killed the program, and its slice is by executions")
        } else if self
            .depth
            .is_some_and(|it| !(1..=Self::DEEPEST).contains(&it))
        {
            Some("a depth is from 1 to 253")
        } else {
            None
        }
    }
}
