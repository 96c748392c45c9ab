//! Shows variables, and the parts of the objects that the client opens.

use std::io::Write;
use std::ops::Range;

use afterimage::debugger::{Inspection, Local, StackFrame};
use afterimage_present::{type_text, value_text};
use afterimage_replay::state::{Limits, Machine, Object, Path, Rendered, Shape, Shown, Variables};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::debuggee::{Debuggee, position};
use crate::protocol::{OfVariables, Variable};

/// An object that a client may open.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    /// The variables of a frame.
    Locals { number: usize, inlined: u32 },
    /// The global variables of the source.
    Globals,
    /// The locals and globals of WebAssembly.
    Wasm { number: usize },
    /// The parts of an object.
    Object {
        number: usize,
        object: Object,
        /// The object as an expression, if it can be written as one.
        expression: Option<String>,
    },
}

/// The limits for a value shown on one line.
pub(crate) const SHOWN: Limits = Limits {
    depth: 3,
    elements: 16,
    parts: 64,
    ..Limits::DEFAULT
};

/// The maximum number of global variables to show.
const GLOBALS: usize = 1000;
/// The default number of an object's parts to show.
const PARTS: u64 = 256;
/// The maximum number of references at one stop. The protocol limits references to 31 bits.
const MOST_HANDLES: usize = 1 << 20;

/// A value with the data needed to open it.
pub(crate) struct Opened {
    name: String,
    value: String,
    type_name: String,
    object: Option<Object>,
    /// The number of its parts, and whether the parts are elements.
    parts: (u64, bool),
}

impl Opened {
    pub(crate) fn of(
        known: &Variables<'_>,
        name: String,
        object: Object,
        machine: &dyn Machine,
    ) -> Self {
        let rendered = known.render(&object, &SHOWN, machine);
        let parts = known.parts(&object, 0..0, machine).unwrap_or_default();
        Self {
            name,
            value: text(&rendered),
            type_name: rendered.type_name,
            parts: (parts.count, parts.indexed),
            object: Some(object),
        }
    }

    fn of_shown(
        known: &Variables<'_>,
        (shown, object): (Shown, Option<Object>),
        machine: &dyn Machine,
    ) -> Self {
        let parts = object.as_ref().filter(|_| shown.value.is_ok());
        let parts = parts.and_then(|object| known.parts(object, 0..0, machine).ok());
        let parts = parts.unwrap_or_default();
        let mut value = shown.value.unwrap_or_else(|why| format!("<{why}>"));
        if shown.written.is_some() {
            value += "  (may be wrong: its place has been written since the call began)";
        }
        Self {
            name: match shown.name.as_str() {
                "" => "(unnamed)".to_owned(),
                name => name.to_owned(),
            },
            value,
            type_name: shown.type_name,
            parts: (parts.count, parts.indexed),
            object,
        }
    }
}

fn text(rendered: &Rendered) -> String {
    match &rendered.shape {
        Shape::Missing(why) => format!("<{why}>"),
        _ => rendered.to_string(),
    }
}

/// Returns a part of an object as an expression, if the object has one.
fn expression_of(object: Option<&str>, part: &str) -> Option<String> {
    let object = object?;
    let is_name = |text: &str| {
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        !text.is_empty() && text.chars().all(inside)
    };
    let is_simple = object
        .chars()
        .all(|c| c.is_alphanumeric() || "_$:.[]\"".contains(c));
    let object = if is_simple {
        object.to_owned()
    } else {
        format!("({object})")
    };
    match part {
        "*" => Some(format!("*{object}")),
        part if part.starts_with('[') => Some(format!("{object}{part}")),
        part if is_name(part) => Some(format!("{object}.{part}")),
        _ => None,
    }
}

impl<'a, W: Write + Send + 'static> Debuggee<'_, 'a, W> {
    pub(crate) fn handle(&mut self, handle: Handle) -> u64 {
        // A client that has opened this many objects no longer uses the first references.
        if self.handles.len() >= MOST_HANDLES {
            self.handles.clear();
        }
        self.handles.push(handle);
        self.handles.len() as u64
    }

    fn known(&self) -> Result<&Variables<'a>> {
        self.debugger
            .variables()
            .map_err(|error| anyhow!("{error}"))
    }

    /// Describes a value to the client.
    pub(crate) fn shown(
        &mut self,
        number: usize,
        opened: Opened,
        expression: Option<String>,
    ) -> Variable {
        let Opened {
            name,
            value,
            type_name,
            object,
            parts: (count, indexed),
        } = opened;
        let address = object.as_ref().and_then(Object::address);
        let reference = match object {
            Some(object) if count > 0 => self.handle(Handle::Object {
                number,
                object,
                expression: expression.clone(),
            }),
            _ => 0,
        };
        Variable {
            name,
            value,
            type_name: Some(type_name).filter(|name| !name.is_empty()),
            evaluate_name: expression,
            variables_reference: reference,
            named_variables: (reference > 0 && !indexed).then_some(count),
            indexed_variables: (reference > 0 && indexed).then_some(count),
            memory_reference: address.map(|address| format!("0x{address:x}")),
            presentation_hint: Some(json!({ "attributes": ["readOnly"] })),
        }
    }

    pub(crate) fn variables(&mut self, wanted: &OfVariables) -> Result<Value> {
        let handle = position(wanted.variables_reference);
        let handle = handle.and_then(|handle| self.handles.get(handle)).cloned();
        let handle = handle.context("there is nothing to open: the run has moved since")?;
        let start =
            u64::try_from(wanted.start.unwrap_or(0)).context("start: must not be negative")?;
        let count =
            u64::try_from(wanted.count.unwrap_or(0)).context("count: must not be negative")?;
        let all = count == 0;
        let count = if all { PARTS } else { count.min(1 << 16) };
        let variables = match handle {
            Handle::Locals { number, inlined } => {
                let opened = self.locals_of(number, inlined)?;
                self.named(number, opened)
            }
            Handle::Globals => {
                let (opened, more) = self.globals()?;
                let mut all = self.named(0, opened);
                if more > 0 {
                    all.push(remark("…", &format!("{more} more global variables")));
                }
                all
            }
            Handle::Wasm { number } => self.wasm(number)?,
            Handle::Object {
                number,
                object,
                expression,
            } => {
                let wanted_kind = wanted.filter.as_deref();
                let range = start..start.saturating_add(count);
                let (opened, total, indexed) = self.parts(number, &object, range)?;
                if matches!(
                    (wanted_kind, indexed),
                    (Some("named"), true) | (Some("indexed"), false)
                ) {
                    Vec::new()
                } else {
                    let shown = opened.len() as u64;
                    let mut variables = Vec::new();
                    for one in opened {
                        let expression = expression_of(expression.as_deref(), &one.name);
                        variables.push(self.shown(number, one, expression));
                    }
                    let rest = total.saturating_sub(start.saturating_add(shown));
                    if all && rest > 0 {
                        variables.push(remark("…", &format!("{rest} more")));
                    }
                    variables
                }
            }
        };
        Ok(json!({ "variables": variables }))
    }

    fn named(&mut self, number: usize, opened: Vec<Opened>) -> Vec<Variable> {
        let mut seen = std::collections::HashSet::new();
        let all = opened.into_iter().map(|one| {
            // An expression cannot refer to a variable that another variable hides.
            let expression = seen.insert(one.name.clone()).then(|| one.name.clone());
            let expression = expression.filter(|name| name.parse::<Path>().is_ok());
            self.shown(number, one, expression)
        });
        all.collect()
    }

    fn locals_of(&self, number: usize, inlined: u32) -> Result<Vec<Opened>> {
        let known = self.known()?;
        self.debugger.inspect(self.at, number + 1, |inspection| {
            let found = inspection.variables(number, &SHOWN)?;
            let found = found.map_err(|why| anyhow!(why))?;
            inspection.with(number, |moment, _| {
                let own = found
                    .into_iter()
                    .filter(|(shown, _)| shown.calls == inlined);
                Ok(Vec::from_iter(
                    own.map(|one| Opened::of_shown(known, one, moment)),
                ))
            })
        })
    }

    fn globals(&self) -> Result<(Vec<Opened>, usize)> {
        let known = self.known()?;
        self.debugger.inspect(self.at, 1, |inspection| {
            let (found, count) = inspection.globals(&SHOWN, GLOBALS)?;
            let more = count - found.len();
            inspection.with(0, |moment, _| {
                let all = found.into_iter();
                let all = all.map(|one| Opened::of_shown(known, one, moment));
                Ok((Vec::from_iter(all), more))
            })
        })
    }

    /// Returns some parts of an object, their total number, and whether they are elements.
    fn parts(
        &self,
        number: usize,
        object: &Object,
        wanted: Range<u64>,
    ) -> Result<(Vec<Opened>, u64, bool)> {
        let known = self.known()?;
        self.debugger.inspect(self.at, number + 1, |inspection| {
            inspection.with(number, |moment, _| {
                let parts = known.parts(object, wanted.clone(), moment);
                let parts = parts.map_err(|why| anyhow!("{why}"))?;
                let opened = parts.parts.into_iter().map(|part| match part.object {
                    Ok(object) => Opened::of(known, part.name, object, moment),
                    Err(why) => Opened {
                        name: part.name,
                        value: why,
                        type_name: String::new(),
                        object: None,
                        parts: (0, false),
                    },
                });
                Ok((Vec::from_iter(opened), parts.count, parts.indexed))
            })
        })
    }

    fn wasm(&self, number: usize) -> Result<Vec<Variable>> {
        self.debugger.inspect(self.at, number + 1, |inspection| {
            let local = |one: &Local| {
                let name = one.name.clone();
                wasm_variable(name.unwrap_or_else(|| format!("local {}", one.index)), one)
            };
            let locals = inspection.locals(number)?;
            let globals = inspection.module_globals();
            let globals = globals.iter();
            let globals = globals.map(|one| wasm_variable(format!("global {}", one.index), one));
            Ok(locals.iter().map(local).chain(globals).collect())
        })
    }

    /// Returns the object to which an expression refers in a frame, with its size, or why there is
    /// none.
    pub(crate) fn object_named(
        &mut self,
        frame: Option<u64>,
        text: &str,
    ) -> Result<Result<(Object, u64), String>> {
        let path: Path = match text.parse() {
            Ok(path) => path,
            Err(error) => bail!("{text}: {error}; write a name, p->next, s.member, a[3] or *p"),
        };
        let frame = self.frame(frame)?;
        let known = self.known()?;
        self.debugger.inspect(
            self.at,
            frame.number + 1,
            |inspection: &Inspection<'_, 'a>| {
                let object = inspection.object((frame.number, frame.inlined), &path)?;
                Ok(object.and_then(|object| sized(known, object)))
            },
        )
    }

    /// Returns the frame whose variables were opened, or `None` if another kind of object was
    /// opened.
    pub(crate) fn frame_of_locals(&mut self, handle: usize) -> Result<Option<StackFrame>> {
        match self.handles.get(handle) {
            Some(&Handle::Locals { number, inlined }) => self.frame_at(number, inlined),
            _ => Ok(None),
        }
    }

    /// Returns the part of an opened object with this name.
    pub(crate) fn part_named(
        &mut self,
        handle: usize,
        name: &str,
    ) -> Result<Result<(Object, u64), String>> {
        let handle = self.handles.get(handle).cloned();
        let handle = handle.context("there is nothing to open: the run has moved since")?;
        let known = self.known()?;
        let opened = match handle {
            Handle::Locals { number, inlined } => self.locals_of(number, inlined)?,
            Handle::Globals => self.globals()?.0,
            Handle::Wasm { .. } => {
                return Ok(Err("it is not in memory".to_owned()));
            }
            Handle::Object { number, object, .. } => self.parts(number, &object, 0..1 << 16)?.0,
        };
        let found = opened.into_iter().find(|one| one.name == name);
        let found = found.with_context(|| format!("{name} does not exist there"))?;
        Ok(match found.object {
            Some(object) => sized(known, object),
            None => Err(found.value),
        })
    }
}

fn sized(known: &Variables<'_>, object: Object) -> Result<(Object, u64), String> {
    match known.size(object.type_ref) {
        Ok(Some(bytes)) => Ok((object, bytes)),
        Ok(None) => Err("its type has no size".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

fn wasm_variable(name: String, one: &Local) -> Variable {
    Variable {
        name,
        value: match one.value {
            Some(bits) => value_text(one.ty, bits),
            None => "<not known>".to_owned(),
        },
        type_name: Some(type_text(one.ty).to_owned()),
        presentation_hint: Some(json!({ "attributes": ["readOnly"] })),
        ..Variable::default()
    }
}

fn remark(name: &str, text: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: text.to_owned(),
        ..Variable::default()
    }
}
