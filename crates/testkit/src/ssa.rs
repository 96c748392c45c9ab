//! Checks static single assignment form against its definition.

use std::collections::BTreeSet;

use afterimage_ids::{BlockId, EdgeId, StmtId, ValueId};
use afterimage_program::{Cfg, Function, Phi, Program, Ssa, ValueDef};
use wasmparser::Operator;

/// Checks the statements of a function. Every operator that is a statement must have one. Every
/// value must be defined once, and its definition must dominate its uses. A φ must be needed, and
/// must have an operand of its own type for every edge. Takes O(blocks · edges) time.
///
/// # Errors
/// Returns a description of the first fault.
pub fn verify(
    program: &Program,
    bytes: &[u8],
    function: &Function,
    ssa: &Ssa,
) -> Result<(), String> {
    let expected: Vec<_> = program
        .operators(bytes, function)
        .filter(|(op, _, operator)| function.block_of(*op).is_some() && is_statement(operator))
        .map(|(op, ..)| op)
        .collect();
    let actual: Vec<_> = ssa
        .statements
        .values()
        .map(|statement| statement.op)
        .collect();
    ensure(actual == expected, || {
        format!("statements {actual:?} instead of {expected:?}")
    })?;
    Verifier {
        cfg: &function.cfg,
        ssa,
        dominators: Dominators::of(&function.cfg),
    }
    .verify(function)
}

/// Whether an operator is a statement if it is reachable.
pub fn is_statement(operator: &Operator<'_>) -> bool {
    let name = format!("{operator:?}");
    let name = name.split([' ', '{', '(']).next().unwrap_or_default();
    let others = [
        "LocalGet", "LocalSet", "LocalTee", "Drop", "Nop", "Block", "Loop", "Else", "End",
        "TryTable", "RefNull", "RefFunc",
    ];
    !others.contains(&name) && !name.ends_with("Const")
}

struct Verifier<'a> {
    cfg: &'a Cfg,
    ssa: &'a Ssa,
    dominators: Dominators,
}

/// A place where a value is used.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// Used by this statement.
    Statement(StmtId),
    /// Used at the end of an edge, by a φ or as a returned value.
    Edge(EdgeId),
}

impl Verifier<'_> {
    fn verify(&self, function: &Function) -> Result<(), String> {
        self.definitions(function)?;
        let mut used = BTreeSet::new();
        for (id, statement) in &self.ssa.statements {
            let block = function.block_of(statement.op);
            ensure(block == Some(statement.block), || {
                format!("{id} is in {block:?}")
            })?;
            ensure(self.ssa.statement_at(statement.op) == Some(id), || {
                format!("{id} is not found")
            })?;
            for &operand in self.ssa.operands(id) {
                self.dominates(operand, Use::Statement(id))?;
                used.insert(operand);
            }
        }
        for &edge in self.cfg.graph.in_edges(self.cfg.graph.exit()) {
            for &value in self.ssa.returned(edge) {
                self.dominates(value, Use::Edge(edge))?;
                used.insert(value);
            }
        }
        let blocks = self.ssa.all_phis().iter().map(|phi| phi.block);
        ensure(blocks.is_sorted(), || "φs are out of order".to_string())?;
        for phi in self.ssa.all_phis() {
            self.phi(phi)?;
            ensure(self.ssa.phis(phi.block).contains(phi), || {
                format!("{phi:?} is not found")
            })?;
        }
        // Follows uses through φs.
        loop {
            let before = used.len();
            for phi in self
                .ssa
                .all_phis()
                .iter()
                .filter(|phi| used.contains(&phi.value))
                .collect::<Vec<_>>()
            {
                used.extend(&phi.operands);
            }
            if used.len() == before {
                break;
            }
        }
        for (id, value) in &self.ssa.values {
            let needed = matches!(
                value.def,
                ValueDef::Phi(_) | ValueDef::Initial(_) | ValueDef::Caught { .. }
            );
            ensure(!needed || used.contains(&id), || {
                format!("nothing uses {id}: {value:?}")
            })?;
        }
        Ok(())
    }

    /// Checks that every value has one definition and refers to it.
    fn definitions(&self, function: &Function) -> Result<(), String> {
        let mut defined = BTreeSet::new();
        for (id, statement) in &self.ssa.statements {
            let results = statement.results.start.as_u32()..statement.results.end.as_u32();
            for (index, value) in results.enumerate() {
                let value = ValueId::from_u32(value);
                let def = ValueDef::Result {
                    statement: id,
                    index: index as u32,
                };
                ensure(self.ssa.values[value].def == def, || {
                    format!("{value} is not {def:?}")
                })?;
                ensure(defined.insert(value), || {
                    format!("{value} is defined twice")
                })?;
            }
        }
        for phi in self.ssa.all_phis() {
            let def = ValueDef::Phi(phi.block);
            ensure(self.ssa.values[phi.value].def == def, || {
                format!("{} is not a φ", phi.value)
            })?;
            ensure(defined.insert(phi.value), || {
                format!("{} is defined twice", phi.value)
            })?;
        }
        let mut others = BTreeSet::new();
        for (id, value) in &self.ssa.values {
            let fine = match value.def {
                ValueDef::Result { .. } | ValueDef::Phi(_) => defined.contains(&id),
                ValueDef::Constant(op) => function.block_of(op).is_some(),
                _ => true,
            };
            ensure(fine, || format!("{id} has no definition"))?;
            let new = others.insert(format!("{:?}", value.def)) || defined.contains(&id);
            ensure(new, || format!("{:?} occurs twice", value.def))?;
        }
        Ok(())
    }

    fn phi(&self, phi: &Phi) -> Result<(), String> {
        let edges = self.cfg.graph.in_edges(phi.block);
        ensure(edges.len() == phi.operands.len(), || {
            format!("{phi:?} for {} edges", edges.len())
        })?;
        let ty = self.ssa.values[phi.value].ty;
        for (&edge, &operand) in edges.iter().zip(&phi.operands) {
            let other = self.ssa.values[operand].ty;
            ensure(other == ty, || format!("{phi:?}: {other:?} is not {ty:?}"))?;
            self.dominates(operand, Use::Edge(edge))?;
        }
        let distinct: BTreeSet<_> = phi.operands.iter().filter(|v| **v != phi.value).collect();
        ensure(distinct.len() > 1, || format!("{phi:?} is trivial"))
    }

    /// Whether the definition of a value dominates a use.
    fn dominates(&self, value: ValueId, at: Use) -> Result<(), String> {
        let block = match at {
            Use::Statement(statement) => self.ssa.statements[statement].block,
            Use::Edge(edge) => self.cfg.edges[edge].from,
        };
        let fine = match self.ssa.values[value].def {
            ValueDef::Param(_) | ValueDef::Initial(_) => true,
            ValueDef::Phi(phi) => self.dominators.vertex(phi, block),
            ValueDef::Caught { edge, .. } => {
                matches!(at, Use::Edge(other) if other == edge)
                    || Dominators::edge(self.cfg, edge, block)
            }
            ValueDef::Constant(op) => {
                let cfg = self.cfg;
                let defining = cfg.blocks.iter().find(|(_, block)| block.ops.contains(&op));
                let (defining, _) = defining.ok_or_else(|| format!("{value} is in no block"))?;
                match at {
                    Use::Statement(s) if defining == block => op < self.ssa.statements[s].op,
                    _ => self.dominators.vertex(defining, block),
                }
            }
            ValueDef::Result { statement, .. } => {
                let defining = self.ssa.statements[statement].block;
                match at {
                    Use::Statement(s) if defining == block => statement < s,
                    _ => self.dominators.vertex(defining, block),
                }
            }
        };
        ensure(fine, || {
            format!("{value} does not dominate its use at {at:?}")
        })
    }
}

/// Dominators by definition. A vertex dominates the vertices that cannot be reached without it.
struct Dominators {
    /// For each vertex, the vertices that the root reaches on paths that avoid it.
    around: Vec<BTreeSet<BlockId>>,
}

impl Dominators {
    fn of(cfg: &Cfg) -> Self {
        let around = cfg
            .graph
            .vertices()
            .map(|v| reached(cfg, |edge| cfg.edges[edge].to == v, Some(v)));
        Self {
            around: around.collect(),
        }
    }

    fn vertex(&self, a: BlockId, b: BlockId) -> bool {
        !self.around[a.as_u32() as usize].contains(&b)
    }

    fn edge(cfg: &Cfg, edge: EdgeId, b: BlockId) -> bool {
        !reached(cfg, |other| other == edge, None).contains(&b)
    }
}

/// Returns the vertices that the root reaches over edges outside `without`, never entering
/// `barred`.
fn reached(
    cfg: &Cfg,
    without: impl Fn(EdgeId) -> bool,
    barred: Option<BlockId>,
) -> BTreeSet<BlockId> {
    let root = cfg.graph.root();
    let mut work: Vec<_> = (barred != Some(root)).then_some(root).into_iter().collect();
    let mut seen: BTreeSet<_> = work.iter().copied().collect();
    while let Some(vertex) = work.pop() {
        for &edge in cfg.graph.out_edges(vertex) {
            let to = cfg.graph.to(edge);
            if !without(edge) && seen.insert(to) {
                work.push(to);
            }
        }
    }
    seen
}

fn ensure(fine: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if fine { Ok(()) } else { Err(message()) }
}
