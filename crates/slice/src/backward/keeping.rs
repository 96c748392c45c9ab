//! Memoises the outcomes of nodes, and reuses them.

use afterimage_ids::EntityRef;
use afterimage_machine::Range;

use super::ends::OfEnd;
use super::{Backward, take, want};
use crate::memo::{Access, Did, Key, Lookup, Mattered, Outcome};
use crate::plan::{End, Plan};
use crate::reach::Reach;
use crate::stretch::Execution;

/// A record of how a node is processed, which is to be memoised.
#[derive(Debug)]
pub(super) struct Keeping {
    key: Key,
    /// The effects of the node's first stores, which have already been processed.
    did: Did,
    stores: u32,
    accesses: Vec<Mattered>,
    pub(super) insts: Vec<u32>,
    pub(super) of_call: bool,
    pub(super) table: bool,
}

impl Backward<'_> {
    /// Reuses the known outcome for the same wanted set after the node. If no outcome is known and
    /// there is room, starts recording. Returns whether an outcome was reused.
    pub(super) fn as_before(
        &mut self,
        plan: &Plan,
        execution: Execution,
        accesses: &[u64],
    ) -> bool {
        let Some(key) = self.key(plan) else {
            return false;
        };
        let Some(memo) = &mut self.memo else {
            return false;
        };
        match memo.find(execution.node.index(), &key, accesses, &mut self.bytes) {
            Lookup::Outcome(outcome) => {
                self.come_to_the_same(plan, &key, &outcome);
                true
            }
            // The caller must know that the first accesses were processed, even if the outcome
            // cannot be memoised.
            Lookup::Nothing(did) if did.is_over(0) && !memo.has_room(execution.node.index()) => {
                false
            }
            Lookup::Nothing(did) => {
                self.keeping = Some(Box::new(Keeping {
                    key,
                    did,
                    stores: 0,
                    accesses: Vec::new(),
                    insts: Vec::new(),
                    of_call: false,
                    table: false,
                }));
                false
            }
        }
    }

    /// Returns the key for the wanted set after a node. Returns `None` if the set has too many
    /// different parts, or includes parts of an exception.
    fn key(&mut self, plan: &Plan) -> Option<Key> {
        let memo = self.memo.as_mut()?;
        let of_end = &self.of_end;
        let throws = of_end.all_thrown.max(of_end.asked).max(of_end.threw);
        if throws.is_some() || !of_end.thrown.is_empty() {
            return None;
        }
        let frame = self.frames.last_mut()?;
        let waits = match frame.number {
            Some(number) => number,
            None => {
                let number = memo.number(plan.function, frame.pending())?;
                frame.number = Some(number);
                number
            }
        };
        let mut key = Key {
            waits,
            called: of_end.called.is_some(),
            host: of_end.host.is_some(),
            next: frame.next.filter(|_| plan.forks),
            ..Key::default()
        };
        if frame.wants_any() {
            for (i, output) in plan.outputs.iter().enumerate() {
                key.outputs |= u64::from(frame.wants(output.variable)) << i;
            }
        }
        for (i, &global) in plan.used_globals.iter().enumerate() {
            let reach = self.globals.get(global as usize);
            key.globals |= u32::from(reach.is_some_and(|reach| reach.is_some())) << i;
        }
        for &(i, _) in &of_end.arguments {
            key.arguments |= 1u32.checked_shl(i)?;
        }
        for &(i, _) in frame.returned.iter().flat_map(|(_, wanted)| wanted) {
            key.returned |= 1u32.checked_shl(i)?;
        }
        Some(key)
    }

    /// Applies a memoised outcome, except for memory.
    fn come_to_the_same(&mut self, plan: &Plan, key: &Key, outcome: &Outcome) {
        if key.called || key.host || key.arguments != 0 {
            self.of_end = OfEnd::default();
        }
        if key.globals != outcome.globals {
            for (i, &global) in plan.used_globals.iter().enumerate() {
                match outcome.globals >> i & 1 {
                    0 => drop(take(&mut self.globals, global)),
                    _ => want(&mut self.globals, global, Reach::ALL),
                }
            }
        }
        if outcome.table
            && let End::Call {
                table: Some(table), ..
            } = plan.end
        {
            want(&mut self.tables, table, Reach::ALL);
        }
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        frame.returned = None;
        for &variable in &outcome.cleared {
            frame.take(variable);
        }
        for &variable in &outcome.set {
            frame.want(variable, Reach::ALL);
        }
        if outcome.of_call {
            frame.of_call = Reach::ALL;
        }
        if outcome.waits != key.waits
            && let Some(memo) = &self.memo
            && let Some(blocks) = memo.blocks(plan.function, outcome.waits)
        {
            frame.wait(blocks, outcome.waits);
        }
        frame.next = plan.blocks.first().copied();
    }

    /// Memoises the outcome of the node just processed.
    pub(super) fn keep(&mut self, plan: &Plan, execution: Execution, keeping: Keeping) {
        let (Some(memo), Some(frame)) = (&mut self.memo, self.frames.last_mut()) else {
            return;
        };
        let Some(waits) = memo.number(plan.function, frame.pending()) else {
            return;
        };
        frame.number = Some(waits);
        let key = keeping.key;
        let is_set = |variable: u32| self.registers[variable as usize].is_some();
        let outputs = plan.outputs.iter().enumerate();
        let taken = outputs.filter(|(i, _)| key.outputs >> i & 1 == 1);
        let taken = Vec::from_iter(taken.map(|(_, output)| output.variable));
        let mut globals = 0;
        for (i, &global) in plan.used_globals.iter().enumerate() {
            let reach = self.globals.get(global as usize);
            globals |= u32::from(reach.is_some_and(|reach| reach.is_some())) << i;
        }
        let outcome = Outcome {
            insts: keeping.insts.into(),
            ended: self.ended,
            cleared: taken.iter().copied().filter(|&v| !is_set(v)).collect(),
            set: (0..plan.variables)
                .filter(|&v| is_set(v) && !taken.contains(&v))
                .collect(),
            globals,
            waits,
            of_call: keeping.of_call,
            table: keeping.table,
        };
        memo.keep(execution.node.index(), key, &keeping.accesses, outcome);
    }

    /// Records that the data read by a load is wanted.
    pub(super) fn read(&mut self, access: Access, range: Range, reach: Reach) {
        if let Some(keeping) = &mut self.keeping {
            keeping.accesses.push(Mattered::Load(access));
            if !keeping.did.is_over(keeping.stores) {
                return;
            }
        }
        self.bytes.add(range, reach);
    }

    /// Removes the data written by a store from the wanted set. Returns how far to follow the data.
    pub(super) fn written(&mut self, access: Access, range: Range) -> Reach {
        let Some(keeping) = &mut self.keeping else {
            return self.bytes.take(range);
        };
        let reach = match keeping.did.get(keeping.stores) {
            Some(true) => Reach::ALL,
            Some(false) => Reach::NONE,
            None => self.bytes.take(range),
        };
        keeping.stores += 1;
        let mattered = Mattered::Store(access, reach.is_some());
        keeping.accesses.push(mattered);
        reach
    }
}
