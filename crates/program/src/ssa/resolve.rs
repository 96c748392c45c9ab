//! Finds the origins of entry values.
//!
//! The search starts from their uses, so no φ is created for a dead variable. The result is the
//! pruned form of Choi, Cytron and Ferrante (1991), "Automatic construction of sparse data flow
//! evaluation graphs".

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, ValueId};
use wasmparser::ValType;

use super::build::{Variable, Walked};
use super::minimize::minimize;
use super::sites::Sites;
use super::walk::general;
use super::{Phi, Ssa, Value, ValueDef};
use crate::{BlockEnd, CarriedFrom, EdgeKind};

/// Completes the statements. Returns `None` if the code does not match the graph.
pub(super) fn resolve(mut walked: Walked<'_>) -> Option<Ssa> {
    let cfg = walked.cfg;
    let mut sites = Sites::new(&walked);
    let mut entries: Vec<_> = std::mem::take(&mut walked.entries).into_iter().collect();
    // The map's order is random, but the order of the result must not be.
    entries.sort_unstable();
    // An entry value at a φ's place is that φ. Any other entry value comes from a dominating block.
    let root = cfg.graph.root();
    let (at_phis, copies): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|&((block, variable), _)| block == root || sites.is_phi(block, variable));
    let waiting = at_phis
        .iter()
        .map(|&((block, variable), value)| (block, variable, value));
    let waiting: Vec<_> = waiting.filter(|(block, ..)| *block != root).collect();
    walked.entries = at_phis.into_iter().collect();
    let mut resolver = Resolver {
        walked,
        sites,
        waiting,
        caught: HashMap::new(),
    };

    let mut same = Vec::with_capacity(copies.len());
    for ((block, variable), value) in copies {
        let above = resolver.sites.dominators.immediate_dominator(block)?;
        let ty = resolver.walked.values[value].ty;
        same.push((value, resolver.at_end(above, variable, ty)?));
    }
    let mut returns = Vec::new();
    for &edge in cfg.graph.in_edges(cfg.graph.exit()) {
        let tail_call = matches!(cfg.blocks[cfg.graph.from(edge)].end, BlockEnd::TailCall(_));
        if cfg.edges[edge].kind != EdgeKind::Unwind && !tail_call {
            returns.push((edge, resolver.returned(edge)?));
        }
    }
    let mut phis = Vec::new();
    while let Some((block, variable, value)) = resolver.waiting.pop() {
        let ty = resolver.walked.values[value].ty;
        let edges = cfg.graph.in_edges(block).iter();
        let operands = edges
            .map(|&edge| resolver.along(edge, variable, ty))
            .collect::<Option<_>>()?;
        phis.push(Phi {
            block,
            value,
            operands,
        });
    }
    let Walked {
        values,
        statements,
        operands,
        ..
    } = resolver.walked;
    Some(minimize(
        Ssa {
            values,
            statements,
            phis,
            operands,
            returns,
        },
        &same,
    ))
}

struct Resolver<'a> {
    walked: Walked<'a>,
    sites: Sites,
    /// The φs whose operands have not been looked up yet.
    waiting: Vec<(BlockId, Variable, ValueId)>,
    caught: HashMap<(EdgeId, u32), ValueId>,
}

impl Resolver<'_> {
    /// Returns the values that are returned over an edge into EXIT.
    fn returned(&mut self, edge: EdgeId) -> Option<Box<[ValueId]>> {
        // `return` takes its results as operands.
        if let EdgeKind::Return = self.walked.cfg.edges[edge].kind {
            let op = self.walked.cfg.edges[edge].op?;
            let statements = self.walked.statements.as_values_slice();
            let i = statements
                .binary_search_by_key(&op, |statement| statement.op)
                .ok()?;
            let operands = &statements[i].operands;
            return Some(
                self.walked.operands[operands.start as usize..operands.end as usize].into(),
            );
        }
        let results = self.walked.results.clone();
        let types = results.iter().zip(self.walked.locals..);
        types
            .map(|(&ty, slot)| self.along(edge, slot, general(ty)))
            .collect()
    }

    /// Returns the value of a variable at the end of an edge.
    fn along(&mut self, edge: EdgeId, variable: Variable, ty: ValType) -> Option<ValueId> {
        let from = self.walked.cfg.edges[edge].from;
        let Some(carried) = self.walked.carried.get(&edge) else {
            return self.at_end(from, variable, ty);
        };
        let Some(index) = variable.checked_sub(self.walked.locals + carried.base) else {
            return self.at_end(from, variable, ty);
        };
        match carried.source {
            CarriedFrom::Slots(slot) => self.at_end(from, self.walked.locals + slot + index, ty),
            CarriedFrom::Caught => {
                let values = &mut self.walked.values;
                let value = || {
                    values.push(Value {
                        ty,
                        def: ValueDef::Caught { edge, index },
                    })
                };
                Some(*self.caught.entry((edge, index)).or_insert_with(value))
            }
        }
    }

    /// Returns the value of a variable at the end of a block.
    fn at_end(&mut self, block: BlockId, variable: Variable, ty: ValType) -> Option<ValueId> {
        let site = self.sites.nearest(block, variable)?;
        let writes = &self.walked.writes[site];
        if let Ok(i) = writes.binary_search_by_key(&variable, |(variable, _)| *variable) {
            return Some(writes[i].1);
        }
        let root = self.walked.cfg.graph.root();
        if site == root && variable >= self.walked.locals {
            return None;
        }
        let known = self.walked.entries.len();
        let value = self.walked.entry(site, variable, ty);
        if self.walked.entries.len() > known && site != root {
            self.waiting.push((site, variable, value));
        }
        Some(value)
    }
}
