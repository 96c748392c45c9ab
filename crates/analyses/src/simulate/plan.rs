//! Plans what to simulate in a node of the path.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId, OrigOffset};
use afterimage_machine::{Code, Expected, NodeCode, NodeEnd};
use afterimage_program::{BlockEnd, Callee, Program};
use afterimage_simulate::{Site, SiteKind};
use afterimage_wpp::Node;

use afterimage_profile::body::{Decoded, decode};
use afterimage_profile::{ProfileError, Stop};

/// A branch of a node. The path shows where it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// The branch's instruction.
    pub inst: usize,
    /// The branch's number among the sites.
    pub site: u32,
    /// The branch's offset in the module.
    pub place: u64,
    pub way: Way,
}

/// The outcome of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Whether the branch's condition is true.
    Taken(bool),
    /// The block to which the branch goes.
    Target(u64),
}

/// The sites to simulate in a node.
#[derive(Debug, Default)]
pub(super) struct NodePlan {
    /// The branches, in order.
    pub branches: Box<[Branch]>,
    /// The site number and the place of the final call, if that call goes through a table or a
    /// reference.
    pub call: Option<(u32, u64)>,
    /// For each instruction, the site number of its access plus one, or 0 if it has none. Empty if
    /// there are no accesses.
    pub accesses: Box<[u32]>,
    /// The number of instructions in the node's blocks.
    pub instructions: u64,
}

/// Sites, numbered in the order in which they are first planned. Branches and accesses are numbered
/// separately.
#[derive(Debug, Default)]
pub(super) struct Sites {
    pub branches: Vec<Site>,
    pub accesses: Vec<Site>,
    numbers: HashMap<(FuncId, OpId), u32>,
}

impl Sites {
    fn number(&mut self, function: FuncId, op: OpId, kind: SiteKind) -> u32 {
        let list = if kind.is_branch() {
            &mut self.branches
        } else {
            &mut self.accesses
        };
        *self.numbers.entry((function, op)).or_insert_with(|| {
            list.push(Site {
                function: function.as_u32(),
                op: op.as_u32(),
                kind,
            });
            list.len() as u32 - 1
        })
    }
}

pub(super) struct NodePlans<'a> {
    program: &'a Program,
    module: &'a [u8],
    pub sites: Sites,
    plans: Vec<Option<Rc<NodePlan>>>,
    bodies: HashMap<FuncId, Rc<[Decoded]>>,
}

impl<'a> NodePlans<'a> {
    pub fn new(program: &'a Program, module: &'a [u8], nodes: usize) -> Self {
        Self {
            program,
            module,
            sites: Sites::default(),
            plans: vec![None; nodes],
            bodies: HashMap::new(),
        }
    }

    pub fn known(&self, node: NodeId) -> Option<&Rc<NodePlan>> {
        self.plans[node.index()].as_ref()
    }

    /// Returns the operators of a defined function.
    pub fn body(&mut self, function: FuncId) -> Result<Rc<[Decoded]>, ProfileError> {
        if let Some(known) = self.bodies.get(&function) {
            return Ok(Rc::clone(known));
        }
        let mut body = Vec::new();
        if let Some(function) = self.program.function(function) {
            decode(self.program, self.module, function, &mut body)?;
        }
        let body: Rc<[Decoded]> = body.into();
        self.bodies.insert(function, Rc::clone(&body));
        Ok(body)
    }

    /// Returns the number one past the last operator of the block in which a run ended.
    pub fn block_end(&self, stop: &Stop) -> usize {
        let function = self.program.function(stop.function);
        let block = function.and_then(|function| function.cfg.blocks.get(stop.block));
        block.map_or(0, |block| block.ops.end.index())
    }

    /// Makes the plan of a new node. O(operators · log blocks) in the node.
    pub fn add(
        &mut self,
        id: NodeId,
        node: &Node,
        code: &NodeCode,
    ) -> Result<Rc<NodePlan>, ProfileError> {
        let body = self.body(node.function)?;
        let place = |op: OpId| {
            let offset = body.get(op.index()).map_or(OrigOffset(0), |op| op.offset);
            u64::from(offset.0)
        };
        let cfg = self.program.function(node.function).map(|f| &f.cfg);
        let (mut instructions, mut ends) = (0, Vec::new());
        for (i, &block) in node.blocks.iter().enumerate() {
            let Some(known) = cfg.and_then(|cfg| cfg.blocks.get(block)) else {
                continue;
            };
            let ops = known.ops.start.index()..known.ops.end.index();
            let ops = body.get(ops).unwrap_or_default();
            instructions += ops.iter().filter(|op| op.instruction).count() as u64;
            // The end of a function is the exit vertex of its graph.
            let to = node.blocks.get(i + 1).copied().or(code.next);
            let to = to.or(cfg.map(|cfg| cfg.graph.exit()));
            ends.push((known.ops.end, to.map_or(0, |to| to.as_u32())));
        }
        ends.sort_unstable();
        let mut branches = Vec::new();
        let mut accesses = vec![0; code.insts.len()];
        let mut any = false;
        for (inst, instruction) in code.insts.iter().enumerate() {
            let op = instruction.op;
            let kind = match instruction.code {
                Code::Branch(expected) => {
                    let (kind, way) = match expected {
                        Expected::True => (SiteKind::Conditional, Way::Taken(true)),
                        Expected::False => (SiteKind::Conditional, Way::Taken(false)),
                        Expected::OneOf => {
                            let end = OpId::from_u32(op.as_u32() + 1);
                            let to = ends.binary_search_by_key(&end, |(end, _)| *end);
                            let to = to.map_or(0, |found| ends[found].1);
                            (SiteKind::Table, Way::Target(to.into()))
                        }
                        Expected::Any => continue,
                    };
                    branches.push(Branch {
                        inst,
                        site: self.sites.number(node.function, op, kind),
                        place: place(op),
                        way,
                    });
                    continue;
                }
                Code::Load(_) | Code::LoadVector(_) => SiteKind::Load,
                Code::Store(_) | Code::StoreVector(_) => SiteKind::Store,
                Code::MemoryCopy | Code::MemoryFill | Code::MemoryInit => SiteKind::Bulk,
                _ => continue,
            };
            any = true;
            accesses[inst] = self.sites.number(node.function, op, kind) + 1;
        }
        let plan = Rc::new(NodePlan {
            call: self.call(node, code).map(|op| {
                let site = self.sites.number(node.function, op, SiteKind::Call);
                (site, place(op))
            }),
            branches: branches.into(),
            accesses: if any { accesses.into() } else { Box::default() },
            instructions,
        });
        self.plans[id.index()] = Some(Rc::clone(&plan));
        Ok(plan)
    }

    /// Returns the call that ends a node, if its callee is known only at run time.
    fn call(&self, node: &Node, code: &NodeCode) -> Option<OpId> {
        let (NodeEnd::Call { callee, .. } | NodeEnd::TailCall { callee, .. }) = &code.end else {
            return None;
        };
        if matches!(callee, Callee::Direct(_)) {
            return None;
        }
        let cfg = &self.program.function(node.function)?.cfg;
        let last = cfg.blocks.get(*node.blocks.last()?)?;
        let is_call = matches!(last.end, BlockEnd::Call(_) | BlockEnd::TailCall(_));
        let op = last.ops.end.as_u32().checked_sub(1)?;
        is_call.then(|| OpId::from_u32(op))
    }
}
