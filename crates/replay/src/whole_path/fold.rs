//! Folds sequences for display, so that consecutive repetitions are written once.

use std::rc::Rc;

use afterimage_ids::BlockId;

/// The largest number of parts in one round of a recognized repetition.
const LONGEST: usize = 64;

/// A part of a folded sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fold {
    /// A block, or the first block of a dynamic basic block.
    Block(BlockId),
    /// These parts, repeated at least twice.
    Repeat(Rc<[Fold]>, u64),
}

/// The beginning of a sequence, folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The parts of the folded sequence.
    pub parts: Vec<Fold>,
    /// The number of elements of the sequence that the parts represent.
    pub length: u64,
}

impl Fold {
    /// Returns the number of elements that this part represents.
    pub fn length(&self) -> u64 {
        match self {
            Self::Block(_) => 1,
            Self::Repeat(parts, times) => parts.iter().map(Self::length).sum::<u64>() * times,
        }
    }

    /// Returns the number of elements that are written for this part.
    pub fn written(&self) -> usize {
        match self {
            Self::Block(_) => 1,
            Self::Repeat(parts, _) => parts.iter().map(Self::written).sum(),
        }
    }
}

/// Folds the first `most` elements of a sequence from left to right, the shortest repetition first.
/// Takes O(1) per element, and time linear in the lengths of the repetitions found.
pub fn fold(sequence: impl IntoIterator<Item = BlockId>, most: usize) -> Folded {
    let mut parts: Vec<Fold> = Vec::new();
    let mut length = 0;
    for block in sequence.into_iter().take(most) {
        parts.push(Fold::Block(block));
        length += 1;
        while let Some((replaced, by)) = shorten(&parts) {
            parts.truncate(parts.len() - replaced);
            parts.push(by);
        }
    }
    Folded { parts, length }
}

/// Returns the number of parts at the end that can be replaced, and the replacement.
fn shorten(parts: &[Fold]) -> Option<(usize, Fold)> {
    let last = parts.last()?;
    for period in 1..=LONGEST.min(parts.len().saturating_sub(1)) {
        let (before, round) = parts.split_at(parts.len() - period);
        if let Some(Fold::Repeat(same, times)) = before.last()
            && **same == *round
        {
            return Some((period + 1, Fold::Repeat(Rc::clone(same), times + 1)));
        }
        if before.last() == Some(last) && before.ends_with(round) {
            return Some((2 * period, Fold::Repeat(round.into(), 2)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &[Fold]) -> String {
        let of = |part: &Fold| match part {
            Fold::Block(block) => block.as_u32().to_string(),
            Fold::Repeat(parts, times) => format!("({})*{times}", text(parts)),
        };
        parts.iter().map(of).collect::<Vec<_>>().join(".")
    }

    fn folded(blocks: &[u32]) -> String {
        let folded = fold(blocks.iter().copied().map(BlockId::from_u32), usize::MAX);
        let expanded: u64 = folded.parts.iter().map(Fold::length).sum();
        assert_eq!(expanded, blocks.len() as u64);
        assert_eq!(folded.length, expanded);
        text(&folded.parts)
    }

    #[test]
    fn what_repeats_is_said_once() {
        assert_eq!(folded(&[]), "");
        assert_eq!(folded(&[1, 2, 3]), "1.2.3");
        assert_eq!(folded(&[7, 7, 7, 8]), "(7)*3.8");
        assert_eq!(folded(&[1, 2, 3, 2, 3, 2, 3, 6]), "1.(2.3)*3.6");
        // A loop is inside a loop.
        assert_eq!(folded(&[0, 1, 2, 2, 3, 1, 2, 2, 3, 4]), "0.(1.(2)*2.3)*2.4");
        // Folding goes from left to right, and folded parts stay folded.
        assert_eq!(folded(&[1, 2, 2, 1, 2, 2, 2]), "(1.(2)*2)*2.2");
    }
}
