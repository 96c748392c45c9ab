//! Instructions, which are the compiled form of a path's operators.

use afterimage_ids::OpId;
use afterimage_numeric::{Scalar, Vector, VectorLoad, VectorStore};

use crate::image::GlobalBits;
use crate::observe::Range;

/// A register of a node, which is a variable of the function at the node's start, a constant, or
/// the result of an instruction.
///
/// Variables come first, then the node's constants, then one register per instruction.
pub type Register = u32;

/// The action of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Computes a scalar from `a` and `b`.
    Scalar(Scalar),
    /// Computes a result from up to three vectors and scalars. Further data is in
    /// [`NodeCode::vectors`](crate::NodeCode::vectors).
    Vector(Vector),
    /// Yields `a` if `c` is not 0, otherwise `b`.
    Select,
    /// Yields vector `a` if `c` is not 0, otherwise vector `b`.
    SelectVector,
    /// Reads memory at `a` + `immediate`.
    Load(Load),
    /// Reads memory at `a` + `immediate` for a vector. Lanes that keep their values come from `b`.
    LoadVector(VectorLoad),
    /// Writes `b` to memory at `a` + `immediate`, with this number of bytes, which is 1, 2, 4 or 8.
    Store(u8),
    /// Writes vector `b`, or a lane of it.
    StoreVector(VectorStore),
    /// Reads global number `immediate`.
    GlobalGet,
    /// Writes `a` to global number `immediate`.
    GlobalSet,
    /// Yields the size of a memory in pages.
    MemorySize,
    /// Grows a memory by `a` pages.
    MemoryGrow,
    /// Copies `c` bytes from `b` to `a`. `immediate` is the number of the memory to read.
    MemoryCopy,
    /// Sets `c` bytes at `a` to `b`.
    MemoryFill,
    /// Copies `c` bytes from offset `b` of data segment number `immediate` to `a`.
    MemoryInit,
    /// Empties data segment number `immediate`.
    DataDrop,
    /// Yields element `a` of table number `immediate`.
    TableGet,
    /// Sets element `a` of table number `immediate` to `b`.
    TableSet,
    /// Yields the size of table number `immediate`.
    TableSize,
    /// Grows table number `immediate` by `b` elements equal to `a`.
    TableGrow,
    /// Sets `c` elements of table number `immediate` from `a` on to `b`.
    TableFill,
    /// Copies `c` elements from `b` to `a`. `immediate` contains the table to write and, in its
    /// upper half, the table to read.
    TableCopy,
    /// Copies `c` elements from `b` to `a`. `immediate` contains the table and, in its upper half,
    /// the element segment.
    TableInit,
    /// Empties element segment number `immediate`.
    ElementDrop,
    /// Yields whether `a` is null.
    RefIsNull,
    /// Traps unless `a` + `immediate` is a multiple of this number of bytes.
    Aligned(u8),
    /// Waits at `a` + `immediate` for a value of this number of bytes. This always traps, because
    /// the memory is not shared.
    Wait(u8),
    /// Notifies no threads, because no thread can wait. Traps unless memory has four bytes at `a` +
    /// `immediate`.
    Notify,
    /// Branches by the value of `a`. The path determines the direction that the branch must take,
    /// and `immediate` describes the value that `a` must have for this direction.
    Branch(Expected),
}

impl Code {
    /// Returns the number of operands, among `a`, `b` and `c` in this order, that are registers to
    /// read. If `c` is the number of a vector's lane, it does not count.
    pub fn operands(self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.arity(),
            Self::Vector(vector) => vector.signature().0.len(),
            Self::LoadVector(load) => 1 + usize::from(load.keeps()),
            Self::GlobalGet
            | Self::MemorySize
            | Self::TableSize
            | Self::DataDrop
            | Self::ElementDrop => 0,
            Self::Load(_)
            | Self::GlobalSet
            | Self::MemoryGrow
            | Self::TableGet
            | Self::RefIsNull
            | Self::Aligned(_)
            | Self::Wait(_)
            | Self::Notify
            | Self::Branch(_) => 1,
            Self::Store(_) | Self::StoreVector(_) | Self::TableSet | Self::TableGrow => 2,
            Self::Select
            | Self::SelectVector
            | Self::MemoryCopy
            | Self::MemoryFill
            | Self::MemoryInit
            | Self::TableFill
            | Self::TableCopy
            | Self::TableInit => 3,
        }
    }

    /// Whether the instruction has a result.
    pub fn gives(self) -> bool {
        !matches!(
            self,
            Self::Store(_)
                | Self::StoreVector(_)
                | Self::GlobalSet
                | Self::MemoryCopy
                | Self::MemoryFill
                | Self::MemoryInit
                | Self::DataDrop
                | Self::TableSet
                | Self::TableFill
                | Self::TableCopy
                | Self::TableInit
                | Self::ElementDrop
                | Self::Aligned(_)
                | Self::Notify
                | Self::Branch(_)
        )
    }
}

/// The conversion of the loaded bytes to the value of a scalar load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of bytes, which is 1, 2, 4 or 8.
    pub bytes: u8,
    /// The number of bits to which the sign is extended, or 0 for zero extension.
    pub sign: u8,
}

/// The value that a branch's operand must have to agree with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any value except 0.
    True,
    /// The value 0.
    False,
    /// An index in list number `immediate`.
    OneOf,
    /// Any value, because all directions lead to the same place.
    Any,
}

/// An instruction. Its result, if it has one, is in the register of its own position.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// The action of the instruction.
    pub code: Code,
    /// The number of the memory, for instructions that use a memory.
    pub memory: u16,
    /// The first operand.
    pub a: Register,
    /// The second operand.
    pub b: Register,
    /// The third operand.
    pub c: Register,
    /// A constant whose meaning depends on the [`Code`].
    pub immediate: u64,
    /// The operator from which the instruction was compiled.
    pub op: OpId,
}

/// The bytes of memory that an instruction accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The bytes that the instruction reads.
    pub read: Option<Range>,
    /// The bytes that the instruction writes.
    pub written: Option<Range>,
}

impl Inst {
    /// Returns the accesses of the instruction for these values of its operands `a`, `b` and `c`,
    /// regardless of the size of the memory. The result is empty if the instruction accesses no
    /// memory, or if the address is 2⁶⁴ or more.
    pub fn accesses(&self, [a, b, c]: [u64; 3]) -> Accesses {
        let of = |memory: u32, address, length| Range {
            memory,
            address,
            length,
        };
        let own = u32::from(self.memory);
        let one = |length: u64| {
            let address = a.checked_add(self.immediate)?;
            Some(of(own, address, length))
        };
        let (read, written) = match self.code {
            Code::Load(load) => (one(u64::from(load.bytes)), None),
            Code::LoadVector(load) => (one(load.bytes() as u64), None),
            Code::Store(length) => (None, one(u64::from(length))),
            Code::StoreVector(store) => (None, one(store.bytes() as u64)),
            Code::MemoryCopy => (Some(of(self.immediate as u32, b, c)), Some(of(own, a, c))),
            Code::MemoryFill | Code::MemoryInit => (None, Some(of(own, a, c))),
            _ => (None, None),
        };
        Accesses { read, written }
    }

    /// Returns the value that a store writes if its operand `b` has these bits. An integer has only
    /// the written bytes, and a vector may be a single lane.
    pub fn stored(&self, (low, high): GlobalBits) -> GlobalBits {
        match self.code {
            Code::StoreVector(store) => {
                let vector = u128::from(low) | u128::from(high) << 64;
                let value = store.value(vector, self.c as u8);
                (value as u64, (value >> 64) as u64)
            }
            Code::Store(bytes) if bytes < 8 => (low & ((1 << (8 * bytes)) - 1), 0),
            _ => (low, 0),
        }
    }
}
