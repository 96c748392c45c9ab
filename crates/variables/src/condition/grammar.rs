//! Parses a condition with C's operators and their precedence.

use std::str::FromStr;

use super::{Binary, Condition, ConditionError, Number, Step, Unary};
use crate::reader::Reader;
use crate::{Path, PathError};

/// The binary operators with their precedence in C, longer operators first.
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

/// A part that waits for its right operand, or for a closing parenthesis.
enum Waiting {
    Unary(Unary),
    /// The operator, its precedence, and the step that skips its right operand.
    Binary(Binary, u8, Option<usize>),
    Open(usize),
}

impl FromStr for Condition {
    type Err = ConditionError;

    /// Parses a condition. Takes linear time, and does not recurse.
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
    /// Completes a waiting operator that has both operands. Returns an opening parenthesis
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
                    "the name of a variable" => "a variable, a number, a string or '('",
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
        // In C, 010 is 8. In other languages, it is 10.
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
