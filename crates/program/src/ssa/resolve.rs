//! Where entry values come from.
//!
//! An entry value is a φ of the variable's values at the ends of the blocks before,
//! which may be entry values of those in turn (Braun et al. 2013, "Simple and
//! efficient construction of static single assignment form", algorithm 2, with a
//! list of work in place of recursion). Only what some statement needs is looked up, so
//! that no φ is made for a variable that is dead.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, ValueId};
use wasmparser::ValType;

use super::build::{Carried, Variable, Walked};
use super::minimize;
use super::{Phi, Ssa, Value, ValueDef};
use crate::{BlockEnd, EdgeKind};

/// Completes the statements. `None` if the code is not the graph's.
pub(super) fn resolve(walked: Walked<'_>) -> Option<Ssa> {
    let waiting = walked.entries.iter().map(|(&(block, variable), &value)| (block, variable, value));
    let mut waiting: Vec<_> = waiting.collect();
    // The map's order is random; the result's must not be.
    waiting.sort_unstable();
    let mut resolver = Resolver { walked, waiting, caught: HashMap::new() };

    let mut returns = Vec::new();
    let cfg = resolver.walked.cfg;
    for &edge in cfg.graph.in_edges(cfg.graph.exit()) {
        let tail_call = matches!(cfg.blocks[cfg.graph.from(edge)].end, BlockEnd::TailCall(_));
        if cfg.edges[edge].kind != EdgeKind::Unwind && !tail_call {
            let values = resolver.returned(edge)?;
            returns.push((edge, values));
        }
    }
    let mut phis = Vec::new();
    while let Some((block, variable, value)) = resolver.waiting.pop() {
        if block != cfg.graph.root() {
            let ty = resolver.walked.values[value].ty;
            let edges = cfg.graph.in_edges(block).iter();
            let operands = edges.map(|&edge| resolver.along(edge, variable, ty)).collect::<Option<_>>()?;
            phis.push(Phi { block, value, operands });
        } else if variable >= resolver.walked.locals {
            return None;
        }
    }
    let Walked { values, statements, operands, .. } = resolver.walked;
    Some(minimize::minimize(Ssa { values, statements, phis, operands, returns }))
}

struct Resolver<'a> {
    walked: Walked<'a>,
    /// The entry values whose φs were not made yet.
    waiting: Vec<(BlockId, Variable, ValueId)>,
    caught: HashMap<(EdgeId, u32), ValueId>,
}

impl Resolver<'_> {
    /// The values that are returned over an edge into EXIT.
    fn returned(&mut self, edge: EdgeId) -> Option<Box<[ValueId]>> {
        let (locals, results) = (self.walked.locals, self.walked.results.clone());
        // `return` leaves its results where they are, and takes them as operands.
        if let EdgeKind::Return = self.walked.cfg.edges[edge].kind {
            let op = self.walked.cfg.edges[edge].op?;
            let statements = self.walked.statements.as_values_slice();
            let i = statements.binary_search_by_key(&op, |statement| statement.op).ok()?;
            let operands = &statements[i].operands;
            return Some(self.walked.operands[operands.start as usize..operands.end as usize].into());
        }
        let types = results.iter().zip(locals..);
        types.map(|(&ty, slot)| self.along(edge, slot, super::build::general(ty))).collect()
    }

    /// The value of a variable where an edge arrives.
    fn along(&mut self, edge: EdgeId, variable: Variable, ty: ValType) -> Option<ValueId> {
        let locals = self.walked.locals;
        let from = self.walked.cfg.edges[edge].from;
        let slot = variable.checked_sub(locals);
        let source = match (slot, self.walked.carried.get(&edge)) {
            (Some(slot), Some(&Carried::Slots { base, from })) if slot >= base => {
                locals + from + (slot - base)
            }
            (Some(slot), Some(&Carried::Caught { base })) if slot >= base => {
                let index = slot - base;
                let def = ValueDef::Caught { edge, index };
                let values = &mut self.walked.values;
                let value = || values.push(Value { ty, def });
                return Some(*self.caught.entry((edge, index)).or_insert_with(value));
            }
            _ => variable,
        };
        let writes = &self.walked.writes[from];
        if let Ok(i) = writes.binary_search_by_key(&source, |(variable, _)| *variable) {
            return Some(writes[i].1);
        }
        let known = self.walked.entries.len();
        let value = self.walked.entry(from, source, ty);
        if self.walked.entries.len() > known {
            self.waiting.push((from, source, value));
        }
        Some(value)
    }
}
