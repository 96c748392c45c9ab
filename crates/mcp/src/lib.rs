//! Serves recordings to agents over the Model Context Protocol, on two streams.
//!
//! Input and output are lines of JSON-RPC. Each tool asks a question of the library [`afterimage`].
//! Its answer has at most [`LINES`] lines of text, and the same content as a document described in
//! `docs/JSON.md`. Tools keep no state: every call names the recording, and every answer names the
//! calls that may come next.
//!
//! Three rules hold for all tools. Paths are opened only under the given roots. Nothing runs except
//! recordings that the caller named, and these are re-executed in isolation from the host. The
//! recorded program's output and source text appear between marks that identify them.
//!
//! Rejected: a library for the protocol (`docs/DEPENDENCIES.md` says why).

mod answer;
mod calls;
mod listener;
mod roots;
mod rpc;
mod schemas;
mod server;
mod sessions;
mod tools;

use std::io::{self, BufRead, Write};

pub use answer::LINES;
pub use roots::Roots;

/// Answers requests until the input ends or nobody reads the answers.
///
/// # Errors
/// Returns an error if `input` cannot be read. Unread answers are not an error.
pub fn serve(
    roots: &Roots,
    input: &mut dyn BufRead,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    server::serve(roots, input, Box::new(output))
}
