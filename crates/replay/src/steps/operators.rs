//! Finds the names and source positions of operators.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    pub name: Arc<str>,
    /// The operator's offset in the original module.
    pub offset: OrigOffset,
    /// The operator's source position.
    pub position: Option<Location>,
}

/// The operators of a function, by ordinal.
pub type FunctionOperators = Arc<[OperatorPlace]>;

/// The names and places of operators. The first question about a function takes time linear in its
/// body.
pub struct Operators<'a> {
    program: &'a Program,
    module: &'a [u8],
    source: &'a dyn Source,
    known: RefCell<HashMap<FuncId, FunctionOperators>>,
    shared: Option<&'a OperatorCache>,
}

/// The maximum number of operators in an [`OperatorCache`], about 50 MB.
const MOST_SHARED: usize = 1 << 20;

/// The operators of functions that questions about a program have used. Later questions need not
/// read them again.
#[derive(Debug, Default)]
pub struct OperatorCache(Mutex<CachedOperators>);

#[derive(Debug, Default)]
struct CachedOperators {
    of: HashMap<FuncId, FunctionOperators>,
    /// The total number of operators.
    count: usize,
}

impl OperatorCache {
    fn get(&self, function: FuncId) -> Option<FunctionOperators> {
        self.locked().of.get(&function).cloned()
    }

    fn insert(&self, function: FuncId, operators: &FunctionOperators) {
        let mut cached = self.locked();
        if cached.count + operators.len() > MOST_SHARED {
            *cached = CachedOperators::default();
        }
        cached.count += operators.len();
        cached.of.insert(function, Arc::clone(operators));
    }

    fn locked(&self) -> MutexGuard<'_, CachedOperators> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Operators<'a> {
    /// Creates an index of the operators of a program. `module` contains the bytes from which the
    /// program was parsed.
    pub fn new(program: &'a Program, module: &'a [u8], source: &'a dyn Source) -> Self {
        Self {
            program,
            module,
            source,
            known: RefCell::default(),
            shared: None,
        }
    }

    /// Takes operators from a cache, and adds new operators to it. All users of a cache must have
    /// the same program and source.
    pub fn with_cache(self, cache: &'a OperatorCache) -> Self {
        Self {
            shared: Some(cache),
            ..self
        }
    }

    /// Returns the program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// Returns an operator, or `None` if there is no such operator.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn get(&self, function: FuncId, op: OpId) -> Result<Option<OperatorPlace>, ProfileError> {
        let operators = self.of(function)?;
        Ok(operators.get(op.as_u32() as usize).cloned())
    }

    /// Returns the operators of a function, or an empty list for an import.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn of(&self, function: FuncId) -> Result<FunctionOperators, ProfileError> {
        if let Some(known) = self.known.borrow().get(&function) {
            return Ok(Arc::clone(known));
        }
        let cached = self.shared.and_then(|cache| cache.get(function));
        let found = match cached {
            Some(cached) => cached,
            None => {
                let found = self.read(function)?;
                if let Some(cache) = self.shared {
                    cache.insert(function, &found);
                }
                found
            }
        };
        self.known.borrow_mut().insert(function, Arc::clone(&found));
        Ok(found)
    }

    fn read(&self, function: FuncId) -> Result<FunctionOperators, ProfileError> {
        let Some(function) = self.program.function(function) else {
            return Ok(Arc::default());
        };
        let (mut body, mut counted) = (Vec::new(), Vec::new());
        decode(self.program, self.module, function, &mut body)?;
        positions(function, &body, self.source, &mut counted);
        let mut names: HashMap<String, Arc<str>> = HashMap::new();
        let operators = self.program.operators(self.module, function);
        let places = operators
            .zip(&counted)
            .map(|((_, offset, operator), counted)| {
                let name = name(&operator);
                let name = names
                    .entry(name)
                    .or_insert_with_key(|name| name.as_str().into());
                OperatorPlace {
                    name: Arc::clone(name),
                    offset,
                    position: counted.position,
                }
            });
        Ok(places.collect())
    }
}
