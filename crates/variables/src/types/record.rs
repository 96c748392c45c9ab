//! Reads structures, unions, classes, and Rust enumerations with their variants.

use std::sync::Arc;

use gimli::AttributeValue;

use super::constant::constant;
use super::read::Reader;
use super::{
    BitField, ComputedOffset, Member, MemberOffset, Record, RecordKind, TypeKind, Types, Variant,
    VariantPart,
};
use crate::DebugError;
use crate::debug::{Entry, Next, Slice};

impl<'a> Reader<'_, 'a> {
    pub(super) fn record(
        &self,
        entry: &Entry<'a>,
        kind: RecordKind,
    ) -> Result<TypeKind, DebugError> {
        let id = entry.id;
        let mut record = Record {
            kind,
            declaration: entry.flag(gimli::DW_AT_declaration),
            members: Vec::new(),
            variants: Vec::new(),
            arguments: Vec::new(),
        };
        // This is the discriminant of the open variant part, with the depth of that part.
        let mut discriminant = None;
        self.walk(id, |depth, entry| {
            Ok(match (depth, entry.tag) {
                (0, _) => Next::Into,
                (1, gimli::DW_TAG_member | gimli::DW_TAG_inheritance) => {
                    record.members.extend(self.member(&entry)?);
                    Next::Over
                }
                (1, gimli::DW_TAG_template_type_parameter) => {
                    let name = self.name(&entry)?.unwrap_or_default();
                    record.arguments.push((name, self.target(&entry)));
                    Next::Over
                }
                (1, gimli::DW_TAG_variant_part) => {
                    let value = entry.value(gimli::DW_AT_discr);
                    discriminant = value.and_then(|value| self.debug.reference(id.unit, value));
                    record.variants.push(VariantPart {
                        discriminant: None,
                        variants: Vec::new(),
                    });
                    Next::Into
                }
                (2, gimli::DW_TAG_member) => {
                    if let Some(part) = record
                        .variants
                        .last_mut()
                        .filter(|_| discriminant == Some(entry.id))
                    {
                        part.discriminant = self.member(&entry)?;
                    }
                    Next::Over
                }
                (2, gimli::DW_TAG_variant) => {
                    let when = self.when(&entry);
                    let variant = Variant {
                        when,
                        members: Vec::new(),
                    };
                    if let Some(part) = record.variants.last_mut() {
                        part.variants.push(variant);
                    }
                    Next::Into
                }
                (3, gimli::DW_TAG_member) => {
                    let variant = record
                        .variants
                        .last_mut()
                        .and_then(|part| part.variants.last_mut());
                    if let Some(variant) = variant {
                        variant.members.extend(self.member(&entry)?);
                    }
                    Next::Over
                }
                _ => Next::Over,
            })
        })?;
        Ok(TypeKind::Record(Arc::new(record)))
    }

    /// Reads a member. Returns `None` for a static member, which objects do not contain.
    fn member(&self, entry: &Entry<'a>) -> Result<Option<Member>, DebugError> {
        if entry.flag(gimli::DW_AT_external) || entry.flag(gimli::DW_AT_declaration) {
            return Ok(None);
        }
        let place = entry.value(gimli::DW_AT_data_member_location);
        let mut offset = match &place {
            None => MemberOffset::Bytes(0),
            Some(AttributeValue::Exprloc(place)) => match self.plain_offset(entry, place) {
                Some(bytes) => MemberOffset::Bytes(bytes),
                None => MemberOffset::Computed(ComputedOffset(entry.id)),
            },
            Some(value) => MemberOffset::Bytes(value.udata_value().ok_or(DebugError::NoPlace {
                at: self.debug.at(entry.id),
            })?),
        };
        let mut bits = None;
        if let Some(count) = entry.number(gimli::DW_AT_bit_size) {
            let first = match (entry.number(gimli::DW_AT_data_bit_offset), &offset) {
                (Some(first), _) => Some(first),
                (None, MemberOffset::Bytes(bytes)) => self.old_bit_offset(entry, count, *bytes)?,
                (None, MemberOffset::Computed(_)) => None,
            };
            let fits = first.and_then(|first| first.checked_add(count)).is_some()
                && (1..=128).contains(&count);
            let (Some(first), true) = (first, fits) else {
                return Err(DebugError::NoPlace {
                    at: self.debug.at(entry.id),
                });
            };
            offset = MemberOffset::Bytes(first / 8);
            bits = Some(BitField {
                first: (first % 8) as u32,
                count: count as u32,
            });
        }
        let name = self.name(entry)?;
        let base = entry.tag == gimli::DW_TAG_inheritance;
        Ok(Some(Member {
            name,
            type_ref: self.target(entry),
            offset,
            bits,
            base,
        }))
    }

    /// Returns a member's distance in bytes from the beginning of its record, if its location is an
    /// expression that only adds a distance. DWARF 2 has no other form.
    fn plain_offset(&self, entry: &Entry<'a>, place: &gimli::Expression<Slice<'a>>) -> Option<u64> {
        let encoding = self.debug.unit(entry.id.unit).encoding();
        let mut rest = place.0;
        match gimli::Operation::parse(&mut rest, encoding) {
            Ok(gimli::Operation::PlusConstant { value }) if rest.is_empty() => Some(value),
            _ => None,
        }
    }

    /// Returns the first bit of a bit-field from its form in DWARF 2 and 3, which counts from the
    /// most significant bit of the containing integer. A packed bit-field that extends beyond this
    /// integer begins below 0. Without this form, the bit-field begins with the member's first
    /// byte.
    fn old_bit_offset(
        &self,
        entry: &Entry<'a>,
        count: u64,
        bytes: u64,
    ) -> Result<Option<u64>, DebugError> {
        let from_top = match entry.value(gimli::DW_AT_bit_offset) {
            None => return Ok(bytes.checked_mul(8)),
            Some(value) => match value.udata_value() {
                Some(below) => i64::try_from(below).ok(),
                None => value.sdata_value(),
            },
        };
        let storage = match entry.number(gimli::DW_AT_byte_size) {
            Some(size) => Some(size),
            None => super::size(&Types::default(), self.debug, self.target(entry))?,
        };
        let first = || {
            let bits = i64::try_from(storage?.checked_mul(8)?).ok()?;
            let above = bits.checked_sub(from_top?)?;
            let above = above.checked_sub(i64::try_from(count).ok()?)?;
            bytes.checked_mul(8)?.checked_add_signed(above)
        };
        Ok(first())
    }

    /// Returns the discriminants that select a variant, or none for the default variant.
    fn when(&self, entry: &Entry<'a>) -> Vec<(u128, u128)> {
        if let Some(value) = entry.value(gimli::DW_AT_discr_value).and_then(constant) {
            return vec![(value, value)];
        }
        let Some(AttributeValue::Block(mut list)) = entry.value(gimli::DW_AT_discr_list) else {
            return Vec::new();
        };
        let mut when = Vec::new();
        while let Ok(label) = gimli::Reader::read_u8(&mut list) {
            let mut number = || gimli::Reader::read_uleb128(&mut list).map(u128::from);
            let Ok(low) = number() else { break };
            let high = if label == gimli::DW_DSC_range.0 {
                number()
            } else {
                Ok(low)
            };
            when.extend(high.map(|high| (low, high)));
        }
        when
    }
}
