//! Compares two values of a variable. The versions of the program may place their objects at
//! different addresses.

use afterimage_variables::{Nothing, Rendered, Shape, Variables};

/// The result of comparing two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The values are the same.
    Same,
    /// The values differ. The text is the differing part, as written after the variable's name. It
    /// is empty if the whole value differs.
    Different(String),
    /// The values are too large, contain addresses of unknown objects, or are not known in the
    /// unoptimised run.
    Incomparable {
        /// The part that cannot be compared.
        part: String,
        /// The reason why the part cannot be compared.
        why: &'static str,
    },
    /// A part of the first value is not available, and the rest is equal.
    Missing {
        /// The part that is missing.
        part: String,
        /// The reason why the part is missing.
        why: String,
    },
}

/// The addresses of a program's global variables.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// First address, end address and name of each variable, in ascending order.
    known: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Collects the symbols of a program. Leaves out variables that have no fixed place or share a
    /// name. If two of the remaining variables overlap, the result is empty. O(n log n) in the
    /// global variables.
    pub fn new(variables: &Variables<'_>) -> Self {
        let mut known = Vec::new();
        for global in variables.globals().unwrap_or_default() {
            let Ok(variable) = variables.global_variable(&global) else {
                continue;
            };
            let place = variables.locate(&variable, None, &Nothing);
            let Some(range) = place.ok().and_then(|object| object.memory().next()) else {
                continue;
            };
            let Ok(name) = variables.full_name(&global) else {
                continue;
            };
            if !range.is_empty() {
                known.push((range.start, range.end, name));
            }
        }
        known.sort_unstable();
        known.dedup();
        let mut names = std::collections::HashMap::<String, u32>::new();
        for (_, _, name) in &known {
            *names.entry(name.clone()).or_default() += 1;
        }
        known.retain(|(_, _, name)| names[name] == 1);
        let apart = known.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        Self {
            known: if apart { known } else { Vec::new() },
        }
    }

    /// Returns the variable that contains an address, and the offset in it. O(log n).
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let after = self
            .known
            .partition_point(|(start, _, _)| *start <= address);
        let (start, end, name) = self.known[..after].last()?;
        (address < *end).then_some((name.as_str(), address - start))
    }
}

/// Compares the optimised run's value with the expected value. Numbers, names and strings are the
/// same if they are written in the same way. Records and arrays are the same if their parts are.
///
/// Two addresses are the same if they are equal, have the same offset in the same global variable,
/// or belong to functions of the same name. Other addresses of objects cannot be compared.
///
/// O(parts). The rendered depth bounds the recursion.
pub fn compare(shown: &Rendered, expected: &Rendered, symbols: [&Symbols; 2]) -> Comparison {
    let mut comparing = Comparing {
        symbols,
        unknown: None,
    };
    comparing
        .part(shown, expected, "")
        .unwrap_or_else(|| comparing.unknown.take().unwrap_or(Comparison::Same))
}

/// Returns the first missing part of the shown value, if any. A missing part may be the only reason
/// why the rest has a different shape.
fn missing(shown: &Rendered, at: &str) -> Option<Comparison> {
    if let Shape::Missing(why) = &shown.shape {
        let (part, why) = (at.to_owned(), why.to_string());
        return Some(Comparison::Missing { part, why });
    }
    shown.children.iter().find_map(|child| {
        let name = child.name.as_deref().unwrap_or_default();
        let dot = if name.starts_with('[') { "" } else { "." };
        missing(child, &format!("{at}{dot}{name}"))
    })
}

struct Comparing<'s> {
    symbols: [&'s Symbols; 2],
    /// The first part that cannot be compared.
    unknown: Option<Comparison>,
}

const ADDRESS: &str = "an address, and the other version may place objects elsewhere";
const LARGE: &str = "too large to be compared";

impl Comparing<'_> {
    fn cannot(&mut self, part: &str, why: &'static str) {
        let part = part.to_owned();
        self.unknown
            .get_or_insert(Comparison::Incomparable { part, why });
    }

    /// Compares a part, and returns the difference, if any.
    fn part(&mut self, shown: &Rendered, expected: &Rendered, at: &str) -> Option<Comparison> {
        let different = || Some(Comparison::Different(at.to_owned()));
        match (&shown.shape, &expected.shape) {
            (Shape::Missing(why), _) => {
                let (part, why) = (at.to_owned(), why.to_string());
                self.unknown
                    .get_or_insert(Comparison::Missing { part, why });
                None
            }
            (_, Shape::Missing(_)) => {
                self.cannot(at, "not known in the unoptimised run");
                None
            }
            (Shape::Pointer, Shape::Pointer) => match self.pointers(&shown.text, &expected.text) {
                Some(true) => None,
                Some(false) => different(),
                None => {
                    self.cannot(at, ADDRESS);
                    None
                }
            },
            (a, b) if a != b => match missing(shown, at) {
                Some(unknown) => {
                    self.unknown.get_or_insert(unknown);
                    None
                }
                None => different(),
            },
            _ if shown.text != expected.text => different(),
            _ if shown.children.len() != expected.children.len() => different(),
            _ => {
                for (a, b) in shown.children.iter().zip(&expected.children) {
                    if a.name != b.name {
                        return different();
                    }
                    let name = a.name.as_deref().unwrap_or_default();
                    let dot = if name.starts_with('[') { "" } else { "." };
                    let found = self.part(a, b, &format!("{at}{dot}{name}"));
                    if found.is_some() {
                        return found;
                    }
                }
                if shown.omitted != expected.omitted {
                    return different();
                }
                if shown.omitted > 0 {
                    self.cannot(at, LARGE);
                }
                None
            }
        }
    }

    /// Whether two addresses are the same; `None` if unknown.
    fn pointers(&self, shown: &str, expected: &str) -> Option<bool> {
        let (a, b) = (address(shown)?, address(expected)?);
        if a == b {
            return Some(true);
        }
        if a == 0 || b == 0 {
            return Some(false);
        }
        if let (Some(a), Some(b)) = (function(shown), function(expected)) {
            return Some(a == b);
        }
        let found = (self.symbols[0].find(a), self.symbols[1].find(b));
        match found {
            (Some(a), Some(b)) => Some(a == b),
            _ => None,
        }
    }
}

fn address(text: &str) -> Option<u64> {
    let first = text.split_whitespace().next()?;
    u64::from_str_radix(first.strip_prefix("0x")?, 16).ok()
}

/// Returns the name in the text that describes a function's address.
fn function(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(" <")?;
    rest.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: Option<&str>, text: &str) -> Rendered {
        Rendered {
            name: name.map(str::to_owned),
            type_name: "int".to_owned(),
            shape: Shape::Scalar,
            text: text.to_owned(),
            children: Vec::new(),
            omitted: 0,
        }
    }

    fn pointer(name: Option<&str>, text: &str) -> Rendered {
        Rendered {
            shape: Shape::Pointer,
            ..scalar(name, text)
        }
    }

    fn record(children: Vec<Rendered>) -> Rendered {
        Rendered {
            shape: Shape::Record,
            children,
            ..scalar(None, "")
        }
    }

    #[test]
    fn values_are_compared_part_by_part() {
        let symbols = |at: u64| Symbols {
            known: vec![
                (at, at + 40, "pool".to_owned()),
                (at + 40, at + 44, "used".to_owned()),
            ],
        };
        let (a, b) = (symbols(1000), symbols(2000));
        let check = |x: &Rendered, y: &Rendered| compare(x, y, [&a, &b]);
        let different = |part: &str| Comparison::Different(part.to_owned());
        assert_eq!(
            check(&scalar(None, "3"), &scalar(None, "3")),
            Comparison::Same
        );
        assert_eq!(check(&scalar(None, "3"), &scalar(None, "4")), different(""));
        let address = |at: u64| pointer(None, &format!("0x{at:x}"));
        assert_eq!(check(&address(1008), &address(2008)), Comparison::Same);
        assert_eq!(check(&address(1008), &address(2012)), different(""));
        assert_eq!(check(&address(1040), &address(2008)), different(""));
        assert_eq!(check(&address(0), &address(2008)), different(""));
        assert_eq!(check(&address(0), &address(0)), Comparison::Same);
        assert_eq!(check(&address(77), &address(77)), Comparison::Same);
        // A pointer to a different object cannot be distinguished from a pointer to the same object
        // at another address.
        let unknown = check(&address(77), &address(78));
        assert!(matches!(unknown, Comparison::Incomparable { .. }));
        assert_eq!(
            check(&pointer(None, "0x3 <f>"), &pointer(None, "0x4 <f>")),
            Comparison::Same
        );
        assert_eq!(
            check(&pointer(None, "0x3 <f>"), &pointer(None, "0x3 <f>")),
            Comparison::Same
        );
        assert_eq!(
            check(&pointer(None, "0x3 <f>"), &pointer(None, "0x4 <g>")),
            different("")
        );
        // A difference takes precedence over unknown parts.
        let one = |next, key| record(vec![pointer(Some("next"), next), scalar(Some("key"), key)]);
        assert_eq!(
            check(&one("0x4d", "1"), &one("0x4e", "2")),
            different(".key")
        );
        assert_eq!(
            check(&one("0x4d", "1"), &one("0x4e", "1")),
            Comparison::Incomparable {
                part: ".next".to_owned(),
                why: ADDRESS
            }
        );
    }
}
