//! Parses path expressions, such as `p->next.key`, `a[3].x`, `*p` and `&v`.
//!
//! ```text
//! expression = ("*" | "&") expression | postfix
//! postfix    = primary { "." member | "->" member | "[" ( integer | text ) "]" }
//! member     = name | ( "size" | "len" | "length" ) [ "()" ]
//! primary    = name { "::" name } | "(" expression ")"
//! ```

use crate::PathError;
use crate::reader::Reader;

mod find;
mod held;
mod member;
mod resolve;

/// A step from one object to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A member, written `.name` or `->name`.
    Member {
        name: String,
        /// Whether the member was written with `->`, which requires a pointer.
        arrow: bool,
    },
    /// An element, written `[n]`.
    Index(i64),
    /// The value of a key of a map, written `["key"]`.
    Key(String),
    /// The target of a pointer, written `*`.
    Follow,
    /// The address of an object, written `&`.
    Address,
}

/// A parsed expression: a variable and the steps from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The name of the variable, including any `::`. A name with `::` means a global variable.
    pub variable: String,
    /// The steps, in the order in which they apply.
    pub(crate) steps: Vec<Step>,
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl Path {
    /// Parses an expression. O(length), without recursion.
    ///
    /// # Errors
    /// [`PathError::Syntax`] with the expected token and its place.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let (path, length) = Self::prefix(text)?;
        let mut reader = Reader { text, at: length };
        match reader.rest() {
            "" => Ok(path),
            rest if rest.starts_with(')') => {
                Err(reader.syntax("the end: there is no '(' for this ')'"))
            }
            _ => Err(reader.syntax("'.', '->', '[' or the end")),
        }
    }

    /// Whether the expression is a variable alone.
    pub fn is_variable(&self) -> bool {
        self.steps.is_empty()
    }

    /// Parses an expression at the beginning of a string, and returns its length in bytes.
    /// O(length), without recursion.
    ///
    /// # Errors
    /// Returns the same errors as [`parse`](Self::parse), but any text may follow the expression.
    pub fn prefix(text: &str) -> Result<(Self, usize), PathError> {
        let mut reader = Reader { text, at: 0 };
        // These are prefix operators, with the parentheses around them.
        let mut waiting = Vec::new();
        loop {
            if reader.take("*") {
                waiting.push(Some(Step::Follow));
            } else if reader.take("&") {
                waiting.push(Some(Step::Address));
            } else if reader.take("(") {
                waiting.push(None);
            } else {
                break;
            }
        }
        let mut open = waiting.iter().filter(|one| one.is_none()).count();
        let variable = reader.variable()?;
        let mut steps = Vec::new();
        loop {
            if reader.take("->") {
                steps.push(reader.member(true)?);
            } else if reader.take(".") {
                steps.push(reader.member(false)?);
            } else if reader.take("[") {
                steps.push(if reader.rest().starts_with('"') {
                    Step::Key(reader.key()?)
                } else {
                    Step::Index(reader.integer()?)
                });
                reader.expect("]", "']'")?;
            } else if open > 0 && reader.take(")") {
                open -= 1;
                while let Some(Some(step)) = waiting.pop() {
                    steps.push(step);
                }
            } else {
                break;
            }
        }
        let length = reader.at;
        while let Some(step) = waiting.pop() {
            steps.push(step.ok_or_else(|| reader.syntax("')'"))?);
        }
        Ok((Self { variable, steps }, length))
    }
}

impl<'t> Reader<'t> {
    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), PathError> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.syntax(expected))
        }
    }

    fn syntax(&self, expected: &'static str) -> PathError {
        PathError::Syntax {
            at: self.at,
            expected,
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn variable(&mut self) -> Result<String, PathError> {
        let start = self.at + (self.text[self.at..].len() - self.rest().len());
        self.take("::");
        loop {
            let word = self.word();
            if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
                self.at -= word.len();
                return Err(self.syntax("the name of a variable"));
            }
            if !self.take("::") {
                let name = self.text[start..self.at].split_whitespace();
                return Ok(name.collect());
            }
        }
    }

    fn member(&mut self, arrow: bool) -> Result<Step, PathError> {
        let word = self.word();
        // Members of Rust's tuples are numbers, which DWARF calls __0, __1 and so on.
        let name = match word.bytes().next() {
            None => return Err(self.syntax("the name of a member")),
            Some(b'0'..=b'9') => format!("__{word}"),
            Some(_) => word.to_string(),
        };
        // These names request the number of elements, as in programs.
        if self.take("(") {
            if !held::COUNTS.contains(&&*name) {
                self.at -= 1;
                return Err(self.syntax("no call other than size(), len() or length()"));
            }
            self.expect(")", "')'")?;
        }
        Ok(Step::Member { name, arrow })
    }

    /// Returns a string between quotation marks.
    fn key(&mut self) -> Result<String, PathError> {
        let start = self.at + (self.text[self.at..].len() - self.rest().len());
        let mut key = String::new();
        let mut signs = self.text[start..].char_indices().skip(1);
        while let Some((at, sign)) = signs.next() {
            let after = start + at + sign.len_utf8();
            match sign {
                '"' => {
                    self.at = after;
                    return Ok(key);
                }
                '\\' => key.push(match signs.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'r')) => '\r',
                    Some((_, '0')) => '\0',
                    Some((_, same @ ('\\' | '"' | '\''))) => same,
                    _ => {
                        self.at = after;
                        return Err(self.syntax("one of n, t, r, 0, \\, \" and '"));
                    }
                }),
                sign => key.push(sign),
            }
        }
        self.at = start;
        Err(self.syntax("the closing quotation mark"))
    }

    fn integer(&mut self) -> Result<i64, PathError> {
        let negative = self.take("-");
        let start = self.at;
        let word = self.word();
        let magnitude = match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let Ok(magnitude) = magnitude else {
            self.at = start;
            return Err(self.syntax("an integer or a string"));
        };
        Ok(if negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> (String, Vec<Step>) {
        let path = Path::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        (path.variable, path.steps)
    }

    fn member(name: &str, arrow: bool) -> Step {
        Step::Member {
            name: name.into(),
            arrow,
        }
    }

    #[test]
    fn postfix_binds_tighter_than_prefix() {
        use Step::{Address, Follow, Index};
        assert_eq!(
            steps("p->next.key"),
            ("p".into(), vec![member("next", true), member("key", false)])
        );
        assert_eq!(
            steps("*p.x"),
            ("p".into(), vec![member("x", false), Follow])
        );
        assert_eq!(
            steps("(*p).x"),
            ("p".into(), vec![Follow, member("x", false)])
        );
        assert_eq!(
            steps(" & ( * a [ 3 ] ) . x "),
            (
                "a".into(),
                vec![Index(3), Follow, member("x", false), Address]
            )
        );
        assert_eq!(steps("((a))[-0x10]"), ("a".into(), vec![Index(-16)]));
        assert_eq!(
            steps("::geo::Other::count"),
            ("::geo::Other::count".into(), vec![])
        );
        assert_eq!(
            steps("t.0.1"),
            ("t".into(), vec![member("__0", false), member("__1", false)])
        );
        for text in ["v.size()", "v.size", "v . size ( )"] {
            assert_eq!(steps(text), ("v".into(), vec![member("size", false)]));
        }
        assert_eq!(steps("(*p).len()").1.len(), 2);
        assert_eq!(steps("**p"), ("p".into(), vec![Follow, Follow]));
        assert_eq!(
            steps(r#"m["a\"]b"].x"#),
            (
                "m".into(),
                vec![Step::Key("a\"]b".into()), member("x", false)]
            )
        );
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| match Path::parse(text) {
            Err(PathError::Syntax { at, expected }) => (at, expected),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(error(""), (0, "the name of a variable"));
        assert_eq!(error("3"), (0, "the name of a variable"));
        assert_eq!(error("a::"), (3, "the name of a variable"));
        assert_eq!(error("a."), (2, "the name of a member"));
        assert_eq!(
            error("a.front()"),
            (7, "no call other than size(), len() or length()")
        );
        assert_eq!(error("a.size(1)"), (7, "')'"));
        assert_eq!(error("a[x]"), (2, "an integer or a string"));
        assert_eq!(error("a[\"x"), (2, "the closing quotation mark"));
        assert_eq!(error("a[\"x\""), (5, "']'"));
        assert_eq!(error("a[1"), (3, "']'"));
        assert_eq!(error("(a"), (2, "')'"));
        assert_eq!(error("a)").0, 1);
        assert_eq!(error("a+1"), (1, "'.', '->', '[' or the end"));
        assert_eq!(
            error("a[99999999999999999999]"),
            (2, "an integer or a string")
        );
    }

    #[test]
    fn nesting_needs_no_stack() {
        let deep = 100_000;
        let text = format!("{}a{}", "(*".repeat(deep), ")".repeat(deep));
        assert_eq!(steps(&text).1.len(), deep);
    }
}
