//! Numbers the places, that is, the counted operators of each Ball–Larus path.

use std::rc::Rc;

use afterimage_ids::{EntityRef, NodeId};
use afterimage_machine::{Code, NodeCode};

use super::shadow::MOST_PLACES;
use afterimage_replay::steps::AccessSite;

/// An operator in a Ball–Larus path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathOperator {
    pub site: AccessSite,
    pub path: NodeId,
    pub is_store: bool,
}

/// The operators and their paths, by place number.
pub(super) struct Places {
    pub all: Vec<PathOperator>,
    wanted: fn(Code) -> bool,
    nodes: Vec<Option<Rc<OfNode>>>,
}

/// The places in a node.
#[derive(Debug, Default)]
pub(super) struct OfNode {
    /// For each instruction, the number of its place plus one, or 0 if it has no place.
    numbers: Box<[u32]>,
}

impl OfNode {
    /// Returns the number of an instruction's place.
    #[inline]
    pub fn get(&self, inst: usize) -> Option<u32> {
        self.numbers[inst].checked_sub(1)
    }
}

impl Places {
    /// Numbers the places of the `wanted` instructions, in up to `nodes` nodes.
    pub fn new(wanted: fn(Code) -> bool, nodes: usize) -> Self {
        Self {
            all: Vec::new(),
            wanted,
            nodes: vec![None; nodes],
        }
    }

    pub fn known(&self, node: NodeId) -> Option<&Rc<OfNode>> {
        self.nodes[node.index()].as_ref()
    }

    /// Adds the places of a new node. Returns `None` if there are too many places.
    pub fn add(&mut self, path: NodeId, code: &NodeCode) -> Option<Rc<OfNode>> {
        let mut numbers = vec![0; code.insts.len()];
        for (number, inst) in numbers.iter_mut().zip(&code.insts) {
            if (self.wanted)(inst.code) {
                self.all.push(PathOperator {
                    site: AccessSite {
                        function: code.function,
                        op: inst.op,
                    },
                    path,
                    is_store: matches!(inst.code, Code::Store(_) | Code::StoreVector(_)),
                });
                *number = self.all.len() as u32;
            }
        }
        let places = Rc::new(OfNode {
            numbers: numbers.into(),
        });
        self.nodes[path.index()] = Some(Rc::clone(&places));
        (self.all.len() <= MOST_PLACES as usize).then_some(places)
    }
}
