//! What speaks for a pair of statements, as numbers, and for how much each counts.
//!
//! The weights were not chosen but fitted: such that of the candidates of a statement, with probabilities that are proportional to the exponentials of their weighted sums, the right ones are as likely as possible
//! (conditional logit, McFadden 1974), by the line tables of bzip2, Lua, QuickJS, SQLite and zstd at -O2, which the matching itself never sees: `bench fitting` does it again. That of [`Feature::AddressElsewhere`] came later, and was chosen. `docs/lessons.md` tells how well
//! weights do on programs that they were not fitted to.

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
    Different = [-0.74, -0.66, -0.80, -0.16, 0.44, -0.72, -0.91, -0.52, -0.64, -0.02, 0.36, -0.44],
    /// The part of the differences between neighbours that both have, where they have no values in common.
    DifferentSteps = [0.99, 1.30, 1.08, 1.16, 1.24, 1.49, 1.00, 0.92, 0.94, 0.97, 1.03, 1.11],
    /// Both gave one value, which may be an address.
    DifferentAddress = [-2.28, -2.28, -2.27, -2.26, -2.26, -2.26, -2.10, -2.06, -2.06, -2.06, -2.06, -2.06],
    /// Whether they have values in common is not known.
    Unknown = [0.67, 0.37, 0.79, 1.29, 1.17, 0.50, 0.23, 0.24, 0.26, 0.73, 0.75, 0.28],
    /// Some values occur in both.
    Some = [0.43, 0.25, 0.29, 0.31, 0.35, 0.68, 0.56, 0.44, 0.38, 0.44, 0.43, 0.61],
    /// The part of the values that does.
    SomeFound = [0.51, 0.36, 0.45, 0.42, 0.46, 1.00, 0.03, -0.19, -0.24, -0.17, -0.16, 0.05],
    /// All values of the second occur in the first, as often at least.
    Part = [1.74, 1.92, 1.77, 1.35, 1.05, 1.23, 0.79, 0.83, 0.69, 0.13, 0.00, 0.44],
    /// The same, by how many different values there are.
    PartTelling = [2.16, 2.17, 2.12, 1.69, 1.57, 1.66, 2.27, 2.06, 2.10, 1.75, 1.60, 1.88],
    /// One sequence begins the other.
    Prefix = [2.94, 3.12, 3.06, 2.61, 2.24, 2.85, 1.63, 1.30, 1.55, 1.10, 1.04, 1.29],
    /// The same, by how many different values there are.
    PrefixTelling = [0.10, 0.15, 0.12, -0.04, -0.20, 0.05, 0.38, 0.26, 0.34, 0.16, 0.11, 0.24],
    /// The same multiset of values.
    Permuted = [0.07, 0.07, 0.07, 0.07, 0.08, 0.07, 0.16, 0.16, 0.16, 0.15, 0.17, 0.16],
    /// The same, by how many different values there are.
    PermutedTelling = [-0.06, -0.06, -0.06, -0.07, -0.06, -0.06, -0.14, -0.14, -0.14, -0.15, -0.13, -0.14],
    /// The same sequence with a number added.
    Shifted = [1.52, 1.59, 1.57, 1.46, 1.27, 1.44, 1.34, 1.36, 1.34, 1.25, 1.10, 1.25],
    /// The same, by how many different values there are.
    ShiftedTelling = [0.40, 0.48, 0.45, 0.37, 0.18, 0.33, -0.39, -0.35, -0.37, -0.44, -0.59, -0.46],
    /// The same sequence of values.
    Same = [2.70, 2.56, 2.48, 2.10, 2.00, 2.29, 1.81, 1.64, 1.61, 1.56, 1.17, 1.52],
    /// The same, by how many different values there are.
    SameTelling = [1.40, 1.18, 1.08, 0.87, 0.69, 1.01, -0.01, -0.32, -0.40, -0.50, -0.70, -0.40],
    /// The same sequence, of more than five different values.
    SameLong = [0.59, 0.31, 0.26, 0.14, 0.00, 0.26, 1.15, 0.80, 0.71, 0.58, 0.53, 0.77],
    /// One by how many statements of the first version have this sequence of values.
    SameRare = [0.13, 0.07, 0.10, -0.10, -0.11, 0.01, 0.68, 0.50, 0.50, 0.29, 0.38, 0.46],
    /// How long both are the same in the beginning, if not throughout.
    Beginning = [0.99, 0.95, 0.94, 1.02, 0.99, 0.96, 0.11, 0.06, 0.07, 0.10, 0.10, 0.09],
    /// They are decided in the same ways.
    DecidedSome = [-0.74, -0.74, -0.74, -0.74, -0.76, -0.74, -0.30, -0.30, -0.30, -0.26, -0.33, -0.30],
    /// They are decided in the same ways, the first as often at least.
    DecidedPart = [-0.15, -0.15, -0.15, -0.20, -0.11, -0.15, 0.29, 0.29, 0.29, 0.27, 0.32, 0.29],
    /// The decisions of one begin those of the other.
    DecidedPrefix = [0.06, 0.06, 0.06, 0.10, 0.04, 0.06, 0.45, 0.45, 0.45, 0.51, 0.42, 0.45],
    /// The same decisions in another order.
    DecidedPermuted = [-0.64, -0.64, -0.64, -0.63, -0.65, -0.64, -0.45, -0.45, -0.45, -0.44, -0.46, -0.45],
    /// The same decisions.
    DecidedSame = [0.69, 0.69, 0.69, 0.69, 0.71, 0.69, 0.31, 0.31, 0.31, 0.26, 0.40, 0.31],
    /// The same decisions, or the same in the beginning, which are not all the same.
    DecidedVaried = [-0.44, -0.44, -0.44, -0.45, -0.44, -0.44, 0.23, 0.23, 0.23, 0.26, 0.20, 0.23],
    /// The same operator; of comparisons but for negation and exchanged operands.
    SameOperator = [2.14, 2.07, 2.07, 2.45, 1.63, 2.11, 4.67, 4.53, 4.59, 4.67, 4.66, 4.62],
    /// The same operator exactly.
    ExactOperator = [0.19, 0.12, 0.12, 0.43, -0.32, 0.17, 1.58, 1.44, 1.49, 1.50, 1.57, 1.52],
    /// Loads or stores of different widths.
    OtherWidth = [-0.32, -0.33, -0.31, -0.32, -0.32, -0.32, 4.16, 4.24, 4.20, 4.16, 4.16, 4.16],
    /// Different comparisons.
    OtherTest = [-2.87, -2.87, -2.87, -2.92, -2.87, -2.87, -2.21, -2.21, -2.21, -2.25, -2.21, -2.21],
    /// A comparison and a branch.
    TestAndBranch = [2.33, 2.33, 2.33, 2.01, 2.79, 2.33, -0.50, -0.50, -0.50, -0.49, -0.51, -0.50],
    /// One loads what the other computes.
    ComputeAndLoad = [-3.59, -3.48, -3.50, -3.50, -3.50, -3.50, -2.00, -1.94, -1.95, -1.95, -1.95, -1.95],
    /// Different operators otherwise.
    OtherOperator = [-1.59, -1.61, -1.61, -1.61, -1.61, -1.66, 1.00, 0.98, 0.98, 0.98, 0.98, 0.98],
    /// The same addresses.
    AddressSame = [1.03, 1.02, 1.06, 1.03, 1.03, 1.03, 1.03, 1.03, 1.05, 1.03, 1.03, 1.03],
    /// The same differences between the addresses of neighbours, of which some is not 0.
    AddressSteps = [2.02, 2.02, 2.06, 2.02, 2.02, 2.02, 1.15, 1.12, 1.20, 1.15, 1.15, 1.15],
    /// Each always accesses one address.
    AddressStepsConstant = [1.54, 1.70, 1.41, 1.54, 1.54, 1.54, 0.87, 0.90, 0.86, 0.87, 0.87, 0.87],
    /// The part of the differences between addresses that occurs in both, if they are not the same.
    AddressFound = [0.92, 1.13, 0.74, 0.92, 0.92, 0.92, 0.53, 0.72, 0.35, 0.53, 0.53, 0.53],
    /// One accesses the stack, the other does not.
    AddressElsewhere = [-6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00, -6.00],
    /// They add the same number to the address that they take.
    OffsetSame = [1.44, 1.51, 1.40, 1.44, 1.44, 1.44, 0.81, 0.93, 0.71, 0.81, 0.81, 0.81],
    /// They add different numbers.
    OffsetDiffers = [-1.48, -1.56, -1.43, -1.48, -1.48, -1.48, -1.16, -1.20, -1.13, -1.16, -1.16, -1.16],
    /// Neither adds anything.
    OffsetZero = [0.38, 0.39, 0.37, 0.38, 0.38, 0.38, 0.73, 0.66, 0.82, 0.73, 0.73, 0.73],
    /// They were executed equally often.
    CountEqual = [1.01, 0.55, 0.58, 0.76, 0.69, 1.33, 1.09, 1.00, 0.95, 0.98, 1.04, 1.43],
    /// The second was executed less often.
    CountLess = [0.57, 1.09, 1.02, 0.87, 0.94, 0.54, 1.06, 1.23, 1.28, 1.25, 1.28, 0.96],
    /// The part of the executions of the first that it has then.
    CountPart = [0.41, 0.27, 0.38, 0.43, 0.70, 0.15, 0.09, 0.16, 0.25, 0.09, 0.11, -0.13],
    /// The second was executed more often: an optimiser hardly ever adds executions.
    CountMore = [-2.55, -2.61, -2.58, -2.61, -2.60, -2.86, -1.56, -1.66, -1.67, -1.65, -1.73, -1.82],
    /// Less one, the part of the parts of the run with executions of the second in which the first was executed, too.
    Together = [5.90, 5.97, 5.96, 5.96, 5.97, 5.94, 2.64, 2.72, 2.73, 2.74, 2.74, 2.71],
    /// How near the first executions are in the order of the first version: one half if two statements are between.
    Near2 = [-1.24, -1.26, -1.36, -1.47, -1.22, -1.23, -0.48, -0.55, -0.65, -0.82, -0.62, -0.69],
    /// One half if sixteen are.
    Near16 = [1.68, 1.68, 1.71, 1.54, 1.62, 1.77, 0.85, 0.60, 0.68, 0.53, 0.55, 0.43],
    /// One half if a hundred and twenty-eight are.
    Near128 = [0.31, -0.15, 0.39, -0.10, -0.01, 0.20, 0.69, 0.22, 0.47, 0.24, 0.22, 0.07],
    /// How near the last executions are: one half if eight statements end between.
    EndsNear = [1.03, 1.30, 1.45, 1.27, 1.20, 1.46, 0.38, 0.75, 0.57, 0.34, 0.32, 0.22],
    /// In no stretch the first is near to where it would be.
    NeverTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.99, -0.63, -0.72, -0.85, -0.96, -1.02],
    /// The same of tests and branches.
    NeverTogetherTest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -1.30, -1.30, -1.30, -1.28, -1.39, -1.30],
    /// The same, though they have more than five different values, all of them in common.
    NeverTogetherLong = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 3.12, 3.09, 3.01, 3.05, 3.04, 3.05],
    /// In which part of the executions in stretches the first was executed in the same stretch and gave the same value.
    StretchTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.64, 1.64, 1.70, 0.71, 0.60, 1.63],
    /// The same, by how many different values there are.
    StretchTelling = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.62, 0.56, 0.51, 0.19, -0.03, 0.69],
    /// In which part it was executed between what the executions before and after are aligned with.
    StretchWithin = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.61, -0.19, -0.55, -0.12, -0.14, 0.22],
    /// And gave the same value.
    StretchWithinSame = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.30, 0.47, 0.09, 0.12, 0.31, 0.83],
    /// How near to there: one half if eight executions are between.
    StretchNear = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 2.63, 2.85, 2.68, 3.35, 3.69, 3.35],
    /// In which part the alignment makes them a pair.
    StretchAligned = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.75, 0.91, 0.74, 0.78, 0.81, 0.57],
    /// In more than half.
    StretchAlignedMost = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.68, -0.61, -0.73, -0.67, -0.69, -0.99],
    /// How usual it is that an object lies so far from where it lies in the other version.
    StretchPlaced = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 5.15, 5.19, 5.21, 5.15, 5.15, 5.15],
    /// The part of the makers of operands that correspond.
    Operands = [2.32, 1.94, 2.25, 2.16, 0.83, 1.77, 1.93, 1.53, 1.80, 1.48, 0.65, 0.89],
    /// All correspond.
    OperandsAll = [0.04, -0.16, 0.26, 0.29, -0.24, -0.28, 0.48, 0.33, 0.47, 0.52, 0.16, -0.22],
    /// The part of the users of the result that correspond.
    Users = [1.29, 1.62, 1.42, 0.94, 1.42, 1.85, 1.22, 0.98, 0.93, 0.31, 0.93, 1.21],
    /// All correspond.
    UsersAll = [-0.12, 0.15, 0.12, 0.03, 0.12, 0.41, -0.07, 0.12, 0.12, 0.06, 0.12, 0.39],
    /// The part of the statements around whose counterparts are around, by how near they are.
    Neighbours = [6.20, 5.57, 5.88, 6.03, 6.05, 5.81, 3.09, 2.78, 3.08, 3.14, 3.54, 2.74],
    /// The counterpart of the statement before is shortly before.
    Before = [-0.06, -0.37, -0.07, -0.15, -0.21, -0.24, 0.25, -0.11, 0.33, 0.26, -0.34, -0.44],
    /// The counterpart of the statement after is shortly after.
    After = [0.07, 0.05, -0.36, -0.58, 0.00, -0.06, 0.70, 0.43, -0.02, 0.13, 0.43, 0.38],
    /// Both.
    Between = [0.02, 0.21, 0.07, -0.09, 0.43, 0.15, -0.38, -0.34, -0.44, -0.71, -0.76, -0.70],
    /// It is the counterpart of another statement around that was executed as often.
    Taken = [0.08, -0.15, 0.14, -0.23, -0.16, -0.11, -0.30, -0.54, -0.69, -0.92, -0.86, -0.59],
    /// For which more speaks.
    TakenBetter = [-0.19, -0.30, -0.26, -0.25, -0.48, -0.34, 0.32, 0.28, 0.16, 0.31, 0.41, 0.30],
    /// It is the counterpart of the statement before or after.
    SameMatchNext = [-0.38, -0.72, -0.66, -0.81, -0.95, -0.87, -0.27, -0.51, -0.60, -0.49, -0.45, -0.51],
    /// The part of the statements of the function that have their counterparts in the function: one third counts as all.
    Affinity = [0.97, 0.91, 1.27, 1.07, 1.21, 1.04, 0.76, 0.87, 1.09, 0.92, 0.90, 0.76],
    /// At least a third have.
    AffinityMost = [-1.02, -0.83, -0.79, -0.92, -0.83, -0.89, -0.82, -0.97, -0.90, -0.99, -1.00, -0.89],
    /// The functions have the same name. Not fitted.
    Name = [1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00],
}
