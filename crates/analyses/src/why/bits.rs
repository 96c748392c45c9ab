//! Tracks which bits of a value are followed back. Examples are the bits of a member that shares
//! its bytes with others, and the bits that a mask or shift keeps.

use std::ops::Range;

use afterimage_machine::{Code, Load, Register};
use afterimage_numeric::Scalar;
use wasmparser::ValType;

use super::{At, Bytes, Computed, End, Move, Operand, StepBack, Walk, WhyError};
use afterimage_replay::values::Instance;

/// A value to follow back, and the bits of interest.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitsQuery {
    pub at: At,
    /// The bits of interest, or `None` if all bytes are of interest. In a register, bits are
    /// counted from the lowest. In written bytes, they are counted from the first byte on.
    bits: Option<u64>,
}

impl From<At> for BitsQuery {
    fn from(at: At) -> Self {
        Self { at, bits: None }
    }
}

impl BitsQuery {
    /// Creates a question about some bits of a value, or about all of it if `bits` is 0.
    pub fn bits(at: At, bits: u64) -> Self {
        match at {
            _ if bits == 0 => at.into(),
            At::Register(instance, register) | At::Part(instance, register, _) => Self {
                at: At::Part(instance, register, around(bits)),
                bits: Some(bits),
            },
            At::Written { range, .. } => Self {
                at,
                // An empty range represents a place outside memory, such as a global.
                bits: match range.length {
                    0 => Some(bits),
                    length => Some(bits & low(8 * length)).filter(|bits| *bits != 0),
                },
            },
            _ => at.into(),
        }
    }

    fn of(instance: Instance, register: Register, bits: u64, all: u64) -> Self {
        let at = At::Register(instance, register);
        if bits & all == all {
            at.into()
        } else {
            Self::bits(at, bits & all)
        }
    }

    /// Follows the value back by one link, with the bits of interest.
    pub fn back(self, walk: &Walk<'_, '_>) -> Result<StepBack, WhyError> {
        walk.back_from(self.at, self.bits)
    }

    /// Returns the bits of a register. Returns `None` for all bits, and also if any bit is not
    /// among the lowest 64.
    pub fn mask(self) -> Option<u64> {
        self.bits.or(match self.at {
            At::Part(_, _, part) if part.first + part.length <= 8 => {
                Some(low(8 * part.length) << (8 * part.first))
            }
            _ => None,
        })
    }
}

/// Returns a mask with the lowest `count` bits set.
fn low(count: u64) -> u64 {
    match count {
        0 => 0,
        count => u64::MAX >> (64 - count.min(64)),
    }
}

/// Returns all bits up to the highest of these bits.
fn up_to(bits: u64) -> u64 {
    low(64 - u64::from(bits.leading_zeros()))
}

/// Returns the bytes that contain these bits.
fn around(bits: u64) -> Bytes {
    let first = u64::from(bits.trailing_zeros() / 8);
    let end = (64 - u64::from(bits.leading_zeros())).div_ceil(8);
    Bytes {
        first,
        length: end - first,
    }
}

fn shifted_down(bits: u64, count: u64) -> u64 {
    bits.checked_shr(u32::try_from(count).unwrap_or(u32::MAX))
        .unwrap_or(0)
}

fn shifted_up(bits: u64, count: u64) -> u64 {
    bits.checked_shl(u32::try_from(count).unwrap_or(u32::MAX))
        .unwrap_or(0)
}

/// Returns the bits of memory that a load read to produce these bits of its result.
pub(super) fn read(load: Load, bits: u64) -> u64 {
    let all = low(8 * u64::from(load.bytes));
    // Higher bits repeat the highest bit that was read.
    let is_sign = load.sign != 0 && bits & !all != 0;
    if is_sign {
        bits & all | all ^ (all >> 1)
    } else {
        bits & all
    }
}

/// Returns the part of the bits that lies in these bytes, counted from the first of the bytes.
pub(super) fn within(bits: u64, bytes: Range<u64>) -> u64 {
    shifted_down(bits, 8 * bytes.start) & low(8 * (bytes.end - bytes.start))
}

/// The number of links to follow back in search of bits that are always zero.
const ASKED: u32 = 12;

impl Walk<'_, '_> {
    /// Returns the question about a value before it was moved.
    pub(super) fn before(
        &self,
        asked: BitsQuery,
        how: Move,
        (instance, inst): (Instance, usize),
        next: At,
    ) -> Result<BitsQuery, WhyError> {
        let Some(bits) = asked.bits else {
            return Ok(next.into());
        };
        let code = self.values.compiled(instance.node)?.code.insts[inst].code;
        let in_memory = match next {
            At::Written { range, .. } | At::End(End::Memory(range) | End::Host { range, .. }) => {
                Some(range)
            }
            _ => None,
        };
        let bits = match (how, code, next) {
            (Move::Load(all), Code::Load(load), _) => in_memory.map_or(0, |range| {
                let skipped = range.address.wrapping_sub(all.address);
                within(read(load, bits), skipped..skipped + range.length)
            }),
            (Move::Copy { .. }, ..) => in_memory.map_or(0, |range| bits & low(8 * range.length)),
            (Move::Store(_), Code::Store(_), At::Part(_, _, part)) => {
                shifted_up(bits, 8 * part.first)
            }
            (Move::Select(_) | Move::GlobalGet(_) | Move::GlobalSet(_), ..) => bits,
            _ => 0,
        };
        Ok(BitsQuery::bits(next, bits))
    }

    /// Returns the non-constant operands from which the bits of interest were computed, with their
    /// bits. Returns all operands if they cannot be separated.
    pub(super) fn open(
        &self,
        computed: Computed,
        operands: &[Operand],
        asked: BitsQuery,
    ) -> Result<Vec<(usize, BitsQuery)>, WhyError> {
        let Computed { instance, inst } = computed;
        let code = self.values.compiled(instance.node)?.code.insts[inst].code;
        let whole = |(i, operand): (usize, &Operand)| {
            let all = BitsQuery::from(At::Register(instance, operand.register));
            (!operand.constant).then_some((i, all))
        };
        let all = || Vec::from_iter(operands.iter().enumerate().filter_map(whole));
        let Code::Scalar(scalar) = code else {
            return Ok(all());
        };
        let mut found = Vec::new();
        let part = self.parts(instance, scalar, operands, asked)?;
        for (i, operand) in operands.iter().enumerate() {
            let (bits, width) = part.get(i).copied().unwrap_or_default();
            if !operand.constant && bits != 0 {
                let asked = BitsQuery::of(instance, operand.register, bits, low(width));
                found.push((i, asked));
            }
        }
        Ok(if found.is_empty() { all() } else { found })
    }

    /// Returns, for each operand, its width and the bits from which the bits of interest were
    /// computed. Empty if the operator does not determine them.
    fn parts(
        &self,
        instance: Instance,
        scalar: Scalar,
        operands: &[Operand],
        asked: BitsQuery,
    ) -> Result<Vec<(u64, u64)>, WhyError> {
        let Some(width) = width(scalar.types().1) else {
            return Ok(Vec::new());
        };
        let (name, all) = (plain(scalar), low(width));
        let wanted = match asked.mask().unwrap_or(all) & all {
            // All bits of interest lie above the value and extend its sign.
            0 => all,
            wanted => wanted,
        };
        let same = |bits| Ok(vec![(bits, width); 2]);
        let one = |bits, width| Ok(vec![(bits, width)]);
        // The higher bits repeat the highest of the lowest `from` bits.
        let extended = |from: u64, width| {
            let sign = u64::from(wanted & !low(from) != 0) << (from - 1);
            one(wanted & low(from) | sign, width)
        };
        match name {
            "and" | "or" | "xor" | "add" => {
                let mut zeros = [0; 2];
                let mut left = ASKED;
                let any_constant = operands.iter().any(|operand| operand.constant);
                for (zeros, operand) in zeros.iter_mut().zip(operands) {
                    *zeros = if operand.constant {
                        !operand.value.0
                    } else if any_constant || wanted == all {
                        // In these cases, knowing which bits are zero would not help to choose an
                        // operand.
                        0
                    } else {
                        self.zeros(instance, operand.register, &mut left)?
                    };
                }
                let [a, b] = zeros;
                // A sum has no carry if no position is set in both operands.
                let bits = if name == "add" && up_to(wanted) & !(a | b) != 0 {
                    up_to(wanted)
                } else {
                    wanted
                };
                let (a, b) = if name == "and" { (b, a) } else { (a, b) };
                Ok(vec![(bits & !a, width), (bits & !b, width)])
            }
            "sub" | "mul" => same(up_to(wanted)),
            "shl" | "shr_u" | "shr_s" | "rotl" | "rotr" => {
                let count = operands.get(1).filter(|operand| operand.constant);
                let Some(count) = count.map(|operand| operand.value.0 % width) else {
                    return Ok(Vec::new());
                };
                let (up, down) = ((wanted << count) & all, wanted >> count);
                let bits = match name {
                    "shl" => down,
                    "shr_u" => up,
                    "shr_s" => {
                        let is_sign = wanted & !(all >> count) != 0;
                        up | u64::from(is_sign) << (width - 1)
                    }
                    "rotl" => down | shifted_up(wanted, width - count) & all,
                    _ => up | shifted_down(wanted, width - count),
                };
                one(bits, width)
            }
            "wrap_i64" => one(wanted, 64),
            "extend_i32_u" => one(wanted & low(32), 32),
            "extend_i32_s" => extended(32, 32),
            "extend8_s" => extended(8, width),
            "extend16_s" => extended(16, width),
            "extend32_s" => extended(32, width),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the bits of a register that are zero for all operands, because of the operators that
    /// computed the register.
    fn zeros(
        &self,
        instance: Instance,
        register: Register,
        left: &mut u32,
    ) -> Result<u64, WhyError> {
        let Some(less) = left.checked_sub(1) else {
            return Ok(0);
        };
        *left = less;
        let found = match self.back(At::Register(instance, register)) {
            Err(error) if error.is_outside() => return Ok(0),
            found => found?,
        };
        let (instance, inst) = match found {
            StepBack::End(End::Constant { bits, .. }) => return Ok(!bits.0),
            StepBack::End(End::Zero) => return Ok(u64::MAX),
            StepBack::End(_) => return Ok(0),
            StepBack::Moved { instance, inst, .. }
            | StepBack::Computed(Computed { instance, inst }) => (instance, inst),
        };
        let compiled = self.values.compiled(instance.node)?;
        let one = &compiled.code.insts[inst];
        let scalar = match one.code {
            Code::Load(load) if load.sign == 0 => return Ok(!low(8 * u64::from(load.bytes))),
            Code::Scalar(scalar) => scalar,
            _ => return Ok(0),
        };
        let Some(width) = width(scalar.types().1) else {
            return Ok(0);
        };
        let (name, all) = (plain(scalar), low(width));
        Ok(match name {
            "and" => self.zeros(instance, one.a, left)? | self.zeros(instance, one.b, left)?,
            "or" | "xor" => {
                self.zeros(instance, one.a, left)? & self.zeros(instance, one.b, left)?
            }
            "shl" | "shr_u" => {
                let constant = match self.back(At::Register(instance, one.b)) {
                    Err(error) if !error.is_outside() => return Err(error),
                    constant => constant,
                };
                let Ok(StepBack::End(End::Constant { bits, .. })) = constant else {
                    return Ok(!all);
                };
                let count = bits.0 % width;
                // Bits that are shifted in are also zero.
                let others = all & !self.zeros(instance, one.a, left)?;
                match name {
                    "shl" => !(others << count & all),
                    _ => !(others >> count),
                }
            }
            "wrap_i64" | "extend_i32_u" => self.zeros(instance, one.a, left)? | !low(32),
            "add" | "mul" => {
                // The largest value that each operand may have.
                let a = u128::from(all & !self.zeros(instance, one.a, left)?);
                let b = u128::from(all & !self.zeros(instance, one.b, left)?);
                let most = match name {
                    "add" => a + b,
                    _ => a * b,
                };
                match u64::try_from(most) {
                    Ok(most) if most <= all => !up_to(most),
                    _ => !all,
                }
            }
            _ if is_comparison(name) => !1,
            _ => !all,
        })
    }
}

/// Returns an operator's name without its type.
fn plain(scalar: Scalar) -> &'static str {
    let name = scalar.name();
    name.split_once('.').map_or(name, |(_, plain)| plain)
}

fn is_comparison(name: &str) -> bool {
    let kind = name.split('_').next().unwrap_or(name);
    ["eqz", "eq", "ne", "lt", "gt", "le", "ge"].contains(&kind)
}

/// Returns the number of an integer's bits. Floats are not followed bit by bit.
fn width(ty: ValType) -> Option<u64> {
    match ty {
        ValType::I32 => Some(32),
        ValType::I64 => Some(64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_the_bytes_around_them() {
        let bytes = |first, length| Bytes { first, length };
        assert_eq!(around(1), bytes(0, 1));
        assert_eq!(around(0xfff0), bytes(0, 2));
        assert_eq!(around(0x100), bytes(1, 1));
        assert_eq!(around(1 << 63 | 1), bytes(0, 8));
        assert_eq!((low(0), low(1), low(64)), (0, 1, u64::MAX));
        assert_eq!(
            (up_to(0), up_to(0b100), up_to(1 << 63)),
            (0, 0b111, u64::MAX)
        );
        assert_eq!((shifted_up(1, 64), shifted_down(1, 64)), (0, 0));
    }
}
