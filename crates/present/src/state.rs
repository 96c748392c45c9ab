//! Reports the state at a moment, as text and as JSON.

use std::fmt::Display;
use std::io::Write;

use afterimage_profile::SourceLine;
use afterimage_replay::state::{Frame, InlinedCall, Local, Shown, StateReport, Writer, Written};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Style;
use crate::document::objects::{Function, Position};
use crate::document::{Document, NoRows, begin};
use crate::name::{short_function, short_type};
use crate::plain::plain;
use crate::render::Render;
use crate::table::wrapped;
use crate::{PresentError, bits_text, counted, grouped, type_text, value_text};

/// The maximum number of library functions above the user's own code to name.
const ABOVE: usize = 4;

/// Writes the state as text: a line for each activation, followed by its variables.
///
/// # Errors
/// Returns an error if the state cannot be written.
pub fn state_text(
    out: &mut dyn Write,
    report: &StateReport,
    style: Style,
) -> Result<(), PresentError> {
    let time = format!("t={} of {}", grouped(report.time), grouped(report.length));
    let line = report.frames.first().filter(|frame| frame.number == 0);
    let line = line.and_then(|frame| frame.around.as_ref().or(frame.line.as_ref()));
    // The frames above the user's own code belong to the library code that the user's code called.
    let above = report.frames.iter().take_while(|frame| frame.library);
    let above = above.count();
    let (above, mut rest) = match report.frames.split_at(above) {
        (_, []) => (&[][..], &report.frames[..]),
        (above, rest) => (above, rest),
    };
    let own = rest.first().filter(|_| !above.is_empty());
    let own = own.and_then(|frame| frame.around.as_ref().or(frame.line.as_ref()));
    match report.before {
        Some(offset) if let Some((own, line)) = own.zip(line) => {
            let (own, line) = (plain(&own.to_string()), plain(&line.to_string()));
            let head = format!(
                "in library code called at {own}, before {line}, in the block at {time} (@{offset})"
            );
            writeln!(out, "{}", wrapped(&head, style.width, 2))?
        }
        Some(offset) if let Some(line) = line => {
            let line = plain(&line.to_string());
            writeln!(out, "before {line}, in the block at {time} (@{offset})")?
        }
        Some(offset) => writeln!(out, "before @{offset}, in the block at {time}")?,
        None => writeln!(out, "before the block at {time}")?,
    }
    let others_known = report.frames.iter().any(|frame| frame.variables.is_ok());
    let mut said = None;
    if !above.is_empty() {
        above_text(out, above, style)?;
    }
    while let Some((frame, further)) = rest.split_first() {
        // The innermost frame is always shown.
        let is_folded = |frame: &&Frame| frame.library && frame.number > 0;
        let library = rest.iter().take_while(is_folded).count();
        if library > 1 {
            let last = frame.number + library - 1;
            writeln!(
                out,
                "   … #{} to #{last} in library code: --code all, or --frame N",
                frame.number
            )?;
            rest = &rest[library..];
            continue;
        }
        rest = further;
        match &frame.variables {
            Ok(variables) => {
                inlined_text(out, frame, variables, style)?;
                frame_text(out, frame, style)?;
                shown_text(out, variables.iter().filter(|one| one.calls == 0), style)?;
            }
            // A function that the linker made has no variables, so nothing is missing.
            Err(_) if frame.locals.is_empty() && others_known => frame_text(out, frame, style)?,
            Err(why) => {
                frame_text(out, frame, style)?;
                if said != Some(why) {
                    writeln!(out, "    {}", plain(why))?;
                }
                said = Some(why);
                locals_text(out, &frame.locals, "local")?;
            }
        }
        if let Some(why) = &frame.outside {
            writeln!(out, "     not everything is known: {}", plain(why))?;
        }
    }
    let more = report.open.saturating_sub(report.frames.len());
    match (&report.frames[..], more) {
        (_, 0) => {}
        // The frame was requested by its number.
        ([one], _) if one.number > 0 => {}
        _ => writeln!(out, "… and {} more: --depth N", grouped(more as u64))?,
    }
    let Some(globals) = &report.globals else {
        return Ok(());
    };
    writeln!(out, "globals")?;
    locals_text(out, &globals.module, "global")?;
    shown_text(out, globals.source.iter(), style)?;
    if globals.more > 0 {
        writeln!(out, "    … and {} more", grouped(globals.more as u64))?;
    }
    Ok(())
}

/// Writes one line about the library frames above the user's own: `(5 library frames above: panic,
/// …, abort; --code all shows them)`.
fn above_text(out: &mut dyn Write, above: &[Frame], style: Style) -> Result<(), PresentError> {
    let names = above.iter().rev().map(|frame| {
        let name = short_function(&frame.name);
        let name = name.rsplit("::").next().unwrap_or(&name);
        plain(name)
    });
    let mut names = Vec::from_iter(names);
    names.dedup();
    if names.len() > ABOVE {
        names.splice(ABOVE - 1..names.len() - 1, ["…".to_owned()]);
    }
    let line = format!(
        "({} above: {}; --code all shows them)",
        counted(above.len() as u64, "library frame"),
        names.join(", ")
    );
    writeln!(out, "{}", wrapped(&line, style.width, 4))?;
    Ok(())
}

/// Writes the calls that were inlined into an activation, the innermost first. They are shown like
/// frames, but numbered within the activation: `#3.2`. Calls to library functions are left out.
fn inlined_text(
    out: &mut dyn Write,
    frame: &Frame,
    variables: &[Shown],
    style: Style,
) -> Result<(), PresentError> {
    let count = frame.inlined.len();
    for (inner, call) in frame.inlined.iter().enumerate() {
        if call.library && !frame.library {
            continue;
        }
        let depth = count - inner;
        let of_call = |one: &&Shown| (one.calls as usize).min(count) == depth;
        let own = variables.iter().filter(of_call);
        let line = format!(
            "#{}.{depth} {}({}){}, inlined",
            frame.number,
            plain(&short_function(&call.name)),
            plain(&arguments(own.clone())),
            place_text(frame, inner)
        );
        writeln!(out, "{}", style.heading(&line, 6))?;
        shown_text(out, own, style)?;
    }
    Ok(())
}

/// Formats the place of an inlined call, as ` at app.rs:17`. The innermost call is number 0. The
/// number after the last call selects the activation itself. If only library code was inlined at
/// this place, the line in the library follows.
fn place_text(frame: &Frame, inner: usize) -> String {
    let call = frame.inlined.get(inner);
    let own = call.map_or(&frame.own_line, |call| &call.line);
    let is_hidden = |call: &InlinedCall| call.library && !frame.library;
    let has_library = inner > 0 && frame.inlined[..inner].iter().all(is_hidden);
    let place = match (own, &frame.line) {
        (Some(own), Some(line)) if has_library => format!(" at {own} ({line})"),
        (Some(own), _) => format!(" at {own}"),
        (None, Some(line)) if has_library => format!(" at {line}"),
        (None, _) => String::new(),
    };
    plain(&place)
}

/// Formats the parameters among some variables.
fn arguments<'s>(variables: impl Iterator<Item = &'s Shown>) -> String {
    let one = |v: &Shown| format!("{}={}", named(&v.name), v.brief);
    Vec::from_iter(variables.filter(|v| v.parameter).map(one)).join(", ")
}

fn frame_text(out: &mut dyn Write, frame: &Frame, style: Style) -> Result<(), PresentError> {
    let arguments = match &frame.variables {
        Ok(variables) => arguments(variables.iter().filter(|one| one.calls == 0)),
        Err(_) => {
            let own = frame.locals.iter().filter(|local| local.parameter);
            Vec::from_iter(own.map(value_of)).join(", ")
        }
    };
    let place = place_text(frame, frame.inlined.len());
    let line = format!(
        "#{} {}({}){place}  @{}  t={}",
        frame.number,
        plain(&short_function(&frame.name)),
        plain(&arguments),
        frame.offset,
        grouped(frame.time)
    );
    writeln!(out, "{}", style.heading(&line, 6))?;
    Ok(())
}

fn shown_text<'s>(
    out: &mut dyn Write,
    shown: impl Iterator<Item = &'s Shown> + Clone,
    style: Style,
) -> Result<(), PresentError> {
    let is_gone = |variable: &&Shown| {
        let why = variable.value.as_ref().err();
        why.is_some_and(|why| why.starts_with("optimised out"))
    };
    let known = shown.clone().filter(|variable| !is_gone(variable));
    let width = known.clone().map(|v| v.name.chars().count()).max();
    let width = width.unwrap_or(0).min(24);
    for variable in known {
        let value = match &variable.value {
            Ok(value) => plain(value),
            Err(why) => format!("<{}>", plain(why)),
        };
        let shadowed = if variable.shadowed {
            "  (hidden by an inner variable)"
        } else {
            ""
        };
        let line = format!(
            "    {:<width$} = {value}  ({}){shadowed}{}",
            named(&variable.name),
            plain(&short_type(&variable.type_name)),
            written_text(variable.written)
        );
        writeln!(out, "{}", wrapped(&line, style.width, 8))?;
    }
    // Name each variable once, because a hidden variable may have the same name.
    let mut gone: Vec<String> = Vec::new();
    for variable in shown.filter(is_gone) {
        let name = named(&variable.name);
        if !gone.contains(&name) {
            gone.push(name);
        }
    }
    if !gone.is_empty() {
        writeln!(out, "    <optimised out>: {}", gone.join(", "))?;
    }
    Ok(())
}

/// Returns the remark that a parameter's place may hold another value.
pub fn written_text(written: Option<Written>) -> String {
    written.map_or(String::new(), |written| WrittenSince::from(written).text())
}

/// The last write to a parameter's place since the call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WrittenSince {
    /// The time of the write.
    pub t: u64,
    /// The offset of the operator.
    pub offset: u32,
    /// `true` if another variable has the same place; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
}

impl WrittenSince {
    /// Returns the remark, in words that follow the value.
    pub(crate) fn text(&self) -> String {
        match self.shared {
            Some(_) => "  (may be wrong: another variable has the same place)".to_owned(),
            None => format!(
                "  (may be wrong: its place has been written since the call began, at @0x{:x}, t={})",
                self.offset,
                grouped(self.t)
            ),
        }
    }
}

impl From<Written> for WrittenSince {
    fn from(written: Written) -> Self {
        Self {
            t: written.time,
            offset: written.offset.0,
            shared: (written.by == Writer::Shared).then_some(true),
        }
    }
}

fn locals_text(out: &mut dyn Write, locals: &[Local], what: &str) -> Result<(), PresentError> {
    for local in locals {
        let name = local
            .name
            .as_deref()
            .map(|name| format!(" ${}", plain(name)));
        let parameter = if local.parameter { ", parameter" } else { "" };
        writeln!(
            out,
            "    {what} {}{} = {}  ({}{parameter})",
            local.index,
            name.unwrap_or_default(),
            value_of(local),
            type_text(local.ty)
        )?;
    }
    Ok(())
}

fn value_of(local: &Local) -> String {
    match local.value {
        Some(bits) => value_text(local.ty, bits),
        None => "?".to_owned(),
    }
}

/// Returns the displayed name of a variable. Parameters may have no name.
fn named(name: &str) -> String {
    match name {
        "" => "_".to_owned(),
        name => plain(name),
    }
}

/// The call stack and the variables at a moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateDocument {
    /// The time of the block.
    pub t: u64,
    /// The number of blocks that the run executed.
    pub length: u64,
    /// `block` if the moment precedes a block, or `operator` if it precedes the operator at the
    /// innermost frame's `offset`. If the question named a place, this operator is the first
    /// operator of the line, the named operator, or the first operator after the function's
    /// prologue.
    pub before: &'static str,
    /// The number of open activations.
    pub open: usize,
    /// The requested activations, the innermost first.
    pub frames: Vec<StateFrame>,
    /// The globals of WebAssembly, with `--globals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub globals: Option<Vec<StateLocal>>,
    /// The source variables that exist for the whole run, with `--globals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<StateVariable>>,
    /// The number of source variables that exist for the whole run, but were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
    /// The results of the invoked function, if the moment is its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<ResultValue>>,
}

impl Document for StateDocument {
    const NAME: &'static str = "state";
    const COMMAND: &'static str = "state";
    type Row = NoRows;
}

/// A result of an invoked function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResultValue {
    /// `i32`, `i64`, `f32`, `f64`, `v128` or `ref`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its bits, in hexadecimal; `null` for a reference.
    pub bits: Option<String>,
    /// Its text, for a person.
    pub text: String,
}

/// Describes how a run ended, in words that follow "the run". Includes the results of an invoked
/// function.
pub fn with_results(ending: impl Display, results: Option<&[ResultValue]>) -> String {
    match results {
        None | Some([]) => ending.to_string(),
        Some(results) => {
            let texts = Vec::from_iter(results.iter().map(|result| &*result.text));
            format!("{ending} {}", texts.join(", "))
        }
    }
}

/// An activation. Parts of it may be unknown if values are stored only for a part of the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateFrame {
    /// Its position on the call stack; 0 for the innermost.
    pub number: usize,
    /// Its function.
    pub function: Function,
    /// The time of its first block.
    pub entered_t: u64,
    /// The time of the block that it is executing. For all activations except the innermost, this
    /// block ends with the call for which the activation waits, and the state is the state before
    /// this call.
    pub t: u64,
    /// The offset of the operator in the original module.
    pub offset: u32,
    /// Its line, if known.
    pub source: Option<Position>,
    /// The line of the user's own code into which it was inlined, if its line belongs to a library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<Position>,
    /// The functions that were inlined at its place, the innermost first.
    pub inlined: Vec<StateInlined>,
    /// The line of the outermost inlined call in the function itself, if functions were inlined at
    /// its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_source: Option<Position>,
    /// `true` if its code is not the user's own; otherwise absent. The variables of such an
    /// activation are included only if it is the innermost, or was requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
    /// Why a part of the activation is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// The variables of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<StateVariable>>,
    /// Why there are no variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The locals of WebAssembly, if there are no variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locals: Option<Vec<StateLocal>>,
}

/// A call that was inlined into an activation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateInlined {
    /// The name of the function.
    pub name: String,
    /// Its line, if known: the line of the operator, or of the call that was inlined into it.
    pub source: Option<Position>,
    /// `true` if its code is not the user's own; otherwise absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
}

/// A variable of the source.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateVariable {
    /// Its name; parameters may have none.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it is a parameter.
    pub parameter: bool,
    /// Whether a variable of an inner scope hides it.
    pub shadowed: bool,
    /// Its value in C notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The last write to the variable's place since the call began. This write may have stored
    /// something other than the variable's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The inlined function that it belongs to, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
    /// The number of inlined calls around its scope; absent if there are none.
    #[serde(skip_serializing_if = "crate::document::is_zero")]
    pub calls: u32,
    /// The line of its declaration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<u32>,
}

/// A local or global of WebAssembly.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateLocal {
    /// Its index.
    pub index: u32,
    /// `i32`, `i64`, `f32`, `f64`, `v128` or `ref`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it is a parameter.
    pub parameter: bool,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its bits, in hexadecimal, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<String>,
    /// Its text, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Writes the state as one object. At the end of the run, `results` holds the results of the
/// invoked function.
///
/// # Errors
/// Returns an error if the state cannot be written.
pub fn state_json(
    out: &mut dyn Write,
    report: &StateReport,
    results: Option<Vec<ResultValue>>,
) -> Result<(), PresentError> {
    let globals = report.globals.as_ref();
    let document = StateDocument {
        t: report.time,
        length: report.length,
        before: match report.before {
            Some(_) => "operator",
            None => "block",
        },
        open: report.open,
        frames: report.frames.iter().map(StateFrame::from).collect(),
        globals: globals.map(|all| all.module.iter().map(StateLocal::from).collect()),
        variables: globals.map(|all| all.source.iter().map(StateVariable::from).collect()),
        more: globals.map(|all| all.more),
        results,
    };
    begin(out, &document)
}

impl From<&Frame> for StateFrame {
    fn from(frame: &Frame) -> Self {
        let variables = frame.variables.as_ref();
        let locals = || frame.locals.iter().map(StateLocal::from).collect();
        Self {
            number: frame.number,
            function: Function {
                index: frame.function.as_u32(),
                name: frame.name.clone(),
            },
            entered_t: frame.entered,
            t: frame.time,
            offset: frame.offset.0,
            source: frame.line.as_ref().map(Position::from),
            around: frame.around.as_ref().map(Position::from),
            inlined: frame.inlined.iter().map(StateInlined::from).collect(),
            own_source: match &frame.inlined[..] {
                [] => None,
                _ => frame.own_line.as_ref().map(Position::from),
            },
            library: frame.library,
            outside: frame.outside.clone(),
            variables: variables
                .ok()
                .map(|all| all.iter().map(StateVariable::from).collect()),
            why: variables.err().cloned(),
            locals: variables.is_err().then(locals),
        }
    }
}

impl From<&InlinedCall> for StateInlined {
    fn from(call: &InlinedCall) -> Self {
        Self {
            name: call.name.clone(),
            source: call.line.as_ref().map(Position::from),
            library: call.library,
        }
    }
}

impl From<&Shown> for StateVariable {
    fn from(variable: &Shown) -> Self {
        Self {
            name: variable.name.clone(),
            type_name: variable.type_name.clone(),
            parameter: variable.parameter,
            shadowed: variable.shadowed,
            value: variable.value.as_ref().ok().cloned(),
            unavailable: variable.value.as_ref().err().cloned(),
            written: variable.written.map(WrittenSince::from),
            calls: variable.calls,
            inlined: variable.inlined.clone(),
            declared: variable.line,
        }
    }
}

impl From<&Local> for StateLocal {
    fn from(local: &Local) -> Self {
        Self {
            index: local.index,
            kind: type_text(local.ty),
            parameter: local.parameter,
            name: local.name.clone(),
            bits: local.value.map(|bits| bits_text(local.ty, bits)),
            text: local.value.map(|_| value_of(local)),
        }
    }
}

/// The line and the time at which the user's own code was last executed, if known.
pub struct LastOwn(pub Option<(SourceLine, u64)>);

/// The state at a moment.
pub struct StateView {
    /// The state.
    pub report: StateReport,
    /// The last execution of the user's own code. The text form shows it if no function of the
    /// state belongs to that code.
    pub before: Option<LastOwn>,
    /// The results of the invoked function, if the moment is its end.
    pub results: Option<Vec<ResultValue>>,
}

impl Render for StateView {
    const NAME: &'static str = "a state";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        state_text(out, &self.report, style)?;
        if let Some(LastOwn(last)) = &self.before {
            let line = match last {
                Some((line, t)) => format!(
                    "none of these functions is your own; your code was last at {}, t={}: --at {t}",
                    plain(&line.to_string()),
                    grouped(*t)
                ),
                None => "none of these functions is your own".to_owned(),
            };
            writeln!(out, "{}", wrapped(&line, style.width, 2))?;
        }
        let results = self.results.as_deref();
        if let Some(results) = results.filter(|results| !results.is_empty()) {
            let returned = with_results("returned", Some(results));
            writeln!(out, "the run then {returned}")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        state_json(out, &self.report, self.results.clone())
    }
}
