//! Saves a run's state, so that reading its bits can continue from there.

use afterimage_ids::{BlockId, EntityRef, FuncId, TypeId};
use afterimage_program::Program;

use super::lookup::UNKNOWN_PLACE;
use super::stack::{Activation, LEAVES, NOWHERE};
use super::tables::Target;
use super::{DEEPEST, RegenerateError, Regenerator, Sink};
use crate::PathPlan;

/// A run's state between two words, with everything needed to continue from it.
///
/// A waypoint is a list of numbers, most of them small, in this order:
///
/// - the number of blocks executed so far;
/// - the word held back until the next word arrives, or 0;
/// - the number of calls by the host that have not begun, and their functions;
/// - the number of waiting activations and, for each, its function, start, start for exceptions and
///   block;
/// - the next event: 0 for a call by the host; 1 for a path, with its function and start; 2 to 4
///   for a call to a defined function, to an import, or through a table, with the function or type
///   and the calling function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waypoint(Vec<u64>);

impl Waypoint {
    /// Wraps a list of numbers. The list is checked when a run continues from it.
    pub fn from_numbers(numbers: Vec<u64>) -> Self {
        Self(numbers)
    }

    /// Returns the numbers.
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// Returns the number of blocks executed before the waypoint.
    pub fn time(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }

    /// Whether all earlier words are known to be complete, so that none is held back.
    pub fn is_between_words(&self) -> bool {
        self.0.get(1) == Some(&0)
    }
}

/// The maximum number of blocks of a run. Executing more would take over a century.
const LONGEST: u64 = 1 << 62;

/// Maps a start to a number, so that the two special values become 0 and 1.
fn by_number(start: u32) -> u64 {
    u64::from(start.wrapping_add(2))
}

impl<'a> Regenerator<'a> {
    /// Returns the run's position after the words fed so far. A call that needs no more bits begins
    /// and is reported to the sink. Time: O(open activations).
    pub fn waypoint<S: Sink>(&mut self, sink: &mut S) -> Result<Waypoint, RegenerateError> {
        self.settle(sink)?;
        Ok(self.waypoint_here())
    }

    fn waypoint_here(&self) -> Waypoint {
        let mut numbers = vec![self.time, self.bits.kept()];
        numbers.push(self.host_calls.len() as u64);
        numbers.extend(self.host_calls.iter().map(|f| f.index() as u64));
        numbers.push(self.outer.len() as u64);
        for at in &self.outer {
            numbers.extend([u64::from(at.function), by_number(at.start)]);
            numbers.extend([by_number(at.throws), u64::from(at.block.as_u32())]);
        }
        match (&self.current, &self.pending) {
            (Some(at), _) => numbers.extend([1, u64::from(at.function), by_number(at.start)]),
            (None, Some((target, caller))) => {
                let (tag, number) = match target {
                    Target::Defined(function) => (2, u64::from(*function)),
                    Target::Import(function) => (3, function.index() as u64),
                    Target::Table(ty) => (4, ty.index() as u64),
                };
                numbers.extend([tag, number, u64::from(*caller)]);
            }
            (None, None) => numbers.push(0),
        }
        Waypoint(numbers)
    }

    /// Returns the run's position after the words fed so far. The last word must be complete. The
    /// result is `said` if the run reaches that waypoint, and otherwise another waypoint.
    ///
    /// # Errors
    /// Returns an error if the words do not continue the run.
    pub fn close<S: Sink>(
        &mut self,
        said: &Waypoint,
        sink: &mut S,
    ) -> Result<Waypoint, RegenerateError> {
        if let Some(last) = self.bits.last() {
            self.bits.open(last);
        }
        loop {
            if !self.bits.left() && self.time >= said.time() {
                let found = self.waypoint_here();
                if self.time > said.time() || found == *said {
                    return Ok(found);
                }
            }
            match self.step(sink, None) {
                Ok(super::Next::Go) => {}
                Err(RegenerateError::Bits) if !self.bits.left() => return Ok(self.waypoint_here()),
                Ok(_) => return Ok(self.waypoint_here()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins a pending call whose callee writes no bits on entry. The call has certainly begun if
    /// more bits follow.
    fn settle<S: Sink>(&mut self, sink: &mut S) -> Result<(), RegenerateError> {
        let (None, Some((target, caller))) = (self.current, self.pending) else {
            return Ok(());
        };
        let ids = self.tables.entry_ids();
        let (function, width) = match target {
            Target::Defined(function) => (Some(self.tables.id(function)), 0),
            Target::Import(function) => (Some(function), 0),
            Target::Table(ty) => (ids.function(ty, 0), ids.width(ty)),
        };
        let said = function.and_then(|function| ids.of(function));
        let needs = said.map_or(0, |(_, width)| width).max(width);
        if needs == 0 && self.bits.kept() != 0 {
            self.pending = None;
            self.call(target, caller, sink, None)?;
        }
        Ok(())
    }

    /// Continues from a run's position. The caller must report the functions of
    /// [`Regenerator::open`] to a sink that has not observed the run so far.
    ///
    /// # Errors
    /// Returns [`RegenerateError::Waypoint`] if the numbers do not describe a moment of a run of
    /// this program under this plan.
    pub fn resumed(
        program: &'a Program,
        plan: &'a PathPlan,
        waypoint: &Waypoint,
    ) -> Result<Self, RegenerateError> {
        let mut run = Self::new(program, plan);
        run.restore(waypoint).ok_or(RegenerateError::Waypoint)?;
        Ok(run)
    }

    fn restore(&mut self, waypoint: &Waypoint) -> Option<()> {
        let mut numbers = waypoint.0.iter().copied();
        let mut next = || numbers.next();
        self.time = next().filter(|&time| time <= LONGEST)?;
        self.bits = super::Bits::keeping(next()?)?;
        for _ in 0..next()? {
            let function = FuncId::from_u32(u32::try_from(next()?).ok()?);
            self.host_calls.push_back(function);
        }
        let waiting = next()?;
        if waiting > DEEPEST as u64 {
            return None;
        }
        for _ in 0..waiting {
            let told = [next()?, next()?, next()?, next()?];
            let at = self.activation(told)?;
            self.outer.push(at);
        }
        match next()? {
            0 if waiting == 0 => {}
            1 => {
                let at = self.activation([next()?, next()?, by_number(NOWHERE), 0])?;
                (at.start < LEAVES).then_some(())?;
                self.current = Some(at);
            }
            tag => {
                let number = u32::try_from(next()?).ok()?;
                let target = match tag {
                    2 => Target::Defined(self.defined(number)?),
                    3 => Target::Import(FuncId::from_u32(number)),
                    4 => Target::Table(self.tables.ty(TypeId::from_u32(number))?),
                    _ => return None,
                };
                let caller = self.defined(u32::try_from(next()?).ok()?)?;
                self.pending = Some((target, caller));
            }
        }
        next().is_none().then_some(())
    }

    fn defined(&self, function: u32) -> Option<u32> {
        self.tables.has(function).then_some(function)
    }

    fn activation(&mut self, told: [u64; 4]) -> Option<Activation> {
        let [function, start, throws, block] = told.map(|number| u32::try_from(number).ok());
        let function = self.defined(function?)?;
        let start_of = |number: u32| number.wrapping_sub(2);
        let at = Activation {
            function,
            start: start_of(start?),
            throws: start_of(throws?),
            block: BlockId::from_u32(block?),
            place: UNKNOWN_PLACE,
            entered: 0,
            called: 0,
        };
        let mut is_start = |start| {
            matches!(start, LEAVES | NOWHERE) || self.tables.place(function, start).is_some()
        };
        (is_start(at.start) && is_start(at.throws)).then_some(at)
    }
}
