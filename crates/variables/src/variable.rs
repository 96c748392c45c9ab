//! Variables: which are in scope, and where they are.

use std::ops::Range;
use std::sync::Arc;

use afterimage_ids::{FuncId, OrigOffset};

use crate::debug::{EntryId, Next};
use crate::expression::Context;
use crate::location::{Found, select};
use crate::object::Object;
use crate::place::{Machine, Nothing, Piece, Place};
use crate::scalar::Scalar;
use crate::scopes::{FunctionScopes, Scope};
use crate::types::TypeRef;
use crate::{DebugError, Unavailable, Variables};

/// A variable of the source.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name; empty for parameters that have none.
    pub name: String,
    /// Its type.
    pub type_ref: TypeRef,
    /// What it is.
    pub kind: VariableKind,
    /// How many inlined calls it is in; 0 for those of the function itself.
    pub inlined: u32,
    /// The inlined function that it belongs to.
    pub function: Option<String>,
    /// The code in which it is in scope, as the entries say; empty for global variables.
    pub scope: Arc<[Range<OrigOffset>]>,
    /// Whether a variable further inside has the same name.
    pub shadowed: bool,
    /// The line of its declaration.
    pub line: Option<u32>,
    pub(crate) entry: EntryId,
    /// The function whose frame it may be in.
    pub(crate) frame: Option<EntryId>,
}

/// What a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A parameter of a function.
    Parameter,
    /// A variable of a function, static ones included.
    Local,
    /// A variable outside functions.
    Global,
}

/// More variables are in scope nowhere; hostile entries could refer to the same long list again and again.
const IN_SCOPE: usize = 1 << 16;

impl Variables<'_> {
    /// The scopes of a function that the module defines. O(its entries), after the first call, which reads
    /// all entries.
    ///
    /// # Errors
    /// If there is no such function, or the debug information does not describe it.
    pub fn function(&self, func: FuncId) -> Result<FunctionScopes, DebugError> {
        let body = self
            .debug
            .sections
            .body(func)
            .ok_or(DebugError::NoFunction(func))?;
        let index = self.index();
        let entry = index
            .function_at(body.start)
            .or_else(|| index.function_in(&body));
        let entry = entry.ok_or(DebugError::NotDescribed(func))?;
        FunctionScopes::read(&self.debug, func, body, entry)
    }

    /// The variables in scope at an offset: parameters and locals, those of inlined functions included; innermost
    /// first, and in a scope in the order of their declaration. Global variables are left out.
    ///
    /// # Errors
    /// As [`function`](Self::function); and if the offset is not in the function.
    pub fn in_scope(&self, func: FuncId, at: OrigOffset) -> Result<Vec<Variable>, DebugError> {
        self.in_scope_of(&self.function(func)?, at)
    }

    /// As [`in_scope`](Self::in_scope), for a function that was read before. O(scopes + answer).
    ///
    /// # Errors
    /// If the offset is not in the function.
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
        for scope in function.around(at) {
            let start = found.len();
            self.variables_of(function, scope, &mut found)?;
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

    /// The variables of one scope, with those that its origin has and it lacks: the compiler leaves out of an inlined call
    /// what it optimised out.
    pub(crate) fn variables_of(
        &self,
        function: &FunctionScopes,
        scope: &Scope,
        found: &mut Vec<Variable>,
    ) -> Result<(), DebugError> {
        let code = function.code(scope);
        let function_name = match scope.inlined {
            0 => None,
            _ => self.debug.name(scope.function)?,
        };
        let mut add = |entry: EntryId, kind| {
            let name = self.debug.name(entry);
            found.push(Variable {
                // A broken entry does not hide the others; locating the variable gives the error.
                name: name
                    .unwrap_or_else(|_| Some("<broken>".into()))
                    .unwrap_or_default(),
                type_ref: TypeRef::new(self.debug.type_of(entry).unwrap_or(None)),
                kind,
                inlined: scope.inlined,
                function: function_name.clone(),
                scope: code.clone(),
                shadowed: false,
                line: self.line(entry).unwrap_or(None),
                entry,
                frame: Some(function.entry),
            });
        };
        let mut origins = std::collections::HashSet::new();
        for &variable in &scope.variables {
            let entry = self.debug.entry(variable)?;
            origins.extend(self.debug.origin(&entry));
            add(variable, kind(entry.tag));
        }
        let Some(origin) = scope.origin else {
            return Ok(());
        };
        let mut more = 0;
        self.debug.walk(
            origin.unit,
            Some(origin.offset),
            |_| true,
            |depth, entry| {
                let variable = matches!(
                    entry.tag,
                    gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
                );
                if depth == 1 && variable && !origins.contains(&entry.id) {
                    more += 1;
                    if more > IN_SCOPE {
                        return Err(DebugError::TooMuch { what: "variables" });
                    }
                    add(entry.id, kind(entry.tag));
                }
                Ok(if depth == 0 { Next::Into } else { Next::Over })
            },
        )
    }

    pub(crate) fn line(&self, entry: EntryId) -> Result<Option<u32>, DebugError> {
        let line = self.debug.attribute(entry, gimli::DW_AT_decl_line)?;
        let line = line.and_then(|(_, value)| u32::try_from(value.udata_value()?).ok());
        Ok(line.filter(|line| *line > 0))
    }

    /// Where a variable is at an offset, which global variables do not need.
    ///
    /// Unoptimised code keeps variables in its stack frame, and DWARF says so for the whole function: before the
    /// function has set up the frame and stored its arguments there, the place is right but the value is not set yet.
    ///
    /// # Errors
    /// Why it is nowhere.
    pub fn locate(
        &self,
        variable: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> Result<Object, Unavailable> {
        let bytes = self.size(variable.type_ref)?;
        let pieces = match select(&self.debug, variable.entry, gimli::DW_AT_location, at)? {
            Found::Nothing => return Err(Unavailable::OptimisedOut),
            Found::Constant(value) => vec![self.constant(value, bytes)?],
            Found::Expression(unit, expression) => {
                let context = Context {
                    debug: &self.debug,
                    machine,
                    frame: variable.frame.zip(at),
                };
                context.pieces(unit, expression, None, bytes.unwrap_or(0))?
            }
        };
        if pieces
            .iter()
            .all(|piece| piece.place == Place::OptimisedOut)
        {
            return Err(Unavailable::OptimisedOut);
        }
        Ok(Object {
            type_ref: variable.type_ref,
            pieces,
            bits: None,
        })
    }

    /// Where a global variable is, if that can be said without a run.
    pub(crate) fn locate_statically(&self, entry: &EntryId) -> Option<Vec<Piece>> {
        let found = select(&self.debug, *entry, gimli::DW_AT_location, None).ok()?;
        let context = Context {
            debug: &self.debug,
            machine: &Nothing,
            frame: None,
        };
        match found {
            Found::Expression(unit, expression) => context.pieces(unit, expression, None, 0).ok(),
            Found::Constant(value) => self.constant(value, None).ok().map(|piece| vec![piece]),
            Found::Nothing => None,
        }
    }

    /// The bytes of a variable that is a constant.
    fn constant(
        &self,
        value: crate::debug::Value<'_>,
        bytes: Option<u64>,
    ) -> Result<Piece, Unavailable> {
        use gimli::AttributeValue as A;
        let bytes = bytes.unwrap_or(8);
        // Numbers of a fixed size do not say how they are extended.
        let fixed = |number: u64, size: u64| {
            let narrow = Unavailable::Narrow {
                bits: 8 * size as u32,
            };
            if bytes > size {
                Err(narrow)
            } else {
                Scalar::constant(number).to_bytes(bytes)
            }
        };
        let held = match value {
            A::Udata(number) => Scalar::constant(number).to_bytes(bytes)?,
            A::Sdata(number) => Scalar::signed(number).to_bytes(bytes)?,
            A::Data1(number) => fixed(number.into(), 1)?,
            A::Data2(number) => fixed(number.into(), 2)?,
            A::Data4(number) => fixed(number.into(), 4)?,
            A::Data8(number) => fixed(number, 8)?,
            A::Data16(number) if bytes <= 16 => number.to_le_bytes()[..bytes as usize].to_vec(),
            A::Block(block) => block.slice().to_vec(),
            A::String(text) => [text.slice(), &[0]].concat(),
            _ => return Err(Unavailable::Unsupported("a constant in this form")),
        };
        let bytes = held.len() as u64;
        Ok(Piece {
            place: Place::Value(held.into()),
            offset: 0,
            bytes,
        })
    }
}

fn kind(tag: gimli::DwTag) -> VariableKind {
    match tag {
        gimli::DW_TAG_formal_parameter => VariableKind::Parameter,
        _ => VariableKind::Local,
    }
}
