//! Conditions about variables: `fee < 0 && a->balance > 10`.
//!
//! docs/EXPRESSIONS.md defines their meaning. An expression is kept in postfix order, so neither
//! parsing nor evaluating it recurses.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::reader::Reader;
use crate::{Path, PathError, quoted};

/// A parsed condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The variables that it names, each once, in order.
    pub paths: Vec<(String, Path)>,
    /// The postfix steps: operands before their operators.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// One of [`Condition::paths`].
    Variable(usize),
    Number(Number),
    Text(String),
    Unary(Unary),
    Binary(Binary),
    /// Continues at `to` if the left operand of `&&` or `||` decides.
    Decided {
        by: bool,
        to: usize,
    },
}

/// An integer or a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer of any type, with its mathematical value: nothing overflows below 2^127.
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

/// The binary operators, longer ones first, with their precedence: as in C.
const BINARY: [(&str, Binary, u8); 18] = [
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("==", Binary::Equal, 6),
    ("!=", Binary::NotEqual, 6),
    ("<<", Binary::Left, 8),
    (">>", Binary::Right, 8),
    ("<=", Binary::AtMost, 7),
    (">=", Binary::AtLeast, 7),
    ("|", Binary::BitOr, 3),
    ("^", Binary::BitXor, 4),
    ("&", Binary::BitAnd, 5),
    ("<", Binary::Less, 7),
    (">", Binary::Greater, 7),
    ("+", Binary::Add, 9),
    ("-", Binary::Subtract, 9),
    ("*", Binary::Multiply, 10),
    ("/", Binary::Divide, 10),
    ("%", Binary::Remainder, 10),
];

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

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected} at character {at} of the condition")]
pub struct ConditionError {
    /// The position, in characters from 1.
    pub at: usize,
    /// The expected token there.
    pub expected: &'static str,
}

/// The value of a condition's operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its value, if it is a single number.
    pub number: Option<Number>,
    /// Its value as text: of a string with quotation marks, of a constant its name. Needed for
    /// values that are not numbers, and if the condition [compares
    /// texts](Condition::compares_texts).
    pub text: String,
    /// Whether it is no variable but a constant of an enumeration or a variant, with its name as
    /// the text.
    pub is_constant: bool,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It depends on something without a value; the reason.
    Unknown(String),
}

/// A part that waits for its right operand, or for a closing parenthesis.
enum Waiting {
    Unary(Unary),
    /// The operator, its precedence, and the step that skips its right operand.
    Binary(Binary, u8, Option<usize>),
    Open(usize),
}

impl FromStr for Condition {
    type Err = ConditionError;

    /// Parses a condition. Linear, without recursion.
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut reader = Reader { text, at: 0 };
        let mut condition = Self {
            paths: Vec::new(),
            steps: Vec::new(),
        };
        let mut waiting: Vec<Waiting> = Vec::new();
        loop {
            // Prefix operators before an operand.
            let unary = match reader.rest().as_bytes() {
                [b'!', b'=', ..] => None,
                [b'!', ..] => Some(Unary::Not),
                [b'-', ..] => Some(Unary::Minus),
                [b'+', ..] => Some(Unary::Plus),
                [b'~', ..] => Some(Unary::Complement),
                _ => None,
            };
            if let Some(unary) = unary {
                reader.at += 1;
                waiting.push(Waiting::Unary(unary));
                continue;
            }
            let at = reader.at;
            let inside = text[at..].strip_prefix('(').map(str::trim_start);
            // A parenthesis is part of a variable only in forms like (*p).x.
            let found = match inside {
                Some(inside) if !inside.starts_with(['*', '&']) => None,
                Some(_) => reader.operand(&mut condition.paths).ok(),
                None => Some(reader.operand(&mut condition.paths)?),
            };
            let Some(step) = found else {
                waiting.push(Waiting::Open(at));
                reader.at = at + 1;
                continue;
            };
            condition.steps.push(step);
            while reader.rest().starts_with(')') {
                let mut opened = false;
                while let Some(one) = waiting.pop() {
                    match condition.done(one) {
                        None => {}
                        Some(_) => {
                            opened = true;
                            break;
                        }
                    }
                }
                if !opened {
                    return Err(reader.error("the end: there is no '(' for this ')'"));
                }
                reader.at += 1;
            }
            if reader.rest().is_empty() {
                break;
            }
            let rest = reader.rest();
            let found = BINARY.iter().find(|(sign, ..)| rest.starts_with(sign));
            let Some(&(sign, operator, binds)) = found else {
                return Err(reader.error("an operator, such as ==, < or &&, or the end"));
            };
            while let Some(before) = waiting.last() {
                match before {
                    Waiting::Open(_) => break,
                    Waiting::Binary(before, other, _) => {
                        if *other < binds {
                            break;
                        }
                        if before.is_comparison() && operator.is_comparison() && *other == binds {
                            return Err(reader.error("&& or ||: comparisons do not chain"));
                        }
                    }
                    Waiting::Unary(_) => {}
                }
                if let Some(before) = waiting.pop() {
                    condition.done(before);
                }
            }
            reader.at += sign.len();
            let by = operator == Binary::Or;
            let passes = by || operator == Binary::And;
            let passes = passes.then_some(condition.steps.len());
            if passes.is_some() {
                condition.steps.push(Step::Decided { by, to: 0 });
            }
            waiting.push(Waiting::Binary(operator, binds, passes));
        }
        while let Some(one) = waiting.pop() {
            if condition.done(one).is_some() {
                return Err(reader.error("')'"));
            }
        }
        Ok(condition)
    }
}

impl Condition {
    /// Completes a waiting operator whose operands are both there. Returns an opening parenthesis
    /// unchanged.
    fn done(&mut self, waited: Waiting) -> Option<usize> {
        match waited {
            Waiting::Unary(unary) => self.steps.push(Step::Unary(unary)),
            Waiting::Binary(binary, _, passes) => {
                self.steps.push(Step::Binary(binary));
                let end = self.steps.len();
                let step = passes.and_then(|at| self.steps.get_mut(at));
                if let Some(Step::Decided { to, .. }) = step {
                    *to = end;
                }
            }
            Waiting::Open(at) => return Some(at),
        }
        None
    }

    /// Whether it compares something with a text, for which it needs the text of what its paths
    /// hold.
    pub fn compares_texts(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Text(_)))
    }

    /// Whether it holds. `look` returns the value of one of [`paths`](Self::paths), or why it has
    /// none. It is called only for paths that matter.
    pub fn holds(&self, look: impl FnMut(usize) -> Result<Held, PathError>) -> Truth {
        match self.evaluate(look).truth() {
            Ok(true) => Truth::True,
            Ok(false) => Truth::False,
            Err(why) => Truth::Unknown(why),
        }
    }

    /// Returns its result as text: a number, or a text with quotation marks. `look` as for
    /// [`holds`](Self::holds).
    ///
    /// # Errors
    /// If the result depends on a path without a value; the error gives the reason.
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

impl Held {
    /// Whether a variable holds a constant. Names are compared if the variable's value has one;
    /// `None` if numbers have to be compared.
    fn is_constant_of(&self, constant: &Self) -> Option<Result<bool, String>> {
        let text = &self.text;
        let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':' | '#');
        let end = text.find(|sign| !is_part(sign)).unwrap_or(text.len());
        let name = text[..end].rsplit("::").next().unwrap_or_default();
        let is_name = name.starts_with(|sign: char| sign.is_alphabetic() || sign == '_');
        // What follows a variant's name are its contents; flags are several names.
        let is_single = self.number.is_none() || end == text.len();
        match (is_name && is_single, constant.number.zip(self.number)) {
            (true, _) => Some(Ok(name == constant.text)),
            // An optional holds something, which is no constant.
            (false, None) if ["nullopt", "None"].contains(&&*constant.text) => Some(Ok(false)),
            (false, Some(_)) => None,
            (false, None) => Some(Err(format!("{} has no number", constant.text))),
        }
    }
}

/// A value while a condition is evaluated.
#[derive(Clone, Debug)]
enum Value {
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
    fn of(number: Number) -> Self {
        Self::Held(Held {
            number: Some(number),
            text: String::new(),
            is_constant: false,
        })
    }

    fn truth_of(held: bool) -> Self {
        Self::of(Number::Integer(held.into()))
    }

    fn number(&self) -> Result<Number, String> {
        match self {
            Self::Held(held) => {
                let number = held.number;
                let kind = match held.text.as_str() {
                    text if text.starts_with('"') => "a text",
                    "nullopt" => "an empty optional",
                    _ => "a structure",
                };
                number.ok_or_else(|| format!("{kind} is not a number"))
            }
            Self::Text(_) => Err("a text is not a number".to_owned()),
            Self::Unknown(why) => Err(why.clone()),
        }
    }

    fn integer(&self) -> Result<i128, String> {
        match self.number()? {
            Number::Integer(integer) => Ok(integer),
            Number::Float(float) => Err(format!("{float} is not an integer")),
        }
    }

    fn truth(&self) -> Result<bool, String> {
        Ok(match self.number()? {
            Number::Integer(integer) => integer != 0,
            Number::Float(float) => float != 0.0,
        })
    }

    fn unary(self, unary: Unary) -> Self {
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

    fn binary(self, binary: Binary, right: Self) -> Self {
        match binary {
            // An operand that decides, whatever the other is.
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
                    _ => Self::Unknown("texts have no order".to_owned()),
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

    /// Whether it is the same text as another value. Returns `None` unless one of them can only be
    /// text.
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
                        Err("a structure is neither a number nor a text".to_owned())
                    } else if held.text.ends_with('"') {
                        Ok(())
                    } else {
                        Err("a text is not known in full".to_owned())
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
        // Pointers to characters start with their address.
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
                Err("a text is not known in full".to_owned())
            };
        }
        // The name of a constant or of flags, and nothing with contents.
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
            (false, Some(_)) => Err("a number is not a text".to_owned()),
            (false, None) => Err("a structure is not a text".to_owned()),
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

impl Reader<'_> {
    fn error(&self, expected: &'static str) -> ConditionError {
        ConditionError {
            at: self.text[..self.at].chars().count() + 1,
            expected,
        }
    }

    fn operand(&mut self, paths: &mut Vec<(String, Path)>) -> Result<Step, ConditionError> {
        let rest = self.rest();
        match rest.chars().next() {
            Some('0'..='9') => return self.number(),
            Some('"') => return self.string(),
            Some('\'') => return self.character(),
            _ => {}
        }
        for (word, number) in [("true", 1), ("false", 0), ("NULL", 0), ("nullptr", 0)] {
            let after = rest.strip_prefix(word);
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ':' | '.' | '[');
            if after.is_some_and(|after| !after.starts_with(is_name)) {
                self.at += word.len();
                return Ok(Step::Number(Number::Integer(number)));
            }
        }
        let (path, length) = Path::prefix(rest).map_err(|error| match error {
            PathError::Syntax { at, expected } => {
                self.at += at;
                self.error(match expected {
                    "the name of a variable" => "a variable, a number, a text or '('",
                    other => other,
                })
            }
            _ => self.error("a variable"),
        })?;
        self.at += length;
        let text = rest[..length].trim().to_owned();
        let known = paths.iter().position(|(_, known)| *known == path);
        let index = known.unwrap_or(paths.len());
        if known.is_none() {
            paths.push((text, path));
        }
        Ok(Step::Variable(index))
    }

    fn number(&mut self) -> Result<Step, ConditionError> {
        let rest = self.rest();
        let is_hex = rest.starts_with("0x") || rest.starts_with("0X");
        let inside = |(at, c): (usize, char)| {
            let before = rest[..at].chars().next_back();
            let is_sign = matches!(c, '+' | '-') && !is_hex && matches!(before, Some('e' | 'E'));
            !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || is_sign)
        };
        let end = rest.char_indices().find(|&sign| inside(sign));
        let word = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        let plain = word.replace('_', "");
        let integer = plain.trim_end_matches(['u', 'U', 'l', 'L']);
        let found = if is_hex {
            i128::from_str_radix(&integer[2..], 16)
                .ok()
                .map(Number::Integer)
        } else {
            let whole = integer.parse().ok().map(Number::Integer);
            let float = || {
                plain
                    .trim_end_matches(['f', 'F'])
                    .parse()
                    .ok()
                    .map(Number::Float)
            };
            whole.or_else(float)
        };
        // In C, 010 is 8; in other languages it is 10.
        let is_octal = word.len() > 1 && word.starts_with('0') && !is_hex && !word.contains('.');
        let found = found.filter(|_| !is_octal);
        let found = found.ok_or_else(|| self.error("a number, such as 42, 0x2a or 1.5"))?;
        self.at += word.len();
        Ok(Step::Number(found))
    }

    fn string(&mut self) -> Result<Step, ConditionError> {
        let text = self.quoted('"')?;
        Ok(Step::Text(text))
    }

    fn character(&mut self) -> Result<Step, ConditionError> {
        let before = self.at;
        let text = self.quoted('\'')?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(one), None) => Ok(Step::Number(Number::Integer(u32::from(one).into()))),
            _ => {
                self.at = before;
                Err(self.error("one character between the quotation marks"))
            }
        }
    }

    /// Reads the text between two quotation marks.
    fn quoted(&mut self, mark: char) -> Result<String, ConditionError> {
        let rest = self.rest();
        let mut found = String::new();
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, sign)) = characters.next() {
            match sign {
                '\\' => match characters.next() {
                    Some((_, 'n')) => found.push('\n'),
                    Some((_, 't')) => found.push('\t'),
                    Some((_, 'r')) => found.push('\r'),
                    Some((_, '0')) => found.push('\0'),
                    Some((_, same @ ('\\' | '"' | '\''))) => found.push(same),
                    _ => {
                        self.at += at;
                        return Err(self.error("one of \\n, \\t, \\r, \\0, \\\\, \\\" and \\'"));
                    }
                },
                sign if sign == mark => {
                    self.at += at + 1;
                    return Ok(found);
                }
                sign => found.push(sign),
            }
        }
        self.at = self.text.len();
        Err(self.error("the closing quotation mark"))
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
