//! Replays a recorded execution without the engine. It provides the path, the steps, the values,
//! and the state at any moment.

mod recording;
pub mod state;
pub mod steps;
pub mod values;
pub mod whole_path;
mod writers;

pub use recording::{Recording, RecordingError, Trap};
pub use writers::{WatchFn, Writers};
