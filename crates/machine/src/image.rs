//! What the guest's memories, tables and globals are before it runs.

use std::sync::Arc;

use afterimage_program::Program;
use wasmparser::{
    ConstExpr, DataKind, ElementItems, ElementKind, Operator, Parser, Payload, TableInit,
};

use crate::{MachineError, Trap};

/// The bytes of a page.
pub const PAGE: u64 = 1 << 16;
/// Most elements that a table may begin with.
const LARGEST_TABLE: u64 = 1 << 26;
/// Most bytes that all memories may begin with.
const LARGEST_MEMORY: u64 = 1 << 34;

/// A global's bits: the upper half is for vectors only.
pub type GlobalBits = (u64, u64);

/// Memories, tables, globals and passive segments.
///
/// References are numbers: 0 is null, f + 1 is function f.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The memories.
    pub memories: Vec<Memory>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The globals.
    pub globals: Vec<GlobalBits>,
    /// The data segments, empty if dropped.
    pub data: Vec<Arc<[u8]>>,
    /// The element segments, empty if dropped.
    pub elements: Vec<Arc<[u64]>>,
}

/// A memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Addresses have 64 bits.
    pub wide: bool,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its references.
    pub elements: Vec<u64>,
    /// Indices have 64 bits.
    pub wide: bool,
}

/// Where in the module the bytes of memory come from at first: active data segments in order.
#[derive(Clone, Debug)]
pub struct Initial {
    /// The memory.
    pub memory: u32,
    /// The first address.
    pub address: u64,
    /// Which data segment.
    pub segment: u32,
}

impl State {
    /// What a module begins with, and from where its memories were filled. `None` if an active segment does not fit: the module cannot then be
    /// instantiated.
    ///
    /// # Errors
    /// If the module cannot be read or imports a memory, a table, a global or a tag.
    pub fn of_module(
        program: &Program,
        bytes: &[u8],
    ) -> Result<(Self, Vec<Initial>), MachineError> {
        let mut state = Self::default();
        let mut initial = Vec::new();
        let mut fits = true;
        let mut total = 0u64;
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
                        let size = memory.initial.checked_mul(PAGE);
                        let size = size.filter(|size| {
                            total = total.saturating_add(*size);
                            total <= LARGEST_MEMORY
                        });
                        let size =
                            size.ok_or(MachineError::Unsupported("a memory of more than 16 GiB"))?;
                        state.memories.push(Memory {
                            bytes: vec![0; size as usize],
                            wide: memory.memory64,
                        });
                    }
                }
                Payload::TableSection(tables) => {
                    for table in tables {
                        let table = table?;
                        if table.ty.initial > LARGEST_TABLE {
                            return Err(MachineError::Unsupported("a table of that size"));
                        }
                        let first = match &table.init {
                            TableInit::RefNull => 0,
                            TableInit::Expr(value) => state.constant(value)?.0,
                        };
                        state.tables.push(Table {
                            elements: vec![first; table.ty.initial as usize],
                            wide: table.ty.table64,
                        });
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
                        });
                        let memory = &mut state.memories[*memory_index as usize];
                        match memory.range(address, segment.data.len() as u64) {
                            Ok(range) => memory.bytes[range].copy_from_slice(segment.data),
                            Err(_) => fits = false,
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

    /// Takes an element segment. Whether it fits.
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
                let table = &mut self.tables[table_index.unwrap_or(0) as usize];
                let end = at.checked_add(elements.len() as u64);
                let Some(end) = end.filter(|end| *end <= table.elements.len() as u64) else {
                    return Ok(false);
                };
                table.elements[at as usize..end as usize].copy_from_slice(&elements);
            }
        }
        Ok(true)
    }

    /// The value of a constant expression.
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

impl Memory {
    /// The range of so many bytes from an address on.
    #[inline]
    pub fn range(&self, address: u64, length: u64) -> Result<std::ops::Range<usize>, Trap> {
        let end = address.checked_add(length).ok_or(Trap::Memory)?;
        if end > self.bytes.len() as u64 {
            return Err(Trap::Memory);
        }
        Ok(address as usize..end as usize)
    }
}

