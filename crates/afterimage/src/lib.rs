//! Record the run of a WebAssembly program once, then ask anything about it.
//!
//! A [`Recording`] only reads. A [`Session`] owns one and builds what is missing: the path of the run, and its values. For that it runs the
//! program again, along what was recorded, so the result is the same.
//!
//! ```no_run
//! use afterimage::{Session, Silent};
//!
//! let session = Session::open("app.aft".as_ref(), &Silent)?;
//! session.ensure_values(&Default::default())?;
//! let recording = session.recording();
//! println!("{} blocks were executed", recording.path()?.length());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod error;
mod monitor;
mod path;
mod session;
mod values;

pub use afterimage_replay::{Recording, RecordingError};
pub use append::append_to;
pub use error::{Reason, SessionError};
pub use monitor::{Monitor, Note, Silent, Work};
pub use path::Empty;
pub use session::{Session, ensure_values};
pub use values::{Adds, KeptValues};
