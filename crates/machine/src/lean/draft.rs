//! Converts instructions to operations. Several instructions become one operation if only the last
//! result is needed.

use afterimage_numeric::Scalar;
use wasmparser::ValType;

use super::op::{self, Access, Action, Check};
use crate::code::{NodeCode, NodeEnd, Operand};
use crate::inst::{Code, Expected, Inst, Register};

/// An operation that uses the registers of the node's code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    pub action: Action,
    /// The position of the instruction.
    pub inst: usize,
    /// Registers, or other data that the action defines.
    pub operands: [Register; 3],
    pub number: u32,
}

impl Draft {
    fn new(inst: usize, action: Action, operands: [Register; 3], number: u32) -> Self {
        Self {
            action,
            inst,
            operands,
            number,
        }
    }

    /// Returns the registers that the operation reads, or none if the operation is the instruction
    /// itself.
    pub(super) fn reads(&self) -> impl Iterator<Item = Register> + use<> {
        let pairs = self.operands.into_iter().zip(self.action.reads());
        pairs.filter_map(|(register, read)| read.then_some(register))
    }
}

/// The operations of a node, in order.
pub(super) struct Drafts<'a> {
    code: &'a NodeCode,
    /// Whether memory number 0 exists and has 32-bit addresses.
    narrow: bool,
    /// Whether results with a single reader may be omitted.
    fused: bool,
    /// The number of reads of each register.
    uses: Vec<u32>,
    /// For each instruction, whether it became part of another instruction's operation.
    part: Vec<bool>,
}

/// An address with its offset.
struct Address {
    action: Action,
    operands: [Register; 3],
    number: u32,
}

impl<'a> Drafts<'a> {
    /// Drafts the operations of a node. Time: O(registers).
    pub(super) fn of(code: &'a NodeCode, narrow: bool, fused: bool) -> Vec<Draft> {
        let mut drafts = Self {
            code,
            narrow,
            fused,
            uses: uses(code),
            part: vec![false; code.insts.len()],
        };
        let mut made = Vec::with_capacity(code.insts.len());
        // The loop goes backward, so that readers of a result come before the instruction that
        // computes it.
        for (position, inst) in code.insts.iter().enumerate().rev() {
            if !drafts.part[position] {
                made.extend(drafts.draft(position, inst));
            }
        }
        made.reverse();
        made
    }

    fn draft(&mut self, position: usize, inst: &Inst) -> Option<Draft> {
        let rare = Draft::new(position, Action::Rare, [0; 3], 0);
        let Inst { a, b, c, .. } = *inst;
        let memory = (inst.memory == 0 && self.narrow)
            .then(|| u32::try_from(inst.immediate).ok())
            .flatten();
        let number = inst.immediate as u32;
        Some(match inst.code {
            Code::Scalar(scalar) => self.scalar(position, scalar, a, b),
            Code::Branch(expected) => return self.branch(position, expected, a, number),
            Code::Select => Draft::new(position, Action::Select, [a, b, c], 0),
            Code::Load(load) => match (op::load(load), memory) {
                (Some(access), Some(offset)) => {
                    let address = self.address(&access, a, offset);
                    Draft::new(position, address.action, address.operands, address.number)
                }
                _ => rare,
            },
            Code::Store(bytes) => match (op::store(bytes), memory) {
                (Some(access), Some(offset)) => {
                    let address = self.address(&access, a, offset);
                    if let Some(constant) = access.constant
                        && address.action == access.plain
                        && let Some(short) = self.short(b, bytes)
                    {
                        return Some(Draft::new(position, constant, [a, short, 0], offset));
                    }
                    let [first, second, _] = address.operands;
                    let operands = [first, second, b];
                    Draft::new(position, address.action, operands, address.number)
                }
                _ => rare,
            },
            Code::GlobalGet if !self.code.wide => {
                Draft::new(position, Action::GlobalGet, [0; 3], number)
            }
            Code::GlobalSet if !self.code.wide => {
                Draft::new(position, Action::GlobalSet, [a, 0, 0], number)
            }
            _ => rare,
        })
    }

    fn scalar(&mut self, position: usize, scalar: Scalar, a: Register, b: Register) -> Draft {
        let (action, with_constant) = op::scalar(scalar);
        if action == Action::Scalar {
            let number = Scalar::ALL.iter().position(|&other| other == scalar);
            let number = number.unwrap_or(usize::MAX) as u32;
            return Draft::new(position, action, [a, b, 0], number);
        }
        if scalar.arity() == 1 {
            return Draft::new(position, action, [a, a, 0], 0);
        }
        if scalar == Scalar::I32Add {
            for (base, multiple) in [(a, b), (b, a)] {
                if let Some((of, factor)) = self.multiple(multiple) {
                    return Draft::new(position, Action::ScaleAdd, [base, of, 0], factor);
                }
            }
        }
        if let Some(with_constant) = with_constant {
            if let Some(number) = self.number(scalar, b) {
                return Draft::new(position, with_constant, [a, 0, 0], number);
            }
            if commutes(scalar)
                && let Some(number) = self.number(scalar, a)
            {
                return Draft::new(position, with_constant, [b, 0, 0], number);
            }
        }
        if scalar == Scalar::I32Sub
            && let Some(number) = self.number(scalar, a)
        {
            return Draft::new(position, Action::SubFrom, [b, 0, 0], number);
        }
        Draft::new(position, action, [a, b, 0], 0)
    }

    /// Returns the operation for a branch, including its condition.
    fn branch(
        &mut self,
        position: usize,
        expected: Expected,
        a: Register,
        list: u32,
    ) -> Option<Draft> {
        let mut holds = match expected {
            Expected::Any => return None,
            Expected::OneOf => return Some(self.one_of(position, a, list)),
            Expected::True => true,
            Expected::False => false,
        };
        let mut a = a;
        // "x is not 0" means "x = 0 is false", so each `eqz` inverts the branch.
        while let Some((Scalar::I32Eqz, inst)) = self.single(a) {
            self.part[inst] = true;
            a = self.code.insts[inst].a;
            holds = !holds;
        }
        if let Some((scalar, inst)) = self.single(a) {
            let Inst { a, b, .. } = self.code.insts[inst];
            if scalar == Scalar::I64Eqz {
                self.part[inst] = true;
                let action = if holds {
                    Action::IfI64EqConst
                } else {
                    Action::IfI64NeConst
                };
                return Some(Draft::new(position, action, [a, 0, 0], 0));
            }
            if let Some(check) = op::check(scalar) {
                let check = if holds {
                    Some(check)
                } else {
                    op::check(check.not)
                };
                if let Some(check) = check {
                    self.part[inst] = true;
                    return Some(self.check(position, &check, scalar, a, b));
                }
            }
        }
        let action = if holds {
            Action::IfI32NeConst
        } else {
            Action::IfI32EqConst
        };
        Some(Draft::new(position, action, [a, 0, 0], 0))
    }

    fn check(
        &self,
        position: usize,
        check: &Check,
        scalar: Scalar,
        a: Register,
        b: Register,
    ) -> Draft {
        if let Some(number) = self.number(scalar, b) {
            return Draft::new(position, check.with_constant, [a, 0, 0], number);
        }
        if let Some(number) = self.number(scalar, a)
            && let Some(turned) = op::check(check.turned)
        {
            return Draft::new(position, turned.with_constant, [b, 0, 0], number);
        }
        Draft::new(position, check.action, [a, b, 0], 0)
    }

    /// Returns the operation for a branch through a table.
    fn one_of(&mut self, position: usize, a: Register, list: u32) -> Draft {
        let any = Draft::new(position, Action::OneOf, [a, 0, 0], list);
        let Some(known) = self.code.lists.get(list as usize) else {
            return any;
        };
        let (first, count) = match (&*known.indices, known.from) {
            ([], Some(from)) => {
                return Draft::new(position, Action::IfI32GeUConst, [a, 0, 0], from);
            }
            (&[first, .., last], None) if (last - first) as usize == known.indices.len() - 1 => {
                (first, last - first)
            }
            (&[index], None) => (index, 0),
            _ => return any,
        };
        if count > u16::MAX.into() {
            return any;
        }
        let (mut a, mut first) = (a, first);
        // A sum with a constant also becomes part of the operation.
        if let Some((Scalar::I32Add, inst)) = self.single(a)
            && let Some(number) = self.number(Scalar::I32Add, self.code.insts[inst].b)
        {
            self.part[inst] = true;
            a = self.code.insts[inst].a;
            first = first.wrapping_sub(number);
        }
        match count {
            0 => Draft::new(position, Action::IfI32EqConst, [a, 0, 0], first),
            _ => Draft::new(position, Action::Within, [a, count, 0], first),
        }
    }

    fn address(&mut self, access: &Access, a: Register, offset: u32) -> Address {
        let plain = Address {
            action: access.plain,
            operands: [a, 0, 0],
            number: offset,
        };
        let Some((Scalar::I32Add, inst)) = self.single(a) else {
            return plain;
        };
        let Inst { a, b, .. } = self.code.insts[inst];
        let short = u16::try_from(offset).ok().map(u32::from);
        for (base, other) in [(a, b), (b, a)] {
            if let Some(number) = self.number(Scalar::I32Add, other) {
                let Some(short) = short else {
                    return plain;
                };
                self.part[inst] = true;
                return Address {
                    action: access.plus,
                    operands: [base, short, 0],
                    number,
                };
            }
        }
        self.part[inst] = true;
        if let (Some(scaled), Some(short)) = (access.scaled, short) {
            for (base, multiple) in [(a, b), (b, a)] {
                if let Some((of, factor)) = self.multiple(multiple) {
                    return Address {
                        action: scaled,
                        operands: [base, of, short],
                        number: factor,
                    };
                }
            }
        }
        Address {
            action: access.sum,
            operands: [a, b, 0],
            number: offset,
        }
    }

    /// Returns the register and the factor, if a result that is read only once is a multiple of a
    /// register.
    fn multiple(&mut self, register: Register) -> Option<(Register, u32)> {
        let (scalar, inst) = self.single(register)?;
        let Inst { a, b, .. } = self.code.insts[inst];
        let factor = match scalar {
            Scalar::I32Mul => self.number(scalar, b)?,
            Scalar::I32Shl => 1u32.wrapping_shl(self.number(scalar, b)?),
            _ => return None,
        };
        self.part[inst] = true;
        Some((a, factor))
    }

    /// Returns the instruction that computes a register's value, if it cannot trap and the value is
    /// read only once.
    fn single(&self, register: Register) -> Option<(Scalar, usize)> {
        if !self.fused || self.uses[register as usize] != 1 {
            return None;
        }
        let Operand::Result(inst) = self.code.source(register) else {
            return None;
        };
        match self.code.insts[inst].code {
            Code::Scalar(scalar) if !scalar.can_trap() => Some((scalar, inst)),
            _ => None,
        }
    }

    /// Returns the constant in a register as a 16-bit number, if sign-extending it yields the bytes
    /// to be written.
    fn short(&self, register: Register, bytes: u8) -> Option<u32> {
        let Operand::Constant(bits) = self.code.source(register) else {
            return None;
        };
        let unused = 64 - 8 * u32::from(bytes);
        let extended = i64::from(bits as i16) as u64;
        (bits << unused == extended << unused).then_some(u32::from(bits as u16))
    }

    /// Returns the constant in a register, if it has 32 bits or the operator ignores the upper bits
    /// of its second operand.
    fn number(&self, scalar: Scalar, register: Register) -> Option<u32> {
        let Operand::Constant(bits) = self.code.source(register) else {
            return None;
        };
        let number = bits as u32;
        // Shorter types ignore the upper bits.
        let fits = scalar.types().0.last() == Some(&ValType::I32)
            || i64::from(number as i32) as u64 == bits;
        fits.then_some(number)
    }
}

/// Counts the reads of each register.
fn uses(code: &NodeCode) -> Vec<u32> {
    let mut uses = vec![0; code.registers().max(1)];
    let mut read = |register: Register| uses[register as usize] += 1;
    for inst in &code.insts {
        let operands = [inst.a, inst.b, inst.c];
        operands[..inst.code.operands()]
            .iter()
            .for_each(|&r| read(r));
    }
    code.outputs.iter().for_each(|&(_, r)| read(r));
    end_operands(&code.end).for_each(read);
    uses
}

/// Returns the registers that a node's end reads.
pub(super) fn end_operands(end: &NodeEnd) -> impl Iterator<Item = Register> + '_ {
    let (values, one): (&[Register], Option<Register>) = match end {
        NodeEnd::Next | NodeEnd::Trap => (&[], None),
        NodeEnd::Call {
            index, arguments, ..
        }
        | NodeEnd::TailCall {
            index, arguments, ..
        } => (arguments, *index),
        NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => (values, None),
        NodeEnd::Rethrow { exception, .. } => (&[], Some(*exception)),
    };
    values.iter().copied().chain(one)
}

/// Whether an operator's operands can be swapped.
fn commutes(scalar: Scalar) -> bool {
    matches!(
        scalar,
        Scalar::I32Eq
            | Scalar::I32Ne
            | Scalar::I32Add
            | Scalar::I32Mul
            | Scalar::I32And
            | Scalar::I32Or
            | Scalar::I32Xor
            | Scalar::I64Eq
            | Scalar::I64Ne
            | Scalar::I64Add
            | Scalar::I64Mul
            | Scalar::I64And
            | Scalar::I64Or
            | Scalar::I64Xor
    )
}
