//! Computes values from stored data.

use std::collections::HashMap;

use afterimage_machine::{Code, Inst, NodeCode, Operand, Register};
use afterimage_numeric::Kind;
use afterimage_wpp::Segments;
use rustc_hash::FxBuildHasher;

use super::source::{Source, Step};
use super::{Compiled, Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::model::{Event, ReadFrom, read_from};

/// The bits of a value. The second number is the upper half of a vector.
pub type Bits = (u64, u64);

/// A register of an execution.
pub(super) type Key = (Instance, Register);

/// The maximum number of evaluations for one value. The builder stores enough values that a
/// computation needs far fewer evaluations.
const MOST: usize = 1 << 20;

/// The maximum number of computed values that a trace keeps for later computations. They take a few
/// megabytes.
const RECENT: usize = 1 << 17;

/// Intermediate results of computing values.
#[derive(Debug, Default)]
pub struct ComputedValues {
    values: HashMap<Key, Bits, FxBuildHasher>,
    /// The values that are needed before the current value can be computed.
    missing: Vec<Key>,
}

impl ComputedValues {
    /// Returns a value if it is known. Otherwise, records it as missing.
    pub(super) fn get(&mut self, instance: Instance, register: Register) -> Option<Bits> {
        let key = (instance, register);
        let known = self.values.get(&key).copied();
        if known.is_none() {
            self.missing.push(key);
        }
        known
    }
}

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the value of a register in an execution. It is a variable's value when the execution
    /// begins, a constant, or the result of an instruction.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn value(&self, instance: Instance, register: Register) -> Result<Bits, Failure<S, E>> {
        let mut known = self.recent.take();
        if known.values.len() > RECENT {
            known.values.clear();
        }
        let value = self.value_knowing(instance, register, &mut known);
        self.recent.replace(known);
        value
    }

    /// Works like [`value`](Self::value), but for one of several related values. Intermediate
    /// results stay in `known`, which takes memory but avoids computing them again.
    ///
    /// # Errors
    /// Returns the errors of [`value`](Self::value).
    pub fn value_knowing(
        &self,
        instance: Instance,
        register: Register,
        known: &mut ComputedValues,
    ) -> Result<Bits, Failure<S, E>> {
        let wanted = (instance, register);
        let mut stack = vec![wanted];
        let mut evaluations = 0;
        while let Some(&key) = stack.last() {
            if known.values.contains_key(&key) {
                stack.pop();
                continue;
            }
            evaluations += 1;
            if evaluations > MOST {
                return Err(TraceError::Damaged("values that depend on too many others"));
            }
            known.missing.clear();
            match self.attempt(key, known)? {
                Some(value) => {
                    known.values.insert(key, value);
                    stack.pop();
                }
                None => {
                    // A value depends only on values that are earlier, in time or in the node.
                    let place = |(instance, register): Key| (instance.time, register);
                    let earlier = known
                        .missing
                        .iter()
                        .all(|&missing| place(missing) < place(key));
                    if known.missing.is_empty() || !earlier {
                        return Err(TraceError::Damaged("a value that depends on itself"));
                    }
                    stack.append(&mut known.missing);
                }
            }
        }
        let value = known.values.get(&wanted).copied();
        value.ok_or(TraceError::Damaged("a value that does not exist"))
    }

    /// Computes a value from known values. Returns `None` if some value is missing.
    fn attempt(&self, key: Key, known: &mut ComputedValues) -> Result<Option<Bits>, Failure<S, E>> {
        let (instance, register) = key;
        let compiled = self.compiled(instance.node)?;
        let code = &compiled.code;
        match code.source(register) {
            Operand::Constant(low) => {
                let mut wide = code.wide_constants.iter();
                let wide = wide.find(|(constant, _)| *constant == register);
                Ok(Some((low, wide.map_or(0, |&(_, high)| high))))
            }
            Operand::Variable(variable) => {
                self.check_kept(instance)?;
                if let Some(input) = compiled.model.of_variable(variable)
                    && let Some(kept) = self.kept(instance, input)?
                {
                    return Ok(Some(kept));
                }
                match self.step(instance, variable)? {
                    Step::Register(earlier, register, _) => Ok(known.get(earlier, register)),
                    Step::Thrown { thrower, back, .. } => self.thrown(thrower, back).map(Some),
                    Step::Source(Source::Constant(bits)) => Ok(Some((bits, 0))),
                    Step::Source(Source::Zero) => Ok(Some((0, 0))),
                    Step::Source(Source::Returned { instance, index }) => {
                        let result = self.host_result(instance, index)?;
                        let unknown = TraceError::Damaged("a result that the host did not return");
                        result.map(Some).ok_or(unknown)
                    }
                    // An argument is stored only where an execution reads it. If none did, the log
                    // still has it.
                    Step::Source(Source::Argument { instance, index }) => {
                        let function = self.compiled(instance.node)?.code.function;
                        let unknown = TraceError::Damaged("a value that was not kept");
                        let call = self.entries_before(instance)?;
                        let argument = self.host()?.argument(call, function, index);
                        argument.map(Some).ok_or(unknown)
                    }
                    Step::Source(_) | Step::Caught(_) => {
                        Err(TraceError::Damaged("a value that was not kept"))
                    }
                }
            }
            Operand::Result(position) => {
                self.executed(instance, position)?;
                let inst = &code.insts[position];
                match read_from(inst.code) {
                    Some(from) => self.read(instance, &compiled, position, from, known),
                    None => self.pure(instance, code, position, known),
                }
            }
        }
    }

    /// Returns the number, from 1, of the host call with which an execution ends, or `None` if it
    /// ends otherwise.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn host_call(&self, instance: Instance) -> Result<Option<u64>, Failure<S, E>> {
        let compiled = self.compiled(instance.node)?;
        let kept = self.kept(instance, compiled.model.of_event(Event::HostCall))?;
        Ok(kept.map(|(call, _)| call))
    }

    fn host_result(&self, call: Instance, index: u32) -> Result<Option<Bits>, Failure<S, E>> {
        let Some(number) = self.host_call(call)? else {
            return Ok(None);
        };
        let call = self.host()?.get(number)?;
        Ok(call.and_then(|call| call.result(index)))
    }

    /// Returns a result of the call with which an execution ends, or `None` if the call did not
    /// return.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn result(&self, call: Instance, index: u32) -> Result<Option<Bits>, Failure<S, E>> {
        match self.returned(call, index)? {
            Step::Register(instance, register, _) => self.value(instance, register).map(Some),
            Step::Thrown { thrower, back, .. } => self.thrown(thrower, back).map(Some),
            Step::Source(Source::Returned { instance, index }) => self.host_result(instance, index),
            Step::Source(_) | Step::Caught(_) => Ok(None),
        }
    }

    /// Returns a value that a function returned because the function's own label caught the value.
    /// `back` is the number of values that follow this value.
    fn thrown(&self, thrower: Instance, back: u64) -> Result<Bits, Failure<S, E>> {
        let compiled = self.compiled(thrower.node)?;
        let column = self.column(thrower, compiled.model.of_event(Event::Returned))?;
        let cuts = column.view().and_then(|column| column.cuts.as_ref());
        let found = match cuts {
            Some(cuts) => cuts.before_last(thrower.number, back, &self.blocks)?,
            None => None,
        };
        found.ok_or(TraceError::Damaged("a value that was not kept"))
    }

    /// Returns the number of an execution's instructions that were executed, if the run ended
    /// inside the execution.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn stopped(&self, instance: Instance) -> Result<Option<u64>, Failure<S, E>> {
        let node = self.path.nodes().get(instance.node);
        let length = node.map_or(0, |node| node.length());
        // Only the last execution of the run may be incomplete.
        if instance.time.saturating_add(length) <= self.path.length() {
            return Ok(None);
        }
        let compiled = self.compiled(instance.node)?;
        let stopped = self.kept(instance, compiled.model.of_event(Event::Stopped))?;
        Ok(stopped.map(|(executed, _)| executed))
    }

    /// Returns an error for an instruction that was not executed because the run ended before it.
    pub(super) fn executed(
        &self,
        instance: Instance,
        position: usize,
    ) -> Result<(), Failure<S, E>> {
        match self.stopped(instance)? {
            Some(executed) if position as u64 >= executed => Err(TraceError::NotExecuted),
            _ => Ok(()),
        }
    }

    /// Returns the value of an input, if it is stored.
    pub(super) fn kept(
        &self,
        instance: Instance,
        input: usize,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        let column = self.column(instance, input)?;
        let cuts = column.view().and_then(|column| column.cuts.as_ref());
        Ok(match cuts {
            Some(cuts) => cuts.at(instance.number, &self.blocks)?,
            None => None,
        })
    }

    fn read(
        &self,
        instance: Instance,
        compiled: &Compiled,
        position: usize,
        from: ReadFrom,
        known: &mut ComputedValues,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        self.check_kept(instance)?;
        let input = compiled.model.of_read(position);
        if let Some(kept) = self.kept(instance, input)? {
            return Ok(Some(kept));
        }
        match from {
            ReadFrom::Memory => self.loaded(instance, compiled, position, known),
            ReadFrom::Global => {
                self.global(instance, &compiled.code.insts[position], position, known)
            }
            ReadFrom::Elsewhere => Err(TraceError::Damaged("a value that was not kept")),
        }
    }

    fn global(
        &self,
        instance: Instance,
        inst: &Inst,
        position: usize,
        known: &mut ComputedValues,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        let unknown = TraceError::Damaged("a global that nothing wrote");
        let reading = self.reading(instance, position)?;
        let writer = reading.first().ok_or(unknown)?.writer;
        match writer {
            super::Writer::Initial => {
                let global = self.initial.globals.get(inst.immediate as usize);
                let global = global.ok_or(TraceError::Damaged("a global that does not exist"))?;
                Ok(Some(*global))
            }
            super::Writer::Host { .. } => Err(TraceError::Damaged("a value that was not kept")),
            super::Writer::Write { instance, inst, .. } => {
                let compiled = self.compiled(instance.node)?;
                Ok(known.get(instance, compiled.code.insts[inst].a))
            }
        }
    }

    /// Returns the result of an instruction that does not access memory.
    fn pure(
        &self,
        instance: Instance,
        code: &NodeCode,
        position: usize,
        known: &mut ComputedValues,
    ) -> Result<Option<Bits>, Failure<S, E>> {
        if let Code::Scalar(scalar) = code.insts[position].code {
            let inst = &code.insts[position];
            let a = known.get(instance, inst.a);
            let b = match scalar.arity() {
                2 => known.get(instance, inst.b),
                _ => Some((0, 0)),
            };
            let (Some((a, _)), Some((b, _))) = (a, b) else {
                return Ok(None);
            };
            let value = scalar.eval(a, b).map_err(|_| TraceError::Trapped)?;
            return Ok(Some((value, 0)));
        }
        Ok(self.without_trap(instance, code, position, known))
    }

    /// Returns the result of an instruction that cannot trap.
    fn without_trap(
        &self,
        instance: Instance,
        code: &NodeCode,
        position: usize,
        known: &mut ComputedValues,
    ) -> Option<Bits> {
        let inst = &code.insts[position];
        let mut low = |register| Some(known.get(instance, register)?.0);
        let number = match inst.code {
            Code::Select | Code::SelectVector => {
                let chosen = match low(inst.c)? as u32 {
                    0 => inst.b,
                    _ => inst.a,
                };
                return known.get(instance, chosen);
            }
            Code::RefIsNull => u64::from(low(inst.a)? == 0),
            Code::Vector(vector) => {
                let extra = code.vector(position)?;
                let (kinds, result) = vector.signature();
                let mut operands = [0; 3];
                let from = [inst.a, inst.b, extra.c];
                for ((operand, kind), register) in operands.iter_mut().zip(kinds).zip(from) {
                    let (low, high) = known.get(instance, register)?;
                    *operand = match kind {
                        Kind::Scalar => u128::from(low),
                        Kind::Vector => u128::from(low) | u128::from(high) << 64,
                    };
                }
                let value = vector.eval(extra.immediate, operands);
                return Some(match result {
                    Kind::Scalar => (value as u64, 0),
                    Kind::Vector => (value as u64, (value >> 64) as u64),
                });
            }
            // Other instructions have no result.
            _ => 0,
        };
        Some((number, 0))
    }
}
