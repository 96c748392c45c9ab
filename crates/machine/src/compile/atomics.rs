//! Compiles atomic operators. The memory is not shared, so an operator becomes separate
//! instructions. As required, they check its address, load, compute and store.
//!
//! A compare-exchange always stores a value. If it exchanges nothing, it stores the value that it
//! read.

use afterimage_ids::OpId;
use afterimage_numeric::Scalar;
use wasmparser::{MemArg, Operator};

use super::{Compiler, Constant};
use crate::inst::{Code, Load};

/// The action of an atomic operator.
#[derive(Clone, Copy)]
enum Does {
    Load,
    Store,
    /// Stores the result of this operator on the loaded value and the operand.
    Update(Scalar),
    Exchange,
    /// Stores the last operand if this comparison finds that the other operand equals the loaded
    /// value.
    CompareExchange(Scalar),
    Wait,
    Notify,
}

/// Returns the memory argument of an atomic operator, the number of bytes that it accesses, and its
/// action.
fn atomic(operator: &Operator<'_>) -> Option<(MemArg, u8, Does)> {
    use Does::{CompareExchange, Exchange, Update};
    macro_rules! of {
        ($($op:ident $bytes:literal $does:expr,)*) => {
            match *operator {
                $(Operator::$op { memarg } => Some((memarg, $bytes, $does)),)*
                _ => None,
            }
        };
    }
    of! {
        I32AtomicLoad 4 Does::Load, I32AtomicLoad8U 1 Does::Load, I32AtomicLoad16U 2 Does::Load,
        I64AtomicLoad 8 Does::Load, I64AtomicLoad8U 1 Does::Load, I64AtomicLoad16U 2 Does::Load, I64AtomicLoad32U 4 Does::Load,
        I32AtomicStore 4 Does::Store, I32AtomicStore8 1 Does::Store, I32AtomicStore16 2 Does::Store,
        I64AtomicStore 8 Does::Store, I64AtomicStore8 1 Does::Store, I64AtomicStore16 2 Does::Store, I64AtomicStore32 4 Does::Store,
        I32AtomicRmwAdd 4 Update(Scalar::I32Add), I32AtomicRmw8AddU 1 Update(Scalar::I32Add), I32AtomicRmw16AddU 2 Update(Scalar::I32Add),
        I64AtomicRmwAdd 8 Update(Scalar::I64Add), I64AtomicRmw8AddU 1 Update(Scalar::I64Add), I64AtomicRmw16AddU 2 Update(Scalar::I64Add),
        I64AtomicRmw32AddU 4 Update(Scalar::I64Add),
        I32AtomicRmwSub 4 Update(Scalar::I32Sub), I32AtomicRmw8SubU 1 Update(Scalar::I32Sub), I32AtomicRmw16SubU 2 Update(Scalar::I32Sub),
        I64AtomicRmwSub 8 Update(Scalar::I64Sub), I64AtomicRmw8SubU 1 Update(Scalar::I64Sub), I64AtomicRmw16SubU 2 Update(Scalar::I64Sub),
        I64AtomicRmw32SubU 4 Update(Scalar::I64Sub),
        I32AtomicRmwAnd 4 Update(Scalar::I32And), I32AtomicRmw8AndU 1 Update(Scalar::I32And), I32AtomicRmw16AndU 2 Update(Scalar::I32And),
        I64AtomicRmwAnd 8 Update(Scalar::I64And), I64AtomicRmw8AndU 1 Update(Scalar::I64And), I64AtomicRmw16AndU 2 Update(Scalar::I64And),
        I64AtomicRmw32AndU 4 Update(Scalar::I64And),
        I32AtomicRmwOr 4 Update(Scalar::I32Or), I32AtomicRmw8OrU 1 Update(Scalar::I32Or), I32AtomicRmw16OrU 2 Update(Scalar::I32Or),
        I64AtomicRmwOr 8 Update(Scalar::I64Or), I64AtomicRmw8OrU 1 Update(Scalar::I64Or), I64AtomicRmw16OrU 2 Update(Scalar::I64Or),
        I64AtomicRmw32OrU 4 Update(Scalar::I64Or),
        I32AtomicRmwXor 4 Update(Scalar::I32Xor), I32AtomicRmw8XorU 1 Update(Scalar::I32Xor), I32AtomicRmw16XorU 2 Update(Scalar::I32Xor),
        I64AtomicRmwXor 8 Update(Scalar::I64Xor), I64AtomicRmw8XorU 1 Update(Scalar::I64Xor), I64AtomicRmw16XorU 2 Update(Scalar::I64Xor),
        I64AtomicRmw32XorU 4 Update(Scalar::I64Xor),
        I32AtomicRmwXchg 4 Exchange, I32AtomicRmw8XchgU 1 Exchange, I32AtomicRmw16XchgU 2 Exchange,
        I64AtomicRmwXchg 8 Exchange, I64AtomicRmw8XchgU 1 Exchange, I64AtomicRmw16XchgU 2 Exchange, I64AtomicRmw32XchgU 4 Exchange,
        I32AtomicRmwCmpxchg 4 CompareExchange(Scalar::I32Eq), I32AtomicRmw8CmpxchgU 1 CompareExchange(Scalar::I32Eq),
        I32AtomicRmw16CmpxchgU 2 CompareExchange(Scalar::I32Eq),
        I64AtomicRmwCmpxchg 8 CompareExchange(Scalar::I64Eq), I64AtomicRmw8CmpxchgU 1 CompareExchange(Scalar::I64Eq),
        I64AtomicRmw16CmpxchgU 2 CompareExchange(Scalar::I64Eq), I64AtomicRmw32CmpxchgU 4 CompareExchange(Scalar::I64Eq),
        MemoryAtomicWait32 4 Does::Wait, MemoryAtomicWait64 8 Does::Wait, MemoryAtomicNotify 4 Does::Notify,
    }
}

impl Compiler<'_> {
    pub(super) fn atomic(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        if matches!(operator, Operator::AtomicFence) {
            return Some(true);
        }
        let Some((at, bytes, does)) = atomic(operator) else {
            return Some(false);
        };
        let mut operands = [0; 2];
        let count = match does {
            Does::Load => 0,
            Does::Store | Does::Update(_) | Does::Exchange | Does::Notify => 1,
            Does::CompareExchange(_) | Does::Wait => 2,
        };
        for operand in operands[..count].iter_mut().rev() {
            *operand = self.pop()?;
        }
        let [first, second] = operands;
        let address = self.pop()?;
        let access = |compiler: &mut Self, code, b| {
            compiler.in_memory(op, code, at.memory, [address, b, 0], at.offset)
        };
        if bytes > 1 {
            access(self, Code::Aligned(bytes), 0);
        }
        let loads = Code::Load(Load { bytes, sign: 0 });
        match does {
            Does::Store => {
                access(self, Code::Store(bytes), first);
                return Some(true);
            }
            Does::Wait => {
                let result = access(self, Code::Wait(bytes), 0);
                self.push(result);
                return Some(true);
            }
            Does::Notify => {
                access(self, Code::Notify, 0);
                let none = self.constant(op, Constant::Scalar(0));
                self.push(none);
                return Some(true);
            }
            Does::Load | Does::Update(_) | Does::Exchange | Does::CompareExchange(_) => {}
        }
        let loaded = access(self, loads, 0);
        let stored = match does {
            Does::Update(scalar) => self.inst(op, Code::Scalar(scalar), [loaded, first, 0], 0),
            Does::Exchange => first,
            Does::CompareExchange(equal) => {
                // Only the accessed bytes of the expected value count, so both values are
                // sign-extended before the comparison.
                let narrow = match (equal, bytes) {
                    (Scalar::I32Eq, 1) => Some(Scalar::I32Extend8S),
                    (Scalar::I32Eq, 2) => Some(Scalar::I32Extend16S),
                    (Scalar::I64Eq, 1) => Some(Scalar::I64Extend8S),
                    (Scalar::I64Eq, 2) => Some(Scalar::I64Extend16S),
                    (Scalar::I64Eq, 4) => Some(Scalar::I64Extend32S),
                    _ => None,
                };
                let [is, expected] = [loaded, first].map(|value| match narrow {
                    Some(narrow) => self.inst(op, Code::Scalar(narrow), [value, 0, 0], 0),
                    None => value,
                });
                let equal = self.inst(op, Code::Scalar(equal), [is, expected, 0], 0);
                self.inst(op, Code::Select, [second, loaded, equal], 0)
            }
            _ => {
                self.push(loaded);
                return Some(true);
            }
        };
        access(self, Code::Store(bytes), stored);
        self.push(loaded);
        Some(true)
    }
}
