//! Searches labels and copies for the executions that name one definition.

use std::ops::Range;

use afterimage_streams::{Cursor, StreamError};

use super::{CopyView, EpochError, Labels, damaged};
use crate::def::{Origin, Piece};
use crate::epoch::Blocks;
use crate::epoch::mentions::Target;

/// A label that may name the definition sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The execution of the reading node.
    pub execution: u64,
    /// The position of the piece in the read.
    pub piece: usize,
    /// The number of the piece's bytes, or 0 for the whole read.
    pub length: u64,
    /// The distance back in executions of the writing node, if the labels store distances.
    pub age: u64,
}

/// The definition to search for in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sought {
    /// The write that labels must name.
    pub target: Target,
    /// The execution of the write's node, or the number of the host's call.
    pub number: u64,
    /// Whether the reading node is also the writing node, so that ages count from the reading
    /// execution.
    pub itself: bool,
    /// The possible ages, if the reading node is another node.
    pub ages: (u64, u64),
}

impl Sought {
    /// Whether a number in a stream may name the definition sought, according to the stream alone.
    fn fits(&self, ages: bool, execution: u64, value: u64) -> bool {
        // For the host, both forms store the number of the call.
        if !ages || self.target == Target::Host {
            return value == self.number;
        }
        if self.itself {
            execution.checked_sub(value) == Some(self.number)
        } else {
            (self.ages.0..=self.ages.1).contains(&value)
        }
    }

    /// Whether a number that fits is certain to name the definition sought.
    pub(crate) fn certain(&self, ages: bool) -> bool {
        !ages || self.itself || self.target == Target::Host || self.ages.0 == self.ages.1
    }
}

impl Labels<'_> {
    /// Returns the executions of the node that have a label.
    pub(crate) fn executions(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.count)
    }

    /// Whether pieces at this position are stored as ages.
    pub(crate) fn ages(&self, piece: usize) -> bool {
        self.pieces
            .get(piece)
            .is_some_and(|piece| piece.executions.ages)
    }

    /// Appends the labels of these executions that may name the definition sought, in order. Takes
    /// O(labels), and decodes one block at a time.
    ///
    /// # Errors
    /// Returns an error if the labels are damaged.
    pub(crate) fn candidates(
        &self,
        executions: Range<u64>,
        sought: &Sought,
        found: &mut Vec<Candidate>,
    ) -> Result<(), EpochError> {
        let own = self.executions();
        let start = executions.start.max(own.start);
        let end = executions.end.min(own.end);
        if start >= end {
            return Ok(());
        }
        let mut streams = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            streams.push(piece.executions.stream.cursor());
        }
        let mut chosen = self.chosen.as_ref().map(|chosen| chosen.cursor());
        let from = start - self.first;
        self.go(from, chosen.as_mut(), &mut streams)?;
        // The pieces of each pattern that have this origin, and their numbers of bytes.
        let named = |piece: &Piece| {
            let named = sought.target.names(piece.origin);
            named.then_some(u64::from(piece.length))
        };
        let patterns = self.patterns.iter();
        let patterns = patterns.map(|pattern| Vec::from_iter(pattern.iter().map(named)));
        let patterns = Vec::from_iter(patterns);
        let ages = Vec::from_iter((0..streams.len()).map(|piece| self.ages(piece)));
        for execution in start..end {
            let pattern = match &mut chosen {
                None => 0,
                Some(chosen) => number(chosen.next()?)? as usize,
            };
            let pieces = patterns.get(pattern);
            let pieces = pieces.ok_or(damaged("a pattern that does not exist"))?;
            for (piece, named) in pieces.iter().enumerate() {
                let value = number(streams[piece].next()?)?;
                if let Some(length) = *named
                    && sought.fits(ages[piece], execution, value)
                {
                    found.push(Candidate {
                        execution,
                        piece,
                        length,
                        age: value,
                    });
                }
            }
        }
        Ok(())
    }

    /// Moves to the label at a position. If labels differ in their numbers of pieces, the first
    /// call takes O(earlier labels).
    fn go(
        &self,
        from: u64,
        chosen: Option<&mut Cursor<'_>>,
        streams: &mut [Cursor<'_>],
    ) -> Result<(), EpochError> {
        let mut before = vec![from; streams.len()];
        if let Some(chosen) = chosen {
            if self.pieces.iter().any(|piece| piece.count != self.count) {
                before.fill(0);
                for _ in 0..from {
                    let pattern = self.patterns.get(number(chosen.next()?)? as usize);
                    let pattern = pattern.ok_or(damaged("a pattern that does not exist"))?;
                    for before in before.iter_mut().take(pattern.len()) {
                        *before += 1;
                    }
                }
            } else {
                chosen.seek(from)?;
            }
        }
        for (stream, before) in streams.iter_mut().zip(before) {
            stream.seek(before)?;
        }
        Ok(())
    }
}

impl CopyView<'_> {
    /// Finds the executions that copied the data sought. For each run with this data, appends the
    /// execution and a number of bytes: the run's bytes if one execution wrote the whole run, or
    /// otherwise the bytes of the one element with this data. Time: O(runs of the copies).
    ///
    /// # Errors
    /// Returns an error if the stored data is damaged.
    pub(crate) fn copied(
        &self,
        executions: Range<u64>,
        target: Target,
        wanted: u64,
        found: &mut Vec<(u64, u64)>,
    ) -> Result<(), EpochError> {
        let named = Vec::from_iter(self.origins.iter().map(|&origin| target.names(origin)));
        let (mut at, mut counts) = (self.at.cursor(), self.counts.cursor());
        let mut runs = Runs::new(self);
        while let Some(execution) = at.next()? {
            let count = number(counts.next()?)?;
            if !executions.contains(&execution) {
                runs.pass(count)?;
                continue;
            }
            for _ in 0..count {
                let run = runs.next()?;
                let place = usize::try_from(run.place).ok();
                let named = place.and_then(|place| named.get(place));
                if !*named.ok_or(damaged("an origin that does not exist"))? {
                    continue;
                }
                let distance = wanted.wrapping_sub(run.execution);
                let element = match run.step {
                    0 => (distance == 0).then_some(0),
                    step if step > u64::MAX / 2 => {
                        quotient(distance.wrapping_neg(), step.wrapping_neg())
                    }
                    step => quotient(distance, step),
                };
                if element.is_some_and(|element| element < run.elements) {
                    let bytes = match run.step {
                        0 => run.bytes(),
                        _ => run.length,
                    };
                    found.push((execution, bytes));
                }
            }
        }
        Ok(())
    }

    /// Returns the runs that an execution copied, with their origins. The list is empty if the
    /// execution copied nothing. Takes O(runs) and, in the first call, O(earlier copies).
    ///
    /// # Errors
    /// Returns an error if the stored data is damaged.
    pub(crate) fn runs_of(
        &self,
        execution: u64,
        blocks: &Blocks,
    ) -> Result<Vec<(CopiedRun, Origin)>, EpochError> {
        let mut found = Vec::new();
        let Some((first, count)) = self.runs_at(execution, blocks)? else {
            return Ok(found);
        };
        let mut runs = Runs::new(self);
        runs.pass(first)?;
        for _ in 0..count {
            let run = runs.next()?;
            let place = usize::try_from(run.place).ok();
            let origin = place.and_then(|place| self.origins.get(place));
            found.push((
                run,
                *origin.ok_or(damaged("an origin that does not exist"))?,
            ));
        }
        Ok(found)
    }
}

/// Returns the quotient of two numbers, or `None` if there is a remainder.
fn quotient(of: u64, by: u64) -> Option<u64> {
    of.is_multiple_of(by).then(|| of / by)
}

/// A run of a copy, with elements of equal length that were written by executions at equal
/// distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopiedRun {
    /// The number of bytes in an element.
    pub length: u64,
    /// The number of elements.
    pub elements: u64,
    /// The index of the elements' origin.
    pub place: u64,
    /// The execution that wrote the first element, or the number of the host's call.
    pub execution: u64,
    /// The difference between the execution numbers of consecutive elements.
    pub step: u64,
}

impl CopiedRun {
    /// Returns the total number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.length.saturating_mul(self.elements)
    }
}

/// The runs of copies, in order.
pub(crate) struct Runs<'v> {
    lengths: Cursor<'v>,
    elements: Cursor<'v>,
    places: Cursor<'v>,
    executions: Cursor<'v>,
    steps: Cursor<'v>,
}

impl<'v> Runs<'v> {
    pub(crate) fn new(view: &'v CopyView<'_>) -> Self {
        Self {
            lengths: view.lengths.cursor(),
            elements: view.elements.cursor(),
            places: view.places.cursor(),
            executions: view.executions.cursor(),
            steps: view.steps.cursor(),
        }
    }

    fn all(&mut self) -> [&mut Cursor<'v>; 5] {
        [
            &mut self.lengths,
            &mut self.elements,
            &mut self.places,
            &mut self.executions,
            &mut self.steps,
        ]
    }

    /// Skips some runs.
    pub(crate) fn pass(&mut self, count: u64) -> Result<(), StreamError> {
        for stream in self.all() {
            stream.seek(stream.position().saturating_add(count))?;
        }
        Ok(())
    }

    /// Returns the next run.
    pub(crate) fn next(&mut self) -> Result<CopiedRun, EpochError> {
        let mut values = [0; 5];
        for (value, stream) in values.iter_mut().zip(self.all()) {
            *value = number(stream.next()?)?;
        }
        let [length, elements, place, execution, step] = values;
        Ok(CopiedRun {
            length,
            elements,
            place,
            execution,
            step,
        })
    }
}

fn number(value: Option<u64>) -> Result<u64, EpochError> {
    value.ok_or(damaged("a number that does not exist"))
}
