//! The debug information of a session's program, read once and kept for all its questions.
//!
//! A source map borrows the module, and so do variables. A session keeps all three. So each of the
//! two is in a cell together with the module that it borrows.

use std::sync::{Arc, OnceLock};

use afterimage_program::{Module, SourceMap};
use afterimage_replay::state::{DebugError, Variables};
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
        #[not_covariant]
        dependent: Opened,
    }
);

/// Parsed debug information of a module, kept for later questions.
#[derive(Default)]
pub(crate) struct DebugInformation {
    lines: OnceLock<WithLines>,
    variables: OnceLock<WithVariables>,
}

impl DebugInformation {
    /// Returns the source map. `read` makes it the first time.
    pub fn source_map(
        &self,
        module: &Arc<Module>,
        read: impl for<'a> FnOnce(&'a Module) -> SourceMap<'a>,
    ) -> &SourceMap<'_> {
        let make = || WithLines::new(Arc::clone(module), |module| read(module));
        self.lines.get_or_init(make).borrow_dependent()
    }

    /// Passes the variables to `ask`. They remember what was looked up, so later questions are
    /// faster.
    pub fn with_variables<R>(&self, module: &Arc<Module>, ask: impl FnOnce(&Opened<'_>) -> R) -> R {
        let make =
            || WithVariables::new(Arc::clone(module), |module| Variables::open(&module.bytes));
        let known = self.variables.get_or_init(make);
        known.with_dependent(|_, variables| ask(variables))
    }
}
