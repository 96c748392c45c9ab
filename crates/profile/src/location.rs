//! Reads places in a program, as people write them.
//!
//! ```text
//! file.c:42        a source line           func          a function, by name or demangled name
//! file.c:42:7      … from this column      12, func[12]  a function, by index
//! @0x1f3           an operator, by its     func+0x2a     an operator, by its distance from the
//!                  offset in the module                  start of the function's body; func+0 is
//!                                                        the first one, after the locals
//! ```
//! A place may end in `#K` or `#last`. They select its K-th execution, counted from 1, or its last
//! execution. Rust names contain `#` and `:` (`run::{closure#0}`), so these characters have a
//! meaning only at the very end. A string that is a function's whole name means that function.

use std::str::FromStr;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_program::{LineError, NameError};
use thiserror::Error;

use crate::{Line, ProfileError};

/// The selected execution of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The K-th execution, from 1.
    Kth(u64),
    /// The last execution.
    Last,
}

impl FromStr for Occurrence {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, number(text)) {
            ("last", _) => Ok(Self::Last),
            (_, Some(number)) if number > 0 => Ok(Self::Kth(number)),
            _ => Err("write a number of at least 1, or last"),
        }
    }
}

/// A place as written, classified by its form alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form<'t> {
    /// A line, as `file.c:42`, or a column of a line, as `file.c:42:7`.
    Line {
        /// The file's path, or a suffix of the path.
        file: &'t str,
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: Option<u32>,
    },
    /// An offset in the module, as `@0x1f3`.
    Offset(OrigOffset),
    /// An offset in a function's body, as `func+0x2a`.
    Within {
        /// The function, as written.
        function: &'t str,
        /// The number of bytes from the start of the function's body.
        distance: u32,
    },
    /// A function, which is any other text.
    Function(&'t str),
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A function as a whole.
    Function(FuncId),
    /// An operator of a function.
    Operator(FuncId, OpId),
    /// The instructions of a source line, by function and operator, in program order.
    Line(Line, Vec<(FuncId, OpId)>),
}

/// A place, or one execution of the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The place that the text names.
    pub place: Place,
    /// The selected execution, or `None` if the text selects none.
    pub occurrence: Option<Occurrence>,
}

/// The reason why a string is not a location in a program. Each error names the nearest location,
/// if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// The text is empty.
    #[error(
        "a location is empty; write file.c:42, a function's name or index, func+0x2a or @0x1f3"
    )]
    Empty,
    /// The text ends in `#0`, but executions are counted from 1.
    #[error("\"{0}\" selects execution 0, but executions are counted from 1")]
    Zeroth(String),
    /// The text after `#` is not a number.
    #[error("\"{0}\": after the #, write the number of an execution (1 or more), or last")]
    Number(String),
    /// The number after `#` is too large.
    #[error("the execution number in \"{0}\" is too large: write a smaller number, or #last")]
    Large(String),
    /// The text after `@` is not an offset.
    #[error("\"{0}\" is not an offset in the module: write @0x1f3, or @499 in decimal")]
    Offset(String),
    /// The text after `+` is not a distance.
    #[error(
        "the + of \"{0}\" is not followed by a distance: write func+0x2a, or func+42 in \
        decimal"
    )]
    Distance(String),
    /// The text after a file is not a line.
    #[error(
        "the : of \"{0}\" is not followed by a line: write file.c:42; lines are counted from 1"
    )]
    NoLine(String),
    /// The text after a line is not a column.
    #[error(
        "the last : of \"{0}\" is not followed by a column: write file.c:42:7; columns are \
         counted from 1"
    )]
    Column(String),
    /// The text is a time, or a part of the run.
    #[error(
        "\"{0}\" is a moment of the run, not a place: write file.c:42, a function, func+0x2a or \
         @0x1f3"
    )]
    Moment(String),
    /// The text is a moment with a `#`, but a moment occurs only once.
    #[error(
        "\"{0}\" is a moment of the run, which occurs only once: # counts the executions of \
        a place"
    )]
    Once(String),
    /// The text names no function, or several functions.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The text names no line with code.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A line has only inlined calls, in several places.
    #[error(
        "{path}:{line} has only inlined calls, and their code begins at {} places: write one of {}",
        starts.len(),
        few(starts.iter().map(|start| format!("@{start}")))
    )]
    Inlined {
        /// The file's path.
        path: String,
        /// The number of the line.
        line: u32,
        /// The offsets at which the code begins.
        starts: Vec<OrigOffset>,
    },
    /// A line has no code, but declares several functions, such as the instances of a generic
    /// function.
    #[error(
        "{line} has no code, but declares {} functions: write one of {}",
        functions.len(),
        few(functions.iter().map(String::as_str))
    )]
    Declares {
        /// The line, such as `file.c:42`.
        line: String,
        /// The functions, each in the form `func[12] name`.
        functions: Vec<String>,
    },
    /// An imported function has no body.
    #[error("{0} is imported, so its code is not in this module")]
    Imported(String),
    /// No operator begins at the offset.
    #[error("no operator begins at {offset}{}", nearest_offset(*nearest))]
    NoOperator {
        /// The offset in the module.
        offset: OrigOffset,
        /// The offset of the nearest operator, if there is one.
        nearest: Option<OrigOffset>,
    },
    /// The text is not a range with two ends.
    #[error("\"{0}\" is not a range of locations: write FIRST..LAST, both included")]
    NoRange(String),
    /// The module's bytes do not match the program.
    #[error(transparent)]
    Module(#[from] ProfileError),
}

fn few(all: impl Iterator<Item = impl ToString>) -> String {
    const SHOWN: usize = 8;
    let mut list = Vec::from_iter(all.take(SHOWN + 1).map(|one| one.to_string()));
    if let Some(more) = list.get_mut(SHOWN) {
        *more = "…".to_owned();
    }
    list.join(", ")
}

fn nearest_offset(nearest: Option<OrigOffset>) -> String {
    nearest.map_or(String::new(), |offset| {
        format!("; the nearest begins at {offset}")
    })
}

/// Splits `#K` or `#last` off the end of a string.
///
/// # Errors
/// Returns an error if K is 0. A `#` followed by anything else belongs to the name.
pub fn split_occurrence(text: &str) -> Result<(&str, Option<Occurrence>), ResolveError> {
    let Some((place, which)) = text.rsplit_once('#') else {
        return Ok((text, None));
    };
    if which == "last" {
        return Ok((place, Some(Occurrence::Last)));
    }
    match number(which) {
        Some(0) => Err(ResolveError::Zeroth(text.to_owned())),
        Some(k) => Ok((place, Some(Occurrence::Kth(k)))),
        None => Ok((text, None)),
    }
}

/// Classifies a place by its form, without `#K`.
pub fn form(text: &str) -> Form<'_> {
    // People write paths in the current folder with `./`.
    let text = text.strip_prefix("./").unwrap_or(text);
    // Reports omit the `@` in a column of offsets.
    let after = text.strip_prefix('@');
    let bare = || text.starts_with("0x").then_some(text);
    if let Some(offset) = after.or_else(bare).and_then(offset) {
        return Form::Offset(OrigOffset(offset));
    }
    if let Some((rest, last)) = text
        .rsplit_once(':')
        .filter(|(rest, _)| !rest.ends_with(':'))
    {
        let last = decimal(last)
            .and_then(|n| u32::try_from(n).ok())
            .filter(|&n| n > 0);
        if let Some(last) = last.filter(|_| !rest.is_empty()) {
            let two = rest.rsplit_once(':').and_then(|(file, line)| {
                Some((file, decimal(line).and_then(|n| u32::try_from(n).ok())?))
            });
            return match two {
                Some((file, line)) if line > 0 && !file.is_empty() => Form::Line {
                    file,
                    line,
                    column: Some(last),
                },
                _ => Form::Line {
                    file: rest,
                    line: last,
                    column: None,
                },
            };
        }
    }
    let within = text
        .rsplit_once('+')
        .filter(|(function, _)| !function.is_empty());
    match within.and_then(|(function, distance)| Some((function, offset(distance)?))) {
        Some((function, distance)) => Form::Within { function, distance },
        None => Form::Function(text),
    }
}

/// Whether a string is a time or a part of the run. Other moments are words, which may also be
/// names of functions.
pub(crate) fn is_moment(text: &str) -> bool {
    let percent = text.strip_suffix('%');
    let time = text.strip_prefix("t=").or_else(|| text.strip_prefix('-'));
    percent.is_some_and(|part| {
        part.starts_with(|c: char| c.is_ascii_digit()) && part.parse::<f64>().is_ok()
    }) || time.and_then(number).is_some()
}

/// Returns the ways to split `FIRST..LAST` in two. The split at the last dots comes first, because
/// names may contain dots, too.
pub(crate) fn cuts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = text
        .rmatch_indices("..")
        .map(|(at, _)| (&text[..at], &text[at + 2..]));
    dots.filter(|(first, last)| !first.is_empty() && !last.is_empty())
}

/// Reads an unsigned number, which is decimal, or hexadecimal after `0x`.
fn offset(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u32::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None => decimal(text).and_then(|n| u32::try_from(n).ok()),
    }
}

/// Reads an unsigned decimal number. Commas or underscores may separate groups of three digits.
pub fn number(text: &str) -> Option<u64> {
    let separator = if text.contains('_') { '_' } else { ',' };
    let mut groups = text.split(separator);
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || !(1..=3).contains(&first.len()) {
            return None;
        }
        digits.push_str(group);
    }
    decimal(&digits)
}

/// Reads an unsigned decimal number without separators.
fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occurrence_is_read_at_the_end_only() {
        let split = |text| split_occurrence(text).unwrap();
        assert_eq!(split("main#3"), ("main", Some(Occurrence::Kth(3))));
        assert_eq!(split("a.c:4#last"), ("a.c:4", Some(Occurrence::Last)));
        assert_eq!(split("run::{closure#0}"), ("run::{closure#0}", None));
        assert_eq!(
            split("run::{closure#0}#7"),
            ("run::{closure#0}", Some(Occurrence::Kth(7)))
        );
        assert_eq!(split("f#-1"), ("f#-1", None));
        assert_eq!(split("f#"), ("f#", None));
        assert!(matches!(
            split_occurrence("f#0"),
            Err(ResolveError::Zeroth(_))
        ));
        // The number is too large for any execution, so it stays part of a name unless no function
        // has that name.
        assert_eq!(
            split("f#99999999999999999999"),
            ("f#99999999999999999999", None)
        );
    }

    #[test]
    fn digits_may_be_grouped_as_reports_write_them() {
        assert_eq!(number("1234567"), Some(1_234_567));
        assert_eq!(number("1,234,567"), Some(1_234_567));
        assert_eq!(number("1_000"), Some(1000));
        assert_eq!(split_occurrence("f#1,000").unwrap().0, "f");
        for wrong in [
            "",
            ",",
            "1,00",
            "1,0000",
            ",000",
            "1000,000",
            "1,_000",
            "1_000,000",
            "-1,000",
        ] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn forms() {
        let line = |file, line, column| Form::Line { file, line, column };
        assert_eq!(form("a.c:42"), line("a.c", 42, None));
        assert_eq!(form("dir/a.c:42:7"), line("dir/a.c", 42, Some(7)));
        assert_eq!(form("C:/x/a.c:42"), line("C:/x/a.c", 42, None));
        assert_eq!(form("@0x1F"), Form::Offset(OrigOffset(31)));
        assert_eq!(form("@31"), Form::Offset(OrigOffset(31)));
        assert_eq!(form("0x1f"), Form::Offset(OrigOffset(31)));
        assert_eq!(form("0x1g"), Form::Function("0x1g"));
        assert_eq!(form("./a.c:42"), line("a.c", 42, None));
        assert_eq!(
            form("f+0x2a"),
            Form::Within {
                function: "f",
                distance: 42
            }
        );
        assert_eq!(form("12"), Form::Function("12"));
        assert_eq!(
            form("func[12]+8"),
            Form::Within {
                function: "func[12]",
                distance: 8
            }
        );
        for name in [
            "a::b",
            "core::ops::Add+x",
            "operator+",
            "a.c:0",
            ":4",
            "x::7",
            "@x",
            "@0x",
        ] {
            assert_eq!(form(name), Form::Function(name), "{name}");
        }
    }

    #[test]
    fn a_range_is_cut_at_any_pair_of_dots() {
        let found: Vec<_> = cuts("a$u20$..b..c:4").collect();
        assert_eq!(found, [("a$u20$..b", "c:4"), ("a$u20$", "b..c:4")]);
        assert_eq!(
            cuts("..a").count() + cuts("a..").count() + cuts("a.b").count(),
            0
        );
    }
}
