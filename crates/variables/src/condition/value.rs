//! Computes the results of operators on a condition's operands.

use std::cmp::Ordering;

use super::{Binary, Held, Number, Unary};
use crate::quoted;

/// A value while a condition is evaluated.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Held(Held),
    /// A string literal of the condition itself.
    Text(String),
    Unknown(String),
}

impl Default for Value {
    fn default() -> Self {
        Self::Unknown("nothing is there".to_owned())
    }
}

impl Value {
    pub(super) fn of(number: Number) -> Self {
        Self::Held(Held {
            number: Some(number),
            text: String::new(),
            is_constant: false,
        })
    }

    pub(super) fn truth_of(held: bool) -> Self {
        Self::of(Number::Integer(held.into()))
    }

    fn number(&self) -> Result<Number, String> {
        match self {
            Self::Held(held) => {
                let number = held.number;
                let kind = match held.text.as_str() {
                    text if text.starts_with('"') => "a string",
                    "nullopt" => "an empty optional",
                    _ => "a structure",
                };
                number.ok_or_else(|| format!("{kind} is not a number"))
            }
            Self::Text(_) => Err("a string is not a number".to_owned()),
            Self::Unknown(why) => Err(why.clone()),
        }
    }

    fn integer(&self) -> Result<i128, String> {
        match self.number()? {
            Number::Integer(integer) => Ok(integer),
            Number::Float(float) => Err(format!("{float} is not an integer")),
        }
    }

    pub(super) fn truth(&self) -> Result<bool, String> {
        Ok(match self.number()? {
            Number::Integer(integer) => integer != 0,
            Number::Float(float) => float != 0.0,
        })
    }

    pub(super) fn unary(self, unary: Unary) -> Self {
        let found = match unary {
            Unary::Not => self.truth().map(|held| Number::Integer((!held).into())),
            Unary::Plus => self.number(),
            Unary::Minus => self.number().and_then(|number| match number {
                Number::Integer(integer) => {
                    let negated = integer.checked_neg();
                    negated.map(Number::Integer).ok_or_else(too_large)
                }
                Number::Float(float) => Ok(Number::Float(-float)),
            }),
            Unary::Complement => self.integer().map(|integer| Number::Integer(!integer)),
        };
        found.map_or_else(Self::Unknown, Self::of)
    }

    pub(super) fn binary(self, binary: Binary, right: Self) -> Self {
        match binary {
            // One operand alone may decide the result.
            Binary::Or | Binary::And => {
                let decides = binary == Binary::Or;
                match (self.truth(), right.truth()) {
                    (Ok(held), _) | (_, Ok(held)) if held == decides => Self::truth_of(decides),
                    (Err(why), _) | (_, Err(why)) => Self::Unknown(why),
                    _ => Self::truth_of(!decides),
                }
            }
            Binary::Less | Binary::AtMost | Binary::Greater | Binary::AtLeast
                if self.is_constant() || right.is_constant() =>
            {
                self.ordered(binary, &right)
            }
            _ if binary.is_comparison() => match self.is_same_text(&right) {
                Some(Ok(is_same)) => match binary {
                    Binary::Equal => Self::truth_of(is_same),
                    Binary::NotEqual => Self::truth_of(!is_same),
                    _ => Self::Unknown("strings have no order".to_owned()),
                },
                Some(Err(why)) => Self::Unknown(why),
                None => self.ordered(binary, &right),
            },
            _ => self
                .compute(binary, &right)
                .map_or_else(Self::Unknown, Self::of),
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self, Self::Held(held) if held.is_constant)
    }

    fn ordered(&self, binary: Binary, right: &Self) -> Self {
        let order = match self.compare(right) {
            Ok(order) => order,
            Err(why) => return Self::Unknown(why),
        };
        Self::truth_of(match (binary, order) {
            // Unordered values are not equal either.
            (Binary::NotEqual, order) => order != Some(Ordering::Equal),
            (_, None) => false,
            (Binary::Equal, Some(order)) => order.is_eq(),
            (Binary::Less, Some(order)) => order.is_lt(),
            (Binary::AtMost, Some(order)) => order.is_le(),
            (Binary::Greater, Some(order)) => order.is_gt(),
            (_, Some(order)) => order.is_ge(),
        })
    }

    fn compare(&self, other: &Self) -> Result<Option<Ordering>, String> {
        Ok(match (self.number()?, other.number()?) {
            (Number::Integer(a), Number::Integer(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Integer(a), Number::Float(b)) => exactly(a, b),
            (Number::Float(a), Number::Integer(b)) => exactly(b, a).map(Ordering::reverse),
        })
    }

    /// Whether this is the same text as another value. Returns `None` unless one of the two values
    /// can only be text.
    fn is_same_text(&self, other: &Self) -> Option<Result<bool, String>> {
        Some(match (self, other) {
            (Self::Text(a), Self::Text(b)) => Ok(a == b),
            (Self::Text(text), value) | (value, Self::Text(text)) => value.is_text_of(text),
            (Self::Held(a), Self::Held(b)) if a.is_constant != b.is_constant => {
                let (constant, held) = if a.is_constant { (a, b) } else { (b, a) };
                return held.is_constant_of(constant);
            }
            (Self::Held(a), Self::Held(b)) if a.is_constant => Ok(a.text == b.text),
            (Self::Held(a), Self::Held(b)) if a.number.is_none() && b.number.is_none() => {
                let whole = |held: &Held| {
                    if !held.text.starts_with('"') {
                        Err("a structure is neither a number nor a string".to_owned())
                    } else if held.text.ends_with('"') {
                        Ok(())
                    } else {
                        Err("a string is not known in full".to_owned())
                    }
                };
                whole(a).and(whole(b)).map(|()| a.text == b.text)
            }
            _ => return None,
        })
    }

    /// Whether a variable holds this string, or the constant with this name.
    fn is_text_of(&self, text: &str) -> Result<bool, String> {
        let Self::Held(held) = self else {
            return Err(self.number().err().unwrap_or_default());
        };
        // The text of a pointer to characters starts with the address.
        let own = match held
            .text
            .strip_prefix("0x")
            .and_then(|own| own.split_once(' '))
        {
            Some((_, own)) => own,
            None => &held.text,
        };
        if own.starts_with('"') {
            return if own.ends_with('"') {
                Ok(own == quoted(text.as_bytes()))
            } else {
                Err("a string is not known in full".to_owned())
            };
        }
        // Only the names of constants and flags are compared, not values with contents.
        let is_flags = held.number.is_some();
        let is_part = |sign: char| {
            sign.is_alphanumeric()
                || matches!(sign, '_' | ':')
                || is_flags && matches!(sign, ' ' | '|')
        };
        let is_name =
            own.chars().all(is_part) && !own.starts_with(|sign: char| sign.is_ascii_digit());
        match (is_name, held.number) {
            (true, _) => Ok(own == text),
            (false, Some(_)) => Err("a number is not a string".to_owned()),
            (false, None) => Err("a structure is not a string".to_owned()),
        }
    }

    fn compute(&self, binary: Binary, right: &Self) -> Result<Number, String> {
        let is_bitwise = matches!(
            binary,
            Binary::BitOr | Binary::BitXor | Binary::BitAnd | Binary::Left | Binary::Right
        );
        if is_bitwise {
            let (a, b) = (self.integer()?, right.integer()?);
            let by = u32::try_from(b).ok().filter(|by| *by < 127);
            if by.is_none() && matches!(binary, Binary::Left | Binary::Right) {
                return Err("it shifts by a number below 0 or above 126".to_owned());
            }
            let found = match binary {
                Binary::BitOr => Some(a | b),
                Binary::BitXor => Some(a ^ b),
                Binary::BitAnd => Some(a & b),
                Binary::Left => by.and_then(|by| a.checked_mul(1 << by)),
                _ => by.map(|by| a >> by),
            };
            return found.map(Number::Integer).ok_or_else(too_large);
        }
        let float = |number: Number| match number {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) => float,
        };
        match (self.number()?, right.number()?) {
            (Number::Integer(a), Number::Integer(b)) => {
                let is_division = matches!(binary, Binary::Divide | Binary::Remainder);
                if is_division && b == 0 {
                    return Err("it divides by 0".to_owned());
                }
                let found = match binary {
                    Binary::Add => a.checked_add(b),
                    Binary::Subtract => a.checked_sub(b),
                    Binary::Multiply => a.checked_mul(b),
                    Binary::Divide => a.checked_div(b),
                    _ => a.checked_rem(b),
                };
                found.map(Number::Integer).ok_or_else(too_large)
            }
            (a, b) => {
                let (a, b) = (float(a), float(b));
                Ok(Number::Float(match binary {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a * b,
                    Binary::Divide => a / b,
                    _ => a % b,
                }))
            }
        }
    }
}

fn too_large() -> String {
    "a number becomes too large".to_owned()
}

/// Compares an integer with a floating-point number exactly, without rounding.
fn exactly(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Both powers of two are exact.
    if float >= 2f64.powi(127) {
        return Some(Ordering::Less);
    }
    if float < -(2f64.powi(127)) {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let order = integer.cmp(&(whole as i128));
    Some(order.then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)))
}

impl Held {
    /// Whether a variable holds a constant. Compares names if the variable's value has one. Returns
    /// `None` if the caller must compare numbers.
    fn is_constant_of(&self, constant: &Self) -> Option<Result<bool, String>> {
        let text = &self.text;
        let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':' | '#');
        let end = text.find(|sign| !is_part(sign)).unwrap_or(text.len());
        let name = text[..end].rsplit("::").next().unwrap_or_default();
        let is_name = name.starts_with(|sign: char| sign.is_alphabetic() || sign == '_');
        // A variant's name is followed by its contents, and flags are several names.
        let is_single = self.number.is_none() || end == text.len();
        match (is_name && is_single, constant.number.zip(self.number)) {
            (true, _) => Some(Ok(name == constant.text)),
            // The optional holds a value, which is not a constant.
            (false, None) if ["nullopt", "None"].contains(&&*constant.text) => Some(Ok(false)),
            (false, Some(_)) => None,
            (false, None) => Some(Err(format!("{} has no number", constant.text))),
        }
    }
}
