//! Takes the machine along the path, and compares its registers with the values that the engine's
//! debugger showed.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Code, NodeCode, NodeEnd, Observer, Register};
use afterimage_program::{NO_HEIGHT, Slots};
use afterimage_trace::{Ending, RawValue};

use super::engine::{self, Step, steps};
use crate::harness::Recording;
use crate::stored::Stored;

/// Checks that the machine and the engine agree on every operand, result, local and branch.
pub fn agree(recording: &Recording, stored: &Stored) {
    // A run stopped from outside would not stop here.
    if matches!(
        recording.ending(),
        Ending::Interrupted { .. } | Ending::StackOverflow
    ) {
        return;
    }
    let steps = steps(recording);
    let mut machine = stored.machine(recording);
    let mut comparison = Comparison {
        recording,
        stored,
        steps: &steps,
        at: 0,
        node: NodeId::new(0),
        functions: HashMap::new(),
        values: 0,
    };
    let mut cursor = stored.path.cursor();
    while let Some(visit) = cursor.next().expect("a step") {
        let stepped = machine.step(visit.node, visit.length, &mut comparison);
        stepped.unwrap_or_else(|error| panic!("{error}"));
        if comparison.is_over() {
            return;
        }
    }
    let (count, values) = (steps.len(), comparison.values);
    comparison.pass_markers();
    assert_eq!(
        comparison.at,
        count,
        "the engine went on, {}",
        recording.ending()
    );
    assert!(values >= count / 4, "{values} values of {count} operators");
}

/// The facts about a function.
struct Function {
    /// The offsets of its operators.
    offsets: Vec<u32>,
    /// For each operator, whether it returns explicitly.
    returns: Vec<bool>,
    slots: Slots,
}

struct Comparison<'a> {
    recording: &'a Recording,
    stored: &'a Stored,
    steps: &'a [Step],
    /// The number of steps compared.
    at: usize,
    /// The current node.
    node: NodeId,
    functions: HashMap<FuncId, Rc<Function>>,
    /// The number of values compared.
    values: usize,
}

/// The registers of an execution.
#[derive(Clone, Copy)]
struct Bank<'a> {
    low: &'a [u64],
    high: &'a [u64],
}

impl Bank<'_> {
    fn get(self, register: Register) -> (u64, u64) {
        let register = register as usize;
        let high = self.high.get(register).copied();
        (self.low[register], high.unwrap_or(0))
    }
}

/// Whether a value of the engine has these bits.
fn same(value: &RawValue, (low, high): (u64, u64)) -> bool {
    match *value {
        RawValue::I32(value) => value as u32 == low as u32,
        RawValue::I64(value) => value as u64 == low,
        RawValue::F32(bits) => bits == low as u32,
        RawValue::F64(bits) => bits == low,
        RawValue::V128(bits) => bits == u128::from(low) | u128::from(high) << 64,
        RawValue::NullRef => low == 0,
        RawValue::OpaqueRef => low != 0,
    }
}

/// Returns the registers of an operator's operands, topmost last. For an atomic operator with
/// several instructions, these are the operands that they do not compute themselves.
fn operands(code: &NodeCode, position: usize) -> Vec<Register> {
    let inst = &code.insts[position];
    let own = (0..).zip(&code.insts).filter(|(_, one)| one.op == inst.op);
    let own = Vec::from_iter(own);
    if let [(first, _), _, ..] = own[..] {
        let all = own
            .iter()
            .flat_map(|(_, one)| [one.a, one.b, one.c].into_iter().take(one.code.operands()));
        let mut taken = Vec::new();
        for register in all.filter(|&register| register < code.first_result() + first) {
            if !taken.contains(&register) {
                taken.push(register);
            }
        }
        return taken;
    }
    let third = match inst.code {
        Code::Vector(_) => code.vector(position).map_or(0, |extra| extra.c),
        _ => inst.c,
    };
    let all = [inst.a, inst.b, third];
    all[..inst.code.operands()].to_vec()
}

impl Comparison<'_> {
    /// Whether all of the engine's steps were compared, although the run is longer.
    fn is_over(&self) -> bool {
        self.at == self.steps.len() && self.at == engine::MOST
    }

    fn function(&mut self, id: FuncId) -> Rc<Function> {
        let Recording { program, bytes, .. } = self.recording;
        let known = self.functions.entry(id).or_insert_with(|| {
            let function = program.function(id).expect("a function");
            let operators = Vec::from_iter(program.operators(bytes, function));
            let returns = operators.iter();
            let returns = returns.map(|(.., op)| matches!(op, wasmparser::Operator::Return));
            Rc::new(Function {
                returns: returns.collect(),
                offsets: operators.iter().map(|(_, offset, _)| offset.0).collect(),
                slots: Slots::build(program, bytes, function).expect("slots"),
            })
        });
        Rc::clone(known)
    }

    /// Skips operators that only mark the beginning or end of others and may belong to any block.
    fn pass_markers(&mut self) {
        while let Some(step) = self.steps.get(self.at) {
            let imports = self.recording.program.imports.len() as u32;
            let known = self.function(FuncId::from_u32(imports + step.function));
            let op = known.offsets.binary_search(&step.offset);
            let op = OpId::new(op.expect("an operator"));
            if known.slots.heights[op] != NO_HEIGHT {
                return;
            }
            self.at += 1;
        }
    }

    fn check(&mut self, values: &[RawValue], registers: &[Register], bank: Bank<'_>, what: &str) {
        assert_eq!(values.len(), registers.len(), "{what}");
        for (value, &register) in values.iter().zip(registers) {
            let bits = bank.get(register);
            assert!(
                same(value, bits),
                "{what}: the engine has {value:?}, the machine {bits:x?}"
            );
            self.values += 1;
        }
    }

    /// Compares the current node's operators. Of their instructions, only the first `executed` were
    /// executed.
    fn compare(&mut self, code: &NodeCode, executed: usize, bank: Bank<'_>) {
        let known = self.function(code.function);
        let program = &self.recording.program;
        let function = program.function(code.function).expect("a function");
        let position = code.function.as_u32() - program.imports.len() as u32;
        let mut insts: HashMap<OpId, usize> = HashMap::new();
        for one in &code.insts {
            insts.extend(code.inst_of(one.op).map(|inst| (one.op, inst)));
        }
        let blocks = &self.stored.path.nodes()[self.node].blocks;
        let mut first = true;
        // The result of the previous operator.
        let mut made: Option<Register> = None;
        for (i, &block) in blocks.iter().enumerate() {
            let ops = function.cfg.blocks[block].ops.clone();
            for op in (ops.start.as_u32()..ops.end.as_u32()).map(OpId::from_u32) {
                self.pass_markers();
                let (Some(step), at) = (self.steps.get(self.at), op.index()) else {
                    return;
                };
                let height = known.slots.heights[op];
                let inst = insts.get(&op).copied();
                let what = format!("operator @{:#x}", known.offsets[at]);
                if (step.function, step.offset) != (position, known.offsets[at]) {
                    let computes = inst.is_some_and(|inst| inst < executed);
                    assert!(!computes, "{what} is not where the engine goes");
                    first &= height == NO_HEIGHT;
                    continue;
                }
                self.at += 1;
                let stack = &step.stack;
                assert_eq!(stack.len(), height as usize, "{what}");
                if std::mem::take(&mut first) {
                    let variables = Vec::from_iter(0..known.slots.of_slot(height));
                    let (locals, slots) = variables.split_at(known.slots.locals.len());
                    self.check(&step.locals, locals, bank, &format!("locals before {what}"));
                    self.check(stack, slots, bank, &format!("the stack before {what}"));
                }
                if let Some(register) = made {
                    let top = &stack[stack.len() - 1..];
                    self.check(top, &[register], bank, &format!("the result before {what}"));
                }
                let last = i + 1 == blocks.len() && op.as_u32() + 1 == ops.end.as_u32();
                let taken = match (inst, &code.end) {
                    (Some(inst), _) => operands(code, inst),
                    (
                        None,
                        NodeEnd::Call {
                            arguments, index, ..
                        },
                    )
                    | (
                        None,
                        NodeEnd::TailCall {
                            arguments, index, ..
                        },
                    ) if last => arguments.iter().chain(index).copied().collect(),
                    (None, NodeEnd::Return(values)) if last && known.returns[at] => values.to_vec(),
                    (None, NodeEnd::Throw { values, .. }) if last => values.to_vec(),
                    _ => Vec::new(),
                };
                let top = &stack[stack.len() - taken.len()..];
                self.check(top, &taken, bank, &what);
                made = inst
                    .filter(|&inst| inst < executed && code.insts[inst].code.gives())
                    .map(|inst| code.first_result() + inst as u32);
            }
        }
    }
}

impl Observer for Comparison<'_> {
    fn node(&mut self, node: NodeId, _: &NodeCode) {
        self.node = node;
    }

    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.compare(code, code.insts.len(), Bank { low, high });
    }

    fn stopped(&mut self, code: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.compare(code, executed, Bank { low, high });
    }
}
