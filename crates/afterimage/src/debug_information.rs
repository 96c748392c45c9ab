//! Keeps the debug information of a session's program, which is read once for all questions.
//!
//! The source map and the variables borrow the module. To keep them, a session stores each in a
//! cell together with the module.

use std::sync::{Arc, OnceLock};

use afterimage_program::{Module, Names, SourceMap};
use afterimage_replay::state::{DebugError, Variables};
use afterimage_replay::steps::OperatorCache;
use self_cell::self_cell;

type Opened<'a> = Result<Variables<'a>, DebugError>;

self_cell!(
    struct WithLines {
        owner: Arc<Module>,
        #[covariant]
        dependent: SourceMap,
    }
);

self_cell!(
    struct WithVariables {
        owner: Arc<Module>,
        #[covariant]
        dependent: Opened,
    }
);

/// The parsed debug information of a module, kept for later questions.
#[derive(Default)]
pub(crate) struct DebugInformation {
    lines: OnceLock<WithLines>,
    variables: OnceLock<WithVariables>,
    names: OnceLock<Names>,
    /// The operators of the functions that questions were about.
    pub operators: OperatorCache,
}

impl DebugInformation {
    /// Returns the source map. The first call makes it with `read`.
    pub fn source_map(
        &self,
        module: &Arc<Module>,
        read: impl for<'a> FnOnce(&'a Module) -> SourceMap<'a>,
    ) -> &SourceMap<'_> {
        let make = || WithLines::new(Arc::clone(module), |module| read(module));
        self.lines.get_or_init(make).borrow_dependent()
    }

    /// Returns the names of the functions. The first call makes them with `read`. Demangled names
    /// are kept.
    pub fn names(&self, read: impl FnOnce() -> Names) -> &Names {
        self.names.get_or_init(read)
    }

    /// Returns the variables, or why there are none. Lookups are cached, so later questions are
    /// faster.
    pub fn variables(&self, module: &Arc<Module>) -> &Opened<'_> {
        let make =
            || WithVariables::new(Arc::clone(module), |module| Variables::open(&module.bytes));
        self.variables.get_or_init(make).borrow_dependent()
    }
}
