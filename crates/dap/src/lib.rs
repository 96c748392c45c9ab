//! Serves a recording to debuggers over the Debug Adapter Protocol.
//!
//! [`serve`] reads requests and writes responses and events until the client leaves. A client opens
//! a recording (`attach`, or `launch` with `recording`), or has a program recorded first (`launch`
//! with `program`). From then on, the server is a thin client of [`afterimage::debugger`]. The
//! server keeps the position, the breakpoints and the data shown to the client, and decides nothing
//! about the run.
//!
//! | file | what |
//! |---|---|
//! | `wire` | messages with `Content-Length`, in and out |
//! | `protocol` | the messages' fields |
//! | `client` | the connection to the client: responses, events, interruption |
//! | `recorder` | recording a program first |
//! | `server` | the requests before there is a run: `initialize`, `launch`, `attach` |
//! | `debuggee` | the position, and requests about it |
//! | `breakpoints`, `motion`, `stack`, `variables`, `evaluate`, `console`, `code` | the other requests, by subject |
//!
//! `docs/DEBUGGERS.md` is for users.

mod base64;
mod breakpoints;
mod client;
mod code;
mod console;
mod debuggee;
mod evaluate;
mod motion;
mod protocol;
mod recorder;
mod server;
mod stack;
mod variables;
mod wire;

pub use client::Category;
pub use protocol::Launch;
pub use recorder::ByCommand;
pub use server::{Recorder, serve};
