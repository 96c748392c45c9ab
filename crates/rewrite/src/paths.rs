//! What the probes of a path need of the module: an accumulator, a function that puts full words into the buffer, and a way to ask the
//! host for an empty half of it.

use afterimage_ids::{EntityRef, FuncId};
pub(crate) use afterimage_paths::Step as PathStep;
use afterimage_paths::witness::WitnessPlan;
use afterimage_paths::{PathPlan, Spot};
use afterimage_placement::Site;
use afterimage_program::{Function, Program};
use wasm_encoder::{
    BlockType, ConstExpr, Encode, GlobalType, Instruction, MemArg, RefType, TableType, ValType,
};

use crate::RewriteError;
use crate::actions::{Actions, Step};
use crate::layout::Layout;
use crate::types::TypePool;

/// One of the ways to write a path down.
#[derive(Clone, Copy, Debug)]
pub enum TracePlan<'a> {
    /// Path numbers.
    Paths(&'a PathPlan),
    /// Witnesses.
    Witnesses(&'a WitnessPlan),
}

impl<'a> TracePlan<'a> {
    fn steps(self, i: usize) -> &'a [(Spot, PathStep)] {
        match self {
            TracePlan::Paths(plan) => plan.steps(i),
            TracePlan::Witnesses(plan) => plan.steps(i),
        }
    }
}

/// The path's probes.
#[derive(Clone, Copy, Debug)]
pub struct PathProbes<'a> {
    /// What to write and where.
    pub plan: TracePlan<'a>,
    /// Functions that keep nothing in a local: the run ends inside one of them, which would lose it.
    pub in_memory: &'a [FuncId],
    /// How many words each half of the buffer has; at least 1.
    pub half: u32,
}

/// The name of the global with the bits that are in no word of the buffer yet: an `i64`, 1 if there are none.
pub const PENDING_EXPORT: &str = "afterimage.pending";
/// The name of the global with the address of the next word: an `i32`.
pub const CURSOR_EXPORT: &str = "afterimage.cursor";
/// The name of the global with the address at which the half ends: an `i32`.
pub const LIMIT_EXPORT: &str = "afterimage.limit";
/// The name of the table whose only slot holds the host's function that exchanges the halves: it takes nothing and returns
/// nothing, and sets cursor and limit.
pub const SWAP_EXPORT: &str = "afterimage.swap";

pub(crate) const EXPORTS: [&str; 4] = [PENDING_EXPORT, CURSOR_EXPORT, LIMIT_EXPORT, SWAP_EXPORT];

/// Indices of what is added to the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathPlaces {
    /// The global with the bits that are in no word yet. Cursor and limit follow.
    pub pending: u32,
    /// The function that puts a word into the buffer.
    pub flush: u32,
    /// Its type.
    pub flush_type: u32,
    swap_type: u32,
    table: u32,
}

impl PathPlaces {
    pub(crate) fn new(program: &Program, types: &mut TypePool) -> Self {
        Self {
            pending: program.globals.len() as u32,
            flush: (program.imports.len() + program.functions.len()) as u32,
            flush_type: types.function_type(&[wasmparser::ValType::I64], &[]),
            swap_type: types.function_type(&[], &[]),
            table: program.tables,
        }
    }

    /// Names, kinds and indices of what the host needs.
    pub(crate) fn exports(&self) -> [(&'static str, u8, u32); 4] {
        const TABLE: u8 = 1;
        const GLOBAL: u8 = 3;
        [
            (PENDING_EXPORT, GLOBAL, self.pending),
            (CURSOR_EXPORT, GLOBAL, self.pending + 1),
            (LIMIT_EXPORT, GLOBAL, self.pending + 2),
            (SWAP_EXPORT, TABLE, self.table),
        ]
    }

    /// Puts its argument into the buffer, and asks for another half when this one is full.
    pub(crate) fn flush_body(&self, memory: u32) -> wasm_encoder::Function {
        let (cursor, limit) = (self.pending + 1, self.pending + 2);
        let mut body = wasm_encoder::Function::new([(1, ValType::I32)]);
        let word = MemArg {
            offset: 0,
            align: 3,
            memory_index: memory,
        };
        for instruction in [
            Instruction::GlobalGet(cursor),
            Instruction::LocalTee(1),
            Instruction::LocalGet(0),
            Instruction::I64Store(word),
            Instruction::LocalGet(1),
            Instruction::I32Const(8),
            Instruction::I32Add,
            Instruction::LocalTee(1),
            Instruction::GlobalSet(cursor),
            Instruction::LocalGet(1),
            Instruction::GlobalGet(limit),
            Instruction::I32Eq,
            Instruction::If(BlockType::Empty),
            Instruction::I32Const(0),
            Instruction::CallIndirect {
                type_index: self.swap_type,
                table_index: self.table,
            },
            Instruction::End,
            Instruction::End,
        ] {
            body.instruction(&instruction);
        }
        body
    }
}

/// The table with the host's function.
pub(crate) fn table_type() -> TableType {
    TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: 1,
        maximum: Some(1),
        shared: false,
    }
}

/// The globals, and how many they are.
pub(crate) fn globals(layout: &Layout, out: &mut Vec<u8>) -> u32 {
    let mut global = |val_type, value: ConstExpr| {
        GlobalType {
            val_type,
            mutable: true,
            shared: false,
        }
        .encode(out);
        value.encode(out);
    };
    let buffer = layout.buffer() as i32;
    global(ValType::I64, ConstExpr::i64_const(1));
    global(ValType::I32, ConstExpr::i32_const(buffer));
    global(
        ValType::I32,
        ConstExpr::i32_const(buffer + 8 * layout.half as i32),
    );
    3
}

/// Adds the probes of the `i`-th defined function. Returns how many.
pub(crate) fn add(
    plan: TracePlan<'_>,
    i: usize,
    function: &Function,
    actions: &mut Actions,
) -> Result<u64, RewriteError> {
    let cfg = &function.cfg;
    let steps = plan.steps(i);
    for &(spot, step) in steps {
        let step = Step::Path(step);
        let found = match spot {
            Spot::Start(block) => actions.add(cfg, Site::Block(block), step),
            Spot::Edge(edge) => actions.add(cfg, Site::Edge(edge), step),
            Spot::End(block) => actions.add_end(cfg, block, step),
        };
        if !found {
            return Err(RewriteError::NoSuchSite {
                function: function.id.index() as u32,
                site: format!("{spot:?}"),
            });
        }
    }
    Ok(steps.len() as u64)
}
