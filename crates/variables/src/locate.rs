//! Finds the locations of variables.

use std::ops::Range;

use afterimage_ids::OrigOffset;

use crate::debug::EntryId;
use crate::expression::Context;
use crate::location::{EntryLocation, select};
use crate::object::Object;
use crate::place::{Machine, Nothing, Piece, VariableLocation};
use crate::prologue::Held;
use crate::scalar::Scalar;
use crate::variable::{Variable, VariableKind};
use crate::{Unavailable, Variables, location};

impl Variables<'_> {
    /// Locates a variable at an offset. Global variables do not need an offset.
    ///
    /// Unoptimised code keeps variables in its stack frame, and DWARF states this place for the
    /// whole function. Until the function has stored its arguments in the frame, a parameter is in
    /// the local that received the argument. The places of other variables are already correct at
    /// that time, but their values are not set yet.
    ///
    /// # Errors
    /// The reason why the variable has no location.
    pub fn locate(
        &self,
        variable: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> Result<Object, Unavailable> {
        self.look_for_foreign_locals();
        let type_ref = self.with_lengths(variable, at, machine);
        let bytes = self.size(type_ref)?;
        let pieces = match select(&self.debug, variable.entry, gimli::DW_AT_location, at)? {
            EntryLocation::Nothing => return Err(Unavailable::OptimisedOut),
            EntryLocation::Constant(value) => vec![self.constant(value, bytes)?],
            EntryLocation::Expression(unit, expression) => {
                let context = Context {
                    debug: &self.debug,
                    machine,
                    frame: variable.frame.zip(at),
                };
                let held = match (variable.kind, variable.inlined, bytes) {
                    (VariableKind::Parameter, 0, Some(bytes)) => {
                        context.argument(unit, expression, bytes)
                    }
                    _ => None,
                };
                match held {
                    Some(held) => held.iter().map(|held| arguments(held, machine)).collect(),
                    None => context.pieces(unit, expression, None, bytes.unwrap_or(0))?,
                }
            }
        };
        if pieces
            .iter()
            .all(|piece| piece.place == VariableLocation::OptimisedOut)
        {
            return Err(Unavailable::OptimisedOut);
        }
        Ok(Object {
            type_ref,
            pieces,
            bits: None,
        })
    }

    /// Returns the code for which the debug information locates a variable, if it has a list of
    /// locations.
    pub fn extents(&self, variable: &Variable) -> Option<Vec<Range<OrigOffset>>> {
        location::extents(&self.debug, variable.entry, gimli::DW_AT_location)
    }

    /// Returns the location of a global variable, if it does not depend on the run.
    pub(crate) fn locate_statically(&self, entry: &EntryId) -> Option<Vec<Piece>> {
        let found = select(&self.debug, *entry, gimli::DW_AT_location, None).ok()?;
        let context = Context {
            debug: &self.debug,
            machine: &Nothing,
            frame: None,
        };
        match found {
            EntryLocation::Expression(unit, expression) => {
                context.pieces(unit, expression, None, 0).ok()
            }
            EntryLocation::Constant(value) => {
                self.constant(value, None).ok().map(|piece| vec![piece])
            }
            EntryLocation::Nothing => None,
        }
    }

    /// Returns the bytes of a constant variable.
    fn constant(
        &self,
        value: crate::debug::Value<'_>,
        bytes: Option<u64>,
    ) -> Result<Piece, Unavailable> {
        use gimli::AttributeValue as A;
        let bytes = bytes.unwrap_or(8);
        // Fixed-size numbers do not state whether they are signed.
        let fixed = |number: u64, size: u64| {
            let narrow = Unavailable::Narrow {
                bits: 8 * size as u32,
            };
            if bytes > size {
                Err(narrow)
            } else {
                Scalar::constant(number).to_bytes(bytes)
            }
        };
        let held = match value {
            A::Udata(number) => Scalar::constant(number).to_bytes(bytes)?,
            A::Sdata(number) => Scalar::signed(number).to_bytes(bytes)?,
            A::Data1(number) => fixed(number.into(), 1)?,
            A::Data2(number) => fixed(number.into(), 2)?,
            A::Data4(number) => fixed(number.into(), 4)?,
            A::Data8(number) => fixed(number, 8)?,
            A::Data16(number) if bytes <= 16 => number.to_le_bytes()[..bytes as usize].to_vec(),
            A::Block(block) => block.slice().to_vec(),
            A::String(text) => [text.slice(), &[0]].concat(),
            _ => return Err(Unavailable::Unsupported("a constant in this form")),
        };
        let bytes = held.len() as u64;
        Ok(Piece {
            place: VariableLocation::Value(held.into()),
            offset: 0,
            bytes,
        })
    }
}

/// Returns the part of a parameter that an argument holds.
fn arguments(held: &Held, machine: &dyn Machine) -> Piece {
    let place = VariableLocation::Local(held.argument.local);
    let bytes = held.bytes;
    let all = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
    let word = place.word(machine).ok();
    let cleared = word.is_some_and(|word| word.bits & u128::from(all & !held.argument.mask) != 0);
    let place = match word {
        // The code stores only a part of the local's contents.
        Some(word) if cleared => {
            let bits = word.bits & u128::from(held.argument.mask);
            VariableLocation::Value(bits.to_le_bytes()[..bytes as usize].into())
        }
        _ => place,
    };
    Piece {
        place,
        offset: 0,
        bytes,
    }
}
