//! Which of two operands the result is owed to.

use crate::Scalar;

/// One of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first one.
    Left,
    /// The second one.
    Right,
}

impl Scalar {
    /// The operand that alone makes the result of an integer operator what it is: the other one changes nothing (as in `x + 0`), or nothing that it
    /// could be would (as in `0 * x`). `None` if both or neither does. Operands are bits, as for [`eval`](Self::eval).
    pub fn decisive(self, a: u64, b: u64) -> Option<Side> {
        let (narrow, wide) = (u64::from(u32::MAX), u64::MAX);
        let of = |mask: u64| Operands {
            a: a & mask,
            b: b & mask,
            ones: mask,
        };
        match self {
            Self::I32Add | Self::I32Xor => of(narrow).commutative(0, None),
            Self::I64Add | Self::I64Xor => of(wide).commutative(0, None),
            Self::I32Or => of(narrow).commutative(0, Some(narrow)),
            Self::I64Or => of(wide).commutative(0, Some(wide)),
            Self::I32And => of(narrow).commutative(narrow, Some(0)),
            Self::I64And => of(wide).commutative(wide, Some(0)),
            Self::I32Mul => of(narrow).commutative(1, Some(0)),
            Self::I64Mul => of(wide).commutative(1, Some(0)),
            Self::I32Sub => of(narrow).first(0, None),
            Self::I64Sub => of(wide).first(0, None),
            Self::I32DivS | Self::I32DivU => of(narrow).first(1, Some(0)),
            Self::I64DivS | Self::I64DivU => of(wide).first(1, Some(0)),
            Self::I32Shl | Self::I32ShrU => of(narrow).shifted(31, false),
            Self::I64Shl | Self::I64ShrU => of(wide).shifted(63, false),
            Self::I32ShrS | Self::I32Rotl | Self::I32Rotr => of(narrow).shifted(31, true),
            Self::I64ShrS | Self::I64Rotl | Self::I64Rotr => of(wide).shifted(63, true),
            _ => None,
        }
    }
}

struct Operands {
    a: u64,
    b: u64,
    /// All bits of the type.
    ones: u64,
}

impl Operands {
    /// Of an operator that does not care about the order: what changes nothing, and what nothing changes.
    fn commutative(self, neutral: u64, absorbing: Option<u64>) -> Option<Side> {
        let decides = |one: u64, other: u64| other == neutral || Some(one) == absorbing;
        match (decides(self.a, self.b), decides(self.b, self.a)) {
            (true, false) => Some(Side::Left),
            (false, true) => Some(Side::Right),
            _ => None,
        }
    }

    /// The same of one whose second operand never decides.
    fn first(self, neutral: u64, absorbing: Option<u64>) -> Option<Side> {
        (self.b == neutral || Some(self.a) == absorbing).then_some(Side::Left)
    }

    /// Of a shift or a rotation, whose second operand counts by these bits.
    fn shifted(self, counts: u64, keeps_ones: bool) -> Option<Side> {
        let kept = self.a == 0 || (keeps_ones && self.a == self.ones);
        (self.b & counts == 0 || kept).then_some(Side::Left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [u64; 10] = [
        0,
        1,
        2,
        7,
        32,
        64,
        0x8000_0000,
        0xffff_ffff,
        0x1234_5678_9abc_def0,
        u64::MAX,
    ];

    /// By definition: the other operand changes nothing of any value, or no value of it changes the result.
    fn decides(op: Scalar, side: Side, [one, other]: [u64; 2]) -> bool {
        let eval = |one, other| match side {
            Side::Left => op.eval(one, other),
            Side::Right => op.eval(other, one),
        };
        // 32-bit operators ignore the upper half.
        let changes_nothing = VALUES.iter().all(|&x| eval(x, other) == Ok(x & mask(op)));
        let result = eval(one, other);
        let is_kept = VALUES.iter().all(|&y| match eval(one, y) {
            Err(_) => true,
            found => found == result,
        });
        changes_nothing || is_kept
    }

    fn mask(op: Scalar) -> u64 {
        match op.name().starts_with("i32") {
            true => u32::MAX.into(),
            false => u64::MAX,
        }
    }

    #[test]
    fn what_decides_does_by_definition() {
        let mut told = 0;
        for &op in Scalar::ALL.iter().filter(|op| op.types().0.len() == 2) {
            for a in VALUES {
                for b in VALUES {
                    let Some(side) = op.decisive(a, b).filter(|_| op.eval(a, b).is_ok()) else {
                        continue;
                    };
                    told += 1;
                    let (one, other) = match side {
                        Side::Left => ([a, b], [b, a]),
                        Side::Right => ([b, a], [a, b]),
                    };
                    let opposite = match side {
                        Side::Left => Side::Right,
                        Side::Right => Side::Left,
                    };
                    assert!(decides(op, side, one), "{} {a:x} {b:x}", op.name());
                    assert!(!decides(op, opposite, other), "{} {a:x} {b:x}", op.name());
                }
            }
        }
        assert!(told > 300, "{told}");
    }
}
