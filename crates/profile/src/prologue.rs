//! Finds the end of a function's prologue, which sets up its frame and stores its parameters.

use afterimage_ids::{BlockId, EntityRef, OpId};
use afterimage_program::{BlockKind, Function, Program, SourceMap};
use wasmparser::Operator;

use crate::ProfileError;

/// The first operator after a function's prologue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrologueEnd {
    /// The number of the activation's blocks executed before the operator's block.
    pub blocks: u64,
    /// The first operator after the prologue.
    pub op: OpId,
}

/// Finds the end of a function's prologue as debuggers do. The end is at the function's first row
/// of the line table that marks a prologue's end, or otherwise at the function's second row.
/// Returns `None` if the line table does not cover the function. Also returns `None` if a branch or
/// a call comes before this row, because an activation may then go elsewhere. O(log rows + size of
/// the body).
///
/// # Errors
/// Returns an error if the module's bytes do not match the program.
pub fn prologue_end(
    program: &Program,
    module: &[u8],
    source: &SourceMap<'_>,
    function: &Function,
) -> Result<Option<PrologueEnd>, ProfileError> {
    let rows = source.rows();
    let first = rows.partition_point(|row| row.range.start < function.body.start);
    let end = rows.partition_point(|row| row.range.start < function.body.end);
    let rows = &rows[first..end];
    let Some(row) = rows.iter().find(|row| row.prologue_end).or(rows.get(1)) else {
        return Ok(None);
    };
    let mut body = Vec::new();
    crate::body::decode(program, module, function, &mut body)?;
    let at = body.partition_point(|op| op.offset < row.range.start);
    let Some(op) = (at..body.len()).find(|&i| body[i].instruction) else {
        return Ok(None);
    };
    let op = OpId::new(op);
    // A call ends its block, and the code after a call does not belong to the prologue.
    let calls = program
        .operators(module, function)
        .take_while(|(other, _, _)| *other < op)
        .any(|(_, _, operator)| is_call(&operator));
    let blocks = function.block_of(op).filter(|_| !calls);
    let blocks = blocks.and_then(|block| straight(function, block));
    Ok(blocks.map(|blocks| PrologueEnd { blocks, op }))
}

/// Returns the number of blocks executed before a block that every activation reaches without a
/// branch.
fn straight(function: &Function, block: BlockId) -> Option<u64> {
    let cfg = &function.cfg;
    let mut at = cfg.graph.root();
    // The bound ends the search if the blocks form a cycle.
    for before in 0..cfg.blocks.len() as u64 {
        if cfg.blocks[at].kind != BlockKind::Code {
            return None;
        }
        if at == block {
            return Some(before);
        }
        let [edge] = cfg.graph.out_edges(at) else {
            return None;
        };
        at = cfg.graph.to(*edge);
    }
    None
}

fn is_call(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Call { .. }
            | Operator::CallIndirect { .. }
            | Operator::CallRef { .. }
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. }
            | Operator::ReturnCallRef { .. }
    )
}
