//! Writes a path trace in its different forms.

use std::fmt::Write as _;

use afterimage_ids::BlockId;
use afterimage_replay::whole_path::{Fold, Folded, Series, Traces, fold};

use crate::number::{counted, grouped};

/// The form in which path traces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceForm {
    /// A trace is written as a sequence of blocks.
    Blocks,
    /// A trace is written as a sequence of dynamic basic blocks, with their contents.
    Dynamic,
    /// A trace is written as the timestamps of its dynamic basic blocks, with their contents.
    Timestamped,
}

/// Whether long traces are written in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Only the beginning of a long trace is written.
    Beginning,
    /// A trace is written in full.
    All,
}

/// The maximum number of items that the text form shows, unless all are requested: blocks of a
/// trace, entries of a series, or chains of a dictionary.
pub(super) const SHOWN: usize = 80;
/// The maximum length of a trace to search for repetitions.
const READ: usize = 200_000;

/// Returns the lines of text for a trace.
pub(super) fn lines(traces: &Traces, number: usize, form: TraceForm, whole: Whole) -> Vec<String> {
    let (steps, dictionary) = traces.compacted.parts(number);
    let most = match whole {
        Whole::Beginning => READ,
        Whole::All => usize::MAX,
    };
    let chain = |step: BlockId| dots(dictionary.expand(&step));
    let mut lines = Vec::new();
    match form {
        TraceForm::Blocks => {
            let folded = fold(steps.steps(), most);
            let length = |step: BlockId| dictionary.expand(&step).len();
            let text = sequence(&folded, &chain, &length, whole);
            let shown = text.1;
            let left = traces.compacted.blocks(number) - shown;
            lines.push(with_rest(text.0, left, "block"));
        }
        TraceForm::Dynamic => {
            let folded = fold(steps.steps(), most);
            let name = |step: BlockId| step.as_u32().to_string();
            let (text, shown) = sequence(&folded, &name, &|_| 1, whole);
            lines.push(with_rest(text, steps.len() - shown, "step"));
        }
        TraceForm::Timestamped => {
            let blocks = steps.blocks().count();
            let shown = shown(blocks, whole);
            for (block, timestamps) in steps.blocks().take(shown) {
                lines.push(format!(
                    "{} → {}",
                    block.as_u32(),
                    series(&timestamps, whole)
                ));
            }
            lines.extend(rest(blocks, shown, "dynamic basic block"));
        }
    }
    if form != TraceForm::Blocks {
        let chains = dictionary.chains().len();
        let shown = shown(chains, whole);
        for chain in dictionary.chains().take(shown) {
            let first = chain.first().map_or(0, |first| first.as_u32());
            lines.push(format!("{first} ↦ {}", dots(chain)));
        }
        lines.extend(rest(chains, shown, "chain"));
    }
    lines
}

fn shown(all: usize, whole: Whole) -> usize {
    match whole {
        Whole::Beginning if all > SHOWN => SHOWN,
        _ => all,
    }
}

fn rest(all: usize, shown: usize, noun: &str) -> Option<String> {
    let left = (all - shown) as u64;
    (left > 0).then(|| format!("… and {}", more(left, noun)))
}

fn with_rest(text: String, left: u64, noun: &str) -> String {
    match left {
        0 if text.is_empty() => "no block".to_owned(),
        0 => text,
        _ => format!("{text} … and {}", more(left, noun)),
    }
}

/// Formats the number of items left out: `3 more blocks`.
fn more(left: u64, noun: &str) -> String {
    counted(left, noun).replacen(' ', " more ", 1)
}

/// Formats blocks separated by dots.
pub(super) fn dots(blocks: &[BlockId]) -> String {
    let numbers: Vec<_> = blocks.iter().map(|b| b.as_u32().to_string()).collect();
    numbers.join(".")
}

/// Formats a series of timestamps in the paper's notation: `l`, `l:h` or `l:h:s`.
pub(crate) fn series(series: &Series, whole: Whole) -> String {
    let entries = series.entries();
    let shown = match whole {
        Whole::Beginning if entries.len() > 12 => 12,
        _ => entries.len(),
    };
    let mut text = String::from("{");
    for (k, entry) in entries[..shown].iter().enumerate() {
        let comma = if k == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{entry}");
    }
    let left: u64 = entries[shown..].iter().map(|entry| entry.count()).sum();
    if left > 0 {
        let _ = write!(text, ", … {} more", grouped(left));
    }
    text.push('}');
    text
}

/// Formats a folded sequence, and returns the number of blocks that it shows.
fn sequence(
    folded: &Folded,
    name: &dyn Fn(BlockId) -> String,
    length: &dyn Fn(BlockId) -> usize,
    whole: Whole,
) -> (String, u64) {
    let (mut text, mut written, mut shown) = (String::new(), 0, 0);
    for part in &folded.parts {
        let items = part_items(part, length);
        if whole == Whole::Beginning && written > 0 && written + items.0 > SHOWN {
            break;
        }
        if written > 0 {
            text.push('.');
        }
        put(&mut text, part, name, length);
        written += items.0;
        shown += items.1;
    }
    (text, shown)
}

/// Returns the number of blocks that are written for a part, and the number of blocks that the part
/// represents.
fn part_items(part: &Fold, length: &dyn Fn(BlockId) -> usize) -> (usize, u64) {
    match part {
        Fold::Block(block) => (length(*block), length(*block) as u64),
        Fold::Repeat(parts, times) => {
            let items = parts.iter().map(|part| part_items(part, length));
            let (written, stands) = items.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            (written, stands * times)
        }
    }
}

fn put(
    text: &mut String,
    part: &Fold,
    name: &dyn Fn(BlockId) -> String,
    length: &dyn Fn(BlockId) -> usize,
) {
    match part {
        Fold::Block(block) => text.push_str(&name(*block)),
        Fold::Repeat(parts, times) => {
            let alone = matches!(**parts, [Fold::Block(block)] if length(block) == 1);
            if !alone {
                text.push('(');
            }
            for (k, part) in parts.iter().enumerate() {
                if k > 0 {
                    text.push('.');
                }
                put(text, part, name, length);
            }
            if !alone {
                text.push(')');
            }
            let _ = write!(text, "×{}", grouped(*times));
        }
    }
}
