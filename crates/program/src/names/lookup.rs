//! From what a user types to a function.

use std::borrow::Cow;
use std::collections::HashMap;

use afterimage_ids::{EntityRef, FuncId};
use thiserror::Error;

use super::{Names, demangle};
use crate::nearest::nearest;

/// Why a text does not name a function.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// It is an index beyond the last function's.
    #[error("there is no function {index}; the last is {last}")]
    NoIndex {
        /// What was asked for.
        index: u64,
        /// The index of the last function, or 0 if there is none.
        last: u64,
    },
    /// It names more than one function.
    #[error("\"{query}\" is ambiguous: {}", listed(candidates))]
    Ambiguous {
        /// What was asked for.
        query: String,
        /// The functions that it could be, with their names.
        candidates: Vec<(FuncId, String)>,
    },
    /// No function is called so.
    #[error("no function is called \"{query}\"{}", suggestion(nearest))]
    Unknown {
        /// What was asked for.
        query: String,
        /// Names that are spelled similarly, best first.
        nearest: Vec<String>,
    },
}

fn listed(candidates: &[(FuncId, String)]) -> String {
    const SHOWN: usize = 8;
    let mut text = candidates[..candidates.len().min(SHOWN)]
        .iter()
        .map(|(id, name)| format!("func[{}] {name}", id.as_u32()))
        .collect::<Vec<_>>()
        .join(", ");
    if candidates.len() > SHOWN {
        text.push_str(&format!(" and {} more", candidates.len() - SHOWN));
    }
    text
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Functions by their names.
#[derive(Debug)]
pub(super) struct Lookup {
    raw: HashMap<Box<str>, Vec<FuncId>>,
    shown: HashMap<Box<str>, Vec<FuncId>>,
    /// By the last segment of the path, without what a C++ name has in parentheses.
    last_segment: HashMap<Box<str>, Vec<FuncId>>,
    /// By the same, without the type that a C++ name has in front and without the arguments of generics.
    plain: HashMap<Box<str>, Vec<FuncId>>,
}

impl Names {
    /// The function that a text names. In this order: a decimal index or
    /// `func[12]`; the name as the module holds it; the name as it is shown;
    /// `func12`; the name that it is exported by; the end of exactly one shown name, from a `::` on; the same without
    /// the type that a C++ name has in front, then without the arguments of the generic function (`mix<double>`, `app::apply`), then without those of
    /// what it is in; and a mangled name that the module holds demangled.
    ///
    /// The first call demangles all names; later ones take time in proportion to the text and
    /// to the functions with the same last path segment.
    ///
    /// # Errors
    /// If no function, or more than one, is called so.
    pub fn find(&self, query: &str) -> Result<FuncId, NameError> {
        if let Some(found) = self.search(query) {
            return found;
        }
        let lookup = self.lookup.get_or_init(|| Lookup::build(self));
        let names = lookup.shown.keys().chain(lookup.last_segment.keys());
        let names = names.chain(lookup.plain.keys());
        let mut names: Vec<&str> = names.map(|name| &**name).collect();
        names.sort_unstable();
        names.dedup();
        let nearest = nearest(query, names)
            .into_iter()
            .map(str::to_string)
            .collect();
        Err(NameError::Unknown {
            query: query.to_string(),
            nearest,
        })
    }

    /// The same, without looking for what an unknown name may have meant. `None` unless it is one function's.
    pub fn known(&self, query: &str) -> Option<FuncId> {
        self.search(query)?.ok()
    }

    /// `None` if nothing is called so.
    fn search(&self, query: &str) -> Option<Result<FuncId, NameError>> {
        let lookup = self.lookup.get_or_init(|| Lookup::build(self));
        let bracketed = query
            .strip_prefix("func[")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(index) = decimal(bracketed.unwrap_or(query)) {
            return Some(self.index(index));
        }
        for exact in [&lookup.raw, &lookup.shown] {
            if let Some(functions) = exact.get(query) {
                return Some(self.only(query, functions.clone()));
            }
        }
        if let Some(index) = query.strip_prefix("func").and_then(decimal) {
            return Some(self.index(index));
        }
        if let Some(&function) = self.exports.get(query) {
            return Some(Ok(function));
        }
        let segments = path(query);
        let same_end = lookup
            .last_segment
            .get(last_segment(segments))
            .into_iter()
            .flatten();
        let matching: Vec<FuncId> = same_end
            .copied()
            .filter(|&function| {
                let head = path(self.function(function)).strip_suffix(segments);
                head.is_some_and(|head| head.is_empty() || head.ends_with("::"))
            })
            .collect();
        if !matching.is_empty() {
            return Some(self.only(query, matching));
        }
        let matching = lookup.relaxed(self, query);
        if !matching.is_empty() {
            return Some(self.only(query, matching));
        }
        // Linkers demangle the names that they write.
        let demangled = demangle(query).filter(|name| name != query)?;
        self.search(&demangled)
    }

    fn index(&self, index: u64) -> Result<FuncId, NameError> {
        let count = self.functions.len() as u64;
        if index < count {
            return Ok(FuncId::new(index as usize));
        }
        Err(NameError::NoIndex {
            index,
            last: count.saturating_sub(1),
        })
    }

    fn only(&self, query: &str, functions: Vec<FuncId>) -> Result<FuncId, NameError> {
        if let [function] = functions[..] {
            return Ok(function);
        }
        let named = |id: FuncId| (id, self.function(id).to_string());
        let candidates = functions.into_iter().map(named).collect();
        Err(NameError::Ambiguous {
            query: query.to_string(),
            candidates,
        })
    }
}

impl Lookup {
    fn build(names: &Names) -> Self {
        let mut lookup = Self {
            raw: HashMap::new(),
            shown: HashMap::new(),
            last_segment: HashMap::new(),
            plain: HashMap::new(),
        };
        let insert = |map: &mut HashMap<Box<str>, Vec<FuncId>>, name: &str, function| {
            map.entry(name.into()).or_default().push(function);
        };
        for function in names.functions() {
            let shown = names.function(function);
            let raw = names.raw(function);
            if let Some(raw) = raw {
                insert(&mut lookup.raw, raw, function);
            }
            // Who names a function does not mean what only goes on to it.
            if raw.is_some() && !shown.contains(" thunk to ") {
                insert(
                    &mut lookup.last_segment,
                    last_segment(path(shown)),
                    function,
                );
                insert(&mut lookup.plain, plain(shown), function);
            }
            insert(&mut lookup.shown, shown, function);
        }
        lookup
    }

    /// The functions whose names end in a query from a `::` on, once what a user leaves out is left out: the least that suffices.
    fn relaxed(&self, names: &Names, query: &str) -> Vec<FuncId> {
        let same = self.plain.get(plain(query)).map_or(&[][..], Vec::as_slice);
        let forms: [fn(&str) -> Cow<'_, str>; 5] = [
            |name| untyped(name).into(),
            |name| untyped(path(name)).into(),
            |name| without_arguments(untyped(path(name))).into(),
            |name| without_generics(untyped(path(name))).into(),
            // As debuggers show those of Rust.
            |name| name.replace("::<", "<").into(),
        ];
        let fits = |form: &fn(&str) -> Cow<'_, str>| {
            let is_it = |function: &FuncId| {
                let name = form(names.function(*function));
                let head = name.strip_suffix(query);
                head.is_some_and(|head| head.is_empty() || head.ends_with("::"))
            };
            Vec::from_iter(same.iter().copied().filter(is_it))
        };
        forms
            .iter()
            .map(fits)
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }
}

/// What a user calls a function in the least words.
fn plain(name: &str) -> &str {
    last_segment(without_arguments(untyped(path(name))))
}

/// A C++ name without the type that templates have in front of it: `double mix<double>` is `mix<double>`.
fn untyped(name: &str) -> &str {
    let bytes = name.as_bytes();
    let (mut depth, mut start) = (0usize, 0);
    for (i, &byte) in bytes.iter().enumerate() {
        let before = i.checked_sub(1).map_or(b' ', |before| bytes[before]);
        match byte {
            // What follows may hold spaces and brackets.
            b'o' if depth == 0 && name[i..].starts_with("operator") && b" :".contains(&before) => {
                break;
            }
            b'>' if before == b'-' => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && bytes.get(i + 1) != Some(&b'(') => start = i + 1,
            _ => {}
        }
        // The parameters; what follows them belongs to them.
        if depth == 1 && byte == b'(' && i > start {
            break;
        }
    }
    &name[start..]
}

/// The path of a generic function without its own arguments: `mix<double>` is `mix`, `apply::<F>` is `apply`.
fn without_arguments(path: &str) -> &str {
    if !path.ends_with('>') || path.contains("operator") {
        return path;
    }
    let bytes = path.as_bytes();
    let mut depth = 0usize;
    for i in (1..bytes.len()).rev() {
        match bytes[i] {
            b'>' if bytes[i - 1] != b'-' => depth += 1,
            b'<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let kept = path[..i].strip_suffix("::").unwrap_or(&path[..i]);
            return if kept.is_empty() { path } else { kept };
        }
    }
    path
}

/// A path without the arguments of all generics in it: `Stack<int>::push` is `Stack::push`. Rust's `<A as B>::c` stays.
fn without_generics(path: &str) -> String {
    let mut kept = String::with_capacity(path.len());
    let (mut depth, mut before) = (0usize, ' ');
    if path.contains("operator") {
        return path.to_owned();
    }
    for c in path.chars() {
        match c {
            '<' if depth > 0 || !kept.is_empty() => {
                if depth == 0 && kept.ends_with("::") {
                    kept.truncate(kept.len() - 2);
                }
                depth += 1;
            }
            '>' if depth > 0 && before != '-' => depth -= 1,
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
        before = c;
    }
    kept
}

fn decimal(text: &str) -> Option<u64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The path of a shown name: a C++ function's without its parameters and what follows them.
fn path(name: &str) -> &str {
    let end = name.rfind(')').filter(|&end| {
        matches!(
            name[end + 1..].trim_start().split(' ').next(),
            Some("" | "const" | "volatile" | "&")
        )
    });
    let Some(end) = end else { return name };
    let mut depth = 0;
    for (i, c) in name[..=end].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            // `operator()` and Rust's `(a, b)` types have nothing before the parenthesis to keep.
            return if i == 0 || name[..i].ends_with("operator") {
                name
            } else {
                &name[..i]
            };
        }
    }
    name
}

/// What follows the last `::` that is not inside `<…>` or `(…)`.
fn last_segment(path: &str) -> &str {
    let mut depth = 0usize;
    let bytes = path.as_bytes();
    for i in (1..bytes.len()).rev() {
        match bytes[i] {
            // The arrow of a function type closes nothing.
            b'>' if bytes[i - 1] != b'-' => depth += 1,
            b')' | b']' => depth += 1,
            b'<' | b'(' | b'[' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes[i - 1] == b':' => return &path[i + 1..],
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_before_parameters() {
        assert_eq!(path("space::foo(int, bool (*)(char))"), "space::foo");
        assert_eq!(path("A::f() const"), "A::f");
        assert_eq!(path("core::fmt::write"), "core::fmt::write");
        assert_eq!(path("A::operator()(int)"), "A::operator()");
        assert_eq!(path("<(A, B) as C>::d"), "<(A, B) as C>::d");
    }

    #[test]
    fn types_and_arguments_can_be_left_out() {
        assert_eq!(
            untyped("double mix<double>(double, double)"),
            "mix<double>(double, double)"
        );
        assert_eq!(
            untyped("std::pair<int, int> ns::f<int>(int)"),
            "ns::f<int>(int)"
        );
        assert_eq!(
            untyped("std::ostream& operator<< <char>(std::ostream&)"),
            "operator<< <char>(std::ostream&)"
        );
        assert_eq!(
            untyped("A::operator unsigned int()"),
            "A::operator unsigned int()"
        );
        assert_eq!(
            untyped("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f(int)"
        );
        assert_eq!(untyped("<(A, B) as C>::d"), "<(A, B) as C>::d");
        assert_eq!(untyped("A::f() const"), "A::f() const");
        assert_eq!(
            without_arguments("app::apply::<app::main::{closure#0}>"),
            "app::apply"
        );
        assert_eq!(without_arguments("f::<fn(a) -> b::c<d>>"), "f");
        assert_eq!(without_arguments("<a::B as c::D>::e"), "<a::B as c::D>::e");
        assert_eq!(
            without_generics("Stack<std::vector<int>>::push<char>"),
            "Stack::push"
        );
        assert_eq!(without_generics("<a::B<c> as D>::e::<f>"), "<a::B as D>::e");
        assert_eq!(plain("double ns::mix<double>(double)"), "mix");
    }

    #[test]
    fn last_segments_skip_generic_arguments() {
        assert_eq!(last_segment("core::fmt::write"), "write");
        assert_eq!(last_segment("<a::B as c::D>::e"), "e");
        assert_eq!(last_segment("a::b<c::d>"), "b<c::d>");
        assert_eq!(last_segment("main"), "main");
        assert_eq!(last_segment("f::<fn(a) -> b::c>"), "<fn(a) -> b::c>");
    }
}
