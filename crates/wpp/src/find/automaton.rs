//! The automaton that recognizes a pattern.

use afterimage_ids::{BlockId, FuncId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::Pattern;

/// The number of a state of an activation.
pub(super) type State = u32;

/// How far an activation is in the pattern's parts.
///
/// The first part may begin anywhere; the others are executed from the activation's beginning, if the caller was ready for
/// them when it called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Progress {
    /// How many blocks of the first part the latest blocks are: the longest prefix.
    latest: u32,
    /// How many blocks it has executed, while it may be in a later part; 0 otherwise.
    executed: u32,
    /// The later parts of which its blocks are the first so many, as bits.
    later: u64,
}

/// Reads the blocks of activations. States are numbered when they come up.
pub(super) struct Automaton<'a> {
    pattern: &'a Pattern,
    /// Knuth, Morris and Pratt's failure function of the first part: for each of its prefixes the longest proper one with which it ends.
    failure: Vec<u32>,
    states: Vec<Progress>,
    numbers: HashMap<Progress, State, FxBuildHasher>,
}

impl<'a> Automaton<'a> {
    /// The state of an activation that is in no part, and of the host.
    pub(super) const NOTHING: State = 0;

    pub(super) fn new(pattern: &'a Pattern) -> Self {
        let mut automaton = Self {
            pattern,
            failure: failure(&pattern.parts[0].blocks),
            states: Vec::new(),
            numbers: HashMap::default(),
        };
        automaton.number(Progress::default());
        automaton
    }

    fn number(&mut self, progress: Progress) -> State {
        *self.numbers.entry(progress).or_insert_with(|| {
            self.states.push(progress);
            self.states.len() as State - 1
        })
    }

    /// The state of an activation that begins.
    pub(super) fn enter(&mut self, caller: State, function: FuncId) -> State {
        let caller = self.states[caller as usize];
        let mut later = 0;
        for (number, part) in self.pattern.parts.iter().enumerate().skip(1) {
            if part.function == function && self.ready(caller, number - 1) {
                later |= 1 << number;
            }
        }
        self.number(Progress {
            later,
            ..Progress::default()
        })
    }

    /// Whether a part is complete.
    fn ready(&self, progress: Progress, part: usize) -> bool {
        let length = self.pattern.parts[part].blocks.len();
        if part == 0 {
            progress.latest as usize == length
        } else {
            progress.later >> part & 1 == 1 && progress.executed as usize == length
        }
    }

    /// An activation executes blocks. Gives its state after, and the positions of those with which the pattern is complete.
    pub(super) fn execute(
        &mut self,
        state: State,
        function: FuncId,
        blocks: &[BlockId],
        mut complete: impl FnMut(usize),
    ) -> State {
        let mut progress = self.states[state as usize];
        let last = self.pattern.parts.len() - 1;
        for (position, &block) in blocks.iter().enumerate() {
            self.step(&mut progress, function, block);
            if self.ready(progress, last) {
                complete(position);
            }
        }
        self.number(progress)
    }

    fn step(&self, progress: &mut Progress, function: FuncId, block: BlockId) {
        let parts = &self.pattern.parts;
        if parts[0].function == function {
            let first = &parts[0].blocks;
            let mut latest = progress.latest as usize;
            while latest == first.len() || latest > 0 && first[latest] != block {
                latest = self.failure[latest - 1] as usize;
            }
            progress.latest = (latest + usize::from(first[latest] == block)) as u32;
        }
        let (mut rest, at) = (progress.later, progress.executed as usize);
        while rest != 0 {
            let part = rest.trailing_zeros();
            rest &= rest - 1;
            if parts[part as usize].blocks.get(at) != Some(&block) {
                progress.later &= !(1 << part);
            }
        }
        progress.executed = match progress.later {
            0 => 0,
            _ => progress.executed + 1,
        };
    }
}

fn failure(blocks: &[BlockId]) -> Vec<u32> {
    let mut failure = vec![0u32; blocks.len()];
    let mut length = 0;
    for at in 1..blocks.len() {
        while length > 0 && blocks[length] != blocks[at] {
            length = failure[length - 1] as usize;
        }
        length += usize::from(blocks[length] == blocks[at]);
        failure[at] = length as u32;
    }
    failure
}
