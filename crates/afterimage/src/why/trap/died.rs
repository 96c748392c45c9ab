//! For a run that ended in a library, describes the line of the user's own code that called the
//! library, and the library's message.

use std::collections::{HashSet, VecDeque};
use std::slice;

use afterimage_analyses::why::{Printed, Put, Spot, Stream};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyDeath, WhyFrame, grouped};
use afterimage_program::{BlockEnd, Callee};
use afterimage_replay::state::{Call, Halt, calls, follow_to};
use afterimage_replay::steps::{Paused, follow_to_end};
use anyhow::Result;
use wasmparser::ValType;

use crate::explain::Scene;
use crate::steps::follow;

/// The maximum number of bytes to search at the end of standard error.
const LOOKED_AT: u64 = 1 << 16;

/// Explains a run that ended in a library that the user's code called. Returns `None` for other
/// runs. `how` describes how the run ended. `frames` are the innermost calls of `stack`.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn cause_of_death(
    scene: &Scene<'_, '_>,
    how: &str,
    frames: &[WhyFrame],
    stack: &[Call],
) -> Result<Option<WhyDeath>> {
    let Some(depth) = frames
        .iter()
        .position(|frame| frame.own)
        .filter(|at| *at > 0)
    else {
        return Ok(None);
    };
    let (inside, own) = frames.split_at(depth);
    let Some(caller) = stack.get(depth) else {
        return Ok(None);
    };
    let printed = |since| printed_since(scene, since);
    let called = |name: &str| {
        let mut names = inside.iter().map(|frame| &*frame.place.function.name);
        names.any(|called| called.contains(name))
    };
    let panicked = ["core::panicking::", "std::panicking::", "rust_begin_unwind"];
    let (what, message) = if panicked.into_iter().any(called) {
        let printed = printed(caller.time)?;
        match panic(&printed).or_else(|| given(scene, &stack[..depth])) {
            None => match last_line(&printed) {
                None => ("panicked without printing a message", None),
                message => ("panicked after printing", message),
            },
            message => ("panicked", message),
        }
    } else if called("__assert_fail") {
        ("assertion failed", assertion(&printed(caller.time)?))
    } else if called("abort") {
        match terminated(&printed(caller.time)?) {
            // The message of libc++ is known only if it was printed.
            None if called("__libcpp_verbose_abort") => {
                ("aborted by libc++, which could not print its message", None)
            }
            None => match last_line(&printed(caller.entered.saturating_sub(1))?) {
                None => ("aborted", None),
                message => ("aborted after printing", message),
            },
            message => ("aborted", message),
        }
    } else {
        (how, None)
    };
    Ok(death(what, message, own))
}

/// Explains that a call through a table found a function of the wrong type, or none. `index` is its
/// position in the table.
///
/// # Errors
/// Returns an error if the run cannot be followed to its end.
pub fn of_wrong_type(
    scene: &Scene<'_, '_>,
    (at, index): (Spot, u64),
    frames: &[WhyFrame],
) -> Result<Option<WhyDeath>> {
    let program = scene.traced.program();
    let function = program.function(at.function);
    let block = function.and_then(|f| f.cfg.blocks.get(f.block_of(at.op)?));
    let callee = block.map(|block| block.end);
    let Some(
        BlockEnd::Call(Callee::Indirect { table, ty })
        | BlockEnd::TailCall(Callee::Indirect { table, ty }),
    ) = callee
    else {
        return Ok(None);
    };
    let held = follow(scene.traced, |run, log| {
        Ok(follow_to_end(run, log, |paused| {
            let table = paused.inside.state.tables.get(table as usize)?;
            table.elements.get(usize::try_from(index).ok()?).copied()
        })?)
    })?;
    let Some(held) = held else {
        return Ok(None);
    };
    let wants = program.types.get(ty).map(ToString::to_string);
    let wants = format!("the call wants {}", wants.unwrap_or_default());
    let entry = format!("entry {} of the table is", grouped(index));
    // A reference is the function's index plus 1.
    let (what, message) = match held.checked_sub(1) {
        None => (
            "indirect call to no function",
            format!("{entry} null; {wants}"),
        ),
        Some(found) => {
            let found = u32::try_from(found).ok().map(FuncId::from_u32);
            let types = found.and_then(|found| program.type_of(found));
            let (Some(found), Some(has)) = (found, types) else {
                return Ok(None);
            };
            let name = scene.names.function(found);
            (
                "indirect call to a function of another type",
                format!("{entry} {name}, which is {has}; {wants}"),
            )
        }
    };
    let Some(own) = frames.iter().position(|frame| frame.own) else {
        return Ok(None);
    };
    Ok(death(what, Some(message), &frames[own..]))
}

/// Whether a function runs all tests of a Rust test program.
pub fn is_libtest(scene: &Scene<'_, '_>, function: FuncId) -> bool {
    scene
        .names
        .function(function)
        .starts_with("test::test_main")
}

/// Explains that a Rust test returned an error, which libtest printed. If several tests did, the
/// last one counts. Returns `None` if no such report is found at the end of standard error.
fn failed_test(scene: &Scene<'_, '_>) -> Result<Option<WhyDeath>> {
    let mut report = VecDeque::new();
    let mut test: Option<Call> = None;
    for put in last_printed(scene)?.iter().rev().take(REPORTS) {
        let held = put.open(&scene.host)?;
        let time = held.caller(&scene.host)?.time;
        match test {
            // The parts of the report, the last first.
            Some(test) if time <= test.time => break,
            Some(_) => {}
            None => {
                let (open, _) = calls(scene.values, time, CALLS)?;
                let name = |call: &Call| scene.names.function(call.function);
                let judges = |call: &Call| name(call).starts_with("test::assert_test_result");
                let Some(judge) = open.iter().position(judges) else {
                    continue;
                };
                test = open.get(judge + 1).copied();
            }
        }
        report.push_front(put.bytes(&held, &scene.host, put.before, put.bytes)?);
    }
    let Some(test) = test else {
        return Ok(None);
    };
    let Some(caller) = scene.values.at(test.time)? else {
        return Ok(None);
    };
    // The test returned just before, unless it was inlined into its caller.
    let returned = scene.values.at(caller.time.saturating_sub(1))?;
    let mut place = None;
    for instance in returned.into_iter().chain([caller]) {
        let found = scene.place(scene.walk().end_spot(instance)?)?;
        if !found.library && found.source.is_some() {
            place = Some(found);
            break;
        }
    }
    let printed = Vec::from(report).concat();
    let printed = String::from_utf8_lossy(&printed);
    let error = printed.strip_prefix("Error: ");
    Ok(place.zip(error).map(|(place, error)| WhyDeath {
        what: "the test returned an error".to_owned(),
        message: Some(error.trim_end().to_owned()),
        place,
        inlined: None,
        called_from: None,
    }))
}

/// The maximum number of writes to standard error to examine for a report.
const REPORTS: usize = 256;

/// Explains that `main` returned a failure code, although nothing killed the run. Returns `None` if
/// no return of `main` is found near the end of the run. For a test program, explains that a test
/// returned an error.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn returned(scene: &Scene<'_, '_>, code: i32, ended: u64) -> Result<Option<WhyDeath>> {
    if let Some(told) = failed_test(scene)? {
        return Ok(Some(told));
    }
    let mut libraries = HashSet::new();
    let (mut time, mut left) = (ended, BLOCKS);
    while time > 0 && left > 0 {
        let Some(instance) = scene.values.at(time)? else {
            return Ok(None);
        };
        (time, left) = (instance.time.saturating_sub(1), left - 1);
        let node = &scene.values.path().nodes()[instance.node];
        let (function, last) = (node.function, node.blocks.last());
        if libraries.contains(&function) {
            continue;
        }
        let code_of = scene.traced.program().function(function);
        let block = code_of
            .zip(last)
            .and_then(|(code, &last)| code.cfg.blocks.get(last));
        let op = block.and_then(|block| block.ops.end.as_u32().checked_sub(1));
        let (Some(block), Some(op)) = (block, op) else {
            continue;
        };
        let place = scene.place(scene.walk().spot_of(instance, OpId::from_u32(op)))?;
        if place.library || place.source.is_none() {
            libraries.insert(function);
            continue;
        }
        let name = scene.names.function(function);
        let name = name.split('(').next().unwrap_or(name);
        let is_main = name == "main" || name == "__original_main" || name.ends_with("::main");
        // The user's own code may also format an error or run at exit, so skip everything except
        // `main`.
        if !is_main || block.end != BlockEnd::Return {
            continue;
        }
        let error = if is_rust_report(scene)? {
            let printed = printed_since(scene, 0)?;
            let error = printed.rsplit_once("Error: ");
            error.map(|(_, error)| error.trim_end().to_owned())
        } else {
            None
        };
        let what = match &error {
            Some(_) => "main returned an error".to_owned(),
            None => format!("main returned {code}"),
        };
        return Ok(Some(WhyDeath {
            what,
            message: error,
            place,
            inlined: None,
            called_from: None,
        }));
    }
    Ok(None)
}

/// The maximum number of nodes to go back in search of the user's own code.
const BLOCKS: u32 = 50_000;

/// Whether the last output on standard error is Rust's report of an error that `main` returned.
fn is_rust_report(scene: &Scene<'_, '_>) -> Result<bool> {
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let mut last = None;
    while let Some(put) = printed.next(&Stream::Error)? {
        last = Some(put);
    }
    let Some(put) = last else {
        return Ok(false);
    };
    let caller = put.open(&scene.host)?.caller(&scene.host)?;
    let (open, _) = calls(scene.values, caller.time, CALLS)?;
    let mut names = open.iter().map(|call| scene.names.function(call.function));
    Ok(names.any(|name| {
        name.contains("std::process::Termination") || name.contains("attempt_print_to_stderr")
    }))
}

/// The maximum number of calls to examine around the call that prints.
const CALLS: usize = 64;

/// Explains that the compiler's stack in memory overflowed.
pub fn overflowed(frames: &[WhyFrame]) -> Option<WhyDeath> {
    let own = frames.iter().position(|frame| frame.own)?;
    death("stack overflow", None, &frames[own..])
}

/// Describes how the run ended in the innermost of these frames, or in a function that it called.
fn death(what: &str, message: Option<String>, own: &[WhyFrame]) -> Option<WhyDeath> {
    let (first, outer) = own.split_first()?;
    let line_of = |frame: &WhyFrame| {
        let place = &frame.place;
        place.around.clone().or_else(|| place.source.clone())
    };
    let within = first.within.as_ref();
    let called = within.and_then(|call| call.called_from.clone());
    let caller = || outer.iter().find(|frame| frame.own).and_then(line_of);
    Some(WhyDeath {
        what: what.to_owned(),
        message,
        place: first.place.clone(),
        inlined: within.map(|call| call.function.clone()),
        called_from: called.or_else(caller),
    })
}

/// Returns the last writes to standard error, up to [`LOOKED_AT`] bytes and one more write.
fn last_printed(scene: &Scene<'_, '_>) -> Result<VecDeque<Put>> {
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let (mut last, mut bytes) = (VecDeque::new(), 0);
    while let Some(put) = printed.next(&Stream::Error)? {
        bytes += put.bytes;
        last.push_back(put);
        while let Some(old) = last.front().filter(|old| bytes - old.bytes >= LOOKED_AT) {
            bytes -= old.bytes;
            last.pop_front();
        }
    }
    Ok(last)
}

/// Returns the end of the output that the nodes executed after a time wrote to standard error.
fn printed_since(scene: &Scene<'_, '_>, since: u64) -> Result<String> {
    let mut all = VecDeque::new();
    for put in last_printed(scene)?.iter().rev() {
        let held = put.open(&scene.host)?;
        if held.caller(&scene.host)?.time <= since {
            break;
        }
        let first = put.before + put.bytes.saturating_sub(LOOKED_AT);
        all.push_front(put.bytes(&held, &scene.host, first, put.bytes)?);
    }
    let all = Vec::from(all).concat();
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// Returns the message that Rust's panic machinery was given, even if nothing printed it. Returns
/// `None` if the message has arguments that were never formatted. `calls` are the machinery's
/// calls, the innermost first.
fn given(scene: &Scene<'_, '_>, calls: &[Call]) -> Option<String> {
    calls.iter().rev().find_map(|call| {
        let read: fn(&Paused<'_>) -> Option<String> = match scene.names.function(call.function) {
            "core::panicking::panic_fmt" => literal,
            "core::panicking::panic_bounds_check" => out_of_bounds,
            _ => return None,
        };
        let types = scene.traced.program().type_of(call.function)?;
        if types.params[..] != [ValType::I32; 3] {
            return None;
        }
        let entry = Halt {
            start: call.entered,
            instructions: 0,
        };
        let mut message = None;
        // Without the state at the call, the message stays unknown.
        let followed = follow(scene.traced, |run, log| {
            let show = |_, _, paused: &Paused<'_>| message = read(paused);
            Ok(follow_to(run, log, slice::from_ref(&entry), show)?)
        });
        followed.ok().and(message)
    })
}

/// Returns the arguments of a function with three parameters, at its beginning.
fn arguments(paused: &Paused<'_>) -> Option<[u32; 3]> {
    let given = paused.inside.low.get(..3)?;
    let given: [u64; 3] = given.try_into().ok()?;
    Some(given.map(|argument| argument as u32))
}

/// Reads the message of `panic_fmt(message: fmt::Arguments, at)` if it is a string without
/// arguments. Since Rust 1.93, `fmt::Arguments` is two words. If the second word is odd, the first
/// word is the address of a string, and the second word is twice the string's length plus 1.
/// Earlier versions pass one pointer.
fn literal(paused: &Paused<'_>) -> Option<String> {
    let [address, length, _] = arguments(paused)?;
    let length = (length % 2 == 1).then_some(u64::from(length / 2))?;
    if length > LOOKED_AT {
        return None;
    }
    let mut bytes = vec![0; length as usize];
    let is_read = paused.memory(0, address.into(), &mut bytes).ok()?;
    is_read.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// Returns the message of `panic_bounds_check(index, len, at)`.
fn out_of_bounds(paused: &Paused<'_>) -> Option<String> {
    let [index, length, _] = arguments(paused)?;
    Some(format!(
        "index out of bounds: the len is {length} but the index is {index}"
    ))
}

/// Finds the message of the last panic of a Rust program.
fn panic(printed: &str) -> Option<String> {
    let (_, last) = printed.rsplit_once(" panicked at ")?;
    // Up to Rust 1.72, the message preceded the place in the source.
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

/// Finds the last failed assertion of a C program.
fn assertion(printed: &str) -> Option<String> {
    let (_, last) = printed.rsplit_once("Assertion failed: ")?;
    let line = last.lines().next()?;
    // Cut off the place after the text, because it is already known.
    let text = line.rsplit_once(" (").map_or(line, |(text, _)| text);
    Some(text.to_owned())
}

/// Finds the message of a library that aborted, in everything that it printed.
fn terminated(printed: &str) -> Option<String> {
    let printed = printed.trim();
    let message = printed.strip_prefix("libc++abi: ").unwrap_or(printed);
    (!message.is_empty()).then(|| message.to_owned())
}

/// Returns the last line with text.
fn last_line(printed: &str) -> Option<String> {
    let mut lines = printed.lines().map(str::trim);
    let last = lines.rfind(|line| !line.is_empty());
    last.map(str::to_owned)
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
