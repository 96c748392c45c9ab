//! Finds computations of the second version that are wrong from their first execution on. Most of
//! them have no likely counterpart in the first version.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};

use afterimage_matching::{ADDRESSES, Class, Match, Matching, Producer, Version};

use super::Sketched;
use super::diverge::did_the_same;
use super::runs::Matched;

/// A suspicious computation of the second version. Either its operands correspond but no possible
/// counterpart has the same first result, or it has a different operator in an otherwise identical
/// function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The statement of the second version.
    pub b: u32,
    /// The time of the suspect's first execution.
    pub time: u64,
    /// The statement of the first version that the suspect replaces, if the suspect is a different
    /// operator in an otherwise identical function.
    pub replaces: Option<u32>,
    /// The number of wrong statements that depend on the suspect. They use the suspect's value,
    /// perhaps through other statements, have a counterpart, and are also wrong from the first
    /// execution on.
    pub wrong: usize,
}

/// The minimum likelihood at which a match is accepted as the counterpart.
const LIKELY: f32 = 0.5;
/// The minimum number of wrong statements that must depend on a suspect. In bzip2, Lua and zstd at
/// -O2, where nothing is wrong, 11, 31 and 21 computations have one dependent statement that seems
/// wrong.
const WRONG: usize = 3;
/// The maximum number of dependent statements to examine for one suspect.
const FOLLOWED: usize = 256;

/// Finds suspects. Suspects on which the most wrong statements depend come first.
///
/// A suspect's producers did what their likely counterparts did, at least in their first
/// executions. The suspect itself differs from all its matches, even in its first execution. At
/// least three later statements with likely counterparts are also wrong from the first execution
/// on. Computations that have a different operator in an otherwise identical function, and computed
/// different values, come before all others.
///
/// A wrong operator shows this pattern if its result was wrong from the first execution on (Zhang
/// and Gupta 2005, section 6.2: statements that match nothing). If an optimiser only computes a
/// value in different steps, later results are the same again.
///
/// O(statements), plus a bounded number of dependent statements for each candidate. `matched` must
/// belong to `versions`.
pub fn suspects(versions: [&Sketched; 2], matched: &Matched) -> Vec<Suspect> {
    let sides = [&matched.apart.version, &versions[1].version];
    let search = Search {
        versions: sides,
        apart: &matched.matching_apart,
        matching: &matched.matching,
        users: sides[1].users(),
        readers: sides[1].readers(),
    };
    let all = 0..sides[1].statements.len() as u32;
    let found = all.filter_map(|b| {
        let replaces = search.replaces(b);
        let wrong = if replaces.is_some() || search.is_wrong_first(b) {
            search.wrong_behind(b)
        } else {
            0
        };
        let time = sides[1].statements[b as usize].first;
        let suspect = Suspect {
            b,
            time,
            replaces,
            wrong,
        };
        (replaces.is_some() || wrong >= WRONG).then_some(suspect)
    });
    let mut found = Vec::from_iter(found);
    found.sort_by_key(|suspect| {
        let replaces = suspect.replaces.is_some();
        (!replaces, Reverse(suspect.wrong), suspect.time)
    });
    found
}

struct Search<'m> {
    versions: [&'m Version; 2],
    /// The matching in which the first version's statements are separated by calls.
    apart: &'m Matching,
    matching: &'m Matching,
    users: Vec<Vec<u32>>,
    readers: Vec<Vec<(u32, f32)>>,
}

impl Search<'_> {
    /// Returns the statement that `b` replaces in an otherwise identical function.
    fn replaces(&self, b: u32) -> Option<u32> {
        let found = self.apart.of_b[b as usize].as_ref()?;
        let of_a = &self.versions[0].statements[found.a as usize];
        let of_b = &self.versions[1].statements[b as usize];
        let computes = matches!(of_b.class, Class::Compute | Class::Test);
        // The outcome of a test is known only relative to its first execution.
        let same = of_b.class == Class::Compute && self.began_as(b, found);
        let other = computes && found.evidence.same_code && of_a.exact != of_b.exact && !same;
        let found = self.matching.of_b[b as usize].as_ref();
        found.filter(|_| other).map(|found| found.a)
    }

    /// Whether `b` is a computation that differed in its first execution, although all of its
    /// producers agreed.
    fn is_wrong_first(&self, b: u32) -> bool {
        let statement = &self.versions[1].statements[b as usize];
        let computes = matches!(statement.class, Class::Compute | Class::Test);
        if !computes || self.did_the_same_first(b) || self.is_like_another(b) {
            return false;
        }
        let found = self.apart.of_b[b as usize].as_ref();
        if self.is_likely(b) && found.is_some_and(|found| found.evidence.operator) {
            return false;
        }
        let makers = statement.producers.iter().filter_map(|maker| match maker {
            Producer::Statement(maker) => Some(*maker),
            Producer::Constant(_) => None,
        });
        let makers = Vec::from_iter(makers);
        let is_right = |&maker: &u32| self.is_likely(maker) && self.did_the_same_first(maker);
        !makers.is_empty() && makers.iter().all(is_right)
    }

    /// Counts statements that were wrong from the first execution on and have likely counterparts,
    /// among the nearest statements that depend on this statement.
    fn wrong_behind(&self, b: u32) -> usize {
        let mut seen = HashSet::from([b]);
        let mut open = VecDeque::from([b]);
        let mut wrong = 0;
        while let Some(at) = open.pop_front() {
            let users = self.users[at as usize].iter().copied();
            let readers = self.readers[at as usize].iter().map(|(reader, _)| *reader);
            for user in users.chain(readers) {
                if !seen.insert(user) {
                    continue;
                }
                let found = self.apart.of_b[user as usize].as_ref();
                if !found.is_some_and(|found| self.began_as(user, found)) {
                    wrong += usize::from(self.is_wrong(user));
                    open.push_back(user);
                }
                if seen.len() == FOLLOWED {
                    return wrong;
                }
            }
        }
        wrong
    }

    /// Whether a statement that acted differently has a likely counterpart with the same operator.
    /// Values that may be addresses do not count, because they differ whenever an object is placed
    /// elsewhere.
    fn is_wrong(&self, b: u32) -> bool {
        self.apart.of_b[b as usize].as_ref().is_some_and(|found| {
            let of_a = &self.versions[0].statements[found.a as usize].values;
            self.is_likely(b) && found.evidence.operator && of_a.smallest < ADDRESSES
        })
    }

    fn is_likely(&self, b: u32) -> bool {
        let mut matches = self.matching.matches(b);
        matches.next().is_some_and(|(_, likely)| likely >= LIKELY)
    }

    /// Whether a statement did what its counterpart did, at least in its first execution.
    fn did_the_same_first(&self, b: u32) -> bool {
        let found = self.apart.of_b[b as usize].as_ref();
        found.is_some_and(|found| found.evidence.same_code || self.began_as(b, found))
    }

    fn began_as(&self, b: u32, found: &Match) -> bool {
        let of_a = &self.versions[0].statements[found.a as usize];
        let of_b = &self.versions[1].statements[b as usize];
        did_the_same(of_a, of_b, found.evidence.values)
            || of_a.values.common_prefix(&of_b.values) > 0
    }

    /// Whether one of the statement's matches had the same value in the first execution.
    fn is_like_another(&self, b: u32) -> bool {
        let of_b = &self.versions[1].statements[b as usize].values;
        self.apart.matches(b).any(|(a, _)| {
            let of_a = &self.versions[0].statements[a as usize].values;
            of_a.common_prefix(of_b) > 0
        })
    }
}
