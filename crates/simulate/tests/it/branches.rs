//! Tests of the branch predictors.

use std::collections::HashMap;

use afterimage_simulate::{Predictor, PredictorKind, PredictorSpec};

use crate::naive_tage::NaiveTage;
use crate::random::Random;

/// An executed branch.
#[derive(Clone, Copy)]
enum Branch {
    Conditional(u64, bool),
    Indirect(u64, u64),
}

/// Generates a mix of loops, correlated branches, random branches and indirect branches.
fn branches(seed: u64, count: usize) -> Vec<Branch> {
    let mut random = Random(seed);
    let mut made = Vec::new();
    while made.len() < count {
        let place = 0x40 + random.below(300) * 3;
        match random.below(5) {
            0 => {
                let times = 1 + random.below(12);
                made.extend((0..times).map(|i| Branch::Conditional(place, i + 1 < times)));
            }
            1 => {
                let (a, b) = (random.once_in(2), random.once_in(2));
                let all = [(place, a), (place + 1, b), (place + 2, a ^ b)];
                made.extend(all.map(|(place, taken)| Branch::Conditional(place, taken)));
            }
            2 => made.push(Branch::Conditional(place, random.once_in(2))),
            3 => made.push(Branch::Conditional(place, !random.once_in(20))),
            _ => made.push(Branch::Indirect(place, random.below(4) * 77)),
        }
    }
    made.truncate(count);
    made
}

fn run(spec: &str, branches: &[Branch]) -> Vec<bool> {
    let mut predictor = Predictor::new(&spec.parse().expect(spec));
    let next = |branch: &Branch| match *branch {
        Branch::Conditional(place, taken) => predictor.conditional(place, taken),
        Branch::Indirect(place, target) => predictor.indirect(place, target),
    };
    branches.iter().map(next).collect()
}

/// Counts the mispredicted conditional branches from `first` on.
fn wrong(spec: &str, branches: &[Branch], first: usize) -> usize {
    let right = run(spec, branches);
    right[first..].iter().filter(|&&right| !right).count()
}

/// Counters, histories and targets in unbounded tables.
struct Naive {
    spec: PredictorSpec,
    counters: HashMap<u64, i32>,
    targets: HashMap<u64, u64>,
    tage: Option<NaiveTage>,
    /// The outcomes, oldest first.
    history: Vec<bool>,
}

impl Naive {
    fn new(spec: PredictorSpec, lengths: &[u32]) -> Self {
        Self {
            tage: match spec.kind {
                PredictorKind::Tage(tage) => Some(NaiveTage::new(tage, lengths)),
                _ => None,
            },
            spec,
            counters: HashMap::new(),
            targets: HashMap::new(),
            history: Vec::new(),
        }
    }

    /// Returns the last `count` outcomes as a number.
    fn last(&self, count: u32) -> u64 {
        let from = self.history.len().saturating_sub(count as usize);
        let last = self.history[from..].iter();
        last.fold(0, |sum, &bit| sum * 2 + u64::from(bit))
    }

    fn next(&mut self, branch: Branch) -> bool {
        match branch {
            Branch::Conditional(place, taken) => {
                let index = match self.spec.kind {
                    PredictorKind::Bimodal { bits } => place % (1 << bits),
                    PredictorKind::Gshare { bits, history } => {
                        (place ^ self.last(history)) % (1 << bits)
                    }
                    PredictorKind::Tage(_) => 0,
                };
                let predicted = match &mut self.tage {
                    Some(tage) => tage.next(place, taken),
                    None => {
                        let counter = self.counters.entry(index).or_insert(1);
                        let predicted = *counter > 1;
                        *counter = (*counter + if taken { 1 } else { -1 }).clamp(0, 3);
                        predicted
                    }
                };
                self.history.push(taken);
                predicted == taken
            }
            Branch::Indirect(place, target) => {
                let bits = self.spec.targets;
                let history = match self.spec.kind {
                    PredictorKind::Bimodal { .. } => 0,
                    PredictorKind::Gshare { history, .. } => self.last(history.min(bits)),
                    PredictorKind::Tage(_) => self.last(bits),
                };
                let index = (place ^ history) % (1 << bits);
                let right = self.targets.insert(index, target) == Some(target);
                let parity = target.count_ones() % 2 == 1;
                self.history.push(parity);
                if let Some(tage) = &mut self.tage {
                    tage.remember(parity);
                }
                right
            }
        }
    }
}

#[test]
fn predictors_are_what_their_definitions_say() {
    let cases: [(&str, &[u32], usize); 8] = [
        ("bimodal:bits=4,targets=3", &[], 20_000),
        ("bimodal", &[], 20_000),
        ("gshare:bits=6,history=6,targets=2", &[], 20_000),
        ("gshare", &[], 20_000),
        ("gshare:bits=10,history=0", &[], 20_000),
        (
            "tage:base=5,bits=4,tables=3,tag=5,min=2,max=18",
            &[2, 6, 18],
            20_000,
        ),
        ("tage:bits=1,tables=1,tag=4,min=3,max=3", &[3], 5_000),
        // This is long enough for the useful counters to lose both bits.
        (
            "tage:base=6,bits=6,tables=4,tag=8,min=4,max=32",
            &[4, 8, 16, 32],
            560_000,
        ),
    ];
    for (seed, (text, lengths, count)) in (1..).zip(cases) {
        let spec: PredictorSpec = text.parse().expect(text);
        let branches = branches(seed, count);
        let mut naive = Naive::new(spec, lengths);
        let mut predictor = Predictor::new(&spec);
        for (i, &branch) in branches.iter().enumerate() {
            let right = match branch {
                Branch::Conditional(place, taken) => predictor.conditional(place, taken),
                Branch::Indirect(place, target) => predictor.indirect(place, target),
            };
            assert_eq!(right, naive.next(branch), "{text}, branch {i}");
        }
    }
}

#[test]
fn tage_and_long_histories_learn_loops() {
    // 60 is left out, because it is a multiple of the 10 bits to which histories are folded. Exits
    // at this distance cancel out in the index of the longest table, so exits and iterations share
    // an entry.
    for period in [2, 3, 7, 12, 30, 45, 77, 100] {
        let loops = (0..6000).map(|i| Branch::Conditional(0x77, i % period + 1 < period));
        let loops = Vec::from_iter(loops);
        let first = 3000;
        assert_eq!(wrong("tage", &loops, first), 0, "{period}");
        if period > 2 {
            let exits = (first..loops.len()).filter(|i| i % period + 1 == period);
            assert_eq!(wrong("bimodal", &loops, first), exits.count(), "{period}");
        }
        // gshare sees only the branches in its history.
        let seen = wrong("gshare:bits=14,history=12", &loops, first);
        assert_eq!(seen == 0, period <= 13, "{period}: {seen}");
    }
}

#[test]
fn history_predicts_what_follows_from_other_branches() {
    let mut random = Random(5);
    let mut correlated = Vec::new();
    for _ in 0..8000 {
        let (a, b) = (random.once_in(2), random.once_in(2));
        // The places are so far apart that XOR with four outcomes never maps two of them to one
        // index.
        for (place, taken) in [(16, a), (32, b), (48, a ^ b), (64, a == b)] {
            correlated.push(Branch::Conditional(place, taken));
        }
    }
    // Two of four branches are random.
    let first = correlated.len() / 2;
    let all = correlated.len() - first;
    let [bimodal, gshare, tage] = ["bimodal", "gshare:bits=14,history=4", "tage"]
        .map(|spec| wrong(spec, &correlated, first) as f64 / all as f64);
    assert!((0.45..0.55).contains(&bimodal), "{bimodal}");
    assert!((0.22..0.28).contains(&gshare), "{gshare}");
    // Entries for the random branches evict useful ones.
    assert!((0.22..0.36).contains(&tage), "{tage}");
}

#[test]
fn an_indirect_branch_goes_where_it_went_in_the_same_history() {
    let targets = Vec::from_iter((0..900).map(|i| Branch::Indirect(9, [1, 3, 7][i % 3])));
    assert_eq!(wrong("bimodal", &targets, 0), targets.len());
    // The parities of 1, 3 and 7 show which target came last.
    assert_eq!(wrong("gshare", &targets, 100), 0);
    assert_eq!(wrong("tage", &targets, 100), 0);
}
