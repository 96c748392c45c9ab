//! Lists the statements and memory references of a run, exactly and in order. For this, it follows
//! the run on the machine instead of an engine.
//!
//! A run is followed from its beginning or, if the file has checkpoints, from the last checkpoint
//! before the requested part. With checkpoints, the time does not depend on the length of the run.
//! Only the guest's memory, the code of the path's nodes, the effects of one node, and parts of
//! checkpoints are kept in memory.

mod accesses;
mod addresses;
mod collect;
mod error;
mod follow;
mod host_bytes;
mod last_write;
mod lines;
mod loads;
mod memory;
mod name;
mod open;
mod operators;
mod plan;
mod snapshots;
mod step;
mod stream;
mod tally;
mod value_counts;
mod values;
mod verify_snapshots;

pub use accesses::is_access;
pub use accesses::{AccessSite, access_sites, nearest_access};
pub use addresses::{
    Access, AccessStats, AccessedAddresses, AccessedStretches, AddressStats, Addresses,
    address_stats,
};
pub use afterimage_machine::{
    MachineError, Observer, Opened, Range, SnapshotBuilder, SnapshotError, Snapshots, Trap,
    WrittenLines, WrittenLinesError, stopped_before,
};
pub use afterimage_wet::checkpoint::{CheckpointError, FileCheckpoints};
pub use error::StepsError;
pub use follow::Follower;
pub use follow::{Paused, Run, follow_to_end, memory_size, recorded_checkpoints};
pub use host_bytes::{WantedCall, host_bytes};
pub use last_write::{LastWrite, LastWriteError, LastWrites};
pub use lines::{
    Enter, LineStep, LineSteps, LineStepsError, LineTables, WantedLines, activation_of,
};
pub use loads::{LoadValues, load_values};
pub use memory::{
    At, LARGEST_RANGE, MemoryAnswer, MemoryPart, NearestAccess, WriteIndex,
    last_writes_from_snapshot, memory_at,
};
pub use name::name;
pub use open::{Open, OpenActivations};
pub use operators::{FunctionOperators, OperatorCache, OperatorPlace, Operators};
pub use plan::{Kind as PlanKind, Plan};
pub use snapshots::{take_snapshots, take_snapshots_between};
pub use step::{Step, Tried, Value, What, overlap};
pub use stream::Plans;
pub use stream::{Level, ReverseSteps, Steps, Wanted, Within, last_steps};
pub use tally::{BOUND, Distinct, Frequent};
pub use value_counts::{CountedValue, ExecutionRange, ValueCounts, count_values};
pub use values::{LoadedStretches, LoadedValues};
pub use verify_snapshots::verify_snapshots;
