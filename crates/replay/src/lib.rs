//! Replays a recorded execution without the engine. It provides the path, the steps, the values,
//! and the state at any moment.

pub mod paths;
mod recording;
pub mod state;
pub mod steps;
pub mod values;
mod writers;

pub use recording::{Recording, RecordingError, Trap};
pub use writers::{WatchFn, Writers};
