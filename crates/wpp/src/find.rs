//! Finding where activations execute given blocks, in the grammar.

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

/// What is looked for: an activation of a function executes some blocks one after the other, then, without executing any other, calls
/// the next part's function, which begins with the next part's blocks; or it ends, and its caller, without calling anybody else, goes on with
/// them; and so on.
///
/// What an activation's callees execute does not stand between its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

/// Blocks of one activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose blocks these are.
    pub function: FuncId,
    /// The blocks, at least one.
    pub blocks: Vec<BlockId>,
    /// How it follows the part before; the first follows none.
    pub link: Link,
}

/// How a part of a pattern follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// By a call: its activation begins.
    Call,
    /// By a return, or an exception: the activation before ends, and this one is its caller's.
    Return,
}

/// Parts that are no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing to be looked for, or a part has no blocks.
    #[error("a pattern has parts, and each of these blocks")]
    Empty,
    /// There are too many parts.
    #[error("a pattern of more than {} calls and returns", Pattern::MOST_PARTS - 1)]
    Calls,
}

impl Pattern {
    /// How many parts a pattern may have.
    pub const MOST_PARTS: usize = 64;

    /// A pattern.
    ///
    /// # Errors
    /// If there is no part, one has no blocks, or there are too many.
    pub fn new(parts: Vec<Part>) -> Result<Self, PatternError> {
        if parts.is_empty() || parts.iter().any(|part| part.blocks.is_empty()) {
            return Err(PatternError::Empty);
        }
        if parts.len() > Self::MOST_PARTS {
            return Err(PatternError::Calls);
        }
        Ok(Self { parts })
    }

    /// The parts, in the order of time.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a part is of this function.
    fn names(&self, function: FuncId) -> bool {
        self.parts.iter().any(|part| part.function == function)
    }
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Match {
    /// The time of its last block.
    pub last: u64,
    /// The time of its first block.
    pub first: u64,
    /// The time of the first block of the activation to which its first block belongs.
    pub entered: u64,
}

/// The occurrences of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternOccurrences {
    /// How many there are.
    pub count: u64,
    /// The first ones, in the order of their last blocks.
    pub first: Vec<Match>,
}

/// Why a pattern cannot be looked for. `E` is why a segment cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
}

impl<S: Segments> WholePath<S> {
    /// Counts all occurrences of a pattern, which may overlap, and says when the first `most` are.
    ///
    /// An automaton reads the blocks (Knuth, Morris and Pratt 1977, and for what follows calls and returns how far it is), with a state for each open
    /// activation. Where
    /// a rule leads it from a state, and how many occurrences end there, is computed once for each rule and state that come together, so
    /// that the run is not expanded. In practice few states come to a rule, and time is linear in the grammars; at most it is the grammar's size
    /// times the pattern's length. An occurrence that is listed takes a look at the symbols of each rule on the way down to it. Segments in which the
    /// pattern's functions are neither called nor executed are not opened.
    ///
    /// What a filter left out executes nothing here: whoever asks makes sure that nothing of the pattern's functions was.
    ///
    /// # Errors
    /// If a segment cannot be read.
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
            // Now, while the segment is open.
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
