//! Marks written memory.
//!
//! # Lines
//!
//! Each line of 64 bytes of the program's memories has a byte in the probes' memory. This byte is 1
//! once something in the line has been written. After a store has succeeded, the lines of its first
//! and its last byte are marked. A store that traps marks nothing. The last byte of a successful
//! store is in memory, so no sum overflows.
//!
//! ```wat
//! (i32.store offset=4 (ADDRESS) (VALUE))
//!
//! (ADDRESS) (VALUE)  (local.set $value) (local.tee $address) (local.get $value)  (i32.store
//! offset=4)
//! (i32.store8 offset=MARKS (i32.shr_u (i32.add (local.get $address) (i32.const 4)) (i32.const 6))
//! (i32.const 1))
//! (i32.store8 offset=MARKS (i32.shr_u (i32.add (local.get $address) (i32.const 7)) (i32.const 6))
//! (i32.const 1))
//! ```
//!
//! An operator that writes any number of bytes also marks the lines in between:
//!
//! ```wat
//! (memory.fill (ADDRESS) (VALUE) (LENGTH))
//!
//! …  (memory.fill)
//! (if (i32.ne (local.get $length) (i32.const 0)) (then
//!   (i32.store8 offset=MARKS (local.tee $first (i32.shr_u (local.get $address) (i32.const 6))) (i32.const 1))
//!   (i32.store8 offset=MARKS (local.tee $last (i32.shr_u (… $address + $length - 1) (i32.const 6))) (i32.const 1))
//!   (if (i32.gt_u (i32.sub (local.get $last) (local.get $first)) (i32.const 1)) (then
//!     (memory.fill $marks (… MARKS + $first + 1) (i32.const 1) (… $last - $first - 1))))))
//! ```
//!
//! # Bytes
//!
//! Alternatively, each byte of a region of [`WATCHED`] bytes has a mark. A word in the probes'
//! memory says where the region begins, so one module works for all regions. After each store, an
//! added store of the same width sets the marks to ones. There is room before and after the
//! region's marks for stores that cross the region's ends. This room is never read.
//!
//! ```wat
//! …  (i32.store offset=4)
//! (local.set $at (i32.sub (i32.add (local.get $address) (i32.const 4)) (i32.load offset=BEFORE)))
//! (if (i32.lt_u (local.get $at) (i32.const 4112)) (then
//!   (i32.store offset=MARKS (local.get $at) (i32.const -1))))
//! ```

use std::ops::Range;

use afterimage_program::MemoryStore;
use wasm_encoder::{BlockType, Instruction, MemArg};
use wasmparser::{FunctionBody, MemoryType, Operator, ValType};

use crate::RewriteError;
use crate::body::Writer;
use crate::layout::{LINE, PAGE, WATCHED};
use crate::shared::SharedLocals;

/// The largest number of bytes that marks may take. A program that needs more is refused.
const MOST: u64 = 1 << 31;

/// The size of the widest store in bytes.
const WIDEST: u64 = 16;

/// The granularity of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// Marks each [`LINE`] that is written.
    Lines {
        /// The maximum total size of the program's memories, in bytes.
        most: u64,
    },
    /// Marks each written byte of one region per memory. The caller writes the region's address to
    /// the probes' memory, as [`WatchedAt`] describes.
    Bytes,
}

/// The place of a watched region in the probes' memory. It consists of the words that contain the
/// region's address, and of one mark for each of the region's [`WATCHED`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedAt {
    start: u64,
}

impl WatchedAt {
    /// Returns the place that begins at `start` in the probes' memory. See
    /// [`Rewritten::marks`](crate::Rewritten::marks).
    pub fn new(start: u64) -> Self {
        Self { start }
    }

    /// Returns the addresses and values to write so that the region at `first` is watched.
    pub fn words(self, first: u64) -> [(u64, u64); 2] {
        let before = first.wrapping_sub(WIDEST);
        [(self.before(), before), (self.first(), first)]
    }

    /// Returns the address of the mark of the region's first byte.
    pub fn marks(self) -> u64 {
        self.near() + WIDEST
    }

    /// Returns the address of the word that contains the address of the watched region, less
    /// [`WIDEST`] bytes.
    fn before(self) -> u64 {
        self.start
    }

    fn first(self) -> u64 {
        self.start + 8
    }

    /// Returns the address of the first mark, which belongs to the bytes before the region.
    fn near(self) -> u64 {
        self.start + 16
    }
}

/// The place of the marks of a module's memories.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    marking: Marking,
    /// For each memory, the address of its first mark in the probes' memory.
    pub starts: Vec<u64>,
    /// The number of bytes that all marks take.
    pub bytes: u64,
    /// The address types of the memories.
    addresses: Vec<ValType>,
}

impl Marks {
    /// Places the marks of these memories from address `first` on. Line marks cover each memory up
    /// to its maximum size or the limit.
    pub(crate) fn new(
        first: u64,
        memories: &[MemoryType],
        marking: Marking,
    ) -> Result<Self, RewriteError> {
        let mut marks = Self {
            marking,
            starts: Vec::new(),
            bytes: 0,
            addresses: Vec::new(),
        };
        for memory in memories {
            marks.starts.push(first + marks.bytes);
            let bytes = match marking {
                Marking::Lines { most } => {
                    let pages = memory.maximum.unwrap_or(u64::MAX).max(memory.initial);
                    let largest = if memory.memory64 { most } else { 1 << 32 };
                    pages.saturating_mul(PAGE).min(largest).min(most) / LINE
                }
                Marking::Bytes => WatchedAt::new(0).marks() + WATCHED + WIDEST,
            };
            marks.bytes += bytes.next_multiple_of(PAGE);
            marks.addresses.push(if memory.memory64 {
                ValType::I64
            } else {
                ValType::I32
            });
        }
        if marks.bytes > MOST {
            return Err(RewriteError::TooLarge("marks of too many memories"));
        }
        Ok(marks)
    }

    fn address(&self, memory: u32) -> ValType {
        let address = self.addresses.get(memory as usize);
        address.copied().unwrap_or(ValType::I32)
    }

    /// Returns the write that an operator makes to memory, if there is one.
    pub(crate) fn write(&self, operator: &Operator<'_>) -> Option<Write> {
        let address = |memory| self.address(memory);
        Some(match *operator {
            Operator::MemoryFill { mem } => Write::Many {
                memory: mem,
                operands: [address(mem), ValType::I32, address(mem)],
            },
            Operator::MemoryCopy { dst_mem, src_mem } => Write::Many {
                memory: dst_mem,
                operands: [
                    address(dst_mem),
                    address(src_mem),
                    match (address(dst_mem), address(src_mem)) {
                        (ValType::I64, ValType::I64) => ValType::I64,
                        _ => ValType::I32,
                    },
                ],
            },
            Operator::MemoryInit { mem, .. } => Write::Many {
                memory: mem,
                operands: [address(mem), ValType::I32, ValType::I32],
            },
            _ => Write::One(MemoryStore::of(operator)?),
        })
    }

    /// Finds the locals that the operators of a function need.
    pub(crate) fn locals(&self, body: &FunctionBody<'_>) -> Result<SharedLocals, RewriteError> {
        let mut locals = SharedLocals::default();
        for operator in body.get_operators_reader()? {
            if let Some(write) = self.write(&operator?) {
                locals.add(&self.types(&write));
            }
        }
        Ok(locals)
    }

    /// Returns the types of a writing operator's operands, and of the other locals that its marks
    /// need.
    fn types(&self, write: &Write) -> Vec<ValType> {
        match write {
            Write::One(store) => {
                let (ty, count) = store.values;
                let address = self.address(store.at.memory);
                let mut types = vec![address];
                types.extend((0..count).map(|_| ty));
                types.extend((self.marking == Marking::Bytes).then_some(address));
                types
            }
            Write::Many { operands, .. } => {
                let ends = match self.marking {
                    Marking::Lines { .. } => [ValType::I32; 2],
                    Marking::Bytes => [ValType::I64; 2],
                };
                [&operands[..], &ends].concat()
            }
        }
    }
}

/// A write to memory.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// A write of a single value.
    One(MemoryStore),
    /// A write of any number of bytes, which the last operand gives.
    Many { memory: u32, operands: [ValType; 3] },
}

impl Writer<'_, '_> {
    /// Copies an operator that writes to memory, and marks the written memory.
    pub(crate) fn marked(&mut self, write: &Write, range: &Range<usize>) {
        let Some(marks) = &self.context.marks else {
            return self.copy(range);
        };
        let locals = self.written.of(&marks.types(write));
        let (memory, operands) = match write {
            Write::One(store) => (store.at.memory, 1 + store.values.1 as usize),
            Write::Many { memory, operands } => (*memory, operands.len()),
        };
        let (address, marking) = (marks.address(memory), marks.marking);
        let start = marks.starts.get(memory as usize).copied().unwrap_or(0);
        let (&to, others) = match locals[..operands].split_first() {
            Some(split) => split,
            None => return self.copy(range),
        };
        for &local in others.iter().rev() {
            self.put(&Instruction::LocalSet(local));
        }
        self.put(&Instruction::LocalTee(to));
        for &local in others {
            self.put(&Instruction::LocalGet(local));
        }
        self.copy(range);
        match (write, marking) {
            (Write::One(store), Marking::Bytes) => {
                let at = locals[operands];
                self.mark_bytes((to, at, address), store, WatchedAt::new(start));
            }
            (Write::Many { operands, .. }, Marking::Bytes) => {
                let length = (locals[2], operands[2]);
                let ends = (locals[3], locals[4]);
                self.mark_overlap((to, address), length, ends, WatchedAt::new(start));
            }
            (Write::One(store), Marking::Lines { .. }) => {
                let last = store.bytes - 1;
                self.mark_line(to, address, store.at.offset, start);
                if last > 0 {
                    self.mark_line(to, address, store.at.offset.wrapping_add(last), start);
                }
            }
            (Write::Many { operands, .. }, Marking::Lines { .. }) => {
                let length = (locals[2], operands[2]);
                self.mark_lines((to, address), length, (locals[3], locals[4]), start);
            }
        }
    }

    /// Marks the line that contains the byte at `offset` bytes after an address.
    fn mark_line(&mut self, to: u32, address: ValType, offset: u64, start: u64) {
        self.put(&Instruction::LocalGet(to));
        if offset != 0 {
            self.put(&constant(address, offset));
            self.put(&add(address));
        }
        self.line(address);
        self.put(&Instruction::I32Const(1));
        self.put(&Instruction::I32Store8(self.mark_at(start)));
    }

    /// Marks the lines that contain a number of bytes from an address on.
    fn mark_lines(
        &mut self,
        (to, address): (u32, ValType),
        (length, of): (u32, ValType),
        (first, last): (u32, u32),
        start: u64,
    ) {
        let extend = |writer: &mut Self| {
            if (address, of) == (ValType::I64, ValType::I32) {
                writer.put(&Instruction::I64ExtendI32U);
            }
        };
        let mark = Instruction::I32Store8(self.mark_at(start));
        let one = Instruction::I32Const(1);
        self.put(&Instruction::LocalGet(length));
        extend(self);
        self.put(&constant(address, 0));
        self.put(&match address {
            ValType::I64 => Instruction::I64Ne,
            _ => Instruction::I32Ne,
        });
        self.put(&Instruction::If(BlockType::Empty));
        self.put(&Instruction::LocalGet(to));
        self.line(address);
        for instruction in [&Instruction::LocalTee(first), &one, &mark] {
            self.put(instruction);
        }
        self.put(&Instruction::LocalGet(to));
        self.put(&Instruction::LocalGet(length));
        extend(self);
        self.put(&add(address));
        self.put(&constant(address, u64::MAX));
        self.put(&add(address));
        self.line(address);
        for instruction in [&Instruction::LocalTee(last), &one, &mark] {
            self.put(instruction);
        }
        let between = [
            Instruction::LocalGet(last),
            Instruction::LocalGet(first),
            Instruction::I32Sub,
        ];
        between.iter().for_each(|instruction| self.put(instruction));
        self.put(&one);
        self.put(&Instruction::I32GtU);
        self.put(&Instruction::If(BlockType::Empty));
        self.put(&Instruction::LocalGet(first));
        self.put(&Instruction::I32Const((start + 1) as u32 as i32));
        self.put(&Instruction::I32Add);
        self.put(&one);
        between.iter().for_each(|instruction| self.put(instruction));
        self.put(&one);
        self.put(&Instruction::I32Sub);
        self.put(&Instruction::MemoryFill(self.context.memory));
        self.put(&Instruction::End);
        self.put(&Instruction::End);
    }

    /// Marks the bytes of a store that lie in the watched region. `at` is a local for the store's
    /// distance from the region.
    fn mark_bytes(
        &mut self,
        (to, at, address): (u32, u32, ValType),
        store: &MemoryStore,
        watched: WatchedAt,
    ) {
        let is_wide = address == ValType::I64;
        self.put(&Instruction::LocalGet(to));
        if store.at.offset != 0 {
            self.put(&constant(address, store.at.offset));
            self.put(&add(address));
        }
        self.put(&Instruction::I32Const(0));
        let before = self.mark_at(watched.before());
        self.put(&if is_wide {
            Instruction::I64Load(before)
        } else {
            Instruction::I32Load(before)
        });
        self.put(&if is_wide {
            Instruction::I64Sub
        } else {
            Instruction::I32Sub
        });
        self.put(&Instruction::LocalTee(at));
        self.put(&constant(address, WATCHED + WIDEST));
        self.put(&if is_wide {
            Instruction::I64LtU
        } else {
            Instruction::I32LtU
        });
        self.put(&Instruction::If(BlockType::Empty));
        self.put(&Instruction::LocalGet(at));
        if is_wide {
            self.put(&Instruction::I32WrapI64);
        }
        let marks = self.mark_at(watched.near());
        let (ones, store) = match store.bytes {
            1 => (Instruction::I32Const(-1), Instruction::I32Store8(marks)),
            2 => (Instruction::I32Const(-1), Instruction::I32Store16(marks)),
            4 => (Instruction::I32Const(-1), Instruction::I32Store(marks)),
            8 => (Instruction::I64Const(-1), Instruction::I64Store(marks)),
            _ => (Instruction::V128Const(-1), Instruction::V128Store(marks)),
        };
        self.put(&ones);
        self.put(&store);
        self.put(&Instruction::End);
    }

    /// Marks the part of a write that overlaps the watched region. `begin` and `end` are locals for
    /// the bounds of that part.
    fn mark_overlap(
        &mut self,
        (to, address): (u32, ValType),
        (length, of): (u32, ValType),
        (begin, end): (u32, u32),
        watched: WatchedAt,
    ) {
        let get = |writer: &mut Self, local, ty| {
            writer.put(&Instruction::LocalGet(local));
            if ty != ValType::I64 {
                writer.put(&Instruction::I64ExtendI32U);
            }
        };
        let first = |writer: &mut Self, behind: u64| {
            writer.put(&Instruction::I32Const(0));
            writer.put(&Instruction::I64Load(writer.mark_at(watched.first())));
            writer.put(&Instruction::I64Const(behind as i64));
            writer.put(&Instruction::I64Add);
        };
        // Compute the later of the two beginnings, and the earlier of the two ends.
        get(self, to, address);
        self.put(&Instruction::LocalTee(begin));
        first(self, 0);
        self.put(&Instruction::LocalGet(begin));
        first(self, 0);
        for instruction in [
            Instruction::I64GtU,
            Instruction::Select,
            Instruction::LocalSet(begin),
        ] {
            self.put(&instruction);
        }
        get(self, to, address);
        get(self, length, of);
        self.put(&Instruction::I64Add);
        self.put(&Instruction::LocalTee(end));
        first(self, WATCHED);
        self.put(&Instruction::LocalGet(end));
        first(self, WATCHED);
        for instruction in [
            Instruction::I64LtU,
            Instruction::Select,
            Instruction::LocalSet(end),
            Instruction::LocalGet(begin),
            Instruction::LocalGet(end),
            Instruction::I64LtU,
            Instruction::If(BlockType::Empty),
            Instruction::LocalGet(begin),
        ] {
            self.put(&instruction);
        }
        first(self, 0);
        for instruction in [
            Instruction::I64Sub,
            Instruction::I32WrapI64,
            Instruction::I32Const(watched.marks() as u32 as i32),
            Instruction::I32Add,
            Instruction::I32Const(1),
            Instruction::LocalGet(end),
            Instruction::LocalGet(begin),
            Instruction::I64Sub,
            Instruction::I32WrapI64,
            Instruction::MemoryFill(self.context.memory),
            Instruction::End,
        ] {
            self.put(&instruction);
        }
    }

    /// Replaces the address on the stack by the number of its line.
    fn line(&mut self, address: ValType) {
        self.put(&constant(address, LINE.trailing_zeros().into()));
        match address {
            ValType::I64 => {
                self.put(&Instruction::I64ShrU);
                self.put(&Instruction::I32WrapI64);
            }
            _ => self.put(&Instruction::I32ShrU),
        }
    }

    fn mark_at(&self, start: u64) -> MemArg {
        MemArg {
            align: 0,
            ..self.slot(start)
        }
    }
}

/// Returns a number, as a constant of the address type.
fn constant(address: ValType, value: u64) -> Instruction<'static> {
    match address {
        ValType::I64 => Instruction::I64Const(value as i64),
        _ => Instruction::I32Const(value as u32 as i32),
    }
}

fn add(address: ValType) -> Instruction<'static> {
    match address {
        ValType::I64 => Instruction::I64Add,
        _ => Instruction::I32Add,
    }
}
