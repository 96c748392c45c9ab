//! The rows that the execution of a node adds to the tables.

use std::rc::Rc;

use afterimage_ids::{BlockId, EntityRef, NodeId, OpId};
use afterimage_machine::{Code, GlobalBits, NodeCode};
use afterimage_program::Program;
use afterimage_replay::steps::{Plan, PlanKind};
use afterimage_wpp::Node;
use wasmparser::ValType;

use crate::ids::Ids;
use crate::whole::last_op;

/// The rows that the execution of a node adds to the tables.
#[derive(Debug, Default)]
pub(crate) struct NodePlan {
    /// The numbers of the node's blocks.
    pub blocks: Box<[i32]>,
    /// The statements that have a value, in order.
    pub values: Box<[ValueOf]>,
    /// The block and the statement of each instruction.
    pub places: Box<[(u32, i32)]>,
    /// The statement of the node's last operator.
    pub last: Option<i32>,
}

/// The location of a statement's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueOf {
    /// The position of the statement's instruction.
    pub inst: u32,
    /// The position of the statement's block in the node.
    pub block: u32,
    pub statement: i32,
    /// The register with the value.
    pub register: u32,
    pub ty: ValueType,
    /// Whether the statement is a store, which may use only a part of the register.
    pub is_stored: bool,
}

/// The type in which a table shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Int,
    Long,
    Float,
    Double,
    Vector,
}

impl ValueType {
    fn of(ty: ValType) -> Self {
        match ty {
            ValType::I32 => Self::Int,
            ValType::F32 => Self::Float,
            ValType::F64 => Self::Double,
            ValType::V128 => Self::Vector,
            ValType::I64 | ValType::Ref(_) => Self::Long,
        }
    }
}

impl NodePlan {
    pub fn new(
        (program, ids): (&Program, &Ids),
        node: &Node,
        code: &NodeCode,
        plan: &Rc<Plan>,
    ) -> Self {
        let statement = |op: OpId| ids.statement(node.function, op);
        let mut values = Vec::new();
        for item in &plan.items {
            let PlanKind::Inst(position) = item.kind else {
                continue;
            };
            let inst = &code.insts[position];
            let (register, ty, is_stored) = match inst.code {
                Code::Store(_) | Code::StoreVector(_) => (inst.b, item.operand(1), true),
                Code::GlobalSet => (inst.a, item.operand(0), false),
                Code::Branch(_) => (inst.a, item.operands().last().copied(), false),
                one if one.gives() => {
                    let register = code.first_result() + position as u32;
                    (register, item.result(), false)
                }
                _ => continue,
            };
            let Some(ty) = ty else {
                continue;
            };
            values.push(ValueOf {
                inst: position as u32,
                block: item.block,
                statement: statement(item.op),
                register,
                ty: ValueType::of(ty),
                is_stored,
            });
        }
        let places = plan.of_inst.iter().map(|&item| {
            let item = &plan.items[item as usize];
            (item.block, statement(item.op))
        });
        let block = |&block: &BlockId| ids.block(node.function, block);
        Self {
            blocks: node.blocks.iter().map(block).collect(),
            values: values.into(),
            places: places.collect(),
            last: last_op(program, node).map(statement),
        }
    }
}

/// The plans of nodes. A plan is made when its node is first executed.
pub(crate) struct NodePlans(Vec<Option<Rc<NodePlan>>>);

impl NodePlans {
    pub fn new(nodes: usize) -> Self {
        Self(vec![None; nodes])
    }

    pub fn of<E>(
        &mut self,
        node: NodeId,
        make: impl FnOnce() -> Result<NodePlan, E>,
    ) -> Result<Rc<NodePlan>, E> {
        let known = &mut self.0[node.index()];
        match known {
            Some(known) => Ok(Rc::clone(known)),
            None => Ok(Rc::clone(known.insert(Rc::new(make()?)))),
        }
    }
}

/// Converts a 32-bit floating-point number to 64 bits. Preserves the value, and the payload of a
/// NaN.
pub(crate) fn widened(bits: u32) -> f64 {
    let number = f32::from_bits(bits);
    if !number.is_nan() {
        return number.into();
    }
    let sign = u64::from(bits >> 31) << 63;
    let payload = u64::from(bits & 0x007f_ffff) << 29;
    f64::from_bits(sign | 0x7ff0_0000_0000_0000 | payload)
}

/// Returns the value in a register of a node.
#[inline]
pub(crate) fn bits_of(of: &ValueOf, code: &NodeCode, low: &[u64], high: &[u64]) -> GlobalBits {
    let get = |half: &[u64]| half.get(of.register as usize).copied().unwrap_or(0);
    let bits = (get(low), get(high));
    if of.is_stored {
        code.insts[of.inst as usize].stored(bits)
    } else {
        bits
    }
}
