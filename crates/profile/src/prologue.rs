//! Where a function's own code begins: behind its prologue, where its frame is set up and its parameters are in their places.

use afterimage_ids::{BlockId, EntityRef, OpId};
use afterimage_program::{BlockKind, Function, Program, SourceMap};
use wasmparser::Operator;

use crate::ProfileError;

/// The first operator behind a function's prologue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrologueEnd {
    /// How many blocks of the activation are executed before that with the operator.
    pub blocks: u64,
    /// The operator.
    pub op: OpId,
}

/// Where a function's prologue ends, as debuggers find it: at the first row of the line table that says so, or else at
/// the function's second row. `None` if the line table does not cover the function, and if the path there has a branch or a call: what is there is not
/// the beginning of each activation. O(log rows + size of the body).
///
/// # Errors
/// If the module's bytes are not those of the program.
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
    // Calls end blocks, and who comes back from one has been elsewhere.
    let calls = program
        .operators(module, function)
        .take_while(|(other, _, _)| *other < op)
        .any(|(_, _, operator)| is_call(&operator));
    let blocks = function.block_of(op).filter(|_| !calls);
    let blocks = blocks.and_then(|block| straight(function, block));
    Ok(blocks.map(|blocks| PrologueEnd { blocks, op }))
}

/// How many blocks are executed before one that every activation comes to first of all, without a branch.
fn straight(function: &Function, block: BlockId) -> Option<u64> {
    let cfg = &function.cfg;
    let mut at = cfg.graph.root();
    // Who goes round in a circle has passed all blocks.
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
