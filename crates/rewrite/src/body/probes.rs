//! Writes the code added between the operators of a body. It counts executions, writes the path,
//! and polls the stop clock.

use afterimage_ids::BlockId;
use wasm_encoder::{BlockType, Instruction, MemArg};

use super::Writer;
use crate::actions::Step;
use crate::layout::{
    ARM_CLOCK_AT, ARM_SKIP_AT, CLOCK_AT, HALF_FULL, LIMIT_AT, LOOPS_AT, SNAPSHOT_AT, TAKE_SNAPSHOT,
};
use crate::map::OriginalPlace;
use crate::path_probes::PathStep;

/// The number of loop iterations between two polls of the stop clock in one activation. It is a
/// power of two.
///
/// It is small, because the numbers of iterations multiply if a function with a loop is called from
/// another loop.
const POLL_INTERVAL: i32 = 128;

impl Writer<'_, '_> {
    /// Adds an amount to the word at an address of the probes' memory. `amount` pushes the amount.
    fn add_to(&mut self, address: u64, amount: &Instruction<'_>) {
        let slot = self.slot(address);
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(slot));
        self.put(amount);
        self.put(&Instruction::I64Add);
        self.put(&Instruction::I64Store(slot));
    }

    pub(super) fn steps(&mut self, steps: &[Step]) {
        for &step in steps {
            match step {
                Step::Count(counter) => {
                    self.add_to(
                        self.context.layout.address(counter),
                        &Instruction::I64Const(1),
                    );
                }
                Step::Path(step) => self.path_step(step),
                Step::Poll(block) => self.poll(block),
                Step::Armed(place) => self.armed(place),
                Step::Mark => self.mark(0),
                Step::Snapshot(block) => self.snapshot(block),
                Step::LoopSnapshot(block) => {
                    self.keep_operands();
                    self.put(&Instruction::LocalGet(self.polls));
                    self.put(&Instruction::I32Const(1));
                    self.put(&Instruction::I32Add);
                    self.put(&Instruction::I32Const(POLL_INTERVAL - 1));
                    self.put(&Instruction::I32And);
                    self.put(&Instruction::I32Eqz);
                    self.map.unlikely.push(self.out.len() as u32);
                    self.put(&Instruction::If(BlockType::Empty));
                    self.path_step(PathStep::Save);
                    self.snapshot(block);
                    self.path_step(PathStep::Load);
                    self.put(&Instruction::End);
                }
                Step::LoopPoll(block) => {
                    // The count goes up and is never reset, because a reset would cost a move in
                    // every iteration.
                    let loops = MemArg {
                        align: 2,
                        ..self.slot(LOOPS_AT)
                    };
                    if self.hinges.is_some() {
                        self.put(&Instruction::I32Const(0));
                        self.put(&Instruction::I32Const(0));
                        self.put(&Instruction::I32Load(loops));
                    } else {
                        self.put(&Instruction::LocalGet(self.polls));
                    }
                    self.put(&Instruction::I32Const(1));
                    self.put(&Instruction::I32Add);
                    self.put(&Instruction::LocalTee(self.polls));
                    if self.hinges.is_some() {
                        self.put(&Instruction::I32Store(loops));
                        self.put(&Instruction::LocalGet(self.polls));
                    }
                    self.put(&Instruction::I32Const(POLL_INTERVAL - 1));
                    self.put(&Instruction::I32And);
                    self.put(&Instruction::I32Eqz);
                    self.map.unlikely.push(self.out.len() as u32);
                    self.put(&Instruction::If(BlockType::Empty));
                    self.poll(block);
                    self.put(&Instruction::End);
                }
            }
        }
    }

    fn path_step(&mut self, step: PathStep) {
        let Some(places) = self.context.path_places else {
            return;
        };
        let in_memory = self.context.path_in_memory;
        let (load, save) = (
            Instruction::GlobalGet(places.pending),
            Instruction::GlobalSet(places.pending),
        );
        let (get, set) = if in_memory {
            (load.clone(), save.clone())
        } else {
            (
                Instruction::LocalGet(self.path),
                Instruction::LocalSet(self.path),
            )
        };
        match step {
            PathStep::Load | PathStep::Save if in_memory => {}
            PathStep::Load => {
                self.put(&load);
                self.put(&set);
            }
            PathStep::Save => {
                self.put(&get);
                self.put(&save);
            }
            PathStep::Begin { width, bits } => {
                // Test whether the new bits fit below the mark.
                self.put(&get);
                self.put(&Instruction::I64Const(i64::from(64 - width)));
                self.put(&Instruction::I64ShrU);
                self.put(&Instruction::I64Const(0));
                self.put(&Instruction::I64Ne);
                self.map.unlikely.push(self.out.len() as u32);
                self.put(&Instruction::If(BlockType::Empty));
                self.full_word(places.cursor, (&get, &set));
                self.put(&Instruction::End);
                self.put(&get);
                self.put(&Instruction::I64Const(i64::from(width)));
                self.put(&Instruction::I64Shl);
                if bits > 0 {
                    self.put(&Instruction::I64Const(bits as i64));
                    self.put(&Instruction::I64Add);
                }
                self.put(&set);
            }
            PathStep::Add(value) => {
                self.put(&get);
                self.put(&Instruction::I64Const(i64::from(value)));
                self.put(&Instruction::I64Add);
                self.put(&set);
            }
        }
    }

    /// Moves the accumulator into the ring and clears it.
    fn full_word(&mut self, cursor: u32, (get, set): (&Instruction<'_>, &Instruction<'_>)) {
        let layout = self.context.layout;
        let word = self.slot(layout.buffer());
        for instruction in [
            &Instruction::GlobalGet(cursor),
            get,
            &Instruction::I64Store(word),
            &Instruction::GlobalGet(cursor),
            &Instruction::I32Const(8),
            &Instruction::I32Add,
            &Instruction::I32Const(16 * layout.half as i32 - 1),
            &Instruction::I32And,
            &Instruction::GlobalSet(cursor),
            &Instruction::I64Const(1),
            set,
        ] {
            self.put(instruction);
        }
        if let Some((type_index, table_index)) =
            self.context.snapshots.filter(|_| self.context.tells_full)
        {
            self.put(&Instruction::GlobalGet(cursor));
            self.put(&Instruction::I32Const(8 * layout.half as i32 - 1));
            self.put(&Instruction::I32And);
            self.put(&Instruction::I32Eqz);
            self.put(&Instruction::If(BlockType::Empty));
            self.put(&Instruction::I32Const(HALF_FULL as i32));
            self.put(&Instruction::CallIndirect {
                type_index,
                table_index,
            });
            self.put(&Instruction::End);
        }
    }

    /// Adds one tick to the stop clock. Traps at the tick that is set as the limit.
    fn poll(&mut self, block: BlockId) {
        let (clock, limit) = (self.slot(CLOCK_AT), self.slot(LIMIT_AT));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(clock));
        self.put(&Instruction::I64Const(1));
        self.put(&Instruction::I64Add);
        self.put(&Instruction::LocalTee(self.scratch));
        self.put(&Instruction::I64Store(clock));
        self.put(&Instruction::LocalGet(self.scratch));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(limit));
        self.put(&Instruction::I64GeU);
        self.stop(OriginalPlace::Poll(block));
    }

    /// Calls the function that takes snapshots, if the clock has reached the next snapshot. The
    /// pending bits of the path are in their global by then.
    fn snapshot(&mut self, block: BlockId) {
        let Some((ty, table)) = self.context.snapshots else {
            return;
        };
        let (clock, at) = (self.slot(CLOCK_AT), self.slot(SNAPSHOT_AT));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(clock));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(at));
        self.put(&Instruction::I64GeU);
        self.map.unlikely.push(self.out.len() as u32);
        self.put(&Instruction::If(BlockType::Empty));
        self.put(&Instruction::I32Const(TAKE_SNAPSHOT as i32));
        self.map
            .stops
            .push((self.out.len() as u32, OriginalPlace::Poll(block)));
        self.put(&Instruction::CallIndirect {
            type_index: ty,
            table_index: table,
        });
        self.capture_if_taken(0);
        self.put(&Instruction::End);
    }

    /// Traps if the condition on the stack is true. The engine may merge the `if` and the
    /// `unreachable` into one conditional trap, which is reported at the `if`.
    fn stop(&mut self, place: OriginalPlace) {
        self.map.stops.push((self.out.len() as u32, place));
        self.map.unlikely.push(self.out.len() as u32);
        self.put(&Instruction::If(BlockType::Empty));
        self.map.stops.push((self.out.len() as u32, place));
        self.put(&Instruction::Unreachable);
        self.put(&Instruction::End);
    }

    /// Traps at the armed moment. Otherwise, lets control pass.
    fn armed(&mut self, place: OriginalPlace) {
        let (clock, at, skip) = (
            self.slot(CLOCK_AT),
            self.slot(ARM_CLOCK_AT),
            self.slot(ARM_SKIP_AT),
        );
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(clock));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(at));
        self.put(&Instruction::I64Eq);
        self.put(&Instruction::If(BlockType::Empty));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I64Load(skip));
        self.put(&Instruction::I64Eqz);
        self.stop(place);
        self.add_to(ARM_SKIP_AT, &Instruction::I64Const(-1));
        self.put(&Instruction::End);
    }
}
