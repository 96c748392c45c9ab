//! Finds the possible origins of operands without following the run.
//!
//! The search passes through locals, φs, arguments and results of calls. It also passes through
//! memory where the store and the load use the same computed address, as on the stack of an
//! unoptimised version.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, OpId, StmtId, ValueId};
use afterimage_matching::{Class, Producer};
use afterimage_program::{Callee, Effect, Program, Ssa, ValueDef};
use rustc_hash::FxHashMap;

use super::code::OperatorFacts;
use super::contexts::Contexts;
use afterimage_replay::values::Types;

/// The maximum number of values to examine for one statement.
const LOOKED_AT: usize = 96;
/// The maximum number of producers to keep.
const KEPT: usize = 24;
/// The maximum number of callers to examine for one argument, and of returned values to examine for
/// one call.
const CALLERS: usize = 8;

/// A value in a context.
type Of = (u32, ValueId);

/// A search for the producers of operands.
pub(super) struct Producers<'a> {
    types: &'a Types<'a>,
    known: &'a HashMap<FuncId, Vec<OperatorFacts>>,
    numbers: &'a FxHashMap<(u32, OpId), u32>,
    contexts: &'a Contexts,
    /// The calls to each function where it stands alone, as contexts and statements.
    callers: HashMap<FuncId, Vec<(u32, StmtId)>>,
    stores: HashMap<(FuncId, ValueId, u64), Vec<StmtId>>,
    returns: HashMap<FuncId, Vec<ValueId>>,
}

impl<'a> Producers<'a> {
    /// Prepares the functions that were executed. Time is linear in their bodies, each counted once
    /// for each context.
    pub fn new(
        program: &'a Program,
        types: &'a Types<'a>,
        known: &'a HashMap<FuncId, Vec<OperatorFacts>>,
        numbers: &'a FxHashMap<(u32, OpId), u32>,
        contexts: &'a Contexts,
    ) -> Self {
        let mut found = Self {
            types,
            known,
            numbers,
            contexts,
            callers: HashMap::new(),
            stores: HashMap::new(),
            returns: HashMap::new(),
        };
        let mut functions: Vec<FuncId> = known.keys().copied().collect();
        functions.sort_unstable();
        let mut calls: HashMap<FuncId, Vec<(StmtId, FuncId)>> = HashMap::new();
        for function in functions {
            let Some(ssa) = types.statements(function) else {
                continue;
            };
            for (id, statement) in ssa.statements.iter() {
                match statement.effect {
                    Effect::Call(Callee::Direct(callee)) => {
                        calls.entry(function).or_default().push((id, callee));
                    }
                    Effect::MemoryWrite(_) | Effect::MemoryUpdate(_) => {
                        if let Some(&address) = ssa.operands(id).first()
                            && let Some(known) = known[&function].get(statement.op.index())
                        {
                            let slot = (function, address, known.immediate);
                            found.stores.entry(slot).or_default().push(id);
                        }
                    }
                    _ => {}
                }
            }
            if let Some(defined) = program.function(function) {
                let edges = defined.cfg.edges.keys();
                let values = edges.flat_map(|edge| ssa.returned(edge));
                found.returns.insert(function, values.copied().collect());
            }
        }
        for context in 0..contexts.len() as u32 {
            let function = contexts.of(context).function;
            let Some(ssa) = types.statements(function) else {
                continue;
            };
            for &(call, callee) in calls.get(&function).into_iter().flatten() {
                let op = ssa.statements[call].op;
                if contexts.known_inlined(context, op, callee).is_none() {
                    found
                        .callers
                        .entry(callee)
                        .or_default()
                        .push((context, call));
                }
            }
        }
        found
    }

    /// Returns the possible origins of a statement's operands.
    pub fn of(&self, context: u32, op: OpId) -> Box<[Producer]> {
        let function = self.contexts.of(context).function;
        let Some(ssa) = self.types.statements(function) else {
            return Box::default();
        };
        let Some(statement) = ssa.statement_at(op) else {
            return Box::default();
        };
        let operands = ssa.operands(statement).iter();
        let waiting: Vec<Of> = operands.map(|&value| (context, value)).collect();
        self.reached(waiting, true).into_iter().collect()
    }

    /// Returns the statements, such as loads, that may have produced the value of a store.
    pub fn copied_from(&self, context: u32, store: OpId) -> Vec<u32> {
        let function = self.contexts.of(context).function;
        let Some(ssa) = self.types.statements(function) else {
            return Vec::new();
        };
        let store = ssa.statement_at(store);
        let value = store.and_then(|store| ssa.operands(store).get(1).copied());
        let waiting = value.map(|value| (context, value)).into_iter().collect();
        let found = self.reached(waiting, false).into_iter();
        let found = found.filter_map(|producer| match producer {
            Producer::Statement(at) => Some(at),
            Producer::Constant(_) => None,
        });
        found.collect()
    }

    fn reached(&self, mut waiting: Vec<Of>, through_memory: bool) -> BTreeSet<Producer> {
        let mut seen: BTreeSet<Of> = waiting.iter().copied().collect();
        let mut found = BTreeSet::new();
        let mut next = 0;
        while let Some(&(context, value)) = waiting.get(next) {
            next += 1;
            if next > LOOKED_AT || found.len() >= KEPT {
                break;
            }
            let function = self.contexts.of(context).function;
            let Some(ssa) = self.types.statements(function) else {
                continue;
            };
            for from in self.step(context, &ssa, value, through_memory, &mut found) {
                if seen.insert(from) {
                    waiting.push(from);
                }
            }
        }
        found
    }

    /// Returns the values that a value may copy. If a statement or a constant produces the value,
    /// adds that producer to `found`.
    fn step(
        &self,
        context: u32,
        ssa: &Rc<Ssa>,
        value: ValueId,
        through_memory: bool,
        found: &mut BTreeSet<Producer>,
    ) -> Vec<Of> {
        let own = self.contexts.of(context);
        let function = own.function;
        let here = |values: &[ValueId]| values.iter().map(|&v| (context, v)).collect();
        match ssa.values[value].def {
            ValueDef::Constant(op) => {
                let known = self.known.get(&function).and_then(|k| k.get(op.index()));
                found.extend(known.map(|known| Producer::Constant(known.immediate)));
                Vec::new()
            }
            ValueDef::Initial(_) => {
                found.insert(Producer::Constant(0));
                Vec::new()
            }
            ValueDef::Phi(block) => {
                let phi = ssa.phis(block).iter().find(|phi| phi.value == value);
                phi.map_or_else(Vec::new, |phi| here(few(&phi.operands)))
            }
            ValueDef::Param(index) => {
                if let Some((caller, call)) = own.caller {
                    let around = self.contexts.of(caller).function;
                    let argument = self.types.statements(around).and_then(|ssa| {
                        let call = ssa.statement_at(call)?;
                        let known = &ssa.statements[call];
                        // In a call through a pointer, the index in the table is the last operand.
                        let calls = matches!(known.effect, Effect::Call(_));
                        let operand = ssa.operands(call).get(index as usize);
                        Some((caller, *operand.filter(|_| calls)?))
                    });
                    return argument.into_iter().collect();
                }
                let callers = self.callers.get(&function).map_or(&[][..], Vec::as_slice);
                let arguments = callers.iter().take(CALLERS).filter_map(|&(caller, call)| {
                    let ssa = self.types.statements(self.contexts.of(caller).function)?;
                    let argument = *ssa.operands(call).get(index as usize)?;
                    Some((caller, argument))
                });
                arguments.collect()
            }
            ValueDef::Caught { .. } => Vec::new(),
            ValueDef::Result { statement, .. } => {
                let known = &ssa.statements[statement];
                let number = self.numbers.get(&(context, known.op));
                found.extend(number.map(|&number| Producer::Statement(number)));
                match known.effect {
                    Effect::Call(Callee::Direct(callee)) => {
                        let returned = self.returns.get(&callee).map_or(&[][..], Vec::as_slice);
                        let called = self.contexts.known_inlined(context, known.op, callee);
                        let called = called.or_else(|| self.contexts.known_root(callee));
                        let values = called.into_iter().flat_map(|called| {
                            let values = returned.iter().take(CALLERS);
                            values.map(move |&value| (called, value))
                        });
                        values.collect()
                    }
                    Effect::MemoryRead(_) if through_memory => {
                        let stored = self.stored(function, ssa, statement);
                        here(few(&stored))
                    }
                    // Unoptimised code first converts a condition to 0 or 1, and may negate it.
                    _ if self.is_condition(function, ssa, statement) => {
                        here(ssa.operands(statement))
                    }
                    _ => Vec::new(),
                }
            }
        }
    }

    /// Whether a statement only negates a condition, masks it, or joins it with other conditions.
    fn is_condition(&self, function: FuncId, ssa: &Ssa, statement: StmtId) -> bool {
        let operands = ssa.operands(statement);
        let Some(known) = self.known.get(&function) else {
            return false;
        };
        let Some(own) = known.get(ssa.statements[statement].op.index()) else {
            return false;
        };
        let defined = |value: ValueId| match ssa.values[value].def {
            ValueDef::Constant(op) => known.get(op.index()).copied(),
            ValueDef::Result { statement, .. } => {
                known.get(ssa.statements[statement].op.index()).copied()
            }
            _ => None,
        };
        let is_test = |value: ValueId| defined(value).is_some_and(|k| k.class == Class::Test);
        match *operands {
            [_] => own.class == Class::Test,
            [a, b] => {
                let one = matches!(ssa.values[b].def, ValueDef::Constant(_))
                    && defined(b).is_some_and(|known| known.immediate == 1);
                own.is_and && one || own.joins && (is_test(a) || is_test(b))
            }
            [a, b, condition] => own.joins && is_test(condition) && (is_test(a) || is_test(b)),
            _ => false,
        }
    }

    /// Returns the values that may have been stored in the memory that a load reads.
    fn stored(&self, function: FuncId, ssa: &Ssa, load: StmtId) -> Vec<ValueId> {
        let op = ssa.statements[load].op;
        let offset = self.known.get(&function).and_then(|k| k.get(op.index()));
        let address = ssa.operands(load).first();
        let (Some(offset), Some(&address)) = (offset, address) else {
            return Vec::new();
        };
        let slot = (function, address, offset.immediate);
        let stores = self.stores.get(&slot).map_or(&[][..], Vec::as_slice);
        let values = stores
            .iter()
            .filter_map(|&store| ssa.operands(store).get(1));
        values.copied().collect()
    }
}

/// Returns the first values, up to the maximum number to examine.
fn few(values: &[ValueId]) -> &[ValueId] {
    &values[..values.len().min(LOOKED_AT)]
}
