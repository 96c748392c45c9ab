//! Decides how each rule is written.
//!
//! A grammar is well suited to questions, but not to storage. A rule's number costs about the same
//! number of bits as its terminals, if each is predicted from the previous terminals. Marking a
//! rule's beginning and end costs more. So short sequences are dissolved, and only activations and
//! long recurring sequences are named. The reader folds the steps as the builder did.

use afterimage_ids::{PrimaryMap, RuleId};

use crate::{Kind, Root, Segment, Symbol};

/// Sequences of up to this many steps are never named, unless dissolving makes the segment too
/// long.
const LONGEST_DISSOLVED: u32 = 256;
/// Sequences of up to this many steps are never named, even if the segment becomes long.
const SHORTEST_NAMED: u32 = 4;
/// Repetitions of up to this many steps are unrolled.
const MOST_UNROLLED: u64 = 4;
/// Naming nearly all sequences is tried if that reduces the number of steps by at least this
/// factor. In interpreters, for example, it also takes fewer bytes, because their sequences recur
/// so often that each is predicted well.
const FAR_LESS: u64 = 3;
/// The largest number of steps, unless the segment has more symbols.
pub(super) const MOST_STEPS: u64 = 8 << 20;

/// The form in which an occurrence of a rule is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The first occurrence is written as the rule's definition, and others as its number.
    Named,
    /// Every occurrence is written as the rule's symbols. For a `Repeat`, a step that marks the
    /// repetition follows.
    Dissolved,
    /// Every occurrence is written as the rule's symbols, repeated as often as they are executed.
    Unrolled,
}

#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) form: Form,
    /// The number of symbols that the reader reads.
    pub(super) width: u32,
    /// The number of steps of an occurrence that is not written as a number.
    steps: u32,
}

impl Plan {
    const ONE: Self = Self {
        form: Form::Named,
        width: 1,
        steps: 1,
    };
}

/// The plan for each rule.
pub(super) type Plans = PrimaryMap<RuleId, Plan>;

/// Returns the plan for all occurrences of a symbol except the first.
pub(super) fn plan_of(symbol: Symbol, plans: &Plans) -> Plan {
    match symbol.as_rule() {
        Some(rule) if plans[rule].form != Form::Named => plans[rule],
        _ => Plan::ONE,
    }
}

/// Returns the possible plans for a segment. The first names few sequences. The second names nearly
/// all sequences, and is present only if it takes far fewer steps. Time: linear.
pub(super) fn plans(segment: &Segment) -> (Plans, Option<Plans>) {
    let uses = uses(segment);
    let (named, least) = plan_up_to(SHORTEST_NAMED, segment, &uses);
    let mut longest = LONGEST_DISSOLVED;
    while longest > SHORTEST_NAMED {
        let (plans, steps) = plan_up_to(longest, segment, &uses);
        if steps <= MOST_STEPS {
            let is_far_less = least.saturating_mul(FAR_LESS) <= steps;
            return (plans, is_far_less.then_some(named));
        }
        longest /= 4;
    }
    (named, None)
}

/// Plans to name only sequences of more than `longest` steps. Also returns the total number of
/// steps.
fn plan_up_to(longest: u32, segment: &Segment, uses: &PrimaryMap<RuleId, u8>) -> (Plans, u64) {
    let grammar = &segment.grammar;
    let mut plans: Plans = PrimaryMap::with_capacity(grammar.rules.len());
    let mut all = 0u64;
    for (id, rule) in &grammar.rules {
        let (mut width, mut steps) = (0u32, 0u32);
        for &symbol in grammar.symbols_of(id) {
            let plan = plan_of(symbol, &plans);
            width = width.saturating_add(plan.width);
            steps = steps.saturating_add(plan.steps);
        }
        let plan = match rule.kind {
            Kind::Sequence if uses[id] <= 1 || steps <= longest => Plan {
                form: Form::Dissolved,
                width,
                steps,
            },
            Kind::Repeat(times) if u64::from(steps).saturating_mul(times) <= MOST_UNROLLED => {
                Plan {
                    form: Form::Unrolled,
                    width: width * times as u32,
                    steps: steps * times as u32,
                }
            }
            Kind::Repeat(_) => Plan {
                form: Form::Dissolved,
                width: 1,
                steps: steps.saturating_add(1),
            },
            Kind::Sequence | Kind::Call(_) => Plan {
                form: Form::Named,
                width,
                steps,
            },
        };
        if plan.form == Form::Named {
            all = all.saturating_add(2 + u64::from(steps));
        }
        plans.push(plan);
    }
    for item in &segment.root {
        all = all.saturating_add(match item {
            Root::Run(symbol) => plan_of(*symbol, &plans).steps.into(),
            Root::Enter(_) | Root::Leave => 1,
        });
    }
    (plans, all)
}

/// Counts how often each rule is written if all sequences are named. A count of 2 means at least
/// twice.
fn uses(segment: &Segment) -> PrimaryMap<RuleId, u8> {
    let grammar = &segment.grammar;
    let mut uses: PrimaryMap<RuleId, u8> = grammar.rules.values().map(|_| 0).collect();
    for item in &segment.root {
        if let Root::Run(symbol) = item
            && let Some(rule) = symbol.as_rule()
        {
            uses[rule] = (uses[rule] + 1).min(2);
        }
    }
    for (id, rule) in grammar.rules.iter().rev() {
        let each = match rule.kind {
            Kind::Repeat(_) => uses[id],
            Kind::Sequence | Kind::Call(_) => uses[id].min(1),
        };
        for child in grammar
            .symbols_of(id)
            .iter()
            .filter_map(|symbol| symbol.as_rule())
        {
            uses[child] = (uses[child] + each).min(2);
        }
    }
    uses
}
