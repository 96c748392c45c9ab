//! Finds the origins of memory copies.

use afterimage_machine::{Code, Range};
use afterimage_wpp::Segments;

use super::{Epochs, Failure, Instance, Reading, TraceError, WholeTrace};
use crate::def::Origin;
use crate::epoch::Execution;

/// The maximum number of parts reported for a copy.
const MOST_PARTS: usize = 1 << 24;

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the writers of the data that a `memory.copy` copies, part by part, from its first
    /// byte on. The list is empty if the instruction copies no memory, or no bytes. Takes O(parts).
    /// There is at most one part per byte.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete, or there are more than 2^24
    /// parts.
    pub fn copied(&self, instance: Instance, inst: usize) -> Result<Vec<Reading>, Failure<S, E>> {
        self.copied_within(instance, inst, 0..u64::MAX)
    }

    /// Works like [`copied`](Self::copied), but for a range of the copied bytes, counted from the
    /// first byte.
    ///
    /// # Errors
    /// Returns the errors of [`copied`](Self::copied).
    pub fn copied_within(
        &self,
        instance: Instance,
        inst: usize,
        bytes: std::ops::Range<u64>,
    ) -> Result<Vec<Reading>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let mut readings = Vec::new();
        if compiled.code.insts.get(inst).map(|inst| inst.code) != Some(Code::MemoryCopy) {
            return Ok(readings);
        }
        self.executed(instance, inst)?;
        let write = compiled.model.ordinal(inst);
        let write = write.ok_or(TraceError::Damaged("a write that does not exist"))?;
        let copies = self.copies(instance, write)?;
        let Some(copies) = copies.view() else {
            return Ok(readings);
        };
        let mut done = 0;
        for (run, origin) in copies.runs_of(instance.number, &self.blocks)? {
            let first = done;
            done += run.bytes();
            let part = first.max(bytes.start)..done.min(bytes.end);
            if part.is_empty() {
                continue;
            }
            if origin == Origin::Before {
                if part.end - part.start > (MOST_PARTS - readings.len()) as u64 {
                    return Err(TraceError::TooManyParts);
                }
                let inst = &compiled.code.insts[inst];
                let (from, _) = self.value(instance, inst.b)?;
                let range = Range {
                    memory: inst.immediate as u32,
                    address: from.wrapping_add(part.start),
                    length: part.end - part.start,
                };
                self.readings_before(instance, range, &mut readings)?;
                continue;
            }
            // Elements that one execution wrote form one part.
            let length = match run.step {
                0 => run.bytes(),
                _ => run.length,
            };
            let elements = (part.start - first) / length..(part.end - first).div_ceil(length);
            if elements.end - elements.start > (MOST_PARTS - readings.len()) as u64 {
                return Err(TraceError::TooManyParts);
            }
            for element in elements {
                let here = first + element * length;
                let length = part.end.min(here + length) - part.start.max(here);
                let execution = run.execution.wrapping_add(run.step.wrapping_mul(element));
                let writer = self.writer(origin, Execution::Number(execution), instance)?;
                let writer = writer.ok_or(TraceError::Damaged("an unknown writer"))?;
                readings.push(Reading { length, writer });
            }
        }
        Ok(readings)
    }
}
