//! Errors of reading recorded tokens.

use afterimage_ids::{BlockId, FuncId};

/// The reason why the tokens do not describe a run of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    /// The next token is impossible at this place.
    #[error("no path of {function} from {block} writes the next token")]
    NoWay {
        /// The function that is active.
        function: FuncId,
        /// The last block that the path reached.
        block: BlockId,
    },
    /// The function that was entered is not the function that was called.
    #[error("a call to {called} reached another function")]
    OtherCallee {
        /// The function to which the call refers.
        called: FuncId,
    },
    /// A call through a table reached a function that does not exist.
    #[error("a call through a table in {0} reached no function of its type")]
    NoSuchCallee(FuncId),
    /// An exception arrived where none can be thrown, or a call returned that cannot return.
    #[error("a call in {function} at {block} cannot end as recorded")]
    NoSuchReturn {
        /// The function that makes the call.
        function: FuncId,
        /// The block that makes the call.
        block: BlockId,
    },
    /// The tokens ended before the run did.
    #[error("the recorded tokens end before the run does, in {0}")]
    Early(FuncId),
    /// The run ended before the tokens did.
    #[error("the run ended before the recorded tokens did")]
    Late,
    /// The path continues without ever writing or reaching the recorded end.
    #[error("the path does not lead to the recorded end")]
    Elsewhere,
    /// There are more activations than the limit.
    #[error("more than {0} activations are open at once")]
    TooDeep(usize),
}
