//! Defines the reasons why debug information gives no answer.

use std::fmt;
use std::ops::Range;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::{NoDebug, short_type};
use thiserror::Error;

use crate::place::VariableLocation;

/// The reason why the debug information does not answer a question.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DebugError {
    /// The module has no `.debug_info`.
    #[error(transparent)]
    None(NoDebug),
    /// The entries of the function's unit are in another file.
    #[error(
        "the information about variables is in another file, {file}, which is not read; compile \
         without -gsplit-dwarf"
    )]
    Split {
        /// The file, as the unit names it.
        file: String,
    },
    /// The function was compiled with line information only.
    #[error(
        "the debug information of {unit} has lines but no variables, as with -gline-tables-only or -g1; compile it with -g"
    )]
    OnlyLines {
        /// The source, as the unit names it.
        unit: String,
    },
    /// Parts of the program were compiled with line information only.
    #[error(
        "{units} of {of} units have lines but no variables, as with -gline-tables-only or -g1; the first of these units is {first}"
    )]
    SomeOnlyLines {
        /// The number of these units.
        units: usize,
        /// The number of all units.
        of: u32,
        /// The source of the first of these units, as the unit names it.
        first: String,
    },
    /// The module does not define this function.
    #[error("{0} is not a function that the module defines")]
    NoFunction(FuncId),
    /// An offset is outside the function to which it should belong.
    #[error("offset {offset} is not in {func}, whose body is {}..{}", body.start, body.end)]
    Outside {
        /// The function that should contain the offset.
        func: FuncId,
        /// The offset in the module.
        offset: OrigOffset,
        /// The range of the function's body.
        body: Range<OrigOffset>,
    },
    /// Functions were compiled without debug information.
    #[error(
        "{functions} of the module's functions have no debug information: compile them with -g"
    )]
    Undescribed {
        /// The number of functions without debug information.
        functions: usize,
    },
    /// The function has no debug information.
    #[error("there is no debug information about {0}{hint}", hint = .1.hint())]
    NotDescribed(Called, NoDebug),
    /// The debug information at the function's addresses belongs to other code.
    #[error(
        "the debug information does not match the code of {0}: a tool rewrote the module and \
         kept the old addresses; record the module as it was linked"
    )]
    Foreign(Called),
    /// An entry of the debug information is broken.
    #[error("broken debug information at 0x{at:x} of .debug_info: {error}")]
    Malformed {
        /// The offset of the entry in `.debug_info`.
        at: usize,
        /// The fault that gimli reported.
        error: gimli::Error,
    },
    /// The location of a structure's member has an unknown form.
    #[error("the member at 0x{at:x} of .debug_info has no place")]
    NoPlace {
        /// The offset of the entry in `.debug_info`.
        at: usize,
    },
    /// Entries refer to each other in a cycle, or in a chain longer than any compiler makes.
    #[error("the entry at 0x{at:x} of .debug_info starts an endless chain of references")]
    Endless {
        /// The offset of the first entry in `.debug_info`.
        at: usize,
    },
    /// The debug information names more items than its size allows.
    #[error("the debug information names too many {what}")]
    TooMuch {
        /// The items that exceed the limit.
        what: &'static str,
    },
}

impl DebugError {
    /// Returns a hint to append to a message about unknown data, if other parts of the program have
    /// debug information.
    pub fn hint(&self) -> String {
        match self {
            Self::None(elsewhere) => elsewhere.hint(),
            why => format!("; {why}"),
        }
    }

    /// Returns the same error with the function's name.
    #[must_use]
    pub fn named(self, name: impl Fn(FuncId) -> String) -> Self {
        let called = |of: Called| Called {
            name: Some(name(of.function)),
            ..of
        };
        match self {
            Self::NotDescribed(of, elsewhere) => Self::NotDescribed(called(of), elsewhere),
            Self::Foreign(of) => Self::Foreign(called(of)),
            other => other,
        }
    }
}

/// A function in a message, shown by its name if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    function: FuncId,
    name: Option<String>,
}

impl From<FuncId> for Called {
    fn from(function: FuncId) -> Self {
        Self {
            function,
            name: None,
        }
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => self.function.fmt(f),
        }
    }
}

/// The reason why a variable, or a part of it, has no value at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// The compiler did not keep the value anywhere.
    #[error("optimised out")]
    OptimisedOut,
    /// The variable has a location elsewhere in the function, but not here.
    #[error("optimised out here; the nearest place where it is known is {}..{}", nearest.start, nearest.end)]
    NotHere {
        /// The nearest code where the variable has a location.
        nearest: Range<OrigOffset>,
    },
    /// The linker removed the variable.
    #[error("removed by the linker")]
    Removed,
    /// The function has not set up its stack frame yet.
    #[error("not set yet: the function has no stack frame here{}", from(*behind))]
    NoFrame {
        /// The offset from which the function has a frame, if known.
        behind: Option<OrigOffset>,
    },
    /// The value of a place is unknown at this moment of the run.
    #[error("the value of {0} is not known")]
    Unknown(VariableLocation),
    /// The address is outside memory.
    #[error("address 0x{address:x} is outside memory")]
    OutsideMemory {
        /// The address of the first byte needed.
        address: u64,
    },
    /// The location yields fewer bits than the variable has, and leaves the other bits undefined.
    #[error("its location provides only {bits} bits")]
    Narrow {
        /// The number of bits that the location yields.
        bits: u32,
    },
    /// A member begins after the end of its structure, so it has no bytes. An example is a function
    /// item of Rust, which DWARF describes as a pointer.
    #[error("it has no bytes")]
    NoBytes,
    /// The location uses an operation that is meaningless in WebAssembly or not supported.
    #[error("its location uses {0}, which is not supported")]
    Unsupported(&'static str),
    /// DWARF 2 and 3 do not distinguish a location that is an address from one that is the value
    /// itself.
    #[error(
        "its location may be its value or its address, which DWARF 2 and 3 do not distinguish; \
         compile it with -gdwarf-4 or -gdwarf-5"
    )]
    ValueOrAddress,
    /// The code uses the locals named in the debug information for other values.
    #[error(
        "the debug information does not match the code, which uses its locals for other values: a tool such as wasm-opt rewrote the module; record the module as it was linked"
    )]
    ForeignLocals,
    /// The location is broken, for this reason.
    #[error("its location is broken: {0}")]
    Broken(&'static str),
    /// The debug information is broken.
    #[error(transparent)]
    Debug(#[from] DebugError),
}

/// The reason why a path expression has no object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// A container is inconsistent, because it is corrupt or not yet initialised.
    #[error("damaged, or not yet initialised: {0}")]
    Damaged(&'static str),
    /// The text is not a path expression.
    #[error("expected {expected} at character {at} of the expression")]
    Syntax {
        /// The position, in bytes counted from 0.
        at: usize,
        /// The token that was expected there.
        expected: &'static str,
    },
    /// No variable has this name.
    #[error("there is no variable {name}{}{}", suggestions(nearest), lacking(lacks.as_ref()))]
    NoVariable {
        /// The name that was searched for.
        name: String,
        /// Similar names that exist.
        nearest: Vec<String>,
        /// The reason why a part of the program has no variables.
        lacks: Option<DebugError>,
    },
    /// The name may denote any of several global variables.
    #[error("{name} may be any of {}", candidates.join(", "))]
    Ambiguous {
        /// The name that was searched for.
        name: String,
        /// The paths of these variables, each with its compilation unit.
        candidates: Vec<String>,
    },
    /// The function has the variable, but it is not in scope here.
    #[error("{name} is not in scope here; the nearest place where it is in scope is {}..{}", nearest.start, nearest.end)]
    NotInScope {
        /// The name of the variable.
        name: String,
        /// The nearest code where the variable is in scope.
        nearest: Range<OrigOffset>,
    },
    /// A type does not have this member.
    #[error(
        "{} has no member {name}{}",
        short_type(type_name),
        suggestions(members)
    )]
    NoMember {
        /// The name of the type.
        type_name: String,
        /// The name of the missing member.
        name: String,
        /// Similar names, or all names if there are few.
        members: Vec<String>,
    },
    /// Another variant of the enumeration is active.
    #[error("the variant is {active}, not {name}")]
    OtherVariant {
        /// The requested variant.
        name: String,
        /// The active variant.
        active: String,
    },
    /// A value that is not a pointer was dereferenced.
    #[error("{} is not a pointer", short_type(type_name))]
    NotPointer {
        /// The name of the value's type.
        type_name: String,
    },
    /// A null pointer was dereferenced.
    #[error("the pointer is null")]
    Null,
    /// The contents of an empty container were requested.
    #[error("it is empty")]
    Empty,
    /// A map does not contain a key.
    #[error("it has no key {key}")]
    NoKey {
        /// The key, as written.
        key: String,
    },
    /// A value without elements was indexed.
    #[error("{} has no elements", short_type(type_name))]
    NotIndexable {
        /// The name of the value's type.
        type_name: String,
    },
    /// The index is outside the array.
    #[error("index {index} is outside the array, which has {count} elements")]
    OutsideArray {
        /// The requested index.
        index: i64,
        /// The number of elements in the array.
        count: u64,
    },
    /// The index is outside the container, which has this many elements at the moment.
    #[error("index {index} is outside the container, which has {count} elements")]
    OutsideContainer {
        /// The requested index.
        index: i64,
        /// The number of elements in the container.
        count: u64,
    },
    /// The discriminant selects none of the variants. The enumeration is not yet set, or is no
    /// longer valid.
    #[error("the discriminant matches no variant")]
    NoVariant,
    /// The size of a type is unknown. The type is declared but not defined, or is an array without
    /// a stated length.
    #[error(
        "the debug information does not give the size of {}",
        short_type(type_name)
    )]
    Incomplete {
        /// The name of the type.
        type_name: String,
    },
    /// The length of a dynamically sized array is unknown at this moment.
    #[error("the length of {} is not known here: {why}", short_type(type_name))]
    Length {
        /// The name of the array's type.
        type_name: String,
        /// The reason why the length is unknown.
        why: Unavailable,
    },
    /// A value outside memory has no address.
    #[error("it has no address: it is not in memory")]
    NoAddress,
    /// A single number is required, but the value has several parts.
    #[error(
        "{} is not a single number{}",
        short_type(type_name),
        named_parts(parts)
    )]
    Aggregate {
        /// The name of the value's type.
        type_name: String,
        /// The suffixes that select the parts of the value, such as members.
        parts: Vec<String>,
    },
    /// The object has no value.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<DebugError> for PathError {
    fn from(error: DebugError) -> Self {
        Self::Unavailable(error.into())
    }
}

fn from(behind: Option<OrigOffset>) -> String {
    behind.map_or_else(String::new, |at| format!("; it has one from @{at} on"))
}

fn named_parts(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        parts => format!("; name a part of it: {}", parts.join(", ")),
    }
}

fn lacking(why: Option<&DebugError>) -> String {
    why.map_or_else(String::new, DebugError::hint)
}

fn suggestions(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; there is {one}"),
        many => format!("; there are {}", many.join(", ")),
    }
}
