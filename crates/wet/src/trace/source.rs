//! Finds the origins of values, which make one execution depend on others.

use afterimage_ids::{FuncId, NodeId};
use afterimage_machine::{Code, NodeCode, NodeEnd, Operand, Range, Register, Taker};
use afterimage_program::Callee;
use afterimage_wpp::Segments;

use super::caught::{Carried, Caught, throws};
use super::{
    DefinedBy, Epochs, Failure, Instance, StorageCell, TraceError, VariableBefore, WholeTrace,
};
use crate::build::NEAR;
use crate::epoch::{BEFORE_NODE, CALLED_NODE, Execution};

/// The origin of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A constant, with these bits.
    Constant(u64),
    /// The result of an instruction.
    Result {
        /// The execution of the node.
        instance: Instance,
        /// The instruction's position in the node.
        inst: usize,
    },
    /// Nothing. The variable is a local that nothing wrote, so it is zero or null.
    Zero,
    /// An argument that the host passed to the activation that begins with this execution.
    Argument {
        /// The first execution of the activation.
        instance: Instance,
        /// The index of the argument.
        index: u32,
    },
    /// A result that the host returned from the call with which this execution ends.
    Returned {
        /// The execution with the call.
        instance: Instance,
        /// The index of the result.
        index: u32,
    },
    /// The call with which this execution ends, because the call did not return.
    Open {
        /// The execution with the call.
        instance: Instance,
    },
    /// A part of the exception that this execution throws: the reference to the exception or, for a
    /// rethrow, one of its values.
    Thrown {
        /// The execution that throws.
        instance: Instance,
    },
}

/// The origin of bytes that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The number of bytes. It is 0 for a global, and if the writer wrote all bytes of the read.
    pub length: u64,
    /// The last writer of the bytes.
    pub writer: Writer,
}

/// The writer of bytes, or of a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// No writer. The bytes have the module's initial contents.
    Initial,
    /// The host, in a call to it.
    Host {
        /// The number of the call among all calls to the host, from 1.
        call: u64,
    },
    /// An instruction of the guest.
    Write {
        /// The execution of the instruction's node.
        instance: Instance,
        /// The instruction's position.
        inst: usize,
        /// The position of the first byte in the written value.
        offset: u8,
    },
}

/// One step towards the origin of a variable.
pub(super) enum Step {
    /// The value is in this register of another execution. The taker is the instruction that moved
    /// it from there, if an instruction did.
    Register(Instance, Register, Option<Taker>),
    /// The value does not come from a register.
    Source(Source),
    /// The value was caught with an exception, and is stored.
    Caught(Carried),
    /// An activation returned a value that its own label caught.
    Thrown {
        /// The execution that throws.
        thrower: Instance,
        /// The part of the exception.
        part: Carried,
        /// The number of values that follow this value.
        back: u64,
    },
}

/// A register of an execution, and its taker there.
pub(super) type Taken = (Instance, Register, Option<Taker>);

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the origin of a register's value in an execution, after following all copies.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn source(&self, instance: Instance, register: Register) -> Result<Source, Failure<S, E>> {
        self.source_at(instance, register).map(|found| found.0)
    }

    /// Works like [`source`](Self::source), but also returns the execution in which the search
    /// ended. For a constant, this is the execution of the node that contains the constant.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn source_at(
        &self,
        instance: Instance,
        register: Register,
    ) -> Result<(Source, Instance, Register), Failure<S, E>> {
        self.follow(instance, register, |_, _| {})
    }

    /// Returns the instructions that moved a value on its way to a register, the last first, each
    /// with its execution. The value may also have been selected by blocks that moved it before one
    /// of these instructions ([`NodeCode::moved`]).
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn takers_of(
        &self,
        instance: Instance,
        register: Register,
    ) -> Result<Vec<(Instance, Taker)>, Failure<S, E>> {
        let mut takers = Vec::new();
        self.follow(instance, register, |earlier, taker| {
            takers.push((earlier, taker));
        })?;
        Ok(takers)
    }

    /// Works like [`source_at`](Self::source_at), but also reports the takers of the value on its
    /// way.
    fn follow(
        &self,
        mut instance: Instance,
        mut register: Register,
        mut taken: impl FnMut(Instance, Taker),
    ) -> Result<(Source, Instance, Register), Failure<S, E>> {
        loop {
            let compiled = self.compiled(instance.node)?;
            let variable = match compiled.code.source(register) {
                Operand::Constant(bits) => {
                    return Ok((Source::Constant(bits), instance, register));
                }
                Operand::Result(inst) => {
                    return Ok((Source::Result { instance, inst }, instance, register));
                }
                Operand::Variable(variable) => variable,
            };
            match self.through(self.step(instance, variable)?)? {
                Err(source) => return Ok((source, instance, register)),
                Ok((earlier, of_it, taker)) => {
                    // If a copy does not lead back in time, the trace is damaged.
                    if earlier.time >= instance.time {
                        return Err(TraceError::Damaged("a definition after its use"));
                    }
                    if let Some(taker) = taker {
                        taken(earlier, taker);
                    }
                    (instance, register) = (earlier, of_it);
                }
            }
        }
    }

    /// Returns the register in which the callee returned a result of the call at an execution's
    /// end. If there is none, returns `Err` with the result's origin. The origin is the host, a
    /// reference to an exception, or a call that did not return.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn returned_in(
        &self,
        call: Instance,
        index: u32,
    ) -> Result<Result<(Instance, Register), Source>, Failure<S, E>> {
        let found = self.through(self.returned(call, index)?)?;
        Ok(found.map(|(instance, register, _)| (instance, register)))
    }

    /// Follows a step through exceptions, and returns the register to which it leads. If there is
    /// none, returns `Err` with the origin.
    fn through(&self, step: Step) -> Result<Result<Taken, Source>, Failure<S, E>> {
        match step {
            Step::Register(instance, register, taker) => Ok(Ok((instance, register, taker))),
            Step::Source(source) => Ok(Err(source)),
            Step::Caught(part) | Step::Thrown { part, .. } => self.carried(part),
        }
    }

    /// Returns the writers of the memory or the global that an instruction reads, part by part. The
    /// list is empty if the instruction reads neither.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn reading(&self, instance: Instance, inst: usize) -> Result<Vec<Reading>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        if compiled
            .model
            .reads
            .iter()
            .all(|read| read.inst as usize != inst)
        {
            return Ok(Vec::new());
        }
        self.executed(instance, inst)?;
        self.check_kept(instance)?;
        let input = compiled.model.of_read(inst);
        let column = self.column(instance, input)?;
        let labels = column.view().and_then(|column| column.labels.as_ref());
        let label = match labels {
            Some(labels) => labels.at(instance.number, &self.blocks)?,
            None => None,
        };
        let mut readings = Vec::new();
        let mut done = 0;
        for (piece, execution) in label.unwrap_or_default() {
            let length = u64::from(piece.length);
            match self.writer(piece.origin, execution, instance)? {
                Some(writer) => readings.push(Reading { length, writer }),
                None => self.read_before(instance, inst, (done, length), &mut readings)?,
            }
            done += length;
        }
        Ok(readings)
    }

    /// Finds the writers of some bytes that an instruction reads and that an earlier stretch wrote.
    /// These are `length` bytes from the read byte `first` on, or all bytes of the read if `length`
    /// is 0.
    fn read_before(
        &self,
        instance: Instance,
        inst: usize,
        (first, length): (u64, u64),
        readings: &mut Vec<Reading>,
    ) -> Result<(), Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let inst = &compiled.code.insts[inst];
        if inst.code == Code::GlobalGet {
            let place = StorageCell::Global(inst.immediate as u32);
            let writer = self.writer_before(instance, place)?;
            readings.push(Reading { length: 0, writer });
            return Ok(());
        }
        let (base, _) = self.value(instance, inst.a)?;
        let read = inst.accesses([base, 0, 0]).read;
        let read = read.ok_or(TraceError::Damaged("a load of no bytes"))?;
        let is_all = length == 0;
        let range = Range {
            address: read.address.wrapping_add(first),
            length: if is_all { read.length } else { length },
            ..read
        };
        self.readings_before(instance, range, readings)?;
        if is_all && let [only] = &mut readings[..] {
            only.length = 0;
        }
        Ok(())
    }

    /// Returns the origin of a variable at the beginning of an execution, one step back.
    pub(super) fn step(&self, at: Instance, variable: u32) -> Result<Step, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        cursor.seek(at.time).map_err(TraceError::Path)?;
        let compiled = self.compiled(at.node)?;
        let input = compiled.model.of_variable(variable);
        let mut follower = at;
        for steps in 0.. {
            if steps == NEAR {
                if let Some(input) = input
                    && let Some(step) = self.far(at, input, variable)?
                {
                    return Ok(step);
                }
                if variable < self.locals(&compiled.code)
                    && let Some(step) = self.local_before(at, variable)?
                {
                    return Ok(step);
                }
            }
            let before = cursor.previous_in_activation();
            let Some(visit) = before.map_err(TraceError::Path)? else {
                break;
            };
            let before = Instance {
                time: visit.start,
                node: visit.node,
                number: 0,
            };
            let compiled = self.compiled(visit.node)?;
            let caught = self.caught(&compiled.code, variable, || Ok(Some(follower)))?;
            if self.writes(&compiled.code, variable, caught) {
                let instance = self.numbered(visit.node, visit.start)?;
                return self.written(instance, variable, caught);
            }
            follower = before;
        }
        self.entered(follower, variable)
    }

    /// Returns whether a node writes a variable, itself or through the results or the exception of
    /// its call.
    pub(super) fn writes(&self, code: &NodeCode, variable: u32, caught: Option<Caught>) -> bool {
        let given = match caught {
            Some(caught) => caught.part(variable).is_some(),
            None => self.result_variables(code).contains(&variable),
        };
        given
            || code
                .outputs
                .binary_search_by_key(&variable, |o| o.0)
                .is_ok()
    }

    pub(super) fn locals(&self, code: &NodeCode) -> u32 {
        self.body(code.function)
            .map_or(u32::MAX, |body| body.slots.locals.len() as u32)
    }

    /// Returns the variables for the results of a node's call.
    pub(super) fn result_variables(&self, code: &NodeCode) -> std::ops::Range<u32> {
        match code.end {
            NodeEnd::Call {
                callee, results, ..
            } => results..results + self.results_of(callee),
            _ => 0..0,
        }
    }

    /// Returns the number of a function's results.
    pub(super) fn results(&self, function: FuncId) -> Result<u32, Failure<S, E>> {
        let body = self.body(function)?;
        Ok(self.program.types[body.function.ty].results.len() as u32)
    }

    fn results_of(&self, callee: Callee) -> u32 {
        let ty = match callee {
            Callee::Direct(function) => match self.program.function(function) {
                Some(function) => Some(function.ty),
                None => {
                    let import = function.as_u32() as usize;
                    self.program.imports.get(import).map(|import| import.ty)
                }
            },
            Callee::Indirect { ty, .. } => Some(ty),
        };
        let ty = ty.and_then(|ty| self.program.types.get(ty));
        ty.map_or(0, |ty| ty.results.len() as u32)
    }

    /// Returns the step for a variable after an execution that writes it.
    pub(super) fn written(
        &self,
        instance: Instance,
        variable: u32,
        caught: Option<Caught>,
    ) -> Result<Step, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let code = &compiled.code;
        let given = self.result_variables(code);
        match caught {
            Some(caught) => {
                if let Some(part) = caught.part(variable) {
                    return Ok(Step::Caught(part));
                }
            }
            None if given.contains(&variable) => {
                return self.returned(instance, variable - given.start);
            }
            None => {}
        }
        Ok(
            match code.outputs.binary_search_by_key(&variable, |o| o.0) {
                Ok(found) => {
                    let taker = Some(Taker::Output(variable));
                    Step::Register(instance, code.outputs[found].1, taker)
                }
                Err(_) => Step::Register(instance, variable, None),
            },
        )
    }

    /// Returns the step to a variable's distant definition, or `None` if no definition is stored.
    fn far(
        &self,
        at: Instance,
        input: usize,
        variable: u32,
    ) -> Result<Option<Step>, Failure<S, E>> {
        let column = self.column(at, input)?;
        let Some(far) = column.view().and_then(|column| column.far.as_ref()) else {
            return Ok(None);
        };
        let Some((node, execution, from)) = far.at(at.number, &self.blocks)? else {
            return Ok(None);
        };
        let definition = match node.as_u32() {
            BEFORE_NODE | CALLED_NODE => self.definition_before(at, node, variable)?,
            _ => {
                let then = self.instance(at.node, from)?;
                let then = then.ok_or(TraceError::Damaged("an execution that does not exist"))?;
                self.named(node, execution, then.time)?
            }
        };
        let compiled = self.compiled(definition.node)?;
        let follower = || self.follower(definition);
        let caught = self.caught(&compiled.code, variable, follower)?;
        if self.writes(&compiled.code, variable, caught) {
            return self.written(definition, variable, caught).map(Some);
        }
        self.entered(definition, variable).map(Some)
    }

    /// Returns the execution that wrote a variable before the stretch of an execution, or the first
    /// execution of the activation.
    fn definition_before(
        &self,
        at: Instance,
        told: NodeId,
        variable: u32,
    ) -> Result<Instance, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        cursor.seek(at.time).map_err(TraceError::Path)?;
        let position = self.position(at.time)?;
        let function = self.compiled(at.node)?.code.function;
        let wanted = VariableBefore {
            position,
            activation: cursor.depth().saturating_sub(1),
            function,
            variable,
            is_given: told.as_u32() == CALLED_NODE,
        };
        let found = self.epochs.variable_before(wanted);
        let found = found.map_err(TraceError::Epoch)?;
        match found.ok_or(TraceError::Damaged("a variable that nothing wrote"))? {
            DefinedBy::Execution(node, execution) => {
                self.named(node, Execution::Number(execution), at.time)
            }
            DefinedBy::At(time) => {
                let found = self.at(time)?.filter(|found| found.time < at.time);
                found.ok_or(TraceError::Damaged("an execution that does not exist"))
            }
        }
    }

    /// Returns the step for a variable at the beginning of its activation, which begins with this
    /// execution.
    pub(super) fn entered(&self, first: Instance, variable: u32) -> Result<Step, Failure<S, E>> {
        let instance = self.numbered(first.node, first.time)?;
        let compiled = self.compiled(first.node)?;
        let function = compiled.code.function;
        let body = self.body(function)?;
        let parameters = self.program.types[body.function.ty].params.len() as u32;
        if variable >= parameters {
            return Ok(Step::Source(Source::Zero));
        }
        let host = Source::Argument {
            instance,
            index: variable,
        };
        let mut cursor = self.path.cursor();
        cursor.seek(first.time).map_err(TraceError::Path)?;
        let outermost = cursor.depth() <= 1;
        let Some(visit) = cursor.previous().map_err(TraceError::Path)? else {
            return Ok(Step::Source(host));
        };
        let caller = self.numbered(visit.node, visit.start)?;
        if outermost && !self.replaced(caller)? {
            return Ok(Step::Source(host));
        }
        let compiled = self.compiled(visit.node)?;
        match &compiled.code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
                let argument = arguments.get(variable as usize);
                let argument = argument.ok_or(TraceError::Damaged("a call without arguments"))?;
                Ok(Step::Register(
                    caller,
                    *argument,
                    Some(Taker::Given(variable)),
                ))
            }
            _ => Err(TraceError::Damaged("a call without a callee")),
        }
    }

    /// Returns the number of the host's calls into the program before the activation that begins
    /// with this execution. The host must have called the activation. Time: O(activations that the
    /// host called, and activations that replaced them).
    pub(super) fn entries_before(&self, first: Instance) -> Result<usize, Failure<S, E>> {
        let (mut begins, mut before) = (first.time, 0);
        let mut cursor = self.path.cursor();
        loop {
            cursor.seek(begins).map_err(TraceError::Path)?;
            let Some(visit) = cursor.previous().map_err(TraceError::Path)? else {
                return Ok(before);
            };
            let last = self.numbered(visit.node, visit.start)?;
            before += usize::from(!self.replaced(last)?);
            let stack = cursor.stack().map_err(TraceError::Path)?;
            begins = stack.first().map_or(visit.start, |outer| outer.entered);
        }
    }

    /// Whether an execution ends with a tail call to one of the program's own functions.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn replaced(&self, last: Instance) -> Result<bool, Failure<S, E>> {
        let compiled = self.compiled(last.node)?;
        Ok(match compiled.code.end {
            NodeEnd::TailCall { callee, .. } => match callee {
                Callee::Direct(function) => self.program.function(function).is_some(),
                Callee::Indirect { .. } => self.host_call(last)?.is_none(),
            },
            _ => false,
        })
    }

    /// Returns the step for a result of the call at an execution's end.
    pub(super) fn returned(&self, call: Instance, index: u32) -> Result<Step, Failure<S, E>> {
        let (mut call, mut index) = (call, index);
        let mut cursor = self.path.cursor();
        loop {
            let open = Ok(Step::Source(Source::Open { instance: call }));
            cursor.seek(call.time).map_err(TraceError::Path)?;
            let depth = cursor.depth();
            // The execution that made the call, or that made the tail call with which an activation
            // replaced itself.
            let mut by = call;
            cursor.next().map_err(TraceError::Path)?;
            let (last, end) = loop {
                if cursor.depth() != depth + 1 {
                    let (instance, index) = (by, index);
                    return Ok(Step::Source(Source::Returned { instance, index }));
                }
                let Some(end) = cursor.activation_end().map_err(TraceError::Path)? else {
                    return open;
                };
                let missing = TraceError::Damaged("a call without an end");
                let visit = cursor.seek(end).map_err(TraceError::Path)?;
                let end = visit.ok_or(missing)?;
                let end_depth = cursor.depth();
                // The last of the activation's own executions. Executions of callees, and of
                // activations that replaced callees, may follow.
                let mut last = end;
                while cursor.depth() > depth + 1 {
                    let stack = cursor.stack().map_err(TraceError::Path)?;
                    let inner = stack.get(depth + 1).map_or(0, |inner| inner.entered);
                    let visit = cursor.seek(inner.saturating_sub(1));
                    let missing = TraceError::Damaged("a call without an end");
                    last = visit.map_err(TraceError::Path)?.ok_or(missing)?;
                }
                let last = self.numbered(last.node, last.start)?;
                if !self.replaced(last)? {
                    let compiled = self.compiled(last.node)?;
                    // A tail call to the host replaced the activation.
                    if matches!(compiled.code.end, NodeEnd::TailCall { .. }) {
                        let instance = last;
                        return Ok(Step::Source(Source::Returned { instance, index }));
                    }
                    break (last, (end, end_depth));
                }
                by = last;
                cursor.next().map_err(TraceError::Path)?;
            };
            let compiled = self.compiled(last.node)?;
            let code = &compiled.code;
            if let NodeEnd::Return(values) = &code.end {
                let value = values.get(index as usize);
                let value = value.ok_or(TraceError::Damaged("a return without values"))?;
                return Ok(Step::Register(last, *value, Some(Taker::Given(index))));
            }
            let (end, end_depth) = end;
            let thrown = self.compiled(end.node)?;
            if throws(&thrown.code) {
                // Find the activation that caught the exception, by the number of open activations.
                let thrower = self.numbered(end.node, end.start)?;
                let caught = self
                    .catch(thrower)?
                    .and_then(|caught| Some((caught, end_depth.checked_sub(caught.unwound)?)));
                match caught {
                    Some((caught, handler)) if handler == depth + 1 => {
                        let results = self.results(code.function)?;
                        let back = u64::from(results.saturating_sub(index.saturating_add(1)));
                        let missing = TraceError::Damaged("an exception that carries too little");
                        let part = caught.part_at(index).ok_or(missing)?;
                        return Ok(Step::Thrown {
                            thrower,
                            part,
                            back,
                        });
                    }
                    Some((_, handler)) if handler > depth + 1 => {}
                    _ => return open,
                }
            }
            if !matches!(code.end, NodeEnd::Call { .. }) {
                return open;
            }
            // The activation returned the results of its last call as its own.
            let given = self.result_variables(code);
            let results = self.results(code.function)?;
            let variable = (given.end + index).saturating_sub(results);
            if !given.contains(&variable) {
                return self.written(last, variable, None);
            }
            (call, index) = (last, variable - given.start);
        }
    }
}
