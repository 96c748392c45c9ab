//! Computes the initial contents of the guest's memories, tables and globals.

use std::sync::Arc;

use afterimage_program::Program;
use afterimage_trace::{MAX_ELEMENTS, MAX_MEMORY};
use wasmparser::{
    ConstExpr, DataKind, ElementItems, ElementKind, Operator, Parser, Payload, TableInit,
};

use crate::lazy::Bytes;
use crate::{MachineError, Trap};

/// The number of bytes in a page.
pub const PAGE: u64 = 1 << 16;

/// The bits of a global. Only vectors use the upper half.
pub type GlobalBits = (u64, u64);

/// Memories, tables, globals and passive segments.
///
/// References are numbers. The number 0 is null, and f + 1 is function f.
#[derive(Debug, Default)]
pub struct State {
    /// The memories, by index.
    pub memories: Vec<Memory>,
    /// The tables, by index.
    pub tables: Vec<Table>,
    /// The globals, by index.
    pub globals: Vec<GlobalBits>,
    /// The data segments, empty if they are active or were dropped.
    pub data: Vec<Arc<[u8]>>,
    /// The element segments, empty if they are active or declared or were dropped.
    pub elements: Vec<Arc<[u64]>>,
}

/// A memory of the guest.
#[derive(Debug)]
pub struct Memory {
    /// The bytes of the memory.
    pub bytes: Bytes,
    /// Whether addresses have 64 bits.
    pub wide: bool,
    /// The maximum number of pages.
    pub most: u64,
}

/// A table of references.
#[derive(Clone, Debug)]
pub struct Table {
    /// The references in the table.
    pub elements: Vec<u64>,
    /// Whether indices have 64 bits.
    pub wide: bool,
    /// The maximum number of elements.
    pub most: u64,
}

/// An active data segment, which is the origin of some initial bytes of a memory.
#[derive(Clone, Debug)]
pub struct Initial {
    /// The memory that the segment fills.
    pub memory: u32,
    /// The first address that the segment fills.
    pub address: u64,
    /// The number of the data segment.
    pub segment: u32,
    /// The number of bytes in the segment.
    pub length: u64,
}

impl State {
    /// Returns the initial state of a module, and the origins of its memories' contents.
    ///
    /// # Errors
    /// Returns an error if the module cannot be read, or imports a memory, a table, a global or a
    /// tag. Also returns an error if the module has memories of more than 16 GiB, tables of more
    /// than 10,000,000 elements, or an active segment that does not fit.
    pub fn of_module(
        program: &Program,
        bytes: &[u8],
    ) -> Result<(Self, Vec<Initial>), MachineError> {
        let mut state = Self::default();
        let mut initial = Vec::new();
        let mut fits = true;
        let too_large = |growth: Growth| MachineError::Unsupported(growth.what());
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(imports) => {
                    let functions = program.imports.len();
                    if imports.into_imports().count() != functions {
                        let what = "an import that is not a function";
                        return Err(MachineError::Unsupported(what));
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        let memory = memory?;
                        let most = if memory.memory64 { 1 << 48 } else { 1 << 16 };
                        state.memories.push(Memory {
                            bytes: Bytes::default(),
                            wide: memory.memory64,
                            most: memory.maximum.unwrap_or(most),
                        });
                        let index = state.memories.len() - 1;
                        state
                            .grow_memory(index, memory.initial)
                            .map_err(too_large)?;
                    }
                }
                Payload::TableSection(tables) => {
                    for table in tables {
                        let table = table?;
                        let first = match &table.init {
                            TableInit::RefNull => 0,
                            TableInit::Expr(value) => state.constant(value)?.0,
                        };
                        let most = if table.ty.table64 {
                            u64::MAX
                        } else {
                            u64::from(u32::MAX)
                        };
                        state.tables.push(Table {
                            elements: Vec::new(),
                            wide: table.ty.table64,
                            most: table.ty.maximum.unwrap_or(most),
                        });
                        let index = state.tables.len() - 1;
                        let initial = table.ty.initial;
                        state.grow_table(index, initial, first).map_err(too_large)?;
                    }
                }
                Payload::GlobalSection(globals) => {
                    for global in globals {
                        let value = state.constant(&global?.init_expr)?;
                        state.globals.push(value);
                    }
                }
                Payload::ElementSection(segments) => {
                    for segment in segments {
                        fits &= state.element(segment?)?;
                    }
                }
                Payload::DataSection(segments) => {
                    for segment in segments {
                        let segment = segment?;
                        let index = state.data.len() as u32;
                        let DataKind::Active {
                            memory_index,
                            offset_expr,
                        } = &segment.kind
                        else {
                            state.data.push(segment.data.into());
                            continue;
                        };
                        state.data.push([].into());
                        let address = state.constant(offset_expr)?.0;
                        initial.push(Initial {
                            memory: *memory_index,
                            address,
                            segment: index,
                            length: segment.data.len() as u64,
                        });
                        let memory = state.memories.get_mut(*memory_index as usize);
                        let place = memory.and_then(|memory| {
                            let range = memory.range(address, segment.data.len() as u64).ok()?;
                            memory.bytes.get_mut(range)
                        });
                        match place {
                            Some(place) => place.copy_from_slice(segment.data),
                            None => fits = false,
                        }
                    }
                }
                _ => {}
            }
        }
        if !fits {
            let what = "a segment beyond the end of its memory or table";
            return Err(MachineError::Unsupported(what));
        }
        Ok((state, initial))
    }

    /// Adds pages to a memory.
    pub(crate) fn grow_memory(&mut self, index: usize, pages: u64) -> Result<(), Growth> {
        let total: u64 = self.memories.iter().map(|m| m.bytes.len() as u64).sum();
        let memory = &mut self.memories[index];
        let before = memory.bytes.len() as u64;
        let size = pages.checked_add(before / PAGE);
        let size = size.filter(|size| *size <= memory.most);
        let size = size
            .ok_or(Growth::Beyond("a memory beyond its maximum"))?
            .checked_mul(PAGE);
        let size = size.unwrap_or(u64::MAX);
        if size - before > MAX_MEMORY.saturating_sub(total) {
            return Err(Growth::Limit("a run whose memories have more than 16 GiB"));
        }
        let most = memory.most.saturating_mul(PAGE).min(MAX_MEMORY);
        memory.bytes.grow(size as usize, most as usize)
    }

    /// Adds elements to a table.
    pub(crate) fn grow_table(&mut self, index: usize, by: u64, with: u64) -> Result<(), Growth> {
        let total: u64 = self.tables.iter().map(|t| t.elements.len() as u64).sum();
        let table = &mut self.tables[index];
        let before = table.elements.len() as u64;
        let size = by.checked_add(before).filter(|size| *size <= table.most);
        let size = size.ok_or(Growth::Beyond("a table beyond its maximum"))?;
        if size - before > MAX_ELEMENTS.saturating_sub(total) {
            let what = "a run whose tables have more than 10,000,000 elements";
            return Err(Growth::Limit(what));
        }
        let elements = &mut table.elements;
        let reserved = elements.try_reserve((size - before) as usize);
        reserved.map_err(|_| Growth::Limit("memory that this machine does not have"))?;
        elements.resize(size as usize, with);
        Ok(())
    }

    /// Adds an element segment. Returns whether it fits.
    fn element(&mut self, segment: wasmparser::Element<'_>) -> Result<bool, MachineError> {
        let mut elements = Vec::new();
        match segment.items {
            ElementItems::Functions(functions) => {
                for function in functions {
                    elements.push(u64::from(function?) + 1);
                }
            }
            ElementItems::Expressions(_, expressions) => {
                for expression in expressions {
                    elements.push(self.constant(&expression?)?.0);
                }
            }
        }
        match segment.kind {
            ElementKind::Passive => self.elements.push(elements.into()),
            ElementKind::Declared => self.elements.push([].into()),
            ElementKind::Active {
                table_index,
                offset_expr,
            } => {
                self.elements.push([].into());
                let at = self.constant(&offset_expr)?.0;
                let table = self.tables.get_mut(table_index.unwrap_or(0) as usize);
                let place = table.and_then(|table| {
                    let end = at.checked_add(elements.len() as u64)?;
                    let range = usize::try_from(at).ok()?..usize::try_from(end).ok()?;
                    table.elements.get_mut(range)
                });
                let Some(place) = place else {
                    return Ok(false);
                };
                place.copy_from_slice(&elements);
            }
        }
        Ok(true)
    }

    /// Returns the value of a constant expression.
    fn constant(&self, expression: &ConstExpr<'_>) -> Result<GlobalBits, MachineError> {
        let mut stack: Vec<GlobalBits> = Vec::new();
        let malformed = || MachineError::Unsupported("a constant expression of this kind");
        for operator in expression.get_operators_reader() {
            let operator = operator?;
            let mut two = || Some((stack.pop()?.0, stack.pop()?.0));
            let value = match operator {
                Operator::I32Const { value } => (u64::from(value as u32), 0),
                Operator::I64Const { value } => (value as u64, 0),
                Operator::F32Const { value } => (u64::from(value.bits()), 0),
                Operator::F64Const { value } => (value.bits(), 0),
                Operator::V128Const { value } => {
                    let bits = u128::from_le_bytes(*value.bytes());
                    (bits as u64, (bits >> 64) as u64)
                }
                Operator::RefNull { .. } => (0, 0),
                Operator::RefFunc { function_index } => (u64::from(function_index) + 1, 0),
                Operator::GlobalGet { global_index } => *self
                    .globals
                    .get(global_index as usize)
                    .ok_or_else(malformed)?,
                Operator::End => break,
                ref other => {
                    let (b, a) = two().ok_or_else(malformed)?;
                    let narrow = |value: u64| (u64::from(value as u32), 0);
                    match other {
                        Operator::I32Add => narrow(a.wrapping_add(b)),
                        Operator::I32Sub => narrow(a.wrapping_sub(b)),
                        Operator::I32Mul => narrow(a.wrapping_mul(b)),
                        Operator::I64Add => (a.wrapping_add(b), 0),
                        Operator::I64Sub => (a.wrapping_sub(b), 0),
                        Operator::I64Mul => (a.wrapping_mul(b), 0),
                        _ => return Err(malformed()),
                    }
                }
            };
            stack.push(value);
        }
        stack.pop().ok_or_else(malformed)
    }
}

/// The reason why a memory or a table cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The module does not allow the growth.
    Beyond(&'static str),
    /// The growth exceeds the limits of the machine.
    Limit(&'static str),
}

impl Growth {
    fn what(self) -> &'static str {
        match self {
            Self::Beyond(what) | Self::Limit(what) => what,
        }
    }
}

impl Memory {
    /// Returns the range of `length` bytes from an address on. Traps if some of them do not exist.
    #[inline]
    pub fn range(&self, address: u64, length: u64) -> Result<std::ops::Range<usize>, Trap> {
        let end = address.checked_add(length).ok_or(Trap::Memory)?;
        if end > self.bytes.len() as u64 {
            return Err(Trap::Memory);
        }
        Ok(address as usize..end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(most: u64) -> State {
        let memory = Memory {
            bytes: Bytes::default(),
            wide: true,
            most,
        };
        let table = Table {
            elements: Vec::new(),
            wide: true,
            most,
        };
        State {
            memories: vec![memory],
            tables: vec![table],
            ..State::default()
        }
    }

    #[test]
    fn memories_grow_up_to_their_limit_and_keep_their_bytes() {
        let mut state = state(4);
        for (by, size) in [(1, 1), (2, 3), (0, 3), (1, 4)] {
            state.grow_memory(0, by).expect("room");
            let bytes = &mut state.memories[0].bytes;
            assert_eq!(bytes.len() as u64, size * PAGE);
            assert_eq!(
                bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>(),
                size - by
            );
            bytes.fill(0);
            bytes[..size as usize].fill(1);
        }
        assert!(state.grow_memory(0, 1).is_err() && state.grow_memory(0, u64::MAX).is_err());
    }

    #[test]
    fn tables_grow_up_to_their_limit_and_keep_their_elements() {
        let mut state = state(6);
        state.grow_table(0, 2, 7).expect("room");
        state.grow_table(0, 3, 0).expect("room");
        state.grow_table(0, 1, 9).expect("room");
        assert_eq!(state.tables[0].elements[..], [7, 7, 0, 0, 0, 9]);
        assert!(state.grow_table(0, 1, 0).is_err() && state.grow_table(0, u64::MAX, 0).is_err());
    }

    #[test]
    fn nothing_is_taken_beyond_what_all_may_have() {
        let mut state = state(u64::MAX);
        assert!(state.grow_memory(0, 1 << 47).is_err());
        assert!(state.grow_memory(0, 1 << 48).is_err());
        assert!(state.grow_memory(0, MAX_MEMORY / PAGE + 1).is_err());
        assert!(state.grow_table(0, MAX_ELEMENTS + 1, 0).is_err());
        assert!(state.memories[0].bytes.is_empty() && state.tables[0].elements.is_empty());
    }
}
