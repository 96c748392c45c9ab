//! What speaks for a pair of statements.

use rustc_hash::FxHashMap;

use crate::{Class, Sketch, Statement};

/// How the values of two statements compare, the strongest that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Values {
    /// They have nothing in common as far as is known.
    Different,
    /// Nothing is known: of what was sampled of one nothing could be in the other's sample.
    Unknown,
    /// Some of the sampled values of the second version's statement occur in the first's.
    Some,
    /// All sampled values of the second version's statement occur in the first's, as often at least.
    Part,
    /// At least half of the shorter sequence begins the other.
    Prefix,
    /// The same multiset in another order.
    Permuted,
    /// The same sequence, with the same number added to all: an object lies elsewhere.
    Shifted,
    /// The same sequence.
    Same,
}

/// What speaks for a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// How the values compare.
    pub values: Values,
    /// Both are the same operator.
    pub operator: bool,
    /// Of how many operands of the second version's statement the makers correspond, and how many there are.
    pub operands: (u32, u32),
    /// The same for the users of what it gives.
    pub users: (u32, u32),
    /// The same for the statements around it.
    pub neighbours: (u32, u32),
    /// The functions have the same name.
    pub name: bool,
    /// The functions have the same code, and only these two.
    pub same_code: bool,
}

/// Which functions of two versions have the same name: a hint that can be left out.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By the second version's function, the first's.
    pub same: FxHashMap<u32, u32>,
}

/// How the values of two statements compare.
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
    let (often, known) = b.sample.contained_in(&a.sample);
    if known > 0 && often == known && b.smallest >= a.smallest && b.largest <= a.largest {
        return Values::Part;
    }
    let inside = b.smallest >= a.smallest && b.largest <= a.largest;
    match b.sample.occurring_in(&a.sample) {
        (0, 0) if inside => Values::Unknown,
        (0, _) => Values::Different,
        _ => Values::Some,
    }
}

/// How much the values speak for a pair.
pub(crate) fn weight_of_values(values: Values, a: &Statement, b: &Statement) -> f32 {
    // A sequence of many different values is no coincidence, one of a single value may be.
    let begins = beginning(values, a, b);
    let different = (b.telling().sample.len() as f32 - 1.0) / 4.0;
    let telling = 0.4 + 0.6 * different.min(1.0);
    begins
        + match values {
            Values::Same if b.telling().sample.len() > 5 => 4.5,
            Values::Same => 1.0 + 2.0 * telling,
            Values::Shifted => 0.6 + 2.0 * telling,
            Values::Permuted => 0.6 + 2.0 * telling,
            Values::Prefix => 0.5 + 1.6 * telling,
            Values::Part => 0.3 + 1.4 * telling,
            Values::Some => {
                let (found, known) = b.telling().sample.occurring_in(&a.telling().sample);
                0.9 * found as f32 / known.max(1) as f32
            }
            Values::Unknown => 0.3,
            Values::Different => match b
                .telling()
                .step_sample
                .occurring_in(&a.telling().step_sample)
            {
                (found, known) if !b.telling().is_constant() && found > 0 => {
                    0.8 * found as f32 / known as f32
                }
                // Where something lies in memory may differ, what is computed may not.
                _ if b.values.count == 1 && is_address(b) && is_address(a) => 0.0,
                _ => -1.0,
            },
        }
}

/// How much it speaks for a pair that the first values are the same though others are not: what goes wrong was right before.
fn beginning(values: Values, a: &Statement, b: &Statement) -> f32 {
    let known = a.values.count == b.values.count && a.class != Class::Test;
    match a.values.common_prefix(&b.values) {
        same if same > 0 && known && values < Values::Prefix => {
            (0.8 + 0.1 * same.ilog2() as f32).min(1.6)
        }
        _ => 0.0,
    }
}

/// Whether the value may be an address.
fn is_address(of: &Statement) -> bool {
    of.values.smallest >= 1024 && of.values.largest < 1 << 32
}

/// How much the addresses speak for a pair.
pub(crate) fn weight_of_addresses(a: &Statement, b: &Statement) -> f32 {
    let (Some(a), Some(b)) = (&a.addresses, &b.addresses) else {
        return 0.0;
    };
    if a.count == b.count && a.steps == b.steps {
        return if b.is_constant() { 0.4 } else { 1.0 };
    }
    let (found, known) = b.step_sample.occurring_in(&a.step_sample);
    0.6 * found as f32 / known.max(1) as f32
}

/// How much the operators speak for a pair.
pub(crate) fn weight_of_operators(a: &Statement, b: &Statement) -> f32 {
    if a.operator == b.operator {
        return 1.2;
    }
    match (a.class, b.class) {
        // Of another width.
        (Class::Load, Class::Load) | (Class::Store, Class::Store) => 0.8,
        (Class::Test, Class::Test) => 0.0,
        _ => -0.8,
    }
}
