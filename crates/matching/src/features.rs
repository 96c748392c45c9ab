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
    Different = [-0.64, -0.33, -0.11, 0.44, 0.52, -0.32, -1.10, -0.41, -0.28, -0.08, 0.22, -0.37],
    /// The part of the differences between neighbours that both have, where they have no values in common.
    DifferentSteps = [1.41, 0.97, 1.16, 1.16, 1.02, 1.21, 1.58, 0.69, 0.93, 0.80, 0.55, 0.92],
    /// Both gave one value, which may be an address.
    DifferentAddress = [-1.52, -1.51, -1.51, -1.50, -1.50, -1.51, -3.57, -3.59, -3.60, -3.56, -3.56, -3.54],
    /// Whether they have values in common is not known.
    Unknown = [0.47, 0.20, 0.52, 0.50, 0.56, 0.16, 0.05, -0.43, 0.10, -0.09, 0.13, -0.48],
    /// Some values occur in both.
    Some = [0.63, 0.43, 0.40, 0.49, 0.71, 0.84, 0.05, -0.42, -0.40, -0.30, -0.13, -0.05],
    /// The part of the values that does.
    SomeFound = [1.08, 1.00, 0.86, 1.02, 1.06, 1.36, 1.14, 1.28, 0.99, 1.05, 1.14, 1.31],
    /// All values of the second occur in the first, as often at least.
    Part = [2.58, 2.24, 2.45, 2.16, 2.27, 2.06, 1.42, 1.13, 1.29, 0.87, 0.98, 0.90],
    /// The same, by how many different values there are.
    PartTelling = [1.05, 0.72, 0.88, 0.55, 0.36, 0.57, 1.26, 1.16, 1.15, 0.63, 0.57, 0.83],
    /// One sequence begins the other.
    Prefix = [1.62, 1.82, 1.66, 1.52, 1.11, 2.01, 1.01, 1.03, 0.87, 1.22, 0.56, 1.33],
    /// The same, by how many different values there are.
    PrefixTelling = [1.20, 1.25, 1.22, 1.14, 0.98, 1.33, 0.65, 0.60, 0.56, 0.68, 0.40, 0.73],
    /// The same multiset of values.
    Permuted = [-1.61, -1.61, -1.61, -1.61, -1.61, -1.64, -1.66, -1.66, -1.66, -1.66, -1.67, -1.69],
    /// The same, by how many different values there are.
    PermutedTelling = [-1.17, -1.16, -1.16, -1.16, -1.16, -1.18, -1.28, -1.27, -1.28, -1.28, -1.28, -1.29],
    /// The same sequence with a number added.
    Shifted = [1.47, 1.40, 1.27, 1.31, 1.29, 1.37, 2.27, 2.11, 2.04, 2.16, 2.24, 2.18],
    /// The same, by how many different values there are.
    ShiftedTelling = [0.90, 0.88, 0.74, 0.77, 0.75, 0.82, -0.86, -0.90, -1.00, -0.88, -0.79, -0.86],
    /// The same sequence of values.
    Same = [1.94, 2.46, 1.85, 1.57, 1.37, 1.77, 0.58, 1.17, 0.46, 0.61, 0.55, 0.69],
    /// The same, by how many different values there are.
    SameTelling = [1.67, 1.68, 1.40, 1.20, 1.04, 1.33, 1.20, 1.24, 0.78, 0.84, 0.80, 0.94],
    /// The same sequence, of more than five different values.
    SameLong = [0.57, 0.23, 0.27, 0.10, -0.01, 0.20, 0.71, 0.45, 0.29, 0.20, 0.16, 0.35],
    /// One by how many statements of the first version have this sequence of values.
    SameRare = [0.83, 0.65, 0.66, 0.52, 0.51, 0.62, 1.25, 0.86, 0.73, 0.56, 0.69, 0.82],
    /// How long both are the same in the beginning, if not throughout.
    Beginning = [-0.07, -0.06, -0.05, -0.12, 0.02, -0.07, -0.09, -0.12, -0.07, -0.12, 0.13, -0.06],
    /// They are decided in the same ways.
    DecidedSome = [-0.64, -0.64, -0.64, -0.65, -0.64, -0.64, -0.62, -0.62, -0.62, -0.55, -0.70, -0.62],
    /// They are decided in the same ways, the first as often at least.
    DecidedPart = [0.42, 0.42, 0.42, 0.43, 0.42, 0.42, 0.41, 0.41, 0.41, 0.45, 0.38, 0.41],
    /// The decisions of one begin those of the other.
    DecidedPrefix = [0.14, 0.14, 0.14, 0.16, 0.12, 0.14, 0.21, 0.21, 0.21, 0.13, 0.28, 0.21],
    /// The same decisions in another order.
    DecidedPermuted = [-0.74, -0.74, -0.74, -0.73, -0.77, -0.74, -0.71, -0.71, -0.71, -0.70, -0.74, -0.71],
    /// The same decisions.
    DecidedSame = [0.45, 0.45, 0.45, 0.42, 0.49, 0.45, 0.65, 0.65, 0.65, 0.62, 0.73, 0.65],
    /// The same decisions, or the same in the beginning, which are not all the same.
    DecidedVaried = [1.45, 1.45, 1.45, 1.38, 1.55, 1.45, 0.79, 0.79, 0.79, 0.80, 0.78, 0.79],
    /// The same operator; of comparisons but for negation and exchanged operands.
    SameOperator = [2.80, 2.77, 2.64, 2.53, 3.17, 2.89, 3.02, 2.70, 2.59, 1.63, 3.29, 2.85],
    /// The same operator exactly.
    ExactOperator = [0.83, 0.80, 0.68, 0.56, 1.21, 0.92, 1.30, 0.98, 0.87, 0.50, 1.56, 1.13],
    /// Loads or stores of different widths.
    OtherWidth = [2.12, 2.07, 2.26, 2.12, 2.12, 2.12, 2.91, 2.69, 3.09, 2.91, 2.91, 2.91],
    /// Different comparisons.
    OtherTest = [-1.61, -1.61, -1.61, -1.65, -1.61, -1.61, -1.73, -1.73, -1.73, -1.77, -1.73, -1.73],
    /// A comparison and a branch.
    TestAndBranch = [1.39, 1.39, 1.39, 1.67, 0.99, 1.39, 1.67, 1.67, 1.67, 2.85, 1.15, 1.67],
    /// One loads what the other computes.
    ComputeAndLoad = [-2.27, -2.09, -2.16, -2.16, -2.16, -2.16, -0.97, -0.36, -0.65, -0.65, -0.65, -0.65],
    /// Different operators otherwise.
    OtherOperator = [0.01, -0.10, -0.10, -0.10, -0.10, -0.20, 1.14, 1.06, 1.06, 1.06, 1.06, 0.98],
    /// The same addresses.
    AddressSame = [0.75, 0.69, 0.81, 0.75, 0.75, 0.75, 0.70, 0.73, 0.69, 0.70, 0.70, 0.70],
    /// The same differences between the addresses of neighbours, of which some is not 0.
    AddressSteps = [1.83, 1.81, 1.90, 1.83, 1.83, 1.83, 2.37, 2.39, 2.40, 2.37, 2.37, 2.37],
    /// Each always accesses one address.
    AddressStepsConstant = [1.18, 1.38, 1.00, 1.18, 1.18, 1.18, 0.34, 0.58, 0.10, 0.34, 0.34, 0.34],
    /// The part of the differences between addresses that occurs in both, if they are not the same.
    AddressFound = [-0.34, -0.25, -0.47, -0.34, -0.34, -0.34, -0.68, -0.76, -0.65, -0.68, -0.68, -0.68],
    /// One accesses the stack, the other does not.
    AddressElsewhere = [-3.99, -3.85, -4.21, -3.99, -3.99, -3.99, -3.35, -3.25, -3.47, -3.35, -3.35, -3.35],
    /// The first is executed through a call that is taken as inlined.
    Inlined = [-0.25, 0.29, -0.60, 0.20, 0.13, -0.59, 0.03, 0.70, -0.37, 0.63, 0.55, -0.66],
    /// Through how many, up to eight, which count as one.
    Depth = [-0.18, -0.04, -0.36, -0.28, -0.37, -0.26, -0.81, -1.03, -1.36, -0.70, -0.84, -0.94],
    /// They add the same number to the address that they take.
    OffsetSame = [0.65, 0.60, 0.67, 0.65, 0.65, 0.65, -0.83, -0.95, -0.80, -0.83, -0.83, -0.83],
    /// They add different numbers.
    OffsetDiffers = [-1.23, -1.33, -1.19, -1.23, -1.23, -1.23, -1.98, -2.13, -1.96, -1.98, -1.98, -1.98],
    /// Neither adds anything.
    OffsetZero = [0.84, 0.91, 0.78, 0.84, 0.84, 0.84, -0.65, -0.66, -0.68, -0.65, -0.65, -0.65],
    /// They were executed equally often.
    CountEqual = [-0.71, -1.41, -0.82, -0.85, -1.06, 0.20, -0.16, -0.89, -0.28, -0.45, -0.60, 0.42],
    /// The second was executed less often.
    CountLess = [-0.97, -0.40, -0.79, -0.69, -0.63, -1.03, -0.94, -0.29, -0.84, -0.50, -0.25, -1.11],
    /// The part of the executions of the first that it has then.
    CountPart = [-0.87, -0.76, -0.53, -0.55, -0.22, -1.08, -0.53, -0.80, -0.55, -0.42, -0.05, -0.86],
    /// The second was executed more often: an optimiser hardly ever adds executions.
    CountMore = [0.21, 0.33, 0.12, 0.05, 0.19, -0.66, 0.61, 0.71, 0.58, 0.43, 0.37, 0.18],
    /// Less one, the part of the parts of the run with executions of the second in which the first was executed, too.
    Together = [2.28, 2.30, 2.25, 2.43, 2.34, 2.12, 0.65, 0.83, 0.56, 0.71, 0.79, 0.32],
    /// How near the first executions are in the order of the first version: one half if two statements are between.
    Near2 = [-0.71, -0.83, -0.72, -0.82, -0.55, -0.58, -0.15, -0.23, -0.34, -0.27, 0.05, -0.18],
    /// One half if sixteen are.
    Near16 = [-0.10, -0.21, 0.12, -0.10, -0.13, 0.05, -0.24, -0.48, -0.33, -0.20, -0.10, -0.36],
    /// One half if a hundred and twenty-eight are.
    Near128 = [1.66, 1.40, 2.16, 1.66, 1.52, 1.44, 0.73, 0.22, 0.73, 0.60, 0.66, 0.43],
    /// How near the last executions are: one half if eight statements end between.
    EndsNear = [0.65, 0.56, 0.57, 0.70, 0.69, 0.86, 0.65, 0.59, 0.34, 0.55, 0.58, 0.42],
    /// In no stretch the first is near to where it would be.
    NeverTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.97, -0.97, -0.69, -0.84, -0.84, -0.78],
    /// The same of tests and branches.
    NeverTogetherTest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.83, -0.83, -0.83, -0.83, -0.84, -0.83],
    /// The same, though they have more than five different values, all of them in common.
    NeverTogetherLong = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.75, 1.65, 1.48, 1.50, 1.48, 1.53],
    /// In which part of the executions in stretches the first was executed in the same stretch and gave the same value.
    StretchTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.44, 0.25, 0.08, -0.14, 0.12, 0.39],
    /// The same, by how many different values there are.
    StretchTelling = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.68, 0.63, 0.56, -0.43, -0.56, 0.96],
    /// In which part of the executions in stretches the first was the first in the stretch that gave the same value by the same operator.
    StretchEarliest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.85, 1.85, 0.84, 0.72, 0.62, -0.07],
    /// In which part it was the last.
    StretchLatest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.32, -0.55, 0.75, -0.24, -0.29, 0.29],
    /// In which part it was executed between what the executions before and after are aligned with.
    StretchWithin = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -1.10, -0.86, -1.05, -0.40, -0.85, -0.29],
    /// And gave the same value.
    StretchWithinSame = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.41, 1.37, 0.57, 0.61, 0.23, 1.30],
    /// How near to there: one half if eight executions are between.
    StretchNear = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 2.10, 2.22, 1.70, 1.74, 2.72, 2.49],
    /// In which part the alignment makes them a pair.
    StretchAligned = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.18, 0.63, 1.13, 1.03, 1.02, 1.07],
    /// In more than half.
    StretchAlignedMost = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.50, -0.88, -0.37, -0.54, -0.54, -0.75],
    /// How usual it is that an object lies so far from where it lies in the other version.
    StretchPlaced = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 4.61, 4.59, 4.71, 4.61, 4.61, 4.61],
    /// The part of the makers of operands that correspond.
    Operands = [2.28, 1.50, 2.09, 1.85, 0.98, 1.70, 2.03, 1.30, 1.80, 1.73, 0.74, 0.92],
    /// All correspond.
    OperandsAll = [0.15, -0.34, 0.50, -0.04, 0.14, -0.33, 0.40, -0.22, 0.27, -0.26, 0.39, -0.28],
    /// Operands of the first may be constants that those of the second never are.
    ConstantsMore = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00],
    /// The part of the users of the result that correspond.
    Users = [1.54, 0.72, 1.05, 0.56, 1.05, 1.39, 1.35, 0.08, 0.68, 0.34, 0.68, 0.95],
    /// All correspond.
    UsersAll = [0.16, 0.35, 0.32, 0.09, 0.32, 0.68, 0.24, 0.41, 0.40, 0.36, 0.40, 0.65],
    /// The part of the stores that wrote what a load reads, or of the loads that read what a store wrote, that correspond; less if only through copies.
    Written = [0.00, 1.00, 1.00, 0.00, 0.00, 0.00, 0.00, 1.50, 1.00, 0.00, 0.00, 0.00],
    /// None does.
    WrittenByOthers = [0.00, -0.50, -0.50, 0.00, 0.00, 0.00, 0.00, -1.00, -0.50, 0.00, 0.00, 0.00],
    /// The part of the statements around whose counterparts are around, by how near they are.
    Neighbours = [4.81, 4.46, 4.37, 4.79, 4.52, 4.57, 2.06, 1.70, 1.52, 1.69, 2.07, 1.52],
    /// The counterpart of the statement before is shortly before.
    Before = [0.31, 0.05, 0.19, -0.13, -0.14, 0.14, 0.12, -0.44, -0.15, -0.56, -0.34, -0.32],
    /// The counterpart of the statement after is shortly after.
    After = [0.48, 0.31, -0.14, 0.62, 0.38, 0.62, 0.29, -0.05, -0.01, 0.26, 0.02, 0.51],
    /// Both.
    Between = [-0.02, -0.04, -0.65, -0.24, 0.02, 0.10, 0.06, 0.53, -0.32, 0.02, -0.04, 0.05],
    /// It is the counterpart of another statement around that was executed as often.
    Taken = [0.09, -0.29, -0.18, -0.11, -0.03, -0.07, -0.05, -0.32, -0.03, -0.29, -0.57, -0.08],
    /// For which more speaks.
    TakenBetter = [0.09, 0.04, 0.23, 0.11, 0.12, 0.11, 0.17, 0.08, 0.39, -0.22, 0.22, 0.22],
    /// It is the counterpart of the statement before or after.
    SameMatchNext = [0.31, -0.03, 0.00, 0.47, 0.19, -0.13, -0.18, -0.48, -0.07, -0.29, -0.35, -0.38],
    /// The part of the statements of the function that have their counterparts in the function: one third counts as all.
    Affinity = [1.40, 1.29, 1.73, 1.18, 1.18, 1.14, 2.05, 1.55, 2.34, 1.64, 1.65, 1.46],
    /// At least a third have.
    AffinityMost = [-0.57, -0.27, 0.22, -0.20, -0.07, -0.21, -0.84, -0.69, -0.24, -0.74, -0.54, -0.56],
    /// The functions have the same name. Not fitted.
    Name = [1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00],
}
