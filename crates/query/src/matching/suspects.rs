//! Computations of the second version that are wrong from their first execution on, so that nothing in the first version does the same.

use std::cmp::Reverse;
use std::collections::HashSet;

use afterimage_matching::{Class, Matching, Producer, Version};

use super::Sketched;
use super::diverge::{ADDRESSES, did_the_same};
use super::runs::Matched;

/// A computation of the second version that takes what corresponds, and gives what no counterpart does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The statement of the second version.
    pub b: u32,
    /// It is another operator in a function that is the same otherwise: the statement of the first version that stands there.
    pub replaces: Option<u32>,
    /// How many statements behind it, which take what it gives, perhaps through others, correspond to something and are wrong from the first execution on, too.
    pub wrong: usize,
}

/// What is less likely is not taken for the counterpart.
const LIKELY: f32 = 0.5;
/// So many statements behind a suspect at least are wrong. Of bzip2, Lua and zstd at -O2, where nothing is wrong, 11, 31 and 21 computations have one behind them.
const WRONG: usize = 3;
/// Most statements that are looked at behind one.
const FOLLOWED: usize = 256;

/// Computations that take what corresponds and did the same at first, but of which nothing that is likely their counterpart does the same, not even at first, as nothing does behind them; those with most behind them first. Before them
/// those that are another operator in a function that is the same otherwise.
///
/// That is how a wrong operator looks whose result was wrong from the first execution on (Zhang and Gupta 2005, section 6.2: what does not match anything). What an optimiser computes in other steps ends in the same.
///
/// O(statements), and a bounded number behind each suspect. `matched` has to be of `versions`.
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
        let wrong = match replaces.is_some() || search.is_wrong_first(b) {
            true => search.wrong_behind(b),
            false => 0,
        };
        let suspect = Suspect { b, replaces, wrong };
        (replaces.is_some() || wrong >= WRONG).then_some(suspect)
    });
    let mut found = Vec::from_iter(found);
    found.sort_by_key(|suspect| {
        let first = sides[1].statements[suspect.b as usize].first;
        (suspect.replaces.is_none(), Reverse(suspect.wrong), first)
    });
    found
}

/// What is needed to find them.
struct Search<'m> {
    versions: [&'m Version; 2],
    /// With statements of the first version told apart by calls.
    apart: &'m Matching,
    matching: &'m Matching,
    users: Vec<Vec<u32>>,
    readers: Vec<Vec<(u32, f32)>>,
}

impl Search<'_> {
    /// The statement that this replaces in a function that is the same otherwise.
    fn replaces(&self, b: u32) -> Option<u32> {
        let found = self.apart.of_b[b as usize].as_ref()?;
        let of_a = &self.versions[0].statements[found.a as usize];
        let of_b = &self.versions[1].statements[b as usize];
        let other = found.evidence.same_code && of_a.exact != of_b.exact;
        let found = self.matching.of_b[b as usize].as_ref();
        found.filter(|_| other).map(|found| found.a)
    }

    /// Whether it is a computation whose makers did the same, each, at first, and itself did not.
    fn is_wrong_first(&self, b: u32) -> bool {
        let statement = &self.versions[1].statements[b as usize];
        let computes = matches!(statement.class, Class::Compute | Class::Test);
        if !computes || self.did_the_same_first(b) {
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

    /// How many statements that certainly correspond were wrong from the first execution on behind this one.
    fn wrong_behind(&self, b: u32) -> usize {
        let mut seen = HashSet::from([b]);
        let mut open = vec![b];
        let mut wrong = 0;
        while let Some(at) = open.pop() {
            let users = self.users[at as usize].iter().copied();
            let readers = self.readers[at as usize].iter().map(|(reader, _)| *reader);
            for user in users.chain(readers) {
                let room = seen.len() < FOLLOWED;
                if room && seen.insert(user) && !self.did_the_same_first(user) {
                    wrong += usize::from(self.is_wrong(user));
                    open.push(user);
                }
            }
        }
        wrong
    }

    /// Whether a statement that did something else is certainly the counterpart of another one. What may be an address differs wherever an object lies elsewhere.
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

    /// Whether a statement did what its counterpart did, or at least began so.
    fn did_the_same_first(&self, b: u32) -> bool {
        let Some(found) = &self.apart.of_b[b as usize] else {
            return false;
        };
        let of_a = &self.versions[0].statements[found.a as usize];
        let of_b = &self.versions[1].statements[b as usize];
        found.evidence.same_code
            || did_the_same(of_a, of_b, found.evidence.values)
            || of_a.values.common_prefix(&of_b.values) > 0
    }
}
