//! Defines the reasons why a question cannot be answered.

use afterimage_ids::grouped;
use afterimage_machine::MachineError;
use afterimage_wpp::{PathError, TargetError};

use crate::epoch::EpochError;

/// The reason why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum TraceError<P: std::error::Error + 'static, E: std::error::Error + 'static> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(PathError<P>),
    /// The path's nodes cannot be counted.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An epoch cannot be loaded.
    #[error(transparent)]
    Epoch(E),
    /// The log of the host's actions cannot be read.
    #[error(transparent)]
    Log(#[from] afterimage_trace::TraceError),
    /// An epoch is damaged.
    #[error(transparent)]
    Read(#[from] EpochError),
    /// A node is not a path of the program.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The trace contains something impossible, such as a use before its definition. The text
    /// describes it.
    #[error("the whole execution trace is damaged: it names {0}")]
    Damaged(&'static str),
    /// The value was never computed, because the run trapped at this instruction or earlier.
    #[error("the value was never computed: the run trapped first")]
    Trapped,
    /// The run ended inside the node, before this instruction.
    #[error("the run ended before this instruction was executed")]
    NotExecuted,
    /// A memory copy has too many parts to report.
    #[error("the copied bytes come from more than 16,777,216 writes")]
    TooManyParts,
    /// No values are stored for this time, or for the function that is executed at this time.
    #[error("{}", outside(*time, kept, without.as_deref()))]
    Outside {
        /// The block for which values were requested.
        time: u64,
        /// The ranges of blocks with stored values, ascending.
        kept: Vec<(u64, u64)>,
        /// A description of the filter, if it left out the function.
        without: Option<String>,
    },
}

fn outside(time: u64, kept: &[(u64, u64)], without: Option<&str>) -> String {
    let text =
        |&(first, last): &(u64, u64)| format!("from t={} to t={}", grouped(first), grouped(last));
    let time = grouped(time);
    let kept = Vec::from_iter(kept.iter().map(text)).join(", ");
    match without {
        None => format!(
            "values were kept only {kept}, but this question needs a value at t={time}; to build \
             the rest: afterimage build --lens full"
        ),
        Some(without) => format!(
            "values were kept {kept}, without {without}, but this question needs a value of a \
             function that was left out, at t={time}; build all values again: afterimage build \
             --lens full --again"
        ),
    }
}
