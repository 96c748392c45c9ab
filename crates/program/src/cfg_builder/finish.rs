//! Converts the builder's vertices and edges to the numbering of [`Cfg`].

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EntityRef, OpId, PrimaryMap};

use super::{CfgBuilder, RawEdge, Vertex};
use crate::{Block, BlockEnd, BlockKind, Cfg, Edge};

/// Numbers vertices and edges. First joins blocks that were split for a loop to which no branch
/// leads back.
pub(super) fn finish(mut builder: CfgBuilder<'_>) -> Cfg {
    let number = Numbering::of(&mut builder);
    let CfgBuilder {
        code,
        mut edges,
        mut dispatches,
        own_dispatch,
        end,
        ..
    } = builder;

    let kept = code
        .into_iter()
        .zip(&number.absorbed)
        .filter(|(_, absorbed)| !**absorbed);
    let mut blocks: PrimaryMap<BlockId, Block> = kept.map(|(block, _)| block).collect();
    dispatches.sort_unstable();
    for (op, offset) in dispatches {
        blocks.push(Block {
            kind: BlockKind::Dispatch(Some(op)),
            ops: op..op,
            offsets: offset..offset,
            end: BlockEnd::Dispatch,
        });
    }
    let last = blocks
        .values()
        .map(|block| block.ops.end)
        .max()
        .unwrap_or(OpId::new(0));
    let virtual_block = |kind, block_end| Block {
        kind,
        ops: last..last,
        offsets: end..end,
        end: block_end,
    };
    if own_dispatch {
        blocks.push(virtual_block(BlockKind::Dispatch(None), BlockEnd::Dispatch));
    }
    let exit = blocks.push(virtual_block(BlockKind::Exit, BlockEnd::Exit));

    edges.retain(|edge| !number.contracted(edge));
    let edges: PrimaryMap<_, Edge> = in_order(&edges, &number, blocks.len())
        .into_iter()
        .map(|edge| Edge {
            from: number.of_vertex(edge.origin.from),
            to: number.of_vertex(edge.to),
            kind: edge.origin.kind,
            back: edge.back,
            op: edge.origin.op,
        })
        .collect();
    let ends = edges.values().map(|edge| (edge.from, edge.to));
    let graph = FlowGraph::new(blocks.len(), BlockId::new(0), exit, ends);
    Cfg {
        blocks,
        edges,
        graph,
    }
}

/// Sorts the edges by the block that they leave, and then by slot. Takes linear time, except for
/// blocks with many edges. Most blocks have one or two edges.
fn in_order<'e>(edges: &'e [RawEdge], number: &Numbering, blocks: usize) -> Vec<&'e RawEdge> {
    let from = |edge: &RawEdge| number.of_vertex(edge.origin.from).index();
    let mut next = vec![0; blocks + 1];
    for edge in edges {
        next[from(edge) + 1] += 1;
    }
    for block in 1..next.len() {
        next[block] += next[block - 1];
    }
    let Some(any) = edges.first() else {
        return Vec::new();
    };
    let mut ordered = vec![any; edges.len()];
    for edge in edges {
        let place: &mut usize = &mut next[from(edge)];
        ordered[*place] = edge;
        *place += 1;
    }
    for own in ordered.chunk_by_mut(|a, b| from(a) == from(b)) {
        own.sort_unstable_by_key(|edge| edge.origin.slot);
    }
    ordered
}

/// The final numbers of the builder's vertices.
struct Numbering {
    /// Whether each code block of the builder was joined to the previous block.
    absorbed: Vec<bool>,
    code: Vec<BlockId>,
    dispatch: Vec<BlockId>,
    own_dispatch: BlockId,
    exit: BlockId,
}

impl Numbering {
    fn of(builder: &mut CfgBuilder<'_>) -> Self {
        let code_blocks = &mut builder.code;
        let mut entries = vec![0u32; code_blocks.len()];
        for edge in &builder.edges {
            if let Vertex::Code(block) = edge.to {
                entries[block as usize] = entries[block as usize].saturating_add(1);
            }
        }
        let mut absorbed = vec![false; code_blocks.len()];
        for edge in &builder.edges {
            if let (true, Vertex::Code(block)) = (edge.splits_for_loop, edge.to) {
                absorbed[block as usize] = entries[block as usize] == 1;
            }
        }

        let mut code = Vec::with_capacity(code_blocks.len());
        let mut host = 0;
        let mut next = 0;
        for (i, &absorbed) in absorbed.iter().enumerate() {
            if absorbed {
                let (above, block) = code_blocks.split_at_mut(i);
                let (host, block): (&mut Block, _) = (&mut above[host], &block[0]);
                if host.ops.is_empty() {
                    (host.ops, host.offsets) = (block.ops.clone(), block.offsets.clone());
                } else {
                    (host.ops.end, host.offsets.end) = (block.ops.end, block.offsets.end);
                }
                host.end = block.end;
            } else {
                host = i;
                next += 1;
            }
            code.push(BlockId::new(next - 1));
        }

        let mut by_op: Vec<_> = (0..builder.dispatches.len()).collect();
        by_op.sort_unstable_by_key(|&i| builder.dispatches[i]);
        let mut dispatch = vec![BlockId::new(0); by_op.len()];
        for (rank, i) in by_op.into_iter().enumerate() {
            dispatch[i] = BlockId::new(next + rank);
        }
        let own_dispatch = next + dispatch.len();
        let exit = BlockId::new(own_dispatch + usize::from(builder.own_dispatch));
        Self {
            absorbed,
            code,
            dispatch,
            own_dispatch: BlockId::new(own_dispatch),
            exit,
        }
    }

    fn contracted(&self, edge: &RawEdge) -> bool {
        matches!(edge.to, Vertex::Code(block) if edge.splits_for_loop && self.absorbed[block as usize])
    }

    fn of_vertex(&self, vertex: Vertex) -> BlockId {
        match vertex {
            Vertex::Code(block) => self.code[block as usize],
            Vertex::Dispatch(dispatch) => self.dispatch[dispatch as usize],
            Vertex::OwnDispatch => self.own_dispatch,
            Vertex::Exit => self.exit,
        }
    }
}
