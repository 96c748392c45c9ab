//! From entries to types.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gimli::{AttributeValue, DwTag};

use super::{
    BitField, ComputedOffset, Encoding, Member, MemberOffset, Record, RecordKind, Type, TypeKind,
    TypeRef, Variant, VariantPart,
};
use crate::DebugError;
use crate::debug::{Debug, Entry, EntryId, Next, Value};

/// The types that were read so far. Each takes memory in proportion to its entry and those below it.
#[derive(Default)]
pub(crate) struct Types {
    read: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    types: HashMap<EntryId, Arc<Type>>,
    /// How many bytes their names take.
    names: usize,
}

impl Types {
    /// What a type is.
    pub(crate) fn describe(
        &self,
        debug: &Debug<'_>,
        type_ref: TypeRef,
    ) -> Result<Arc<Type>, DebugError> {
        if type_ref.pointers > 0 {
            let to = TypeRef {
                pointers: type_ref.pointers - 1,
                ..type_ref
            };
            let kind = TypeKind::Pointer {
                to,
                reference: false,
            };
            return Ok(Arc::new(Type {
                name: None,
                bytes: Some(match type_ref.entry {
                    Some(entry) => u64::from(debug.unit(entry.unit).header.address_size()),
                    None => 4,
                }),
                kind,
            }));
        }
        let Some(id) = type_ref.entry else {
            return Ok(Arc::new(Type {
                name: Some("void".into()),
                bytes: None,
                kind: TypeKind::Unspecified,
            }));
        };
        let whole = self.entry(debug, id)?;
        match &whole.kind {
            TypeKind::Array {
                element,
                dimensions,
            } if type_ref.dimensions > 0 => {
                let rest = dimensions
                    .get(type_ref.dimensions as usize..)
                    .unwrap_or_default();
                if rest.is_empty() {
                    return self.describe(debug, *element);
                }
                let kind = TypeKind::Array {
                    element: *element,
                    dimensions: rest.to_vec(),
                };
                Ok(Arc::new(Type {
                    name: None,
                    bytes: None,
                    kind,
                }))
            }
            _ => Ok(whole),
        }
    }

    fn entry(&self, debug: &Debug<'_>, id: EntryId) -> Result<Arc<Type>, DebugError> {
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().types.get(&id) {
            return Ok(found.clone());
        }
        let names = Cell::new(known().names);
        let reader = Reader {
            debug,
            names: &names,
            most: 4 * debug.size() + (1 << 20),
        };
        let read = Arc::new(reader.read(id)?);
        let mut known = known();
        known.names = known.names.max(names.get());
        known.types.insert(id, read.clone());
        Ok(read)
    }
}

struct Reader<'d, 'a> {
    debug: &'d Debug<'a>,
    /// How many bytes names take so far, and may take: entries may share one long name.
    names: &'d Cell<usize>,
    most: usize,
}

impl<'a> Reader<'_, 'a> {
    fn read(&self, id: EntryId) -> Result<Type, DebugError> {
        let entry = self.debug.entry(id)?;
        let address = u64::from(self.debug.unit(id.unit).header.address_size());
        let mut bytes = entry.number(gimli::DW_AT_byte_size);
        let of = self.target(&entry);
        let alias = |qualifier| TypeKind::Alias { qualifier, of };
        let kind = match entry.tag {
            gimli::DW_TAG_base_type => TypeKind::Base(encoding(&entry)),
            gimli::DW_TAG_pointer_type => {
                bytes = bytes.or(Some(address));
                TypeKind::Pointer {
                    to: of,
                    reference: false,
                }
            }
            gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                bytes = bytes.or(Some(address));
                TypeKind::Pointer {
                    to: of,
                    reference: true,
                }
            }
            gimli::DW_TAG_ptr_to_member_type => {
                let class = entry.value(gimli::DW_AT_containing_type);
                let class = class.and_then(|class| self.debug.reference(id.unit, class));
                TypeKind::MemberPointer {
                    to: of,
                    of: TypeRef::new(class),
                }
            }
            gimli::DW_TAG_array_type => TypeKind::Array {
                element: of,
                dimensions: self.dimensions(id)?,
            },
            gimli::DW_TAG_structure_type => self.record(&entry, RecordKind::Structure)?,
            gimli::DW_TAG_class_type => self.record(&entry, RecordKind::Class)?,
            gimli::DW_TAG_union_type => self.record(&entry, RecordKind::Union)?,
            gimli::DW_TAG_enumeration_type => self.enumeration(&entry, bytes)?,
            gimli::DW_TAG_subroutine_type => self.function(id, of)?,
            gimli::DW_TAG_typedef | gimli::DW_TAG_template_alias => alias(None),
            gimli::DW_TAG_const_type => alias(Some("const")),
            gimli::DW_TAG_volatile_type => alias(Some("volatile")),
            gimli::DW_TAG_restrict_type => alias(Some("restrict")),
            gimli::DW_TAG_atomic_type => alias(Some("_Atomic")),
            _ => TypeKind::Unspecified,
        };
        let name = self.name(&entry)?;
        Ok(Type { name, bytes, kind })
    }

    fn name(&self, entry: &Entry<'a>) -> Result<Option<String>, DebugError> {
        let name = entry.value(gimli::DW_AT_name);
        let name = name.and_then(|name| self.debug.text(entry.id.unit, name));
        self.names
            .set(self.names.get() + name.as_ref().map_or(0, String::len));
        if self.names.get() > self.most {
            return Err(DebugError::TooMuch { what: "long names" });
        }
        Ok(name)
    }

    fn target(&self, entry: &Entry<'a>) -> TypeRef {
        let of = entry.value(gimli::DW_AT_type);
        TypeRef::new(of.and_then(|of| self.debug.reference(entry.id.unit, of)))
    }

    fn dimensions(&self, id: EntryId) -> Result<Vec<Option<u64>>, DebugError> {
        let mut found = Vec::new();
        let wanted =
            |tag: DwTag| matches!(tag, gimli::DW_TAG_array_type | gimli::DW_TAG_subrange_type);
        self.debug
            .walk(id.unit, Some(id.offset), wanted, |depth, entry| {
                if depth == 1 {
                    let lower = entry.number(gimli::DW_AT_lower_bound).unwrap_or(0);
                    let upper = entry
                        .value(gimli::DW_AT_upper_bound)
                        .and_then(|upper| upper.sdata_value());
                    let length =
                        upper.and_then(|upper| upper.checked_add(1)?.checked_sub_unsigned(lower));
                    let count = entry
                        .number(gimli::DW_AT_count)
                        .or_else(|| u64::try_from(length?).ok());
                    // Some compilers write −1 for "not known".
                    found.push(count.filter(|count| *count < u64::from(u32::MAX)));
                }
                Ok(if depth == 0 { Next::Into } else { Next::Over })
            })?;
        // An array without dimensions has one of unknown length.
        if found.is_empty() {
            found.push(None);
        }
        Ok(found)
    }

    fn function(&self, id: EntryId, result: TypeRef) -> Result<TypeKind, DebugError> {
        let mut parameters = Vec::new();
        self.debug.walk(
            id.unit,
            Some(id.offset),
            |_| true,
            |depth, entry| {
                if depth == 1 && entry.tag == gimli::DW_TAG_formal_parameter {
                    parameters.push(self.target(&entry));
                }
                Ok(if depth == 0 { Next::Into } else { Next::Over })
            },
        )?;
        Ok(TypeKind::Function { result, parameters })
    }

    fn enumeration(&self, entry: &Entry<'a>, bytes: Option<u64>) -> Result<TypeKind, DebugError> {
        let id = entry.id;
        let mut enumerators = Vec::new();
        let mut negative = false;
        self.debug.walk(id.unit, Some(id.offset), |_| true, |depth, entry| {
            if depth == 1 && entry.tag == gimli::DW_TAG_enumerator {
                let name = self.name(&entry)?;
                let value = entry.value(gimli::DW_AT_const_value);
                if let (Some(name), Some(value)) = (name, value.and_then(constant)) {
                    negative |= matches!(entry.value(gimli::DW_AT_const_value), Some(AttributeValue::Sdata(v)) if v < 0);
                    enumerators.push((name, cut(value, bytes)));
                }
            }
            Ok(if depth == 0 { Next::Into } else { Next::Over })
        })?;
        let underlying = self
            .target(entry)
            .entry
            .map(|id| self.debug.entry(id))
            .transpose()?;
        let signed = match underlying.as_ref().map(encoding) {
            Some(Encoding::Signed | Encoding::SignedChar) => true,
            Some(Encoding::Unsigned | Encoding::UnsignedChar | Encoding::Boolean) => false,
            _ => negative,
        };
        Ok(TypeKind::Enumeration {
            enumerators,
            signed,
        })
    }

    fn record(&self, entry: &Entry<'a>, kind: RecordKind) -> Result<TypeKind, DebugError> {
        let id = entry.id;
        let mut record = Record {
            kind,
            declaration: entry.flag(gimli::DW_AT_declaration),
            members: Vec::new(),
            variants: Vec::new(),
        };
        // Which member the discriminant of the open variant part is, and how deep that part is.
        let mut discriminant = None;
        self.debug.walk(
            id.unit,
            Some(id.offset),
            |_| true,
            |depth, entry| {
                Ok(match (depth, entry.tag) {
                    (0, _) => Next::Into,
                    (1, gimli::DW_TAG_member | gimli::DW_TAG_inheritance) => {
                        record.members.extend(self.member(&entry)?);
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
                        record
                            .variants
                            .last_mut()
                            .into_iter()
                            .for_each(|part| part.variants.push(variant.clone()));
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
            },
        )?;
        Ok(TypeKind::Record(Arc::new(record)))
    }

    /// A member that is in every object of its class.
    fn member(&self, entry: &Entry<'a>) -> Result<Option<Member>, DebugError> {
        if entry.flag(gimli::DW_AT_external) || entry.flag(gimli::DW_AT_declaration) {
            return Ok(None);
        }
        let place = entry.value(gimli::DW_AT_data_member_location);
        let mut offset = match &place {
            None => MemberOffset::Bytes(0),
            Some(AttributeValue::Exprloc(_)) => MemberOffset::Computed(ComputedOffset(entry.id)),
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
                && (1..=64).contains(&count);
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

    /// The first bit of a bit-field as DWARF 2 and 3 give it: from the most significant bit of the integer that holds it.
    fn old_bit_offset(
        &self,
        entry: &Entry<'a>,
        count: u64,
        bytes: u64,
    ) -> Result<Option<u64>, DebugError> {
        let Some(from_top) = entry.number(gimli::DW_AT_bit_offset) else {
            return Ok(bytes.checked_mul(8));
        };
        let storage = match entry.number(gimli::DW_AT_byte_size) {
            Some(size) => Some(size),
            None => super::size::size(&Types::default(), self.debug, self.target(entry))?,
        };
        let first = || {
            let above = storage?
                .checked_mul(8)?
                .checked_sub(from_top)?
                .checked_sub(count)?;
            bytes.checked_mul(8)?.checked_add(above)
        };
        Ok(first())
    }

    /// The discriminants that choose a variant.
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

/// How the bits of a base type are understood.
fn encoding(entry: &Entry<'_>) -> Encoding {
    let Some(AttributeValue::Encoding(encoding)) = entry.value(gimli::DW_AT_encoding) else {
        return Encoding::Other;
    };
    match encoding {
        gimli::DW_ATE_signed => Encoding::Signed,
        gimli::DW_ATE_unsigned => Encoding::Unsigned,
        gimli::DW_ATE_signed_char => Encoding::SignedChar,
        gimli::DW_ATE_unsigned_char => Encoding::UnsignedChar,
        gimli::DW_ATE_UTF => Encoding::Unicode,
        gimli::DW_ATE_boolean => Encoding::Boolean,
        gimli::DW_ATE_float => Encoding::Float,
        _ => Encoding::Other,
    }
}

/// A constant, negative ones in two's complement.
fn constant(value: Value<'_>) -> Option<u128> {
    Some(match value {
        AttributeValue::Sdata(value) => i128::from(value) as u128,
        AttributeValue::Data16(value) => value,
        AttributeValue::Block(bytes) if bytes.len() <= 16 => {
            let mut all = [0; 16];
            all[..bytes.len()].copy_from_slice(bytes.slice());
            u128::from_le_bytes(all)
        }
        other => u128::from(other.udata_value()?),
    })
}

/// The lowest bytes of a constant.
pub(crate) fn cut(value: u128, bytes: Option<u64>) -> u128 {
    match bytes {
        Some(bytes @ 1..16) => value & (u128::MAX >> (128 - 8 * bytes)),
        _ => value,
    }
}
