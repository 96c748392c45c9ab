//! Defines the errors of comparing moments of two runs.

use afterimage_ids::grouped;
use afterimage_wpp::{PathError, TargetError};

use afterimage_profile::ProfileError;
use afterimage_replay::whole_path::PositionError;

/// The reason why moments of two runs cannot be compared. `E` is the error of loading a segment of
/// a path.
#[derive(Debug, thiserror::Error)]
pub enum CurrencyError<E: std::error::Error + 'static> {
    /// A path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// Calls cannot be counted.
    #[error(transparent)]
    Calls(#[from] TargetError),
    /// Arrivals cannot be counted.
    #[error(transparent)]
    Arrivals(#[from] PositionError<E>),
    /// The module's bytes are not the bytes of the program.
    #[error(transparent)]
    Module(#[from] ProfileError),
    /// The path does not determine the activations at this time.
    #[error("the path is damaged: the block at t={} is in no activation", grouped(*.0))]
    Damaged(u64),
    /// The runs called the host in different ways.
    #[error(
        "the two runs differ: {}, so their moments do not correspond; record both on the same \
         input",
        parted(*number, a.as_deref(), b.as_deref())
    )]
    Apart {
        /// The number of the host call, from 1.
        number: u64,
        /// The function that the unoptimised run called. `None` if the run ended.
        a: Option<String>,
        /// The function that the optimised run called. `None` if the run ended.
        b: Option<String>,
    },
    /// The line is executed too often.
    #[error(
        "the line is executed more than {} times between two calls that both runs make, which \
         is too often for a comparison",
        grouped(*.0 as u64)
    )]
    TooMany(usize),
}

fn parted(number: u64, a: Option<&str>, b: Option<&str>) -> String {
    let call = |what: Option<&str>| match what {
        Some(name) => format!("{name} in"),
        None => "no call in".to_owned(),
    };
    format!(
        "host call {number} is {} the unoptimised run and {} the optimised run",
        call(a),
        call(b)
    )
}
