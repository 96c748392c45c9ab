//! Lowers a node's code to its operations.

use super::WINDOW;
use super::draft::{Draft, Drafts, end_operands};
use super::op::{Action, Op};
use crate::code::{NodeCode, Operand};
use crate::inst::Register;

/// Returns a node's operations in full form. They leave every instruction's result in its register,
/// and do not change the variables. Returns `None` if there are more registers than operations can
/// name. Time: O(registers).
pub(super) fn full(code: &NodeCode, narrow: bool) -> Option<Vec<Op>> {
    if code.registers() > WINDOW {
        return None;
    }
    let drafts = Drafts::of(code, narrow, false);
    let first = code.first_result();
    let ops = drafts.iter().map(|draft| {
        let to = first + draft.inst as u32;
        op(draft, to, |register| register)
    });
    Some(ops.collect())
}

/// Returns a node's operations in lean form, and the registers that the node's end reads. The
/// operations write the node's outputs to the variables. All other registers are undefined. Returns
/// `None` if there are more registers than operations can name. Time: O(registers).
pub(super) fn lean(code: &NodeCode, narrow: bool) -> Option<(Vec<Op>, Vec<Register>)> {
    let most = code.registers() + 1 + end_operands(&code.end).count();
    if most > WINDOW {
        return None;
    }
    let drafts = Drafts::of(code, narrow, true);
    let places = Places::of(code, &drafts);
    let mut moves = places.moves(code);
    let mut ops = Vec::with_capacity(drafts.len() + moves.len());
    let end = moves.keep(code, &places);
    for draft in &drafts {
        let to = places.of[places.first + draft.inst];
        ops.push(op(draft, to, |register| places.of[register as usize]));
    }
    moves.order(code.variables, code.registers() as u32, &mut ops);
    // Constants that are read must be in registers.
    let mut read = vec![false; code.constants.len()];
    let mut constant = |register: Register| {
        if let Operand::Constant(_) = code.source(register) {
            read[(register - code.variables) as usize] = true;
        }
    };
    for draft in &drafts {
        if draft.action == Action::Rare {
            let inst = &code.insts[draft.inst];
            let operands = [inst.a, inst.b, inst.c];
            operands[..inst.code.operands()]
                .iter()
                .for_each(|&r| constant(r));
        }
        draft.reads().for_each(&mut constant);
    }
    end_operands(&code.end).for_each(&mut constant);
    let constants = (code.variables..).zip(&code.constants).zip(read);
    let constants = constants.filter(|(_, read)| *read);
    let constants = constants.map(|((register, &bits), _)| Op::constant(register as u16, bits));
    Some((constants.chain(ops).collect(), end))
}

/// Returns an operation with resolved registers.
fn op(draft: &Draft, to: Register, place: impl Fn(Register) -> Register) -> Op {
    let mut operands = draft.operands;
    for (operand, read) in operands.iter_mut().zip(draft.action.reads()) {
        if read {
            *operand = place(*operand);
        }
    }
    let [a, b, c] = operands.map(|operand| operand as u16);
    Op {
        action: draft.action,
        to: to as u16,
        a,
        b,
        c,
        inst: draft.inst as u16,
        number: draft.number,
    }
}

/// The places of results. A result goes to its own register, or directly to the variable that takes
/// its value.
struct Places {
    /// The place of each register.
    of: Vec<Register>,
    /// The register of the first result.
    first: usize,
}

impl Places {
    fn of(code: &NodeCode, drafts: &[Draft]) -> Self {
        let first = code.first_result() as usize;
        let variables = code.variables as usize;
        let mut of = Vec::from_iter(0..code.registers() as u32);
        // For each variable, the position after the last operation that reads its initial value.
        let mut free = vec![0; variables];
        // For each result, the position after the operation that computes it, or `None` if it stays
        // in its own register.
        let mut given = vec![None; code.insts.len()];
        for (position, draft) in (1..).zip(drafts) {
            given[draft.inst] = Some(position);
            for register in draft.reads() {
                if let Some(free) = free.get_mut(register as usize) {
                    *free = position;
                }
            }
        }
        for (position, draft) in (1..).zip(drafts) {
            if draft.action != Action::Rare {
                continue;
            }
            let inst = &code.insts[draft.inst];
            given[draft.inst] = None;
            for &register in &[inst.a, inst.b, inst.c][..inst.code.operands()] {
                match code.source(register) {
                    Operand::Variable(variable) => {
                        let free = &mut free[variable as usize];
                        *free = position.max(*free);
                    }
                    Operand::Result(result) => given[result] = None,
                    Operand::Constant(_) => {}
                }
            }
        }
        let sources = code.outputs.iter().map(|&(_, register)| register);
        for register in sources.chain(end_operands(&code.end)) {
            if let Some(free) = free.get_mut(register as usize) {
                *free = usize::MAX;
            }
        }
        for &(variable, register) in &code.outputs {
            if let Operand::Result(result) = code.source(register)
                && of[register as usize] == register
                && given[result].is_some_and(|given| free[variable as usize] <= given)
            {
                of[register as usize] = variable;
            }
        }
        Self { of, first }
    }

    /// Returns the moves to variables that are still necessary at the node's end.
    fn moves(&self, code: &NodeCode) -> Moves {
        let mut moves = Moves::default();
        for &(variable, register) in &code.outputs {
            match code.source(register) {
                Operand::Constant(bits) => moves.constants.push((variable, bits)),
                _ if self.of[register as usize] == variable => {}
                _ => moves.moves.push((variable, self.of[register as usize])),
            }
        }
        moves
    }
}

/// The parallel moves at a node's end.
#[derive(Default)]
struct Moves {
    /// Moves to a variable from a register.
    moves: Vec<(Register, Register)>,
    /// Constants to load into a variable.
    constants: Vec<(Register, u64)>,
}

impl Moves {
    fn len(&self) -> usize {
        self.moves.len() + self.constants.len()
    }

    /// Saves the values that the end reads from variables before the moves overwrite them. Returns
    /// the registers to read.
    fn keep(&mut self, code: &NodeCode, places: &Places) -> Vec<Register> {
        let mut end = Vec::new();
        let mut next = code.registers() as u32 + 1;
        for register in end_operands(&code.end) {
            let written = code.outputs.binary_search_by_key(&register, |&(v, _)| v);
            if register < code.variables && written.is_ok() {
                self.moves.push((next, register));
                end.push(next);
                next += 1;
            } else {
                end.push(places.of[register as usize]);
            }
        }
        end
    }

    /// Converts the parallel moves to a sequence. `spare` is an unused register. Time: O(moves +
    /// variables).
    fn order(self, variables: u32, spare: Register, ops: &mut Vec<Op>) {
        let moves = self.moves;
        let mut copy = |to: Register, from: Register| ops.push(Op::copy(to as u16, from as u16));
        // For each variable, the number of remaining moves that read it, and the move that writes
        // it.
        let mut reads = vec![0u32; variables as usize];
        let mut writer = vec![None; variables as usize];
        for (i, &(to, from)) in moves.iter().enumerate() {
            if let Some(reads) = reads.get_mut(from as usize) {
                *reads += 1;
            }
            if let Some(writer) = writer.get_mut(to as usize) {
                *writer = Some(i);
            }
        }
        // A variable without remaining readers can be written.
        let is_read = |to: Register| reads.get(to as usize).is_some_and(|&reads| reads > 0);
        let mut ready = Vec::from_iter((0..moves.len()).filter(|&i| !is_read(moves[i].0)));
        let mut done = vec![false; moves.len()];
        while let Some(i) = ready.pop() {
            let (to, from) = moves[i];
            copy(to, from);
            done[i] = true;
            if let Some(reads) = reads.get_mut(from as usize) {
                *reads -= 1;
                if *reads == 0 {
                    ready.extend(writer[from as usize]);
                }
            }
        }
        // The remaining moves form cycles, in which each variable is read by one move and written
        // by another.
        for i in 0..moves.len() {
            if done[i] {
                continue;
            }
            let (first, mut source) = moves[i];
            copy(spare, first);
            let mut to = first;
            while source != first
                && let Some(next) = writer[source as usize]
            {
                copy(to, source);
                done[next] = true;
                (to, source) = moves[next];
            }
            copy(to, spare);
        }
        for (variable, bits) in self.constants {
            ops.push(Op::constant(variable as u16, bits));
        }
    }
}
