//! Debug information that the module itself does not have: where it would be.

use afterimage_ids::OrigOffset;
use afterimage_program::NoDebug;

use crate::DebugError;
use crate::debug::{Debug, Next};
use crate::sections::Sections;

/// Why a module without `.debug_info` has none.
pub(crate) fn without(sections: &Sections<'_>) -> DebugError {
    DebugError::None(NoDebug::of(|name| sections.custom(name)))
}

/// The most characters of a name in a message.
const LONGEST: usize = 200;

impl Debug<'_> {
    /// Why a unit does not describe variables, if it describes none at all.
    pub(crate) fn missing(&self, unit: u32) -> Option<DebugError> {
        if let Some(file) = self.separate(unit) {
            return Some(DebugError::Split { file });
        }
        self.is_only_lines(unit).then_some(DebugError::OnlyLines)
    }

    /// The file that has the entries of a unit of which only a skeleton is here.
    pub(crate) fn separate(&self, unit: u32) -> Option<String> {
        let unit = self.unit(unit);
        let file = unit.dwo_name().ok()??;
        let file = unit.attr_string(file).ok()?;
        let file = file.to_string_lossy();
        let shown = file.chars().take(LONGEST).flat_map(char::escape_debug);
        Some(shown.collect())
    }

    /// Whether a unit has nothing but what names the functions of inlined lines: no types, no variables, no frames.
    fn is_only_lines(&self, unit: u32) -> bool {
        let mut only_lines = true;
        let walked = self.walk(
            unit,
            None,
            |_| true,
            |_, entry| {
                only_lines &= match entry.tag {
                    gimli::DW_TAG_compile_unit
                    | gimli::DW_TAG_partial_unit
                    | gimli::DW_TAG_namespace
                    | gimli::DW_TAG_lexical_block
                    | gimli::DW_TAG_inlined_subroutine => true,
                    gimli::DW_TAG_subprogram => entry.value(gimli::DW_AT_frame_base).is_none(),
                    _ => false,
                };
                match only_lines {
                    true => Ok(Next::Into),
                    // There is nothing more to see.
                    false => Err(DebugError::TooMuch { what: "entries" }),
                }
            },
        );
        only_lines && walked.is_ok()
    }

    /// Why there are no variables outside functions, if none is described because of that.
    pub(crate) fn missing_everywhere(&self) -> Option<DebugError> {
        let mut each = (0..self.units()).map(|unit| self.missing(unit));
        let first = each.next()??;
        each.all(|missing| missing.is_some()).then_some(first)
    }

    /// The unit whose code an offset is in, as its first entry says.
    pub(crate) fn unit_at(&self, at: OrigOffset) -> Option<u32> {
        (0..self.units()).find(|&unit| {
            let first = self.first(unit).and_then(|entry| self.code(&entry).ok()?);
            first.is_some_and(|code| code.iter().any(|range| range.contains(&at)))
        })
    }
}
