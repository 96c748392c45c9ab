//! Compares the results of replacing operators with the results that the replaced operators would
//! have had.

use std::collections::HashSet;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{NodeCode, Observer, Trap};
use afterimage_numeric::{Kind, Scalar, Vector};
use afterimage_program::Program;
use afterimage_wpp::{Node, Segments};
use wasmparser::{Operator, ValType};

use super::alike::{Module, Replaced};
use super::{DiffError, Side};
use afterimage_replay::steps::{Follower, Plan, Plans, StepsError, Value};

/// The effect of replacing one operator with another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The number of executions of the replacing operator.
    pub executed: u64,
    /// The number of executions in which the other operator would have had a different result.
    /// `None` if unknown, if either operator does not compute from its operands alone, or if the
    /// operators have different types.
    pub otherwise: Option<u64>,
    /// The first of these executions, if known.
    pub first: Option<Otherwise>,
}

/// An execution in which the other operator would have produced a different result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of the execution's block.
    pub time: u64,
    /// The operands of this execution.
    pub operands: Box<[Value]>,
    /// The result that the other operator would have had.
    pub other: Result<Value, Trap>,
    /// The result of the operator that was executed.
    pub gave: Result<Value, Trap>,
}

impl Otherwise {
    /// Whether the operators are constants. Different constants always have different results.
    pub fn is_of_constants(&self) -> bool {
        self.operands.is_empty()
    }
}

/// Follows a run from beginning to end, and finds the effect of each operator that replaced
/// another. `other` is the module with the other operators. Computes the results of those operators
/// from the operands of this run, so other differences between two runs do not matter. Takes as
/// long as following the run.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn effects<S: Segments>(
    side: Side<'_, S>,
    other: Module<'_>,
    replaced: &[Replaced],
) -> Result<Vec<Effect>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(side.run, (side.log)()?)?;
    let mut plans = Plans::new(side.run);
    let nodes = side.run.path.nodes();
    let mut templates: Vec<Option<Rc<[Site]>>> = vec![None; nodes.len()];
    let own = (side.run.program, side.run.module);
    let mut comparing = Comparing::new(own, other, replaced);
    while let Some(visit) = follower.advance()? {
        let node = &nodes[visit.node];
        if !comparing.functions.contains(&node.function) {
            follower.execute(visit, &mut ())?;
            continue;
        }
        let known = templates[visit.node.index()].clone();
        comparing.template = match known {
            Some(known) => known,
            None => {
                let plan = plans.of(visit.node, &follower)?;
                let code = &follower.machine.codes()[visit.node];
                let made = comparing.template(own.0, node, code, &plan)?;
                templates[visit.node.index()] = Some(Rc::clone(&made));
                made
            }
        };
        if comparing.template.is_empty() {
            follower.execute(visit, &mut ())?;
            continue;
        }
        comparing.start = visit.start;
        follower.execute(visit, &mut comparing)?;
    }
    Ok(comparing.effects)
}

/// An operator that computes from its operands alone.
#[derive(Clone, Copy, Debug)]
enum Pure {
    Scalar(Scalar),
    Vector(Vector, u128),
    /// A constant, with this value.
    Constant(Value),
}

impl Pure {
    fn of(operator: &Operator<'_>) -> Option<Self> {
        let constant = |ty, low| Self::Constant(Value { ty, bits: (low, 0) });
        Some(match *operator {
            Operator::I32Const { value } => constant(ValType::I32, u64::from(value as u32)),
            Operator::I64Const { value } => constant(ValType::I64, value as u64),
            Operator::F32Const { value } => constant(ValType::F32, u64::from(value.bits())),
            Operator::F64Const { value } => constant(ValType::F64, value.bits()),
            Operator::V128Const { value } => {
                let bits = u128::from_le_bytes(*value.bytes());
                let bits = (bits as u64, (bits >> 64) as u64);
                let ty = ValType::V128;
                Self::Constant(Value { ty, bits })
            }
            _ => match Scalar::of(operator) {
                Some(scalar) => Self::Scalar(scalar),
                None => {
                    let (vector, immediate) = Vector::of(operator)?;
                    Self::Vector(vector, immediate)
                }
            },
        })
    }

    fn types(self) -> (&'static [ValType], ValType) {
        match self {
            Self::Scalar(scalar) => scalar.types(),
            Self::Vector(vector, _) => vector.types(),
            Self::Constant(value) => (&[], value.ty),
        }
    }

    fn eval(self, operands: &[Value]) -> Result<Value, Trap> {
        let (_, ty) = self.types();
        let low = |at: usize| operands.get(at).map_or(0, |value| value.bits.0);
        let bits = match self {
            Self::Constant(value) => return Ok(value),
            Self::Scalar(scalar) => (scalar.eval(low(0), low(1)).map_err(Trap::Numeric)?, 0),
            Self::Vector(vector, immediate) => {
                let mut values = [0; 3];
                for ((value, operand), kind) in
                    values.iter_mut().zip(operands).zip(vector.signature().0)
                {
                    let (low, high) = operand.bits;
                    *value = match kind {
                        Kind::Vector => u128::from(high) << 64 | u128::from(low),
                        Kind::Scalar => u128::from(low),
                    };
                }
                let bits = vector.eval(immediate, values);
                (bits as u64, (bits >> 64) as u64)
            }
        };
        Ok(Value { ty, bits })
    }
}

/// A replaced operator in a node.
#[derive(Clone, Debug)]
struct Site {
    replaced: usize,
    block: u32,
    /// The number of instructions of the node that precede the operator.
    before: usize,
    /// Whether the operator is itself an instruction. If so, it is the next instruction.
    is_instruction: bool,
    compared: Option<Compared>,
}

/// Two operators that compute from the same operands.
#[derive(Clone, Debug)]
struct Compared {
    own: Pure,
    other: Pure,
    operands: Box<[(u32, ValType)]>,
}

struct Comparing<'r> {
    replaced: &'r [Replaced],
    functions: HashSet<FuncId>,
    /// The replacing and the replaced operator, if both compute from their operands alone and have
    /// the same types.
    pure: Vec<Option<(Pure, Pure)>>,
    effects: Vec<Effect>,
    template: Rc<[Site]>,
    start: u64,
    /// The end of the run, if it ended at a replaced operator. That execution counts if it trapped.
    ended: Option<(usize, Option<Otherwise>)>,
}

impl<'r> Comparing<'r> {
    fn new(own: Module<'_>, other: Module<'_>, replaced: &'r [Replaced]) -> Self {
        let pure = |at: &Replaced| {
            let pair = (pure_of(own, at)?, pure_of(other, at)?);
            (pair.0.types() == pair.1.types()).then_some(pair)
        };
        let pure: Vec<_> = replaced.iter().map(pure).collect();
        let effects = pure.iter().map(|pure| Effect {
            otherwise: pure.map(|_| 0),
            ..Effect::default()
        });
        Self {
            effects: effects.collect(),
            functions: replaced.iter().map(|at| at.function).collect(),
            pure,
            replaced,
            template: Rc::default(),
            start: 0,
            ended: None,
        }
    }

    /// Returns the replaced operators of a node.
    fn template<E: std::error::Error + 'static>(
        &self,
        program: &Program,
        node: &Node,
        code: &NodeCode,
        plan: &Plan,
    ) -> Result<Rc<[Site]>, StepsError<E>> {
        let mut sites = Vec::new();
        let function = program.function(node.function);
        let function = function.ok_or(StepsError::NoBody(node.function))?;
        for (block, id) in (0..).zip(&node.blocks) {
            let ops = &function.cfg.blocks[*id].ops;
            let own = (0..)
                .zip(self.replaced)
                .filter(|(_, at)| at.function == node.function && ops.contains(&at.op));
            for (replaced, at) in own {
                let before = plan.instructions_before(u64::from(block), Some(at.op));
                let inst = code.insts.get(before).filter(|inst| inst.op == at.op);
                let mut compared = None;
                if let Some((own, other)) = self.pure[replaced] {
                    let types = own.types().0;
                    let registers = match inst {
                        None => Vec::new(),
                        Some(inst) => {
                            let third = code.vector(before).map(|extra| extra.c);
                            [Some(inst.a), Some(inst.b), third]
                                .into_iter()
                                .flatten()
                                .collect()
                        }
                    };
                    if registers.len() < types.len() {
                        return Err(StepsError::Statement(at.function, at.op));
                    }
                    let operands = registers.into_iter().zip(types.iter().copied());
                    compared = Some(Compared {
                        own,
                        other,
                        operands: operands.collect(),
                    });
                }
                sites.push(Site {
                    replaced,
                    block,
                    before,
                    is_instruction: inst.is_some(),
                    compared,
                });
            }
        }
        Ok(sites.into())
    }

    /// Evaluates an execution of an operator. Returns the difference if the other operator would
    /// have had a different result.
    fn executed(&self, site: &Site, low: &[u64], high: &[u64]) -> Option<Otherwise> {
        let compared = site.compared.as_ref()?;
        let operands = compared.operands.iter().map(|&(register, ty)| {
            let register = register as usize;
            let upper = high.get(register).copied().unwrap_or(0);
            Value::new(ty, (low[register], upper))
        });
        let operands: Box<[Value]> = operands.collect();
        let (gave, other) = (compared.own.eval(&operands), compared.other.eval(&operands));
        (gave != other).then(|| Otherwise {
            number: self.effects[site.replaced].executed + 1,
            time: self.start + u64::from(site.block),
            operands,
            other,
            gave,
        })
    }

    fn add(&mut self, replaced: usize, found: Option<Otherwise>) {
        let effect = &mut self.effects[replaced];
        effect.executed += 1;
        if let Some(found) = found {
            effect.otherwise = effect.otherwise.map(|times| times + 1);
            effect.first.get_or_insert(found);
        }
    }
}

impl Observer for Comparing<'_> {
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.stopped(code, usize::MAX, low, high);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        for site in Rc::clone(&self.template).iter() {
            let is_last = site.is_instruction && site.before == executed;
            if site.before > executed {
                break;
            }
            let found = self.executed(site, low, high);
            if is_last {
                self.ended = Some((site.replaced, found))
            } else {
                self.add(site.replaced, found)
            }
        }
    }

    fn trapped(&mut self, _: usize) {
        if let Some((replaced, found)) = self.ended.take() {
            self.add(replaced, found);
        }
    }
}

fn pure_of((program, bytes): Module<'_>, at: &Replaced) -> Option<Pure> {
    let function = program.function(at.function)?;
    let (_, _, operator) = program.operators(bytes, function).nth(at.op.index())?;
    Pure::of(&operator)
}
