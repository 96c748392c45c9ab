//! Queries a trace and compares its answers with the naive record.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use afterimage_machine::{Code, NodeCode, Operand};
use afterimage_numeric::Kind;
use afterimage_wet::{LeftOut, Reading, Source, TraceError, WholeTrace, Writer};
use afterimage_wpp::InMemory;

use super::epochs::InEpochs;
use super::naive::{Details, Executed, Made, Naive, Wrote};

pub type Trace<'a> = WholeTrace<'a, InMemory, InEpochs>;
type Failure = TraceError<Infallible, Infallible>;

/// Compares everything recorded about the chosen executions in a window of the run. In a partial
/// window, the trace may refuse questions that lead out of the window, but not values. It may also
/// refuse values of functions that are left out.
pub fn compare(
    trace: &Trace<'_>,
    naive: &Naive<'_>,
    window: &RangeInclusive<u64>,
    left_out: &LeftOut,
    chosen: impl Fn(usize) -> bool,
) {
    let whole = *window.start() <= 1 && *window.end() >= trace.path().length();
    let asked = Comparison {
        trace,
        executed: &naive.executed,
        whole,
        left_out,
    };
    for (at, executed) in naive.executed.iter().enumerate() {
        let inside = executed.instance.time <= *window.end() && executed.last >= *window.start();
        if let Some(details) = &executed.details
            && inside
            && chosen(at)
        {
            asked.execution(at, executed, details);
        }
    }
}

struct Comparison<'a, 't> {
    trace: &'a Trace<'t>,
    executed: &'a [Executed],
    whole: bool,
    left_out: &'a LeftOut,
}

impl Comparison<'_, '_> {
    /// Returns an answer, or `None` if the question led out of the window.
    fn answer<T>(&self, answer: Result<T, Failure>, what: impl FnOnce() -> String) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(TraceError::Outside { without: None, .. }) if !self.whole => None,
            Err(TraceError::Outside {
                without: Some(_), ..
            }) if !self.left_out.is_nothing() => None,
            Err(error) => panic!("{}: {error}", what()),
        }
    }

    fn execution(&self, at: usize, executed: &Executed, details: &Details) {
        let instance = executed.instance;
        let compiled = self.trace.compiled(instance.node).expect("a node");
        let code = &compiled.code;
        let place = |what: &str| format!("{what} of execution {at}, {instance:?}");
        let first = code.first_result() as usize;
        let constants = code.variables..code.first_result();
        let results = (0..code.insts.len()).filter(|&inst| code.insts[inst].code.gives());
        let results = results.map(|inst| (first + inst) as u32);
        for register in code
            .inputs
            .iter()
            .copied()
            .chain(constants.clone())
            .chain(results)
        {
            let value = self.trace.value(instance, register);
            let told = || {
                let inst = (register as usize).checked_sub(first);
                let inst = inst.map(|inst| code.insts[inst]);
                place(&format!("register {register} ({inst:?})"))
            };
            if !happened(details, code, register) {
                assert!(value.is_err(), "{} has no value", told());
                continue;
            }
            if self.left_out.has(code.function) && matches!(value, Err(TraceError::Outside { .. }))
            {
                continue;
            }
            let value = value.unwrap_or_else(|error| panic!("{}: {error}", told()));
            let i = match register as usize {
                // The trace has a register for each constant operator.
                i if constants.contains(&register) => {
                    let known = &details.low[i.min(code.variables as usize)..details.first];
                    assert!(known.contains(&value.0), "{}", told());
                    continue;
                }
                i if i >= first => details.first + i - first,
                i => i,
            };
            assert_eq!(value.0, details.low[i], "{}", told());
            if self.vector(code, details, register) {
                assert_eq!(value.1, details.high[i], "{}", told());
            }
        }
        for &variable in &code.inputs {
            let what = || place(&format!("the source of variable {variable}"));
            let source = self.trace.source(instance, variable);
            if let Some(source) = self.answer(source, what) {
                let expected = self.source(details.variables[variable as usize]);
                assert_eq!(source, expected, "{}", what());
                self.earlier(&source, instance.time);
                self.same(&source, details, variable);
            }
        }
        for (inst, wrote) in &details.reads {
            let what = || place(&format!("what instruction {inst} reads"));
            let readings = self.trace.reading(instance, *inst);
            if let Some(readings) = self.answer(readings, what) {
                let found = self.bytes(&readings, wrote.len());
                let expected = wrote.iter().map(|&wrote| self.writer(wrote));
                assert_eq!(found, Vec::from_iter(expected), "{}", what());
            }
        }
        for (inst, wrote) in &details.taken {
            let what = || place(&format!("what {inst:?} takes of a table or a size"));
            let Some(taken) = self.answer(self.trace.taken(instance, *inst), what) else {
                continue;
            };
            let each = taken.iter().flat_map(|taken| {
                let count = taken.elements.max(1) as usize;
                std::iter::repeat_n(taken.writer, count)
            });
            let expected = wrote.iter().map(|&wrote| self.writer(wrote));
            assert_eq!(Vec::from_iter(each), Vec::from_iter(expected), "{}", what());
            let mut parts = taken.windows(2);
            assert!(
                parts.all(|two| two[0].writer != two[1].writer),
                "{}",
                what()
            );
        }
        self.call(executed, code, &place);
    }

    /// Compares an execution's host call, or the call's results.
    fn call(&self, executed: &Executed, code: &NodeCode, place: &dyn Fn(&str) -> String) {
        use afterimage_machine::NodeEnd;
        let instance = executed.instance;
        let called = self.trace.host_call(instance);
        let called = called.unwrap_or_else(|error| panic!("{}: {error}", place("the host call")));
        assert_eq!(called, executed.host_call, "{}", place("the host call"));
        if !matches!(code.end, NodeEnd::Call { .. }) {
            return;
        }
        let results = executed.results.as_deref();
        for index in 0..results.map_or(1, <[_]>::len) {
            let what = || place(&format!("result {index} of the call"));
            let result = self.trace.result(instance, index as u32);
            if let Some(result) = self.answer(result, what) {
                assert_eq!(result, results.map(|r| r[index]), "{}", what());
            }
        }
    }

    /// Whether a register is known to hold a vector. The upper halves of other values are
    /// undefined.
    fn vector(&self, code: &NodeCode, details: &Details, register: u32) -> bool {
        let (by, inst) = match code.source(register) {
            Operand::Constant(_) => return code.wide_constants.iter().any(|c| c.0 == register),
            Operand::Result(inst) => return vector(code.insts[inst].code),
            Operand::Variable(variable) => match details.variables[variable as usize] {
                Made::Result { by, inst } => (by, inst),
                _ => return false,
            },
        };
        let compiled = self.trace.compiled(self.executed[by].instance.node);
        vector(compiled.expect("a node").code.insts[inst].code)
    }

    fn source(&self, made: Made) -> Source {
        let instance = |at: usize| self.executed[at].instance;
        match made {
            Made::Constant(bits) => Source::Constant(bits),
            Made::Zero => Source::Zero,
            Made::Result { by, inst } => Source::Result {
                instance: instance(by),
                inst,
            },
            Made::Argument { first, index } => Source::Argument {
                instance: instance(first),
                index,
            },
            Made::Returned { call, index } => Source::Returned {
                instance: instance(call),
                index,
            },
            Made::Thrown { by } => Source::Thrown {
                instance: instance(by),
            },
        }
    }

    fn writer(&self, wrote: Wrote) -> Writer {
        match wrote {
            Wrote::Initial => Writer::Initial,
            Wrote::Host { call } => Writer::Host { call },
            Wrote::Guest { by, inst, offset } => Writer::Write {
                instance: self.executed[by].instance,
                inst,
                offset,
            },
        }
    }

    /// Returns the writers of `length` bytes.
    fn bytes(&self, readings: &[Reading], length: usize) -> Vec<Writer> {
        let mut writers = Vec::new();
        for reading in readings {
            let count = match readings.len() {
                1 => length as u64,
                _ => reading.length,
            };
            for i in 0..count {
                writers.push(match reading.writer {
                    Writer::Write {
                        instance,
                        inst,
                        offset,
                    } => {
                        let compiled = self.trace.compiled(instance.node).expect("a node");
                        use afterimage_wet::{WriteTo, write_to};
                        let to = write_to(compiled.code.insts[inst].code);
                        let steps = matches!(to, Some(WriteTo::Memory(_)));
                        Writer::Write {
                            instance,
                            inst,
                            offset: offset + if steps { i as u8 } else { 0 },
                        }
                    }
                    other => other,
                });
            }
        }
        writers
    }

    /// Checks that a definition precedes its use.
    fn earlier(&self, source: &Source, time: u64) {
        match source {
            Source::Result { instance, .. }
            | Source::Returned { instance, .. }
            | Source::Thrown { instance }
            | Source::Open { instance } => assert!(instance.time < time, "{source:?}"),
            Source::Argument { instance, .. } => assert!(instance.time <= time, "{source:?}"),
            Source::Constant(_) | Source::Zero => {}
        }
    }

    /// Checks that a value is the same at both ends of a dependence.
    fn same(&self, source: &Source, details: &Details, variable: u32) {
        if let Source::Result { instance, inst } = *source {
            let compiled = self.trace.compiled(instance.node).expect("a node");
            let register = compiled.code.first_result() + inst as u32;
            let given = self.trace.value(instance, register);
            if let Some(given) = self.answer(given, || format!("{source:?}")) {
                assert_eq!(given.0, details.low[variable as usize]);
            }
        }
    }
}

/// Whether the result of an instruction is a vector.
fn vector(code: Code) -> bool {
    match code {
        Code::Vector(vector) => vector.signature().1 == Kind::Vector,
        Code::LoadVector(_) | Code::SelectVector => true,
        _ => false,
    }
}

/// Whether the register's instruction was executed, if it has one.
fn happened(details: &Details, code: &NodeCode, register: u32) -> bool {
    let inst = register.checked_sub(code.first_result());
    let stopped = details.stopped.unwrap_or(usize::MAX);
    inst.is_none_or(|inst| (inst as usize) < stopped)
}
