//! Finds the dynamic basic blocks of a path trace (Zhang and Gupta 2001, section 2, Figures 4 and
//! 5).

use afterimage_ids::BlockId;
use rustc_hash::FxHashMap;

use super::dictionary::Dictionary;
use super::timestamped::TimestampedTrace;
use super::timestamped_builder::TimestampedBuilder;

/// Represents the places before a trace's first block and after its last block.
const OUTSIDE: u32 = u32::MAX;

/// The part of a path trace's dynamic control-flow graph that determines the chains. It contains
/// each block's predecessor and successor, if they are unique. The memory is reused for the next
/// trace.
///
/// In the trace, a dynamic basic block is entered only at its first block and left only at its
/// last. So `b` continues `a` if and only if every `a` is followed by a `b` and every `b` is
/// preceded by an `a`. The beginning of the trace counts as entering its first block, and the end
/// as leaving its last block.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicBlocks {
    index: FxHashMap<BlockId, u32>,
    vertices: Vec<Vertex>,
    steps: TimestampedBuilder,
}

#[derive(Clone, Copy, Debug)]
struct Vertex {
    block: BlockId,
    before: Neighbour,
    after: Neighbour,
}

/// The neighbours of a vertex on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    None,
    One(u32),
    Many,
}

impl DynamicBlocks {
    /// Returns the chains, and the trace with each chain replaced by its first block. Makes two
    /// passes over the blocks, with O(1) for each block.
    pub(super) fn compact(
        &mut self,
        blocks: impl Iterator<Item = BlockId> + Clone,
    ) -> (TimestampedTrace, Dictionary) {
        self.find_neighbours(blocks.clone());
        for block in blocks {
            if self.continues(self.index[&block]).is_none() {
                self.steps.push(block);
            }
        }
        (self.steps.finish(), Dictionary::new(self.chains()))
    }

    fn find_neighbours(&mut self, blocks: impl Iterator<Item = BlockId>) {
        self.index.clear();
        self.vertices.clear();
        let mut last = OUTSIDE;
        for block in blocks {
            let v = *self.index.entry(block).or_insert_with(|| {
                self.vertices.push(Vertex {
                    block,
                    before: Neighbour::None,
                    after: Neighbour::None,
                });
                self.vertices.len() as u32 - 1
            });
            self.edge(last, v);
            last = v;
        }
        self.edge(last, OUTSIDE);
    }

    fn edge(&mut self, from: u32, to: u32) {
        if let Some(vertex) = self.vertices.get_mut(from as usize) {
            vertex.after.add(to);
        }
        if let Some(vertex) = self.vertices.get_mut(to as usize) {
            vertex.before.add(from);
        }
    }

    /// Returns the vertex that vertex `v` continues, if `v` is not the first of its dynamic basic
    /// block.
    fn continues(&self, v: u32) -> Option<u32> {
        let Neighbour::One(before) = self.vertices[v as usize].before else {
            return None;
        };
        let vertex = self.vertices.get(before as usize)?;
        (vertex.after == Neighbour::One(v)).then_some(before)
    }

    /// Returns the chains of at least two blocks. The trace begins outside, so no chain is a cycle.
    fn chains(&self) -> Vec<Vec<BlockId>> {
        let mut chains = Vec::new();
        for v in 0..self.vertices.len() as u32 {
            if self.continues(v).is_some() {
                continue;
            }
            let mut chain = vec![self.vertices[v as usize].block];
            let mut last = v;
            while let Neighbour::One(next) = self.vertices[last as usize].after
                && next != OUTSIDE
                && self.continues(next) == Some(last)
            {
                chain.push(self.vertices[next as usize].block);
                last = next;
            }
            if chain.len() > 1 {
                chains.push(chain);
            }
        }
        chains
    }
}

impl Neighbour {
    fn add(&mut self, vertex: u32) {
        *self = match *self {
            Self::None => Self::One(vertex),
            Self::One(only) if only == vertex => return,
            _ => Self::Many,
        };
    }
}
