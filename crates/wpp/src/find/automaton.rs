//! Recognises a pattern with an automaton.

use afterimage_ids::{BlockId, FuncId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{Link, Pattern};

/// The number of a state of an activation.
pub(super) type State = u32;

/// The progress of an activation in the pattern's parts.
///
/// The first part may begin anywhere. Each later part begins after a call or a return, if the part
/// before it was complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Progress {
    /// The length of the longest prefix of the first part that matches the latest blocks.
    latest: u32,
    /// The positions in later parts up to which the latest blocks match the part. Positions ascend,
    /// and are numbered through the whole pattern.
    others: Vec<u32>,
    /// The parts that may begin with the next block, as a bit set.
    waiting: u64,
}

/// Reads the blocks of activations. States are numbered as they arise.
pub(super) struct Automaton<'a> {
    pattern: &'a Pattern,
    /// Knuth, Morris and Pratt's failure function of the first part. For each prefix, it gives the
    /// longest proper prefix that is also its suffix.
    failure: Vec<u32>,
    /// The number of each part's first block in the pattern.
    starts: Vec<u32>,
    /// The parts that begin with their activations, as a bit set.
    calls: u64,
    states: Vec<Progress>,
    numbers: HashMap<Progress, State, FxBuildHasher>,
}

impl<'a> Automaton<'a> {
    /// The state of the host, and of an activation that has matched nothing.
    pub(super) const NOTHING: State = 0;

    pub(super) fn new(pattern: &'a Pattern) -> Self {
        let starts = pattern.parts.iter().scan(0, |next, part| {
            let start = *next;
            *next += part.blocks.len() as u32;
            Some(start)
        });
        let mut automaton = Self {
            pattern,
            failure: failure(&pattern.parts[0].blocks),
            starts: starts.collect(),
            calls: pattern.parts.iter().rev().fold(0, |bits, part| {
                bits << 1 | u64::from(part.link == Link::Call)
            }),
            states: Vec::new(),
            numbers: HashMap::default(),
        };
        automaton.number(Progress::default());
        automaton
    }

    fn number(&mut self, progress: Progress) -> State {
        if let Some(&state) = self.numbers.get(&progress) {
            return state;
        }
        let state = self.states.len() as State;
        self.states.push(progress.clone());
        self.numbers.insert(progress, state);
        state
    }

    /// Returns the parts that may follow an activation's blocks by this kind of link, as a bit set.
    fn next(&self, state: State, link: Link) -> u64 {
        let parts = self.pattern.parts.iter().enumerate().skip(1);
        let next = parts.filter(|&(number, part)| {
            part.link == link && self.ready(&self.states[state as usize], number - 1)
        });
        next.fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// Returns the state of an activation whose next block may begin one of the parts in `waiting`.
    fn waiting(&mut self, state: State, waiting: u64) -> State {
        let progress = &self.states[state as usize];
        if progress.waiting == waiting {
            return state;
        }
        let progress = Progress {
            waiting,
            ..progress.clone()
        };
        self.number(progress)
    }

    /// Returns the initial state of an activation.
    pub(super) fn enter(&mut self, caller: State, function: FuncId) -> State {
        let mut next = self.next(caller, Link::Call);
        for (number, part) in self.pattern.parts.iter().enumerate() {
            if part.function != function {
                next &= !(1 << number);
            }
        }
        self.waiting(Self::NOTHING, next)
    }

    /// Returns the state of a caller after a call.
    pub(super) fn leave(&mut self, caller: State, callee: State) -> State {
        let next = self.next(callee, Link::Return);
        let own = self.states[caller as usize].waiting & self.calls;
        self.waiting(caller, own | next)
    }

    /// Returns the state of an activation after calls to functions that do not occur in the
    /// pattern.
    pub(super) fn pass(&mut self, state: State) -> State {
        self.waiting(state, self.states[state as usize].waiting & self.calls)
    }

    /// Returns the state of the innermost of `kept` activations after the activations inside it
    /// have ended. Returns `None` if further calls by that activation would change its state.
    pub(super) fn ended(&mut self, stack: &[State], kept: usize) -> Option<State> {
        let mut top = stack.last().copied().unwrap_or(Self::NOTHING);
        for at in (kept..stack.len()).rev() {
            let caller = at.checked_sub(1).map_or(Self::NOTHING, |at| stack[at]);
            top = self.leave(caller, top);
        }
        let returns = !self.calls;
        Some(top).filter(|&top| kept == 0 || self.states[top as usize].waiting & returns == 0)
    }

    /// Whether a part is complete.
    fn ready(&self, progress: &Progress, part: usize) -> bool {
        let length = self.pattern.parts[part].blocks.len() as u32;
        match part {
            0 => progress.latest == length,
            _ => progress.others.contains(&(self.starts[part] + length - 1)),
        }
    }

    /// Executes blocks in an activation, and returns the activation's new state. Passes to
    /// `complete` the position of each block that completes the pattern.
    pub(super) fn execute(
        &mut self,
        state: State,
        function: FuncId,
        blocks: &[BlockId],
        mut complete: impl FnMut(usize),
    ) -> State {
        let mut progress = self.states[state as usize].clone();
        let last = self.pattern.parts.len() - 1;
        for (position, &block) in blocks.iter().enumerate() {
            self.step(&mut progress, function, block);
            if self.ready(&progress, last) {
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
        let (waiting, before) = (progress.waiting, std::mem::take(&mut progress.others));
        progress.waiting = 0;
        if waiting == 0 && before.is_empty() {
            return;
        }
        for (number, part) in parts.iter().enumerate().skip(1) {
            let (start, blocks) = (self.starts[number], &part.blocks);
            if waiting >> number & 1 == 1 && part.function == function && blocks[0] == block {
                progress.others.push(start);
            }
            let end = start + blocks.len() as u32 - 1;
            let own = before.iter().filter(|&&at| (start..end).contains(&at));
            let goes_on = own.filter(|&&at| blocks[(at - start) as usize + 1] == block);
            progress.others.extend(goes_on.map(|at| at + 1));
        }
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
