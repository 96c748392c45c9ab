//! Whole execution traces: every value, address and dependence of a run (Zhang and Gupta 2005).
//!
//! The input is a program, its path and its boundary log. The output is epochs with all data that
//! the input does not imply ([`Run`]), checkpoints ([`checkpoint`]), and answers about values,
//! writers and readers ([`WholeTrace`]).

mod build;
pub mod checkpoint;
mod def;
mod epoch;
mod file;
mod index;
mod model;
mod printed;
mod recent;
mod stretches;
mod trace;

pub use build::LastWriters;
pub use build::run::{Before, BuildError, Run, Sinks, Watch};
pub use def::{Origin, Piece};
pub use epoch::{Content, Epoch, EpochError, InputForm, Part, Role, Sizes};
pub use file::{EpochFileError, EpochWriter, FileEpochs};
pub use index::{Index, LeftOut, fingerprint};
pub use model::{NodeModel, Read, ReadFrom, Write, WriteTo, read_from, write_to};
pub use printed::{FilePrinted, MOST_PRINTED, Printed, PrintedError, PrintedWriter, is_printing};
pub use stretches::{MakeStretch, Standing, StretchError};
pub use trace::{
    Bits, Compiled, ComputedValues, DefinedBy, Definition, Epochs, Held, Holders, HoldersMark,
    HostCall, HostCalls, Instance, ReadBy, Readers, Reading, Source, Span, StorageCell,
    TableOrSize, Taken, TakenBy, Takers, TraceError, VariableBefore, WholeTrace, Writer,
};

/// Locks a cache. The cache is sound even after a panic, because each change is a single insertion.
fn locked<T>(cache: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    cache
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
