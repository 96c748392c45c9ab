//! Parses and evaluates conditions about variables, such as `fee < 0 && a->balance > 10`.
//!
//! docs/EXPRESSIONS.md defines the meaning of conditions. A parsed condition is in postfix order,
//! so neither parsing nor evaluation recurses.

mod grammar;
mod value;

use std::fmt;

use thiserror::Error;

use crate::{Path, PathError, quoted};
use value::Value;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The variables that the condition names, each once, in order of first use.
    pub paths: Vec<(String, Path)>,
    /// The steps in postfix order, with operands before their operators.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Pushes the value of one of the [`Condition::paths`].
    Variable(usize),
    Number(Number),
    Text(String),
    Unary(Unary),
    Binary(Binary),
    /// Continues at `to` if the left operand of `&&` or `||` decides the result.
    Decided {
        by: bool,
        to: usize,
    },
}

/// An integer or a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer of any type, with its mathematical value. Values below 2^127 do not overflow.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unary {
    Not,
    Minus,
    Plus,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::AtMost
                | Self::Greater
                | Self::AtLeast
        )
    }
}

/// The reason why a string is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected} at character {at} of the condition")]
pub struct ConditionError {
    /// The position, in characters counted from 1.
    pub at: usize,
    /// The token that was expected there.
    pub expected: &'static str,
}

/// The value of a condition's operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The operand's value, if it is a single number.
    pub number: Option<Number>,
    /// The operand's value as text, which is a string in quotation marks or the name of a constant.
    /// It is needed for values that are not numbers, and if the condition [compares
    /// texts](Condition::compares_texts).
    pub text: String,
    /// Whether the operand is a constant of an enumeration, or a variant, instead of a variable. In
    /// that case, the text is its name.
    pub is_constant: bool,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The result depends on an operand without a value, for this reason.
    Unknown(String),
}

impl Condition {
    /// Whether the condition compares a value with a string. If so, it needs the values of its
    /// paths as text.
    pub fn compares_texts(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Text(_)))
    }

    /// Returns whether the condition holds. `look` returns the value of one of the
    /// [`paths`](Self::paths), or the reason why the path has no value. It is called only for paths
    /// on which the result depends.
    pub fn holds(&self, look: impl FnMut(usize) -> Result<Held, PathError>) -> Truth {
        match self.evaluate(look).truth() {
            Ok(true) => Truth::True,
            Ok(false) => Truth::False,
            Err(why) => Truth::Unknown(why),
        }
    }

    /// Returns the result as text: a number, or a string in quotation marks. `look` is as for
    /// [`holds`](Self::holds).
    ///
    /// # Errors
    /// Returns an error if the result depends on a path without a value. The error gives the
    /// reason.
    pub fn result(
        &self,
        look: impl FnMut(usize) -> Result<Held, PathError>,
    ) -> Result<String, String> {
        match self.evaluate(look) {
            Value::Unknown(why) => Err(why),
            Value::Text(text) => Ok(quoted(text.as_bytes())),
            Value::Held(held) if !held.text.is_empty() => Ok(held.text),
            Value::Held(held) => match held.number {
                Some(Number::Integer(integer)) => Ok(integer.to_string()),
                Some(Number::Float(float)) => Ok(float.to_string()),
                None => Ok(held.text),
            },
        }
    }

    fn evaluate(&self, mut look: impl FnMut(usize) -> Result<Held, PathError>) -> Value {
        let mut stack: Vec<Value> = Vec::new();
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            let value = match step {
                Step::Variable(index) => match look(*index) {
                    Ok(held) => Value::Held(held),
                    Err(why) => Value::Unknown(why.to_string()),
                },
                Step::Number(number) => Value::of(*number),
                Step::Text(text) => Value::Text(text.clone()),
                Step::Unary(unary) => stack.pop().unwrap_or_default().unary(*unary),
                Step::Binary(binary) => {
                    let (right, left) = (stack.pop(), stack.pop());
                    left.unwrap_or_default()
                        .binary(*binary, right.unwrap_or_default())
                }
                Step::Decided { by, to } => {
                    let left = stack.pop().unwrap_or_default();
                    match left.truth() {
                        Ok(held) if held == *by => {
                            at = *to;
                            Value::truth_of(held)
                        }
                        _ => left,
                    }
                }
            };
            stack.push(value);
        }
        stack.pop().unwrap_or_default()
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => f.write_str("true"),
            Self::False => f.write_str("false"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
