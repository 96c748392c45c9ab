//! Finds a module's code and debug sections.

use std::ops::Range;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::address_base;
use wasmparser::{Parser, Payload, TypeRef};

/// The code section, the function bodies and the custom sections of a module.
#[derive(Debug, Default)]
pub(crate) struct Sections<'a> {
    module: &'a [u8],
    /// The code, from the offset at which DWARF's addresses start to the end of the code section.
    code: Range<u32>,
    /// The function bodies, ascending.
    bodies: Vec<Range<OrigOffset>>,
    /// The number of imported functions. Imported functions come first in the index space.
    imported: u32,
    custom: Vec<(&'a str, &'a [u8])>,
    /// The reason why the module could not be read to its end.
    pub(crate) failure: Option<String>,
}

impl<'a> Sections<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        let mut sections = Self {
            module: bytes,
            ..Self::default()
        };
        if let Err(error) = sections.collect(bytes) {
            sections.failure = Some(error.to_string());
        }
        let start = OrigOffset(sections.code.start);
        let info = sections.custom(".debug_info");
        sections.code.start = address_base(start, sections.bodies.len(), info).0;
        sections
    }

    fn collect(&mut self, bytes: &'a [u8]) -> wasmparser::Result<()> {
        // Modules of more than 4 GiB have been refused before.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let function =
                            matches!(import?.ty, TypeRef::Func(_) | TypeRef::FuncExact(_));
                        self.imported += u32::from(function);
                    }
                }
                Payload::CodeSectionStart { range, .. } => {
                    self.code = offset(range.start)..offset(range.end);
                }
                Payload::CodeSectionEntry(body) => {
                    let range = body.range();
                    let (start, end) = (offset(range.start), offset(range.end));
                    self.bodies.push(OrigOffset(start)..OrigOffset(end));
                }
                Payload::CustomSection(custom) => self.custom.push((custom.name(), custom.data())),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the contents of the first custom section with this name, or an empty slice if there
    /// is none.
    pub(crate) fn custom(&self, name: &str) -> &'a [u8] {
        let found = self.custom.iter().find(|(own, _)| *own == name);
        found.map_or(&[], |(_, data)| data)
    }

    /// Returns all bodies, ascending.
    pub(crate) fn bodies(&self) -> &[Range<OrigOffset>] {
        &self.bodies
    }

    /// Returns the body of a function that the module defines.
    pub(crate) fn body(&self, func: FuncId) -> Option<Range<OrigOffset>> {
        let index = func.as_u32().checked_sub(self.imported)?;
        self.bodies.get(index as usize).cloned()
    }

    /// Returns the bytes of a body, including its declarations of locals.
    pub(crate) fn code(&self, body: &Range<OrigOffset>) -> &'a [u8] {
        let (start, end) = (body.start.0 as usize, body.end.0 as usize);
        self.module.get(start..end).unwrap_or_default()
    }

    /// Returns DWARF's address for an offset, or `None` before the code section.
    pub(crate) fn address(&self, offset: OrigOffset) -> Option<u64> {
        offset.0.checked_sub(self.code.start).map(u64::from)
    }

    /// Returns the function that contains an offset, with its body.
    pub(crate) fn function_at(&self, at: OrigOffset) -> Option<(FuncId, Range<OrigOffset>)> {
        let body = self.body_at(at)?;
        let index = self
            .bodies
            .partition_point(|other| other.start < body.start);
        let func = FuncId::from_u32(self.imported.checked_add(index as u32)?);
        Some((func, body.clone()))
    }

    /// Returns the code in a range of addresses. Returns `None` if the range is empty, ends beyond
    /// the code section, or does not begin in a body. Such addresses either mark code that the
    /// linker removed ("tombstones": 0, −1, −2 and the addresses after them) or are wrong.
    pub(crate) fn range(&self, from: u64, to: u64) -> Option<Range<OrigOffset>> {
        let (from, to) = (self.offset(from)?, self.offset(to)?);
        (from < to && self.body_at(from).is_some()).then_some(from..to)
    }

    /// Returns the body that contains an offset.
    pub(crate) fn body_at(&self, at: OrigOffset) -> Option<&Range<OrigOffset>> {
        let after = self.bodies.partition_point(|body| body.start <= at);
        self.bodies[..after].last().filter(|body| at < body.end)
    }

    fn offset(&self, address: u64) -> Option<OrigOffset> {
        let at = u32::try_from(address).ok()?.checked_add(self.code.start)?;
        (at <= self.code.end).then_some(OrigOffset(at))
    }
}
