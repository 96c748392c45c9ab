//! Compares closed lists with their definition, which folds whole levels, one after another.

use afterimage_ids::NodeId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Merges equal neighbours into runs.
fn runs(list: &[(Symbol, u64)]) -> Vec<(Symbol, u64)> {
    let mut runs: Vec<(Symbol, u64)> = Vec::new();
    for &(symbol, count) in list {
        match runs.last_mut() {
            Some(last) if last.0 == symbol => last.1 += count,
            _ => runs.push((symbol, count)),
        }
    }
    runs
}

/// Returns the blocks of a level, which form the next level.
fn blocks(level: &[(Symbol, u64)]) -> Vec<Vec<(Symbol, u64)>> {
    let mut blocks = vec![vec![level[0]]];
    for at in 1..level.len() {
        let key = |at: usize| scramble(level[at].0);
        let last = blocks.len() - 1;
        let low = at + 1 < level.len() && key(at) < key(at - 1) && key(at) < key(at + 1);
        if low && blocks[last].len() >= 2 || blocks[last].len() == LONGEST {
            blocks.push(Vec::new());
        }
        let last = blocks.len() - 1;
        blocks[last].push(level[at]);
    }
    blocks
}

fn one(block: &[(Symbol, u64)], rules: &mut Consing) -> (Symbol, u64) {
    if let [run] = block {
        return *run;
    }
    let symbols: Vec<_> = block
        .iter()
        .map(|&(symbol, count)| rules.repeat(symbol, count))
        .collect();
    (rules.sequence(&symbols), 1)
}

fn closed(list: &[(Symbol, u64)], rules: &mut Consing) -> Option<(Symbol, u64)> {
    let mut level = runs(list);
    while level.len() > FLAT {
        let above: Vec<_> = blocks(&level)
            .iter()
            .map(|block| one(block, rules))
            .collect();
        level = runs(&above);
    }
    (!level.is_empty()).then(|| one(&level, rules))
}

/// Generates lists of few or many symbols, with recurring stretches and with slopes that have no
/// local minimum.
fn lists() -> impl Strategy<Value = Vec<(Symbol, u64)>> {
    let stretch = prop_oneof![
        vec((0..50u32, 1..3u64), 0..100),
        vec((0..3u32, 1..2u64), 0..100),
        (1..80usize).prop_map(|length| {
            let mut slope: Vec<_> = (0..length as u32).collect();
            slope.sort_by_key(|&node| scramble(Symbol::node(NodeId::from_u32(node))));
            slope.into_iter().map(|node| (node, 1)).collect()
        }),
    ];
    (vec(stretch, 1..5), vec(0..5usize, 0..30)).prop_map(|(stretches, order)| {
        let order = order.iter().map(|at| at % stretches.len());
        let list = order.flat_map(|at| &stretches[at]);
        list.map(|&(node, count)| (Symbol::node(NodeId::from_u32(node)), count))
            .collect()
    })
}

proptest! {
    /// Equal rules are created only once, so equal symbols represent equal trees.
    #[test]
    fn lists_are_folded_level_by_level(list in lists(), inner in lists()) {
        let mut rules = Consing::default();
        let mut lists = Lists::default();
        lists.open();
        let (first, second) = list.split_at(list.len() / 2);
        for &(symbol, count) in first {
            lists.push(symbol, count, &mut rules);
        }
        lists.open();
        for &(symbol, count) in &inner {
            lists.push(symbol, count, &mut rules);
        }
        prop_assert_eq!(lists.close(&mut rules), closed(&inner, &mut rules));
        for &(symbol, count) in second {
            lists.push(symbol, count, &mut rules);
        }
        prop_assert_eq!(lists.close(&mut rules), closed(&list, &mut rules));
        prop_assert_eq!(lists.len(), 0);
    }

    #[test]
    fn iterations_are_appended(iterations in vec(vec((0..3u32, 1..3u64), 0..3), 0..200)) {
        let mut rules = Consing::default();
        let mut lists = Lists::default();
        lists.open();
        lists.open();
        let mut list = Vec::new();
        for iteration in &iterations {
            let iteration: Vec<_> = iteration
                .iter()
                .map(|&(node, count)| (Symbol::node(NodeId::from_u32(node)), count))
                .collect();
            for &(symbol, count) in &iteration {
                lists.push(symbol, count, &mut rules);
            }
            lists.close_and_open(&mut rules);
            list.extend(closed(&iteration, &mut rules));
        }
        prop_assert_eq!(lists.close(&mut rules), None);
        prop_assert_eq!(lists.close(&mut rules), closed(&list, &mut rules));
    }
}
