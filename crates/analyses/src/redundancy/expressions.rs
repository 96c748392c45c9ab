//! Computes the exact redundancy of expressions over the whole run from the values of their
//! operands.

use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Caller, Code, NodeCode, Observer};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use rustc_hash::FxHashMap;
use wasmparser::ValType;

use super::answer::Redundancy;
use super::latest::Table;
use super::places::Places;
use super::shadow::MOST_PLACES;
use super::ways::Ways;
use crate::dataflow::expression_numbers;
use afterimage_replay::steps::{Follower, Run, StepsError};
use afterimage_replay::values::Types;

/// Whether an instruction is pure, that is, computes a value without side effects.
fn is_pure(code: Code) -> bool {
    matches!(
        code,
        Code::Scalar(_) | Code::Vector(_) | Code::Select | Code::SelectVector | Code::RefIsNull
    )
}

/// Follows a run and finds how redundant its expressions are. Time is linear in the run. Memory is
/// linear in the depth of recursion and in the executed operators, each counted once for every
/// path.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn expression_redundancy<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
) -> Result<Redundancy, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let mut numbers = Numbers::new(run);
    let mut watch = Watch {
        nodes: vec![None; run.path.nodes().len()],
        computes: Rc::default(),
        table: Table::default(),
        ways: Ways::default(),
    };
    let mut instructions = 0;
    while let Some(visit) = follower.advance()? {
        let code = &follower.machine.codes()[visit.node];
        watch.computes = match &watch.nodes[visit.node.index()] {
            Some(known) => Rc::clone(known),
            None => {
                let computes = numbers.of(visit.node, code, &mut watch.table)?;
                watch.ways.places(numbers.places.all.len());
                watch.nodes[visit.node.index()] = Some(Rc::clone(&computes));
                computes
            }
        };
        instructions += code.insts.len() as u64;
        watch.table.path();
        follower.execute(visit, &mut watch)?;
    }
    Ok(Redundancy {
        operators: watch.ways.finish(&numbers.places.all),
        instructions,
    })
}

/// The operators of a function, ascending, with the numbers of their expressions.
type OfFunction = Rc<[(OpId, u32)]>;

/// An instruction that computes an expression.
#[derive(Clone, Copy, Debug)]
struct Compute {
    inst: u32,
    place: u32,
    expression: u32,
    operands: u32,
    registers: [u32; 3],
    /// For each operand, whether it is a vector.
    vectors: [bool; 3],
}

/// Numbers places and expressions.
struct Numbers<'a, S: Segments> {
    run: Run<'a, S>,
    types: Types<'a>,
    places: Places,
    of_functions: FxHashMap<FuncId, OfFunction>,
    /// The number of each expression in the table.
    expressions: FxHashMap<(FuncId, u32), u32>,
}

impl<'a, S: Segments> Numbers<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    fn new(run: Run<'a, S>) -> Self {
        Self {
            types: Types::new(run.program, run.module),
            places: Places::new(is_pure, run.path.nodes().len()),
            of_functions: FxHashMap::default(),
            expressions: FxHashMap::default(),
            run,
        }
    }

    /// Returns the computations of a new node.
    fn of(
        &mut self,
        node: NodeId,
        code: &NodeCode,
        table: &mut Table,
    ) -> Result<Rc<[Compute]>, StepsError<S::Error>> {
        let known = self.function(code.function)?;
        let places = self.places.add(node, code);
        let places = places.ok_or(StepsError::Sites(MOST_PLACES))?;
        let ssa = self.types.statements(code.function);
        let ssa = ssa.ok_or(StepsError::NoBody(code.function))?;
        let mut computes = Vec::new();
        for (k, inst) in code.insts.iter().enumerate() {
            let Some(place) = places.get(k) else {
                continue;
            };
            let missing = StepsError::Statement(code.function, inst.op);
            let found = known.binary_search_by_key(&inst.op, |(op, _)| *op);
            let number = known[found.map_err(|_| missing)?].1;
            let expression = self.expressions.entry((code.function, number));
            let mut vectors = [false; 3];
            let statement = ssa.statement_at(inst.op);
            let operands = statement.map_or(&[][..], |statement| ssa.operands(statement));
            for (vector, &operand) in vectors.iter_mut().zip(operands) {
                *vector = ssa.values[operand].ty == ValType::V128;
            }
            let c = code.vector(k).map_or(inst.c, |extra| extra.c);
            computes.push(Compute {
                inst: k as u32,
                place,
                expression: *expression.or_insert_with(|| table.add()),
                operands: inst.code.operands() as u32,
                registers: [inst.a, inst.b, c],
                vectors,
            });
        }
        Ok(computes.into())
    }

    fn function(&mut self, function: FuncId) -> Result<OfFunction, StepsError<S::Error>> {
        if let Some(known) = self.of_functions.get(&function) {
            return Ok(Rc::clone(known));
        }
        let ssa = self.types.statements(function);
        let code = self.run.program.function(function);
        let (ssa, code) = ssa.zip(code).ok_or(StepsError::NoBody(function))?;
        let numbers = expression_numbers(self.run.program, self.run.module, code, &ssa);
        let numbers: OfFunction = numbers.into();
        self.of_functions.insert(function, Rc::clone(&numbers));
        Ok(numbers)
    }
}

struct Watch {
    nodes: Vec<Option<Rc<[Compute]>>>,
    /// The computations of the current node.
    computes: Rc<[Compute]>,
    table: Table,
    ways: Ways,
}

impl Watch {
    fn all(&mut self, executed: usize, low: &[u64], high: &[u64]) {
        let computes = Rc::clone(&self.computes);
        for compute in computes.iter() {
            if compute.inst as usize >= executed {
                break;
            }
            let mut operands = [0; 6];
            let registers = compute.registers.iter().take(compute.operands as usize);
            for (k, &register) in registers.enumerate() {
                operands[k] = low[register as usize];
                // For types other than vectors, the upper half is undefined.
                if compute.vectors[k] {
                    operands[k + 3] = high[register as usize];
                }
            }
            self.ways.executed(compute.place);
            let found = (self.table).computed(compute.expression, compute.place, &operands);
            if let Some(from) = found {
                self.ways
                    .redundant(compute.place, from.place, from.same, true);
            }
        }
    }
}

impl Observer for Watch {
    fn done(&mut self, code: &NodeCode, low: &[u64], high: &[u64]) {
        self.all(code.insts.len(), low, high);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], high: &[u64]) {
        self.all(executed, low, high);
    }

    #[inline]
    fn enter(&mut self, _function: FuncId, _by: Caller) {
        self.table.enter();
    }

    #[inline]
    fn leave(&mut self, _results: Option<(u32, u32)>) {
        self.table.leave();
    }
}
