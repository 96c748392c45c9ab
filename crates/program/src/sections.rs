//! Where the parts of a module are that hold no semantics.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use wasmparser::{Parser, Payload};

use crate::error::offset;

/// The code section and the custom sections of a module, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Sections<'a> {
    /// The code section's payload: DWARF counts addresses from its start.
    pub(crate) code: Range<OrigOffset>,
    /// The function bodies, ascending.
    pub(crate) bodies: Vec<Range<OrigOffset>>,
    /// Custom sections: name, contents and where these begin.
    pub(crate) custom: Vec<(&'a str, &'a [u8], usize)>,
    /// What could not be read.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Sections<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        let mut sections = Self::default();
        let range = |range: Range<usize>| offset(range.start)..offset(range.end);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload {
                Ok(Payload::CodeSectionStart { range: code, .. }) => sections.code = range(code),
                Ok(Payload::CodeSectionEntry(body)) => sections.bodies.push(range(body.range())),
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
        sections
    }

    /// The contents of the custom section with this name, the first if there are several.
    pub(crate) fn custom(&self, name: &str) -> Option<(&'a [u8], usize)> {
        self.custom
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|&(_, data, at)| (data, at))
    }

    /// The body that an address of DWARF lies in. Addresses outside all bodies stand for code that
    /// the linker removed ("tombstones": 0, −1, −2 and what follows them) or are wrong.
    pub(crate) fn body_at(&self, address: u64) -> Option<&Range<OrigOffset>> {
        let at = self.offset(address)?;
        let after = self.bodies.partition_point(|body| body.start <= at);
        self.bodies[..after].last().filter(|body| at < body.end)
    }

    /// The offset in the module of an address of DWARF, if the code section reaches so far.
    pub(crate) fn offset(&self, address: u64) -> Option<OrigOffset> {
        let at = u32::try_from(address)
            .ok()?
            .checked_add(self.code.start.0)?;
        (at <= self.code.end.0).then_some(OrigOffset(at))
    }
}
