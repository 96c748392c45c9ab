//! Tests the server with our own client, and its debugger against slow and obvious references.

mod accesses;
mod bad_input;
mod changes;
mod client;
mod editors;
mod moments;
mod programs;
mod requests;
mod walk;
