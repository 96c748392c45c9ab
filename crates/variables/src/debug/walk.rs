//! Visits entries without recursion, because entries may nest to any depth.

use gimli::{DwTag, UnitOffset};

use super::{Debug, Entry, EntryId};
use crate::DebugError;

/// The next step after an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continue with its children.
    Into,
    /// Continue after its children.
    Over,
}

impl<'a> Debug<'a> {
    /// Visits an entry (at depth 0) and its descendants, or a whole unit. `wanted` selects the tags
    /// whose attributes are read. `visit` may skip an entry's descendants. Returns the number of
    /// bytes of the entries passed, including skipped entries.
    pub(crate) fn walk(
        &self,
        unit: u32,
        from: Option<UnitOffset>,
        wanted: impl Fn(DwTag) -> bool,
        mut visit: impl FnMut(isize, Entry<'a>) -> Result<Next, DebugError>,
    ) -> Result<usize, DebugError> {
        let whole = EntryId {
            unit,
            offset: from.unwrap_or(UnitOffset(0)),
        };
        let broken = self.broken(whole);
        let unit_ref = self.unit(unit);
        let mut entries = unit_ref.entries_raw(from).map_err(&broken)?;
        let (mut first, mut over) = (true, None);
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            if !first && depth <= 0 {
                break;
            }
            first = false;
            let Some(abbreviation) = entries.read_abbreviation().map_err(&broken)? else {
                continue;
            };
            let specs = abbreviation.attributes();
            over = over.filter(|over| depth > *over);
            if over.is_some() || !wanted(abbreviation.tag()) {
                entries.skip_attributes(specs).map_err(&broken)?;
                continue;
            }
            let attributes = specs.iter().map(|&spec| entries.read_attribute(spec));
            let entry = Entry {
                id: EntryId { unit, offset },
                tag: abbreviation.tag(),
                attributes: attributes.collect::<gimli::Result<_>>().map_err(&broken)?,
            };
            if visit(depth, entry)? == Next::Over {
                over = Some(depth);
            }
        }
        Ok(entries.next_offset().0.saturating_sub(whole.offset.0))
    }
}
