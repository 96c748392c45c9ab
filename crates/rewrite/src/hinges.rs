//! Adds *hinges* to functions with very many branches, so that the engine compiles them in
//! acceptable time.
//!
//! At a join of control flow, each local written on one of the incoming paths becomes a parameter
//! of the join. regalloc2 takes quadratic time in these parameters if nothing interrupts them. For
//! each parameter, it scans all earlier parameters, back to the last parameter that is live in two
//! stretches of code (`blockparam_ins` in `apply_allocations_and_insert_moves`). It also merges
//! each parameter into the bundle of the earlier parameters, which it sorts again
//! (`merge_bundles`). Values that are not parameters come after all parameters, and each causes the
//! same scan. Compiled code of real programs has interrupting values everywhere, but long rows of
//! small branches have none.
//!
//! So a hinge, with an interrupting value of either kind, is placed after a fixed number of
//! branches on each path. The locals written since the previous hinge go through memory there,
//! which ends their bundle. With a hinge in only one arm of an `if`, the bundle would continue
//! through the other arm. So branches are counted along each control-flow path. Where paths join,
//! the larger count is kept.
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
//! For the same reason, these functions do not keep the path or the iterations of loops in locals.

use wasm_encoder::{BlockType, Instruction, MemArg};
use wasmparser::{Operator, ValType};

use crate::body::Writer;
use crate::layout::{LOCAL_AT, MARK_AT, OTHER_AT};

/// Decides where a function gets its next hinge.
pub(crate) struct Hinges {
    /// The number of branches between two hinges.
    interval: u32,
    /// The first of the two locals that are live in two stretches. It has type i64, and the next
    /// local has type i32.
    pub local: u32,
    /// The types of the original's locals, parameters first.
    pub types: Vec<ValType>,
    /// All locals in the order in which they were written.
    written: Vec<u32>,
    /// For each local, the last position in `written` that contains it.
    last: Vec<usize>,
    here: Way,
    open: Vec<Open>,
    /// Whether the code is unreachable, so that the engine leaves it out.
    is_dead: bool,
}

/// The branches and locals passed on a path since the last hinge.
#[derive(Clone, Copy, Default)]
struct Way {
    branches: u32,
    /// The number of locals that had been written at the hinge.
    hinge: usize,
}

impl Way {
    fn join(self, other: Option<Self>) -> Self {
        other.map_or(self, |other| Self {
            branches: self.branches.max(other.branches),
            hinge: self.hinge.min(other.hinge),
        })
    }
}

/// A block, loop or condition that is open.
struct Open {
    begin: Way,
    /// The state at the end of the construct, from the paths found so far that lead there.
    end: Option<Way>,
    /// Whether the construct is a loop, so that branches to it lead to its beginning.
    is_loop: bool,
    /// Whether the construct is an `if` without an `else` so far, so that its beginning may lead to
    /// its end.
    is_open_if: bool,
}

impl Hinges {
    pub(crate) fn new(interval: u32) -> Self {
        Self {
            interval,
            local: 0,
            types: Vec::new(),
            written: Vec::new(),
            last: Vec::new(),
            here: Way::default(),
            open: Vec::new(),
            is_dead: false,
        }
    }

    /// Returns the locals that go through memory here, if a hinge belongs before the next operator.
    fn due(&mut self) -> Option<Vec<u32>> {
        if self.here.branches < self.interval || self.is_dead {
            return None;
        }
        let since = self.written.iter().enumerate().skip(self.here.hinge);
        let once = since.filter(|&(at, &local)| self.last.get(local as usize) == Some(&at));
        let written = once.map(|(_, &local)| local).collect();
        self.here = Way {
            branches: 0,
            hinge: self.written.len(),
        };
        Some(written)
    }

    /// Records an operator's branch, or the local that it writes, on the control-flow paths. Time:
    /// O(1), or O(targets) for a `br_table`.
    fn see(&mut self, operator: &Operator<'_>) {
        match operator {
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                let local = *local_index as usize;
                if self.last.len() <= local {
                    self.last.resize(local + 1, 0);
                }
                self.last[local] = self.written.len();
                self.written.push(*local_index);
            }
            Operator::Block { .. } | Operator::TryTable { .. } => self.begin(false, false),
            Operator::Loop { .. } => {
                self.here.branches += 1;
                self.begin(true, false);
            }
            Operator::If { .. } => {
                self.here.branches += 1;
                self.begin(false, true);
            }
            Operator::Else => {
                let here = (!self.is_dead).then_some(self.here);
                if let Some(open) = self.open.last_mut() {
                    open.is_open_if = false;
                    open.end = here.map(|here| here.join(open.end)).or(open.end);
                    self.here = open.begin;
                }
                self.is_dead = false;
            }
            Operator::End => {
                if let Some(open) = self.open.pop() {
                    let mut end = open.end;
                    if !self.is_dead {
                        end = Some(self.here.join(end));
                    }
                    if open.is_open_if {
                        end = Some(open.begin.join(end));
                    }
                    self.here = end.unwrap_or(open.begin);
                }
                self.is_dead = false;
            }
            Operator::BrIf { relative_depth } => {
                self.here.branches += 1;
                self.branch(*relative_depth);
            }
            Operator::Br { relative_depth } => {
                self.here.branches += 1;
                self.branch(*relative_depth);
                self.is_dead = true;
            }
            Operator::BrTable { targets } => {
                self.here.branches += 1;
                let all = targets.targets().filter_map(Result::ok);
                all.chain([targets.default()])
                    .for_each(|depth| self.branch(depth));
                self.is_dead = true;
            }
            Operator::Return
            | Operator::Unreachable
            | Operator::Throw { .. }
            | Operator::ThrowRef
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. } => self.is_dead = true,
            _ => {}
        }
    }

    fn begin(&mut self, is_loop: bool, is_open_if: bool) {
        self.open.push(Open {
            begin: self.here,
            end: None,
            is_loop,
            is_open_if,
        });
    }

    fn branch(&mut self, depth: u32) {
        let at = self.open.len().checked_sub(depth as usize + 1);
        if let Some(open) = at.map(|at| &mut self.open[at])
            && !open.is_loop
            && !self.is_dead
        {
            open.end = Some(self.here.join(open.end));
        }
    }
}

impl Writer<'_, '_> {
    /// Adds a hinge before an operator if one is due.
    pub(crate) fn hinge(&mut self, operator: &Operator<'_>) {
        let Some(hinges) = &mut self.hinges else {
            return;
        };
        let (written, two) = (hinges.due(), hinges.local);
        hinges.see(operator);
        if let Some(written) = written {
            self.add_hinge(written, two);
        }
    }

    fn add_hinge(&mut self, written: Vec<u32>, two: u32) {
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

    /// Stores a local and loads it again. References and vectors are left alone, because they are
    /// never numerous enough to matter.
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
