//! Finds all executions of an operator, in order of time.

use afterimage_ids::{BlockId, FuncId, NodeId, OpId};
use afterimage_program::{BlockKind, Function, Program};
use afterimage_wpp::{Occurrences, Segments, TargetError, WholePath};

use super::{Instance, RecordedValues, Statement, ValuesError};
use crate::whole_path::FileSegments;

/// All executions of an operator.
pub struct Executions<'a> {
    occurrences: Occurrences<'a, FileSegments>,
    op: OpId,
    program: &'a Program,
}

/// A single execution of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of the operator's block.
    pub time: u64,
    /// The execution of the node that contains the operator.
    pub instance: Instance,
    /// The operator's statement in the node, or `None` if the operator is not a statement in this
    /// node.
    pub statement: Option<Statement>,
}

/// Returns the block of an operator. For the first operator of a function with an empty root block,
/// this is the root.
pub fn block_at(function: &Function, op: OpId) -> Option<BlockId> {
    let (root, block) = function.cfg.blocks.iter().next()?;
    let empty = block.kind == BlockKind::Code && block.ops.is_empty() && block.ops.start == op;
    function.block_of(op).or(empty.then_some(root))
}

/// Returns the executions of an operator's block. The result is empty if the block cannot be
/// reached. If the run ended before the operator, the last execution of the block does not include
/// the operator. The caller must check this. O(nodes of the path).
///
/// # Errors
/// Returns an error if the executions cannot be counted.
pub fn block_executions<'a, S: Segments>(
    path: &'a WholePath<S>,
    program: &Program,
    function: FuncId,
    op: OpId,
) -> Result<Occurrences<'a, S>, TargetError> {
    let block = program.function(function).and_then(|f| block_at(f, op));
    let nodes = path.nodes().iter();
    let own = nodes.filter(|(_, node)| node.function == function);
    path.executions(own.filter_map(|(id, node)| {
        let at = node.blocks.iter().position(|&other| Some(other) == block)?;
        Some((id, at as u64))
    }))
}

impl<'a> Executions<'a> {
    /// Returns the executions of an operator. The result is empty if the operator cannot be
    /// reached. O(nodes of the path).
    ///
    /// # Errors
    /// Returns an error if the executions cannot be counted.
    pub fn of(
        values: &RecordedValues<'a>,
        program: &'a Program,
        function: FuncId,
        op: OpId,
    ) -> Result<Self, ValuesError> {
        Ok(Self {
            occurrences: block_executions(values.path(), program, function, op)?,
            op,
            program,
        })
    }

    /// Returns the number of executions.
    pub fn count(&self) -> u64 {
        self.occurrences.count()
    }

    /// Returns the number of executions up to and including the block at `time`.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn by(&self, time: u64) -> Result<u64, ValuesError> {
        self.occurrences.rank(time).map_err(ValuesError::Path)
    }

    /// Returns an execution by its number, from 1, or `None` if there are fewer executions.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn get(
        &self,
        values: &RecordedValues<'a>,
        number: u64,
    ) -> Result<Option<Execution>, ValuesError> {
        let found = self.occurrences.select(number).map_err(ValuesError::Path)?;
        let Some(found) = found else {
            return Ok(None);
        };
        let Some(instance) = values.at(found.time)? else {
            return Ok(None);
        };
        let statement = self.statement(values, instance.node, found.time - instance.time)?;
        Ok(Some(Execution {
            number,
            time: found.time,
            instance,
            statement,
        }))
    }

    fn statement(
        &self,
        values: &RecordedValues<'a>,
        node: NodeId,
        position: u64,
    ) -> Result<Option<Statement>, ValuesError> {
        let compiled = values.compiled(node)?;
        let length = values.path().nodes()[node].length();
        let last = position + 1 == length;
        let code = &compiled.code;
        Ok(Statement::find(self.program, code, position, self.op, last))
    }
}
