//! Defines the types that all crates share: entities, offsets in the three byte spaces, and exact
//! counts. Also formats numbers for people.
//!
//! Entities are `u32` newtypes that print themselves (`block3`, `edge7`). Offsets in different byte
//! spaces are different types. Otherwise, code could silently use an offset in the original module
//! as an offset in the rewritten one.

mod counts;
mod entities;
mod numbers;
mod offsets;

pub use counts::{Counts, FunctionCounts};
pub use cranelift_entity::{EntityRef, EntitySet, PrimaryMap, SecondaryMap};
pub use entities::{
    BlockId, CounterId, EdgeId, FuncId, ImportId, LoopId, NodeId, OpId, RuleId, StmtId, TypeId,
    ValueId,
};
pub use numbers::{grouped, times};
pub use offsets::{FileOffset, InstrOffset, OrigOffset};
