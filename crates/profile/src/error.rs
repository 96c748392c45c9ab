//! Errors in the input of a profile.

use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset};
use thiserror::Error;

/// The reason why counts and a module do not form a profile. Counts that do not match are refused,
/// never clamped or guessed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// The number of counted functions differs from the number that the module defines.
    #[error("the counts cover {got} functions, but the module defines {expected}")]
    Functions {
        /// The number of functions that the module defines.
        expected: usize,
        /// The number of functions that were counted.
        got: usize,
    },
    /// The number of counted edges differs from the number of the function's edges.
    #[error("the counts of {function} cover {got} edges, but the function has {expected}")]
    Edges {
        /// The function with the wrong number of counts.
        function: FuncId,
        /// The number of edges of the function's control-flow graph.
        expected: usize,
        /// The number of edges that were counted.
        got: usize,
    },
    /// The flow into a block differs from the flow out of it plus the flow that ends there.
    #[error("{block} of {function} is entered {entered} times and left {left} times")]
    Flow {
        /// The function that contains the block.
        function: FuncId,
        /// The block with contradictory flow.
        block: BlockId,
        /// The number of executions of the edges into the block.
        entered: u64,
        /// The number of executions of the edges out of the block, plus the number of frames that
        /// are still in the block.
        left: u64,
    },
    /// The operators of a block's open frames are not all listed, or too many are listed.
    #[error(
        "{block} of {function} has {open} open frames at the end, but {listed} frames are listed with an operator"
    )]
    OpenFrames {
        /// The function that contains the block.
        function: FuncId,
        /// The block that contains the frames.
        block: BlockId,
        /// The number of frames in the block according to the counts.
        open: u64,
        /// The number of frames whose operator is listed.
        listed: u64,
    },
    /// The profile of a range has no such counts.
    #[error("{what} are not counted in a range of the run")]
    NotInRange {
        /// What is not counted.
        what: &'static str,
    },
    /// A frame is at an operator that the frame's block does not have.
    #[error("{function} has no {op} in {block}, where a frame should be")]
    NoSuchStop {
        /// The function that the frame executes.
        function: FuncId,
        /// The block that should contain the operator.
        block: BlockId,
        /// The operator that the block does not have.
        op: OpId,
    },
    /// A frame at the run's end is not at an operator of the frame's function.
    #[error(
        "the recording places the end of {function} at offset {offset}, where it has no operator"
    )]
    NoSuchFrame {
        /// The function that the frame executes.
        function: FuncId,
        /// The offset at which the function has no operator.
        offset: OrigOffset,
    },
    /// A sum does not fit into 64 bits.
    #[error("a sum of the counts of {function} does not fit into 64 bits")]
    Overflow {
        /// The function whose counts overflow.
        function: FuncId,
    },
    /// The module's bytes do not match the control-flow graphs.
    #[error("{function} has {expected} operators, but these bytes contain {got}")]
    Body {
        /// The function whose body differs.
        function: FuncId,
        /// The number of operators in the program.
        expected: u32,
        /// The number of operators in the module's bytes.
        got: usize,
    },
    /// The operators cannot be written as text.
    #[error("the module cannot be written as text: {0}")]
    Text(String),
}
