//! Inlines rules that cost more than they save.

use afterimage_ids::RuleId;

use crate::{Grammar, Kind, Root, Rule, Symbol};

/// The overhead of a rule, in symbols.
const HEADER: u64 = 1;

/// Removes sequences whose rules cost more than they save. These include sequences that are used
/// once ("rule utility": Nevill-Manning and Witten, "Identifying hierarchical structure in
/// sequences", 1997). Sequences that a repetition or the root names remain rules. The remaining
/// rules are renumbered, also in `root`. Time: linear.
pub(crate) fn tidy(grammar: &Grammar, root: &mut [Root]) -> Grammar {
    let inlined = inlined(grammar, root);
    let mut tidy = Grammar::default();
    let mut renamed = vec![RuleId::from_u32(0); grammar.rules.len()];
    let mut rest = Vec::new();
    for (id, rule) in grammar.rules.iter() {
        if inlined[id.as_u32() as usize] {
            continue;
        }
        let start = tidy.symbols.len();
        rest.push(rule.start..rule.start + rule.len);
        while let Some(symbols) = rest.last_mut() {
            let Some(next) = symbols.next() else {
                rest.pop();
                continue;
            };
            let symbol = grammar.symbols[next as usize];
            match symbol.as_rule() {
                Some(child) if inlined[child.as_u32() as usize] => {
                    let child = &grammar.rules[child];
                    rest.push(child.start..child.start + child.len);
                }
                _ => tidy.symbols.push(rename(symbol, &renamed)),
            }
        }
        renamed[id.as_u32() as usize] = tidy.rules.push(Rule {
            kind: rule.kind,
            start: start as u32,
            len: (tidy.symbols.len() - start) as u32,
        });
    }
    for item in root {
        if let Root::Run(symbol) = item {
            *symbol = rename(*symbol, &renamed);
        }
    }
    tidy
}

fn rename(symbol: Symbol, renamed: &[RuleId]) -> Symbol {
    match symbol.as_rule() {
        Some(rule) => Symbol::rule(renamed[rule.as_u32() as usize]),
        None => symbol,
    }
}

/// Finds the rules that cost more than they save. A sequence of n symbols that is used u times
/// costs u + n + [`HEADER`] as a rule, and u · n without one.
fn inlined(grammar: &Grammar, root: &[Root]) -> Vec<bool> {
    let mut uses = vec![0u64; grammar.rules.len()];
    // Repetitions and root items contain a single symbol, so the sequences that they name remain
    // rules.
    let mut needed = vec![false; grammar.rules.len()];
    let at = |symbol: Symbol| symbol.as_rule().map(|rule| rule.as_u32() as usize);
    for (id, rule) in grammar.rules.iter() {
        for &symbol in grammar.symbols_of(id) {
            if let Some(child) = at(symbol) {
                uses[child] += 1;
                needed[child] |= matches!(rule.kind, Kind::Repeat(_));
            }
        }
    }
    for item in root {
        if let Root::Run(symbol) = *item
            && let Some(rule) = at(symbol)
        {
            needed[rule] = true;
        }
    }
    let mut inlined = vec![false; grammar.rules.len()];
    let mut lens = vec![1u64; grammar.rules.len()];
    for (id, rule) in grammar.rules.iter() {
        let this = id.as_u32() as usize;
        if rule.kind != Kind::Sequence || needed[this] {
            continue;
        }
        let len: u64 = grammar
            .symbols_of(id)
            .iter()
            .map(|&symbol| at(symbol).map_or(1, |child| lens[child]))
            .sum();
        if uses[this] * len <= uses[this] + len + HEADER {
            inlined[this] = true;
            lens[this] = len;
        }
    }
    inlined
}
