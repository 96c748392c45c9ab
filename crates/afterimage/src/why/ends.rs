//! Describes the origin of a value.

use afterimage_analyses::why::{
    DataPart, End, InputSource, Spot, Stream, ValType, data_in, data_of,
};
use afterimage_present::{WhyBranch, WhyEnd, grouped, value_text};
use afterimage_replay::state::{Nothing, quoted};
use afterimage_replay::steps::Range;
use afterimage_replay::values::Instance;
use anyhow::Result;

use super::led::{Value, led_by};
use super::tell::{Teller, memory};
use crate::text::harmless;

/// Creates an end that has only a kind and a description.
pub fn none(kind: &'static str, what: String) -> WhyEnd {
    WhyEnd {
        kind,
        what,
        file: None,
        offset: None,
        bytes: None,
        place: None,
        read: None,
        led: None,
        remark: None,
    }
}

/// Creates the end of a chain that leaves the part of the run with stored values.
pub fn outside(why: &str) -> WhyEnd {
    none("unknown", format!("unknown: {why}"))
}

/// Describes the end of a chain.
pub fn end(teller: &Teller<'_, '_>, end: End) -> Result<WhyEnd> {
    let scene = teller.scene;
    let loaded = scene.traced.module();
    let value = &teller.value;
    Ok(match end {
        End::Constant { bits, instance, op } => {
            // If the value came with an exception, it was last seen as a reference to the
            // exception.
            let of = scene.walk().spot_of(instance, op);
            let ty = match teller.ty {
                Some(ValType::Ref(_)) => scene.types.constant(of.function, op).or(teller.ty),
                ty => ty,
            };
            let value = match ty {
                Some(ty) => value_text(ty, bits),
                None => value.clone(),
            };
            // In line tables, a constant often has the line of the preceding code. So show the
            // operator that uses the constant in the same block, or only the line of this operator
            // if it is a call.
            let spot = scene.walk().spot_of(instance, op);
            let of = |spot: Spot| (spot.instance, spot.time);
            let same = teller.spot.is_some_and(|last| of(last) == of(spot));
            let place = match teller.last.filter(|_| same) {
                Some(last) => scene.place(last)?,
                None => {
                    let mut place = scene.place(spot)?;
                    if let Some(call) = scene.walk().passed_by(instance, op)? {
                        let call = scene.operator(call.function, call.op)?;
                        (place.source, place.around, place.text) =
                            (call.source, call.around, call.text);
                    }
                    place
                }
            };
            let led = led_by(scene, spot.instance, spot.time)?;
            let text = |decided: Option<Value>| decided.map_or(String::new(), |it| it.text);
            WhyEnd {
                place: Some(place),
                led: led.map(|(place, decided)| {
                    let value = text(decided);
                    Box::new(WhyBranch { place, value })
                }),
                ..none("constant", format!("the constant {value}"))
            }
        }
        End::Zero => {
            let zero = match teller.ty {
                Some(ValType::Ref(_)) => "null",
                _ => "0",
            };
            none(
                "zero",
                format!("a local that nothing wrote, which is {zero}"),
            )
        }
        End::Argument { instance, index } => {
            let node = &scene.values.path().nodes()[instance.node];
            let name = harmless(scene.names.function(node.function));
            let what = format!("argument {} of the host's call to {name}", index + 1);
            none("argument", what)
        }
        End::Returned { instance, index } => {
            let name = callee(teller, instance)?;
            let what = match index {
                0 => format!("what the host's {name} returned"),
                _ => format!("result {} of the host's {name}", index + 1),
            };
            let what = format!("{what}, called at t={}", grouped(instance.time));
            none("host", what)
        }
        End::Host { call, range } => {
            let imports = &loaded.program.imports;
            let given = InputSource::find(&scene.host, scene.traced.file(), imports, call, range)?;
            let mut end = given_end(&given);
            let logged = scene.values.host()?.get(call)?;
            // Show the byte itself, because a number made from it may differ.
            let writes = logged.iter().flat_map(|logged| logged.writes.iter().rev());
            let mut written = writes.filter(|write| write.memory == range.memory);
            let byte = written.find_map(|write| {
                let at = range.address.checked_sub(write.address)?;
                write.bytes.get(usize::try_from(at).ok()?)
            });
            if let Some(byte) = byte.filter(|_| range.length == 1).and_then(character) {
                end.what = format!("{}, {byte}", end.what);
            }
            let import = logged.and_then(|logged| imports.get(logged.import.as_u32() as usize));
            if let (Some(import), InputSource::File { .. }) = (import, &given) {
                let time = scene.host.caller_of(call)?.time;
                let (name, call, time) = (harmless(&import.name), grouped(call), grouped(time));
                end.remark = Some(format!(
                    "{name} provided it in host call {call}, at t={time}"
                ));
            }
            end
        }
        End::Memory(range) => match data_of(&loaded.program, &loaded.bytes, range)? {
            Some(part) => segment(&part, range.length, symbol(teller, range)),
            None => {
                let name = symbol(teller, range);
                let memory = memory(range);
                let what = name.map_or(memory.clone(), |name| format!("{name} ({memory})"));
                none(
                    "zero",
                    format!("{what}, which nothing wrote, so it is zero"),
                )
            }
        },
        End::Segment {
            segment: number,
            offset,
        } => segment(&data_in(&loaded.bytes, number, offset)?, 0, None),
        End::Global(index) => none(
            "global",
            format!("global {index}, which nothing wrote: its initial value {value}"),
        ),
        End::Open(instance) => {
            let time = instance.time + scene.values.path().nodes()[instance.node].length() - 1;
            let time = grouped(time);
            none(
                "open",
                format!("nothing: the call at t={time} did not return"),
            )
        }
        End::Thrown(instance) => WhyEnd {
            place: Some(scene.place(scene.walk().end_spot(instance)?)?),
            ..none("exception", "an exception that was thrown".to_owned())
        },
    })
}

/// Returns the character that a byte represents.
fn character(byte: &u8) -> Option<String> {
    match byte {
        b' '..=b'~' | b'\n' | b'\r' | b'\t' => Some(format!("{:?}", char::from(*byte))),
        _ => None,
    }
}

/// Returns the name of the host function that an execution calls.
fn callee(teller: &Teller<'_, '_>, instance: Instance) -> Result<String> {
    let imports = &teller.scene.traced.program().imports;
    let function = teller.scene.walk().called(instance)?;
    let import = function.and_then(|function| imports.get(function.as_u32() as usize));
    Ok(import.map_or("function".to_owned(), |import| {
        harmless(&format!("{}.{}", import.module, import.name))
    }))
}

/// Names the global variable of the source at an address.
fn symbol(teller: &Teller<'_, '_>, range: Range) -> Option<String> {
    let address = Some(range.address).filter(|_| range.memory == 0)?;
    let known = teller.scene.traced.variables().ok()?;
    let globals = known.globals().ok()?;
    let found = globals.iter().find(|global| {
        let variable = known.global_variable(global).ok();
        let object = variable.and_then(|it| known.locate(&it, None, &Nothing).ok());
        object.is_some_and(|object| object.memory().any(|range| range.contains(&address)))
    });
    let name = found.and_then(|global| known.full_name(global).ok());
    name.map(|name| harmless(&name))
}

fn segment(part: &DataPart, bytes: u64, symbol: Option<String>) -> WhyEnd {
    let symbol = symbol.map_or(String::new(), |symbol| format!("{symbol}, "));
    let name = part
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({})", harmless(name)));
    WhyEnd {
        offset: Some(part.offset),
        bytes: Some(bytes).filter(|bytes| *bytes > 0),
        remark: Some(format!("from there on it holds {}", shown(&part.bytes))),
        ..none(
            "data",
            format!(
                "initial memory: {symbol}data segment {}{name}, byte {}",
                part.segment,
                grouped(part.offset)
            ),
        )
    }
}

/// Shows bytes as text if they are text, and in hexadecimal otherwise.
fn shown(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    if text.len() >= 2 && text.iter().all(is_text) {
        return format!("{:?}", String::from_utf8_lossy(text));
    }
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Vec::from_iter(digits).join(" ")
}

fn given_end(given: &InputSource) -> WhyEnd {
    match given {
        InputSource::File {
            file,
            offset,
            bytes,
        } => {
            let name = harmless(&stream(file));
            let what = match (offset, bytes) {
                (Some(at), 0 | 1) => format!("byte {} of {name}", grouped(*at)),
                (Some(at), bytes) => format!(
                    "bytes {}..{} of {name}",
                    grouped(*at),
                    grouped(at.saturating_add(bytes - 1))
                ),
                (None, 0 | 1) => format!("a byte of {name}, at an unknown offset"),
                (None, bytes) => {
                    format!("{} bytes of {name}, at an unknown offset", grouped(*bytes))
                }
            };
            WhyEnd {
                file: Some(stream(file)),
                offset: *offset,
                bytes: Some(*bytes),
                ..none("input", what)
            }
        }
        InputSource::Argument {
            number,
            text,
            offset,
            bytes,
        } => WhyEnd {
            offset: Some(*offset),
            bytes: Some(*bytes),
            ..none(
                "input",
                format!(
                    "byte {offset} of argument {number} of the program, {}",
                    quoted(text)
                ),
            )
        },
        InputSource::Variable {
            text,
            offset,
            bytes,
        } => WhyEnd {
            offset: Some(*offset),
            bytes: Some(*bytes),
            ..none(
                "input",
                format!("byte {offset} of the environment's {}", quoted(text)),
            )
        },
        InputSource::Other {
            function,
            what,
            file,
        } => {
            let of = file.as_ref().map_or(String::new(), |file| {
                format!(" of {}", harmless(&stream(file)))
            });
            let function = harmless(function);
            let what = match what {
                Some(what) => format!("{what}{of}, as {function} reported"),
                None => format!("what the host's {function} wrote to memory"),
            };
            WhyEnd {
                file: file.as_ref().map(stream),
                ..none("host", what)
            }
        }
    }
}

/// Returns the name of a stream or file, unchanged.
pub fn stream(file: &Stream) -> String {
    match file {
        Stream::Input => "standard input".to_owned(),
        Stream::Output => "standard output".to_owned(),
        Stream::Error => "standard error".to_owned(),
        Stream::Folder(name) => format!("the folder {name}"),
        Stream::Path(path) => path.clone(),
        Stream::Unknown(fd) => format!("file descriptor {fd}"),
    }
}
