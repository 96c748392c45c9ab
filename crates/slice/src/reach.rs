//! Limits the depth to which dependences are followed.

/// The depth to which something is followed. It may be zero, a number of dependences, or unlimited.
///
/// Something reached by several routes is followed as far as the shortest route allows. So a slice
/// of limited depth is exactly the set that can be reached over at most that many dependences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reach(u8);

impl Reach {
    /// Not wanted.
    pub const NONE: Self = Self(0);
    /// Wanted, with all dependences.
    pub const ALL: Self = Self(u8::MAX);
    /// The maximum depth.
    pub const DEEPEST: u8 = u8::MAX - 2;

    /// Returns the reach of something that is wanted together with its dependences up to `depth`.
    /// Returns `None` if `depth` exceeds [`DEEPEST`](Self::DEEPEST).
    pub fn of_depth(depth: u8) -> Option<Self> {
        (depth <= Self::DEEPEST).then_some(Self(depth + 1))
    }

    /// Returns the maximum number of dependences to follow. Returns `None` if it is unlimited.
    pub fn depth(self) -> Option<u8> {
        match self {
            Self::ALL => None,
            Self(left) => Some(left.saturating_sub(1)),
        }
    }

    /// Returns how far to follow the dependences of something with this reach.
    #[inline(always)]
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::ALL => Self::ALL,
            Self(left) => Self(left.saturating_sub(1)),
        }
    }

    /// Whether this differs from [`Self::NONE`].
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Whether this is [`Self::NONE`].
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}
