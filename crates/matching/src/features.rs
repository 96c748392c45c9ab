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
    Different = [-0.80, -0.23, -0.05, 0.00, 0.17, -0.76, -1.02, -0.43, -0.28, -0.29, -0.17, -0.89],
    /// The part of the differences between neighbours that both have, where they have no values in common.
    DifferentSteps = [1.74, 1.74, 1.65, 1.57, 1.53, 1.72, 1.50, 1.15, 1.18, 1.06, 0.87, 1.16],
    /// Both gave one value, which may be an address.
    DifferentAddress = [-1.24, -1.22, -1.22, -1.22, -1.22, -1.22, -1.97, -1.95, -1.94, -1.94, -1.94, -1.94],
    /// Whether they have values in common is not known.
    Unknown = [1.13, 1.53, 1.38, 1.50, 1.37, 1.05, 0.11, 0.43, 0.37, 0.59, 0.72, 0.23],
    /// Some values occur in both.
    Some = [0.61, 0.25, 0.37, 0.43, 0.36, 0.88, 0.47, 0.16, 0.27, 0.26, 0.18, 0.42],
    /// The part of the values that does.
    SomeFound = [0.70, 0.46, 0.61, 0.56, 0.57, 0.96, 0.16, -0.13, 0.14, 0.10, 0.12, 0.23],
    /// All values of the second occur in the first, as often at least.
    Part = [1.42, 1.25, 1.21, 1.15, 1.10, 1.27, 1.07, 0.85, 0.71, 0.56, 0.51, 0.78],
    /// The same, by how many different values there are.
    PartTelling = [2.23, 1.88, 1.82, 1.77, 1.76, 1.88, 1.32, 1.09, 0.99, 0.76, 0.88, 1.03],
    /// One sequence begins the other.
    Prefix = [1.93, 1.70, 1.96, 1.87, 1.90, 2.00, 1.20, 1.06, 1.21, 1.00, 1.14, 1.38],
    /// The same, by how many different values there are.
    PrefixTelling = [0.78, 0.68, 0.81, 0.77, 0.76, 0.81, 0.15, 0.06, 0.15, 0.07, 0.12, 0.22],
    /// The same multiset of values.
    Permuted = [-1.11, -1.11, -1.11, -1.11, -1.10, -1.14, -0.90, -0.90, -0.90, -0.90, -0.87, -0.95],
    /// The same, by how many different values there are.
    PermutedTelling = [-0.59, -0.59, -0.59, -0.59, -0.59, -0.61, -0.48, -0.48, -0.48, -0.48, -0.47, -0.51],
    /// The same sequence with a number added.
    Shifted = [1.49, 1.33, 1.31, 1.33, 1.29, 1.38, 1.56, 1.36, 1.32, 1.32, 1.36, 1.42],
    /// The same, by how many different values there are.
    ShiftedTelling = [0.49, 0.37, 0.35, 0.35, 0.33, 0.40, -0.62, -0.74, -0.78, -0.80, -0.74, -0.71],
    /// The same sequence of values.
    Same = [1.97, 1.67, 1.39, 1.40, 1.36, 1.56, 0.82, 0.49, 0.38, 0.72, 0.63, 0.69],
    /// The same, by how many different values there are.
    SameTelling = [1.95, 1.66, 1.60, 1.42, 1.29, 1.56, 1.30, 0.86, 0.88, 0.91, 0.73, 0.97],
    /// The same sequence, of more than five different values.
    SameLong = [0.43, 0.10, 0.24, -0.06, -0.25, 0.06, 0.48, -0.02, 0.14, -0.12, -0.31, 0.04],
    /// One by how many statements of the first version have this sequence of values.
    SameRare = [0.15, -0.01, 0.01, -0.13, -0.07, -0.03, 0.35, -0.03, -0.12, -0.14, -0.04, 0.02],
    /// How long both are the same in the beginning, if not throughout.
    Beginning = [0.27, 0.26, 0.30, 0.30, 0.37, 0.28, 0.01, -0.11, 0.05, -0.03, -0.03, -0.03],
    /// They are decided in the same ways.
    DecidedSome = [-0.62, -0.62, -0.62, -0.57, -0.68, -0.62, -0.17, -0.17, -0.17, -0.12, -0.23, -0.17],
    /// They are decided in the same ways, the first as often at least.
    DecidedPart = [-0.09, -0.09, -0.09, -0.10, -0.08, -0.09, 0.33, 0.33, 0.33, 0.31, 0.36, 0.33],
    /// The decisions of one begin those of the other.
    DecidedPrefix = [-0.03, -0.03, -0.03, -0.02, -0.01, -0.03, 0.26, 0.26, 0.26, 0.34, 0.19, 0.26],
    /// The same decisions in another order.
    DecidedPermuted = [-0.42, -0.42, -0.42, -0.41, -0.44, -0.42, -0.17, -0.17, -0.17, -0.15, -0.19, -0.17],
    /// The same decisions.
    DecidedSame = [0.80, 0.80, 0.80, 0.75, 0.86, 0.80, 0.69, 0.69, 0.69, 0.57, 0.82, 0.69],
    /// The same decisions, or the same in the beginning, which are not all the same.
    DecidedVaried = [-0.22, -0.22, -0.22, -0.22, -0.29, -0.22, 0.36, 0.36, 0.36, 0.38, 0.36, 0.36],
    /// The same operator; of comparisons but for negation and exchanged operands.
    SameOperator = [3.75, 3.53, 3.61, 3.62, 3.74, 3.62, 4.10, 3.79, 3.88, 4.02, 4.24, 3.92],
    /// The same operator exactly.
    ExactOperator = [0.69, 0.47, 0.55, 0.51, 0.69, 0.56, 1.29, 0.98, 1.07, 0.91, 1.43, 1.10],
    /// Loads or stores of different widths.
    OtherWidth = [3.40, 3.44, 3.43, 3.40, 3.40, 3.40, 4.73, 4.78, 4.80, 4.73, 4.73, 4.73],
    /// Different comparisons.
    OtherTest = [-2.08, -2.08, -2.08, -2.12, -2.08, -2.08, -2.28, -2.28, -2.28, -2.32, -2.28, -2.28],
    /// A comparison and a branch.
    TestAndBranch = [-0.26, -0.26, -0.26, -0.19, -0.36, -0.26, 0.31, 0.31, 0.31, 0.28, 0.03, 0.31],
    /// One loads what the other computes.
    ComputeAndLoad = [-0.64, -0.46, -0.54, -0.54, -0.54, -0.54, -0.09, 0.16, 0.03, 0.03, 0.03, 0.03],
    /// Different operators otherwise.
    OtherOperator = [0.38, 0.39, 0.39, 0.39, 0.39, 0.41, 1.43, 1.44, 1.44, 1.44, 1.44, 1.48],
    /// The same addresses.
    AddressSame = [1.09, 1.10, 1.09, 1.09, 1.09, 1.09, 1.34, 1.41, 1.29, 1.34, 1.34, 1.34],
    /// The same differences between the addresses of neighbours, of which some is not 0.
    AddressSteps = [1.33, 1.38, 1.31, 1.33, 1.33, 1.33, 1.71, 1.71, 1.75, 1.71, 1.71, 1.71],
    /// Each always accesses one address.
    AddressStepsConstant = [0.70, 0.80, 0.61, 0.70, 0.70, 0.70, 0.17, 0.13, 0.22, 0.17, 0.17, 0.17],
    /// The part of the differences between addresses that occurs in both, if they are not the same.
    AddressFound = [-0.14, 0.11, -0.38, -0.14, -0.14, -0.14, -0.31, -0.14, -0.48, -0.31, -0.31, -0.31],
    /// One accesses the stack, the other does not.
    AddressElsewhere = [-3.51, -3.41, -3.68, -3.51, -3.51, -3.51, -1.89, -1.67, -2.15, -1.89, -1.89, -1.89],
    /// The first is executed through a call that is taken as inlined.
    Inlined = [-0.36, -0.31, -0.44, -0.10, 0.02, -0.61, -0.10, -0.12, -0.36, 0.09, 0.15, -0.40],
    /// Through how many, up to eight, which count as one.
    Depth = [-0.56, -0.36, -0.81, -0.40, -0.10, -0.49, -0.87, -0.58, -1.18, -0.65, -0.22, -0.74],
    /// They add the same number to the address that they take.
    OffsetSame = [-0.38, -0.44, -0.33, -0.38, -0.38, -0.38, -1.26, -1.25, -1.29, -1.26, -1.26, -1.26],
    /// They add different numbers.
    OffsetDiffers = [-2.04, -2.13, -2.00, -2.04, -2.04, -2.04, -2.32, -2.35, -2.33, -2.32, -2.32, -2.32],
    /// Neither adds anything.
    OffsetZero = [-0.33, -0.26, -0.42, -0.33, -0.33, -0.33, -1.18, -1.26, -1.13, -1.18, -1.18, -1.18],
    /// They were executed equally often.
    CountEqual = [0.88, 0.34, 0.49, 0.51, 0.51, 1.37, 0.67, 0.19, 0.49, 0.20, 0.23, 0.94],
    /// The second was executed less often.
    CountLess = [0.39, 0.73, 0.66, 0.73, 0.81, 0.09, 0.17, 0.21, 0.41, 0.78, 0.75, -0.03],
    /// The part of the executions of the first that it has then.
    CountPart = [-0.25, -0.13, -0.08, 0.19, 0.51, -0.33, -0.38, -0.37, -0.33, -0.28, 0.03, -0.61],
    /// The second was executed more often: an optimiser hardly ever adds executions.
    CountMore = [-1.41, -1.19, -1.27, -1.36, -1.48, -1.57, -0.63, -0.18, -0.69, -0.76, -0.76, -0.71],
    /// Less one, the part of the parts of the run with executions of the second in which the first was executed, too.
    Together = [2.25, 2.20, 2.26, 2.36, 2.23, 2.24, 1.50, 1.57, 1.57, 1.52, 1.58, 1.51],
    /// How near the first executions are in the order of the first version: one half if two statements are between.
    Near2 = [-0.24, -0.22, -0.23, -0.30, -0.16, -0.14, -0.29, -0.27, -0.28, -0.36, -0.11, -0.30],
    /// One half if sixteen are.
    Near16 = [0.28, 0.35, 0.39, 0.32, 0.33, 0.37, 0.36, 0.38, 0.40, 0.30, 0.29, 0.14],
    /// One half if a hundred and twenty-eight are.
    Near128 = [1.08, 1.27, 1.48, 1.46, 1.49, 1.25, 0.75, 0.79, 0.72, 0.72, 0.58, 0.35],
    /// How near the last executions are: one half if eight statements end between.
    EndsNear = [0.66, 0.80, 0.72, 0.73, 0.98, 0.96, 0.38, 0.40, 0.23, 0.10, 0.29, 0.21],
    /// In no stretch the first is near to where it would be.
    NeverTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -1.02, -0.64, -0.59, -0.64, -0.93, -0.94],
    /// The same of tests and branches.
    NeverTogetherTest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.56, -0.56, -0.56, -0.41, -0.70, -0.56],
    /// The same, though they have more than five different values, all of them in common.
    NeverTogetherLong = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.81, 1.64, 1.46, 1.46, 1.59, 1.58],
    /// In which part of the executions in stretches the first was executed in the same stretch and gave the same value.
    StretchTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.51, 0.03, 0.22, -0.09, 0.07, 0.39],
    /// The same, by how many different values there are.
    StretchTelling = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.89, 0.52, 0.61, 0.05, -0.18, 0.81],
    /// In which part of the executions in stretches the first was the first in the stretch that gave the same value by the same operator.
    StretchEarliest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.71, 1.37, 0.59, 0.39, 0.55, 0.15],
    /// In which part it was the last.
    StretchLatest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.20, -0.40, 0.62, -0.27, -0.32, 0.37],
    /// In which part it was executed between what the executions before and after are aligned with.
    StretchWithin = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.91, -0.73, -0.89, -0.21, -0.57, 0.02],
    /// And gave the same value.
    StretchWithinSame = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.11, 0.65, 0.29, 0.37, 0.13, 0.95],
    /// How near to there: one half if eight executions are between.
    StretchNear = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.92, 1.74, 1.77, 2.33, 2.70, 2.47],
    /// In which part the alignment makes them a pair.
    StretchAligned = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.24, 1.02, 1.05, 0.71, 1.14, 0.94],
    /// In more than half.
    StretchAlignedMost = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.48, -0.63, -0.69, -0.81, -0.51, -0.79],
    /// How usual it is that an object lies so far from where it lies in the other version.
    StretchPlaced = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 3.64, 3.53, 3.81, 3.64, 3.64, 3.64],
    /// The part of the makers of operands that correspond.
    Operands = [1.63, 0.74, 1.20, 1.32, 0.91, 1.13, 1.45, 0.75, 1.04, 0.99, 0.74, 0.75],
    /// All correspond.
    OperandsAll = [0.52, -0.24, 0.33, 0.29, 0.13, -0.22, 0.45, -0.39, 0.17, 0.09, 0.06, -0.22],
    /// Operands of the first may be constants that those of the second never are.
    ConstantsMore = [-0.68, -0.37, -0.39, -0.95, -0.46, -0.64, -0.58, -0.19, -0.25, -0.78, -0.29, -0.57],
    /// The part of the users of the result that correspond.
    Users = [1.26, 0.61, 0.76, 0.06, 0.76, 1.14, 1.09, 0.09, 0.41, -0.26, 0.41, 0.74],
    /// All correspond.
    UsersAll = [0.21, 0.21, 0.25, -0.06, 0.25, 0.64, 0.49, 0.41, 0.44, 0.18, 0.44, 0.70],
    /// The part of the stores that wrote what a load reads, or of the loads that read what a store wrote, that correspond; less if only through copies.
    Written = [2.53, 3.17, 2.89, 2.53, 2.53, 2.53, 3.08, 3.45, 3.27, 3.08, 3.08, 3.08],
    /// None does.
    WrittenByOthers = [-0.82, -0.53, -1.09, -0.82, -0.82, -0.82, 0.07, 0.52, -0.22, 0.07, 0.07, 0.07],
    /// The part of the statements around whose counterparts are around, by how near they are.
    Neighbours = [5.56, 5.13, 5.14, 5.71, 6.04, 5.47, 2.76, 2.51, 2.46, 2.79, 3.17, 2.53],
    /// The counterpart of the statement before is shortly before.
    Before = [0.29, 0.04, 0.01, 0.33, -0.12, 0.22, 0.10, -0.10, 0.01, 0.35, -0.49, -0.19],
    /// The counterpart of the statement after is shortly after.
    After = [0.35, 0.22, -0.16, 0.29, 0.67, 0.53, 0.31, 0.32, 0.06, 0.35, 0.03, 0.67],
    /// Both.
    Between = [-0.32, -0.26, -0.62, -0.56, -0.70, -0.26, -0.18, -0.31, -0.35, -0.34, -0.17, -0.30],
    /// It is the counterpart of another statement around that was executed as often.
    Taken = [-0.15, -0.33, -0.54, -0.50, -0.54, -0.59, -0.28, -0.59, -0.47, -0.70, -0.55, -0.41],
    /// For which more speaks.
    TakenBetter = [-0.03, 0.13, 0.19, 0.01, -0.04, -0.10, 0.06, -0.05, 0.26, 0.05, 0.14, 0.14],
    /// It is the counterpart of the statement before or after.
    SameMatchNext = [0.31, 0.04, 0.46, 0.26, 0.35, 0.02, 0.04, 0.08, -0.01, -0.13, 0.36, -0.04],
    /// The part of the statements of the function that have their counterparts in the function: one third counts as all.
    Affinity = [2.19, 2.06, 2.40, 2.28, 2.41, 2.02, 2.69, 2.75, 2.94, 2.62, 2.75, 2.48],
    /// At least a third have.
    AffinityMost = [-1.49, -1.39, -1.05, -1.29, -1.06, -1.36, -1.86, -1.88, -1.77, -2.00, -1.75, -1.96],
    /// The functions have the same name. Not fitted.
    Name = [1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00],
}
