//! A whole module.

use std::ops::Range;

use afterimage_ids::{EntitySet, FuncId, OrigOffset, PrimaryMap, TypeId};
use wasmparser::ValType;

use crate::Cfg;

/// A module, parsed and validated.
#[derive(Debug)]
pub struct Program {
    /// Function types by index.
    pub types: PrimaryMap<TypeId, FunctionType>,
    /// The imported functions, in order: their positions are their [`FuncId`]s.
    pub imports: Vec<Import>,
    /// The defined functions, in code-section order: the first has the `FuncId` after the last import's.
    pub functions: Vec<Function>,
    /// Exported functions by name, in the order of the export section.
    pub exports: Vec<(String, FuncId)>,
    /// The start function.
    pub start: Option<FuncId>,
    /// Functions that a table or a reference may hold: named by an element
    /// segment or by `ref.func` anywhere, and, if any table is exported or imported, exports too.
    pub address_taken: EntitySet<FuncId>,
    /// How many memories the module has, imported ones included.
    pub memories: u32,
}

/// A function type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// Types of the parameters.
    pub params: Box<[ValType]>,
    /// Types of the results.
    pub results: Box<[ValType]>,
}

/// An imported function.
#[derive(Clone, Debug)]
pub struct Import {
    /// Module name.
    pub module: String,
    /// Field name.
    pub name: String,
    /// Type.
    pub ty: TypeId,
}

/// A function that the module defines.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its index in the module's index space.
    pub id: FuncId,
    /// Its type.
    pub ty: TypeId,
    /// Its body in the code section, locals included.
    pub body: Range<OrigOffset>,
    /// How many operators its body has, the last `end` included.
    pub operators: u32,
    /// Whether an exception can leave it.
    pub may_throw: bool,
    /// Its control-flow graph.
    pub cfg: Cfg,
}

impl Program {
    /// The defined function with this index, or `None` for an import or an index beyond the last.
    pub fn function(&self, id: FuncId) -> Option<&Function> {
        let first = self.imports.len();
        (id.as_u32() as usize).checked_sub(first).and_then(|i| self.functions.get(i))
    }
}
