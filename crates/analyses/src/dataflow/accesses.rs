//! Describes the memory accesses of loads and stores.

use wasmparser::{MemArg, Operator};

/// A load or store, as described by its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub memory: u32,
    /// The offset added to the address operand.
    pub offset: u64,
    /// The number of bytes accessed.
    pub bytes: u64,
    pub is_store: bool,
}

impl Described {
    /// Describes an operator if it loads or stores a single value.
    pub fn of(operator: &Operator<'_>) -> Option<Self> {
        let load = |memarg: &MemArg, bytes| Some((*memarg, bytes, false));
        let store = |memarg: &MemArg, bytes| Some((*memarg, bytes, true));
        let (memarg, bytes, is_store) = match operator {
            Operator::I32Load8S { memarg }
            | Operator::I32Load8U { memarg }
            | Operator::I64Load8S { memarg }
            | Operator::I64Load8U { memarg }
            | Operator::V128Load8Splat { memarg }
            | Operator::V128Load8Lane { memarg, .. } => load(memarg, 1),
            Operator::I32Load16S { memarg }
            | Operator::I32Load16U { memarg }
            | Operator::I64Load16S { memarg }
            | Operator::I64Load16U { memarg }
            | Operator::V128Load16Splat { memarg }
            | Operator::V128Load16Lane { memarg, .. } => load(memarg, 2),
            Operator::I32Load { memarg }
            | Operator::F32Load { memarg }
            | Operator::I64Load32S { memarg }
            | Operator::I64Load32U { memarg }
            | Operator::V128Load32Splat { memarg }
            | Operator::V128Load32Zero { memarg }
            | Operator::V128Load32Lane { memarg, .. } => load(memarg, 4),
            Operator::I64Load { memarg }
            | Operator::F64Load { memarg }
            | Operator::V128Load8x8S { memarg }
            | Operator::V128Load8x8U { memarg }
            | Operator::V128Load16x4S { memarg }
            | Operator::V128Load16x4U { memarg }
            | Operator::V128Load32x2S { memarg }
            | Operator::V128Load32x2U { memarg }
            | Operator::V128Load64Splat { memarg }
            | Operator::V128Load64Zero { memarg }
            | Operator::V128Load64Lane { memarg, .. } => load(memarg, 8),
            Operator::V128Load { memarg } => load(memarg, 16),
            Operator::I32Store8 { memarg }
            | Operator::I64Store8 { memarg }
            | Operator::V128Store8Lane { memarg, .. } => store(memarg, 1),
            Operator::I32Store16 { memarg }
            | Operator::I64Store16 { memarg }
            | Operator::V128Store16Lane { memarg, .. } => store(memarg, 2),
            Operator::I32Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::I64Store32 { memarg }
            | Operator::V128Store32Lane { memarg, .. } => store(memarg, 4),
            Operator::I64Store { memarg }
            | Operator::F64Store { memarg }
            | Operator::V128Store64Lane { memarg, .. } => store(memarg, 8),
            Operator::V128Store { memarg } => store(memarg, 16),
            _ => None,
        }?;
        Some(Self {
            memory: memarg.memory,
            offset: memarg.offset,
            bytes,
            is_store,
        })
    }
}
