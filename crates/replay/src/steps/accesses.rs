//! Finds the loads and stores of a program.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, StmtId};
use afterimage_machine::{Code, NodeCode};
use afterimage_program::{Effect, Ssa};
use wasmparser::ValType;

use super::plan::Plan;
use crate::values::Types;

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccessSite {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator that loads or stores.
    pub op: OpId,
}

/// Whether an instruction is a load or a store. Bulk operators are neither.
pub fn is_access(code: Code) -> bool {
    matches!(
        code,
        Code::Load(_) | Code::LoadVector(_) | Code::Store(_) | Code::StoreVector(_)
    )
}

/// Returns the reachable loads and stores of a function, in order.
fn of_function(ssa: &Ssa, function: FuncId) -> impl Iterator<Item = AccessSite> {
    let statements = ssa.statements.values().enumerate();
    let accesses = statements.filter(|(id, statement)| match statement.effect {
        Effect::MemoryRead(_) | Effect::MemoryUpdate(_) => true,
        // `memory.fill` takes three operands.
        Effect::MemoryWrite(_) => ssa.operands(StmtId::new(*id)).len() == 2,
        _ => false,
    });
    accesses.map(move |(_, statement)| AccessSite {
        function,
        op: statement.op,
    })
}

/// Returns the loads and stores among these operators, in order.
pub fn access_sites(types: &Types<'_>, operators: &[(FuncId, OpId)]) -> Vec<AccessSite> {
    let mut sites = Vec::new();
    for of_one in operators.chunk_by(|a, b| a.0 == b.0) {
        let function = of_one[0].0;
        if let Some(ssa) = types.statements(function) {
            let accesses = of_function(&ssa, function);
            sites.extend(accesses.filter(|site| of_one.contains(&(function, site.op))));
        }
    }
    sites.sort_unstable();
    sites.dedup();
    sites
}

/// Returns the load or store of a function that is nearest to an operator, measured in operators.
pub fn nearest_access(types: &Types<'_>, function: FuncId, op: OpId) -> Option<AccessSite> {
    let ssa = types.statements(function)?;
    of_function(&ssa, function).min_by_key(|site| site.op.as_u32().abs_diff(op.as_u32()))
}

/// Maps the instructions of nodes to sites.
pub(crate) struct SiteTable {
    /// The sites, by number.
    pub sites: Vec<AccessSite>,
    /// The type of the value that each added site loads, or `None` for a store.
    pub types: Vec<Option<ValType>>,
    numbers: HashMap<AccessSite, u32>,
    /// Whether new sites may be added.
    open: bool,
    wanted: fn(Code) -> bool,
    nodes: Vec<Option<Rc<NodeSites>>>,
}

/// The sites of a node.
#[derive(Debug, Default)]
pub(crate) struct NodeSites {
    /// The site of each instruction, as the site's number plus 1, or 0 for no site.
    numbers: Box<[u32]>,
    /// For each instruction, the position of its block in the node.
    blocks: Box<[u32]>,
    /// Whether the node has any sites.
    pub any: bool,
}

impl NodeSites {
    /// Returns the number of an instruction's site, and the position of the instruction's block.
    #[inline]
    pub fn get(&self, inst: usize) -> Option<(usize, u32)> {
        let number = self.numbers[inst].checked_sub(1)?;
        Some((number as usize, self.blocks[inst]))
    }
}

impl SiteTable {
    /// Creates a table with exactly these sites.
    pub fn of(sites: &[AccessSite], nodes: usize) -> Self {
        Self {
            sites: sites.to_vec(),
            types: Vec::new(),
            numbers: sites.iter().copied().zip(0..).collect(),
            open: false,
            wanted: is_access,
            nodes: vec![None; nodes],
        }
    }

    /// Creates a table to which all `wanted` instructions are added.
    pub fn of_all(wanted: fn(Code) -> bool, nodes: usize) -> Self {
        Self {
            sites: Vec::new(),
            types: Vec::new(),
            numbers: HashMap::new(),
            open: true,
            wanted,
            nodes: vec![None; nodes],
        }
    }

    pub fn known(&self, node: NodeId) -> Option<Rc<NodeSites>> {
        self.nodes[node.index()].clone()
    }

    /// Adds a node, and returns its sites.
    pub fn add(&mut self, node: NodeId, code: &NodeCode, plan: &Plan) -> Rc<NodeSites> {
        let mut numbers = vec![0; code.insts.len()];
        let items = plan.of_inst.iter().map(|&item| &plan.items[item as usize]);
        for ((number, inst), item) in numbers.iter_mut().zip(&code.insts).zip(items) {
            if !(self.wanted)(inst.code) {
                continue;
            }
            let site = AccessSite {
                function: code.function,
                op: inst.op,
            };
            if self.open && !self.numbers.contains_key(&site) {
                self.numbers.insert(site, self.sites.len() as u32);
                self.sites.push(site);
                self.types.push(item.result());
            }
            *number = self.numbers.get(&site).map_or(0, |number| number + 1);
        }
        let items = plan.of_inst.iter();
        let sites = Rc::new(NodeSites {
            any: numbers.iter().any(|&number| number > 0),
            numbers: numbers.into(),
            blocks: items.map(|&i| plan.items[i as usize].block).collect(),
        });
        self.nodes[node.index()] = Some(Rc::clone(&sites));
        sites
    }
}
