//! Shows a recorded run as a web page, either to explore (`afterimage explore`) or to send
//! (`afterimage report`).
//!
//! A server on the loopback address serves the recording to the browser of the same user. The page
//! is a client of the documented JSON. Each question is a command with its options (`GET
//! TOKEN/api/state?at=parser.c:42%237`), and the answer is the command's output with `--format
//! json`. The analyses of the run are in other crates.
//!
//! Invariant: only clients that know the token get answers. The token is in the address, which only
//! the user sees.

mod ask;
mod assets;
mod desk;
mod explorer;
mod guard;
mod http;
mod lanes;
mod notes;
mod parameters;
mod report;
mod works;

pub use explorer::{Explorer, ExplorerError, Options};
pub use report::{Report, written};
