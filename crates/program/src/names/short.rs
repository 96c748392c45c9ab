//! Shortens names of functions and types.

/// Removes the types of the parameters, which C++ includes, from a function's name. The parameter
/// types of enclosing functions stay: `outer(int)::Inner::twice`.
pub fn without_parameters(name: &str) -> &str {
    let (mut open, mut at) = (0u32, 0);
    while let Some(rest) = name.get(at..).filter(|rest| !rest.is_empty()) {
        let taken = [
            "operator()",
            "operator<",
            "operator>",
            "(anonymous namespace)",
            "->",
            "decltype(auto)",
        ];
        if let Some(whole) = taken.iter().find(|whole| rest.starts_with(**whole)) {
            at += whole.len();
            continue;
        }
        match rest.as_bytes()[0] {
            b'<' => open += 1,
            b'>' => open = open.saturating_sub(1),
            b'(' if open == 0 && at > 0 => match closed(rest) {
                Some(length) if name[..at].ends_with("decltype") || is_around(&rest[length..]) => {
                    at += length;
                    continue;
                }
                _ => return &name[..at],
            },
            _ => {}
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    name
}

/// Shortens a function's name to the form that people write, without types of parameters, versions
/// of libraries, and default arguments of templates.
pub fn short_function(name: &str) -> String {
    let name = short_type(without_parameters(name));
    let (mut short, mut rest) = (String::new(), name.as_str());
    while let Some(begin) = rest.find("[abi:")
        && let Some(length) = rest[begin..].find(']')
    {
        short += &rest[..begin];
        rest = &rest[begin + length + 1..];
    }
    short + rest
}

/// Returns the length of the text from an opening parenthesis to the matching closing parenthesis,
/// inclusive.
fn closed(text: &str) -> Option<usize> {
    let mut open = 0u32;
    for (at, sign) in text.bytes().enumerate() {
        match sign {
            b'(' => open += 1,
            b')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Whether the text after a function's parameters names an item inside that function.
fn is_around(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '&']);
    let rest = rest.strip_prefix("const").unwrap_or(rest);
    rest.trim_start_matches([' ', '&']).starts_with("::")
}

/// Shortens a type's name to the form that people write. Removes versions of libraries
/// (`std::__2::`) and default arguments (allocators, comparisons), and keeps only the last part of
/// names in Rust's standard library. A name with unbalanced brackets stays unchanged.
pub fn short_type(name: &str) -> String {
    /// The text between two angle brackets: the arguments so far, and the current one.
    #[derive(Default)]
    struct Open {
        arguments: Vec<String>,
        text: String,
        parentheses: u32,
    }
    impl Open {
        fn argument(&mut self) {
            let argument = std::mem::take(&mut self.text);
            self.arguments.push(plainly(argument.trim()));
        }
    }
    let mut name = name.to_owned();
    for version in ["::__1::", "::__2::", "::__cxx11::"] {
        name = name.replace(version, "::");
    }
    let mut open = vec![Open::default()];
    let mut before = ' ';
    for sign in name.chars() {
        let depth = open.len();
        let Some(inner) = open.last_mut() else { break };
        match sign {
            '<' => open.push(Open::default()),
            '>' if before != '-' && depth > 1 => {
                inner.argument();
                let mut closed = open.pop().unwrap_or_default().arguments;
                while closed.len() > 1 && closed.last().is_some_and(|last| is_default(last)) {
                    closed.pop();
                }
                if let Some(outer) = open.last_mut() {
                    let arguments = closed.join(", ");
                    match outer.text.strip_suffix("basic_string") {
                        Some(head) if arguments == "char" => outer.text = format!("{head}string"),
                        _ => outer.text += &format!("<{arguments}>"),
                    }
                }
            }
            ',' if depth > 1 && inner.parentheses == 0 => inner.argument(),
            _ => {
                match sign {
                    '(' | '[' => inner.parentheses += 1,
                    ')' | ']' => inner.parentheses = inner.parentheses.saturating_sub(1),
                    _ => {}
                }
                inner.text.push(sign);
            }
        }
        before = sign;
    }
    match &mut open[..] {
        [whole] => plainly(whole.text.trim()),
        _ => name,
    }
}

/// Whether an argument of a generic type is its default.
fn is_default(argument: &str) -> bool {
    const DEFAULTS: [&str; 8] = [
        "std::allocator<",
        "std::less<",
        "std::hash<",
        "std::equal_to<",
        "std::char_traits<",
        "std::default_delete<",
        "Global",
        "RandomState",
    ];
    let mut defaults = DEFAULTS.iter();
    defaults.any(|default| {
        argument == *default || default.ends_with('<') && argument.starts_with(default)
    })
}

/// Removes the path of a type in Rust's standard library: `alloc::string::String` becomes `String`.
fn plainly(text: &str) -> String {
    let is_path = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':');
    let mut found = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_path) {
        let (before, path) = rest.split_at(begin);
        let end = path.find(|sign| !is_path(sign)).unwrap_or(path.len());
        let (path, after) = path.split_at(end);
        found += before;
        let last = path.rsplit("::").next().unwrap_or(path);
        let of_rust = ["alloc::", "core::", "std::"]
            .iter()
            .any(|of| path.starts_with(of));
        let is_type = last.chars().next().is_some_and(char::is_uppercase);
        found += if of_rust && is_type { last } else { path };
        rest = after;
    }
    found + rest
}

#[cfg(test)]
mod tests {
    use super::{short_function, short_type, without_parameters};

    #[test]
    fn functions_are_as_people_write_them() {
        for (name, short) in [
            (
                "Calculator::token(std::__2::basic_string<char, std::__2::char_traits<char>, std::__2::allocator<char>> const&)",
                "Calculator::token",
            ),
            (
                "std::__2::basic_string<char, std::__2::char_traits<char>, std::__2::allocator<char>>::clear[abi:nn190107]()",
                "std::string::clear",
            ),
            (
                "<&i32 as core::ops::arith::Mul<i32>>::mul",
                "<&i32 as Mul<i32>>::mul",
            ),
            ("a::operator<(a const&)", "a::operator<"),
            ("a::operator->() const", "a::operator->"),
            (
                "<fn(u32) as a::B>::c::{closure#0}",
                "<fn(u32) as a::B>::c::{closure#0}",
            ),
            ("(odd[abi:", "(odd[abi:"),
        ] {
            assert_eq!(short_function(name), short);
        }
    }

    #[test]
    fn parameters_are_no_part_of_a_name() {
        for (name, short) in [
            ("main", "main"),
            ("look(Rect const&, int (*)(int))", "look"),
            (
                "Box<int (*)(int)>::get(int) const",
                "Box<int (*)(int)>::get",
            ),
            (
                "(anonymous namespace)::f(int) (.specialized.1)",
                "(anonymous namespace)::f",
            ),
            ("a::operator()(int) const", "a::operator()"),
            ("a::operator<(a const&)", "a::operator<"),
            ("a::operator->() const", "a::operator->"),
            (
                "<fn(u32) as a::B>::c::{closure#0}",
                "<fn(u32) as a::B>::c::{closure#0}",
            ),
            ("outer(int)::In::twice()", "outer(int)::In::twice"),
            (
                "main(int, char**)::$_0::operator()(int) const",
                "main(int, char**)::$_0::operator()",
            ),
            (
                "int n::O::m<int>(int (*)(int)) const::L::go(int)",
                "int n::O::m<int>(int (*)(int)) const::L::go",
            ),
            ("decltype(fp.x()) dt<H>(H)", "decltype(fp.x()) dt<H>"),
            ("(odd", "(odd"),
            ("f(odd", "f"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }

    #[test]
    fn types_are_as_people_write_them() {
        let string =
            "std::__2::basic_string<char, std::__2::char_traits<char>, std::__2::allocator<char> >";
        for (name, short) in [
            ("int", "int"),
            (string, "std::string"),
            ("vector<int, std::__2::allocator<int> >", "vector<int>"),
            (
                &format!(
                    "map<{string}, int, std::__2::less<{string} >, std::__2::allocator<std::__2::pair<const {string}, int> > >"
                ),
                "map<std::string, int>",
            ),
            (
                "HashMap<alloc::string::String, i32, std::hash::random::RandomState, alloc::alloc::Global>",
                "HashMap<String, i32>",
            ),
            (
                "alloc::boxed::Box<bank::Account, alloc::alloc::Global>",
                "Box<bank::Account>",
            ),
            (
                "Option<(i32, core::option::Option<u8>)>",
                "Option<(i32, Option<u8>)>",
            ),
            ("fn(i32, core::fmt::Error) -> u8", "fn(i32, Error) -> u8"),
            ("a<b", "a<b"),
            ("std::less<int>", "std::less<int>"),
        ] {
            assert_eq!(short_type(name), short);
        }
    }
}
