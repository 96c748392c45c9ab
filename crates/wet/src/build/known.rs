//! The nodes as the builder knows them, laid out for being asked at each step of a run: what is asked often lies close together.

use afterimage_ids::{EntityRef, NodeId, PrimaryMap};
use afterimage_machine::{NodeCode, NodeEnd};
use afterimage_program::Program;

use super::costs::{Mask, Masks};
use super::sites::{Numbers, Site};
use crate::model::{Event, NodeModel, ReadFrom, WriteTo};

/// What is known of all nodes.
pub(super) struct Known {
    nodes: PrimaryMap<NodeId, Node>,
    /// How often each was executed.
    counts: PrimaryMap<NodeId, u64>,
    insts: Vec<Inst>,
}

/// A node.
pub(super) struct Node {
    /// Where its instructions begin among those of all nodes.
    insts: u32,
    /// The number of its first input among those of all nodes.
    inputs: u32,
    /// How many inputs it has.
    pub count: u32,
    /// How many values the function returns, if it returns what the call gives that the node ends with.
    pub returns: Option<u32>,
    /// What is read from elsewhere than memories and globals: instructions and which inputs they are.
    pub elsewhere: Box<[(u32, u32)]>,
    /// What its outputs, and the arguments or results at its end, depend on.
    pub masks: Masks,
    pub model: NodeModel,
}

/// An instruction.
#[derive(Clone, Copy)]
pub(super) struct Inst {
    /// See [`Masks::insts`].
    pub mask: Mask,
    /// For a read, which input; for a write, which site.
    pub number: u32,
    /// It writes a value of so many bytes to a memory.
    pub stepping: bool,
}

/// The node that is being executed.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub node: NodeId,
    /// How often it was executed, this time included.
    pub count: u64,
    insts: u32,
    inputs: u32,
}

impl Known {
    /// Nothing was executed so far. With the nodes come the numbers of their inputs and writes, which begin behind `sites`.
    pub(super) fn new(
        program: &Program,
        codes: &PrimaryMap<NodeId, NodeCode>,
        mut sites: Vec<Site>,
    ) -> (Self, Numbers) {
        let mut nodes = PrimaryMap::with_capacity(codes.len());
        let mut insts = Vec::new();
        let mut inputs = Vec::with_capacity(codes.len());
        let mut next = 0;
        for (node, code) in codes.iter() {
            let model = NodeModel::new(code);
            let masks = Masks::new(code, &model);
            let first = insts.len() as u32;
            let ordinals = (0..code.insts.len()).map(|inst| model.ordinal(inst));
            for (&mask, ordinal) in masks.insts.iter().zip(ordinals) {
                insts.push(Inst {
                    mask,
                    number: ordinal.unwrap_or(0) as u32,
                    stepping: false,
                });
            }
            let here = &mut insts[first as usize..];
            for read in &model.reads {
                here[read.inst as usize].number = model.of_read(read.inst as usize) as u32;
            }
            for write in &model.writes {
                let inst = &mut here[write.inst as usize];
                inst.number += sites.len() as u32;
                inst.stepping = matches!(write.to, WriteTo::Memory(_));
            }
            sites.extend((0..model.writes.len() as u32).map(|write| Site { node, write }));
            let elsewhere = model.reads.iter();
            let elsewhere = elsewhere.filter(|read| read.from == ReadFrom::Elsewhere);
            let elsewhere =
                elsewhere.map(|read| (read.inst, model.of_read(read.inst as usize) as u32));
            let elsewhere = elsewhere.collect();
            let returns = match (&code.end, code.next, program.function(code.function)) {
                (NodeEnd::Call { .. }, None, Some(function)) => {
                    Some(program.types[function.ty].results.len() as u32)
                }
                _ => None,
            };
            let count = model.inputs() as u32;
            nodes.push(Node {
                insts: first,
                inputs: next,
                count,
                returns,
                elsewhere,
                masks,
                model,
            });
            inputs.push(next);
            next += count + Event::COUNT;
        }
        let counts = nodes.values().map(|_| 0).collect();
        let known = Self {
            nodes,
            counts,
            insts,
        };
        (known, Numbers { sites, inputs })
    }

    /// How many inputs all nodes have.
    pub(super) fn inputs(&self) -> usize {
        let nodes = self.nodes.values();
        let counts = nodes.map(|node| (node.count + Event::COUNT) as usize);
        counts.sum()
    }

    /// Another execution of a node begins.
    #[inline]
    pub(super) fn begin(&mut self, node: NodeId) -> Current {
        let count = &mut self.counts[node];
        *count += 1;
        let known = &self.nodes[node];
        Current {
            node,
            count: *count,
            insts: known.insts,
            inputs: known.inputs,
        }
    }

    /// How often a node was executed.
    #[inline]
    pub(super) fn count(&self, node: NodeId) -> u64 {
        self.counts[node]
    }

    #[inline]
    pub(super) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// An instruction of the node that is being executed.
    #[inline]
    pub(super) fn inst(&self, current: Current, inst: usize) -> Inst {
        self.insts[current.insts as usize + inst]
    }
}

impl Current {
    /// Before anything is executed.
    pub(super) fn nothing() -> Self {
        Self {
            node: NodeId::new(0),
            count: 0,
            insts: 0,
            inputs: 0,
        }
    }

    /// The number of one of its inputs among those of all nodes.
    #[inline]
    pub(super) fn input(&self, input: usize) -> u32 {
        self.inputs + input as u32
    }
}
