//! Finds where activations execute a pattern of blocks, without expanding the grammar.

mod automaton;
mod beginning;
mod count;
mod list;

use afterimage_ids::{BlockId, FuncId};

use self::automaton::Automaton;
use self::beginning::beginning;
use self::count::{Counting, Search};
use self::list::list;
use crate::{PathError, Root, Segments, Summary, WholePath};

/// A pattern of blocks, in parts. An activation of the first part's function executes that part's
/// blocks consecutively. Then the activation directly calls the next part's function, which begins
/// with the next part's blocks. Alternatively, the activation ends, and its caller directly
/// continues with those blocks. Each further part follows in the same way.
///
/// Blocks that an activation's callees execute do not interrupt its own blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

/// Blocks of one activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The function of these blocks.
    pub function: FuncId,
    /// The blocks, at least one.
    pub blocks: Vec<BlockId>,
    /// The way in which the part follows the previous part. It is ignored for the first part.
    pub link: Link,
}

/// The way in which a part of a pattern follows the previous part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A call, with which the activation of this part begins.
    Call,
    /// A return or an exception, which ends the previous part's activation. This part continues in
    /// the caller.
    Return,
}

/// The reason why parts do not form a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There are no parts, or a part has no blocks.
    #[error("a pattern needs parts, and each part needs blocks")]
    Empty,
    /// There are too many parts.
    #[error("a pattern of more than {} calls and returns", Pattern::MOST_PARTS - 1)]
    Calls,
}

impl Pattern {
    /// The maximum number of parts of a pattern.
    pub const MOST_PARTS: usize = 64;

    /// Creates a pattern.
    ///
    /// # Errors
    /// Returns an error if there are no parts or too many, or if a part has no blocks.
    pub fn new(parts: Vec<Part>) -> Result<Self, PatternError> {
        if parts.is_empty() || parts.iter().any(|part| part.blocks.is_empty()) {
            return Err(PatternError::Empty);
        }
        if parts.len() > Self::MOST_PARTS {
            return Err(PatternError::Calls);
        }
        Ok(Self { parts })
    }

    /// Returns the parts, in order of time.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a part belongs to this function.
    fn names(&self, function: FuncId) -> bool {
        self.parts.iter().any(|part| part.function == function)
    }
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Match {
    /// The time of the occurrence's last block.
    pub last: u64,
    /// The time of the occurrence's first block.
    pub first: u64,
    /// The time at which the activation of the occurrence's first block begins.
    pub entered: u64,
}

/// The occurrences of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternOccurrences {
    /// The number of occurrences.
    pub count: u64,
    /// The first occurrences, in the order of their last blocks.
    pub first: Vec<Match>,
}

/// The reason why a search for a pattern fails. `E` is the error of loading a segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
}

impl<S: Segments> WholePath<S> {
    /// Counts all occurrences of a pattern, which may overlap, and finds the times of the first
    /// `most`.
    ///
    /// An automaton reads the blocks (Knuth, Morris and Pratt 1977). It has one state for each open
    /// activation. A state also contains the progress in parts that begin after calls and returns.
    /// The search computes the resulting state and the number of occurrences once for each
    /// combination of rule and state that arises, so the run is not expanded. In practice, few
    /// states reach a rule, and time is linear in the grammars. In the worst case, it is
    /// proportional to the grammar's size times the pattern's length. Listing an occurrence
    /// examines the symbols of each rule on the way down to it. If the pattern's functions are
    /// neither called nor executed in a segment, the search opens it only if calls there could
    /// interrupt an occurrence.
    ///
    /// The search ignores blocks that a filter left out. So the caller must make sure that no
    /// filter affects the pattern's functions.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn find(
        &self,
        pattern: &Pattern,
        most: usize,
    ) -> Result<PatternOccurrences, FindError<S::Error>> {
        let mut automaton = Automaton::new(pattern);
        let mut stack = Vec::new();
        let mut found = PatternOccurrences::default();
        let mut cursor = self.cursor();
        for (segment, summary) in self.segments().summaries().iter().enumerate() {
            if !self.concerns(summary, pattern)
                && let Some(top) = automaton.ended(&stack, summary.kept as usize)
            {
                stack.truncate(summary.kept as usize);
                if let Some(last) = stack.last_mut() {
                    *last = top;
                }
                stack.resize(stack.len() + summary.begun as usize, Automaton::NOTHING);
                continue;
            }
            let measured = self.open(segment)?;
            let (left, mut times) = (most - found.first.len(), Vec::new());
            let search = Search::new(&measured, self.nodes(), pattern);
            let mut counting = Counting::new(&search, &mut automaton);
            for (item, root) in measured.segment.root.iter().enumerate() {
                match *root {
                    Root::Run(symbol) => {
                        let state = stack.last().copied().unwrap_or(Automaton::NOTHING);
                        let result = counting.symbol(symbol, state);
                        if let Some(last) = stack.last_mut() {
                            *last = result.state;
                        }
                        found.count += result.count;
                        if result.count > 0 && times.len() < left {
                            let before = measured.segment.before + measured.root_starts[item];
                            list(&mut counting, symbol, state, before, left, &mut times);
                        }
                    }
                    Root::Enter(function) => {
                        let caller = stack.last().copied().unwrap_or(Automaton::NOTHING);
                        stack.push(counting.automaton.enter(caller, function));
                    }
                    Root::Leave => {
                        if let (Some(callee), Some(last)) = (stack.pop(), stack.last_mut()) {
                            *last = counting.automaton.leave(*last, callee);
                        }
                    }
                }
            }
            // List the occurrences now, while the segment is open.
            for last in times {
                found.first.push(beginning(&mut cursor, pattern, last)?);
            }
        }
        Ok(found)
    }

    /// Whether a function of the pattern is called or executed in a segment.
    fn concerns(&self, summary: &Summary, pattern: &Pattern) -> bool {
        let executed = summary.node_counts.iter().any(|&(node, _)| {
            let node = self.nodes().get(node);
            node.is_some_and(|node| pattern.names(node.function))
        });
        let mut calls = summary.call_counts.iter();
        executed || calls.any(|&(function, _)| pattern.names(function))
    }
}
