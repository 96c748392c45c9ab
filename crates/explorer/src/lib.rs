//! A recorded run as a page to explore, `afterimage explore`, and as a page to send, `afterimage
//! report`.
//!
//! In: a recording. Out: a server on the loopback address, for the browser of the same user. The
//! page is a client of the documented JSON. Each question is a command with its options (`GET
//! TOKEN/api/state?at=parser.c:42%237`), and the answer is the command's output with `--format
//! json`. Nothing here decides anything about a run.
//!
//! Invariant: answers go only to those who know the token, which is in the address that only the
//! user sees.

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
mod standing;
mod works;

pub use explorer::{Explorer, ExplorerError, Options};
pub use report::{Report, written};
