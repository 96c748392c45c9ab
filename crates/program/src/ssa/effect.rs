//! What operators do besides yielding values.

use wasmparser::Operator;

use crate::Callee;
use crate::calls::Transfer;

/// What a statement does besides yielding values. Many also trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it computes its results from its operands.
    None,
    /// Reads from a memory.
    MemoryRead(u32),
    /// Writes to a memory.
    MemoryWrite(u32),
    /// Copies from one memory to another, or within one.
    MemoryCopy {
        /// The memory written to.
        to: u32,
        /// The memory read from.
        from: u32,
    },
    /// Copies a data segment to a memory.
    MemoryInit {
        /// The memory.
        memory: u32,
        /// The data segment.
        segment: u32,
    },
    /// Reads a memory's size.
    MemorySize(u32),
    /// Grows a memory.
    MemoryGrow(u32),
    /// Empties a data segment.
    DataDrop(u32),
    /// Reads a global.
    GlobalRead(u32),
    /// Writes a global.
    GlobalWrite(u32),
    /// Reads from a table.
    TableRead(u32),
    /// Writes to a table.
    TableWrite(u32),
    /// Copies from one table to another, or within one.
    TableCopy {
        /// The table written to.
        to: u32,
        /// The table read from.
        from: u32,
    },
    /// Copies an element segment to a table.
    TableInit {
        /// The table.
        table: u32,
        /// The element segment.
        segment: u32,
    },
    /// Reads a table's size.
    TableSize(u32),
    /// Grows a table.
    TableGrow(u32),
    /// Empties an element segment.
    ElementDrop(u32),
    /// Calls a function, and so may have any effect. An indirect call reads its table.
    Call(Callee),
    /// Calls a function in place of this activation.
    TailCall(Callee),
    /// Chooses or changes where control goes: `if`, `br`, `br_if`, `br_table`, `return`.
    Control,
    /// Throws an exception.
    Throw,
    /// Traps always.
    Trap,
}

impl Effect {
    /// The effect of an operator.
    pub fn of(operator: &Operator<'_>) -> Self {
        match *operator {
            Operator::MemoryCopy { dst_mem, src_mem } => Self::MemoryCopy {
                to: dst_mem,
                from: src_mem,
            },
            Operator::MemoryFill { mem } => Self::MemoryWrite(mem),
            Operator::MemoryInit { data_index, mem } => Self::MemoryInit {
                memory: mem,
                segment: data_index,
            },
            Operator::MemorySize { mem } => Self::MemorySize(mem),
            Operator::MemoryGrow { mem } => Self::MemoryGrow(mem),
            Operator::DataDrop { data_index } => Self::DataDrop(data_index),
            Operator::GlobalGet { global_index } => Self::GlobalRead(global_index),
            Operator::GlobalSet { global_index } => Self::GlobalWrite(global_index),
            Operator::TableGet { table } => Self::TableRead(table),
            Operator::TableSet { table } | Operator::TableFill { table } => Self::TableWrite(table),
            Operator::TableCopy {
                dst_table,
                src_table,
            } => Self::TableCopy {
                to: dst_table,
                from: src_table,
            },
            Operator::TableInit { elem_index, table } => Self::TableInit {
                table,
                segment: elem_index,
            },
            Operator::TableSize { table } => Self::TableSize(table),
            Operator::TableGrow { table } => Self::TableGrow(table),
            Operator::ElemDrop { elem_index } => Self::ElementDrop(elem_index),
            Operator::If { .. }
            | Operator::Br { .. }
            | Operator::BrIf { .. }
            | Operator::BrTable { .. }
            | Operator::Return => Self::Control,
            Operator::Throw { .. } | Operator::ThrowRef => Self::Throw,
            Operator::Unreachable => Self::Trap,
            _ => match Transfer::of(operator) {
                Some(Transfer::Call(callee)) => Self::Call(callee),
                Some(Transfer::Tail(callee)) => Self::TailCall(callee),
                None => access(operator).unwrap_or(Self::None),
            },
        }
    }

    /// Whether it reads a value from a memory or a table.
    pub fn is_load(self) -> bool {
        matches!(self, Self::MemoryRead(_) | Self::TableRead(_))
    }

    /// Whether it may trap because it goes beyond a memory or a table.
    pub fn may_go_beyond(self) -> bool {
        match self {
            Self::MemoryRead(_)
            | Self::MemoryWrite(_)
            | Self::MemoryCopy { .. }
            | Self::MemoryInit { .. }
            | Self::TableRead(_)
            | Self::TableWrite(_)
            | Self::TableCopy { .. }
            | Self::TableInit { .. } => true,
            Self::Call(callee) | Self::TailCall(callee) => !matches!(callee, Callee::Direct(_)),
            _ => false,
        }
    }
}

/// The effect of a load or a store. Those are the operators with a memory argument; a store is one
/// that yields nothing.
fn access(operator: &Operator<'_>) -> Option<Effect> {
    // The field's name is passed twice: once to be recognised, once to be used, as hygiene demands.
    macro_rules! accesses {
        ($(@$proposal:ident $op:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($arity:tt)*))*) => {
            match operator {
                $(accesses!(pattern $op $($($field)* ; $($field)*)?) => {
                    accesses!(effect [$($arity)*] $($($field)* ; $($field)*)?)
                })*
                _ => None,
            }
        };
        (pattern $op:ident memarg $($rest:ident)* ; $memarg:ident $($same:ident)*) => {
            Operator::$op { $memarg, .. }
        };
        (pattern $op:ident $($rest:tt)*) => { Operator::$op { .. } };
        (effect [arity $pops:literal -> 0] memarg $($rest:ident)* ; $memarg:ident $($same:ident)*) => {
            Some(Effect::MemoryWrite($memarg.memory))
        };
        (effect [arity $pops:literal -> 1] memarg $($rest:ident)* ; $memarg:ident $($same:ident)*) => {
            Some(Effect::MemoryRead($memarg.memory))
        };
        (effect $($rest:tt)*) => { None };
    }
    wasmparser::for_each_operator!(accesses)
}
