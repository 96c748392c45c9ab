//! Assembles programs from parts, without a module.

use afterimage_ids::{EntitySet, FuncId, PrimaryMap, TypeId};

use crate::program::Resources;
use crate::{Function, FunctionType, Import, Program};

impl Program {
    /// Creates a program without bytes. It has only functions, their graphs, and the calls that
    /// they may make to each other. Property tests use such programs for algorithms that need no
    /// other data.
    pub fn assemble(
        types: PrimaryMap<TypeId, FunctionType>,
        imports: Vec<Import>,
        functions: Vec<Function>,
        address_taken: EntitySet<FuncId>,
    ) -> Self {
        Self {
            types,
            imports,
            functions,
            exports: Vec::new(),
            start: None,
            address_taken,
            memories: 0,
            globals: Vec::new(),
            tags: Vec::new(),
            tables: 1,
            resources: Resources(None),
            slots: Default::default(),
        }
    }
}
