//! Builds modules with empty code and with debug information that the tests write, and an
//! artificial moment of a run.

use std::collections::HashMap;
use std::ops::Range;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_variables::{
    FunctionScopes, Limits, Machine, Object, PathError, Unavailable, Variable, Variables, Word,
};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, Expression, Location, LocationList, RangeList,
    Sections, UnitEntryId,
};
use gimli::{DwAt, DwAte, DwTag, Encoding, Format, LittleEndian};

/// Returns the first function that the module defines. Function 0 is imported.
pub fn func() -> FuncId {
    FuncId::from_u32(1)
}

/// The DWARF addresses of the function's body.
pub const BODY: Range<u64> = 2..102;

/// A module under construction.
pub struct Guest {
    pub dwarf: DwarfUnit,
}

impl Guest {
    pub fn new(version: u16) -> Self {
        let encoding = Encoding {
            address_size: 4,
            format: Format::Dwarf32,
            version,
        };
        let mut dwarf = DwarfUnit::new(encoding);
        let root = dwarf.unit.root();
        let name = AttributeValue::String(b"guest.c".to_vec());
        dwarf.unit.get_mut(root).set(gimli::DW_AT_name, name);
        let low = AttributeValue::Address(Address::Constant(0));
        dwarf.unit.get_mut(root).set(gimli::DW_AT_low_pc, low);
        Self { dwarf }
    }

    pub fn root(&self) -> UnitEntryId {
        self.dwarf.unit.root()
    }

    pub fn add(&mut self, parent: UnitEntryId, tag: DwTag, name: &str) -> UnitEntryId {
        let id = self.dwarf.unit.add(parent, tag);
        if !name.is_empty() {
            self.set(id, gimli::DW_AT_name, AttributeValue::String(name.into()));
        }
        id
    }

    pub fn set(&mut self, id: UnitEntryId, name: DwAt, value: AttributeValue) {
        self.dwarf.unit.get_mut(id).set(name, value);
    }

    pub fn refer(&mut self, id: UnitEntryId, name: DwAt, to: UnitEntryId) {
        self.set(id, name, AttributeValue::UnitRef(to));
    }

    /// Adds a type, or another entry that refers to a type.
    pub fn typed(
        &mut self,
        parent: UnitEntryId,
        tag: DwTag,
        name: &str,
        of: UnitEntryId,
    ) -> UnitEntryId {
        let id = self.add(parent, tag, name);
        self.refer(id, gimli::DW_AT_type, of);
        id
    }

    pub fn base(&mut self, name: &str, encoding: DwAte, bytes: u64) -> UnitEntryId {
        let id = self.add(self.root(), gimli::DW_TAG_base_type, name);
        self.set(
            id,
            gimli::DW_AT_encoding,
            AttributeValue::Encoding(encoding),
        );
        self.set(id, gimli::DW_AT_byte_size, AttributeValue::Udata(bytes));
        id
    }

    pub fn int(&mut self) -> UnitEntryId {
        self.base("int", gimli::DW_ATE_signed, 4)
    }

    pub fn pointer(&mut self, to: UnitEntryId) -> UnitEntryId {
        self.typed(self.root(), gimli::DW_TAG_pointer_type, "", to)
    }

    pub fn array(&mut self, of: UnitEntryId, counts: &[u64]) -> UnitEntryId {
        let id = self.typed(self.root(), gimli::DW_TAG_array_type, "", of);
        for &count in counts {
            let range = self.add(id, gimli::DW_TAG_subrange_type, "");
            self.set(range, gimli::DW_AT_count, AttributeValue::Udata(count));
        }
        id
    }

    pub fn record(
        &mut self,
        name: &str,
        bytes: u64,
        members: &[(&str, UnitEntryId, u64)],
    ) -> UnitEntryId {
        let id = self.add(self.root(), gimli::DW_TAG_structure_type, name);
        self.set(id, gimli::DW_AT_byte_size, AttributeValue::Udata(bytes));
        for &(name, of, offset) in members {
            self.member(id, name, of, offset);
        }
        id
    }

    pub fn member(
        &mut self,
        of: UnitEntryId,
        name: &str,
        type_: UnitEntryId,
        offset: u64,
    ) -> UnitEntryId {
        let id = self.typed(of, gimli::DW_TAG_member, name, type_);
        self.set(
            id,
            gimli::DW_AT_data_member_location,
            AttributeValue::Udata(offset),
        );
        id
    }

    pub fn code(&mut self, id: UnitEntryId, code: Range<u64>) {
        let low = AttributeValue::Address(Address::Constant(code.start));
        self.set(id, gimli::DW_AT_low_pc, low);
        let length = AttributeValue::Udata(code.end - code.start);
        self.set(id, gimli::DW_AT_high_pc, length);
    }

    pub fn ranges(&mut self, id: UnitEntryId, ranges: &[Range<u64>]) {
        let ranges = ranges.iter().map(|range| gimli::write::Range::StartEnd {
            begin: Address::Constant(range.start),
            end: Address::Constant(range.end),
        });
        let list = self.dwarf.unit.ranges.add(RangeList(ranges.collect()));
        self.set(id, gimli::DW_AT_ranges, AttributeValue::RangeListRef(list));
    }

    /// Adds the function, with its frame base in local 5.
    pub fn function(&mut self) -> UnitEntryId {
        let id = self.add(self.root(), gimli::DW_TAG_subprogram, "f");
        self.code(id, BODY);
        let base = expression(|e| {
            e.op_wasm_local(5);
            e.op(gimli::DW_OP_stack_value);
        });
        self.set(id, gimli::DW_AT_frame_base, AttributeValue::Exprloc(base));
        id
    }

    pub fn variable(&mut self, parent: UnitEntryId, name: &str, of: UnitEntryId) -> UnitEntryId {
        self.typed(parent, gimli::DW_TAG_variable, name, of)
    }

    /// Adds a variable with the location that `ops` writes.
    pub fn located(
        &mut self,
        parent: UnitEntryId,
        name: &str,
        of: UnitEntryId,
        ops: impl FnOnce(&mut Expression),
    ) -> UnitEntryId {
        let id = self.variable(parent, name, of);
        let location = AttributeValue::Exprloc(expression(ops));
        self.set(id, gimli::DW_AT_location, location);
        id
    }

    pub fn list(&mut self, id: UnitEntryId, name: DwAt, list: Vec<(Range<u64>, Expression)>) {
        let entries = list.into_iter().map(|(range, data)| Location::StartEnd {
            begin: Address::Constant(range.start),
            end: Address::Constant(range.end),
            data,
        });
        let list = self
            .dwarf
            .unit
            .locations
            .add(LocationList(entries.collect()));
        self.set(id, name, AttributeValue::LocationListRef(list));
    }

    pub fn finish(mut self) -> Vec<u8> {
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        self.dwarf.write(&mut sections).unwrap();
        let mut found = Vec::new();
        sections
            .for_each(|id, data| {
                found.push((id.name(), data.slice().to_vec()));
                Ok::<_, gimli::write::Error>(())
            })
            .unwrap();
        module(&found)
    }
}

pub fn expression(ops: impl FnOnce(&mut Expression)) -> Expression {
    let mut expression = Expression::new();
    ops(&mut expression);
    expression
}

/// Returns a module with an imported function, two defined functions of 100 and 50 bytes, and
/// custom sections.
pub fn module(custom: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
    use wasm_encoder as e;
    let mut types = e::TypeSection::new();
    types.ty().function([], []);
    let mut imports = e::ImportSection::new();
    imports.import("env", "f", e::EntityType::Function(0));
    let mut functions = e::FunctionSection::new();
    functions.function(0).function(0);
    let mut code = e::CodeSection::new();
    for bytes in [100, 50] {
        // The body has no locals, only zeros, and the end.
        let mut body = vec![0];
        body.resize(bytes - 1, 0x01);
        body.push(0x0b);
        code.raw(&body);
    }
    let mut module = e::Module::new();
    module
        .section(&types)
        .section(&imports)
        .section(&functions)
        .section(&code);
    for (name, data) in custom {
        module.section(&e::CustomSection {
            name: (*name).into(),
            data: data.into(),
        });
    }
    module.finish()
}

/// Returns the offset of a DWARF address.
pub fn offset(module: &[u8], address: u64) -> OrigOffset {
    let code = wasmparser::Parser::new(0)
        .parse_all(module)
        .find_map(|payload| match payload {
            Ok(wasmparser::Payload::CodeSectionStart { range, .. }) => Some(range.start as u32),
            _ => None,
        });
    OrigOffset(code.expect("the module has code") + address as u32)
}

/// An artificial moment.
#[derive(Default)]
pub struct Moment {
    pub locals: HashMap<u32, Word>,
    pub globals: HashMap<u32, Word>,
    pub stack: HashMap<u32, Word>,
    pub entry: HashMap<u32, Word>,
    pub memory: Vec<u8>,
}

impl Moment {
    /// Creates a moment with a memory of 64 KiB, filled with 0xcc, and the frame at 0x100.
    pub fn new() -> Self {
        let mut moment = Self {
            memory: vec![0xcc; 1 << 16],
            ..Self::default()
        };
        moment.locals.insert(5, Word::w32(0x100));
        moment
    }

    pub fn write(&mut self, address: usize, bytes: &[u8]) {
        self.memory[address..address + bytes.len()].copy_from_slice(bytes);
    }

    pub fn word(&mut self, address: usize, value: u32) {
        self.write(address, &value.to_le_bytes());
    }
}

impl Machine for Moment {
    fn local(&self, index: u32) -> Option<Word> {
        self.locals.get(&index).copied()
    }

    fn global(&self, index: u32) -> Option<Word> {
        self.globals.get(&index).copied()
    }

    fn stack(&self, index: u32) -> Option<Word> {
        self.stack.get(&index).copied()
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let Some(from) = usize::try_from(address)
            .ok()
            .and_then(|at| self.memory.get(at..))
        else {
            return false;
        };
        from.get(..into.len()).is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }

    fn at_entry(&self, local: u32) -> Option<Word> {
        self.entry.get(&local).copied()
    }

    fn function(&self, index: u64) -> Option<String> {
        (index == 7).then(|| "seven".into())
    }
}

/// A finished and opened module, with its first function.
pub struct Opened {
    pub module: &'static [u8],
    pub variables: Variables<'static>,
}

impl Opened {
    pub fn new(guest: Guest) -> Self {
        // The leak does not matter, because tests end soon.
        let module: &'static [u8] = guest.finish().leak();
        let variables = Variables::open(module).unwrap();
        Self { module, variables }
    }

    pub fn at(&self, address: u64) -> OrigOffset {
        offset(self.module, address)
    }

    pub fn function(&self) -> FunctionScopes {
        self.variables.function(func()).unwrap()
    }

    pub fn in_scope(&self, address: u64) -> Vec<Variable> {
        let found = self.variables.in_scope(func(), self.at(address)).unwrap();
        assert_eq!(
            self.variables.warnings().collect::<Vec<_>>(),
            Vec::<&str>::new()
        );
        found
    }

    pub fn locate(
        &self,
        name: &str,
        address: u64,
        machine: &Moment,
    ) -> Result<Object, Unavailable> {
        let found = self.in_scope(address).into_iter().find(|v| v.name == name);
        self.variables
            .locate(&found.expect("in scope"), Some(self.at(address)), machine)
    }

    pub fn resolve(&self, path: &str, address: u64, machine: &Moment) -> Result<Object, PathError> {
        let place = (&self.function(), self.at(address));
        self.variables.resolve(&path.parse()?, Some(place), machine)
    }

    /// Returns the text of a path's value, or of the error.
    pub fn show(&self, path: &str, machine: &Moment) -> String {
        self.show_with(path, &Limits::default(), machine)
    }

    pub fn show_with(&self, path: &str, limits: &Limits, machine: &Moment) -> String {
        match self.resolve(path, 10, machine) {
            Ok(object) => self.variables.render(&object, limits, machine).to_string(),
            Err(error) => format!("error: {error}"),
        }
    }
}
