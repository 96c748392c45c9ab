//! Finds the source variables in scope at an offset of the original module, their places in the
//! WebAssembly program, and their values. All of this comes from DWARF debug information.
//!
//! This crate runs no code. Values come from a [`Machine`], which is a moment of a run that the
//! caller provides. The moment may come from a recording, an interpreter or a test. If DWARF does
//! not determine a value, the value is [`Unavailable`], with the reason. This crate never guesses.
//!
//! ```no_run
//! use afterimage_ids::{FuncId, OrigOffset};
//! use afterimage_variables::{Limits, Machine, Path, Variables};
//!
//! fn show(module: &[u8], func: FuncId, at: OrigOffset, now: &dyn Machine) -> Result<(), Box<dyn
//! std::error::Error>> {
//!     let variables = Variables::open(module)?;
//!     let function = variables.function(func)?;
//!     for variable in variables.in_scope_of(&function, at)? {
//!         match variables.locate(&variable, Some(at), now) {
//!             Ok(object) => println!("{} = {}", variable.name, variables.render(&object, &Limits::default(), now)),
//!             Err(why) => println!("{}: {why}", variable.name),
//!         }
//!     }
//!     let path: Path = "p->next.key".parse()?;
//!     let object = variables.resolve(&path, Some((&function, at)), now)?;
//!     println!("{path:?} is in {:?}", object.pieces);
//!     Ok(())
//! }
//! ```
//!
//! This crate walks the debug entries without recursion. Memory use is proportional to the size of
//! the debug sections, even for hostile input. gimli decodes the sections. This crate evaluates the
//! expressions, because gimli's evaluation does not support `DW_OP_WASM_location`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

mod abbreviations;
mod condition;
mod constants;
mod containers;
mod debug;
mod error;
mod expression;
mod globals;
mod index;
mod locate;
mod located;
mod location;
mod methods;
mod missing;
mod nearest;
mod object;
mod parts;
mod path;
mod place;
mod prologue;
mod reader;
mod render;
mod scalar;
mod scopes;
mod sections;
mod sequence;
mod shared;
mod types;
mod variable;

pub use condition::{Condition, ConditionError, Held, Number as ConditionNumber, Truth};
pub use constants::Constant;
pub use error::{Called, DebugError, PathError, Unavailable};
pub use globals::Global;
pub use located::Located;
pub use object::Object;
pub use parts::{Part, Parts};
pub use path::Path;
pub use place::{Machine, Nothing, Piece, VariableLocation, Word};
pub use render::{Limits, Number, NumberType, Rank, Rendered, Shape, quoted};
pub use scopes::FunctionScopes;
pub use types::{
    BitField, ComputedOffset, Encoding, Member, MemberOffset, Record, RecordKind, Type, TypeKind,
    TypeRef, Variant, VariantPart,
};
pub use variable::{Variable, VariableKind};

use debug::Debug;
use index::Index;
use types::Types;

/// The variables of a module.
pub struct Variables<'a> {
    debug: Debug<'a>,
    index: OnceLock<Index>,
    types: Types,
    methods: OnceLock<methods::Methods>,
    /// For each unit examined, the reason why it describes no variables, or `None` if it describes
    /// some.
    missing: Mutex<HashMap<u32, Option<DebugError>>>,
}

impl<'a> Variables<'a> {
    /// Opens the debug information of the original module and lists its units. Later queries read
    /// their entries on demand.
    ///
    /// # Errors
    /// [`DebugError::None`] if there is no debug information. Broken parts are left out and listed
    /// as [warnings](Self::warnings).
    pub fn open(module: &'a [u8]) -> Result<Self, DebugError> {
        Ok(Self {
            debug: Debug::open(module)?,
            index: OnceLock::new(),
            types: Types::default(),
            methods: OnceLock::new(),
            missing: Mutex::default(),
        })
    }

    /// Returns the warnings about unreadable parts found so far.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        let later = self
            .index
            .get()
            .into_iter()
            .flat_map(|index| &index.warnings);
        self.debug.warnings.iter().chain(later).map(String::as_str)
    }

    /// Checks whether a tool rewrote the module without updating the locals named in the debug
    /// information. Time of the first call: O(code size).
    fn look_for_foreign_locals(&self) {
        let found = &self.debug.foreign_locals;
        found.get_or_init(|| self.index().has_foreign_frame(&self.debug));
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::build(&self.debug))
    }

    /// Returns the definition of a type.
    ///
    /// # Errors
    /// Returns an error if its entry is broken.
    pub fn describe(&self, type_ref: TypeRef) -> Result<Arc<Type>, DebugError> {
        self.types.describe(&self.debug, type_ref)
    }

    /// Returns the name of a type, as C would write it.
    ///
    /// # Errors
    /// Returns an error if an entry is broken.
    pub fn type_name(&self, type_ref: TypeRef) -> Result<String, DebugError> {
        self.types.name(&self.debug, type_ref)
    }

    /// Returns the size of a type in bytes, or `None` for functions, incomplete types and arrays of
    /// unknown length.
    ///
    /// # Errors
    /// Returns an error if an entry is broken.
    pub fn size(&self, type_ref: TypeRef) -> Result<Option<u64>, DebugError> {
        types::size(&self.types, &self.debug, type_ref)
    }

    /// Returns a type stripped of aliases and qualifiers.
    ///
    /// # Errors
    /// Returns an error if an entry is broken.
    pub fn plain(&self, type_ref: TypeRef) -> Result<TypeRef, DebugError> {
        types::plain(&self.types, &self.debug, type_ref)
    }
}

impl std::fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variables")
            .field("units", &self.debug.units())
            .finish_non_exhaustive()
    }
}
