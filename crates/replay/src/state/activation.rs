//! Finds an activation at a moment, and the registers that hold its variables.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId, NodeId, OpId, OrigOffset};
use afterimage_machine::{Body, NodeCode, Operand, Register, Taker, compile_before};
use afterimage_program::{Function, NO_HEIGHT, Program, Slots};
use afterimage_wpp::Visit;
use wasmparser::ValType;

use super::StateError;
use super::written::Sets;
use crate::values::{Bits, Instance, RecordedValues};
use crate::whole_path::RecordedPath;

/// The bodies of functions, read on demand.
pub struct Bodies<'a> {
    pub(super) program: &'a Program,
    pub(super) module: &'a [u8],
    known: RefCell<HashMap<FuncId, Rc<Body<'a>>>>,
    offsets: RefCell<HashMap<(FuncId, OpId), OrigOffset>>,
    /// The compiled parts of nodes, up to an operator.
    codes: RefCell<HashMap<(FuncId, OpId), Vec<Prefix>>>,
    /// The writes to each local of a function.
    pub(super) sets: RefCell<HashMap<(FuncId, u32), Sets>>,
}

impl<'a> Bodies<'a> {
    /// Creates a reader for the bodies of a program. `module` contains the bytes from which the
    /// program was parsed.
    pub fn new(program: &'a Program, module: &'a [u8]) -> Self {
        Self {
            program,
            module,
            known: RefCell::default(),
            offsets: RefCell::default(),
            codes: RefCell::default(),
            sets: RefCell::default(),
        }
    }

    /// Returns the offset of an operator. O(operators) on first use.
    fn offset(&self, function: &Function, op: OpId) -> Option<OrigOffset> {
        let key = (function.id, op);
        if let Some(known) = self.offsets.borrow().get(&key) {
            return Some(*known);
        }
        let mut operators = self.program.operators(self.module, function);
        let (_, offset, _) = operators.nth(op.as_u32() as usize)?;
        self.offsets.borrow_mut().insert(key, offset);
        Some(offset)
    }

    /// Returns the first operator of a block that is executed, or the block's first operator if all
    /// are markers. Returns `None` if there is no such block.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn first_of(&self, function: FuncId, block: BlockId) -> Result<Option<OpId>, StateError> {
        let body = self.get(function)?;
        let Some(known) = body.function.cfg.blocks.get(block) else {
            return Ok(None);
        };
        let mut ops = (known.ops.start.as_u32()..known.ops.end.as_u32()).map(OpId::from_u32);
        let first = ops.find(|op| is_executed(&body, *op));
        Ok(Some(first.unwrap_or(known.ops.start)))
    }

    /// Compiles blocks of a function. The last block is compiled only up to an operator.
    fn code(
        &self,
        body: &Body<'a>,
        blocks: &[BlockId],
        op: OpId,
    ) -> Result<Rc<NodeCode>, StateError> {
        let mut all = self.codes.borrow_mut();
        let known = all.entry((body.function.id, op)).or_default();
        if let Some((_, code)) = known.iter().find(|(own, _)| **own == *blocks) {
            return Ok(Rc::clone(code));
        }
        let code = Rc::new(compile_before(self.program, body, blocks, op)?);
        // Usually, few nodes lead to an operator. If there are many, only the first nodes are kept.
        if known.len() < PREFIXES {
            known.push((blocks.into(), Rc::clone(&code)));
        }
        Ok(code)
    }

    fn get(&self, function: FuncId) -> Result<Rc<Body<'a>>, StateError> {
        if let Some(known) = self.known.borrow().get(&function) {
            return Ok(Rc::clone(known));
        }
        let unknown = StateError::Program("a function that does not exist");
        let found = self.program.function(function).ok_or(unknown)?;
        let body = Rc::new(Body::read(self.program, self.module, found)?);
        let mut known = self.known.borrow_mut();
        known.insert(function, Rc::clone(&body));
        Ok(body)
    }
}

/// Whether an operator is executed, and is not only a marker. The state before a marker equals the
/// state before the next operator.
fn is_executed(body: &Body<'_>, op: OpId) -> bool {
    let height = body.slots.heights.get(op);
    height.is_some_and(|height| *height != NO_HEIGHT)
}

/// The number of nodes kept for each operator.
const PREFIXES: usize = 64;

/// The blocks of a node up to an operator, and their code.
type Prefix = (Box<[BlockId]>, Rc<NodeCode>);

/// An activation at a moment right before an operator of a block.
pub struct Activation<'a> {
    /// The function of the activation.
    pub function: FuncId,
    /// The time of the block.
    pub time: u64,
    /// The operator that follows the moment.
    pub op: OpId,
    /// The offset of the operator in the module.
    pub offset: OrigOffset,
    /// The execution of the activation's node. It has a number only if the path is complete.
    pub instance: Instance,
    /// The activity of the activation at the moment.
    pub stands: Stands,
    body: Rc<Body<'a>>,
    /// The node up to the operator.
    code: Rc<NodeCode>,
    pub(super) program: &'a Program,
    module: &'a [u8],
    /// The types of the slots of the operand stack that are in use.
    stack: OnceCell<Box<[ValType]>>,
}

/// The activity of an activation at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// The activation executes a node.
    Executes,
    /// The activation waits for a call. Its path is unknown, except for the block of the call.
    Waits,
    /// The activation begins. Its path is unknown, except for the first block.
    Begins,
}

/// The operator that follows a moment in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// The first operator. The moment is the block's start.
    First,
    /// The last operator, which is the call in a block that ends with a call.
    Last,
    /// This operator of the block.
    Op(OpId),
}

impl<'a> Activation<'a> {
    /// Returns the activation that executes the block at `time`, before the block.
    ///
    /// # Errors
    /// Returns an error if there is no such block, or the path belongs to another program.
    pub fn at_block(
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        time: u64,
    ) -> Result<Self, StateError> {
        Self::new(values, bodies, time, Before::First)
    }

    /// Returns the activation that executes the block at `time`, before the block's last operator.
    /// If the block ends with a call, this is the moment before the call.
    ///
    /// # Errors
    /// Returns the same errors as [`at_block`](Self::at_block).
    pub fn at_call(
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        time: u64,
    ) -> Result<Self, StateError> {
        Self::new(values, bodies, time, Before::Last)
    }

    /// Returns the activation that executes the block at `time`, before an operator of the block.
    ///
    /// # Errors
    /// Returns the same errors as [`at_block`](Self::at_block), and an error if the operator is not
    /// in the block.
    pub fn at_operator(
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        time: u64,
        op: OpId,
    ) -> Result<Self, StateError> {
        Self::new(values, bodies, time, Before::Op(op))
    }

    /// Returns the activation that executes the block at `time`, before an operator of the block,
    /// or before the block.
    ///
    /// # Errors
    /// Returns the same errors as [`at_operator`](Self::at_operator).
    pub fn at(
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        time: u64,
        op: Option<OpId>,
    ) -> Result<Self, StateError> {
        Self::new(values, bodies, time, op.map_or(Before::First, Before::Op))
    }

    fn new(
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        time: u64,
        before: Before,
    ) -> Result<Self, StateError> {
        let instance = values.at(time)?.ok_or(StateError::NoMoment(time))?;
        let node = &values.path().nodes()[instance.node];
        let at = (instance, time, before);
        Self::in_node(bodies, (node.function, &node.blocks), at, Stands::Executes)
    }

    /// Returns the activation that executes the block at `time`, before an operator of the block,
    /// or before the block. Uses only the path around the block. The rest of the path may be
    /// missing.
    ///
    /// # Errors
    /// Returns the same errors as [`at_operator`](Self::at_operator).
    pub fn on_path(
        path: &RecordedPath,
        bodies: &Bodies<'a>,
        time: u64,
        op: Option<OpId>,
    ) -> Result<Self, StateError> {
        let visit = path.cursor().seek(time)?;
        let visit = visit.ok_or(StateError::NoMoment(time))?;
        Self::on_visit(path, bodies, visit, (time, op))
    }

    /// Like [`on_path`](Self::on_path), but takes the execution of the node that contains the
    /// block.
    ///
    /// # Errors
    /// Returns the same errors as [`at_operator`](Self::at_operator).
    pub fn on_visit(
        path: &RecordedPath,
        bodies: &Bodies<'a>,
        visit: Visit,
        (time, op): (u64, Option<OpId>),
    ) -> Result<Self, StateError> {
        let node = &path.nodes()[visit.node];
        let instance = Instance {
            time: visit.start,
            node: visit.node,
            number: 0,
        };
        let at = (instance, time, op.map_or(Before::First, Before::Op));
        Self::in_node(bodies, (node.function, &node.blocks), at, Stands::Executes)
    }

    /// Returns an activation that waits for the call at the end of a block, at the moment before
    /// the call. The block was executed at `time`.
    ///
    /// # Errors
    /// Returns an error if the program has no such block.
    pub fn waiting(
        bodies: &Bodies<'a>,
        function: FuncId,
        block: BlockId,
        time: u64,
    ) -> Result<Self, StateError> {
        let at = (nowhere(time), time, Before::Last);
        Self::in_node(bodies, (function, &[block]), at, Stands::Waits)
    }

    /// Returns an activation that begins at `time`, at the moment before its first block.
    ///
    /// # Errors
    /// Returns an error if the program has no such function.
    pub fn beginning(bodies: &Bodies<'a>, function: FuncId, time: u64) -> Result<Self, StateError> {
        let root = bodies.get(function)?.function.cfg.graph.root();
        let at = (nowhere(time), time, Before::First);
        Self::in_node(bodies, (function, &[root]), at, Stands::Begins)
    }

    fn in_node(
        bodies: &Bodies<'a>,
        (function, blocks): (FuncId, &[BlockId]),
        (instance, time, before): (Instance, u64, Before),
        stands: Stands,
    ) -> Result<Self, StateError> {
        let position = (time - instance.time) as usize;
        let foreign = || StateError::Program("a block that does not exist");
        let blocks = blocks.get(..=position).ok_or_else(foreign)?;
        let body = bodies.get(function)?;
        let known = body.function.cfg.blocks.get(blocks[position]);
        let known = known.ok_or_else(foreign)?;
        let executed = |op: &OpId| is_executed(&body, *op);
        let mut ops = (known.ops.start.as_u32()..known.ops.end.as_u32()).map(OpId::from_u32);
        let op = match before {
            Before::First => ops.find(executed).unwrap_or(known.ops.start),
            Before::Last => ops.rev().find(executed).unwrap_or(known.ops.start),
            Before::Op(op) => op,
        };
        let code = bodies.code(&body, blocks, op)?;
        let offset = bodies.offset(body.function, op);
        Ok(Self {
            function,
            time,
            op,
            offset: offset.unwrap_or(known.offsets.start),
            instance,
            stands,
            body,
            code,
            program: bodies.program,
            module: bodies.module,
            stack: OnceCell::new(),
        })
    }

    /// Returns the number of the node's instructions that were executed before the moment.
    pub fn instructions(&self) -> usize {
        self.code.insts.len()
    }

    /// Returns the types of the function's locals, parameters first.
    pub fn locals(&self) -> &[ValType] {
        &self.body.slots.locals
    }

    /// Whether a variable is a vector.
    pub(super) fn is_vector(&self, variable: u32) -> bool {
        let locals = self.locals();
        let ty = match (variable as usize).checked_sub(locals.len()) {
            None => locals.get(variable as usize).copied(),
            Some(slot) => self.slot(slot as u32).map(|(_, ty)| ty),
        };
        ty == Some(ValType::V128)
    }

    /// Returns the number of parameters among the locals.
    pub fn parameters(&self, program: &Program) -> usize {
        let ty = program.types.get(self.body.function.ty);
        ty.map_or(0, |ty| ty.params.len())
    }

    /// Returns the variable for a slot of the operand stack, with its type, or `None` if the slot
    /// is not in use. O(operators of the function) on first use.
    pub fn slot(&self, slot: u32) -> Option<(u32, ValType)> {
        let types = self.stack.get_or_init(|| {
            let found = Slots::before(self.program, self.module, self.body.function, self.op);
            found.unwrap_or_default()
        });
        let ty = *types.get(slot as usize)?;
        Some((self.body.slots.of_slot(slot), ty))
    }

    /// Returns the source of a variable's value in the node.
    pub fn source(&self, variable: u32) -> Operand {
        self.operand(variable).1
    }

    /// Returns the positions of the node's blocks that moved a variable's value to its place.
    pub fn moved(&self, variable: u32) -> impl Iterator<Item = usize> + use<'_, 'a> {
        let all = self.code.moved(Taker::Output(variable)).iter();
        all.map(|moved| moved.block as usize)
    }

    /// Returns the register that holds a variable's value, and the value's source.
    fn operand(&self, variable: u32) -> (Register, Operand) {
        let outputs = &self.code.outputs;
        let register = match outputs.binary_search_by_key(&variable, |output| output.0) {
            Ok(found) => outputs[found].1,
            Err(_) => variable,
        };
        (register, self.code.source(register))
    }

    fn constant(&self, register: Register, low: u64) -> Bits {
        let mut wide = self.code.wide_constants.iter();
        let high = wide.find(|(constant, _)| *constant == register);
        (low, high.map_or(0, |(_, high)| *high))
    }

    /// Returns the value of a variable, from the whole execution trace. A variable is a local or a
    /// slot of the operand stack, as numbered by [`Slots`](afterimage_program::Slots).
    ///
    /// # Errors
    /// Returns an error if the trace is damaged, or lacks the value.
    pub fn recorded(&self, values: &RecordedValues<'_>, variable: u32) -> Result<Bits, StateError> {
        Ok(values.value(self.instance, self.register(values, variable)?)?)
    }

    /// Returns the register of the whole node that holds a variable's value. Variables are numbered
    /// as in [`recorded`](Self::recorded).
    ///
    /// # Errors
    /// Returns an error if the node cannot be compiled.
    pub fn register(
        &self,
        values: &RecordedValues<'_>,
        variable: u32,
    ) -> Result<Register, StateError> {
        Ok(match self.operand(variable) {
            // Constants and instructions have the same positions as in the whole node.
            (register, Operand::Constant(_)) => register,
            (_, Operand::Variable(variable)) => variable,
            (_, Operand::Result(position)) => {
                let whole = values.compiled(self.instance.node)?;
                whole.code.first_result() + position as u32
            }
        })
    }

    /// Returns the value of a variable, from the registers of the whole node, in which
    /// `first_result` is the first result register. Returns `None` if the registers belong to
    /// another node.
    pub fn followed(
        &self,
        low: &[u64],
        high: &[u64],
        first_result: u32,
        variable: u32,
    ) -> Option<Bits> {
        let register = match self.operand(variable) {
            (register, Operand::Constant(low)) => return Some(self.constant(register, low)),
            (_, Operand::Variable(variable)) => variable,
            (_, Operand::Result(position)) => first_result + position as u32,
        };
        let high = high.get(register as usize).copied().unwrap_or(0);
        Some((*low.get(register as usize)?, high))
    }
}

/// Returns a placeholder for the node of an activation without a node in the path.
fn nowhere(time: u64) -> Instance {
    Instance {
        time,
        node: NodeId::from_u32(0),
        number: 0,
    }
}

impl std::fmt::Debug for Activation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Activation")
            .field("function", &self.function)
            .field("time", &self.time)
            .field("op", &self.op)
            .finish_non_exhaustive()
    }
}
