//! Makes templates, which list the data to report about a node's statements when the node is
//! executed.

use afterimage_ids::{EntityRef, FuncId, OpId};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd};
use afterimage_matching::Class;
use rustc_hash::FxHashMap;

use super::code::OperatorFacts;
use super::take::{Gave, Listen, StatementSite, Taken};
use afterimage_replay::steps::{Plan, PlanKind};

/// The data to report about an executed statement.
#[derive(Clone, Copy, Debug)]
enum Reported {
    /// The value in this register.
    Register(u32),
    /// The condition in this register, together with the compared operands.
    Truth(u32, Compared),
    /// Only the fact that the statement was executed.
    Nothing,
}

/// The registers that a test compares. Constants are left out, because optimisers write them in
/// several ways.
#[derive(Clone, Copy, Debug)]
struct Compared(u32, Option<u32>);

/// The registers of up to three operands.
#[derive(Clone, Copy, Debug, Default)]
struct Operands {
    registers: [u32; 3],
    count: u8,
    /// The first register of the node that holds a constant, and the first register after the
    /// constants.
    constants: (u32, u32),
}

impl Operands {
    /// Returns the operands of an instruction that computes numbers.
    fn of(code: &NodeCode, inst: &Inst) -> Self {
        let count = match inst.code {
            Code::Scalar(_) | Code::Select => inst.code.operands() as u8,
            _ => 0,
        };
        Self {
            registers: [inst.a, inst.b, inst.c],
            count,
            constants: (code.variables, code.first_result()),
        }
    }

    fn taken(&self, low: &[u64]) -> Taken {
        let mut taken = Taken {
            count: self.count,
            ..Taken::default()
        };
        let registers = &self.registers[..usize::from(self.count)];
        for (at, register) in registers.iter().enumerate() {
            taken.values[at] = low[*register as usize];
            let is_constant = (self.constants.0..self.constants.1).contains(register);
            taken.variables |= u8::from(!is_constant) << at;
        }
        taken
    }
}

#[derive(Clone, Copy, Debug)]
struct TemplateStep {
    /// The number of instructions that must have been executed before the statement.
    after: u32,
    statement: u32,
    block: u32,
    from: Reported,
}

/// The data to report about a node's statements.
#[derive(Debug, Default)]
pub(super) struct Template {
    told: Vec<TemplateStep>,
    /// The operands of each step in `told`, if [`Listen::TAKEN`] is set.
    operands: Vec<Operands>,
    /// The statement of each instruction; `u32::MAX` for none.
    of_inst: Vec<u32>,
    /// The call that ends the node.
    pub call: Option<OpId>,
    /// Whether the node has a statement with a number.
    pub numbered: bool,
}

impl Template {
    /// Reports the values of the statements covered by the first `executed` instructions. `low`
    /// contains the node's registers; `start` is the time of its first block.
    #[inline(always)]
    pub fn tell<L: Listen>(&self, listener: &mut L, start: u64, executed: usize, low: &[u64]) {
        for (at, told) in self.told.iter().enumerate() {
            if told.after as usize > executed {
                break;
            }
            let taken = if L::TAKEN {
                self.operands[at].taken(low)
            } else {
                Taken::default()
            };
            let (value, operands) = match told.from {
                Reported::Register(register) => (low[register as usize], None),
                Reported::Nothing => (0, None),
                Reported::Truth(register, Compared(a, b)) => {
                    let a = low[a as usize];
                    // Optimisers may exchange operands. The versions may also place the objects to
                    // which operands point at different addresses.
                    let operands = b.map_or(a, |b| a.abs_diff(low[b as usize]));
                    (low[register as usize], Some(operands))
                }
            };
            let gave = Gave {
                value,
                operands,
                taken,
            };
            listener.gave(told.statement, gave, start + u64::from(told.block));
        }
    }

    /// Returns the statement of an instruction.
    #[inline(always)]
    pub fn statement(&self, inst: usize) -> Option<u32> {
        let known = self.of_inst.get(inst).copied();
        known.filter(|known| *known != u32::MAX)
    }
}

/// Makes the template of a node.
pub(super) fn make<L: Listen>(
    code: &NodeCode,
    plan: &Plan,
    (function, context): (FuncId, u32),
    known: &[OperatorFacts],
    numbers: &mut FxHashMap<(u32, OpId), u32>,
    listener: &mut L,
) -> Template {
    let mut template = Template {
        told: Vec::new(),
        operands: Vec::new(),
        of_inst: vec![u32::MAX; code.insts.len()],
        call: None,
        numbered: false,
    };
    for item in &plan.items {
        let Some(operator) = known.get(item.op.index()) else {
            continue;
        };
        let next = numbers.len() as u32;
        let number = *numbers.entry((context, item.op)).or_insert(next);
        if number == next {
            let place = StatementSite {
                function,
                op: item.op,
            };
            listener.begin(place, context, operator.class);
        }
        template.numbered |= listener.is_known(number);
        let mut tell = |after: usize, from, operands: Operands| {
            template.told.push(TemplateStep {
                after: after as u32,
                statement: number,
                block: item.block,
                from,
            });
            if L::TAKEN {
                template.operands.push(operands);
            }
        };
        let none = Operands::default();
        match item.kind {
            PlanKind::Inst(at) => {
                template.of_inst[at] = number;
                let inst = &code.insts[at];
                let register = match inst.code {
                    _ if inst.code.gives() => code.first_result() + at as u32,
                    Code::Store(_) | Code::StoreVector(_) => inst.b,
                    _ if inst.code.operands() > 0 => inst.a,
                    _ => {
                        tell(at + 1, Reported::Nothing, none);
                        continue;
                    }
                };
                tell(
                    at + 1,
                    match operator.class {
                        Class::Test | Class::Branch => {
                            Reported::Truth(register, decided_by(code, known, register))
                        }
                        _ => Reported::Register(register),
                    },
                    Operands::of(code, inst),
                );
            }
            PlanKind::Call => {
                // After a tail call, the caller is no longer open when the callee begins. So the
                // callee stands alone.
                if let NodeEnd::Call { .. } = code.end {
                    template.call = Some(item.op);
                }
                let arguments = match &code.end {
                    NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => {
                        arguments
                    }
                    _ => continue,
                };
                if arguments.is_empty() {
                    tell(code.insts.len(), Reported::Nothing, none);
                }
                for &argument in arguments {
                    tell(code.insts.len(), Reported::Register(argument), none);
                }
            }
            PlanKind::Jump | PlanKind::Throw | PlanKind::Unreachable => {}
        }
    }
    template
}

/// Returns the instruction of the node that defines a register, if any.
fn giver(code: &NodeCode, register: u32) -> Option<&Inst> {
    let at = register.checked_sub(code.first_result())?;
    code.insts.get(at as usize)
}

/// Returns the operands that a test compares.
fn operands(code: &NodeCode, test: &Inst) -> Compared {
    let constants = code.variables..code.first_result();
    match test.code.operands() {
        1 => Compared(test.a, None),
        _ if constants.contains(&test.b) => Compared(test.a, None),
        _ if constants.contains(&test.a) => Compared(test.b, None),
        _ => Compared(test.a, Some(test.b)),
    }
}

/// Returns the operands of the test that decides a condition, or the condition itself if the node
/// has no test for it. Unoptimised code first converts a condition to 0 or 1, and may negate it.
fn decided_by(code: &NodeCode, known: &[OperatorFacts], condition: u32) -> Compared {
    let known_of = |inst: &Inst| known.get(inst.op.index()).copied();
    let is_test = |register: u32| {
        let known = giver(code, register).and_then(known_of);
        known.is_some_and(|known| known.class == Class::Test || known.is_and)
    };
    let mut register = condition;
    while let Some(inst) = giver(code, register) {
        let Some(known) = known_of(inst) else { break };
        match (known.class, inst.code.operands()) {
            (Class::Test, 1) if is_test(inst.a) => register = inst.a,
            (Class::Test, _) => return operands(code, inst),
            _ if known.is_and && is_test(inst.a) => register = inst.a,
            _ => break,
        }
    }
    Compared(register, None)
}
