//! Counts the blocks in a run's bits and tracks the active function, without reporting the paths.

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_program::Program;

use super::lookup::{Kind, Look, LookupTables, UNKNOWN_PLACE};
use super::null_sink::NullSink;
use super::stack::{Activation, LEAVES, NOWHERE};
use super::{
    Boundary, DEEPEST, ExecutedPath, Finish, Next, RegenerateError, Regenerator, Sink, Waypoint,
};
use crate::PathPlan;

/// Counts how often paths are executed, without learning their order.
pub trait Tally: Sink {
    /// Whether the tally counts anything.
    const COUNTS: bool;

    /// Records `times` further executions of a path.
    fn add(&mut self, node: NodeId, times: u64);
}

impl Tally for NullSink {
    const COUNTS: bool = false;

    fn add(&mut self, _: NodeId, _: u64) {}
}

/// Counts the blocks in a run's bits, several paths at a time. Tables show where the next few bits
/// lead from the start of a path. A [`Regenerator`] handles cases outside the tables. Time: O(1)
/// per path. Counting is three to seven times as fast as regenerating the paths.
pub struct Counter<'a, T = NullSink> {
    run: Regenerator<'a>,
    looks: LookupTables,
    tally: T,
    /// The smallest number of open activations since [`take`](Self::take).
    fewest: usize,
    /// The place where the table for the next path begins. If this is [`UNKNOWN_PLACE`], `run`
    /// holds the run's position.
    place: u32,
    /// The time at which the innermost activation began.
    entered: u64,
}

impl<'a> Counter<'a> {
    /// Creates a counter that counts only blocks, positioned before the first path.
    pub fn new(program: &'a Program, plan: &'a PathPlan) -> Self {
        Self::with(program, plan, NullSink)
    }
}

impl<'a, T: Tally> Counter<'a, T> {
    /// Creates a counter positioned before the first path. The tally receives the paths when they
    /// are [taken](Self::take).
    pub fn with(program: &'a Program, plan: &'a PathPlan, tally: T) -> Self {
        Self {
            run: Regenerator::new(program, plan),
            looks: LookupTables::new(),
            tally,
            fewest: 0,
            place: UNKNOWN_PLACE,
            entered: 0,
        }
    }

    /// Adds a call by the host to a function.
    pub fn host_call(&mut self, function: FuncId) {
        self.run.host_call(function);
    }

    /// Returns the number of blocks executed so far. A path without bits may be counted late, when
    /// more bits arrive.
    pub fn time(&self) -> u64 {
        self.run.time
    }

    /// Returns the number of open activations.
    pub fn depth(&self) -> usize {
        self.run.outer.len() + usize::from(self.is_active())
    }

    fn is_active(&self) -> bool {
        self.run.current.is_some() || self.looks.start(self.place).is_some()
    }

    /// Passes to the tally all paths executed since the previous `take`. Returns the tally, and the
    /// number of activations that have been open since then. Time: O(distinct table entries used
    /// since then).
    ///
    /// # Errors
    /// Returns an error if the plan belongs to another program.
    pub fn take(&mut self) -> Result<(&mut T, usize), RegenerateError> {
        self.looks.report(&mut self.run.tables, &mut self.tally)?;
        let kept = self.fewest;
        self.fewest = self.depth();
        Ok((&mut self.tally, kept))
    }

    /// Returns the tally without updating it.
    pub fn into_tally(self) -> T {
        self.tally
    }

    /// Continues to the run's end, as [`Regenerator::finish`] does. All words must have been fed.
    ///
    /// # Errors
    /// Returns an error if the run does not reach its end.
    pub fn finish(&mut self, finish: &Finish) -> Result<(), RegenerateError> {
        self.tell_place();
        self.watched(|run, sink| run.finish(finish, sink))?;
        self.find_place();
        Ok(())
    }

    /// Runs `go_on` without tables, and tracks the smallest number of open activations. Within a
    /// step, activations end before new activations begin.
    fn watched<R>(
        &mut self,
        go_on: impl FnOnce(&mut Regenerator<'a>, &mut Watched<'_, T>) -> R,
    ) -> R {
        let open = self.run.outer.len() + usize::from(self.run.current.is_some());
        let mut watched = Watched {
            tally: &mut self.tally,
            open,
            fewest: self.fewest.min(open),
        };
        let result = go_on(&mut self.run, &mut watched);
        self.fewest = watched.fewest;
        result
    }

    /// Returns the run's position. Time: O(open activations).
    ///
    /// # Errors
    /// Returns an error if the words do not continue the run.
    pub fn waypoint(&mut self) -> Result<Waypoint, RegenerateError> {
        self.tell_place();
        let waypoint = self.watched(|run, sink| run.waypoint(sink))?;
        self.find_place();
        Ok(waypoint)
    }

    /// Continues to a boundary at the end of the words fed so far. The last word must be complete.
    /// Returns the number of blocks executed. Time: O(open activations), plus the steps after the
    /// word.
    ///
    /// # Errors
    /// Returns an error if the run does not reach its end.
    pub fn close(&mut self, boundary: &Boundary) -> Result<u64, RegenerateError> {
        self.tell_place();
        self.watched(|run, sink| run.go_to(boundary, sink))?;
        self.find_place();
        Ok(self.run.time)
    }

    /// Processes more words. The last word is held back until more words arrive, as in
    /// [`Regenerator::feed`].
    ///
    /// # Errors
    /// Returns an error if the words do not continue the run.
    pub fn feed(&mut self, words: &[u64]) -> Result<(), RegenerateError> {
        for &word in words {
            if let Some(ready) = self.run.bits.push(word)? {
                self.word(ready)?;
            }
        }
        Ok(())
    }

    fn word(&mut self, word: u64) -> Result<(), RegenerateError> {
        // The remaining bits, shifted to the top.
        let rest_of = |left: u32| word << (63 - left) << 1;
        let mut left = 63 - word.leading_zeros();
        let mut rest = rest_of(left);
        let (mut place, mut time) = (self.place, self.run.time);
        while left > 0 {
            let (entry, bits) = LookupTables::entry(place, rest, left);
            let look = self.looks.used::<T>(entry);
            let before = time;
            left -= look.bits();
            rest <<= look.bits();
            time += u64::from(look.blocks());
            match look.kind() {
                Kind::Stay => place = look.next(),
                Kind::Enter => {
                    if self.run.outer.len() >= DEEPEST {
                        return Err(RegenerateError::TooDeep(DEEPEST));
                    }
                    self.wait(self.looks.sites(look)[0], before);
                    place = look.next();
                }
                Kind::Deeper => {
                    self.enter(look, before)?;
                    place = look.next();
                }
                Kind::Leave => {
                    let mut outer = self.run.outer.pop();
                    while outer.is_some_and(|at| at.start == LEAVES) {
                        outer = self.run.outer.pop();
                    }
                    self.run.current = outer;
                    self.entered = outer.map_or(0, |at| at.entered);
                    let open = self.run.outer.len() + usize::from(outer.is_some());
                    self.fewest = self.fewest.min(open);
                    place = outer.map_or(UNKNOWN_PLACE, |at| at.place);
                    if place == UNKNOWN_PLACE {
                        self.find_place();
                        place = self.place;
                    }
                }
                Kind::New
                    if self.looks.fill(
                        (&mut self.run.tables, &mut self.tally),
                        place,
                        entry,
                        bits,
                    ) == Kind::New => {}
                Kind::New | Kind::Unknown => {
                    (self.place, self.run.time) = (place, time);
                    left = self.step(word, left)?;
                    (place, time) = (self.place, self.run.time);
                    rest = rest_of(left);
                }
            }
        }
        (self.place, self.run.time) = (place, time);
        Ok(())
    }

    /// Records that several activations begin to wait.
    #[inline(never)]
    fn enter(&mut self, look: Look, before: u64) -> Result<(), RegenerateError> {
        let sites = self.looks.sites(look).len();
        if self.run.outer.len() + sites > DEEPEST {
            return Err(RegenerateError::TooDeep(DEEPEST));
        }
        for site in 0..sites {
            self.wait(self.looks.sites(look)[site], before);
        }
        Ok(())
    }

    /// Records that the innermost activation begins to wait. `before` is the number of blocks
    /// executed before the lookup.
    #[inline]
    fn wait(&mut self, mut at: Activation, before: u64) {
        at.entered = self.entered;
        at.called += before;
        self.entered = at.called + 1;
        self.run.outer.push(at);
    }

    /// Returns two times for each open activation, outermost first. They are the times of its first
    /// block and of the block with the call for which it waits. If the activation does not wait,
    /// both are the time of its first block.
    pub fn opened(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let waiting = self.run.outer.iter().map(|at| (at.entered, at.called));
        let active = self.is_active();
        waiting.chain(active.then_some((self.entered, self.entered)))
    }

    /// Takes one step without a table. Returns the number of bits left.
    #[cold]
    fn step(&mut self, word: u64, left: u32) -> Result<u32, RegenerateError> {
        self.tell_place();
        self.run.bits.go_on(word, left);
        if let Next::Idle = self.watched(|run, sink| run.step(sink, None))? {
            return Err(RegenerateError::Late);
        }
        self.find_place();
        Ok(self.run.bits.remaining())
    }

    /// Reads the innermost activation's position from `run`.
    fn find_place(&mut self) {
        self.entered = self.run.current.map_or(0, |at| at.entered);
        self.place = match self.run.current {
            Some(at) => self.looks.meet(&mut self.run.tables, at.function, at.start),
            None => UNKNOWN_PLACE,
        };
    }

    /// Writes the innermost activation's position to `run`.
    fn tell_place(&mut self) {
        if let Some((function, start)) = self.looks.start(self.place) {
            self.run.current = Some(Activation {
                function,
                start,
                throws: NOWHERE,
                block: BlockId::from_u32(0),
                place: self.place,
                entered: self.entered,
                called: 0,
            });
        }
    }
}

/// A sink that tracks the smallest number of open activations.
struct Watched<'t, T> {
    tally: &'t mut T,
    open: usize,
    fewest: usize,
}

impl<T: Tally> Sink for Watched<'_, T> {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        self.tally.define(path)
    }

    fn path(&mut self, node: NodeId) {
        self.tally.path(node);
    }

    fn enter(&mut self, function: FuncId) {
        self.open += 1;
        self.tally.enter(function);
    }

    fn leave(&mut self) {
        self.open -= 1;
        self.fewest = self.fewest.min(self.open);
        self.tally.leave();
    }
}
