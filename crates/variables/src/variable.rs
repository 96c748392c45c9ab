//! Variables, with their scopes and locations.

use std::ops::Range;
use std::sync::Arc;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::NoDebug;
use gimli::AttributeValue;

use crate::debug::{EntryId, Next};
use crate::scopes::{FunctionScopes, Scope};
use crate::types::TypeRef;
use crate::{DebugError, Variables};

/// A variable of the source.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name of the variable, or empty for an unnamed parameter.
    pub name: String,
    /// The type of the variable's value.
    pub type_ref: TypeRef,
    /// Whether the variable is a parameter, a local or a global.
    pub kind: VariableKind,
    /// The number of inlined calls that enclose the variable, or 0 for variables of the function
    /// itself.
    pub inlined: u32,
    /// The inlined function to which the variable belongs. `None` for variables of the function
    /// itself and for global variables.
    pub function: Option<String>,
    /// The code in which the variable is in scope, according to the entries. Empty for global
    /// variables.
    pub scope: Arc<[Range<OrigOffset>]>,
    /// Whether an inner variable has the same name.
    pub shadowed: bool,
    /// The line of the variable's declaration.
    pub line: Option<u32>,
    pub(crate) entry: EntryId,
    /// The function in whose frame the variable may be.
    pub(crate) frame: Option<EntryId>,
}

/// The kind of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A parameter of a function.
    Parameter,
    /// A variable of a function, which may be static.
    Local,
    /// A variable outside functions.
    Global,
}

/// The maximum number of variables in scope. Hostile entries could refer to the same long list
/// again and again.
const IN_SCOPE: usize = 1 << 16;

impl Variables<'_> {
    /// Returns the scopes of a function that the module defines. The first call reads all entries.
    /// Later calls take O(entries of the function).
    ///
    /// # Errors
    /// Returns an error if there is no such function, or the debug information does not describe
    /// it.
    pub fn function(&self, func: FuncId) -> Result<FunctionScopes, DebugError> {
        let body = self
            .debug
            .sections
            .body(func)
            .ok_or(DebugError::NoFunction(func))?;
        let index = self.index();
        let entry = index.function(&body);
        let is_foreign = entry.is_none() && index.fit.is_foreign(body.start);
        let unit = match entry {
            Some(entry) => Some(entry.unit),
            None => self.debug.unit_at(body.start),
        };
        if let Some(missing) = unit
            .and_then(|unit| self.missing(unit))
            .filter(|_| !is_foreign)
        {
            return Err(missing);
        }
        let entry = entry.ok_or(if is_foreign {
            DebugError::Foreign(func.into())
        } else {
            let elsewhere = NoDebug::of(|name| self.debug.sections.custom(name));
            DebugError::NotDescribed(func.into(), elsewhere)
        })?;
        FunctionScopes::read(&self.debug, func, body, entry)
    }

    /// Returns the parameters and locals in scope at an offset, including those of inlined
    /// functions. The innermost come first. Within a scope, they are in the order of their
    /// declarations. Global variables are excluded.
    ///
    /// # Errors
    /// Returns the same errors as [`function`](Self::function), and an error if the offset is not
    /// in the function.
    pub fn in_scope(&self, func: FuncId, at: OrigOffset) -> Result<Vec<Variable>, DebugError> {
        self.in_scope_of(&self.function(func)?, at)
    }

    /// Like [`in_scope`](Self::in_scope), but for a function whose scopes have already been read.
    /// O(scopes · log scopes + ranges + entries of the scopes found).
    ///
    /// # Errors
    /// Returns an error if the offset is not in the function.
    pub fn in_scope_of(
        &self,
        function: &FunctionScopes,
        at: OrigOffset,
    ) -> Result<Vec<Variable>, DebugError> {
        if !function.body.contains(&at) {
            return Err(DebugError::Outside {
                func: function.func,
                offset: at,
                body: function.body.clone(),
            });
        }
        let mut found = Vec::new();
        let mut names = std::collections::HashSet::new();
        let mut bytes = 0;
        // Limit the bytes read, because nested inlined calls could all be copies of one huge
        // function, whose entries are read again for each of them.
        let mut origins = 64 * self.debug.size() + (1 << 20);
        for scope in function.around(at) {
            let start = found.len();
            let read = self.variables_of(function, scope, &mut found)?;
            let left = origins.checked_sub(read);
            origins = left.ok_or(DebugError::TooMuch {
                what: "inlined calls",
            })?;
            for variable in &mut found[start..] {
                variable.shadowed = names.contains(&variable.name);
                bytes += variable.name.len() + variable.function.as_ref().map_or(0, String::len);
            }
            names.extend(
                found[start..]
                    .iter()
                    .map(|variable| variable.name.clone())
                    .filter(|name| !name.is_empty()),
            );
            if found.len() > IN_SCOPE || bytes > 4 * self.debug.size() + (1 << 20) {
                return Err(DebugError::TooMuch { what: "variables" });
            }
        }
        Ok(found)
    }

    /// Returns the variables of one scope, including variables that only its origin has. In an
    /// inlined call, the compiler omits variables that it optimised out. Also returns the number of
    /// bytes read of the origin's entries.
    fn variables_of(
        &self,
        function: &FunctionScopes,
        scope: &Scope,
        found: &mut Vec<Variable>,
    ) -> Result<usize, DebugError> {
        let function_name = match scope.inlined {
            0 => None,
            _ => self.debug.name(scope.function)?,
        };
        let mut add = |entry: EntryId, kind| {
            let name = self.debug.name(entry);
            found.push(Variable {
                // A broken entry does not hide the others. Locating the variable returns the error.
                name: name
                    .unwrap_or_else(|_| Some("<broken>".into()))
                    .unwrap_or_default(),
                type_ref: TypeRef::new(self.debug.type_of(entry).unwrap_or(None)),
                kind,
                inlined: scope.inlined,
                function: function_name.clone(),
                scope: scope.code.clone(),
                shadowed: false,
                line: self.line(entry).unwrap_or(None),
                entry,
                frame: Some(function.entry),
            });
        };
        let mut origins = std::collections::HashSet::new();
        for &variable in &scope.variables {
            let entry = self.debug.entry(variable)?;
            origins.insert(variable);
            origins.extend(self.debug.origin(&entry));
            add(variable, kind(entry.tag));
        }
        let mut read = 0;
        if let Some(origin) = scope.origin {
            let mut more = 0;
            read = self.debug.walk(
                origin.unit,
                Some(origin.offset),
                |_| true,
                |depth, entry| {
                    let variable = matches!(
                        entry.tag,
                        gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
                    );
                    if depth == 1 && variable && origins.insert(entry.id) {
                        more += 1;
                        if more > IN_SCOPE {
                            return Err(DebugError::TooMuch { what: "variables" });
                        }
                        add(entry.id, kind(entry.tag));
                    }
                    Ok(if depth == 0 { Next::Into } else { Next::Over })
                },
            )?;
        }
        for variable in self.other_statics(function, scope)? {
            if origins.insert(variable) {
                add(variable, VariableKind::Local);
            }
        }
        Ok(read)
    }

    /// Returns the static variables of a function that are in none of its scopes. The compiler
    /// omits the blocks that contain such variables, and lists static variables of inlined
    /// functions elsewhere.
    fn other_statics(
        &self,
        function: &FunctionScopes,
        scope: &Scope,
    ) -> Result<Vec<EntryId>, DebugError> {
        if !scope.whole {
            return Ok(Vec::new());
        }
        let mut own: Vec<EntryId> = Vec::from_iter([scope.function]);
        own.extend(scope.origin);
        let mut statics: Vec<EntryId> = self.index().statics_of(&own).collect();
        if !statics.is_empty() {
            let mut listed = std::collections::HashSet::new();
            for &variable in function.scopes.iter().flat_map(|scope| &scope.variables) {
                listed.insert(variable);
                listed.extend(self.debug.origin(&self.debug.entry(variable)?));
            }
            statics.retain(|variable| !listed.contains(variable));
        }
        Ok(statics)
    }

    /// Whether a variable comes into scope after its declaration, as in Rust. In other languages, it
    /// is in scope from the beginning of its block, where it has no value yet.
    pub fn is_declared_before_scope(&self, variable: &Variable) -> bool {
        let unit = self.debug.first(variable.entry.unit);
        let language = unit.and_then(|unit| unit.value(gimli::DW_AT_language));
        language == Some(AttributeValue::Language(gimli::DW_LANG_Rust))
    }

    pub(crate) fn line(&self, entry: EntryId) -> Result<Option<u32>, DebugError> {
        let line = self.debug.attribute(entry, gimli::DW_AT_decl_line)?;
        let line = line.and_then(|(_, value)| u32::try_from(value.udata_value()?).ok());
        Ok(line.filter(|line| *line > 0))
    }
}

fn kind(tag: gimli::DwTag) -> VariableKind {
    match tag {
        gimli::DW_TAG_formal_parameter => VariableKind::Parameter,
        _ => VariableKind::Local,
    }
}
