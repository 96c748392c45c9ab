//! Holds the facts about nodes that the builder needs at each step of a run. Facts that are often
//! used together are stored close together.

use std::ops::Range;

use afterimage_ids::{FuncId, NodeId, PrimaryMap};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd};
use afterimage_program::Program;

use super::costs::{Mask, Masks};
use super::sites::{Numbers, Site};
use crate::def::Origin;
use crate::model::{Event, NodeModel, ReadFrom, WriteTo, read_from, write_to};

/// The data of all nodes.
#[derive(Clone)]
pub(super) struct NodeTable {
    nodes: PrimaryMap<NodeId, Node>,
    variables: Vec<u32>,
    actions: Vec<Action>,
    outputs: Vec<(u32, Mask)>,
    given: Vec<Mask>,
}

/// A range in a list of all nodes' items.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the range of the items appended to a list that had `before` items.
    fn behind<T>(before: usize, list: &[T]) -> Self {
        Self {
            start: before as u32,
            end: list.len() as u32,
        }
    }

    #[inline]
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The facts about a node.
#[derive(Clone, Copy)]
pub(super) struct Node {
    variables: Span,
    actions: Span,
    outputs: Span,
    given: Span,
    /// The number of the node's first input, among the inputs of all nodes.
    pub inputs: u32,
    /// The number of the node's inputs.
    pub count: u32,
    /// The number of variables of the node's function.
    pub of_function: u32,
    /// The number of the node's instructions.
    pub insts: u32,
    /// The number of tape words for an execution, without the node's number.
    pub words: u32,
    /// The number of the node's blocks.
    pub blocks: u32,
    /// Whether the node's reads are not stored.
    pub left_out: bool,
    /// Whether values on the tape have upper halves.
    pub wide: bool,
    /// Whether the node passes values to another activation, or begins or ends an activation.
    pub gives: bool,
    /// Whether the node ends with a call.
    pub calls: bool,
    /// The number of results, if the function returns the results of the call at the node's end.
    pub returns: Option<u32>,
}

/// An instruction's access to state that outlives its node.
#[derive(Clone, Copy)]
pub(super) struct Action {
    /// The inputs that the instruction needs (see [`Masks::insts`]).
    pub mask: Mask,
    /// The number of the input in the node (for a read), or of the site (for a write).
    pub number: u32,
    /// The number of the memory or global.
    pub index: u32,
    /// For a copy, the memory copied from.
    pub from: u32,
    /// The instruction's position.
    pub inst: u32,
    pub what: What,
    /// The number of bytes, if the data is a single value.
    pub length: u8,
}

/// The kind of an [`Action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Read,
    Write,
    Fill,
    Copy,
    GetGlobal,
    SetGlobal,
    /// A read of a table, a size or another place outside memory and globals.
    Elsewhere,
}

impl What {
    /// Returns the number of words that the action takes on the tape.
    fn words(self, wide: bool) -> u32 {
        let value = 1 + u32::from(wide);
        match self {
            Self::Read => 1 + value,
            Self::Write => 1,
            Self::Fill => 2,
            Self::Copy => 3,
            Self::GetGlobal | Self::Elsewhere => value,
            Self::SetGlobal => 0,
        }
    }
}

impl Action {
    fn of(inst: &Inst, position: usize, mask: Mask) -> Option<Self> {
        let (what, length) = match (read_from(inst.code), write_to(inst.code), inst.code) {
            (_, _, Code::Load(load)) => (What::Read, load.bytes),
            (_, _, Code::LoadVector(load)) => (What::Read, load.bytes() as u8),
            (Some(ReadFrom::Global), ..) => (What::GetGlobal, 0),
            (Some(_), ..) => (What::Elsewhere, 0),
            (_, Some(WriteTo::Memory(length)), _) => (What::Write, length),
            (_, Some(WriteTo::Many), _) => (What::Fill, 0),
            (_, Some(WriteTo::Copy), _) => (What::Copy, 0),
            (_, Some(WriteTo::Global), _) => (What::SetGlobal, 0),
            (None, None, _) => return None,
        };
        let of_global = matches!(what, What::GetGlobal | What::SetGlobal);
        Some(Self {
            mask,
            number: 0,
            index: if of_global {
                inst.immediate as u32
            } else {
                inst.memory.into()
            },
            from: inst.immediate as u32,
            inst: position as u32,
            what,
            length,
        })
    }
}

impl NodeTable {
    /// Adds nodes, and numbers their inputs and writes. The numbers of the writes follow the
    /// numbers in `sites`.
    pub(super) fn new(
        program: &Program,
        codes: &PrimaryMap<NodeId, NodeCode>,
        blocks: &[u64],
        mut sites: Vec<Site>,
    ) -> (Self, Numbers) {
        let mut known = Self {
            nodes: PrimaryMap::with_capacity(codes.len()),
            variables: Vec::new(),
            actions: Vec::new(),
            outputs: Vec::new(),
            given: Vec::new(),
        };
        let mut inputs = Vec::with_capacity(codes.len());
        let mut next = 0;
        for ((node, code), &blocks) in codes.iter().zip(blocks) {
            let model = NodeModel::new(code);
            let masks = Masks::new(code, &model);
            let value = 1 + u32::from(code.wide);
            let mut words = code.inputs.len() as u32 * value;
            let actions = known.actions.len();
            for ((position, inst), &mask) in code.insts.iter().enumerate().zip(&masks.insts) {
                let Some(mut action) = Action::of(inst, position, mask) else {
                    continue;
                };
                let ordinal = model.ordinal(position).unwrap_or(0);
                action.number = match read_from(inst.code) {
                    Some(_) => model.of_read(position) as u32,
                    None => (sites.len() + ordinal) as u32,
                };
                words += action.what.words(code.wide);
                known.actions.push(action);
            }
            sites.extend((0..model.writes.len() as u32).map(|write| Site { node, write }));
            let returns = match (&code.end, code.next, program.function(code.function)) {
                (NodeEnd::Call { .. }, None, Some(function)) => {
                    Some(program.types[function.ty].results.len() as u32)
                }
                _ => None,
            };
            let variables = known.variables.len();
            known.variables.extend_from_slice(&code.inputs);
            let outputs = known.outputs.len();
            let written = code.outputs.iter().map(|&(variable, _)| variable);
            known.outputs.extend(written.zip(masks.outputs));
            let given = known.given.len();
            known.given.extend_from_slice(&masks.end);
            let count = model.inputs() as u32;
            known.nodes.push(Node {
                variables: Span::behind(variables, &known.variables),
                actions: Span::behind(actions, &known.actions),
                outputs: Span::behind(outputs, &known.outputs),
                given: Span::behind(given, &known.given),
                inputs: next,
                count,
                of_function: code.variables,
                insts: code.insts.len() as u32,
                words,
                // A path has no cycle, so the number fits.
                blocks: blocks as u32,
                left_out: false,
                wide: code.wide,
                gives: !masks.end.is_empty() || !matches!(code.end, NodeEnd::Next),
                calls: matches!(code.end, NodeEnd::Call { .. } | NodeEnd::TailCall { .. }),
                returns,
            });
            inputs.push(next);
            next += count + Event::COUNT;
        }
        let first = Origin::Initial;
        let numbers = Numbers {
            sites,
            first,
            inputs,
        };
        (known, numbers)
    }

    /// Excludes the nodes of the given functions.
    pub(super) fn leave_out(
        &mut self,
        codes: &PrimaryMap<NodeId, NodeCode>,
        is_left_out: impl Fn(FuncId) -> bool,
    ) {
        for (node, code) in self.nodes.values_mut().zip(codes.values()) {
            node.left_out = is_left_out(code.function);
        }
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of inputs of all nodes, including the inputs that represent events.
    pub(super) fn inputs(&self) -> usize {
        let nodes = self.nodes.values();
        let counts = nodes.map(|node| (node.count + Event::COUNT) as usize);
        counts.sum()
    }

    #[inline]
    pub(super) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// Returns the variables that a node reads, which are its first inputs.
    #[inline]
    pub(super) fn variables(&self, node: &Node) -> &[u32] {
        &self.variables[node.variables.range()]
    }

    /// Returns the actions of a node's instructions, in order.
    #[inline]
    pub(super) fn actions(&self, node: &Node) -> &[Action] {
        &self.actions[node.actions.range()]
    }

    /// Returns the variables that a node writes, and the inputs on which each depends.
    #[inline]
    pub(super) fn outputs(&self, node: &Node) -> &[(u32, Mask)] {
        &self.outputs[node.outputs.range()]
    }

    /// Returns the inputs on which the arguments or results at a node's end depend.
    #[inline]
    pub(super) fn inputs_at_end(&self, node: &Node) -> &[Mask] {
        &self.given[node.given.range()]
    }
}

impl Node {
    /// Returns the number of the input that represents an event of the current node.
    pub(super) fn of_event(&self, event: Event) -> usize {
        self.count as usize + event as usize
    }
}
