//! Currency: whether a variable of an optimised run holds, where a debugger stops, what the programmer expects there.
//!
//! The programmer thinks of the program that is not optimised (Hennessy 1982; Adl-Tabatabai and Gross 1996). Here that program ran, too, on the same input, so
//! nothing has to be predicted: the stop of the optimised run is found again in the other one, and both values are read. Which assignments of the variable were
//! moved or removed follows from their executions, as in Dhamdhere and Sankaranarayanan's dynamic currency determination (1998) and Agrawal and Zhang's on
//! timestamped paths (2001, section 4.3), but for what was executed instead of for what may have been.
//!
//! [`moments`] finds which arrivals at a line correspond: both runs are walked in step, from one call that both make to the next, and in what lies between them the
//! parts of the line are counted ([`align`]). [`Settled`] holds that against what they gave. [`compare`] compares what was read.

mod align;
mod anchors;
mod content;
mod error;
mod moments;
mod parts;
mod settled;
mod trail;
mod walker;

pub use align::align;
pub use anchors::Anchors;
pub use content::{Comparison, Symbols, compare};
pub use error::CurrencyError;
pub use moments::{Moments, Version, moments};
pub use parts::MatchedStatements;
pub use settled::{AllGiven, Given, Refusal, Settled, given_at};
pub use trail::{Part, Stop, Trail, Unit};
