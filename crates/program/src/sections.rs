//! Finds a module's code bodies and custom sections.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use wasmparser::{Parser, Payload};

use crate::error::offset;

/// Returns the base of the addresses in debug information. Usually, this is the start of the code
/// section's payload, which begins with the number of functions. The `wast` crate, which creates
/// debug information for WebAssembly text, counts addresses from the end of that number. The crate
/// names itself as the producer in `.debug_info`.
pub fn address_base(payload: OrigOffset, functions: usize, debug_info: &[u8]) -> OrigOffset {
    // The first entry's producer is an inline string. It follows the first unit's header (11 bytes
    // in version 4, 12 in version 5) and the entry's abbreviation code (1 byte).
    let mut starts = [12, 13]
        .map(|at| debug_info.get(at..))
        .into_iter()
        .flatten();
    if !starts.any(|entry| entry.starts_with(b"wast ")) {
        return payload;
    }
    let digits = (usize::BITS - functions.leading_zeros()).div_ceil(7).max(1);
    OrigOffset(payload.0.saturating_add(digits))
}

/// The code section and the readable custom sections of a module.
#[derive(Debug, Default)]
pub(crate) struct Sections<'a> {
    /// The code section's payload. DWARF counts addresses from its start.
    pub(crate) code: Range<OrigOffset>,
    /// The function bodies, ascending.
    pub(crate) bodies: Vec<Range<OrigOffset>>,
    /// The offset of each body's first operator.
    pub(crate) operators: Vec<OrigOffset>,
    /// The custom sections, each with its name, its contents, and the offset of its contents.
    pub(crate) custom: Vec<(&'a str, &'a [u8], usize)>,
    /// Warnings about unreadable parts.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Sections<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        let mut sections = Self::default();
        let range = |range: Range<usize>| offset(range.start)..offset(range.end);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload {
                Ok(Payload::CodeSectionStart { range: code, .. }) => sections.code = range(code),
                Ok(Payload::CodeSectionEntry(body)) => {
                    let operators = body
                        .get_operators_reader()
                        .map_or(body.range().start, |all| all.original_position());
                    sections.bodies.push(range(body.range()));
                    sections.operators.push(offset(operators));
                }
                Ok(Payload::CustomSection(custom)) => {
                    sections
                        .custom
                        .push((custom.name(), custom.data(), custom.data_offset()));
                }
                Ok(_) => {}
                Err(error) => {
                    sections.warnings.push(error.to_string());
                    break;
                }
            }
        }
        let (info, _) = sections.custom(".debug_info").unwrap_or_default();
        sections.code.start = address_base(sections.code.start, sections.bodies.len(), info);
        sections
    }

    /// Returns the contents of the first custom section with this name.
    pub(crate) fn custom(&self, name: &str) -> Option<(&'a [u8], usize)> {
        self.custom
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|&(_, data, at)| (data, at))
    }

    /// Returns the body that contains a DWARF address. Addresses outside all bodies either mark
    /// code that the linker removed ("tombstones": 0, −1, −2 and the addresses after them) or are
    /// wrong.
    pub(crate) fn body_at(&self, address: u64) -> Option<&Range<OrigOffset>> {
        let at = self.offset(address)?;
        let after = self.bodies.partition_point(|body| body.start <= at);
        self.bodies[..after].last().filter(|body| at < body.end)
    }

    /// Returns the module offset of a DWARF address, if the address is within the code section.
    pub(crate) fn offset(&self, address: u64) -> Option<OrigOffset> {
        let at = u32::try_from(address)
            .ok()?
            .checked_add(self.code.start.0)?;
        (at <= self.code.end.0).then_some(OrigOffset(at))
    }
}
