//! How far dependences are followed.

/// How far something is to be followed: not at all, so many dependences further, or as far as there is anything.
///
/// What several ways lead to is followed as far as the shortest of them allows, so that a slice of a depth is exactly what so many dependences lead to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reach(u8);

impl Reach {
    /// It is not wanted.
    pub const NONE: Self = Self(0);
    /// It is wanted, and all that it depends on.
    pub const ALL: Self = Self(u8::MAX);
    /// The largest depth.
    pub const DEEPEST: u8 = u8::MAX - 2;

    /// It is wanted, and what `depth` dependences lead to. `None` beyond the [deepest](Self::DEEPEST).
    pub fn of_depth(depth: u8) -> Option<Self> {
        (depth <= Self::DEEPEST).then_some(Self(depth + 1))
    }

    /// How many dependences it may be away; `None` if any number.
    pub fn depth(self) -> Option<u8> {
        match self {
            Self::ALL => None,
            Self(left) => Some(left.saturating_sub(1)),
        }
    }

    /// How far what it depends on is to be followed.
    #[inline(always)]
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::ALL => Self::ALL,
            Self(left) => Self(left.saturating_sub(1)),
        }
    }

    /// Whether it is wanted.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Whether it is not.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}
