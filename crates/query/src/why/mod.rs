//! Why a value is what it is: the way back through a run to where it came from, one execution at a time.
//!
//! [`Walk`] goes back one link at a time: a value was moved, computed, or came from nowhere further back. [`Chain`] makes steps of links, and of several operands
//! follows one: a chain, not a slice. What is followed are values, not the addresses that they were read from (Sridharan, Fink and Bodik 2007, Thin slicing), but for constant
//! tables. [`Folder`] folds what repeats.
//!
//! Everything is answered from the stored trace, in a fraction of a millisecond a link; the run is not followed.

mod absent;
mod chain;
mod data;
mod error;
mod files;
mod fold;
mod given;
mod link;
mod nearest;
mod operands;
mod printed;
mod start;
mod walk;

pub use absent::{Absence, Absent, Cause, Hop, Place, Turned};
pub use afterimage_machine::{Code, Register, State};
pub use chain::{Chain, Link, Made, Moved, Operand, Spot, Step};
pub use data::{DataPart, data_in, data_of};
pub use error::WhyError;
pub use fold::{Entry, Folder};
pub use given::{Given, Stream};
pub use link::{At, Computed, End, Found, Move};
pub use printed::{Printed, Put, written_before, written_until};
pub use walk::{Walk, constant};
pub use wasmparser::ValType;
