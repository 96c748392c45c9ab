//! Numbers the pure expressions of a function. Values that are computed in the same way from the
//! same values get the same number.

use std::hash::Hash;

use afterimage_ids::{BlockId, EntityRef, OpId, StmtId, ValueId};
use afterimage_program::{Effect, Function, Program, Ssa, ValueDef};
use rustc_hash::FxHashMap;
use wasmparser::Operator;

use super::accesses::Described;

/// An expression of a function, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Expression(u32);

/// The maximum number of distinct leaves. In an expression with more leaves, the operands of the
/// operator count as leaves, however they are computed.
const MOST_LEAVES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    /// A constant.
    Constant(String),
    /// A value that is not computed from other values alone, such as a parameter, a loaded or
    /// returned value, or a φ.
    Leaf(ValueId),
    /// An operator with its immediates, and its operands.
    Computed(String, Box<[Expression]>),
}

/// The place where a value is redefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    /// The function's entry only.
    Entry,
    /// The beginning of this block.
    Block(BlockId),
    /// This operator.
    Operator(OpId),
}

/// A load or store of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub op: OpId,
    pub block: BlockId,
    pub memory: u32,
    /// The address operand.
    pub base: Expression,
    /// The address of the first byte accessed, if it is a constant.
    pub address: Option<u64>,
    pub offset: u64,
    pub bytes: u64,
    pub is_store: bool,
}

/// The expressions of a function, as value numbers. A number is valid until one of its leaves gets
/// a new value.
pub(super) struct Expressions {
    shapes: Vec<Shape>,
    leaves: Vec<Box<[ValueId]>>,
    of_value: Vec<Option<Expression>>,
    /// The addresses that are constants, by expression.
    constants: FxHashMap<Expression, u64>,
    /// The loads and stores, in order.
    pub accesses: Vec<Access>,
    numbers: FxHashMap<Shape, Expression>,
}

impl Expressions {
    /// Finds the expressions of a function. O(statements), unless expressions are shared deeply.
    pub fn of(program: &Program, module: &[u8], function: &Function, ssa: &Ssa) -> Self {
        let mut all = Self {
            shapes: Vec::new(),
            leaves: Vec::new(),
            of_value: vec![None; ssa.values.len()],
            constants: FxHashMap::default(),
            accesses: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let mut constants: FxHashMap<OpId, ValueId> = FxHashMap::default();
        for (value, known) in ssa.values.iter() {
            if let ValueDef::Constant(op) = known.def {
                constants.insert(op, value);
            }
        }
        let mut statements = ssa.statements.iter().peekable();
        for (op, _, operator) in program.operators(module, function) {
            if let Some(&value) = constants.get(&op) {
                let shape = Shape::Constant(format!("{operator:?}"));
                let number = all.number(shape, Box::default());
                all.of_value[value.index()] = Some(number);
                if let Some(address) = address_of(&operator) {
                    all.constants.insert(number, address);
                }
            }
            while let Some((id, statement)) = statements.next_if(|(_, s)| s.op <= op) {
                if statement.op == op {
                    all.statement(ssa, id, &operator);
                }
            }
        }
        all
    }

    fn statement(&mut self, ssa: &Ssa, id: StmtId, operator: &Operator<'_>) {
        let statement = &ssa.statements[id];
        let operands = ssa.operands(id);
        if let Some(described) = Described::of(operator)
            && let Some(&address) = operands.first()
        {
            let base = self.of_value(address);
            let constant = self.constants.get(&base);
            self.accesses.push(Access {
                op: statement.op,
                block: statement.block,
                memory: described.memory,
                base,
                address: constant.and_then(|a| a.checked_add(described.offset)),
                offset: described.offset,
                bytes: described.bytes,
                is_store: described.is_store,
            });
        }
        if statement.effect != Effect::None {
            return;
        }
        let first = statement.results.start;
        if statement.results.end.as_u32() != first.as_u32() + 1 {
            return;
        }
        let made: Box<[Expression]> = operands.iter().map(|&v| self.of_value(v)).collect();
        let mut leaves = self.all_leaves(&made);
        let mut made = made;
        if leaves.len() > MOST_LEAVES {
            // With too many leaves, the operands themselves become leaves.
            let values = operands.iter();
            made = values
                .map(|&v| self.number(Shape::Leaf(v), [v].into()))
                .collect();
            leaves = self.all_leaves(&made);
        }
        let shape = Shape::Computed(format!("{operator:?}"), made);
        let number = self.number(shape, leaves.into());
        self.of_value[first.index()] = Some(number);
    }

    /// Returns the leaves of all these expressions, without duplicates.
    fn all_leaves(&self, expressions: &[Expression]) -> Vec<ValueId> {
        let leaves = expressions.iter().flat_map(|&one| self.leaves(one));
        let mut leaves = Vec::from_iter(leaves.copied());
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    fn number(&mut self, shape: Shape, leaves: Box<[ValueId]>) -> Expression {
        let next = Expression(self.shapes.len() as u32);
        let number = *self.numbers.entry(shape.clone()).or_insert(next);
        if number == next {
            self.shapes.push(shape);
            self.leaves.push(leaves);
        }
        number
    }

    /// Returns the expression of a value.
    pub fn of_value(&mut self, value: ValueId) -> Expression {
        if let Some(known) = self.of_value[value.index()] {
            return known;
        }
        let number = self.number(Shape::Leaf(value), [value].into());
        self.of_value[value.index()] = Some(number);
        number
    }

    /// Returns the leaves of an expression, ascending.
    pub fn leaves(&self, expression: Expression) -> &[ValueId] {
        &self.leaves[expression.0 as usize]
    }

    /// Returns the expression of an operator, if it is pure.
    pub fn computed(&self, ssa: &Ssa, op: OpId) -> Option<Expression> {
        let id = ssa.statement_at(op)?;
        let statement = &ssa.statements[id];
        let results = &statement.results;
        if statement.effect != Effect::None || results.is_empty() {
            return None;
        }
        let known = self.of_value[results.start.index()]?;
        matches!(self.shapes[known.0 as usize], Shape::Computed(..)).then_some(known)
    }
}

/// Numbers the expressions of a function's pure operators, in order. Operators that perform the
/// same computation on the same values get the same number. If an expression has too many distinct
/// leaves, its operands count as leaves, however they are computed.
pub(crate) fn expression_numbers(
    program: &Program,
    module: &[u8],
    function: &Function,
    ssa: &Ssa,
) -> Vec<(OpId, u32)> {
    let all = Expressions::of(program, module, function, ssa);
    let mut own = all.shapes.len() as u32;
    let pure = ssa.statements.values();
    let pure = pure.filter(|statement| statement.effect == Effect::None);
    let numbers = pure.map(|statement| {
        let number = match all.computed(ssa, statement.op) {
            Some(Expression(number)) => number,
            None => {
                own += 1;
                own - 1
            }
        };
        (statement.op, number)
    });
    numbers.collect()
}

/// Returns the definition of a value.
pub(super) fn definition(function: &Function, ssa: &Ssa, value: ValueId) -> Definition {
    match ssa.values[value].def {
        ValueDef::Param(_) | ValueDef::Initial(_) | ValueDef::Constant(_) => Definition::Entry,
        ValueDef::Result { statement, .. } => Definition::Operator(ssa.statements[statement].op),
        ValueDef::Phi(block) => Definition::Block(block),
        ValueDef::Caught { edge, .. } => Definition::Block(function.cfg.edges[edge].to),
    }
}

/// Returns the value of a constant as an address. Returns `None` for other operators.
fn address_of(operator: &Operator<'_>) -> Option<u64> {
    match *operator {
        Operator::I32Const { value } => Some(u64::from(value as u32)),
        Operator::I64Const { value } => Some(value as u64),
        _ => None,
    }
}
