//! What speaks for a pair of statements, as numbers, and for how much each counts.
//!
//! The weights were not chosen but fitted: such that of the candidates of a statement, with probabilities that are proportional to the exponentials of their weighted sums, the right ones are as likely as possible
//! (conditional logit, McFadden 1974), by the line tables of bzip2, Lua and zstd, which the matching itself never sees. `docs/lessons.md` tells how well they do on other programs; `bench fitting`
//! fits them again.

use crate::Class;

/// What the weights depend on: whether stretches that correspond are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Only what statements did as a whole is known.
    Wholes,
    /// What they did in stretches of both runs that correspond is known, too.
    Regions,
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $weights:expr,)*) => {
        /// What speaks for or against a pair. Most are 0 to 1.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[$doc])* $name,)* }

        impl Feature {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        /// For how much each counts, by stage and kind.
        #[expect(clippy::approx_constant, reason = "a weight that was fitted may be 3.14")]
        const FITTED: [[f32; COLUMNS]; [$(Feature::$name),*].len()] = [$($weights),*];
    };
}

/// How many kinds of statements there are: those of different kinds are told by different things.
pub const KINDS: usize = 6;

/// Stages times kinds.
const COLUMNS: usize = 2 * KINDS;

/// For how much each feature counts, of statements of a kind, at a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Column([f32; FITTED.len()]);

impl Column {
    /// For how much a feature counts.
    #[inline(always)]
    pub fn of(&self, feature: Feature) -> f32 {
        self.0[feature as usize]
    }
}

/// For how much each feature counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights([Column; COLUMNS]);

impl Weights {
    /// Weights by column (kinds before stretches are known, then kinds with them) and feature.
    pub fn new(of: impl Fn(usize, Feature) -> f32) -> Self {
        let column = |column| {
            let mut weights = [0.0; FITTED.len()];
            for &feature in Feature::ALL {
                weights[feature as usize] = of(column, feature);
            }
            Column(weights)
        };
        Self(std::array::from_fn(column))
    }

    /// Those of a column.
    pub fn column(&self, column: usize) -> &Column {
        &self.0[column]
    }

    /// Those of statements of a class.
    pub fn of(&self, stage: Stage, class: Class) -> &Column {
        &self.0[column(stage, class)]
    }
}

impl Default for Weights {
    /// The fitted ones.
    fn default() -> Self {
        Self::new(|column, feature| FITTED[feature as usize][column])
    }
}

/// Which column holds the weights of statements of a class.
pub fn column(stage: Stage, class: Class) -> usize {
    let kind = match class {
        Class::Compute => 0,
        Class::Load => 1,
        Class::Store => 2,
        Class::Test => 3,
        Class::Branch => 4,
        Class::Table | Class::Call | Class::Return | Class::Other => 5,
    };
    stage as usize * KINDS + kind
}

// Columns: of what computes, loads, stores, tests, branches and the rest, before stretches are known; and with them.
features! {
    /// The values have nothing in common, nor have the differences between neighbours.
    Different = [-0.07, -0.21, -0.39, 0.50, 0.73, -0.24, -0.30, -0.21, -0.26, 0.29, 0.46, -0.04],
    /// The part of the differences between neighbours that both have, where they have no values in common.
    DifferentSteps = [1.24, 1.28, 1.09, 1.15, 1.06, 1.35, 1.38, 1.32, 1.29, 1.41, 1.36, 1.42],
    /// Both gave one value, which may be an address.
    DifferentAddress = [-2.23, -2.20, -2.19, -2.19, -2.19, -2.19, -2.09, -2.08, -2.09, -2.07, -2.07, -2.07],
    /// Whether they have values in common is not known.
    Unknown = [0.85, 0.85, 0.99, 1.02, 1.17, 0.77, 0.61, 0.63, 0.71, 0.68, 0.85, 0.56],
    /// Some values occur in both.
    Some = [1.08, 0.92, 1.01, 1.12, 1.16, 1.42, 0.47, 0.33, 0.38, 0.36, 0.44, 0.59],
    /// The part of the values that does.
    SomeFound = [0.28, 0.06, 0.19, 0.15, 0.28, 0.96, 0.69, 0.51, 0.52, 0.55, 0.59, 0.76],
    /// All values of the second occur in the first, as often at least.
    Part = [1.93, 2.10, 2.03, 1.93, 1.74, 1.67, 1.25, 1.28, 1.37, 1.17, 0.92, 1.05],
    /// The same, by how many different values there are.
    PartTelling = [2.11, 2.17, 2.30, 1.75, 1.72, 1.93, 1.77, 1.68, 1.80, 1.52, 1.35, 1.57],
    /// One sequence begins the other.
    Prefix = [2.28, 2.27, 2.53, 1.79, 1.91, 2.09, 1.15, 1.01, 1.10, 0.67, 0.82, 0.83],
    /// The same, by how many different values there are.
    PrefixTelling = [1.24, 1.21, 1.29, 1.08, 1.13, 1.11, 1.06, 1.02, 1.05, 0.89, 0.94, 0.93],
    /// The same multiset of values.
    Permuted = [-0.38, -0.38, -0.38, -0.39, -0.39, -0.38, -0.28, -0.28, -0.28, -0.29, -0.29, -0.28],
    /// The same, by how many different values there are.
    PermutedTelling = [-0.37, -0.37, -0.37, -0.38, -0.38, -0.37, -0.27, -0.27, -0.27, -0.28, -0.28, -0.27],
    /// The same sequence with a number added.
    Shifted = [1.09, 1.07, 1.19, 1.32, 1.10, 1.12, 1.04, 1.03, 1.08, 1.10, 1.03, 1.04],
    /// The same, by how many different values there are.
    ShiftedTelling = [1.70, 1.72, 1.76, 1.90, 1.70, 1.72, 0.80, 0.82, 0.82, 0.86, 0.80, 0.80],
    /// The same sequence of values.
    Same = [2.03, 2.26, 1.95, 1.64, 1.51, 2.12, 1.54, 1.61, 1.28, 1.30, 1.02, 1.51],
    /// The same, by how many different values there are.
    SameTelling = [2.07, 2.06, 1.89, 1.73, 1.59, 2.06, 0.73, 0.68, 0.47, 0.43, 0.25, 0.64],
    /// The same sequence, of more than five different values.
    SameLong = [0.96, 0.81, 0.77, 0.67, 0.57, 0.86, 1.05, 0.97, 0.89, 0.77, 0.69, 0.96],
    /// One by how many statements of the first version have this sequence of values.
    SameRare = [1.36, 1.23, 1.38, 1.09, 1.18, 1.47, 1.53, 1.41, 1.43, 1.23, 1.30, 1.49],
    /// How long both are the same in the beginning, if not throughout.
    Beginning = [0.00, 0.04, -0.03, 0.01, -0.10, -0.03, 0.16, 0.14, 0.16, 0.18, 0.08, 0.17],
    /// They are decided in the same ways.
    DecidedSome = [0.00, 0.00, 0.00, -0.28, -0.31, 0.00, 0.00, 0.00, 0.00, -0.16, -0.24, 0.00],
    /// They are decided in the same ways, the first as often at least.
    DecidedPart = [0.00, 0.00, 0.00, 0.48, 0.44, 0.00, 0.00, 0.00, 0.00, 0.16, 0.11, 0.00],
    /// The decisions of one begin those of the other.
    DecidedPrefix = [0.00, 0.00, 0.00, 0.44, 0.26, 0.00, 0.00, 0.00, 0.00, 0.21, 0.13, 0.00],
    /// The same decisions in another order.
    DecidedPermuted = [0.00, 0.00, 0.00, -0.34, -0.36, 0.00, 0.00, 0.00, 0.00, -0.20, -0.21, 0.00],
    /// The same decisions.
    DecidedSame = [0.00, 0.00, 0.00, 0.14, 0.41, 0.00, 0.00, 0.00, 0.00, -0.01, 0.22, 0.00],
    /// The same decisions, or the same in the beginning, which are not all the same.
    DecidedVaried = [0.00, 0.00, 0.00, 1.27, 1.19, 0.00, 0.00, 0.00, 0.00, 1.10, 0.97, 0.00],
    /// The same operator; of comparisons but for negation and exchanged operands.
    SameOperator = [3.78, 3.64, 3.67, 3.60, 3.80, 3.74, 3.29, 3.14, 3.14, 3.29, 3.28, 3.22],
    /// The same operator exactly.
    ExactOperator = [0.77, 0.63, 0.65, 0.49, 0.79, 0.72, 1.18, 1.03, 1.03, 0.90, 1.17, 1.10],
    /// Loads or stores of different widths.
    OtherWidth = [1.63, 1.70, 1.66, 1.63, 1.63, 1.63, 2.14, 2.21, 2.21, 2.14, 2.14, 2.14],
    /// Different comparisons.
    OtherTest = [0.00, 0.00, 0.00, -2.43, -2.32, 0.00, 0.00, 0.00, 0.00, -2.18, -2.08, 0.00],
    /// A comparison and a branch.
    TestAndBranch = [0.00, 0.00, 0.00, -1.17, -1.48, 0.00, 0.00, 0.00, 0.00, -1.75, -1.84, 0.00],
    /// One loads what the other computes.
    ComputeAndLoad = [-2.10, -2.08, -2.06, -2.06, -2.06, -2.06, -1.91, -1.86, -1.85, -1.85, -1.85, -1.85],
    /// Different operators otherwise.
    OtherOperator = [0.37, 0.42, 0.42, 0.42, 0.42, 0.37, 0.32, 0.35, 0.35, 0.35, 0.35, 0.35],
    /// The same addresses.
    AddressSame = [0.25, 0.19, 0.28, 0.25, 0.25, 0.25, 0.29, 0.24, 0.34, 0.29, 0.29, 0.29],
    /// The same differences between the addresses of neighbours, of which some is not 0.
    AddressSteps = [1.84, 1.89, 1.95, 1.84, 1.84, 1.84, 0.77, 0.76, 0.82, 0.77, 0.77, 0.77],
    /// Each always accesses one address.
    AddressStepsConstant = [0.59, 0.94, 0.57, 0.59, 0.59, 0.59, 0.38, 0.48, 0.38, 0.38, 0.38, 0.38],
    /// The part of the differences between addresses that occurs in both, if they are not the same.
    AddressFound = [0.85, 0.87, 0.71, 0.85, 0.85, 0.85, 0.62, 0.72, 0.54, 0.62, 0.62, 0.62],
    /// They add the same number to the address that they take.
    OffsetSame = [1.43, 1.40, 1.47, 1.43, 1.43, 1.43, 0.85, 0.86, 0.78, 0.85, 0.85, 0.85],
    /// They add different numbers.
    OffsetDiffers = [-1.91, -2.04, -1.75, -1.91, -1.91, -1.91, -1.44, -1.48, -1.33, -1.44, -1.44, -1.44],
    /// Neither adds anything.
    OffsetZero = [0.93, 1.11, 0.73, 0.93, 0.93, 0.93, 0.61, 0.65, 0.58, 0.61, 0.61, 0.61],
    /// They were executed equally often.
    CountEqual = [0.17, -0.02, -0.09, 0.09, 0.21, 0.94, 0.21, 0.28, 0.16, 0.23, 0.29, 0.45],
    /// The second was executed less often.
    CountLess = [0.97, 1.19, 1.19, 1.09, 0.99, 0.57, 1.00, 0.98, 1.09, 1.02, 1.02, 0.91],
    /// The part of the executions of the first that it has then.
    CountPart = [-0.66, -0.59, -0.59, -0.49, 0.14, -1.07, -0.55, -0.52, -0.56, -0.48, -0.31, -0.72],
    /// The second was executed more often: an optimiser hardly ever adds executions.
    CountMore = [-2.29, -2.32, -2.25, -2.33, -2.35, -2.66, -1.25, -1.31, -1.30, -1.31, -1.35, -1.41],
    /// Less one, the part of the parts of the run with executions of the second in which the first was executed, too.
    Together = [3.49, 3.50, 3.50, 3.66, 3.59, 3.49, 2.11, 2.10, 2.13, 2.17, 2.13, 2.14],
    /// How near the first executions are in the order of the first version: one half if two statements are between.
    Near2 = [-0.48, -0.62, -0.62, -0.37, -0.28, -0.63, -0.63, -0.70, -0.71, -0.68, -0.60, -0.74],
    /// One half if sixteen are.
    Near16 = [0.24, 0.12, 0.25, 0.67, 0.48, 0.34, 1.31, 1.19, 1.23, 1.40, 1.31, 1.17],
    /// One half if a hundred and twenty-eight are.
    Near128 = [1.79, 1.55, 1.98, 1.64, 1.82, 1.93, 0.38, 0.12, 0.25, 0.14, 0.28, 0.16],
    /// How near the last executions are: one half if eight statements end between.
    EndsNear = [1.32, 1.51, 1.91, 1.71, 1.50, 1.23, 1.05, 1.23, 1.24, 1.12, 0.93, 0.74],
    /// In no stretch the first is near to where it would be.
    NeverTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.58, 0.10, -0.44, -0.52, -0.57, -0.79],
    /// The same of tests and branches.
    NeverTogetherTest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.77, -0.77, -0.77, -0.77, -0.82, -0.77],
    /// The same, though they have more than five different values, all of them in common.
    NeverTogetherLong = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 2.12, 2.09, 2.07, 2.09, 2.07, 2.08],
    /// In which part of the executions in stretches the first was executed in the same stretch and gave the same value.
    StretchTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.75, 0.33, 0.67, -0.11, -0.13, 0.51],
    /// The same, by how many different values there are.
    StretchTelling = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.02, 0.83, 0.99, 0.69, 0.56, 1.11],
    /// In which part it was executed between what the executions before and after are aligned with.
    StretchWithin = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.32, -0.32, -0.40, 0.18, -0.02, 0.29],
    /// And gave the same value.
    StretchWithinSame = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.60, 0.75, 0.44, 0.53, 0.62, 1.03],
    /// How near to there: one half if eight executions are between.
    StretchNear = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.45, 1.27, 1.52, 1.87, 2.24, 1.99],
    /// In which part the alignment makes them a pair.
    StretchAligned = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.53, 0.57, 0.49, 0.57, 0.54, 0.62],
    /// In more than half.
    StretchAlignedMost = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.16, -0.08, -0.17, -0.13, -0.16, -0.09],
    /// How usual it is that an object lies so far from where it lies in the other version.
    StretchPlaced = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 3.90, 3.86, 4.09, 3.90, 3.90, 3.90],
    /// The part of the makers of operands that correspond.
    Operands = [2.25, 1.75, 2.34, 2.15, 1.36, 2.03, 1.76, 1.35, 1.59, 1.55, 0.85, 0.92],
    /// All correspond.
    OperandsAll = [0.47, 0.16, 0.43, 0.33, 0.01, 0.20, 0.59, 0.30, 0.31, 0.56, 0.24, -0.05],
    /// The part of the users of the result that correspond.
    Users = [1.41, 1.36, 1.22, 0.95, 1.22, 1.72, 1.14, 1.08, 1.07, 0.63, 1.07, 1.22],
    /// All correspond.
    UsersAll = [-0.04, 0.16, -0.02, -0.06, -0.02, 0.52, 0.11, -0.01, 0.11, 0.05, 0.11, 0.25],
    /// The part of the statements around whose counterparts are around, by how near they are.
    Neighbours = [6.65, 6.20, 6.27, 6.87, 6.96, 6.33, 3.23, 2.94, 3.05, 3.10, 3.39, 2.87],
    /// The counterpart of the statement before is shortly before.
    Before = [-0.04, -0.49, -0.45, -0.16, -0.57, 0.44, -0.02, -0.38, -0.13, -0.12, -0.52, -0.33],
    /// The counterpart of the statement after is shortly after.
    After = [0.42, 0.16, -0.28, -0.53, 0.70, -0.03, 0.55, 0.43, 0.06, -0.10, 0.52, 0.30],
    /// Both.
    Between = [0.15, 0.21, -0.28, -0.18, -0.16, 0.27, -0.04, -0.04, -0.38, -0.27, -0.49, -0.25],
    /// It is the counterpart of another statement around that was executed as often.
    Taken = [0.09, -0.11, 0.09, -0.47, -0.27, -0.16, -0.24, -0.35, -0.25, -0.81, -0.51, -0.34],
    /// For which more speaks.
    TakenBetter = [0.08, -0.04, -0.20, 0.10, 0.12, -0.01, 0.46, 0.37, 0.40, 0.32, 0.42, 0.38],
    /// It is the counterpart of the statement before or after.
    SameMatchNext = [-0.22, -0.33, -0.24, 0.02, -0.03, -0.48, -0.27, -0.41, -0.32, -0.29, 0.02, -0.28],
    /// The part of the statements of the function that have their counterparts in the function: one third counts as all.
    Affinity = [1.25, 1.57, 1.53, 1.42, 1.57, 1.06, 1.28, 1.63, 1.63, 1.68, 1.63, 1.15],
    /// At least a third have.
    AffinityMost = [-1.85, -1.25, -1.08, -1.49, -1.23, -1.44, -1.05, -0.96, -0.96, -1.14, -1.01, -1.35],
    /// The functions have the same name. Not fitted.
    Name = [1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00],
}
