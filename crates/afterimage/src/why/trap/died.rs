//! How a run that ended in a library ended, in the author's terms: the line of their own code, and the library's message.

use afterimage_analyses::why::{Printed, Stream};
use afterimage_present::{WhyDeath, WhyFrame};
use anyhow::Result;

use crate::explain::Scene;

/// How much of standard error is searched, from its end.
const LOOKED_AT: u64 = 1 << 16;

/// Explains a run that ended in a library that the user's code called; `None` for others. `how` is how the run ended, and `frames` are the calls, the innermost first.
///
/// # Errors
/// If the recording is damaged.
pub fn told(scene: &Scene<'_, '_>, how: &str, frames: &[WhyFrame]) -> Result<Option<WhyDeath>> {
    let Some(depth) = frames
        .iter()
        .position(|frame| frame.own)
        .filter(|at| *at > 0)
    else {
        return Ok(None);
    };
    let (inside, own) = frames.split_at(depth);
    let called = |name: &str| {
        let mut names = inside.iter().map(|frame| &*frame.place.function.name);
        names.any(|called| called.contains(name))
    };
    let panicked = ["core::panicking::", "std::panicking::", "rust_begin_unwind"];
    let (what, message) = if panicked.into_iter().any(called) {
        ("panicked", message(scene, panic)?)
    } else if called("__assert_fail") {
        ("assertion failed", message(scene, assertion)?)
    } else if called("abort") {
        ("aborted", message(scene, terminated)?)
    } else {
        (how, None)
    };
    Ok(death(what, message, own))
}

/// That the stack that compilers keep in memory overflowed.
pub fn overflowed(frames: &[WhyFrame]) -> Option<WhyDeath> {
    let own = frames.iter().position(|frame| frame.own)?;
    death("stack overflow", None, &frames[own..])
}

/// What happened in the first of some calls, or in what that called.
fn death(what: &str, message: Option<String>, own: &[WhyFrame]) -> Option<WhyDeath> {
    let (first, outer) = own.split_first()?;
    let caller = outer.iter().find(|frame| frame.own);
    Some(WhyDeath {
        what: what.to_owned(),
        message,
        place: first.place.clone(),
        called_from: caller.and_then(|frame| {
            let place = &frame.place;
            place.around.clone().or_else(|| place.source.clone())
        }),
    })
}

/// Searches what was printed to standard error for a message.
fn message(scene: &Scene<'_, '_>, find: impl Fn(&str) -> Option<String>) -> Result<Option<String>> {
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let mut all = Vec::new();
    while let Some(put) = printed.next(&Stream::Error)? {
        let held = put.open(&scene.host)?;
        let first = put.before + put.bytes.saturating_sub(LOOKED_AT);
        all.extend(put.bytes(&held, &scene.host, first, put.bytes)?);
        let old = all.len().saturating_sub(LOOKED_AT as usize);
        all.drain(..old);
    }
    Ok(find(&String::from_utf8_lossy(&all)))
}

/// The text of the last panic of a Rust program.
fn panic(printed: &str) -> Option<String> {
    let (_, last) = printed.rsplit_once(" panicked at ")?;
    // Until 1.72 the message stood before the place.
    if let Some(message) = last.strip_prefix('\'') {
        let (message, _) = message.rsplit_once("', ")?;
        return Some(message.to_owned());
    }
    let (_, message) = last.split_once(":\n")?;
    let ends = ["\nnote: run with `RUST_BACKTRACE", "\nstack backtrace:\n"];
    let ends = ends.iter().filter_map(|end| message.find(end));
    let end = ends.min().unwrap_or(message.len());
    Some(message[..end].trim_end().to_owned())
}

/// The assertion that failed last in a C program.
fn assertion(printed: &str) -> Option<String> {
    let (_, last) = printed.rsplit_once("Assertion failed: ")?;
    let line = last.lines().next()?;
    // The place follows, which is known.
    let text = line.rsplit_once(" (").map_or(line, |(text, _)| text);
    Some(text.to_owned())
}

/// The last message of the C++ library.
fn terminated(printed: &str) -> Option<String> {
    let (_, last) = printed.rsplit_once("libc++abi: ")?;
    last.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{assertion, panic};

    #[test]
    fn messages_are_found_in_what_is_printed() {
        let new = "a\n\nthread 'main' (1) panicked at src/a.rs:5:19:\nthe len is 2\nbut: no\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(panic(new).as_deref(), Some("the len is 2\nbut: no"));
        let old = "thread 'main' panicked at 'it's late', src/a.rs:5:19\nnote: run with\n";
        assert_eq!(panic(old).as_deref(), Some("it's late"));
        assert_eq!(panic("no such thing"), None);
        let said = "Assertion failed: f(a) == 2 (a.c: main: 12)\n";
        assert_eq!(assertion(said).as_deref(), Some("f(a) == 2"));
    }
}
