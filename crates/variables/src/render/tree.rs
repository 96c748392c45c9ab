//! Values as trees, and the trees as text.

use std::fmt;

use crate::PathError;

/// How much of a value is shown. What is left out is counted ([`Rendered::omitted`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many records, arrays and followed pointers may be in each other.
    pub depth: u8,
    /// How many elements of an array.
    pub elements: u64,
    /// How many bytes of a string; 0 for none.
    pub string: usize,
    /// How many pointers in a row are followed.
    pub pointers: u8,
    /// Whether the text is shown that a pointer to characters points to.
    pub pointed: bool,
    /// How many parts in all.
    pub parts: usize,
}

impl Limits {
    /// Those of a value among others.
    pub const DEFAULT: Self = Self {
        depth: 6,
        elements: 32,
        string: 128,
        pointers: 0,
        pointed: true,
        parts: 4096,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A value, or a part of one, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The name of the member, `[3]` for an element, `*` for what a pointer points to; nothing for the whole.
    pub name: Option<String>,
    /// The type's name.
    pub type_name: String,
    /// What it is.
    pub shape: Shape,
    /// The value, unless it consists of children; for a pointer to characters, with the string.
    pub text: String,
    /// The parts.
    pub children: Vec<Self>,
    /// How many further parts there are.
    pub omitted: u64,
}

/// What a value is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number, a name, a string.
    Scalar,
    /// An address; the child, if there is one, is what is there.
    Pointer,
    /// Named members.
    Record,
    /// One of several alternatives: the child, whose name is that of the alternative.
    Variant,
    /// Elements.
    Sequence,
    /// There is no value, and this is why.
    Missing(Box<PathError>),
}

impl Rendered {
    /// Whether its members have numbers: rustc calls those of a tuple `__0`, `__1` and so on.
    fn is_tuple(&self) -> bool {
        let mut children = self.children.iter().enumerate();
        let numbered = |(i, child): (usize, &Self)| {
            let number = child
                .name
                .as_deref()
                .and_then(|name| name.strip_prefix("__"));
            number.is_some_and(|number| number.parse() == Ok(i))
        };
        self.shape == Shape::Record && !self.children.is_empty() && children.all(numbered)
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Rendered {
    /// One line, as C would write it. Recursion is bounded by the depth that was rendered.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.shape, &self.children[..]) {
            (Shape::Missing(why), _) => write!(f, "<{why}>"),
            (Shape::Scalar, _) | (Shape::Pointer, []) => f.write_str(&self.text),
            (Shape::Pointer, [pointee, ..]) => write!(f, "{} -> {pointee}", self.text),
            (Shape::Variant, [chosen]) => {
                f.write_str(chosen.name.as_deref().unwrap_or("_"))?;
                let empty = chosen.shape == Shape::Record
                    && chosen.children.is_empty()
                    && chosen.omitted == 0;
                match empty {
                    true => Ok(()),
                    false if chosen.is_tuple() => write!(f, "{chosen}"),
                    false => write!(f, " {chosen}"),
                }
            }
            (_, children) if self.is_tuple() => {
                f.write_str("(")?;
                for (i, child) in children.iter().enumerate() {
                    write!(f, "{}{child}", if i > 0 { ", " } else { "" })?;
                }
                match self.omitted {
                    0 => f.write_str(")"),
                    more => write!(f, ", … {} more)", grouped(more)),
                }
            }
            (_, children) => {
                if children.is_empty() && self.omitted == 0 {
                    return f.write_str("{}");
                }
                f.write_str("{ ")?;
                for (i, child) in children.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match &child.name {
                        Some(name) if self.shape != Shape::Sequence => {
                            write!(f, "{name} = {child}")?
                        }
                        _ => write!(f, "{child}")?,
                    }
                }
                match (self.omitted, children.is_empty()) {
                    (0, _) => {}
                    (_, true) => f.write_str("…")?,
                    (more, false) => write!(f, ", … {} more", grouped(more))?,
                }
                f.write_str(" }")
            }
        }
    }
}
