//! Finds the dependences within a node, which are the same for every execution of the node.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_graph::{ControlDependence, PostDominatorTree};
use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId, OpId};
use afterimage_machine::{Code, NodeCode, NodeEnd, Operand};
use afterimage_program::{BlockKind, Cfg, Program};
use afterimage_replay::values::{Kind, Statement};
use afterimage_wpp::Node;

use crate::ids::Ids;

/// The origin of an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MadeBy {
    Constant,
    /// A variable of the activation when the node begins.
    Variable(u32),
    /// A statement of the same node: its block and its number.
    Own(u32, i32),
}

/// The operands of a statement of a node, with their origins.
#[derive(Debug)]
pub(crate) struct Depends {
    pub block: u32,
    pub statement: i32,
    pub kind: Kind,
    pub operands: Box<[(&'static str, MadeBy)]>,
    /// Whether the statement uses table elements or a size, whose writers are looked up in the
    /// stored values.
    pub takes: bool,
}

/// The decision on which a block of a node depends.
#[derive(Debug)]
pub(crate) enum Decides {
    /// The decision is made by the block at this position in the same node.
    Own(u32),
    /// The decision is whichever of these edges the activation took last.
    Edges(Rc<[EdgeId]>),
    /// The decision is looked up in the stored values, because the function handles exceptions.
    Asked,
}

/// The dependences within a node.
#[derive(Debug)]
pub(crate) struct DependPlan {
    pub statements: Box<[Depends]>,
    /// For each instruction, its block and its statement.
    pub places: Box<[(u32, i32)]>,
    pub decides: Box<[Decides]>,
    /// The deciding edges on the node's path, each with the position of the block that it leaves.
    pub taken: Box<[(u32, EdgeId)]>,
    /// The variables that the node writes, each with the origin of its value.
    pub outputs: Box<[(u32, MadeBy)]>,
    /// The origins of the values that the node passes to a call, or returns.
    pub given: Box<[MadeBy]>,
    pub first: BlockId,
    pub last: BlockId,
    pub last_statement: Option<i32>,
}

/// The edges of a function that decide which of its blocks run.
pub(crate) struct Control {
    dependence: ControlDependence,
    deciding: Vec<bool>,
    /// Whether the function handles exceptions.
    handles: bool,
}

impl Control {
    pub fn new(cfg: &Cfg) -> Self {
        let post_dominators = PostDominatorTree::compute(&cfg.graph);
        let dependence = ControlDependence::compute(&cfg.graph, &post_dominators);
        let mut deciding = vec![false; cfg.edges.len()];
        for block in cfg.blocks.keys() {
            for edge in dependence.controllers(block) {
                deciding[edge.index()] = true;
            }
        }
        let is_handler = |kind| matches!(kind, BlockKind::Dispatch(Some(_)));
        let mut blocks = cfg.blocks.values();
        Self {
            dependence,
            deciding,
            handles: blocks.any(|block| is_handler(block.kind)),
        }
    }

    /// Returns the deciding edges from one block to another.
    pub fn edges<'c>(
        &'c self,
        cfg: &'c Cfg,
        from: BlockId,
        to: BlockId,
    ) -> impl Iterator<Item = EdgeId> + 'c {
        let out = cfg.graph.out_edges(from).iter().copied();
        out.filter(move |&edge| cfg.graph.to(edge) == to && self.deciding[edge.index()])
    }

    fn of(&self, block: BlockId) -> &[EdgeId] {
        self.dependence.controllers(block)
    }
}

impl DependPlan {
    pub fn new(
        (program, ids): (&Program, &Ids),
        node: &Node,
        code: &NodeCode,
        control: &Control,
    ) -> Option<Self> {
        let function = program.function(node.function)?;
        let number = |op: OpId| ids.statement(node.function, op);
        let positions: HashMap<BlockId, u32> = node.blocks.iter().copied().zip(0..).collect();
        let places = code.insts.iter().map(|inst| {
            let block = function.block_of(inst.op);
            let block = block.and_then(|block| positions.get(&block).copied());
            (block.unwrap_or(0), number(inst.op))
        });
        let places: Box<[(u32, i32)]> = places.collect();
        let from = |register| match code.source(register) {
            Operand::Variable(variable) => MadeBy::Variable(variable),
            Operand::Constant(_) => MadeBy::Constant,
            Operand::Result(inst) => MadeBy::Own(places[inst].0, places[inst].1),
        };
        let mut statements = Statement::all(program, code, &node.blocks);
        statements.sort_by_key(|(_, statement)| statement.block);
        let statements = statements.into_iter().map(|(op, statement)| {
            let operands = statement.operands(code).into_iter();
            Depends {
                block: statement.block as u32,
                statement: number(op),
                kind: statement.kind,
                operands: operands.map(|one| (one.role, from(one.register))).collect(),
                takes: takes(code, statement.kind),
            }
        });
        let mut taken = Vec::new();
        let mut decides = Vec::new();
        for (at, &block) in (0u32..).zip(&node.blocks) {
            let deciding = control.of(block);
            let own = taken.iter().rev();
            let mut own = own.filter(|(_, edge)| deciding.contains(edge));
            decides.push(match own.next() {
                _ if control.handles => Decides::Asked,
                Some(&(position, _)) => Decides::Own(position),
                None => Decides::Edges(deciding.into()),
            });
            if let Some(&next) = node.blocks.get(at as usize + 1) {
                let edges = control.edges(&function.cfg, block, next);
                taken.extend(edges.map(|edge| (at, edge)));
            }
        }
        let given = match &code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => arguments,
            NodeEnd::Return(values) => values,
            _ => &Box::default(),
        };
        let outputs = code.outputs.iter();
        let last = *node.blocks.last()?;
        let end = function.cfg.blocks.get(last)?.ops.end.as_u32();
        Some(Self {
            statements: statements.collect(),
            decides: decides.into(),
            taken: taken.into(),
            outputs: outputs
                .map(|&(to, register)| (to, from(register)))
                .collect(),
            given: given.iter().map(|&register| from(register)).collect(),
            first: *node.blocks.first()?,
            last,
            last_statement: end.checked_sub(1).map(|op| number(OpId::from_u32(op))),
            places,
        })
    }
}

/// Whether a statement uses table elements or a size.
fn takes(code: &NodeCode, kind: Kind) -> bool {
    match kind {
        Kind::Inst(inst) => matches!(
            code.insts[inst].code,
            Code::MemorySize
                | Code::MemoryGrow
                | Code::TableGet
                | Code::TableSize
                | Code::TableGrow
                | Code::TableCopy
        ),
        Kind::Call(_) => matches!(
            &code.end,
            NodeEnd::Call { index: Some(_), .. } | NodeEnd::TailCall { index: Some(_), .. }
        ),
        Kind::Return | Kind::Throw => false,
    }
}

/// The deciding edges of functions, computed when a function is first executed.
#[derive(Default)]
pub(crate) struct Controls(HashMap<FuncId, Rc<Control>>);

impl Controls {
    pub fn of(&mut self, function: FuncId, cfg: &Cfg) -> Rc<Control> {
        let known = self.0.entry(function);
        Rc::clone(known.or_insert_with(|| Rc::new(Control::new(cfg))))
    }
}
