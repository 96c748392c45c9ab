//! Opens the units of a module's debug information, finds entries, and reads their attributes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use afterimage_ids::OrigOffset;
use gimli::{
    Attribute, AttributeSpecification, AttributeValue, DebugInfoOffset, DebugTypeSignature, DwAt,
    DwTag, Encoding, EndianSlice, Expression, LittleEndian, Operation, Unit, UnitOffset, UnitRef,
};
use wasmparser::{BinaryReader, FunctionBody, Operator};

use crate::DebugError;
use crate::prologue::Prologue;
use crate::sections::Sections;

mod units;
mod walk;

pub(crate) use walk::Next;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Value<'a> = AttributeValue<Slice<'a>>;

/// A value, and the unit in which to interpret it.
type UnitValue<'a> = (u32, Value<'a>);

/// Identifies an entry by the position of its unit and the entry's offset in the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryId {
    pub(crate) unit: u32,
    pub(crate) offset: UnitOffset,
}

/// The place of an attribute: its unit, its offset in the unit, and its form. The cache keeps
/// places instead of values, because values borrow the module: `Debug` must be covariant in its
/// lifetime.
#[derive(Clone, Copy)]
struct AttributePlace {
    unit: u32,
    offset: UnitOffset,
    form: AttributeSpecification,
}

/// The maximum number of origins and specifications followed. Entries that compilers write need
/// two, but hostile entries may form cycles.
const ORIGINS: usize = 8;

/// The maximum number of cached places of attributes.
const ATTRIBUTES: usize = 1 << 14;

/// The maximum length of a name in bytes. The length of a longer name is shown instead. Names of
/// deep C++ templates have a few thousand bytes.
const NAME: usize = 1 << 14;

/// All entries of a module.
pub(crate) struct Debug<'a> {
    pub(crate) sections: Sections<'a>,
    dwarf: gimli::Dwarf<Slice<'a>>,
    /// The units in `.debug_info`, ascending by offset, followed by those in `.debug_types`. The
    /// second type argument of `Unit` equals its default. Writing it out keeps `Debug` covariant in
    /// `'a`.
    units: Vec<Unit<Slice<'a>, usize>>,
    /// The number of units in `.debug_info`.
    in_info: usize,
    /// The type units, by signature.
    signatures: HashMap<u64, EntryId>,
    /// Cached prologues of functions, by the start of their bodies.
    prologues: Mutex<HashMap<OrigOffset, Arc<Prologue>>>,
    /// Places of attributes, because a variable may be examined at thousands of moments.
    attributes: Mutex<HashMap<(EntryId, DwAt), Option<AttributePlace>>>,
    /// Whether a tool rewrote the module without updating the locals named in the debug
    /// information. Empty until checked.
    pub(crate) foreign_locals: OnceLock<bool>,
    pub(crate) warnings: Vec<String>,
}

/// Returns the local with which an expression begins.
pub(crate) fn local_of(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<u32> {
    match Operation::parse(&mut { expression.0 }, encoding) {
        Ok(Operation::WasmLocal { index }) => Some(index),
        _ => None,
    }
}

/// An entry with its attributes.
pub(crate) struct Entry<'a> {
    pub(crate) id: EntryId,
    pub(crate) tag: DwTag,
    pub(crate) attributes: Vec<Attribute<Slice<'a>>>,
}

impl<'a> Entry<'a> {
    pub(crate) fn value(&self, name: DwAt) -> Option<Value<'a>> {
        let found = self.attributes.iter().find(|a| a.name() == name)?;
        Some(found.value())
    }

    pub(crate) fn number(&self, name: DwAt) -> Option<u64> {
        self.value(name)?.udata_value()
    }

    pub(crate) fn flag(&self, name: DwAt) -> bool {
        matches!(self.value(name), Some(AttributeValue::Flag(true)))
    }
}

impl<'a> Debug<'a> {
    pub(crate) fn units(&self) -> u32 {
        // Each unit takes at least a byte of a module of at most 4 GiB.
        self.units.len() as u32
    }

    pub(crate) fn unit(&self, unit: u32) -> UnitRef<'_, Slice<'a>> {
        self.units[unit as usize].unit_ref(&self.dwarf)
    }

    /// Returns the first entry of a unit.
    pub(crate) fn first(&self, unit: u32) -> Option<Entry<'a>> {
        let offset = self.unit(unit).entries().next_dfs().ok()??.offset();
        self.entry(EntryId { unit, offset }).ok()
    }

    /// Returns the total size in bytes of the sections with entries, ranges and names. This size
    /// limits the memory for structures built from these sections.
    pub(crate) fn size(&self) -> usize {
        let sections = [
            ".debug_info",
            ".debug_types",
            ".debug_ranges",
            ".debug_rnglists",
            ".debug_str",
        ];
        sections
            .iter()
            .map(|name| self.sections.custom(name).len())
            .sum()
    }

    /// Returns the prologue of the function that contains an offset.
    pub(crate) fn prologue(&self, at: OrigOffset) -> Option<Arc<Prologue>> {
        let body = self.sections.body_at(at)?;
        let mut known = self
            .prologues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(body.start).or_insert_with(|| {
            let code = self.sections.code(body);
            Arc::new(Prologue::read(code, body.start))
        });
        Some(Arc::clone(found))
    }

    /// Whether this local points to the frame of the function that contains an offset. If so, the
    /// function writes the local only once, at the beginning. Returns `None` if unknown, because
    /// optimised code may reuse the local. O(operators).
    pub(crate) fn is_frame(&self, at: OrigOffset, local: u32) -> Option<bool> {
        let writes = self.writes(at, local)?;
        let first = self.prologue(at)?.is_frame(local);
        first.filter(|&is_frame| writes == 1 || writes > 1 && !is_frame)
    }

    /// Returns the number of writes to a local in a function's code.
    fn writes(&self, at: OrigOffset, local: u32) -> Option<usize> {
        let code = self.sections.code(self.sections.body_at(at)?);
        let body = FunctionBody::new(BinaryReader::new(code, 0));
        let mut count = 0;
        for operator in body.get_operators_reader().ok()? {
            if let Operator::LocalSet { local_index } | Operator::LocalTee { local_index } =
                operator.ok()?
            {
                count += usize::from(local_index == local);
            }
        }
        Some(count)
    }

    /// Returns the entry's offset in `.debug_info`.
    pub(crate) fn at(&self, id: EntryId) -> usize {
        self.unit(id.unit).header.offset().0 + id.offset.0
    }

    pub(crate) fn broken(&self, id: EntryId) -> impl Fn(gimli::Error) -> DebugError {
        let at = self.at(id);
        move |error| DebugError::Malformed { at, error }
    }

    /// Reads one entry.
    pub(crate) fn entry(&self, id: EntryId) -> Result<Entry<'a>, DebugError> {
        let unit = self.unit(id.unit);
        let read = || {
            let mut entries = unit.entries_raw(Some(id.offset))?;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                return Err(gimli::Error::NoEntryAtGivenOffset(id.offset.0 as u64));
            };
            let specs = abbreviation.attributes();
            let attributes = specs.iter().map(|&spec| entries.read_attribute(spec));
            Ok(Entry {
                id,
                tag: abbreviation.tag(),
                attributes: attributes.collect::<gimli::Result<_>>()?,
            })
        };
        read().map_err(self.broken(id))
    }

    /// Returns an attribute of an entry, with the unit in which to interpret its value. If the
    /// entry lacks the attribute, looks in the entry that it completes or is an instance of.
    pub(crate) fn attribute(
        &self,
        id: EntryId,
        name: DwAt,
    ) -> Result<Option<UnitValue<'a>>, DebugError> {
        let known = || {
            self.attributes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let cached = known().get(&(id, name)).copied();
        let place = match cached {
            Some(place) => place,
            None => {
                let found = self.place_of(id, name)?;
                let mut known = known();
                if known.len() >= ATTRIBUTES {
                    known.clear();
                }
                known.insert((id, name), found);
                found
            }
        };
        let Some(AttributePlace { unit, offset, form }) = place else {
            return Ok(None);
        };
        let read = || {
            self.unit(unit)
                .entries_raw(Some(offset))?
                .read_attribute(form)
        };
        let attribute = read().map_err(self.broken(id))?;
        Ok(Some((unit, attribute.value())))
    }

    /// Finds an attribute of an entry, or of the entry that it completes or is an instance of.
    fn place_of(&self, id: EntryId, name: DwAt) -> Result<Option<AttributePlace>, DebugError> {
        let mut next = id;
        for _ in 0..ORIGINS {
            if let Some(place) = self.own_place_of(next, name)? {
                return Ok(Some(place));
            }
            match self.origin(&self.entry(next)?) {
                Some(origin) => next = origin,
                None => return Ok(None),
            }
        }
        Err(DebugError::Endless { at: self.at(id) })
    }

    /// Finds an attribute of an entry.
    fn own_place_of(&self, id: EntryId, name: DwAt) -> Result<Option<AttributePlace>, DebugError> {
        let unit = self.unit(id.unit);
        let find = || {
            let mut entries = unit.entries_raw(Some(id.offset))?;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                return Err(gimli::Error::NoEntryAtGivenOffset(id.offset.0 as u64));
            };
            let mut found = None;
            for &form in abbreviation.attributes() {
                let offset = entries.next_offset();
                if form.name() == name {
                    let unit = id.unit;
                    found = found.or(Some(AttributePlace { unit, offset, form }));
                }
                entries.skip_attributes(&[form])?;
            }
            Ok(found)
        };
        find().map_err(self.broken(id))
    }

    /// Returns the entry that this entry completes or is an instance of.
    pub(crate) fn origin(&self, entry: &Entry<'a>) -> Option<EntryId> {
        let value = entry
            .value(gimli::DW_AT_abstract_origin)
            .or_else(|| entry.value(gimli::DW_AT_specification))
            // This is the declaration of a type with its own unit.
            .or_else(|| entry.value(gimli::DW_AT_signature))?;
        self.reference(entry.id.unit, value)
    }

    /// Returns the name of an entry, or of its origin.
    pub(crate) fn name(&self, id: EntryId) -> Result<Option<String>, DebugError> {
        let name = self.attribute(id, gimli::DW_AT_name)?;
        Ok(name.and_then(|(unit, value)| self.text(unit, value)))
    }

    pub(crate) fn text(&self, unit: u32, value: Value<'a>) -> Option<String> {
        let text = self.unit(unit).attr_string(value).ok()?;
        // Many entries may share one text, and each would get a copy.
        if text.len() > NAME {
            return Some(format!("<a name of {} bytes>", text.len()));
        }
        Some(text.to_string_lossy().into_owned())
    }

    /// Returns the entry for an entry's type.
    pub(crate) fn type_of(&self, id: EntryId) -> Result<Option<EntryId>, DebugError> {
        let value = self.attribute(id, gimli::DW_AT_type)?;
        Ok(value.and_then(|(unit, value)| self.reference(unit, value)))
    }

    /// Returns the entry that an attribute refers to.
    pub(crate) fn reference(&self, unit: u32, value: Value<'a>) -> Option<EntryId> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryId { unit, offset }),
            AttributeValue::DebugInfoRef(at) => self.entry_at(at),
            AttributeValue::DebugTypesRef(DebugTypeSignature(signature)) => {
                self.signatures.get(&signature).copied()
            }
            _ => None,
        }
    }

    fn entry_at(&self, at: DebugInfoOffset) -> Option<EntryId> {
        let before = |unit: &Unit<_>| unit.header.offset().0 <= at.0;
        let units = &self.units[..self.in_info];
        let unit = units.partition_point(before).checked_sub(1)?;
        let offset = at.to_unit_offset(&self.units[unit].header)?;
        Some(EntryId {
            unit: unit as u32,
            offset,
        })
    }

    /// Returns the code that an entry covers, or `None` if the entry does not describe code.
    pub(crate) fn code(
        &self,
        entry: &Entry<'a>,
    ) -> Result<Option<Arc<[Range<OrigOffset>]>>, DebugError> {
        let unit = self.unit(entry.id.unit);
        let read = || {
            let mut found = Vec::new();
            if let Some(value) = entry.value(gimli::DW_AT_ranges)
                && let Some(mut ranges) = unit.attr_ranges(value)?
            {
                while let Some(range) = ranges.next()? {
                    found.extend(self.sections.range(range.begin, range.end));
                }
                return Ok(Some(found));
            }
            let Some(low) = entry.value(gimli::DW_AT_low_pc) else {
                return Ok(None);
            };
            let low = unit.attr_address(low)?;
            let high = match entry.value(gimli::DW_AT_high_pc) {
                None => None,
                Some(value) => match value.udata_value() {
                    Some(length) => low.and_then(|low| low.checked_add(length)),
                    None => unit.attr_address(value)?,
                },
            };
            let range = low.zip(high);
            found.extend(range.and_then(|(low, high)| self.sections.range(low, high)));
            Ok(Some(found))
        };
        let found: Option<Vec<_>> = read().map_err(self.broken(entry.id))?;
        Ok(found.map(Into::into))
    }
}
