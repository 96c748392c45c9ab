//! Defines the newtypes that number the entities of a program and of its trace.

use cranelift_entity::entity_impl;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

entities! {
    /// A function in the original module's index space. The imports come first, then the functions
    /// that the module defines.
    FuncId = "func";
    /// An imported function, by its position among the imported functions. Its [`FuncId`] is the
    /// same number.
    ImportId = "import";
    /// A function type in the module's type section.
    TypeId = "type";
    /// A vertex of a control-flow graph: a basic block, a dispatch vertex or EXIT.
    BlockId = "block";
    /// An edge of a control-flow graph.
    EdgeId = "edge";
    /// An operator, as its position among all operators of its function's body, from 0.
    OpId = "op";
    /// A statement: an operator that yields a value or has an effect.
    StmtId = "stmt";
    /// A value in static single assignment form.
    ValueId = "v";
    /// A loop of a control-flow graph's loop nesting forest.
    LoopId = "loop";
    /// A counter that a placement requests.
    CounterId = "counter";
    /// A node of a control-flow trace: a path that was executed. Nodes are numbered in the order of
    /// their first execution.
    NodeId = "node";
    /// A rule of a grammar.
    RuleId = "rule";
}
