//! Trees that show values, and their text form.

use std::fmt;

use afterimage_ids::grouped;

use crate::PathError;

/// Limits on the shown part of a value. Omitted members and elements are counted
/// ([`Rendered::omitted`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum nesting of records, arrays and followed pointers.
    pub depth: u8,
    /// The maximum number of elements of an array or a container.
    pub elements: u64,
    /// The maximum number of bytes or code units of a string. With 0, character arrays are shown
    /// element by element, and pointers to characters without their text.
    pub string: usize,
    /// The maximum number of pointers followed in a row.
    pub pointers: u8,
    /// Whether to show the text to which a character pointer points.
    pub pointed: bool,
    /// The maximum total number of parts.
    pub parts: usize,
}

impl Limits {
    /// The limits for a value that is shown among other values.
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

/// A value or a part of a value, in displayed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The member's name, `<Base>` for a base class, `[3]` for an element, the key for a map's
    /// element, or `*` for a pointer's target. `None` for the whole value and for anonymous
    /// members.
    pub name: Option<String>,
    /// The type's name.
    pub type_name: String,
    /// The structure of the value.
    pub shape: Shape,
    /// The value, unless it consists of children. A character pointer includes its string.
    pub text: String,
    /// The displayed parts of the value.
    pub children: Vec<Self>,
    /// The number of omitted parts.
    pub omitted: u64,
}

/// The structure of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number, a name or a string.
    Scalar,
    /// An address. The child, if any, is its target.
    Pointer,
    /// The value has named members.
    Record,
    /// One of several alternatives. The child is its contents and has its name.
    Variant,
    /// The value has elements, as an array does.
    Sequence,
    /// There is no value, for this reason.
    Missing(Box<PathError>),
}

impl Rendered {
    /// Whether the members are numbered, as in a tuple. rustc calls them `__0`, `__1` and so on.
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

impl fmt::Display for Rendered {
    /// Writes the value on one line, as C would write it. The rendered depth bounds the recursion.
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
                if empty {
                    Ok(())
                } else if chosen.is_tuple() {
                    write!(f, "{chosen}")
                } else {
                    write!(f, " {chosen}")
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
