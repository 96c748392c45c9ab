//! Whole execution traces: every value, address and dependence of a run (Zhang and Gupta 2005).

mod build;
mod def;
mod epoch;
mod index;
mod model;
mod trace;

pub use build::run::{BuildError, Run};
pub use def::{Origin, Piece};
pub use epoch::{Epoch, EpochError, Sizes};
pub use index::Index;
pub use model::{NodeModel, Read, ReadFrom, Write, WriteTo};
pub use trace::{Compiled, Epochs, Instance, Reading, Source, TraceError, WholeTrace, Writer};
