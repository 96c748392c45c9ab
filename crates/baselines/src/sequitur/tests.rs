//! Tests that Sequitur's grammars generate their strings and have the two defining properties.

use super::{MAX_TERMINAL, Sequitur, SequiturError};
use crate::{Grammar, Symbol};
use proptest::prelude::*;
use std::collections::HashMap;

fn build(string: &[u32]) -> Sequitur {
    let mut sequitur = Sequitur::new();
    for &symbol in string {
        sequitur.push(symbol).unwrap();
    }
    sequitur
}

fn rules(grammar: &Grammar) -> Vec<&[Symbol]> {
    (0..grammar.rules() as u32)
        .map(|rule| grammar.rule(rule))
        .collect()
}

/// Checks that no pair of neighbours occurs twice without overlap, by comparing the positions of
/// all its occurrences.
fn digrams_are_unique(grammar: &Grammar) -> Result<(), String> {
    let mut places: HashMap<(Symbol, Symbol), Vec<(usize, usize)>> = HashMap::new();
    for (rule, symbols) in rules(grammar).into_iter().enumerate() {
        for (at, pair) in symbols.windows(2).enumerate() {
            places
                .entry((pair[0], pair[1]))
                .or_default()
                .push((rule, at));
        }
    }
    for (pair, places) in places {
        for (i, a) in places.iter().enumerate() {
            for b in &places[i + 1..] {
                if a.0 != b.0 || a.1.abs_diff(b.1) > 1 {
                    return Err(format!("{pair:?} at {a:?} and {b:?} of {grammar:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Checks that every rule except the start rule is used at least twice, and only by rules with
/// smaller numbers.
fn rules_are_useful(grammar: &Grammar) -> Result<(), String> {
    let mut uses = vec![0; grammar.rules()];
    for (number, rhs) in (0..).zip(rules(grammar)) {
        for &symbol in rhs {
            if let Symbol::Rule(rule) = symbol {
                uses[rule as usize] += 1;
                if rule <= number {
                    return Err(format!("{rule} is used by {number} in {grammar:?}"));
                }
            }
        }
    }
    if uses[0] != 0 || uses[1..].iter().any(|&n| n < 2) {
        return Err(format!("uses {uses:?} of {grammar:?}"));
    }
    Ok(())
}

fn check(string: &[u32]) -> Result<(), String> {
    let sequitur = build(string);
    let grammar = sequitur.grammar();
    if rules(&grammar)[1..].iter().any(|rule| rule.len() < 2) {
        return Err(format!("a rule of one symbol in {grammar:?}"));
    }
    check_built(string, &sequitur)
}

fn check_built(string: &[u32], sequitur: &Sequitur) -> Result<(), String> {
    let grammar = sequitur.grammar();
    if !grammar.expand().eq(string.iter().copied()) {
        return Err(format!("{string:?} is not what {grammar:?} generates"));
    }
    let size = grammar.size();
    if (size.rules, size.symbols) != (sequitur.rules() as u64, sequitur.symbols() as u64)
        || sequitur.len() != string.len() as u64
    {
        return Err(format!("{size:?} of {string:?} is miscounted"));
    }
    let even = grammar.restricted(|terminal| terminal % 2 == 0);
    if !even
        .expand()
        .eq(string.iter().copied().filter(|symbol| symbol % 2 == 0))
        || rules(&even)[1..].iter().any(|rule| rule.is_empty())
    {
        return Err(format!("{even:?} is not {grammar:?} without odd terminals"));
    }
    digrams_are_unique(&grammar)
        .and_then(|()| rules_are_useful(&grammar))
        .map_err(|e| format!("{string:?}: {e}"))
}

/// Formats the grammar, with letters for terminals and capitals for rules other than S.
fn shown(string: &str) -> String {
    let string: Vec<u32> = string.bytes().map(u32::from).collect();
    let grammar = build(&string).grammar();
    let rules = rules(&grammar).into_iter().enumerate().map(|(rule, rhs)| {
        let name = |rule: u32| match rule {
            0 => 'S',
            _ => char::from(b'A' + rule as u8 - 1),
        };
        let rhs: String = rhs
            .iter()
            .map(|&symbol| match symbol {
                Symbol::Terminal(terminal) => char::from(terminal as u8),
                Symbol::Rule(rule) => name(rule),
            })
            .collect();
        format!("{}→{rhs}", name(rule as u32))
    });
    rules.collect::<Vec<_>>().join(" ")
}

/// Nevill-Manning and Witten 1997, Figure 1 (a) and (b), with our rule names.
#[test]
fn published_examples() {
    assert_eq!(shown("abcdbc"), "S→aAdA A→bc");
    assert_eq!(shown("abcdbcabcdbc"), "S→AA A→aBdB B→bc");
}

#[test]
fn runs_and_overlaps() {
    assert_eq!(shown(""), "S→");
    assert_eq!(shown("aa"), "S→aa");
    assert_eq!(shown("aaa"), "S→aaa");
    assert_eq!(shown("aaaa"), "S→AA A→aa");
    assert_eq!(shown("aaaaa"), "S→AAa A→aa");
    // In bbb, the index contains the occurrence of bb that disappears.
    assert_eq!(shown("abbbabcbb"), "S→ABAcB A→ab B→bb");
}

/// Covers every string over two letters and over three, each up to a maximum length.
#[test]
fn all_short_strings() {
    for (letters, longest) in [(2u32, 15u32), (3, 9)] {
        for len in 0..=longest {
            for number in 0..letters.pow(len) {
                let string: Vec<u32> = (0..len)
                    .map(|at| number / letters.pow(at) % letters)
                    .collect();
                check(&string).unwrap();
            }
        }
    }
}

#[test]
fn a_power_of_two_repetitions_takes_logarithmic_size() {
    for log in 1..=16 {
        let string = [1, 2, 3].repeat(1 << log);
        check(&string).unwrap();
        let sequitur = build(&string);
        assert!(sequitur.symbols() <= 3 + 2 * log, "{}", sequitur.symbols());
    }
}

#[test]
fn fibonacci_strings() {
    let (mut before, mut string) = (vec![1], vec![0]);
    for generation in 0..20 {
        let next = [&string[..], &before].concat();
        before = std::mem::replace(&mut string, next);
        check(&string).unwrap();
        assert!(build(&string).symbols() <= 4 + 3 * generation);
    }
}

#[test]
fn what_cannot_be_taken_is_refused_and_changes_nothing() {
    let mut sequitur = Sequitur::with_limit(4);
    sequitur.push(MAX_TERMINAL).unwrap();
    let refused = sequitur.push(MAX_TERMINAL + 1);
    assert_eq!(
        refused,
        Err(SequiturError::SymbolTooLarge(MAX_TERMINAL + 1))
    );
    for symbol in [2, 3, 4] {
        sequitur.push(symbol).unwrap();
    }
    assert_eq!(
        sequitur.push(5),
        Err(SequiturError::GrammarFull { limit: 4 })
    );
    let string: Vec<u32> = sequitur.grammar().expand().collect();
    assert_eq!(string, [MAX_TERMINAL, 2, 3, 4]);
    assert_eq!(sequitur.len(), 4);
}

/// Generates nested repetitions, like those that loops and calls produce, from a list of phrases.
/// Each phrase is built from earlier phrases.
fn nested() -> impl Strategy<Value = Vec<u32>> {
    let phrase = prop::collection::vec((any::<prop::sample::Index>(), 1usize..5), 1..5);
    prop::collection::vec(phrase, 1..7).prop_map(|phrases| {
        let mut strings: Vec<Vec<u32>> = (0..4).map(|letter| vec![letter]).collect();
        for phrase in phrases {
            let mut string = Vec::new();
            for (which, times) in phrase {
                string.extend(which.get(&strings).repeat(times));
            }
            string.truncate(3000);
            strings.push(string);
        }
        strings.pop().unwrap_or_default()
    })
}

/// Changes a few letters of a generated string.
fn disturbed(string: impl Strategy<Value = Vec<u32>>) -> impl Strategy<Value = Vec<u32>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0u32..4), 0..4);
    (string, changes).prop_map(|(mut string, changes)| {
        for (at, letter) in changes {
            if !string.is_empty() {
                let at = at.index(string.len());
                string[at] = letter;
            }
        }
        string
    })
}

/// Generates a short string that is repeated.
fn periodic() -> impl Strategy<Value = Vec<u32>> {
    (prop::collection::vec(0u32..3, 1..12), 1usize..60)
        .prop_map(|(period, times)| period.repeat(times))
}

/// Checks that a rule is also reused if the index contains another occurrence of its pair. Reading
/// symbol by symbol never causes this.
#[test]
fn a_whole_rule_is_used_again_from_either_side() {
    let mut sequitur = build(&[1, 2, 1, 2]);
    let in_rule = sequitur.arena.next(sequitur.arena.guard(1));
    for symbol in [3, 1, 2] {
        sequitur.append(symbol).unwrap();
    }
    sequitur.forget(in_rule);
    sequitur.settle();
    assert_eq!(sequitur.rules(), 2);
    sequitur.pending.push(in_rule);
    sequitur.settle();
    check_built(&[1, 2, 1, 2, 3, 1, 2], &sequitur).unwrap();
    assert_eq!((sequitur.rules(), sequitur.symbols()), (2, 6));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_strings(letters in 1u32..6, string in prop::collection::vec(any::<u32>(), 0..400)) {
        let string: Vec<u32> = string.into_iter().map(|symbol| symbol % letters).collect();
        prop_assert_eq!(check(&string), Ok(()));
    }

    #[test]
    fn periodic_strings(string in disturbed(periodic())) {
        prop_assert_eq!(check(&string), Ok(()));
    }

    #[test]
    fn nested_strings(string in disturbed(nested())) {
        prop_assert_eq!(check(&string), Ok(()));
    }

    /// Reading symbol by symbol rarely, if ever, makes a run grow at its front, or leaves the
    /// second symbol of a rule underused. Examining the pairs of the whole string in arbitrary
    /// order does both.
    #[test]
    fn any_order_will_do(
        string in prop_oneof![
            (1u32..4, prop::collection::vec(any::<u32>(), 0..100))
                .prop_map(|(letters, string)| string.into_iter().map(|symbol| symbol % letters).collect()),
            periodic(),
            nested(),
        ],
        seed in any::<u64>(),
    ) {
        let mut sequitur = Sequitur::new();
        for &symbol in &string {
            sequitur.append(symbol).unwrap();
        }
        // This is splitmix64.
        sequitur.pending.sort_by_cached_key(|&node| {
            let z = seed.wrapping_add(u64::from(node).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        sequitur.settle();
        prop_assert_eq!(check_built(&string, &sequitur), Ok(()));
    }
}
