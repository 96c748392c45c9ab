//! Who made what: dependences of one execution on others.

use afterimage_machine::{NodeEnd, Operand, Register};
use afterimage_program::Callee;
use afterimage_wpp::Segments;

use super::{Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::build::NEAR;
use crate::def::Origin;
use crate::epoch::Execution;

/// Where the value of a register comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is a constant: its bits.
    Constant(u64),
    /// It is the result of an instruction.
    Result {
        /// The execution of the node.
        instance: Instance,
        /// The instruction's position in it.
        inst: usize,
    },
    /// A local that nothing wrote: zero or null.
    Zero,
    /// The host passed it as an argument of the activation that begins with this execution.
    Argument {
        /// The first execution of the activation.
        instance: Instance,
        /// Which argument.
        index: u32,
    },
    /// The host returned it from the call that this execution ends with.
    Returned {
        /// The execution with the call.
        instance: Instance,
        /// Which result.
        index: u32,
    },
    /// The call that this execution ends with did not return.
    Open {
        /// The execution with the call.
        instance: Instance,
    },
    /// It was caught with an exception, after this execution.
    Caught {
        /// The last execution before the handler in its activation.
        instance: Instance,
    },
}

/// Where bytes that are read come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How many bytes; 0 for a global.
    pub length: u64,
    /// Who wrote them last.
    pub writer: Writer,
}

/// Who wrote bytes, or a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Nobody: they are the module's.
    Initial,
    /// The host.
    Host {
        /// Which of the guest's calls to it, from 1.
        call: u64,
    },
    /// An instruction.
    Write {
        /// The execution of its node.
        instance: Instance,
        /// Its position.
        inst: usize,
        /// Which byte of the value that it wrote is the first one.
        offset: u8,
    },
}

/// One step towards where a variable comes from.
pub(super) enum Step {
    /// It is this register of another execution.
    Register(Instance, Register),
    /// It is no register.
    Source(Source),
}

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Where the value of a register of an execution comes from, through all copies.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn source(
        &self,
        mut instance: Instance,
        mut register: Register,
    ) -> Result<Source, Failure<S, E>> {
        loop {
            let compiled = self.compiled(instance.node)?;
            let variable = match compiled.code.source(register) {
                Operand::Constant(bits) => return Ok(Source::Constant(bits)),
                Operand::Result(inst) => return Ok(Source::Result { instance, inst }),
                Operand::Variable(variable) => variable,
            };
            match self.step(instance, variable)? {
                Step::Source(source) => return Ok(source),
                Step::Register(earlier, of_it) => {
                    // Copies lead back in time, or the trace is damaged.
                    if earlier.time >= instance.time {
                        return Err(TraceError::Damaged("a definition after its use"));
                    }
                    (instance, register) = (earlier, of_it);
                }
            }
        }
    }

    /// Who wrote what an instruction reads, part by part. Empty if it reads neither memory nor a global.
    ///
    /// # Errors
    /// If the trace is damaged or holds too little.
    pub fn reading(&self, instance: Instance, inst: usize) -> Result<Vec<Reading>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let input = compiled.model.of_read(inst);
        let column = self.column(instance, input)?;
        let labels = column.as_deref().and_then(|column| column.labels.as_ref());
        let label = match labels {
            Some(labels) => labels.at(instance.number, &self.blocks)?,
            None => None,
        };
        let mut readings = Vec::new();
        for (piece, execution) in label.unwrap_or_default() {
            let writer = match piece.origin {
                Origin::Initial => Writer::Initial,
                Origin::Host => Writer::Host {
                    call: match execution {
                        Execution::Number(call) | Execution::Ago(call) => call,
                    },
                },
                Origin::Write {
                    node,
                    write,
                    offset,
                } => {
                    let instance = self.named(node, execution, instance.time)?;
                    let writer = self.compiled(node)?;
                    let write = writer.model.writes.get(write as usize);
                    let write = write.ok_or(TraceError::Damaged("a write that is not there"))?;
                    Writer::Write {
                        instance,
                        inst: write.inst as usize,
                        offset,
                    }
                }
            };
            let length = u64::from(piece.length);
            readings.push(Reading { length, writer });
        }
        Ok(readings)
    }

    /// Where a variable of an execution comes from, one step back.
    pub(super) fn step(&self, at: Instance, variable: u32) -> Result<Step, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        cursor.seek(at.time).map_err(TraceError::Path)?;
        let compiled = self.compiled(at.node)?;
        let input = compiled.model.of_variable(variable);
        let mut follower = compiled.code.first;
        let mut first = at;
        for steps in 0.. {
            if steps == NEAR
                && let Some(input) = input
                && let Some(step) = self.far(at, input, variable)?
            {
                return Ok(step);
            }
            let before = cursor.previous_in_activation();
            let Some(visit) = before.map_err(TraceError::Path)? else {
                break;
            };
            let compiled = self.compiled(visit.node)?;
            let code = &compiled.code;
            let calls = matches!(code.end, NodeEnd::Call { .. });
            let caught = (calls && code.next != Some(follower))
                || matches!(code.end, NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. });
            if self.writes(code, variable, caught) {
                let instance = self.numbered(visit.node, visit.start)?;
                return self.written(instance, variable, caught);
            }
            follower = code.first;
            first = Instance {
                time: visit.start,
                node: visit.node,
                number: 0,
            };
        }
        self.entered(first, variable)
    }

    /// Whether a node, or what its call gave or threw, writes a variable.
    fn writes(&self, code: &afterimage_machine::NodeCode, variable: u32, caught: bool) -> bool {
        let given = self.given(code);
        code.outputs.binary_search_by_key(&variable, |o| o.0).is_ok()
            || !caught && given.contains(&variable)
            // What a handler gets is on the operand stack.
            || caught && variable >= self.locals(code)
    }

    fn locals(&self, code: &afterimage_machine::NodeCode) -> u32 {
        self.body(code.function)
            .map_or(u32::MAX, |body| body.slots.locals.len() as u32)
    }

    /// The variables that get the results of a node's call.
    fn given(&self, code: &afterimage_machine::NodeCode) -> std::ops::Range<u32> {
        match code.end {
            NodeEnd::Call {
                callee, results, ..
            } => results..results + self.results_of(callee),
            _ => 0..0,
        }
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

    /// A variable after an execution that writes it.
    fn written(
        &self,
        instance: Instance,
        variable: u32,
        caught: bool,
    ) -> Result<Step, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let code = &compiled.code;
        let given = self.given(code);
        if !caught && given.contains(&variable) {
            return self.returned(instance, variable - given.start);
        }
        match code.outputs.binary_search_by_key(&variable, |o| o.0) {
            Ok(found) => Ok(Step::Register(instance, code.outputs[found].1)),
            Err(_) if caught && variable >= self.locals(code) => {
                Ok(Step::Source(Source::Caught { instance }))
            }
            Err(_) => Ok(Step::Register(instance, variable)),
        }
    }

    /// What is told of a variable that was written long before.
    fn far(
        &self,
        at: Instance,
        input: usize,
        variable: u32,
    ) -> Result<Option<Step>, Failure<S, E>> {
        let column = self.column(at, input)?;
        let Some(far) = column.as_deref().and_then(|column| column.far.as_ref()) else {
            return Ok(None);
        };
        let Some((node, execution, from)) = far.at(at.number, &self.blocks)? else {
            return Ok(None);
        };
        let then = self.instance(at.node, from)?;
        let then = then.ok_or(TraceError::Damaged("an execution that is not there"))?;
        let definition = self.named(node, execution, then.time)?;
        let compiled = self.compiled(node)?;
        if self.writes(&compiled.code, variable, false) {
            return self.written(definition, variable, false).map(Some);
        }
        self.entered(definition, variable).map(Some)
    }

    /// A variable when its activation began, with this execution.
    fn entered(&self, first: Instance, variable: u32) -> Result<Step, Failure<S, E>> {
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
        if cursor.depth() <= 1 && !self.tail_called(first)? {
            return Ok(Step::Source(host));
        }
        let Some(visit) = cursor.previous().map_err(TraceError::Path)? else {
            return Ok(Step::Source(host));
        };
        let caller = self.numbered(visit.node, visit.start)?;
        let compiled = self.compiled(visit.node)?;
        match &compiled.code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
                let argument = arguments.get(variable as usize);
                let argument = argument.ok_or(TraceError::Damaged("a call without arguments"))?;
                Ok(Step::Register(caller, *argument))
            }
            _ => Err(TraceError::Damaged("a call that calls nothing")),
        }
    }

    /// Whether an outermost activation was called in place of another one.
    fn tail_called(&self, first: Instance) -> Result<bool, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        cursor.seek(first.time).map_err(TraceError::Path)?;
        let Some(visit) = cursor.previous().map_err(TraceError::Path)? else {
            return Ok(false);
        };
        let compiled = self.compiled(visit.node)?;
        Ok(matches!(compiled.code.end, NodeEnd::TailCall { .. }))
    }

    /// A result of the call that an execution ends with.
    pub(super) fn returned(&self, call: Instance, index: u32) -> Result<Step, Failure<S, E>> {
        let (mut call, mut index) = (call, index);
        let mut cursor = self.path.cursor();
        loop {
            let host = Source::Returned {
                instance: call,
                index,
            };
            cursor.seek(call.time).map_err(TraceError::Path)?;
            let depth = cursor.depth();
            let mut callee = cursor.next().map_err(TraceError::Path)?;
            // The activation of the callee, or the last one of those that it was replaced by.
            let last = loop {
                if callee.is_none() || cursor.depth() != depth + 1 {
                    return Ok(Step::Source(host));
                }
                let end = cursor.activation_end().map_err(TraceError::Path)?;
                let Some(end) = end else {
                    return Ok(Step::Source(Source::Open { instance: call }));
                };
                let visit = cursor.seek(end).map_err(TraceError::Path)?;
                let mut visit = visit.ok_or(TraceError::Damaged("a call without an end"))?;
                if cursor.depth() > depth + 1 {
                    // It ended with a call whose results it returned.
                    let stack = cursor.stack().map_err(TraceError::Path)?;
                    let inner = stack.get(depth + 1).map_or(0, |inner| inner.entered);
                    let found = cursor.seek(inner.saturating_sub(1));
                    let found = found.map_err(TraceError::Path)?;
                    visit = found.ok_or(TraceError::Damaged("a call without an end"))?;
                }
                let compiled = self.compiled(visit.node)?;
                if !matches!(compiled.code.end, NodeEnd::TailCall { .. }) {
                    break visit;
                }
                callee = cursor.next().map_err(TraceError::Path)?;
            };
            let instance = self.numbered(last.node, last.start)?;
            let compiled = self.compiled(last.node)?;
            let code = &compiled.code;
            match &code.end {
                NodeEnd::Return(values) => {
                    let value = values.get(index as usize);
                    let value = value.ok_or(TraceError::Damaged("a return without values"))?;
                    return Ok(Step::Register(instance, *value));
                }
                NodeEnd::Call { .. } => {
                    let given = self.given(code);
                    let body = self.body(code.function)?;
                    let results = self.program.types[body.function.ty].results.len() as u32;
                    let variable = (given.end + index).saturating_sub(results);
                    if !given.contains(&variable) {
                        return self.written(instance, variable, false);
                    }
                    (call, index) = (instance, variable - given.start);
                }
                // It trapped, or threw.
                _ => return Ok(Step::Source(Source::Open { instance: call })),
            }
        }
    }
}
