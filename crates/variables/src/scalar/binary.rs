//! Operations on two integers (DWARF 5, sections 2.5.1.4 and 2.5.1.5).

use super::{Kind, Scalar, mask};
use crate::Unavailable;

/// An operation on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    And,
    Div,
    Minus,
    Mod,
    Mul,
    Or,
    Plus,
    Shl,
    Shr,
    Shra,
    Xor,
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    Ne,
}

/// Applies an operation to the second and the top entry of the stack, as DWARF orders them.
pub(crate) fn binary(
    operation: Binary,
    left: Scalar,
    right: Scalar,
    address_bits: u32,
) -> Result<Scalar, Unavailable> {
    let shift = matches!(operation, Binary::Shl | Binary::Shr | Binary::Shra);
    let kind = match (left.kind, right.kind) {
        (Kind::Float(_), _) | (_, Kind::Float(_)) => {
            return Err(Unavailable::Unsupported("floating-point arithmetic"));
        }
        (Kind::Constant { .. }, Kind::Constant { .. }) => {
            let fits = |s: Scalar| {
                s.bits <= mask(address_bits)
                    || (s.as_i64() < 0 && s.bits | mask(address_bits) == u64::MAX)
            };
            Kind::Word(if fits(left) && fits(right) {
                address_bits
            } else {
                64
            })
        }
        (Kind::Constant { .. }, kind) if !shift => kind,
        (kind, Kind::Constant { .. }) => kind,
        (left, right) if left == right => left,
        (left, _) if shift && !matches!(left, Kind::Constant { .. }) => left,
        _ => return Err(Unavailable::Broken("operands of different types")),
    };
    let width = kind.width();
    let [a, b] = [left, right].map(|s| Scalar::new(s.bits, kind));
    let compared = |holds: bool| Ok(Scalar::new(holds.into(), Kind::Word(address_bits)));
    // Comparisons are signed unless the type is unsigned (DWARF 5, section 2.5.1.5).
    let order = match kind {
        Kind::Unsigned(_) => a.bits.cmp(&b.bits),
        _ => a.as_i64().cmp(&b.as_i64()),
    };
    let signed = !matches!(kind, Kind::Unsigned(_));
    let zero = Unavailable::Broken("a division by zero");
    let bits = match operation {
        Binary::And => a.bits & b.bits,
        Binary::Or => a.bits | b.bits,
        Binary::Xor => a.bits ^ b.bits,
        Binary::Plus => a.bits.wrapping_add(b.bits),
        Binary::Minus => a.bits.wrapping_sub(b.bits),
        Binary::Mul => a.bits.wrapping_mul(b.bits),
        Binary::Div if b.bits == 0 => return Err(zero),
        Binary::Mod if b.bits == 0 => return Err(zero),
        Binary::Div if signed => a.as_i64().wrapping_div(b.as_i64()) as u64,
        Binary::Div => a.bits / b.bits,
        // The remainder of generic values is unsigned, unlike their quotient.
        Binary::Mod if matches!(kind, Kind::Signed(_)) => {
            a.as_i64().wrapping_rem(b.as_i64()) as u64
        }
        Binary::Mod => a.bits % b.bits,
        Binary::Shl if right.bits >= u64::from(width) => 0,
        Binary::Shr if right.bits >= u64::from(width) => 0,
        Binary::Shl => a.bits << right.bits,
        Binary::Shr => a.bits >> right.bits,
        Binary::Shra => (a.as_i64() >> right.bits.min(63)) as u64,
        Binary::Eq => return compared(order.is_eq()),
        Binary::Ne => return compared(order.is_ne()),
        Binary::Ge => return compared(order.is_ge()),
        Binary::Gt => return compared(order.is_gt()),
        Binary::Le => return compared(order.is_le()),
        Binary::Lt => return compared(order.is_lt()),
    };
    Ok(Scalar::new(bits, kind))
}
