//! Finds the names and source positions of operators.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_program::{Location, Program};

use super::name::name;
use afterimage_profile::body::decode;
use afterimage_profile::walk::positions;
use afterimage_profile::{ProfileError, Source};

/// The name and the place of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorPlace {
    /// The operator's name in the text format, without immediates.
    pub name: Rc<str>,
    /// The operator's offset in the original module.
    pub offset: OrigOffset,
    /// The operator's source position.
    pub position: Option<Location>,
}

/// The operators of a function, by ordinal.
pub type FunctionOperators = Rc<[OperatorPlace]>;

/// The names and places of operators. The first question about a function takes time linear in its
/// body.
pub struct Operators<'a> {
    program: &'a Program,
    module: &'a [u8],
    source: &'a dyn Source,
    known: RefCell<HashMap<FuncId, FunctionOperators>>,
}

impl<'a> Operators<'a> {
    /// Creates an index of the operators of a program. `module` has the bytes from which the
    /// program was parsed.
    pub fn new(program: &'a Program, module: &'a [u8], source: &'a dyn Source) -> Self {
        Self {
            program,
            module,
            source,
            known: RefCell::default(),
        }
    }

    /// Returns the program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Returns an operator, or `None` if there is no such operator.
    ///
    /// # Errors
    /// If the module's bytes do not match the program.
    pub fn get(&self, function: FuncId, op: OpId) -> Result<Option<OperatorPlace>, ProfileError> {
        let operators = self.of(function)?;
        Ok(operators.get(op.as_u32() as usize).cloned())
    }

    /// Returns the operators of a function, or an empty list for an import.
    ///
    /// # Errors
    /// If the module's bytes do not match the program.
    pub fn of(&self, function: FuncId) -> Result<FunctionOperators, ProfileError> {
        if let Some(known) = self.known.borrow().get(&function) {
            return Ok(Rc::clone(known));
        }
        let found = self.read(function)?;
        self.known.borrow_mut().insert(function, Rc::clone(&found));
        Ok(found)
    }

    fn read(&self, function: FuncId) -> Result<FunctionOperators, ProfileError> {
        let Some(function) = self.program.function(function) else {
            return Ok(Rc::default());
        };
        let (mut body, mut counted) = (Vec::new(), Vec::new());
        decode(self.program, self.module, function, &mut body)?;
        positions(function, &body, self.source, &mut counted);
        let mut names: HashMap<String, Rc<str>> = HashMap::new();
        let operators = self.program.operators(self.module, function);
        let places = operators
            .zip(&counted)
            .map(|((_, offset, operator), counted)| {
                let name = name(&operator);
                let name = names
                    .entry(name)
                    .or_insert_with_key(|name| name.as_str().into());
                OperatorPlace {
                    name: Rc::clone(name),
                    offset,
                    position: counted.position,
                }
            });
        Ok(places.collect())
    }
}
