//! Finds computations of the second version that are wrong from their first execution on, and so
//! have no counterpart in the first.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};

use afterimage_matching::{ADDRESSES, Class, Match, Matching, Producer, Version};

use super::Sketched;
use super::diverge::did_the_same;
use super::runs::Matched;

/// A suspicious computation of the second version: its operands correspond, but its first result is
/// unlike that of any counterpart. Alternatively, it has another operator in a function that is
/// otherwise the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The statement of the second version.
    pub b: u32,
    /// When it was first executed.
    pub time: u64,
    /// If it is another operator in an otherwise identical function: the statement of the first
    /// version in its place.
    pub replaces: Option<u32>,
    /// The number of statements that use its value, perhaps through others, have a counterpart, and
    /// are also wrong from the first execution on.
    pub wrong: usize,
}

/// A less likely match is not accepted as the counterpart.
const LIKELY: f32 = 0.5;
/// The least number of wrong statements after a suspect. In bzip2, Lua and zstd at -O2, where
/// nothing is wrong, 11, 31 and 21 computations are followed by one.
const WRONG: usize = 3;
/// The largest number of statements to examine after a suspect.
const FOLLOWED: usize = 256;

/// Finds suspects, those followed by most wrong statements first.
///
/// A suspect's producers did what their likely counterparts did, at least at first. The suspect
/// itself did not do what any of its matches did, even at first. At least three later statements
/// that certainly correspond are also wrong from the first execution on. Computations that are
/// another operator in an otherwise identical function, and did not do the same, come before all
/// others.
///
/// A wrong operator shows this pattern if its result was wrong from the first execution on (Zhang
/// and Gupta 2005, section 6.2: statements that match nothing). Steps that an optimiser computes
/// differently end in the same result.
///
/// O(statements), plus a bounded number after each candidate. `matched` must belong to `versions`.
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

/// The state of the search.
struct Search<'m> {
    versions: [&'m Version; 2],
    /// The matching with statements of the first version separated by calls.
    apart: &'m Matching,
    matching: &'m Matching,
    users: Vec<Vec<u32>>,
    readers: Vec<Vec<(u32, f32)>>,
}

impl Search<'_> {
    /// The statement that this one replaces in an otherwise identical function.
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

    /// Whether it is a computation that differed at first, although each of its producers agreed.
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

    /// Counts the statements that were wrong from the first execution on, among the nearest that
    /// depend on this one and certainly correspond.
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

    /// Whether a statement that did something else certainly has a counterpart. A possible address
    /// differs whenever its object has another place.
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

    /// Whether a statement did what its counterpart did, or at least began like it.
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

    /// Whether another of its matches began as it did.
    fn is_like_another(&self, b: u32) -> bool {
        let of_b = &self.versions[1].statements[b as usize].values;
        self.apart.matches(b).any(|(a, _)| {
            let of_a = &self.versions[0].statements[a as usize].values;
            of_a.common_prefix(of_b) > 0
        })
    }
}
