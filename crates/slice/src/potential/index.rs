//! Indexes the executed nodes, for the search for potential dependences.

use std::rc::Rc;

use afterimage_graph::{ControlDependence, PostDominatorTree};
use afterimage_ids::{BlockId, FuncId, NodeId, OpId, PrimaryMap, TypeId};
use afterimage_machine::{NodeCode, NodeEnd, Register};
use afterimage_program::{BlockKind, Callee, Cfg, Program};
use afterimage_wpp::Node;
use rustc_hash::FxHashMap;

use crate::exercised::Operator;
use crate::plan::{End, Kind, Plan};
use crate::plans::Plans;

/// An operator's position in a node, which is an instruction or the node's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePosition {
    pub node: usize,
    pub inst: Option<usize>,
}

/// An executed node.
pub(super) struct One {
    pub code: NodeCode,
    pub plan: Rc<Plan>,
    /// The variables that the node writes, ascending.
    outputs: Box<[(u32, Register)]>,
}

impl One {
    /// Returns the final value of a variable, if the node writes it.
    pub fn output(&self, variable: u32) -> Option<Register> {
        let found = self.outputs.binary_search_by_key(&variable, |(of, _)| *of);
        found.ok().map(|at| self.outputs[at].1)
    }
}

/// The nodes from which control may reach a block.
pub(super) struct Arrivals {
    pub nodes: Vec<usize>,
    /// Whether the block handles exceptions.
    pub handles: bool,
}

/// The executed nodes, with indexes of their actions.
pub(super) struct Executed<'a> {
    pub program: &'a Program,
    pub nodes: Vec<One>,
    pub of_function: FxHashMap<FuncId, Vec<usize>>,
    pub places: FxHashMap<Operator, Vec<NodePosition>>,
    /// The nodes that end with direct calls, by callee. `indirect` has the nodes that end with
    /// calls through tables, by type.
    pub calls: FxHashMap<FuncId, Vec<usize>>,
    pub indirect: Vec<(TypeId, usize)>,
    /// The nodes that may call the host.
    pub of_host: Vec<usize>,
    pub throws: Vec<usize>,
    /// The writers of each memory. The next fields contain the writers of each global, table and
    /// memory size.
    pub stores: FxHashMap<u32, Vec<Operator>>,
    pub globals: FxHashMap<u32, Vec<Operator>>,
    pub tables: FxHashMap<u32, Vec<Operator>>,
    pub sizes: FxHashMap<u32, Vec<Operator>>,
    control: FxHashMap<FuncId, ControlDependence>,
    /// The nodes after which an activation continues at a block.
    goes_on: FxHashMap<(FuncId, BlockId), Vec<usize>>,
    arrivals: FxHashMap<(FuncId, BlockId), Rc<Arrivals>>,
}

impl<'a> Executed<'a> {
    pub fn new(
        program: &'a Program,
        nodes: &'a PrimaryMap<NodeId, Node>,
        codes: impl IntoIterator<Item = (NodeId, NodeCode)>,
    ) -> Self {
        let mut plans = Plans::new(program, nodes);
        let mut executed = Self {
            program,
            nodes: Vec::new(),
            of_function: FxHashMap::default(),
            places: FxHashMap::default(),
            calls: FxHashMap::default(),
            indirect: Vec::new(),
            of_host: Vec::new(),
            throws: Vec::new(),
            stores: FxHashMap::default(),
            globals: FxHashMap::default(),
            tables: FxHashMap::default(),
            sizes: FxHashMap::default(),
            control: FxHashMap::default(),
            goes_on: FxHashMap::default(),
            arrivals: FxHashMap::default(),
        };
        for (node, code) in codes {
            plans.prepare(node, &code);
            if let Some(plan) = plans.get(node) {
                executed.add(code, Rc::clone(plan));
            }
        }
        let writers = [
            &mut executed.stores,
            &mut executed.globals,
            &mut executed.tables,
            &mut executed.sizes,
        ];
        for operators in writers.into_iter().flat_map(|map| map.values_mut()) {
            operators.sort_unstable();
            operators.dedup();
        }
        executed
    }

    fn add(&mut self, code: NodeCode, plan: Rc<Plan>) {
        let node = self.nodes.len();
        let function = plan.function;
        self.of_function.entry(function).or_default().push(node);
        for (i, (&op, inst)) in plan.ops.iter().zip(&plan.insts).enumerate() {
            let operator = (function, op);
            let inst_place = Some(i);
            let place = NodePosition {
                node,
                inst: inst_place,
            };
            self.places.entry(operator).or_default().push(place);
            let written = match inst.kind {
                Kind::Store | Kind::Many | Kind::Copy => {
                    self.stores.entry(inst.memory.into()).or_default()
                }
                Kind::GlobalSet => self.globals.entry(inst.number).or_default(),
                Kind::TableSet | Kind::TableGrow => self.tables.entry(inst.number).or_default(),
                Kind::MemoryGrow => self.sizes.entry(inst.memory.into()).or_default(),
                _ => continue,
            };
            written.push(operator);
        }
        if let Some(op) = plan.end_op {
            let place = NodePosition { node, inst: None };
            self.places.entry((function, op)).or_default().push(place);
        }
        match callee(&code.end) {
            Some(Callee::Direct(callee)) => {
                self.calls.entry(*callee).or_default().push(node);
                if self.program.function(*callee).is_none() {
                    self.of_host.push(node);
                }
            }
            Some(&Callee::Indirect { ty, .. }) => {
                self.indirect.push((ty, node));
                let mut imports = self.program.imports.iter();
                if imports.any(|import| self.same(import.ty, ty)) {
                    self.of_host.push(node);
                }
            }
            None if matches!(plan.end, End::Throw(_) | End::Rethrow(_)) => self.throws.push(node),
            None => {}
        }
        if let Some(next) = code.next {
            self.goes_on.entry((function, next)).or_default().push(node);
        }
        let mut outputs = code.outputs.clone();
        outputs.sort_unstable();
        self.nodes.push(One {
            code,
            plan,
            outputs,
        });
    }

    /// Returns the nodes from which control may reach a block. These are nodes after which the
    /// activation continues there, and nodes that end where an exception that the block handles may
    /// be raised.
    pub fn arrivals(&mut self, function: FuncId, block: BlockId) -> Rc<Arrivals> {
        if let Some(known) = self.arrivals.get(&(function, block)) {
            return Rc::clone(known);
        }
        let nodes = self.goes_on.get(&(function, block));
        let mut found = Arrivals {
            nodes: nodes.cloned().unwrap_or_default(),
            handles: false,
        };
        if let Some(cfg) = self.program.function(function).map(|known| &known.cfg) {
            let dispatches = dispatches_to(cfg, block);
            if !dispatches.is_empty() {
                found.handles = true;
                let own = self.of_function.get(&function).into_iter().flatten();
                let raises = |node: &&usize| {
                    let last = self.nodes[**node].plan.blocks.last();
                    let mut next = last
                        .into_iter()
                        .flat_map(|&last| cfg.graph.successors(last));
                    next.any(|next| dispatches.contains(&next))
                };
                found.nodes.extend(own.filter(raises));
            }
        }
        let found = Rc::new(found);
        self.arrivals.insert((function, block), Rc::clone(&found));
        found
    }

    /// Whether two types are equal.
    pub fn same(&self, one: TypeId, other: TypeId) -> bool {
        one == other || self.program.types.get(one) == self.program.types.get(other)
    }

    pub fn has(&self, operator: Operator) -> bool {
        self.places.contains_key(&operator)
    }

    pub fn operators(&self) -> impl Iterator<Item = Operator> + '_ {
        self.places.keys().copied()
    }

    /// Returns the operator at a node's end.
    pub fn end(&self, node: usize) -> Option<Operator> {
        let plan = &self.nodes[node].plan;
        Some((plan.function, plan.end_op?))
    }

    /// Returns the functions that a call may enter.
    pub fn callees(&self, end: &NodeEnd) -> Vec<FuncId> {
        match callee(end) {
            Some(&Callee::Direct(function)) => vec![function],
            Some(&Callee::Indirect { ty, .. }) => {
                let executed = self.of_function.keys().copied();
                let of_type = |&function: &FuncId| {
                    let function = self.program.function(function);
                    function.is_some_and(|function| self.same(function.ty, ty))
                };
                executed.filter(of_type).collect()
            }
            None => Vec::new(),
        }
    }

    /// Returns the number of a call's results.
    pub fn results(&self, end: &NodeEnd) -> u32 {
        let ty = match callee(end) {
            Some(&Callee::Direct(function)) => match self.program.function(function) {
                Some(function) => Some(function.ty),
                None => {
                    let import = self.program.imports.get(function.as_u32() as usize);
                    import.map(|import| import.ty)
                }
            },
            Some(&Callee::Indirect { ty, .. }) => Some(ty),
            None => None,
        };
        let ty = ty.and_then(|ty| self.program.types.get(ty));
        ty.map_or(0, |ty| ty.results.len() as u32)
    }

    /// Returns the nodes that may call a function.
    pub fn callers(&self, function: FuncId) -> Vec<usize> {
        let mut found = self.calls.get(&function).cloned().unwrap_or_default();
        if let Some(ty) = self.program.function(function).map(|f| f.ty) {
            let through = self.indirect.iter().filter(|(of, _)| self.same(*of, ty));
            found.extend(through.map(|(_, node)| *node));
        }
        found
    }

    /// Returns a function's control dependences, with its control-flow graph.
    pub fn control(&mut self, function: FuncId) -> Option<(&ControlDependence, &'a Cfg)> {
        let cfg = &self.program.function(function)?.cfg;
        let control = self.control.entry(function).or_insert_with(|| {
            ControlDependence::compute(&cfg.graph, &PostDominatorTree::compute(&cfg.graph))
        });
        Some((control, cfg))
    }
}

pub(super) fn callee(end: &NodeEnd) -> Option<&Callee> {
    match end {
        NodeEnd::Call { callee, .. } | NodeEnd::TailCall { callee, .. } => Some(callee),
        _ => None,
    }
}

/// Returns the last operator of a block.
pub(super) fn terminator(cfg: &Cfg, block: BlockId) -> Option<OpId> {
    let block = cfg.blocks.get(block)?;
    Some(OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?))
}

pub(super) fn is_dispatch(cfg: &Cfg, v: BlockId) -> bool {
    let block = cfg.blocks.get(v);
    block.is_some_and(|block| matches!(block.kind, BlockKind::Dispatch(_)))
}

/// Returns the vertices where an exception may choose a block as its handler, innermost first.
fn dispatches_to(cfg: &Cfg, block: BlockId) -> Vec<BlockId> {
    let mut found: Vec<BlockId> = Vec::new();
    let mut of = Some(block);
    let mut at = 0;
    while let Some(v) = of {
        for before in cfg.graph.predecessors(v) {
            if is_dispatch(cfg, before) && !found.contains(&before) {
                found.push(before);
            }
        }
        of = found.get(at).copied();
        at += 1;
    }
    found
}
