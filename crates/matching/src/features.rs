//! Lists the features that are evidence for a pair of statements, with their weights.
//!
//! The weights were fitted, not chosen. The probability of a candidate is proportional to the
//! exponential of the weighted sum of its features. The weights make the right candidates as likely
//! as possible (conditional logit, McFadden 1974). The right candidates come from the line tables
//! of nine programs at -O2, which the matching itself never reads. These are all programs in the
//! first table of `docs/CORPUS.md` that are built in several versions, except regex.
//! `bench fitting` repeats the fit. `docs/lessons/matching.md` reports how well the weights work on
//! programs outside the fit.

use crate::Class;

/// The stage of matching, which determines the weights. The stages differ in whether corresponding
/// stretches are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Only the actions of the statements over the whole run are known.
    Wholes,
    /// The actions of the statements in corresponding stretches of both runs are also known.
    Regions,
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $weights:expr,)*) => {
        /// A kind of evidence for or against a pair of statements, one from each version. Most
        /// values are from 0 to 1.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[$doc])* $name,)* }

        impl Feature {
            /// All features.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        /// The weights, by stage and kind.
        #[allow(clippy::approx_constant, reason = "a fitted weight may happen to be 3.14")]
        const FITTED: [[f32; COLUMNS]; [$(Feature::$name),*].len()] = [$($weights),*];
    };
}

/// The number of kinds of statements. Kinds differ in the features that identify a statement.
pub const KINDS: usize = 6;

/// The number of columns, which is the number of stages times the number of kinds.
const COLUMNS: usize = 2 * KINDS;

/// The weight of each feature, for statements of a kind, at a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Column([f32; FITTED.len()]);

impl Column {
    /// Returns the weight of a feature.
    #[inline(always)]
    pub fn of(&self, feature: Feature) -> f32 {
        self.0[feature as usize]
    }
}

/// The weights of all features.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights([Column; COLUMNS]);

impl Weights {
    /// Creates weights by column and feature. There is a column for each kind without known
    /// stretches, followed by a column for each kind with known stretches.
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

    /// Returns the weights in a column.
    pub fn column(&self, column: usize) -> &Column {
        &self.0[column]
    }

    /// Returns the weights for statements of a class.
    pub fn of(&self, stage: Stage, class: Class) -> &Column {
        &self.0[column(stage, class)]
    }
}

impl Default for Weights {
    /// Returns the fitted weights.
    fn default() -> Self {
        Self::new(|column, feature| FITTED[feature as usize][column])
    }
}

/// Returns the column with the weights for statements of a class.
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

// The columns are computations, loads, stores, tests, branches and the rest, first without and then
// with known stretches.
features! {
    /// Neither the values of the two statements nor the differences between neighbouring values
    /// have anything in common.
    Different = [0.03, -0.23, -0.08, 0.19, 0.24, -0.61, -0.12, -0.25, -0.13, -0.08, 0.06, -0.65],
    /// The share of the differences between neighbouring values that both statements have, if they
    /// have no values in common.
    DifferentSteps = [0.04, 0.81, 0.61, 0.56, 0.49, 0.66, -0.33, 0.39, 0.18, 0.23, 0.02, 0.22],
    /// The second statement has only one value, the values of both statements may be addresses, and
    /// they differ.
    DifferentAddress = [-1.23, -1.21, -1.21, -1.21, -1.21, -1.21, -2.01, -2.01, -1.99, -1.99, -1.99, -1.99],
    /// It is unknown whether the two statements have values in common.
    Unknown = [0.16, 0.45, 0.34, 0.51, 0.60, 0.29, -0.11, -0.01, 0.02, 0.08, 0.26, -0.03],
    /// Some values occur in both statements.
    Some = [0.65, 0.27, 0.55, 0.45, 0.38, 0.97, 0.34, -0.02, 0.16, 0.06, 0.01, 0.42],
    /// The share of the values that occur in both statements.
    SomeFound = [0.77, 0.52, 0.77, 0.67, 0.68, 1.03, 0.45, 0.21, 0.44, 0.33, 0.39, 0.53],
    /// All values of the second statement occur in the first at least as often.
    Part = [2.27, 1.99, 1.95, 1.84, 1.85, 1.88, 1.59, 1.34, 1.19, 1.10, 1.09, 1.13],
    /// The feature `Part`, scaled by the number of different values.
    PartTelling = [1.01, 0.74, 0.76, 0.68, 0.66, 0.73, 0.61, 0.43, 0.38, 0.23, 0.27, 0.32],
    /// One sequence of values is the beginning of the other.
    Prefix = [1.79, 1.75, 1.86, 1.60, 1.56, 1.78, 1.49, 1.42, 1.54, 1.27, 1.29, 1.44],
    /// The feature `Prefix`, scaled by the number of different values.
    PrefixTelling = [0.74, 0.72, 0.76, 0.63, 0.58, 0.72, -0.33, -0.39, -0.32, -0.47, -0.50, -0.37],
    /// Both statements have the same multiset of values.
    Permuted = [-0.29, -0.29, -0.29, -0.29, -0.29, -0.30, -0.14, -0.14, -0.14, -0.14, -0.12, -0.15],
    /// The feature `Permuted`, scaled by the number of different values.
    PermutedTelling = [-0.23, -0.23, -0.23, -0.23, -0.23, -0.24, -0.37, -0.37, -0.37, -0.37, -0.36, -0.37],
    /// Both statements have the same sequence of values, except for an added constant.
    Shifted = [1.92, 1.79, 1.71, 1.73, 1.67, 1.78, 1.93, 1.76, 1.75, 1.71, 1.80, 1.81],
    /// The feature `Shifted`, scaled by the number of different values.
    ShiftedTelling = [0.37, 0.25, 0.20, 0.22, 0.18, 0.26, -0.78, -0.89, -0.90, -0.92, -0.81, -0.84],
    /// Both statements have the same sequence of values.
    Same = [1.76, 1.34, 1.20, 1.24, 1.23, 1.40, 0.93, 0.54, 0.51, 0.81, 0.68, 0.92],
    /// The feature `Same`, scaled by the number of different values.
    SameTelling = [2.02, 1.71, 1.65, 1.52, 1.38, 1.64, 1.19, 0.91, 0.82, 0.86, 0.72, 0.99],
    /// Both statements have the same sequence of values, with more than five different values.
    SameLong = [0.48, 0.26, 0.25, 0.03, -0.20, 0.09, 0.52, 0.36, 0.24, 0.07, -0.08, 0.19],
    /// One divided by the number of statements in the first version with this sequence of values.
    SameRare = [0.48, 0.29, 0.31, 0.19, 0.25, 0.28, 0.55, 0.24, 0.09, 0.04, 0.21, 0.28],
    /// A score that grows with the length of the common beginning of two equally long sequences
    /// that differ later.
    Beginning = [-0.04, -0.09, -0.02, -0.02, 0.06, -0.04, 0.00, -0.08, 0.06, 0.00, 0.03, -0.02],
    /// Both tests or branches take at least one common direction.
    DecidedSome = [-1.08, -1.08, -1.08, -1.03, -1.14, -1.08, -0.70, -0.70, -0.70, -0.66, -0.74, -0.70],
    /// The first statement takes each direction of the second at least as often.
    DecidedPart = [0.52, 0.52, 0.52, 0.54, 0.51, 0.52, 0.56, 0.56, 0.56, 0.59, 0.55, 0.56],
    /// The decisions of one statement are the beginning of the other's decisions.
    DecidedPrefix = [0.43, 0.43, 0.43, 0.46, 0.41, 0.43, 0.56, 0.56, 0.56, 0.58, 0.56, 0.56],
    /// Both statements make the same decisions in a different order.
    DecidedPermuted = [-0.59, -0.59, -0.59, -0.59, -0.61, -0.59, -0.31, -0.31, -0.31, -0.30, -0.34, -0.31],
    /// Both statements make the same decisions in the same order.
    DecidedSame = [0.51, 0.51, 0.51, 0.40, 0.63, 0.51, 0.63, 0.63, 0.63, 0.55, 0.73, 0.63],
    /// Both statements make the same decisions, at least at the beginning, and these decisions are
    /// not all equal.
    DecidedVaried = [0.21, 0.21, 0.21, 0.19, 0.24, 0.21, 0.16, 0.16, 0.16, 0.19, 0.14, 0.16],
    /// Both statements have the same operator. For comparisons, negation and swapped operands are
    /// ignored.
    SameOperator = [3.46, 3.21, 3.25, 3.31, 3.38, 3.29, 4.44, 4.16, 4.22, 4.38, 4.33, 4.28],
    /// Both statements have exactly the same operator.
    ExactOperator = [1.08, 0.84, 0.88, 0.88, 1.00, 0.91, 1.18, 0.90, 0.96, 1.06, 1.06, 1.02],
    /// Both are loads, or both are stores, of different widths.
    OtherWidth = [3.24, 3.25, 3.30, 3.24, 3.24, 3.24, 4.73, 4.73, 4.81, 4.73, 4.73, 4.73],
    /// Both statements are comparisons, with different operators.
    OtherTest = [-1.98, -1.98, -1.98, -2.02, -1.98, -1.98, -1.76, -1.76, -1.76, -1.79, -1.76, -1.76],
    /// One is a comparison, and the other is a branch.
    TestAndBranch = [-0.92, -0.92, -0.92, -0.88, -0.99, -0.92, -1.92, -1.92, -1.92, -1.96, -1.94, -1.92],
    /// One statement loads a value, and the other statement computes a value.
    ComputeAndLoad = [-1.23, -1.01, -1.11, -1.11, -1.11, -1.11, -0.27, 0.01, -0.13, -0.13, -0.13, -0.13],
    /// The operators differ in some other way.
    OtherOperator = [-0.22, -0.20, -0.20, -0.20, -0.20, -0.18, 1.67, 1.66, 1.66, 1.66, 1.66, 1.67],
    /// Both statements access the same addresses.
    AddressSame = [1.18, 1.20, 1.18, 1.18, 1.18, 1.18, 1.71, 1.77, 1.69, 1.71, 1.71, 1.71],
    /// The differences between consecutive addresses are the same in both, and not all are 0.
    AddressSteps = [1.09, 1.09, 1.10, 1.09, 1.09, 1.09, 1.04, 1.02, 1.07, 1.04, 1.04, 1.04],
    /// Each statement always accesses the same address.
    AddressStepsConstant = [0.46, 0.52, 0.42, 0.46, 0.46, 0.46, -0.35, -0.35, -0.36, -0.35, -0.35, -0.35],
    /// The share of the differences between consecutive addresses that occurs in both, if the
    /// sequences of these differences are not the same.
    AddressFound = [-0.34, -0.26, -0.43, -0.34, -0.34, -0.34, -0.50, -0.44, -0.56, -0.50, -0.50, -0.50],
    /// Only one of the two statements accesses the stack.
    AddressElsewhere = [-3.73, -3.63, -3.90, -3.73, -3.73, -3.73, -2.65, -2.48, -2.88, -2.65, -2.65, -2.65],
    /// The first statement is executed through a call that counts as inlined.
    Inlined = [0.03, 0.67, 0.23, 0.56, 0.39, -0.09, -0.14, 0.54, 0.18, 0.63, 0.49, -0.13],
    /// The number of calls that count as inlined around the first statement, scaled so that eight
    /// or more count as 1.
    Depth = [-0.49, -0.28, -0.80, -0.51, -0.34, -0.48, -0.58, -0.29, -1.04, -0.38, -0.03, -0.39],
    /// Both statements add the same offset to their address, and it is not 0.
    OffsetSame = [-0.91, -1.01, -0.82, -0.91, -0.91, -0.91, -1.57, -1.63, -1.55, -1.57, -1.57, -1.57],
    /// The two statements add different offsets to their addresses.
    OffsetDiffers = [-2.52, -2.59, -2.49, -2.52, -2.52, -2.52, -2.63, -2.65, -2.67, -2.63, -2.63, -2.63],
    /// Neither statement adds an offset to its address.
    OffsetZero = [-0.70, -0.61, -0.80, -0.70, -0.70, -0.70, -1.33, -1.38, -1.31, -1.33, -1.33, -1.33],
    /// Both statements were executed equally often.
    CountEqual = [0.57, 0.36, 0.44, 0.41, 0.41, 1.39, 0.71, 0.66, 0.70, 0.53, 0.52, 1.30],
    /// The second statement was executed less often than the first.
    CountLess = [-0.24, -0.29, -0.24, 0.10, 0.22, -0.53, -0.25, -0.41, -0.29, 0.10, 0.26, -0.63],
    /// The second statement's executions as a share of the first's, if the second was executed less
    /// often.
    CountPart = [0.21, 0.27, 0.27, 0.37, 0.59, 0.21, 0.52, 0.52, 0.51, 0.58, 0.69, 0.45],
    /// The second statement was executed more often than the first. An optimiser hardly ever adds
    /// executions.
    CountMore = [-0.02, 0.24, 0.11, -0.20, -0.33, -0.56, 0.45, 0.65, 0.48, 0.27, 0.12, 0.22],
    /// The negated share of parts of the run without the first statement, among the parts in which
    /// the second statement was executed.
    Together = [0.94, 0.92, 0.87, 1.12, 1.10, 0.99, 0.03, 0.10, 0.00, 0.18, 0.26, -0.01],
    /// The proximity of the first executions in the order of the first version. It is one half if
    /// the places are two statements apart.
    Near2 = [0.00, 0.09, 0.11, -0.01, 0.13, 0.20, -0.02, 0.11, 0.06, -0.02, 0.12, 0.11],
    /// The proximity of the first executions, scaled to be one half if the places are sixteen
    /// statements apart.
    Near16 = [-0.85, -0.78, -0.72, -0.79, -0.79, -0.68, -0.54, -0.39, -0.43, -0.43, -0.42, -0.46],
    /// The proximity of the first executions, scaled to be one half if the places are 128
    /// statements apart.
    Near128 = [2.62, 2.71, 2.73, 2.73, 2.73, 2.72, 1.35, 1.39, 1.22, 1.46, 1.41, 1.32],
    /// The proximity of the last executions. It is one half if eight statements end in between.
    EndsNear = [0.76, 0.68, 0.62, 0.74, 1.06, 0.86, 0.56, 0.62, 0.19, 0.23, 0.52, 0.29],
    /// The first statement is neither executed with the same value nor near its expected place in
    /// any stretch.
    NeverTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -1.10, -0.87, -0.62, -0.99, -0.89, -1.09],
    /// The feature `NeverTogether`, for tests and branches.
    NeverTogetherTest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.91, -0.91, -0.91, -0.97, -0.87, -0.91],
    /// The feature `NeverTogether`, for statements whose values are equal except for their order or
    /// an added constant. More than five of these values are different.
    NeverTogetherLong = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.72, 1.60, 1.41, 1.52, 1.55, 1.53],
    /// The share of the second statement's executions for which the first was executed in the same
    /// stretch with the same value. Executions outside stretches do not count.
    StretchTogether = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.46, 0.04, 0.14, -0.03, 0.14, 0.25],
    /// The feature `StretchTogether`, scaled by the number of different values.
    StretchTelling = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.77, 0.28, 0.37, -0.14, -0.49, 0.58],
    /// The share of the second statement's executions for which the first was the earliest
    /// statement in the stretch with the same value and operator.
    StretchEarliest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.77, 1.49, 0.71, 0.42, 0.53, 0.29],
    /// The share of the second statement's executions for which the first was the latest statement
    /// in the stretch with the same value and operator.
    StretchLatest = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.21, -0.59, 0.54, -0.35, -0.43, 0.27],
    /// The share of the second statement's executions for which the first was executed between the
    /// partners of the previous and the next execution.
    StretchWithin = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -1.59, -1.02, -1.18, -0.61, -0.56, -0.35],
    /// Like `StretchWithin`, but counts only executions of the first statement with the same value.
    StretchWithinSame = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.63, 0.73, 0.47, 0.37, 0.05, 0.86],
    /// The proximity of the first statement to the place between the partners of the previous and
    /// the next execution. It is one half if the statement is eight executions away.
    StretchNear = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 2.41, 2.07, 1.82, 2.57, 2.67, 2.75],
    /// The share of the executions for which the alignment pairs the two statements.
    StretchAligned = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 1.00, 1.17, 1.09, 0.74, 0.98, 0.89],
    /// The alignment pairs the two statements in more than half of the executions.
    StretchAlignedMost = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, -0.71, -0.57, -0.74, -0.73, -0.57, -0.84],
    /// The frequency, from 0 to 1, of the distance between the accessed addresses among the
    /// displacements of objects. It is averaged over the executions.
    StretchPlaced = [0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 4.05, 3.92, 4.25, 4.05, 4.05, 4.05],
    /// The share of the operands' producers that correspond.
    Operands = [2.01, 1.06, 1.51, 1.53, 0.99, 1.30, 1.60, 0.81, 1.15, 1.09, 0.74, 0.77],
    /// The producers of all operands correspond.
    OperandsAll = [0.35, -0.24, 0.32, 0.18, 0.19, -0.05, 0.35, -0.23, 0.38, 0.14, 0.17, -0.02],
    /// The first statement may have a constant operand that the second never has.
    ConstantsMore = [-0.70, -0.33, -0.24, -0.67, -0.25, -0.60, -0.70, -0.31, -0.26, -0.61, -0.26, -0.50],
    /// The share of the result's users that correspond.
    Users = [1.24, 0.58, 0.68, -0.01, 0.68, 0.93, 1.29, 0.27, 0.56, -0.11, 0.56, 0.81],
    /// All users of the result correspond.
    UsersAll = [0.48, 0.53, 0.48, 0.17, 0.48, 0.73, 0.49, 0.38, 0.44, 0.29, 0.44, 0.60],
    /// For a load, the share of the stores of its data that correspond. For a store, the share of
    /// the loads of its data that correspond. Links through copies count less.
    Written = [5.00, 5.23, 4.92, 5.00, 5.00, 5.00, 4.33, 4.61, 4.13, 4.33, 4.33, 4.33],
    /// None of the stores of a load's data, or of the loads of a store's data, corresponds.
    WrittenByOthers = [1.37, 1.66, 1.13, 1.37, 1.37, 1.37, 1.10, 1.45, 0.77, 1.10, 1.10, 1.10],
    /// The share of surrounding statements with counterparts nearby, weighted by proximity.
    Neighbours = [4.97, 4.62, 4.66, 5.24, 5.53, 4.92, 2.43, 2.14, 2.10, 2.47, 2.65, 2.20],
    /// The counterpart of the previous statement is shortly before the candidate.
    Before = [0.27, 0.01, 0.19, 0.51, 0.08, 0.10, 0.23, -0.19, 0.19, 0.47, -0.04, -0.30],
    /// The counterpart of the next statement is shortly after the candidate.
    After = [0.46, 0.31, 0.08, 0.45, 0.60, 0.66, 0.38, 0.13, 0.13, 0.47, 0.03, 0.72],
    /// The candidate is between the counterparts of the previous and the next statement.
    Between = [-0.41, -0.28, -0.56, -0.52, -0.53, -0.34, -0.05, -0.07, -0.30, -0.57, -0.13, -0.26],
    /// The candidate is already the counterpart of another nearby statement that was executed
    /// equally often.
    Taken = [-0.21, -0.46, -0.31, -0.39, -0.33, -0.36, -0.32, -0.41, -0.16, -0.50, -0.57, -0.43],
    /// The candidate is already the counterpart of another nearby statement that was executed
    /// equally often. Either the candidate has a better score for the other statement, or the
    /// second statement currently has another match or none.
    TakenBetter = [-0.26, -0.21, 0.09, 0.05, 0.02, -0.09, -0.36, -0.15, 0.18, -0.09, 0.04, -0.10],
    /// The candidate is already the counterpart of the previous or the next statement.
    SameMatchNext = [0.33, -0.01, 0.18, 0.18, 0.20, 0.03, 0.33, 0.20, 0.43, 0.10, 0.24, 0.16],
    /// The share of the function's matches that are in the candidate's function, weighted by their
    /// evidence. A share of one third already counts as 1.
    Affinity = [1.69, 1.62, 1.82, 1.76, 1.89, 1.78, 2.53, 2.46, 2.55, 2.51, 2.51, 2.41],
    /// At least a third of the function's matches, weighted by their evidence, are in the
    /// candidate's function.
    AffinityMost = [0.12, 0.18, 0.23, 0.10, 0.31, 0.21, -0.53, -0.68, -0.69, -0.81, -0.79, -0.85],
    /// The functions have the same name. This weight was not fitted.
    Name = [1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00],
}
