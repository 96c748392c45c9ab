//! Finds where corresponding statements first differ (comparison checking: Jaramillo, Gupta and
//! Soffa 1999; Zhang and Gupta 2005, section 6.2).
//!
//! For each power of two 2ᵏ, sketches record whether the first 2ᵏ executions of two statements had
//! the same values. So for a pair that differs, sketches locate the first difference to within a
//! factor of two. Both runs are then followed again, keeping more of the executions in between,
//! until the first difference is known.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::resume_unwind;
use std::thread;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_matching::{
    ADDRESSES, Class, Matching, Producer, Sketch, Statement, Values, Version,
};
use afterimage_trace::{LogReader, TraceError};
use afterimage_wpp::Segments;

use super::code::{OperatorFacts, operators};
use super::collect::{Sketched, values_of};
use super::keeper::{Kept, Stretch};
use super::runs::Matched;
use super::take::Taken;
use afterimage_replay::steps::{Run, StepsError};

/// The first execution in which two corresponding statements differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The statement of the first version.
    pub a: u32,
    /// The statement of the second version.
    pub b: u32,
    /// The number of the execution in each version, from 1. All earlier executions had the same
    /// values in both versions. If the second version inlined the function, only executions through
    /// the same calls are compared.
    pub numbers: [u64; 2],
    /// The differing values. For calls, the two differing arguments.
    pub values: [u64; 2],
    /// For calls, the numbers of these arguments, from 1.
    pub arguments: Option<[u32; 2]>,
    /// For tests and branches, whether the outcome in each version differs from the outcome of the
    /// statement's first execution. (One version may negate a condition, so outcomes cannot be
    /// compared directly.) If the second version inlined the function, the first execution through
    /// the same calls counts.
    pub decided: Option<[bool; 2]>,
    /// The times of the two executions.
    pub times: [u64; 2],
    /// The relation between the operands of the two executions.
    pub took: Took,
    /// The reason for the difference.
    pub origin: Origin,
}

/// The relation between the operands of two executions, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// The operands are the same.
    Same,
    /// The operands are the same, apart from constants.
    SameVariables,
    /// The operands differ, or are unknown, as for loads and calls.
    Else,
}

impl Took {
    /// `moved` returns whether two values are addresses of one object that the versions place
    /// differently.
    fn of([a, b]: &[Taken; 2], moved: impl Fn(u64, u64) -> bool) -> Self {
        let same = |of_a: Vec<u64>, mut of_b: Vec<u64>| {
            !of_a.is_empty()
                && of_a.len() == of_b.len()
                && of_a.into_iter().all(|x| {
                    let equal = of_b.iter().position(|&y| x == y);
                    let found = equal.or_else(|| of_b.iter().position(|&y| moved(x, y)));
                    found.map(|at| of_b.swap_remove(at)).is_some()
                })
        };
        if same(a.all().collect(), b.all().collect()) {
            Self::Same
        } else if same(a.variables().collect(), b.variables().collect()) {
            Self::SameVariables
        } else {
            Self::Else
        }
    }
}

/// The reason why corresponding statements produced different values. The most informative reasons
/// come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The statement performs a different computation. It has a different operator or constant, and
    /// its operands are otherwise the same. No producer of its operands differed earlier. Some user
    /// of its value acts differently or has no known counterpart.
    Computed,
    /// The statement takes a different value from memory, from an argument, or from a statement
    /// without a known counterpart. No producer of its operands differed earlier. Wrongly matched
    /// statements also have this origin. So do statements that compute differently although all
    /// users of their values do the same.
    Read,
    /// A statement that produced one of its operands differed earlier.
    Passed,
}

/// The minimum likelihood of the pairs that come first within their origin.
const LIKELY: f32 = 0.5;
/// The maximum number of pairs to examine.
const PAIRS: usize = 2048;
/// An object counts as moved if the distance between its addresses in the two versions occurs at
/// least this often.
const MOVED: u32 = 2;
/// The maximum total number of executions kept for all pairs.
const KEPT: u64 = 1 << 22;

/// A function that opens a run's log from the beginning.
pub type OpenLog<'l> = &'l (dyn Fn() -> Result<LogReader, TraceError> + Sync);

/// A pair of statements, and the range that contains their first differing execution.
#[derive(Clone, Copy, Debug)]
struct Open {
    a: u32,
    b: u32,
    /// The number of executions at the beginning that are known to be the same.
    same: u64,
    /// The number of executions at the beginning that are known to include a differing execution.
    differ: u64,
}

/// Finds the pairs with corresponding operands that had different results at some time. Differences
/// between addresses of objects that have merely moved do not count. Corresponding loads and stores
/// show which objects have moved.
///
/// Pairs are sorted by origin, so pairs that performed different computations on the same operands
/// come first. Within each origin, pairs that are more likely than not to correspond come first.
/// Ties are in order of time in the second version.
///
/// Candidates are the pairs that agree in at least half of the shorter sequence of values, and the
/// pairs whose producers correspond. Both runs are followed again, at the same time. They are
/// followed more than once if thousands of executions lie between the known executions. Only the
/// first run reports progress.
///
/// # Errors
/// Returns an error if a run cannot be followed, or the first run differs from the sketched run.
pub fn divergences<S>(
    versions: [&Sketched; 2],
    matched: &Matched,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
) -> Result<Vec<Divergence>, StepsError<S::Error>>
where
    S: Segments + Sync,
    S::Error: std::error::Error + Send + 'static,
{
    let to = versions[0]
        .numbers_of(&matched.apart)
        .ok_or(StepsError::OtherRun)?;
    let matching = &matched.matching_apart;
    let versions = [&matched.apart, versions[1]];
    let standing = [Some(&matched.standing), None];
    let mut open = open_pairs([&versions[0].version, &versions[1].version], matching);
    let (mut found, mut taken) = (Vec::new(), HashMap::new());
    while !open.is_empty() {
        let room = (KEPT / open.len() as u64).max(2);
        let stretches = |side: usize| -> Vec<Stretch> {
            let sketched = versions[side];
            let at = |pair: &Open| [pair.a, pair.b][side] as usize;
            let of = |pair: &Open| Stretch {
                context: sketched.contexts[at(pair)],
                place: sketched.places[at(pair)],
                after: pair.same,
                last: pair.differ,
                stride: (pair.differ - pair.same).div_ceil(room),
            };
            open.iter().map(of).collect()
        };
        let [of_a, of_b] = values_of_both(runs, standing, [0, 1].map(stretches))?;
        let mut narrower = Vec::new();
        let strides = stretches(0);
        for (((pair, stretch), a), b) in open.iter().zip(strides).zip(of_a).zip(of_b) {
            let Some(at) = a.iter().zip(&b).position(|(x, y)| x.hash != y.hash) else {
                continue;
            };
            let first = pair.same + at as u64 * stretch.stride;
            if stretch.stride == 1 {
                let class = versions[1].version.statements[pair.b as usize].class;
                let decides = matches!(class, Class::Test | Class::Branch);
                let both = [a[at], b[at]];
                taken.insert(pair.b, both.map(|kept| kept.taken));
                found.push(Divergence {
                    a: pair.a,
                    b: pair.b,
                    numbers: both.map(|kept| kept.number),
                    values: both.map(|kept| kept.value),
                    arguments: None,
                    decided: decides.then(|| both.map(|kept| kept.compared != 0)),
                    times: both.map(|kept| kept.time),
                    took: Took::Else,
                    origin: Origin::Read,
                });
                continue;
            }
            narrower.push(Open {
                same: first,
                differ: (first + stretch.stride).min(pair.differ),
                ..*pair
            });
        }
        open = narrower;
    }
    let moves = moves([&versions[0].version, &versions[1].version], matching);
    let is_shifted = |found: &Divergence| {
        let of_b = matching.of_b[found.b as usize].as_ref();
        of_b.is_some_and(|found| found.evidence.values == Values::Shifted)
    };
    found.retain(|found| is_shifted(found) || !moves.lead(found.values));
    let mut operators = Operators {
        versions,
        runs: runs.map(|(run, _)| run),
        known: Default::default(),
    };
    for found in &mut found {
        if let Some(taken) = taken.get(&found.b) {
            // The sum of a moved address and an offset is a moved address. Other operators turn
            // addresses into different values.
            let adds = operators.of(0, found.a).is_some_and(|known| known.adds);
            let moved = |x, y| adds && moves.lead([x, y]);
            found.took = Took::of(taken, moved);
        }
    }
    tell_origins(matching, &mut operators, &mut found);
    // An optimiser may make a counter begin at a different number. This does not explain a
    // computation that differs on equal operands.
    found.retain(|found| !is_shifted(found) || found.origin == Origin::Computed);
    found.sort_by_key(|found| {
        let mut matches = matched.matching.matches(found.b);
        let likely = matches.next().is_some_and(|(_, likely)| likely >= LIKELY);
        (found.origin, !likely, found.times[1], found.b)
    });
    for found in &mut found {
        operators.tell_argument(found);
        found.a = to[found.a as usize];
    }
    Ok(found)
}

/// Keeps stretches of executions from both runs, which are followed at the same time.
fn values_of_both<S>(
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
    standing: [Option<&HashSet<FuncId>>; 2],
    stretches: [Vec<Stretch>; 2],
) -> Result<[Vec<Vec<Kept>>; 2], StepsError<S::Error>>
where
    S: Segments + Sync,
    S::Error: std::error::Error + Send + 'static,
{
    let [(run_a, log_a), (run_b, log_b)] = runs;
    let of = |run, log: OpenLog<'_>, side: usize| {
        let log = log().map_err(afterimage_machine::MachineError::from)?;
        values_of(run, log, standing[side], &stretches[side])
    };
    // Only one thread reports progress.
    let Run {
        program,
        module,
        path,
        continuations,
        stopped,
        ..
    } = run_b;
    let quietly = || Run {
        program,
        module,
        path,
        continuations,
        stopped,
        checkpoints: None,
        snapshots: None,
        progress: &|_| {},
    };
    thread::scope(|scope| {
        let behind = || of(quietly(), log_b, 1);
        let of_b = thread::Builder::new().spawn_scoped(scope, behind);
        let of_a = of(run_a, log_a, 0);
        let of_b = match of_b {
            Ok(of_b) => of_b.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Without a second thread, follows the runs one after the other.
            Err(_) => behind(),
        };
        Ok([of_a?, of_b?])
    })
}

/// Facts about the statements' operators, computed on demand.
struct Operators<'v, 'r, S: Segments> {
    versions: [&'v Sketched; 2],
    runs: [Run<'r, S>; 2],
    known: [HashMap<FuncId, Vec<OperatorFacts>>; 2],
}

impl<S: Segments> Operators<'_, '_, S> {
    fn of(&mut self, side: usize, statement: u32) -> Option<OperatorFacts> {
        let place = self.versions[side].places[statement as usize];
        let run = self.runs[side];
        let all = self.known[side].entry(place.function).or_insert_with(|| {
            let function = run.program.function(place.function);
            function.map_or(Vec::new(), |f| operators(run.program, run.module, f))
        });
        all.get(place.op.index()).copied()
    }

    /// Whether one of two statements chooses between two values while the other computes a value.
    /// An optimiser may turn a branch into a choice between two values.
    fn one_chooses(&mut self, found: &Divergence) -> bool {
        let chooses = [(0, found.a), (1, found.b)].map(|(side, statement)| {
            let known = self.of(side, statement);
            known.is_some_and(|known| known.chooses)
        });
        chooses[0] != chooses[1]
    }

    /// Whether a constant of either statement may be an address of data.
    fn may_be_addresses(&mut self, found: &Divergence) -> bool {
        let mut known = [(0, found.a), (1, found.b)].into_iter();
        known.any(|(side, statement)| {
            self.of(side, statement)
                .is_none_or(|known| known.takes_addresses)
        })
    }

    /// For calls, finds the argument and the execution to which a compared value belongs. The
    /// compared values of a call are its arguments, in order.
    fn tell_argument(&mut self, found: &mut Divergence) {
        let mut count = |side: usize, statement: u32| {
            let known = self.of(side, statement);
            let call = known.filter(|known| known.class == Class::Call);
            call.map_or(0, |call| call.arguments)
        };
        let counts = [count(0, found.a), count(1, found.b)];
        if counts.iter().any(|&count| count > 0) {
            let counts = counts.map(|count| u64::from(count.max(1)));
            let positions = [0, 1].map(|side| (found.numbers[side] - 1) % counts[side]);
            found.arguments = Some(positions.map(|position| position as u32 + 1));
            for (number, count) in found.numbers.iter_mut().zip(counts) {
                *number = (*number - 1) / count + 1;
            }
        }
    }
}

/// The objects that the second version places elsewhere, by the distance they have moved.
struct Moves(HashMap<u64, Moved>);

/// The objects that moved by one distance.
struct Moved {
    /// The number of pairs of statements that access these objects.
    times: u32,
    /// The lowest address of these objects in the first version, or the lowest pointer to one of
    /// them.
    first: u64,
    /// The highest address of these objects in the first version.
    last: u64,
}

/// The assumed distance by which an object extends beyond its accessed bytes. A run need not access
/// all parts of an object.
const AROUND: u64 = 1024;

impl Moves {
    /// Whether two values are the addresses of one of these objects in the two versions, or the
    /// negations of these addresses. Numbers that differ by the same distance but are not near the
    /// objects do not count.
    fn lead(&self, values: [u64; 2]) -> bool {
        // Compilers write `-p & 15` for the distance from `p` to the next multiple of 16.
        let negative = values.map(|value| match u32::try_from(value) {
            Ok(value) => value.wrapping_neg().into(),
            Err(_) => value.wrapping_neg(),
        });
        self.lead_from(values) || self.lead_from(negative)
    }

    fn lead_from(&self, [a, b]: [u64; 2]) -> bool {
        let moved = self.0.get(&b.wrapping_sub(a));
        moved.is_some_and(|moved| {
            let around = moved.first.saturating_sub(AROUND)..=moved.last.saturating_add(AROUND);
            moved.times >= MOVED && a.min(b) >= ADDRESSES && around.contains(&a)
        })
    }
}

/// Finds the objects that have moved. Their loads and stores step from address to address in the
/// same way in both versions, but start at different addresses.
fn moves(versions: [&Version; 2], matching: &Matching) -> Moves {
    let mut moves: HashMap<u64, Moved> = HashMap::new();
    for (b, found) in versions[1].statements.iter().zip(&matching.of_b) {
        let a = found
            .as_ref()
            .map(|found| &versions[0].statements[found.a as usize]);
        let of_a = a.and_then(|a| a.addresses.as_ref());
        if let (Some(of_a), Some(of_b)) = (of_a, &b.addresses)
            && (of_a.count, of_a.steps) == (of_b.count, of_b.steps)
            && of_a.first != of_b.first
        {
            let distance = of_b.first.wrapping_sub(of_a.first);
            // A pointer to an object is lower than the addresses accessed through it. An access at
            // a constant address has no pointer.
            let pointer = a.map_or(0, |a| of_a.smallest.saturating_sub(a.offset));
            let first = if pointer >= ADDRESSES {
                pointer
            } else {
                of_a.smallest
            };
            let moved = moves.entry(distance).or_insert(Moved {
                times: 0,
                first,
                last: of_a.largest,
            });
            moved.times += 1;
            moved.first = moved.first.min(first);
            moved.last = moved.last.max(of_a.largest);
        }
    }
    Moves(moves)
}

/// Distinguishes pairs that compute different results from the same operands from pairs that only
/// pass a difference on.
fn tell_origins<S: Segments>(
    matching: &Matching,
    operators: &mut Operators<'_, '_, S>,
    found: &mut [Divergence],
) {
    let versions = operators.versions.map(|sketched| &sketched.version);
    let when: HashMap<u32, (u64, u32)> = found
        .iter()
        .map(|found| (found.b, (found.times[1], found.b)))
        .collect();
    let users = versions[1].users();
    for found in found {
        let statement = &versions[1].statements[found.b as usize];
        let mine = (found.times[1], found.b);
        let passed = statement.producers.iter().any(|producer| match producer {
            Producer::Statement(maker) => when.get(maker).is_some_and(|&before| before < mine),
            Producer::Constant(_) => false,
        });
        found.origin = match statement.class {
            _ if passed => Origin::Passed,
            // The same operator gives the same result from the same operands.
            Class::Compute | Class::Test
                if !operators.one_chooses(found)
                    && is_changed(versions, matching, found, operators.may_be_addresses(found))
                    && matters(versions, matching, &users, found.b) =>
            {
                Origin::Computed
            }
            _ => Origin::Read,
        };
    }
}

/// The maximum number of statements to examine between a statement and the final users of its
/// value. If there are more, the difference is assumed to matter.
const FOLLOWED: usize = 64;

/// Whether a different computation in the second version has a lasting effect. It has one if its
/// value reaches a statement that acts differently from its counterpart. The value may pass through
/// other statements that also compute differently. The computation also has a lasting effect if its
/// value reaches a statement that has no counterpart and is not a computation. Otherwise, an
/// optimiser only computes an address or a condition in different steps.
fn matters(
    versions: [&Version; 2],
    matching: &Matching,
    users: &[Vec<u32>],
    statement: u32,
) -> bool {
    let mut seen = HashSet::from([statement]);
    let mut open = vec![statement];
    while let Some(at) = open.pop() {
        for &user in &users[at as usize] {
            if !seen.insert(user) {
                continue;
            }
            if seen.len() > FOLLOWED {
                return true;
            }
            let of_b = &versions[1].statements[user as usize];
            let found = matching.of_b[user as usize].as_ref();
            let computes = matches!(of_b.class, Class::Compute | Class::Test);
            match found {
                Some(found) if computes && !found.evidence.operator => open.push(user),
                Some(found) => {
                    let of_a = &versions[0].statements[found.a as usize];
                    let values = found.evidence.values;
                    let off = values == Values::Shifted && is_off(&of_a.values, &of_b.values);
                    if off || !did_the_same(of_a, of_b, values) {
                        return true;
                    }
                }
                None if computes => open.push(user),
                None => return true,
            }
        }
    }
    false
}

/// Whether a statement's executions acted like its counterpart's executions.
pub(super) fn did_the_same(a: &Statement, b: &Statement, values: Values) -> bool {
    let shorter = a.values.count.min(b.values.count);
    let same = match values {
        Values::Same | Values::Shifted | Values::Permuted | Values::Part => true,
        Values::Prefix => a.values.common_prefix(&b.values) >= shorter,
        Values::Unknown | Values::Some | Values::Different => false,
    };
    same && match (&a.addresses, &b.addresses) {
        (Some(x), Some(y)) if x.count == y.count => x.steps == y.steps,
        _ => true,
    }
}

/// Whether the statements of a pair have different operators or constants, but otherwise the same
/// operands. With `addresses`, constants that may be addresses do not count.
fn is_changed(
    versions: [&Version; 2],
    matching: &Matching,
    found: &Divergence,
    addresses: bool,
) -> bool {
    let evidence = matching.of_b[found.b as usize].as_ref().map(|m| m.evidence);
    let Some(evidence) = evidence else {
        return false;
    };
    let [a, b] = [(0, found.a), (1, found.b)].map(|(side, at)| {
        let statement = &versions[side].statements[at as usize];
        let producers = statement.producers.iter();
        let constants = producers.filter_map(|producer| match producer {
            Producer::Constant(value) => Some(*value),
            Producer::Statement(_) => None,
        });
        (statement.exact, constants.collect::<BTreeSet<u64>>())
    });
    let operator = a.0 != b.0;
    let only = |these: &BTreeSet<u64>, others: &BTreeSet<u64>| {
        let mut only = these.difference(others).peekable();
        only.peek().is_some() && only.all(|value| *value < ADDRESSES || !addresses)
    };
    let constant = only(&a.1, &b.1) || only(&b.1, &a.1);
    let changed = match found.took {
        Took::Same => operator,
        Took::SameVariables => operator || constant,
        Took::Else => false,
    };
    let (same, all) = evidence.operands;
    let makers = all > 0 && same + u32::from(a.1 != b.1) >= all;
    changed && (makers || evidence.same_code)
}

/// Whether two sequences that differ by a constant are numbers, and not addresses of a moved
/// object.
fn is_off(a: &Sketch, b: &Sketch) -> bool {
    !(a.may_be_addresses() && b.may_be_addresses())
}

/// Returns the pairs to examine. If there are too many, only the pairs that were executed first.
fn open_pairs(versions: [&Version; 2], matching: &Matching) -> Vec<Open> {
    let pairs = (0..).zip(&matching.of_b).filter_map(|(b, found)| {
        let found = found.as_ref()?;
        let evidence = &found.evidence;
        let of_a = &versions[0].statements[found.a as usize].values;
        let of_b = &versions[1].statements[b as usize].values;
        let shorter = of_a.count.min(of_b.count);
        let same = of_a.common_prefix(of_b).min(shorter);
        let class = versions[1].statements[b as usize].class;
        let decides = matches!(class, Class::Test | Class::Branch | Class::Table);
        let takes = evidence.operands.1 > 0 && evidence.operands.0 == evidence.operands.1;
        let equally_often = of_a.count == of_b.count && evidence.operator;
        // The result of a changed operator may differ from the first execution on. The versions may
        // then take different paths.
        let computes = matches!(class, Class::Compute | Class::Test);
        let other = !evidence.operator && computes && (takes || evidence.same_code);
        let comparable = equally_often && takes || evidence.same_code || other;
        let wanted = match evidence.values {
            // Both statements compared the same values.
            Values::Same if decides => equally_often && takes || evidence.same_code,
            Values::Shifted if is_off(of_a, of_b) => {
                computes && (takes || evidence.same_code || other)
            }
            Values::Same | Values::Permuted | Values::Shifted => false,
            // Optimisers rotate loops, and split and join conditions.
            _ if decides && !comparable => false,
            Values::Prefix => true,
            _ => other || of_a.count == of_b.count && (takes || evidence.same_code),
        };
        (wanted && same < shorter).then_some(Open {
            a: found.a,
            b,
            same,
            differ: shorter.min(same.saturating_mul(2).max(1)),
        })
    });
    let mut pairs: Vec<Open> = pairs.collect();
    pairs.sort_by_key(|pair| versions[1].statements[pair.b as usize].first);
    pairs.truncate(PAIRS);
    pairs
}
