//! What functions with very many branches get so that the engine compiles them in time.
//!
//! Where ways through a function join, each local that was written on one of them becomes a parameter of the join. For these parameters regalloc2 takes the
//! square of their number if nothing stands between: for each it goes over all before it again, from the last one on that is live in two stretches of code
//! (`blockparam_ins` in `apply_allocations_and_insert_moves`), and each is merged into the bundle of those before, which is sorted again (`merge_bundles`).
//! Values that are no parameters come after all of them, and go over them like that, too. Compiled code of people's programs has such values all over; long rows of small branches have none. So every so
//! many branches stands a *hinge*, with one of either kind, and the locals written since the last one go through memory, where their bundle ends:
//!
//! ```wat
//! (i64.store $local (i32.const 0) (local.get $x))  (local.set $x (i64.load $local (i32.const 0)))
//! (if (i64.eqz (i64.load $mark (i32.const 0)))
//!   (then (local.set $two (i64.const 0)))
//!   (else (local.set $two (i64.load $mark (i32.const 0)))))
//! (local.set $load (i32.load $mark (i32.const 0)))
//! (if (i64.eqz (i64.load $mark (i32.const 0)))
//!   (then (i64.store $mark (i32.const 0) (local.get $two)) (i32.store $other (i32.const 0) (local.get $load)))
//!   (else (i64.store $mark (i32.const 0) (local.get $two)) (i32.store $other (i32.const 0) (local.get $load))))
//! ```
//!
//! For the same reason these functions keep neither the path nor the iterations of loops in locals.

use wasm_encoder::{BlockType, Instruction, MemArg};
use wasmparser::{Operator, ValType};

use crate::body::Writer;
use crate::layout::{LOCAL_AT, MARK_AT, OTHER_AT};

/// Where a function is to get its next hinge.
pub(crate) struct Hinges {
    /// Branches between two of them.
    interval: u32,
    /// The locals that are live in two stretches: this one of type i64, and the next one of type i32.
    pub local: u32,
    /// Types of the original's locals, parameters first.
    pub types: Vec<ValType>,
    /// Branches since the last hinge, and the locals that were written.
    branches: u32,
    written: Vec<u32>,
    /// Nothing gets here: the engine leaves the code out.
    is_dead: bool,
}

impl Hinges {
    pub(crate) fn new(interval: u32) -> Self {
        Self {
            interval,
            local: 0,
            types: Vec::new(),
            branches: 0,
            written: Vec::new(),
            is_dead: false,
        }
    }

    fn see(&mut self, operator: &Operator<'_>) {
        match *operator {
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                self.written.push(local_index);
            }
            Operator::If { .. } | Operator::Loop { .. } | Operator::BrIf { .. } => {
                self.branches += 1;
            }
            Operator::Br { .. } | Operator::BrTable { .. } => {
                self.branches += 1;
                self.is_dead = true;
            }
            Operator::Return
            | Operator::Unreachable
            | Operator::Throw { .. }
            | Operator::ThrowRef
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. } => self.is_dead = true,
            Operator::Else | Operator::End => self.is_dead = false,
            _ => {}
        }
    }
}

impl Writer<'_, '_> {
    /// Adds a hinge before an operator, if it is time for one.
    pub(crate) fn hinge(&mut self, operator: &Operator<'_>) {
        let Some(hinges) = &mut self.hinges else {
            return;
        };
        let is_due = hinges.branches >= hinges.interval && !hinges.is_dead;
        let written = match is_due {
            true => std::mem::take(&mut hinges.written),
            false => Vec::new(),
        };
        hinges.branches = if is_due { 0 } else { hinges.branches };
        let two = hinges.local;
        hinges.see(operator);
        if is_due {
            self.add_hinge(written, two);
        }
    }

    fn add_hinge(&mut self, mut written: Vec<u32>, two: u32) {
        written.sort_unstable();
        written.dedup();
        for local in written {
            self.through_memory(local);
        }
        let mark = self.slot(MARK_AT);
        let narrow = |at| MemArg {
            align: 2,
            ..self.slot(at)
        };
        let address = Instruction::I32Const(0);
        let load = Instruction::I64Load(mark);
        let set = Instruction::LocalSet(two);
        let load_other = Instruction::I32Load(narrow(MARK_AT));
        let set_other = Instruction::LocalSet(two + 1);
        let is_zero = [&address, &load, &Instruction::I64Eqz];
        let nothing = Instruction::I64Const(0);
        let get = [Instruction::LocalGet(two), Instruction::LocalGet(two + 1)];
        let stores = [
            Instruction::I64Store(mark),
            Instruction::I32Store(narrow(OTHER_AT)),
        ];
        let use_both = [&address, &get[0], &stores[0], &address, &get[1], &stores[1]];
        let otherwise = Instruction::Else;
        let all = [
            &is_zero[..],
            &[
                &Instruction::If(BlockType::Empty),
                &nothing,
                &set,
                &otherwise,
            ],
            &[&address, &load, &set, &Instruction::End],
            &[&address, &load_other, &set_other],
            &is_zero,
            &[&Instruction::If(BlockType::Empty)],
            &use_both,
            &[&otherwise],
            &use_both,
            &[&Instruction::End],
        ];
        for instruction in all.concat() {
            self.put(instruction);
        }
    }

    /// Stores a local and loads it again. References and vectors stay: nothing is as large, or as often.
    fn through_memory(&mut self, local: u32) {
        let types = self.hinges.as_ref().map_or(&[][..], |hinges| &hinges.types);
        let slot = self.slot(LOCAL_AT);
        let narrow = MemArg { align: 2, ..slot };
        let (store, load) = match types.get(local as usize) {
            Some(ValType::I32) => (Instruction::I32Store(narrow), Instruction::I32Load(narrow)),
            Some(ValType::I64) => (Instruction::I64Store(slot), Instruction::I64Load(slot)),
            Some(ValType::F32) => (Instruction::F32Store(narrow), Instruction::F32Load(narrow)),
            Some(ValType::F64) => (Instruction::F64Store(slot), Instruction::F64Load(slot)),
            _ => return,
        };
        let (zero, get) = (Instruction::I32Const(0), Instruction::LocalGet(local));
        for instruction in [&zero, &get, &store, &zero, &load] {
            self.put(instruction);
        }
        self.put(&Instruction::LocalSet(local));
    }
}
