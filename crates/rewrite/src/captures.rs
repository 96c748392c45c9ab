//! Captures the locals and operands of activations at the time of a snapshot.
//!
//! While an activation waits for a call, its locals do not change, and neither do the operands
//! below the call's arguments. So a snapshot captures nothing. It only increments a global. After
//! each call that may reach a snapshot, the caller compares that global with its earlier value. If
//! the global has changed, the caller captures itself:
//!
//! ```wat
//! (call $f)
//! (local.set $operand) (local.get $operand)                  ;; added locals, which nothing else reads
//! (if (i32.ne (global.get $taken) (local.get $seen)) (then
//!   (i64.store offset=CAPTURED (i32.const 0) (local.get 0))  ;; and so on: the locals, then the operands
//!   (call_indirect (type $captured) (i32.const SITE) (i32.const 2))
//!   (local.set $seen (global.get $taken))
//!   (if (i32.load offset=UNWIND (i32.const 0)) (then (return (i32.const 0))))))
//! ```
//!
//! At the place of the snapshot itself, the same code comes right after the snapshot. If nothing
//! else ends the open activations, the last line ends each of them after it has captured itself.

use afterimage_ids::{EntityRef, FuncId};
use afterimage_program::{Function, Program, validator};
use wasm_encoder::{BlockType, Instruction, MemArg};
use wasmparser::{FuncValidator, Operator, ValType, ValidatorResources};

use crate::RewriteError;
use crate::actions::{Actions, Step};
use crate::body::Writer;
use crate::clock::MayPoll;
use crate::layout::{CAPTURED, UNWIND_AT};
use crate::shared::SharedLocals;

/// The maximum number of locals and operands that a module may store at all its sites and keep at
/// all its blocks. Each takes about 10 bytes of code.
const MOST: u64 = 1 << 22;

/// A place where an activation captures itself, and what it captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureSite {
    /// The function of the activation.
    pub function: FuncId,
    /// The number of the activation's locals.
    pub locals: u32,
    /// The number of operands, which come after the locals.
    pub operands: u32,
    /// Whether slots have 16 bytes instead of 8.
    pub wide: bool,
}

impl CaptureSite {
    /// Returns the number of captured slots.
    pub fn slots(&self) -> usize {
        self.locals as usize + self.operands as usize
    }

    /// Returns the size of a slot in bytes.
    pub fn stride(&self) -> u64 {
        if self.wide { 16 } else { 8 }
    }
}

/// The definitions that all functions of a module with captures share.
pub(crate) struct Captures {
    /// The index of the global that counts snapshots.
    pub taken: u32,
    /// The type of the host's function that receives captures.
    pub ty: u32,
    pub may_poll: MayPoll,
    pub sites: Vec<CaptureSite>,
    /// The largest number of bytes that any site captures.
    pub bytes: u64,
    total: u64,
}

impl Captures {
    pub(crate) fn new(taken: u32, ty: u32, may_poll: MayPoll) -> Self {
        Self {
            taken,
            ty,
            may_poll,
            sites: Vec::new(),
            bytes: 0,
            total: 0,
        }
    }

    fn add(&mut self, site: CaptureSite) -> u32 {
        self.bytes = self.bytes.max(site.slots() as u64 * site.stride());
        self.sites.push(site);
        self.sites.len() as u32 - 1
    }

    /// Counts the slots stored or kept at a place, before any code is written.
    fn expect(&mut self, slots: usize) -> Result<(), RewriteError> {
        self.total += slots as u64;
        if self.total <= MOST {
            Ok(())
        } else {
            Err(RewriteError::TooLarge("captures"))
        }
    }

    /// Whether a snapshot may be taken in a function that an operator calls.
    fn is_site(&self, operator: &Operator<'_>) -> bool {
        match *operator {
            Operator::Call { function_index } => self.may_poll.function(function_index),
            Operator::CallIndirect { type_index, .. } => self.may_poll.indirect(type_index),
            _ => false,
        }
    }
}

/// Whether activations of a program can be captured. This requires that no exception leaves any of
/// them, and that none contains a reference.
pub fn can_capture(program: &Program, bytes: &[u8]) -> bool {
    let signatures = program.types.values();
    let mut types = signatures.flat_map(|ty| ty.params.iter().chain(&ty.results));
    let mut operators = program
        .functions
        .iter()
        .flat_map(|function| program.operators(bytes, function));
    let locals = |function: &Function| {
        let Ok((validator, _)) = validator(program, bytes, function) else {
            return false;
        };
        let mut types = (0..validator.len_locals()).filter_map(|i| validator.get_local_type(i));
        !types.any(|ty| ty.is_reference_type())
    };
    !types.any(|ty| ty.is_reference_type())
        && !operators.any(|(_, _, operator)| {
            matches!(
                operator,
                Operator::RefNull { .. }
                    | Operator::RefFunc { .. }
                    | Operator::TableGet { .. }
                    | Operator::TryTable { .. }
                    | Operator::Throw { .. }
                    | Operator::ThrowRef
            )
        })
        && program.functions.iter().all(locals)
}

/// The captures of the function being rewritten.
pub(crate) struct Capture {
    function: FuncId,
    validator: FuncValidator<ValidatorResources>,
    locals: Vec<ValType>,
    /// The locals for the operands at each place where they can be captured.
    operands: SharedLocals,
    /// The local that contains the number of snapshots at the activation's last capture.
    seen: u32,
    wide: bool,
}

impl Capture {
    /// Finds the captures of a function, if a snapshot may be taken in it or in a function that it
    /// calls. Time: O(operators), plus the stored and kept values.
    ///
    /// # Errors
    /// Returns an error if the stored and kept values would make the module too large.
    pub(crate) fn of(
        program: &Program,
        bytes: &[u8],
        captures: &mut Captures,
        function: &Function,
        actions: &Actions,
    ) -> Result<Option<Self>, RewriteError> {
        let (validator, reader) = validator(program, bytes, function)?;
        let locals = (0..validator.len_locals()).filter_map(|i| validator.get_local_type(i));
        let mut found = Self {
            function: function.id,
            locals: locals.collect(),
            validator,
            operands: SharedLocals::default(),
            seen: 0,
            wide: false,
        };
        let snapshot = |steps: &[Step]| {
            let mut steps = steps.iter();
            steps.any(|step| matches!(step, Step::Snapshot(_) | Step::LoopSnapshot(_)))
        };
        let mut any = snapshot(&actions.entry);
        let mut places = actions
            .at
            .iter()
            .filter(|(_, action)| snapshot(&action.before));
        let mut place = places.next();
        let mut operators = wasmparser::OperatorsReader::new(reader);
        let mut op = 0;
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset()?;
            let is_place = place.is_some_and(|(id, _)| id.as_u32() == op);
            if is_place {
                any = true;
                place = places.next();
            }
            if is_place || opens(&operator) {
                captures.expect(found.height() + if is_place { found.locals.len() } else { 0 })?;
                found.make_room();
            }
            found.validator.op(at, &operator)?;
            if captures.is_site(&operator) {
                any = true;
                captures.expect(found.height() + found.locals.len())?;
                found.make_room();
            }
            op += 1;
        }
        found.validator = afterimage_program::validator(program, bytes, function)?.0;
        found.wide |= found.locals.contains(&ValType::V128);
        Ok(any.then_some(found))
    }

    fn height(&self) -> usize {
        self.validator.operand_stack_height() as usize
    }

    fn make_room(&mut self) {
        if let Some(stack) = self.stack() {
            self.wide |= stack.contains(&ValType::V128);
            self.operands.add(&stack);
        }
    }

    /// Returns the types of the operands at the current place, lowest first. Returns `None` in
    /// unreachable code.
    fn stack(&self) -> Option<Vec<ValType>> {
        let frame = self.validator.get_control_frame(0)?;
        if frame.unreachable {
            return None;
        }
        let types = (0..self.height()).rev();
        types
            .map(|depth| self.validator.get_operand_type(depth)?)
            .collect()
    }

    /// Returns the number of operands that are out of reach at the current place, because they lie
    /// below the innermost open block.
    fn below(&self) -> usize {
        let frame = self.validator.get_control_frame(0);
        frame.map_or(0, |frame| frame.height)
    }

    /// Numbers the added locals after those that the function has so far.
    pub(crate) fn place(
        &mut self,
        next: &mut u32,
        groups: &mut Vec<(u32, wasm_encoder::ValType)>,
    ) -> Result<(), RewriteError> {
        self.seen = *next;
        *next += 1;
        groups.push((1, wasm_encoder::ValType::I32));
        self.operands.place(next, groups)
    }
}

/// Whether an operator opens a block. Inside the block, the outer operands are out of reach.
fn opens(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. }
    )
}

impl Writer<'_, '_> {
    /// Writes code that records the number of snapshots taken before the activation began.
    pub(crate) fn begin_captures(&mut self) {
        if let (Some(capture), Some(captures)) = (&self.capture, &self.context.captures) {
            let (taken, seen) = (captures.taken, capture.seen);
            self.put(&Instruction::GlobalGet(taken));
            self.put(&Instruction::LocalSet(seen));
        }
    }

    /// Handles the moment before an operator. Saves the operands that the operator puts out of
    /// reach.
    pub(crate) fn before_captured(&mut self, operator: &Operator<'_>) {
        if opens(operator) {
            self.keep_operands();
        }
    }

    /// Handles the moment after an operator. If its callee may have reached a snapshot, tests for a
    /// snapshot.
    pub(crate) fn after_captured(
        &mut self,
        at: usize,
        operator: &Operator<'_>,
    ) -> Result<(), RewriteError> {
        let Some(capture) = &mut self.capture else {
            return Ok(());
        };
        capture.validator.op(at, operator)?;
        let captures = self.context.captures.as_ref();
        if !captures.is_some_and(|captures| captures.is_site(operator)) {
            return Ok(());
        }
        let results = match *operator {
            Operator::Call { function_index } => {
                let id = FuncId::new(function_index as usize);
                self.context
                    .types
                    .function(self.context.program, id)
                    .1
                    .len()
            }
            Operator::CallIndirect { type_index, .. } => self.context.types.get(type_index).1.len(),
            _ => 0,
        };
        self.keep_operands();
        self.capture_if_taken(results);
        Ok(())
    }

    /// Copies the operands within reach to added locals.
    pub(crate) fn keep_operands(&mut self) {
        let Some(capture) = &self.capture else { return };
        let Some(stack) = capture.stack() else { return };
        let locals = capture.operands.of(&stack);
        let within = locals.get(capture.below()..).unwrap_or_default().to_vec();
        for &local in within.iter().rev() {
            self.put(&Instruction::LocalSet(local));
        }
        for local in within {
            self.put(&Instruction::LocalGet(local));
        }
    }

    /// Captures the activation if a snapshot was taken. The operands are in added locals. The
    /// topmost `given` operands, which the call returned, are not captured.
    pub(crate) fn capture_if_taken(&mut self, given: usize) {
        let (Some(capture), Some(captures), Some((_, table))) = (
            &self.capture,
            &mut self.context.captures,
            self.context.snapshots,
        ) else {
            return;
        };
        let Some(mut stack) = capture.stack() else {
            return;
        };
        stack.truncate(stack.len().saturating_sub(given));
        let site = CaptureSite {
            function: capture.function,
            locals: capture.locals.len() as u32,
            operands: stack.len() as u32,
            wide: capture.wide,
        };
        let (taken, seen) = (captures.taken, capture.seen);
        let told = Instruction::CallIndirect {
            type_index: captures.ty,
            table_index: table,
        };
        let number = captures.add(site);
        let locals = (0..).zip(capture.locals.iter().copied());
        let operands = capture.operands.of(&stack).into_iter().zip(stack);
        let slots = Vec::from_iter(locals.chain(operands));
        self.put(&Instruction::GlobalGet(taken));
        self.put(&Instruction::LocalGet(seen));
        self.put(&Instruction::I32Ne);
        self.unlikely_if();
        let mut address = self.context.layout.captured_at();
        for (local, ty) in slots {
            self.capture_slot(self.slot(address), local, ty);
            if site.wide && ty != ValType::V128 {
                self.put(&Instruction::I32Const(0));
                self.put(&Instruction::I64Const(0));
                self.put(&Instruction::I64Store(self.slot(address + 8)));
            }
            address += site.stride();
        }
        self.put(&Instruction::I32Const(number as i32));
        self.put(&Instruction::I32Const(CAPTURED as i32));
        self.put(&told);
        self.put(&Instruction::GlobalGet(taken));
        self.put(&Instruction::LocalSet(seen));
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::I32Load(MemArg {
            align: 2,
            ..self.slot(UNWIND_AT)
        }));
        self.unlikely_if();
        for ty in self.results.clone() {
            self.put(&match ty {
                ValType::I32 => Instruction::I32Const(0),
                ValType::I64 => Instruction::I64Const(0),
                ValType::F32 => Instruction::F32Const(0.0.into()),
                ValType::F64 => Instruction::F64Const(0.0.into()),
                _ => Instruction::V128Const(0),
            });
        }
        self.put(&Instruction::Return);
        self.put(&Instruction::End);
        self.put(&Instruction::End);
    }

    fn unlikely_if(&mut self) {
        self.map.unlikely.push(self.out.len() as u32);
        self.put(&Instruction::If(BlockType::Empty));
    }

    /// Stores a local's bits.
    fn capture_slot(&mut self, slot: MemArg, local: u32, ty: ValType) {
        self.put(&Instruction::I32Const(0));
        self.put(&Instruction::LocalGet(local));
        match ty {
            ValType::F32 => {
                self.put(&Instruction::I32ReinterpretF32);
                self.put(&Instruction::I64ExtendI32U);
            }
            ValType::I32 => self.put(&Instruction::I64ExtendI32U),
            _ => {}
        }
        self.put(&match ty {
            ValType::F64 => Instruction::F64Store(slot),
            ValType::V128 => Instruction::V128Store(slot),
            _ => Instruction::I64Store(slot),
        });
    }
}
