//! What copies from memory to memory read.

use afterimage_machine::Code;
use afterimage_wpp::Segments;

use super::{Epochs, Failure, Instance, Reading, TraceError, WholeTrace, Writer};
use crate::def::Origin;

/// Most parts of a copy that are told.
const MOST_PARTS: usize = 1 << 24;

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Who wrote what a `memory.copy` copies, part by part, from its first byte on. Empty if the instruction copies no memory, or no bytes of it.
    /// O(parts): as many as bytes, at worst.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little, or there are more than 2^24 parts.
    pub fn copied(&self, instance: Instance, inst: usize) -> Result<Vec<Reading>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let mut readings = Vec::new();
        if compiled.code.insts.get(inst).map(|inst| inst.code) != Some(Code::MemoryCopy) {
            return Ok(readings);
        }
        self.executed(instance, inst)?;
        let write = compiled.model.ordinal(inst);
        let write = write.ok_or(TraceError::Damaged("a write that is not there"))?;
        let Some(copies) = self.copies(instance, write)? else {
            return Ok(readings);
        };
        for (run, origin) in copies.runs_of(instance.number, &self.blocks)? {
            // Elements that one execution wrote are one part.
            let (elements, length) = match run.step {
                0 => (1, run.bytes()),
                _ => (run.elements, run.length),
            };
            if elements > (MOST_PARTS - readings.len()) as u64 {
                return Err(TraceError::TooManyParts);
            }
            for element in 0..elements {
                let execution = run.execution.wrapping_add(run.step.wrapping_mul(element));
                let writer = match origin {
                    Origin::Initial => Writer::Initial,
                    Origin::Host => Writer::Host { call: execution },
                    Origin::Write {
                        node,
                        write,
                        offset,
                    } => {
                        let unknown = TraceError::Damaged("an execution that is not there");
                        let named = self.instance(node, execution)?;
                        let named = named.filter(|named| named.time <= instance.time);
                        let writer = self.compiled(node)?;
                        let write = writer.model.writes.get(write as usize);
                        let write =
                            write.ok_or(TraceError::Damaged("a write that is not there"))?;
                        Writer::Write {
                            instance: named.ok_or(unknown)?,
                            inst: write.inst as usize,
                            offset,
                        }
                    }
                };
                readings.push(Reading { length, writer });
            }
        }
        Ok(readings)
    }
}
