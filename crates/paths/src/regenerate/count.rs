//! How many blocks a run's bits stand for, and who is active: without telling of its paths.

use afterimage_ids::{BlockId, FuncId};
use afterimage_program::Program;

use super::looks::{Kind, Look, LookupTables, UNKNOWN_PLACE};
use super::stack::{Activation, LEAVES, NOWHERE};
use super::unheard::NullSink;
use super::{DEEPEST, Next, RegenerateError, Regenerator, Waypoint};
use crate::PathPlan;

/// Counts the blocks that a run's bits stand for, several paths at a time: tables say for the place where a path begins and the next
/// few bits where they lead. What they do not know, a [`Regenerator`] does. O(1) for every path; three to seven
/// times as fast as regenerating them.
pub struct Counter<'a> {
    run: Regenerator<'a>,
    looks: LookupTables,
    /// Where the table of the next path begins; if it is the one that knows nothing, `run` says where the run is.
    place: u32,
}

impl<'a> Counter<'a> {
    /// Begins before the first path.
    pub fn new(program: &'a Program, plan: &'a PathPlan) -> Self {
        Self {
            run: Regenerator::new(program, plan),
            looks: LookupTables::new(),
            place: UNKNOWN_PLACE,
        }
    }

    /// The host calls a function.
    pub fn host_call(&mut self, function: FuncId) {
        self.run.host_call(function);
    }

    /// How many blocks have been executed so far. A path that is determined without bits may be counted only when more bits come.
    pub fn time(&self) -> u64 {
        self.run.time
    }

    /// How many activations are open.
    pub fn depth(&self) -> usize {
        self.run.outer.len() + 1
    }

    /// Where the run is. O(open activations).
    ///
    /// # Errors
    /// If the words do not continue the run.
    pub fn waypoint(&mut self) -> Result<Waypoint, RegenerateError> {
        self.tell_place();
        let waypoint = self.run.waypoint(&mut NullSink)?;
        self.find_place();
        Ok(waypoint)
    }

    /// Takes the next words. The last one is kept until more come, as by [`Regenerator::feed`].
    ///
    /// # Errors
    /// If they do not continue the run.
    pub fn feed(&mut self, words: &[u64]) -> Result<(), RegenerateError> {
        for &word in words {
            if let Some(ready) = self.run.bits.push(word)? {
                self.word(ready)?;
            }
        }
        Ok(())
    }

    fn word(&mut self, word: u64) -> Result<(), RegenerateError> {
        // The bits that are left, topmost.
        let rest_of = |left: u32| word << (63 - left) << 1;
        let mut left = 63 - word.leading_zeros();
        let mut rest = rest_of(left);
        let (mut place, mut time) = (self.place, self.run.time);
        while left > 0 {
            let (entry, bits) = LookupTables::entry(place, rest, left);
            // By value it would be copied to the stack and read from there, which takes a third more time.
            let look = *self.looks.at(entry);
            left -= u32::from(look.bits);
            rest <<= look.bits;
            time += u64::from(look.blocks);
            match look.kind {
                Kind::Stay => place = look.next,
                Kind::Enter => {
                    if self.run.outer.len() >= DEEPEST {
                        return Err(RegenerateError::TooDeep(DEEPEST));
                    }
                    self.run.outer.push(self.looks.site(&look));
                    place = look.next;
                }
                Kind::Deeper => {
                    self.enter(&look)?;
                    place = look.next;
                }
                Kind::Leave => {
                    let mut outer = self.run.outer.pop();
                    while outer.is_some_and(|at| at.start == LEAVES) {
                        outer = self.run.outer.pop();
                    }
                    self.run.current = outer;
                    place = outer.map_or(UNKNOWN_PLACE, |at| at.place);
                    if place == UNKNOWN_PLACE {
                        self.find_place();
                        place = self.place;
                    }
                }
                Kind::New
                    if self.looks.fill(&mut self.run.tables, place, entry, bits) == Kind::New => {}
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

    /// Several activations begin to wait.
    #[inline(never)]
    fn enter(&mut self, look: &Look) -> Result<(), RegenerateError> {
        let sites = self.looks.sites(look);
        if self.run.outer.len() + sites.len() > DEEPEST {
            return Err(RegenerateError::TooDeep(DEEPEST));
        }
        self.run.outer.extend_from_slice(sites);
        Ok(())
    }

    /// One step without a table. Returns how many bits are left.
    #[cold]
    fn step(&mut self, word: u64, left: u32) -> Result<u32, RegenerateError> {
        self.tell_place();
        self.run.bits.go_on(word, left);
        if let Next::Idle = self.run.step(&mut NullSink, None)? {
            return Err(RegenerateError::Late);
        }
        self.find_place();
        Ok(self.run.bits.remaining())
    }

    /// Learns from `run` where the innermost activation is.
    fn find_place(&mut self) {
        self.place = match self.run.current {
            Some(at) => self.looks.meet(&mut self.run.tables, at.function, at.start),
            None => UNKNOWN_PLACE,
        };
    }

    /// Says in `run` where the innermost activation is.
    fn tell_place(&mut self) {
        if let Some((function, start)) = self.looks.start(self.place) {
            self.run.current = Some(Activation {
                function,
                start,
                throws: NOWHERE,
                block: BlockId::from_u32(0),
                place: self.place,
            });
        }
    }
}
