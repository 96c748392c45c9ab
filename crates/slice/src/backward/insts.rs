//! Processes instructions, with their reads and writes of memory.

use afterimage_machine::Range;

use super::{Backward, take, want};
use crate::memo::Access;
use crate::plan::{Kind, Plan};
use crate::reach::Reach;
use crate::stretch::{Event, unpacked};

impl Backward<'_> {
    /// Walks back over an instruction. Returns how far it must be followed, if it is in the slice.
    #[inline]
    pub(super) fn inst(
        &mut self,
        plan: &Plan,
        i: usize,
        events: &mut &[Event],
        accesses: &mut Accesses<'_>,
    ) -> Reach {
        let inst = plan.insts[i];
        let mut wanted = self.registers[plan.result(i)];
        let data = self.follows.data;
        match inst.kind {
            Kind::Pure | Kind::Branch | Kind::Drop => {}
            Kind::Load => {
                let (access, range) = accesses.pop(inst.memory);
                if wanted.is_some()
                    && data
                    && let Some(range) = range
                {
                    self.read(access, range, wanted.next());
                }
            }
            Kind::Store | Kind::Many => {
                let (access, range) = accesses.pop(inst.memory);
                let range = range.or_else(|| match pop(events, i) {
                    Some(Event::Write { range, .. }) => Some(range),
                    _ => None,
                });
                if let Some(range) = range {
                    wanted = wanted.max(self.written(access, range));
                }
            }
            Kind::Copy => {
                if let Some(Event::Copy { from, to, .. }) = pop(events, i) {
                    wanted = wanted.max(self.copied(from, to, wanted));
                }
            }
            Kind::GlobalGet if data => want(&mut self.globals, inst.number, wanted.next()),
            Kind::GlobalGet => {}
            Kind::GlobalSet => wanted = wanted.max(take(&mut self.globals, inst.number)),
            Kind::MemorySize if data => want(&mut self.sizes, inst.memory.into(), wanted.next()),
            Kind::MemorySize => {}
            // The contents of a table are treated as a whole, as are the sizes of memories and
            // tables.
            Kind::MemoryGrow => {
                wanted = wanted.max(take(&mut self.sizes, inst.memory.into()));
                if data {
                    want(&mut self.sizes, inst.memory.into(), wanted.next());
                }
            }
            Kind::TableGet if data => want(&mut self.tables, inst.number, wanted.next()),
            Kind::TableGet => {}
            Kind::TableSet | Kind::TableGrow => {
                wanted = wanted.max(take(&mut self.tables, inst.number));
                if data {
                    want(&mut self.tables, inst.number, wanted.next());
                    want(&mut self.tables, inst.other, wanted.next());
                }
            }
        }
        self.want_operands(plan, i, wanted);
        wanted
    }

    /// Marks the operands of an instruction as wanted, as far as the instruction itself is wanted.
    #[inline]
    fn want_operands(&mut self, plan: &Plan, i: usize, wanted: Reach) {
        if wanted.is_none() || !self.follows.data {
            return;
        }
        let inst = plan.insts[i];
        let skipped = if self.follows.addresses {
            0
        } else {
            inst.kind.where_to()
        };
        for &operand in inst.operands().iter().skip(skipped) {
            self.want_register(operand, plan, wanted.next());
        }
        if !inst.moved.is_none() {
            for (operand, block) in plan.moved_operands(i) {
                if usize::from(operand) >= skipped {
                    self.moved[block] = wanted.next().max(self.moved[block]);
                }
            }
        }
    }

    /// Walks back over the instruction that trapped, which took its operands but had no effect.
    pub(super) fn trap(&mut self, plan: &Plan, i: usize) -> Reach {
        let inst = plan.insts[i];
        let wanted = self.registers[plan.result(i)];
        if self.follows.data {
            match inst.kind {
                Kind::TableGet => want(&mut self.tables, inst.number, wanted.next()),
                Kind::TableSet | Kind::TableGrow => {
                    want(&mut self.tables, inst.number, wanted.next());
                    want(&mut self.tables, inst.other, wanted.next());
                }
                _ => {}
            }
        }
        self.want_operands(plan, i, wanted);
        wanted
    }

    /// Processes a copy of bytes. If some of the bytes are wanted, their sources become wanted.
    /// Returns how far the copy must be followed.
    fn copied(&mut self, from: Range, to: Range, all: Reach) -> Reach {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        self.bytes.parts(to, &mut parts);
        if all.is_some() {
            parts.push((to, all));
        }
        let farthest = self.bytes.take(to).max(all);
        if self.follows.data {
            for (part, reach) in &parts {
                let range = Range {
                    memory: from.memory,
                    address: from.address + (part.address - to.address),
                    length: part.length,
                };
                self.bytes.add(range, reach.next());
            }
        }
        self.parts = parts;
        farthest
    }
}

/// The loads and stores of an execution, from last to first.
pub(super) struct Accesses<'a> {
    accesses: &'a [u64],
    /// The number of accesses already processed.
    behind: u32,
}

impl<'a> Accesses<'a> {
    pub(super) fn new(accesses: &'a [u64]) -> Self {
        Self {
            accesses,
            behind: 0,
        }
    }

    /// Returns the next access, with its range unless an event contains the range.
    #[inline]
    fn pop(&mut self, memory: u16) -> (Access, Option<Range>) {
        let behind = self.behind;
        self.behind += 1;
        let packed = self.accesses.split_off_last();
        let range = packed.and_then(|&packed| unpacked(memory, packed));
        (Access { behind, memory }, range)
    }
}

/// Removes and returns the last event, if it belongs to instruction `of`.
fn pop(events: &mut &[Event], of: usize) -> Option<Event> {
    let (&last, rest) = events.split_last()?;
    match last {
        Event::Write { inst, .. } | Event::Copy { inst, .. } if inst as usize == of => {
            *events = rest;
            Some(last)
        }
        _ => None,
    }
}
