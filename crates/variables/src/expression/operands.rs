//! Evaluates operands that do not come from the stack, such as addresses, memory, arguments and
//! types.

use gimli::{Operation, UnitOffset};

use super::{Run, word};
use crate::Unavailable;
use crate::debug::{EntryId, Slice};
use crate::scalar::{Kind, Scalar};

impl<'a> Run<'_, 'a> {
    /// Pushes the address of a static variable.
    pub(super) fn data(&mut self, address: u64) -> Result<(), Unavailable> {
        let top = u64::MAX >> (64 - self.address_bits);
        // Linkers replace the addresses of removed data. lld writes −1, or −2 in some sections.
        // Older linkers write 0, where no data can be.
        if address == 0 || address >= top - 1 {
            return Err(Unavailable::Removed);
        }
        self.push(Scalar::new(address, Kind::Word(self.address_bits)));
        Ok(())
    }

    pub(super) fn dereference(
        &mut self,
        base_type: UnitOffset,
        size: u8,
    ) -> Result<(), Unavailable> {
        let address = self.scalar()?.address(self.address_bits)?;
        let mut bytes = [0; 8];
        let into = bytes.get_mut(..usize::from(size));
        let into = into.ok_or(Unavailable::Unsupported("a wide value"))?;
        if !self.context.machine.memory(address, into) {
            return Err(Unavailable::OutsideMemory { address });
        }
        let kind = match base_type.0 {
            // Shorter values are extended with zeros (section 2.5.1.3).
            0 => Kind::Word(self.address_bits.max(8 * u32::from(size))),
            _ => self.kind(base_type)?,
        };
        self.push(Scalar::new(u64::from_le_bytes(bytes), kind));
        Ok(())
    }

    /// Pushes the value of an argument when the function was entered.
    pub(super) fn entry_value(&mut self, expression: Slice<'a>) -> Result<(), Unavailable> {
        let encoding = self.context.debug.unit(self.unit).encoding();
        let mut rest = expression;
        match Operation::parse(&mut rest, encoding) {
            Ok(Operation::WasmLocal { index }) if rest.is_empty() => {
                let held = self.context.machine.at_entry(index);
                self.push(word(held.ok_or(Unavailable::OptimisedOut)?)?);
                Ok(())
            }
            _ => Err(Unavailable::OptimisedOut),
        }
    }

    /// Returns the kind of value that a base type describes.
    pub(super) fn kind(&self, offset: UnitOffset) -> Result<Kind, Unavailable> {
        if offset.0 == 0 {
            return Ok(Kind::Word(self.address_bits));
        }
        let unit = self.unit;
        let entry = self.context.debug.entry(EntryId { unit, offset })?;
        let wrong = Unavailable::Broken("a type that is not a number");
        if entry.tag != gimli::DW_TAG_base_type {
            return Err(wrong);
        }
        let name = entry
            .value(gimli::DW_AT_name)
            .and_then(|name| self.context.debug.text(unit, name));
        // LLVM names the types in its expressions after their width in bits, which need not be a
        // whole number of bytes.
        let named = name.and_then(|name| {
            name.strip_prefix("DW_ATE_")?
                .rsplit_once('_')?
                .1
                .parse()
                .ok()
        });
        let bytes = entry.number(gimli::DW_AT_byte_size).unwrap_or(0);
        let bits = entry.number(gimli::DW_AT_bit_size).or(named);
        let bits = bits.unwrap_or(bytes.saturating_mul(8));
        let width = u32::try_from(bits)
            .ok()
            .filter(|bits| (1..=64).contains(bits));
        let width = width.ok_or(Unavailable::Unsupported("a number of more than 64 bits"))?;
        let encoding = match entry.value(gimli::DW_AT_encoding) {
            Some(gimli::AttributeValue::Encoding(encoding)) => encoding,
            _ => return Err(wrong),
        };
        match encoding {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Ok(Kind::Signed(width)),
            gimli::DW_ATE_float if matches!(width, 32 | 64) => Ok(Kind::Float(width)),
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_UTF
            | gimli::DW_ATE_address => Ok(Kind::Unsigned(width)),
            _ => Err(wrong),
        }
    }
}
