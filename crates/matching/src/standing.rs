//! Which functions of the first version stand by themselves in the second.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Class, Matching, Version};

/// A counterpart of a function has one in so many of the counterparts of its statements that the function with most of them has.
const PART: u32 = 16;

/// Functions of the first version that are the most likely counterparts of functions of the second. What is left was inlined, or not compiled at all.
///
/// The counterparts of a function's statements lie in several functions if these were inlined into it. Of those that were entered as often as the function itself it is the one that was entered first: what was inlined
/// was called from there. If none was, it is the one with most of the counterparts. O(statements).
pub fn standing(a: &Version, b: &Version, matching: &Matching) -> FxHashSet<u32> {
    let mut votes: FxHashMap<u32, FxHashMap<u32, u32>> = FxHashMap::default();
    let mut standing = FxHashSet::default();
    for (of_b, found) in b.statements.iter().zip(&matching.of_b) {
        let Some(found) = found else { continue };
        let of_a = &a.statements[found.a as usize];
        match found.evidence.same_code {
            true => {
                standing.insert(of_a.function);
            }
            false => {
                let votes = votes.entry(of_b.function).or_default();
                *votes.entry(of_a.function).or_default() += 1;
            }
        }
    }
    let (of_a, of_b) = (entries(a), entries(b));
    for (function, votes) in &votes {
        let most = votes.values().copied().max().unwrap_or(0);
        let entered = of_b.get(function).map(|entered| entered.0);
        let entered_as_often = votes.iter().filter_map(|(at, votes)| {
            let &(count, first) = of_a.get(at)?;
            (Some(count) == entered && votes * PART >= most).then_some((first, *at))
        });
        // Of equal ones the first in the program, so that the order of the map does not matter.
        let by_votes = votes.iter().map(|(at, votes)| (u32::MAX - votes, *at));
        let chosen = entered_as_often.min().map(|(_, at)| at);
        standing.extend(chosen.or_else(|| by_votes.min().map(|(_, at)| at)));
    }
    standing
}

/// By function how often it was entered, and when first: what is known of the first of its statements. Of a call each argument counts.
fn entries(version: &Version) -> FxHashMap<u32, (u64, u64)> {
    let mut entries = FxHashMap::default();
    let statements = version.statements.iter();
    for statement in statements.filter(|statement| statement.class != Class::Call) {
        let known = (statement.values.count, statement.first);
        entries.entry(statement.function).or_insert(known);
    }
    entries
}
