//! Computes upper bounds on the cost of deriving a value from the stored data, in evaluations of
//! nodes.

use afterimage_machine::{Code, NodeCode, NodeEnd, Register};

use super::{DEAREST, KEPT};
use crate::model::{NodeModel, ReadFrom, WriteTo, read_from, write_to};

/// A set of inputs of a node. The last bit represents all inputs from its position on.
pub(super) type Mask = u64;

fn bit(input: usize) -> Mask {
    1 << input.min(63)
}

/// The inputs on which a node's values depend.
#[derive(Debug)]
pub(super) struct Masks {
    /// The inputs that each instruction needs. A read needs the inputs of its address and its
    /// unchanged lanes. A write of one value needs the inputs of that value. A fill or a copy needs
    /// the inputs of its first two operands. Other instructions need the inputs of their result.
    pub insts: Box<[Mask]>,
    /// The inputs that each output of the node needs.
    pub outputs: Box<[Mask]>,
    /// The inputs that each argument or result at the node's end needs.
    pub end: Box<[Mask]>,
}

impl Masks {
    /// Computes the masks of a node. Time: O(instructions).
    pub(super) fn new(code: &NodeCode, model: &NodeModel) -> Self {
        let mut insts: Vec<Mask> = Vec::with_capacity(code.insts.len());
        let first = code.first_result();
        let of = |register: Register, insts: &[Mask]| -> Mask {
            if register < code.variables {
                model.of_variable(register).map_or(0, bit)
            } else if register < first {
                0
            } else {
                let inst = (register - first) as usize;
                match (read_from(code.insts[inst].code), code.insts[inst].code) {
                    (Some(_), Code::LoadVector(load)) if load.keeps() => {
                        bit(model.of_read(inst)) | insts[inst]
                    }
                    (Some(_), _) => bit(model.of_read(inst)),
                    (None, _) => insts[inst],
                }
            }
        };
        for (position, inst) in code.insts.iter().enumerate() {
            let mut operands = [inst.a, inst.b, inst.c];
            let count = match (read_from(inst.code), write_to(inst.code)) {
                (Some(ReadFrom::Memory), _) => match inst.code {
                    // A vector's unchanged lanes are treated like the address.
                    Code::LoadVector(load) => 1 + usize::from(load.keeps()),
                    _ => 1,
                },
                (Some(_), _) => 0,
                (_, Some(WriteTo::Memory(_))) => {
                    operands[0] = inst.b;
                    1
                }
                (_, Some(WriteTo::Global)) => 1,
                (_, Some(WriteTo::Many | WriteTo::Copy)) => 2,
                _ => match inst.code {
                    Code::Scalar(scalar) => scalar.arity(),
                    Code::Vector(_) => {
                        let extra = code.vector(position).map_or(0, |extra| extra.c);
                        operands[2] = extra;
                        3
                    }
                    Code::Select | Code::SelectVector => 3,
                    Code::RefIsNull => 1,
                    _ => 0,
                },
            };
            let mask = operands[..count]
                .iter()
                .fold(0, |mask, &register| mask | of(register, &insts));
            insts.push(mask);
        }
        let outputs = code.outputs.iter();
        let outputs = outputs.map(|&(_, register)| of(register, &insts)).collect();
        let end: &[Register] = match &code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => arguments,
            NodeEnd::Return(values) => values,
            _ => &[],
        };
        let end = end.iter().map(|&register| of(register, &insts)).collect();
        Self {
            insts: insts.into(),
            outputs,
            end,
        }
    }
}

/// The costs of the inputs of a node's execution.
pub(super) struct Costs([u32; 64]);

impl Costs {
    pub(super) fn new() -> Self {
        Self([0; 64])
    }

    /// Prepares for an execution of a node. The inputs must be [set](Self::set) before they are
    /// queried.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.0[63] = 0;
    }

    /// Sets the cost of an input. Returns whether the input's value must be stored. A stored value
    /// costs nothing. If `TOLD` is false, all values that depend on the input must be stored.
    #[inline(always)]
    pub(super) fn put<const TOLD: bool>(&mut self, input: usize, cost: u32) -> bool {
        let keep = TOLD && cost > DEAREST;
        self.set(
            input,
            if keep {
                0
            } else if TOLD {
                cost
            } else {
                KEPT
            },
        );
        keep
    }

    /// Sets the cost of an input. Only the first 63 inputs have individual costs.
    #[inline(always)]
    fn set(&mut self, input: usize, cost: u32) {
        if input < 63 {
            self.0[input] = cost;
        } else {
            self.0[63] = (self.0[63] + cost).min(KEPT);
        }
    }

    /// Returns the cost of a value that depends on these inputs.
    #[inline(always)]
    pub(super) fn of(&self, mut mask: Mask) -> u32 {
        let mut cost = 0;
        while mask != 0 {
            cost += self.0[mask.trailing_zeros() as usize];
            mask &= mask - 1;
        }
        cost.min(KEPT)
    }
}
