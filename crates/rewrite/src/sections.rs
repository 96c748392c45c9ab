//! Assembles the sections of a rewritten module. Each section is copied, with additions where
//! needed.

use afterimage_ids::{EntityRef, FuncId};
use afterimage_program::Program;
use wasm_encoder::{BranchHints, ConstExpr, Encode, GlobalType, Instruction, Section as _};
use wasmparser::{ExternalKind, Parser};

use crate::RewriteError;
use crate::layout::{
    CALLED, CLOCK_AT, COUNT_AT, ENTRIES_AT, HEADER, LABEL, LAYOUT_VERSION, LIMIT_AT, Layout,
    MEMORY_EXPORT, SNAPSHOT_EXPORT, START_EXPORT, TAKEN_EXPORT, VERSION_AT,
};
use crate::module::{HINTS, Inner, Options, Snapshots, inner_export};
use crate::path_probes::{self, PathPlaces};
use crate::types::{TypePool, val_type};

/// Appends the global that counts snapshots.
fn counter_global(out: &mut Vec<u8>) {
    GlobalType {
        val_type: wasm_encoder::ValType::I32,
        mutable: true,
        shared: false,
    }
    .encode(out);
    ConstExpr::i32_const(0).encode(out);
}

/// The rewritten parts of a module.
pub(crate) struct Rewriting<'a> {
    pub layout: Layout,
    pub types: &'a TypePool,
    /// The rewritten function bodies.
    pub code: Vec<u8>,
    pub hints: Option<BranchHints>,
}

/// Assembles the sections in the order that the format requires.
pub(crate) struct Assembler<'a> {
    bytes: &'a [u8],
    program: &'a Program,
    options: &'a Options,
    layout: Layout,
    pub(crate) path_places: Option<PathPlaces>,
    /// The index of the global that counts snapshots, if activations capture themselves.
    pub(crate) taken: Option<u32>,
    types: &'a TypePool,
    code: Vec<u8>,
    hints: Option<BranchHints>,
    pub(crate) out: Vec<u8>,
    /// The start of the code section's contents in the output.
    pub(crate) code_at: u32,
    done: Added,
}

/// The sections with additions that have already been written.
#[derive(Default)]
struct Added {
    types: bool,
    functions: bool,
    tables: bool,
    memory: bool,
    globals: bool,
    exports: bool,
    elements: bool,
    code: bool,
    data: bool,
}

const TYPE: u8 = 1;
const FUNCTION: u8 = 3;
const TABLE: u8 = 4;
const MEMORY: u8 = 5;
const GLOBAL: u8 = 6;
const EXPORT: u8 = 7;
const START: u8 = 8;
const ELEMENT: u8 = 9;
const DATA_COUNT: u8 = 12;
const CODE: u8 = 10;
const DATA: u8 = 11;
const CUSTOM: u8 = 0;

/// Sections in the order in which they occur in a module.
const ORDER: [u8; 13] = [
    TYPE, 2, FUNCTION, TABLE, MEMORY, 13, GLOBAL, EXPORT, START, ELEMENT, DATA_COUNT, CODE, DATA,
];

fn rank(id: u8) -> usize {
    ORDER.iter().position(|&o| o == id).unwrap_or(ORDER.len())
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        program: &'a Program,
        options: &'a Options,
        added: Rewriting<'a>,
    ) -> Self {
        let Rewriting {
            layout,
            types,
            code,
            hints,
        } = added;
        Self {
            bytes,
            program,
            options,
            layout,
            path_places: None,
            taken: None,
            types,
            out: Vec::with_capacity(bytes.len() + code.len() / 4),
            code,
            hints,
            code_at: 0,
            done: Added::default(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), RewriteError> {
        let bytes = self.bytes;
        self.out
            .extend_from_slice(bytes.get(..8).unwrap_or_default());
        let sections = Parser::new(0).parse_all(bytes);
        let known = sections.filter_map(|payload| payload.ok()?.as_section());
        let known = known
            .filter(|&(id, _)| id != CUSTOM)
            .map(|(_, range)| range.end);
        let last = known.max().unwrap_or(0);
        let mut reader = wasmparser::BinaryReader::new(bytes.get(8..).unwrap_or_default(), 8);
        while !reader.eof() {
            let id = reader.read_u8()?;
            let size = reader.read_var_u32()? as usize;
            let start = reader.original_position();
            let contents = reader.read_bytes(size)?;
            if id == CUSTOM {
                // The name section and other custom sections follow everything that they describe.
                if start > last {
                    self.add_missing_before(u8::MAX);
                }
                let mut custom = wasmparser::BinaryReader::new(contents, start);
                let name = custom.read_string()?;
                let moved = ["sourceMappingURL", "external_debug_info", HINTS];
                if !name.starts_with(".debug_") && !moved.contains(&name) {
                    self.section(CUSTOM, contents);
                }
                continue;
            }
            self.add_missing_before(id);
            self.add_or_copy(id, contents, start)?;
        }
        self.add_missing_before(u8::MAX);
        Ok(())
    }

    fn section(&mut self, id: u8, contents: &[u8]) {
        self.out.push(id);
        (contents.len() as u32).encode(&mut self.out);
        self.out.extend_from_slice(contents);
    }

    /// Adds sections that the original lacks but that get additions, if they come before `id`.
    fn add_missing_before(&mut self, id: u8) {
        let rank_of = rank(id);
        for missing in [
            TYPE, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, ELEMENT, CODE, DATA,
        ] {
            if rank(missing) < rank_of {
                // A missing section is treated as an empty section, with a count of zero.
                let wanted = match missing {
                    TYPE => !self.done.types && !self.types.added().is_empty(),
                    FUNCTION => !self.done.functions && self.options.external.is_some(),
                    TABLE => !self.done.tables && self.options.snapshots.is_some(),
                    GLOBAL => {
                        !self.done.globals && (self.path_places.is_some() || self.taken.is_some())
                    }
                    MEMORY => !self.done.memory,
                    EXPORT => !self.done.exports,
                    ELEMENT => !self.done.elements && !self.undeclared().is_empty(),
                    CODE => !self.done.code && self.options.external.is_some(),
                    _ => !self.done.data,
                };
                if wanted {
                    self.extend(missing, 0, &[]);
                }
            }
        }
    }

    fn add_or_copy(&mut self, id: u8, contents: &[u8], start: usize) -> Result<(), RewriteError> {
        match id {
            TYPE | FUNCTION | TABLE | MEMORY | GLOBAL | EXPORT | ELEMENT | CODE | DATA => {
                let mut reader = wasmparser::BinaryReader::new(contents, start);
                let count = reader.read_var_u32()?;
                let entries = &contents[reader.original_position() - start..];
                self.extend(id, count, entries);
            }
            DATA_COUNT => {
                let mut reader = wasmparser::BinaryReader::new(contents, start);
                let mut changed = Vec::new();
                (reader.read_var_u32()? + 1).encode(&mut changed);
                self.section(DATA_COUNT, &changed);
            }
            START if self.options.export_start => {}
            _ => self.section(id, contents),
        }
        Ok(())
    }

    /// Writes a section with the original's entries, followed by the added entries.
    fn extend(&mut self, id: u8, count: u32, entries: &[u8]) {
        let mut contents = Vec::with_capacity(entries.len() + 64);
        let mut added = Vec::new();
        let mut more = 0u32;
        match id {
            TYPE => {
                self.done.types = true;
                for (params, results) in self.types.added() {
                    more += 1;
                    added.push(0x60);
                    for list in [params, results] {
                        (list.len() as u32).encode(&mut added);
                        for &ty in list {
                            // These types came from the module, or passed the same conversion when
                            // a block was made from them.
                            if let Ok(ty) = val_type(ty) {
                                ty.encode(&mut added);
                            }
                        }
                    }
                }
            }
            FUNCTION => {
                self.done.functions = true;
                if self.options.external.is_some() {
                    for (_, callee) in &self.program.exports {
                        more += 1;
                        self.type_of(*callee).encode(&mut added);
                    }
                }
            }
            TABLE => {
                self.done.tables = true;
                if self.options.snapshots.is_some() {
                    more = 1;
                    wasm_encoder::TableType {
                        element_type: wasm_encoder::RefType::FUNCREF,
                        table64: false,
                        minimum: CALLED,
                        maximum: Some(CALLED),
                        shared: false,
                    }
                    .encode(&mut added);
                }
            }
            GLOBAL => {
                self.done.globals = true;
                if self.path_places.is_some() {
                    more = path_probes::globals(&mut added);
                }
                if self.taken.is_some() {
                    more += 1;
                    counter_global(&mut added);
                }
            }
            MEMORY => {
                self.done.memory = true;
                more = 1;
                wasm_encoder::MemoryType {
                    minimum: self.layout.pages(),
                    maximum: Some(self.layout.pages()),
                    memory64: false,
                    shared: false,
                    page_size_log2: None,
                }
                .encode(&mut added);
            }
            EXPORT => {
                self.done.exports = true;
                self.exports(count, entries);
                return;
            }
            ELEMENT => {
                self.done.elements = true;
                let functions = self.undeclared();
                if !functions.is_empty() {
                    more = 1;
                    // Adds a declarative segment of function indices.
                    added.extend([3, 0]);
                    (functions.len() as u32).encode(&mut added);
                    for function in functions {
                        function.as_u32().encode(&mut added);
                    }
                }
            }
            CODE => {
                self.done.code = true;
                if let Some(hints) = self.hints.take() {
                    hints.append_to(&mut self.out);
                }
                let code = std::mem::take(&mut self.code);
                self.section(CODE, &code);
                self.code_at = (self.out.len() - code.len()) as u32;
                return;
            }
            _ => {
                self.done.data = true;
                more = 1;
                self.data_segment(&mut added);
            }
        }
        (count + more).encode(&mut contents);
        contents.extend_from_slice(entries);
        contents.extend_from_slice(&added);
        self.section(id, &contents);
    }

    /// Returns the functions that `ref.func` could name only because they were exported. In the
    /// rewritten module, their wrappers are exported instead.
    fn undeclared(&self) -> Vec<FuncId> {
        if self.options.external.is_none() {
            return Vec::new();
        }
        let exported = self.program.exports.iter().map(|(_, function)| *function);
        let mut functions =
            Vec::from_iter(exported.filter(|&f| self.program.address_taken.contains(f)));
        functions.sort_unstable();
        functions.dedup();
        functions
    }

    fn type_of(&self, id: FuncId) -> u32 {
        let i = id.as_u32() as usize;
        let imports = &self.program.imports;
        let ty = imports.get(i).map_or_else(
            || self.program.functions[i - imports.len()].ty,
            |import| import.ty,
        );
        ty.index() as u32
    }

    fn exports(&mut self, count: u32, entries: &[u8]) {
        let mut contents = Vec::with_capacity(entries.len() + 64);
        let start = if self.options.export_start {
            self.program.start
        } else {
            None
        };
        let of_paths = self.path_places.map(|places| places.exports());
        let of_paths = of_paths.as_ref().map_or(&[][..], |exports| exports);
        let snapshots = self.options.snapshots.is_some();
        let inner = match self.options.snapshots {
            Some(Snapshots::Debugged | Snapshots::Captured) => self.inner(),
            Some(Snapshots::Cuts) | None => Vec::new(),
        };
        let added = 1
            + u32::from(snapshots)
            + u32::from(start.is_some())
            + u32::from(self.taken.is_some())
            + (of_paths.len() + inner.len()) as u32;
        (count + added).encode(&mut contents);
        if self.options.external.is_some() {
            // An exported function is exported through its wrapper.
            let wrapper = (self.program.imports.len() + self.program.functions.len()) as u32;
            let mut reader = wasmparser::BinaryReader::new(entries, 0);
            let mut functions = 0;
            while let Ok(export) = reader.read::<wasmparser::Export<'_>>() {
                export.name.encode(&mut contents);
                let (kind, index) = match export.kind {
                    ExternalKind::Func => {
                        functions += 1;
                        (0, wrapper + functions - 1)
                    }
                    ExternalKind::Table => (1, export.index),
                    ExternalKind::Memory => (2, export.index),
                    ExternalKind::Global => (3, export.index),
                    _ => (4, export.index),
                };
                contents.push(kind);
                index.encode(&mut contents);
            }
        } else {
            contents.extend_from_slice(entries);
        }
        MEMORY_EXPORT.encode(&mut contents);
        contents.push(2);
        self.program.memories.encode(&mut contents);
        for (kind, index) in inner {
            inner_export(kind, index).as_str().encode(&mut contents);
            contents.push(match kind {
                Inner::Function => 0,
                Inner::Table => 1,
                Inner::Memory => 2,
                Inner::Global => 3,
            });
            index.encode(&mut contents);
        }
        if let Some(taken) = self.taken {
            TAKEN_EXPORT.encode(&mut contents);
            contents.push(3);
            taken.encode(&mut contents);
        }
        if snapshots {
            SNAPSHOT_EXPORT.encode(&mut contents);
            contents.push(1);
            self.program.tables.encode(&mut contents);
        }
        for (name, index) in of_paths {
            name.encode(&mut contents);
            contents.push(3);
            index.encode(&mut contents);
        }
        if let Some(start) = start {
            START_EXPORT.encode(&mut contents);
            contents.push(0);
            start.as_u32().encode(&mut contents);
        }
        self.section(EXPORT, &contents);
    }

    /// Returns the parts of the original that are exported for snapshots.
    fn inner(&self) -> Vec<(Inner, u32)> {
        let program = self.program;
        let all = [
            (Inner::Memory, program.memories),
            (Inner::Table, program.tables),
            (Inner::Global, program.globals.len() as u32),
        ];
        let all = all.into_iter();
        let all = all.flat_map(|(kind, count)| (0..count).map(move |index| (kind, index)));
        let functions = (program.imports.len() + program.functions.len()) as u32;
        let functions = (0..functions).filter(|&index| {
            let id = FuncId::from_u32(index);
            program.address_taken.contains(id)
        });
        let functions = functions.map(|index| (Inner::Function, index));
        all.chain(functions).collect()
    }

    /// Appends the segment with the first bytes of the probes' memory.
    fn data_segment(&self, out: &mut Vec<u8>) {
        let mut header = vec![0u8; HEADER as usize];
        let mut put = |at: u64, bytes: &[u8]| {
            header[at as usize..at as usize + bytes.len()].copy_from_slice(bytes)
        };
        put(0, &LABEL);
        put(VERSION_AT, &LAYOUT_VERSION.to_le_bytes());
        if let Some(external) = &self.options.external {
            put(VERSION_AT + 4, &external.mode.to_le_bytes());
            put(VERSION_AT + 6, &external.flags.to_le_bytes());
            put(VERSION_AT + 8, &external.digest);
        }
        put(COUNT_AT, &u64::from(self.layout.counters).to_le_bytes());
        put(CLOCK_AT, &0u64.to_le_bytes());
        put(LIMIT_AT, &u64::MAX.to_le_bytes());
        put(
            ENTRIES_AT,
            &u64::from(self.layout.entry_counters).to_le_bytes(),
        );
        2u32.encode(out);
        self.program.memories.encode(out);
        Instruction::I32Const(0).encode(out);
        Instruction::End.encode(out);
        header.as_slice().encode(out);
    }
}
