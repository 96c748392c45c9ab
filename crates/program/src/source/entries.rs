//! Reads the names and extents of single debugging information entries.

use std::sync::{Arc, PoisonError};

use gimli::{AttributeValue, DebugInfoOffset, RangeListsOffset, UnitOffset, UnitRef};

use super::{FileId, Location, Slice, SourceMap};

/// Identifies an entry by the position of its unit and the entry's offset in the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntryId {
    pub(super) unit: u32,
    pub(super) offset: UnitOffset,
}

/// An entry's description of a function. It comes from the entry itself, or from the entry's origin
/// or specification.
#[derive(Debug, Default)]
pub(super) struct Description {
    linkage_name: Option<String>,
    name: Option<String>,
    file: Option<FileId>,
    line: Option<u32>,
}

impl Description {
    /// Returns the name that a linker would see or, if there is none, the name in the source.
    pub(super) fn name(&self) -> Option<String> {
        self.linkage_name.clone().or_else(|| self.name.clone())
    }

    /// Returns the name in the source.
    pub(super) fn written_name(&self) -> Option<String> {
        self.name.clone()
    }

    /// Returns the place of the function's declaration.
    pub(super) fn declared(&self) -> Option<Location> {
        Some(Location {
            file: self.file?,
            line: self.line.filter(|line| *line > 0)?,
            column: 0,
        })
    }
}

impl<'a> SourceMap<'a> {
    pub(super) fn unit(&self, unit: u32) -> UnitRef<'_, Slice<'a>> {
        self.units[unit as usize].dwarf.unit_ref(&self.dwarf)
    }

    /// Returns the file that an index denotes in a unit's entries.
    pub(super) fn file(&self, unit: u32, index: u64) -> Option<FileId> {
        let unit = &self.units[unit as usize];
        // Before DWARF 5, index 0 means no file.
        if index == 0 && unit.dwarf.header.version() < 5 {
            return None;
        }
        unit.files
            .get(usize::try_from(index).ok()?)
            .copied()
            .flatten()
    }

    /// Describes a function, and follows its origin and specification. The entry that is nearest to
    /// the instance takes precedence. Each entry is read once.
    pub(super) fn describe(&self, entry: EntryId) -> Arc<Description> {
        let known = || {
            self.described
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = known().get(&entry) {
            return Arc::clone(known);
        }
        let description = Arc::new(self.read_description(entry));
        known().insert(entry, Arc::clone(&description));
        description
    }

    fn read_description(&self, entry: EntryId) -> Description {
        // Real compilers need two steps, but hostile input may contain cycles.
        const STEPS: usize = 8;
        let mut description = Description::default();
        let mut next = Some(entry);
        for _ in 0..STEPS {
            let Some(entry) = next else { break };
            next = self.describe_one(entry, &mut description).unwrap_or(None);
        }
        description
    }

    fn describe_one(&self, id: EntryId, into: &mut Description) -> gimli::Result<Option<EntryId>> {
        let unit = self.unit(id.unit);
        let mut entries = unit.entries_raw(Some(id.offset))?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(None);
        };
        let mut origin = None;
        let text = |value| {
            let text = unit.attr_string(value).ok()?.to_string_lossy().into_owned();
            (!text.is_empty()).then_some(text)
        };
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    into.linkage_name = into.linkage_name.take().or_else(|| text(value));
                }
                gimli::DW_AT_name => into.name = into.name.take().or_else(|| text(value)),
                gimli::DW_AT_decl_file => {
                    let file = file_index(&value).and_then(|index| self.file(id.unit, index));
                    into.file = into.file.or(file);
                }
                gimli::DW_AT_decl_line => {
                    let line = value
                        .udata_value()
                        .and_then(|line| u32::try_from(line).ok());
                    into.line = into.line.or(line);
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    origin = origin.or_else(|| self.reference(id.unit, value));
                }
                _ => {}
            }
        }
        Ok(origin)
    }

    /// Returns the entry to which an attribute refers.
    fn reference(&self, unit: u32, value: AttributeValue<Slice<'a>>) -> Option<EntryId> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryId { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => self.entry_at(offset),
            _ => None,
        }
    }

    fn entry_at(&self, at: DebugInfoOffset) -> Option<EntryId> {
        let after = self
            .units
            .partition_point(|unit| unit.dwarf.header.offset().0 <= at.0);
        let unit = after.checked_sub(1)?;
        let offset = at.to_unit_offset(&self.units[unit].dwarf.header)?;
        Some(EntryId {
            unit: unit as u32,
            offset,
        })
    }
}

/// Returns the file index in an attribute.
pub(super) fn file_index(value: &AttributeValue<Slice<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) => Some(*index),
        other => other.udata_value(),
    }
}

/// Whether linkers use this address (0, −1 or −2) for removed code.
pub(super) fn is_tombstone(address: u64, size: u8) -> bool {
    let last = u64::MAX >> (64 - 8 * u32::from(size.clamp(1, 8)));
    address == 0 || address >= last - 1
}

/// The addresses that an entry covers, collected attribute by attribute.
#[derive(Default)]
pub(super) struct Extent {
    low: Option<u64>,
    high: Option<u64>,
    length: Option<u64>,
    ranges: Option<RangeListsOffset>,
}

impl Extent {
    /// Records an attribute if it concerns addresses.
    pub(super) fn attribute<'a>(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        attribute: &gimli::Attribute<Slice<'a>>,
    ) -> gimli::Result<()> {
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = unit.attr_address(value)?,
            gimli::DW_AT_high_pc => match value.udata_value() {
                Some(length) => self.length = Some(length),
                None => self.high = unit.attr_address(value)?,
            },
            gimli::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether the entry covers code that the linker removed.
    pub(super) fn is_removed(&self, size: u8) -> bool {
        self.low.is_some_and(|low| is_tombstone(low, size))
    }

    /// Calls `each` with every range of addresses.
    pub(super) fn each(
        &self,
        unit: UnitRef<'_, Slice<'_>>,
        mut each: impl FnMut(u64, u64),
    ) -> gimli::Result<()> {
        if let Some(offset) = self.ranges {
            let mut ranges = unit.ranges(offset)?;
            while let Some(range) = ranges.next()? {
                each(range.begin, range.end);
            }
        } else if let Some(low) = self.low {
            let end = self.high.or_else(|| low.checked_add(self.length?));
            end.into_iter().for_each(|end| each(low, end));
        }
        Ok(())
    }
}
