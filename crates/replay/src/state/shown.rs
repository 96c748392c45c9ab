//! Lists variables with their values.

use std::rc::Rc;

use afterimage_ids::OrigOffset;
use afterimage_program::Program;
use afterimage_variables::{
    DebugError, FunctionScopes, Global, Limits, Object, Rendered, Shape, Variable, VariableKind,
    Variables,
};
use wasmparser::ValType;

use super::written::doubt;
use super::{Activation, Contents, Moment, StateError, Written};
use crate::values::Bits;

/// A variable of the source with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The variable's name, or empty for a parameter without a name.
    pub name: String,
    /// The name of the variable's type.
    pub type_name: String,
    /// Whether the variable is a parameter.
    pub parameter: bool,
    /// The inlined function to which the variable belongs.
    pub inlined: Option<String>,
    /// The number of inlined calls that enclose the variable's scope.
    pub calls: u32,
    /// Whether a variable of an inner scope has the same name.
    pub shadowed: bool,
    /// The line of the variable's declaration.
    pub line: Option<u32>,
    /// The variable's value in C notation, or the reason why the value is unknown.
    pub value: Result<String, String>,
    /// For a parameter, the reason why its place may hold another value, such as the last write to
    /// it. That write may also be an assignment in the source.
    pub written: Option<Written>,
    /// The variable's value in brief, for a list of arguments. `…` replaces a value that is too
    /// long. `?` replaces a value that is unknown or may have been overwritten.
    pub brief: String,
}

/// A variable with its object, which is `None` if the variable has no place.
pub type ShownObject = (Shown, Option<Object>);

/// The maximum length of a brief value, and of a pointer with its target, in characters.
const BRIEF: usize = 32;
const BRIEF_POINTER: usize = 64;

/// Returns the variables in scope at a moment, innermost scope first. `written` returns the last
/// write to a local since the activation began ([`Activation::written`]).
///
/// # Errors
/// The inner error means that the debug information does not describe the function. The outer error
/// comes from `written`.
pub fn variables(
    known: &Variables<'_>,
    moment: &Moment<'_, '_>,
    limits: &Limits,
    written: impl Fn(u32) -> Result<Option<Written>, StateError>,
) -> Result<Result<Vec<Shown>, DebugError>, StateError> {
    let found = objects(known, moment, limits, written)?;
    Ok(found.map(|all| all.into_iter().map(|(shown, _)| shown).collect()))
}

/// Like [`variables`], but returns each variable with its object, if the variable has a place.
///
/// # Errors
/// Returns the same errors as [`variables`].
pub fn objects(
    known: &Variables<'_>,
    moment: &Moment<'_, '_>,
    limits: &Limits,
    written: impl Fn(u32) -> Result<Option<Written>, StateError>,
) -> Result<Result<Vec<ShownObject>, DebugError>, StateError> {
    let activation = moment.activation;
    let scopes = known.function(activation.function).map(Rc::new);
    match scopes.and_then(|scopes| InScope::new(known, scopes, activation.offset)) {
        Ok(found) => found.objects(known, moment, limits, written).map(Ok),
        Err(error) => Ok(Err(error.named(moment.name))),
    }
}

/// The variables in scope at an offset of a function. They are the same for all moments at this
/// offset.
pub struct InScope {
    scopes: Rc<FunctionScopes>,
    at: OrigOffset,
    /// The variables, innermost scope first.
    pub variables: Vec<Variable>,
}

impl InScope {
    /// Finds the variables in scope at an offset of the function with these scopes.
    ///
    /// # Errors
    /// Returns an error if the offset is not in the function.
    pub fn new(
        known: &Variables<'_>,
        scopes: Rc<FunctionScopes>,
        at: OrigOffset,
    ) -> Result<Self, DebugError> {
        Ok(Self {
            variables: known.in_scope_of(&scopes, at)?,
            scopes,
            at,
        })
    }

    /// Reads the variables at a moment, with the locations that are valid at the offset. `written`
    /// is as for [`variables`].
    ///
    /// # Errors
    /// Returns the same errors as `written`.
    pub fn objects(
        &self,
        known: &Variables<'_>,
        moment: &Moment<'_, '_>,
        limits: &Limits,
        written: impl Fn(u32) -> Result<Option<Written>, StateError>,
    ) -> Result<Vec<ShownObject>, StateError> {
        let activation = moment.activation;
        let arguments = activation.parameters(moment.program);
        let shown = self.variables.iter().map(|it| {
            let (mut shown, object) = shown_of(known, it, (moment, self.at), limits);
            if let (Ok(_), Some(doubt)) = (
                &shown.value,
                doubt(known, &self.scopes, it, self.at, arguments),
            ) {
                shown.written = doubt.written(activation.time, &written)?;
            }
            if shown.written.is_some() {
                shown.brief.push('?');
            }
            Ok((shown, object))
        });
        shown.collect()
    }
}

/// Returns the first `most` named global variables of the source, in the order of their compilation
/// units, and the number of all of them.
///
/// # Errors
/// Returns an error if the names are too long in total for the size of the debug information, or if
/// the entry of a returned variable is broken.
pub fn globals(
    known: &Variables<'_>,
    moment: &Moment<'_, '_>,
    limits: &Limits,
    most: usize,
) -> Result<(Vec<Shown>, usize), DebugError> {
    let (found, count) = global_objects(known, moment, limits, most)?;
    Ok((found.into_iter().map(|(shown, _)| shown).collect(), count))
}

/// Like [`globals`], but returns each variable with its object, if the variable has a place.
///
/// # Errors
/// Returns the same errors as [`globals`].
pub fn global_objects(
    known: &Variables<'_>,
    moment: &Moment<'_, '_>,
    limits: &Limits,
    most: usize,
) -> Result<(Vec<ShownObject>, usize), DebugError> {
    let all = known.globals()?;
    let mut shown = Vec::new();
    for global in all.iter().take(most) {
        shown.push(global_object(known, global, moment, limits)?);
    }
    Ok((shown, all.len()))
}

/// Returns a global variable of the source, with its object if the variable has a place.
///
/// # Errors
/// Returns an error if its entry is broken.
pub fn global_object(
    known: &Variables<'_>,
    global: &Global,
    moment: &Moment<'_, '_>,
    limits: &Limits,
) -> Result<ShownObject, DebugError> {
    let variable = known.global_variable(global)?;
    let name = known.full_name(global)?;
    let here = (moment, moment.activation.offset);
    let (one, object) = shown_of(known, &variable, here, limits);
    Ok((Shown { name, ..one }, object))
}

fn shown_of(
    known: &Variables<'_>,
    variable: &Variable,
    (moment, at): (&Moment<'_, '_>, OrigOffset),
    limits: &Limits,
) -> (Shown, Option<Object>) {
    let at = match variable.kind {
        VariableKind::Global => None,
        _ => Some(at),
    };
    let located = known.locate(variable, at, moment);
    // The lengths of the type's arrays may depend on the moment.
    let type_ref = located
        .as_ref()
        .map_or(variable.type_ref, |object| object.type_ref);
    let rendered = match &located {
        Ok(object) => Ok(known.render(object, limits, moment)),
        Err(why) => Err(why),
    };
    let (value, brief) = match rendered {
        Err(why) => (Err(why.to_string()), "?".to_owned()),
        Ok(rendered) => match &rendered.shape {
            Shape::Missing(why) => (Err(why.to_string()), "?".to_owned()),
            _ => (Ok(rendered.to_string()), brief(&rendered)),
        },
    };
    let type_name = known.type_name(type_ref);
    let shown = Shown {
        name: variable.name.clone(),
        type_name: type_name.unwrap_or_default(),
        parameter: variable.kind == VariableKind::Parameter,
        inlined: variable.function.clone(),
        calls: variable.inlined,
        shadowed: variable.shadowed,
        line: variable.line,
        value,
        written: None,
        brief,
    };
    (shown, located.ok())
}

fn brief(rendered: &Rendered) -> String {
    let (whole, most) = match rendered.shape {
        Shape::Pointer => (rendered.text.clone(), BRIEF_POINTER),
        _ => (rendered.to_string(), BRIEF),
    };
    if whole.chars().count() <= most {
        whole
    } else if rendered.shape == Shape::Pointer {
        // For a long string, show only its address.
        let address = whole.split_whitespace().next();
        address.unwrap_or("…").to_owned()
    } else {
        "…".to_owned()
    }
}

/// Returns the locals of an activation. Each has its type, whether it is a parameter, and its value
/// if known.
pub fn locals(
    program: &Program,
    activation: &Activation<'_>,
    contents: &dyn Contents,
) -> Vec<(ValType, bool, Option<Bits>)> {
    let parameters = activation.parameters(program);
    let types = activation.locals().iter().copied().enumerate();
    types
        .map(|(i, ty)| {
            let value = contents.variable(activation, i as u32);
            (ty, i < parameters, value)
        })
        .collect()
}

/// Returns the globals of WebAssembly, each with its type, and its value if known.
pub fn wasm_globals(program: &Program, contents: &dyn Contents) -> Vec<(ValType, Option<Bits>)> {
    let all = program.globals.iter().zip(0..);
    all.map(|(ty, index)| (*ty, contents.global(index)))
        .collect()
}
