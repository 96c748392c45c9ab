//! Values on the stack of a DWARF expression (DWARF 5, section 2.5.1).
//!
//! DWARF's generic type has the size of an address, 32 bits. Compilers for WebAssembly also compute
//! with 64-bit locals. So a value in this module is as wide as its source, and a constant takes the
//! width of the other operand. A value that would leave the upper bits of a variable undefined is
//! refused.

use crate::Unavailable;

mod binary;

pub(crate) use binary::{Binary, binary};

/// The interpretation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A constant of the expression, of any width.
    Constant {
        /// Whether the constant was written as a signed number.
        signed: bool,
    },
    /// An untyped word with this number of bits.
    Word(u32),
    /// A signed integer with this number of bits.
    Signed(u32),
    /// An unsigned integer with this number of bits.
    Unsigned(u32),
    /// A floating-point number of 32 or 64 bits.
    Float(u32),
}

impl Kind {
    pub(crate) fn width(self) -> u32 {
        match self {
            Self::Constant { .. } => 64,
            Self::Word(width)
            | Self::Signed(width)
            | Self::Unsigned(width)
            | Self::Float(width) => width,
        }
    }
}

/// A value of 1 to 64 bits. The bits beyond its width are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) bits: u64,
    pub(crate) kind: Kind,
}

/// The maximum number of bytes to which constants are extended. Hostile locations could request any
/// number.
const EXTENDED: u64 = 1 << 12;

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width.clamp(1, 64))
}

impl Scalar {
    pub(crate) fn new(bits: u64, kind: Kind) -> Self {
        Self {
            bits: bits & mask(kind.width()),
            kind,
        }
    }

    pub(crate) fn constant(bits: u64) -> Self {
        Self::new(bits, Kind::Constant { signed: false })
    }

    pub(crate) fn signed(value: i64) -> Self {
        Self::new(value as u64, Kind::Constant { signed: true })
    }

    /// Returns the value, sign-extended from its width.
    pub(crate) fn as_i64(self) -> i64 {
        let unused = 64 - self.kind.width().clamp(1, 64);
        ((self.bits << unused) as i64) >> unused
    }

    /// Returns the bytes of a variable that has this value.
    pub(crate) fn to_bytes(self, bytes: u64) -> Result<Vec<u8>, Unavailable> {
        let width = self.kind.width();
        let signed = match self.kind {
            Kind::Constant { signed } => signed,
            Kind::Signed(_) => true,
            Kind::Unsigned(_) => false,
            Kind::Word(_) | Kind::Float(_) if bytes.saturating_mul(8) > u64::from(width) => {
                return Err(Unavailable::Narrow { bits: width });
            }
            Kind::Word(_) | Kind::Float(_) => false,
        };
        let wide = if signed {
            i128::from(self.as_i64())
        } else {
            i128::from(self.bits)
        };
        // LLVM writes one constant for all the bytes of a structure that was set to zero.
        if bytes > EXTENDED {
            return Err(Unavailable::Narrow { bits: width });
        }
        let mut held = wide.to_le_bytes().to_vec();
        held.resize(bytes as usize, if wide < 0 { 0xff } else { 0 });
        Ok(held)
    }

    /// Returns the value as an address. Refuses floats, and 64-bit values beyond the address space.
    pub(crate) fn address(self, address_bits: u32) -> Result<u64, Unavailable> {
        match self.kind {
            Kind::Float(_) => Err(Unavailable::Broken(
                "a floating-point number used as an address",
            )),
            _ if self.bits <= mask(address_bits) => Ok(self.bits),
            // Constants may be negative, so they wrap around in the address space.
            Kind::Constant { .. } => Ok(self.bits & mask(address_bits)),
            _ => Err(Unavailable::OutsideMemory { address: self.bits }),
        }
    }

    /// Applies `DW_OP_convert`.
    pub(crate) fn convert(self, to: Kind) -> Result<Self, Unavailable> {
        let from = self.kind;
        if let Kind::Float(width) = from {
            let value = if width == 32 {
                f64::from(f32::from_bits(self.bits as u32))
            } else {
                f64::from_bits(self.bits)
            };
            return Self::from_float(value, to);
        }
        let wide = match from {
            Kind::Constant { signed: true } | Kind::Signed(_) => i128::from(self.as_i64()),
            // The upper bits are undefined.
            Kind::Word(width) if to.width() > width => {
                return Err(Unavailable::Narrow { bits: width });
            }
            _ => i128::from(self.bits),
        };
        Ok(match to {
            Kind::Float(32) => Self::new((wide as f32).to_bits().into(), to),
            Kind::Float(_) => Self::new((wide as f64).to_bits(), to),
            _ => Self::new(wide as u64, to),
        })
    }

    fn from_float(value: f64, to: Kind) -> Result<Self, Unavailable> {
        let outside = Unavailable::Broken("a floating-point number that does not fit the integer");
        let bits = match to {
            Kind::Float(32) => u64::from((value as f32).to_bits()),
            Kind::Float(_) => value.to_bits(),
            _ => {
                let (low, high) = match to {
                    Kind::Signed(width) => {
                        (-(2f64.powi(width as i32 - 1)), 2f64.powi(width as i32 - 1))
                    }
                    _ => (0.0, 2f64.powi(to.width() as i32)),
                };
                let whole = value.trunc();
                // NaN is in no range.
                if !(low..high).contains(&whole) {
                    return Err(outside);
                }
                whole as i128 as u64
            }
        };
        Ok(Self::new(bits, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_come_from_what_is_computed_with() {
        let word = |bits, width| Scalar::new(bits, Kind::Word(width));
        let plus = |a, b| binary(Binary::Plus, a, b, 32);
        // 32-bit sums wrap, but 64-bit sums do not.
        let low = plus(word(0xffff_ffff, 32), Scalar::constant(1)).unwrap();
        assert_eq!(low, word(0, 32));
        let high = plus(word(0xffff_ffff, 64), Scalar::constant(1)).unwrap();
        assert_eq!(high, word(0x1_0000_0000, 64));
        assert!(plus(word(1, 32), word(1, 64)).is_err());
        // The sign bit depends on the value's width.
        let less = binary(Binary::Lt, word(0xffff_ffff, 32), Scalar::constant(0), 32);
        assert_eq!(less.unwrap().bits, 1);
        let less = binary(Binary::Lt, word(0xffff_ffff, 64), Scalar::constant(0), 32);
        assert_eq!(less.unwrap().bits, 0);
        let shifted = binary(
            Binary::Shra,
            word(0x8000_0000, 32),
            Scalar::constant(40),
            32,
        );
        assert_eq!(shifted.unwrap().bits, 0xffff_ffff);
    }

    #[test]
    fn bytes_that_are_not_said_are_refused() {
        let narrow = Scalar::new(5, Kind::Word(32));
        assert_eq!(narrow.to_bytes(4), Ok(vec![5, 0, 0, 0]));
        assert_eq!(narrow.to_bytes(8), Err(Unavailable::Narrow { bits: 32 }));
        assert_eq!(
            Scalar::new(5, Kind::Unsigned(8)).to_bytes(2),
            Ok(vec![5, 0])
        );
        assert_eq!(
            Scalar::new(0xff, Kind::Signed(8)).to_bytes(2),
            Ok(vec![255, 255])
        );
        assert_eq!(Scalar::signed(-1).to_bytes(16), Ok(vec![255; 16]));
        assert_eq!(Scalar::constant(0).to_bytes(24), Ok(vec![0; 24]));
        assert!(Scalar::constant(1).to_bytes(1 << 40).is_err());
    }

    #[test]
    fn conversions_keep_values_or_refuse() {
        let word = Scalar::new(0xffff_fffe, Kind::Word(32));
        let signed = word
            .convert(Kind::Signed(32))
            .unwrap()
            .convert(Kind::Signed(64))
            .unwrap();
        assert_eq!(signed.as_i64(), -2);
        assert!(word.convert(Kind::Signed(64)).is_err());
        let float = signed.convert(Kind::Float(64)).unwrap();
        assert_eq!(f64::from_bits(float.bits), -2.0);
        assert!(float.convert(Kind::Unsigned(32)).is_err());
        assert_eq!(float.convert(Kind::Signed(8)).unwrap().as_i64(), -2);
        let bit = Scalar::new(3, Kind::Word(32))
            .convert(Kind::Unsigned(1))
            .unwrap();
        assert_eq!(bit.bits, 1);
    }
}
