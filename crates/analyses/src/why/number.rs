//! Finds the number whose digits were printed.

use std::collections::{HashMap, HashSet, VecDeque};

use afterimage_machine::Register;
use afterimage_replay::values::{Bits, Instance, Types, ValuesError};
use wasmparser::ValType;

use super::chain::{Room, Spot};
use super::digits::Agrees;
use super::{At, Computed, Digits, End, Move, StepBack, Walk, WhyError};

/// A value that may be the printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The execution in which the value is in the register.
    pub instance: Instance,
    /// The register with the value.
    pub register: Register,
    /// The type of the value.
    pub ty: ValType,
    /// The value, as bits.
    pub bits: Bits,
    /// Whether the value has 128 bits, in two registers.
    pub is_wide: bool,
    /// The operator that produces or uses the value.
    pub spot: Spot,
}

/// The maximum number of links to follow back. Also the maximum number of node executions to
/// examine around the digits.
const LOOKED_AT: u32 = 20_000;

/// The maximum number of links to follow back for a floating-point number, once an integer is
/// found.
const LOOKED_AT_FOR_FLOAT: u32 = 1_000;

/// A search for the value whose digits were printed.
pub struct NumberSearch<'s, 'v, 'a> {
    walk: Walk<'v, 'a>,
    types: &'s Types<'a>,
    readings: &'s [Digits],
    is_library: &'s dyn Fn(Spot) -> Result<bool, WhyError>,
    room: &'s dyn Fn() -> Room,
    /// The executions with constants from which digits were made, nearest first.
    constants: Vec<Instance>,
}

/// A value, and the index of the reading that it matches.
type Match = (usize, Printed);

impl<'s, 'v, 'a> NumberSearch<'s, 'v, 'a> {
    /// Creates a search for a value that matches one of the readings of a number.
    pub fn new(
        (walk, types): (Walk<'v, 'a>, &'s Types<'a>),
        readings: &'s [Digits],
        is_library: &'s dyn Fn(Spot) -> Result<bool, WhyError>,
        room: &'s dyn Fn() -> Room,
    ) -> Self {
        Self {
            walk,
            types,
            readings,
            is_library,
            room,
            constants: Vec::new(),
        }
    }

    /// Finds the matching value that is the fewest links away, among the values from which the
    /// digits at `written` were made. A value that agrees exactly is preferred to a value with a
    /// different sign, and both are preferred to an integer with the digits of a decimal number.
    /// Constants of the code are skipped, since they may match by chance.
    ///
    /// To print a floating-point number, a library may first make an integer with the same digits.
    /// So a floating-point number is preferred to a nearer integer, as long as all such integers
    /// are in library code.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn made_from(&mut self, written: &[At]) -> Result<Option<Match>, WhyError> {
        let readings = self.readings;
        let mut is_made = Vec::from_iter(readings.iter().map(Digits::is_as_written));
        let wide = Vec::from_iter(readings.iter().map(Digits::wide));
        // The 64-bit values found so far, which may be halves of wide numbers.
        let mut halves: HashMap<u64, Printed> = HashMap::new();
        let mut queue = VecDeque::from_iter(written.iter().copied());
        let mut seen = HashSet::new();
        let mut found: Option<(Agrees, Match)> = None;
        // The nearest integer that agrees exactly, in library code.
        let mut integer: Option<Match> = None;
        let mut left = LOOKED_AT;
        while let Some(at) = queue.pop_front() {
            if left == 0 || (self.room)() != Room::Looking {
                break;
            }
            left -= 1;
            let back = match self.walk.back(at) {
                Err(error) if error.is_outside() || error.is_too_many() => continue,
                back => back?,
            };
            let (made, next) = match back {
                StepBack::End(End::Constant { instance, .. }) => {
                    self.constants.push(instance);
                    continue;
                }
                StepBack::End(_) => continue,
                StepBack::Computed(made) => (made, None),
                StepBack::Moved {
                    how,
                    instance,
                    inst,
                    next,
                    ..
                } => {
                    let moved = Computed { instance, inst };
                    queue.push_back(next);
                    if !matches!(how, Move::Load(_)) {
                        continue;
                    }
                    (moved, Some(next))
                }
            };
            if !seen.insert((made.instance, made.inst)) {
                continue;
            }
            // Initial memory counts as a table if its address was computed.
            let is_table = matches!(next, Some(At::End(End::Memory(_))));
            if next.is_none() || is_table {
                for operand in self.walk.operands(made)? {
                    if operand.constant {
                        for (is_made, reading) in is_made.iter_mut().zip(readings) {
                            *is_made |= reading.is_made_with(operand.value.0);
                        }
                    } else {
                        queue.push_back(At::Register(made.instance, operand.register));
                    }
                }
            }
            for printed in self.values(made, next.is_none(), |_| true)? {
                let Printed { ty, bits, spot, .. } = printed;
                for (number, reading) in readings.iter().enumerate().filter(|(at, _)| is_made[*at])
                {
                    let it = (number, printed);
                    match reading.agrees(ty, bits) {
                        Some(Agrees::Exactly) if is_float(ty) => return Ok(Some(it)),
                        Some(Agrees::Exactly) => {
                            let nearest = *integer.get_or_insert(it);
                            if !(self.is_library)(spot)? {
                                return Ok(Some(nearest));
                            }
                            left = left.min(LOOKED_AT_FOR_FLOAT);
                        }
                        Some(agrees) if found.is_none_or(|(other, _)| agrees > other) => {
                            if agrees > Agrees::Scaled {
                                found = Some((agrees, it));
                            } else if !(self.is_library)(spot)? {
                                found = Some((agrees, it));
                                left = left.min(LOOKED_AT_FOR_FLOAT);
                            }
                        }
                        Some(_) | None => {}
                    }
                }
                if ty != ValType::I64 {
                    continue;
                }
                halves.entry(bits.0).or_insert(printed);
                for (number, values) in wide.iter().enumerate().filter(|(at, _)| is_made[*at]) {
                    for value in values {
                        let (low, high) = (*value as u64, (*value >> 64) as u64);
                        if (low == bits.0 || high == bits.0)
                            && halves.contains_key(&high)
                            && let Some(&half) = halves.get(&low)
                        {
                            let (bits, is_wide) = ((low, high), true);
                            let whole = Printed {
                                bits,
                                is_wide,
                                ..half
                            };
                            return Ok(Some((number, whole)));
                        }
                    }
                }
            }
        }
        match (integer, found) {
            // A number whose whole text was printed is preferred.
            (None, Some((_, other))) => Ok(self.around()?.or(Some(other))),
            (integer, _) => Ok(integer),
        }
    }

    /// Finds the floating-point number that the functions around the digits processed, the
    /// innermost function first. A function may make digits by comparing and counting, as Rust's
    /// `flt2dec::strategy::dragon` does. The digits are then constants of library code, and no
    /// value leads from them to the number. The number counts only if all of its text was printed:
    /// sign, digits and point. The search ends at the first code outside libraries.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged.
    pub fn around(&self) -> Result<Option<Match>, WhyError> {
        let mut seen = HashSet::new();
        let mut left = LOOKED_AT;
        for &constant in &self.constants {
            let mut cursor = self.walk.values.path().cursor();
            let mut visit = cursor.seek(constant.time).map_err(ValuesError::Path)?;
            while let Some(at) = visit {
                if left == 0 || (self.room)() != Room::Looking {
                    return Ok(None);
                }
                left -= 1;
                // Everything before this node was searched as well.
                if !seen.insert(at.start) {
                    break;
                }
                let instance = self.walk.values.at(at.start)?;
                let instance = instance.ok_or(WhyError::Damaged("a missing node"))?;
                if !(self.is_library)(self.walk.end_spot(instance)?)? {
                    break;
                }
                match self.float_in(instance) {
                    Ok(None) => {}
                    Err(error) if error.is_outside() || error.is_too_many() => break,
                    found => return found,
                }
                let before = cursor.previous_in_activation();
                visit = match before.map_err(ValuesError::Path)? {
                    None if cursor.depth() > 1 => cursor.previous().map_err(ValuesError::Path)?,
                    before => before,
                };
            }
        }
        Ok(None)
    }

    /// Returns the last floating-point number in an execution of a node that agrees with a reading.
    fn float_in(&self, instance: Instance) -> Result<Option<Match>, WhyError> {
        let insts = self.walk.values.compiled(instance.node)?.code.insts.len();
        for inst in (0..insts).rev() {
            for printed in self.values(Computed { instance, inst }, true, is_float)? {
                let agrees =
                    |of: &Digits| of.agrees(printed.ty, printed.bits) == Some(Agrees::Exactly);
                if let Some(number) = self.readings.iter().position(agrees) {
                    return Ok(Some((number, printed)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the value that an instruction produced and, if wanted, its operands, except for
    /// constants. Leaves out values of types that `is_wanted` refuses.
    fn values(
        &self,
        made: Computed,
        with_operands: bool,
        is_wanted: fn(ValType) -> bool,
    ) -> Result<Vec<Printed>, WhyError> {
        let Computed { instance, inst } = made;
        let spot = self.walk.spot(instance, inst)?;
        let (takes, gives) = self.types.of(spot.function, spot.op).unwrap_or_default();
        let compiled = self.walk.values.compiled(instance.node)?;
        let printed = |register, ty, bits| Printed {
            instance,
            register,
            ty,
            bits,
            is_wide: false,
            spot,
        };
        let mut values = Vec::new();
        if let Some(&ty) = gives.first().filter(|&&ty| is_wanted(ty)) {
            let register = compiled.code.first_result() + inst as u32;
            values.push(printed(register, ty, self.walk.value(made)?));
        }
        if with_operands && takes.iter().any(|&ty| is_wanted(ty)) {
            let operands = self.walk.operands(made)?.into_iter().zip(takes);
            let operands = operands.filter(|(operand, ty)| !operand.constant && is_wanted(*ty));
            values.extend(operands.map(|(it, ty)| printed(it.register, ty, it.value)));
        }
        Ok(values)
    }
}

fn is_float(ty: ValType) -> bool {
    matches!(ty, ValType::F32 | ValType::F64)
}
