//! The server with a client of our own, and the debugger that it stands on against slow and obvious
//! references.

mod bad_input;
mod client;
mod editors;
mod moments;
mod programs;
mod requests;
mod walk;
