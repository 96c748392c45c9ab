//! Fits the weights for matching versions. The probabilities of a statement's candidates are
//! proportional to the exponentials of their features' weighted sums. Gradient steps (Adam, Kingma
//! and Ba 2015) make the right candidates as likely as possible (conditional logit, McFadden 1974).
//!
//! The line tables show which candidates are right. All pairs of recordings count equally. The fit
//! draws the weights of each kind of statement towards the weights common to all kinds.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afterimage_analyses::matching::{Accuracy, Feature, KINDS, StageRecord, Trial, Weights};
use anyhow::{Result, bail};

use crate::matching::{Pair, load};

/// The options of the fit.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Recordings with their paths, in pairs: first the unoptimised version, then the optimised
    /// version, on the same input
    #[arg(value_name = "FILE.aft", required = true)]
    recordings: Vec<PathBuf>,
    /// Match and fit this many times, each time with the previous weights
    #[arg(long, value_name = "N", default_value_t = 2)]
    rounds: usize,
    /// The number of gradient steps in each round
    #[arg(long, value_name = "N", default_value_t = 300)]
    steps: usize,
    /// The strength with which the weights of a kind are drawn towards the common weights
    #[arg(long, default_value_t = 0.01)]
    pull: f32,
    /// Also match each program with weights that were fitted only to the other programs
    #[arg(long)]
    leave_out: bool,
}

/// The number of columns of weights, which is stages times kinds.
const COLUMNS: usize = 2 * KINDS;
/// The largest number of wrong candidates to keep for a statement.
const MOST: usize = 24;
/// The length of a gradient step.
const STEP: f32 = 0.03;

/// Statements with their candidates, stored flat.
#[derive(Default)]
struct Examples {
    /// For each statement, the column of its weights, and the position where its candidates end.
    statements: Vec<(u8, u32)>,
    /// For each candidate, whether it is right, and the position where its features end.
    candidates: Vec<(bool, u32)>,
    features: Vec<(u8, f32)>,
}

impl Examples {
    /// Adds a statement. Nothing can be learnt from a statement without both a right and a wrong
    /// candidate.
    fn push(&mut self, told: &StageRecord, weights: &Weights, right: impl Fn(u32) -> bool) {
        let column = weights.column(told.column);
        let scored = told.candidates.iter().map(|candidate| {
            let of = candidate.features.iter();
            let score: f32 = of.map(|&(feature, x)| column.of(feature) * x).sum();
            (score, right(candidate.a), candidate)
        });
        let mut scored = Vec::from_iter(scored);
        scored.sort_by(|x, y| y.0.total_cmp(&x.0));
        let mut wrong = 0;
        scored.retain(|(_, right, _)| {
            wrong += usize::from(!right);
            *right || wrong <= MOST
        });
        if wrong == 0 || scored.iter().all(|(_, right, _)| !right) {
            return;
        }
        for (_, right, candidate) in scored {
            let features = candidate.features.iter();
            self.features
                .extend(features.map(|&(feature, x)| (feature as u8, x)));
            self.candidates.push((right, self.features.len() as u32));
        }
        let column = told.column as u8;
        self.statements.push((column, self.candidates.len() as u32));
    }

    /// Adds the gradient of the mean log-likelihood of the right candidates, and returns that mean.
    fn gradient(&self, weights: &[Vec<f32>], into: &mut [Vec<f32>]) -> f32 {
        let share = 1.0 / self.statements.len().max(1) as f32;
        let (mut sum, mut first, mut from) = (0.0, 0, 0);
        let mut scores: Vec<(f32, bool, usize, usize)> = Vec::new();
        for &(column, end) in &self.statements {
            let own = &weights[column as usize];
            scores.clear();
            for &(right, to) in &self.candidates[first..end as usize] {
                let of = self.features[from..to as usize].iter();
                let score: f32 = of.map(|&(feature, x)| own[feature as usize] * x).sum();
                scores.push((score, right, from, to as usize));
                from = to as usize;
            }
            first = end as usize;
            let most = scores.iter().map(|s| s.0).fold(f32::MIN, f32::max);
            let (mut all, mut of_right) = (0.0, 0.0);
            for (score, right, ..) in &mut scores {
                *score = (*score - most).exp();
                all += *score;
                of_right += if *right { *score } else { 0.0 };
            }
            let of_right = f32::max(of_right, f32::MIN_POSITIVE);
            sum += (of_right / all).ln();
            let into = &mut into[column as usize];
            for &(score, right, from, to) in &scores {
                let expected = if right { score / of_right } else { 0.0 };
                let by = share * (expected - score / all);
                if by.abs() > 1e-9 {
                    for &(feature, x) in &self.features[from..to] {
                        into[feature as usize] += by * x;
                    }
                }
            }
        }
        sum * share
    }
}

/// Fits weights to examples, starting from the weights `from`.
fn fit(examples: &[&Examples], from: &Weights, options: &Options) -> Weights {
    let features = Feature::ALL.len();
    let stage = |column: usize| column / KINDS;
    // The common weights of each stage, followed by the differences from them for each stage and
    // kind.
    let mut values = vec![vec![0.0f32; features]; 2 + COLUMNS];
    for column in 0..COLUMNS {
        for &feature in Feature::ALL {
            values[stage(column)][feature as usize] +=
                from.column(column).of(feature) / KINDS as f32;
        }
    }
    for column in 0..COLUMNS {
        for &feature in Feature::ALL {
            let common = values[stage(column)][feature as usize];
            values[2 + column][feature as usize] = from.column(column).of(feature) - common;
        }
    }
    let mut moments = vec![vec![(0.0f32, 0.0f32); features]; 2 + COLUMNS];
    let combined = |values: &[Vec<f32>]| -> Vec<Vec<f32>> {
        let columns = 0..COLUMNS;
        let of = columns.map(|column| {
            let common = values[stage(column)].iter();
            common.zip(&values[2 + column]).map(|(x, y)| x + y)
        });
        of.map(Vec::from_iter).collect()
    };
    for step in 1..=options.steps {
        let weights = combined(&values);
        let mut gradient = vec![vec![0.0f32; features]; COLUMNS];
        let mut likely = 0.0;
        let next = AtomicUsize::new(0);
        let sums = Mutex::new((&mut gradient, &mut likely));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut own = vec![vec![0.0f32; features]; COLUMNS];
                    let mut sum = 0.0;
                    while let Some(of) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                        sum += of.gradient(&weights, &mut own);
                    }
                    let mut all = sums.lock().expect("no thread panics");
                    for (all, own) in all.0.iter_mut().zip(&own) {
                        for (all, own) in all.iter_mut().zip(own) {
                            *all += own / examples.len() as f32;
                        }
                    }
                    *all.1 += sum / examples.len() as f32;
                });
            }
        });
        if step % 50 == 0 {
            eprintln!("  step {step}: {likely:.4}");
        }
        let rate = STEP * (1.0 - (step - 1) as f32 / options.steps as f32);
        let (first, second) = (
            1.0 - 0.9f32.powi(step as i32),
            1.0 - 0.999f32.powi(step as i32),
        );
        for (of, (values, moments)) in values.iter_mut().zip(&mut moments).enumerate() {
            for feature in 0..features {
                // The common weights change with all kinds of their stage.
                let mut by = match of.checked_sub(2) {
                    Some(column) => gradient[column][feature] - options.pull * values[feature],
                    None => (0..COLUMNS)
                        .filter(|&column| stage(column) == of)
                        .map(|column| gradient[column][feature])
                        .sum(),
                };
                by -= 1e-5 * values[feature];
                let (mean, square) = &mut moments[feature];
                *mean = 0.9 * *mean + 0.1 * by;
                *square = 0.999 * *square + 0.001 * by * by;
                values[feature] += rate * (*mean / first) / ((*square / second).sqrt() + 1e-8);
            }
        }
    }
    let weights = combined(&values);
    Weights::new(|column, feature| {
        // Rounds to the printed digits.
        (weights[column][feature as usize] * 100.0).round() / 100.0
    })
}

/// The result of matching a pair of versions.
struct Matched {
    name: String,
    examples: Examples,
    accuracy: Accuracy,
}

/// Matches pairs by weights, on two threads.
fn matched(
    pairs: &[[PathBuf; 2]],
    weights: impl Fn(usize) -> Weights + Sync,
) -> Result<Vec<Matched>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some([a, b]) = pairs.get(at) else { break };
                    let weights = weights(at);
                    let one = || -> Result<Matched> {
                        let (a, b) = (load(a)?, load(b)?);
                        let pair = Pair::new(&a, &b)?;
                        let right = pair.right();
                        let mut examples = Examples::default();
                        let mut told = |told: StageRecord| {
                            if let Some(right) = &right[told.b as usize] {
                                examples.push(&told, &weights, |a| right.contains(&a));
                            }
                        };
                        let trial = Trial {
                            weights: weights.clone(),
                            tell: Some(&mut told),
                            right: None,
                        };
                        let found = pair.matched_by(trial)?.matching;
                        let accuracy = pair.accuracy(&found);
                        Ok(Matched {
                            name: pair.name(),
                            examples,
                            accuracy,
                        })
                    };
                    let one = one();
                    found.lock().expect("no thread panics").push((at, one));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread panics");
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

fn report(what: &str, all: &[Matched]) {
    println!("{what}");
    let (mut strict, mut whole) = (0.0, 0.0);
    for found in all {
        let of = &found.accuracy;
        let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
        let right = percent(of.correct, of.true_counterpart);
        let all = percent(
            of.correct + of.correct_of_unchanged,
            of.true_counterpart + of.unchanged,
        );
        println!("  {:<24} {right:.2} % right, of all {all:.2} %", found.name);
        strict += right;
        whole += all;
    }
    let count = all.len() as f64;
    println!(
        "  mean {:.2} %, of all {:.2} %",
        strict / count,
        whole / count
    );
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.recordings.len().is_multiple_of(2) {
        bail!("recordings come in pairs: of the unoptimised version, then of the optimised one");
    }
    let pairs = options.recordings.chunks(2);
    let pairs = Vec::from_iter(pairs.map(|pair| [pair[0].clone(), pair[1].clone()]));
    let mut weights = Weights::default();
    let mut found = matched(&pairs, |_| weights.clone())?;
    report("With the weights in use:", &found);
    for _ in 0..options.rounds {
        let examples = Vec::from_iter(found.iter().map(|found| &found.examples));
        weights = fit(&examples, &weights, options);
        found = matched(&pairs, |_| weights.clone())?;
        report("With weights fitted to all programs:", &found);
    }
    for &feature in Feature::ALL {
        let columns =
            (0..COLUMNS).map(|column| format!("{:.2}", weights.column(column).of(feature)));
        println!(
            "    {feature:?} = [{}],",
            Vec::from_iter(columns).join(", ")
        );
    }
    if options.leave_out {
        // All levels of a program are left out together.
        let program = |found: &Matched| found.name.split("-O").next().unwrap_or("").to_string();
        let programs = Vec::from_iter(found.iter().map(program));
        let of = programs.iter().map(|left| {
            let others = found
                .iter()
                .zip(&programs)
                .filter(|(_, name)| *name != left);
            let others = Vec::from_iter(others.map(|(found, _)| &found.examples));
            fit(&others, &Weights::new(|_, _| 0.0), options)
        });
        let of = Vec::from_iter(of);
        report(
            "Each program with weights fitted to the others:",
            &matched(&pairs, |at| of[at].clone())?,
        );
    }
    Ok(())
}
