//! Classifies the effects of operators in addition to their results.

use wasmparser::{MemArg, Operator, ValType};

use crate::Callee;
use crate::calls::Transfer;

/// A statement's effect in addition to its results. Many statements may also trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The statement only computes its results from its operands.
    None,
    /// Reads from a memory.
    MemoryRead(u32),
    /// Writes to a memory.
    MemoryWrite(u32),
    /// Reads a value from a memory, and writes a new value to the same place, as an atomic
    /// read-modify-write.
    MemoryUpdate(u32),
    /// Only checks an address of a memory, as in `memory.atomic.wait` and `memory.atomic.notify`,
    /// because no other thread could wait there.
    MemoryWait(u32),
    /// Copies from one memory to another, or within a memory.
    MemoryCopy {
        /// The memory to write.
        to: u32,
        /// The memory to read.
        from: u32,
    },
    /// Copies a data segment to a memory.
    MemoryInit {
        /// The memory to write.
        memory: u32,
        /// The data segment to copy.
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
    /// Copies from one table to another, or within a table.
    TableCopy {
        /// The table to write.
        to: u32,
        /// The table to read.
        from: u32,
    },
    /// Copies an element segment to a table.
    TableInit {
        /// The table to write.
        table: u32,
        /// The element segment to copy.
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
    /// Transfers control, as in `if`, `br`, `br_if`, `br_table` and `return`.
    Control,
    /// Throws an exception.
    Throw,
    /// Always traps.
    Trap,
}

impl Effect {
    /// Returns the effect of an operator.
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

    /// Whether the statement only reads a value from a memory or a table. An atomic update, which
    /// also writes, does not count.
    pub fn is_load(self) -> bool {
        matches!(self, Self::MemoryRead(_) | Self::TableRead(_))
    }

    /// Whether the statement writes a value to a memory or a table.
    pub fn is_store(self) -> bool {
        matches!(
            self,
            Self::MemoryWrite(_) | Self::MemoryUpdate(_) | Self::TableWrite(_)
        )
    }

    /// Whether the statement may trap because it accesses an address outside a memory.
    pub fn may_leave_memory(self) -> bool {
        matches!(
            self,
            Self::MemoryRead(_)
                | Self::MemoryWrite(_)
                | Self::MemoryUpdate(_)
                | Self::MemoryWait(_)
                | Self::MemoryCopy { .. }
                | Self::MemoryInit { .. }
        )
    }

    /// Whether the statement may trap because it accesses an index outside a table.
    pub fn may_leave_table(self) -> bool {
        match self {
            Self::TableRead(_)
            | Self::TableWrite(_)
            | Self::TableCopy { .. }
            | Self::TableInit { .. } => true,
            Self::Call(callee) | Self::TailCall(callee) => !matches!(callee, Callee::Direct(_)),
            _ => false,
        }
    }
}

/// An operator that writes a value to a memory, which is a store or an atomic update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStore {
    /// The place of the write.
    pub at: MemArg,
    /// The number of bytes to write.
    pub bytes: u64,
    /// The type and number of the operands, apart from the address.
    pub values: (ValType, u32),
}

impl MemoryStore {
    /// Returns the write of an operator, if it is a store.
    pub fn of(operator: &Operator<'_>) -> Option<Self> {
        let argument = memory_argument(operator)?;
        let at = argument.at;
        let effect = access(operator)?;
        if !matches!(effect, Effect::MemoryWrite(_) | Effect::MemoryUpdate(_)) {
            return None;
        }
        // Operators are named after the type of their values.
        let types = [
            ("I32", ValType::I32),
            ("I64", ValType::I64),
            ("F32", ValType::F32),
            ("F64", ValType::F64),
            ("V128", ValType::V128),
        ];
        let mut types = types.into_iter();
        let (_, ty) = types.find(|(name, _)| argument.name.starts_with(name))?;
        Some(Self {
            at,
            bytes: 1 << at.max_align,
            values: (ty, argument.operands - 1),
        })
    }
}

/// Returns the effect of an operator with a memory argument. An operator without a result is a
/// store.
fn access(operator: &Operator<'_>) -> Option<Effect> {
    let MemoryArgument {
        at,
        proposal,
        operands,
        results,
        ..
    } = memory_argument(operator)?;
    Some(match (proposal, operands, results) {
        _ if matches!(
            operator,
            Operator::MemoryAtomicNotify { .. }
                | Operator::MemoryAtomicWait32 { .. }
                | Operator::MemoryAtomicWait64 { .. }
        ) =>
        {
            Effect::MemoryWait(at.memory)
        }
        (_, _, 0) => Effect::MemoryWrite(at.memory),
        // A load of a lane takes a vector in addition to the address, but changes no memory.
        ("threads", 2.., _) => Effect::MemoryUpdate(at.memory),
        _ => Effect::MemoryRead(at.memory),
    })
}

/// An operator's memory argument, and other known properties of the operator.
struct MemoryArgument {
    at: MemArg,
    name: &'static str,
    proposal: &'static str,
    operands: u32,
    results: u32,
}

fn memory_argument(operator: &Operator<'_>) -> Option<MemoryArgument> {
    // Because of macro hygiene, the field's name is passed twice, once to match it and once to use
    // it.
    macro_rules! accesses {
        ($(@$proposal:ident $op:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($arity:tt)*))*) => {
            match operator {
                $(accesses!(pattern $op $($($field)* ; $($field)*)?) => {
                    accesses!(argument $op $proposal [$($arity)*] $($($field)* ; $($field)*)?)
                })*
                _ => None,
            }
        };
        (pattern $op:ident memarg $($rest:ident)* ; $memarg:ident $($same:ident)*) => {
            Operator::$op { $memarg, .. }
        };
        (pattern $op:ident $($rest:tt)*) => { Operator::$op { .. } };
        (argument $op:ident $proposal:ident [arity $pops:literal -> $pushes:literal] memarg $($rest:ident)* ; $memarg:ident $($same:ident)*) => {
            Some(MemoryArgument {
                at: *$memarg,
                name: stringify!($op),
                proposal: stringify!($proposal),
                operands: $pops,
                results: $pushes,
            })
        };
        (argument $($rest:tt)*) => { None };
    }
    wasmparser::for_each_operator!(accesses)
}

/// Whether an operator accesses bytes outside a memory at every address, because its offset alone
/// exceeds the memory. `most` is the size in bytes to which the memory can grow.
pub(crate) fn is_out_of_bounds(
    operator: &Operator<'_>,
    most: impl FnOnce(u32) -> Option<u128>,
) -> bool {
    memory_argument(operator).is_some_and(|MemoryArgument { at, .. }| {
        let end = u128::from(at.offset) + (1 << at.max_align);
        most(at.memory).is_some_and(|most| end > most)
    })
}
