//! Names of functions in few columns.

/// A function's name without the types of its parameters, which C++ has in it. Those of functions around it stay: `outer(int)::Inner::twice`.
pub(crate) fn without_parameters(name: &str) -> &str {
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

/// The length of the text from a parenthesis to the one that closes it, both included.
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

/// Whether the text after a function's parameters names something inside that function.
fn is_around(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '&']);
    let rest = rest.strip_prefix("const").unwrap_or(rest);
    rest.trim_start_matches([' ', '&']).starts_with("::")
}

#[cfg(test)]
mod tests {
    use super::without_parameters;

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
}
