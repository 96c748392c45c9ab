//! Stores the prepared nodes of a program.

use std::rc::Rc;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, PrimaryMap};
use afterimage_machine::NodeCode;
use afterimage_program::{Cfg, Program};
use afterimage_wpp::Node;
use rustc_hash::FxHashMap;

use crate::control::{Decisions, FunctionControl};
use crate::plan::Plan;

/// The prepared nodes, and the control dependences of their functions.
pub(crate) struct Plans<'a> {
    program: &'a Program,
    nodes: &'a PrimaryMap<NodeId, Node>,
    control: FxHashMap<FuncId, FunctionControl>,
    plans: Vec<Option<Rc<Plan>>>,
}

impl<'a> Plans<'a> {
    pub fn new(program: &'a Program, nodes: &'a PrimaryMap<NodeId, Node>) -> Self {
        Self {
            program,
            nodes,
            control: FxHashMap::default(),
            plans: vec![None; nodes.len()],
        }
    }

    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Sets a node's code.
    pub fn prepare(&mut self, node: NodeId, code: &NodeCode) {
        let Some(of_node) = self.nodes.get(node) else {
            return;
        };
        let known = self.plans.get(node.index()).is_some_and(Option::is_some);
        if let Some((control, cfg)) = self.control(of_node.function).filter(|_| !known) {
            let plan = Plan::new(of_node, code, control, cfg);
            self.plans[node.index()] = Some(Rc::new(plan));
        }
    }

    /// Returns a prepared node.
    #[inline]
    pub fn get(&self, node: NodeId) -> Option<&Rc<Plan>> {
        self.plans.get(node.index())?.as_ref()
    }

    fn control(&mut self, function: FuncId) -> Option<(&mut FunctionControl, &'a Cfg)> {
        let cfg = &self.program.function(function)?.cfg;
        let control = self.control.entry(function);
        Some((control.or_insert_with(|| FunctionControl::new(cfg)), cfg))
    }

    /// Returns the decisions made by going from one block of a function to another.
    pub fn decisions(&mut self, function: FuncId, from: BlockId, to: BlockId) -> Option<Decisions> {
        let (control, cfg) = self.control(function)?;
        Some(control.decisions(cfg, from, to))
    }

    /// Returns the blocks of a function that may depend on an exception handled by block `handler`.
    pub fn handled(&mut self, function: FuncId, handler: BlockId) -> Option<Rc<[BlockId]>> {
        let (control, cfg) = self.control(function)?;
        Some(control.handled(cfg, handler))
    }
}
