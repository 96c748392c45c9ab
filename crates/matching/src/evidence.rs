//! Computes the evidence for a pair of statements.

use rustc_hash::FxHashMap;

use crate::features::Feature;
use crate::sample::Overlap;
use crate::{Class, Sketch, Statement};

/// The relation between the values of two statements. If several relations hold, the strongest
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Values {
    /// The values have nothing in common, as far as the samples show.
    Different,
    /// The relation is unknown, because no element of one sample can be looked up in the other.
    Unknown,
    /// Some sampled values of the second version's statement also occur in the first version's
    /// statement.
    Some,
    /// All sampled values of the second version's statement also occur in the first version's
    /// statement, at least as often.
    Part,
    /// At least the first half of the shorter sequence is also the beginning of the other.
    Prefix,
    /// The same multiset of values, in a different order.
    Permuted,
    /// The same sequence with a constant added, because an object lies elsewhere.
    Shifted,
    /// The same sequence of values.
    Same,
}

/// The evidence for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The relation between the values of both statements.
    pub values: Values,
    /// Whether both are the same operator.
    pub operator: bool,
    /// The number of operands of the second version's statement whose producers correspond, and the
    /// total number.
    pub operands: (u32, u32),
    /// The number of users of the statement's result that correspond, and the total number.
    pub users: (u32, u32),
    /// The number of surrounding statements that correspond, and the total number.
    pub neighbours: (u32, u32),
    /// Whether the functions have the same name.
    pub name: bool,
    /// Whether the functions were paired by their code, which is equal or nearly equal.
    pub same_code: bool,
}

#[cfg(test)]
impl Evidence {
    /// Evidence that consists only of equal values and equal operators.
    pub(crate) const PLAIN: Self = Self {
        values: Values::Same,
        operator: true,
        operands: (0, 0),
        users: (0, 0),
        neighbours: (0, 0),
        name: false,
        same_code: false,
    };
}

/// Pairs of functions with the same name in both versions. They are an optional hint.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// For each function of the second version, the function of the first with the same name.
    pub same: FxHashMap<u32, u32>,
}

/// Compares the values of two statements.
pub(crate) fn compare(a: &Sketch, b: &Sketch) -> Values {
    if a.count == b.count {
        if a.sequence == b.sequence {
            return Values::Same;
        }
        if a.count > 1 && a.steps == b.steps && !b.is_constant() {
            return Values::Shifted;
        }
        if a.multiset == b.multiset {
            return Values::Permuted;
        }
    }
    let shorter = a.count.min(b.count);
    if a.common_prefix(b) * 2 > shorter.saturating_sub(1) && shorter > 0 && a.first == b.first {
        return Values::Prefix;
    }
    let found = b.sample.found_in(&a.sample);
    let inside = b.smallest >= a.smallest && b.largest <= a.largest;
    if found.known > 0 && found.as_often == found.known && inside {
        return Values::Part;
    }
    match (found.occurring, found.known) {
        (0, 0) if inside => Values::Unknown,
        (0, _) => Values::Different,
        _ => Values::Some,
    }
}

/// Reports the evidence from a pair's values.
pub(crate) fn tell_values(a: &Statement, b: &Statement, told: &mut impl FnMut(Feature, f32)) {
    // Two equal sequences of many different values are not a coincidence, but two equal sequences
    // of a single value may be.
    let different = (b.telling().sample.len() as f32 - 1.0) / 4.0;
    let telling = 0.4 + 0.6 * different.min(1.0);
    let values = compare(a.telling(), b.telling());
    told(Feature::Beginning, beginning(values, a, b));
    match values {
        Values::Same => {
            told(Feature::Same, 1.0);
            told(Feature::SameTelling, telling);
            if b.telling().sample.len() > 5 {
                told(Feature::SameLong, 1.0);
            }
        }
        Values::Shifted => {
            told(Feature::Shifted, 1.0);
            told(Feature::ShiftedTelling, telling);
        }
        Values::Permuted => {
            told(Feature::Permuted, 1.0);
            told(Feature::PermutedTelling, telling);
        }
        Values::Prefix => {
            told(Feature::Prefix, 1.0);
            told(Feature::PrefixTelling, telling);
        }
        Values::Part => {
            told(Feature::Part, 1.0);
            told(Feature::PartTelling, telling);
        }
        Values::Some => {
            told(Feature::Some, 1.0);
            let found = b.telling().sample.found_in(&a.telling().sample);
            told(Feature::SomeFound, part(found));
        }
        Values::Unknown => told(Feature::Unknown, 1.0),
        Values::Different => match b.telling().step_sample.found_in(&a.telling().step_sample) {
            found if !b.telling().is_constant() && found.occurring > 0 => {
                told(Feature::DifferentSteps, part(found));
            }
            // Addresses may differ, but computed values may not.
            _ if b.values.count == 1
                && b.values.may_be_addresses()
                && a.values.may_be_addresses() =>
            {
                told(Feature::DifferentAddress, 1.0)
            }
            _ => told(Feature::Different, 1.0),
        },
    }
    if b.operands.is_some() {
        // The compared values may have been computed differently, or may be addresses of moved
        // objects.
        let decided = compare(&a.values, &b.values);
        if !b.values.is_constant() && decided >= Values::Prefix {
            told(Feature::DecidedVaried, 1.0);
        }
        match decided {
            Values::Different | Values::Unknown => {}
            Values::Some => told(Feature::DecidedSome, 1.0),
            Values::Part => told(Feature::DecidedPart, 1.0),
            Values::Prefix => told(Feature::DecidedPrefix, 1.0),
            Values::Permuted | Values::Shifted => told(Feature::DecidedPermuted, 1.0),
            Values::Same => told(Feature::DecidedSame, 1.0),
        }
    }
}

/// Returns the evidence from values that are equal at first and differ later. A failing run is
/// correct before it goes wrong.
fn beginning(values: Values, a: &Statement, b: &Statement) -> f32 {
    // Many branches are always decided in the same way.
    let told = b.operands.is_none() || !b.values.is_constant();
    let known = a.values.count == b.values.count && a.class != Class::Test && told;
    match a.values.common_prefix(&b.values) {
        same if same > 0 && known && values < Values::Prefix => {
            (0.8 + 0.1 * same.ilog2() as f32).min(1.6)
        }
        _ => 0.0,
    }
}

/// Reports the evidence from a pair's addresses.
pub(crate) fn tell_addresses(a: &Statement, b: &Statement, told: &mut impl FnMut(Feature, f32)) {
    let (Some(of_a), Some(of_b)) = (&a.addresses, &b.addresses) else {
        return;
    };
    told(
        match (a.offset == b.offset, b.offset) {
            (true, 0) => Feature::OffsetZero,
            (true, _) => Feature::OffsetSame,
            (false, _) => Feature::OffsetDiffers,
        },
        1.0,
    );
    if of_a.count == of_b.count && of_a.steps == of_b.steps {
        if of_a.first == of_b.first {
            told(Feature::AddressSame, 1.0);
        }
        told(
            if of_b.is_constant() {
                Feature::AddressStepsConstant
            } else {
                Feature::AddressSteps
            },
            1.0,
        );
        return;
    }
    let found = of_b.step_sample.found_in(&of_a.step_sample);
    told(Feature::AddressFound, part(found));
}

/// Returns the share of elements that occur in both samples, among the elements with frequencies
/// known in both.
fn part(found: Overlap) -> f32 {
    found.occurring as f32 / found.known.max(1) as f32
}

/// Reports the evidence from a pair's operators.
pub(crate) fn tell_operators(a: &Statement, b: &Statement, told: &mut impl FnMut(Feature, f32)) {
    if a.exact == b.exact {
        told(Feature::ExactOperator, 1.0);
    }
    told(
        match (a.class, b.class) {
            _ if a.operator == b.operator => Feature::SameOperator,
            (Class::Load, Class::Load) | (Class::Store, Class::Store) => Feature::OtherWidth,
            (Class::Test, Class::Test) => Feature::OtherTest,
            (Class::Test, Class::Branch) | (Class::Branch, Class::Test) => Feature::TestAndBranch,
            (Class::Compute, Class::Load) | (Class::Load, Class::Compute) => {
                Feature::ComputeAndLoad
            }
            _ => Feature::OtherOperator,
        },
        1.0,
    );
}
